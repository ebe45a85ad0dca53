//! Nodes that a value meets together, seen as one: the left side of every containment question.

use std::{cmp::Ordering, collections::BTreeSet, rc::Rc};

use rustc_hash::FxHashSet;
use serde_json::{Number, Value};

use super::{
    arena::{Arena, Body, Bound, Facts, NodeId},
    decimal::Decimal,
    evaluate::{evaluate, is_equal, nodes_for},
    types::Types,
};

/// Values that meet every node of `nodes` and none of `not`; `allOf` is unfolded, both are sorted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Conjunction {
    pub(super) nodes: Vec<NodeId>,
    pub(super) not: Vec<NodeId>,
}

impl Conjunction {
    pub(super) fn of(arena: &Arena, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        Self::default().with(arena, nodes, [])
    }

    /// This and more.
    pub(super) fn with(
        &self,
        arena: &Arena,
        nodes: impl IntoIterator<Item = NodeId>,
        not: impl IntoIterator<Item = NodeId>,
    ) -> Self {
        let mut seen: FxHashSet<NodeId> = self.nodes.iter().copied().collect();
        let mut refused: FxHashSet<NodeId> = self.not.iter().copied().chain(not).collect();
        let mut pending: Vec<NodeId> = nodes.into_iter().collect();
        loop {
            while let Some(id) = pending.pop() {
                if matches!(arena.node(id).body, Body::Always) || !seen.insert(id) {
                    continue;
                }
                if let Some(facts) = arena.facts(id) {
                    pending.extend(&facts.all_of);
                    refused.extend(&facts.not);
                }
            }
            // A member that must be there makes what depends on it certain.
            let required: BTreeSet<&Rc<str>> = seen
                .iter()
                .filter_map(|id| arena.facts(*id))
                .filter(|facts| facts.types == Types::OBJECT || is_object(arena, &seen))
                .flat_map(|facts| &facts.required)
                .collect();
            for facts in seen.iter().filter_map(|id| arena.facts(*id)) {
                let due = facts
                    .dependents
                    .iter()
                    .filter(|d| required.contains(&d.trigger));
                pending.extend(due.map(|d| d.then).filter(|id| {
                    !seen.contains(id) && !matches!(arena.node(*id).body, Body::Always)
                }));
            }
            if pending.is_empty() {
                break;
            }
        }
        let sorted = |set: FxHashSet<NodeId>| {
            let mut ids: Vec<NodeId> = set.into_iter().collect();
            ids.sort_unstable();
            ids
        };
        Self {
            nodes: sorted(seen),
            not: sorted(refused),
        }
    }

    pub(super) fn facts<'a>(&'a self, arena: &'a Arena) -> impl Iterator<Item = &'a Facts> {
        self.nodes.iter().filter_map(|id| arena.facts(*id))
    }

    pub(super) fn has_never(&self, arena: &Arena) -> bool {
        self.nodes.iter().any(|id| arena.is_never(*id))
    }

    /// Whether a node of the same structure is among the nodes.
    pub(super) fn includes(&self, arena: &Arena, id: NodeId) -> bool {
        self.nodes.iter().any(|known| arena.is_same(*known, id))
    }

    /// What a member called `name` meets; `None` where a pattern cannot be matched.
    pub(super) fn at_name(&self, arena: &Arena, name: &str) -> Option<Self> {
        let mut nodes = Vec::new();
        for facts in self.facts(arena) {
            nodes.extend(nodes_for(arena, facts, name)?);
        }
        Some(Self::of(arena, nodes))
    }

    /// What the item at `index` meets.
    pub(super) fn at_index(&self, arena: &Arena, index: usize) -> Self {
        let nodes = self
            .facts(arena)
            .filter_map(|facts| facts.prefix.get(index).copied().or(facts.items));
        Self::of(arena, nodes.collect::<Vec<_>>())
    }

    /// What the name of a member meets, besides being a string.
    pub(super) fn names(&self, arena: &Arena) -> Self {
        let names = self.facts(arena).filter_map(|facts| facts.names);
        let nodes: Vec<NodeId> = names.chain(Arena::type_nodes(Types::STRING)).collect();
        Self::of(arena, nodes)
    }

    /// Whether a member may be called `name`, as far as `propertyNames` and `false` say.
    pub(super) fn may_have(&self, arena: &Arena, name: &str) -> bool {
        let names = Value::from(name);
        let named = self.facts(arena).filter_map(|facts| facts.names);
        named
            .into_iter()
            .all(|node| evaluate(arena, node, &names) != Some(false))
            && !self
                .at_name(arena, name)
                .is_some_and(|inner| inner.has_never(arena))
    }

    /// Whether a value may meet all this: no only where it is certain.
    pub(super) fn may_take(&self, arena: &Arena, value: &Value) -> bool {
        self.nodes
            .iter()
            .all(|id| evaluate(arena, *id, value) != Some(false))
            && self
                .not
                .iter()
                .all(|id| evaluate(arena, *id, value) != Some(true))
    }

    /// Whether a value certainly meets all this.
    pub(super) fn takes(&self, arena: &Arena, value: &Value) -> bool {
        self.nodes
            .iter()
            .all(|id| evaluate(arena, *id, value) == Some(true))
            && self
                .not
                .iter()
                .all(|id| evaluate(arena, *id, value) == Some(false))
    }

    /// The assertions of all nodes folded into one.
    pub(super) fn merged(&self, arena: &Arena) -> Merged {
        let mut merged = Merged::default();
        for facts in self.facts(arena) {
            merged.add(facts);
        }
        merged
    }
}

fn is_object(arena: &Arena, nodes: &FxHashSet<NodeId>) -> bool {
    let types = nodes
        .iter()
        .filter_map(|id| arena.facts(*id))
        .map(|facts| facts.types);
    types.fold(Types::ALL, Types::and) == Types::OBJECT
}

/// The assertions of a conjunction that fold into one of each kind.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) types: Types,
    pub(super) values: Option<Vec<Value>>,
    pub(super) min: Option<Bound>,
    pub(super) max: Option<Bound>,
    pub(super) multiples: Vec<Decimal>,
    pub(super) length_min: u64,
    pub(super) length_max: Option<u64>,
    pub(super) patterns: Vec<Rc<str>>,
    pub(super) formats: Vec<Rc<str>>,
    pub(super) items_min: u64,
    pub(super) items_max: Option<u64>,
    pub(super) unique: bool,
    pub(super) required: BTreeSet<Rc<str>>,
    pub(super) members_min: u64,
    pub(super) members_max: Option<u64>,
}

impl Merged {
    fn add(&mut self, facts: &Facts) {
        self.types = self.types.and(facts.types);
        if let Some(values) = &facts.values {
            let kept = match self.values.take() {
                None => values.clone(),
                Some(known) => known
                    .into_iter()
                    .filter(|value| values.iter().any(|other| is_equal(value, other)))
                    .collect(),
            };
            self.values = Some(kept);
        }
        self.min = stronger(self.min, facts.min, Ordering::Greater);
        self.max = stronger(self.max, facts.max, Ordering::Less);
        self.multiples.extend(&facts.multiples);
        self.length_min = self.length_min.max(facts.length_min);
        self.length_max = least(self.length_max, facts.length_max);
        self.patterns.extend(facts.patterns.iter().cloned());
        self.formats.extend(facts.formats.iter().cloned());
        let contains = facts
            .contains
            .iter()
            .map(|contains| contains.min)
            .max()
            .unwrap_or(0);
        self.items_min = self.items_min.max(facts.items_min).max(contains);
        self.items_max = least(self.items_max, facts.items_max);
        self.unique |= facts.unique;
        self.required.extend(facts.required.iter().cloned());
        let required = self.required.len() as u64;
        self.members_min = self.members_min.max(facts.members_min).max(required);
        self.members_max = least(self.members_max, facts.members_max);
    }

    /// The unit all numbers of `types` are multiples of, where there is one.
    pub(super) fn unit(&self, types: Types) -> Option<Decimal> {
        let whole = (!types.meets(Types::FRACTION)).then_some(Decimal::ONE);
        let mut units = whole.into_iter().chain(self.multiples.iter().copied());
        let first = units.next()?;
        units.try_fold(first, Decimal::common_multiple)
    }

    /// The smallest number of `types` on the lattice of [`Merged::unit`] that the bound allows.
    pub(super) fn least(&self, types: Types) -> Option<Decimal> {
        let (unit, bound) = (self.unit(types)?, self.min?);
        let floor = unit.times(bound.value.divided_floor(unit)?)?;
        let is_allowed = floor.compare(bound.value) == Ordering::Equal && !bound.exclusive;
        if is_allowed {
            Some(floor)
        } else {
            floor.add(unit)
        }
    }

    /// The largest such number.
    pub(super) fn greatest(&self, types: Types) -> Option<Decimal> {
        let (unit, bound) = (self.unit(types)?, self.max?);
        let floor = unit.times(bound.value.divided_floor(unit)?)?;
        let is_refused = floor.compare(bound.value) == Ordering::Equal && bound.exclusive;
        if is_refused {
            floor.add(unit.negated())
        } else {
            Some(floor)
        }
    }

    /// Whether the bounds leave no number of `types`.
    pub(super) fn leaves_no_number(&self, types: Types) -> bool {
        if types == Types::FRACTION && self.unit(types).is_some_and(Decimal::is_integer) {
            return true;
        }
        let (Some(min), Some(max)) = (self.min, self.max) else {
            return false;
        };
        if let (Some(least), Some(greatest)) = (self.least(types), self.greatest(types)) {
            return least.compare(greatest) == Ordering::Greater;
        }
        match min.value.compare(max.value) {
            Ordering::Greater => true,
            Ordering::Equal => min.exclusive || max.exclusive,
            Ordering::Less => false,
        }
    }
}

/// The smaller of two limits.
pub(super) fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The bound that lies further to `side`, or is exclusive at the same place.
fn stronger(one: Option<Bound>, other: Option<Bound>, side: Ordering) -> Option<Bound> {
    let (Some(first), Some(second)) = (one, other) else {
        return one.or(other);
    };
    match second.value.compare(first.value) {
        Ordering::Equal if second.exclusive => other,
        order if order == side => other,
        _ => one,
    }
}

/// Whether `one` implies `other`, both on the given side.
pub(super) fn implies(one: Option<Bound>, other: Bound, side: Ordering) -> bool {
    one.is_some_and(|one| match one.value.compare(other.value) {
        Ordering::Equal => one.exclusive || !other.exclusive,
        order => order == side,
    })
}

/// A value in the spellings that a schema may tell apart: draft 4 takes `1` and not `1.0` for an
/// integer, while `const` and `enum` take either.
pub(super) fn spellings(value: &Value) -> Vec<Value> {
    let respelled = respell(value);
    if respelled == *value {
        vec![value.clone()]
    } else {
        vec![value.clone(), respelled]
    }
}

fn respell(value: &Value) -> Value {
    match value {
        Value::Number(number) => match (number.as_f64(), Decimal::of(number)) {
            (Some(float), Some(decimal)) if number.is_f64() && float.fract() == 0.0 => {
                decimal.to_value().unwrap_or_else(|| value.clone())
            }
            (Some(float), Some(decimal)) if !number.is_f64() => Number::from_f64(float)
                .filter(|float| Decimal::of(float) == Some(decimal))
                .map_or_else(|| value.clone(), Value::Number),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(respell).collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, member)| (name.clone(), respell(member)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}
