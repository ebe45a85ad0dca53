//! The drafts of JSON Schema and how a document names its own.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Error;

/// A published draft of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Draft {
    /// Draft 4: `id`, boolean `exclusiveMaximum`; 1.0 is not an integer.
    #[serde(rename = "draft-04")]
    Draft4,
    /// Draft 6.
    #[serde(rename = "draft-06")]
    Draft6,
    /// Draft 7: the last whose `$ref` silences its siblings.
    #[serde(rename = "draft-07")]
    Draft7,
    /// Draft 2019-09.
    #[serde(rename = "2019-09")]
    Draft201909,
    /// Draft 2020-12, that of a schema which names none.
    #[serde(rename = "2020-12")]
    Draft202012,
}

impl Draft {
    /// The draft that `document` names by `$schema`, or `default` when it names none.
    ///
    /// # Errors
    /// [`Error::UnknownDraft`] when `$schema` names no draft known here.
    pub fn of(document: &Value, default: Draft) -> Result<Self, Error> {
        match document.get("$schema") {
            None => Ok(default),
            Some(Value::String(uri)) => {
                Self::named(uri).ok_or_else(|| Error::UnknownDraft { uri: uri.clone() })
            }
            Some(other) => Err(Error::UnknownDraft {
                uri: other.to_string(),
            }),
        }
    }

    /// The draft of a meta-schema's URI, with or without the trailing `#`, `http` or `https`.
    fn named(uri: &str) -> Option<Self> {
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        let uri = uri
            .strip_prefix("https://")
            .or_else(|| uri.strip_prefix("http://"))?;
        match uri {
            "json-schema.org/draft-04/schema" => Some(Self::Draft4),
            "json-schema.org/draft-06/schema" => Some(Self::Draft6),
            "json-schema.org/draft-07/schema" => Some(Self::Draft7),
            "json-schema.org/draft/2019-09/schema" => Some(Self::Draft201909),
            "json-schema.org/draft/2020-12/schema" | "json-schema.org/schema" => {
                Some(Self::Draft202012)
            }
            _ => None,
        }
    }

    /// Whether `$ref` makes every keyword beside it void (up to draft 7).
    pub(super) fn ref_silences_siblings(self) -> bool {
        self <= Self::Draft7
    }
}

impl From<Draft> for jsonschema::Draft {
    fn from(draft: Draft) -> Self {
        match draft {
            Draft::Draft4 => Self::Draft4,
            Draft::Draft6 => Self::Draft6,
            Draft::Draft7 => Self::Draft7,
            Draft::Draft201909 => Self::Draft201909,
            Draft::Draft202012 => Self::Draft202012,
        }
    }
}
