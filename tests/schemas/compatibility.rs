//! Compatibility against the cases of other registries and checkers.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use dak::schema::{
    Draft, Options, Schema,
    compatibility::{CheckOptions, Dialect, Direction, Level, Report, Verdict, check},
};
use serde_json::Value;

/// One question of a case: a direction with what others know about it.
struct Question {
    name: String,
    old: String,
    new: String,
    direction: Direction,
    draft: Draft,
    has_witness: bool,
    contained: Option<bool>,
}

impl Question {
    fn ask(&self) -> (Report, Duration) {
        let options = CheckOptions {
            schema: Options {
                draft: self.draft,
                ..Options::default()
            },
            ..CheckOptions::default()
        };
        let level = match self.direction {
            Direction::Backward => Level::Backward,
            Direction::Forward => Level::Forward,
        };
        let start = Instant::now();
        let report = check(&self.old, &self.new, level, &options);
        (report, start.elapsed())
    }

    /// Whether every witness of `report` is taken by one version and refused by the other.
    fn has_valid_witness(&self, report: &Report) -> bool {
        let options = Options {
            draft: self.draft,
            ..Options::default()
        };
        let compile = |text: &str| Schema::compile(text, &options).expect("it compiles");
        let (old, new) = (compile(&self.old), compile(&self.new));
        let (giving, accepting) = match self.direction {
            Direction::Backward => (old, new),
            Direction::Forward => (new, old),
        };
        let mut witnesses = report
            .differences
            .iter()
            .filter_map(|one| one.witness.as_ref())
            .peekable();
        witnesses.peek().is_some()
            && witnesses.all(|witness| giving.is_valid(witness) && !accepting.is_valid(witness))
    }
}

fn draft(name: &str) -> Draft {
    serde_json::from_value(Value::from(name)).expect("the draft is known")
}

fn files(folder: &Path, prefix: &str) -> Vec<(String, Value)> {
    let entries = std::fs::read_dir(folder).expect("the folder is readable");
    let mut files: Vec<(String, Value)> = entries
        .map(|entry| entry.expect("the entry is readable").path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?.to_owned();
            let text = std::fs::read_to_string(&path).expect("the file is readable");
            name.starts_with(prefix)
                .then(|| (name, serde_json::from_str(&text).expect("the file is JSON")))
        })
        .collect();
    files.sort_by(|one, other| one.0.cmp(&other.0));
    files
}

fn questions(folder: &Path) -> Vec<Question> {
    let mut questions = Vec::new();
    for (file, content) in files(folder, "") {
        let draft = draft(content["draft"].as_str().expect("a file has a draft"));
        for case in content["cases"].as_array().expect("a file has cases") {
            let name = case["name"].as_str().expect("a case has a name");
            for (direction, semantic, witness) in [
                (Direction::Backward, "semantic", "witness"),
                (Direction::Forward, "semantic_forward", "witness_forward"),
            ] {
                questions.push(Question {
                    name: format!("{file}: {name} ({direction:?})"),
                    old: case["old"].to_string(),
                    new: case["new"].to_string(),
                    direction,
                    draft,
                    has_witness: case.get(witness).is_some(),
                    contained: match case[semantic].as_str() {
                        Some("yes") => Some(true),
                        Some("no") => Some(false),
                        _ => None,
                    },
                });
            }
        }
    }
    questions
}

#[test]
fn semantic_verdicts_agree_with_every_known_witness_and_containment() {
    let Some(folder) = crate::shared("vectors/schema-compat") else {
        return;
    };
    let questions = questions(&folder);
    let (mut witnessed, mut found, mut undecided, mut unproved) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    let mut times = Vec::new();
    for question in &questions {
        let (report, time) = question.ask();
        times.push((time, &question.name));
        match report.verdict {
            Verdict::Compatible if question.has_witness => {
                wrong.push(format!(
                    "compatible in spite of a witness: {}",
                    question.name
                ));
            }
            Verdict::Incompatible if question.contained == Some(true) => {
                wrong.push(format!(
                    "incompatible in spite of containment: {}",
                    question.name
                ));
            }
            Verdict::Undecided => {
                undecided += 1;
                println!(
                    "undecided: {} {:?}",
                    question.name,
                    report.differences.first()
                );
            }
            Verdict::Incompatible if !question.has_valid_witness(&report) => {
                unproved += 1;
                println!(
                    "no witness: {} {:?}",
                    question.name,
                    report.differences.first()
                );
            }
            Verdict::Compatible | Verdict::Incompatible => {}
        }
        if question.has_witness {
            witnessed += 1;
            let is_proved =
                report.verdict == Verdict::Incompatible && question.has_valid_witness(&report);
            found += usize::from(is_proved);
        }
    }
    times.sort();
    let percentile = |part: usize| times[(times.len() - 1) * part / 100].0;
    println!(
        "{} questions, {witnessed} with a known witness, {found} of those refuted with a witness, \
         {undecided} undecided, {unproved} incompatible without a witness, {} wrong; \
         p50 {:?}, p99 {:?}, slowest {:?}",
        questions.len(),
        wrong.len(),
        percentile(50),
        percentile(99),
        times.last(),
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(found * 10 >= witnessed * 9, "{found} of {witnessed}");
    assert!(
        undecided * 100 <= questions.len() * 8,
        "{undecided} of {}",
        questions.len()
    );
}

/// Where our Confluent dialect knowingly answers otherwise than that registry.
const CONFLUENT_DEVIATIONS: [&str; 0] = [];

#[test]
fn the_confluent_dialect_answers_as_that_registry_does() {
    let Some(folder) = crate::shared("vectors/schema-compat") else {
        return;
    };
    let (mut asked, mut same_changes, mut deviations) = (0, 0, Vec::new());
    for (file, content) in files(&folder, "confluent-") {
        let draft = draft(content["draft"].as_str().expect("a file has a draft"));
        for case in content["cases"].as_array().expect("a file has cases") {
            for (dialect, field) in [
                (Dialect::Confluent, "backward"),
                (Dialect::ConfluentLenient, "backward_lenient"),
            ] {
                let expected = case.get(field).or_else(|| case.get("backward"));
                let expected = expected
                    .and_then(Value::as_bool)
                    .expect("a case has a verdict");
                let options = CheckOptions {
                    schema: Options {
                        draft,
                        ..Options::default()
                    },
                    dialect,
                    ..CheckOptions::default()
                };
                let (old, new) = (case["old"].to_string(), case["new"].to_string());
                let report = check(&old, &new, Level::Backward, &options);
                asked += 1;
                if (report.verdict == Verdict::Compatible) != expected {
                    let name = format!("{file}: {}", case["name"].as_str().unwrap_or_default());
                    println!("deviates: {name} ({dialect:?}): {:?}", report.differences);
                    deviations.push(name);
                }
                let refused = case["changes"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str);
                let refused: Vec<&str> = refused
                    .filter_map(|change| change.split(' ').next())
                    .collect();
                let is_named = report
                    .differences
                    .iter()
                    .all(|one| refused.contains(&one.kind.as_str()));
                same_changes += usize::from(is_named);
            }
        }
    }
    println!(
        "{asked} Confluent verdicts, {} deviate, {same_changes} name only changes that it names",
        deviations.len()
    );
    assert_eq!(deviations, CONFLUENT_DEVIATIONS);
    assert!(deviations.len() * 50 <= asked);
}
