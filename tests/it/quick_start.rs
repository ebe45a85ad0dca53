//! What the pages promise: the README's quick start is run command by command with the real program,
//! the example shop holds what its own tests say, and the pages on errors and endpoints are complete.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use dak::api::problem::Kind;
use dak::catalog::{Catalog, Part, dir};
use dak::pattern::{self, Input};
use http::Request;
use http_body_util::Full;
use serde_json::Value;

use crate::support::{Http, Receiver};

/// The heading of the quick start.
const SECTION: &str = "## Five-minute start";
/// Where the example's webhook goes; the test's receiver listens elsewhere.
const HOOK: &str = "127.0.0.1:9000";

/// What each command of the quick start is and does, in order: how it begins, its exit code, and what
/// it says.
const PROMISES: [(&str, i32, &str); 13] = [
    ("cargo run --release -- serve", 0, ""),
    ("python3 -u -c", 0, ""),
    ("export PATH=", 0, ""),
    ("dak lint schemas rules", 0, "no findings"),
    ("dak apply schemas rules", 0, "10 created"),
    (
        "dak publish --source /shop/orders --id o-1",
        0,
        "targets audit, fraud-check",
    ),
    ("dak receive audit", 0, r#""id":"o-1""#),
    (
        "dak publish --source /shop/orders --id o-2",
        1,
        "/amount: \"7000\" is not of type \"number\"",
    ),
    (
        "dak publish --source /store/orders --id o-3",
        0,
        "matched no rule",
    ),
    ("dak unmatched", 0, "large-orders-to-fraud"),
    ("dak explain 2", 0, "source: expected"),
    (
        "curl http://127.0.0.1:8080/v1/events",
        0,
        r#""targets":["audit","warehouse"]"#,
    ),
    ("dak receive warehouse", 0, r#""label":"Dhaka, BD""#),
];
/// The last command only looks; it stands apart so that the table above is the story.
const LAST: (&str, &str) = ("dak status", "fraud-check  webhook");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_the_quick_start_does_what_the_readme_says() {
    let receiver = Receiver::start().await;
    let shop = Shop::copied(receiver.address);
    let server = Server::start(shop.path());
    let readme = read("README.md");
    let blocks = blocks(section(&readme));
    let commands: Vec<String> = blocks.iter().flat_map(Block::commands).collect();
    let promises = PROMISES.iter().copied().chain([(LAST.0, 0, LAST.1)]);
    assert_eq!(commands.len(), PROMISES.len() + 1, "{commands:#?}");

    let mut said = String::new();
    for (command, (beginning, code, text)) in commands.iter().zip(promises) {
        assert!(
            command.starts_with(beginning),
            "`{command}` stands where `{beginning}` should"
        );
        let (ended, answer) = perform(command, &server, shop.path()).await;
        assert_eq!(ended, code, "{command}\n{answer}");
        assert!(answer.contains(text), "{command}\n{answer}");
        said.push_str(&answer);
    }

    let got = receiver.wait_for(1).await;
    assert_eq!(got.len(), 1, "only the large order went to the webhook");
    assert_eq!(got[0].header("ce-id"), "o-1");
    assert_eq!(got[0].header("ce-type"), "com.example.order.placed.v1");
    for line in blocks
        .iter()
        .filter(|block| block.language == "text")
        .flat_map(|block| block.text.lines())
    {
        for part in line.split('…').map(str::trim) {
            assert!(
                said.contains(part),
                "the README shows `{part}`, which nothing said:\n{said}"
            );
        }
    }
}

#[test]
fn the_example_shop_is_valid_and_its_rules_match_what_their_tests_say() {
    let paths = [root().join("schemas"), root().join("rules")];
    let files = dir::read(&paths, 0).expect("readable files");
    assert!(files.findings.is_empty(), "{:?}", files.findings);
    let catalog = Catalog::compile(files.documents, None).expect("a valid example");
    assert!(catalog.warnings().is_empty(), "{:?}", catalog.warnings());

    let mut count = 0;
    for document in catalog.documents().values() {
        let Part::Rule(rule) = &document.part else {
            continue;
        };
        assert!(!rule.tests.is_empty(), "{} has no tests", document.id);
        for test in &rule.tests {
            let explanation = pattern::explain(&rule.pattern, &Input::raw(test.event.as_bytes()));
            assert_eq!(
                explanation.matched, test.matches,
                "{}: {}",
                document.id, test.name
            );
            count += 1;
        }
    }
    assert_eq!(count, 8);
}

#[test]
fn the_second_version_of_the_example_schema_takes_all_events_of_the_first() {
    let folder = "schemas/com.example.order.placed.v1";
    let (old, new) = (format!("{folder}/1.json"), format!("{folder}/2.json"));
    let check = ["schema", "check", &old, &new, "--level", "BACKWARD"];
    let output = program(root())
        .args(check)
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", told(&output));
}

#[test]
fn the_page_on_errors_lists_every_kind_of_problem_and_no_other() {
    let page = read("docs/errors.md");
    let (_, table) = page.split_once("## Kinds").expect("a table of kinds");
    let listed: BTreeMap<&str, (&str, &str)> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            assert!(cells.len() == 6 && !cells[4].is_empty(), "{line}");
            (cells[1].trim_matches('`'), (cells[2], cells[3]))
        })
        .collect();
    for kind in Kind::ALL {
        let (status, title) = listed.get(kind.slug()).copied().unwrap_or_default();
        assert_eq!(
            (status, title),
            (kind.status().as_str(), kind.title()),
            "{}",
            kind.slug()
        );
    }
    assert_eq!(listed.len(), Kind::ALL.len());
}

#[test]
fn the_page_on_the_api_has_every_endpoint() {
    let page = read("docs/api.md");
    let described = dak::api::description().to_json().expect("a description");
    let described: Value = serde_json::from_str(&described).expect("JSON");
    for (path, methods) in described["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            let endpoint = format!("`{} {path}`", method.to_uppercase());
            assert!(page.contains(&endpoint), "docs/api.md lacks {endpoint}");
        }
    }
}

/// The example shop in a folder of its own, its webhook led to the test's receiver.
struct Shop(tempfile::TempDir);

impl Shop {
    fn copied(receiver: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for part in ["schemas", "rules"] {
            copy(
                &root().join(part),
                &folder.path().join(part),
                &receiver.to_string(),
            );
        }
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn copy(from: &Path, to: &Path, receiver: &str) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target, receiver);
        } else {
            let text = fs::read_to_string(entry.path()).expect("text");
            fs::write(target, text.replace(HOOK, receiver)).expect("written");
        }
    }
}

/// `dak serve` on a free port; it ends with the value.
struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut process = program(folder.to_owned())
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "dak-data"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut log = BufReader::new(process.stderr.take().expect("its log"));
        let mut seen = String::new();
        let address = loop {
            let mut line = String::new();
            let read = log.read_line(&mut line).expect("a line of its log");
            assert!(read > 0, "the server ended: {seen}");
            seen.push_str(&line);
            if let Some((_, rest)) = line.split_once("dak is ready address=") {
                let address = rest.split_whitespace().next().unwrap_or_default();
                break address.parse().expect("an address");
            }
        };
        // Whoever stops reading makes the writer wait.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { process, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

/// The program in a folder, without settings of whoever runs the tests.
fn program(folder: PathBuf) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dak"));
    command.current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DAK_") {
            command.env_remove(name);
        }
    }
    command
}

/// Does what a command of the README does, on the test's server; tells its exit code and its words.
async fn perform(command: &str, server: &Server, folder: &Path) -> (i32, String) {
    let words = words(command);
    match words[0].as_str() {
        // The server runs, and so does the receiver; `PATH` is not needed here.
        "cargo" | "python3" | "export" => (0, String::new()),
        "dak" => {
            let output = program(folder.to_owned())
                .args(&words[1..])
                .env("DAK_URL", format!("http://{}", server.address))
                .output()
                .expect("the program runs");
            (output.status.code().unwrap_or(-1), told(&output))
        }
        "curl" => (0, post(&words, server.address).await),
        other => panic!("the quick start has a command that is not known here: {other}"),
    }
}

fn told(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    format!("{}{error}", String::from_utf8_lossy(&output.stdout))
}

/// Sends what a `curl` with headers and data would send.
async fn post(words: &[String], server: SocketAddr) -> String {
    let mut request = Request::post("/v1/events");
    let mut body = String::new();
    for pair in words.windows(2) {
        match pair[0].as_str() {
            "-H" => {
                let (name, value) = pair[1].split_once(": ").expect("a header");
                request = request.header(name, value);
            }
            "-d" => body.clone_from(&pair[1]),
            _ => {}
        }
    }
    let request = request.body(Full::from(body)).expect("a request");
    let answer = Http::to(server).send(request).await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    answer.text()
}

/// A block of code in a page.
struct Block {
    language: String,
    text: String,
}

impl Block {
    /// Its commands: one a line, but a program that is given over several lines is one.
    fn commands(&self) -> Vec<String> {
        if self.language != "sh" {
            return Vec::new();
        }
        if self.text.starts_with("python3") {
            return vec![self.text.clone()];
        }
        self.text.lines().map(str::to_owned).collect()
    }
}

fn section(page: &str) -> &str {
    let (_, rest) = page.split_once(SECTION).expect("a quick start");
    rest.split("\n## ").next().expect("its text")
}

fn blocks(page: &str) -> Vec<Block> {
    let parts: Vec<&str> = page.split("\n```").collect();
    parts
        .iter()
        .skip(1)
        .step_by(2)
        .map(|part| {
            let (language, text) = part.split_once('\n').expect("a block of code");
            Block {
                language: language.to_owned(),
                text: text.to_owned(),
            }
        })
        .collect()
}

/// Splits a command as a shell would, as far as quotes go.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => words.push(String::new()),
            (_, c) => words.last_mut().expect("a word").push(c),
        }
    }
    words
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}
