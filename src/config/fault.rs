//! What can be wrong with settings, told by key and by where it was written.

use std::fmt;

use super::settings::{self, Setting};
use crate::document::{QuantityError, closest, size_text};

/// One thing wrong with the settings.
#[derive(Debug)]
pub struct Fault {
    /// The key of the setting; a variable's name, or the file, where there is no setting.
    pub key: String,
    pub origin: Origin,
    pub why: Why,
}

/// Where a setting's value was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    /// Nowhere.
    #[default]
    Default,
    /// In a file, on a line counted from 1.
    File { file: String, line: usize },
    /// In an environment variable of this name.
    Variable(String),
    /// On the command line.
    Flag,
}

/// Why a setting cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// There is no setting of this name.
    #[error("there is no such setting")]
    Unknown { meant: Option<&'static str> },
    /// The prefix is ours, and no setting has this variable.
    #[error("no setting is read from this variable")]
    UnknownVariable { meant: Option<String> },
    /// The text is no value of this setting.
    #[error("{value:?} is not allowed")]
    Value {
        value: String,
        allowed: &'static str,
    },
    /// The text is no size or duration.
    #[error("{value:?} is not allowed: {source}")]
    Quantity {
        value: String,
        allowed: &'static str,
        source: QuantityError,
    },
    /// The log filter does not parse.
    #[error("{value:?} is not allowed: {source}")]
    LogFilter {
        value: String,
        allowed: &'static str,
        source: tracing_subscriber::filter::ParseError,
    },
    /// A URL with a user name or password, which is not shown.
    #[error("the URL holds a user name or password, which would be logged")]
    Credentials { allowed: &'static str },
    /// The file has a list, a table or a date where a value belongs.
    #[error("{found} stands where a value belongs")]
    Kind {
        found: &'static str,
        allowed: &'static str,
    },
    /// The largest event would not fit into the largest body.
    #[error("a body must have room for an event of `max_event_bytes`")]
    BodyBelowEvent { event_bytes_max: u64 },
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// The file is larger than any settings are.
    #[error("the file has {bytes} bytes, of which {bytes_max} are read")]
    TooLarge { bytes: u64, bytes_max: u64 },
    /// The file is not TOML.
    #[error("this is not TOML: {message}")]
    Syntax { message: String },
}

impl Fault {
    pub(super) fn new(key: &str, origin: Origin, why: Why) -> Self {
        Self {
            key: key.to_owned(),
            origin,
            why,
        }
    }

    /// The fault of a key that no setting has.
    pub(super) fn unknown(key: &str, origin: Origin) -> Self {
        let keys = settings::all().iter().map(|setting| setting.key);
        let meant = closest(key, keys.chain(Setting::sections()));
        Self::new(key, origin, Why::Unknown { meant })
    }

    /// What to do about it: what is allowed, or what was perhaps meant.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match &self.why {
            Why::Unknown { meant: Some(meant) } => Some(format!("did you mean `{meant}`?")),
            Why::UnknownVariable { meant: Some(meant) } => Some(format!("did you mean {meant}?")),
            Why::Unknown { meant: None } | Why::UnknownVariable { meant: None } => {
                Some("`dak config` lists all settings".to_owned())
            }
            Why::Value { allowed, .. }
            | Why::Quantity { allowed, .. }
            | Why::LogFilter { allowed, .. }
            | Why::Credentials { allowed }
            | Why::Kind { allowed, .. } => Some(format!("allowed: {allowed}")),
            Why::BodyBelowEvent { event_bytes_max } => {
                Some(format!("allowed: {} or more", size_text(*event_bytes_max)))
            }
            Why::Unreadable(_) | Why::TooLarge { .. } | Why::Syntax { .. } => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, origin, why } = self;
        match origin {
            Origin::Variable(name) if name == key => write!(f, "{key}: {why}")?,
            Origin::File { file, .. } if file == key => write!(f, "{origin}: {why}")?,
            Origin::Default => write!(f, "{key}: {why}")?,
            Origin::File { .. } | Origin::Variable(_) | Origin::Flag => {
                write!(f, "{key} ({origin}): {why}")?;
            }
        }
        match self.hint() {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::Variable(name) => f.write_str(name),
            Self::Flag => f.write_str("command line"),
        }
    }
}
