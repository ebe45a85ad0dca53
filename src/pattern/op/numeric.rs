//! `numeric`: numbers within bounds, compared as exact decimals.

use std::fmt;

use crate::pattern::error::{Error, Fault};
use crate::pattern::number::{Decimal, Number};
use crate::pattern::text::{Json, Node};

/// Numbers between two bounds, either of which may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The lower bound.
    pub lower: Option<Bound>,
    /// The upper bound.
    pub upper: Option<Bound>,
}

/// One end of a [`Range`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The number at the end.
    pub value: Decimal,
    /// True when the number itself belongs to the range.
    pub inclusive: bool,
}

/// Reads the operand of `numeric`.
pub(crate) fn parse(node: &Node<'_>) -> Result<Range, Error> {
    let Json::Array(members) = &node.value else {
        return Err(node.fault(Fault::NumericNotAList));
    };
    let [operator_node, rest @ ..] = members.as_slice() else {
        return Err(node.fault(Fault::NumericOperator {
            operator: String::new(),
        }));
    };
    let operator = operator_text(operator_node)?;
    if !matches!(operator, "=" | "<" | "<=" | ">" | ">=") {
        return Err(operator_node.fault(Fault::NumericOperator {
            operator: operator.into(),
        }));
    }
    let (value, rest) = parse_operand(node, operator, rest)?;
    if operator == "=" {
        return match rest {
            [] => Ok(Range::point(value)),
            [more, ..] => Err(more.fault(Fault::NumericTooMany)),
        };
    }
    let bound = Bound {
        value,
        inclusive: operator.ends_with('='),
    };
    match (operator.starts_with('<'), rest) {
        (true, []) => Ok(Range {
            lower: None,
            upper: Some(bound),
        }),
        (true, [more, ..]) => Err(more.fault(Fault::NumericTooMany)),
        (false, []) => Ok(Range {
            lower: Some(bound),
            upper: None,
        }),
        (false, [second, rest @ ..]) => parse_upper(node, bound, second, rest),
    }
}

fn parse_upper(
    node: &Node<'_>,
    lower: Bound,
    operator_node: &Node<'_>,
    rest: &[Node<'_>],
) -> Result<Range, Error> {
    let operator = operator_text(operator_node)?;
    if !matches!(operator, "<" | "<=") {
        return Err(operator_node.fault(Fault::NumericRangeOperator {
            operator: operator.into(),
        }));
    }
    let (value, rest) = parse_operand(node, operator, rest)?;
    if let [more, ..] = rest {
        return Err(more.fault(Fault::NumericTooMany));
    }
    let upper = Bound {
        value,
        inclusive: operator == "<=",
    };
    let range = Range {
        lower: Some(lower),
        upper: Some(upper),
    };
    if range.is_empty() {
        return Err(node.fault(Fault::NumericEmpty));
    }
    Ok(range)
}

fn operator_text<'n>(node: &'n Node<'_>) -> Result<&'n str, Error> {
    match &node.value {
        Json::String(text) => Ok(text),
        _ => Err(node.fault(Fault::NumericOperator {
            operator: "(not a string)".into(),
        })),
    }
}

fn parse_operand<'n, 't>(
    node: &Node<'t>,
    operator: &str,
    rest: &'n [Node<'t>],
) -> Result<(Decimal, &'n [Node<'t>]), Error> {
    let wrong = || Fault::NumericOperand {
        operator: operator.into(),
    };
    let [operand, rest @ ..] = rest else {
        return Err(node.fault(wrong()));
    };
    let Json::Number(text) = operand.value else {
        return Err(operand.fault(wrong()));
    };
    Ok((parse_comparable(operand, text)?, rest))
}

/// The smallest double that still holds a decimal digit.
const SMALLEST: f64 = 1e-322;

/// A number that EventBridge lets `numeric` and `anything-but` compare: within the range of
/// doubles, and if it is whole, equal to the shortest decimal of its double. Fractions may have any
/// number of digits.
pub(crate) fn parse_comparable(node: &Node<'_>, text: &str) -> Result<Decimal, Error> {
    let number = Number::read(text.as_bytes()).to_decimal();
    let double: f64 = text.parse().unwrap_or(f64::INFINITY);
    let shortest = format!("{double:e}");
    let comparable = number.is_zero()
        || (double.is_finite()
            && double.abs() >= SMALLEST
            && (!number.is_integral() || Number::read(shortest.as_bytes()) == number.as_number()));
    if comparable {
        Ok(number)
    } else {
        Err(node.fault(Fault::NumberRange {
            number: text.into(),
        }))
    }
}

impl Range {
    fn point(value: Decimal) -> Self {
        let bound = Bound {
            value,
            inclusive: true,
        };
        Self {
            lower: Some(bound.clone()),
            upper: Some(bound),
        }
    }

    /// The only number in the range, if it is one number.
    pub(crate) fn as_point(&self) -> Option<&Decimal> {
        match (&self.lower, &self.upper) {
            (Some(lower), Some(upper)) if lower.value == upper.value => Some(&lower.value),
            _ => None,
        }
    }

    pub(crate) fn contains(&self, number: Number<'_>) -> bool {
        self.lower.as_ref().is_none_or(|lower| {
            let bound = lower.value.as_number();
            number > bound || (lower.inclusive && number == bound)
        }) && self.upper.as_ref().is_none_or(|upper| {
            let bound = upper.value.as_number();
            number < bound || (upper.inclusive && number == bound)
        })
    }

    fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Some(lower), Some(upper)) => {
                let (low, high) = (lower.value.as_number(), upper.value.as_number());
                low > high || (low == high && !(lower.inclusive && upper.inclusive))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Range {
    /// The operand of `numeric` as JSON text.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(value) = self.as_point() {
            return write!(out, "[\"=\",{value}]");
        }
        out.write_str("[")?;
        if let Some(lower) = &self.lower {
            let equal = if lower.inclusive { "=" } else { "" };
            write!(out, "\">{equal}\",{}", lower.value)?;
        }
        if self.lower.is_some() && self.upper.is_some() {
            out.write_str(",")?;
        }
        if let Some(upper) = &self.upper {
            let equal = if upper.inclusive { "=" } else { "" };
            write!(out, "\"<{equal}\",{}", upper.value)?;
        }
        out.write_str("]")
    }
}
