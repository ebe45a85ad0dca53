//! A schema as that comparison sees it: one kind each, or a combination of several.

use serde_json::{Map, Value};

use crate::schema::{Draft, compatibility::resolve::Resources};

/// Most references followed in a row.
const HOPS_MAX: usize = 64;

/// How the parts of a combination bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Criterion {
    All,
    Any,
    One,
}

/// One kind of schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Never,
    Anything,
    Text,
    Number,
    Boolean,
    Null,
    Object,
    Array,
    Enum,
    Const,
    Not,
    Conditional,
    Combined,
}

/// Which aspect of a schema object a shape stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Facet {
    Whole,
    /// The keywords of one kind.
    One(Kind),
    /// A list of types.
    Types,
    /// The type at this place of the list.
    TypeAt(usize),
    /// The branches of `allOf`, `anyOf` or `oneOf`.
    Branches(&'static str),
}

/// The identity of a shape while its document lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(*const Value, Facet);

/// A schema, or an aspect of it.
#[derive(Clone, Copy)]
pub(super) struct Shape<'d> {
    value: &'d Value,
    facet: Facet,
    resources: &'d Resources<'d>,
    draft: Draft,
}

impl<'d> Shape<'d> {
    /// The schema `value`, its references followed.
    pub(super) fn whole(value: &'d Value, resources: &'d Resources<'d>, draft: Draft) -> Self {
        let mut value = value;
        for _ in 0..HOPS_MAX {
            let target = value.get("$ref").and_then(Value::as_str);
            match target.and_then(|reference| resources.resolve(value, reference)) {
                Some((target, _)) => value = target,
                None => break,
            }
        }
        Self {
            value,
            facet: Facet::Whole,
            resources,
            draft,
        }
        .unwrapped()
    }

    /// Another schema of the same document.
    pub(super) fn at(self, value: &'d Value) -> Self {
        Self::whole(value, self.resources, self.draft)
    }

    /// What tells this shape from all others of its document.
    pub(super) fn key(self) -> Key {
        Key(self.value, self.facet)
    }

    /// A keyword of the schema object.
    pub(super) fn get(self, keyword: &str) -> Option<&'d Value> {
        self.value.get(keyword)
    }

    /// A keyword whose value is an object.
    pub(super) fn map(self, keyword: &str) -> Option<&'d Map<String, Value>> {
        self.get(keyword)?.as_object()
    }

    pub(super) fn draft(self) -> Draft {
        self.draft
    }

    /// A schema with one aspect only is that aspect.
    fn unwrapped(self) -> Self {
        match self.facets().as_slice() {
            [only] if self.facet == Facet::Whole => Self {
                facet: *only,
                ..self
            },
            _ => self,
        }
    }

    /// The kind of the shape.
    pub(super) fn kind(self) -> Kind {
        match self.facet {
            Facet::One(kind) => kind,
            Facet::Types | Facet::Branches(_) => Kind::Combined,
            Facet::TypeAt(index) => {
                let name = self
                    .get("type")
                    .and_then(|types| types.get(index)?.as_str());
                kind_of_type(name.unwrap_or_default())
            }
            Facet::Whole => match self.value {
                Value::Bool(false) => Kind::Never,
                Value::Object(_) if !self.facets().is_empty() => Kind::Combined,
                _ => Kind::Anything,
            },
        }
    }

    /// How a combination binds its parts.
    pub(super) fn criterion(self) -> Criterion {
        match self.facet {
            Facet::Types | Facet::Branches("anyOf") => Criterion::Any,
            Facet::Branches("oneOf") => Criterion::One,
            Facet::Whole | Facet::One(_) | Facet::TypeAt(_) | Facet::Branches(_) => Criterion::All,
        }
    }

    /// The parts of a combination.
    pub(super) fn parts(self) -> Vec<Self> {
        match self.facet {
            Facet::Whole => self
                .facets()
                .into_iter()
                .map(|facet| Self { facet, ..self })
                .collect(),
            Facet::Types => {
                let count = self
                    .get("type")
                    .and_then(Value::as_array)
                    .map_or(0, Vec::len);
                (0..count)
                    .map(|index| Self {
                        facet: Facet::TypeAt(index),
                        ..self
                    })
                    .collect()
            }
            Facet::Branches(keyword) => {
                let branches = self.get(keyword).and_then(Value::as_array);
                branches
                    .into_iter()
                    .flatten()
                    .map(|branch| self.at(branch))
                    .collect()
            }
            Facet::One(_) | Facet::TypeAt(_) => Vec::new(),
        }
    }

    /// The path element of a combination's parts.
    pub(super) fn parts_name(self) -> &'static str {
        match self.criterion() {
            Criterion::All => "allOf",
            Criterion::Any => "anyOf",
            Criterion::One => "oneOf",
        }
    }

    /// The aspects that the schema object has.
    fn facets(self) -> Vec<Facet> {
        let Some(members) = self.value.as_object() else {
            return Vec::new();
        };
        let mut facets = Vec::new();
        match members.get("type") {
            Some(Value::String(name)) => facets.push(Facet::One(kind_of_type(name))),
            Some(Value::Array(_)) => facets.push(Facet::Types),
            _ => facets.extend(self.kinds_by_keyword(members)),
        }
        for (keyword, kind) in [
            ("enum", Kind::Enum),
            ("const", Kind::Const),
            ("not", Kind::Not),
            ("if", Kind::Conditional),
        ] {
            if members.contains_key(keyword) {
                facets.push(Facet::One(kind));
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            if members.get(keyword).is_some_and(Value::is_array) {
                facets.push(Facet::Branches(keyword));
            }
        }
        facets
    }

    /// The kinds that a schema without `type` is of, by its keywords.
    fn kinds_by_keyword(self, members: &Map<String, Value>) -> Vec<Facet> {
        const OBJECT: [&str; 11] = [
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "minProperties",
            "maxProperties",
            "propertyNames",
            "dependencies",
            "dependentRequired",
            "dependentSchemas",
            "unevaluatedProperties",
        ];
        const ARRAY: [&str; 10] = [
            "items",
            "prefixItems",
            "additionalItems",
            "minItems",
            "maxItems",
            "uniqueItems",
            "contains",
            "minContains",
            "maxContains",
            "unevaluatedItems",
        ];
        const NUMBER: [&str; 5] = [
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ];
        const TEXT: [&str; 3] = ["minLength", "maxLength", "pattern"];
        let has = |keywords: &[&str]| {
            keywords
                .iter()
                .any(|keyword| members.contains_key(*keyword))
        };
        [
            (has(&OBJECT), Kind::Object),
            (has(&ARRAY), Kind::Array),
            (has(&NUMBER), Kind::Number),
            (has(&TEXT), Kind::Text),
        ]
        .into_iter()
        .filter(|(is_there, _)| *is_there)
        .map(|(_, kind)| Facet::One(kind))
        .collect()
    }
}

fn kind_of_type(name: &str) -> Kind {
    match name {
        "string" => Kind::Text,
        "integer" | "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        "null" => Kind::Null,
        "object" => Kind::Object,
        "array" => Kind::Array,
        _ => Kind::Anything,
    }
}
