//! A bus: its enabled rules, and the index that finds those an event matches.

use std::collections::HashMap;
use std::sync::Arc;

use super::BusSettings;
use crate::event::Event;
use crate::pattern::{Index, Input, LimitReached, RuleId, Scratch};
use crate::rule::Rule;

/// Share of the rules, as a divisor, up to which a change is added to the index at hand; a larger
/// change builds it anew.
const SMALL_CHANGE: usize = 8;
/// Rules up to which the index is always built anew, which is quicker than keeping segments.
const FEW_RULES: usize = 256;

/// A bus and the rules that listen on it.
#[derive(Debug)]
pub struct Bus {
    pub name: Arc<str>,
    pub settings: BusSettings,
    /// Enabled rules by name.
    rules: Vec<Arc<Rule>>,
    /// Enabled rules by their number in the index; a free number has none.
    slots: Vec<Option<Arc<Rule>>>,
    index: Arc<Index>,
}

impl Bus {
    /// Compiles the rules of a bus, taking over what `before` has of them.
    pub(super) fn new(
        name: &str,
        settings: BusSettings,
        rules: Vec<Arc<Rule>>,
        before: Option<&Self>,
    ) -> Self {
        let (slots, index) = match before {
            Some(before) => before.changed_to(&rules),
            None => built(&rules),
        };
        Self {
            name: name.into(),
            settings,
            rules,
            slots,
            index,
        }
    }

    /// Slots and index for other rules: those at hand with the difference, when that is small.
    fn changed_to(&self, rules: &[Arc<Rule>]) -> (Vec<Option<Arc<Rule>>>, Arc<Index>) {
        let wanted: HashMap<*const Rule, &Arc<Rule>> =
            rules.iter().map(|rule| (Arc::as_ptr(rule), rule)).collect();
        let mut slots = self.slots.clone();
        let mut removed = Vec::new();
        let mut kept = HashMap::with_capacity(wanted.len());
        for (slot, id) in slots.iter_mut().zip(0..) {
            match slot {
                Some(rule) if wanted.contains_key(&Arc::as_ptr(rule)) => {
                    kept.insert(Arc::as_ptr(rule), ());
                }
                Some(_) => {
                    removed.push(id);
                    *slot = None;
                }
                None => {}
            }
        }
        let added: Vec<&Arc<Rule>> = rules
            .iter()
            .filter(|rule| !kept.contains_key(&Arc::as_ptr(rule)))
            .collect();
        let difference = removed.len() + added.len();
        if difference == 0 {
            return (slots, Arc::clone(&self.index));
        }
        if rules.len() <= FEW_RULES || difference > rules.len() / SMALL_CHANGE {
            return built(rules);
        }
        let placed = place(&mut slots, &added);
        let index = self.index.with_removed(removed);
        (slots, Arc::new(index.with_added(placed)))
    }

    /// Enabled rules by name.
    #[must_use]
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// The enabled rule of that name.
    #[must_use]
    pub fn rule(&self, name: &str) -> Option<&Arc<Rule>> {
        let at = self
            .rules
            .binary_search_by(|rule| rule.name.as_str().cmp(name));
        at.ok().map(|at| &self.rules[at])
    }

    /// The rules that an event matches, by name.
    ///
    /// # Errors
    /// When judging the event would cost more than the limits allow.
    pub fn matches(
        &self,
        event: &Event,
        scratch: &mut Scratch,
    ) -> Result<Vec<&Arc<Rule>>, LimitReached> {
        let ids = self.index.matches(&Input::event(event), scratch)?;
        let mut found: Vec<&Arc<Rule>> = ids
            .iter()
            .filter_map(|id| self.slots.get(*id as usize)?.as_ref())
            .collect();
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}

fn built(rules: &[Arc<Rule>]) -> (Vec<Option<Arc<Rule>>>, Arc<Index>) {
    let numbered = rules
        .iter()
        .zip(0..)
        .map(|(rule, id): (_, RuleId)| (id, Arc::clone(&rule.pattern)));
    let index = Arc::new(Index::build(numbered));
    (rules.iter().cloned().map(Some).collect(), index)
}

/// Gives each new rule a free number.
fn place(
    slots: &mut Vec<Option<Arc<Rule>>>,
    added: &[&Arc<Rule>],
) -> Vec<(RuleId, Arc<crate::pattern::Pattern>)> {
    let mut free = 0;
    added
        .iter()
        .map(|rule| {
            while slots.get(free).is_some_and(Option::is_some) {
                free += 1;
            }
            if free == slots.len() {
                slots.push(None);
            }
            slots[free] = Some(Arc::clone(rule));
            let id = RuleId::try_from(free).unwrap_or(RuleId::MAX);
            (id, Arc::clone(&rule.pattern))
        })
        .collect()
}
