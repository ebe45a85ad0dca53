//! The conformance vectors for requests (`ce-vectors/1`), sent byte for byte to a running server.
//!
//! Each case has a bus of its own, since cases share ids. What was accepted is looked at where it
//! comes out: at a webhook in binary mode, at one in structured mode, and by pull.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::support::{Gateway, Got, Receiver, percent_decode, shared};

const SUITES: [&str; 9] = [
    "binary-valid",
    "header-encoding",
    "binary-invalid",
    "mode-detection",
    "structured-valid",
    "structured-invalid",
    "timestamps",
    "batch",
    "translate",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_vector_is_answered_and_passed_on_as_the_specification_says() {
    let Some(shared) = shared() else {
        return;
    };
    let mut failures = Vec::new();
    for suite in SUITES {
        let file = shared.join(format!("vectors/cloudevents/{suite}.json"));
        let text = std::fs::read_to_string(file).expect("a suite");
        let file: Value = serde_json::from_str(&text).expect("JSON");
        let cases = file["cases"].as_array().expect("cases");
        let mut stage = Stage::start(cases.len()).await;
        let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for (number, case) in cases.iter().enumerate() {
            let count = counts
                .entry(case["level"].as_str().expect("a level"))
                .or_default();
            count.1 += 1;
            match stage.run(number, case).await {
                Ok(()) => count.0 += 1,
                Err(why) => failures.push(format!("{suite}/{}: {why}", text_of(&case["id"]))),
            }
        }
        let counts: Vec<String> = counts
            .iter()
            .map(|(level, (passed, all))| format!("{level} {passed}/{all}"))
            .collect();
        println!("{suite}: {}", counts.join(", "));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A gateway with a bus for each case, and all that its events come out of.
struct Stage {
    gateway: Gateway,
    binary: Receiver,
    structured: Receiver,
    /// Events that came out so far.
    passed: usize,
}

impl Stage {
    async fn start(cases: usize) -> Self {
        let gateway = Gateway::start().await;
        let (binary, structured) = (Receiver::start().await, Receiver::start().await);
        gateway.webhook("binary", &binary.url(), json!({})).await;
        let mode = json!({"mode": "structured"});
        gateway.webhook("structured", &structured.url(), mode).await;
        gateway
            .http
            .put("/v1/targets/pull", &json!({"type": "pull"}))
            .await
            .ok();
        let documents: Vec<String> = (0..cases)
            .flat_map(|number| {
                let bus = format!("c{number}");
                let rule = json!({"kind": "Rule", "name": "all", "bus": bus,
                    "pattern": {"source": [{"exists": true}]},
                    "targets": ["binary", "structured", "pull"]});
                [
                    json!({"kind": "Bus", "name": bus}).to_string(),
                    rule.to_string(),
                ]
            })
            .collect();
        let file = json!({"file": "buses.yaml", "text": documents.join("\n---\n")});
        gateway
            .http
            .post("/v1/apply", &json!({"documents": [file]}))
            .await
            .ok();
        Self {
            gateway,
            binary,
            structured,
            passed: 0,
        }
    }

    async fn run(&mut self, number: usize, case: &Value) -> Result<(), String> {
        let bus = format!("c{number}");
        let answer = send(self.gateway.address(), &bus, &case["request"]).await;
        let expect = &case["expect"];
        let expect = match (text_of(&expect["outcome"]), answer.status) {
            ("accept_or_reject", 202) => &expect["if_accept"],
            ("accept_or_reject", _) => &expect["if_reject"],
            _ => expect,
        };
        if answer.status == 202 {
            // What came out is taken in any case, so that the next case starts afresh.
            let out = self.take_out(&answer).await;
            holds(expect["outcome"] == "accept", "was accepted")?;
            let is_batch = answer.json()["events"].is_array();
            holds(
                (expect["mode"] == "batch") == is_batch,
                "answered in another mode",
            )?;
            return accepted(expect, &out);
        }
        holds(
            expect["outcome"] == "reject",
            &format!("was refused: {answer:?}"),
        )?;
        refused(expect, &answer)?;
        let log = self
            .gateway
            .http
            .get(&format!("/v1/buses/{bus}/events"))
            .await
            .ok();
        holds(
            log == json!({"events": []}),
            "was refused, but something was stored",
        )
    }

    /// Everything that comes out for one accepted request.
    async fn take_out(&mut self, answer: &RawAnswer) -> Out {
        let receipt = answer.json();
        let count = receipt["events"].as_array().map_or(1, Vec::len);
        let before = self.passed;
        self.passed += count;
        let binary = self.binary.wait_for(self.passed).await;
        let structured = self.structured.wait_for(self.passed).await;
        Out {
            binary: binary[before..].to_vec(),
            structured: structured[before..].to_vec(),
            pulled: self.pull(count).await,
        }
    }

    async fn pull(&self, count: usize) -> Vec<Box<RawValue>> {
        let mut events = Vec::new();
        while events.len() < count {
            let ask = json!({"max_events": 100, "wait_seconds": 20});
            let answer = self
                .gateway
                .http
                .post("/v1/queues/pull/receive", &ask)
                .await;
            let received: Received = serde_json::from_slice(&answer.body).expect("deliveries");
            assert!(
                !received.events.is_empty(),
                "{} of {count} could be pulled",
                events.len()
            );
            let mut tokens = Vec::new();
            for delivery in received.events {
                tokens.push(delivery.lease_token);
                events.push(delivery.event);
            }
            let settle = json!({"lease_tokens": tokens});
            self.gateway
                .http
                .post("/v1/queues/pull/acknowledge", &settle)
                .await
                .ok();
        }
        events
    }
}

/// What came out for one request.
struct Out {
    binary: Vec<Got>,
    structured: Vec<Got>,
    pulled: Vec<Box<RawValue>>,
}

#[derive(serde::Deserialize)]
struct Received {
    events: Vec<Delivery>,
}

#[derive(serde::Deserialize)]
struct Delivery {
    lease_token: String,
    event: Box<RawValue>,
}

fn holds(condition: bool, why: &str) -> Result<(), String> {
    if condition {
        Ok(())
    } else {
        Err(why.to_owned())
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().expect("text")
}

fn decode_base64(value: &Value) -> Vec<u8> {
    STANDARD.decode(text_of(value)).expect("base64")
}

/// An answer read from the wire.
#[derive(Debug)]
pub struct RawAnswer {
    pub status: u16,
    content_type: String,
    body: String,
}

impl RawAnswer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON answer")
    }
}

/// Sends a case's request with its headers and body as written, and no others but `Host` and
/// `Content-Length`.
pub async fn send(address: SocketAddr, bus: &str, request: &Value) -> RawAnswer {
    let body = body_of(request);
    let method = text_of(&request["method"]);
    let mut bytes = format!(
        "{method} /v1/buses/{bus}/events HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n",
        body.len()
    )
    .into_bytes();
    for header in request["headers"].as_array().expect("headers") {
        bytes.extend(text_of(&header[0]).as_bytes());
        bytes.extend(b": ");
        match &header[1] {
            Value::String(text) => bytes.extend(text.as_bytes()),
            encoded => bytes.extend(decode_base64(&encoded["base64"])),
        }
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"\r\n");
    bytes.extend(body);
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // The server may answer and hang up before it has read everything.
    let _written = stream.write_all(&bytes).await;
    read_answer(BufReader::new(stream)).await
}

async fn read_answer(mut stream: BufReader<TcpStream>) -> RawAnswer {
    let mut answer = RawAnswer {
        status: 0,
        content_type: String::new(),
        body: String::new(),
    };
    let mut length = 0;
    let mut line = String::new();
    stream.read_line(&mut line).await.expect("a status line");
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    answer.status = status.unwrap_or_else(|| panic!("`{line}` is no status line"));
    loop {
        line.clear();
        stream.read_line(&mut line).await.expect("a header");
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        match name {
            "content-length" => length = value.parse().expect("a length"),
            "content-type" => value.clone_into(&mut answer.content_type),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a body");
    answer.body = String::from_utf8(body).expect("text");
    answer
}

fn body_of(request: &Value) -> Vec<u8> {
    if let Some(generated) = request.get("body_gen") {
        let count = generated["count"].as_u64().expect("a count");
        let repeated = text_of(&generated["repeat"]).repeat(usize::try_from(count).expect("fits"));
        [
            text_of(&generated["prefix"]),
            &repeated,
            text_of(&generated["suffix"]),
        ]
        .concat()
        .into_bytes()
    } else if let Some(encoded) = request.get("body_base64") {
        decode_base64(encoded)
    } else {
        text_of(&request["body"]).as_bytes().to_vec()
    }
}

fn refused(expect: &Value, answer: &RawAnswer) -> Result<(), String> {
    let statuses = expect["status"].as_array().expect("statuses");
    holds(
        statuses.contains(&answer.status.into()),
        &format!("status {}", answer.status),
    )?;
    holds(
        answer.content_type == "application/problem+json",
        &answer.content_type,
    )?;
    let problem = answer.json();
    let reasons = expect["reason"].as_array().expect("reasons");
    holds(reasons.contains(&problem["reason"]), &answer.body)?;
    for field in ["attribute", "index"] {
        if let Some(named) = expect.get(field) {
            holds(problem[field] == *named, &answer.body)?;
        }
    }
    Ok(())
}

/// An event as it came out, whatever the mode.
struct Seen {
    attributes: BTreeMap<String, String>,
    /// JSON kinds of the attributes, where the mode has them.
    kinds: BTreeMap<String, &'static str>,
    /// `None` when there is certainly none; binary mode cannot tell it from no bytes.
    data: Option<Vec<u8>>,
    /// The data stood as JSON in a JSON text, where the white space around it has no meaning.
    is_embedded: bool,
}

fn accepted(expect: &Value, out: &Out) -> Result<(), String> {
    let structured: Vec<&[u8]> = out.structured.iter().map(|got| &got.body[..]).collect();
    let pulled: Vec<&[u8]> = out.pulled.iter().map(|raw| raw.get().as_bytes()).collect();
    for got in &out.structured {
        let content_type = got.header("content-type");
        let is_event = content_type.starts_with("application/cloudevents+json");
        holds(is_event, &format!("structured mode came as {content_type}"))?;
    }
    if let Some(expected) = expect["events"].as_array() {
        let from_headers: Vec<Seen> = out.binary.iter().map(seen_in_headers).collect();
        same_events(expected, &from_headers).map_err(|why| format!("binary: {why}"))?;
        for (place, documents) in [("structured", &structured), ("pulled", &pulled)] {
            let seen: Vec<Seen> = documents.iter().map(|text| seen_in_json(text)).collect();
            same_events(expected, &seen).map_err(|why| format!("{place}: {why}"))?;
        }
    }
    if let Some(forward) = expect.get("forward_binary") {
        forwarded(forward, &out.binary[0])?;
    }
    if let Some(allowed) = expect["forward_structured_any_of"].as_array() {
        for document in [structured[0], pulled[0]] {
            let document: Value = serde_json::from_slice(document).expect("JSON");
            holds(allowed.contains(&document), &document.to_string())?;
        }
    }
    Ok(())
}

impl Seen {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }
}

/// Reads a delivery of the target in binary mode.
fn seen_in_headers(got: &Got) -> Seen {
    if got
        .header("content-type")
        .starts_with("application/cloudevents")
    {
        // Data that is itself an event would be taken for the message, so binary mode cannot do.
        let seen = seen_in_json(&got.body);
        let content_type = seen.attribute("datacontenttype").unwrap_or_default();
        assert!(
            content_type.starts_with("application/cloudevents"),
            "not in binary mode"
        );
        return seen;
    }
    let mut attributes = BTreeMap::new();
    for (name, value) in &got.headers {
        if let Some(name) = name.as_str().strip_prefix("ce-") {
            let before = attributes.insert(name.to_owned(), percent_decode(value.as_bytes()));
            assert!(before.is_none(), "ce-{name} came twice");
        } else if name == "content-type" {
            // Not percent-encoded, as it is a header of HTTP.
            let content_type = got.header("content-type").to_owned();
            attributes.insert("datacontenttype".into(), content_type);
        }
    }
    Seen {
        attributes,
        kinds: BTreeMap::new(),
        data: (!got.body.is_empty()).then(|| got.body.to_vec()),
        is_embedded: false,
    }
}

/// Reads an event in the JSON format, number tokens as written.
fn seen_in_json(text: &[u8]) -> Seen {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(text).expect("JSON");
    let mut seen = Seen {
        attributes: BTreeMap::new(),
        kinds: BTreeMap::new(),
        data: None,
        is_embedded: false,
    };
    for (name, raw) in &members {
        if name == "data" || name == "data_base64" {
            continue;
        }
        let (kind, text) = match serde_json::from_str(raw.get()).expect("JSON") {
            Value::String(text) => ("String", text),
            Value::Bool(_) => ("Boolean", raw.get().to_owned()),
            Value::Number(_) => ("Integer", raw.get().to_owned()),
            other => panic!("attribute {name} came as {other}"),
        };
        seen.kinds.insert(name.clone(), kind);
        seen.attributes.insert(name.clone(), text);
    }
    let content_type = seen.attributes.get("datacontenttype");
    seen.data = match (members.get("data"), members.get("data_base64")) {
        (None, None) => None,
        (None, Some(encoded)) => {
            let encoded: Value = serde_json::from_str(encoded.get()).expect("JSON");
            Some(decode_base64(&encoded))
        }
        (Some(data), None) if content_type.is_none_or(|name| is_json(name)) => {
            seen.is_embedded = true;
            Some(data.get().as_bytes().to_vec())
        }
        (Some(data), None) => {
            let text: String = serde_json::from_str(data.get()).expect("text data is a string");
            Some(text.into_bytes())
        }
        (Some(_), Some(_)) => panic!("both data and data_base64 came"),
    };
    seen
}

fn is_json(content_type: &str) -> bool {
    let name = content_type.split(';').next().unwrap_or_default().trim();
    let name = name.to_ascii_lowercase();
    name.ends_with("/json") || name.ends_with("+json")
}

fn same_events(expected: &[Value], seen: &[Seen]) -> Result<(), String> {
    holds(
        expected.len() == seen.len(),
        &format!("{} events came out", seen.len()),
    )?;
    for expected in expected {
        let is_it = |seen: &&Seen| {
            ["source", "id"]
                .iter()
                .all(|name| expected["attributes"][name].as_str() == seen.attribute(name))
        };
        let found = seen
            .iter()
            .find(is_it)
            .ok_or("the event did not come out")?;
        same_attributes(expected, found)?;
        same_data(&expected["data"], found)?;
    }
    Ok(())
}

fn same_attributes(expected: &Value, seen: &Seen) -> Result<(), String> {
    let wanted: BTreeMap<String, String> =
        serde_json::from_value(expected["attributes"].clone()).expect("texts by name");
    let mut actual = seen.attributes.clone();
    if !wanted.contains_key("datacontenttype") {
        let implied = expected["implied_datacontenttype"].as_str();
        let given = actual.remove("datacontenttype");
        holds(
            given.is_none() || given.as_deref() == implied,
            &format!("{given:?}"),
        )?;
    }
    holds(actual == wanted, &format!("{actual:?}"))?;
    for (name, kind) in expected["types"].as_object().into_iter().flatten() {
        if let Some(actual) = seen.kinds.get(name) {
            holds(kind == actual, &format!("{name} came as {actual}"))?;
        }
    }
    Ok(())
}

fn same_data(expected: &Value, seen: &Seen) -> Result<(), String> {
    if expected["present"] == false {
        return holds(seen.data.is_none(), "data came out where there was none");
    }
    let data = seen.data.as_deref().unwrap_or_default();
    let length = expected["length"].as_u64();
    let is_same = match text_of(&expected["kind"]) {
        "binary" => match length {
            Some(length) => data.len() as u64 == length,
            None if seen.is_embedded => data == decode_base64(&expected["base64"]).trim_ascii(),
            None => data == decode_base64(&expected["base64"]),
        },
        "text" => data == text_of(&expected["text"]).as_bytes(),
        "json" => same_json(expected, data, length),
        other => return Err(format!("there is no kind {other}")),
    };
    holds(
        is_same,
        &format!("data {:?}", String::from_utf8_lossy(data)),
    )
}

fn same_json(expected: &Value, text: &[u8], length: Option<u64>) -> bool {
    if let Some(expected) = expected["json_text"].as_str() {
        return compact(expected.as_bytes()) == compact(text);
    }
    let Ok(actual) = serde_json::from_slice::<Value>(text) else {
        return false;
    };
    match length {
        Some(length) => actual
            .as_str()
            .is_some_and(|text| text.len() as u64 == length),
        None => actual == expected["json"],
    }
}

/// The text without the white space outside its strings, so that tokens compare byte for byte.
fn compact(text: &[u8]) -> Vec<u8> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let mut compact = text.to_vec();
    compact.retain(|byte| {
        is_quoted ^= *byte == b'"' && !is_escaped;
        is_escaped = is_quoted && *byte == b'\\' && !is_escaped;
        is_quoted || !byte.is_ascii_whitespace()
    });
    compact
}

/// The next hop's request, header values as they stand on the wire.
fn forwarded(expected: &Value, got: &Got) -> Result<(), String> {
    let wanted: BTreeMap<&str, &str> = expected["headers"]
        .as_array()
        .expect("headers")
        .iter()
        .map(|header| (text_of(&header[0]), text_of(&header[1])))
        .collect();
    let names = got.headers.keys().map(http::HeaderName::as_str);
    let actual: BTreeMap<&str, &str> = names
        .filter(|name| name.starts_with("ce-"))
        .map(|name| (name, got.header(name)))
        .collect();
    holds(actual == wanted, &format!("{actual:?}"))?;
    let content_type = got
        .headers
        .get("content-type")
        .map(|_| got.header("content-type"));
    holds(
        content_type == expected["content_type"].as_str(),
        &format!("content type {content_type:?}"),
    )?;
    let is_same = if let Some(text) = expected["body_json_text"].as_str() {
        compact(text.as_bytes()) == compact(&got.body)
    } else if let Some(text) = expected["body"].as_str() {
        text.as_bytes() == got.body
    } else {
        decode_base64(&expected["body_base64"]) == got.body
    };
    holds(is_same, &format!("body {:?}", got.body))
}
