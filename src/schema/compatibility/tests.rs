//! Behaviour of the comparison of versions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CheckOptions, Dialect, Direction, Level, Report, Verdict, check, check_against};
use crate::schema::{Options, SCHEMA_BYTES_MAX, Schema};

fn compare(old: &Value, new: &Value, level: Level) -> Report {
    check(
        &old.to_string(),
        &new.to_string(),
        level,
        &CheckOptions::default(),
    )
}

fn verdicts(old: &Value, new: &Value) -> (Verdict, Verdict) {
    (
        compare(old, new, Level::Backward).verdict,
        compare(old, new, Level::Forward).verdict,
    )
}

const YES: Verdict = Verdict::Compatible;
const NO: Verdict = Verdict::Incompatible;

#[test]
fn each_kind_of_change_has_the_verdict_that_containment_gives() {
    let closed = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
    let open = |properties: Value| json!({"type": "object", "properties": properties});
    let typed = |properties: Value, rest: Value| json!({"type": "object", "properties": properties, "additionalProperties": rest});
    let string = || json!({"type": "string"});
    for (old, new, backward, forward) in [
        (json!({"title": "a"}), json!({"title": "b"}), YES, YES),
        (string(), json!(true), YES, NO),
        (json!(false), string(), YES, NO),
        (open(json!({})), open(json!({"a": string()})), NO, YES),
        (open(json!({})), open(json!({"a": true})), YES, YES),
        (closed(json!({})), closed(json!({"a": string()})), YES, NO),
        (closed(json!({})), closed(json!({"a": false})), YES, YES),
        (
            typed(json!({}), string()),
            typed(json!({"a": string()}), string()),
            YES,
            YES,
        ),
        (
            typed(json!({}), string()),
            typed(json!({"a": {"type": "string", "maxLength": 1}}), string()),
            NO,
            YES,
        ),
        (
            json!({"required": ["a"]}),
            json!({"required": ["b"]}),
            NO,
            NO,
        ),
        (json!({"required": ["a"]}), json!({}), YES, NO),
        (json!({"minLength": 0}), json!({}), YES, YES),
        (
            json!({"maximum": 5}),
            json!({"exclusiveMaximum": 5}),
            NO,
            YES,
        ),
        (
            json!({"type": "integer", "maximum": 5}),
            json!({"type": "integer", "exclusiveMaximum": 6}),
            YES,
            YES,
        ),
        (json!({"multipleOf": 4}), json!({"multipleOf": 2}), YES, NO),
        (
            json!({"multipleOf": 0.3}),
            json!({"multipleOf": 0.1}),
            YES,
            NO,
        ),
        (
            json!({"type": "integer"}),
            json!({"type": "number"}),
            YES,
            NO,
        ),
        (string(), json!({"type": ["string", "null"]}), YES, NO),
        (json!({"enum": [1]}), json!({"enum": [1, 2]}), YES, NO),
        (json!({"const": 1}), json!({"enum": [1.0]}), YES, YES),
        (
            json!({"anyOf": [string()]}),
            json!({"anyOf": [string(), {"type": "null"}]}),
            YES,
            NO,
        ),
        (
            json!({"oneOf": [string(), {"type": "null"}]}),
            json!({"anyOf": [string(), {"type": "null"}]}),
            YES,
            YES,
        ),
        (
            json!({"oneOf": [string()]}),
            json!({"oneOf": [string(), {"minLength": 3}]}),
            NO,
            NO,
        ),
        (
            json!({"not": string()}),
            json!({"not": {"type": ["string", "null"]}}),
            NO,
            YES,
        ),
        (
            json!({"items": string()}),
            json!({"items": {"maxLength": 3}}),
            NO,
            NO,
        ),
        (
            json!({"items": string()}),
            json!({"prefixItems": [string()]}),
            YES,
            NO,
        ),
        (json!({"uniqueItems": true}), json!({}), YES, NO),
        (
            json!({"contains": string(), "minContains": 2}),
            json!({"contains": string()}),
            YES,
            NO,
        ),
        (
            json!({"contains": string(), "minContains": 0}),
            json!({}),
            YES,
            YES,
        ),
        (
            json!({"dependentRequired": {"a": ["b", "c"]}}),
            json!({"dependentRequired": {"a": ["b"]}}),
            YES,
            NO,
        ),
        (
            json!({"propertyNames": {"maxLength": 3}}),
            json!({"propertyNames": {"maxLength": 5}}),
            YES,
            NO,
        ),
        (
            json!({"patternProperties": {"^x": string()}}),
            json!({}),
            YES,
            NO,
        ),
        (
            json!({"if": string(), "then": {"minLength": 2}}),
            json!({"if": string(), "then": {"minLength": 1}}),
            YES,
            NO,
        ),
        (
            json!({"$defs": {"s": string()}, "items": {"$ref": "#/$defs/s"}}),
            json!({"items": string()}),
            YES,
            YES,
        ),
        (
            json!({"format": "date"}),
            json!({"format": "time"}),
            YES,
            YES,
        ),
    ] {
        assert_eq!(verdicts(&old, &new), (backward, forward), "{old} -> {new}");
    }
}

#[test]
fn an_incompatible_change_comes_with_place_kind_witness_and_suggestion() {
    let old = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let new = json!({
        "type": "object",
        "properties": {"id": {"type": "string"}, "coupon": {"type": "string"}},
        "required": ["coupon"],
    });
    let report = compare(&old, &new, Level::Backward);
    assert_eq!(report.verdict, NO);
    let required = report
        .differences
        .iter()
        .find(|one| one.kind == "required-added");
    let required = required.expect("the requirement is named");
    assert_eq!(required.path, "/required");
    assert_eq!(required.witness, Some(json!({})));
    assert_eq!(
        required.suggestion.as_deref(),
        Some("make `coupon` optional")
    );
    let declared = report
        .differences
        .iter()
        .find(|one| one.kind == "property-added");
    assert!(
        declared
            .expect("the declaration is named")
            .witness
            .is_some()
    );
    let text = serde_json::to_value(&report).expect("it serialises");
    assert_eq!(text["verdict"], "incompatible");
    assert_eq!(text["differences"][0]["direction"], "backward");
}

#[test]
fn recursive_schemas_are_compared_by_induction() {
    let tree = |leaf: Value| {
        json!({
            "$defs": {"node": {
                "type": "object",
                "properties": {"value": leaf, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
                "required": ["value"],
                "additionalProperties": false,
            }},
            "$ref": "#/$defs/node",
        })
    };
    let (narrow, wide) = (
        tree(json!({"type": "integer"})),
        tree(json!({"type": "number"})),
    );
    assert_eq!(verdicts(&narrow, &wide), (YES, NO));
    let list = |extra: Value| {
        let mut list = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        if let (Value::Object(list), Value::Object(extra)) = (&mut list, extra) {
            list.extend(extra);
        }
        list
    };
    assert_eq!(
        verdicts(&list(json!({"minProperties": 1})), &list(json!({}))),
        (YES, NO)
    );
}

#[test]
fn a_change_of_draft_counts_only_where_the_meaning_changes() {
    let in_draft = |uri: &str, rest: Value| {
        let mut document = json!({"$schema": uri});
        if let (Value::Object(document), Value::Object(rest)) = (&mut document, rest) {
            document.extend(rest);
        }
        document
    };
    let (seven, four) = (
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-04/schema#",
    );
    let recent = "https://json-schema.org/draft/2020-12/schema";
    let tuple = json!({"items": [{"type": "string"}], "additionalItems": false});
    let same = json!({"prefixItems": [{"type": "string"}], "items": false});
    assert_eq!(
        verdicts(&in_draft(seven, tuple), &in_draft(recent, same)),
        (YES, YES)
    );
    let integer = || json!({"type": "integer"});
    let report = compare(
        &in_draft(seven, integer()),
        &in_draft(four, integer()),
        Level::Backward,
    );
    assert_eq!(report.verdict, NO, "{report:?}");
    assert_eq!(
        verdicts(&in_draft(four, integer()), &in_draft(seven, integer())).0,
        YES
    );
    let exclusive = json!({"maximum": 5, "exclusiveMaximum": true});
    let bound = json!({"exclusiveMaximum": 5});
    assert_eq!(
        verdicts(&in_draft(four, exclusive), &in_draft(seven, bound)),
        (YES, YES)
    );
}

#[test]
fn a_format_counts_where_it_is_asserted() {
    let schema = Options {
        assert_formats: true,
        ..Options::default()
    };
    let options = CheckOptions {
        schema,
        ..CheckOptions::default()
    };
    let (plain, date) = (
        "{\"type\":\"string\"}",
        "{\"type\":\"string\",\"format\":\"date\"}",
    );
    assert_eq!(check(plain, date, Level::Backward, &options).verdict, NO);
    assert_eq!(check(date, plain, Level::Backward, &options).verdict, YES);
    assert_eq!(
        check(plain, date, Level::Backward, &CheckOptions::default()).verdict,
        YES
    );
}

#[test]
fn a_level_says_which_versions_and_directions_count() {
    let (one, two, three) = ("{\"enum\":[1,2]}", "{\"enum\":[1]}", "{\"enum\":[1,3]}");
    let options = CheckOptions::default();
    let verdict = |level| check_against(&[one, two], three, level, &options).verdict;
    assert_eq!(verdict(Level::Backward), YES);
    assert_eq!(verdict(Level::BackwardTransitive), NO);
    assert_eq!(verdict(Level::Forward), NO);
    assert_eq!(verdict(Level::None), YES);
    assert_eq!(verdict(Level::Full), NO);
    assert_eq!(
        check_against(&[], three, Level::FullTransitive, &options).verdict,
        YES
    );
    let report = check_against(&[one, two], three, Level::BackwardTransitive, &options);
    assert_eq!(report.differences[0].against, Some(0));
    assert_eq!(
        json!(Level::BackwardTransitive),
        json!("BACKWARD_TRANSITIVE")
    );
}

#[test]
fn a_text_that_is_no_schema_leaves_the_check_undecided_and_says_why() {
    let report = check("{", "{}", Level::Backward, &CheckOptions::default());
    assert_eq!(
        (report.verdict, report.differences[0].kind.as_str()),
        (Verdict::Undecided, "old-refused")
    );
    let report = check("{}", "[]", Level::Backward, &CheckOptions::default());
    assert_eq!(
        (report.verdict, report.differences[0].kind.as_str()),
        (Verdict::Undecided, "new-refused")
    );
}

#[test]
fn the_confluent_dialect_judges_by_shape_and_the_lenient_one_more_mildly() {
    let check = |old: &Value, new: &Value, dialect| {
        let options = CheckOptions {
            dialect,
            ..CheckOptions::default()
        };
        super::check(
            &old.to_string(),
            &new.to_string(),
            Level::Backward,
            &options,
        )
    };
    // Proved wrong by `{"a": 1}`, and accepted there all the same.
    let (old, new) = (
        json!({"properties": {"a": true}, "required": ["a"]}),
        json!({"properties": {"a": true}, "required": ["b"]}),
    );
    assert_eq!(check(&old, &new, Dialect::Confluent).verdict, YES);
    assert_eq!(check(&old, &new, Dialect::Semantic).verdict, NO);
    let (old, new) = (
        json!({"properties": {}}),
        json!({"properties": {"a": {"type": "string"}}}),
    );
    let strict = check(&old, &new, Dialect::Confluent);
    assert_eq!(
        strict.differences[0].kind,
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
    );
    assert_eq!(check(&old, &new, Dialect::ConfluentLenient).verdict, YES);
}

/// Checks both ways in every dialect and gives the longest time of one check.
fn slowest(old: &Value, new: &Value) -> Duration {
    let mut slowest = Duration::ZERO;
    for dialect in [
        Dialect::Semantic,
        Dialect::Confluent,
        Dialect::ConfluentLenient,
    ] {
        let options = CheckOptions {
            dialect,
            ..CheckOptions::default()
        };
        let start = Instant::now();
        let report = check(&old.to_string(), &new.to_string(), Level::Full, &options);
        slowest = slowest.max(start.elapsed());
        for difference in &report.differences {
            assert_ne!(difference.kind, "engine-failed");
            let Some(witness) = &difference.witness else {
                continue;
            };
            let schema = |value: &Value| {
                Schema::compile(&value.to_string(), &Options::default()).expect("it compiles")
            };
            let is_taken = [schema(old).is_valid(witness), schema(new).is_valid(witness)];
            let expected = match difference.direction {
                Direction::Backward => [true, false],
                Direction::Forward => [false, true],
            };
            assert_eq!(is_taken, expected, "{witness}");
        }
    }
    slowest
}

#[test]
fn hostile_schemas_end_within_the_limit_of_time() {
    let branch = |index: usize| json!({"type": "object", "properties": {"kind": {"const": index}, "v": {"maximum": index}}, "required": ["kind"]});
    let wide = |count: usize| json!({"oneOf": (0..count).map(branch).collect::<Vec<_>>()});
    let nested = |depth: usize, leaf: Value| {
        (0..depth).fold(leaf, |inner, index| match index % 3 {
            0 => json!({"anyOf": [inner, {"type": "null"}]}),
            1 => json!({"properties": {"a": inner}}),
            _ => json!({"not": inner}),
        })
    };
    let knot = |leaf: &str| {
        json!({
            "$defs": {
                "a": {"anyOf": [{"properties": {"x": {"$ref": "#/$defs/b"}}}, {"items": {"$ref": "#/$defs/a"}}]},
                "b": {"oneOf": [{"properties": {"y": {"$ref": "#/$defs/a"}}, "required": ["y"]}, {"type": leaf}]},
            },
            "allOf": [{"$ref": "#/$defs/a"}, {"not": {"$ref": "#/$defs/b"}}],
        })
    };
    let large = |extra: usize| {
        let member = |index: usize| {
            (
                format!("field_{index}"),
                json!({"type": ["string", "null"], "maxLength": index + extra, "description": "x".repeat(60)}),
            )
        };
        json!({"type": "object", "properties": (0..1700).map(member).collect::<serde_json::Map<_, _>>()})
    };
    let paradox = |value: Value| {
        let branch = |name: &str| json!({"allOf": [{"$ref": "#/$defs/u"}, {"required": [name]}]});
        json!({
            "$defs": {"u": {"anyOf": [branch("a"), branch("b"), {"oneOf": [branch("c"), {"not": {"$ref": "#/$defs/u"}}]}]}},
            "$ref": "#/$defs/u",
            "const": value,
        })
    };
    let chain = |leaf: &str| {
        let link = |index: usize| {
            (
                format!("d{index}"),
                json!({"properties": {"n": {"$ref": format!("#/$defs/d{}", index + 1)}}}),
            )
        };
        let mut links: serde_json::Map<_, _> = (0..4000).map(link).collect();
        links.insert("d4000".to_owned(), json!({"type": leaf}));
        json!({"$defs": links, "$ref": "#/$defs/d0"})
    };
    assert!(large(1).to_string().len() > SCHEMA_BYTES_MAX * 3 / 4);
    for (name, old, new) in [
        ("wide", wide(200), wide(201)),
        (
            "nested",
            nested(60, json!({"maximum": 1})),
            nested(60, json!({"maximum": 2})),
        ),
        ("knot", knot("string"), knot("integer")),
        ("large", large(1), large(2)),
        (
            "empty recursion",
            json!({"$ref": "#"}),
            json!({"type": "string"}),
        ),
        (
            "recursion in place",
            json!({"anyOf": [{"$ref": "#"}, {"type": "string"}]}),
            json!({"not": {"$ref": "#"}}),
        ),
        ("unions in place", paradox(json!(1)), paradox(json!(2))),
        ("chain", chain("string"), chain("integer")),
        (
            "large counts",
            json!({"minItems": u64::MAX, "minLength": 1_000_000_000}),
            json!({"maxItems": 4_000_000_000_u64}),
        ),
        (
            "large numbers",
            json!({"maximum": 1e300, "multipleOf": 1e-300}),
            json!({"minimum": -1e300, "multipleOf": 1e-7}),
        ),
    ] {
        let time = slowest(&old, &new);
        println!("{name}: {time:?}");
        let limit = CheckOptions::default().time_max * 5;
        assert!(time < limit, "{name} took {time:?}");
    }
}

#[test]
fn a_multiple_of_a_multiple_is_one_for_the_validator_too() {
    let schema = |unit: f64| {
        Schema::compile(
            &json!({"multipleOf": unit}).to_string(),
            &Options::default(),
        )
        .expect("it compiles")
    };
    for (large, small) in [
        (0.3, 0.1),
        (0.2, 0.1),
        (0.6, 0.2),
        (1.5, 0.5),
        (0.75, 0.25),
        (0.07, 0.01),
    ] {
        let (giving, accepting) = (schema(large), schema(small));
        let mut taken = 0;
        for count in 1..500 {
            let text = format!("{:.4}", large * f64::from(count));
            let value: Value = serde_json::from_str(&text).expect("it is a number");
            if giving.is_valid(&value) {
                taken += 1;
                assert!(
                    accepting.is_valid(&value),
                    "{value} is a multiple of {large}, not of {small}"
                );
            }
        }
        println!("{taken} of 499 multiples of {large} are taken");
    }
}
