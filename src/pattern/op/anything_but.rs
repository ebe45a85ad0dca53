//! `anything-but`: any value that is there and is none of those named. What is not of their type
//! passes, `null` too.

use std::fmt;

use super::{Listed, Quoted, Value, Wildcard, numeric, wildcard};
use crate::pattern::error::{Error, Fault};
use crate::pattern::fold;
use crate::pattern::limits::Limits;
use crate::pattern::number::Decimal;
use crate::pattern::text::{Json, Node};

/// What a value must not be; every list has at least one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnythingBut {
    /// None of these strings.
    Texts(Box<[Box<str>]>),
    /// None of these numbers.
    Numbers(Box<[Decimal]>),
    /// No string that begins with one of these.
    Prefixes(Box<[Box<str>]>),
    /// No string that ends with one of these.
    Suffixes(Box<[Box<str>]>),
    /// None of these strings in any case.
    IgnoreCase(Box<[Box<str>]>),
    /// No string that one of these wildcards matches.
    Wildcards(Box<[Wildcard]>),
}

/// Reads the operand of `anything-but`.
pub(crate) fn parse(node: &Node<'_>, limits: &Limits) -> Result<AnythingBut, Error> {
    match &node.value {
        Json::Object(members) => parse_inner(node, members, limits),
        Json::Array(members) => parse_list(node, members),
        Json::String(text) => Ok(AnythingBut::Texts([text.as_str().into()].into())),
        Json::Number(text) => {
            let number = numeric::parse_comparable(node, text)?;
            Ok(AnythingBut::Numbers([number].into()))
        }
        Json::Null | Json::Bool(_) => Err(node.fault(Fault::AnythingButValue)),
    }
}

fn parse_list(node: &Node<'_>, members: &[Node<'_>]) -> Result<AnythingBut, Error> {
    let mut texts = Vec::new();
    let mut numbers = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let at = |error: Error| error.under(&index.to_string());
        match &member.value {
            Json::String(text) => texts.push(text.as_str().into()),
            Json::Number(text) => {
                numbers.push(numeric::parse_comparable(member, text).map_err(at)?);
            }
            _ => return Err(at(member.fault(Fault::AnythingButMember))),
        }
    }
    match (texts.is_empty(), numbers.is_empty()) {
        (false, true) => Ok(AnythingBut::Texts(texts.into())),
        (true, false) => Ok(AnythingBut::Numbers(numbers.into())),
        (true, true) => Err(node.fault(Fault::EmptyArray)),
        (false, false) => Err(node.fault(Fault::AnythingButMixed)),
    }
}

fn parse_inner(
    node: &Node<'_>,
    members: &[(String, Node<'_>)],
    limits: &Limits,
) -> Result<AnythingBut, Error> {
    let [(name, operand)] = members else {
        return Err(node.fault(Fault::NotOneKey));
    };
    let inner = match name.as_str() {
        "prefix" => parse_texts(operand, read_affix).map(AnythingBut::Prefixes),
        "suffix" => parse_texts(operand, read_affix).map(AnythingBut::Suffixes),
        "equals-ignore-case" => parse_texts(operand, read_folded).map(AnythingBut::IgnoreCase),
        "wildcard" => parse_texts(operand, |member| wildcard::parse(member, limits))
            .map(AnythingBut::Wildcards),
        _ => return Err(node.fault(Fault::AnythingButValue)),
    };
    inner.map_err(|error| error.under(name))
}

/// Reads one string, or a list of them.
fn parse_texts<T>(
    node: &Node<'_>,
    read: impl Fn(&Node<'_>) -> Result<T, Error>,
) -> Result<Box<[T]>, Error> {
    match &node.value {
        Json::Array(members) if members.is_empty() => Err(node.fault(Fault::EmptyArray)),
        Json::Array(members) => members
            .iter()
            .enumerate()
            .map(|(index, member)| read(member).map_err(|error| error.under(&index.to_string())))
            .collect(),
        _ => Ok([read(node)?].into()),
    }
}

fn read_affix(node: &Node<'_>) -> Result<Box<str>, Error> {
    match &node.value {
        Json::String(text) if text.is_empty() => Err(node.fault(Fault::EmptyAffix)),
        Json::Object(_) => Err(node.fault(Fault::AnythingButValue)),
        _ => Ok(node.text("prefix/suffix")?.into()),
    }
}

fn read_folded(node: &Node<'_>) -> Result<Box<str>, Error> {
    match &node.value {
        Json::String(text) => Ok(text.as_str().into()),
        _ => Err(node.fault(Fault::AnythingButIgnoreCase)),
    }
}

impl AnythingBut {
    pub(crate) fn passes(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Numbers(list), Value::Number(number)) => {
                !list.iter().any(|member| member.as_number() == *number)
            }
            (Self::Texts(list), Value::Text(text)) => {
                !list.iter().any(|member| member.as_bytes() == *text)
            }
            (Self::Prefixes(list), Value::Text(text)) => {
                !list.iter().any(|head| text.starts_with(head.as_bytes()))
            }
            (Self::Suffixes(list), Value::Text(text)) => {
                !list.iter().any(|tail| text.ends_with(tail.as_bytes()))
            }
            (Self::IgnoreCase(list), Value::Text(text)) => {
                !list.iter().any(|member| fold::equals(member, text))
            }
            (Self::Wildcards(list), Value::Text(text)) => {
                !list.iter().any(|wildcard| wildcard.matches(text))
            }
            (
                Self::Numbers(_)
                | Self::Texts(_)
                | Self::Prefixes(_)
                | Self::Suffixes(_)
                | Self::IgnoreCase(_)
                | Self::Wildcards(_),
                _,
            ) => true,
        }
    }

    /// The operator inside, `exactly` for plain values.
    pub(crate) fn inner_name(&self) -> &'static str {
        match self {
            Self::Texts(_) | Self::Numbers(_) => "exactly",
            Self::Prefixes(_) => "prefix",
            Self::Suffixes(_) => "suffix",
            Self::IgnoreCase(_) => "equals-ignore-case",
            Self::Wildcards(_) => "wildcard",
        }
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Numbers(list) => list.len(),
            Self::Wildcards(list) => list.len(),
            Self::Texts(list)
            | Self::Prefixes(list)
            | Self::Suffixes(list)
            | Self::IgnoreCase(list) => list.len(),
        }
    }
}

impl fmt::Display for AnythingBut {
    /// The operand of `anything-but` as JSON text.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |list: &[Box<str>]| {
            let texts: Vec<String> = list.iter().map(|text| Quoted(text).to_string()).collect();
            Listed(&texts).to_string()
        };
        match self {
            Self::Numbers(list) => Listed(list).fmt(out),
            Self::Texts(list) => out.write_str(&quoted(list)),
            Self::Prefixes(list) => write!(out, "{{\"prefix\":{}}}", quoted(list)),
            Self::Suffixes(list) => write!(out, "{{\"suffix\":{}}}", quoted(list)),
            Self::IgnoreCase(list) => {
                write!(out, "{{\"equals-ignore-case\":{}}}", quoted(list))
            }
            Self::Wildcards(list) => {
                let texts: Vec<Box<str>> = list.iter().map(|one| one.to_string().into()).collect();
                write!(out, "{{\"wildcard\":{}}}", quoted(&texts))
            }
        }
    }
}
