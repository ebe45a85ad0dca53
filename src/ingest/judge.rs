//! Validation: which schema judges an event, and what its verdict means.

use std::sync::Arc;

use super::{Ingest, Refusal, WrongSchema};
use crate::catalog::{Bus, Catalog, Subject, UnknownTypes};
use crate::event::Event;
use crate::schema::{Mode, Schema};
use crate::store::{Facts, JudgedBy};
use crate::telemetry::trace::{self, EventFacts};

/// The path of a schema version below a public address.
const VERSIONS: &str = "/v1/schemas/";

/// What judges an event: its type's subject, and the version with its number.
type Judge<'a> = (&'a Subject, u32, &'a Arc<Schema>);

impl Ingest {
    /// Judges an event by its schema, if it has one; the answer notes which.
    pub(super) fn validate(
        &self,
        catalog: &Catalog,
        bus: &Bus,
        event: &Event,
        facts_of: &EventFacts<'_>,
    ) -> Result<Facts, Refusal> {
        let bytes = event.data_bytes().len() as u64;
        if bytes > self.options.event_bytes_max {
            return Err(Refusal::TooLarge {
                bytes,
                bytes_max: self.options.event_bytes_max,
            });
        }
        let span = trace::validate_span(facts_of);
        let _entered = span.enter();
        let verdict = self.judge(catalog, bus, event);
        match &verdict {
            Ok(facts) => {
                let version = facts.schema.as_ref().map(|by| by.version);
                let word = match (version, facts.warned) {
                    (None, _) => "unjudged",
                    (Some(_), true) => "warned",
                    (Some(_), false) => "valid",
                };
                trace::record_verdict(&span, word, version);
            }
            Err(refusal) => {
                trace::record_verdict(&span, "refused", None);
                trace::record_error(&span, refusal.reason());
            }
        }
        verdict
    }

    fn judge(&self, catalog: &Catalog, bus: &Bus, event: &Event) -> Result<Facts, Refusal> {
        let Some((subject, version, schema)) = self.schema_of(catalog, bus, event)? else {
            return Ok(Facts::default());
        };
        let mut facts = Facts {
            schema: Some(JudgedBy {
                event_type: event.event_type().to_owned(),
                version,
            }),
            ..Facts::default()
        };
        if subject.mode() == Mode::Off {
            return Ok(facts);
        }
        // Data that is absent or no JSON cannot be what a JSON Schema describes.
        match schema.validate(event.data_json().unwrap_or_default()) {
            Ok(()) => Ok(facts),
            Err(_) if subject.mode() == Mode::Warn => {
                self.metrics.schema_warning(event.event_type());
                facts.warned = true;
                Ok(facts)
            }
            Err(invalid) => Err(Refusal::SchemaViolation {
                by: JudgedBy {
                    event_type: event.event_type().to_owned(),
                    version,
                },
                invalid,
            }),
        }
    }

    /// The schema that judges an event: the version it names, else its type's default.
    fn schema_of<'a>(
        &self,
        catalog: &'a Catalog,
        bus: &Bus,
        event: &Event,
    ) -> Result<Option<Judge<'a>>, Refusal> {
        let subject = catalog.subject(event.event_type());
        if let Some(text) = event.dataschema() {
            match self.named_version(text) {
                Some((event_type, version)) => {
                    return named(subject, event, text, (&event_type, version)).map(Some);
                }
                None => self.metrics.foreign_dataschema(),
            }
        }
        let found = subject.and_then(|subject| {
            let (version, schema) = subject.default_version()?;
            Some((subject, version, schema))
        });
        if found.is_none() {
            if bus.settings.unknown_types == UnknownTypes::Reject {
                return Err(Refusal::UnknownType {
                    event_type: event.event_type().to_owned(),
                    bus: bus.name.to_string(),
                });
            }
            self.metrics.unknown_type(event.event_type());
        }
        Ok(found)
    }

    /// The type and version that a `dataschema` names, when it is one of this registry's.
    fn named_version(&self, text: &str) -> Option<(String, u32)> {
        let path = self
            .options
            .public_urls
            .iter()
            .find_map(|url| text.strip_prefix(url.trim_end_matches('/')))?;
        let (event_type, version) = path.strip_prefix(VERSIONS)?.split_once("/versions/")?;
        let event_type = percent_decode(event_type)?;
        Some((event_type, version.parse().ok()?))
    }
}

fn named<'a>(
    subject: Option<&'a Subject>,
    event: &Event,
    text: &str,
    (event_type, version): (&str, u32),
) -> Result<Judge<'a>, Refusal> {
    let wrong = |why| Refusal::WrongSchema {
        named: text.to_owned(),
        why,
    };
    if event_type != event.event_type() {
        return Err(wrong(WrongSchema::OtherType));
    }
    let subject = subject.ok_or_else(|| wrong(WrongSchema::NoSuchVersion))?;
    let schema = subject
        .versions
        .get(&version)
        .ok_or_else(|| wrong(WrongSchema::NoSuchVersion))?;
    Ok((subject, version, schema))
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let hex = [rest.next()?, rest.next()?];
            let hex = std::str::from_utf8(&hex).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
