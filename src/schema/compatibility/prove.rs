//! Proof that one set of values lies inside another, keyword by keyword.
//!
//! [`Prover::is_within`] answers yes only where it has a proof; what it could not prove it notes as
//! a [`Gap`], which the search then tries to turn into a witness. Recursive schemas are proved by
//! induction on the value: a question that comes up again may be assumed once it is about a part
//! of the value, never about the whole.

mod array;
mod empty;
mod object;
mod scalar;

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    arena::{Arena, Body, Facts, NodeId},
    budget::Budget,
    conjunction::{Conjunction, Merged, spellings},
    evaluate::evaluate,
    types::Types,
};

/// Most gaps kept; a report shows fewer.
const GAPS_MAX: usize = 64;

/// Most parts of a union that are noted as failing.
const FAILING_MAX: usize = 4;

/// Deepest nesting of questions, which bounds the stack.
const DEPTH_MAX: usize = 400;

/// Most values of a finite set that are tried one by one.
const VALUES_MAX: usize = 1024;

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Member(Rc<str>),
    /// A member that no schema declares by name, or one that the pattern names.
    AnyMember(Option<Rc<str>>),
    Item(usize),
    /// Any item from this index on.
    AnyItem(usize),
}

/// What a node demands that could not be shown to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Aspect {
    Type,
    Values,
    Minimum,
    Maximum,
    MultipleOf,
    MinLength,
    MaxLength,
    Pattern,
    Format,
    MinItems,
    MaxItems,
    UniqueItems,
    Contains,
    Required(Rc<str>),
    MinProperties,
    MaxProperties,
    PropertyNames,
    AnyOf,
    OneOf,
    Not,
    Never,
    Opaque(String),
}

/// A demand of `node` that was not proved for the values of `left`, at the end of `route`.
#[derive(Debug, Clone)]
pub(super) struct Gap {
    pub(super) route: Vec<(Conjunction, Step)>,
    pub(super) left: Conjunction,
    pub(super) node: NodeId,
    pub(super) aspect: Aspect,
}

type Question = (Conjunction, NodeId);

/// The state of one proof.
pub(super) struct Prover<'a> {
    arena: &'a Arena,
    budget: &'a Budget,
    proved: FxHashSet<Question>,
    proofs: Vec<Question>,
    failed: FxHashSet<Question>,
    reported: FxHashSet<Question>,
    open: FxHashMap<Question, usize>,
    empties: FxHashMap<Conjunction, bool>,
    types: FxHashMap<Conjunction, Types>,
    /// How often an open question was assumed; an answer found meanwhile is not kept for ever.
    assumptions: u64,
    route: Vec<(Conjunction, Step)>,
    level: usize,
    /// The level at which the left side is not to be parted.
    unparted: Option<usize>,
    depth: usize,
    quiet: usize,
    gaps: Vec<Gap>,
}

impl<'a> Prover<'a> {
    pub(super) fn new(arena: &'a Arena, budget: &'a Budget) -> Self {
        Self {
            arena,
            budget,
            proved: FxHashSet::default(),
            proofs: Vec::new(),
            failed: FxHashSet::default(),
            reported: FxHashSet::default(),
            open: FxHashMap::default(),
            empties: FxHashMap::default(),
            types: FxHashMap::default(),
            assumptions: 0,
            route: Vec::new(),
            level: 0,
            unparted: None,
            depth: 0,
            quiet: 0,
            gaps: Vec::new(),
        }
    }

    /// What is left unproved, in the order of the schema.
    pub(super) fn into_gaps(self) -> Vec<Gap> {
        self.gaps
    }

    /// Whether every value of `left` meets `node`.
    pub(super) fn is_within(&mut self, left: &Conjunction, node: NodeId) -> bool {
        if matches!(self.arena.node(node).body, Body::Always) || left.includes(self.arena, node) {
            return true;
        }
        let question = (left.clone(), node);
        if self.proved.contains(&question) {
            return true;
        }
        if let Some(level) = self.open.get(&question) {
            let is_assumed = *level < self.level;
            self.assumptions += u64::from(is_assumed);
            return is_assumed;
        }
        let settled = if self.quiet > 0 {
            &self.failed
        } else {
            &self.reported
        };
        if settled.contains(&question) {
            return false;
        }
        if !self.budget.spend(1) || self.depth >= DEPTH_MAX {
            self.note(
                left,
                node,
                Aspect::Opaque("the limit of this check".to_owned()),
            );
            return false;
        }
        self.depth += 1;
        self.open.insert(question.clone(), self.level);
        let mark = self.proofs.len();
        let is_proved = self.decide(left, node);
        self.open.remove(&question);
        self.depth -= 1;
        if is_proved {
            self.proofs.push(question.clone());
            self.proved.insert(question);
        } else {
            // What was proved meanwhile may rest on this very question.
            for proof in self.proofs.drain(mark..) {
                self.proved.remove(&proof);
            }
            let settled = if self.quiet > 0 {
                &mut self.failed
            } else {
                &mut self.reported
            };
            settled.insert(question);
        }
        is_proved
    }

    /// As [`Prover::is_within`], without noting gaps.
    fn is_within_quietly(&mut self, left: &Conjunction, node: NodeId) -> bool {
        self.quiet += 1;
        let is_proved = self.is_within(left, node);
        self.quiet -= 1;
        is_proved
    }

    /// As [`Prover::is_within_quietly`], for a branch of a union: the left side is parted by the
    /// question about the whole union, and not again for each branch.
    fn is_within_branch(&mut self, left: &Conjunction, node: NodeId) -> bool {
        let outer = self.unparted.replace(self.level);
        let is_proved = self.is_within_quietly(left, node);
        self.unparted = outer;
        is_proved
    }

    /// The question about a part of the value.
    fn is_part_within(
        &mut self,
        whole: &Conjunction,
        step: Step,
        part: &Conjunction,
        node: NodeId,
    ) -> bool {
        self.route.push((whole.clone(), step));
        self.level += 1;
        let is_proved = self.is_within(part, node);
        self.level -= 1;
        self.route.pop();
        is_proved
    }

    fn note(&mut self, left: &Conjunction, node: NodeId, aspect: Aspect) {
        if self.quiet == 0 && self.gaps.len() < GAPS_MAX {
            let gap = Gap {
                route: self.route.clone(),
                left: left.clone(),
                node,
                aspect,
            };
            self.gaps.push(gap);
        }
    }

    fn decide(&mut self, left: &Conjunction, node: NodeId) -> bool {
        if self.is_empty(left) {
            return true;
        }
        let arena = self.arena;
        let Some(facts) = arena.facts(node) else {
            self.note(left, node, Aspect::Never);
            return false;
        };
        let mark = self.gaps.len();
        let merged = left.merged(arena);
        if let Some(is_proved) = self.decide_by_values(left, &merged, node) {
            return is_proved;
        }
        if self.meets(left, &merged, facts, node) {
            self.gaps.truncate(mark);
            return true;
        }
        match self.failing_parts(left, facts, node) {
            Some(parts) if parts.is_empty() => {
                self.gaps.truncate(mark);
                true
            }
            Some(parts) => {
                self.narrow_gaps(mark, left, node, &parts);
                false
            }
            None => false,
        }
    }

    /// Adds the gaps of a union again for each part that failed: the search does better with one.
    fn narrow_gaps(
        &mut self,
        mark: usize,
        left: &Conjunction,
        node: NodeId,
        parts: &[Conjunction],
    ) {
        let mut own = self.gaps[mark..]
            .iter()
            .filter(|gap| gap.node == node && gap.left == *left);
        let Some(gap) = own.next_back().cloned() else {
            return;
        };
        for part in parts {
            self.note(part, node, gap.aspect.clone());
        }
    }

    /// Settles a finite set value by value; `None` where it is not finite or not certain.
    fn decide_by_values(
        &mut self,
        left: &Conjunction,
        merged: &Merged,
        node: NodeId,
    ) -> Option<bool> {
        let types = self.possible_types(left);
        let finite = [
            (Types::NULL, vec![serde_json::Value::Null]),
            (Types::BOOLEAN, vec![true.into(), false.into()]),
        ];
        let values = match &merged.values {
            Some(values) => values.clone(),
            None if Types::NULL.or(Types::BOOLEAN).contains(types) => finite
                .into_iter()
                .filter(|(single, _)| types.contains(*single))
                .flat_map(|(_, values)| values)
                .collect(),
            None => return None,
        };
        if values.len() > VALUES_MAX || !self.budget.spend(values.len() as u64) {
            return None;
        }
        let mut is_certain = true;
        for value in values.iter().flat_map(spellings) {
            if !left.may_take(self.arena, &value) {
                continue;
            }
            match evaluate(self.arena, node, &value) {
                Some(true) => {}
                Some(false) if left.takes(self.arena, &value) => {
                    self.note(left, node, Aspect::Values);
                    return Some(false);
                }
                Some(false) | None => is_certain = false,
            }
        }
        is_certain.then_some(true)
    }

    /// Whether every demand of `facts` follows from the left side as it is. Goes on after a
    /// failure, so that all gaps are noted.
    fn meets(&mut self, left: &Conjunction, merged: &Merged, facts: &Facts, node: NodeId) -> bool {
        let mut is_met = self.meets_scalars(left, merged, facts, node);
        let types = self.possible_types(left);
        if types.meets(Types::ARRAY) {
            is_met &= self.meets_array(left, merged, facts, node);
        }
        if types.meets(Types::OBJECT) {
            is_met &= self.meets_object(left, merged, facts, node);
        }
        if !is_met && self.quiet > 0 {
            return false;
        }
        for part in &facts.all_of {
            is_met &= self.is_within(left, *part);
        }
        for branches in &facts.any_of {
            is_met &= self.meets_any(left, branches, node);
        }
        for branches in &facts.one_of {
            is_met &= self.meets_one(left, branches, node);
        }
        for refused in &facts.not {
            if !self.is_disjoint(left, *refused) {
                self.note(left, node, Aspect::Not);
                is_met = false;
            }
        }
        for condition in &facts.conditions {
            if let Some(then) = condition.then {
                let with = left.with(self.arena, [condition.test], []);
                is_met &= self.is_within(&with, then);
            }
            if let Some(otherwise) = condition.otherwise {
                let without = left.with(self.arena, [], [condition.test]);
                is_met &= self.is_within(&without, otherwise);
            }
        }
        for keyword in &facts.opaque {
            let is_shared = left
                .facts(self.arena)
                .any(|other| other.opaque.contains(keyword));
            if !is_shared || keyword.starts_with('$') {
                self.note(left, node, Aspect::Opaque(keyword.clone()));
                is_met = false;
            }
        }
        is_met
    }

    fn meets_any(&mut self, left: &Conjunction, branches: &[NodeId], node: NodeId) -> bool {
        let found = branches
            .iter()
            .any(|branch| self.is_within_branch(left, *branch));
        if !found {
            self.note(left, node, Aspect::AnyOf);
        }
        found
    }

    fn meets_one(&mut self, left: &Conjunction, branches: &[NodeId], node: NodeId) -> bool {
        // A branch that is there as it stands is found without a proof.
        let inside = (0..branches.len())
            .find(|index| left.includes(self.arena, branches[*index]))
            .or_else(|| {
                (0..branches.len()).find(|index| self.is_within_branch(left, branches[*index]))
            });
        let is_met = inside.is_some_and(|inside| {
            (0..branches.len())
                .filter(|index| *index != inside)
                .all(|index| self.is_disjoint(left, branches[index]))
        });
        if !is_met {
            self.note(left, node, Aspect::OneOf);
        }
        is_met
    }

    /// Whether no value of `left` meets `node`.
    fn is_disjoint(&mut self, left: &Conjunction, node: NodeId) -> bool {
        if left
            .not
            .iter()
            .any(|refused| self.arena.is_same(*refused, node))
        {
            return true;
        }
        let both = left.with(self.arena, [node], []);
        self.is_empty(&both)
    }

    /// The first parts of a left side that is a union for which the question is not proved; `None`
    /// where it has no parts.
    fn failing_parts(
        &mut self,
        left: &Conjunction,
        facts: &Facts,
        node: NodeId,
    ) -> Option<Vec<Conjunction>> {
        if self.unparted == Some(self.level) {
            return None;
        }
        let parts = self.parts(left).or_else(|| {
            let is_union = !facts.any_of.is_empty()
                || !facts.one_of.is_empty()
                || !facts.not.is_empty()
                || !facts.conditions.is_empty()
                || facts.values.is_some();
            let types = self.possible_types(left);
            (is_union && types.count() > 1).then(|| {
                Arena::type_nodes(types)
                    .map(|id| left.with(self.arena, [id], []))
                    .collect()
            })
        })?;
        let most = if self.quiet > 0 { 1 } else { FAILING_MAX };
        let mut failing = Vec::new();
        for part in parts {
            if part == *left || !self.is_within_quietly(&part, node) {
                failing.push(part);
            }
            if failing.len() >= most {
                break;
            }
        }
        Some(failing)
    }

    /// The left side by the branches of its first union that is still open.
    fn parts(&self, left: &Conjunction) -> Option<Vec<Conjunction>> {
        let arena = self.arena;
        for facts in left.facts(arena) {
            for branches in &facts.any_of {
                if !branches.iter().any(|branch| left.includes(arena, *branch)) {
                    return Some(
                        branches
                            .iter()
                            .map(|id| left.with(arena, [*id], []))
                            .collect(),
                    );
                }
            }
            for branches in &facts.one_of {
                if !branches.iter().any(|branch| left.includes(arena, *branch)) {
                    let part = |id: &NodeId| {
                        let others = branches.iter().copied().filter(|other| other != id);
                        left.with(arena, [*id], others)
                    };
                    return Some(branches.iter().map(part).collect());
                }
            }
            for condition in &facts.conditions {
                let is_open =
                    !left.includes(arena, condition.test) && !left.not.contains(&condition.test);
                if is_open {
                    let with = [Some(condition.test), condition.then];
                    let with = left.with(arena, with.into_iter().flatten(), []);
                    let without = left.with(arena, condition.otherwise, [condition.test]);
                    return Some(vec![with, without]);
                }
            }
        }
        None
    }
}
