//! An event made of flags.

use bytes::Bytes;
use serde::de::IgnoredAny;

use super::Parts;
use crate::clock::{Clock, rfc3339};
use crate::event::{self, Attribute, Data, Event, SPECVERSION, is_json_media_type, json};

const JSON: &str = "application/json";

/// Why flags make no event.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum Error {
    /// The data is not JSON, although nothing else was said.
    #[error("--data is not JSON; name its kind with --datacontenttype, such as text/plain")]
    NotJson(#[source] serde_json::Error),
    /// CloudEvents does not allow it.
    #[error("CloudEvents does not allow it")]
    Event(#[source] event::Error),
}

/// The event in the JSON event format. It happens now, under a random id unless one is given.
pub(super) fn event(parts: &Parts) -> Result<Bytes, Error> {
    let id = parts.id.clone();
    let id = id.unwrap_or_else(|| format!("{:032x}", rand::random::<u128>()));
    let now = rfc3339(Clock::system().now());
    let mut attributes = vec![
        Attribute::text("specversion", SPECVERSION),
        Attribute::text("id", id),
        Attribute::text("source", parts.source.as_str()),
        Attribute::text("type", parts.event_type.as_deref().unwrap_or_default()),
    ];
    let is_timed = parts.attribute.iter().any(|(name, _)| name == "time");
    let time = (!is_timed).then_some(now);
    let data = data(parts)?;
    let has_data = !matches!(data, Data::Absent);
    let media_type = parts.datacontenttype.clone();
    let optional = [
        ("time", time),
        ("subject", parts.subject.clone()),
        (
            "datacontenttype",
            media_type.or_else(|| has_data.then(|| JSON.to_owned())),
        ),
    ];
    for (name, value) in optional {
        attributes.extend(value.map(|value| Attribute::text(name, value)));
    }
    let further = parts.attribute.iter();
    attributes.extend(further.map(|(name, value)| Attribute::text(name, value)));
    let event = Event::new(attributes, data).map_err(Error::Event)?;
    Ok(json::encode(&event).into())
}

fn data(parts: &Parts) -> Result<Data, Error> {
    let Some(text) = &parts.data else {
        return Ok(Data::Absent);
    };
    let bytes = Bytes::from(text.clone());
    if parts
        .datacontenttype
        .as_deref()
        .is_none_or(is_json_media_type)
    {
        serde_json::from_slice::<IgnoredAny>(&bytes).map_err(Error::NotJson)?;
        return Ok(Data::Json(bytes));
    }
    Ok(Data::Text(bytes))
}
