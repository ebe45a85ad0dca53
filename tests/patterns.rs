//! The pattern engine against recorded cases: each alone, all together, explained, and isolated.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dak::pattern::{
    EventLimits, Fault, Index, Input, LimitReached, Limits, Pattern, Reason, RuleId, Scratch,
    explain,
};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct CaseFile {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    pattern: Option<Box<RawValue>>,
    pattern_text: Option<String>,
    event: Option<Box<RawValue>>,
    event_text: Option<String>,
    expect: serde_json::Value,
}

impl Case {
    fn pattern(&self) -> &str {
        match (&self.pattern_text, &self.pattern) {
            (Some(text), _) => text,
            (None, Some(raw)) => raw.get(),
            (None, None) => "null",
        }
    }

    fn event(&self) -> Option<&str> {
        self.event_text
            .as_deref()
            .or_else(|| self.event.as_deref().map(RawValue::get))
    }

    fn must_match(&self) -> bool {
        self.expect == serde_json::Value::Bool(true)
    }

    fn must_be_refused(&self) -> bool {
        self.expect == "invalid"
    }
}

/// The folder of shared vectors; none prints that the test is skipped, and fails under CI.
fn shared(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("DAK_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let folder = root.join(part);
    if folder.exists() {
        return Some(folder);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{} is missing",
        folder.display()
    );
    println!("skipped: {} is missing", folder.display());
    None
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

fn case_files() -> Vec<(String, Vec<Case>)> {
    let Some(vectors) = shared("vectors") else {
        return Vec::new();
    };
    let mut paths = files(&vectors.join("patterns"), "json");
    paths.push(vectors.join("patterns_divergences.json"));
    paths
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let file: CaseFile = serde_json::from_str(&text).unwrap();
            (path.display().to_string(), file.cases)
        })
        .collect()
}

fn matches(index: &Index, event: &str, scratch: &mut Scratch) -> Vec<RuleId> {
    index
        .matches(&Input::raw(event.as_bytes()), scratch)
        .unwrap()
        .to_vec()
}

#[test]
fn every_recorded_case_alone_gives_its_verdict_and_its_explanation_agrees() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (file, cases) in case_files() {
        for case in &cases {
            count += 1;
            if let Err(fault) = check_alone(case) {
                wrong.push(format!(
                    "{file}: {}: {fault}\n  {}\n  {:?}",
                    case.name,
                    case.pattern(),
                    case.event()
                ));
            }
        }
    }
    println!("{count} cases");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn check_alone(case: &Case) -> Result<(), String> {
    let pattern = match Pattern::parse(case.pattern()) {
        Ok(_) if case.must_be_refused() => return Err("accepted".into()),
        Err(_) if case.must_be_refused() => return Ok(()),
        Err(error) => return Err(format!("refused: {error}")),
        Ok(pattern) => Arc::new(pattern),
    };
    let Some(event) = case.event() else {
        return Ok(());
    };
    let index = Index::build([(1, Arc::clone(&pattern))]);
    let matched = !matches(&index, event, &mut Scratch::default()).is_empty();
    if matched != case.must_match() {
        return Err(format!("match is {matched}"));
    }
    let explanation = explain(&pattern, &Input::raw(event.as_bytes()));
    if explanation.matched != matched {
        return Err(format!("explanation is {explanation:?}"));
    }
    if explanation.matched != explanation.failures.is_empty() {
        return Err(format!("explanation without reason: {explanation:?}"));
    }
    Ok(())
}

#[test]
fn every_recorded_case_keeps_its_verdict_beside_all_others_of_its_file() {
    for (file, cases) in case_files() {
        let patterns: Vec<(RuleId, Arc<Pattern>)> = cases
            .iter()
            .zip(0..)
            .filter_map(|(case, id)| Some((id, Arc::new(Pattern::parse(case.pattern()).ok()?))))
            .collect();
        let forward = Index::build(patterns.iter().cloned());
        let backward = Index::build(patterns.iter().rev().cloned());
        let ids = || patterns.iter().map(|(id, _)| *id);
        let readded = forward
            .with_removed(ids().filter(|id| id % 2 == 0))
            .with_added(patterns.iter().filter(|(id, _)| id % 2 == 0).cloned());
        let mut scratch = Scratch::default();
        for (id, case) in (0..).zip(&cases) {
            let Some(event) = case.event() else { continue };
            let all = matches(&forward, event, &mut scratch);
            assert_eq!(
                all.contains(&id),
                case.must_match(),
                "{file}: {}",
                case.name
            );
            assert_eq!(
                all,
                matches(&backward, event, &mut scratch),
                "{file}: {}",
                case.name
            );
            assert_eq!(
                all,
                matches(&readded, event, &mut scratch),
                "{file}: {}",
                case.name
            );
        }
    }
}

#[test]
fn a_pattern_added_after_all_others_were_deleted_is_alone() {
    for (file, cases) in case_files() {
        let mut scratch = Scratch::default();
        let mut index = Index::default();
        for (id, case) in (0..).zip(cases.iter().step_by(7)) {
            let (Ok(pattern), Some(event)) = (Pattern::parse(case.pattern()), case.event()) else {
                continue;
            };
            index = index
                .with_removed(0..id)
                .with_added([(id, Arc::new(pattern))]);
            let matched = matches(&index, event, &mut scratch);
            assert_eq!(matched == [id], case.must_match(), "{file}: {}", case.name);
        }
    }
}

#[derive(Deserialize)]
struct RuleSets {
    sets: Vec<RuleSet>,
}

#[derive(Deserialize)]
struct RuleSet {
    name: String,
    rules: std::collections::BTreeMap<String, Box<RawValue>>,
    events: Vec<RuleSetEvent>,
}

#[derive(Deserialize)]
struct RuleSetEvent {
    event: Box<RawValue>,
    expect: Vec<String>,
}

#[test]
fn rules_of_a_set_do_not_change_one_another() {
    let Some(folder) = shared("vectors/patterns_rulesets") else {
        return;
    };
    let mut scratch = Scratch::default();
    for path in files(&folder, "json") {
        let sets: RuleSets =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for set in sets.sets {
            let names: Vec<&String> = set.rules.keys().collect();
            let rules: Vec<(RuleId, Arc<Pattern>)> = (0..)
                .zip(set.rules.values())
                .map(|(id, raw)| (id, Arc::new(Pattern::parse(raw.get()).unwrap())))
                .collect();
            let forward = Index::build(rules.iter().cloned());
            let backward = Index::build(rules.iter().rev().cloned());
            for case in set.events {
                let mut expected = case.expect;
                expected.sort();
                for index in [&forward, &backward] {
                    let mut found: Vec<String> = matches(index, case.event.get(), &mut scratch)
                        .iter()
                        .map(|id| names[*id as usize].clone())
                        .collect();
                    found.sort();
                    assert_eq!(found, expected, "{}: {}", set.name, case.event);
                }
            }
        }
    }
}

#[derive(Deserialize)]
struct RealPattern {
    name: String,
    pattern: Option<Box<RawValue>>,
    pattern_raw: Option<String>,
    event: Option<Box<RawValue>>,
    expected: Option<serde_json::Value>,
}

#[test]
fn patterns_from_the_world_behave_as_recorded() {
    let Some(folder) = shared("realworld/patterns") else {
        return;
    };
    for path in files(&folder, "jsonl") {
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let real: RealPattern = serde_json::from_str(line).unwrap();
            let text = real
                .pattern_raw
                .as_deref()
                .or_else(|| real.pattern.as_deref().map(RawValue::get))
                .unwrap_or("null");
            let parsed = Pattern::parse(text);
            // EventBridge refuses it; the library it is built on reads `$or` as a field.
            let is_or_as_a_field = real.name.contains("using-or-as-field-name");
            if is_or_as_a_field || real.expected == Some("invalid".into()) {
                assert!(parsed.is_err(), "{}", real.name);
                continue;
            }
            let pattern = parsed.unwrap_or_else(|error| panic!("{}: {error}", real.name));
            let Some(event) = real.event else { continue };
            let explanation = explain(&pattern, &Input::raw(event.get().as_bytes()));
            if let Some(expected) = &real.expected {
                assert_eq!(explanation.matched, *expected == true, "{}", real.name);
            }
            let index = Index::build([(0, Arc::new(pattern))]);
            let matched = !matches(&index, event.get(), &mut Scratch::default()).is_empty();
            assert_eq!(matched, explanation.matched, "{}", real.name);
        }
    }
}

#[path = "fuzz/oracle.rs"]
mod oracle;

/// Rule sets made at random; `DAK_CASES` asks for more.
fn cases() -> u64 {
    let asked = std::env::var("DAK_CASES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(300)
}

#[test]
fn the_index_the_explanation_and_a_plain_evaluator_agree() {
    let mut scratch = Scratch::default();
    let mut matched_count = 0u64;
    for seed in 0..cases() {
        let mut choices = oracle::Choices::from_seed(seed.wrapping_mul(0x1234_5678_9ABC_DEF1));
        let members: Vec<_> = (0..12).map(|_| oracle::pattern(&mut choices)).collect();
        let rules: Vec<(RuleId, Arc<Pattern>)> = (0..)
            .zip(&members)
            .filter_map(|(id, members)| {
                let text = oracle::pattern_text(members, &mut choices);
                match Pattern::parse(&text) {
                    Ok(pattern) => Some((id, Arc::new(pattern))),
                    Err(error) if matches!(error.kind, Fault::TooComplex { .. }) => None,
                    Err(error) => panic!("{text}: {error}"),
                }
            })
            .collect();
        let index = Index::build(rules.iter().cloned());
        let changed = rules
            .iter()
            .rev()
            .fold(Index::default(), |index, (id, pattern)| {
                index.with_added([(*id, Arc::clone(pattern)), (id + 100, Arc::clone(pattern))])
            });
        let changed = changed.with_removed(100..200);
        for _ in 0..8 {
            let event = oracle::event(&mut choices);
            let text = oracle::event_text(&event, &mut choices);
            let input = Input::raw(text.as_bytes());
            let matched = matches(&index, &text, &mut scratch);
            assert_eq!(
                matched,
                matches(&changed, &text, &mut scratch),
                "seed {seed}: {text}"
            );
            for (id, pattern) in &rules {
                let expected = oracle::matches(&members[*id as usize], &event);
                matched_count += u64::from(expected);
                let told = || format!("seed {seed}: {:?} on {text}", members[*id as usize]);
                assert_eq!(matched.contains(id), expected, "index, {}", told());
                assert_eq!(
                    explain(pattern, &input).matched,
                    expected,
                    "explanation, {}",
                    told()
                );
            }
        }
    }
    println!("{matched_count} matches in {} verdicts", cases() * 96);
}

/// Enough rules that lists of the index are long and get levels of their own.
#[test]
fn thousands_of_rules_together_match_as_each_alone() {
    let mut choices = oracle::Choices::from_seed(17);
    let rules: Vec<(RuleId, Vec<oracle::Member>, Arc<Pattern>)> = (0..4_000)
        .filter_map(|id| {
            let members = oracle::pattern(&mut choices);
            let text = oracle::pattern_text(&members, &mut choices);
            Some((id, members, Arc::new(Pattern::parse(&text).ok()?)))
        })
        .collect();
    let numbered = |(id, _, pattern): &(RuleId, _, Arc<Pattern>)| (*id, Arc::clone(pattern));
    let index = Index::build(rules.iter().map(numbered));
    let grown = rules.chunks(700).fold(Index::default(), |index, some| {
        index.with_added(some.iter().map(numbered))
    });
    let mut scratch = Scratch::default();
    for _ in 0..20 {
        let event = oracle::event(&mut choices);
        let text = oracle::event_text(&event, &mut choices);
        let holds = |members: &[oracle::Member]| oracle::matches(members, &event);
        let of_each = rules.iter().filter(|(_, members, _)| holds(members));
        let expected: Vec<RuleId> = of_each.map(|(id, _, _)| *id).collect();
        assert_eq!(matches(&index, &text, &mut scratch), expected, "{text}");
        assert_eq!(matches(&grown, &text, &mut scratch), expected, "{text}");
    }
}

/// Fenced blocks of `docs/patterns.md`: what follows the fence, and the lines.
fn documented() -> Vec<(String, Vec<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/patterns.md");
    let Ok(page) = std::fs::read_to_string(&path) else {
        println!("skipped: {} is missing", path.display());
        return Vec::new();
    };
    let mut blocks: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(kind) => {
                inside = true;
                blocks.push((kind.to_owned(), Vec::new()));
            }
            None if inside => {
                let (_, lines) = blocks.last_mut().unwrap();
                lines.push(line.to_owned());
            }
            None => {}
        }
    }
    blocks
}

#[test]
fn every_documented_example_is_true() {
    let mut pattern = None;
    let mut scratch = Scratch::default();
    for (kind, lines) in documented() {
        let extensions = kind == "pattern extension";
        let limits = Limits {
            extensions,
            ..Limits::default()
        };
        if kind.starts_with("pattern") {
            let parsed = Pattern::parse_with(&lines.join("\n"), &limits);
            pattern = Some(Arc::new(
                parsed.unwrap_or_else(|error| panic!("{lines:?}: {error}")),
            ));
            continue;
        }
        for line in &lines {
            if kind == "refused" {
                assert!(Pattern::parse(line).is_err(), "{line}");
            } else if kind != "text" {
                let pattern = pattern.as_ref().expect("events follow a pattern");
                check_example(pattern, line, kind == "match", &mut scratch);
            }
        }
    }
}

fn check_example(pattern: &Arc<Pattern>, event: &str, expected: bool, scratch: &mut Scratch) {
    let index = Index::build([(0, Arc::clone(pattern))]);
    assert_eq!(
        !matches(&index, event, scratch).is_empty(),
        expected,
        "{pattern:?} on {event}"
    );
    let explanation = explain(pattern, &Input::raw(event.as_bytes()));
    assert_eq!(explanation.matched, expected, "{pattern:?} on {event}");
    assert_eq!(explanation.failures.is_empty(), expected, "{explanation:?}");
}

/// A line of a cases file: a pattern with events, or patterns that are refused.
#[derive(Deserialize)]
struct OwnCase {
    pattern: Option<Box<RawValue>>,
    #[serde(default)]
    matches: Vec<Box<RawValue>>,
    #[serde(default)]
    misses: Vec<Box<RawValue>>,
    #[serde(default)]
    refused: Vec<Box<RawValue>>,
}

#[test]
fn every_operator_keeps_to_its_cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/patterns");
    if !folder.exists() {
        println!("skipped: {} is missing", folder.display());
        return;
    }
    let mut scratch = Scratch::default();
    let limits = Limits {
        extensions: true,
        ..Limits::default()
    };
    for path in files(&folder, "jsonl") {
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let case: OwnCase = serde_json::from_str(line).unwrap();
            for text in &case.refused {
                assert!(Pattern::parse_with(text.get(), &limits).is_err(), "{text}");
            }
            let Some(pattern) = case.pattern else {
                continue;
            };
            let pattern = Arc::new(Pattern::parse_with(pattern.get(), &limits).unwrap());
            for (events, expected) in [(&case.matches, true), (&case.misses, false)] {
                for event in events {
                    check_example(&pattern, event.get(), expected, &mut scratch);
                }
            }
        }
    }
}

#[test]
fn a_refusal_names_the_place_and_what_would_be_right() {
    let told = |text: &str| {
        let error = Pattern::parse(text).unwrap_err();
        (
            error.pointer.clone(),
            error.offset,
            error.message(),
            error.help(),
        )
    };
    let (pointer, offset, message, help) = told(r#"{"detail": {"state": "running"}}"#);
    assert_eq!((pointer.as_str(), offset), ("/detail/state", 21));
    assert_eq!(message, r#""state" must be an object or an array"#);
    assert_eq!(help, r#"put the values in a list: "state": ["running"]"#);
    let (pointer, offset, message, help) = told(r#"{"a/b": ["x", {"EXISTS": true}]}"#);
    assert_eq!((pointer.as_str(), offset), ("/a~1b/1", 14));
    assert_eq!(message, "Unrecognized match type EXISTS");
    assert_eq!(help, r#"did you mean "exists"?"#);
}

#[test]
fn an_explanation_names_the_leaf_the_value_and_the_reason() {
    let pattern = Pattern::parse(
        r#"{"a": ["x"], "b": [5], "c": ["Paid"], "d": [{"anything-but": ["z"]}], "e": [{"exists": false}], "f": [1]}"#,
    )
    .unwrap();
    let event = br#"{"a": "x", "b": "5", "c": "paid", "d": "z", "e": null}"#;
    let told = serde_json::to_value(explain(&pattern, &Input::raw(event))).unwrap();
    let failure = |path: &str,
                   operator: &str,
                   expected: &str,
                   actual: serde_json::Value,
                   reason: serde_json::Value| {
        serde_json::json!({"path": path, "operator": operator, "expected": expected, "actual": actual, "reason": reason})
    };
    let kind = |kind: &str| serde_json::json!({ "kind": kind });
    assert_eq!(
        told,
        serde_json::json!({"matched": false, "held": 1, "failures": [
            failure("b", "exactly", "[5]", "\"5\"".into(), kind("type_differs")),
            failure("c", "exactly", "[\"Paid\"]", "\"paid\"".into(), kind("case_differs")),
            failure("d", "anything-but", "[{\"anything-but\":[\"z\"]}]", "\"z\"".into(),
                serde_json::json!({"kind": "excluded", "by": "exactly"})),
            failure("e", "exists", "[{\"exists\":false}]", "null".into(), kind("present")),
            failure("f", "exactly", "[1]", serde_json::Value::Null, kind("missing")),
        ]})
    );
}

#[test]
fn an_explanation_tells_an_object_from_nothing() {
    let pattern = Pattern::parse(r#"{"a": [1], "b": [1], "c": [1]}"#).unwrap();
    let told = explain(&pattern, &Input::raw(br#"{"a": {"x": 1}, "b": []}"#));
    let reasons: Vec<Reason> = told.failures.into_iter().map(|one| one.reason).collect();
    assert_eq!(
        reasons,
        [Reason::NotAValue, Reason::NotAValue, Reason::Missing]
    );
}

#[test]
fn an_explanation_tells_fields_that_hold_in_different_elements() {
    let pattern = Pattern::parse(r#"{"p": {"f": ["Ann"], "l": ["Two"]}}"#).unwrap();
    let event = br#"{"p": [{"f": "Ann", "l": "One"}, {"f": "Bea", "l": "Two"}]}"#;
    let told = explain(&pattern, &Input::raw(event));
    assert_eq!((told.matched, told.held), (false, 1));
    assert_eq!(told.failures[0].path, "p.l");
    assert_eq!(
        told.failures[0].reason,
        Reason::OtherElement { than: "p.f".into() }
    );
}

#[test]
fn an_event_beyond_a_limit_ends_in_that_limit() {
    let index = Index::build([(
        0,
        Arc::new(Pattern::parse(r#"{"a": ["x"], "b": {"c": [1]}}"#).unwrap()),
    )]);
    let matched = |event: &str, limits: EventLimits| {
        let mut scratch = Scratch::with_limits(limits);
        index
            .matches(&Input::raw(event.as_bytes()), &mut scratch)
            .map(<[RuleId]>::to_vec)
    };
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    assert_eq!(
        matched(&deep, EventLimits::default()),
        Err(LimitReached::Depth { depth_max: 128 })
    );
    let wide = format!("{{\"a\":[{}1]}}", "1,".repeat(100));
    let limits = EventLimits {
        leaves_max: 100,
        ..EventLimits::default()
    };
    assert_eq!(
        matched(&wide, limits),
        Err(LimitReached::Leaves { leaves_max: 100 })
    );
    let unread = format!(
        "{{\"z\":{}1{},\"a\":\"x\",\"b\":{{\"c\":1}}}}",
        "[".repeat(9_000),
        "]".repeat(9_000)
    );
    assert_eq!(matched(&unread, EventLimits::default()), Ok(vec![0]));
}

#[test]
fn two_long_lists_cost_a_walk_and_not_their_product() {
    let pattern = r#"{"a": {"x": [1]}, "b": {"y": [2]}, "c": ["no", {"anything-but": "yes"}]}"#;
    let index = Index::build([(0, Arc::new(Pattern::parse(pattern).unwrap()))]);
    let list = |key: &str| vec![format!("{{\"{key}\":1}}"); 100_000].join(",");
    let event = format!(
        "{{\"a\":[{}],\"b\":[{}],\"c\":\"yes\"}}",
        list("x"),
        list("y")
    );
    let limits = EventLimits {
        work_max: 2_000_000,
        ..EventLimits::default()
    };
    let mut scratch = Scratch::with_limits(limits);
    let matched = index.matches(&Input::raw(event.as_bytes()), &mut scratch);
    assert_eq!(matched, Ok(&[][..]));
}

#[test]
fn an_events_attributes_and_data_are_matched_as_they_came() {
    use dak::event::{Attribute, Data, Event, Value};
    let attribute = |name: &str, value| Attribute {
        name: name.into(),
        value,
    };
    let event = |data: Data| {
        let is_text = matches!(data, Data::Text(_) | Data::Binary(_));
        let content_type = if is_text {
            "text/plain"
        } else {
            "application/json"
        };
        Event::new(
            vec![
                Attribute::text("datacontenttype", content_type),
                Attribute::text("specversion", "1.0"),
                Attribute::text("id", "1"),
                Attribute::text("source", "/orders"),
                Attribute::text("type", "order.placed"),
                attribute("count", Value::Integer(5)),
                attribute("test", Value::Boolean(true)),
            ],
            data,
        )
        .unwrap()
    };
    let holds = |pattern: &str, data: Data| {
        let pattern = Arc::new(Pattern::parse_with(pattern, &Limits::for_events()).unwrap());
        let event = event(data);
        let input = Input::event(&event);
        let index = Index::build([(0, Arc::clone(&pattern))]);
        let matched = index.matches(&input, &mut Scratch::default()).unwrap() == [0];
        assert_eq!(explain(&pattern, &input).matched, matched);
        matched
    };
    let json = || Data::Json(br#"{"state": "on", "n": 1}"#.as_slice().into());
    assert!(holds(
        r#"{"detail-type": ["order.placed"], "detail": {"state": ["on"]}}"#,
        json()
    ));
    assert!(holds(
        r#"{"source": [{"prefix": "/"}], "detail.n": [1]}"#,
        json()
    ));
    assert!(holds(r#"{"count": [5], "test": [true]}"#, Data::Absent));
    assert!(!holds(r#"{"count": ["5"]}"#, Data::Absent));
    assert!(holds(
        r#"{"data": ["hello"]}"#,
        Data::Text(b"hello".as_slice().into())
    ));
    assert!(holds(
        r#"{"data": [{"exists": false}]}"#,
        Data::Binary(b"hello".as_slice().into())
    ));
    assert!(holds(r#"{"data": [{"exists": false}]}"#, Data::Absent));
    assert!(holds(
        r#"{"data": [null]}"#,
        Data::Json(b"null".as_slice().into())
    ));
}
