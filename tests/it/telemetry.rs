//! Traces as a collector receives them: one trace from the POST to the last attempt.
//!
//! These tests run on one thread each, so that a subscriber of their own covers the server's tasks.

use dak::telemetry::{Guard, Options, build};
use serde_json::{Value, json};
use tracing::dispatcher::DefaultGuard;

use crate::cloudevents::send;
use crate::otlp_collector::{Collector, Span, SpanKind, parent_of};
use crate::support::{Gateway, Got, Receiver, shared, trace_side_by_side};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A collector, and a subscriber on this thread that sends to it.
struct Tracing {
    collector: Collector,
    _guard: Guard,
    _scope: DefaultGuard,
}

impl Tracing {
    async fn start() -> Self {
        trace_side_by_side();
        let collector = Collector::start().await;
        let options = Options {
            otlp_endpoint: Some(collector.endpoint()),
            ..Options::default()
        };
        let (dispatch, guard) = build(&options).expect("a subscriber");
        Self {
            collector,
            _guard: guard,
            _scope: tracing::dispatcher::set_default(&dispatch),
        }
    }

    /// The spans of one trace, as soon as there are so many. A span ends after its request was
    /// answered, so that the count decides and not the moment.
    async fn of_trace(&self, trace_id: &str, count: usize) -> Vec<Span> {
        let is_of = |span: &&Span| span.trace_id == trace_id;
        let enough = |spans: &[Span]| spans.iter().filter(is_of).count() >= count;
        let mut spans = self.collector.wait_until(enough).await;
        spans.retain(|span| span.trace_id == trace_id);
        spans
    }
}

fn one<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    crate::otlp_collector::named(spans, name)
}

/// The spans of this name in the order of their attempts.
fn attempts<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    let mut found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
    found.sort_by_key(|span| span.integer("dak.delivery.attempt"));
    found
}

async fn publish_traced(gateway: &Gateway, id: &str) {
    let traceparent = json!(["traceparent", format!("00-{TRACE}-{CALLER}-01")]);
    let headers = [
        ("ce-specversion", "1.0"),
        ("ce-id", id),
        ("ce-source", "/test"),
        ("ce-type", "order.placed"),
    ];
    let mut headers: Vec<Value> = headers
        .iter()
        .map(|(name, value)| json!([name, value]))
        .collect();
    headers.push(traceparent);
    headers.push(json!(["content-type", "application/json"]));
    let request = json!({"method": "POST", "headers": headers, "body": "{\"amount\":7}"});
    assert_eq!(
        send(gateway.address(), "default", &request).await.status,
        202
    );
}

#[tokio::test]
async fn one_event_through_a_webhook_is_one_trace_and_a_retry_is_a_sibling() {
    let gateway = Gateway::start().await;
    let receiver =
        Receiver::answering(|nth, _| (if nth == 0 { 503 } else { 204 }, Vec::new())).await;
    let retry = json!({"retry": {"min_delay": "1ms", "max_delay": "2ms"}});
    gateway
        .webhook("hook", &format!("{}?secret=1", receiver.url()), retry)
        .await;
    gateway
        .rule("orders", &json!({"type": ["order.placed"]}), &["hook"])
        .await;
    gateway
        .rule("other", &json!({"type": ["order.paid"]}), &["hook"])
        .await;
    let schemas = "/v1/schemas/order.placed/versions";
    gateway
        .http
        .post(schemas, &json!({"required": ["amount"]}))
        .await
        .ok();
    let tracing = Tracing::start().await;

    publish_traced(&gateway, "1").await;
    let got = receiver.wait_for(2).await;
    let spans = tracing.of_trace(TRACE, 8).await;
    assert_eq!(spans.len(), 8, "{spans:#?}");

    let server = one(&spans, "POST /v1/buses/{bus}/events");
    assert_eq!(server.kind, SpanKind::Server);
    assert_eq!(server.parent_span_id.as_deref(), Some(CALLER));
    assert_eq!(server.text("http.request.method"), Some("POST"));
    assert_eq!(server.text("http.route"), Some("/v1/buses/{bus}/events"));
    assert_eq!(server.text("url.path"), Some("/v1/buses/default/events"));
    assert_eq!(server.text("url.scheme"), Some("http"));
    assert_eq!(server.text("server.address"), Some("127.0.0.1"));
    assert_eq!(server.integer("http.response.status_code"), Some(202));
    assert_eq!(server.integer("http.request.body.size"), Some(12));

    let validate = one(&spans, "validate default");
    let matching = one(&spans, "match default");
    let publish = one(&spans, "publish default");
    for (span, kind) in [
        (validate, SpanKind::Internal),
        (matching, SpanKind::Internal),
        (publish, SpanKind::Producer),
    ] {
        assert_eq!(span.kind, kind, "{}", span.name);
        assert_eq!(
            span.parent_span_id.as_ref(),
            Some(&server.span_id),
            "{}",
            span.name
        );
    }
    for span in [validate, publish] {
        assert_eq!(span.text("cloudevents.event_id"), Some("1"));
        assert_eq!(span.text("cloudevents.event_source"), Some("/test"));
        assert_eq!(span.text("cloudevents.event_type"), Some("order.placed"));
        assert_eq!(span.text("cloudevents.event_spec_version"), Some("1.0"));
    }
    assert_eq!(validate.text("dak.schema.verdict"), Some("valid"));
    assert_eq!(validate.integer("dak.schema.version"), Some(1));
    assert_eq!(matching.integer("dak.rules.evaluated"), Some(2));
    assert_eq!(matching.integer("dak.rules.matched"), Some(1));
    assert_eq!(publish.text("messaging.operation.name"), Some("publish"));
    assert_eq!(publish.text("messaging.destination.name"), Some("default"));
    assert_eq!(publish.text("messaging.message.id"), Some("1"));
    assert_eq!(publish.integer("messaging.message.body.size"), Some(12));

    let processes = attempts(&spans, "process default");
    let outcomes = [("retry", 503), ("delivered", 204)];
    for (at, (process, (outcome, status))) in processes.iter().zip(outcomes).enumerate() {
        assert_eq!(process.kind, SpanKind::Consumer);
        assert_eq!(process.parent_span_id.as_ref(), Some(&publish.span_id));
        assert_eq!(process.integer("dak.delivery.attempt"), Some(at as i64 + 1));
        assert_eq!(process.text("dak.delivery.outcome"), Some(outcome));
        assert_eq!(
            process.text("messaging.destination.subscription.name"),
            Some("hook")
        );
        assert_eq!(process.failed, outcome == "retry");
        let is_child = |span: &&Span| span.parent_span_id.as_ref() == Some(&process.span_id);
        let client = spans.iter().find(is_child).expect("an attempt sends");
        assert_eq!(
            (client.name.as_str(), client.kind),
            ("POST", SpanKind::Client)
        );
        assert_eq!(client.integer("http.response.status_code"), Some(status));
        assert_eq!(client.text("url.full"), Some(receiver.url().as_str()));
        assert_eq!(
            client.integer("http.request.resend_count"),
            (at > 0).then_some(1)
        );
        let traceparent = format!("00-{TRACE}-{}-01", client.span_id);
        assert_eq!(got[at].header("traceparent"), traceparent);
        assert_eq!(got[at].header("ce-traceparent"), "");
    }
}

#[tokio::test]
async fn a_delivery_after_a_restart_continues_the_trace_of_its_event() {
    let mut gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    gateway
        .rule("orders", &json!({"type": ["order.placed"]}), &["hook"])
        .await;
    gateway
        .http
        .post("/v1/targets/hook/pause", &json!({}))
        .await
        .ok();
    let tracing = Tracing::start().await;
    publish_traced(&gateway, "1").await;
    gateway.restart().await;
    gateway
        .http
        .post("/v1/targets/hook/resume", &json!({}))
        .await
        .ok();
    receiver.wait_for(1).await;
    let spans = tracing.of_trace(TRACE, 6).await;
    let process = one(&spans, "process default");
    let parent = parent_of(&spans, process).expect("it has a parent");
    assert_eq!(parent.name, "publish default");
}

#[tokio::test]
async fn a_refused_event_leaves_a_failed_validation_and_no_publish() {
    let gateway = Gateway::start().await;
    let schemas = "/v1/schemas/order.placed/versions";
    gateway
        .http
        .post(schemas, &json!({"required": ["currency"]}))
        .await
        .ok();
    let tracing = Tracing::start().await;
    let headers = json!([
        ["ce-specversion", "1.0"],
        ["ce-id", "1"],
        ["ce-source", "/test"],
        ["ce-type", "order.placed"],
        ["traceparent", format!("00-{TRACE}-{CALLER}-01")]
    ]);
    let request = json!({"method": "POST", "headers": headers, "body": "{}"});
    assert_eq!(
        send(gateway.address(), "default", &request).await.status,
        422
    );
    let spans = tracing.of_trace(TRACE, 2).await;
    let server = one(&spans, "POST /v1/buses/{bus}/events");
    assert_eq!(server.integer("http.response.status_code"), Some(422));
    assert!(!server.failed, "a refusal is the client's fault");
    let validate = one(&spans, "validate default");
    assert_eq!(validate.text("error.type"), Some("schema-violation"));
    assert!(validate.failed);
    assert_eq!(spans.len(), 2, "neither matched nor published: {spans:#?}");
}

#[tokio::test]
async fn every_tracing_vector_is_kept() {
    let Some(shared) = shared() else {
        return;
    };
    let file = shared.join("vectors/cloudevents/tracing.json");
    let text = std::fs::read_to_string(file).expect("the vectors");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let cases = file["cases"].as_array().expect("cases");
    let gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    let tracing = Tracing::start().await;
    for (number, case) in cases.iter().enumerate() {
        let bus = format!("c{number}");
        gateway
            .http
            .put(&format!("/v1/buses/{bus}"), &json!({}))
            .await
            .ok();
        let rule = json!({"pattern": {"source": [{"exists": true}]}, "targets": ["hook"]});
        gateway
            .http
            .put(&format!("/v1/rules/all?bus={bus}"), &rule)
            .await
            .ok();
        let answer = send(gateway.address(), &bus, &case["request"]).await;
        assert_eq!(answer.status, 202, "{}: {answer:?}", case["id"]);
        let got = receiver
            .wait_for(number + 1)
            .await
            .pop()
            .expect("a delivery");
        let path = format!("/v1/buses/{bus}/events");
        let is_ours = |span: &&Span| span.text("url.path") == Some(&path);
        let has_come = |spans: &[Span]| spans.iter().any(|span| is_ours(&span));
        let spans = tracing.collector.wait_until(has_come).await;
        let server = spans.iter().find(is_ours).expect("it has come");
        check_case(case, server, &got);
    }
    println!("tracing: {0}/{0}", cases.len());
}

fn check_case(case: &Value, server: &Span, got: &Got) {
    let id = &case["id"];
    let expect = &case["expect"]["tracing"];
    let came = case["request"].to_string();
    if expect["server_span_trace_id"] == "new" {
        assert!(!came.contains(&server.trace_id), "{id}");
        assert_eq!(server.parent_span_id, None, "{id}");
    } else if let Some(trace_id) = expect["server_span_trace_id"].as_str() {
        assert_eq!(server.trace_id, trace_id, "{id}");
    }
    if let Some(allowed) = expect["server_span_trace_id_any_of"].as_array() {
        let is_new = !came.contains(&server.trace_id) && allowed.contains(&json!("new"));
        assert!(is_new || allowed.contains(&json!(server.trace_id)), "{id}");
    }
    if let Some(parent) = expect["server_span_parent_id"].as_str() {
        assert_eq!(server.parent_span_id.as_deref(), Some(parent), "{id}");
    }
    if let Some(trace_id) = expect["link_trace_id"].as_str() {
        assert!(
            server.links.iter().any(|(linked, _)| linked == trace_id),
            "{id}"
        );
    }
    if let Some(span_id) = expect["link_or_parent_span_id"].as_str() {
        let is_linked = server.links.iter().any(|(_, linked)| linked == span_id);
        assert!(
            is_linked || server.parent_span_id.as_deref() == Some(span_id),
            "{id}"
        );
    }
    let out = got
        .headers
        .get("ce-traceparent")
        .map(|_| got.attribute("traceparent"));
    if let Some(expected) = expect.get("out_ce_traceparent") {
        assert_eq!(json!(out), *expected, "{id}");
    }
    if let Some(allowed) = expect["out_ce_traceparent_any_of"].as_array() {
        assert!(allowed.contains(&json!(out)), "{id}: {out:?}");
    }
    check_hop(id, expect, server, got);
}

/// The trace context of the delivery request.
fn check_hop(id: &Value, expect: &Value, server: &Span, got: &Got) {
    let hop: Vec<&str> = got.header("traceparent").split('-').collect();
    let [_, trace_id, span_id, flags] = hop[..] else {
        panic!("{id}: {hop:?} is no traceparent");
    };
    assert_eq!(trace_id, server.trace_id, "{id}");
    let expected = &expect["out_http_traceparent"];
    if let Some(expected) = expected["trace_id"].as_str() {
        assert_eq!(trace_id, expected, "{id}");
    }
    if let Some(expected) = expected["flags"].as_str() {
        assert_eq!(flags, expected, "{id}");
    }
    for taken in expected["parent_not"].as_array().into_iter().flatten() {
        assert_ne!(span_id, taken, "{id}");
    }
    if let Some(part) = expect["out_tracestate_contains"].as_str() {
        assert!(got.header("tracestate").contains(part), "{id}");
    }
}
