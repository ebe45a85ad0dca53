//! Differences in words: what changed, where, and the smallest edit that would undo the harm.

use serde_json::Value;

use super::{
    Difference, Direction,
    arena::{Arena, Facts},
    conjunction::{Conjunction, Merged},
    prove::{Aspect, Gap, Step},
};
use crate::schema::Schema;

/// The difference that a gap stands for, without a witness.
pub(super) fn describe(gap: &Gap, arena: &Arena, direction: Direction) -> Difference {
    let node = arena.node(gap.node);
    let keyword = keyword(&gap.aspect);
    let merged = gap.left.merged(arena);
    let member = match gap.route.last() {
        Some((_, Step::Member(name))) => Some(name.as_ref()),
        _ => None,
    };
    let is_free = gap.left.nodes.is_empty() && gap.left.not.is_empty();
    let (kind, message, suggestion) = match (&gap.aspect, member, gap.route.last()) {
        (Aspect::Never, Some(name), _) => forbidden(name, direction),
        (Aspect::Never, None, Some((_, Step::AnyMember(_)))) => closed(direction),
        (_, Some(name), _) if is_free => declared(name, direction),
        (Aspect::Required(name), ..) => required(name, direction),
        (aspect, ..) => {
            let had = has(aspect, &merged, &gap.left, arena);
            (
                format!("{}-{}", kebab(keyword), change(had, direction)),
                sentence(aspect, arena.facts(gap.node), &merged, direction),
                suggestion(aspect, had, direction),
            )
        }
    };
    let path = match &gap.aspect {
        Aspect::Never | Aspect::Opaque(_) => node.pointer.clone(),
        _ => format!("{}/{keyword}", node.pointer),
    };
    Difference {
        path,
        kind,
        message,
        witness: None,
        suggestion,
        direction,
        against: None,
    }
}

/// The difference shown by a witness that belongs to no gap: what the validator says about it.
pub(super) fn by_violation(
    witness: &Value,
    accepting: &Schema,
    direction: Direction,
) -> Difference {
    let violation = accepting.validate_value(witness).err();
    let violation = violation.and_then(|invalid| invalid.violations.into_iter().next());
    let (path, keyword, message) = violation.map_or_else(
        || {
            (
                String::new(),
                "schema".to_owned(),
                "the value is refused".to_owned(),
            )
        },
        |violation| {
            let text = violation.to_string();
            (violation.schema_path, violation.keyword, text)
        },
    );
    let side = accepting_side(direction);
    Difference {
        path,
        kind: format!("{}-{}", kebab(&keyword), change(true, direction)),
        message: format!("the {side} version refuses what the other takes: {message}"),
        witness: Some(witness.clone()),
        suggestion: None,
        direction,
        against: None,
    }
}

/// The difference of a check that ended without a place to name.
pub(super) fn unplaced(direction: Direction) -> Difference {
    Difference {
        path: String::new(),
        kind: "undecided".to_owned(),
        message: "the versions could not be compared within the limits of this check".to_owned(),
        witness: None,
        suggestion: None,
        direction,
        against: None,
    }
}

type Words = (String, String, Option<String>);

fn accepting_side(direction: Direction) -> &'static str {
    match direction {
        Direction::Backward => "new",
        Direction::Forward => "old",
    }
}

fn change(had: bool, direction: Direction) -> &'static str {
    match (had, direction) {
        (true, Direction::Backward) => "tightened",
        (false, Direction::Backward) => "added",
        (true, Direction::Forward) => "loosened",
        (false, Direction::Forward) => "removed",
    }
}

fn required(name: &str, direction: Direction) -> Words {
    match direction {
        Direction::Backward => (
            "required-added".to_owned(),
            format!("`{name}` is required now; old data may lack it"),
            Some(format!("make `{name}` optional")),
        ),
        Direction::Forward => (
            "required-removed".to_owned(),
            format!("`{name}` is no longer required; the old version refuses data without it"),
            Some(format!("keep `{name}` required")),
        ),
    }
}

/// A member that the giving side left open and the accepting side declares.
fn declared(name: &str, direction: Direction) -> Words {
    match direction {
        Direction::Backward => (
            "property-added".to_owned(),
            format!("`{name}` is declared now; before, it could hold anything"),
            Some(format!(
                "declare `{name}` as `true`, or choose a new name in a closed model"
            )),
        ),
        Direction::Forward => (
            "property-removed".to_owned(),
            format!("`{name}` is no longer declared, so it may hold what the old version refuses"),
            Some(format!("keep `{name}` with its old schema")),
        ),
    }
}

/// A member that the accepting side does not allow.
fn forbidden(name: &str, direction: Direction) -> Words {
    match direction {
        Direction::Backward => (
            "property-removed".to_owned(),
            format!("`{name}` is not allowed any more; old data may have it"),
            Some(format!("keep `{name}`, or allow additional properties")),
        ),
        Direction::Forward => (
            "property-added".to_owned(),
            format!("`{name}` is new, and the old version allows no undeclared members"),
            Some(format!(
                "leave `{name}` out until the old version is no longer read"
            )),
        ),
    }
}

fn closed(direction: Direction) -> Words {
    match direction {
        Direction::Backward => (
            "additional-properties-removed".to_owned(),
            "undeclared members are not allowed any more; old data may have them".to_owned(),
            Some("leave `additionalProperties` open".to_owned()),
        ),
        Direction::Forward => (
            "additional-properties-added".to_owned(),
            "undeclared members are allowed now; the old version refuses them".to_owned(),
            Some("keep `additionalProperties` closed".to_owned()),
        ),
    }
}

fn sentence(
    aspect: &Aspect,
    facts: Option<&Facts>,
    merged: &Merged,
    direction: Direction,
) -> String {
    let side = accepting_side(direction);
    let Some(facts) = facts else {
        return format!("the {side} version allows no value here; the other does");
    };
    let limit = |value: Option<u64>| value.map_or_else(|| "no limit".to_owned(), |v| v.to_string());
    let bound = |bound: Option<super::arena::Bound>| {
        let value = bound.and_then(|bound| bound.value.to_value());
        value.map_or_else(|| "no limit".to_owned(), |value| value.to_string())
    };
    let (what, wanted, found) = match aspect {
        Aspect::Type => ("type", facts.types.words(), merged.types.words()),
        Aspect::Minimum => ("minimum", bound(facts.min), bound(merged.min)),
        Aspect::Maximum => ("maximum", bound(facts.max), bound(merged.max)),
        Aspect::MinLength => (
            "shortest string",
            facts.length_min.to_string(),
            merged.length_min.to_string(),
        ),
        Aspect::MaxLength => (
            "longest string",
            limit(facts.length_max),
            limit(merged.length_max),
        ),
        Aspect::MinItems => (
            "fewest items",
            facts.items_min.to_string(),
            merged.items_min.to_string(),
        ),
        Aspect::MaxItems => (
            "most items",
            limit(facts.items_max),
            limit(merged.items_max),
        ),
        Aspect::MinProperties => (
            "fewest members",
            facts.members_min.to_string(),
            merged.members_min.to_string(),
        ),
        Aspect::MaxProperties => (
            "most members",
            limit(facts.members_max),
            limit(merged.members_max),
        ),
        Aspect::Opaque(keyword) => {
            return format!("`{keyword}` could not be compared; it is undecided");
        }
        Aspect::Values
        | Aspect::MultipleOf
        | Aspect::Pattern
        | Aspect::Format
        | Aspect::UniqueItems
        | Aspect::Contains
        | Aspect::Required(_)
        | Aspect::PropertyNames
        | Aspect::AnyOf
        | Aspect::OneOf
        | Aspect::Not
        | Aspect::Never => {
            let keyword = keyword(aspect);
            return format!("`{keyword}` of the {side} version refuses what the other takes");
        }
    };
    format!("{what}: {wanted} in the {side} version, {found} in the other")
}

fn suggestion(aspect: &Aspect, had: bool, direction: Direction) -> Option<String> {
    let keyword = keyword(aspect);
    if matches!(aspect, Aspect::Opaque(_) | Aspect::Never) {
        return None;
    }
    Some(match (aspect, direction, had) {
        (Aspect::Values, Direction::Backward, true) => {
            "keep the values that were removed".to_owned()
        }
        (Aspect::Values, Direction::Forward, _) => "add no values".to_owned(),
        (Aspect::AnyOf | Aspect::OneOf, Direction::Backward, _) => {
            format!("keep a branch of `{keyword}` for the old data, and let branches not overlap")
        }
        (_, Direction::Backward, false) => format!("leave `{keyword}` out"),
        (_, Direction::Forward, false) => format!("keep `{keyword}` as it was"),
        (_, _, true) => format!("keep `{keyword}` as it was"),
    })
}

/// Whether the giving side says something of the kind already.
fn has(aspect: &Aspect, merged: &Merged, left: &Conjunction, arena: &Arena) -> bool {
    let any = |test: &dyn Fn(&Facts) -> bool| left.facts(arena).any(test);
    match aspect {
        Aspect::Type => any(&|facts| facts.types != super::types::Types::ALL),
        Aspect::Values => merged.values.is_some(),
        Aspect::Minimum => merged.min.is_some(),
        Aspect::Maximum => merged.max.is_some(),
        Aspect::MultipleOf => !merged.multiples.is_empty(),
        Aspect::MinLength => merged.length_min > 0,
        Aspect::MaxLength => merged.length_max.is_some(),
        Aspect::Pattern => !merged.patterns.is_empty(),
        Aspect::Format => !merged.formats.is_empty(),
        Aspect::MinItems => merged.items_min > 0,
        Aspect::MaxItems => merged.items_max.is_some(),
        Aspect::UniqueItems => merged.unique,
        Aspect::Contains => any(&|facts| !facts.contains.is_empty()),
        Aspect::Required(name) => merged.required.contains(name),
        Aspect::MinProperties => merged.members_min > 0,
        Aspect::MaxProperties => merged.members_max.is_some(),
        Aspect::PropertyNames => any(&|facts| facts.names.is_some()),
        Aspect::AnyOf => any(&|facts| !facts.any_of.is_empty()),
        Aspect::OneOf => any(&|facts| !facts.one_of.is_empty()),
        Aspect::Not => !left.not.is_empty(),
        Aspect::Never | Aspect::Opaque(_) => true,
    }
}

/// The keyword behind an aspect, as recent drafts spell it.
fn keyword(aspect: &Aspect) -> &str {
    match aspect {
        Aspect::Type => "type",
        Aspect::Values => "enum",
        Aspect::Minimum => "minimum",
        Aspect::Maximum => "maximum",
        Aspect::MultipleOf => "multipleOf",
        Aspect::MinLength => "minLength",
        Aspect::MaxLength => "maxLength",
        Aspect::Pattern => "pattern",
        Aspect::Format => "format",
        Aspect::MinItems => "minItems",
        Aspect::MaxItems => "maxItems",
        Aspect::UniqueItems => "uniqueItems",
        Aspect::Contains => "contains",
        Aspect::Required(_) => "required",
        Aspect::MinProperties => "minProperties",
        Aspect::MaxProperties => "maxProperties",
        Aspect::PropertyNames => "propertyNames",
        Aspect::AnyOf => "anyOf",
        Aspect::OneOf => "oneOf",
        Aspect::Not => "not",
        Aspect::Never => "schema",
        Aspect::Opaque(keyword) => keyword.split(':').next().unwrap_or(keyword),
    }
}

/// `maxLength` as `max-length`.
fn kebab(keyword: &str) -> String {
    let mut text = String::with_capacity(keyword.len() + 4);
    for letter in keyword.chars() {
        if letter.is_ascii_uppercase() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text.trim_start_matches(['$', '-']).to_owned()
}
