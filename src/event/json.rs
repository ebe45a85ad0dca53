//! The JSON event format and its batch (CloudEvents JSON format 1.0).
//!
//! Data stays the very bytes received: JSON and unescaped text are slices of the document, and
//! no number, key or white space in them is read, let alone rewritten.

mod scan;
mod string;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::event::error::excerpt;
use crate::event::{
    ATTRIBUTES_MAX, Attribute, Data, Error, Event, Value, ValueFault, check, is_json_media_type,
};

pub use scan::{DEPTH_MAX, Fault, Malformed};
use scan::{Kind, Scanner, Token};

/// Events of one batch at most.
pub const BATCH_EVENTS_MAX: usize = 10_000;

/// Members that an event is first given room for.
const MEMBERS_USUAL: usize = 16;

/// A member of the event's object.
struct Member<'a> {
    name: Cow<'a, str>,
    value: Token,
}

/// Reads one event of type `application/cloudevents+json`.
///
/// # Errors
///
/// The document is no JSON, no object, or breaks a rule of CloudEvents; malformed JSON is told first.
pub fn decode(document: &Bytes) -> Result<Event, Error> {
    let mut scanner = Scanner::new(document)?;
    let mut members = Vec::with_capacity(MEMBERS_USUAL);
    let is_object = scan_event(&mut scanner, &mut members)?;
    scanner.end()?;
    if !is_object {
        return Err(Error::NotAnObject);
    }
    assemble(document, &scanner, &members)
}

/// Reads a batch of type `application/cloudevents-batch+json`: each member on its own, so that the
/// caller may refuse the batch or take its good members.
///
/// # Errors
///
/// The document is no JSON, no array, or has more than [`BATCH_EVENTS_MAX`] members.
pub fn decode_batch(document: &Bytes) -> Result<Vec<Result<Event, Error>>, Error> {
    let mut scanner = Scanner::new(document)?;
    if !scanner.take(b'[') {
        scanner.value(DEPTH_MAX)?;
        scanner.end()?;
        return Err(Error::BatchNotArray);
    }
    let mut events = Vec::new();
    let mut members = Vec::with_capacity(MEMBERS_USUAL);
    let mut more = !scanner.take(b']');
    while more {
        if events.len() == BATCH_EVENTS_MAX {
            return Err(Error::BatchTooLong {
                max: BATCH_EVENTS_MAX,
            });
        }
        members.clear();
        let event = if scan_event(&mut scanner, &mut members)? {
            assemble(document, &scanner, &members)
        } else {
            Err(Error::NotAnObject)
        };
        events.push(event);
        more = scanner.take(b',');
        if !more {
            scanner.expect(b']')?;
        }
    }
    scanner.end()?;
    tell_mixed_versions(&mut events);
    Ok(events)
}

/// Writes one event as `application/cloudevents+json`: JSON data inline as it is, text as a string,
/// bytes as `data_base64`.
pub fn encode(event: &Event) -> Vec<u8> {
    let mut text = Vec::with_capacity(encoded_length(event));
    write_event(&mut text, event);
    text
}

/// Writes events as `application/cloudevents-batch+json`.
pub fn encode_batch(events: &[&Event]) -> Vec<u8> {
    let length: usize = events.iter().map(|event| encoded_length(event) + 1).sum();
    let mut text = Vec::with_capacity(length + 2);
    text.push(b'[');
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_event(&mut text, event);
    }
    text.push(b']');
    text
}

/// Whether these bytes are one JSON document, at most as deep as an event's data may be.
pub(super) fn is_document(bytes: &[u8]) -> bool {
    check_document(bytes).is_ok()
}

/// [`is_document`] with the reason.
pub(super) fn check_document(bytes: &[u8]) -> Result<(), Malformed> {
    let mut scanner = Scanner::new(bytes)?;
    scanner.value(DEPTH_MAX - 1)?;
    scanner.end()
}

/// Reads the attributes that [`encode_attributes`] wrote.
pub(super) fn decode_attributes(text: &str) -> Result<Vec<Attribute>, Error> {
    let mut scanner = Scanner::new(text.as_bytes())?;
    let mut members = Vec::with_capacity(MEMBERS_USUAL);
    if !scan_event(&mut scanner, &mut members)? {
        return Err(Error::NotAnObject);
    }
    scanner.end()?;
    let attribute = |member: &Member<'_>| attribute(&scanner, member).transpose();
    members.iter().filter_map(attribute).collect()
}

/// All attributes as one JSON object.
pub(super) fn encode_attributes(attributes: &[Attribute]) -> String {
    let mut text = Vec::with_capacity(attributes_length(attributes));
    text.push(b'{');
    write_attributes(&mut text, attributes);
    text.push(b'}');
    String::from_utf8(text).expect("names and values are strings, and what stands between is ASCII")
}

/// Goes past one value and collects its members; `false` when it is no object.
fn scan_event<'a>(
    scanner: &mut Scanner<'a>,
    members: &mut Vec<Member<'a>>,
) -> Result<bool, Malformed> {
    if !scanner.take(b'{') {
        scanner.value(DEPTH_MAX)?;
        return Ok(false);
    }
    let mut more = !scanner.take(b'}');
    while more {
        let name = scanner.key()?;
        let value = scanner.value(DEPTH_MAX - 1)?;
        // One beyond the limit is enough to be refused for it.
        if members.len() <= ATTRIBUTES_MAX {
            members.push(Member { name, value });
        }
        more = scanner.take(b',');
        if !more {
            scanner.expect(b'}')?;
        }
    }
    Ok(true)
}

/// The event of these members.
fn assemble(
    document: &Bytes,
    scanner: &Scanner<'_>,
    members: &[Member<'_>],
) -> Result<Event, Error> {
    check::distinct(members, |member| &member.name)?;
    let mut attributes = Vec::with_capacity(members.len());
    let mut data = None;
    let mut data_base64 = None;
    let mut fault = None;
    for member in members {
        match &*member.name {
            "data" => data = Some(member.value),
            "data_base64" => data_base64 = Some(member.value),
            name => match check::name(name).and_then(|()| attribute(scanner, member)) {
                Ok(attribute) => attributes.extend(attribute),
                // An unsupported version, further on, would explain this one.
                Err(error) => fault = fault.or(Some(error)),
            },
        }
    }
    check::version(&attributes)?;
    if let Some(error) = fault {
        return Err(error);
    }
    check::values(&attributes)?;
    let mut event = Event {
        attributes,
        data: Data::Absent,
    };
    event.data = decode_data(document, scanner, &event, data, data_base64)?;
    Ok(event)
}

/// The attribute of a member; `None` for null, which is the same as absent (§3.1).
fn attribute(scanner: &Scanner<'_>, member: &Member<'_>) -> Result<Option<Attribute>, Error> {
    let wrong_type = |found| {
        Err(Error::InvalidAttributeType {
            name: excerpt(&member.name),
            expected: check::types_of(&member.name),
            found,
        })
    };
    let value = match member.value.kind {
        Kind::Null => return Ok(None),
        Kind::Boolean(value) => Value::Boolean(value),
        Kind::String { escaped } => {
            Value::String(scanner.string(member.value, escaped).into_owned())
        }
        Kind::Number { integral: true } => match scanner.raw(member.value).parse() {
            Ok(number) => Value::Integer(number),
            Err(_) if check::is_core(&member.name) => return wrong_type("a number"),
            Err(_) => {
                return Err(Error::InvalidAttributeValue {
                    name: excerpt(&member.name),
                    fault: ValueFault::IntegerRange,
                });
            }
        },
        Kind::Number { integral: false } => {
            return wrong_type("a number with a fraction or an exponent");
        }
        Kind::Array => return wrong_type("an array"),
        Kind::Object => return wrong_type("an object"),
    };
    Ok(Some(Attribute {
        name: member.name.clone().into_owned(),
        value,
    }))
}

/// The data out of the members `data` and `data_base64`; null beside the other counts as absent.
fn decode_data(
    document: &Bytes,
    scanner: &Scanner<'_>,
    event: &Event,
    data: Option<Token>,
    data_base64: Option<Token>,
) -> Result<Data, Error> {
    let is_null = |token: &Token| token.kind == Kind::Null;
    if let Some(token) = data_base64.filter(|token| !is_null(token)) {
        if data.is_some_and(|token| !is_null(&token)) {
            return Err(Error::DataAndDataBase64);
        }
        return decode_base64(scanner, token);
    }
    let Some(token) = data else {
        return Ok(Data::Absent);
    };
    let datacontenttype = event.datacontenttype();
    if datacontenttype.is_none_or(is_json_media_type) {
        return Ok(Data::Json(document.slice(token.start..token.end)));
    }
    match token.kind {
        Kind::Null => Ok(Data::Absent),
        Kind::String { escaped: false } => {
            let inside = token.start + 1..token.end - 1;
            Ok(Data::Text(document.slice(inside)))
        }
        Kind::String { escaped: true } => {
            let text = scanner.string(token, true).into_owned();
            Ok(Data::Text(text.into()))
        }
        Kind::Boolean(_) | Kind::Number { .. } | Kind::Array | Kind::Object => {
            Err(Error::DataTypeMismatch {
                datacontenttype: excerpt(datacontenttype.unwrap_or_default()),
            })
        }
    }
}

fn decode_base64(scanner: &Scanner<'_>, token: Token) -> Result<Data, Error> {
    let Kind::String { escaped } = token.kind else {
        return Err(Error::InvalidBase64);
    };
    let text = scanner.string(token, escaped);
    match STANDARD.decode(text.as_bytes()) {
        Ok(bytes) => Ok(Data::Binary(bytes.into())),
        Err(_) => Err(Error::InvalidBase64),
    }
}

/// Where members differ in version, an unsupported one is told as that (§4: all share one).
fn tell_mixed_versions(events: &mut [Result<Event, Error>]) {
    let mut first = None;
    let mixed = events.iter().any(|event| {
        let version = match event {
            Ok(event) => event.specversion(),
            Err(Error::UnsupportedSpecversion { found }) => found,
            Err(_) => return false,
        };
        *first.get_or_insert(version) != version
    });
    if !mixed {
        return;
    }
    for event in events {
        if let Err(error) = event
            && let Error::UnsupportedSpecversion { found } = error
        {
            *error = Error::BatchMixedSpecversion {
                found: std::mem::take(found),
            };
        }
    }
}

/// Bytes that the event takes in JSON, if nothing must be escaped.
fn encoded_length(event: &Event) -> usize {
    const AROUND_DATA: usize = r#","data_base64":"""#.len() + 4;
    let data = event.data_bytes().len();
    let data = match event.data() {
        Data::Binary(_) => data.div_ceil(3) * 4,
        Data::Absent | Data::Json(_) | Data::Text(_) => data,
    };
    attributes_length(&event.attributes) + AROUND_DATA + data
}

fn attributes_length(attributes: &[Attribute]) -> usize {
    const AROUND_ATTRIBUTE: usize = r#","":"""#.len();
    const NATIVE: usize = "-2147483648".len();
    let length = |attribute: &Attribute| {
        let value = match &attribute.value {
            Value::String(text) => text.len(),
            Value::Integer(_) | Value::Boolean(_) => NATIVE,
        };
        attribute.name.len() + value + AROUND_ATTRIBUTE
    };
    attributes.iter().map(length).sum::<usize>() + 2
}

fn write_event(text: &mut Vec<u8>, event: &Event) {
    text.push(b'{');
    write_attributes(text, &event.attributes);
    write_data(text, event);
    text.push(b'}');
}

fn write_attributes(text: &mut Vec<u8>, attributes: &[Attribute]) {
    for (index, attribute) in attributes.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        string::write(text, &attribute.name);
        text.push(b':');
        match &attribute.value {
            Value::String(value) => string::write(text, value),
            native @ (Value::Integer(_) | Value::Boolean(_)) => {
                text.extend_from_slice(native.text().as_bytes());
            }
        }
    }
}

/// Writes the member `data` or `data_base64`. Data of a kind that `datacontenttype` contradicts is
/// written so that the next hop reads the same bytes.
fn write_data(text: &mut Vec<u8>, event: &Event) {
    let is_json = event.datacontenttype().is_none_or(is_json_media_type);
    match event.data() {
        Data::Absent => {}
        Data::Json(json) if is_json => {
            text.extend_from_slice(br#","data":"#);
            text.extend_from_slice(json);
        }
        Data::Json(bytes) | Data::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(string) if !is_json => {
                text.extend_from_slice(br#","data":"#);
                string::write(text, string);
            }
            Ok(_) | Err(_) => write_base64(text, bytes),
        },
        Data::Binary(bytes) => write_base64(text, bytes),
    }
}

fn write_base64(text: &mut Vec<u8>, bytes: &[u8]) {
    text.extend_from_slice(br#","data_base64":""#);
    text.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    text.push(b'"');
}
