//! Compatibility as Confluent's registry judges it, for people who come from there.
//!
//! That judgement compares shapes and not sets of values: it names what changed and has a list of
//! changes that count as compatible. It may accept what breaks readers and refuse what does not;
//! the semantic dialect is the one to rely on.

mod change;
mod compare;
mod shape;

use super::{
    CheckOptions, Difference, Direction, Report, Verdict, budget::Budget, resolve::Resources,
};
use crate::schema::{Error, Schema};
use change::Found;
use compare::Comparison;
use shape::Shape;

/// Steps here are cheaper than those of a proof by this factor.
const STEPS_FACTOR: u64 = 10;

/// Checks the directions asked for.
pub(super) fn check(
    old: &str,
    new: &str,
    directions: &[Direction],
    is_lenient: bool,
    options: &CheckOptions,
) -> Report {
    let first = directions.first().copied().unwrap_or(Direction::Backward);
    let compile = |text: &str, kind: &str| {
        Schema::compile(text, &options.schema)
            .map_err(|error: Error| Report::impossible(kind, error.to_string(), first))
    };
    let (old, new) = match (compile(old, "old-refused"), compile(new, "new-refused")) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(report), _) | (_, Err(report)) => return report,
    };
    let budget = Budget::new(options.steps_max * STEPS_FACTOR, options.time_max);
    let mut report = Report::compatible();
    for direction in directions {
        let (original, update) = match direction {
            Direction::Backward => (&old, &new),
            Direction::Forward => (&new, &old),
        };
        let found = compare(original, update, &budget);
        let one = if budget.is_spent() {
            let message = "the comparison went beyond its limit".to_owned();
            Report::impossible("undecided", message, *direction)
        } else {
            judge(&found, *direction, is_lenient)
        };
        report.merge(one, options.differences_max);
    }
    report
}

fn compare(original: &Schema, update: &Schema, budget: &Budget) -> Vec<Found> {
    let resources =
        [original, update].map(|schema| Resources::of(schema.document(), schema.draft()));
    let [originals, updates] = &resources;
    let mut comparison = Comparison::new(budget);
    comparison.compare(
        Shape::whole(original.document(), originals, original.draft()),
        Shape::whole(update.document(), updates, update.draft()),
    )
}

fn judge(found: &[Found], direction: Direction, is_lenient: bool) -> Report {
    let differences: Vec<Difference> = found
        .iter()
        .filter(|found| !found.change.is_compatible(is_lenient))
        .map(|found| Difference {
            path: found.path.clone(),
            kind: found.change.name(),
            message: format!("{} at #{}", found.change.name(), found.path_or_root()),
            witness: None,
            suggestion: None,
            direction,
            against: None,
        })
        .collect();
    let verdict = if differences.is_empty() {
        Verdict::Compatible
    } else {
        Verdict::Incompatible
    };
    Report {
        verdict,
        differences,
    }
}
