//! Pull queues: receive, long polls, leases and their tokens.

use std::time::Duration;

use dak::clock::{Clock, rfc3339};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::support::{Gateway, Http, NOW, Receiver, event, until};

const SECOND: Duration = Duration::from_secs(1);

/// A gateway whose time stands still, with the pull target `audit` that gets every `order`.
async fn audit(target: Value) -> Gateway {
    let gateway = Gateway::with_clock(&[], Clock::manual(NOW)).await;
    let mut document = json!({"type": "pull"});
    for (key, value) in target.as_object().expect("fields") {
        document[key] = value.clone();
    }
    gateway.http.put("/v1/targets/audit", &document).await.ok();
    gateway
        .rule("all", &json!({"type": ["order"]}), &["audit"])
        .await;
    gateway
}

async fn publish(gateway: &Gateway, id: &str) {
    gateway
        .http
        .publish(&event(id, "order", json!({"n": id})))
        .await
        .ok();
}

/// Waits for events on a connection of its own.
fn long_poll(gateway: &Gateway, ask: Value) -> JoinHandle<Vec<Value>> {
    let http = Http::to(gateway.address());
    tokio::spawn(async move {
        let answer = http.post("/v1/queues/audit/receive", &ask).await.ok();
        answer["events"].as_array().expect("events").clone()
    })
}

/// Moves the time on until the poll ends.
async fn run_out(gateway: &Gateway, poll: JoinHandle<Vec<Value>>) -> Vec<Value> {
    while !poll.is_finished() {
        gateway.clock.advance(SECOND);
        gateway.http.get("/healthz").await;
    }
    poll.await.expect("an answer")
}

fn ids(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|delivery| delivery["event"]["id"].as_str().expect("an id"))
        .collect()
}

fn tokens(events: &[Value]) -> Vec<Value> {
    events
        .iter()
        .map(|delivery| delivery["lease_token"].clone())
        .collect()
}

fn lost(token: &Value) -> Value {
    json!({"lease_token": token, "error": "lease_lost"})
}

#[tokio::test]
async fn a_consumer_gets_whole_events_in_the_order_of_their_acceptance() {
    let gateway = audit(json!({})).await;
    let batch: Vec<Value> = (1..=25)
        .map(|n| event(&n.to_string(), "order", json!({"n": n})))
        .collect();
    gateway.http.publish_batch(&batch).await.ok();

    let first = gateway.receive("audit", 10).await;
    let token = first[0]["lease_token"].clone();
    let whole = json!({
        "lease_token": token,
        "lease_until": rfc3339(NOW + 30_000),
        "receives": 1,
        "failures": 0,
        "seq": 1,
        "rules": ["all"],
        "event": batch[0],
    });
    assert_eq!(first[0], whole);
    let mut seqs: Vec<i64> = Vec::new();
    let rest = [
        gateway.receive("audit", 10).await,
        gateway.receive("audit", 100).await,
    ];
    for delivery in first.iter().chain(rest.iter().flatten()) {
        seqs.push(delivery["seq"].as_i64().expect("a position"));
    }
    assert_eq!(seqs, (1..=25).collect::<Vec<i64>>());
    assert_eq!([first.len(), rest[0].len(), rest[1].len()], [10, 10, 5]);
    assert_eq!(gateway.queue("audit").await["leased"], 25);
}

#[tokio::test]
async fn an_empty_queue_answers_at_once_when_nobody_waits() {
    let gateway = audit(json!({})).await;
    let answer = gateway
        .http
        .post("/v1/queues/audit/receive", &json!({"wait_seconds": 0}))
        .await
        .ok();
    assert_eq!(answer, json!({"events": []}));
    let answer = gateway
        .http
        .publish_text("/v1/queues/audit/receive", "application/json", "")
        .await
        .ok();
    assert_eq!(
        answer,
        json!({"events": []}),
        "an empty body asks for the defaults"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_poll_wakes_when_an_event_is_committed() {
    // The time stands still, so nothing but the commit can end the poll.
    let gateway = audit(json!({})).await;
    for round in 0..20 {
        let poll = long_poll(&gateway, json!({"wait_seconds": 20}));
        gateway.http.get("/healthz").await;
        publish(&gateway, &round.to_string()).await;
        let got = poll.await.expect("an answer");
        assert_eq!(ids(&got), [round.to_string()]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_poll_ends_empty_when_its_time_is_up() {
    let gateway = audit(json!({})).await;
    let poll = long_poll(&gateway, json!({"wait_seconds": 5}));
    assert_eq!(run_out(&gateway, poll).await, Vec::<Value>::new());
    publish(&gateway, "1").await;
    assert_eq!(ids(&gateway.receive("audit", 1).await), ["1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_long_polls_share_what_comes() {
    let gateway = audit(json!({})).await;
    for round in 0..5 {
        let ask = json!({"wait_seconds": 20, "max_events": 1});
        let polls: Vec<_> = (0..5).map(|_| long_poll(&gateway, ask.clone())).collect();
        gateway.http.get("/healthz").await;
        let batch: Vec<Value> = (0..5)
            .map(|n| event(&format!("{round}-{n}"), "order", json!({})))
            .collect();
        if round % 2 == 0 {
            gateway.http.publish_batch(&batch).await.ok();
        } else {
            for one in &batch {
                gateway.http.publish(one).await.ok();
            }
        }
        let mut got = Vec::new();
        for poll in polls {
            let one = poll.await.expect("an answer");
            assert_eq!(one.len(), 1, "each waiter gets one");
            got.extend(one);
        }
        let mut got = ids(&got);
        got.sort_unstable();
        let sent: Vec<String> = (0..5).map(|n| format!("{round}-{n}")).collect();
        assert_eq!(got, sent);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_hangs_up_loses_nothing() {
    // The time stands still, so no lease can run out and cover for it.
    let gateway = audit(json!({})).await;
    for round in 0..20 {
        let ask = r#"{"wait_seconds":20}"#;
        let request = format!(
            "POST /v1/queues/audit/receive HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{ask}",
            ask.len()
        );
        let mut stream = TcpStream::connect(gateway.address())
            .await
            .expect("a connection");
        stream.write_all(request.as_bytes()).await.expect("sent");
        for _ in 0..3 {
            gateway.http.get("/healthz").await;
        }
        drop(stream);
        for _ in 0..5 {
            gateway.http.get("/healthz").await;
        }
        publish(&gateway, &round.to_string()).await;
        let got = long_poll(&gateway, json!({"wait_seconds": 20}))
            .await
            .expect("an answer");
        assert_eq!(ids(&got), [round.to_string()]);
        assert_eq!(got[0]["failures"], 0);
        gateway.settle("audit", "acknowledge", &tokens(&got)).await;
    }
}

#[tokio::test]
async fn each_token_is_settled_for_itself() {
    let gateway = audit(json!({})).await;
    for id in ["1", "2", "3"] {
        publish(&gateway, id).await;
    }
    let held = tokens(&gateway.receive("audit", 3).await);
    let rubbish = json!("rubbish");
    let mut forged = held[2].as_str().expect("a token").to_owned();
    forged.replace_range(20..21, if &forged[20..21] == "A" { "B" } else { "A" });
    let forged = json!(forged);
    let asked = [
        held[0].clone(),
        rubbish.clone(),
        held[1].clone(),
        forged.clone(),
    ];

    let settled = gateway.settle("audit", "acknowledge", &asked).await;
    assert_eq!(
        settled,
        json!({
            "succeeded": [held[0], held[1]],
            "failed": [lost(&rubbish), lost(&forged)],
        })
    );
    let again = gateway.settle("audit", "acknowledge", &asked[..1]).await;
    assert_eq!(again, json!({"succeeded": [], "failed": [lost(&held[0])]}));
    let queue = gateway.queue("audit").await;
    assert_eq!(
        [&queue["ready"], &queue["leased"], &queue["dead"]],
        [0, 1, 0]
    );
}

#[tokio::test]
async fn a_token_of_one_queue_settles_nothing_in_another() {
    let gateway = audit(json!({})).await;
    gateway.pull_rule("billing", "order").await;
    publish(&gateway, "1").await;
    let audited = tokens(&gateway.receive("audit", 1).await);
    let billed = gateway.receive("billing", 1).await;
    assert_eq!(
        ids(&billed),
        ["1"],
        "an event for two targets waits in both"
    );
    for verb in ["acknowledge", "release", "reject", "renew"] {
        let settled = gateway.settle("billing", verb, &audited).await;
        assert_eq!(settled["failed"], json!([lost(&audited[0])]), "{verb}");
    }
    let settled = gateway.settle("audit", "acknowledge", &audited).await;
    assert_eq!(settled["succeeded"], json!(audited));
    assert_eq!(gateway.queue("billing").await["leased"], 1);
}

#[tokio::test]
async fn a_released_delivery_comes_back_at_once_and_is_charged_nothing() {
    let gateway = audit(json!({})).await;
    publish(&gateway, "1").await;
    let first = tokens(&gateway.receive("audit", 1).await);
    let released = gateway.settle("audit", "release", &first).await;
    assert_eq!(released, json!({"succeeded": first, "failed": []}));

    let again = gateway.receive("audit", 1).await;
    assert_eq!([&again[0]["receives"], &again[0]["failures"]], [2, 0]);
    let second = tokens(&again);
    assert_ne!(first, second);
    let late = gateway.settle("audit", "acknowledge", &first).await;
    assert_eq!(
        late["failed"],
        json!([lost(&first[0])]),
        "a stale token settles nothing"
    );
    let settled = gateway.settle("audit", "acknowledge", &second).await;
    assert_eq!(settled["succeeded"], json!(second));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delayed_delivery_waits_for_its_time_and_holds_up_nobody() {
    let gateway = audit(json!({})).await;
    publish(&gateway, "1").await;
    let held = tokens(&gateway.receive("audit", 1).await);
    let ask = json!({"lease_tokens": held, "delay_seconds": 60});
    gateway
        .http
        .post("/v1/queues/audit/release", &ask)
        .await
        .ok();
    publish(&gateway, "2").await;
    assert_eq!(ids(&gateway.receive("audit", 10).await), ["2"]);
    let queue = gateway.queue("audit").await;
    assert_eq!(
        [&queue["ready"], &queue["delayed"], &queue["leased"]],
        [0, 1, 1]
    );

    gateway
        .clock
        .advance(59 * SECOND + Duration::from_millis(999));
    until(
        async || gateway.queue("audit").await,
        |queue| queue["leased"] == 0,
    )
    .await;
    let got = gateway.receive("audit", 10).await;
    assert_eq!(ids(&got), ["2"], "the lease on 2 ran out, 1 is not due yet");
    let poll = long_poll(&gateway, json!({"wait_seconds": 20}));
    gateway.http.get("/healthz").await;
    gateway.clock.advance(Duration::from_millis(1));
    assert_eq!(ids(&poll.await.expect("an answer")), ["1"]);
}

#[tokio::test]
async fn a_rejected_delivery_is_a_dead_letter_with_the_words_of_its_consumer() {
    let gateway = audit(json!({})).await;
    publish(&gateway, "1").await;
    publish(&gateway, "2").await;
    let held = tokens(&gateway.receive("audit", 2).await);
    let ask = json!({"lease_tokens": [held[0]], "reason": "no such order"});
    let settled = gateway
        .http
        .post("/v1/queues/audit/reject", &ask)
        .await
        .ok();
    assert_eq!(settled, json!({"succeeded": [held[0]], "failed": []}));

    let dead = gateway.http.get("/v1/dead-letters").await.ok();
    let dead = dead["dead_letters"].as_array().expect("a list");
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0]["reason"], "rejected_by_consumer");
    assert_eq!(dead[0]["detail"], "no such order");
    assert_eq!([&dead[0]["receives"], &dead[0]["failures"]], [1, 0]);
    assert_eq!(dead[0]["event"]["id"], "1");
    let late = gateway.settle("audit", "acknowledge", &held[..1]).await;
    assert_eq!(late["failed"], json!([lost(&held[0])]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_lease_holds_longer() {
    let gateway = audit(json!({"lease": "2m"})).await;
    for id in ["1", "2", "3"] {
        publish(&gateway, id).await;
    }
    let held = tokens(&gateway.receive("audit", 3).await);
    gateway.clock.advance(100 * SECOND);
    let ask = json!({"lease_tokens": [held[0]], "lease_seconds": 300});
    gateway.http.post("/v1/queues/audit/renew", &ask).await.ok();
    let settled = gateway.settle("audit", "renew", &held[1..2]).await;
    assert_eq!(settled, json!({"succeeded": [held[1]], "failed": []}));

    // 219 s: the third ran out, the second holds by the target's own lease.
    gateway.clock.advance(119 * SECOND);
    until(
        async || gateway.queue("audit").await,
        |queue| queue["leased"] == 2,
    )
    .await;
    let settled = gateway.settle("audit", "acknowledge", &held[1..]).await;
    assert_eq!(
        settled,
        json!({"succeeded": [held[1]], "failed": [lost(&held[2])]})
    );
    let late = gateway.settle("audit", "renew", &held[2..]).await;
    assert_eq!(
        late["failed"],
        json!([lost(&held[2])]),
        "what ran out cannot be renewed"
    );

    gateway.clock.advance(180 * SECOND);
    let settled = gateway.settle("audit", "acknowledge", &held[..1]).await;
    assert_eq!(settled["succeeded"], json!([held[0]]), "at 399 s of 400");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_lease_returns_the_delivery_and_counts_a_failure() {
    let gateway = audit(json!({})).await;
    publish(&gateway, "1").await;
    let ask = json!({"lease_seconds": 10});
    let got = gateway
        .http
        .post("/v1/queues/audit/receive", &ask)
        .await
        .ok();
    assert_eq!(got["events"][0]["lease_until"], rfc3339(NOW + 10_000));
    let stale = got["events"][0]["lease_token"].clone();

    let poll = long_poll(&gateway, json!({"wait_seconds": 20}));
    gateway.http.get("/healthz").await;
    gateway.clock.advance(10 * SECOND);
    let again = poll.await.expect("an answer");
    assert_eq!(ids(&again), ["1"]);
    assert_eq!([&again[0]["receives"], &again[0]["failures"]], [2, 1]);
    let late = gateway
        .settle("audit", "acknowledge", std::slice::from_ref(&stale))
        .await;
    assert_eq!(late["failed"], json!([lost(&stale)]));
    gateway
        .settle("audit", "acknowledge", &tokens(&again))
        .await;
    let queue = gateway.queue("audit").await;
    let counts = [
        &queue["ready"],
        &queue["delayed"],
        &queue["leased"],
        &queue["dead"],
    ];
    assert_eq!(counts, [0, 0, 0, 0]);
}

#[tokio::test]
async fn a_lease_holds_to_its_last_millisecond() {
    let gateway = audit(json!({})).await;
    publish(&gateway, "1").await;
    publish(&gateway, "2").await;
    let held = tokens(&gateway.receive("audit", 2).await);
    gateway.clock.advance(Duration::from_millis(29_999));
    let settled = gateway.settle("audit", "acknowledge", &held[..1]).await;
    assert_eq!(settled["succeeded"], json!([held[0]]));
    gateway.clock.advance(Duration::from_millis(1));
    let settled = gateway.settle("audit", "acknowledge", &held[1..]).await;
    assert_eq!(settled["failed"], json!([lost(&held[1])]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_whose_leases_keep_running_out_is_a_dead_letter() {
    let gateway = audit(json!({"retry": {"max_attempts": 3}})).await;
    publish(&gateway, "1").await;
    for round in 1..=3 {
        let got = long_poll(&gateway, json!({"wait_seconds": 20}))
            .await
            .expect("an answer");
        assert_eq!(
            [&got[0]["receives"], &got[0]["failures"]],
            [round, round - 1]
        );
        gateway.clock.advance(30 * SECOND);
    }
    until(
        async || gateway.queue("audit").await,
        |queue| queue["dead"] == 1,
    )
    .await;
    let dead = gateway.http.get("/v1/dead-letters/1").await.ok();
    assert_eq!(dead["reason"], "exhausted");
    assert_eq!([&dead["receives"], &dead["failures"]], [3, 3]);
    let attempts = dead["attempts"].as_array().expect("a list");
    let ended: Vec<&Value> = attempts.iter().map(|attempt| &attempt["at"]).collect();
    assert_eq!(
        ended,
        [
            &rfc3339(NOW + 30_000),
            &rfc3339(NOW + 60_000),
            &rfc3339(NOW + 90_000)
        ]
    );
    assert!(
        attempts
            .iter()
            .all(|attempt| attempt["outcome"] == "lease_expired"),
        "{dead}"
    );
    let counted = r#"dak_deliveries_dead_lettered_total{target="audit",reason="exhausted"}"#;
    until(
        async || gateway.metric(counted).await,
        |count| *count == 1.0,
    )
    .await;
    assert_eq!(gateway.receive("audit", 1).await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_survive_a_restart() {
    let mut gateway = audit(json!({})).await;
    for id in ["1", "2", "3"] {
        publish(&gateway, id).await;
    }
    let held = tokens(&gateway.receive("audit", 2).await);
    gateway.restart().await;
    assert_eq!(
        ids(&gateway.receive("audit", 10).await),
        ["3"],
        "what is leased stays leased"
    );
    let settled = gateway.settle("audit", "acknowledge", &held[..1]).await;
    assert_eq!(settled["succeeded"], json!([held[0]]));

    gateway.clock.advance(15 * SECOND);
    let poll = long_poll(&gateway, json!({"wait_seconds": 20, "max_events": 1}));
    gateway.http.get("/healthz").await;
    gateway.clock.advance(15 * SECOND);
    let got = poll.await.expect("an answer");
    assert_eq!(ids(&got), ["2"]);
    assert_eq!([&got[0]["receives"], &got[0]["failures"]], [2, 1]);
}

#[tokio::test]
async fn no_more_is_leased_than_the_target_allows() {
    let gateway = audit(json!({"leased_max": 2})).await;
    for id in ["1", "2", "3"] {
        publish(&gateway, id).await;
    }
    let held = gateway.receive("audit", 10).await;
    assert_eq!(ids(&held), ["1", "2"]);
    let refused = gateway
        .http
        .post("/v1/queues/audit/receive", &json!({}))
        .await;
    assert_eq!(refused.headers["retry-after"], "1");
    let problem = refused.problem(429, "too-many-leased");
    assert_eq!(problem["leased_max"], 2);
    gateway
        .settle("audit", "acknowledge", &tokens(&held[..1]))
        .await;
    assert_eq!(ids(&gateway.receive("audit", 10).await), ["3"]);
}

#[tokio::test]
async fn only_pull_targets_that_exist_have_consumers() {
    let gateway = audit(json!({})).await;
    let receiver = Receiver::start().await;
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    for verb in ["receive", "acknowledge", "release", "reject", "renew"] {
        let ask = match verb {
            "receive" => json!({}),
            _ => json!({"lease_tokens": ["x"]}),
        };
        let pushed = gateway
            .http
            .post(&format!("/v1/queues/hook/{verb}"), &ask)
            .await;
        assert_eq!(pushed.problem(409, "not-a-pull-target")["target"], "hook");
        let unknown = gateway
            .http
            .post(&format!("/v1/queues/nobody/{verb}"), &ask)
            .await;
        assert_eq!(unknown.problem(404, "not-found")["target"], "nobody");
    }
}

#[tokio::test]
async fn what_a_consumer_asks_for_is_checked() {
    let gateway = audit(json!({})).await;
    let thousand_one = vec!["x"; 1_001];
    let refused = [
        ("receive", json!({"max_events": 0})),
        ("receive", json!({"max_events": 101})),
        ("receive", json!({"wait_seconds": 21})),
        ("receive", json!({"wait_seconds": -1})),
        ("receive", json!({"lease_seconds": 0})),
        ("receive", json!({"lease_seconds": 43_201})),
        ("receive", json!({"max_event": 1})),
        ("receive", json!([])),
        ("acknowledge", json!({})),
        ("acknowledge", json!({"lease_tokens": []})),
        ("acknowledge", json!({"lease_tokens": thousand_one})),
        ("acknowledge", json!({"lease_tokens": [7]})),
        (
            "release",
            json!({"lease_tokens": ["x"], "delay_seconds": 2_592_001}),
        ),
        ("renew", json!({"lease_tokens": ["x"], "lease_seconds": 0})),
        (
            "renew",
            json!({"lease_tokens": ["x"], "lease_seconds": 43_201}),
        ),
    ];
    for (verb, ask) in refused {
        let answer = gateway
            .http
            .post(&format!("/v1/queues/audit/{verb}"), &ask)
            .await;
        let is_refused = answer.status == 400;
        assert!(
            is_refused,
            "{verb} {ask}: {} {}",
            answer.status,
            answer.text()
        );
        answer.problem(400, "invalid-request");
    }
    publish(&gateway, "1").await;
    let most = json!({"max_events": 100, "wait_seconds": 20, "lease_seconds": 43_200});
    let got = gateway
        .http
        .post("/v1/queues/audit/receive", &most)
        .await
        .ok();
    assert_eq!(got["events"][0]["lease_until"], rfc3339(NOW + 43_200_000));
    let most = json!({"lease_tokens": vec![&got["events"][0]["lease_token"]; 1], "delay_seconds": 2_592_000});
    let settled = gateway
        .http
        .post("/v1/queues/audit/release", &most)
        .await
        .ok();
    assert_eq!(settled["failed"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_target_hands_out_nothing_until_it_is_resumed() {
    let mut gateway = audit(json!({})).await;
    let paused = gateway
        .http
        .post("/v1/targets/audit/pause", &json!({}))
        .await
        .ok();
    assert_eq!(paused["queue"]["paused"], true);
    publish(&gateway, "1").await;
    assert_eq!(gateway.receive("audit", 1).await, Vec::<Value>::new());
    gateway.restart().await;
    assert_eq!(
        gateway.queue("audit").await["paused"],
        true,
        "a pause survives a restart"
    );
    assert_eq!(gateway.receive("audit", 1).await, Vec::<Value>::new());

    let poll = long_poll(&gateway, json!({"wait_seconds": 20}));
    gateway.http.get("/healthz").await;
    gateway
        .http
        .post("/v1/targets/audit/resume", &json!({}))
        .await
        .ok();
    assert_eq!(ids(&poll.await.expect("an answer")), ["1"]);
}
