//! Objects and arrays: members and items, and how open the rest is.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Change, Comparison, Found, Kind, Move, Shape, Subject, add, add_below, is_compatible,
    scalar::limit,
};
use crate::schema::{
    Draft, Options, compatibility::confluent::change::Part, fan_out::escape, validation_options,
};

/// What a schema says about members or items that it does not name.
#[derive(Clone, Copy)]
enum Rest<'d> {
    Open,
    Closed,
    Covered(Shape<'d>),
}

impl Comparison<'_> {
    pub(super) fn objects(
        &mut self,
        original: Shape<'_>,
        update: Shape<'_>,
        found: &mut Vec<Found>,
    ) {
        self.properties(original, update, found);
        required(original, update, found);
        self.dependencies(original, update, found);
        self.rests(
            (
                additional_properties(original),
                additional_properties(update),
            ),
            Subject::AdditionalProperties,
            "/additionalProperties",
            found,
        );
        limit(
            original,
            update,
            "maxProperties",
            Subject::MaxProperties,
            found,
        );
        limit(
            original,
            update,
            "minProperties",
            Subject::MinProperties,
            found,
        );
    }

    fn properties(&mut self, original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) {
        let names = |shape: Shape<'_>| -> Vec<String> {
            shape
                .map("properties")
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect()
        };
        let all: BTreeSet<String> = names(original).into_iter().chain(names(update)).collect();
        for name in all {
            let path = format!("/properties/{}", escape(&name));
            let old = original
                .map("properties")
                .and_then(|members| members.get(&name));
            let new = update
                .map("properties")
                .and_then(|members| members.get(&name));
            let (old, new) = (
                old.map(|old| original.at(old)),
                new.map(|new| update.at(new)),
            );
            match (old, new) {
                (Some(old), Some(new)) => add_below(found, self.compare(old, new), &path),
                (Some(old), None) => {
                    let rest = rest_for(update, &name);
                    self.removed(old, rest, &path, &PROPERTY_REMOVED, found);
                }
                (None, Some(new)) => {
                    self.added(original, update, &name, new, found);
                }
                (None, None) => {}
            }
        }
    }

    /// A property that only the update names.
    fn added(
        &mut self,
        original: Shape<'_>,
        update: Shape<'_>,
        name: &str,
        new: Shape<'_>,
        found: &mut Vec<Found>,
    ) {
        let path = format!("/properties/{}", escape(name));
        let is_required = lists(update, "required", name);
        let has_default = update
            .map("properties")
            .and_then(|members| members.get(name))
            .is_some_and(|member| member.get("default").is_some());
        let rest = rest_for(original, name);
        let part = match (rest, is_required, has_default) {
            (Rest::Open, _, _) if new.kind() == Kind::Anything && !is_required => {
                Part::PropertyWithEmptySchemaAddedToOpen
            }
            (Rest::Open, true, true) => Part::RequiredPropertyWithDefaultAddedToOpen,
            (Rest::Open, true, false) => Part::RequiredPropertyAddedToOpen,
            (Rest::Open, false, _) => Part::OptionalPropertyAddedToOpen,
            (_, true, true) => Part::RequiredPropertyWithDefaultAddedToUnopen,
            (_, true, false) => Part::RequiredPropertyAddedToUnopen,
            (_, false, _) => Part::OptionalPropertyAddedToUnopen,
        };
        if let Rest::Covered(cover) = rest {
            let changes = self.compare(cover, new);
            let is_covered = is_compatible(&changes);
            add_below(found, changes, &path);
            let covered = if is_covered {
                Part::PropertyAddedCovered
            } else {
                Part::PropertyAddedNotCovered
            };
            add(found, Change::Part(covered), &path);
        }
        add(found, Change::Part(part), &path);
    }

    /// A property or an item that only the original names.
    fn removed(
        &mut self,
        old: Shape<'_>,
        rest: Rest<'_>,
        path: &str,
        parts: &[Part; 5],
        found: &mut Vec<Found>,
    ) {
        let [open, closed, closed_with_false, covered, uncovered] = *parts;
        let part = match rest {
            Rest::Open => open,
            Rest::Closed if old.kind() == Kind::Never => closed_with_false,
            Rest::Closed => closed,
            Rest::Covered(cover) => {
                let changes = self.compare(old, cover);
                let is_covered = is_compatible(&changes);
                add_below(found, changes, path);
                if is_covered { covered } else { uncovered }
            }
        };
        add(found, Change::Part(part), path);
    }

    fn dependencies(&mut self, original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) {
        for keyword in ["dependencies", "dependentRequired", "dependentSchemas"] {
            let empty = serde_json::Map::new();
            let old = original.map(keyword).unwrap_or(&empty);
            let new = update.map(keyword).unwrap_or(&empty);
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                let path = format!("/{keyword}/{}", escape(name));
                self.dependency(
                    (original, old.get(name)),
                    (update, new.get(name)),
                    &path,
                    found,
                );
            }
        }
    }

    fn dependency<'d>(
        &mut self,
        (original, old): (Shape<'d>, Option<&'d Value>),
        (update, new): (Shape<'d>, Option<&'d Value>),
        path: &str,
        found: &mut Vec<Found>,
    ) {
        let subject = |value: &Value| {
            if value.is_array() {
                Subject::DependencyArray
            } else {
                Subject::DependencySchema
            }
        };
        match (old, new) {
            (Some(Value::Array(old)), Some(Value::Array(new))) => {
                let within =
                    |one: &[Value], other: &[Value]| one.iter().all(|name| other.contains(name));
                let moved = match (within(old, new), within(new, old)) {
                    (true, true) => return,
                    (true, false) => Move::Extended,
                    (false, true) => Move::Narrowed,
                    (false, false) => Move::Changed,
                };
                add(
                    found,
                    Change::Keyword(Subject::DependencyArray, moved),
                    path,
                );
            }
            (Some(old), Some(new)) if !old.is_array() && !new.is_array() => {
                add_below(found, self.compare(original.at(old), update.at(new)), path);
            }
            (old, new) => {
                if let Some(new) = new {
                    add(found, Change::Keyword(subject(new), Move::Added), path);
                }
                if let Some(old) = old {
                    add(found, Change::Keyword(subject(old), Move::Removed), path);
                }
            }
        }
    }

    /// What both sides say about the rest.
    fn rests(
        &mut self,
        rests: (Rest<'_>, Rest<'_>),
        subject: Subject,
        path: &str,
        found: &mut Vec<Found>,
    ) {
        let moved = match rests {
            (Rest::Closed, Rest::Open | Rest::Covered(_)) => Move::Added,
            (Rest::Open | Rest::Covered(_), Rest::Closed) => Move::Removed,
            (Rest::Open, Rest::Covered(_)) => Move::Narrowed,
            (Rest::Covered(_), Rest::Open) => Move::Extended,
            (Rest::Covered(old), Rest::Covered(new)) => {
                return add_below(found, self.compare(old, new), path);
            }
            (Rest::Open, Rest::Open) | (Rest::Closed, Rest::Closed) => return,
        };
        add(found, Change::Keyword(subject, moved), path);
    }

    pub(super) fn arrays(
        &mut self,
        original: Shape<'_>,
        update: Shape<'_>,
        found: &mut Vec<Found>,
    ) {
        if let (Some(old), Some(new)) = (all_items(original), all_items(update)) {
            add_below(found, self.compare(old, new), "/items");
        } else if let (Some(_), None) = (all_items(original), all_items(update)) {
            add(found, Change::SchemaRemoved, "/items");
        } else if all_items(update).is_some() && tuple(original).is_empty() {
            add(found, Change::SchemaAdded, "/items");
        }
        let (old, new) = (tuple(original), tuple(update));
        for index in 0..old.len().max(new.len()) {
            let path = format!("/items/{index}");
            match (old.get(index), new.get(index)) {
                (Some(old), Some(new)) => {
                    add_below(found, self.compare(original.at(old), update.at(new)), &path);
                }
                (Some(old), None) => {
                    let rest = additional_items(update);
                    self.removed(original.at(old), rest, &path, &ITEM_REMOVED, found);
                }
                (None, Some(new)) => self.item_added(original, update.at(new), &path, found),
                (None, None) => {}
            }
        }
        if all_items(original).is_none() && all_items(update).is_none() {
            let rests = (additional_items(original), additional_items(update));
            self.rests(rests, Subject::AdditionalItems, "/additionalItems", found);
        }
        for (keyword, subject) in [
            ("maxItems", Subject::MaxItems),
            ("minItems", Subject::MinItems),
            ("maxContains", Subject::MaxContains),
        ] {
            limit(original, update, keyword, subject, found);
        }
        contains(original, update, found);
        let is_unique = |shape: Shape<'_>| shape.get("uniqueItems") == Some(&Value::Bool(true));
        match (is_unique(original), is_unique(update)) {
            (false, true) => add(
                found,
                Change::Keyword(Subject::UniqueItems, Move::Added),
                "/uniqueItems",
            ),
            (true, false) => {
                add(
                    found,
                    Change::Keyword(Subject::UniqueItems, Move::Removed),
                    "/uniqueItems",
                );
            }
            _ => {}
        }
    }

    fn item_added(
        &mut self,
        original: Shape<'_>,
        new: Shape<'_>,
        path: &str,
        found: &mut Vec<Found>,
    ) {
        let part = match additional_items(original) {
            Rest::Open if new.kind() == Kind::Anything => Part::ItemWithEmptySchemaAddedToOpen,
            Rest::Open => Part::ItemAddedToOpen,
            Rest::Closed => Part::ItemAddedToClosed,
            Rest::Covered(cover) => {
                let changes = self.compare(cover, new);
                let is_covered = is_compatible(&changes);
                add_below(found, changes, path);
                if is_covered {
                    Part::ItemAddedCovered
                } else {
                    Part::ItemAddedNotCovered
                }
            }
        };
        add(found, Change::Part(part), path);
    }
}

const PROPERTY_REMOVED: [Part; 5] = [
    Part::PropertyRemovedFromOpen,
    Part::PropertyRemovedFromClosed,
    Part::PropertyWithFalseRemovedFromClosed,
    Part::PropertyRemovedCovered,
    Part::PropertyRemovedNotCovered,
];

const ITEM_REMOVED: [Part; 5] = [
    Part::ItemRemovedFromOpen,
    Part::ItemRemovedFromClosed,
    Part::ItemWithFalseRemovedFromClosed,
    Part::ItemRemovedCovered,
    Part::ItemRemovedNotCovered,
];

/// Only names that both sides declare are looked at: that registry sees no others.
fn required(original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) {
    let Some(declared) = original.map("properties") else {
        return;
    };
    for name in declared.keys() {
        let Some(new) = update
            .map("properties")
            .and_then(|members| members.get(name))
        else {
            continue;
        };
        let change = match (
            lists(original, "required", name),
            lists(update, "required", name),
        ) {
            (true, false) => Change::RequiredAttributeRemoved,
            (false, true) if new.get("default").is_some() => {
                Change::RequiredAttributeWithDefaultAdded
            }
            (false, true) => Change::RequiredAttributeAdded,
            _ => continue,
        };
        add(found, change, &format!("/required/{}", escape(name)));
    }
}

fn lists(shape: Shape<'_>, keyword: &str, name: &str) -> bool {
    shape
        .get(keyword)
        .and_then(Value::as_array)
        .is_some_and(|names| names.contains(&json!(name)))
}

/// `minContains` counts as one where there is `contains`.
fn contains(original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) {
    let least = |shape: Shape<'_>| {
        let written = shape.get("minContains").and_then(Value::as_u64);
        shape.get("contains").map(|_| written.unwrap_or(1))
    };
    if let (Some(old), Some(new)) = (least(original), least(update)) {
        let moved = match old.cmp(&new) {
            std::cmp::Ordering::Less => Move::Increased,
            std::cmp::Ordering::Greater => Move::Decreased,
            std::cmp::Ordering::Equal => return,
        };
        add(
            found,
            Change::Keyword(Subject::MinContains, moved),
            "/minContains",
        );
    }
}

fn rest_of<'d>(shape: Shape<'d>, keywords: [&str; 2]) -> Rest<'d> {
    match keywords.into_iter().find_map(|keyword| shape.get(keyword)) {
        None | Some(Value::Bool(true)) => Rest::Open,
        Some(Value::Bool(false)) => Rest::Closed,
        Some(schema) => Rest::Covered(shape.at(schema)),
    }
}

fn additional_properties(shape: Shape<'_>) -> Rest<'_> {
    rest_of(shape, ["additionalProperties", "unevaluatedProperties"])
}

fn additional_items(shape: Shape<'_>) -> Rest<'_> {
    let keyword = if shape.draft() == Draft::Draft202012 {
        "items"
    } else {
        "additionalItems"
    };
    rest_of(shape, [keyword, "unevaluatedItems"])
}

/// What covers a member called `name`: the first pattern that matches, else the rest.
fn rest_for<'d>(shape: Shape<'d>, name: &str) -> Rest<'d> {
    let patterns = shape.map("patternProperties");
    let matching = patterns.into_iter().flatten().find(|(pattern, _)| {
        let schema = json!({ "pattern": pattern });
        let matcher = validation_options(Draft::Draft202012, &Options::default()).build(&schema);
        matcher.is_ok_and(|matcher| matcher.is_valid(&json!(name)))
    });
    match matching {
        Some((_, schema)) => Rest::Covered(shape.at(schema)),
        None => match additional_properties(shape) {
            // Patterns make an object partly open, and what they do not match stays closed to it.
            Rest::Open if patterns.is_some_and(|patterns| !patterns.is_empty()) => Rest::Closed,
            rest => rest,
        },
    }
}

fn all_items(shape: Shape<'_>) -> Option<Shape<'_>> {
    let items = shape.get("items").filter(|items| !items.is_array())?;
    let is_rest = shape.get("prefixItems").is_some() && shape.draft() == Draft::Draft202012;
    (!is_rest).then(|| shape.at(items))
}

fn tuple<'d>(shape: Shape<'d>) -> &'d [Value] {
    let keyword = if shape.draft() == Draft::Draft202012 {
        "prefixItems"
    } else {
        "items"
    };
    shape
        .get(keyword)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
