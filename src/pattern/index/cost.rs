//! How selective the fields of conjunctions are. Nothing is known of the events to come, so a value
//! is taken to be as frequent in them as among the patterns that name a value at its path.

use rustc_hash::FxHashMap;

use super::atoms::{Atom, hash_text};
use super::grams::GramCounts;
use super::segment::{Check, LocalPath};
use crate::pattern::Op;
use crate::pattern::op::Wildcard;

/// How often things occur among the conjunctions of a level.
#[derive(Debug, Default)]
pub(super) struct Counts {
    atoms: FxHashMap<Atom, u32>,
    paths: FxHashMap<LocalPath, PathCounts>,
    grams: FxHashMap<LocalPath, GramCounts>,
    /// By path and a hash of the test.
    texts: FxHashMap<(LocalPath, u64), u32>,
}

#[derive(Debug, Default, Clone, Copy)]
struct PathCounts {
    fields: u32,
    /// Atoms named, each as often as it is.
    atoms: u32,
    distinct: u32,
}

impl Counts {
    /// Counts one field of a conjunction.
    pub(super) fn add(&mut self, check: &Check<'_>) {
        let path = self.paths.entry(check.path).or_default();
        path.fields += 1;
        for atom in check.atoms() {
            let count = self.atoms.entry(*atom).or_default();
            path.atoms += 1;
            path.distinct += u32::from(*count == 0);
            *count += 1;
        }
        for op in check.ops() {
            if let Op::Wildcard(wildcard) = op {
                self.grams.entry(check.path).or_default().add(wildcard);
            }
            if let Some(text) = hash_of_text(op) {
                *self.texts.entry((check.path, text)).or_default() += 1;
            }
        }
    }

    /// About the share of events in which the field holds.
    pub(super) fn cost(&self, check: &Check<'_>) -> f64 {
        let path = self.paths.get(&check.path).copied().unwrap_or_default();
        let of_atom = |atom: &Atom| {
            let count = self.atoms.get(atom).copied().unwrap_or_default();
            f64::from(count + 1) / f64::from(path.atoms + path.distinct + 1)
        };
        let of_op = |op: &Op| {
            let count = hash_of_text(op).and_then(|text| self.texts.get(&(check.path, text)));
            let same = count.map_or(0.0, |count| f64::from(*count) / f64::from(path.fields + 1));
            op_cost(op).max(same)
        };
        match (check.atoms(), check.ops()) {
            ([], []) => 1.0,
            ([], ops) => ops.iter().map(of_op).sum(),
            (atoms, _) => atoms.iter().map(of_atom).sum(),
        }
    }

    /// The run of bytes of a wildcard that the fewest others of its path have.
    pub(super) fn rarest_gram(&self, path: LocalPath, wildcard: &Wildcard) -> Option<u64> {
        self.grams.get(&path)?.rarest(wildcard)
    }
}

/// A hash of a test of text, by which the same tests are counted.
fn hash_of_text(op: &Op) -> Option<u64> {
    let (kind, text): (u64, &str) = match op {
        Op::Prefix(text) => (1, text),
        Op::Suffix(text) => (2, text),
        Op::PrefixIgnoreCase(text) => (3, text),
        Op::SuffixIgnoreCase(text) => (4, text),
        Op::IgnoreCase(text) => (5, text),
        Op::Wildcard(wildcard) => (6, wildcard.pieces().iter().max_by_key(|piece| piece.len())?),
        Op::Exact(_)
        | Op::Exists(_)
        | Op::Numeric(_)
        | Op::Cidr(_)
        | Op::AnythingBut(_)
        | Op::AllOf(_) => return None,
    };
    let lower = text.to_lowercase();
    Some(hash_text(lower.as_bytes()).wrapping_add(kind))
}

/// About the share of values for which a test holds, by what it is alone.
pub(super) fn op_cost(op: &Op) -> f64 {
    let by_length = |length: usize| 0.002 + 0.6f64.powi(length.min(30) as i32);
    match op {
        Op::Exact(_) => 0.001,
        Op::IgnoreCase(_) => 0.002,
        Op::Prefix(text)
        | Op::Suffix(text)
        | Op::PrefixIgnoreCase(text)
        | Op::SuffixIgnoreCase(text) => by_length(text.len()),
        Op::Wildcard(wildcard) => {
            by_length(wildcard.pieces().iter().map(|piece| piece.len()).sum())
        }
        Op::Cidr(block) => by_length(usize::from(block.bits) / 4),
        Op::Numeric(range) => match (&range.lower, &range.upper) {
            _ if range.as_point().is_some() => 0.001,
            (Some(_), Some(_)) => 0.25,
            _ => 0.5,
        },
        Op::AllOf(tests) => tests.iter().map(op_cost).fold(1.0, f64::min),
        Op::AnythingBut(_) | Op::Exists(_) => 1.0,
    }
}
