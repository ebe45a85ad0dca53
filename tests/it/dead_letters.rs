//! Dead letters: what they keep, how they are listed, sent again and forgotten.

use std::time::Duration;

use dak::clock::{Clock, rfc3339};
use serde_json::{Value, json};

use crate::support::{Gateway, NOW, Receiver, event, until};

/// A gateway whose time stands still, with the pull targets `audit` and `billing`.
async fn pulling() -> Gateway {
    let gateway = Gateway::with_clock(&[], Clock::manual(NOW)).await;
    gateway.pull_rule("audit", "order").await;
    gateway.pull_rule("billing", "invoice").await;
    gateway
}

/// Publishes events of a type, receives them and rejects them all.
async fn reject(gateway: &Gateway, target: &str, event_type: &str, ids: &[&str]) {
    for id in ids {
        gateway
            .http
            .publish(&event(id, event_type, json!({})))
            .await
            .ok();
    }
    let held = gateway.receive(target, 100).await;
    assert_eq!(held.len(), ids.len());
    let tokens: Vec<Value> = held.iter().map(|one| one["lease_token"].clone()).collect();
    let settled = gateway.settle(target, "reject", &tokens).await;
    assert_eq!(settled["succeeded"], json!(tokens));
}

async fn list(gateway: &Gateway, query: &str) -> Vec<Value> {
    let answer = gateway
        .http
        .get(&format!("/v1/dead-letters{query}"))
        .await
        .ok();
    answer["dead_letters"].as_array().expect("a list").clone()
}

/// Which events the dead letters hold.
fn ids(dead: &[Value]) -> Vec<&str> {
    dead.iter()
        .map(|dead| dead["event"]["id"].as_str().expect("an id"))
        .collect()
}

async fn redrive(gateway: &Gateway, which: Value) -> Value {
    gateway
        .http
        .post("/v1/dead-letters/redrive", &which)
        .await
        .ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_keeps_the_whole_event_and_every_attempt() {
    let receiver = Receiver::answering(|nth, _| ([500, 503, 404][nth % 3], Vec::new())).await;
    let settings = [("claim_check.threshold", "100")];
    let gateway = Gateway::with_clock(&settings, Clock::manual(NOW)).await;
    let retry = json!({"retry": {"min_delay": "10s", "max_delay": "10s", "max_attempts": 3}});
    gateway.webhook("hook", &receiver.url(), retry).await;
    gateway
        .rule("all", &json!({"type": ["order"]}), &["hook"])
        .await;
    gateway
        .rule(
            "large",
            &json!({"data": {"n": [{"numeric": [">", 1]}]}}),
            &["hook"],
        )
        .await;
    let mut whole = event("1", "order", json!({"n": 2, "text": "x".repeat(200)}));
    whole["subject"] = json!("shop/1");
    whole["ext"] = json!(7);
    gateway.http.publish(&whole).await.ok();
    for attempt in 1..3 {
        receiver.wait_for(attempt).await;
        until(
            async || gateway.queue("hook").await,
            |queue| queue["delayed"] == 1,
        )
        .await;
        gateway.clock.advance(Duration::from_secs(10));
    }
    until(
        async || gateway.queue("hook").await,
        |queue| queue["dead"] == 1,
    )
    .await;

    let attempt = |at: i64, status: u16| {
        json!({"at": rfc3339(NOW + at), "duration_ms": 0, "outcome": "status", "status": status,
            "excerpt": "an answer"})
    };
    let attempts = [attempt(0, 500), attempt(10_000, 503), attempt(20_000, 404)];
    let dead = gateway.http.get("/v1/dead-letters/1").await.ok();
    assert_eq!(
        dead,
        json!({
            "id": 1,
            "target": "hook",
            "seq": 1,
            "reason": "exhausted",
            "detail": "an answer",
            "died_at": rfc3339(NOW + 20_000),
            "failures": 3,
            "receives": 0,
            "rules": ["all", "large"],
            "attempts": attempts,
            "event": whole,
        })
    );
    let listed = list(&gateway, "").await;
    assert_eq!(listed.len(), 1);
    assert_eq!(
        listed[0]["attempts"],
        json!([attempts[2]]),
        "a list shows the last attempt"
    );
    gateway
        .http
        .get("/v1/dead-letters/2")
        .await
        .problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_listed_by_target_reason_and_page() {
    let receiver = Receiver::answering(|_, _| (422, Vec::new())).await;
    let gateway = pulling().await;
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    gateway
        .rule("hooked", &json!({"type": ["hooked"]}), &["hook"])
        .await;
    reject(&gateway, "audit", "order", &["1", "2", "3"]).await;
    reject(&gateway, "billing", "invoice", &["4", "5"]).await;
    gateway
        .http
        .publish(&event("6", "hooked", json!({})))
        .await
        .ok();
    until(
        async || gateway.queue("hook").await,
        |queue| queue["dead"] == 1,
    )
    .await;

    assert_eq!(
        ids(&list(&gateway, "").await),
        ["1", "2", "3", "4", "5", "6"]
    );
    assert_eq!(ids(&list(&gateway, "?target=billing").await), ["4", "5"]);
    assert_eq!(
        ids(&list(&gateway, "?reason=permanent_status").await),
        ["6"]
    );
    assert_eq!(
        ids(&list(&gateway, "?target=audit&reason=permanent_status").await),
        [""; 0]
    );
    assert_eq!(ids(&list(&gateway, "?target=nobody").await), [""; 0]);
    let mut paged = Vec::new();
    let mut after = 0;
    loop {
        let page = list(&gateway, &format!("?limit=4&after={after}")).await;
        let Some(last) = page.last() else { break };
        after = last["id"].as_i64().expect("an id");
        assert!(page.len() <= 4);
        paged.extend(page);
    }
    assert_eq!(ids(&paged), ["1", "2", "3", "4", "5", "6"]);
    let refused = gateway.http.get("/v1/dead-letters?limit=x").await;
    assert_eq!(refused.status, 400);
    let refused = gateway.http.get("/v1/dead-letters?colour=red").await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn dead_letters_are_redriven_by_id_by_reason_by_target_or_all() {
    let gateway = pulling().await;
    reject(&gateway, "audit", "order", &["1", "2", "3", "4"]).await;
    reject(&gateway, "billing", "invoice", &["5", "6"]).await;

    let moved = redrive(&gateway, json!({"ids": [2, 3, 77]})).await;
    assert_eq!(
        moved,
        json!({"redriven": 2, "targets": [{"target": "audit", "count": 2}]})
    );
    assert_eq!(ids(&list(&gateway, "").await), ["1", "4", "5", "6"]);
    let again = gateway.receive("audit", 10).await;
    assert_eq!(ids(&again), ["2", "3"]);
    assert_eq!(
        [&again[0]["receives"], &again[0]["failures"]],
        [1, 0],
        "with a clean slate"
    );

    let moved = redrive(&gateway, json!({"reason": "exhausted"})).await;
    assert_eq!(moved, json!({"redriven": 0, "targets": []}));
    let moved = redrive(
        &gateway,
        json!({"reason": "rejected_by_consumer", "limit": 1}),
    )
    .await;
    assert_eq!(
        moved,
        json!({"redriven": 1, "targets": [{"target": "audit", "count": 1}]})
    );
    let moved = redrive(&gateway, json!({"target": "billing"})).await;
    assert_eq!(
        moved,
        json!({"redriven": 2, "targets": [{"target": "billing", "count": 2}]})
    );
    let moved = redrive(&gateway, json!({})).await;
    assert_eq!(
        moved,
        json!({"redriven": 1, "targets": [{"target": "audit", "count": 1}]})
    );
    assert_eq!(list(&gateway, "").await, Vec::<Value>::new());

    assert_eq!(ids(&gateway.receive("audit", 10).await), ["1", "4"]);
    assert_eq!(ids(&gateway.receive("billing", 10).await), ["5", "6"]);
    let queue = gateway.queue("audit").await;
    assert_eq!(
        [
            &queue["ready"],
            &queue["delayed"],
            &queue["leased"],
            &queue["dead"]
        ],
        [0, 0, 4, 0]
    );
    let refused = gateway
        .http
        .post("/v1/dead-letters/redrive", &json!({"all": true}))
        .await;
    refused.problem(400, "invalid-request");
    let many = json!({"ids": vec![1; 1_001]});
    gateway
        .http
        .post("/v1/dead-letters/redrive", &many)
        .await
        .problem(400, "invalid-request");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redriven_delivery_is_sent_again_and_its_age_begins_anew() {
    let receiver =
        Receiver::answering(|nth, _| (if nth < 2 { 422 } else { 204 }, Vec::new())).await;
    let gateway = Gateway::with_clock(&[], Clock::manual(NOW)).await;
    let retry = json!({"retry": {"min_delay": "10s", "max_delay": "10s", "max_age": "1m"}});
    gateway.webhook("hook", &receiver.url(), retry).await;
    gateway
        .rule("all", &json!({"type": ["order"]}), &["hook"])
        .await;
    gateway
        .http
        .publish(&event("1", "order", json!({})))
        .await
        .ok();
    until(
        async || gateway.queue("hook").await,
        |queue| queue["dead"] == 1,
    )
    .await;

    gateway.clock.advance(Duration::from_secs(7_200));
    redrive(&gateway, json!({})).await;
    receiver.wait_for(2).await;
    until(
        async || gateway.queue("hook").await,
        |queue| queue["dead"] == 1,
    )
    .await;
    let dead = list(&gateway, "").await;
    assert_eq!(
        dead[0]["reason"], "permanent_status",
        "refused again, not expired"
    );
    assert_eq!(dead[0]["attempts"].as_array().expect("a list").len(), 1);
    assert_ne!(dead[0]["id"], 1, "another death, another id");

    redrive(&gateway, json!({"ids": [dead[0]["id"]]})).await;
    let got = receiver.wait_for(3).await;
    assert!(got.iter().all(|got| got.header("ce-id") == "1"));
    assert!(
        got.iter().all(|got| got.header("dak-attempt") == "1"),
        "a clean slate each time"
    );
    let empty = |queue: &Value| {
        ["ready", "delayed", "dead"]
            .iter()
            .all(|name| queue[name] == 0)
    };
    until(async || gateway.queue("hook").await, empty).await;
}

#[tokio::test]
async fn dead_letters_are_purged_by_id_by_reason_by_target_or_all() {
    let mut gateway = pulling().await;
    reject(&gateway, "audit", "order", &["1", "2", "3", "4"]).await;
    reject(&gateway, "billing", "invoice", &["5", "6"]).await;
    let purge = async |which: Value| {
        let purged = gateway
            .http
            .post("/v1/dead-letters/purge", &which)
            .await
            .ok();
        purged["purged"].as_i64()
    };
    assert_eq!(purge(json!({"ids": [1, 77]})).await, Some(1));
    assert_eq!(purge(json!({"reason": "exhausted"})).await, Some(0));
    assert_eq!(purge(json!({"target": "audit", "limit": 1})).await, Some(1));
    assert_eq!(purge(json!({"target": "billing"})).await, Some(2));
    gateway.restart().await;
    assert_eq!(
        ids(&list(&gateway, "").await),
        ["3", "4"],
        "dead letters survive a restart"
    );
    assert_eq!(gateway.queue("audit").await["dead"], 2);
    let purged = gateway
        .http
        .post("/v1/dead-letters/purge", &json!({}))
        .await
        .ok();
    assert_eq!(purged, json!({"purged": 2}));
    assert_eq!(gateway.queue("audit").await["dead"], 0);
    assert_eq!(gateway.receive("audit", 10).await, Vec::<Value>::new());
    let moved = redrive(&gateway, json!({})).await;
    assert_eq!(moved["redriven"], 0, "what is purged is gone");
    gateway.http.get("/v1/events/3").await.ok();
}
