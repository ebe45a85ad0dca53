//! The comparison of two shapes.

mod collection;
mod combined;
mod scalar;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    change::{Change, Found, Move, Subject},
    shape::{Criterion, Key, Kind, Shape},
};
use crate::schema::compatibility::budget::Budget;

/// Deepest nesting of shapes compared.
const DEPTH_MAX: usize = 256;

/// The state of one comparison.
pub(super) struct Comparison<'a> {
    budget: &'a Budget,
    open: FxHashSet<(Key, Key)>,
    known: FxHashMap<(Key, Key), Vec<Found>>,
    depth: usize,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(budget: &'a Budget) -> Self {
        Self {
            budget,
            open: FxHashSet::default(),
            known: FxHashMap::default(),
            depth: 0,
        }
    }

    /// The changes from `original` to `update`, with paths relative to them.
    pub(super) fn compare(&mut self, original: Shape<'_>, update: Shape<'_>) -> Vec<Found> {
        let key = (original.key(), update.key());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        // A pair under comparison is taken as equal: what differs shows where it is compared.
        let is_stop = self.depth >= DEPTH_MAX || !self.budget.spend(1);
        if is_stop || !self.open.insert(key) {
            return Vec::new();
        }
        self.depth += 1;
        let mut found = Vec::new();
        self.compare_kinds(original, update, &mut found);
        self.depth -= 1;
        self.open.remove(&key);
        self.known.insert(key, found.clone());
        found
    }

    fn compare_kinds(&mut self, original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) {
        let (old, new) = (original.kind(), update.kind());
        if old != Kind::Combined && new == Kind::Combined && self.widens(original, update, found) {
            return;
        }
        if old == Kind::Combined && new != Kind::Combined && self.drops(original, update, found) {
            return;
        }
        if old != new {
            if old != Kind::Never && new != Kind::Anything {
                add(found, Change::Keyword(Subject::Type, Move::Changed), "");
            }
            return;
        }
        match old {
            Kind::Text => scalar::text(original, update, found),
            Kind::Number => scalar::number(original, update, found),
            Kind::Enum => scalar::enumeration(original, update, found),
            Kind::Const => {
                if original.get("const") != update.get("const") {
                    add(
                        found,
                        Change::Keyword(Subject::EnumArray, Move::Changed),
                        "/const",
                    );
                }
            }
            Kind::Object => self.objects(original, update, found),
            Kind::Array => self.arrays(original, update, found),
            Kind::Not => self.negations(original, update, found),
            Kind::Combined => self.combinations(original, update, found),
            Kind::Never | Kind::Anything | Kind::Boolean | Kind::Null | Kind::Conditional => {}
        }
    }

    /// A plain shape that became one branch of a union, or the only part of a combination.
    fn widens(&mut self, original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) -> bool {
        let parts = update.parts();
        let is_union = update.criterion() != Criterion::All;
        if parts.len() != 1 && !is_union {
            return false;
        }
        for part in &parts {
            let changes = self.compare(original, *part);
            if is_compatible(&changes) {
                found.extend(changes);
                if parts.len() > 1 {
                    add(found, Change::Keyword(Subject::SumType, Move::Extended), "");
                }
                return true;
            }
        }
        false
    }

    /// A combination of which one part is left.
    fn drops(&mut self, original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) -> bool {
        let parts = original.parts();
        if parts.len() != 1 && original.criterion() != Criterion::All {
            return false;
        }
        for part in &parts {
            let changes = self.compare(*part, update);
            if is_compatible(&changes) {
                found.extend(changes);
                if parts.len() > 1 {
                    add(
                        found,
                        Change::Keyword(Subject::ProductType, Move::Narrowed),
                        "",
                    );
                }
                return true;
            }
        }
        false
    }

    fn negations(&mut self, original: Shape<'_>, update: Shape<'_>, found: &mut Vec<Found>) {
        let (Some(old), Some(new)) = (original.get("not"), update.get("not")) else {
            return;
        };
        // What is refused must not grow, so the sides change places.
        let changes = self.compare(update.at(new), original.at(old));
        if !is_compatible(&changes) {
            add(
                found,
                Change::Keyword(Subject::NotType, Move::Extended),
                "/not",
            );
        } else if !changes.is_empty() {
            add(
                found,
                Change::Keyword(Subject::NotType, Move::Narrowed),
                "/not",
            );
        }
    }
}

fn add(found: &mut Vec<Found>, change: Change, path: &str) {
    found.push(Found {
        change,
        path: path.to_owned(),
    });
}

/// Adds changes found below `path`.
fn add_below(found: &mut Vec<Found>, changes: Vec<Found>, path: &str) {
    found.extend(changes.into_iter().map(|one| Found {
        change: one.change,
        path: format!("{path}{}", one.path),
    }));
}

/// Branches are matched by the strict policy, whatever the verdict is asked by.
fn is_compatible(changes: &[Found]) -> bool {
    changes
        .iter()
        .all(|found| found.change.is_compatible(false))
}
