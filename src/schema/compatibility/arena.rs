//! Both schemas as one graph in one vocabulary: the drafts' spellings are folded away on reading.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    rc::Rc,
    time::Duration,
};

use jsonschema::Validator;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use super::{budget::Budget, decimal::Decimal, types::Types};
use crate::schema::{Draft, Options, content_hash, validation_options};

/// Which of the two schemas a node is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Old,
    New,
}

/// A node's place in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(pub(super) u32);

/// A subschema.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) side: Side,
    /// JSON pointer in its document.
    pub(super) pointer: String,
    pub(super) body: Body,
}

/// What a subschema says.
#[derive(Debug)]
pub(super) enum Body {
    Always,
    Never,
    Facts(Box<Facts>),
}

/// A lower or upper bound on numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Bound {
    pub(super) value: Decimal,
    pub(super) exclusive: bool,
}

/// A count of items that must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Contains {
    pub(super) node: NodeId,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

/// `if`, `then`, `else`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Condition {
    pub(super) test: NodeId,
    pub(super) then: Option<NodeId>,
    pub(super) otherwise: Option<NodeId>,
}

/// A schema that applies to objects with a certain member.
#[derive(Debug, Clone)]
pub(super) struct Dependent {
    pub(super) trigger: Rc<str>,
    /// A node that says: an object with this member.
    pub(super) present: NodeId,
    pub(super) then: NodeId,
}

/// A pattern with the schema of the members it names.
#[derive(Debug, Clone)]
pub(super) struct Patterned {
    pub(super) pattern: Rc<str>,
    pub(super) node: NodeId,
    /// A node that says: a string that the pattern matches.
    pub(super) name: NodeId,
}

/// The assertions of one subschema; every field's default asserts nothing.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) types: Types,
    pub(super) values: Option<Vec<Value>>,
    pub(super) min: Option<Bound>,
    pub(super) max: Option<Bound>,
    pub(super) multiples: Vec<Decimal>,
    pub(super) length_min: u64,
    pub(super) length_max: Option<u64>,
    pub(super) patterns: Vec<Rc<str>>,
    pub(super) formats: Vec<Rc<str>>,
    pub(super) prefix: Vec<NodeId>,
    pub(super) items: Option<NodeId>,
    pub(super) contains: Vec<Contains>,
    pub(super) items_min: u64,
    pub(super) items_max: Option<u64>,
    pub(super) unique: bool,
    pub(super) properties: BTreeMap<Rc<str>, NodeId>,
    pub(super) patterned: Vec<Patterned>,
    pub(super) additional: Option<NodeId>,
    pub(super) names: Option<NodeId>,
    pub(super) required: BTreeSet<Rc<str>>,
    pub(super) members_min: u64,
    pub(super) members_max: Option<u64>,
    pub(super) dependents: Vec<Dependent>,
    pub(super) all_of: Vec<NodeId>,
    pub(super) any_of: Vec<Vec<NodeId>>,
    pub(super) one_of: Vec<Vec<NodeId>>,
    pub(super) not: Vec<NodeId>,
    pub(super) conditions: Vec<Condition>,
    pub(super) unevaluated_properties: Option<NodeId>,
    pub(super) unevaluated_items: Option<NodeId>,
    /// Keywords whose meaning this engine does not know, as `keyword: value`.
    pub(super) opaque: Vec<String>,
}

/// Most evaluations of a node in one check.
const EVALUATIONS_MAX: u64 = 5_000_000;

/// Nodes classified for one step of the budget.
const NODES_A_STEP: u64 = 64;

/// A check of strings: whether it is a format, and its name; a pattern otherwise.
type Check = (bool, Rc<str>);

/// Every subschema of both documents.
pub(super) struct Arena {
    /// The limit of all evaluations together.
    pub(super) fuel: Budget,
    nodes: Vec<Node>,
    classes: Vec<u64>,
    matchers: RefCell<FxHashMap<Check, Option<Rc<Validator>>>>,
}

impl Arena {
    pub(super) fn new(time: Duration) -> Self {
        let mut arena = Self {
            fuel: Budget::new(EVALUATIONS_MAX, time),
            nodes: Vec::new(),
            classes: Vec::new(),
            matchers: RefCell::default(),
        };
        for types in Types::SINGLE {
            let facts = Facts {
                types,
                ..Facts::default()
            };
            arena.push(Side::Old, String::new(), Body::Facts(Box::new(facts)));
        }
        arena
    }

    pub(super) fn push(&mut self, side: Side, pointer: String, body: Body) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).expect("a schema is under 4 GiB"));
        self.nodes.push(Node {
            side,
            pointer,
            body,
        });
        id
    }

    pub(super) fn replace(&mut self, id: NodeId, body: Body) {
        self.nodes[id.0 as usize].body = body;
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The facts of a node that is neither always nor never met.
    pub(super) fn facts(&self, id: NodeId) -> Option<&Facts> {
        match &self.node(id).body {
            Body::Facts(facts) => Some(facts),
            Body::Always | Body::Never => None,
        }
    }

    pub(super) fn is_never(&self, id: NodeId) -> bool {
        matches!(self.node(id).body, Body::Never)
    }

    /// The nodes that say "of this type", one for each type in `types`.
    pub(super) fn type_nodes(types: Types) -> impl Iterator<Item = NodeId> {
        (0_u32..)
            .zip(Types::SINGLE)
            .filter(move |(_, single)| types.contains(*single))
            .map(|(index, _)| NodeId(index))
    }

    /// Whether two subschemas say the same, part for part.
    pub(super) fn is_same(&self, one: NodeId, other: NodeId) -> bool {
        one == other || self.class(one) == self.class(other)
    }

    /// A number that nodes of equal meaning, part for part, share.
    pub(super) fn class(&self, id: NodeId) -> u64 {
        self.classes[id.0 as usize]
    }

    /// Splits the nodes into classes of equal structure: first by what each says itself, then by
    /// the classes of its parts, until no class splits. Recursive schemas need no special case.
    ///
    /// Out of budget, every node is a class of its own: coarser classes would call nodes equal that
    /// are not.
    pub(super) fn classify(&mut self, budget: &Budget) {
        let own: Vec<u64> = self.nodes.iter().map(own_hash).collect();
        self.classes.clone_from(&own);
        let mut distinct = 0;
        loop {
            if !budget.spend(1 + self.nodes.len() as u64 / NODES_A_STEP) {
                self.classes = (0..self.nodes.len() as u64).collect();
                break;
            }
            let next: Vec<u64> = self
                .nodes
                .iter()
                .zip(&own)
                .map(|(node, own)| self.hash_with_parts(node, *own))
                .collect();
            let found = next.iter().collect::<FxHashSet<_>>().len();
            self.classes = next;
            if found <= distinct {
                break;
            }
            distinct = found;
        }
    }

    fn hash_with_parts(&self, node: &Node, own: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        own.hash(&mut hasher);
        let Body::Facts(facts) = &node.body else {
            return hasher.finish();
        };
        let class = |id: NodeId| self.class(id);
        let set = |ids: &[NodeId], hasher: &mut DefaultHasher| {
            let mut classes: Vec<u64> = ids.iter().map(|id| class(*id)).collect();
            classes.sort_unstable();
            classes.hash(hasher);
        };
        facts
            .prefix
            .iter()
            .for_each(|id| class(*id).hash(&mut hasher));
        facts
            .contains
            .iter()
            .for_each(|contains| class(contains.node).hash(&mut hasher));
        facts
            .properties
            .values()
            .for_each(|id| class(*id).hash(&mut hasher));
        facts
            .patterned
            .iter()
            .for_each(|member| class(member.node).hash(&mut hasher));
        facts
            .dependents
            .iter()
            .for_each(|dependent| class(dependent.then).hash(&mut hasher));
        for single in [
            facts.items,
            facts.additional,
            facts.names,
            facts.unevaluated_items,
            facts.unevaluated_properties,
        ] {
            single.map(class).hash(&mut hasher);
        }
        set(&facts.all_of, &mut hasher);
        set(&facts.not, &mut hasher);
        facts
            .any_of
            .iter()
            .for_each(|branches| set(branches, &mut hasher));
        facts
            .one_of
            .iter()
            .for_each(|branches| set(branches, &mut hasher));
        for condition in &facts.conditions {
            class(condition.test).hash(&mut hasher);
            condition.then.map(class).hash(&mut hasher);
            condition.otherwise.map(class).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Whether `pattern` matches somewhere in `text`; `None` where the pattern does not compile.
    pub(super) fn is_match(&self, pattern: &Rc<str>, text: &str) -> Option<bool> {
        self.string_check(false, pattern, text)
    }

    /// Whether `text` is of `format`, asserted; `None` where the format is unknown.
    pub(super) fn is_format(&self, format: &Rc<str>, text: &str) -> Option<bool> {
        self.string_check(true, format, text)
    }

    fn string_check(&self, is_format: bool, name: &Rc<str>, text: &str) -> Option<bool> {
        let mut matchers = self.matchers.borrow_mut();
        let matcher = matchers
            .entry((is_format, Rc::clone(name)))
            .or_insert_with(|| {
                let keyword = if is_format { "format" } else { "pattern" };
                let options = Options {
                    assert_formats: true,
                    ..Options::default()
                };
                let schema = json!({ keyword: name.as_ref() });
                validation_options(Draft::Draft202012, &options)
                    .build(&schema)
                    .ok()
                    .map(Rc::new)
            });
        matcher
            .as_ref()
            .map(|matcher| matcher.is_valid(&Value::from(text)))
    }
}

/// A hash of what a node says itself, without its parts.
fn own_hash(node: &Node) -> u64 {
    let mut hasher = DefaultHasher::new();
    let facts = match &node.body {
        Body::Always => return 1,
        Body::Never => return 2,
        Body::Facts(facts) => facts,
    };
    facts.types.hash(&mut hasher);
    if let Some(values) = &facts.values {
        let mut texts: Vec<String> = values.iter().map(text_of).collect();
        texts.sort_unstable();
        texts.hash(&mut hasher);
    }
    (facts.min, facts.max, &facts.multiples).hash(&mut hasher);
    (
        facts.length_min,
        facts.length_max,
        &facts.patterns,
        &facts.formats,
    )
        .hash(&mut hasher);
    (
        facts.prefix.len(),
        facts.items_min,
        facts.items_max,
        facts.unique,
    )
        .hash(&mut hasher);
    for contains in &facts.contains {
        (contains.min, contains.max).hash(&mut hasher);
    }
    facts
        .properties
        .keys()
        .for_each(|name| name.hash(&mut hasher));
    facts
        .patterned
        .iter()
        .for_each(|member| member.pattern.hash(&mut hasher));
    (&facts.required, facts.members_min, facts.members_max).hash(&mut hasher);
    facts
        .dependents
        .iter()
        .for_each(|dependent| dependent.trigger.hash(&mut hasher));
    let members = (
        facts.properties.len(),
        facts.patterned.len(),
        facts.dependents.len(),
    );
    (members, facts.contains.len()).hash(&mut hasher);
    let unions = (
        facts.any_of.len(),
        facts.one_of.len(),
        facts.conditions.len(),
    );
    (unions, facts.all_of.len(), facts.not.len(), &facts.opaque).hash(&mut hasher);
    if !facts.opaque.is_empty() {
        // What an unknown keyword refers to depends on the document.
        node.side.hash(&mut hasher);
    }
    hasher.finish()
}

/// A value's text by which equal values are equal, but for numbers written differently.
fn text_of(value: &Value) -> String {
    let mut text = String::new();
    content_hash::write_sorted(value, &mut text);
    text
}
