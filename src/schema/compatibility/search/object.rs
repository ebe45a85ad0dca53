//! Objects with one member wrong, missing, or too many.

use std::{collections::BTreeSet, rc::Rc};

use serde_json::{Map, Value};

use super::{Conjunction, Facts, Merged, Search, Step, Way, lengths, pattern};
use crate::schema::compatibility::evaluate::{is_evaluated, nodes_for};

/// Names that no schema is likely to declare.
const FRESH: [&str; 6] = ["a", "zz", "x-other", "0", "Zz_9", "other"];

/// Most objects built for one way.
const OBJECTS_MAX: usize = 200;

impl Search<'_> {
    pub(super) fn objects(&mut self, way: &Way, merged: &Merged) -> Vec<Value> {
        let arena = self.arena;
        let Some(base) = self.base(&way.meet, merged, &Map::new()) else {
            return Vec::new();
        };
        let refused = way.refused(arena);
        let mut objects = vec![Value::Object(base.clone())];
        for facts in refused {
            objects.extend(self.objects_with_wrong_member(way, merged, facts));
            objects.extend(self.objects_by_count(way, merged, facts));
            objects.extend(self.objects_by_name(way, merged, facts));
            for dependent in &facts.dependents {
                let wanted = way.meet.with(arena, [dependent.present], [dependent.then]);
                objects.extend(self.find(&wanted));
            }
            if objects.len() >= OBJECTS_MAX {
                break;
            }
        }
        // All declared members at once: what several demands together refuse.
        let all = self.names(&way.meet, &[]);
        let mut full = base;
        for name in all.iter().take(OBJECTS_MAX) {
            if !full.contains_key(name.as_ref()) {
                self.add(&way.meet, &mut full, name);
            }
        }
        objects.push(Value::Object(full));
        objects
    }

    /// Objects of `way` with `part` as the member that `step` names.
    pub(super) fn objects_with(
        &mut self,
        way: &Way,
        whole: &Conjunction,
        step: &Step,
        part: &Value,
    ) -> Vec<Value> {
        let merged = way.meet.merged(self.arena);
        let names: Vec<String> = match step {
            Step::Member(name) => vec![name.to_string()],
            Step::AnyMember(pattern) => self.undeclared(whole, pattern.as_ref(), &[]),
            Step::Item(_) | Step::AnyItem(_) => Vec::new(),
        };
        let mut objects = Vec::new();
        for name in names {
            let fixed: Map<String, Value> = [(name, part.clone())].into_iter().collect();
            objects.extend(self.base(&way.meet, &merged, &fixed).map(Value::Object));
        }
        objects
    }

    /// The smallest object found that has the fixed members and what must be there.
    fn base(
        &mut self,
        meet: &Conjunction,
        merged: &Merged,
        fixed: &Map<String, Value>,
    ) -> Option<Map<String, Value>> {
        let mut object = fixed.clone();
        for name in &merged.required {
            if !object.contains_key(name.as_ref()) && !self.add(meet, &mut object, name) {
                return None;
            }
        }
        // What depends on a member that came in only now.
        for _ in 0..4 {
            let due: BTreeSet<Rc<str>> = meet
                .facts(self.arena)
                .flat_map(|facts| &facts.dependents)
                .filter(|dependent| object.contains_key(dependent.trigger.as_ref()))
                .filter_map(|dependent| self.arena.facts(dependent.then))
                .flat_map(|facts| facts.required.iter().cloned())
                .filter(|name| !object.contains_key(name.as_ref()))
                .collect();
            if due.is_empty() {
                break;
            }
            for name in due {
                self.add(meet, &mut object, &name);
            }
        }
        self.fill(
            meet,
            &mut object,
            usize::try_from(merged.members_min).unwrap_or(usize::MAX),
        );
        Some(object)
    }

    /// Adds members until there are `count`, declared ones first.
    fn fill(&mut self, meet: &Conjunction, object: &mut Map<String, Value>, count: usize) {
        if object.len() >= count || super::length(count as u64).is_none() {
            return;
        }
        let declared = self.names(meet, &[]);
        let undeclared = self.undeclared(meet, None, &[]);
        let numbered = (0..count).map(|index| format!("m{index}"));
        let names = declared
            .iter()
            .map(ToString::to_string)
            .chain(undeclared)
            .chain(numbered);
        for name in names {
            if object.len() >= count {
                break;
            }
            if !object.contains_key(&name) {
                self.add(meet, object, &name);
            }
        }
    }

    /// Adds a member that meets what its name demands; `false` where none was found.
    fn add(&mut self, meet: &Conjunction, object: &mut Map<String, Value>, name: &str) -> bool {
        if !meet.may_have(self.arena, name) {
            return false;
        }
        let Some(wanted) = meet.at_name(self.arena, name) else {
            return false;
        };
        match self.first(&wanted) {
            Some(value) => {
                object.insert(name.to_owned(), value);
                true
            }
            None => false,
        }
    }

    fn objects_with_wrong_member(
        &mut self,
        way: &Way,
        merged: &Merged,
        facts: &Facts,
    ) -> Vec<Value> {
        let arena = self.arena;
        let mut objects = Vec::new();
        let mut names: Vec<String> = self
            .names(&way.meet, &[facts])
            .iter()
            .map(ToString::to_string)
            .collect();
        for member in &facts.patterned {
            names.extend(self.undeclared(&way.meet, Some(&member.pattern), &[facts]));
        }
        names.extend(self.undeclared(&way.meet, None, &[facts]));
        for name in names {
            if objects.len() >= OBJECTS_MAX || !self.budget.spend(1) {
                break;
            }
            let mut refused = nodes_for(arena, facts, &name).unwrap_or_default();
            if !is_evaluated(arena, facts, &name) {
                refused.extend(facts.unevaluated_properties);
            }
            let Some(place) = way.meet.at_name(arena, &name) else {
                continue;
            };
            for node in refused {
                let wanted = place.with(arena, [], [node]);
                for part in self.find(&wanted).into_iter().take(2) {
                    let fixed: Map<String, Value> = [(name.clone(), part)].into_iter().collect();
                    objects.extend(self.base(&way.meet, merged, &fixed).map(Value::Object));
                }
            }
        }
        objects
    }

    fn objects_by_count(&mut self, way: &Way, merged: &Merged, facts: &Facts) -> Vec<Value> {
        let limits = [(facts.members_min, facts.members_max)];
        let counts = lengths((merged.members_min, merged.members_max), &limits);
        let mut objects = Vec::new();
        for count in counts {
            if let Some(mut object) = self.base(&way.meet, merged, &Map::new()) {
                self.fill(&way.meet, &mut object, count);
                objects.push(Value::Object(object));
            }
        }
        objects
    }

    fn objects_by_name(&mut self, way: &Way, merged: &Merged, facts: &Facts) -> Vec<Value> {
        let Some(names) = facts.names else {
            return Vec::new();
        };
        let wanted = way.meet.names(self.arena).with(self.arena, [], [names]);
        let mut found: Vec<String> = self
            .find(&wanted)
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        found.extend(self.names(&way.meet, &[]).iter().map(ToString::to_string));
        let mut objects = Vec::new();
        for name in found {
            if let Some(mut object) = self.base(&way.meet, merged, &Map::new())
                && self.add(&way.meet, &mut object, &name)
            {
                objects.push(Value::Object(object));
            }
        }
        objects
    }

    /// The names declared in the conjunction and in `others`.
    fn names(&self, meet: &Conjunction, others: &[&Facts]) -> BTreeSet<Rc<str>> {
        let own = meet.facts(self.arena).chain(others.iter().copied());
        let mut names: BTreeSet<Rc<str>> = own
            .flat_map(|facts| facts.properties.keys().cloned())
            .collect();
        let values = meet.names(self.arena).merged(self.arena).values;
        names.extend(
            values
                .iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(Rc::from),
        );
        for facts in others {
            names.extend(
                facts
                    .dependents
                    .iter()
                    .map(|dependent| Rc::clone(&dependent.trigger)),
            );
        }
        names
    }

    /// Names that are not declared: after `pattern`, or after the patterns of the conjunction,
    /// and fresh ones.
    fn undeclared(
        &mut self,
        meet: &Conjunction,
        pattern: Option<&Rc<str>>,
        others: &[&Facts],
    ) -> Vec<String> {
        let arena = self.arena;
        let mut names: Vec<String> = Vec::new();
        match pattern {
            Some(pattern) => names.extend(pattern::samples(pattern, &[], 4)),
            None => {
                let patterns = meet.facts(arena).chain(others.iter().copied());
                for member in patterns.flat_map(|facts| &facts.patterned) {
                    names.extend(pattern::samples(&member.pattern, &[], 2));
                }
                names.extend(FRESH.map(str::to_owned));
                let allowed = meet.names(arena);
                if allowed.nodes.len() > 1 {
                    let found = self.find(&allowed);
                    names.extend(found.iter().filter_map(Value::as_str).map(str::to_owned));
                }
            }
        }
        let declared = self.names(meet, others);
        names.retain(|name| !declared.contains(name.as_str()) && meet.may_have(arena, name));
        names.sort();
        names.dedup();
        names
    }
}
