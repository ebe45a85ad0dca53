//! The claim check: large data travels beside the queues and arrives as it came.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dak::clock::{Clock, millis};
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::support::{Answer, Gateway, NOW, Receiver, event, until};

const THRESHOLD: &[(&str, &str)] = &[("claim_check.threshold", "1KiB")];

async fn publish_bytes(gateway: &Gateway, id: &str, content_type: &str, body: Vec<u8>) -> Answer {
    let request = Request::post("/v1/events")
        .header("ce-specversion", "1.0")
        .header("ce-id", id)
        .header("ce-source", "/test")
        .header("ce-type", "file")
        .header("content-type", content_type);
    gateway
        .http
        .send(request.body(Full::from(body)).expect("a request"))
        .await
}

/// Bytes of every value, and more than the threshold.
fn noise() -> Vec<u8> {
    (0..2_000_u32)
        .map(|at| (at * at % 256).to_le_bytes()[0])
        .collect()
}

/// All files of the blob store.
fn blobs(gateway: &Gateway) -> Vec<PathBuf> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, files)
            } else {
                files.push(path)
            }
        }
    }
    let mut files = Vec::new();
    walk(&gateway.folder().join("blobs"), &mut files);
    files
}

async fn is_offloaded(gateway: &Gateway, seq: u64) -> Value {
    gateway.http.get(&format!("/v1/events/{seq}")).await.ok()["offloaded"].clone()
}

/// The path of a `dataref`, which must lead to this gateway.
fn path_of(gateway: &Gateway, dataref: &Value) -> String {
    let dataref = dataref.as_str().expect("a dataref");
    let base = format!("http://{}", gateway.address());
    dataref
        .strip_prefix(&base)
        .expect("an address of this gateway")
        .to_owned()
}

#[tokio::test]
async fn only_data_above_the_threshold_is_offloaded() {
    let gateway = Gateway::with(THRESHOLD).await;
    publish_bytes(&gateway, "1", "text/plain", vec![b'x'; 1024])
        .await
        .ok();
    assert_eq!(is_offloaded(&gateway, 1).await, false);
    assert!(blobs(&gateway).is_empty());
    publish_bytes(&gateway, "2", "text/plain", vec![b'x'; 1025])
        .await
        .ok();
    assert_eq!(is_offloaded(&gateway, 2).await, true);
    let files = blobs(&gateway);
    assert_eq!(files.len(), 1);
    assert_eq!(std::fs::read(&files[0]).expect("a file"), vec![b'x'; 1025]);
    let shown = gateway.http.get("/v1/events/2").await.ok();
    assert_eq!(shown["data_bytes"], 1025);
    assert_eq!(shown["event"].get("data"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inline_targets_get_offloaded_data_byte_for_byte() {
    let gateway = Gateway::with(THRESHOLD).await;
    let receiver = Receiver::start().await;
    gateway.pull_rule("audit", "file").await;
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    gateway
        .rule("push", &json!({"type": ["file"]}), &["hook"])
        .await;
    let filler = "y".repeat(2_000);
    let number = format!("{{ \"n\": 12345678901234567890.10,\n \"filler\": \"{filler}\" }}");
    let bodies = [
        ("application/octet-stream", noise()),
        ("application/json", number.clone().into_bytes()),
        ("text/plain", "ä".repeat(1_000).into_bytes()),
    ];
    for (at, (content_type, body)) in bodies.iter().enumerate() {
        publish_bytes(&gateway, &at.to_string(), content_type, body.clone())
            .await
            .ok();
        let got = receiver.wait_for(at + 1).await.pop().expect("a delivery");
        assert_eq!(got.header("content-type"), *content_type);
        assert_eq!(got.header("ce-dataref"), "");
        assert!(got.body == body[..], "{content_type}");
    }
    let pulled = gateway
        .http
        .post("/v1/queues/audit/receive", &json!({}))
        .await
        .text();
    assert!(pulled.contains(&number));
    let pulled: Value = serde_json::from_str(&pulled).expect("JSON");
    let [noise, _, text] = [0, 1, 2].map(|at| &pulled["events"][at]["event"]);
    let decoded = |event: &Value| {
        use base64::Engine as _;
        let encoded = event["data_base64"].as_str().expect("base64");
        base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .expect("base64")
    };
    assert!(decoded(noise) == bodies[0].1);
    let is_text = text["data"].as_str().map(str::as_bytes) == Some(&bodies[2].1);
    assert!(is_text || decoded(text) == bodies[2].1);
}

#[tokio::test]
async fn offloaded_data_is_judged_and_matched_as_it_came() {
    let gateway = Gateway::with(THRESHOLD).await;
    gateway
        .http
        .put("/v1/targets/audit", &json!({"type": "pull"}))
        .await
        .ok();
    let pattern = json!({"data": {"country": ["BD"]}});
    gateway.rule("bd", &pattern, &["audit"]).await;
    gateway
        .http
        .post(
            "/v1/schemas/file/versions",
            &json!({"required": ["country"]}),
        )
        .await
        .ok();
    let filler = "y".repeat(2_000);
    let bad = event("1", "file", json!({"filler": filler}));
    gateway
        .http
        .publish(&bad)
        .await
        .problem(422, "schema-violation");
    assert!(blobs(&gateway).is_empty(), "refused data is not kept");
    let good = event("2", "file", json!({"filler": filler, "country": "BD"}));
    let receipt = gateway.http.publish(&good).await.ok();
    assert_eq!(receipt["rules"], json!(["bd"]));
    let mut again = gateway.http.publish(&good).await.ok();
    assert_eq!(again["duplicate"], true);
    again["duplicate"] = false.into();
    assert_eq!(again, receipt);
    assert_eq!(blobs(&gateway).len(), 1);
    let explained = gateway.http.get("/v1/events/1/explain").await.ok();
    assert_eq!(explained["matched"], json!(["bd"]));
}

#[tokio::test]
async fn a_target_by_reference_gets_an_address_that_works_until_it_expires() {
    let gateway = Gateway::with_clock(THRESHOLD, Clock::manual(NOW)).await;
    let target = json!({"type": "pull", "payload": "reference"});
    gateway.http.put("/v1/targets/audit", &target).await.ok();
    gateway
        .rule("all", &json!({"type": ["file"]}), &["audit"])
        .await;
    publish_bytes(&gateway, "1", "image/png", noise())
        .await
        .ok();
    publish_bytes(&gateway, "2", "text/plain", b"small".to_vec())
        .await
        .ok();
    let received = gateway.receive("audit", 10).await;
    let [large, small] = [0, 1].map(|at| &received[at]["event"]);
    assert_eq!(small.get("dataref"), None);
    assert!(small.get("data").or(small.get("data_base64")).is_some());
    assert!(large.get("data").or(large.get("data_base64")).is_none());
    assert_eq!(large["datacontenttype"], "image/png");

    let path = path_of(&gateway, &large["dataref"]);
    let fetched = gateway.http.get(&path).await;
    assert_eq!(fetched.status, 200);
    assert!(fetched.body == noise()[..]);
    assert_eq!(fetched.headers["content-type"], "image/png");
    assert_eq!(fetched.headers["x-content-type-options"], "nosniff");

    let token = path.strip_prefix("/v1/blobs/").expect("a token");
    for at in [0, 10, 15, token.len() - 1] {
        let other = if token.as_bytes()[at] == b'A' {
            "B"
        } else {
            "A"
        };
        let forged = format!("/v1/blobs/{}{other}{}", &token[..at], &token[at + 1..]);
        gateway.http.get(&forged).await.problem(404, "not-found");
    }
    gateway
        .http
        .get("/v1/blobs/none")
        .await
        .problem(404, "not-found");
    gateway
        .clock
        .advance(Duration::from_secs(7 * 24 * 3_600 - 1));
    assert_eq!(gateway.http.get(&path).await.status, 200);
    gateway.clock.advance(Duration::from_secs(1));
    gateway.http.get(&path).await.problem(404, "not-found");
}

#[tokio::test]
async fn an_address_needs_no_key_and_survives_a_restart() {
    let mut gateway = Gateway::with(&[
        ("claim_check.threshold", "1KiB"),
        ("public_url", "https://dak.example"),
    ])
    .await;
    let target = json!({"type": "pull", "payload": "reference"});
    gateway.http.put("/v1/targets/audit", &target).await.ok();
    gateway
        .rule("all", &json!({"type": ["file"]}), &["audit"])
        .await;
    publish_bytes(&gateway, "1", "image/png", noise())
        .await
        .ok();
    let received = gateway.receive("audit", 10).await;
    let dataref = received[0]["event"]["dataref"]
        .as_str()
        .expect("a dataref")
        .to_owned();
    let path = dataref
        .strip_prefix("https://dak.example")
        .expect("the public address");
    gateway
        .http
        .post("/v1/keys", &json!({"name": "root", "scopes": ["admin"]}))
        .await
        .ok();
    gateway.restart().await;
    gateway
        .http
        .get("/v1/events/1")
        .await
        .problem(401, "unauthorized");
    let fetched = gateway.http.get(path).await;
    assert!(fetched.body == noise()[..], "{}", fetched.text());
}

#[tokio::test]
async fn a_delivery_whose_data_is_lost_becomes_a_dead_letter() {
    let gateway = Gateway::with(THRESHOLD).await;
    let receiver = Receiver::start().await;
    gateway.pull_rule("audit", "file").await;
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    gateway
        .rule("push", &json!({"type": ["file"]}), &["hook"])
        .await;
    for target in ["audit", "hook"] {
        gateway
            .http
            .post(&format!("/v1/targets/{target}/pause"), &json!({}))
            .await
            .ok();
    }
    publish_bytes(&gateway, "1", "image/png", noise())
        .await
        .ok();
    for file in blobs(&gateway) {
        std::fs::remove_file(file).expect("removed");
    }
    for target in ["audit", "hook"] {
        gateway
            .http
            .post(&format!("/v1/targets/{target}/resume"), &json!({}))
            .await
            .ok();
    }
    assert!(gateway.receive("audit", 10).await.is_empty());
    gateway.deliver("hook").await;
    let path = "/v1/dead-letters?reason=blob_missing";
    let dead = async || gateway.http.get(path).await.ok()["dead_letters"].clone();
    let dead = until(dead, |dead| {
        dead.as_array().is_some_and(|dead| dead.len() == 2)
    })
    .await;
    let mut targets =
        [&dead[0]["target"], &dead[1]["target"]].map(|name| name.as_str().expect("text"));
    targets.sort_unstable();
    assert_eq!(targets, ["audit", "hook"]);
    assert!(receiver.got().is_empty());
    for target in targets {
        let line = format!(
            "dak_deliveries_dead_lettered_total{{target=\"{target}\",reason=\"blob_missing\"}}"
        );
        assert_eq!(gateway.metric(&line).await, 1.0, "{target}");
    }
}

#[tokio::test]
async fn data_of_events_that_were_never_committed_is_swept() {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let gateway = Gateway::with_clock(THRESHOLD, Clock::manual(millis(now))).await;
    gateway.pull_rule("audit", "file").await;
    publish_bytes(&gateway, "1", "image/png", noise())
        .await
        .ok();
    let committed = blobs(&gateway);
    let mut other = noise();
    other.reverse();
    publish_bytes(&gateway, "1", "image/png", other)
        .await
        .problem(409, "event-conflict");
    assert_eq!(
        blobs(&gateway).len(),
        2,
        "the conflict was found after the offload"
    );
    gateway.clock.advance(Duration::from_secs(2 * 3_600));
    // Asking for something else lets the sweeper run.
    let left = async || {
        gateway.http.get("/healthz").await;
        blobs(&gateway)
    };
    assert_eq!(until(left, |left| left.len() == 1).await, committed);
    assert_eq!(gateway.receive("audit", 1).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_event_is_taken_whole_and_a_larger_one_is_refused() {
    const MIB: usize = 1024 * 1024;
    let gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    gateway
        .rule("push", &json!({"type": ["file"]}), &["hook"])
        .await;
    let largest: Vec<u8> = noise().into_iter().cycle().take(16 * MIB).collect();
    let larger = [&largest[..], b"x"].concat();
    let problem = publish_bytes(&gateway, "1", "image/png", larger)
        .await
        .problem(413, "too-large");
    assert_eq!(problem["bytes_max"], 16 * MIB);
    publish_bytes(&gateway, "2", "image/png", largest.clone())
        .await
        .ok();
    let got = receiver.wait_for(1).await;
    assert!(got[0].body == largest[..]);
    assert_eq!(blobs(&gateway).len(), 1);
}
