//! Many patterns compiled to one immutable index.
//!
//! An index is a list of segments, each built once over some rules. Adding rules builds a new
//! segment from them and from the smaller ones before it; removing them sets bits. Everything else
//! is shared with the index before, so a new index is ready in the time its change takes, and the
//! old one stays as it is for whoever still matches with it.

mod affixes;
mod arrays;
mod atoms;
mod blocks;
mod buffers;
mod build;
mod cost;
mod grams;
mod level;
mod ranges;
mod run;
mod segment;
mod tests_at_path;

use std::sync::Arc;

use self::buffers::{Budget, Buffers};
use self::run::Run;
use self::segment::Segment;
use super::Pattern;
use super::input::Input;
use super::leaves::Leaves;
use super::limits::{EventLimits, LimitReached};
use super::paths::Paths;
use super::walk;

/// Number of a rule; the caller gives it.
pub type RuleId = u32;

/// Many patterns, each under the number of its rule. Cheap to clone, and the same for every thread.
#[derive(Debug, Clone, Default)]
pub struct Index {
    paths: Arc<Paths>,
    parts: Vec<Part>,
}

/// A segment and which of its rules are no longer there.
#[derive(Debug, Clone)]
struct Part {
    segment: Arc<Segment>,
    /// By bit; empty while none is removed.
    removed: Arc<[u64]>,
    live: usize,
}

/// Memory that matching uses again from event to event; one for each thread.
#[derive(Debug, Default)]
pub struct Scratch {
    limits: EventLimits,
    leaves: Leaves,
    buffers: Buffers,
    matched: Vec<RuleId>,
}

/// What an index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Rules that can match.
    pub rules: usize,
    /// Alternatives of all rules, removed ones included until they are compacted away.
    pub conjunctions: usize,
    /// Paths that some rule reads or has read.
    pub paths: usize,
    /// Plain values that rules name, each counted once for its path.
    pub values: usize,
    /// Parts that are searched one after the other.
    pub segments: usize,
    /// Bytes on the heap, the patterns themselves not counted.
    pub bytes: usize,
}

impl Scratch {
    /// Memory for matching within other limits than the default ones.
    pub fn with_limits(limits: EventLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }
}

impl Index {
    /// Compiles patterns. A later pattern under the same number replaces the earlier one.
    pub fn build(rules: impl IntoIterator<Item = (RuleId, Arc<Pattern>)>) -> Self {
        Self::default().with_added(rules)
    }

    /// The same index with more rules, or other patterns for rules it has.
    ///
    /// Takes time for the rules added and for segments that are not much larger, which are built
    /// anew with them; so many single additions cost a logarithm more than one of all.
    pub fn with_added(&self, rules: impl IntoIterator<Item = (RuleId, Arc<Pattern>)>) -> Self {
        let mut added = last_of_each(rules.into_iter().collect());
        if added.is_empty() {
            return self.clone();
        }
        let mut index = self.with_removed(added.iter().map(|(id, _)| *id));
        while let Some(part) = index.parts.pop_if(|part| part.live <= 2 * added.len()) {
            added.extend(part.rules());
        }
        added.sort_by_key(|(id, _)| *id);
        let segment = Segment::build(added, Arc::make_mut(&mut index.paths));
        index.parts.push(Part {
            live: segment.rules.len(),
            segment: Arc::new(segment),
            removed: Arc::default(),
        });
        index
    }

    /// The same index without some rules; numbers it does not have are ignored. Takes time for the
    /// rules removed and a bit for every rule there is.
    pub fn with_removed(&self, rules: impl IntoIterator<Item = RuleId>) -> Self {
        let mut index = self.clone();
        let rules: Vec<RuleId> = rules.into_iter().collect();
        for part in &mut index.parts {
            part.remove(&rules);
        }
        index.parts.retain(|part| part.live > 0);
        index
    }

    /// The same rules in one segment, without what removed rules left behind. Takes as long as
    /// building; worth it, aside, after many changes.
    pub fn compacted(&self) -> Self {
        Self::build(self.parts.iter().flat_map(Part::rules))
    }

    /// The rules that match, in order and each once.
    pub fn matches<'s>(
        &self,
        input: &Input<'_>,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [RuleId], LimitReached> {
        scratch.matched.clear();
        walk::walk(input, &self.paths, &scratch.limits, &mut scratch.leaves)?;
        let mut budget = Budget {
            left: scratch.limits.work_max,
            work_max: scratch.limits.work_max,
        };
        for part in &self.parts {
            let mut run = Run {
                segment: &part.segment,
                input,
                leaves: &scratch.leaves,
                paths: &self.paths,
                buffers: &mut scratch.buffers,
                budget: &mut budget,
                matched: &mut scratch.matched,
                removed: &part.removed,
            };
            run.run()?;
        }
        if scratch.matched.len() > 1 {
            scratch.matched.sort_unstable();
            scratch.matched.dedup();
        }
        Ok(&scratch.matched)
    }

    /// What the index holds.
    pub fn stats(&self) -> Stats {
        let sum = |count: fn(&Segment) -> usize| {
            self.parts
                .iter()
                .map(|part| count(&part.segment))
                .sum::<usize>()
        };
        Stats {
            rules: self.parts.iter().map(|part| part.live).sum(),
            conjunctions: sum(Segment::conjunction_count),
            paths: self.paths.len(),
            values: sum(|segment| segment.atoms.len()),
            segments: self.parts.len(),
            bytes: self.paths.bytes() + sum(Segment::bytes),
        }
    }
}

impl Part {
    /// The rules that are still there.
    fn rules(&self) -> impl Iterator<Item = (RuleId, Arc<Pattern>)> {
        let all = self
            .segment
            .rules
            .iter()
            .zip(&self.segment.patterns)
            .enumerate();
        all.filter(|(slot, _)| !self.is_removed(*slot))
            .map(|(_, (id, pattern))| (*id, Arc::clone(pattern)))
    }

    fn is_removed(&self, slot: usize) -> bool {
        let word = self.removed.get(slot / 64);
        word.is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    fn remove(&mut self, rules: &[RuleId]) {
        let slots: Vec<usize> = rules
            .iter()
            .filter_map(|rule| self.segment.slot(*rule))
            .map(|slot| slot as usize)
            .filter(|slot| !self.is_removed(*slot))
            .collect();
        if slots.is_empty() {
            return;
        }
        let mut removed = self.removed.to_vec();
        removed.resize(self.segment.rules.len().div_ceil(64), 0);
        for slot in slots {
            let bit = 1 << (slot % 64);
            self.live -= usize::from(removed[slot / 64] & bit == 0);
            removed[slot / 64] |= bit;
        }
        self.removed = removed.into();
    }
}

/// Sorts rules by number and keeps the last of each.
fn last_of_each(mut rules: Vec<(RuleId, Arc<Pattern>)>) -> Vec<(RuleId, Arc<Pattern>)> {
    rules.reverse();
    rules.sort_by_key(|(id, _)| *id);
    rules.dedup_by_key(|(id, _)| *id);
    rules
}
