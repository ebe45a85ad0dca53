//! Tests of the codec: the conformance vectors, generated events, and one by one what these miss.

mod conversion;
mod limits;
mod modes;
mod properties;
mod rules;
mod vectors;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::event::binding::{self, Message};
use crate::event::{Error, Event, json};

/// The members that every event needs, ready to be followed by more.
const REQUIRED: &str = r#""specversion":"1.0","id":"1","source":"/s","type":"t""#;

/// The headers that every event needs in binary mode.
const REQUIRED_HEADERS: [(&str, &str); 4] = [
    ("ce-specversion", "1.0"),
    ("ce-id", "1"),
    ("ce-source", "/s"),
    ("ce-type", "t"),
];

/// Decodes an event of the required members and these.
fn structured(members: &str) -> Result<Event, Error> {
    let separator = if members.is_empty() { "" } else { "," };
    let text = format!("{{{REQUIRED}{separator}{members}}}");
    json::decode(&Bytes::from(text))
}

/// Decodes a request in binary mode with the required headers and these.
fn binary(headers: &[(&str, &str)], body: &'static str) -> Result<Event, Error> {
    let mut map = HeaderMap::new();
    for (name, value) in REQUIRED_HEADERS.iter().chain(headers) {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    single(binding::decode(&map, Bytes::from_static(body.as_bytes())))
}

/// The one event of a message that is no batch.
fn single(message: Result<Message, Error>) -> Result<Event, Error> {
    match message? {
        Message::Binary(event) | Message::Structured(event) => Ok(event),
        Message::Batch(_) => panic!("a batch where one event was sent"),
    }
}
