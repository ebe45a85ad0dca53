//! Whether a value meets a node, as far as this engine knows: yes, no, or unknown.
//!
//! The validator has the last word on every witness; this evaluator only steers the search and
//! settles finite sets, so an unknown costs completeness and never correctness.

use std::{cell::RefCell, rc::Rc};

use serde_json::Value;

use super::{
    arena::{Arena, Body, Bound, Contains, Facts, NodeId},
    decimal::Decimal,
    types::Types,
};

/// Deepest chain of nodes followed; beyond, the answer is unknown.
const DEPTH_MAX: usize = 200;

/// A verdict that may be unknown.
pub(super) type Verdict = Option<bool>;

/// Whether `value` meets node `id`.
pub(super) fn evaluate(arena: &Arena, id: NodeId, value: &Value) -> Verdict {
    Evaluator {
        arena,
        open: RefCell::default(),
    }
    .node(id, value, 0)
}

/// JSON equality: numbers by value, objects whatever the order.
pub(super) fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            match (Decimal::of(one), Decimal::of(other)) {
                (Some(one), Some(other)) => one == other,
                _ => one == other,
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, member)| {
                    other.get(name).is_some_and(|other| is_equal(member, other))
                })
        }
        _ => one == other,
    }
}

/// All verdicts must be yes.
fn all(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let mut result = Some(true);
    for verdict in verdicts {
        match verdict {
            Some(false) => return Some(false),
            Some(true) => {}
            None => result = None,
        }
    }
    result
}

/// One verdict must be yes.
fn any(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    all(verdicts.into_iter().map(|verdict| verdict.map(|met| !met))).map(|none| !none)
}

struct Evaluator<'a> {
    arena: &'a Arena,
    /// The questions that are open, each about the value or a part of it.
    open: RefCell<Vec<(NodeId, *const Value)>>,
}

impl Evaluator<'_> {
    fn node(&self, id: NodeId, value: &Value, depth: usize) -> Verdict {
        let facts = match &self.arena.node(id).body {
            Body::Always => return Some(true),
            Body::Never => return Some(false),
            Body::Facts(facts) => facts,
        };
        if depth > DEPTH_MAX || !self.arena.fuel.spend(1) {
            return None;
        }
        // What a schema says that leads back to itself on the same value is left to the validator.
        let question = (id, std::ptr::from_ref(value));
        let is_open = {
            let open = self.open.borrow();
            let same_value = open
                .iter()
                .rev()
                .take_while(|(_, value)| *value == question.1);
            same_value.into_iter().any(|known| *known == question)
        };
        if is_open {
            return None;
        }
        self.open.borrow_mut().push(question);
        let verdict = self.facts(facts, value, depth);
        self.open.borrow_mut().pop();
        verdict
    }

    fn facts(&self, facts: &Facts, value: &Value, depth: usize) -> Verdict {
        if !facts.types.contains(Types::of(value))
            || facts
                .values
                .as_ref()
                .is_some_and(|values| !values.iter().any(|known| is_equal(known, value)))
        {
            return Some(false);
        }
        let own = match value {
            Value::Null | Value::Bool(_) => Some(true),
            Value::Number(_) => number(facts, value),
            Value::String(text) => self.string(facts, text),
            Value::Array(items) => self.array(facts, items, depth),
            Value::Object(members) => self.object(facts, members, value, depth),
        };
        if own == Some(false) {
            return own;
        }
        let opaque = if facts.opaque.is_empty() {
            Some(true)
        } else {
            None
        };
        all([own, opaque, self.applicators(facts, value, depth)])
    }

    fn applicators(&self, facts: &Facts, value: &Value, depth: usize) -> Verdict {
        let node = |id: NodeId| self.node(id, value, depth + 1);
        let conditions = facts
            .conditions
            .iter()
            .map(|condition| match node(condition.test) {
                Some(true) => condition.then.map_or(Some(true), node),
                Some(false) => condition.otherwise.map_or(Some(true), node),
                None => {
                    let both = [condition.then, condition.otherwise];
                    let both = all(both.into_iter().flatten().map(node));
                    if both == Some(true) { both } else { None }
                }
            });
        all([
            all(facts.all_of.iter().map(|id| node(*id))),
            all(facts
                .any_of
                .iter()
                .map(|branches| any(branches.iter().map(|id| node(*id))))),
            all(facts.one_of.iter().map(|branches| {
                let verdicts: Vec<Verdict> = branches.iter().map(|id| node(*id)).collect();
                let met = verdicts
                    .iter()
                    .filter(|verdict| **verdict == Some(true))
                    .count();
                let unknown = verdicts.iter().filter(|verdict| verdict.is_none()).count();
                match (met, unknown) {
                    (2.., _) | (0, 0) => Some(false),
                    (_, 0) => Some(true),
                    _ => None,
                }
            })),
            all(facts.not.iter().map(|id| node(*id).map(|met| !met))),
            all(conditions),
        ])
    }

    fn string(&self, facts: &Facts, text: &str) -> Verdict {
        let length = text.chars().count() as u64;
        if length < facts.length_min || facts.length_max.is_some_and(|max| length > max) {
            return Some(false);
        }
        let patterns = facts
            .patterns
            .iter()
            .map(|pattern| self.arena.is_match(pattern, text));
        let formats = facts
            .formats
            .iter()
            .map(|format| self.arena.is_format(format, text));
        all(patterns.chain(formats))
    }

    fn array(&self, facts: &Facts, items: &[Value], depth: usize) -> Verdict {
        let length = items.len() as u64;
        if length < facts.items_min || facts.items_max.is_some_and(|max| length > max) {
            return Some(false);
        }
        if facts.unique && has_repeats(items) {
            return Some(false);
        }
        let positions = items.iter().enumerate().map(|(index, item)| {
            let node = facts.prefix.get(index).copied().or(facts.items);
            node.map_or(Some(true), |node| self.node(node, item, depth + 1))
        });
        let contains = facts
            .contains
            .iter()
            .map(|contains| self.contains(*contains, items, depth));
        // Which items an applicator evaluated is left to the validator.
        let unevaluated = match facts.unevaluated_items {
            Some(_) if items.len() > facts.prefix.len() && facts.items.is_none() => None,
            _ => Some(true),
        };
        all([all(positions), all(contains), unevaluated])
    }

    fn contains(&self, contains: Contains, items: &[Value], depth: usize) -> Verdict {
        let verdicts: Vec<Verdict> = items
            .iter()
            .map(|item| self.node(contains.node, item, depth + 1))
            .collect();
        let met = verdicts
            .iter()
            .filter(|verdict| **verdict == Some(true))
            .count() as u64;
        let unknown = verdicts.iter().filter(|verdict| verdict.is_none()).count() as u64;
        if met + unknown < contains.min || contains.max.is_some_and(|max| met > max) {
            return Some(false);
        }
        let is_sure = met >= contains.min && contains.max.is_none_or(|max| met + unknown <= max);
        is_sure.then_some(true)
    }

    fn object(
        &self,
        facts: &Facts,
        members: &serde_json::Map<String, Value>,
        whole: &Value,
        depth: usize,
    ) -> Verdict {
        let count = members.len() as u64;
        if count < facts.members_min
            || facts.members_max.is_some_and(|max| count > max)
            || facts
                .required
                .iter()
                .any(|name| !members.contains_key(name.as_ref()))
        {
            return Some(false);
        }
        let mut verdicts = vec![Some(true)];
        for (name, member) in members {
            match nodes_for(self.arena, facts, name) {
                Some(nodes) => {
                    verdicts.extend(nodes.iter().map(|id| self.node(*id, member, depth + 1)));
                }
                None => verdicts.push(None),
            }
            if let Some(names) = facts.names {
                verdicts.push(self.node(names, &Value::from(name.as_str()), depth + 1));
            }
        }
        for dependent in &facts.dependents {
            if members.contains_key(dependent.trigger.as_ref()) {
                verdicts.push(self.node(dependent.then, whole, depth + 1));
            }
        }
        if let Some(unevaluated) = facts.unevaluated_properties {
            for (name, member) in members {
                if !is_evaluated(self.arena, facts, name) {
                    // Another applicator may have evaluated it, so only a yes is certain.
                    let verdict = self.node(unevaluated, member, depth + 1);
                    verdicts.push(verdict.filter(|met| *met));
                }
            }
        }
        all(verdicts)
    }
}

fn number(facts: &Facts, value: &Value) -> Verdict {
    if facts.min.is_none() && facts.max.is_none() && facts.multiples.is_empty() {
        return Some(true);
    }
    let value = Decimal::of_value(value)?;
    let above = facts
        .min
        .is_none_or(|bound| is_within(bound, value, std::cmp::Ordering::Greater));
    let below = facts
        .max
        .is_none_or(|bound| is_within(bound, value, std::cmp::Ordering::Less));
    if !(above && below) {
        return Some(false);
    }
    all(facts
        .multiples
        .iter()
        .map(|unit| value.is_multiple_of(*unit)))
}

fn is_within(bound: Bound, value: Decimal, side: std::cmp::Ordering) -> bool {
    match value.compare(bound.value) {
        std::cmp::Ordering::Equal => !bound.exclusive,
        order => order == side,
    }
}

/// Whether two items are equal.
pub(super) fn has_repeats(items: &[Value]) -> bool {
    items
        .iter()
        .enumerate()
        .any(|(index, item)| items[..index].iter().any(|earlier| is_equal(earlier, item)))
}

/// The nodes that a member called `name` must meet by these facts alone; `None` where a pattern
/// does not compile.
pub(super) fn nodes_for(arena: &Arena, facts: &Facts, name: &str) -> Option<Vec<NodeId>> {
    let mut nodes: Vec<NodeId> = facts.properties.get(name).copied().into_iter().collect();
    for member in &facts.patterned {
        if arena.is_match(&member.pattern, name)? {
            nodes.push(member.node);
        }
    }
    if nodes.is_empty() && !facts.properties.contains_key(name) {
        nodes.extend(facts.additional);
    }
    Some(nodes)
}

/// Whether a member called `name` counts as evaluated, whatever the value: by these facts or by
/// what they include without a condition.
pub(super) fn is_evaluated(arena: &Arena, facts: &Facts, name: &str) -> bool {
    let mut pending = vec![facts];
    let mut steps = 0;
    while let Some(facts) = pending.pop() {
        steps += 1;
        let by_pattern = |member: &super::arena::Patterned| {
            arena.is_match(&Rc::clone(&member.pattern), name) == Some(true)
        };
        if facts.additional.is_some()
            || facts.properties.contains_key(name)
            || facts.patterned.iter().any(by_pattern)
            || (steps > 1 && facts.unevaluated_properties.is_some())
        {
            return true;
        }
        if steps < DEPTH_MAX {
            pending.extend(facts.all_of.iter().filter_map(|id| arena.facts(*id)));
        }
    }
    false
}
