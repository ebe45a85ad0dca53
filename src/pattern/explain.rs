//! Why a pattern matches an event or does not: a plain evaluation of one pattern, leaf by leaf.

use serde::Serialize;

use super::combine::{self, Entry, Needs};
use super::input::Input;
use super::leaves::Leaves;
use super::limits::{EventLimits, LimitReached};
use super::op::{Listed, Op, Value};
use super::paths::Paths;
use super::{Conjunction, Field, Pattern, fold, walk};

/// Characters of a value that an explanation shows.
const SHOWN_MAX: usize = 200;

/// The verdict on one pattern and one event, with the reasons when it is no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// True when the pattern matches.
    pub matched: bool,
    /// Leaves that held; of the nearest alternative when none matched.
    pub held: usize,
    /// Leaves that did not hold, in the order of the pattern; empty on a match.
    pub failures: Vec<Failure>,
}

/// A leaf of a pattern that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The path, keys joined by dots.
    pub path: String,
    /// The operator; `any of` when the leaf lists different ones.
    pub operator: String,
    /// The leaf's list as pattern text, cut when long.
    pub expected: String,
    /// The value nearest to holding as JSON text, cut when long; none when there is no value.
    pub actual: Option<String>,
    /// Why the leaf does not hold.
    pub reason: Reason,
}

/// Why a leaf does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Reason {
    /// Nothing is at the path.
    Missing,
    /// An object or an empty list is at the path, which is no value.
    NotAValue,
    /// The value is of another type: `"5"` is not `5`.
    TypeDiffers,
    /// The value differs in the case of letters only.
    CaseDiffers,
    /// The value is another one.
    ValueDiffers,
    /// The number is outside the range.
    OutOfRange,
    /// The value is one of those that `anything-but` excludes.
    Excluded {
        /// The operator inside `anything-but`, or `exactly`.
        by: String,
    },
    /// A value holds, but in another element of a list than the leaf named.
    OtherElement {
        /// The path of the other leaf.
        than: String,
    },
    /// There is a value, and the pattern asks for none.
    Present,
    /// The event is beyond the limits of matching.
    Limit {
        /// The limit that was reached.
        limit: String,
    },
}

/// Says whether `pattern` matches `input`, and why not. The verdict is the same as an index's.
pub fn explain(pattern: &Pattern, input: &Input<'_>) -> Explanation {
    explain_with(pattern, input, &EventLimits::default())
}

/// [`explain`] within other limits than the default ones.
pub(crate) fn explain_with(
    pattern: &Pattern,
    input: &Input<'_>,
    limits: &EventLimits,
) -> Explanation {
    let mut paths = Paths::default();
    for field in &pattern.fields {
        paths.add(&field.path);
    }
    let mut leaves = Leaves::default();
    leaves.containers = Some(Vec::new());
    if let Err(limit) = walk::walk(input, &paths, limits, &mut leaves) {
        return beyond(limit);
    }
    let view = View {
        pattern,
        input,
        paths: &paths,
        leaves: &leaves,
    };
    let mut nearest: Option<Explanation> = None;
    for conjunction in &pattern.conjunctions {
        let explanation = view.explain(conjunction);
        if explanation.matched {
            return explanation;
        }
        let is_nearer = nearest.as_ref().is_none_or(|known| {
            let missing = explanation.failures.len();
            (missing, known.held) < (known.failures.len(), explanation.held)
        });
        if is_nearer {
            nearest = Some(explanation);
        }
    }
    nearest.unwrap_or(Explanation {
        matched: false,
        held: 0,
        failures: Vec::new(),
    })
}

fn beyond(limit: LimitReached) -> Explanation {
    let failure = Failure {
        path: String::new(),
        operator: String::new(),
        expected: String::new(),
        actual: None,
        reason: Reason::Limit {
            limit: limit.to_string(),
        },
    };
    Explanation {
        matched: false,
        held: 0,
        failures: vec![failure],
    }
}

struct View<'v> {
    pattern: &'v Pattern,
    input: &'v Input<'v>,
    paths: &'v Paths,
    leaves: &'v Leaves,
}

impl<'v> View<'v> {
    fn explain(&self, conjunction: &Conjunction) -> Explanation {
        let fields: Vec<&Field> = self.pattern.fields_of(conjunction).collect();
        let mut failures: Vec<Failure> = fields
            .iter()
            .filter(|field| !self.holds_alone(field))
            .map(|field| self.failure(field))
            .collect();
        if failures.is_empty() {
            match self.first_apart(&fields) {
                Ok(None) => {
                    return Explanation {
                        matched: true,
                        held: fields.len(),
                        failures,
                    };
                }
                Ok(Some(place)) => failures.push(self.failure_apart(&fields, place)),
                Err(combine::TooManyChoices) => {
                    let work_max = combine::CHOICES_MAX as u64;
                    return beyond(LimitReached::Work { work_max });
                }
            }
        }
        Explanation {
            matched: false,
            held: fields.len() - failures.len(),
            failures,
        }
    }

    fn values(&self, field: &Field) -> impl Iterator<Item = Value<'v>> {
        let path = self.paths.id(&field.path).unwrap_or(u32::MAX);
        let leaves = self.leaves;
        let input = self.input;
        leaves.at(path).map(move |leaf| leaves.value(leaf, input))
    }

    /// Whether the field holds when nothing else is asked.
    fn holds_alone(&self, field: &Field) -> bool {
        let mut values = self.values(field).peekable();
        if values.peek().is_none() {
            return field.allows_absence();
        }
        let mut values = self.values(field);
        values.any(|value| passes(field, &value)) || self.may_be_absent(field)
    }

    /// A value inside a list may be left out by the choice of an element.
    fn may_be_absent(&self, field: &Field) -> bool {
        let path = self.paths.id(&field.path).unwrap_or(u32::MAX);
        field.allows_absence() && self.leaves.at(path).all(|leaf| leaf.element != 0)
    }

    /// The first field that cannot hold together with those before it.
    fn first_apart(&self, fields: &[&Field]) -> Result<Option<usize>, combine::TooManyChoices> {
        if self.hold_together(fields)? {
            return Ok(None);
        }
        for count in 1..fields.len() {
            if !self.hold_together(&fields[..count])? {
                return Ok(Some(count - 1));
            }
        }
        Ok(Some(fields.len() - 1))
    }

    fn hold_together(&self, fields: &[&Field]) -> Result<bool, combine::TooManyChoices> {
        let mut needs = Needs::default();
        let mut entries = Vec::new();
        for (place, field) in fields.iter().enumerate() {
            let bit = 1 << place;
            match (field.wants_value(), field.allows_absence()) {
                (true, true) => needs.either |= bit,
                (true, false) => needs.value |= bit,
                (false, _) => needs.absence |= bit,
            }
            let path = self.paths.id(&field.path).unwrap_or(u32::MAX);
            for leaf in self.leaves.at(path) {
                let value = self.leaves.value(leaf, self.input);
                entries.push(Entry {
                    element: leaf.element,
                    field: bit,
                    passes: passes(field, &value),
                });
            }
        }
        combine::hold_together(needs, &entries, self.leaves)
    }

    fn failure(&self, field: &Field) -> Failure {
        let nearest = self
            .values(field)
            .map(|value| (reason(field, &value), value))
            .min_by_key(|(reason, _)| distance(reason));
        match nearest {
            Some((reason, value)) => describe(field, Some(&value), reason),
            None => {
                let path = self.paths.id(&field.path);
                let containers = self.leaves.containers.iter().flatten();
                let is_there = containers.copied().any(|known| Some(known) == path);
                let reason = if is_there {
                    Reason::NotAValue
                } else {
                    Reason::Missing
                };
                describe(field, None, reason)
            }
        }
    }

    fn failure_apart(&self, fields: &[&Field], place: usize) -> Failure {
        let field = fields[place];
        let value = self.values(field).find(|value| passes(field, value));
        let than = (0..place)
            .find(|other| matches!(self.hold_together(&[fields[*other], field]), Ok(false)))
            .or(place.checked_sub(1));
        let reason = match (field.wants_value(), than) {
            (true, Some(other)) => Reason::OtherElement {
                than: fields[other].path.to_string(),
            },
            _ => Reason::Present,
        };
        describe(
            field,
            value.or_else(|| self.values(field).next()).as_ref(),
            reason,
        )
    }
}

fn passes(field: &Field, value: &Value<'_>) -> bool {
    field.tests.iter().any(|test| test.holds(value))
}

fn describe(field: &Field, value: Option<&Value<'_>>, reason: Reason) -> Failure {
    let mut operators = field.tests.iter().map(Op::name);
    let first = operators.next().unwrap_or_default();
    let operator = if operators.all(|name| name == first) {
        first
    } else {
        "any of"
    };
    Failure {
        path: field.path.to_string(),
        operator: operator.into(),
        expected: cut(Listed(&field.tests).to_string()),
        actual: value.map(|value| cut(value.to_string())),
        reason,
    }
}

/// Why one value fails a field, by its test that came nearest.
fn reason(field: &Field, value: &Value<'_>) -> Reason {
    field
        .tests
        .iter()
        .map(|test| reason_of(test, value))
        .min_by_key(distance)
        .unwrap_or(Reason::ValueDiffers)
}

/// Smaller is nearer to holding.
fn distance(reason: &Reason) -> u8 {
    match reason {
        Reason::CaseDiffers => 0,
        Reason::Excluded { .. } => 1,
        Reason::OutOfRange => 2,
        Reason::ValueDiffers => 3,
        Reason::TypeDiffers => 4,
        Reason::Present => 5,
        Reason::OtherElement { .. } => 6,
        Reason::NotAValue | Reason::Missing | Reason::Limit { .. } => 7,
    }
}

fn reason_of(test: &Op, value: &Value<'_>) -> Reason {
    match (test, value) {
        (Op::Exists(_), _) => Reason::Present,
        (Op::AnythingBut(excluded), _) => Reason::Excluded {
            by: excluded.inner_name().into(),
        },
        (Op::AllOf(tests), _) => tests
            .iter()
            .find(|test| !test.holds(value))
            .map_or(Reason::ValueDiffers, |test| reason_of(test, value)),
        (Op::Numeric(_), Value::Number(_)) => Reason::OutOfRange,
        (Op::Exact(scalar), _) if scalar.same_type(value) => match (scalar.text(), value) {
            (Some(wanted), Value::Text(text)) if same_but_case(wanted, text) => Reason::CaseDiffers,
            _ => Reason::ValueDiffers,
        },
        (Op::Prefix(head), Value::Text(text)) if fold::starts(head, text) => Reason::CaseDiffers,
        (Op::Suffix(tail), Value::Text(text)) if fold::ends(tail, text) => Reason::CaseDiffers,
        (
            Op::Prefix(_)
            | Op::PrefixIgnoreCase(_)
            | Op::Suffix(_)
            | Op::SuffixIgnoreCase(_)
            | Op::IgnoreCase(_)
            | Op::Wildcard(_)
            | Op::Cidr(_),
            Value::Text(_),
        ) => Reason::ValueDiffers,
        (
            Op::Exact(_)
            | Op::Prefix(_)
            | Op::PrefixIgnoreCase(_)
            | Op::Suffix(_)
            | Op::SuffixIgnoreCase(_)
            | Op::IgnoreCase(_)
            | Op::Wildcard(_)
            | Op::Cidr(_)
            | Op::Numeric(_),
            _,
        ) => Reason::TypeDiffers,
    }
}

fn same_but_case(wanted: &str, text: &[u8]) -> bool {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    fold::key(wanted.as_bytes(), &mut one);
    fold::key(text, &mut other);
    one == other
}

fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(SHOWN_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}
