//! Strings, numbers and lists of constants.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Change, Found, Move, Shape, Subject, add};
use crate::schema::{
    Draft,
    compatibility::{decimal::Decimal, evaluate::is_equal},
};

pub(super) fn text(original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) {
    limit(original, update, "maxLength", Subject::MaxLength, found);
    limit(original, update, "minLength", Subject::MinLength, found);
    let moved = match (original.get("pattern"), update.get("pattern")) {
        (None, Some(_)) => Move::Added,
        (Some(_), None) => Move::Removed,
        (Some(old), Some(new)) if old != new => Move::Changed,
        _ => return,
    };
    add(found, Change::Keyword(Subject::Pattern, moved), "/pattern");
}

pub(super) fn number(original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) {
    let is_integer =
        |shape: Shape<'_>| shape.get("type").and_then(Value::as_str) == Some("integer");
    match (is_integer(original), is_integer(update)) {
        (true, false) => add(found, Change::Keyword(Subject::Type, Move::Extended), ""),
        (false, true) => add(found, Change::Keyword(Subject::Type, Move::Narrowed), ""),
        _ => {}
    }
    limit(original, update, "maximum", Subject::Maximum, found);
    limit(original, update, "minimum", Subject::Minimum, found);
    if original.draft() != Draft::Draft4 && update.draft() != Draft::Draft4 {
        limit(
            original,
            update,
            "exclusiveMaximum",
            Subject::ExclusiveMaximum,
            found,
        );
        limit(
            original,
            update,
            "exclusiveMinimum",
            Subject::ExclusiveMinimum,
            found,
        );
    }
    multiples(original, update, found);
}

fn multiples(original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) {
    let unit = |shape: Shape<'_>| shape.get("multipleOf").and_then(Decimal::of_value);
    let moved = match (unit(original), unit(update)) {
        (None, Some(_)) => Move::Added,
        (Some(_), None) => Move::Removed,
        (Some(old), Some(new)) if old != new => {
            if old.is_multiple_of(new) == Some(true) {
                Move::Decreased
            } else if new.is_multiple_of(old) == Some(true) {
                Move::Increased
            } else {
                Move::Changed
            }
        }
        _ => return,
    };
    add(
        found,
        Change::Keyword(Subject::MultipleOf, moved),
        "/multipleOf",
    );
}

/// A number that bounds something from above or below.
pub(super) fn limit(
    original: Shape<'_>,
    update: Shape<'_>,
    keyword: &str,
    subject: Subject,
    found: &mut Vec<Found>,
) {
    let value = |shape: Shape<'_>| shape.get(keyword).and_then(Decimal::of_value);
    let moved = match (value(original), value(update)) {
        (None, Some(_)) => Move::Added,
        (Some(_), None) => Move::Removed,
        (Some(old), Some(new)) => match old.compare(new) {
            Ordering::Less => Move::Increased,
            Ordering::Greater => Move::Decreased,
            Ordering::Equal => return,
        },
        (None, None) => return,
    };
    add(
        found,
        Change::Keyword(subject, moved),
        &format!("/{keyword}"),
    );
}

pub(super) fn enumeration(original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) {
    let values = |shape: Shape<'_>| {
        shape
            .get("enum")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (old, new) = (values(original), values(update));
    let within = |one: &[Value], other: &[Value]| {
        one.iter()
            .all(|value| other.iter().any(|known| is_equal(value, known)))
    };
    let moved = match (within(&old, &new), within(&new, &old)) {
        (true, true) => return,
        (true, false) => Move::Extended,
        (false, true) => Move::Narrowed,
        (false, false) => Move::Changed,
    };
    add(found, Change::Keyword(Subject::EnumArray, moved), "/enum");
}
