//! The parts of data that a schema marks `x-sensitive: true`, which no answer may show.
//!
//! The walk errs on the side of hiding: every branch of every applicator counts, met or not, and
//! `patternProperties` counts for every name.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value};

use super::{Draft, fan_out, violation::MASK};

const KEYWORD: &str = "x-sensitive";

/// Most pairs of subschema and value looked at; beyond, everything is taken as sensitive.
const STEPS_MAX: usize = 100_000;

/// JSON pointers of sensitive values in one piece of data.
#[derive(Debug)]
pub(super) struct Paths {
    all: bool,
    pointers: FxHashSet<String>,
}

/// Whether `document` marks anything.
pub(super) fn is_marked(document: &Value) -> bool {
    match document {
        Value::Object(members) => {
            members.get(KEYWORD) == Some(&Value::Bool(true)) || members.values().any(is_marked)
        }
        Value::Array(items) => items.iter().any(is_marked),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The sensitive places of `value` under the schema `document`.
pub(super) fn paths(document: &Value, draft: Draft, value: &Value) -> Paths {
    let mut walk = Walk {
        document,
        draft,
        paths: Paths::none(),
        seen: FxHashSet::default(),
        targets: targets(document, draft),
    };
    let mut pending = vec![(document, value, String::new())];
    while let Some((schema, value, pointer)) = pending.pop() {
        if !walk
            .seen
            .insert((std::ptr::from_ref(schema), std::ptr::from_ref(value)))
        {
            continue;
        }
        if walk.seen.len() > STEPS_MAX {
            walk.paths.all = true;
            break;
        }
        if let Value::Object(keywords) = schema {
            walk.step(keywords, value, pointer, &mut pending);
        }
    }
    walk.paths
}

impl Paths {
    /// Nothing is sensitive.
    pub(super) fn none() -> Self {
        Self {
            all: false,
            pointers: FxHashSet::default(),
        }
    }

    /// Whether the value at `pointer`, or one that contains it, is sensitive.
    pub(super) fn covers(&self, pointer: &str) -> bool {
        if self.all {
            return true;
        }
        if self.pointers.is_empty() {
            return false;
        }
        let ends = pointer
            .match_indices('/')
            .map(|(end, _)| end)
            .chain([pointer.len()]);
        ends.into_iter()
            .any(|end| self.pointers.contains(&pointer[..end]))
    }

    /// `value`, found at `pointer`, with its sensitive parts hidden.
    pub(super) fn mask(&self, pointer: &str, value: &Value) -> Value {
        if self.covers(pointer) {
            return MASK.into();
        }
        if self.pointers.is_empty() {
            return value.clone();
        }
        match value {
            Value::Object(members) => members
                .iter()
                .map(|(name, member)| {
                    let inner = format!("{pointer}/{}", fan_out::escape(name));
                    (name.clone(), self.mask(&inner, member))
                })
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| self.mask(&format!("{pointer}/{index}"), item))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }
}

type Pending<'a> = Vec<(&'a Value, &'a Value, String)>;

struct Walk<'a> {
    document: &'a Value,
    draft: Draft,
    paths: Paths,
    seen: FxHashSet<(*const Value, *const Value)>,
    targets: FxHashMap<String, &'a Value>,
}

impl<'a> Walk<'a> {
    fn step(
        &mut self,
        keywords: &'a Map<String, Value>,
        value: &'a Value,
        pointer: String,
        pending: &mut Pending<'a>,
    ) {
        if keywords.get(KEYWORD) == Some(&Value::Bool(true)) {
            self.paths.pointers.insert(pointer.clone());
        }
        for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let reference = keywords.get(name).and_then(Value::as_str);
            if let Some(target) = reference.and_then(|reference| self.target(reference)) {
                pending.push((target, value, pointer.clone()));
            }
        }
        if keywords.contains_key("$ref") && self.draft.ref_silences_siblings() {
            return;
        }
        let same_place = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
        let dependent = ["dependentSchemas", "dependencies"];
        for schema in same_place
            .iter()
            .chain(&dependent)
            .filter_map(|name| keywords.get(*name))
        {
            // A subschema has no subschema-valued members of its own names here that would not be
            // one of these keywords, so all three shapes may be pushed alike.
            let inner = match schema {
                Value::Array(branches) => branches.iter().collect(),
                Value::Object(_) | Value::Bool(_) => vec![schema],
                Value::Null | Value::Number(_) | Value::String(_) => Vec::new(),
            };
            pending.extend(
                inner
                    .into_iter()
                    .map(|schema| (schema, value, pointer.clone())),
            );
        }
        for map in dependent
            .iter()
            .filter_map(|name| keywords.get(*name)?.as_object())
        {
            pending.extend(map.values().map(|schema| (schema, value, pointer.clone())));
        }
        match value {
            Value::Object(members) => step_members(keywords, members, &pointer, pending),
            Value::Array(items) => step_items(keywords, items, &pointer, pending),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The target of a reference: by pointer, by anchor, or by identifier.
    fn target(&self, reference: &str) -> Option<&'a Value> {
        let by_pointer = reference
            .strip_prefix('#')
            .and_then(|fragment| self.document.pointer(&fan_out::percent_decode(fragment)));
        by_pointer.or_else(|| self.targets.get(reference).copied())
    }
}

fn step_members<'a>(
    keywords: &'a Map<String, Value>,
    members: &'a Map<String, Value>,
    pointer: &str,
    pending: &mut Pending<'a>,
) {
    let declared = keywords.get("properties").and_then(Value::as_object);
    let patterns = keywords.get("patternProperties").and_then(Value::as_object);
    let rest = ["additionalProperties", "unevaluatedProperties"];
    for (name, member) in members {
        let inner = format!("{pointer}/{}", fan_out::escape(name));
        let known = declared.and_then(|declared| declared.get(name));
        let others = rest.iter().filter_map(|keyword| keywords.get(*keyword));
        let schemas = known
            .into_iter()
            .chain(patterns.into_iter().flat_map(Map::values))
            .chain(others.filter(|_| known.is_none()));
        pending.extend(schemas.map(|schema| (schema, member, inner.clone())));
    }
}

fn step_items<'a>(
    keywords: &'a Map<String, Value>,
    items: &'a [Value],
    pointer: &str,
    pending: &mut Pending<'a>,
) {
    let lists = ["prefixItems", "items"];
    let singles = ["items", "additionalItems", "unevaluatedItems", "contains"];
    for (index, item) in items.iter().enumerate() {
        let positions = lists
            .iter()
            .filter_map(|name| keywords.get(*name)?.as_array()?.get(index));
        let others = singles
            .iter()
            .filter_map(|name| keywords.get(*name).filter(|s| s.is_object()));
        let inner = format!("{pointer}/{index}");
        pending.extend(
            positions
                .chain(others)
                .map(|schema| (schema, item, inner.clone())),
        );
    }
}

/// Subschemas by the references that name them without a pointer.
fn targets(document: &Value, draft: Draft) -> FxHashMap<String, &Value> {
    let mut targets = FxHashMap::default();
    let mut pending = vec![document];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(members) => {
                for name in ["$anchor", "$dynamicAnchor"] {
                    if let Some(anchor) = members.get(name).and_then(Value::as_str) {
                        targets.insert(format!("#{anchor}"), value);
                    }
                }
                let id = if draft == Draft::Draft4 { "id" } else { "$id" };
                if let Some(id) = members.get(id).and_then(Value::as_str) {
                    targets.insert(id.to_owned(), value);
                }
                pending.extend(members.values());
            }
            Value::Array(items) => pending.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    targets
}
