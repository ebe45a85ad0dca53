//! Push delivery: what each answer of a webhook leads to, when it is tried again, and how it is sent.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dak::clock::{Clock, rfc3339};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{Gateway, Got, NOW, Receiver, event, until};

const SECOND: Duration = Duration::from_secs(1);

/// A gateway whose time stands still, with the webhook `hook` that gets every `order`.
async fn pushing(receiver: &Receiver, more: Value) -> Gateway {
    let gateway = Gateway::with_clock(&[], Clock::manual(NOW)).await;
    gateway.webhook("hook", &receiver.url(), more).await;
    gateway
        .rule("all", &json!({"type": ["order"]}), &["hook"])
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

/// Publishes an event to a webhook that gets one attempt; answers with its dead letter.
async fn dead_at_once(gateway: &Gateway, id: &str) -> Value {
    publish(gateway, id).await;
    until(
        async || gateway.queue("hook").await,
        |queue| queue["dead"] == 1,
    )
    .await;
    gateway.http.get("/v1/dead-letters/1").await.ok()
}

fn ids(got: &[Got]) -> Vec<&str> {
    got.iter().map(|got| got.header("ce-id")).collect()
}

fn attempts(got: &[Got]) -> Vec<&str> {
    got.iter().map(|got| got.header("dak-attempt")).collect()
}

fn counts(queue: &Value) -> [i64; 4] {
    ["ready", "delayed", "leased", "dead"].map(|name| queue[name].as_i64().expect("a count"))
}

async fn settled(gateway: &Gateway) -> Value {
    until(
        async || gateway.queue("hook").await,
        |queue| counts(queue)[..3] == [0, 0, 0],
    )
    .await
}

/// What a status leads to.
enum Fate {
    Delivered,
    Retried,
    Asked(i64),
    Refused,
    Dead(&'static str),
}

/// Status, `Retry-After`, what it leads to.
const TABLE: [(u16, &str, Fate); 31] = [
    (200, "", Fate::Delivered),
    (201, "", Fate::Delivered),
    (202, "", Fate::Delivered),
    (204, "", Fate::Delivered),
    (299, "", Fate::Delivered),
    (300, "", Fate::Dead("permanent_status")),
    (301, "", Fate::Dead("permanent_status")),
    (302, "", Fate::Dead("permanent_status")),
    (307, "", Fate::Dead("permanent_status")),
    (308, "", Fate::Dead("permanent_status")),
    (400, "", Fate::Dead("permanent_status")),
    (401, "", Fate::Refused),
    (402, "", Fate::Dead("permanent_status")),
    (403, "", Fate::Refused),
    (404, "", Fate::Retried),
    (408, "", Fate::Retried),
    (409, "", Fate::Retried),
    (410, "", Fate::Dead("endpoint_gone")),
    (413, "", Fate::Dead("permanent_status")),
    (415, "", Fate::Dead("permanent_status")),
    (418, "", Fate::Dead("permanent_status")),
    (422, "", Fate::Dead("permanent_status")),
    (425, "", Fate::Retried),
    (429, "", Fate::Asked(1_000)),
    (429, "90", Fate::Asked(90_000)),
    (500, "", Fate::Retried),
    (502, "", Fate::Retried),
    (503, "", Fate::Retried),
    (503, "Tue, 14 Nov 2023 22:15:20 GMT", Fate::Asked(120_000)),
    (504, "", Fate::Retried),
    (599, "", Fate::Retried),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_status_leads_where_the_table_says() {
    let receiver = Receiver::answering(|_, got| {
        let row: usize = got.path.trim_start_matches('/').parse().expect("a row");
        let (status, after, _) = &TABLE[row];
        let mut headers = vec![("location", "/followed".to_owned())];
        if !after.is_empty() {
            headers.push(("retry-after", (*after).to_owned()));
        }
        (*status, headers)
    })
    .await;
    let gateway = Gateway::with_clock(&[], Clock::manual(NOW)).await;
    for row in 0..TABLE.len() {
        let url = format!("http://{}/{row}", receiver.address);
        let retry = json!({"retry": {"min_delay": "1s", "max_delay": "1s"}});
        gateway.webhook(&format!("row-{row}"), &url, retry).await;
        let types = json!({"type": [format!("t{row}")]});
        gateway
            .rule(&format!("rule-{row}"), &types, &[&format!("row-{row}")])
            .await;
        let one = event(&row.to_string(), &format!("t{row}"), json!({}));
        gateway.http.publish(&one).await.ok();
    }
    for (row, (status, after, fate)) in TABLE.iter().enumerate() {
        let name = format!("row-{row}");
        let queue = until(
            async || gateway.queue(&name).await,
            |queue| queue["ready"] == 0,
        )
        .await;
        let shown = format!("{status} {after}: {queue}");
        match fate {
            Fate::Delivered => {
                assert_eq!(
                    (counts(&queue), &queue["held"]),
                    ([0, 0, 0, 0], &Value::Null),
                    "{shown}"
                );
            }
            Fate::Retried => {
                assert_eq!(
                    (counts(&queue), &queue["held"]),
                    ([0, 1, 0, 0], &Value::Null),
                    "{shown}"
                );
            }
            Fate::Asked(wait) => {
                let held = json!({"why": "asked", "until": rfc3339(NOW + wait)});
                assert_eq!(
                    (counts(&queue), &queue["held"]),
                    ([0, 1, 0, 0], &held),
                    "{shown}"
                );
            }
            Fate::Refused => {
                let held = json!({"why": "breaker", "until": rfc3339(NOW + 5_000)});
                assert_eq!(
                    (counts(&queue), &queue["held"]),
                    ([0, 1, 0, 0], &held),
                    "{shown}"
                );
            }
            Fate::Dead(reason) => {
                assert_eq!(counts(&queue), [0, 0, 0, 1], "{shown}");
                let list = format!("/v1/dead-letters?target={name}");
                let dead = gateway.http.get(&list).await.ok()["dead_letters"][0].clone();
                assert_eq!(dead["reason"], *reason, "{shown}");
                assert_eq!(dead["detail"], "an answer", "{shown}");
                let gone = *reason == "endpoint_gone";
                let switched = if gone { json!(reason) } else { Value::Null };
                let is_switched = |queue: &Value| queue["disabled"] == switched;
                until(async || gateway.queue(&name).await, is_switched).await;
            }
        }
    }
    let got = receiver.got();
    assert_eq!(got.len(), TABLE.len(), "one attempt each");
    assert!(
        got.iter().all(|got| got.path != "/followed"),
        "redirects are not followed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_delivery_is_tried_again_within_the_bounds_of_its_policy() {
    let receiver =
        Receiver::answering(|nth, _| (if nth < 3 { 500 } else { 204 }, Vec::new())).await;
    let retry = json!({"retry": {"min_delay": "10s", "max_delay": "30s"}});
    let gateway = pushing(&receiver, retry).await;
    publish(&gateway, "1").await;
    for (attempt, longest) in [(1, 20), (2, 30), (3, 30)] {
        receiver.wait_for(attempt).await;
        until(
            async || gateway.queue("hook").await,
            |queue| queue["delayed"] == 1,
        )
        .await;
        gateway.clock.advance(Duration::from_millis(9_999));
        assert_eq!(
            gateway.deliver("hook").await,
            0,
            "never before the shortest wait"
        );
        assert_eq!(receiver.got().len(), attempt);
        gateway
            .clock
            .advance(longest * SECOND - Duration::from_millis(9_999));
    }
    let got = receiver.wait_for(4).await;
    assert_eq!(attempts(&got), ["1", "2", "3", "4"]);
    assert_eq!(counts(&settled(&gateway).await), [0, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_asks_for_a_pause_gets_it_whole_and_nothing_is_charged() {
    let receiver = Receiver::answering(|nth, _| match nth {
        0 => (429, vec![("retry-after", "120".to_owned())]),
        _ => (204, Vec::new()),
    })
    .await;
    let retry = json!({"retry": {"min_delay": "1s", "max_delay": "1s", "max_attempts": 1}});
    let gateway = pushing(&receiver, retry).await;
    publish(&gateway, "1").await;
    let held = json!({"why": "asked", "until": rfc3339(NOW + 120_000)});
    until(
        async || gateway.queue("hook").await,
        |queue| queue["held"] == held,
    )
    .await;
    until(
        async || gateway.queue("hook").await,
        |queue| queue["delayed"] == 1,
    )
    .await;

    publish(&gateway, "2").await;
    gateway.clock.advance(Duration::from_millis(119_999));
    assert_eq!(gateway.deliver("hook").await, 0);
    assert_eq!(receiver.got().len(), 1, "the whole target waits");
    gateway.clock.advance(Duration::from_millis(1));
    let got = receiver.wait_for(3).await;
    let mut later = ids(&got[1..]);
    later.sort_unstable();
    assert_eq!(later, ["1", "2"]);
    assert_eq!(
        attempts(&got),
        ["1", "1", "1"],
        "a pause is no failed attempt"
    );
    let queue = settled(&gateway).await;
    assert_eq!(
        (counts(&queue), &queue["held"]),
        ([0, 0, 0, 0], &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_keeps_failing_is_held_and_probed() {
    let receiver =
        Receiver::answering(|nth, _| (if nth < 11 { 500 } else { 204 }, Vec::new())).await;
    let more = json!({"concurrency": 1, "retry": {"min_delay": "1ms", "max_delay": "1ms"}});
    let gateway = pushing(&receiver, more).await;
    let batch: Vec<Value> = (0..20)
        .map(|n| event(&n.to_string(), "order", json!({})))
        .collect();
    gateway.http.publish_batch(&batch).await.ok();
    let hold = |until: i64| json!({"why": "breaker", "until": rfc3339(until)});
    let held = |until_at: i64| {
        let hold = hold(until_at);
        move |queue: &Value| queue["held"] == hold && queue["delayed"] == 10
    };
    until(async || gateway.queue("hook").await, held(NOW + 5_000)).await;
    assert_eq!(receiver.got().len(), 10, "ten failures in a row");
    gateway.clock.advance(Duration::from_millis(4_999));
    assert_eq!(gateway.deliver("hook").await, 0);

    gateway.clock.advance(Duration::from_millis(1));
    receiver.wait_for(11).await;
    let again = hold(NOW + 15_000);
    let queue = until(
        async || gateway.queue("hook").await,
        |queue| queue["held"] == again,
    )
    .await;
    assert_eq!(queue["dead"], 0);
    assert_eq!(gateway.deliver("hook").await, 0);
    assert_eq!(receiver.got().len(), 11, "one probe, which failed");

    gateway.clock.advance(10 * SECOND);
    let got = receiver.wait_for(11 + 20).await;
    let mut taken = ids(&got[11..]);
    taken.sort_unstable_by_key(|id| id.parse::<u32>().expect("a number"));
    let sent: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    assert_eq!(taken, sent);
    let queue = settled(&gateway).await;
    assert_eq!(
        (counts(&queue), &queue["held"]),
        ([0, 0, 0, 0], &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_whose_endpoint_is_gone_is_disabled_and_keeps_accepting() {
    let receiver =
        Receiver::answering(|nth, _| (if nth == 0 { 410 } else { 204 }, Vec::new())).await;
    let mut gateway = pushing(&receiver, json!({})).await;
    publish(&gateway, "1").await;
    until(
        async || gateway.queue("hook").await,
        |queue| queue["disabled"] == "endpoint_gone",
    )
    .await;
    until(
        async || gateway.queue("hook").await,
        |queue| queue["dead"] == 1,
    )
    .await;
    let status = gateway.http.get("/v1/status").await.ok();
    assert_eq!(status["targets"][0]["queue"]["disabled"], "endpoint_gone");

    publish(&gateway, "2").await;
    assert_eq!(gateway.deliver("hook").await, 0);
    gateway.restart().await;
    assert_eq!(gateway.deliver("hook").await, 0);
    let queue = gateway.queue("hook").await;
    assert_eq!(
        (counts(&queue), &queue["disabled"]),
        ([1, 0, 0, 1], &json!("endpoint_gone"))
    );

    gateway
        .http
        .post("/v1/targets/hook/enable", &json!({}))
        .await
        .ok();
    let got = receiver.wait_for(2).await;
    assert_eq!(ids(&got), ["1", "2"]);
    let queue = settled(&gateway).await;
    assert_eq!(
        (counts(&queue), &queue["disabled"]),
        ([0, 0, 0, 1], &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_webhook_gets_nothing_until_it_is_resumed() {
    let receiver = Receiver::start().await;
    let gateway = pushing(&receiver, json!({})).await;
    gateway
        .http
        .post("/v1/targets/hook/pause", &json!({}))
        .await
        .ok();
    publish(&gateway, "1").await;
    assert_eq!(gateway.deliver("hook").await, 0);
    assert_eq!(counts(&gateway.queue("hook").await), [1, 0, 0, 0]);
    gateway
        .http
        .post("/v1/targets/hook/resume", &json!({}))
        .await
        .ok();
    receiver.wait_for(1).await;
    assert_eq!(counts(&settled(&gateway).await), [0, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_does_not_come_in_time_is_a_failure() {
    let receiver = Receiver::holding().await;
    let more = json!({"timeout": "100ms", "retry": {"max_attempts": 1}});
    let gateway = pushing(&receiver, more).await;
    let dead = dead_at_once(&gateway, "1").await;
    assert_eq!(
        [&dead["reason"], &dead["attempts"][0]["outcome"]],
        ["exhausted", "timeout"]
    );
    assert_eq!(dead["attempts"][0]["status"], Value::Null);
    assert_eq!(dead["attempts"][0]["excerpt"], "no answer within 100 ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_cannot_be_reached_is_a_failure_with_its_cause() {
    let receiver = Receiver::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let closed = listener.local_addr().expect("an address");
    drop(listener);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let rubbish = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut read = [0; 1024];
            let _read = stream.read(&mut read).await;
            let _written = stream.write_all(b"SSH-2.0-none\r\n\r\n").await;
        }
    });
    for (url, cause) in [
        (format!("http://{closed}/"), "connect"),
        (format!("http://{rubbish}/"), "protocol"),
        (format!("https://{}/", receiver.address), "tls"),
    ] {
        let gateway = Gateway::with_clock(&[], Clock::manual(NOW)).await;
        gateway
            .webhook("hook", &url, json!({"retry": {"max_attempts": 1}}))
            .await;
        gateway
            .rule("all", &json!({"type": ["order"]}), &["hook"])
            .await;
        let dead = dead_at_once(&gateway, "1").await;
        assert_eq!(dead["attempts"][0]["outcome"], cause, "{dead}");
        assert!(
            !dead["attempts"][0]["excerpt"]
                .as_str()
                .expect("a text")
                .is_empty()
        );
    }
}

#[tokio::test]
async fn a_private_address_is_refused_unless_the_target_says_so() {
    let gateway = Gateway::start().await;
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.1.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[fd00::1]",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    ] {
        let document = json!({"type": "webhook", "url": format!("http://{host}:9/")});
        let answer = gateway.http.put("/v1/targets/hook", &document).await;
        assert_eq!(answer.status, 422, "{host}: {}", answer.text());
        let problem = answer.problem(422, "findings");
        assert!(
            problem["findings"][0]["message"]
                .as_str()
                .expect("a text")
                .contains("may not reach"),
            "{problem}"
        );
    }
    let document = json!({"type": "webhook", "url": "http://93.184.215.14:9/"});
    gateway.http.put("/v1/targets/hook", &document).await.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_leads_to_a_private_address_is_refused_when_it_is_connected_to() {
    let receiver = Receiver::start().await;
    let port = receiver.address.port();
    for (settings, document) in [
        (
            &[][..],
            json!({"type": "webhook", "url": format!("http://localhost:{port}/")}),
        ),
        (
            &[("webhook.private_addresses", "never")][..],
            json!({"type": "webhook", "url": receiver.url(), "allow_private": true}),
        ),
    ] {
        let gateway = Gateway::with_clock(settings, Clock::manual(NOW)).await;
        let mut document = document;
        document["retry"] = json!({"max_attempts": 1});
        gateway.http.put("/v1/targets/hook", &document).await.ok();
        gateway
            .rule("all", &json!({"type": ["order"]}), &["hook"])
            .await;
        let dead = dead_at_once(&gateway, "1").await;
        assert_eq!(dead["attempts"][0]["outcome"], "address_refused", "{dead}");
        assert!(receiver.got().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_under_way_than_the_target_allows() {
    let receiver = Receiver::holding().await;
    let gateway = pushing(&receiver, json!({"concurrency": 3})).await;
    let batch: Vec<Value> = (0..10)
        .map(|n| event(&n.to_string(), "order", json!({})))
        .collect();
    gateway.http.publish_batch(&batch).await.ok();
    for come in 3..10 {
        receiver.wait_for(come).await;
        gateway.http.get("/healthz").await;
        assert_eq!(receiver.got().len(), come, "the others wait");
        receiver.let_go(1);
    }
    receiver.let_go(10);
    receiver.wait_for(10).await;
    assert_eq!(counts(&settled(&gateway).await), [0, 0, 0, 0]);
    assert_eq!(receiver.present_most(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_be_too_old_at_its_next_attempt_is_dead_now() {
    let receiver = Receiver::answering(|_, _| (500, Vec::new())).await;
    let retry = json!({"retry": {"min_delay": "40s", "max_delay": "40s", "max_age": "1m"}});
    let gateway = pushing(&receiver, retry).await;
    publish(&gateway, "1").await;
    until(
        async || gateway.queue("hook").await,
        |queue| queue["delayed"] == 1,
    )
    .await;
    gateway.clock.advance(40 * SECOND);
    until(
        async || gateway.queue("hook").await,
        |queue| queue["dead"] == 1,
    )
    .await;
    let dead = gateway.http.get("/v1/dead-letters/1").await.ok();
    assert_eq!(
        [&dead["reason"], &dead["died_at"]],
        ["expired", &rfc3339(NOW + 40_000)[..]]
    );
    assert_eq!(dead["attempts"].as_array().expect("a list").len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_that_an_event_gives_itself_is_respected() {
    let receiver = Receiver::answering(|_, _| (500, Vec::new())).await;
    let retry = json!({"retry": {"min_delay": "40s", "max_delay": "40s"}});
    let gateway = pushing(&receiver, retry).await;
    let mut past = event("past", "order", json!({}));
    past["expirytime"] = json!(rfc3339(NOW));
    gateway.http.publish(&past).await.ok();
    until(
        async || gateway.queue("hook").await,
        |queue| queue["dead"] == 1,
    )
    .await;
    assert!(receiver.got().is_empty(), "it is not sent at all");
    let mut soon = event("soon", "order", json!({}));
    soon["expirytime"] = json!(rfc3339(NOW + 40_000));
    gateway.http.publish(&soon).await.ok();
    until(
        async || gateway.queue("hook").await,
        |queue| queue["dead"] == 2,
    )
    .await;
    assert_eq!(ids(&receiver.got()), ["soon"]);
    let mut later = event("later", "order", json!({}));
    later["expirytime"] = json!(rfc3339(NOW + 40_001));
    gateway.http.publish(&later).await.ok();
    until(
        async || gateway.queue("hook").await,
        |queue| queue["delayed"] == 1,
    )
    .await;
    let dead = gateway
        .http
        .get("/v1/dead-letters?reason=expired")
        .await
        .ok();
    assert_eq!(dead["dead_letters"].as_array().expect("a list").len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_lays_out_what_its_target_gets() {
    let receiver = Receiver::start().await;
    let gateway = pushing(&receiver, json!({})).await;
    let rule = json!({
        "pattern": {"type": ["order"]},
        "targets": ["hook"],
        "transform": {
            "paths": {"order": "$.data.id", "amounts": "$.data.lines[?@.amount > 10].amount", "source": "$.source"},
            "template": {"order": "<order>", "large": "<amounts>", "text": "order <order> of <source>"},
        },
    });
    gateway.http.put("/v1/rules/all", &rule).await.ok();
    let data = json!({"id": 7, "lines": [{"amount": 5}, {"amount": 11}, {"amount": 12.50}]});
    gateway.http.publish(&event("1", "order", data)).await.ok();
    let got = receiver.wait_for(1).await;
    let body: Value = serde_json::from_slice(&got[0].body).expect("JSON");
    assert_eq!(
        body,
        json!({"order": 7, "large": [11, 12.50], "text": "order 7 of /test"})
    );
    assert_eq!(got[0].header("ce-id"), "1");
    assert_eq!(got[0].header("content-type"), "application/json");

    let bytes =
        r#"{"specversion":"1.0","id":"2","source":"/test","type":"order","data_base64":"AAEC"}"#;
    gateway
        .http
        .publish_text("/v1/events", "application/cloudevents+json", bytes)
        .await
        .ok();
    until(
        async || gateway.queue("hook").await,
        |queue| queue["dead"] == 1,
    )
    .await;
    let dead = gateway.http.get("/v1/dead-letters/1").await.ok();
    assert_eq!(
        [&dead["reason"], &dead["failures"]],
        [&json!("transform_error"), &json!(0)]
    );
    assert_eq!(
        dead["event"]["data_base64"], "AAEC",
        "the dead letter is the event as it came"
    );
    assert_eq!(receiver.got().len(), 1);
}

/// Whether a signature is that of a secret over the id, the time and the body.
fn is_signed(got: &Got, secret: &str, signature: &str) -> bool {
    let key = STANDARD
        .decode(secret.trim_start_matches("whsec_"))
        .expect("base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key");
    let head = format!(
        "{}.{}.",
        got.header("webhook-id"),
        got.header("webhook-timestamp")
    );
    mac.update(head.as_bytes());
    mac.update(&got.body);
    signature == format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_carries_the_event_its_number_its_headers_and_its_signatures() {
    let receiver =
        Receiver::answering(|nth, _| (if nth == 0 { 500 } else { 204 }, Vec::new())).await;
    let secrets = ["new", "old"].map(|word| {
        let bytes: Vec<u8> = word.bytes().cycle().take(32).collect();
        format!("whsec_{}", STANDARD.encode(bytes))
    });
    let more = json!({
        "headers": {"authorization": "Bearer t0ken", "x-shop": "dhaka"},
        "secrets": secrets,
        "retry": {"min_delay": "7s", "max_delay": "7s"},
    });
    let gateway = pushing(&receiver, more).await;
    let text = r#"{"specversion":"1.0","id":"a b","source":"/test","type":"order","subject":"চা",
        "time":"2023-11-14T22:13:20.50+06:00","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "datacontenttype":"application/json","data":{"amount": 1.0}}"#;
    gateway
        .http
        .publish_text("/v1/events", "application/cloudevents+json", text)
        .await
        .ok();
    until(
        async || gateway.queue("hook").await,
        |queue| queue["delayed"] == 1,
    )
    .await;
    gateway.clock.advance(7 * SECOND);
    let got = receiver.wait_for(2).await;

    for (number, one) in (1..).zip(&got) {
        assert_eq!([&one.method[..], &one.path[..]], ["POST", "/hook"]);
        assert_eq!(
            &one.body[..],
            br#"{"amount": 1.0}"#,
            "the bytes as they came"
        );
        assert_eq!(one.attribute("id"), "a b");
        assert_eq!(one.attribute("subject"), "চা");
        assert_eq!(one.header("ce-time"), "2023-11-14T22:13:20.50+06:00");
        assert_eq!(
            one.header("ce-traceparent"),
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        );
        assert_eq!(one.header("dak-attempt"), number.to_string());
        assert_eq!(
            [one.header("authorization"), one.header("x-shop")],
            ["Bearer t0ken", "dhaka"]
        );
        assert!(one.header("user-agent").starts_with("dak/"));
        let sent_at = NOW / 1_000 + 7 * (number - 1);
        assert_eq!(one.header("webhook-timestamp"), sent_at.to_string());
        let signatures: Vec<&str> = one.header("webhook-signature").split(' ').collect();
        assert_eq!(signatures.len(), 2);
        for (secret, signature) in secrets.iter().zip(signatures) {
            assert!(is_signed(one, secret, signature), "{signature}");
        }
    }
    assert_eq!(got[0].header("webhook-id"), got[1].header("webhook-id"));
    let shown = gateway.http.get("/v1/targets/hook").await.ok().to_string();
    assert!(
        !shown.contains("whsec_") && !shown.contains("t0ken"),
        "secrets are not shown: {shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_may_ask_for_whole_events() {
    let receiver = Receiver::start().await;
    let gateway = pushing(&receiver, json!({"mode": "structured"})).await;
    let whole = event("1", "order", json!({"amount": 7}));
    gateway.http.publish(&whole).await.ok();
    let got = receiver.wait_for(1).await;
    let media_type = got[0].header("content-type").split(';').next();
    assert_eq!(media_type, Some("application/cloudevents+json"));
    let body: Value = serde_json::from_slice(&got[0].body).expect("JSON");
    assert_eq!(body, whole);
    assert_eq!(got[0].header("ce-id"), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_changes_takes_its_waiting_deliveries_along() {
    let old = Receiver::answering(|_, _| (500, Vec::new())).await;
    let new = Receiver::start().await;
    let retry = json!({"retry": {"min_delay": "10s", "max_delay": "10s"}});
    let gateway = pushing(&old, retry.clone()).await;
    publish(&gateway, "1").await;
    until(
        async || gateway.queue("hook").await,
        |queue| queue["delayed"] == 1,
    )
    .await;
    gateway
        .http
        .post("/v1/targets/hook/pause", &json!({}))
        .await
        .ok();
    publish(&gateway, "2").await;
    gateway.webhook("hook", &new.url(), retry).await;
    assert_eq!(
        gateway.queue("hook").await["paused"],
        true,
        "a change does not resume"
    );
    gateway
        .http
        .post("/v1/targets/hook/resume", &json!({}))
        .await
        .ok();
    assert_eq!(ids(&new.wait_for(1).await), ["2"]);
    gateway.clock.advance(10 * SECOND);
    let got = new.wait_for(2).await;
    assert_eq!(
        (ids(&got), attempts(&got)),
        (vec!["2", "1"], vec!["1", "2"])
    );
    assert_eq!(old.got().len(), 1);
    assert_eq!(counts(&settled(&gateway).await), [0, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_deliveries_survive_a_restart_with_their_attempts() {
    let receiver =
        Receiver::answering(|nth, _| (if nth < 2 { 500 } else { 204 }, Vec::new())).await;
    let more = json!({"concurrency": 1, "retry": {"min_delay": "10s", "max_delay": "10s"}});
    let mut gateway = pushing(&receiver, more).await;
    publish(&gateway, "1").await;
    publish(&gateway, "2").await;
    until(
        async || gateway.queue("hook").await,
        |queue| queue["delayed"] == 2,
    )
    .await;
    gateway
        .http
        .post("/v1/targets/hook/pause", &json!({}))
        .await
        .ok();
    publish(&gateway, "3").await;
    gateway.restart().await;
    assert_eq!(counts(&gateway.queue("hook").await), [1, 2, 0, 0]);
    gateway
        .http
        .post("/v1/targets/hook/resume", &json!({}))
        .await
        .ok();
    assert_eq!(ids(&receiver.wait_for(3).await)[2], "3");
    gateway.clock.advance(10 * SECOND);
    let got = receiver.wait_for(5).await;
    let mut later = ids(&got[3..]);
    later.sort_unstable();
    assert_eq!(
        (later, attempts(&got[3..])),
        (vec!["1", "2"], vec!["2", "2"])
    );
    assert_eq!(counts(&settled(&gateway).await), [0, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_with_waiting_deliveries_is_removed_only_by_force() {
    let receiver = Receiver::start().await;
    let gateway = pushing(&receiver, json!({})).await;
    gateway
        .http
        .post("/v1/targets/hook/pause", &json!({}))
        .await
        .ok();
    publish(&gateway, "1").await;
    let refused = gateway
        .http
        .delete("/v1/targets/hook")
        .await
        .problem(409, "queue-not-empty");
    assert_eq!(refused["waiting"], 1);
    gateway
        .http
        .delete("/v1/targets/hook?force=true")
        .await
        .problem(422, "findings");
    assert_eq!(
        counts(&gateway.queue("hook").await),
        [1, 0, 0, 0],
        "a rule still names it"
    );

    gateway.http.delete("/v1/rules/all").await.ok();
    gateway
        .http
        .delete("/v1/targets/hook?force=true")
        .await
        .ok();
    gateway
        .http
        .get("/v1/targets/hook")
        .await
        .problem(404, "not-found");
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    gateway
        .rule("all", &json!({"type": ["order"]}), &["hook"])
        .await;
    let queue = gateway.queue("hook").await;
    assert_eq!(
        (counts(&queue), &queue["paused"]),
        ([0, 0, 0, 0], &json!(false))
    );
    publish(&gateway, "2").await;
    assert_eq!(
        ids(&receiver.wait_for(1).await),
        ["2"],
        "the new target begins empty"
    );
}
