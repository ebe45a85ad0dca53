//! Search for values that meet some nodes and miss others: the witnesses of incompatibility.
//!
//! The search builds values at the edges of both schemas: bounds and one beyond, each member
//! alone made wrong, each branch taken. What it finds is only a candidate; the validators decide.

mod array;
mod number;
mod object;
mod pattern;
mod string;

pub(super) use pattern::matches_everything;

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::{
    arena::{Arena, Body, Facts, NodeId},
    budget::Budget,
    conjunction::{Conjunction, Merged, spellings},
    prove::Step,
    types::Types,
};

/// Most ways to resolve the unions of one conjunction.
const WAYS_MAX: usize = 48;

/// Most nodes to miss that values are built after; the rest is only checked.
const LEAVES_MAX: usize = 8;

/// Deepest nesting of values built.
const DEPTH_MAX: usize = 24;

/// Most candidates looked at for one way.
const CANDIDATES_MAX: usize = 400;

/// Values kept for each question.
const FOUND_MAX: usize = 4;

/// The state of one search.
pub(super) struct Search<'a> {
    arena: &'a Arena,
    budget: &'a Budget,
    /// Literals of both schemas: constants, defaults, examples.
    pool: &'a [Value],
    known: FxHashMap<Conjunction, Vec<Value>>,
    open: FxHashSet<Conjunction>,
    depth: usize,
}

/// A conjunction without unions: facts to meet and facts to miss by their own assertions.
struct Way {
    meet: Conjunction,
    miss: Vec<NodeId>,
}

impl Way {
    /// What is to be missed by its own assertions: the last few, which are what was asked for.
    fn refused<'a>(&self, arena: &'a Arena) -> Vec<&'a Facts> {
        let facts = self.miss.iter().rev().filter_map(|id| arena.facts(*id));
        facts.take(LEAVES_MAX).collect()
    }
}

/// A conjunction on its way to become a [`Way`].
#[derive(Clone)]
struct Open {
    meet: Conjunction,
    miss: Vec<NodeId>,
    leaves: Vec<NodeId>,
    /// Conditions whose outcome is chosen.
    settled: Vec<NodeId>,
}

impl Open {
    fn new(meet: Conjunction, miss: Vec<NodeId>) -> Self {
        Self {
            meet,
            miss,
            leaves: Vec::new(),
            settled: Vec::new(),
        }
    }

    fn with(&self, meet: Conjunction, settled: Option<NodeId>) -> Self {
        let mut open = Self {
            meet,
            ..self.clone()
        };
        open.settled.extend(settled);
        open
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(arena: &'a Arena, budget: &'a Budget, pool: &'a [Value]) -> Self {
        Self {
            arena,
            budget,
            pool,
            known: FxHashMap::default(),
            open: FxHashSet::default(),
            depth: 0,
        }
    }

    /// Values that meet `wanted`, certain ones first; few, and none where none was found.
    pub(super) fn find(&mut self, wanted: &Conjunction) -> Vec<Value> {
        if let Some(known) = self.known.get(wanted) {
            return known.clone();
        }
        let is_vain = wanted.has_never(self.arena)
            || wanted.not.iter().any(|id| wanted.includes(self.arena, *id));
        if is_vain || self.depth >= DEPTH_MAX || !self.open.insert(wanted.clone()) {
            return Vec::new();
        }
        self.depth += 1;
        let mut found = Vec::new();
        for way in self.ways(wanted) {
            if certain(&found) >= FOUND_MAX || !self.budget.spend(1) {
                break;
            }
            for value in self.candidates(&way) {
                self.keep(wanted, value, &mut found);
                if certain(&found) >= FOUND_MAX || !self.budget.spend(1) {
                    break;
                }
            }
        }
        self.depth -= 1;
        self.open.remove(wanted);
        found.sort_by_key(|(is_certain, _)| !is_certain);
        let found: Vec<Value> = found
            .into_iter()
            .map(|(_, value)| value)
            .take(FOUND_MAX)
            .collect();
        // A search cut short inside another may do better on its own.
        if !found.is_empty() || self.depth == 0 {
            self.known.insert(wanted.clone(), found.clone());
        }
        found
    }

    /// The whole values in which the part at the end of `route` is `part`.
    pub(super) fn wrap(&mut self, route: &[(Conjunction, Step)], part: &Value) -> Vec<Value> {
        let mut parts = vec![part.clone()];
        for (whole, step) in route.iter().rev() {
            let mut wholes = Vec::new();
            for part in &parts {
                for way in self.ways(whole) {
                    let candidates = match step {
                        Step::Member(_) | Step::AnyMember(_) => {
                            self.objects_with(&way, whole, step, part)
                        }
                        Step::Item(index) | Step::AnyItem(index) => {
                            self.arrays_with(&way, *index, part)
                        }
                    };
                    let fitting = candidates
                        .into_iter()
                        .filter(|value| whole.may_take(self.arena, value));
                    wholes.extend(fitting.take(2));
                    if wholes.len() >= FOUND_MAX || self.budget.is_spent() {
                        break;
                    }
                }
            }
            parts = wholes;
            parts.truncate(FOUND_MAX);
        }
        parts
    }

    fn keep(&self, wanted: &Conjunction, value: Value, found: &mut Vec<(bool, Value)>) {
        for value in spellings(&value) {
            if found.len() >= FOUND_MAX * 4 || !wanted.may_take(self.arena, &value) {
                continue;
            }
            if found.iter().any(|(_, known)| *known == value) {
                continue;
            }
            found.push((wanted.takes(self.arena, &value), value));
        }
    }

    /// The ways to resolve every union of `wanted`, the plainest first.
    fn ways(&self, wanted: &Conjunction) -> Vec<Way> {
        let mut ways = Vec::new();
        let start = Conjunction {
            nodes: wanted.nodes.clone(),
            not: Vec::new(),
        };
        let mut pending = VecDeque::from([Open::new(start, wanted.not.clone())]);
        let mut steps = 0;
        // Breadth first, so that one deep union does not starve the others.
        while let Some(mut open) = pending.pop_front() {
            steps += 1;
            if ways.len() >= WAYS_MAX || steps > WAYS_MAX * 8 || !self.budget.spend(1) {
                break;
            }
            // What the nodes refuse by `not` is to be missed like the rest.
            let Open {
                meet, miss, leaves, ..
            } = &mut open;
            miss.extend(meet.not.drain(..).filter(|id| !leaves.contains(id)));
            if meet.has_never(self.arena) {
                continue;
            }
            // Nodes without unions can only be missed by their own assertions.
            let (plain, unions): (Vec<NodeId>, Vec<NodeId>) =
                open.miss.drain(..).partition(|id| self.is_plain(*id));
            open.leaves.extend(plain);
            open.miss = unions;
            if let Some(id) = open.miss.pop() {
                pending.extend(self.misses(&open, id));
                continue;
            }
            match self.branches(&open) {
                Some(parts) => pending.extend(parts),
                None => ways.push(Way {
                    meet: open.meet,
                    miss: open.leaves,
                }),
            }
        }
        ways
    }

    /// `open` by the branches of its first union that is not settled; the refused branches of a
    /// `oneOf` are left to the check at the end.
    fn branches(&self, open: &Open) -> Option<Vec<Open>> {
        let arena = self.arena;
        let meet = &open.meet;
        for facts in meet.facts(arena) {
            for branches in facts.any_of.iter().chain(&facts.one_of) {
                if !branches.iter().any(|id| self.is_taken(meet, *id)) {
                    let part = |id: &NodeId| open.with(meet.with(arena, [*id], []), None);
                    return Some(branches.iter().map(part).collect());
                }
            }
            for condition in &facts.conditions {
                let test = condition.test;
                if !self.is_taken(meet, test) && !open.settled.contains(&test) {
                    let with = [Some(test), condition.then].into_iter().flatten();
                    let with = open.with(meet.with(arena, with, []), Some(test));
                    let without = meet.with(arena, condition.otherwise, [test]);
                    return Some(vec![with, open.with(without, Some(test))]);
                }
            }
        }
        None
    }

    fn is_plain(&self, id: NodeId) -> bool {
        self.arena.facts(id).is_some_and(|facts| {
            facts.all_of.is_empty()
                && facts.any_of.is_empty()
                && facts.one_of.is_empty()
                && facts.not.is_empty()
                && facts.conditions.is_empty()
        })
    }

    fn is_taken(&self, meet: &Conjunction, id: NodeId) -> bool {
        matches!(self.arena.node(id).body, Body::Always) || meet.nodes.contains(&id)
    }

    /// The ways to miss node `id`: more to meet, more to miss, or the node's own assertions.
    fn misses(&self, open: &Open, id: NodeId) -> Vec<Open> {
        let arena = self.arena;
        let facts = match &arena.node(id).body {
            Body::Always => return Vec::new(),
            Body::Never => return vec![open.clone()],
            Body::Facts(facts) => facts,
        };
        let missing = |more: &[NodeId]| {
            let mut open = open.clone();
            open.miss.extend(more);
            open
        };
        let meeting =
            |more: &[NodeId]| open.with(open.meet.with(arena, more.iter().copied(), []), None);
        let mut ways = vec![Open {
            leaves: [&open.leaves[..], &[id]].concat(),
            ..open.clone()
        }];
        ways.extend(facts.all_of.iter().map(|part| missing(&[*part])));
        ways.extend(facts.any_of.iter().map(|branches| missing(branches)));
        for branches in &facts.one_of {
            ways.push(missing(branches));
            for (index, one) in branches.iter().enumerate().take(WAYS_MAX / 4) {
                let others = branches.iter().skip(index + 1).take(WAYS_MAX / 4);
                ways.extend(others.map(|other| meeting(&[*one, *other])));
            }
        }
        ways.extend(facts.not.iter().map(|id| meeting(&[*id])));
        for condition in &facts.conditions {
            if let Some(then) = condition.then {
                let mut way = meeting(&[condition.test]);
                way.miss.push(then);
                ways.push(way);
            }
            if let Some(otherwise) = condition.otherwise {
                ways.push(missing(&[condition.test, otherwise]));
            }
        }
        ways
    }

    /// Values for one way, of every type that may do.
    fn candidates(&mut self, way: &Way) -> Vec<Value> {
        let merged = way.meet.merged(self.arena);
        if let Some(values) = &merged.values {
            return values.clone();
        }
        let refused: Vec<&Facts> = way
            .miss
            .iter()
            .filter_map(|id| self.arena.facts(*id))
            .collect();
        // A type that the refused nodes do not know is the shortest way to miss them.
        let mut types: Vec<Types> = Types::SINGLE
            .into_iter()
            .filter(|single| merged.types.contains(*single))
            .collect();
        types.sort_by_key(|single| refused.iter().any(|facts| facts.types.contains(*single)));
        let mut values = Vec::new();
        for single in types {
            match single {
                Types::NULL => values.push(Value::Null),
                Types::BOOLEAN => values.extend([true.into(), false.into()]),
                Types::STRING => values.extend(self.strings(&merged, &refused)),
                Types::ARRAY => values.extend(self.arrays(way, &merged)),
                Types::OBJECT => values.extend(self.objects(way, &merged)),
                number => values.extend(number::numbers(number, &merged, &refused)),
            }
            if values.len() >= CANDIDATES_MAX {
                break;
            }
        }
        values.extend(
            self.pool
                .iter()
                .filter(|value| merged.types.contains(Types::of(value)))
                .cloned(),
        );
        values.truncate(CANDIDATES_MAX);
        values
    }

    /// One value that meets `wanted`, if one was found.
    fn first(&mut self, wanted: &Conjunction) -> Option<Value> {
        if wanted.nodes.is_empty() && wanted.not.is_empty() {
            return Some(Value::Null);
        }
        self.find(wanted).into_iter().next()
    }
}

fn certain(found: &[(bool, Value)]) -> usize {
    found.iter().filter(|(is_certain, _)| *is_certain).count()
}

/// The most extreme counts worth trying: kept small, since a value of that size is built.
const COUNT_MAX: u64 = 300;

/// A count as a length that is worth building.
fn length(count: u64) -> Option<usize> {
    usize::try_from(count).ok().filter(|_| count <= COUNT_MAX)
}

/// The lengths at the edges of what is met and what is missed.
fn lengths(merged: (u64, Option<u64>), refused: &[(u64, Option<u64>)]) -> Vec<usize> {
    let (min, max) = merged;
    let mut counts = vec![min, min.saturating_add(1)];
    for (refused_min, refused_max) in refused {
        counts.extend(refused_min.checked_sub(1));
        counts.extend(refused_max.and_then(|max| max.checked_add(1)));
    }
    counts.extend(max);
    counts.retain(|count| *count >= min && max.is_none_or(|max| *count <= max));
    let mut lengths: Vec<usize> = counts.into_iter().filter_map(length).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

impl Merged {
    fn allows_length(&self, text: &str) -> bool {
        let length = text.chars().count() as u64;
        length >= self.length_min && self.length_max.is_none_or(|max| length <= max)
    }
}
