//! YAML and JSON files as located trees, and findings with exact places.
//!
//! Every [`Node`] knows its line and column, numbers keep their spelling and maps their order, so
//! that whoever judges a file can point at the very place that is wrong. [`parse_yaml`] and
//! [`parse_json`] make the tree, [`Fields`] reads a map of it, [`Finding`] and [`report`] tell a
//! person about it. What the fields mean is left to the modules that own them.

mod fields;
mod finding;
mod json;
mod name;
mod pointer;
mod quantity;
pub mod report;
mod scalar;
mod spelling;
#[cfg(test)]
mod tests;
mod yaml;

pub use fields::Fields;
pub use finding::{Finding, Severity};
pub use json::parse_json;
pub use name::{Name, NameError};
pub use quantity::{QuantityError, duration_text, parse_duration, parse_size, size_text};
pub use spelling::closest;
pub use yaml::parse_yaml;

use std::fmt;

/// Levels of lists and maps inside one another, in YAML and JSON alike. It stays below the
/// recursion limit of `serde_json` (127), so a tree taken here can be parsed again anywhere.
pub const DEPTH_MAX: usize = 100;

/// Bytes of one YAML or JSON text. Large generated rule files fit; line and column fit a `u32`.
pub const TEXT_BYTES_MAX: usize = 256 << 20;

/// A place in a text: line and column, both counted from 1, the column in characters.
///
/// Line breaks are LF, CRLF and a lone CR. A byte order mark takes no column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl Position {
    /// The first character of a text; also the place of what was never written in a file.
    pub const START: Position = Position { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One value of a tree and the place where it starts.
///
/// A YAML value that carries a tag or an anchor starts there; one that was left out (`key:`)
/// stands where its key or dash stands, and a text block (`|`, `>`) where its first line does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub value: Content,
    pub at: Position,
}

/// What a [`Node`] holds: the JSON data model, with number text in place of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Null,
    Bool(bool),
    /// A valid JSON number text that fits a finite `f64`. The spelling is the author's wherever
    /// that is JSON; YAML's other spellings (`0x10`, `+1`, `.5`) are rewritten.
    Number(String),
    String(String),
    List(Vec<Node>),
    /// Entries in the order of the text; keys are unique.
    Map(Vec<(Key, Node)>),
}

/// A key of a map and the place where it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub text: String,
    pub at: Position,
}

/// Something wrong at one place of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub at: Position,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Fault {
    /// A fault without a hint.
    pub fn new(at: Position, message: impl Into<String>) -> Self {
        Fault {
            at,
            message: message.into(),
            hint: None,
        }
    }

    /// The same fault with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.at;
        write!(f, "line {line}, column {column}: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}

impl Node {
    /// The tree of a JSON value that came without a text; every place is line 1, column 1.
    pub fn from_value(value: &serde_json::Value) -> Node {
        let value = match value {
            serde_json::Value::Null => Content::Null,
            serde_json::Value::Bool(flag) => Content::Bool(*flag),
            serde_json::Value::Number(number) => Content::Number(number.to_string()),
            serde_json::Value::String(text) => Content::String(text.clone()),
            serde_json::Value::Array(items) => {
                Content::List(items.iter().map(Node::from_value).collect())
            }
            serde_json::Value::Object(entries) => {
                let entry = |(text, value): (&String, &serde_json::Value)| {
                    let key = Key {
                        text: text.clone(),
                        at: Position::START,
                    };
                    (key, Node::from_value(value))
                };
                Content::Map(entries.iter().map(entry).collect())
            }
        };
        Node {
            value,
            at: Position::START,
        }
    }

    /// The tree as a JSON value. Numbers become `u64`, `i64` or the nearest `f64`.
    pub fn to_value(&self) -> serde_json::Value {
        match &self.value {
            Content::Null => serde_json::Value::Null,
            Content::Bool(flag) => serde_json::Value::Bool(*flag),
            Content::Number(text) => number_value(text),
            Content::String(text) => serde_json::Value::String(text.clone()),
            Content::List(items) => items.iter().map(Node::to_value).collect(),
            Content::Map(entries) => entries
                .iter()
                .map(|(key, node)| (key.text.clone(), node.to_value()))
                .collect(),
        }
    }

    /// The tree as compact JSON text, keys in order and numbers as spelled.
    pub fn to_json(&self) -> String {
        json::write(self)
    }

    /// What the node is, with its article: "a string", "a list".
    pub fn kind_name(&self) -> &'static str {
        match self.value {
            Content::Null => "null",
            Content::Bool(_) => "a boolean",
            Content::Number(_) => "a number",
            Content::String(_) => "a string",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }

    /// Whether this is `null`, written or left out.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Content::Null)
    }

    /// The text of a string; no other kind is converted.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Content::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Content::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// The text of a number, as spelled.
    pub fn as_number_text(&self) -> Option<&str> {
        match &self.value {
            Content::Number(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a whole number from 0 on; `5.0` and `1e3` count as whole up to 2^53.
    pub fn as_u64(&self) -> Option<u64> {
        let text = self.as_number_text()?;
        text.parse().ok().or_else(|| whole(text.parse().ok()?))
    }

    /// The value of any number, rounded to the nearest `f64`.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number_text()?.parse().ok()
    }

    /// The items of a list.
    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.value {
            Content::List(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a map, in order.
    pub fn as_map(&self) -> Option<&[(Key, Node)]> {
        match &self.value {
            Content::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value under a key, when this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let mut entries = self.as_map()?.iter();
        entries.find(|(k, _)| k.text == key).map(|(_, node)| node)
    }
}

/// The number that a text means, to the last bit; `serde_json` alone may be off by one there. A
/// node built by hand may hold no number at all, which becomes null as it would in JavaScript.
fn number_value(text: &str) -> serde_json::Value {
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    match text.parse::<i64>() {
        Ok(number) if number != 0 => number.into(),
        // Minus zero is a float.
        _ => text
            .parse::<f64>()
            .map_or(serde_json::Value::Null, Into::into),
    }
}

/// The whole number that a decimal or exponent spelling means, where `f64` is exact.
fn whole(number: f64) -> Option<u64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let exact = number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number);
    exact.then_some(number as u64)
}

/// The lines of a text as a [`Position`] counts them, without byte order mark and line breaks.
fn lines(text: &str) -> Vec<&str> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find(['\n', '\r']) {
        lines.push(&rest[..end]);
        let broken = &rest[end..];
        let width = if broken.starts_with("\r\n") { 2 } else { 1 };
        rest = &broken[width..];
    }
    lines.push(rest);
    lines
}

/// The fault of a text over [`TEXT_BYTES_MAX`].
fn check_length(text: &str) -> Result<(), Fault> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "the text has {} bytes; at most {TEXT_BYTES_MAX} are read",
        text.len()
    );
    Err(Fault::new(Position::START, message).with_hint("split it into several files"))
}

/// The fault of nesting beyond [`DEPTH_MAX`].
fn too_deep(at: Position) -> Fault {
    Fault::new(at, format!("nested deeper than {DEPTH_MAX} levels"))
}

/// The fault of the first key that a map holds twice.
fn check_unique(entries: &[(Key, Node)]) -> Result<(), Fault> {
    const SCAN_MAX: usize = 8;
    let repeated = if entries.len() <= SCAN_MAX {
        let held = |i: usize| entries[..i].iter().any(|e| e.0.text == entries[i].0.text);
        (1..entries.len()).find(|i| held(*i))
    } else {
        let mut seen = std::collections::HashSet::with_capacity(entries.len());
        entries.iter().position(|(key, _)| !seen.insert(&key.text))
    };
    let Some((key, _)) = repeated.map(|i| &entries[i]) else {
        return Ok(());
    };
    let first = entries.iter().find(|(k, _)| k.text == key.text);
    let line = first.map_or(key.at.line, |(k, _)| k.at.line);
    let message = format!("the key `{}` is already there, on line {line}", key.text);
    Err(Fault::new(key.at, message).with_hint("keep one of the two"))
}
