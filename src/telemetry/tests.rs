//! What telemetry promises: strict contexts, spans that cost nothing while off and arrive while on, an
//! exporter that never blocks, metrics with bounded labels.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use parking_lot::Mutex;
use serde_json::Value;
use tracing::Dispatch;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use super::metrics::TYPES_MAX;
use super::trace::{
    Attempt, EventFacts, Pull, ServerRequest, TraceContext, client_span, context_or,
    current_context, process_span, publish_span, pull_span, record_client_status,
    record_server_status, server_span,
};
use super::{Error, Guard, LogFormat, Metrics, Options, assemble, build, export, init};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

const REQUEST: ServerRequest<'_> = ServerRequest {
    method: &Method::POST,
    route: Some("/v1/events"),
    path: "/v1/events",
    scheme: "http",
    address: "[::1]:8080",
    body_bytes: None,
};
const EVENT: EventFacts<'_> = EventFacts {
    bus: "default",
    id: "1",
    source: "/s",
    event_type: "t",
    subject: Some("x"),
};
const ATTEMPT: Attempt<'_> = Attempt {
    bus: "default",
    target: "hook",
    id: "1",
    number: 2,
    body_bytes: None,
};

fn context(traceparent: &str) -> TraceContext {
    TraceContext::parse(traceparent, None).unwrap()
}

/// An exporter that keeps what it gets, or refuses it.
#[derive(Debug, Clone, Default)]
struct Recorder {
    spans: Arc<Mutex<Vec<SpanData>>>,
    refuses: bool,
}

impl SpanExporter for Recorder {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        if self.refuses {
            return Err(OTelSdkError::InternalFailure("refused".to_owned()));
        }
        self.spans.lock().extend(batch);
        Ok(())
    }
}

/// Collects log lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn parsed(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().clone()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

struct Bench {
    dispatch: Dispatch,
    guard: Guard,
    spans: Arc<Mutex<Vec<SpanData>>>,
    lines: Lines,
}

fn bench(options: &Options, exporter: Option<Recorder>) -> Bench {
    let lines = Lines::default();
    let writer = lines.clone();
    let spans = exporter.clone().unwrap_or_default().spans;
    let options = Options {
        log_format: LogFormat::Json,
        ..options.clone()
    };
    let writer = BoxMakeWriter::new(move || writer.clone());
    let (dispatch, guard) = assemble(&options, exporter, writer).unwrap();
    Bench {
        dispatch,
        guard,
        spans,
        lines,
    }
}

fn recording() -> Bench {
    bench(&Options::default(), Some(Recorder::default()))
}

impl Bench {
    async fn finished(self) -> Vec<SpanData> {
        self.guard.shutdown().await.unwrap();
        std::mem::take(&mut *self.spans.lock())
    }
}

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let found = span
        .attributes
        .iter()
        .find(|pair| pair.key.as_str() == name);
    found.map(|pair| pair.value.to_string())
}

#[test]
fn a_valid_traceparent_is_read_and_a_later_version_is_brought_down() {
    for (text, expected) in [
        (PARENT, PARENT),
        (UNSAMPLED, UNSAMPLED),
        (
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            PARENT,
        ),
        (
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03",
        ),
    ] {
        assert_eq!(context(text).traceparent, expected, "{text}");
    }
    assert!(context(PARENT).sampled());
    assert!(!context(UNSAMPLED).sampled());
}

#[test]
fn a_malformed_traceparent_is_no_context() {
    for text in [
        "",
        "garbage",
        "00-xyz-1-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ] {
        assert_eq!(TraceContext::parse(text, Some("a=1")), None, "{text}");
    }
}

#[test]
fn a_malformed_tracestate_is_dropped_without_its_traceparent() {
    let full: Vec<String> = (0..32).map(|at| format!("k{at}=v")).collect();
    let full = full.join(",");
    let over = format!("{full},k32=v");
    let long_key = format!("{}=v", "k".repeat(257));
    for (text, expected) in [
        ("rojo=1,congo=t61rc", Some("rojo=1,congo=t61rc")),
        (" a=1 ,\t,, 4t@sys=b c ,", Some("a=1,4t@sys=b c")),
        (full.as_str(), Some(full.as_str())),
        (over.as_str(), None),
        (long_key.as_str(), None),
        ("", None),
        (",", None),
        ("a", None),
        ("a=", None),
        ("A=1", None),
        ("4=1", None),
        ("@s=1", None),
        ("t@=1", None),
        ("a=1,a=2", None),
        ("a=1=2", None),
        ("a=é", None),
        ("a =1", None),
    ] {
        let read = TraceContext::parse(PARENT, Some(text)).unwrap();
        assert_eq!(read.traceparent, PARENT);
        assert_eq!(read.tracestate.as_deref(), expected, "{text}");
    }
}

#[test]
fn a_long_tracestate_is_cut_by_whole_members_and_long_ones_go_first() {
    let value = "v".repeat(250);
    let long: Vec<String> = (0..9).map(|at| format!("long{at}={value}")).collect();
    let list = format!("first=1,{},last=2", long.join(","));
    let read = TraceContext::parse(PARENT, Some(&list)).unwrap();
    assert_eq!(read.tracestate.as_deref(), Some("first=1,last=2"));

    let value = "v".repeat(100);
    let short: Vec<String> = (0..30).map(|at| format!("k{at:02}={value}")).collect();
    let read = TraceContext::parse(PARENT, Some(&short.join(","))).unwrap();
    assert_eq!(read.tracestate, Some(short[..19].join(",")));
}

#[test]
fn headers_give_a_context_only_if_traceparent_is_there_once() {
    let mut headers = HeaderMap::new();
    assert_eq!(TraceContext::from_headers(&headers), None);
    headers.append("traceparent", HeaderValue::from_static(PARENT));
    headers.append("tracestate", HeaderValue::from_static("a=1"));
    headers.append("tracestate", HeaderValue::from_static("b=2"));
    let read = TraceContext::from_headers(&headers).unwrap();
    assert_eq!(read.tracestate.as_deref(), Some("a=1,b=2"));

    let mut out = HeaderMap::new();
    out.append("traceparent", HeaderValue::from_static("old"));
    out.append("tracestate", HeaderValue::from_static("old"));
    read.write_headers(&mut out);
    assert_eq!(TraceContext::from_headers(&out), Some(read));
    context(UNSAMPLED).write_headers(&mut out);
    assert!(!out.contains_key("tracestate"));

    headers.append("traceparent", HeaderValue::from_static(UNSAMPLED));
    assert_eq!(TraceContext::from_headers(&headers), None);
}

/// Runs the calling test alone in a process of its own, because subscribers of other tests in this one
/// keep callsites awake. True in that process.
fn alone(test: &str) -> bool {
    const MARK: &str = "DAK_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let (_, module) = module_path!().split_once("::").unwrap();
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::{test}")])
        .env(MARK, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
    false
}

#[test]
fn spans_are_disabled_while_no_exporter_wants_them_even_if_the_log_shows_everything() {
    if !alone("spans_are_disabled_while_no_exporter_wants_them_even_if_the_log_shows_everything") {
        return;
    }
    let options = Options {
        log_filter: "trace,dak::trace=trace".to_owned(),
        ..Options::default()
    };
    let _guard = init(&options).unwrap();
    let incoming = context(PARENT);
    assert!(server_span(&REQUEST, Some(&incoming), None).is_disabled());
    assert!(publish_span(&EVENT, 1).is_disabled());
    assert!(process_span(&ATTEMPT, Some(&incoming), None).is_disabled());
    assert!(tracing::enabled!(tracing::Level::TRACE));
    let again = init(&options).unwrap_err();
    assert!(matches!(again, Error::AlreadySet(_)));
}

#[test]
fn the_incoming_context_is_handed_on_while_traces_are_off() {
    let bench = bench(&Options::default(), None);
    let _scope = tracing::dispatcher::set_default(&bench.dispatch);
    let incoming = context(PARENT);
    let server = server_span(&REQUEST, Some(&incoming), None);
    record_server_status(&server, 500);
    assert_eq!(current_context(&server), None);
    assert_eq!(context_or(&server, None), None);
    assert_eq!(context_or(&server, Some(&incoming)), Some(incoming));
    assert!(bench.lines.parsed().is_empty());
}

#[tokio::test]
async fn log_lines_are_filtered_and_know_nothing_of_trace_spans() {
    let options = Options {
        log_filter: "warn,loud=debug".to_owned(),
        ..Options::default()
    };
    let bench = bench(&options, Some(Recorder::default()));
    let scope = tracing::dispatcher::set_default(&bench.dispatch);
    publish_span(&EVENT, 1).in_scope(|| {
        tracing::info!("too quiet");
        tracing::warn!(count = 3, "worth a look");
        tracing::debug!(target: "loud", "asked for");
    });
    drop(scope);
    let lines = bench.lines.parsed();
    let messages: Vec<&str> = lines
        .iter()
        .map(|line| line["message"].as_str().unwrap())
        .collect();
    assert_eq!(messages, ["worth a look", "asked for"]);
    assert_eq!(lines[0]["count"], 3);
    assert_eq!(lines[0].get("span"), None);
    let spans = bench.finished().await;
    assert_eq!(spans.len(), 1);
    assert!(spans[0].events.iter().next().is_none());
}

#[tokio::test]
async fn a_caller_who_does_not_record_is_followed_in_that() {
    let bench = recording();
    let scope = tracing::dispatcher::set_default(&bench.dispatch);
    let server = server_span(&REQUEST, Some(&context(UNSAMPLED)), None);
    let stored = server.in_scope(|| current_context(&publish_span(&EVENT, 1)).unwrap());
    let process = process_span(&ATTEMPT, Some(&stored), None);
    let sent = current_context(&process).unwrap();
    drop((server, process, scope));
    assert!(!stored.sampled() && !sent.sampled());
    assert_eq!(sent.traceparent[..36], UNSAMPLED[..36]);
    assert!(!sent.same_span(&stored));
    assert!(bench.finished().await.is_empty());
}

#[tokio::test]
async fn a_ratio_of_zero_records_only_what_others_record() {
    let options = Options {
        sample_ratio: 0.0,
        ..Options::default()
    };
    let bench = bench(&options, Some(Recorder::default()));
    let scope = tracing::dispatcher::set_default(&bench.dispatch);
    let own = current_context(&server_span(&REQUEST, None, None)).unwrap();
    drop(server_span(&REQUEST, Some(&context(PARENT)), None));
    drop(scope);
    assert!(!own.sampled());
    assert_eq!(bench.finished().await.len(), 1);
}

#[tokio::test]
async fn a_server_span_links_the_events_own_context_unless_it_is_the_parent() {
    let bench = recording();
    let scope = tracing::dispatcher::set_default(&bench.dispatch);
    let other = context("00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01");
    let parent = context(PARENT);
    let same = context(UNSAMPLED);
    for link in [&other, &same] {
        drop(server_span(&REQUEST, Some(&parent), Some(link)));
    }
    drop(server_span(&REQUEST, None, Some(&other)));
    drop(scope);
    let links: Vec<usize> = bench
        .finished()
        .await
        .iter()
        .map(|span| span.links.len())
        .collect();
    assert_eq!(links, [1, 0, 1]);
}

#[tokio::test]
async fn a_redriven_delivery_starts_a_trace_that_links_the_old_one() {
    let bench = recording();
    let scope = tracing::dispatcher::set_default(&bench.dispatch);
    let stored = context(PARENT);
    drop(process_span(&ATTEMPT, None, Some(&stored)));
    let stored = vec![stored; 120];
    drop(pull_span(Pull::Receive, "orders", stored.iter()));
    drop(scope);
    let spans = bench.finished().await;
    let [process, receive] = &spans[..] else {
        panic!("two spans, not {spans:?}");
    };
    assert_ne!(
        process.span_context.trace_id().to_string(),
        "4bf92f3577b34da6a3ce929d0e0e4736"
    );
    assert_eq!(process.links.len(), 1);
    assert_eq!(attribute(process, "dak.delivery.attempt").unwrap(), "2");
    assert_eq!(receive.name, "receive orders");
    assert_eq!(receive.span_kind, SpanKind::Server);
    assert_eq!(receive.links.len(), 100);
    let count = attribute(receive, "messaging.batch.message_count");
    assert_eq!(count.unwrap(), "120");
}

#[tokio::test]
async fn names_and_attributes_stay_few_and_without_secrets() {
    let bench = recording();
    let scope = tracing::dispatcher::set_default(&bench.dispatch);
    let method = Method::from_bytes(b"BREW").unwrap();
    let odd = ServerRequest {
        method: &method,
        route: None,
        ..REQUEST
    };
    let server = server_span(&odd, None, None);
    record_server_status(&server, 404);
    drop(server);
    for (url, status) in [
        ("https://user:pass@host.example:8443/a/b?token=s#f", 404),
        ("http://host.example?token=a@b/c", 204),
    ] {
        record_client_status(&client_span(&Method::POST, url, 0), status);
    }
    drop(scope);
    let spans = bench.finished().await;
    assert_eq!(spans[0].name, "HTTP");
    for (span, name, expected) in [
        (0, "http.request.method", Some("_OTHER")),
        (0, "http.request.method_original", Some("BREW")),
        (0, "http.route", None),
        (0, "server.address", Some("[::1]")),
        (0, "server.port", Some("8080")),
        (0, "error.type", None),
        (1, "url.full", Some("https://host.example:8443/a/b")),
        (1, "error.type", Some("404")),
        (1, "http.request.resend_count", None),
        (2, "url.full", Some("http://host.example")),
        (2, "error.type", None),
    ] {
        let found = attribute(&spans[span], name);
        assert_eq!(found.as_deref(), expected, "{name}");
    }
}

#[tokio::test]
async fn a_full_queue_drops_spans_and_the_log_says_how_many() {
    let bench = recording();
    let _scope = tracing::dispatcher::set_default(&bench.dispatch);
    // Nothing is awaited here, so the exporter does not run meanwhile.
    for _ in 0..export::QUEUED_SPANS_MAX + 10 {
        drop(publish_span(&EVENT, 1));
    }
    bench.guard.flush().await.unwrap();
    let lines = bench.lines.parsed();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["spans_lost"], 10);
    assert_eq!(bench.finished().await.len(), export::QUEUED_SPANS_MAX);
}

#[tokio::test]
async fn a_collector_that_refuses_is_reported_once_and_not_for_each_batch() {
    let refusing = Recorder {
        refuses: true,
        ..Recorder::default()
    };
    let bench = bench(&Options::default(), Some(refusing));
    let _scope = tracing::dispatcher::set_default(&bench.dispatch);
    for _ in 0..20 {
        drop(publish_span(&EVENT, 1));
        bench.guard.flush().await.unwrap();
    }
    let lines = bench.lines.parsed();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["level"], "WARN");
    assert_eq!(lines[0]["spans_lost"], 1);
    bench.guard.shutdown().await.unwrap();
    drop(publish_span(&EVENT, 1));
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused() {
    let with_endpoint = |endpoint: &str| Options {
        otlp_endpoint: Some(endpoint.to_owned()),
        ..Options::default()
    };
    for endpoint in ["", "localhost:4317", "https://collector:4317", "http://a b"] {
        let refused = build(&with_endpoint(endpoint)).unwrap_err();
        assert!(matches!(refused, Error::Endpoint { .. }), "{endpoint}");
    }
    for sample_ratio in [-0.1, 1.1, f64::NAN] {
        let options = Options {
            sample_ratio,
            ..Options::default()
        };
        let refused = build(&options).unwrap_err();
        assert!(matches!(refused, Error::SampleRatio { .. }));
    }
    let options = Options {
        log_filter: "dak=loud".to_owned(),
        ..Options::default()
    };
    let refused = build(&options).unwrap_err();
    assert!(matches!(refused, Error::LogFilter { .. }));
    let outside = std::thread::spawn(move || build(&with_endpoint("http://localhost:4317")));
    let refused = outside.join().unwrap().unwrap_err();
    assert!(matches!(refused, Error::NoRuntime(_)));
}

/// The cases of a CloudEvents vector file, or `None` where they are not at hand.
fn vectors(suite: &str) -> Option<Vec<Value>> {
    let shared = std::env::var_os("DAK_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let file = shared.join(format!("vectors/cloudevents/{suite}.json"));
    let Ok(text) = std::fs::read_to_string(&file) else {
        assert!(std::env::var_os("CI").is_none(), "{file:?} is missing");
        eprintln!("skipped: {file:?} is missing");
        return None;
    };
    let mut document: Value = serde_json::from_str(&text).unwrap();
    Some(serde_json::from_value(document["cases"].take()).unwrap())
}

#[tokio::test]
async fn trace_contexts_travel_as_the_tracing_vectors_say() {
    for case in vectors("tracing").unwrap_or_default() {
        let mut headers = HeaderMap::new();
        for pair in case["request"]["headers"].as_array().unwrap() {
            let name = pair[0].as_str().unwrap().to_lowercase();
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(pair[1].as_str().unwrap()).unwrap(),
            );
        }
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let parent = TraceContext::from_headers(&headers);
        let link = text("ce-traceparent")
            .and_then(|value| TraceContext::parse(value, text("ce-tracestate")));

        let bench = recording();
        let scope = tracing::dispatcher::set_default(&bench.dispatch);
        let server = server_span(&REQUEST, parent.as_ref(), link.as_ref());
        let stored = server.in_scope(|| current_context(&publish_span(&EVENT, 1)).unwrap());
        let process = process_span(&ATTEMPT, Some(&stored), None);
        let sent = process
            .in_scope(|| current_context(&client_span(&Method::POST, "http://h/", 0)).unwrap());
        let server_context = current_context(&server).unwrap();
        drop((server, process, scope));
        check_tracing(&case, &server_context, &sent, &bench.finished().await);
    }
}

fn check_tracing(case: &Value, server: &TraceContext, sent: &TraceContext, spans: &[SpanData]) {
    let id = &case["id"];
    let expected = &case["expect"]["tracing"];
    let incoming = case["request"]["headers"].to_string();
    let trace = &server.traceparent[3..35];
    let follows = |wanted: &Value| match wanted.as_str() {
        Some("new") => !incoming.contains(trace),
        Some(wanted) => wanted == trace,
        None => true,
    };
    assert!(follows(&expected["server_span_trace_id"]), "{id}");
    if let Some(any) = expected["server_span_trace_id_any_of"].as_array() {
        assert!(any.iter().any(follows), "{id}");
    }
    assert_eq!(&sent.traceparent[3..35], trace, "{id}");
    let out = &expected["out_http_traceparent"];
    for not in out["parent_not"].as_array().into_iter().flatten() {
        assert_ne!(&sent.traceparent[36..52], not.as_str().unwrap(), "{id}");
    }
    if let Some(flags) = out["flags"].as_str() {
        assert_eq!(&sent.traceparent[53..], flags, "{id}");
    }
    if let Some(member) = expected["out_tracestate_contains"].as_str() {
        let state = sent.tracestate.as_deref().unwrap_or_default();
        assert!(state.contains(member), "{id}");
    }
    let server_span = spans.iter().find(|span| span.span_kind == SpanKind::Server);
    let Some(server_span) = server_span else {
        assert!(!server.sampled(), "{id}");
        return;
    };
    if let Some(parent) = expected["server_span_parent_id"].as_str() {
        assert_eq!(server_span.parent_span_id.to_string(), parent, "{id}");
    }
    let links = || server_span.links.iter().map(|link| &link.span_context);
    if let Some(wanted) = expected["link_trace_id"].as_str() {
        assert!(
            links().any(|link| link.trace_id().to_string() == wanted),
            "{id}"
        );
    }
    if let Some(wanted) = expected["link_or_parent_span_id"].as_str() {
        let parent = server_span.parent_span_id.to_string() == wanted;
        let linked = links().any(|link| link.span_id().to_string() == wanted);
        assert!(parent || linked, "{id}");
    }
}

#[test]
fn every_metric_appears_under_its_documented_name() {
    let metrics = Metrics::new();
    metrics.accepted("b", 2);
    metrics.rejected("b", "schema-violation");
    metrics.duplicate("b");
    metrics.conflict("b");
    metrics.matched("b", 1);
    metrics.unmatched("b", "t");
    metrics.schema_warning("t");
    metrics.unknown_type("t");
    metrics.foreign_dataschema();
    metrics.committed(3, Duration::from_micros(700));
    metrics.published(Duration::from_millis(2));
    metrics.enqueued("q", 4);
    metrics.delivered("q", 3);
    metrics.delivery_lag("q", Duration::from_secs(2));
    metrics.attempted("q", Duration::from_millis(40));
    metrics.retried("q", "timeout");
    metrics.dead_lettered("q", "exhausted");
    metrics.lease_expired("q", 1);
    metrics.queue_depth("q", 7);
    metrics.queue_oldest_age("q", Duration::from_millis(1_500));
    metrics.dead_letters("q", 5);
    metrics.held("q", "paused", true);
    metrics.http_request("/v1/events", StatusCode::ACCEPTED);
    let text = metrics.render();
    for line in [
        r#"dak_events_accepted_total{bus="b"} 2"#,
        r#"dak_events_rejected_total{bus="b",reason="schema-violation"} 1"#,
        r#"dak_events_duplicate_total{bus="b"} 1"#,
        r#"dak_events_conflict_total{bus="b"} 1"#,
        r#"dak_events_matched_total{bus="b"} 1"#,
        r#"dak_events_unmatched_total{bus="b",type="t"} 1"#,
        r#"dak_schema_warnings_total{type="t"} 1"#,
        r#"dak_unknown_type_total{type="t"} 1"#,
        r#"dak_foreign_dataschema_total 1"#,
        r#"dak_commit_batch_events_bucket{le="2"} 0"#,
        r#"dak_commit_batch_events_bucket{le="5"} 1"#,
        r#"dak_commit_batch_events_bucket{le="+Inf"} 1"#,
        r#"dak_commit_batch_events_sum 3.0"#,
        r#"dak_commit_batch_events_count 1"#,
        r#"dak_commit_duration_seconds_count 1"#,
        r#"dak_publish_duration_seconds_count 1"#,
        r#"dak_deliveries_enqueued_total{target="q"} 4"#,
        r#"dak_deliveries_delivered_total{target="q"} 3"#,
        r#"dak_deliveries_retried_total{target="q",reason="timeout"} 1"#,
        r#"dak_deliveries_dead_lettered_total{target="q",reason="exhausted"} 1"#,
        r#"dak_leases_expired_total{target="q"} 1"#,
        r#"dak_queue_depth{target="q"} 7"#,
        r#"dak_queue_oldest_age_seconds{target="q"} 1.5"#,
        r#"dak_dead_letters{target="q"} 5"#,
        r#"dak_target_held{target="q",why="paused"} 1"#,
        r#"dak_delivery_attempt_duration_seconds_count{target="q"} 1"#,
        r#"dak_delivery_lag_seconds_sum{target="q"} 2.0"#,
        r#"dak_http_requests_total{route="/v1/events",status="202"} 1"#,
        "# TYPE dak_events_accepted_total counter",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("dak_build_info{version="));
}

#[test]
fn types_beyond_the_bound_fold_into_other() {
    let metrics = Metrics::new();
    for number in 0..TYPES_MAX + 50 {
        metrics.unmatched("default", &format!("type-{number}"));
    }
    metrics.unmatched("default", "type-0");
    metrics.unmatched("default", &"long".repeat(100));
    let text = metrics.render();
    let unmatched = |event_type: &str| {
        let label = format!("type=\"{event_type}\"}} ");
        let line = text.lines().find(|line| line.contains(&label));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
    };
    assert_eq!(unmatched("type-0"), Some(2));
    assert_eq!(unmatched("type-199"), Some(1));
    assert_eq!(unmatched("type-200"), None);
    assert_eq!(unmatched("other"), Some(51));
}

#[test]
fn a_label_value_cannot_break_out_of_its_line() {
    let metrics = Metrics::new();
    metrics.unknown_type("a\"} 1\nevil_total{x=\"\\");
    let text = metrics.render();
    assert!(
        text.contains(r#"{type="a\"} 1\nevil_total{x=\"\\"} 1"#),
        "{text}"
    );
}

#[test]
fn a_forgotten_target_leaves_no_series_behind() {
    let metrics = Metrics::new();
    for target in ["gone", "kept"] {
        metrics.enqueued(target, 1);
        metrics.dead_lettered(target, "expired");
        metrics.queue_depth(target, 1);
        metrics.held(target, "paused", true);
        metrics.attempted(target, Duration::ZERO);
    }
    metrics.forget_target("gone");
    metrics.forget_target("never seen");
    let text = metrics.render();
    assert!(!text.contains("gone"));
    assert!(text.contains(r#"dak_target_held{target="kept",why="paused"} 1"#));
    metrics.enqueued("gone", 1);
    let text = metrics.render();
    assert!(text.contains(r#"dak_deliveries_enqueued_total{target="gone"} 1"#));
}

#[test]
fn an_observation_on_a_bound_belongs_below_it_and_one_beyond_all_still_counts() {
    let metrics = Metrics::new();
    metrics.published(Duration::from_secs(10));
    metrics.published(Duration::from_secs(90));
    let text = metrics.render();
    for (bound, count) in [("7.5", 0), ("10", 1), ("30", 1), ("+Inf", 2)] {
        let line = format!("dak_publish_duration_seconds_bucket{{le=\"{bound}\"}} {count}\n");
        assert!(text.contains(&line), "{line}");
    }
    assert!(text.contains("dak_publish_duration_seconds_sum 100.0\n"));
}

#[test]
fn counts_from_many_threads_add_up() {
    let metrics = Metrics::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..1_000 {
                    metrics.accepted("default", 1);
                    metrics.unmatched("default", &number.to_string());
                    metrics.published(Duration::from_secs(1));
                }
            });
        }
    });
    let text = metrics.render();
    assert!(text.contains(r#"dak_events_accepted_total{bus="default"} 4000"#));
    assert!(text.contains("dak_publish_duration_seconds_sum 4000.0"));
    assert!(text.contains(r#"le="+Inf"} 4000"#));
    let unmatched = text
        .lines()
        .filter(|line| line.starts_with("dak_events_unmatched_total"));
    let sum: u64 = unmatched
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(sum, 4_000);
}
