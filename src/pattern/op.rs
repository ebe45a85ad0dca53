//! The tests a pattern may ask of one value: one operator a file, one variant each.

pub(crate) mod all_of;
pub(crate) mod anything_but;
pub(crate) mod cidr;
pub(crate) mod exact;
pub(crate) mod exists;
pub(crate) mod ignore_case;
pub(crate) mod numeric;
pub(crate) mod prefix;
pub(crate) mod suffix;
pub(crate) mod wildcard;

use std::fmt;

pub use anything_but::AnythingBut;
pub use cidr::Cidr;
pub use exact::Scalar;
pub use numeric::{Bound, Range};
pub use wildcard::Wildcard;

use super::error::{Error, Fault};
use super::limits::Limits;
use super::number::Number;
use super::text::{Json, Node};

/// One test of one value. A field holds when one of its tests holds for one value at its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// The value itself: a string, a number, `true`, `false` or `null`.
    Exact(Scalar),
    /// `exists`: some value (true), or none (false).
    Exists(bool),
    /// `prefix`: a string that begins with this one.
    Prefix(Box<str>),
    /// `prefix` with `equals-ignore-case`.
    PrefixIgnoreCase(Box<str>),
    /// `suffix`: a string that ends with this one.
    Suffix(Box<str>),
    /// `suffix` with `equals-ignore-case`.
    SuffixIgnoreCase(Box<str>),
    /// `equals-ignore-case`: this string in any case.
    IgnoreCase(Box<str>),
    /// `wildcard`: a string with `*` for any run of characters.
    Wildcard(Wildcard),
    /// `numeric`: a number within bounds.
    Numeric(Box<Range>),
    /// `cidr`: a string that is an IP address of a block.
    Cidr(Cidr),
    /// `anything-but`: any value that is none of these.
    AnythingBut(AnythingBut),
    /// `all-of`, beyond EventBridge: a value for which every one of these tests holds.
    AllOf(Box<[Op]>),
}

/// A value of an event. Text is UTF-8, but for lone surrogates, which are three bytes each (WTF-8)
/// and so equal to no text that a pattern can hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Number(Number<'a>),
    Text(&'a [u8]),
}

impl Op {
    /// Reads one member of a field's list.
    pub(crate) fn parse(node: &Node<'_>, limits: &Limits) -> Result<Self, Error> {
        match &node.value {
            Json::Object(members) => Self::parse_expression(node, members, limits),
            Json::Array(_) => Err(node.fault(Fault::NestedList)),
            _ => exact::parse(node).map(Self::Exact),
        }
    }

    fn parse_expression(
        node: &Node<'_>,
        members: &[(String, Node<'_>)],
        limits: &Limits,
    ) -> Result<Self, Error> {
        let [(name, operand)] = members else {
            return Err(node.fault(Fault::NotOneKey));
        };
        let op = match name.as_str() {
            "exactly" => exact::parse_text(operand),
            "exists" => exists::parse(operand),
            "prefix" => prefix::parse(operand),
            "suffix" => suffix::parse(operand),
            "equals-ignore-case" => ignore_case::parse(operand),
            "wildcard" => wildcard::parse(operand, limits).map(Self::Wildcard),
            "numeric" => numeric::parse(operand).map(|range| Self::Numeric(range.into())),
            "cidr" => cidr::parse(operand).map(Self::Cidr),
            "anything-but" => anything_but::parse(operand, limits).map(Self::AnythingBut),
            "all-of" => all_of::parse(operand, limits),
            _ => {
                return Err(node.fault(Fault::UnknownOperator {
                    name: name.clone(),
                    meant: nearest_name(name),
                }));
            }
        };
        op.map_err(|error| error.under(name))
    }

    /// True when the test holds for the value. `Exists(false)` holds for none: it is about absence.
    pub(crate) fn holds(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Exact(scalar), _) => scalar.equals(value),
            (Self::Exists(present), _) => *present,
            (Self::AnythingBut(excluded), _) => excluded.passes(value),
            (Self::AllOf(tests), _) => tests.iter().all(|test| test.holds(value)),
            (Self::Prefix(head), Value::Text(text)) => text.starts_with(head.as_bytes()),
            (Self::PrefixIgnoreCase(head), Value::Text(text)) => super::fold::starts(head, text),
            (Self::Suffix(tail), Value::Text(text)) => text.ends_with(tail.as_bytes()),
            (Self::SuffixIgnoreCase(tail), Value::Text(text)) => super::fold::ends(tail, text),
            (Self::IgnoreCase(whole), Value::Text(text)) => super::fold::equals(whole, text),
            (Self::Wildcard(wildcard), Value::Text(text)) => wildcard.matches(text),
            (Self::Cidr(block), Value::Text(text)) => block.contains_text(text),
            (Self::Numeric(range), Value::Number(number)) => range.contains(*number),
            (
                Self::Prefix(_)
                | Self::PrefixIgnoreCase(_)
                | Self::Suffix(_)
                | Self::SuffixIgnoreCase(_)
                | Self::IgnoreCase(_)
                | Self::Wildcard(_)
                | Self::Cidr(_)
                | Self::Numeric(_),
                _,
            ) => false,
        }
    }

    /// The operator's name in pattern text; `exactly` for plain values.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exact(_) => "exactly",
            Self::Exists(_) => "exists",
            Self::Prefix(_) | Self::PrefixIgnoreCase(_) => "prefix",
            Self::Suffix(_) | Self::SuffixIgnoreCase(_) => "suffix",
            Self::IgnoreCase(_) => "equals-ignore-case",
            Self::Wildcard(_) => "wildcard",
            Self::Numeric(_) => "numeric",
            Self::Cidr(_) => "cidr",
            Self::AnythingBut(_) => "anything-but",
            Self::AllOf(_) => "all-of",
        }
    }

    /// True for an operator that EventBridge does not have.
    pub fn is_extension(&self) -> bool {
        matches!(self, Self::AllOf(_))
    }

    /// Values listed, those inside `anything-but` and `all-of` counted one by one.
    pub(crate) fn value_count(&self) -> usize {
        match self {
            Self::AnythingBut(excluded) => excluded.count(),
            Self::AllOf(tests) => tests.iter().map(Self::value_count).sum(),
            _ => 1,
        }
    }

    /// `*` in the test.
    pub(crate) fn star_count(&self) -> usize {
        match self {
            Self::Wildcard(wildcard) => wildcard.stars(),
            Self::AnythingBut(AnythingBut::Wildcards(list)) => {
                list.iter().map(Wildcard::stars).sum()
            }
            Self::AllOf(tests) => tests.iter().map(Self::star_count).sum(),
            _ => 0,
        }
    }
}

impl fmt::Display for Op {
    /// The test as pattern text.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(scalar) => scalar.fmt(out),
            Self::Exists(present) => write!(out, "{{\"exists\":{present}}}"),
            Self::Prefix(text) | Self::Suffix(text) | Self::IgnoreCase(text) => {
                write!(out, "{{\"{}\":{}}}", self.name(), Quoted(text))
            }
            Self::PrefixIgnoreCase(text) | Self::SuffixIgnoreCase(text) => {
                let name = self.name();
                write!(
                    out,
                    "{{\"{name}\":{{\"equals-ignore-case\":{}}}}}",
                    Quoted(text)
                )
            }
            Self::Wildcard(wildcard) => {
                write!(out, "{{\"wildcard\":{}}}", Quoted(&wildcard.to_string()))
            }
            Self::Numeric(range) => write!(out, "{{\"numeric\":{range}}}"),
            Self::Cidr(block) => write!(out, "{{\"cidr\":\"{block}\"}}"),
            Self::AnythingBut(excluded) => write!(out, "{{\"anything-but\":{excluded}}}"),
            Self::AllOf(tests) => write!(out, "{{\"all-of\":{}}}", Listed(tests)),
        }
    }
}

impl fmt::Display for Value<'_> {
    /// The value as JSON text.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(value) => value.fmt(out),
            Self::Number(number) => number.to_decimal().fmt(out),
            Self::Text(text) => Quoted(&String::from_utf8_lossy(text)).fmt(out),
        }
    }
}

/// Text as a JSON string.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string(self.0).map_err(|_| fmt::Error)?;
        out.write_str(&text)
    }
}

/// Things as a JSON list.
pub(crate) struct Listed<'a, T>(pub(crate) &'a [T]);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[")?;
        for (index, member) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}{member}")?;
        }
        out.write_str("]")
    }
}

/// The operators by name, the extension last.
pub(crate) const NAMES: [&str; 10] = [
    "exactly",
    "exists",
    "prefix",
    "suffix",
    "equals-ignore-case",
    "wildcard",
    "numeric",
    "cidr",
    "anything-but",
    "all-of",
];

/// The operator a wrong name may stand for: the same letters in another case or with other dashes.
fn nearest_name(name: &str) -> Option<&'static str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' ', '$'], "");
    let wanted = plain(name);
    let other = match wanted.as_str() {
        "startswith" | "beginswith" => "prefix",
        "endswith" => "suffix",
        "not" | "notequals" | "anythingbutin" => "anything-but",
        "equals" | "eq" => "exactly",
        "like" | "contains" | "glob" => "wildcard",
        "range" | "number" => "numeric",
        "ignorecase" | "equalsignorecase" => "equals-ignore-case",
        _ => "",
    };
    NAMES
        .into_iter()
        .filter(|known| *known != "all-of")
        .find(|known| plain(known) == wanted || *known == other)
}

impl Node<'_> {
    /// An error about this value.
    pub(crate) fn fault(&self, kind: Fault) -> Error {
        Error {
            pointer: String::new(),
            offset: self.start,
            kind,
        }
    }

    /// The text of a string, or the error that `operator` needs one.
    pub(crate) fn text(&self, operator: &'static str) -> Result<&str, Error> {
        match &self.value {
            Json::String(text) => Ok(text),
            _ => Err(self.fault(Fault::NotAString { operator })),
        }
    }
}

impl Error {
    /// The same error seen from one level up.
    pub(crate) fn under(mut self, key: &str) -> Self {
        let escaped = key.replace('~', "~0").replace('/', "~1");
        self.pointer = format!("/{escaped}{}", self.pointer);
        self
    }
}
