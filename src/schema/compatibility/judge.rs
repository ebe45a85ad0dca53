//! The semantic dialect: proof, search and algebra in turn, and what to make of their answers.
//!
//! The proof by keyword and the search settle nearly every pair in a fraction of the time that the
//! algebra takes, so the algebra is asked last; each of the three is sound by itself.

use serde_json::Value;

use super::{
    CheckOptions, Difference, Direction, Report, Verdict,
    arena::{Arena, NodeId, Side},
    budget::Budget,
    canonical::{self, Answer, Operand},
    conjunction::Conjunction,
    describe,
    prove::{Gap, Prover},
    read::read,
    search::Search,
};
use crate::schema::{Error, Schema};

/// Most gaps for which a witness is sought.
const GAPS_TRIED_MAX: usize = 32;

/// Most literals of the schemas that serve as candidates.
const POOL_MAX: usize = 200;

/// Checks the directions asked for.
pub(super) fn check(
    old: &str,
    new: &str,
    directions: &[Direction],
    options: &CheckOptions,
) -> Report {
    let budget = Budget::new(options.steps_max, options.time_max);
    let direction = directions.first().copied().unwrap_or(Direction::Backward);
    let compile = |text: &str, kind: &str| {
        Schema::compile(text, &options.schema)
            .map_err(|error: Error| Report::impossible(kind, error.to_string(), direction))
    };
    let (old, new) = match (compile(old, "old-refused"), compile(new, "new-refused")) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(report), _) | (_, Err(report)) => return report,
    };
    if old.content_hash() == new.content_hash() {
        return Report::compatible();
    }
    Judge::new(&old, &new, options, &budget).check(directions)
}

struct Judge<'a> {
    old: &'a Schema,
    new: &'a Schema,
    options: &'a CheckOptions,
    budget: &'a Budget,
    arena: Arena,
    old_root: NodeId,
    new_root: NodeId,
    pool: Vec<Value>,
}

/// One direction: the giving side's values must be taken by the accepting side.
struct Sides<'a> {
    direction: Direction,
    giving: &'a Schema,
    accepting: &'a Schema,
    given: Conjunction,
    accepted: NodeId,
}

impl<'a> Judge<'a> {
    fn new(
        old: &'a Schema,
        new: &'a Schema,
        options: &'a CheckOptions,
        budget: &'a Budget,
    ) -> Self {
        let mut arena = Arena::new(budget.time_left());
        let formats = options.schema.assert_formats;
        let old_root = read(&mut arena, old.document(), Side::Old, old.draft(), formats);
        let new_root = read(&mut arena, new.document(), Side::New, new.draft(), formats);
        arena.classify(budget);
        let mut pool = Vec::new();
        collect_literals(old.document(), &mut pool);
        collect_literals(new.document(), &mut pool);
        Self {
            old,
            new,
            options,
            budget,
            arena,
            old_root,
            new_root,
            pool,
        }
    }

    fn sides(&self, direction: Direction) -> Sides<'a> {
        let (giving, accepting, given, accepted) = match direction {
            Direction::Backward => (self.old, self.new, self.old_root, self.new_root),
            Direction::Forward => (self.new, self.old, self.new_root, self.old_root),
        };
        let given = Conjunction::of(&self.arena, [given]);
        Sides {
            direction,
            giving,
            accepting,
            given,
            accepted,
        }
    }

    fn check(&self, directions: &[Direction]) -> Report {
        let mut report = Report::compatible();
        for direction in directions {
            let one = self.check_direction(&self.sides(*direction));
            report.merge(one, self.options.differences_max);
        }
        report
    }

    fn check_direction(&self, sides: &Sides<'_>) -> Report {
        self.budget.refill(self.options.steps_max);
        let mut prover = Prover::new(&self.arena, self.budget);
        if prover.is_within(&sides.given, sides.accepted) {
            return Report::compatible();
        }
        let gaps = prover.into_gaps();
        self.budget.refill(self.options.steps_max);
        let mut differences = self.refute(sides, &gaps);
        if !differences.is_empty() {
            return Report {
                verdict: Verdict::Incompatible,
                differences,
            };
        }
        let answer = self.ask_algebra(sides);
        if answer.is_covered == Some(true) {
            return Report::compatible();
        }
        self.budget.refill(self.options.steps_max);
        let lost = self.find_lost(&answer);
        if let Some(witness) = lost.iter().find(|value| is_witness(sides, value)) {
            let found = describe::by_violation(witness, sides.accepting, sides.direction);
            return Report {
                verdict: Verdict::Incompatible,
                differences: vec![found],
            };
        }
        for gap in &gaps {
            add(
                &mut differences,
                describe::describe(gap, &self.arena, sides.direction),
            );
        }
        if differences.is_empty() {
            differences.push(describe::unplaced(sides.direction));
        }
        differences.truncate(self.options.differences_max);
        let is_lost = answer.is_covered == Some(false);
        let verdict = if is_lost {
            Verdict::Incompatible
        } else {
            Verdict::Undecided
        };
        Report {
            verdict,
            differences,
        }
    }

    fn ask_algebra(&self, sides: &Sides<'_>) -> Answer {
        let operand = |schema: &Schema| Operand::of(schema.document(), schema.draft());
        let formats = self.options.schema.assert_formats;
        let (giving, accepting) = (operand(sides.giving), operand(sides.accepting));
        canonical::ask(giving, accepting, formats, self.budget.time_left())
    }

    /// Looks for values that the giving side takes and the accepting side refuses: gap by gap,
    /// then over the whole.
    fn refute(&self, sides: &Sides<'_>, gaps: &[Gap]) -> Vec<Difference> {
        let mut search = Search::new(&self.arena, self.budget, &self.pool);
        let mut differences: Vec<Difference> = Vec::new();
        for gap in gaps.iter().take(GAPS_TRIED_MAX) {
            let parts = search.find(&gap.left.with(&self.arena, [], [gap.node]));
            let witness = parts
                .iter()
                .flat_map(|part| search.wrap(&gap.route, part))
                .find(|whole| is_witness(sides, whole));
            if let Some(witness) = witness {
                let mut difference = describe::describe(gap, &self.arena, sides.direction);
                difference.witness = Some(witness);
                add(&mut differences, difference);
            }
            if differences.len() >= self.options.differences_max {
                break;
            }
        }
        if differences.is_empty() {
            self.budget.refill(self.options.steps_max);
            let wanted = sides.given.with(&self.arena, [], [sides.accepted]);
            let found = search
                .find(&wanted)
                .into_iter()
                .chain(self.pool.iter().cloned());
            differences.extend(
                found
                    .into_iter()
                    .find(|value| is_witness(sides, value))
                    .map(|witness| {
                        describe::by_violation(&witness, sides.accepting, sides.direction)
                    }),
            );
        }
        differences
    }

    /// Values of the schema that describes what was lost.
    fn find_lost(&self, answer: &Answer) -> Vec<Value> {
        let Some(lost) = &answer.lost else {
            return Vec::new();
        };
        let mut arena = Arena::new(self.budget.time_left());
        let formats = self.options.schema.assert_formats;
        let draft = crate::schema::Draft::of(lost, self.new.draft()).unwrap_or(self.new.draft());
        let root = read(&mut arena, lost, Side::Old, draft, formats);
        arena.classify(self.budget);
        let wanted = Conjunction::of(&arena, [root]);
        Search::new(&arena, self.budget, &self.pool).find(&wanted)
    }
}

/// The validators' word on a value.
fn is_witness(sides: &Sides<'_>, value: &Value) -> bool {
    sides.giving.is_valid(value) && !sides.accepting.is_valid(value)
}

fn add(differences: &mut Vec<Difference>, difference: Difference) {
    let is_known = differences
        .iter()
        .any(|known| known.path == difference.path && known.kind == difference.kind);
    if !is_known {
        differences.push(difference);
    }
}

/// Constants, defaults and examples anywhere in a document.
fn collect_literals(document: &Value, pool: &mut Vec<Value>) {
    let mut pending = vec![document];
    while let Some(value) = pending.pop() {
        if pool.len() >= POOL_MAX {
            return;
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.as_str(), member) {
                        ("const" | "default" | "example", member) => pool.push(member.clone()),
                        ("enum" | "examples", Value::Array(values)) => {
                            pool.extend(values.iter().take(POOL_MAX / 4).cloned());
                        }
                        _ => pending.push(member),
                    }
                }
            }
            Value::Array(items) => pending.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    pool.dedup();
}
