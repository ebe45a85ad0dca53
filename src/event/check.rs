//! The rules of CloudEvents 1.0 on attributes and on the kind of data, one function a rule.

mod timestamp;
mod uri;

use std::collections::HashSet;

use crate::event::error::excerpt;
use crate::event::{
    ATTRIBUTES_MAX, Attribute, Data, Error, Event, NAME_BYTES_MAX, SPECVERSION, Value, ValueFault,
    json, media_type,
};

/// Up to this many names are compared pair by pair; beyond, a hash set is cheaper.
const PAIRWISE_MAX: usize = 32;

/// The attributes that CloudEvents itself defines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Core {
    Specversion,
    Id,
    Source,
    Type,
    Datacontenttype,
    Dataschema,
    Subject,
    Time,
}

impl Core {
    fn of(name: &str) -> Option<Self> {
        match name {
            "specversion" => Some(Self::Specversion),
            "id" => Some(Self::Id),
            "source" => Some(Self::Source),
            "type" => Some(Self::Type),
            "datacontenttype" => Some(Self::Datacontenttype),
            "dataschema" => Some(Self::Dataschema),
            "subject" => Some(Self::Subject),
            "time" => Some(Self::Time),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Specversion => "specversion",
            Self::Id => "id",
            Self::Source => "source",
            Self::Type => "type",
            Self::Datacontenttype => "datacontenttype",
            Self::Dataschema => "dataschema",
            Self::Subject => "subject",
            Self::Time => "time",
        }
    }
}

/// Whether CloudEvents itself defines this attribute; all of those are text.
pub(super) fn is_core(name: &str) -> bool {
    Core::of(name).is_some()
}

/// What the value of this attribute may be, in words.
pub(super) fn types_of(name: &str) -> &'static str {
    if is_core(name) {
        "a string"
    } else {
        "a string, an integer or a boolean"
    }
}

/// All rules on the attributes of one event.
pub(super) fn attributes(attributes: &[Attribute]) -> Result<(), Error> {
    distinct(attributes, |attribute| &attribute.name)?;
    version(attributes)?;
    for attribute in attributes {
        name(&attribute.name)?;
    }
    values(attributes)
}

/// `specversion`, where it is, is one that we speak. Under another version other rules hold, so this
/// is checked before them.
pub(super) fn version(attributes: &[Attribute]) -> Result<(), Error> {
    let of_version = |attribute: &&Attribute| attribute.name == Core::Specversion.name();
    attributes.iter().find(of_version).map_or(Ok(()), value)
}

/// The rules on values and on what must be there, for attributes whose names are checked.
pub(super) fn values(attributes: &[Attribute]) -> Result<(), Error> {
    for attribute in attributes {
        value(attribute)?;
    }
    required(attributes)
}

/// The four required attributes are there, as text.
pub(super) fn required(attributes: &[Attribute]) -> Result<(), Error> {
    for core in [Core::Specversion, Core::Id, Core::Source, Core::Type] {
        let name = core.name();
        let is_it = |attribute: &Attribute| {
            attribute.name == name && matches!(attribute.value, Value::String(_))
        };
        if !attributes.iter().any(is_it) {
            return Err(Error::MissingAttribute { name });
        }
    }
    Ok(())
}

/// A name consists of lower-case letters and digits and is not `data` (CloudEvents §3.1); the
/// recommended 20 characters are no limit.
pub(super) fn name(name: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(plain) {
        return Err(Error::InvalidAttributeName {
            name: excerpt(name),
        });
    }
    if name == "data" {
        return Err(Error::ReservedAttribute { name: "data" });
    }
    Ok(())
}

/// No name appears twice, and there are not too many.
pub(super) fn distinct<T>(items: &[T], name_of: impl Fn(&T) -> &str) -> Result<(), Error> {
    if items.len() > ATTRIBUTES_MAX {
        return Err(Error::TooManyAttributes {
            max: ATTRIBUTES_MAX,
        });
    }
    let repeated = if items.len() > PAIRWISE_MAX {
        let mut seen = HashSet::with_capacity(items.len());
        items.iter().map(name_of).find(|name| !seen.insert(*name))
    } else {
        repeated_among_few(items, &name_of)
    };
    match repeated {
        Some(name) => Err(Error::DuplicateAttribute {
            name: excerpt(name),
        }),
        None => Ok(()),
    }
}

/// A name seen before sets the bit of its hash; only where the bit is set already are names compared.
fn repeated_among_few<'a, T>(items: &'a [T], name_of: &impl Fn(&T) -> &str) -> Option<&'a str>
where
    T: 'a,
{
    let mut bits = 0_u64;
    for (index, item) in items.iter().enumerate() {
        let name = name_of(item);
        let first = name.bytes().next().unwrap_or_default();
        let last = name.bytes().next_back().unwrap_or_default();
        let bit = 1 << ((usize::from(first) * 31 + usize::from(last) * 7 + name.len()) % 64);
        if bits & bit != 0 && items[..index].iter().any(|other| name_of(other) == name) {
            return Some(name);
        }
        bits |= bit;
    }
    None
}

/// A core attribute is text; text obeys the rules of its attribute.
fn value(attribute: &Attribute) -> Result<(), Error> {
    let found = match &attribute.value {
        Value::String(value) => return text(&attribute.name, value),
        Value::Integer(_) => "a number",
        Value::Boolean(_) => "a boolean",
    };
    if !is_core(&attribute.name) {
        return Ok(());
    }
    Err(Error::InvalidAttributeType {
        name: attribute.name.clone(),
        expected: types_of(&attribute.name),
        found,
    })
}

fn text(name: &str, text: &str) -> Result<(), Error> {
    let core = Core::of(name);
    if let Some(core) = core
        && text.is_empty()
    {
        return Err(Error::EmptyAttribute { name: core.name() });
    }
    let fault = if has_forbidden_character(text) {
        ValueFault::ForbiddenCharacter
    } else {
        match core {
            Some(Core::Specversion) if text != SPECVERSION => {
                return Err(Error::UnsupportedSpecversion {
                    found: excerpt(text),
                });
            }
            Some(Core::Source) if !uri::is_reference(text) => ValueFault::UriReference,
            Some(Core::Dataschema) if !uri::is_absolute(text) => ValueFault::AbsoluteUri,
            Some(Core::Datacontenttype) if !media_type::is_valid(text) => ValueFault::MediaType,
            Some(Core::Time) if !timestamp::is_rfc3339(text) => ValueFault::Timestamp,
            Some(_) | None => return Ok(()),
        }
    };
    Err(Error::InvalidAttributeValue {
        name: excerpt(name),
        fault,
    })
}

/// Control characters and noncharacters are not allowed in a String (CloudEvents §3.1).
fn has_forbidden_character(text: &str) -> bool {
    // Without an early exit the loop over plain ASCII runs many bytes at a time.
    let plain = text
        .bytes()
        .fold(true, |plain, byte| plain & (0x20..0x7f).contains(&byte));
    !plain && text.chars().any(is_forbidden)
}

fn is_forbidden(character: char) -> bool {
    let code = u32::from(character);
    character.is_control() || code & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&code)
}

/// The kind of data agrees with `datacontenttype`, and JSON is JSON.
pub(super) fn data(event: &Event) -> Result<(), Error> {
    let datacontenttype = event.datacontenttype();
    let is_json = datacontenttype.is_none_or(media_type::is_json_media_type);
    let suits = match event.data() {
        Data::Absent | Data::Binary(_) => true,
        Data::Json(text) => {
            json::check_document(text)?;
            is_json
        }
        Data::Text(text) => !is_json && std::str::from_utf8(text).is_ok(),
    };
    if suits {
        return Ok(());
    }
    Err(Error::DataTypeMismatch {
        datacontenttype: excerpt(datacontenttype.unwrap_or_default()),
    })
}
