//! Reading a document into the arena, each draft by its own rules.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::{
    arena::{Arena, Body, Bound, Condition, Contains, Dependent, Facts, NodeId, Patterned, Side},
    decimal::Decimal,
    resolve::Resources,
    types::Types,
};
use crate::schema::{Draft, fan_out::escape};

/// Most `$ref` that may follow one another without another keyword between.
const REFERENCE_HOPS_MAX: usize = 64;

/// Reads `document` and gives its root.
pub(super) fn read(
    arena: &mut Arena,
    document: &Value,
    side: Side,
    draft: Draft,
    assert_formats: bool,
) -> NodeId {
    let mut reader = Reader {
        arena,
        resources: Resources::of(document, draft),
        side,
        draft,
        assert_formats,
        known: FxHashMap::default(),
        pending: Vec::new(),
    };
    let root = reader.node(document, String::new());
    while let Some((id, value, pointer)) = reader.pending.pop() {
        let body = reader.body(value, &pointer);
        reader.arena.replace(id, body);
    }
    root
}

struct Reader<'a, 'd> {
    arena: &'a mut Arena,
    resources: Resources<'d>,
    side: Side,
    draft: Draft,
    assert_formats: bool,
    known: FxHashMap<*const Value, NodeId>,
    pending: Vec<(NodeId, &'d Value, String)>,
}

impl<'d> Reader<'_, 'd> {
    /// The node of the subschema `value`; one that is nothing but a reference is its target.
    fn node(&mut self, value: &'d Value, pointer: String) -> NodeId {
        let (mut value, mut pointer) = (value, pointer);
        for _ in 0..REFERENCE_HOPS_MAX {
            match self.bare_reference(value) {
                Some((target, place)) => (value, pointer) = (target, place),
                None => break,
            }
        }
        if let Some(known) = self.known.get(&std::ptr::from_ref(value)) {
            return *known;
        }
        let id = self.arena.push(self.side, pointer.clone(), Body::Always);
        self.known.insert(value, id);
        self.pending.push((id, value, pointer));
        id
    }

    fn bare_reference(&self, value: &'d Value) -> Option<(&'d Value, String)> {
        const ANNOTATIONS: [&str; 12] = [
            "title",
            "description",
            "default",
            "examples",
            "$comment",
            "deprecated",
            "readOnly",
            "writeOnly",
            "$defs",
            "definitions",
            "$schema",
            "x-sensitive",
        ];
        let members = value.as_object()?;
        let reference = members.get("$ref")?.as_str()?;
        let is_bare = self.draft.ref_silences_siblings()
            || members
                .keys()
                .all(|name| name == "$ref" || ANNOTATIONS.contains(&name.as_str()));
        if is_bare {
            self.resources.resolve(value, reference)
        } else {
            None
        }
    }

    fn body(&mut self, value: &'d Value, pointer: &str) -> Body {
        let members = match value {
            Value::Bool(true) => return Body::Always,
            Value::Bool(false) => return Body::Never,
            Value::Object(members) => members,
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                let facts = Facts {
                    opaque: vec![value.to_string()],
                    ..Facts::default()
                };
                return Body::Facts(Box::new(facts));
            }
        };
        let mut facts = Facts::default();
        self.references(&mut facts, value, members);
        if !(self.draft.ref_silences_siblings() && members.contains_key("$ref")) {
            self.scalars(&mut facts, members);
            self.arrays(&mut facts, members, pointer);
            self.objects(&mut facts, members, pointer);
            self.applicators(&mut facts, members, pointer);
            self.unevaluated(&mut facts, members, pointer);
        }
        if is_trivial(&facts) {
            return Body::Always;
        }
        Body::Facts(Box::new(facts))
    }

    fn references(&mut self, facts: &mut Facts, value: &'d Value, members: &'d Map<String, Value>) {
        for keyword in ["$ref", "$recursiveRef", "$dynamicRef"] {
            let known = match keyword {
                "$recursiveRef" => self.draft == Draft::Draft201909,
                "$dynamicRef" => self.draft == Draft::Draft202012,
                _ => true,
            };
            let Some(reference) = members.get(keyword).and_then(Value::as_str) else {
                continue;
            };
            if !known {
                continue;
            }
            // A dynamic scope of one resource leaves a dynamic reference no choice.
            let is_static = keyword == "$ref" || self.resources.is_single();
            match self
                .resources
                .resolve(value, reference)
                .filter(|_| is_static)
            {
                Some((target, place)) => {
                    let target = self.node(target, place);
                    facts.all_of.push(target);
                }
                None => facts.opaque.push(format!("{keyword}: {reference}")),
            }
        }
    }

    fn scalars(&mut self, facts: &mut Facts, members: &Map<String, Value>) {
        if let Some(types) = members.get("type") {
            facts.types = self.types(types);
        }
        if let Some(values) = members.get("enum").and_then(Value::as_array) {
            facts.values = Some(values.clone());
        }
        if let Some(value) = members.get("const").filter(|_| self.draft >= Draft::Draft6) {
            let both = facts.values.as_ref().is_none_or(|values| {
                values
                    .iter()
                    .any(|other| super::evaluate::is_equal(value, other))
            });
            facts.values = Some(if both {
                vec![value.clone()]
            } else {
                Vec::new()
            });
        }
        facts.min = self.bound(
            members,
            "minimum",
            "exclusiveMinimum",
            std::cmp::Ordering::Greater,
        );
        facts.max = self.bound(
            members,
            "maximum",
            "exclusiveMaximum",
            std::cmp::Ordering::Less,
        );
        facts.multiples = decimal(members, "multipleOf").into_iter().collect();
        facts.length_min = count(members, "minLength").unwrap_or(0);
        facts.length_max = count(members, "maxLength");
        let texts = |name: &str| members.get(name).and_then(Value::as_str).map(Rc::from);
        facts.patterns = texts("pattern").into_iter().collect();
        if self.assert_formats {
            facts.formats = texts("format").into_iter().collect();
        }
    }

    fn types(&self, value: &Value) -> Types {
        let single = |name: &str| match name {
            "null" => Types::NULL,
            "boolean" => Types::BOOLEAN,
            "integer" if self.draft == Draft::Draft4 => Types::INTEGER,
            "integer" => Types::INTEGER.or(Types::WHOLE),
            "number" => Types::NUMBER,
            "string" => Types::STRING,
            "array" => Types::ARRAY,
            "object" => Types::OBJECT,
            _ => Types::NONE,
        };
        match value {
            Value::String(name) => single(name),
            Value::Array(names) => names
                .iter()
                .filter_map(Value::as_str)
                .fold(Types::NONE, |types, name| types.or(single(name))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Types::ALL,
        }
    }

    /// The stronger of an inclusive and an exclusive bound; draft 4 has a flag for the latter.
    fn bound(
        &self,
        members: &Map<String, Value>,
        inclusive: &str,
        exclusive: &str,
        stronger: std::cmp::Ordering,
    ) -> Option<Bound> {
        let inclusive = decimal(members, inclusive);
        if self.draft == Draft::Draft4 {
            let exclusive = members.get(exclusive) == Some(&Value::Bool(true));
            return inclusive.map(|value| Bound { value, exclusive });
        }
        let exclusive = decimal(members, exclusive).map(|value| Bound {
            value,
            exclusive: true,
        });
        let inclusive = inclusive.map(|value| Bound {
            value,
            exclusive: false,
        });
        match (inclusive, exclusive) {
            (Some(one), Some(other)) if one.value.compare(other.value) == stronger => Some(one),
            (one, other) => other.or(one),
        }
    }

    fn arrays(&mut self, facts: &mut Facts, members: &'d Map<String, Value>, pointer: &str) {
        let tuple = if self.draft == Draft::Draft202012 {
            "prefixItems"
        } else {
            "items"
        };
        let rest = match members.get(tuple) {
            Some(Value::Array(positions)) => {
                for (index, position) in positions.iter().enumerate() {
                    let node = self.node(position, format!("{pointer}/{tuple}/{index}"));
                    facts.prefix.push(node);
                }
                if self.draft == Draft::Draft202012 {
                    "items"
                } else {
                    "additionalItems"
                }
            }
            _ => "items",
        };
        facts.items = self.single(members, rest, pointer);
        facts.items_min = count(members, "minItems").unwrap_or(0);
        facts.items_max = count(members, "maxItems");
        facts.unique = members.get("uniqueItems") == Some(&Value::Bool(true));
        if self.draft == Draft::Draft4 {
            return;
        }
        if let Some(node) = self.single(members, "contains", pointer) {
            let counted = self.draft >= Draft::Draft201909;
            let min = count(members, "minContains")
                .filter(|_| counted)
                .unwrap_or(1);
            let max = count(members, "maxContains").filter(|_| counted);
            if min > 0 || max.is_some() {
                facts.contains.push(Contains { node, min, max });
            }
        }
    }

    fn objects(&mut self, facts: &mut Facts, members: &'d Map<String, Value>, pointer: &str) {
        for (name, member) in map(members, "properties") {
            let node = self.node(member, format!("{pointer}/properties/{}", escape(name)));
            facts.properties.insert(Rc::from(name.as_str()), node);
        }
        for (name, member) in map(members, "patternProperties") {
            let node = self.node(
                member,
                format!("{pointer}/patternProperties/{}", escape(name)),
            );
            let pattern: Rc<str> = Rc::from(name.as_str());
            let said = Facts {
                types: Types::STRING,
                patterns: vec![Rc::clone(&pattern)],
                ..Facts::default()
            };
            let name = self.synthetic(said, pointer);
            facts.patterned.push(Patterned {
                pattern,
                node,
                name,
            });
        }
        facts.additional = self.single(members, "additionalProperties", pointer);
        if self.draft >= Draft::Draft6 {
            facts.names = self.single(members, "propertyNames", pointer);
        }
        facts.required = names(members.get("required"));
        facts.members_min = count(members, "minProperties").unwrap_or(0);
        facts.members_max = count(members, "maxProperties");
        let mut keywords = vec!["dependencies"];
        if self.draft >= Draft::Draft201909 {
            keywords.extend(["dependentRequired", "dependentSchemas"]);
        }
        for keyword in keywords {
            for (trigger, then) in map(members, keyword) {
                let place = format!("{pointer}/{keyword}/{}", escape(trigger));
                let then = if then.is_array() {
                    let said = Facts {
                        required: names(Some(then)),
                        ..Facts::default()
                    };
                    self.synthetic(said, &place)
                } else {
                    self.node(then, place)
                };
                let trigger: Rc<str> = Rc::from(trigger.as_str());
                let said = Facts {
                    types: Types::OBJECT,
                    required: [Rc::clone(&trigger)].into(),
                    ..Facts::default()
                };
                let present = self.synthetic(said, pointer);
                facts.dependents.push(Dependent {
                    trigger,
                    present,
                    then,
                });
            }
        }
    }

    fn applicators(&mut self, facts: &mut Facts, members: &'d Map<String, Value>, pointer: &str) {
        let all_of = self.list(members, "allOf", pointer);
        facts.all_of.extend(all_of);
        for (keyword, unions) in [("anyOf", &mut facts.any_of), ("oneOf", &mut facts.one_of)] {
            let branches = self.list(members, keyword, pointer);
            match branches.as_slice() {
                [] => {}
                [only] => facts.all_of.push(*only),
                _ => unions.push(branches),
            }
        }
        facts.not = self.single(members, "not", pointer).into_iter().collect();
        if self.draft >= Draft::Draft7
            && let Some(test) = self.single(members, "if", pointer)
        {
            let then = self.single(members, "then", pointer);
            let otherwise = self.single(members, "else", pointer);
            if then.is_some() || otherwise.is_some() {
                facts.conditions.push(Condition {
                    test,
                    then,
                    otherwise,
                });
            }
        }
    }

    /// `unevaluated…` beside no applicator is `additional…`, or nothing where that is there too.
    fn unevaluated(&mut self, facts: &mut Facts, members: &'d Map<String, Value>, pointer: &str) {
        if self.draft < Draft::Draft201909 {
            return;
        }
        let is_plain = facts.all_of.is_empty()
            && facts.any_of.is_empty()
            && facts.one_of.is_empty()
            && facts.conditions.is_empty()
            && facts.not.is_empty()
            && facts.dependents.is_empty()
            && facts.opaque.is_empty()
            && !members.contains_key("if");
        let properties = self.single(members, "unevaluatedProperties", pointer);
        match properties {
            Some(_) if is_plain && facts.additional.is_some() => {}
            Some(_) if is_plain => facts.additional = properties,
            _ => facts.unevaluated_properties = properties,
        }
        let items = self.single(members, "unevaluatedItems", pointer);
        match items {
            Some(_) if is_plain && facts.items.is_some() => {}
            Some(_) if is_plain && facts.contains.is_empty() => facts.items = items,
            _ => facts.unevaluated_items = items,
        }
    }

    fn single(
        &mut self,
        members: &'d Map<String, Value>,
        keyword: &str,
        pointer: &str,
    ) -> Option<NodeId> {
        let value = members.get(keyword)?;
        Some(self.node(value, format!("{pointer}/{keyword}")))
    }

    fn list(
        &mut self,
        members: &'d Map<String, Value>,
        keyword: &str,
        pointer: &str,
    ) -> Vec<NodeId> {
        let branches = members.get(keyword).and_then(Value::as_array);
        let branches = branches.into_iter().flatten().enumerate();
        branches
            .map(|(index, branch)| self.node(branch, format!("{pointer}/{keyword}/{index}")))
            .collect()
    }

    fn synthetic(&mut self, facts: Facts, pointer: &str) -> NodeId {
        self.arena
            .push(self.side, pointer.to_owned(), Body::Facts(Box::new(facts)))
    }
}

/// Whether `facts` assert nothing at all.
fn is_trivial(facts: &Facts) -> bool {
    facts.types == Types::ALL
        && facts.values.is_none()
        && facts.min.is_none()
        && facts.max.is_none()
        && facts.multiples.is_empty()
        && facts.length_min == 0
        && facts.length_max.is_none()
        && facts.patterns.is_empty()
        && facts.formats.is_empty()
        && facts.prefix.is_empty()
        && facts.items.is_none()
        && facts.contains.is_empty()
        && facts.items_min == 0
        && facts.items_max.is_none()
        && !facts.unique
        && facts.properties.is_empty()
        && facts.patterned.is_empty()
        && facts.additional.is_none()
        && facts.names.is_none()
        && facts.required.is_empty()
        && facts.members_min == 0
        && facts.members_max.is_none()
        && facts.dependents.is_empty()
        && facts.all_of.is_empty()
        && facts.any_of.is_empty()
        && facts.one_of.is_empty()
        && facts.not.is_empty()
        && facts.conditions.is_empty()
        && facts.unevaluated_properties.is_none()
        && facts.unevaluated_items.is_none()
        && facts.opaque.is_empty()
}

fn map<'d>(
    members: &'d Map<String, Value>,
    keyword: &str,
) -> impl Iterator<Item = (&'d String, &'d Value)> {
    members
        .get(keyword)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

fn names(value: Option<&Value>) -> std::collections::BTreeSet<Rc<str>> {
    let names = value.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(Rc::from).collect()
}

fn decimal(members: &Map<String, Value>, keyword: &str) -> Option<Decimal> {
    members.get(keyword).and_then(Decimal::of_value)
}

/// A count, also when written as `2.0`.
fn count(members: &Map<String, Value>, keyword: &str) -> Option<u64> {
    let value = members.get(keyword)?;
    value
        .as_u64()
        .or_else(|| Decimal::of_value(value)?.to_value()?.as_u64())
}
