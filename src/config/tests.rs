//! Precedence, faults and the reference.

use std::path::PathBuf;

use super::*;
use crate::telemetry::LogFormat;

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
    pairs.iter().map(owned).collect()
}

/// A folder with a `dak.toml`.
struct File {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

fn file(text: &str) -> File {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    std::fs::write(&path, text).unwrap();
    File { _dir: dir, path }
}

fn load_file(text: &str) -> Result<Config, Vec<Fault>> {
    Config::load(&[], [], Some(&file(text).path))
}

fn load_flags(flags: &[(&str, &str)]) -> Result<Config, Vec<Fault>> {
    Config::load(&pairs(flags), [], None)
}

fn told(loaded: Result<Config, Vec<Fault>>) -> Vec<String> {
    loaded.unwrap_err().iter().map(Fault::to_string).collect()
}

#[test]
fn nothing_set_gives_the_defaults() {
    let config = Config::load(&[], [], None).unwrap();

    assert_eq!(config.server, Config::default().server);
    assert_eq!(config.server.public_url, "http://127.0.0.1:8080");
    assert_eq!(config.ingest.public_urls, ["http://127.0.0.1:8080"]);
    assert_eq!(config.api.body_bytes_max, 17 * 1024 * 1024);
    assert_eq!(config.store.blobs_dir, PathBuf::from("./dak-data/blobs"));
    assert_eq!(config.database(), PathBuf::from("./dak-data/dak.db"));
    assert!(
        config
            .effective()
            .iter()
            .all(|one| one.origin == Origin::Default)
    );
}

#[test]
fn a_flag_beats_a_variable_which_beats_the_file_which_beats_the_default() {
    let toml = "listen = '127.0.0.1:1'\nmax_connections = 1\nmax_batch_events = 1\n";
    let environment = pairs(&[("DAK_LISTEN", "127.0.0.1:2"), ("DAK_MAX_CONNECTIONS", "2")]);
    let flags = pairs(&[("listen", "127.0.0.1:3")]);
    let file = file(toml);

    let config = Config::load(&flags, environment, Some(&file.path)).unwrap();

    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(config.origin("listen"), Origin::Flag);
    assert_eq!(config.server.connections_max, 2);
    let variable = Origin::Variable("DAK_MAX_CONNECTIONS".to_owned());
    assert_eq!(config.origin("max_connections"), variable);
    assert_eq!(config.api.batch_events_max, 1);
    let line = Origin::File {
        file: file.path.display().to_string(),
        line: 3,
    };
    assert_eq!(config.origin("max_batch_events"), line);
    assert_eq!(config.origin("data_dir"), Origin::Default);
}

#[test]
fn every_setting_reads_back_what_it_shows() {
    let flags: Vec<(String, String)> = Config::default()
        .effective()
        .into_iter()
        .filter(|one| !one.value.is_empty())
        .map(|one| (one.setting.key.to_owned(), one.value))
        .collect();

    let config = Config::load(&flags, [], None).unwrap();

    for (key, value) in &flags {
        let shown = config.effective();
        let shown = shown.iter().find(|one| one.setting.key == key).unwrap();
        assert_eq!(
            (&shown.value, &shown.origin),
            (value, &Origin::Flag),
            "{key}"
        );
    }
}

#[test]
fn a_file_sets_every_kind_of_value() {
    let config = load_file(
        "insecure = true\nrequest_timeout = 5\nmax_event_bytes = 1_048_576\n\
         max_header_bytes = 0x4000\nclaim_check.threshold = '1MiB'\n[log]\nformat = \"json\"\n\
         [otlp]\nendpoint = 'http://collector:4317/'\nsample_ratio = 0.25\n",
    )
    .unwrap();

    assert!(config.server.insecure);
    assert_eq!(config.server.request_timeout, Duration::from_secs(5));
    assert_eq!(config.ingest.event_bytes_max, 1024 * 1024);
    assert_eq!(config.api.body_bytes_max, 2 * 1024 * 1024);
    assert_eq!(config.api.header_bytes_max, 16 * 1024);
    assert_eq!(config.ingest.claim_check_threshold, 1024 * 1024);
    assert_eq!(config.telemetry.log_format, LogFormat::Json);
    assert_eq!(
        config.telemetry.otlp_endpoint.as_deref(),
        Some("http://collector:4317")
    );
    assert_eq!(config.telemetry.sample_ratio.to_string(), "0.25");
}

#[test]
fn all_faults_are_told_together_each_with_its_place() {
    let file = file("lisen = '127.0.0.1:1'\n\n[claim_check]\nthreshold = '12 parsecs'\n");
    let environment = pairs(&[("DAK_MAX_CONECTIONS", "5"), ("DAK_INSECURE", "yes")]);
    let flags = pairs(&[("request_timeout", "1w"), ("max_batch_events", "0")]);
    let path = file.path.display();

    let faults = told(Config::load(&flags, environment, Some(&file.path)));

    assert_eq!(
        faults,
        [
            format!("lisen ({path}:1): there is no such setting; did you mean `listen`?"),
            format!(
                "claim_check.threshold ({path}:4): \"12 parsecs\" is not allowed: the unit \"parsecs\" is not known; use one of B, KiB, MiB, GiB, TiB, KB, MB, GB, TB; allowed: a size such as 64KiB, from 0 bytes to 1GiB"
            ),
            "insecure (DAK_INSECURE): \"yes\" is not allowed; allowed: true or false".to_owned(),
            "DAK_MAX_CONECTIONS: no setting is read from this variable; did you mean DAK_MAX_CONNECTIONS?".to_owned(),
            "request_timeout (command line): \"1w\" is not allowed: the unit \"w\" is not known; use one of ms, s, m, h, d; allowed: a duration such as 30s or 500ms, from 10ms to 1h".to_owned(),
            "max_batch_events (command line): \"0\" is not allowed; allowed: a whole number from 1 to 10000".to_owned(),
        ]
    );
}

#[test]
fn a_fault_in_the_file_is_told_even_where_a_flag_overrides_it() {
    let file = file("listen = 'nowhere'\n");

    let faults = told(Config::load(
        &pairs(&[("listen", "[::1]:1")]),
        [],
        Some(&file.path),
    ));

    assert_eq!(faults.len(), 1, "{faults:?}");
}

#[test]
fn an_unknown_table_and_a_table_in_place_of_a_value_are_faults() {
    let faults = told(load_file(
        "[claimcheck]\nthreshold = 1\n[listen]\nport = 80\n",
    ));

    assert!(faults[0].contains("claimcheck"), "{faults:?}");
    assert!(
        faults[0].ends_with("did you mean `claim_check`?"),
        "{faults:?}"
    );
    assert!(
        faults[1].contains("a table stands where a value belongs"),
        "{faults:?}"
    );
}

#[test]
fn text_that_is_not_toml_is_told_with_its_line() {
    let faults = load_file("insecure = true\nlisten = = 3\n").unwrap_err();

    assert!(matches!(faults[0].why, Why::Syntax { .. }), "{faults:?}");
    assert!(
        faults[0].to_string().contains("dak.toml:2"),
        "{}",
        faults[0]
    );
}

#[test]
fn a_file_that_is_not_there_is_a_fault() {
    let faults = Config::load(&[], [], Some(Path::new("/nowhere/dak.toml"))).unwrap_err();

    assert!(matches!(faults[0].why, Why::Unreadable(_)), "{faults:?}");
}

#[test]
fn variables_of_others_and_empty_ones_are_left_alone() {
    let environment = pairs(&[
        ("DAK_URL", "http://elsewhere"),
        ("DAK_KEY", "dak_a_b"),
        ("DAK_SHARED", "/vectors"),
        ("DAK_LISTEN", ""),
        ("DAK_SERVICE_HOST", "10.0.0.1"),
        ("DAK_SERVICE_PORT_HTTP", "8080"),
        ("DAK_PORT", "tcp://10.0.0.1:8080"),
        ("DAK_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("DAKOTA", "north"),
        ("HOME", "/"),
    ]);

    let config = Config::load(&[], environment, None).unwrap();

    assert_eq!(config.origin("listen"), Origin::Default);
}

#[test]
fn settings_that_follow_others_follow_them() {
    let config = load_flags(&[
        ("listen", "0.0.0.0:9"),
        ("data_dir", "/var/lib/dak"),
        ("max_event_bytes", "1KiB"),
    ])
    .unwrap();

    assert_eq!(config.server.public_url, "http://127.0.0.1:9");
    assert_eq!(config.store.blobs_dir, PathBuf::from("/var/lib/dak/blobs"));
    assert_eq!(config.api.body_bytes_max, 1024 * 1024 + 1024);
}

#[test]
fn the_port_that_was_taken_shows_in_the_public_url_unless_that_is_set() {
    let bound: SocketAddr = "127.0.0.1:4711".parse().unwrap();
    let mut open = load_flags(&[("listen", "localhost:0")]).unwrap();
    let mut set =
        load_flags(&[("listen", "[::]:0"), ("public_url", "https://bus.example/")]).unwrap();

    open.listening_on(bound);
    set.listening_on(bound);

    assert_eq!(open.ingest.public_urls, ["http://127.0.0.1:4711"]);
    assert_eq!(set.ingest.public_urls, ["https://bus.example"]);
}

#[test]
fn a_body_too_small_for_an_event_is_a_fault() {
    let faults = told(load_flags(&[
        ("max_body_bytes", "1KiB"),
        ("max_event_bytes", "2KiB"),
    ]));

    assert_eq!(
        faults,
        [
            "max_body_bytes (command line): a body must have room for an event of `max_event_bytes`; allowed: 2KiB or more"
        ]
    );
}

#[test]
fn a_password_in_a_url_is_refused_and_not_shown() {
    for url in [
        "http://user:hunter2@collector:4317",
        "user:hunter2@collector",
    ] {
        let faults = told(load_flags(&[("otlp.endpoint", url)]));

        assert!(!faults[0].contains("hunter2"), "{faults:?}");
    }
}

#[test]
fn values_at_their_limits_are_taken_and_those_beyond_are_not() {
    let cases = [
        ("max_connections", "1", "0"),
        ("max_connections", "1000000", "1000001"),
        ("max_header_bytes", "8KiB", "8191"),
        ("max_header_bytes", "1MiB", "1048577"),
        ("max_body_bytes", "1GiB", "1073741825"),
        ("claim_check.threshold", "0", "-1"),
        ("request_timeout", "10ms", "9ms"),
        ("shutdown_timeout", "0s", "61m"),
        ("webhook.connect_timeout", "10m", "601s"),
        ("otlp.sample_ratio", "1", "1.01"),
        ("otlp.sample_ratio", "0", "NaN"),
        ("public_url", "http://a", "ftp://a"),
        ("public_url", "https://a/b", "https://a/?b"),
        ("listen", "[::1]:65535", "127.0.0.1:65536"),
        ("log.filter", "warn,dak=debug", "dak=loud"),
        ("webhook.private_addresses", "never", "always"),
    ];
    for (key, good, bad) in cases {
        assert!(load_flags(&[(key, good)]).is_ok(), "{key} {good}");
        assert!(load_flags(&[(key, bad)]).is_err(), "{key} {bad}");
    }
}

#[test]
fn no_two_settings_share_a_key_or_a_variable() {
    let mut variables: Vec<String> = settings().iter().map(Setting::variable).collect();
    variables.sort();
    variables.dedup();

    assert_eq!(variables.len(), settings().len());
}

#[test]
fn the_reference_has_every_setting_and_no_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let mut expected = Vec::new();
    for group in Group::ALL {
        assert!(
            text.contains(&format!("\n### {}\n", group.title())),
            "{group:?}"
        );
        let of_group = settings().iter().filter(|setting| setting.group == group);
        expected.extend(of_group.map(row));
    }

    assert_eq!(
        rows,
        expected,
        "docs/configuration.md must read:\n{}",
        expected.join("\n")
    );
}

fn row(setting: &Setting) -> String {
    let default = match setting.default_text() {
        text if text.is_empty() => "not set".to_owned(),
        text => format!("`{text}`"),
    };
    let (key, variable) = (setting.key, setting.variable());
    let (help, allowed) = (setting.help, setting.allowed);
    format!("| `{key}` | `{variable}` | {default} | {help} Takes {allowed}. |")
}
