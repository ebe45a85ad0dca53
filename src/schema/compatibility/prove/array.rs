//! Demands on arrays.

use super::{Aspect, Conjunction, Facts, Merged, NodeId, Prover, Step};
use crate::schema::compatibility::{arena::Contains, conjunction::least};

/// Most leading positions that are looked at one by one.
const POSITIONS_MAX: usize = 256;

impl Prover<'_> {
    pub(super) fn meets_array(
        &mut self,
        left: &Conjunction,
        merged: &Merged,
        facts: &Facts,
        node: NodeId,
    ) -> bool {
        let max = self.items_max(left, merged);
        let mut unmet = Vec::new();
        if merged.items_min < facts.items_min {
            unmet.push(Aspect::MinItems);
        }
        if facts
            .items_max
            .is_some_and(|limit| max.is_none_or(|max| max > limit))
        {
            unmet.push(Aspect::MaxItems);
        }
        if facts.unique && !merged.unique && max.is_none_or(|max| max > 1) {
            unmet.push(Aspect::UniqueItems);
        }
        for contains in &facts.contains {
            if !self.meets_contains(left, merged, *contains) {
                unmet.push(Aspect::Contains);
            }
        }
        let is_met = unmet.is_empty();
        for aspect in unmet {
            self.note(left, node, aspect);
        }
        self.meets_items(left, facts, max) && is_met
    }

    fn meets_items(&mut self, left: &Conjunction, facts: &Facts, max: Option<u64>) -> bool {
        let unevaluated = facts.unevaluated_items.filter(|_| facts.items.is_none());
        if facts.prefix.is_empty() && facts.items.is_none() && unevaluated.is_none() {
            return true;
        }
        let arena = self.arena;
        let rest = facts.items.or(unevaluated);
        let known = left
            .facts(arena)
            .map(|facts| facts.prefix.len())
            .max()
            .unwrap_or(0);
        let count = known.max(facts.prefix.len());
        let mut is_met = count <= POSITIONS_MAX;
        for index in 0..count.min(POSITIONS_MAX) {
            if max.is_some_and(|max| max <= index as u64) {
                return is_met;
            }
            if let Some(node) = facts.prefix.get(index).copied().or(rest) {
                let part = left.at_index(arena, index);
                is_met &= self.is_part_within(left, Step::Item(index), &part, node);
            }
        }
        if let Some(node) = rest
            && max.is_none_or(|max| max > count as u64)
        {
            let part = left.at_index(arena, count);
            is_met &= self.is_part_within(left, Step::AnyItem(count), &part, node);
        }
        is_met
    }

    fn meets_contains(&mut self, left: &Conjunction, merged: &Merged, wanted: Contains) -> bool {
        let arena = self.arena;
        let known: Vec<Contains> = left
            .facts(arena)
            .flat_map(|facts| facts.contains.iter().copied())
            .collect();
        let max = self.items_max(left, merged);
        self.level += 1;
        self.quiet += 1;
        let has_enough = wanted.min == 0
            || known.iter().any(|known| {
                let inner = Conjunction::of(arena, [known.node]);
                known.min >= wanted.min && self.is_within(&inner, wanted.node)
            })
            || self.items_within(left, merged, wanted) >= wanted.min;
        let has_few = wanted.max.is_none_or(|limit| {
            max.is_some_and(|max| max <= limit)
                || known.iter().any(|known| {
                    let inner = Conjunction::of(arena, [wanted.node]);
                    known.max.is_some_and(|max| max <= limit) && self.is_within(&inner, known.node)
                })
        });
        self.quiet -= 1;
        self.level -= 1;
        has_enough && has_few
    }

    /// How many of the items that must be there are certain to match.
    fn items_within(&mut self, left: &Conjunction, merged: &Merged, wanted: Contains) -> u64 {
        let known = left
            .facts(self.arena)
            .map(|facts| facts.prefix.len())
            .max()
            .unwrap_or(0);
        let count = merged.items_min.min(known as u64);
        let mut matching = (0..count)
            .filter(|index| {
                let index = usize::try_from(*index).unwrap_or(usize::MAX);
                let part = left.at_index(self.arena, index);
                self.is_within(&part, wanted.node)
            })
            .count() as u64;
        if merged.items_min > count {
            let part = left.at_index(self.arena, known);
            if self.is_within(&part, wanted.node) {
                matching += merged.items_min - count;
            }
        }
        matching
    }

    /// Most items an array of `left` can have.
    pub(super) fn items_max(&mut self, left: &Conjunction, merged: &Merged) -> Option<u64> {
        let known = left
            .facts(self.arena)
            .map(|facts| facts.prefix.len())
            .max()
            .unwrap_or(0);
        let limit = merged.items_max.and_then(|max| usize::try_from(max).ok());
        let last = known.min(limit.unwrap_or(usize::MAX)).min(POSITIONS_MAX);
        let closed = (0..=last).find(|index| {
            let part = left.at_index(self.arena, *index);
            !part.nodes.is_empty() && self.is_part_empty(&part)
        });
        least(merged.items_max, closed.map(|index| index as u64))
    }
}
