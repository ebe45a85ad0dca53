//! Abuse of the real program: each kind is refused clearly, and memory stays flat.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::process::{Process, Program};
use crate::support::{Answer, PATIENCE, event};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
const STRUCTURED: &str = "application/cloudevents+json";

async fn serving(settings: &[&str]) -> (TempDir, Process) {
    let folder = tempfile::tempdir().expect("a folder");
    let process = Program::new(folder.path(), settings).start().await;
    (folder, process)
}

/// A connection that says what no well-behaved client says.
struct Wire(TcpStream);

impl Wire {
    async fn to(process: &Process) -> Self {
        Self(
            TcpStream::connect(process.address)
                .await
                .expect("a connection"),
        )
    }

    /// Sends until all is sent or the other side does not want more; says how much was sent.
    async fn send(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            let writing = timeout(PATIENCE, self.0.write(&bytes[sent..])).await;
            match writing.expect("the other side reads or closes") {
                Ok(written) if written > 0 => sent += written,
                _ => break,
            }
        }
        sent
    }

    /// The status and body of the answer; `None` when the connection ends without one.
    async fn answer(&mut self) -> Option<(u16, String)> {
        let mut read = Vec::new();
        loop {
            if let Some(answer) = whole(&read) {
                return Some(answer);
            }
            let mut chunk = [0; 4 * KIB];
            let reading = timeout(PATIENCE, self.0.read(&mut chunk)).await;
            match reading.expect("an answer or an end") {
                Ok(count) if count > 0 => read.extend_from_slice(&chunk[..count]),
                _ if read.is_empty() => return None,
                _ => panic!("half an answer: {}", String::from_utf8_lossy(&read)),
            }
        }
    }
}

/// Reads an answer whose length is announced, when it is there whole.
fn whole(read: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(read);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>())
    });
    let length = length.map_or(0, |length| length.expect("a number"));
    (body.len() >= length).then(|| (status, body.to_owned()))
}

/// Whether an answer is a problem of a kind; gives the document.
#[track_caller]
fn problem(answer: Option<(u16, String)>, status: u16, kind: &str) -> Value {
    let (got, body) = answer.expect("an answer");
    assert_eq!(got, status, "{body}");
    let problem: Value = serde_json::from_str(&body).expect("a problem document");
    assert_eq!(problem["type"], format!("urn:dak:problem:{kind}"));
    problem
}

fn head(path: &str, more: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {STRUCTURED}\r\n{more}\r\n\r\n")
}

/// Sends bytes of data in binary mode.
async fn publish_bytes(process: &Process, id: &str, bytes: usize) -> Answer {
    let request = Request::post("/v1/events")
        .header("ce-specversion", "1.0")
        .header("ce-id", id)
        .header("ce-source", "/test")
        .header("ce-type", "bytes")
        .header("content-type", "application/octet-stream");
    process
        .http
        .send(request.body(Full::from(vec![7; bytes])).expect("a request"))
        .await
}

/// The server still does its work.
async fn works(process: &Process, id: &str) {
    process
        .http
        .publish(&event(id, "order", json!({})))
        .await
        .ok();
}

/// Sends a body in chunks without saying how long it will be; says how much was sent.
async fn send_chunks(wire: &mut Wire, path: &str, count: usize) -> usize {
    wire.send(head(path, "transfer-encoding: chunked").as_bytes())
        .await;
    let chunk = [
        format!("{:x}\r\n", 64 * KIB).into_bytes(),
        vec![b' '; 64 * KIB],
        b"\r\n".to_vec(),
    ]
    .concat();
    let mut sent = 0;
    for _ in 0..count {
        let written = wire.send(&chunk).await;
        sent += written;
        if written < chunk.len() {
            return sent;
        }
    }
    wire.send(b"0\r\n\r\n").await;
    sent
}

#[tokio::test]
async fn an_announced_body_above_the_limit_is_refused_before_it_is_sent() {
    let (_folder, process) = serving(&["max_event_bytes=64KiB", "max_body_bytes=128KiB"]).await;
    for path in ["/v1/events", "/v1/buses/default/events"] {
        let mut wire = Wire::to(&process).await;
        let length = format!("content-length: {}", 128 * KIB + 1);
        wire.send(head(path, &length).as_bytes()).await;
        let refused = problem(wire.answer().await, 413, "too-large");
        assert_eq!(refused["limit"], "max_body_bytes");
        assert_eq!(refused["bytes_max"], 128 * KIB);
    }
    works(&process, "1").await;
}

#[tokio::test]
async fn a_body_of_unknown_length_is_refused_when_it_has_grown_too_large() {
    let (_folder, process) = serving(&["max_event_bytes=64KiB", "max_body_bytes=128KiB"]).await;
    for path in ["/v1/events", "/v1/apply", "/v1/dead-letters/purge"] {
        let mut wire = Wire::to(&process).await;
        send_chunks(&mut wire, path, 4).await;
        let refused = problem(wire.answer().await, 413, "too-large");
        assert_eq!(
            [&refused["limit"], &refused["bytes_max"]],
            [&json!("max_body_bytes"), &json!(128 * KIB)]
        );
    }
    works(&process, "1").await;
}

#[tokio::test]
async fn data_is_taken_up_to_its_limit_to_the_byte() {
    let (_folder, process) = serving(&["max_event_bytes=64KiB"]).await;
    publish_bytes(&process, "1", 64 * KIB).await.ok();
    let refused = publish_bytes(&process, "2", 64 * KIB + 1)
        .await
        .problem(413, "too-large");
    assert_eq!(refused["limit"], "max_event_bytes");
    assert_eq!(
        [&refused["bytes"], &refused["bytes_max"]],
        [64 * KIB + 1, 64 * KIB]
    );
}

#[tokio::test]
async fn a_batch_is_taken_up_to_its_limit() {
    let (_folder, process) = serving(&["max_batch_events=10"]).await;
    let batch: Vec<Value> = (0..11)
        .map(|n| event(&n.to_string(), "order", json!({})))
        .collect();
    let refused = process
        .http
        .publish_batch(&batch)
        .await
        .problem(413, "too-large");
    assert_eq!(
        [&refused["limit"], &refused["events_max"]],
        [&json!("max_batch_events"), &json!(10)]
    );
    let taken = process.http.publish_batch(&batch[..10]).await.ok();
    assert_eq!(
        taken["events"][9]["seq"], 10,
        "nothing of the first was stored"
    );
}

#[tokio::test]
async fn a_head_of_too_many_bytes_is_refused() {
    let (_folder, process) = serving(&[]).await;
    let many: String = (0..100_000).map(|n| format!("x-{n}: y\r\n")).collect();
    let few: String = (0..1_000)
        .map(|n| format!("x-{n}: {}\r\n", "y".repeat(100)))
        .collect();
    let one = format!("x: {}\r\n", "y".repeat(100_000));
    for (shape, path, headers) in [
        ("100,000 headers", "/v1/events", many),
        ("100,000 bytes of headers", "/v1/events", few),
        ("one header of 100,000 bytes", "/v1/events", one),
        (
            "a path of 100,000 bytes",
            &*format!("/{}", "p".repeat(100_000)),
            String::new(),
        ),
    ] {
        let mut wire = Wire::to(&process).await;
        wire.send(head(path, &format!("{headers}content-length: 0")).as_bytes())
            .await;
        let (status, _) = wire.answer().await.expect("an answer");
        assert!(matches!(status, 431 | 414 | 400), "{shape}: {status}");
    }
    works(&process, "1").await;
}

#[tokio::test]
async fn json_nested_ten_thousand_deep_is_refused() {
    let (_folder, process) = serving(&[]).await;
    let arrays = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let objects = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    for deep in [&arrays, &objects] {
        let structured = format!(
            r#"{{"specversion":"1.0","id":"1","source":"/test","type":"t","data":{deep}}}"#
        );
        let refused = process
            .http
            .publish_text("/v1/events", STRUCTURED, structured)
            .await;
        refused.problem(400, "malformed-event");
        let batch = process
            .http
            .publish_text(
                "/v1/events",
                "application/cloudevents-batch+json",
                deep.clone(),
            )
            .await;
        assert_eq!(batch.status, 400, "{}", batch.text());
        for (method, path) in [
            ("PUT", "/v1/rules/deep"),
            ("PUT", "/v1/targets/deep"),
            ("POST", "/v1/schemas/t/versions"),
            ("POST", "/v1/apply"),
            ("POST", "/v1/queues/deep/receive"),
        ] {
            let request = Request::builder().method(method).uri(path);
            let body = Full::from(deep.clone());
            let answer = process
                .http
                .send(request.body(body).expect("a request"))
                .await;
            assert!(
                answer.status.is_client_error(),
                "{path}: {} {}",
                answer.status,
                answer.text()
            );
        }
    }
    works(&process, "1").await;
}

#[tokio::test]
async fn data_that_binary_mode_carries_is_bytes_however_deep() {
    let (_folder, process) = serving(&[]).await;
    process
        .http
        .put("/v1/targets/audit", &json!({"type": "pull"}))
        .await
        .ok();
    for (name, pattern) in [
        ("any", json!({"type": ["deep"]})),
        ("fields", json!({"data": {"a": [{"exists": true}]}})),
    ] {
        let rule = json!({"pattern": pattern, "targets": ["audit"]});
        process
            .http
            .put(&format!("/v1/rules/{name}"), &rule)
            .await
            .ok();
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    let publish = async |id: &str| {
        let request = Request::post("/v1/events")
            .header("ce-specversion", "1.0")
            .header("ce-id", id)
            .header("ce-source", "/test")
            .header("ce-type", "deep")
            .header("content-type", "application/json");
        process
            .http
            .send(request.body(Full::from(deep.clone())).expect("a request"))
            .await
    };
    let taken = publish("1").await.ok();
    assert_eq!(taken["rules"], json!(["any"]), "it has no fields to match");
    let got = process
        .http
        .post("/v1/queues/audit/receive", &json!({}))
        .await
        .ok();
    let bytes = STANDARD.decode(
        got["events"][0]["event"]["data_base64"]
            .as_str()
            .expect("bytes"),
    );
    assert_eq!(bytes.expect("base64"), deep.as_bytes());

    let schema =
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"});
    process
        .http
        .post("/v1/schemas/deep/versions", &schema)
        .await
        .ok();
    publish("2").await.problem(422, "schema-violation");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_64_mib_is_refused_early_and_takes_no_memory() {
    let (_folder, process) = serving(&["max_event_bytes=16MiB"]).await;
    works(&process, "0").await;
    let before = process.memory_kib("VmHWM");
    let mut wire = Wire::to(&process).await;
    wire.send(head("/v1/events", &format!("content-length: {}", 64 * MIB)).as_bytes())
        .await;
    let mut sent = 0;
    let chunk = vec![b' '; MIB];
    while sent < 64 * MIB {
        let written = wire.send(&chunk).await;
        sent += written;
        if written < chunk.len() {
            break;
        }
    }
    let refused = problem(wire.answer().await, 413, "too-large");
    assert_eq!(refused["bytes_max"], 17 * MIB);
    assert!(sent < 32 * MIB, "{sent} bytes were taken");
    let announced = process.memory_kib("VmHWM") - before;
    assert!(announced < 8 * 1024, "grew by {announced} KiB");

    let mut wire = Wire::to(&process).await;
    let sent = send_chunks(&mut wire, "/v1/events", 1024).await;
    problem(wire.answer().await, 413, "too-large");
    assert!(sent < 48 * MIB, "{sent} bytes were taken");
    let unannounced = process.memory_kib("VmHWM") - before;
    // A buffer that grows by doubling holds up to three times what it takes, while it moves.
    assert!(unannounced < 80 * 1024, "grew by {unannounced} KiB");
    works(&process, "1").await;
    println!("64 MiB body: +{announced} KiB announced, +{unannounced} KiB unannounced");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_does_not_come_is_given_up() {
    let (_folder, process) = serving(&["request_timeout=500ms"]).await;
    let mut slow = Vec::new();
    for path in ["/v1/events", "/v1/apply"] {
        let mut wire = Wire::to(&process).await;
        wire.send(head(path, "content-length: 100").as_bytes())
            .await;
        wire.send(b"{").await;
        slow.push(wire);
    }
    works(&process, "1").await;
    for mut wire in slow {
        problem(wire.answer().await, 408, "request-timeout");
    }
    works(&process, "2").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_say_nothing_or_half_of_it_are_closed() {
    let (_folder, process) = serving(&["request_timeout=500ms"]).await;
    let mut open = Vec::new();
    for beginning in [
        &b""[..],
        b"P",
        b"PRI * HT",
        b"POST /v1/events HTTP/1.1\r\n",
        b"POST /v1/events HTTP/1.1\r\nhost: x\r\nx-y: ",
    ] {
        for _ in 0..40 {
            let mut wire = Wire::to(&process).await;
            wire.send(beginning).await;
            open.push((beginning, wire));
        }
    }
    works(&process, "1").await;
    for (beginning, mut wire) in open {
        let said = String::from_utf8_lossy(beginning);
        let answer = timeout(PATIENCE, wire.answer()).await;
        let answer = answer.unwrap_or_else(|_| panic!("after `{said}` the connection stays open"));
        assert!(
            answer.is_none_or(|(status, _)| status == 408),
            "after `{said}`"
        );
    }
    works(&process, "2").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_used_is_closed_when_it_says_no_more() {
    let (_folder, process) = serving(&["request_timeout=500ms"]).await;
    let mut wire = Wire::to(&process).await;
    wire.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(wire.answer().await.expect("an answer").0, 200);
    assert_eq!(wire.answer().await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_connections_are_served_at_once() {
    let (_folder, process) = serving(&[]).await;
    works(&process, "0").await;
    let before = process.memory_kib("VmHWM");
    let mut wires = Vec::new();
    for _ in 0..1_000 {
        wires.push(Wire::to(&process).await);
    }
    for (n, wire) in wires.iter_mut().enumerate() {
        let body = event(&format!("c-{n}"), "order", json!({})).to_string();
        let head = head("/v1/events", &format!("content-length: {}", body.len()));
        wire.send(format!("{head}{body}").as_bytes()).await;
    }
    let mut seqs = Vec::new();
    for wire in &mut wires {
        let (status, body) = wire.answer().await.expect("an answer");
        assert_eq!(status, 202, "{body}");
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        seqs.push(answer["seq"].as_i64().expect("a position"));
    }
    seqs.sort_unstable();
    assert_eq!(seqs, (2..=1_001).collect::<Vec<i64>>());
    let grown = process.memory_kib("VmHWM") - before;
    assert!(grown < 64 * 1024, "grew by {grown} KiB");
    println!("1,000 connections: +{grown} KiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_connections_than_allowed_wait_for_their_turn() {
    let (_folder, process) = serving(&["max_connections=3"]).await;
    let get = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut three = Vec::new();
    for _ in 0..3 {
        let mut wire = Wire::to(&process).await;
        wire.send(get).await;
        assert_eq!(wire.answer().await.expect("an answer").0, 200);
        three.push(wire);
    }
    let mut fourth = Wire::to(&process).await;
    fourth.send(get).await;
    let waiting = tokio::spawn(async move { fourth.answer().await });
    for wire in &mut three {
        wire.send(get).await;
        assert_eq!(wire.answer().await.expect("an answer").0, 200);
    }
    assert!(!waiting.is_finished(), "there is no room for a fourth");
    three.pop();
    assert_eq!(waiting.await.expect("waited").expect("an answer").0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_stays_flat_however_long_the_abuse() {
    let (_folder, process) = serving(&["max_event_bytes=1MiB", "request_timeout=500ms"]).await;
    let deep = "[".repeat(100_000);
    let headers = format!("x: {}", "y".repeat(100_000));
    let mut half_said = Vec::new();
    let mut after_first = 0;
    for round in 0..30 {
        for _ in 0..4 {
            let mut wire = Wire::to(&process).await;
            send_chunks(&mut wire, "/v1/events", 48).await;
            wire.answer().await;
            let mut wire = Wire::to(&process).await;
            wire.send(head("/v1/events", &headers).as_bytes()).await;
            wire.answer().await;
            process
                .http
                .publish_text("/v1/events", STRUCTURED, deep.clone())
                .await;
            let mut wire = Wire::to(&process).await;
            wire.send(b"POST /v1/ev").await;
            half_said.push(wire);
        }
        works(&process, &round.to_string()).await;
        if round == 4 {
            after_first = process.memory_kib("VmRSS");
        }
    }
    let grown = process.memory_kib("VmRSS").saturating_sub(after_first);
    assert!(grown < 24 * 1024, "grew by {grown} KiB in 25 rounds");
    println!("25 rounds of abuse: +{grown} KiB of {after_first} KiB");
}
