//! What patterns are matched against: an event, or a whole JSON document.

use crate::event::{Data, Event};

/// One event to match.
///
/// The bytes of a document are trusted to be JSON: parts that no pattern reads are skipped without
/// being checked, so a text that is no JSON may match as if it were. Nothing worse comes of it.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub(crate) source: Source<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    Document(&'a [u8]),
    Event {
        event: &'a Event,
        data: EventData<'a>,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum EventData<'a> {
    /// No fields: absent, or bytes that are not JSON.
    None,
    Json(&'a [u8]),
    Text(&'a [u8]),
}

impl<'a> Input<'a> {
    /// An event: its attributes under their names, its data under `data`.
    ///
    /// Attributes are matched as they came: JSON carries integers and booleans natively, while in
    /// binary mode every attribute is a string, so that a number in a pattern never equals it.
    /// Text data is a string at `data`; bytes that are not JSON have no fields.
    pub fn event(event: &'a Event) -> Self {
        let data = match (event.data_json(), event.data()) {
            (Some(json), _) => EventData::Json(json),
            (None, Data::Text(text)) => EventData::Text(text),
            (None, Data::Absent | Data::Binary(_) | Data::Json(_)) => EventData::None,
        };
        Self {
            source: Source::Event { event, data },
        }
    }

    /// A whole JSON document, paths as written. A document that is not an object has no fields.
    pub fn raw(document: &'a [u8]) -> Self {
        Self {
            source: Source::Document(document),
        }
    }

    /// The bytes that leaves point into.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        match self.source {
            Source::Document(bytes) => bytes,
            Source::Event { data, .. } => match data {
                EventData::Json(bytes) | EventData::Text(bytes) => bytes,
                EventData::None => &[],
            },
        }
    }

    pub(crate) fn attribute_text(&self, place: usize) -> &'a [u8] {
        match self.source {
            Source::Event { event, .. } => match &event.attributes()[place].value {
                crate::event::Value::String(text) => text.as_bytes(),
                crate::event::Value::Integer(_) | crate::event::Value::Boolean(_) => &[],
            },
            Source::Document(_) => &[],
        }
    }
}
