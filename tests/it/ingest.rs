//! The way in: receipts, batches, repeated events, schemas at the door, what matched nothing.

use std::time::Duration;

use dak::clock::{Clock, rfc3339};
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::support::{Answer, Gateway, Receiver, event};

const EVENT_TYPE: &str = "application/cloudevents+json";
const BATCH_TYPE: &str = "application/cloudevents-batch+json";
/// The schema of `order.placed` in these tests.
const SCHEMA: &str =
    r#"{"type": "object", "required": ["amount"], "properties": {"amount": {"type": "number"}}}"#;

/// A gateway with a schema for `order.placed`, and a rule and a pull target for it.
async fn shop() -> Gateway {
    let gateway = Gateway::start().await;
    gateway.pull_rule("audit", "order.placed").await;
    register(&gateway, "order.placed", SCHEMA).await;
    gateway
}

async fn register(gateway: &Gateway, event_type: &str, schema: &str) -> Value {
    let path = format!("/v1/schemas/{event_type}/versions");
    let media_type = "application/schema+json";
    gateway
        .http
        .publish_text(&path, media_type, schema.to_owned())
        .await
        .ok()
}

fn order(id: &str, data: Value) -> Value {
    event(id, "order.placed", data)
}

fn with(mut event: Value, name: &str, value: &str) -> Value {
    event[name] = value.into();
    event
}

async fn publish_binary(gateway: &Gateway, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = Request::post("/v1/events").header("ce-specversion", "1.0");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::from(body.as_bytes().to_vec());
    gateway
        .http
        .send(request.body(body).expect("a request"))
        .await
}

async fn log_of(gateway: &Gateway, bus: &str) -> Vec<Value> {
    let log = gateway
        .http
        .get(&format!("/v1/buses/{bus}/events"))
        .await
        .ok();
    log["events"].as_array().expect("events").clone()
}

#[tokio::test]
async fn a_receipt_says_all_that_was_decided() {
    let gateway = shop().await;
    let receipt = gateway
        .http
        .publish(&order("1", json!({"amount": 5})))
        .await;
    assert_eq!(receipt.status, 202);
    assert_eq!(
        receipt.json(),
        json!({"seq": 1, "duplicate": false, "schema": {"type": "order.placed", "version": 1},
            "rules": ["audit-rule"], "targets": ["audit"]})
    );
    let unmatched = gateway
        .http
        .publish(&event("2", "order.paid", json!({})))
        .await
        .ok();
    assert_eq!(
        unmatched,
        json!({"seq": 2, "duplicate": false, "schema": null, "rules": [], "targets": []})
    );
    for (line, count) in [
        ("dak_events_accepted_total{bus=\"default\"}", 2.0),
        ("dak_events_matched_total{bus=\"default\"}", 1.0),
        (
            "dak_events_unmatched_total{bus=\"default\",type=\"order.paid\"}",
            1.0,
        ),
        ("dak_deliveries_enqueued_total{target=\"audit\"}", 1.0),
        ("dak_unknown_type_total{type=\"order.paid\"}", 1.0),
    ] {
        assert_eq!(gateway.metric(line).await, count, "{line}");
    }
}

#[tokio::test]
async fn an_event_that_breaks_its_schema_is_refused_with_every_violation() {
    let gateway = shop().await;
    let answer = gateway
        .http
        .publish(&order("1", json!({"amount": "five"})))
        .await;
    let problem = answer.problem(422, "schema-violation");
    assert_eq!(problem["status"], 422);
    assert_eq!(problem["reason"], "schema-violation");
    assert_eq!(
        problem["schema"],
        json!({"type": "order.placed", "version": 1})
    );
    assert_eq!(problem["violation_count"], 1);
    let violation = &problem["violations"][0];
    assert_eq!(violation["instance_path"], "/amount");
    assert_eq!(violation["schema_path"], "/properties/amount/type");
    assert_eq!(violation["keyword"], "type");
    assert_eq!(violation["expected"], "number");
    assert_eq!(violation["actual"], "five");
    assert!(log_of(&gateway, "default").await.is_empty());
    let line = "dak_events_rejected_total{bus=\"default\",reason=\"schema-violation\"}";
    assert_eq!(gateway.metric(line).await, 1.0);
}

#[tokio::test]
async fn the_first_twenty_violations_are_listed_and_all_are_counted() {
    let gateway = Gateway::start().await;
    register(&gateway, "list", r#"{"items": {"type": "integer"}}"#).await;
    let wrong: Vec<Value> = (0..25).map(|at| json!(format!("no {at}"))).collect();
    let answer = gateway
        .http
        .publish(&event("1", "list", wrong.into()))
        .await;
    let problem = answer.problem(422, "schema-violation");
    assert_eq!(problem["violation_count"], 25);
    assert_eq!(
        problem["violations"].as_array().expect("violations").len(),
        20
    );
}

#[tokio::test]
async fn data_that_is_no_json_breaks_any_schema() {
    let gateway = shop().await;
    let headers = [
        ("ce-id", "1"),
        ("ce-source", "/test"),
        ("ce-type", "order.placed"),
        ("content-type", "application/json"),
    ];
    let answer = publish_binary(&gateway, &headers, "{\"amount\": ").await;
    let problem = answer.problem(422, "schema-violation");
    assert_eq!(problem["violations"][0]["keyword"], "json");
    publish_binary(&gateway, &headers[..3], "")
        .await
        .problem(422, "schema-violation");
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order() {
    let gateway = shop().await;
    let batch = [
        order("1", json!({"amount": 1})),
        event("2", "order.paid", json!({})),
        order("3", json!({"amount": 3})),
    ];
    let answer = gateway.http.publish_batch(&batch).await;
    assert_eq!(answer.status, 202);
    let events = answer.json()["events"].clone();
    let seqs: Vec<&Value> = events
        .as_array()
        .expect("events")
        .iter()
        .map(|e| &e["seq"])
        .collect();
    assert_eq!(seqs, [1, 2, 3]);
    assert_eq!(events[1]["rules"], json!([]));
    assert_eq!(events[2]["targets"], json!(["audit"]));
    assert_eq!(
        gateway.http.publish_batch(&[]).await.ok(),
        json!({"events": []})
    );
}

#[tokio::test]
async fn one_bad_member_refuses_a_batch_and_every_bad_one_is_named() {
    let gateway = shop().await;
    let batch = [
        order("1", json!({"amount": 1})),
        order("2", json!({"amount": "x"})),
        order("3", json!({"amount": 3})),
        order("4", json!({})),
    ];
    let problem = gateway
        .http
        .publish_batch(&batch)
        .await
        .problem(422, "schema-violation");
    assert_eq!(problem["index"], 1);
    let members = problem["members"].as_array().expect("members");
    let named: Vec<(&Value, &Value)> = members
        .iter()
        .map(|m| (&m["index"], &m["violations"][0]["keyword"]))
        .collect();
    assert_eq!(
        named,
        [(&json!(1), &json!("type")), (&json!(3), &json!("required"))]
    );
    assert!(log_of(&gateway, "default").await.is_empty());
    assert!(gateway.receive("audit", 10).await.is_empty());
    assert_eq!(
        gateway
            .metric("dak_events_accepted_total{bus=\"default\"}")
            .await,
        0.0
    );
    let line = "dak_events_rejected_total{bus=\"default\",reason=\"schema-violation\"}";
    assert_eq!(gateway.metric(line).await, 2.0);
}

#[tokio::test]
async fn malformed_members_of_a_batch_are_named_with_their_attributes() {
    let gateway = shop().await;
    let mut without_id = order("x", json!({"amount": 1}));
    without_id.as_object_mut().expect("an object").remove("id");
    let odd_time = with(order("3", json!({"amount": 1})), "time", "yesterday");
    let batch = [without_id, order("2", json!({"amount": 1})), odd_time];
    let problem = gateway
        .http
        .publish_batch(&batch)
        .await
        .problem(400, "malformed-event");
    assert_eq!(problem["index"], 0);
    let members = problem["members"].as_array().expect("members");
    let named: Vec<[&Value; 3]> = members
        .iter()
        .map(|m| [&m["index"], &m["reason"], &m["attribute"]])
        .collect();
    assert_eq!(
        named,
        [
            [&json!(0), &json!("missing_attribute"), &json!("id")],
            [&json!(2), &json!("invalid_attribute_value"), &json!("time")],
        ]
    );
    assert!(log_of(&gateway, "default").await.is_empty());
}

#[tokio::test]
async fn all_kinds_of_bad_members_are_named_in_one_answer() {
    let gateway = shop().await;
    gateway
        .http
        .publish(&order("taken", json!({"amount": 0})))
        .await
        .ok();
    let good = order("good", json!({"amount": 1}));
    let bad = [
        order("2", json!({})),
        order("taken", json!({"amount": 9})),
        order("good", json!({"amount": 2})),
    ];
    let named = |problem: &Value| -> Vec<(Value, Value)> {
        let members = problem["members"].as_array().expect("members");
        members
            .iter()
            .map(|m| (m["index"].clone(), m["reason"].clone()))
            .collect()
    };
    let others = [
        (json!(1), json!("schema-violation")),
        (json!(2), json!("event-conflict")),
        (json!(3), json!("event-conflict")),
    ];
    let mut batch = vec![good];
    batch.extend(bad);
    let problem = gateway
        .http
        .publish_batch(&batch)
        .await
        .problem(422, "schema-violation");
    assert_eq!(named(&problem), others);

    let mut without_id = order("x", json!({"amount": 1}));
    without_id.as_object_mut().expect("an object").remove("id");
    batch.push(without_id);
    let problem = gateway
        .http
        .publish_batch(&batch)
        .await
        .problem(400, "malformed-event");
    assert_eq!(problem["index"], 4);
    assert_eq!(problem["attribute"], "id");
    let mut all = vec![(json!(4), json!("missing_attribute"))];
    all.extend(others);
    assert_eq!(named(&problem), all);
    assert_eq!(log_of(&gateway, "default").await.len(), 1);
    for (reason, count) in [
        ("malformed-event", 1.0),
        ("schema-violation", 2.0),
        ("event-conflict", 4.0),
    ] {
        let line = format!("dak_events_rejected_total{{bus=\"default\",reason=\"{reason}\"}}");
        assert_eq!(gateway.metric(&line).await, count, "{reason}");
    }
}

#[tokio::test]
async fn a_partial_batch_stores_the_good_members_and_says_why_the_others_were_refused() {
    let gateway = shop().await;
    gateway
        .http
        .publish(&order("taken", json!({"amount": 0})))
        .await
        .ok();
    let mut without_id = order("x", json!({"amount": 1}));
    without_id.as_object_mut().expect("an object").remove("id");
    let batch = json!([
        order("1", json!({"amount": 1})),
        without_id,
        order("3", json!({})),
        order("taken", json!({"amount": 9})),
        order("1", json!({"amount": 1})),
        order("6", json!({"amount": 6})),
    ]);
    let path = "/v1/events?partial=true";
    let answer = gateway
        .http
        .publish_text(path, BATCH_TYPE, batch.to_string())
        .await;
    assert_eq!(answer.status, 207);
    let answer = answer.json();
    let results = answer["events"].as_array().expect("results");
    let statuses: Vec<&Value> = results.iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [202, 400, 422, 409, 202, 202]);
    assert_eq!(results[0]["seq"], 2);
    assert_eq!(results[1]["problem"]["attribute"], "id");
    assert_eq!(
        results[2]["problem"]["type"],
        "urn:dak:problem:schema-violation"
    );
    assert_eq!(results[3]["problem"]["first_seq"], 1);
    assert_eq!(
        (&results[4]["seq"], &results[4]["duplicate"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(results[5]["seq"], 3);
    assert_eq!(log_of(&gateway, "default").await.len(), 3);
    assert_eq!(gateway.receive("audit", 10).await.len(), 3);
}

#[tokio::test]
async fn a_batch_above_the_limit_is_refused_whole() {
    let gateway = Gateway::with(&[("max_batch_events", "3")]).await;
    let batch: Vec<Value> = (0..4)
        .map(|id| event(&id.to_string(), "t", json!({})))
        .collect();
    gateway.http.publish_batch(&batch[..3]).await.ok();
    let problem = gateway
        .http
        .publish_batch(&batch)
        .await
        .problem(413, "too-large");
    assert_eq!(problem["limit"], "max_batch_events");
    assert_eq!(problem["events_max"], 3);
    assert_eq!(log_of(&gateway, "default").await.len(), 3);
}

#[tokio::test]
async fn an_event_above_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let gateway = Gateway::with(&[("max_event_bytes", "1KiB")]).await;
    let headers = [("ce-id", "1"), ("ce-source", "/s"), ("ce-type", "t")];
    let problem = publish_binary(&gateway, &headers, &"x".repeat(1025))
        .await
        .problem(413, "too-large");
    assert_eq!(
        (&problem["limit"], &problem["bytes"], &problem["bytes_max"]),
        (&json!("max_event_bytes"), &json!(1025), &json!(1024))
    );
    publish_binary(&gateway, &headers, &"x".repeat(1024))
        .await
        .ok();
}

#[tokio::test]
async fn an_event_sent_again_in_any_mode_gets_the_first_answer() {
    let gateway = shop().await;
    let headers = [
        ("ce-id", "1"),
        ("ce-source", "/test"),
        ("ce-type", "order.placed"),
        ("ce-time", "2024-01-01T00:00:00Z"),
        ("content-type", "application/json"),
    ];
    let mut first = publish_binary(&gateway, &headers, r#"{"amount":7}"#)
        .await
        .ok();
    assert_eq!(first["duplicate"], false);
    first["duplicate"] = true.into();
    let retry = with(
        order("1", json!({"amount": 7})),
        "time",
        "2024-06-01T00:00:00Z",
    );
    let retry = with(
        retry,
        "traceparent",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    );
    assert_eq!(
        publish_binary(&gateway, &headers, r#"{"amount":7}"#)
            .await
            .ok(),
        first
    );
    assert_eq!(gateway.http.publish(&retry).await.ok(), first);
    let batch = gateway
        .http
        .publish_batch(&[retry.clone(), retry])
        .await
        .ok();
    assert_eq!(batch, json!({"events": [first, first]}));
    assert_eq!(gateway.receive("audit", 10).await.len(), 1);
    assert_eq!(
        gateway
            .metric("dak_events_duplicate_total{bus=\"default\"}")
            .await,
        4.0
    );
    assert_eq!(
        gateway
            .metric("dak_events_accepted_total{bus=\"default\"}")
            .await,
        1.0
    );
}

#[tokio::test]
async fn a_repeated_event_that_would_be_refused_by_now_is_still_a_duplicate() {
    let mut gateway = shop().await;
    let placed = order("1", json!({"amount": 7}));
    let mut first = gateway.http.publish(&placed).await.ok();
    first["duplicate"] = true.into();
    register(&gateway, "order.placed", r#"{"required": ["currency"]}"#).await;
    gateway.http.delete("/v1/rules/audit-rule").await.ok();
    gateway
        .http
        .publish(&order("2", json!({"amount": 7})))
        .await
        .problem(422, "schema-violation");
    assert_eq!(gateway.http.publish(&placed).await.ok(), first);
    let batch = gateway
        .http
        .publish_batch(std::slice::from_ref(&placed))
        .await
        .ok();
    assert_eq!(batch, json!({"events": [first]}));
    gateway.restart().await;
    assert_eq!(gateway.http.publish(&placed).await.ok(), first);
}

#[tokio::test]
async fn another_content_under_the_same_id_is_a_conflict_and_changes_nothing() {
    let gateway = shop().await;
    let first = order("1", json!({"amount": 7}));
    gateway.http.publish(&first).await.ok();
    let others = [
        order("1", json!({"amount": 8})),
        with(first.clone(), "subject", "s"),
        with(first.clone(), "type", "order.paid"),
        with(first.clone(), "dataschema", "https://example.com/s"),
    ];
    for other in &others {
        let problem = gateway
            .http
            .publish(other)
            .await
            .problem(409, "event-conflict");
        assert_eq!(problem["first_seq"], 1, "{other}");
    }
    let batch = [order("2", json!({"amount": 2})), others[0].clone()];
    let problem = gateway
        .http
        .publish_batch(&batch)
        .await
        .problem(409, "event-conflict");
    assert_eq!(
        (&problem["index"], &problem["first_seq"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(log_of(&gateway, "default").await.len(), 1);
    assert_eq!(gateway.receive("audit", 10).await.len(), 1);
    assert_eq!(
        gateway
            .metric("dak_events_conflict_total{bus=\"default\"}")
            .await,
        5.0
    );
    let line = "dak_events_rejected_total{bus=\"default\",reason=\"event-conflict\"}";
    assert_eq!(gateway.metric(line).await, 5.0);
}

#[tokio::test]
async fn two_contents_under_one_id_in_a_batch_are_a_conflict() {
    let gateway = shop().await;
    let batch = [
        order("1", json!({"amount": 1})),
        order("2", json!({"amount": 2})),
        order("1", json!({"amount": 3})),
    ];
    let problem = gateway
        .http
        .publish_batch(&batch)
        .await
        .problem(409, "event-conflict");
    assert_eq!(problem["index"], 2);
    assert!(log_of(&gateway, "default").await.is_empty());
    let twice = [batch[0].clone(), batch[0].clone()];
    let answer = gateway.http.publish_batch(&twice).await.ok();
    assert_eq!(answer["events"][0]["duplicate"], false);
    assert_eq!(answer["events"][1]["duplicate"], true);
    assert_eq!(answer["events"][0]["seq"], answer["events"][1]["seq"]);
}

#[tokio::test]
async fn an_id_is_one_within_its_source_and_bus_only() {
    let gateway = shop().await;
    gateway.http.put("/v1/buses/other", &json!({})).await.ok();
    let first = order("1", json!({"amount": 1}));
    gateway.http.publish(&first).await.ok();
    let elsewhere = with(order("1", json!({"amount": 2})), "source", "/elsewhere");
    assert_eq!(
        gateway.http.publish(&elsewhere).await.ok()["duplicate"],
        false
    );
    let path = "/v1/buses/other/events";
    let on_other = gateway
        .http
        .publish_text(path, EVENT_TYPE, first.to_string())
        .await
        .ok();
    assert_eq!(on_other["duplicate"], false);
    assert_eq!(on_other["rules"], json!([]));
    assert_eq!(log_of(&gateway, "other").await.len(), 1);
    assert_eq!(log_of(&gateway, "default").await.len(), 2);
}

#[tokio::test]
async fn an_unknown_bus_is_said_to_be_unknown() {
    let gateway = Gateway::start().await;
    let placed = event("1", "t", json!({})).to_string();
    let path = "/v1/buses/nowhere/events";
    let problem = gateway
        .http
        .publish_text(path, EVENT_TYPE, placed)
        .await
        .problem(404, "unknown-bus");
    assert_eq!(problem["bus"], "nowhere");
    gateway.http.get(path).await.problem(404, "unknown-bus");
    let line = "dak_events_rejected_total{bus=\"unknown\",reason=\"unknown-bus\"}";
    assert_eq!(gateway.metric(line).await, 1.0);
}

#[tokio::test]
async fn a_bus_may_refuse_types_that_no_schema_describes() {
    let gateway = shop().await;
    gateway
        .http
        .put("/v1/buses/strict", &json!({"unknown_types": "reject"}))
        .await
        .ok();
    let path = "/v1/buses/strict/events";
    let publish = |event: Value| {
        gateway
            .http
            .publish_text(path, EVENT_TYPE, event.to_string())
    };
    let problem = publish(event("1", "order.paid", json!({})))
        .await
        .problem(422, "unknown-type");
    assert_eq!(problem["event_type"], "order.paid");
    assert_eq!(problem["bus"], "strict");
    publish(order("2", json!({"amount": 1}))).await.ok();
    let line = "dak_events_rejected_total{bus=\"strict\",reason=\"unknown-type\"}";
    assert_eq!(gateway.metric(line).await, 1.0);
}

#[tokio::test]
async fn dataschema_names_the_version_that_judges() {
    let gateway = shop().await;
    register(&gateway, "order.placed", r#"{"required": ["currency"]}"#).await;
    register(&gateway, "order.paid", "true").await;
    let base = format!("http://{}/v1/schemas", gateway.address());
    let named =
        |id: &str, schema: String| with(order(id, json!({"amount": 1})), "dataschema", &schema);
    // The newest version judges events that name none, and refuses this one.
    gateway
        .http
        .publish(&order("0", json!({"amount": 1})))
        .await
        .problem(422, "schema-violation");
    let old = named("1", format!("{base}/order.placed/versions/1"));
    assert_eq!(
        gateway.http.publish(&old).await.ok()["schema"]["version"],
        1
    );
    let new = named("2", format!("{base}/order%2Eplaced/versions/2"));
    let problem = gateway
        .http
        .publish(&new)
        .await
        .problem(422, "schema-violation");
    assert_eq!(problem["schema"]["version"], 2);
    for (id, path) in [
        ("3", "order.paid/versions/1"),
        ("4", "order.placed/versions/3"),
    ] {
        let wrong = named(id, format!("{base}/{path}"));
        let problem = gateway
            .http
            .publish(&wrong)
            .await
            .problem(422, "wrong-schema");
        assert_eq!(problem["dataschema"], format!("{base}/{path}"));
    }
    let line = "dak_events_rejected_total{bus=\"default\",reason=\"wrong-schema\"}";
    assert_eq!(gateway.metric(line).await, 2.0);
}

#[tokio::test]
async fn a_foreign_dataschema_is_counted_and_the_default_version_judges() {
    let gateway = shop().await;
    let foreign = "https://schemas.example.com/order.json";
    let good = with(order("1", json!({"amount": 1})), "dataschema", foreign);
    assert_eq!(
        gateway.http.publish(&good).await.ok()["schema"]["version"],
        1
    );
    let bad = with(order("2", json!({})), "dataschema", foreign);
    gateway
        .http
        .publish(&bad)
        .await
        .problem(422, "schema-violation");
    assert_eq!(gateway.metric("dak_foreign_dataschema_total").await, 2.0);
}

#[tokio::test]
async fn modes_warn_and_off_let_events_in_and_the_record_says_so() {
    let gateway = shop().await;
    let bad = |id: &str| order(id, json!({}));
    let policy = "/v1/schemas/order.placed/policy";
    gateway
        .http
        .put(policy, &json!({"mode": "warn"}))
        .await
        .ok();
    let warned = gateway.http.publish(&bad("1")).await.ok();
    assert_eq!(warned["warned"], true);
    assert_eq!(warned["schema"]["version"], 1);
    let shown = gateway.http.get("/v1/events/1").await.ok();
    assert_eq!(shown["warned"], true);
    assert_eq!(
        gateway
            .metric("dak_schema_warnings_total{type=\"order.placed\"}")
            .await,
        1.0
    );
    gateway.http.put(policy, &json!({"mode": "off"})).await.ok();
    let unjudged = gateway.http.publish(&bad("2")).await.ok();
    assert_eq!(unjudged.get("warned"), None);
    gateway
        .http
        .put(policy, &json!({"mode": "enforce"}))
        .await
        .ok();
    gateway
        .http
        .publish(&bad("3"))
        .await
        .problem(422, "schema-violation");
}

#[tokio::test]
async fn the_default_version_of_a_type_judges_events_that_name_none() {
    let gateway = shop().await;
    register(&gateway, "order.placed", r#"{"required": ["currency"]}"#).await;
    let policy = "/v1/schemas/order.placed/policy";
    gateway
        .http
        .put(policy, &json!({"default_version": 1}))
        .await
        .ok();
    let placed = order("1", json!({"amount": 1}));
    assert_eq!(
        gateway.http.publish(&placed).await.ok()["schema"]["version"],
        1
    );
    gateway
        .http
        .put(policy, &json!({"default_version": "latest"}))
        .await
        .ok();
    gateway
        .http
        .publish(&order("2", json!({"amount": 1})))
        .await
        .problem(422, "schema-violation");
}

#[tokio::test]
async fn what_matched_nothing_is_listed_with_the_rule_that_came_nearest() {
    let clock = Clock::manual(1_700_000_000_000);
    let gateway = Gateway::with_clock(&[], clock).await;
    gateway.pull_rule("audit", "order.placed").await;
    let pattern = json!({"type": ["order.paid"], "data": {"amount": [{"numeric": [">=", 5000]}]}});
    gateway.rule("large", &pattern, &["audit"]).await;
    let first_seen = rfc3339(gateway.clock.now());
    gateway
        .http
        .publish(&event("1", "order.paid", json!({"amount": 10})))
        .await
        .ok();
    gateway.clock.advance(Duration::from_secs(60));
    gateway
        .http
        .publish(&event("2", "order.paid", json!({"amount": 20})))
        .await
        .ok();
    gateway
        .http
        .publish(&event("3", "order.placed", json!({})))
        .await
        .ok();
    // A repeated event is not seen a second time.
    gateway
        .http
        .publish(&event("2", "order.paid", json!({"amount": 20})))
        .await
        .ok();

    let listed = gateway.http.get("/v1/unmatched?bus=default").await.ok();
    let groups = listed["unmatched"].as_array().expect("groups");
    assert_eq!(groups.len(), 1, "{listed}");
    let group = &groups[0];
    assert_eq!(group["bus"], "default");
    assert_eq!(group["source"], "/test");
    assert_eq!(group["type"], "order.paid");
    assert_eq!(group["count"], 2);
    assert_eq!(group["first_seen"], first_seen);
    assert_eq!(group["last_seen"], rfc3339(gateway.clock.now()));
    assert_eq!(group["sample"]["seq"], 2);
    assert_eq!(group["sample"]["event"]["data"], json!({"amount": 20}));
    let nearest = &group["nearest"];
    assert_eq!(nearest["rule"], "large");
    assert_eq!(nearest["matched"], false);
    let failure = &nearest["failures"][0];
    assert_eq!(failure["path"], "data.amount");
    assert_eq!(failure["operator"], "numeric");
    assert_eq!(failure["actual"], "20");
    assert_eq!(failure["reason"]["kind"], "out_of_range");
    assert_eq!(
        gateway.http.get("/v1/unmatched?bus=other").await.ok(),
        json!({"unmatched": []})
    );
}

#[tokio::test]
async fn an_explanation_names_matches_first_and_then_the_nearest_misses() {
    let gateway = Gateway::start().await;
    gateway.pull_rule("audit", "order.placed").await;
    gateway
        .rule(
            "far",
            &json!({"type": ["x"], "source": ["y"], "subject": ["z"]}),
            &["audit"],
        )
        .await;
    let near = json!({"type": ["order.placed"], "data": {"country": ["BD"]}});
    gateway.rule("near", &near, &["audit"]).await;
    gateway
        .http
        .publish(&order("1", json!({"country": "DE"})))
        .await
        .ok();

    let explained = gateway.http.get("/v1/events/1/explain").await.ok();
    assert_eq!(explained["matched"], json!(["audit-rule"]));
    let rules = explained["rules"].as_array().expect("rules");
    let order: Vec<&Value> = rules.iter().map(|rule| &rule["rule"]).collect();
    assert_eq!(order, ["audit-rule", "near", "far"]);
    assert_eq!(rules[0]["failures"], json!([]));
    assert_eq!(rules[1]["held"], 1);
    assert_eq!(rules[1]["failures"][0]["path"], "data.country");
    assert_eq!(rules[1]["failures"][0]["actual"], "\"DE\"");
    assert_eq!(rules[2]["failures"].as_array().expect("failures").len(), 3);

    let one = gateway
        .http
        .get("/v1/events/1/explain?rule=near")
        .await
        .ok();
    assert_eq!(one["rules"].as_array().expect("rules").len(), 1);
    assert_eq!(one["matched"], json!([]));
    gateway
        .http
        .get("/v1/events/1/explain?rule=none")
        .await
        .problem(404, "not-found");
    gateway
        .http
        .get("/v1/events/99/explain")
        .await
        .problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attributes_and_data_leave_as_they_came() {
    let gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    gateway.pull_rule("audit", "t").await;
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    gateway
        .rule("push", &json!({"type": ["t"]}), &["hook"])
        .await;
    let data =
        r#"{"id": 12345678901234567890123, "price": 1.10, "tiny": 1E-400, "text": "\u00e9\/"}"#;
    let published = format!(
        r#"{{"specversion": "1.0", "id": "1", "source": "/a%20b", "type": "t", "count": 5,
            "sampled": true, "time": "2024-01-01t00:00:00.123456789+05:30", "note": "é \"x\" 50%",
            "datacontenttype": "application/json; charset=utf-8", "data": {data}}}"#
    );
    gateway
        .http
        .publish_text("/v1/events", EVENT_TYPE, published)
        .await
        .ok();

    let got = &receiver.wait_for(1).await[0];
    assert_eq!(String::from_utf8_lossy(&got.body), data);
    assert_eq!(
        got.header("content-type"),
        "application/json; charset=utf-8"
    );
    assert_eq!(got.attribute("source"), "/a%20b");
    assert_eq!(got.attribute("time"), "2024-01-01t00:00:00.123456789+05:30");
    assert_eq!(got.attribute("note"), "é \"x\" 50%");
    assert_eq!(got.attribute("count"), "5");
    assert_eq!(got.attribute("sampled"), "true");

    let ask = json!({"max_events": 1});
    let pulled = gateway
        .http
        .post("/v1/queues/audit/receive", &ask)
        .await
        .text();
    assert!(pulled.contains(data), "{pulled}");
    let pulled: Value = serde_json::from_str(&pulled).expect("JSON");
    let event = &pulled["events"][0]["event"];
    assert_eq!(event["count"], 5);
    assert_eq!(event["sampled"], true);
    assert_eq!(event["time"], "2024-01-01t00:00:00.123456789+05:30");
    assert_eq!(event["note"], "é \"x\" 50%");
    let shown = gateway.http.get("/v1/events/1").await.text();
    assert!(shown.contains(data), "{shown}");
}

#[tokio::test]
async fn the_log_of_a_bus_is_listed_newest_first_and_page_by_page() {
    let gateway = shop().await;
    for id in 1..=5 {
        let placed = order(&id.to_string(), json!({"amount": id}));
        gateway.http.publish(&placed).await.ok();
    }
    let seqs = |page: &Value| -> Vec<i64> {
        let events = page["events"].as_array().expect("events");
        events
            .iter()
            .map(|event| event["seq"].as_i64().expect("a number"))
            .collect()
    };
    let page = gateway
        .http
        .get("/v1/buses/default/events?limit=2")
        .await
        .ok();
    assert_eq!(seqs(&page), [5, 4]);
    let page = gateway
        .http
        .get("/v1/buses/default/events?limit=2&before=4")
        .await
        .ok();
    assert_eq!(seqs(&page), [3, 2]);
    let shown = gateway.http.get("/v1/events/3").await.ok();
    assert_eq!(shown, page["events"][0]);
    assert_eq!(shown["bus"], "default");
    assert_eq!(shown["event"]["data"], json!({"amount": 3}));
    assert_eq!(shown["data_bytes"], 12);
    assert_eq!(shown["offloaded"], false);
    assert_eq!(
        shown["schema"],
        json!({"type": "order.placed", "version": 1})
    );
    assert_eq!(shown["rules"], json!(["audit-rule"]));
    assert_eq!(shown["targets"], json!(["audit"]));
    gateway
        .http
        .get("/v1/events/6")
        .await
        .problem(404, "not-found");
}
