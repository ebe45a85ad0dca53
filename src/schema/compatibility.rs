//! Whether a new version of a schema may follow the old ones, with proof.
//!
//! Compatible means containment of sets of values: BACKWARD holds when everything the old version
//! takes the new one takes too, FORWARD the reverse. [`check`] answers *compatible* only with a
//! proof, *incompatible* with a value that one version takes and the other refuses (seen by the
//! real validator), and otherwise admits that it is *undecided*, and where.
//!
//! Three judges in turn: a proof by keyword (`prove`), a search for a witness (`search`), and
//! the set algebra of the `jsonschema` crate (`canonical`).

mod arena;
mod budget;
mod canonical;
mod confluent;
mod conjunction;
mod decimal;
mod describe;
mod evaluate;
mod judge;
mod prove;
mod read;
mod resolve;
mod search;
#[cfg(test)]
mod tests;
mod types;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Options, on_deep_stack};

/// Which versions must understand which others' data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Level {
    /// Any change is allowed.
    None,
    /// The new version takes what the newest old one took.
    #[default]
    Backward,
    /// The new version takes what any old one took.
    BackwardTransitive,
    /// The newest old version takes what the new one takes.
    Forward,
    /// Every old version takes what the new one takes.
    ForwardTransitive,
    /// Backward and forward.
    Full,
    /// Backward and forward, against every old version.
    FullTransitive,
}

impl Level {
    /// Whether all old versions count, and not only the newest.
    pub fn is_transitive(self) -> bool {
        match self {
            Self::BackwardTransitive | Self::ForwardTransitive | Self::FullTransitive => true,
            Self::None | Self::Backward | Self::Forward | Self::Full => false,
        }
    }

    /// The directions to check.
    pub fn directions(self) -> &'static [Direction] {
        match self {
            Self::None => &[],
            Self::Backward | Self::BackwardTransitive => &[Direction::Backward],
            Self::Forward | Self::ForwardTransitive => &[Direction::Forward],
            Self::Full | Self::FullTransitive => &[Direction::Backward, Direction::Forward],
        }
    }
}

/// Whose data must be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Old data by the new version.
    Backward,
    /// New data by the old version.
    Forward,
}

/// By which judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// By the sets of values that the versions take.
    #[default]
    Semantic,
    /// As Confluent's registry answers by default.
    Confluent,
    /// As Confluent's registry answers under `compatibilityPolicy=LENIENT`.
    ConfluentLenient,
}

/// How a check is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOptions {
    /// How both schemas are read; the same as for validation.
    pub schema: Options,
    /// The judgement asked for.
    pub dialect: Dialect,
    /// Longest time for one pair of versions; beyond it the answer is undecided.
    pub time_max: Duration,
    /// Most steps of proof, and again of search, for one direction.
    pub steps_max: u64,
    /// Most differences listed.
    pub differences_max: usize,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            schema: Options::default(),
            dialect: Dialect::Semantic,
            time_max: Duration::from_secs(2),
            steps_max: 100_000,
            differences_max: 20,
        }
    }
}

/// The answer of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Proved.
    Compatible,
    /// Neither proved nor refuted within the limits.
    Undecided,
    /// Refuted.
    Incompatible,
}

/// The answer with its reasons, in the form of `dak schema check --format json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The worst answer over all directions and versions.
    pub verdict: Verdict,
    /// Why it is not compatible.
    pub differences: Vec<Difference>,
}

/// One reason why versions are not compatible, or not known to be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// JSON pointer of the keyword, in the version that refuses: the new one backward, the old one
    /// forward.
    pub path: String,
    /// What changed, such as `required-added` or `maximum-tightened`.
    pub kind: String,
    /// The change in a sentence.
    pub message: String,
    /// A value that one version takes and the other refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<Value>,
    /// The smallest edit of the new version that would pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The direction in which it matters.
    pub direction: Direction,
    /// Position in the list of old versions given to [`check_against`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<usize>,
}

impl Report {
    /// The answer that nothing speaks against.
    fn compatible() -> Self {
        Self {
            verdict: Verdict::Compatible,
            differences: Vec::new(),
        }
    }

    /// A check that could not be made, with the reason at its place.
    fn impossible(kind: &str, message: String, direction: Direction) -> Self {
        let difference = Difference {
            path: String::new(),
            kind: kind.to_owned(),
            message,
            witness: None,
            suggestion: None,
            direction,
            against: None,
        };
        Self {
            verdict: Verdict::Undecided,
            differences: vec![difference],
        }
    }

    fn merge(&mut self, other: Self, differences_max: usize) {
        self.verdict = self.verdict.max(other.verdict);
        self.differences.extend(other.differences);
        self.differences.truncate(differences_max);
    }
}

/// Checks `new` against one old version. A text that is no schema leaves the check undecided.
pub fn check(old: &str, new: &str, level: Level, options: &CheckOptions) -> Report {
    let directions = level.directions();
    let Some(first) = directions.first() else {
        return Report::compatible();
    };
    let report = on_deep_stack(|| match options.dialect {
        Dialect::Semantic => judge::check(old, new, directions, options),
        Dialect::Confluent => confluent::check(old, new, directions, false, options),
        Dialect::ConfluentLenient => confluent::check(old, new, directions, true, options),
    });
    report.unwrap_or_else(|| {
        let message = "the check failed on these schemas: report it".to_owned();
        Report::impossible("engine-failed", message, *first)
    })
}

/// Checks `new` against the old versions that `level` asks for; `versions` has the oldest first.
pub fn check_against(versions: &[&str], new: &str, level: Level, options: &CheckOptions) -> Report {
    let first = if level.is_transitive() {
        0
    } else {
        versions.len().saturating_sub(1)
    };
    let mut report = Report::compatible();
    // The newest first: its differences are what an author looks for.
    for (index, old) in versions.iter().enumerate().skip(first).rev() {
        let mut one = check(old, new, level, options);
        one.differences
            .iter_mut()
            .for_each(|difference| difference.against = Some(index));
        report.merge(one, options.differences_max);
    }
    report
}
