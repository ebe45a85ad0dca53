//! The pattern engine: EventBridge's pattern language whole, an index over many patterns whose cost
//! for an event does not grow with their number, and the reason for each verdict.
//!
//! Pure: no I/O, no clock, no chance. `docs/patterns.md` is the language's specification.
//!
//! ```
//! use dak::pattern::{Index, Input, Pattern, Scratch};
//! use std::sync::Arc;
//!
//! let large = Pattern::parse(r#"{"amount": [{"numeric": [">=", 5000]}]}"#)?;
//! let index = Index::build([(7, Arc::new(large))]);
//! let mut scratch = Scratch::default();
//! assert_eq!(index.matches(&Input::raw(br#"{"amount": 5000}"#), &mut scratch)?, [7]);
//! assert!(index.matches(&Input::raw(br#"{"amount": 12}"#), &mut scratch)?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod combine;
mod error;
mod explain;
mod fold;
mod index;
mod input;
mod leaves;
mod limits;
mod number;
pub mod op;
mod parse;
mod paths;
mod scan;
#[cfg(test)]
mod tests;
mod text;
mod walk;

pub use error::{Error, Fault, JsonFault};
pub use explain::{Explanation, Failure, Reason, explain};
pub use index::{Index, RuleId, Scratch, Stats};
pub use input::Input;
pub use limits::{EventLimits, LimitReached, Limits};
pub use op::Op;

/// A pattern that was read and found correct: alternatives, of which one must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Every field that some alternative has, in the order of the text.
    fields: Box<[Field]>,
    conjunctions: Box<[Conjunction]>,
}

/// Fields that must all hold, by their places in [`Pattern::fields`]; in lists of objects, within
/// one element.
pub(crate) type Conjunction = Box<[u16]>;

/// A path and the tests of which one must hold for a value there: a leaf of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    path: Box<str>,
    offset: u32,
    tests: Box<[Op]>,
}

/// How large a pattern is, in the measures that [`Limits`] bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complexity {
    /// Alternatives after every `$or` is multiplied out.
    pub conjunctions: usize,
    /// Fields of the largest alternative.
    pub fields: usize,
    /// Values listed in the largest field.
    pub values: usize,
    /// `*` in all wildcards, each field counted once.
    pub stars: usize,
}

impl Pattern {
    /// Reads a pattern within the default [`Limits`], paths as written.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::parse_with(text, &Limits::default())
    }

    /// Reads a pattern within `limits`.
    pub fn parse_with(text: &str, limits: &Limits) -> Result<Self, Error> {
        parse::parse(text, limits)
    }

    /// How large the pattern is.
    pub fn complexity(&self) -> Complexity {
        let count = |measure: fn(&Op) -> usize| {
            self.fields
                .iter()
                .map(move |field| field.tests.iter().map(measure).sum::<usize>())
        };
        Complexity {
            conjunctions: self.conjunctions.len(),
            fields: self
                .conjunctions
                .iter()
                .map(|one| one.len())
                .max()
                .unwrap_or(0),
            values: count(Op::value_count).max().unwrap_or(0),
            stars: count(Op::star_count).sum(),
        }
    }

    /// The paths that the pattern reads, keys joined by dots, in order and each once.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = self.leaves().map(Field::path).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Every leaf of the pattern once, in the order of the text.
    pub fn leaves(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter()
    }

    /// The alternatives, of which one must hold, each as its fields, which must all hold.
    pub fn alternatives(&self) -> impl Iterator<Item = impl Iterator<Item = &Field>> {
        self.conjunctions.iter().map(|one| self.fields_of(one))
    }

    pub(crate) fn fields_of<'p>(
        &'p self,
        conjunction: &'p Conjunction,
    ) -> impl Iterator<Item = &'p Field> {
        conjunction
            .iter()
            .map(|place| &self.fields[usize::from(*place)])
    }
}

impl Field {
    /// The path, keys joined by dots.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The tests, of which one must hold.
    pub fn tests(&self) -> &[Op] {
        &self.tests
    }

    /// Byte of the pattern text at which the list of tests begins.
    pub fn offset(&self) -> usize {
        self.offset as usize
    }

    /// True when a value can make the field hold.
    pub(crate) fn wants_value(&self) -> bool {
        self.tests.iter().any(|test| *test != Op::Exists(false))
    }

    /// True when the field holds without any value.
    pub(crate) fn allows_absence(&self) -> bool {
        self.tests.contains(&Op::Exists(false))
    }
}
