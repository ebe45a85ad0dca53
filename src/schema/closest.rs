//! The branch of an `anyOf` or `oneOf` that data came nearest to.
//!
//! Reporting every branch buries the mistake under the cross product of all alternatives. The
//! nearest branch is the one the author most likely meant: right type, right discriminator, and
//! the fault deepest inside.

use std::cmp::Reverse;

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind},
};

/// Calls `report` for `error`, or for the errors of its closest branch.
pub(super) fn visit(error: &ValidationError<'_>, report: &mut impl FnMut(&ValidationError<'_>)) {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return report(error);
    };
    if types_in(context).is_some() {
        return report(error);
    }
    let depth = depth_of(error);
    match context.iter().min_by_key(|branch| distance(branch, depth)) {
        Some(branch) if !branch.is_empty() => {
            branch.iter().for_each(|inner| visit_boxed(inner, report));
        }
        _ => report(error),
    }
}

/// Recursion by a trait object, so that nested unions need one instance of [`visit`] only.
fn visit_boxed(error: &ValidationError<'_>, report: &mut dyn FnMut(&ValidationError<'_>)) {
    visit(error, &mut |inner: &ValidationError<'_>| report(inner));
}

/// The types the branches ask for, when the type is all that each of them has against the data.
pub(super) fn types_asked_for(error: &ValidationError<'_>) -> Option<Vec<String>> {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            types_in(context)
        }
        _ => None,
    }
}

/// As [`types_asked_for`], from the branches.
pub(super) fn types_in(context: &[Vec<ValidationError<'static>>]) -> Option<Vec<String>> {
    let mut types = Vec::new();
    for branch in context {
        let [only] = branch.as_slice() else {
            return None;
        };
        match only.kind() {
            ValidationErrorKind::Type {
                kind: TypeKind::Single(name),
            } => {
                types.push(name.to_string());
            }
            ValidationErrorKind::Type {
                kind: TypeKind::Multiple(names),
            } => {
                types.extend(names.iter().map(|name| name.to_string()));
            }
            _ => return None,
        }
    }
    types.dedup();
    (!types.is_empty()).then_some(types)
}

/// How far data is from a branch; less is closer. In order: its type is wrong at the top, its
/// discriminators (constants just below) are wrong, its faults are shallow, it has many.
fn distance(
    branch: &[ValidationError<'static>],
    depth: usize,
) -> (bool, usize, Reverse<usize>, usize) {
    let wrong_type = branch.iter().any(|error| {
        depth_of(error) == depth
            && matches!(
                error.kind(),
                ValidationErrorKind::Type { .. } | ValidationErrorKind::FalseSchema
            )
    });
    let wrong_constants = branch
        .iter()
        .filter(|error| {
            depth_of(error) <= depth + 1
                && matches!(
                    error.kind(),
                    ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. }
                )
        })
        .count();
    let deepest = branch.iter().map(depth_of).max().unwrap_or(depth);
    (wrong_type, wrong_constants, Reverse(deepest), branch.len())
}

fn depth_of(error: &ValidationError<'_>) -> usize {
    error.instance_path().as_str().matches('/').count()
}
