//! Why something is not a CloudEvents 1.0 event.

use crate::event::json::Malformed;

/// Why an event, a request or a batch was refused. The texts name the rule; [`reason`](Self::reason)
/// gives the stable code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Neither a CloudEvents content type nor `ce-` headers.
    #[error(
        "the request is no CloudEvent: send the ce-id, ce-source, ce-type and ce-specversion headers, \
         or a body of type application/cloudevents+json or application/cloudevents-batch+json"
    )]
    NotACloudEvent,
    /// A CloudEvents content type with a format that is not spoken here.
    #[error(
        "the event format {media_type:?} is not supported: send application/cloudevents+json, \
         application/cloudevents-batch+json or binary mode"
    )]
    UnsupportedEventFormat {
        /// The content type, without parameters.
        media_type: String,
    },
    /// A structured body in a charset other than UTF-8.
    #[error("the charset {charset:?} is not supported: events in JSON are UTF-8")]
    UnsupportedCharset {
        /// The `charset` parameter of the content type.
        charset: String,
    },
    /// A required attribute is not there, or null.
    #[error("the required attribute {name} is missing")]
    MissingAttribute {
        /// The attribute.
        name: &'static str,
    },
    /// A core attribute is there but empty.
    #[error("the attribute {name} must not be empty")]
    EmptyAttribute {
        /// The attribute.
        name: &'static str,
    },
    /// `specversion` is not `1.0`.
    #[error("specversion {found:?} is not supported: send \"1.0\"")]
    UnsupportedSpecversion {
        /// What was sent instead.
        found: String,
    },
    /// A name with anything but lower-case letters and digits, or too long.
    #[error(
        "the attribute name {name:?} is not allowed: use lower-case letters a-z and digits only"
    )]
    InvalidAttributeName {
        /// The name as it came, cut short when long.
        name: String,
    },
    /// A value of a type that the attribute cannot have.
    #[error("the attribute {name} is {found}, but must be {expected}")]
    InvalidAttributeType {
        /// The attribute.
        name: String,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A value that breaks a rule of its type.
    #[error("the value of the attribute {name} is not allowed: {fault}")]
    InvalidAttributeValue {
        /// The attribute.
        name: String,
        /// The rule.
        fault: ValueFault,
    },
    /// An attribute named `data`, or `ce-datacontenttype` in binary mode.
    #[error(
        "{name} must not be sent as an attribute: in binary mode the body is the data and Content-Type its type"
    )]
    ReservedAttribute {
        /// The attribute.
        name: &'static str,
    },
    /// An attribute or data member that appears twice.
    #[error("the attribute {name} appears more than once")]
    DuplicateAttribute {
        /// The attribute.
        name: String,
    },
    /// A `%` without two hexadecimal digits, or bytes that are not UTF-8.
    #[error(
        "the header of the attribute {name} is not percent-encoded UTF-8; a plain percent sign is written %25"
    )]
    InvalidPercentEncoding {
        /// The attribute.
        name: String,
    },
    /// A double quote that is never closed.
    #[error(
        "the header of the attribute {name} has a double quote that is not closed; a plain one is written %22"
    )]
    InvalidQuotedString {
        /// The attribute.
        name: String,
    },
    /// More attributes than [`ATTRIBUTES_MAX`](super::ATTRIBUTES_MAX).
    #[error("the event has more than {max} attributes")]
    TooManyAttributes {
        /// The limit.
        max: usize,
    },
    /// The body is no JSON text.
    #[error("the body is not valid JSON")]
    MalformedJson(#[from] Malformed),
    /// JSON, but no object.
    #[error("an event in JSON must be an object")]
    NotAnObject,
    /// A batch that is no array.
    #[error("a batch must be a JSON array of events")]
    BatchNotArray,
    /// A batch member whose `specversion` is unsupported and differs from another member's.
    #[error("specversion {found:?} differs within the batch: all members must be \"1.0\"")]
    BatchMixedSpecversion {
        /// What this member has.
        found: String,
    },
    /// A batch of more members than [`BATCH_EVENTS_MAX`](super::json::BATCH_EVENTS_MAX).
    #[error("the batch has more than {max} events: send several batches")]
    BatchTooLong {
        /// The limit.
        max: usize,
    },
    /// Members of a batch that are no events: every one, by index from 0, with its reason.
    #[error("{} of the batch's events cannot be accepted; the first is event {}", .0.len(), .0.first().map_or(0, |bad| bad.0))]
    Batch(Vec<(usize, Error)>),
    /// `data` and `data_base64` together.
    #[error("data and data_base64 must not be present together")]
    DataAndDataBase64,
    /// `data_base64` is no string, or not Base64 by RFC 4648 §4.
    #[error(
        "data_base64 must be a string of padded Base64 (RFC 4648, section 4) without white space"
    )]
    InvalidBase64,
    /// An attribute that the type of the official crate cannot hold.
    #[error("the cloudevents crate cannot hold the value of the attribute {name}")]
    Unrepresentable {
        /// The attribute.
        name: &'static str,
    },
    /// `data` of a kind that `datacontenttype` does not allow.
    #[error(
        "the data does not suit the datacontenttype {datacontenttype:?}: under a type that is not JSON, \
         data is a string or data_base64; under a JSON type it is JSON"
    )]
    DataTypeMismatch {
        /// The type, empty when absent.
        datacontenttype: String,
    },
}

/// The rule that an attribute's value breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    /// A control character or a Unicode noncharacter (CloudEvents §3.1 String).
    #[error("it has a control character or a Unicode noncharacter")]
    ForbiddenCharacter,
    /// A number outside 32 bits (CloudEvents §3.1 Integer).
    #[error("an Integer lies between -2147483648 and 2147483647")]
    IntegerRange,
    /// Not RFC 3339.
    #[error("it is no RFC 3339 timestamp such as 2026-01-31T12:30:00Z")]
    Timestamp,
    /// Not a URI-reference by RFC 3986.
    #[error("it is no URI-reference (RFC 3986); a blank is written %20")]
    UriReference,
    /// Not an absolute URI by RFC 3986.
    #[error("it is no absolute URI (RFC 3986) such as https://example.com/schema")]
    AbsoluteUri,
    /// Not a media type by RFC 2046.
    #[error("it is no media type such as application/json")]
    MediaType,
    /// Bytes of a header that are not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
}

impl Error {
    /// The stable code of the reason, as the problem documents and metrics carry it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotACloudEvent => "not_a_cloudevent",
            Self::UnsupportedEventFormat { .. } => "unsupported_event_format",
            Self::UnsupportedCharset { .. } => "unsupported_charset",
            Self::MissingAttribute { .. } => "missing_attribute",
            Self::EmptyAttribute { .. } => "empty_attribute",
            Self::UnsupportedSpecversion { .. } => "unsupported_specversion",
            Self::InvalidAttributeName { .. } => "invalid_attribute_name",
            Self::InvalidAttributeType { .. } => "invalid_attribute_type",
            Self::InvalidAttributeValue { .. } => "invalid_attribute_value",
            Self::ReservedAttribute { .. } => "reserved_attribute",
            Self::DuplicateAttribute { .. } => "duplicate_attribute",
            Self::InvalidPercentEncoding { .. } => "invalid_percent_encoding",
            Self::InvalidQuotedString { .. } => "invalid_quoted_string",
            Self::TooManyAttributes { .. } => "too_many_attributes",
            Self::MalformedJson(_) => "malformed_json",
            Self::NotAnObject => "not_an_object",
            Self::BatchNotArray => "batch_not_array",
            Self::BatchMixedSpecversion { .. } => "batch_mixed_specversion",
            Self::BatchTooLong { .. } => "batch_too_long",
            Self::Batch(members) => batch_reason(members),
            Self::DataAndDataBase64 => "data_and_data_base64",
            Self::InvalidBase64 => "invalid_base64",
            Self::DataTypeMismatch { .. } => "data_type_mismatch",
            Self::Unrepresentable { .. } => "unrepresentable",
        }
    }

    /// The attribute at fault, where there is one; for a batch, that of its first bad member.
    pub fn attribute(&self) -> Option<&str> {
        match self {
            Self::MissingAttribute { name }
            | Self::EmptyAttribute { name }
            | Self::ReservedAttribute { name }
            | Self::Unrepresentable { name } => Some(name),
            Self::InvalidAttributeName { name }
            | Self::InvalidAttributeType { name, .. }
            | Self::InvalidAttributeValue { name, .. }
            | Self::DuplicateAttribute { name }
            | Self::InvalidPercentEncoding { name }
            | Self::InvalidQuotedString { name } => Some(name),
            Self::UnsupportedSpecversion { .. } | Self::BatchMixedSpecversion { .. } => {
                Some("specversion")
            }
            Self::DataAndDataBase64 | Self::InvalidBase64 => Some("data_base64"),
            Self::DataTypeMismatch { .. } => Some("data"),
            Self::Batch(members) => members.first().and_then(|(_, error)| error.attribute()),
            Self::NotACloudEvent
            | Self::UnsupportedEventFormat { .. }
            | Self::UnsupportedCharset { .. }
            | Self::TooManyAttributes { .. }
            | Self::MalformedJson(_)
            | Self::NotAnObject
            | Self::BatchNotArray
            | Self::BatchTooLong { .. } => None,
        }
    }

    /// The index, from 0, of a batch's first bad member.
    pub fn index(&self) -> Option<usize> {
        self.members().first().map(|(index, _)| *index)
    }

    /// Every bad member of a batch with its index from 0; empty for all other errors.
    pub fn members(&self) -> &[(usize, Error)] {
        if let Self::Batch(members) = self {
            members
        } else {
            &[]
        }
    }
}

/// One code for a batch: that of mixed versions when nothing else is wrong.
fn batch_reason(members: &[(usize, Error)]) -> &'static str {
    let mixed = |(_, error): &(usize, Error)| matches!(error, Error::BatchMixedSpecversion { .. });
    if members.iter().all(mixed) {
        "batch_mixed_specversion"
    } else {
        "batch_member_invalid"
    }
}

/// Characters of foreign text that an error repeats at most.
const EXCERPT_CHARS_MAX: usize = 64;

/// The beginning of a foreign text, so that no error grows with its input.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
