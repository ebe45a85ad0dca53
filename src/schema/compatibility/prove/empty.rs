//! Whether a conjunction has no value at all.

use super::{Conjunction, Merged, Prover, Types, spellings};
use crate::schema::compatibility::arena::{Facts, NodeId};

/// Deepest nesting of emptiness questions.
const DEPTH_MAX: usize = 24;

/// Most refused nodes that are looked at beyond their structure.
const REFUSALS_MAX: usize = 16;

impl Prover<'_> {
    /// Whether no value meets `left`; yes only where it is certain.
    pub(super) fn is_empty(&mut self, left: &Conjunction) -> bool {
        if left.has_never(self.arena) {
            return true;
        }
        if let Some(known) = self.empties.get(left) {
            return *known;
        }
        if self.depth >= DEPTH_MAX * 16 || !self.budget.spend(1) {
            return false;
        }
        // Asked again about itself, it says no: that proves nothing wrong, only less.
        self.empties.insert(left.clone(), false);
        self.depth += DEPTH_MAX / 4;
        let assumptions = self.assumptions;
        let is_empty = self.refuses_itself(left)
            || self.possible_types(left).is_empty()
            || self
                .parts(left)
                .is_some_and(|parts| parts.iter().all(|part| part != left && self.is_empty(part)));
        self.depth -= DEPTH_MAX / 4;
        // A yes that rests on an assumption falls with it, so it is not kept; a no only proves less.
        if is_empty && assumptions == self.assumptions {
            self.empties.insert(left.clone(), true);
        } else if is_empty {
            self.empties.remove(left);
        }
        is_empty
    }

    /// Whether the left side lies inside something it refuses.
    fn refuses_itself(&mut self, left: &Conjunction) -> bool {
        // Each refusal is tried against what is to be met alone: with the other refusals kept, the
        // questions would multiply with every one of them.
        let met = Conjunction {
            nodes: left.nodes.clone(),
            not: Vec::new(),
        };
        left.not
            .iter()
            .any(|refused| left.includes(self.arena, *refused))
            || (left.not.len() <= REFUSALS_MAX
                && left
                    .not
                    .iter()
                    .any(|refused| self.is_within_quietly(&met, *refused)))
    }

    /// The types that values of `left` may have.
    pub(super) fn possible_types(&mut self, left: &Conjunction) -> Types {
        if let Some(types) = self.types.get(left) {
            return *types;
        }
        let assumptions = self.assumptions;
        let types = self.narrowed_types(left);
        if assumptions == self.assumptions {
            self.types.insert(left.clone(), types);
        }
        types
    }

    fn narrowed_types(&mut self, left: &Conjunction) -> Types {
        let merged = left.merged(self.arena);
        let mut types = merged.types;
        if let Some(values) = &merged.values {
            let kept = values.iter().flat_map(spellings);
            let kept = kept.filter(|value| left.may_take(self.arena, value));
            types = types.and(kept.fold(Types::NONE, |types, value| types.or(Types::of(&value))));
        }
        for refused in left.not.iter().filter_map(|id| self.arena.facts(*id)) {
            if says_only_types(refused) {
                types = types.without(refused.types);
            }
        }
        for number in [Types::INTEGER, Types::WHOLE, Types::FRACTION] {
            if types.contains(number) && merged.leaves_no_number(number) {
                types = types.without(number);
            }
        }
        if merged.length_max.is_some_and(|max| max < merged.length_min) {
            types = types.without(Types::STRING);
        }
        if types.meets(Types::ARRAY) && self.leaves_no_array(left, &merged) {
            types = types.without(Types::ARRAY);
        }
        if types.meets(Types::OBJECT) && self.leaves_no_object(left, &merged) {
            types = types.without(Types::OBJECT);
        }
        types
    }

    fn leaves_no_array(&mut self, left: &Conjunction, merged: &Merged) -> bool {
        merged.items_min > 0
            && self
                .items_max(left, merged)
                .is_some_and(|max| max < merged.items_min)
    }

    fn leaves_no_object(&mut self, left: &Conjunction, merged: &Merged) -> bool {
        if merged
            .members_max
            .is_some_and(|max| max < merged.members_min)
        {
            return true;
        }
        if merged.members_min > 0
            && self
                .members_max(left, merged)
                .is_some_and(|max| max < merged.members_min)
        {
            return true;
        }
        merged.required.iter().any(|name| {
            !left.may_have(self.arena, name)
                || left
                    .at_name(self.arena, name)
                    .is_some_and(|inner| !inner.nodes.is_empty() && self.is_part_empty(&inner))
        })
    }

    /// Whether a part of the value can have no value.
    pub(super) fn is_part_empty(&mut self, part: &Conjunction) -> bool {
        self.level += 1;
        let is_empty = self.is_empty(part);
        self.level -= 1;
        is_empty
    }
}

/// Whether `facts` demand a type and nothing else.
fn says_only_types(facts: &Facts) -> bool {
    let Facts { types, .. } = facts;
    let parts: [&[NodeId]; 3] = [&facts.all_of, &facts.not, &facts.prefix];
    *types != Types::ALL
        && parts.iter().all(|part| part.is_empty())
        && facts.values.is_none()
        && facts.min.is_none()
        && facts.max.is_none()
        && facts.multiples.is_empty()
        && facts.length_min == 0
        && facts.length_max.is_none()
        && facts.patterns.is_empty()
        && facts.formats.is_empty()
        && facts.items.is_none()
        && facts.contains.is_empty()
        && facts.items_min == 0
        && facts.items_max.is_none()
        && !facts.unique
        && facts.properties.is_empty()
        && facts.patterned.is_empty()
        && facts.additional.is_none()
        && facts.names.is_none()
        && facts.required.is_empty()
        && facts.members_min == 0
        && facts.members_max.is_none()
        && facts.dependents.is_empty()
        && facts.any_of.is_empty()
        && facts.one_of.is_empty()
        && facts.conditions.is_empty()
        && facts.unevaluated_items.is_none()
        && facts.unevaluated_properties.is_none()
        && facts.opaque.is_empty()
}
