//! Behaviour of compilation and validation.

use serde_json::{Value, json};

use super::{
    DefaultVersion, Draft, Error, Invalid, Mode, Options, PatternFault, SCHEMA_BYTES_MAX, Schema,
    violation::{VALUE_BYTES_MAX, VIOLATIONS_MAX},
};

fn compile(document: &Value) -> Result<Schema, Error> {
    Schema::compile(&document.to_string(), &Options::default())
}

fn violations(document: &Value, data: &Value) -> Invalid {
    let schema = compile(document).expect("the schema compiles");
    schema
        .validate(data.to_string().as_bytes())
        .expect_err("the data is refused")
}

#[test]
fn text_that_is_not_json_is_refused_with_line_and_column() {
    let error = Schema::compile("{\n  \"type\": }", &Options::default()).expect_err("refused");
    assert!(
        matches!(
            error,
            Error::NotJson {
                line: 2,
                column: 11,
                ..
            }
        ),
        "{error:?}"
    );
}

#[test]
fn a_schema_is_an_object_or_a_boolean() {
    for text in ["1", "\"x\"", "null", "[]"] {
        let error = Schema::compile(text, &Options::default()).expect_err("refused");
        assert!(matches!(error, Error::NotASchema { .. }), "{error:?}");
    }
    assert!(Schema::compile("true", &Options::default()).is_ok());
    let nothing = Schema::compile("false", &Options::default()).expect("it compiles");
    assert_eq!(
        nothing.validate(b"1").expect_err("refused").violations[0].keyword,
        "falseSchema"
    );
}

#[test]
fn a_keyword_with_a_wrong_value_is_refused_with_its_pointer() {
    let error = compile(&json!({"properties": {"a": {"minLength": -1}}})).expect_err("refused");
    let Error::MetaSchema { pointer, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(pointer, "/properties/a/minLength");
}

#[test]
fn a_reference_out_of_the_document_is_never_followed() {
    for reference in [
        "http://127.0.0.1:1/a.json",
        "file:///etc/passwd",
        "https://a.example/b#/c",
    ] {
        let error = compile(&json!({"items": {"$ref": reference}})).expect_err("refused");
        let Error::RemoteReference { pointer, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(pointer, "/items/$ref");
    }
}

#[test]
fn a_reference_to_nowhere_is_refused_with_its_pointer() {
    for reference in ["#/$defs/b", "#b", "other.json", "#/$defs/a~1b"] {
        let schema = json!({
            "$defs": {"a": {"const": {"$ref": reference}}},
            "properties": {"fine": {"$ref": "#/$defs/a"}, "x": {"$ref": reference}},
        });
        let error = compile(&schema).expect_err("refused");
        let Error::UnresolvableReference {
            pointer,
            reference: named,
        } = &error
        else {
            panic!("{error:?}")
        };
        assert_eq!(
            (pointer.as_str(), named.as_str()),
            ("/properties/x/$ref", reference)
        );
    }
}

#[test]
fn patterns_without_a_bound_in_time_are_refused_with_the_reason() {
    for (pattern, expected) in [
        ("^(?=a)b", PatternFault::LookAround),
        ("(?<!a)b", PatternFault::LookAround),
        (r"(a)\1", PatternFault::BackReference),
        ("(a", PatternFault::Syntax),
    ] {
        let error =
            compile(&json!({"properties": {"x": {"pattern": pattern}}})).expect_err("refused");
        let Error::Pattern { pointer, fault, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(
            (pointer.as_str(), *fault),
            ("/properties/x/pattern", expected)
        );
        let error = compile(&json!({"items": {"patternProperties": {pattern: true}}}));
        let error = error.expect_err("refused");
        let Error::Pattern { pointer, fault, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(*pointer, format!("/items/patternProperties/{pattern}"));
        assert_eq!(*fault, expected);
    }
}

#[test]
fn a_text_at_the_limit_is_taken_and_one_byte_more_is_not() {
    let text = format!("{{\"title\":\"{}\"}}", "x".repeat(SCHEMA_BYTES_MAX - 12));
    assert_eq!(text.len(), SCHEMA_BYTES_MAX);
    assert!(Schema::compile(&text, &Options::default()).is_ok());
    let error = Schema::compile(&format!("{text} "), &Options::default()).expect_err("refused");
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
}

#[test]
fn a_text_that_nests_too_deep_is_refused() {
    let nested =
        |levels: usize| format!("{}{{}}{}", "{\"not\":".repeat(levels), "}".repeat(levels));
    assert!(Schema::compile(&nested(99), &Options::default()).is_ok());
    for levels in [100, 10_000] {
        let error = Schema::compile(&nested(levels), &Options::default()).expect_err("refused");
        assert!(matches!(error, Error::TooDeep { line: 1, .. }), "{error:?}");
    }
    let brackets = json!({"const": "[".repeat(1000)});
    assert!(compile(&brackets).is_ok());
}

#[test]
fn references_that_multiply_are_refused() {
    let mut definitions = serde_json::Map::new();
    for index in 0..40 {
        let next = json!({"$ref": format!("#/$defs/a{}", index + 1)});
        definitions.insert(format!("a{index}"), json!({"anyOf": [next, next]}));
    }
    definitions.insert("a40".to_owned(), json!({"type": "string"}));
    let error = compile(&json!({"$defs": definitions, "$ref": "#/$defs/a0"})).expect_err("refused");
    assert!(matches!(error, Error::TooBranchy { .. }), "{error:?}");
}

#[test]
fn long_chains_and_deep_data_need_no_stack_of_the_caller() {
    for chain in [1, 2, 10, 100, 200] {
        let mut definitions = serde_json::Map::new();
        for index in 0..chain {
            let next = json!({"$ref": format!("#/$defs/a{}", index + 1)});
            definitions.insert(format!("a{index}"), json!({"allOf": [next]}));
        }
        let last = json!({"properties": {"x": {"$ref": "#/$defs/a0"}}, "minProperties": 1});
        definitions.insert(format!("a{chain}"), last);
        let document = json!({"$defs": definitions, "$ref": "#/$defs/a0"});
        if chain * 2 > super::fan_out::CHAIN_MAX {
            assert!(matches!(compile(&document), Err(Error::TooBranchy { .. })));
            continue;
        }
        let schema = compile(&document).expect("it compiles");
        let data = format!("{}{{}}{}", "{\"x\":".repeat(120), "}".repeat(120));
        assert_eq!(
            schema.validate(data.as_bytes()).expect_err("refused").count,
            1
        );
    }
    for endless in [json!({"$ref": "#"}), json!({"allOf": [{"$ref": "#"}]})] {
        if let Ok(schema) = compile(&endless) {
            assert_eq!(schema.validate(b"1"), Ok(()));
        }
    }
}

#[test]
fn the_draft_is_that_of_the_schema_or_2020_12() {
    let draft = |document: &Value| compile(document).expect("it compiles").draft();
    assert_eq!(draft(&json!({})), Draft::Draft202012);
    for uri in [
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#",
    ] {
        assert_eq!(draft(&json!({"$schema": uri})), Draft::Draft7);
    }
    let error = compile(&json!({"$schema": "https://a.example/meta"})).expect_err("refused");
    assert!(matches!(error, Error::UnknownDraft { .. }), "{error:?}");
    let old = json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"});
    assert!(
        compile(&old)
            .expect("it compiles")
            .validate(b"1.0")
            .is_err()
    );
    assert!(
        compile(&json!({"type": "integer"}))
            .expect("it compiles")
            .validate(b"1.0")
            .is_ok()
    );
}

#[test]
fn formats_refuse_only_where_asked() {
    let text = json!({"format": "date"}).to_string();
    let data = b"\"soon\"";
    let lenient = Schema::compile(&text, &Options::default()).expect("it compiles");
    assert_eq!(lenient.validate(data), Ok(()));
    let options = Options {
        assert_formats: true,
        ..Options::default()
    };
    let strict = Schema::compile(&text, &options).expect("it compiles");
    assert_eq!(
        strict.validate(data).expect_err("refused").violations[0].expected,
        Some(json!("date"))
    );
}

#[test]
fn equal_content_has_one_hash_whatever_the_order_and_white_space() {
    let one = Schema::compile("{\"type\":\"object\",\"title\":\"x\"}", &Options::default());
    let other = Schema::compile(
        "{ \"title\": \"x\", \"type\": \"object\" }",
        &Options::default(),
    );
    let (one, other) = (one.expect("it compiles"), other.expect("it compiles"));
    assert_eq!(one.content_hash(), other.content_hash());
    assert_ne!(one.text(), other.text());
    assert_ne!(
        one.content_hash(),
        compile(&json!({})).expect("it compiles").content_hash()
    );
}

#[test]
fn a_violation_names_the_place_what_was_expected_and_what_came() {
    let schema = json!({
        "$defs": {"amount": {"type": "number", "minimum": 1}},
        "properties": {"lines": {"items": {"properties": {"amount": {"$ref": "#/$defs/amount"}}}}},
        "required": ["id"],
    });
    let invalid = violations(&schema, &json!({"lines": [{"amount": 2}, {"amount": 0}]}));
    assert_eq!(
        serde_json::to_value(&invalid).expect("it serialises"),
        json!({"count": 2, "violations": [
            {
                "instance_path": "", "schema_path": "/required", "keyword": "required",
                "message": "\"id\" is a required property", "expected": "id",
                "actual": {"lines": [{"amount": 2}, {"amount": 0}]},
            },
            {
                "instance_path": "/lines/1/amount", "schema_path": "/$defs/amount/minimum",
                "keyword": "minimum", "message": "0 is less than the minimum of 1",
                "expected": 1, "actual": 0,
            },
        ]})
    );
}

#[test]
fn only_the_first_violations_are_listed_and_all_are_counted() {
    let invalid = violations(&json!({"items": {"type": "string"}}), &json!(vec![1; 1000]));
    assert_eq!(
        (invalid.count, invalid.violations.len()),
        (1000, VIOLATIONS_MAX)
    );
    assert!(invalid.to_string().ends_with("(and 999 more)"), "{invalid}");
}

#[test]
fn data_that_is_not_json_is_a_violation_of_its_own() {
    for data in [&b"{"[..], b"", b"\xff", b"1 2"] {
        let invalid = compile(&json!({}))
            .expect("it compiles")
            .validate(data)
            .expect_err("refused");
        assert_eq!(
            (invalid.count, invalid.violations[0].keyword.as_str()),
            (1, "json")
        );
    }
}

#[test]
fn of_several_branches_the_closest_one_speaks() {
    let payment = |kind: &str, field: &str| {
        json!({
            "type": "object", "required": ["kind", field],
            "properties": {"kind": {"const": kind}, field: {"type": "string"}},
        })
    };
    let schema =
        json!({"oneOf": [payment("card", "number"), payment("bank", "iban"), {"type": "null"}]});
    let invalid = violations(&schema, &json!({"kind": "bank", "iban": 5}));
    assert_eq!(invalid.count, 1, "{invalid:?}");
    assert_eq!(invalid.violations[0].instance_path, "/iban");
    assert_eq!(
        invalid.violations[0].schema_path,
        "/oneOf/1/properties/iban/type"
    );
    let nested =
        json!({"anyOf": [{"type": "null"}, {"properties": {"x": schema}, "required": ["x"]}]});
    let invalid = violations(&nested, &json!({"x": {"kind": "bank", "iban": 5}}));
    assert_eq!(
        (invalid.count, invalid.violations[0].instance_path.as_str()),
        (1, "/x/iban")
    );
}

#[test]
fn branches_that_differ_by_type_alone_are_reported_as_one() {
    let schema = json!({"anyOf": [{"type": "string"}, {"type": ["null", "integer"]}]});
    let invalid = violations(&schema, &json!([1]));
    assert_eq!(
        (invalid.count, invalid.violations[0].keyword.as_str()),
        (1, "anyOf")
    );
    assert_eq!(
        invalid.violations[0].expected,
        Some(json!(["string", "null", "integer"]))
    );
}

#[test]
fn two_branches_of_a_one_of_that_both_match_are_named() {
    let schema = json!({"oneOf": [{"type": "string"}, {"minLength": 1}, {"maxLength": 0}]});
    let invalid = violations(&schema, &json!("a"));
    assert_eq!(
        invalid.violations[0].message,
        "exactly one schema of `oneOf` may match, but these do: 0, 1"
    );
}

#[test]
fn what_the_schema_marks_sensitive_is_never_shown() {
    let secret = "4111-1111";
    let schema = json!({
        "$defs": {"card": {"type": "string", "maxLength": 3, "x-sensitive": true}},
        "allOf": [{"properties": {"card": {"pattern": "^z"}}}],
        "properties": {"card": {"$ref": "#/$defs/card"}, "list": {"items": {"$ref": "#/$defs/card"}}},
        "required": ["id"],
        "maxProperties": 1,
    });
    let invalid = violations(
        &schema,
        &json!({"card": secret, "list": [secret], "open": "shown"}),
    );
    let text = serde_json::to_string(&invalid).expect("it serialises");
    assert_eq!(invalid.count, 5, "{text}");
    assert!(!text.contains(secret), "{text}");
    assert!(text.contains("shown"), "{text}");
}

#[test]
fn long_values_are_cut() {
    let invalid = violations(&json!({"type": "null"}), &json!("é".repeat(10_000)));
    let actual = invalid.violations[0]
        .actual
        .as_ref()
        .expect("it has a value")
        .to_string();
    assert!(actual.len() < VALUE_BYTES_MAX + 40, "{actual}");
    assert!(invalid.violations[0].message.len() < 100);
    let invalid = violations(&json!({"type": "null"}), &json!(vec!["x"; 10_000]));
    let actual = invalid.violations[0]
        .actual
        .as_ref()
        .expect("it has a value")
        .to_string();
    assert!(actual.len() < 2 * VALUE_BYTES_MAX + 40, "{actual}");
}

#[test]
fn modes_and_default_versions_are_written_in_lower_case() {
    assert_eq!(
        json!([Mode::Enforce, Mode::Warn, Mode::Off]),
        json!(["enforce", "warn", "off"])
    );
    assert_eq!(
        json!([DefaultVersion::Latest, DefaultVersion::Number(3)]),
        json!(["latest", 3])
    );
    for (text, expected) in [
        ("\"latest\"", Some(DefaultVersion::Latest)),
        ("3", Some(DefaultVersion::Number(3))),
    ] {
        assert_eq!(serde_json::from_str(text).ok(), expected);
    }
    for text in ["\"newest\"", "-1", "null", "1.5"] {
        assert!(
            serde_json::from_str::<DefaultVersion>(text).is_err(),
            "{text}"
        );
    }
}
