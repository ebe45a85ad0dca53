//! What a YAML scalar means under the core schema (YAML 1.2 §10.3.2), in JSON's terms.

use super::{Content, Fault, Position};

/// The types of the core schema, as a tag names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Bool,
    Integer,
    Float,
    String,
    List,
    Map,
    /// The tag `!`: whatever the value looks like, it is a string, a list or a map.
    Unspecific,
}

/// The content of a scalar. Only a plain one without a tag is resolved by its looks.
pub(super) fn resolve(
    text: &str,
    plain: bool,
    tag: Option<Type>,
    at: Position,
) -> Result<Content, Fault> {
    let untagged = || match plain {
        true => resolve_plain(text, at),
        false => Ok(Content::String(text.to_owned())),
    };
    let wanted = match tag {
        None => return untagged(),
        Some(Type::String | Type::Unspecific) => return Ok(Content::String(text.to_owned())),
        Some(Type::List | Type::Map) => {
            return Err(Fault::new(at, "the tag does not fit the value"));
        }
        Some(wanted) => wanted,
    };
    let content = resolve_plain(text, at)?;
    let fits = match (&content, wanted) {
        (Content::Null, Type::Null) | (Content::Bool(_), Type::Bool) => true,
        (Content::Number(number), Type::Integer) => !number.contains(['.', 'e', 'E']),
        (Content::Number(_), Type::Float) => true,
        _ => false,
    };
    if fits {
        return Ok(content);
    }
    Err(Fault::new(at, "the tag does not fit the value"))
}

fn resolve_plain(text: &str, at: Position) -> Result<Content, Fault> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Content::Null),
        "true" | "True" | "TRUE" => return Ok(Content::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Content::Bool(false)),
        _ => {}
    }
    if is_not_finite(text) {
        let fault = Fault::new(at, format!("`{text}` is no number that JSON can hold"));
        return Err(fault.with_hint("put it in quotes if it is meant as text"));
    }
    let number = radix_number(text).or_else(|| decimal_number(text).map(Some));
    match number {
        None => Ok(Content::String(text.to_owned())),
        Some(Some(number)) if is_in_range(&number) => Ok(Content::Number(number)),
        Some(_) => Err(out_of_range(at)),
    }
}

/// Whether a number text, JSON's grammar given, is finite as an `f64`.
pub(super) fn is_in_range(number: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(number).is_ok()
}

/// The fault of a number beyond `f64`.
pub(super) fn out_of_range(at: Position) -> Fault {
    let fault = Fault::new(at, "the number is too large");
    fault.with_hint("put it in quotes if it is meant as text")
}

fn is_not_finite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// A hexadecimal or octal integer as decimal digits; `Some(None)` when it exceeds 128 bits.
fn radix_number(text: &str) -> Option<Option<String>> {
    let (digits, radix) = match text.get(..2)? {
        "0x" => (&text[2..], 16),
        "0o" => (&text[2..], 8),
        _ => return None,
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let value = u128::from_str_radix(digits, radix).ok();
    Some(value.map(|value| value.to_string()))
}

/// A decimal integer or float in JSON's spelling: no plus sign, no leading zeros, digits on both
/// sides of the point. What already is JSON stays as it is.
fn decimal_number(text: &str) -> Option<String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (integer, rest) = leading_digits(rest);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => leading_digits(rest),
        None => ("", rest),
    };
    if integer.is_empty() && fraction.is_empty() {
        return None;
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits.is_empty() || !leading_digits(digits).1.is_empty() {
            return None;
        }
    } else if !rest.is_empty() {
        return None;
    }
    let significant = integer.trim_start_matches('0');
    let integer = if significant.is_empty() {
        "0"
    } else {
        significant
    };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{integer}{point}{fraction}{rest}"))
}

fn leading_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(end)
}
