//! To and from the event type of the official crate, `cloudevents::Event`.
//!
//! That type holds less than ours. It loses the order of attributes; it keeps `time` as an instant
//! in UTC with nanoseconds, and `dataschema` as a normalised URL; and it holds JSON data as a value,
//! so that white space, repeated keys and the digits of long numbers are lost. Everything else
//! comes back as it was.

use cloudevents::event::{EventBuilderError, ExtensionValue, SpecVersion};
use cloudevents::{
    AttributesReader as _, AttributesWriter as _, EventBuilder as _, EventBuilderV10,
};
use url::Url;

use crate::event::{Attribute, Data, Error, Event, SPECVERSION, Value, ValueFault, json};

/// Our event as the crate's.
///
/// JSON data becomes a JSON value; a document that a value cannot hold (a number such as `1E400`)
/// goes over as bytes.
///
/// # Errors
///
/// [`Error::Unrepresentable`] for a `time` or `dataschema` that the crate cannot hold, such as the
/// URI `http://`, which is no URL.
pub fn to_sdk(event: &Event) -> Result<cloudevents::Event, Error> {
    let mut builder = EventBuilderV10::new()
        .id(event.id())
        .source(event.source())
        .ty(event.event_type());
    if let Some(subject) = event.subject() {
        builder = builder.subject(subject);
    }
    if let Some(time) = event.time() {
        builder = builder.time(time);
    }
    for attribute in event
        .attributes()
        .iter()
        .filter(|it| is_extension(&it.name))
    {
        builder = builder.extension(&attribute.name, extension_value(&attribute.value));
    }
    let mut sdk = builder.build().map_err(unrepresentable)?;
    if let Some(uri) = event.dataschema() {
        let url = Url::parse(uri).map_err(|_| Error::Unrepresentable { name: "dataschema" })?;
        sdk.set_dataschema(Some(url));
    }
    sdk.set_datacontenttype(event.datacontenttype());
    if let Some(data) = data_to_sdk(event.data()) {
        sdk.set_data_unchecked(data);
    }
    Ok(sdk)
}

/// The crate's event as ours, extensions in the order of their names.
///
/// A string under a JSON type, or under none, is taken as the JSON document it spells, as the crate
/// itself does, and as bytes when it spells none.
///
/// # Errors
///
/// The event breaks a rule that the crate does not check, or is one of version 0.3.
pub fn from_sdk(sdk: cloudevents::Event) -> Result<Event, Error> {
    if sdk.specversion() != SpecVersion::V10 {
        return Err(Error::UnsupportedSpecversion {
            found: sdk.specversion().to_string(),
        });
    }
    let mut attributes = vec![
        Attribute::text("specversion", SPECVERSION),
        Attribute::text("id", sdk.id()),
        Attribute::text("source", sdk.source().as_str()),
        Attribute::text("type", sdk.ty()),
    ];
    let optional = [
        ("subject", sdk.subject().map(str::to_owned)),
        (
            "time",
            sdk.time()
                .map(|time| time.to_rfc3339().replace("+00:00", "Z")),
        ),
        ("datacontenttype", sdk.datacontenttype().map(str::to_owned)),
        ("dataschema", sdk.dataschema().map(Url::to_string)),
    ];
    for (name, value) in optional {
        attributes.extend(value.map(|value| Attribute::text(name, value)));
    }
    let mut extensions: Vec<_> = sdk.iter_extensions().collect();
    extensions.sort_unstable_by_key(|(name, _)| *name);
    for (name, value) in extensions {
        attributes.push(extension(name, value)?);
    }
    let is_json = sdk.datacontenttype().is_none_or(super::is_json_media_type);
    let data = data_from_sdk(sdk.data(), is_json);
    Event::new(attributes, data)
}

fn is_extension(name: &str) -> bool {
    !SpecVersion::V10.attribute_names().contains(&name)
}

fn extension_value(value: &Value) -> ExtensionValue {
    match value {
        Value::String(text) => ExtensionValue::String(text.clone()),
        Value::Integer(number) => ExtensionValue::Integer(i64::from(*number)),
        Value::Boolean(value) => ExtensionValue::Boolean(*value),
    }
}

fn extension(name: &str, value: &ExtensionValue) -> Result<Attribute, Error> {
    let out_of_range = |_| Error::InvalidAttributeValue {
        name: super::error::excerpt(name),
        fault: ValueFault::IntegerRange,
    };
    let value = match value {
        ExtensionValue::String(text) => Value::String(text.clone()),
        ExtensionValue::Boolean(value) => Value::Boolean(*value),
        ExtensionValue::Integer(number) => {
            Value::Integer(i32::try_from(*number).map_err(out_of_range)?)
        }
    };
    Ok(Attribute {
        name: name.to_owned(),
        value,
    })
}

fn data_to_sdk(data: &Data) -> Option<cloudevents::Data> {
    match data {
        Data::Absent => None,
        Data::Json(text) => Some(match serde_json::from_slice(text) {
            Ok(value) => cloudevents::Data::Json(value),
            Err(_) => cloudevents::Data::Binary(text.to_vec()),
        }),
        Data::Text(text) => Some(match String::from_utf8(text.to_vec()) {
            Ok(text) => cloudevents::Data::String(text),
            Err(error) => cloudevents::Data::Binary(error.into_bytes()),
        }),
        Data::Binary(bytes) => Some(cloudevents::Data::Binary(bytes.to_vec())),
    }
}

fn data_from_sdk(data: Option<&cloudevents::Data>, is_json: bool) -> Data {
    match data {
        None => Data::Absent,
        Some(cloudevents::Data::Binary(bytes)) => Data::Binary(bytes.clone().into()),
        Some(cloudevents::Data::Json(value)) if is_json => Data::Json(value.to_string().into()),
        Some(cloudevents::Data::Json(value)) => Data::Text(value.to_string().into()),
        Some(cloudevents::Data::String(text)) if !is_json => Data::Text(text.clone().into()),
        Some(cloudevents::Data::String(text)) if json::is_document(text.as_bytes()) => {
            Data::Json(text.clone().into())
        }
        Some(cloudevents::Data::String(text)) => Data::Binary(text.clone().into()),
    }
}

fn unrepresentable(error: EventBuilderError) -> Error {
    let name = match error {
        EventBuilderError::MissingRequiredAttribute { attribute_name }
        | EventBuilderError::ParseTimeError { attribute_name, .. }
        | EventBuilderError::ParseUrlError { attribute_name, .. }
        | EventBuilderError::InvalidUriRefError { attribute_name } => attribute_name,
    };
    Error::Unrepresentable { name }
}
