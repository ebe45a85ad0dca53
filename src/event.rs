//! The CloudEvents 1.0 event: attributes and data as they came, byte for byte.
//!
//! [`json`] reads and writes the JSON event format, [`binding`] the HTTP protocol binding,
//! [`interop`] converts to and from the official crate. Matching, validation against schemas
//! and storage are left to the modules above.

pub mod binding;
mod check;
mod error;
pub mod interop;
pub mod json;
mod media_type;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bytes::Bytes;

pub use error::{Error, ValueFault};
pub use media_type::is_json_media_type;

/// Attributes of one event, `data` members and nulls included, at most; more than an event of
/// 64 KiB, the size every intermediary must carry (CloudEvents §5.2), has room for.
pub const ATTRIBUTES_MAX: usize = 10_000;

/// Bytes of an attribute name at most: what an HTTP header name holds beside its `ce-`.
pub const NAME_BYTES_MAX: usize = 65_532;

/// The only `specversion` this gateway speaks.
pub const SPECVERSION: &str = "1.0";

/// One CloudEvents 1.0 event that has passed every MUST of the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    attributes: Vec<Attribute>,
    data: Data,
}

/// One context attribute, core or extension, `specversion` included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// The name: lower-case letters and digits.
    pub name: String,
    /// The value as it came.
    pub value: Value,
}

/// An attribute's value. Integers and booleans appear only where JSON carried them natively
/// (JSON format §2.2); everything else is the text as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text, also for timestamps, URIs and binary values.
    String(String),
    /// A native 32-bit integer.
    Integer(i32),
    /// A native boolean.
    Boolean(bool),
}

/// The event's data as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// No data at all; distinct from a JSON `null`.
    Absent,
    /// JSON text, exactly the bytes received (a valid JSON document; digits and spelling survive).
    Json(Bytes),
    /// UTF-8 text that structured mode carried as a JSON string under a content type that is not JSON.
    Text(Bytes),
    /// Bytes: a binary-mode body that is not JSON, or `data_base64`.
    Binary(Bytes),
}

impl Attribute {
    /// An attribute whose value is text.
    pub fn text(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: Value::String(value.into()),
        }
    }
}

impl Value {
    /// The canonical text (CloudEvents §3.1): `true`, `-7`, or the string itself.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::String(text) => Cow::Borrowed(text),
            Self::Integer(number) => Cow::Owned(number.to_string()),
            Self::Boolean(true) => Cow::Borrowed("true"),
            Self::Boolean(false) => Cow::Borrowed("false"),
        }
    }
}

impl Data {
    /// The number the store keeps beside the bytes to tell the kinds apart.
    pub fn kind_code(&self) -> u8 {
        match self {
            Self::Absent => 0,
            Self::Json(_) => 1,
            Self::Text(_) => 2,
            Self::Binary(_) => 3,
        }
    }

    /// The data of a [`kind_code`](Self::kind_code) and its bytes; `None` for a code that no kind has.
    pub fn from_code(code: u8, bytes: Bytes) -> Option<Self> {
        match code {
            0 => Some(Self::Absent),
            1 => Some(Self::Json(bytes)),
            2 => Some(Self::Text(bytes)),
            3 => Some(Self::Binary(bytes)),
            _ => None,
        }
    }

    /// The bytes of any kind; empty when absent.
    pub fn bytes(&self) -> &Bytes {
        static EMPTY: Bytes = Bytes::new();
        match self {
            Self::Absent => &EMPTY,
            Self::Json(bytes) | Self::Text(bytes) | Self::Binary(bytes) => bytes,
        }
    }
}

impl Event {
    /// An event of these attributes and this data.
    ///
    /// # Errors
    ///
    /// The first rule of CloudEvents 1.0 that the attributes or the data break: a name, a value or
    /// a repetition that is not allowed, a required attribute that is missing, JSON data that is no
    /// JSON document, or data of a kind that contradicts `datacontenttype`.
    pub fn new(attributes: Vec<Attribute>, data: Data) -> Result<Self, Error> {
        check::attributes(&attributes)?;
        let event = Self { attributes, data };
        check::data(&event)?;
        Ok(event)
    }

    /// An event that [`Event::new`] or a decoder has accepted before, read back from
    /// [`attributes_to_json`](Self::attributes_to_json) and its data. The rules are not checked again.
    ///
    /// # Errors
    ///
    /// The text is no JSON object of attribute values, or a required attribute is not in it.
    pub fn from_stored(attributes_json: &str, data: Data) -> Result<Self, Error> {
        let attributes = json::decode_attributes(attributes_json)?;
        check::required(&attributes)?;
        Ok(Self { attributes, data })
    }

    /// All attributes as one JSON object, in order, integers and booleans native: the form that is stored.
    pub fn attributes_to_json(&self) -> String {
        json::encode_attributes(&self.attributes)
    }

    /// `id`, never empty.
    pub fn id(&self) -> &str {
        self.text_of("id").unwrap_or_default()
    }

    /// `source`, a URI-reference.
    pub fn source(&self) -> &str {
        self.text_of("source").unwrap_or_default()
    }

    /// `type`, never empty.
    pub fn event_type(&self) -> &str {
        self.text_of("type").unwrap_or_default()
    }

    /// `specversion`, always [`SPECVERSION`].
    pub fn specversion(&self) -> &str {
        self.text_of("specversion").unwrap_or_default()
    }

    /// `subject`, when the event has one.
    pub fn subject(&self) -> Option<&str> {
        self.text_of("subject")
    }

    /// `time` as it came: RFC 3339 with the producer's digits and offset.
    pub fn time(&self) -> Option<&str> {
        self.text_of("time")
    }

    /// `datacontenttype` as it came, parameters included. Absent is absent: nothing is inferred.
    pub fn datacontenttype(&self) -> Option<&str> {
        self.text_of("datacontenttype")
    }

    /// `dataschema`, an absolute URI.
    pub fn dataschema(&self) -> Option<&str> {
        self.text_of("dataschema")
    }

    /// The value of the attribute of this name, core or extension.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
            .map(|attribute| &attribute.value)
    }

    /// All attributes in the order they came.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The data as it came.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The bytes of the data; empty when there is none.
    pub fn data_bytes(&self) -> &Bytes {
        self.data.bytes()
    }

    /// The data as JSON text, for matching and validation: JSON as it came, or the bytes of
    /// `data_base64` when the content type says JSON and they are a valid document.
    pub fn data_json(&self) -> Option<&[u8]> {
        match &self.data {
            Data::Json(text) => Some(text),
            Data::Binary(bytes) => {
                let declared = self.datacontenttype().is_some_and(is_json_media_type);
                (declared && json::is_document(bytes)).then_some(bytes.as_ref())
            }
            Data::Absent | Data::Text(_) => None,
        }
    }

    /// The same event with other data, for the claim check. The kind should suit `datacontenttype`;
    /// the encoders write any combination without loss.
    pub fn with_data(self, data: Data) -> Self {
        Self { data, ..self }
    }

    /// The attributes, in order, and the data.
    pub fn into_parts(self) -> (Vec<Attribute>, Data) {
        (self.attributes, self.data)
    }

    fn text_of(&self, name: &str) -> Option<&str> {
        match self.attribute(name) {
            Some(Value::String(text)) => Some(text),
            Some(Value::Integer(_) | Value::Boolean(_)) | None => None,
        }
    }
}
