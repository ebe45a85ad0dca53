//! A graceful stop: SIGTERM under load, with long polls open and sends under way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::Full;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::process::{Process, Program};
use crate::support::{Answer, Http, NoAnswer, Receiver, event, until};

/// A server in a process of its own, with the pull target `audit` that gets every `order`.
async fn auditing(settings: &[&str]) -> (TempDir, Program, Process) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::new(folder.path(), settings);
    let process = program.start().await;
    process
        .http
        .put("/v1/targets/audit", &json!({"type": "pull"}))
        .await
        .ok();
    let rule = json!({"pattern": {"type": ["order"]}, "targets": ["audit"]});
    process.http.put("/v1/rules/all", &rule).await.ok();
    (folder, program, process)
}

/// The same with the webhook `hook` in place of the pull target.
async fn hooking(receiver: &Receiver, settings: &[&str]) -> (TempDir, Program, Process) {
    let (folder, program, process) = auditing(settings).await;
    let webhook = json!({"type": "webhook", "url": receiver.url(), "allow_private": true});
    process.http.put("/v1/targets/hook", &webhook).await.ok();
    let rule = json!({"pattern": {"type": ["order"]}, "targets": ["hook"]});
    process.http.put("/v1/rules/all", &rule).await.ok();
    (folder, program, process)
}

async fn post(http: &Http, path: &str, media_type: &str, body: &Value) -> Result<Answer, NoAnswer> {
    let request = Request::post(path).header("content-type", media_type);
    http.try_send(
        request
            .body(Full::from(body.to_string()))
            .expect("a request"),
    )
    .await
}

async fn publish(http: &Http, id: &str) -> Result<Answer, NoAnswer> {
    post(
        http,
        "/v1/events",
        "application/cloudevents+json",
        &event(id, "order", json!({})),
    )
    .await
}

async fn queue(process: &Process, target: &str) -> Value {
    process
        .http
        .get(&format!("/v1/targets/{target}"))
        .await
        .ok()["queue"]
        .clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_accepted_is_lost_when_the_server_is_told_to_stop() {
    let (_folder, program, process) = auditing(&[]).await;
    let accepted: Arc<Mutex<BTreeMap<String, i64>>> = Arc::default();
    let sent = Arc::new(AtomicUsize::new(0));
    let publishers: Vec<JoinHandle<()>> = (0..8)
        .map(|client| {
            let (http, accepted, sent) = (
                process.http.clone(),
                Arc::clone(&accepted),
                Arc::clone(&sent),
            );
            tokio::spawn(async move {
                for n in 0.. {
                    let id = format!("{client}-{n}");
                    sent.fetch_add(1, Ordering::SeqCst);
                    let Ok(answer) = publish(&http, &id).await else {
                        break;
                    };
                    if answer.status == 503 {
                        break;
                    }
                    let seq = answer.ok()["seq"].as_i64().expect("a position");
                    accepted.lock().insert(id, seq);
                }
            })
        })
        .collect();
    until(async || accepted.lock().len(), |count| *count >= 100).await;
    process.terminate();
    for publisher in publishers {
        publisher.await.expect("a publisher");
    }
    assert!(process.ended().await.success(), "the exit code is 0");

    let process = program.start().await;
    let mut left = accepted.lock().clone();
    let count = left.len();
    let mut extra = 0;
    loop {
        let ask = json!({"max_events": 100});
        let got = process
            .http
            .post("/v1/queues/audit/receive", &ask)
            .await
            .ok();
        let events = got["events"].as_array().expect("events");
        if events.is_empty() {
            break;
        }
        for one in events {
            let seq = left.remove(one["event"]["id"].as_str().expect("an id"));
            extra += usize::from(seq.is_none());
            assert!(seq.is_none_or(|seq| one["seq"] == seq), "{one}");
        }
    }
    assert_eq!(left, BTreeMap::new(), "accepted and lost");
    let sent = sent.load(Ordering::SeqCst);
    assert!(extra <= sent - count, "{extra} strangers");
    println!("sent {sent}, accepted {count}, all of them there after the stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_polls_are_answered_at_once_when_the_server_is_told_to_stop() {
    let (_folder, _program, process) = auditing(&[]).await;
    let polls: Vec<JoinHandle<Value>> = (0..5)
        .map(|_| {
            let http = Http::to(process.address);
            tokio::spawn(async move {
                let ask = json!({"wait_seconds": 20});
                http.post("/v1/queues/audit/receive", &ask).await.ok()
            })
        })
        .collect();
    for _ in 0..20 {
        process.http.get("/healthz").await;
    }
    let told_at = Instant::now();
    process.terminate();
    for poll in polls {
        assert_eq!(poll.await.expect("an answer"), json!({"events": []}));
    }
    assert!(process.ended().await.success());
    assert!(
        told_at.elapsed() < Duration::from_secs(10),
        "nobody waited for the 20 s to pass"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sends_under_way_are_finished_and_settled() {
    let receiver = Receiver::holding().await;
    let (_folder, program, process) = hooking(&receiver, &[]).await;
    for id in ["1", "2", "3"] {
        publish(&process.http, id).await.expect("an answer").ok();
    }
    receiver.wait_for(3).await;
    process.terminate();
    process.says("stopping").await;
    receiver.let_go(3);
    assert!(process.ended().await.success());

    let process = program.start().await;
    let standing = queue(&process, "hook").await;
    assert_eq!(
        [&standing["ready"], &standing["delayed"], &standing["dead"]],
        [0, 0, 0]
    );
    assert_eq!(receiver.got().len(), 3, "nothing is sent again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sends_that_outlast_the_limit_are_made_again_after_the_next_start() {
    let receiver = Receiver::holding().await;
    let (_folder, program, process) = hooking(&receiver, &["shutdown_timeout=200ms"]).await;
    publish(&process.http, "1").await.expect("an answer").ok();
    receiver.wait_for(1).await;
    let told_at = Instant::now();
    process.terminate();
    assert!(process.ended().await.success());
    assert!(
        told_at.elapsed() < Duration::from_secs(10),
        "the limit holds"
    );

    receiver.let_go(10);
    let process = program.start().await;
    let got = receiver.wait_for(2).await;
    assert!(got.iter().all(|got| got.header("ce-id") == "1"));
    let empty = |queue: &Value| queue["ready"] == 0 && queue["delayed"] == 0;
    until(async || queue(&process, "hook").await, empty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_never_ends_does_not_hold_up_the_stop() {
    use tokio::io::AsyncWriteExt as _;

    let (_folder, _program, process) = auditing(&["shutdown_timeout=200ms"]).await;
    let mut stream = tokio::net::TcpStream::connect(process.address)
        .await
        .expect("a connection");
    let head = "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/cloudevents+json\r\ncontent-length: 9\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.expect("sent");
    process.http.get("/healthz").await;
    let told_at = Instant::now();
    process.terminate();
    assert!(process.ended().await.success());
    assert!(
        told_at.elapsed() < Duration::from_secs(10),
        "the limit holds"
    );
}
