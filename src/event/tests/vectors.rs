//! The conformance vectors (`ce-vectors/1`), as far as a codec can answer them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value as Json;

use crate::event::binding::{self, Message};
use crate::event::{Data, Error, Event, Value};

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

#[test]
fn every_conformance_vector_is_answered_as_the_specification_says() {
    let Some(folder) = vectors() else {
        return;
    };
    let mut failures = Vec::new();
    for suite in SUITES {
        let text = std::fs::read_to_string(folder.join(format!("{suite}.json"))).unwrap();
        let file: Json = serde_json::from_str(&text).unwrap();
        let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for case in file["cases"].as_array().unwrap() {
            let count = counts.entry(case["level"].as_str().unwrap()).or_default();
            count.1 += 1;
            match check(case) {
                Ok(()) => count.0 += 1,
                Err(why) => failures.push(format!("{suite}/{}: {why}", case["id"])),
            }
        }
        let counts: Vec<_> = counts
            .iter()
            .map(|(level, (passed, all))| format!("{level} {passed}/{all}"))
            .collect();
        println!("{suite}: {}", counts.join(", "));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The folder of the vectors; `None`, said aloud, where there is none.
fn vectors() -> Option<PathBuf> {
    let shared = std::env::var_os("DAK_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let folder = shared.join("vectors/cloudevents");
    if folder.is_dir() {
        return Some(folder);
    }
    let absent = format!("no vectors in {}", folder.display());
    assert!(std::env::var_os("CI").is_none(), "{absent}");
    println!("skipped: {absent}");
    None
}

fn check(case: &Json) -> Result<(), String> {
    let expect = &case["expect"];
    let Some((headers, body)) = request(&case["request"]) else {
        return fail(expect["outcome"] == "reject", "HTTP itself refuses this");
    };
    let decoded = binding::decode(&headers, body);
    let mode = decoded.as_ref().map(mode).unwrap_or_default();
    let events = decoded.and_then(Message::into_events);
    let expect = match (expect["outcome"].as_str().unwrap(), &events) {
        ("accept_or_reject", Ok(_)) => &expect["if_accept"],
        ("accept_or_reject", Err(_)) => &expect["if_reject"],
        _ => expect,
    };
    match events {
        Ok(events) => {
            fail(expect["outcome"] == "accept", "accepted")?;
            fail(expect["mode"].is_null() || expect["mode"] == mode, mode)?;
            accepted(expect, &events)
        }
        Err(error) => {
            fail(expect["outcome"] == "reject", &format!("refused: {error}"))?;
            refused(expect, &error)
        }
    }
}

fn fail(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

fn mode(message: &Message) -> &'static str {
    match message {
        Message::Binary(_) => "binary",
        Message::Structured(_) => "structured",
        Message::Batch(_) => "batch",
    }
}

fn request(request: &Json) -> Option<(HeaderMap, Bytes)> {
    let mut headers = HeaderMap::new();
    for header in request["headers"].as_array().unwrap() {
        let name = HeaderName::from_bytes(header[0].as_str().unwrap().as_bytes()).ok()?;
        let value = match &header[1] {
            Json::String(text) => text.as_bytes().to_vec(),
            other => base64(&other["base64"]),
        };
        headers.append(name, HeaderValue::from_bytes(&value).ok()?);
    }
    let body = if let Some(generated) = request.get("body_gen") {
        let part = |name: &str| generated[name].as_str().unwrap().to_owned();
        let count = usize::try_from(generated["count"].as_u64().unwrap()).unwrap();
        (part("prefix") + &part("repeat").repeat(count) + &part("suffix")).into_bytes()
    } else if let Some(encoded) = request.get("body_base64") {
        base64(encoded)
    } else {
        request["body"].as_str().unwrap().as_bytes().to_vec()
    };
    Some((headers, body.into()))
}

fn base64(text: &Json) -> Vec<u8> {
    STANDARD.decode(text.as_str().unwrap()).unwrap()
}

fn refused(expect: &Json, error: &Error) -> Result<(), String> {
    let reason = error.reason();
    // A bad member's own reason is named beside that of the batch.
    let member = error.members().first().map(|(_, member)| member.reason());
    let reasons = expect["reason"].as_array().unwrap();
    let listed = |reason: &str| reasons.iter().any(|one| one == reason);
    fail(listed(reason) || member.is_some_and(listed), reason)?;
    if let Some(attribute) = expect["attribute"].as_str() {
        let named = error.attribute().unwrap_or("no attribute");
        fail(named == attribute, named)?;
    }
    if let Some(index) = expect["index"].as_u64() {
        let named = error.index().map(|index| index as u64);
        fail(named == Some(index), &format!("index {named:?}"))?;
    }
    let status = match reason {
        "not_a_cloudevent" | "unsupported_event_format" | "unsupported_charset" => 415,
        _ => 400,
    };
    let statuses = expect["status"].as_array().unwrap();
    fail(
        statuses.iter().any(|one| one == status),
        &format!("status {status}"),
    )
}

fn accepted(expect: &Json, events: &[Event]) -> Result<(), String> {
    if let Some(expected) = expect["events"].as_array() {
        fail(expected.len() == events.len(), "number of events")?;
        for (expected, event) in expected.iter().zip(events) {
            same_attributes(expected, event)?;
            same_data(&expected["data"], event.data())?;
        }
    }
    for event in events {
        survives(event)?;
    }
    if let Some(forward) = expect.get("forward_binary") {
        forwarded_in_binary_mode(forward, &events[0])?;
    }
    if let Some(allowed) = expect["forward_structured_any_of"].as_array() {
        let (_, body) = binding::encode_structured(&events[0]);
        let document: Json = serde_json::from_slice(&body).unwrap();
        fail(allowed.contains(&document), &document.to_string())?;
    }
    Ok(())
}

fn same_attributes(expected: &Json, event: &Event) -> Result<(), String> {
    let actual: BTreeMap<_, _> = event
        .attributes()
        .iter()
        .map(|attribute| (attribute.name.as_str(), attribute.value.text().into_owned()))
        .collect();
    let wanted: BTreeMap<_, _> = expected["attributes"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap().to_owned()))
        .collect();
    fail(actual == wanted, &format!("{actual:?}"))?;
    for (name, kind) in expected["types"].as_object().into_iter().flatten() {
        let value = event.attribute(name).unwrap();
        let actual = match value {
            Value::Integer(_) => "Integer",
            Value::Boolean(_) => "Boolean",
            Value::String(_) => "String",
        };
        fail(kind == actual, &format!("{name} is {actual}"))?;
    }
    Ok(())
}

fn same_data(expected: &Json, data: &Data) -> Result<(), String> {
    if expected["present"] == false {
        return fail(*data == Data::Absent, "data where there is none");
    }
    let bytes = data.bytes();
    let same = match (expected["kind"].as_str().unwrap(), data) {
        ("binary", Data::Binary(_) | Data::Json(_)) => {
            let length = expected["length"].as_u64().map(|length| length as usize);
            length.map_or_else(
                || *bytes == base64(&expected["base64"]),
                |it| it == bytes.len(),
            )
        }
        ("text", Data::Text(_)) => expected["text"].as_str().unwrap().as_bytes() == bytes,
        ("json", Data::Json(_)) => same_json(expected, bytes),
        _ => false,
    };
    fail(same, &format!("{data:?}"))
}

fn same_json(expected: &Json, text: &[u8]) -> bool {
    if let Some(expected) = expected["json_text"].as_str() {
        return compact(expected.as_bytes()) == compact(text);
    }
    let actual: Json = serde_json::from_slice(text).unwrap();
    match expected["length"].as_u64() {
        Some(length) => actual.as_str().unwrap().len() as u64 == length,
        None => actual == expected["json"],
    }
}

/// The text without the white space outside its strings, so that tokens compare byte for byte.
fn compact(text: &[u8]) -> Vec<u8> {
    let mut quoted = false;
    let mut escaped = false;
    let mut compact = text.to_vec();
    compact.retain(|byte| {
        quoted ^= *byte == b'"' && !escaped;
        escaped = quoted && *byte == b'\\' && !escaped;
        quoted || !byte.is_ascii_whitespace()
    });
    compact
}

/// Whatever was accepted is the same after another hop in each mode.
fn survives(event: &Event) -> Result<(), String> {
    let (headers, body) = binding::encode_structured(event);
    let again = binding::decode(&headers, body).and_then(Message::into_events);
    let again = again.map_err(|error| error.to_string())?;
    fail(
        again[0].attributes() == event.attributes()
            && again[0].data_bytes().trim_ascii() == event.data_bytes().trim_ascii(),
        "changed in structured mode",
    )?;
    let (headers, body) = binding::encode_binary(event);
    let again = binding::decode(&headers, body).and_then(Message::into_events);
    let again = again.map_err(|error| error.to_string())?;
    let same = event.attributes().iter().all(|attribute| {
        let value = again[0].attribute(&attribute.name);
        value.is_some_and(|value| value.text() == attribute.value.text())
    });
    fail(same, "changed in binary mode")?;
    let stored = Event::from_stored(&event.attributes_to_json(), event.data().clone());
    fail(stored.as_ref() == Ok(event), "changed in storage")
}

fn forwarded_in_binary_mode(expected: &Json, event: &Event) -> Result<(), String> {
    let (headers, body) = binding::encode_binary(event);
    let wanted: BTreeMap<_, _> = expected["headers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|header| (header[0].as_str().unwrap(), header[1].as_str().unwrap()))
        .collect();
    let actual: BTreeMap<_, _> = headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("ce-"))
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    fail(actual == wanted, &format!("{actual:?}"))?;
    let content_type = headers
        .get("content-type")
        .map(|value| value.to_str().unwrap());
    fail(
        content_type == expected["content_type"].as_str(),
        &format!("{content_type:?}"),
    )?;
    let same = if let Some(text) = expected["body_json_text"].as_str() {
        compact(text.as_bytes()) == compact(&body)
    } else if let Some(text) = expected["body"].as_str() {
        text.as_bytes() == body
    } else {
        base64(&expected["body_base64"]) == body
    };
    fail(same, &format!("{body:?}"))
}
