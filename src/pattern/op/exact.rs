//! A plain value: the same string, the same number in any spelling, or the same literal.

use std::fmt;

use super::{Op, Quoted, Value};
use crate::pattern::error::{Error, Fault};
use crate::pattern::number::{Decimal, Number};
use crate::pattern::text::{Json, Node};

/// A value that a leaf of an event can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// `null`, which only `null` equals.
    Null,
    /// `true` or `false`, which no string equals.
    Bool(bool),
    /// A number, compared digit by digit.
    Number(Box<Decimal>),
    /// A string, compared character by character.
    Text(Box<str>),
}

/// Reads a plain value.
pub(crate) fn parse(node: &Node<'_>) -> Result<Scalar, Error> {
    match &node.value {
        Json::Null => Ok(Scalar::Null),
        Json::Bool(value) => Ok(Scalar::Bool(*value)),
        Json::String(text) => Ok(Scalar::Text(text.as_str().into())),
        Json::Number(text) => {
            let number = Number::read(text.as_bytes()).to_decimal();
            if number.is_extreme() {
                return Err(node.fault(Fault::NumberRange {
                    number: (*text).into(),
                }));
            }
            Ok(Scalar::Number(Box::new(number)))
        }
        Json::Array(_) | Json::Object(_) => Err(node.fault(Fault::NestedList)),
    }
}

/// Reads the operand of `exactly`, an alias that EventBridge knows and does not document.
pub(crate) fn parse_text(node: &Node<'_>) -> Result<Op, Error> {
    let text = node.text("exact")?;
    Ok(Op::Exact(Scalar::Text(text.into())))
}

impl Scalar {
    /// The value that equals the scalar.
    pub(crate) fn as_value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(number.as_number()),
            Self::Text(text) => Value::Text(text.as_bytes()),
        }
    }

    /// True when the value is of the scalar's type.
    pub(crate) fn same_type(&self, value: &Value<'_>) -> bool {
        matches!(
            (self, value),
            (Self::Null, Value::Null)
                | (Self::Bool(_), Value::Bool(_))
                | (Self::Number(_), Value::Number(_))
                | (Self::Text(_), Value::Text(_))
        )
    }

    /// The string, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) => None,
        }
    }

    pub(crate) fn equals(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Null, Value::Null) => true,
            (Self::Bool(one), Value::Bool(other)) => one == other,
            (Self::Number(one), Value::Number(other)) => one.as_number() == *other,
            (Self::Text(one), Value::Text(other)) => one.as_bytes() == *other,
            (Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_), _) => false,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(value) => value.fmt(out),
            Self::Number(number) => number.fmt(out),
            Self::Text(text) => Quoted(text).fmt(out),
        }
    }
}
