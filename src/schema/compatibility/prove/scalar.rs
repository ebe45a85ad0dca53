//! Demands on types, constants, numbers and strings.

use std::cmp::Ordering;

use super::{Aspect, Conjunction, Facts, Merged, NodeId, Prover, Types};
use crate::schema::compatibility::{
    arena::Bound, conjunction::implies, search::matches_everything,
};

impl Prover<'_> {
    pub(super) fn meets_scalars(
        &mut self,
        left: &Conjunction,
        merged: &Merged,
        facts: &Facts,
        node: NodeId,
    ) -> bool {
        let types = self.possible_types(left);
        let mut unmet = Vec::new();
        if !facts.types.contains(types) {
            unmet.push(Aspect::Type);
        }
        if facts.values.is_some() {
            unmet.push(Aspect::Values);
        }
        if types.meets(Types::NUMBER) {
            number(types, merged, facts, &mut unmet);
        }
        if types.meets(Types::STRING) {
            string(merged, facts, &mut unmet);
        }
        let is_met = unmet.is_empty();
        for aspect in unmet {
            self.note(left, node, aspect);
        }
        is_met
    }
}

fn number(types: Types, merged: &Merged, facts: &Facts, unmet: &mut Vec<Aspect>) {
    let numbers = types.and(Types::NUMBER);
    let inclusive = |value| Bound {
        value,
        exclusive: false,
    };
    // A lattice has a first and a last number, which may lie further inside than the bounds.
    if let Some(bound) = facts.min {
        let least = merged.least(numbers).map(inclusive).or(merged.min);
        if !implies(least, bound, Ordering::Greater) {
            unmet.push(Aspect::Minimum);
        }
    }
    if let Some(bound) = facts.max {
        let greatest = merged.greatest(numbers).map(inclusive).or(merged.max);
        if !implies(greatest, bound, Ordering::Less) {
            unmet.push(Aspect::Maximum);
        }
    }
    let unit = merged.unit(numbers);
    let divides = |wanted| unit.is_some_and(|unit| unit.is_multiple_of(wanted) == Some(true));
    if !facts.multiples.iter().all(|wanted| divides(*wanted)) {
        unmet.push(Aspect::MultipleOf);
    }
}

fn string(merged: &Merged, facts: &Facts, unmet: &mut Vec<Aspect>) {
    if merged.length_min < facts.length_min {
        unmet.push(Aspect::MinLength);
    }
    if let Some(max) = facts.length_max
        && merged.length_max.is_none_or(|length| length > max)
    {
        unmet.push(Aspect::MaxLength);
    }
    let matches = |pattern: &str| {
        matches_everything(pattern)
            || merged
                .patterns
                .iter()
                .any(|known| known.as_ref() == pattern)
    };
    if !facts.patterns.iter().all(|pattern| matches(pattern)) {
        unmet.push(Aspect::Pattern);
    }
    if !facts
        .formats
        .iter()
        .all(|format| merged.formats.contains(format))
    {
        unmet.push(Aspect::Format);
    }
}
