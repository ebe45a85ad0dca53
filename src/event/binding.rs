//! The HTTP protocol binding (CloudEvents HTTP binding 1.0) on plain headers and bodies: binary,
//! structured and batched mode. Servers and clients are left to the modules above.

mod header;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::event::error::excerpt;
use crate::event::{
    Attribute, Data, Error, Event, Value, ValueFault, check, is_json_media_type, json, media_type,
};

/// The content type of one event in JSON.
pub const STRUCTURED_JSON: &str = "application/cloudevents+json";

/// The content type of a batch in JSON.
pub const BATCH_JSON: &str = "application/cloudevents-batch+json";

/// The beginning that all CloudEvents content types share.
const CLOUDEVENTS: &str = "application/cloudevents";

/// The prefix of a header that carries an attribute.
const PREFIX: &str = "ce-";

/// What a request carries, by its mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Attributes in headers, data in the body.
    Binary(Event),
    /// One event in the body.
    Structured(Event),
    /// Any number of events in the body, none included; each member by itself.
    Batch(Vec<Result<Event, Error>>),
}

impl Message {
    /// All events, in order.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`] with every bad member, if there is one: a batch is accepted whole or not at all.
    pub fn into_events(self) -> Result<Vec<Event>, Error> {
        let members = match self {
            Self::Binary(event) | Self::Structured(event) => return Ok(vec![event]),
            Self::Batch(members) => members,
        };
        let mut events = Vec::with_capacity(members.len());
        let mut bad = Vec::new();
        for (index, member) in members.into_iter().enumerate() {
            match member {
                Ok(event) => events.push(event),
                Err(error) => bad.push((index, error)),
            }
        }
        if bad.is_empty() {
            Ok(events)
        } else {
            Err(Error::Batch(bad))
        }
    }
}

/// The mode that a content type asks for.
enum Mode {
    Binary,
    Structured,
    Batch,
    /// A CloudEvents format that is not spoken here.
    Unsupported,
}

/// Reads the event or events of a request.
///
/// # Errors
///
/// The request is no CloudEvent, in a format or charset that is not spoken here, or breaks a rule.
/// Bad members of a batch are no error of the batch, see [`Message::into_events`].
pub fn decode(headers: &HeaderMap, body: Bytes) -> Result<Message, Error> {
    let content_type = match content_type(headers) {
        Err(_) if !announces_event(headers) => return Err(Error::NotACloudEvent),
        other => other?,
    };
    let text = content_type.unwrap_or_default();
    match mode(text) {
        Mode::Binary => decode_binary(headers, content_type, body).map(Message::Binary),
        Mode::Structured => {
            utf8_only(text)?;
            json::decode(&body).map(Message::Structured)
        }
        Mode::Batch => {
            utf8_only(text)?;
            json::decode_batch(&body).map(Message::Batch)
        }
        Mode::Unsupported => Err(Error::UnsupportedEventFormat {
            media_type: excerpt(media_type::essence(text)),
        }),
    }
}

/// Writes an event in binary mode: attributes as `ce-` headers, data as the body.
///
/// JSON data without `datacontenttype` gets `Content-Type: application/json`, as the next hop could
/// not know otherwise. Binary mode does not carry the order of attributes, native types, nor the
/// difference of empty and no data. An event whose `datacontenttype` is itself a CloudEvents type is
/// written in structured mode, since in binary mode that type would announce another mode (§3.1).
pub fn encode_binary(event: &Event) -> (HeaderMap, Bytes) {
    let content_type = event.datacontenttype().unwrap_or_default();
    if begins_cloudevents(content_type.as_bytes()) {
        return encode_structured(event);
    }
    let mut headers = HeaderMap::with_capacity(event.attributes().len() + 1);
    for attribute in event.attributes() {
        if attribute.name != "datacontenttype" {
            headers.insert(header_name(&attribute.name), header_value(&attribute.value));
        }
    }
    match (event.datacontenttype(), event.data()) {
        (Some(text), _) => {
            let value = HeaderValue::from_str(text);
            headers.insert(CONTENT_TYPE, value.unwrap_or_else(|_| header::encode(text)));
        }
        (None, Data::Json(_)) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        (None, Data::Absent | Data::Text(_) | Data::Binary(_)) => {}
    }
    (headers, body(event))
}

/// Writes an event in structured mode, in JSON.
pub fn encode_structured(event: &Event) -> (HeaderMap, Bytes) {
    (
        only_content_type(STRUCTURED_JSON),
        json::encode(event).into(),
    )
}

/// Writes a batch, in JSON. How many events and bytes the receiver takes is the caller's to know.
pub fn encode_batch(events: &[&Event]) -> (HeaderMap, Bytes) {
    (
        only_content_type(BATCH_JSON),
        json::encode_batch(events).into(),
    )
}

/// The one `Content-Type`, without the blanks around it.
fn content_type(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let name = || "datacontenttype".to_owned();
    if values.next().is_some() {
        return Err(Error::DuplicateAttribute { name: name() });
    }
    match std::str::from_utf8(header::trim(value.as_bytes())) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(Error::InvalidAttributeValue {
            name: name(),
            fault: ValueFault::NotUtf8,
        }),
    }
}

/// Whether there is any sign of an event, however broken.
fn announces_event(headers: &HeaderMap) -> bool {
    let types = headers.get_all(CONTENT_TYPE);
    headers.keys().any(|name| name.as_str().starts_with(PREFIX))
        || types
            .iter()
            .any(|value| begins_cloudevents(value.as_bytes()))
}

fn begins_cloudevents(content_type: &[u8]) -> bool {
    let begin = content_type.get(..CLOUDEVENTS.len());
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(CLOUDEVENTS.as_bytes()))
}

fn mode(content_type: &str) -> Mode {
    let essence = media_type::essence(content_type);
    if !begins_cloudevents(essence.as_bytes()) {
        Mode::Binary
    } else if essence.eq_ignore_ascii_case(STRUCTURED_JSON) {
        Mode::Structured
    } else if essence.eq_ignore_ascii_case(BATCH_JSON) {
        Mode::Batch
    } else {
        Mode::Unsupported
    }
}

/// Events in JSON are UTF-8 (RFC 8259 §8.1), of which US-ASCII is a part.
fn utf8_only(content_type: &str) -> Result<(), Error> {
    let Some(charset) = media_type::charset(content_type) else {
        return Ok(());
    };
    let known = ["utf-8", "utf8", "us-ascii", "ascii"];
    if known.iter().any(|name| charset.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    Err(Error::UnsupportedCharset {
        charset: excerpt(charset),
    })
}

fn decode_binary(
    headers: &HeaderMap,
    content_type: Option<&str>,
    body: Bytes,
) -> Result<Event, Error> {
    let mut attributes = Vec::with_capacity(headers.len());
    let mut fault = None;
    for (name, value) in headers {
        let Some(name) = name.as_str().strip_prefix(PREFIX) else {
            continue;
        };
        match decode_attribute(name, value) {
            Ok(attribute) => attributes.push(attribute),
            Err(error) => fault = fault.or(Some(error)),
        }
    }
    if attributes.is_empty() && fault.is_none() {
        return Err(Error::NotACloudEvent);
    }
    check::distinct(&attributes, |attribute| &attribute.name)?;
    check::version(&attributes)?;
    if let Some(error) = fault {
        return Err(error);
    }
    attributes.extend(content_type.map(|text| Attribute::text("datacontenttype", text)));
    check::values(&attributes)?;
    let data = if body.is_empty() {
        Data::Absent
    } else if content_type.is_some_and(is_json_media_type) && json::is_document(&body) {
        Data::Json(body)
    } else {
        Data::Binary(body)
    };
    Ok(Event { attributes, data })
}

fn decode_attribute(name: &str, value: &HeaderValue) -> Result<Attribute, Error> {
    check::name(name)?;
    if name == "datacontenttype" {
        return Err(Error::ReservedAttribute {
            name: "datacontenttype",
        });
    }
    let value = header::decode(name, value.as_bytes())?;
    Ok(Attribute::text(name, value))
}

/// The header of an attribute; the core ones are known beforehand.
fn header_name(attribute: &str) -> HeaderName {
    let known = match attribute {
        "specversion" => "ce-specversion",
        "id" => "ce-id",
        "source" => "ce-source",
        "type" => "ce-type",
        "subject" => "ce-subject",
        "time" => "ce-time",
        "dataschema" => "ce-dataschema",
        _ => {
            let name = [PREFIX, attribute].concat();
            return HeaderName::from_bytes(name.as_bytes())
                .expect("letters and digits of a checked length are a header name");
        }
    };
    HeaderName::from_static(known)
}

fn header_value(value: &Value) -> HeaderValue {
    header::encode(&value.text())
}

fn only_content_type(content_type: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(1);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers
}

/// The data as a body: the very bytes, and text in the charset that the content type names, as far
/// as that is ISO 8859-1 and can hold it; UTF-8 otherwise.
fn body(event: &Event) -> Bytes {
    if let Data::Text(text) = event.data()
        && let Some(charset) = event.datacontenttype().and_then(media_type::charset)
        && ["iso-8859-1", "latin1"]
            .iter()
            .any(|name| charset.eq_ignore_ascii_case(name))
        && let Ok(text) = std::str::from_utf8(text)
        && let Ok(bytes) = text
            .chars()
            .map(u8::try_from)
            .collect::<Result<Vec<u8>, _>>()
    {
        return bytes.into();
    }
    event.data_bytes().clone()
}
