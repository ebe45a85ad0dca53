//! What documents are called.

use std::fmt;

use crate::rule::default_bus;

/// The kinds of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Bus,
    Schema,
    SchemaPolicy,
    /// The highest version number an event type ever gave out, kept when that version is deleted;
    /// written by dak alone.
    SchemaNumber,
    Target,
    Rule,
}

impl Kind {
    /// Every kind.
    pub(super) const ALL: [Self; 6] = [
        Self::Bus,
        Self::Schema,
        Self::SchemaPolicy,
        Self::SchemaNumber,
        Self::Target,
        Self::Rule,
    ];

    /// The word under `kind` in a document.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bus => "Bus",
            Self::Schema => "Schema",
            Self::SchemaPolicy => "SchemaPolicy",
            Self::SchemaNumber => "SchemaNumber",
            Self::Target => "Target",
            Self::Rule => "Rule",
        }
    }

    /// Whether people write documents of this kind; schemas are files of their own.
    pub(super) fn is_written(self) -> bool {
        !matches!(self, Self::Schema | Self::SchemaNumber)
    }

    /// The kind of that word, if there is one.
    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// What a document is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    pub kind: Kind,
    /// The bus of a rule; empty for what all buses share.
    pub bus: String,
    /// The event type of a schema and of its policy; the name of everything else.
    pub name: String,
    /// From 1 for schemas, 0 for everything else.
    pub version: u32,
}

impl Id {
    /// The id of a document that all buses share.
    #[must_use]
    pub fn shared(kind: Kind, name: &str) -> Self {
        Self {
            kind,
            bus: String::new(),
            name: name.to_owned(),
            version: 0,
        }
    }

    /// The id of a rule.
    #[must_use]
    pub fn rule(bus: &str, name: &str) -> Self {
        Self {
            kind: Kind::Rule,
            bus: bus.to_owned(),
            name: name.to_owned(),
            version: 0,
        }
    }

    /// The id of a schema version.
    #[must_use]
    pub fn schema(event_type: &str, version: u32) -> Self {
        Self {
            version,
            ..Self::shared(Kind::Schema, event_type)
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)?;
        if self.version > 0 {
            write!(f, " version {}", self.version)?;
        }
        if !self.bus.is_empty() && self.bus != default_bus().as_str() {
            write!(f, " on bus {}", self.bus)?;
        }
        Ok(())
    }
}
