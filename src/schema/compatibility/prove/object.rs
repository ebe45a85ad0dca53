//! Demands on objects.

use std::{collections::BTreeSet, rc::Rc};

use serde_json::Value;

use super::{Aspect, Conjunction, Facts, Merged, NodeId, Prover, Step};
use crate::schema::compatibility::{
    arena::Arena,
    conjunction::least,
    evaluate::{evaluate, is_evaluated, nodes_for},
};

/// Most ways in which patterns may cover a name that are looked at one by one.
const COVERS_MAX: usize = 32;

impl Prover<'_> {
    pub(super) fn meets_object(
        &mut self,
        left: &Conjunction,
        merged: &Merged,
        facts: &Facts,
        node: NodeId,
    ) -> bool {
        let mut unmet: Vec<Aspect> = facts
            .required
            .iter()
            .filter(|name| !merged.required.contains(*name))
            .map(|name| Aspect::Required(Rc::clone(name)))
            .collect();
        if merged.members_min < facts.members_min {
            unmet.push(Aspect::MinProperties);
        }
        if let Some(limit) = facts.members_max
            && self.members_max(left, merged).is_none_or(|max| max > limit)
        {
            unmet.push(Aspect::MaxProperties);
        }
        if let Some(names) = facts.names
            && !self.meets_names(left, names)
        {
            unmet.push(Aspect::PropertyNames);
        }
        let mut is_met = unmet.is_empty();
        for aspect in unmet {
            self.note(left, node, aspect);
        }
        is_met &= self.meets_declared(left, facts, node);
        is_met &= self.meets_undeclared(left, facts);
        for dependent in &facts.dependents {
            let with = left.with(self.arena, [dependent.present], []);
            is_met &= self.is_within(&with, dependent.then);
        }
        is_met
    }

    /// Members with a name that either side spells out.
    fn meets_declared(&mut self, left: &Conjunction, facts: &Facts, node: NodeId) -> bool {
        let arena = self.arena;
        let mut is_met = true;
        for name in self.names(left, facts) {
            let Some(mut wanted) = nodes_for(arena, facts, &name) else {
                self.note(left, node, Aspect::Opaque("patternProperties".to_owned()));
                is_met = false;
                continue;
            };
            if !is_evaluated(arena, facts, &name) {
                wanted.extend(facts.unevaluated_properties);
            }
            if wanted.is_empty() || !left.may_have(arena, &name) {
                continue;
            }
            let part = left.at_name(arena, &name).unwrap_or_default();
            for node in wanted {
                is_met &= self.is_part_within(left, Step::Member(Rc::clone(&name)), &part, node);
            }
        }
        is_met
    }

    /// The names that matter one by one: those declared on either side, and a finite set of
    /// allowed names.
    fn names(&self, left: &Conjunction, facts: &Facts) -> BTreeSet<Rc<str>> {
        let mut names: BTreeSet<Rc<str>> = facts.properties.keys().cloned().collect();
        let applies_to_all = !facts.patterned.is_empty()
            || facts.additional.is_some()
            || facts.unevaluated_properties.is_some();
        if applies_to_all {
            let known = left.facts(self.arena);
            names.extend(known.flat_map(|facts| facts.properties.keys().cloned()));
            names.extend(left.merged(self.arena).required);
            names.extend(self.allowed_names(left).into_iter().flatten());
        }
        names
    }

    /// The names that members may have, where `propertyNames` lists them.
    fn allowed_names(&self, left: &Conjunction) -> Option<Vec<Rc<str>>> {
        let values = left.names(self.arena).merged(self.arena).values?;
        Some(
            values
                .iter()
                .filter_map(Value::as_str)
                .map(Rc::from)
                .collect(),
        )
    }

    /// Members with any other name: by each pattern, and by what covers the rest.
    fn meets_undeclared(&mut self, left: &Conjunction, facts: &Facts) -> bool {
        let unevaluated = facts
            .unevaluated_properties
            .filter(|_| facts.additional.is_none());
        let rest = facts.additional.or(unevaluated);
        if facts.patterned.is_empty() && rest.is_none() {
            return true;
        }
        if self.allowed_names(left).is_some() {
            return true;
        }
        let mut is_met = true;
        for member in &facts.patterned {
            for part in self.covers(left, Some(&member.pattern), facts) {
                let step = Step::AnyMember(Some(Rc::clone(&member.pattern)));
                is_met &= self.is_part_within(left, step, &part, member.node);
            }
        }
        if let Some(node) = rest {
            for part in self.covers(left, None, facts) {
                is_met &= self.is_part_within(left, Step::AnyMember(None), &part, node);
            }
        }
        is_met
    }

    /// What an undeclared member may have to meet on the left: one conjunction for each way in
    /// which the left's patterns may apply to a name that `pattern` matches (or that none of the
    /// patterns of `facts` matches). Weaker conjunctions stand for the stronger ones they imply.
    fn covers(
        &self,
        left: &Conjunction,
        pattern: Option<&Rc<str>>,
        facts: &Facts,
    ) -> Vec<Conjunction> {
        let arena = self.arena;
        let mut ways = vec![Vec::new()];
        for known in left.facts(arena) {
            let same = known
                .patterned
                .iter()
                .find(|member| Some(&member.pattern) == pattern);
            let choices: Vec<Option<NodeId>> = match same {
                Some(member) => vec![Some(member.node)],
                None => known
                    .patterned
                    .iter()
                    .filter(|member| {
                        // The rest of the right side is what its own patterns do not match.
                        pattern.is_some()
                            || !facts
                                .patterned
                                .iter()
                                .any(|own| own.pattern == member.pattern)
                    })
                    .map(|member| Some(member.node))
                    .chain([known.additional])
                    .collect(),
            };
            if ways.len() * choices.len() > COVERS_MAX {
                // Leaving a node out weakens the left side, which is always allowed.
                continue;
            }
            ways = choices
                .iter()
                .flat_map(|choice| {
                    ways.iter()
                        .map(|way| way.iter().copied().chain(*choice).collect())
                })
                .collect::<Vec<Vec<NodeId>>>();
        }
        ways.into_iter()
            .map(|way| Conjunction::of(arena, way))
            .collect()
    }

    /// Whether every name a member may have meets `wanted`.
    fn meets_names(&mut self, left: &Conjunction, wanted: NodeId) -> bool {
        let arena = self.arena;
        let meets = |name: &Rc<str>| {
            !left.may_have(arena, name)
                || evaluate(arena, wanted, &Value::from(name.as_ref())) == Some(true)
        };
        if let Some(allowed) = self.allowed_names(left) {
            return allowed.iter().all(meets);
        }
        let declared = left.facts(arena).flat_map(|facts| facts.properties.keys());
        if !declared.into_iter().all(meets) {
            return false;
        }
        let names = left.names(arena);
        self.level += 1;
        let is_met = self.is_within_quietly(&names, wanted)
            || left.facts(arena).any(|facts| {
                facts.additional.is_some_and(|id| arena.is_never(id))
                    && facts.patterned.iter().all(|member| {
                        let named = names.with(arena, [member.name], []);
                        self.is_within_quietly(&named, wanted)
                    })
            });
        self.level -= 1;
        is_met
    }

    /// Most members an object of `left` can have.
    pub(super) fn members_max(&mut self, left: &Conjunction, merged: &Merged) -> Option<u64> {
        let arena = self.arena;
        let closed = left.facts(arena).filter(|facts| {
            facts.patterned.is_empty()
                && facts
                    .additional
                    .is_some_and(|id| Arena::is_never(arena, id))
        });
        let count = |facts: &Facts| {
            facts
                .properties
                .keys()
                .filter(|name| left.may_have(arena, name))
                .count() as u64
        };
        let declared = closed.map(count).min();
        let allowed = self.allowed_names(left).map(|names| names.len() as u64);
        least(least(merged.members_max, declared), allowed)
    }
}
