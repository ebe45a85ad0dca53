//! The names of rules, targets and buses.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// A checked name: 1 to 64 characters of `a-z A-Z 0-9 . _ -`, a letter or digit first. Cheap to
/// clone, ordered by its bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Name(Arc<str>);

/// Why a text is no [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing is written.
    #[error("a name cannot be empty")]
    Empty,
    /// More than [`Name::CHARACTERS_MAX`] characters.
    #[error(
        "a name has at most {} characters, not {characters}",
        Name::CHARACTERS_MAX
    )]
    TooLong { characters: usize },
    /// It starts with `.`, `_` or `-`.
    #[error("a name starts with a letter or digit, not with {character:?}")]
    Start { character: char },
    /// A character outside the alphabet.
    #[error("a name has only a-z, A-Z, 0-9, '.', '_' and '-', not {character:?}")]
    Character { character: char },
}

impl Name {
    /// The longest name, in characters.
    pub const CHARACTERS_MAX: usize = 64;

    /// Checks a text.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Name, NameError> {
        let first = text.chars().next().ok_or(NameError::Empty)?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if let Some(character) = text.chars().find(|c| !allowed(*c)) {
            return Err(NameError::Character { character });
        }
        if !first.is_ascii_alphanumeric() {
            return Err(NameError::Start { character: first });
        }
        let characters = text.len();
        if characters > Self::CHARACTERS_MAX {
            return Err(NameError::TooLong { characters });
        }
        Ok(Name(Arc::from(text)))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Name::parse(text)
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Name::parse(&text)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
