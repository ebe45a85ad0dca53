//! Tests of located trees, fields and findings.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::report::{Format, Sources, render};
use super::*;

/// The only document of a text.
fn yaml(text: &str) -> Node {
    let mut documents = parse_yaml(text).unwrap_or_else(|fault| panic!("{text:?}: {fault}"));
    assert_eq!(documents.len(), 1, "{text:?}");
    documents.remove(0)
}

fn yaml_fault(text: &str) -> Fault {
    parse_yaml(text).expect_err(text)
}

fn json(text: &str) -> Node {
    parse_json(text).unwrap_or_else(|fault| panic!("{text:?}: {fault}"))
}

fn json_fault(text: &str) -> Fault {
    parse_json(text).expect_err(text)
}

fn at(line: u32, column: u32) -> Position {
    Position { line, column }
}

/// Every value with its place, written `line:column json`, and every key `line:column key:`.
fn places(node: &Node) -> Vec<String> {
    fn walk(node: &Node, out: &mut Vec<String>) {
        match &node.value {
            Content::List(items) => {
                out.push(format!("{} [", node.at));
                items.iter().for_each(|item| walk(item, out));
            }
            Content::Map(entries) => {
                out.push(format!("{} {{", node.at));
                for (key, value) in entries {
                    out.push(format!("{} {}:", key.at, key.text));
                    walk(value, out);
                }
            }
            _ => out.push(format!("{} {}", node.at, node.to_json())),
        }
    }
    let mut out = Vec::new();
    walk(node, &mut out);
    out
}

// Places in YAML

#[test]
fn block_style_has_exact_places() {
    let node =
        yaml("kind: Rule\npattern:\n  source: [ a ]\n  type:\n    - b\n    -   c: 1\nlast: x\n");
    let expected = [
        "1:1 {",
        "1:1 kind:",
        "1:7 \"Rule\"",
        "2:1 pattern:",
        "3:3 {",
        "3:3 source:",
        "3:11 [",
        "3:13 \"a\"",
        "4:3 type:",
        "5:5 [",
        "5:7 \"b\"",
        "6:9 {",
        "6:9 c:",
        "6:12 1",
        "7:1 last:",
        "7:7 \"x\"",
    ];
    assert_eq!(places(&node), expected);
}

#[test]
fn an_unindented_list_has_exact_places() {
    let node = yaml("targets:\n- a\n- b\nx: 1\n");
    let expected = [
        "1:1 {",
        "1:1 targets:",
        "2:1 [",
        "2:3 \"a\"",
        "3:3 \"b\"",
        "4:1 x:",
        "4:4 1",
    ];
    assert_eq!(places(&node), expected);
}

#[test]
fn a_rule_file_reads_as_written() {
    let text = r#"kind: Rule
name: large-orders-to-fraud
pattern:
  source: [{prefix: /shop/}]
  type: [com.example.order.placed.v1]
  data:
    country: [NO]
    amount: [{numeric: [">=", 5000.00]}]
targets: [fraud-check]
transform:                       # optional
  paths: {order: $.data.orderId, amount: $.data.amount}
  template: {order: <order>, amount: <amount>}
---
kind: Target
url: https://fraud.example/hook
"#;
    let documents = parse_yaml(text).unwrap();
    let expected = concat!(
        r#"{"kind":"Rule","name":"large-orders-to-fraud","pattern":{"source":[{"prefix":"/shop/"}],"#,
        r#""type":["com.example.order.placed.v1"],"data":{"country":["NO"],"amount":[{"numeric":[">=",5000.00]}]}},"#,
        r#""targets":["fraud-check"],"transform":{"paths":{"order":"$.data.orderId","amount":"$.data.amount"},"#,
        r#""template":{"order":"<order>","amount":"<amount>"}}}"#,
    );
    assert_eq!(documents[0].to_json(), expected);
    assert_eq!(
        documents[0].position_of_pointer("/pattern/data/amount/0/numeric/1"),
        at(8, 31)
    );
    assert_eq!(
        documents[0].key_position_of_pointer("/transform/template/amount"),
        at(12, 30)
    );
    assert_eq!(
        documents[1].to_json(),
        r#"{"kind":"Target","url":"https://fraud.example/hook"}"#
    );
    assert_eq!(documents[1].position_of_pointer("/url"), at(15, 6));
}

#[test]
fn lists_in_lists_and_below_tags_have_exact_places() {
    let node = yaml(
        "k:\n- - a\n  - b\n-\n  c\n- # nothing\n-\nl: !!seq\n- d\nm:\n    # far in\n    - e\nn: &x\n- f\n? o\n: - g\n  -\n",
    );
    let expected = [
        "1:1 {",
        "1:1 k:",
        "2:1 [",
        "2:3 [",
        "2:5 \"a\"",
        "3:5 \"b\"",
        "5:3 \"c\"",
        "6:1 null",
        "7:1 null",
        "8:1 l:",
        "8:4 [",
        "9:3 \"d\"",
        "10:1 m:",
        "12:5 [",
        "12:7 \"e\"",
        "13:1 n:",
        "13:4 [",
        "14:3 \"f\"",
        "15:3 o:",
        "16:3 [",
        "16:5 \"g\"",
        "17:3 null",
    ];
    assert_eq!(places(&node), expected);
    let node = yaml("- a:\n  - b\n  c:\n  -\n    - d\n");
    let expected = [
        "1:1 [",
        "1:3 {",
        "1:3 a:",
        "2:3 [",
        "2:5 \"b\"",
        "3:3 c:",
        "4:3 [",
        "5:5 [",
        "5:7 \"d\"",
    ];
    assert_eq!(places(&node), expected);
}

#[test]
fn flow_style_has_exact_places() {
    let node = yaml("{a: [1, {\"b\": null}],\n  'c' : true, d}");
    let expected = [
        "1:1 {",
        "1:2 a:",
        "1:5 [",
        "1:6 1",
        "1:9 {",
        "1:10 b:",
        "1:15 null",
        "2:3 c:",
        "2:9 true",
        "2:15 d:",
        "2:15 null",
    ];
    assert_eq!(places(&node), expected);
}

#[test]
fn a_value_left_out_stands_where_its_key_stands() {
    let node = yaml("a:\n  b:\n\nc:   # nothing\nd: {e: , f: 1}\n? g\n");
    let expected = [
        "1:1 {", "1:1 a:", "2:3 {", "2:3 b:", "2:3 null", "4:1 c:", "4:1 null", "5:1 d:", "5:4 {",
        "5:5 e:", "5:5 null", "5:10 f:", "5:13 1", "6:3 g:", "6:3 null",
    ];
    assert_eq!(places(&node), expected);
    assert_eq!(
        places(&yaml("- \n- 1\n-\n")),
        ["1:1 [", "1:1 null", "2:3 1", "3:1 null"]
    );
}

#[test]
fn text_blocks_and_long_strings_have_exact_places() {
    let node = yaml("a: |\n  one\n  two\nb: >-\n  x\n  y\nc: \"p\n  q\"\nd: r\n  s\ne: 1\n");
    let expected = [
        "1:1 {",
        "1:1 a:",
        "2:3 \"one\\ntwo\\n\"",
        "4:1 b:",
        "5:3 \"x y\"",
        "7:1 c:",
        "7:4 \"p q\"",
        "9:1 d:",
        "9:4 \"r s\"",
        "11:1 e:",
        "11:4 1",
    ];
    assert_eq!(places(&node), expected);
}

#[test]
fn places_run_on_through_several_documents() {
    let documents = parse_yaml("# head\na: 1\n---\n# next\nb: 2\n...\n--- c\n---\n").unwrap();
    let places: Vec<_> = documents.iter().flat_map(places).collect();
    let expected = [
        "2:1 {",
        "2:1 a:",
        "2:4 1",
        "5:1 {",
        "5:1 b:",
        "5:4 2",
        "7:5 \"c\"",
        "8:1 null",
    ];
    assert_eq!(places, expected);
}

#[test]
fn a_text_without_content_has_no_documents() {
    for text in ["", "\n", "# only a comment\n", "\u{FEFF}", "  \r\n"] {
        assert_eq!(parse_yaml(text), Ok(vec![]), "{text:?}");
    }
}

#[test]
fn every_line_break_counts_once() {
    let expected = [
        "2:1 {", "2:1 a:", "2:4 1", "3:1 b:", "4:3 {", "4:3 c:", "4:6 2",
    ];
    for line_break in ["\n", "\r\n", "\r"] {
        let text = "# x\na: 1\nb:\n  c: 2\n".replace('\n', line_break);
        assert_eq!(places(&yaml(&text)), expected, "{line_break:?}");
        let text = "\n{\"a\": 1,\n\"b\":\n  {\"c\": 2}}".replace('\n', line_break);
        let expected = [
            "2:1 {", "2:2 a:", "2:7 1", "3:1 b:", "4:3 {", "4:4 c:", "4:9 2",
        ];
        assert_eq!(places(&json(&text)), expected, "{line_break:?}");
    }
}

#[test]
fn a_byte_order_mark_takes_no_column() {
    assert_eq!(
        places(&yaml("\u{FEFF}a: 1\n")),
        ["1:1 {", "1:1 a:", "1:4 1"]
    );
    assert_eq!(yaml_fault("\u{FEFF}a: \u{7}").at, at(1, 4));
    assert_eq!(json_fault("\u{FEFF}{}").at, at(1, 1));
}

#[test]
fn columns_count_characters() {
    let expected = [
        "1:1 {",
        "1:2 দেশ:",
        "1:8 \"বাংলা\"",
        "1:17 k:",
        "1:22 \"🦀\"",
        "1:27 l:",
        "1:32 1",
    ];
    let text = "{\"দেশ\": \"বাংলা\", \"k\": \"🦀\" , \"l\": 1}";
    let shift = |places: Vec<String>| places.join("\n");
    assert_eq!(shift(places(&yaml(text))), shift(places(&json(text))));
    let found = places(&json(text));
    assert_eq!(found.len(), expected.len());
    for place in found {
        let (place, shown) = place.split_once(' ').unwrap();
        let column: usize = place.split_once(':').unwrap().1.parse().unwrap();
        let there: String = text.chars().skip(column - 1).collect();
        assert!(
            there
                .trim_start_matches('"')
                .starts_with(shown.trim_matches(['"', ':'])),
            "{place} {shown}"
        );
    }
}

#[test]
fn a_tab_is_one_column_and_no_indentation() {
    assert_eq!(places(&yaml("a: \t1\n")), ["1:1 {", "1:1 a:", "1:5 1"]);
    assert_eq!(places(&json("[\t1]")), ["1:1 [", "1:3 1"]);
    let fault = yaml_fault("a:\n\tb: 1\n");
    assert_eq!(
        (fault.at.line, fault.hint.as_deref()),
        (2, Some("use spaces in place of tabs"))
    );
}

#[test]
fn tags_and_anchors_belong_to_their_value() {
    let node = yaml("a: !!str 1\nb: &x 2\nc: *x\nd: &y\n  e: 1\nf: [*y]\n");
    let expected = [
        "1:1 {",
        "1:1 a:",
        "1:4 \"1\"",
        "2:1 b:",
        "2:4 2",
        "3:1 c:",
        "3:4 2",
        "4:1 d:",
        "4:4 {",
        "5:3 e:",
        "5:6 1",
        "6:1 f:",
        "6:4 [",
        "6:5 {",
        "5:3 e:",
        "5:6 1",
    ];
    assert_eq!(places(&node), expected);
}

// The core schema

#[test]
fn plain_scalars_follow_the_core_schema() {
    let cases = [
        ("null", "null"),
        ("~", "null"),
        ("Null", "null"),
        ("NULL", "null"),
        ("nUll", "\"nUll\""),
        ("true", "true"),
        ("True", "true"),
        ("FALSE", "false"),
        ("yes", "\"yes\""),
        ("No", "\"No\""),
        ("on", "\"on\""),
        ("off", "\"off\""),
        ("y", "\"y\""),
        ("0", "0"),
        ("-0", "-0"),
        ("+12", "12"),
        ("007", "7"),
        ("-007", "-7"),
        ("00", "0"),
        ("0x1F", "31"),
        ("0o17", "15"),
        ("0xg", "\"0xg\""),
        ("-0x1", "\"-0x1\""),
        ("0b1", "\"0b1\""),
        ("1_000", "\"1_000\""),
        ("12:30:45", "\"12:30:45\""),
        ("1.50", "1.50"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("5.", "5"),
        ("5.e3", "5e3"),
        ("1E+05", "1E+05"),
        ("01.50e-3", "1.50e-3"),
        ("1e", "\"1e\""),
        (".", "\".\""),
        ("-", "[null]"),
        ("1.2.3", "\"1.2.3\""),
        ("e3", "\"e3\""),
        ("+", "\"+\""),
        ("0x", "\"0x\""),
        (
            "0xffffffffffffffffffffffffffffffff",
            "340282366920938463463374607431768211455",
        ),
        ("12345678901234567890123", "12345678901234567890123"),
        ("2024-01-01", "\"2024-01-01\""),
        ("é", "\"é\""),
        ("'1'", "\"1\""),
        ("\"null\"", "\"null\""),
        ("''", "\"\""),
        ("!!str null", "\"null\""),
        ("! 12", "\"12\""),
        ("!!int \"3\"", "3"),
        ("!!float 3", "3"),
        ("!!null ''", "null"),
        ("!!bool 'true'", "true"),
        ("!<tag:yaml.org,2002:str> 1", "\"1\""),
        ("!!seq [1]", "[1]"),
        ("!!map {a: 1}", "{\"a\":1}"),
        ("!!str", "\"\""),
    ];
    for (text, expected) in cases {
        assert_eq!(yaml(text).to_json(), expected, "{text:?}");
    }
}

#[test]
fn number_spelling_survives() {
    for text in [
        "1.0",
        "1.10",
        "-0.0",
        "1e5",
        "1E+5",
        "100000000000000000000.000",
        "0.1e-7",
        "9007199254740993",
    ] {
        assert_eq!(yaml(text).as_number_text(), Some(text));
        assert_eq!(json(text).as_number_text(), Some(text));
        assert_eq!(json(&format!("[{text}]")).to_json(), format!("[{text}]"));
    }
}

#[test]
fn what_json_cannot_hold_is_refused() {
    let texts = [
        ".inf",
        "-.INF",
        "+.Inf",
        ".nan",
        ".NaN",
        "1e400",
        "-1e400",
        "0xfffffffffffffffffffffffffffffffff",
        "!!int 1.5",
        "!!int abc",
        "!!bool yes",
        "!!null 1",
        "!!float x",
        "!!seq 1",
        "!!map [1]",
        "!!str [1]",
        "!!seq {a: 1}",
        "!!binary aGk=",
        "!!set {a}",
        "!!timestamp 2024-01-01",
        "!local 1",
        "!<x> 1",
        "!!merge <<",
        "<<: {a: 1}",
        "a: &x {b: 1}\nc: {<<: *x}",
        "? [a]\n: 1",
        "? {a: 1}\n: 1",
        "{[a]: 1}",
        ": 1",
        "{: 1}",
        "&a a: 1\n*a : 2",
    ];
    for text in texts {
        assert!(parse_yaml(text).is_err(), "{text:?}");
    }
    for text in [
        "'.inf'", "'<<': 1", "- .info", "'': 1", "a: inf", "a: nan", "a: .nanx",
    ] {
        assert!(parse_yaml(text).is_ok(), "{text:?}");
    }
}

#[test]
fn a_merge_key_is_refused_where_it_stands_with_advice() {
    let fault = yaml_fault("base: &base {a: 1}\nrule:\n  <<: *base\n");
    assert_eq!(fault.at, at(3, 3));
    assert!(fault.hint.unwrap().contains("write the fields out"));
}

#[test]
fn keys_are_taken_as_written() {
    let node = yaml("1: a\n1.0: b\ntrue: c\n0x1: d\nnull: e\n'x y': f\n\"\\u0041\": g\n");
    assert_eq!(
        node.to_json(),
        r#"{"1":"a","1.0":"b","true":"c","0x1":"d","null":"e","x y":"f","A":"g"}"#
    );
}

#[test]
fn the_second_of_two_equal_keys_is_the_fault() {
    assert_eq!(yaml_fault("a: 1\nb: 2\na: 3\n").at, at(3, 1));
    assert_eq!(yaml_fault("x: {b: 1, 'b': 2}\n").at, at(1, 11));
    assert_eq!(json_fault(r#"{"a":{"b":1,"\u0062":2}}"#).at, at(1, 13));
    let many: String = (0..50).map(|i| format!("k{i}: 1\n")).collect();
    let fault = yaml_fault(&format!("{many}k7: 2\n"));
    assert_eq!(
        (fault.at, fault.message.as_str()),
        (at(51, 1), "the key `k7` is already there, on line 8")
    );
    assert!(
        parse_yaml("- {a: 1}\n- {a: 1}\n---\n{a: 1}\n").is_ok_and(|documents| documents.len() == 2)
    );
}

#[test]
fn syntax_faults_have_places_and_advice() {
    let fault = yaml_fault("a: b: c\n");
    assert_eq!(fault.at, at(1, 5));
    assert!(fault.hint.unwrap().contains("quotes"));
    assert_eq!(yaml_fault("a: [1, 2\nb: 3\n").at.line, 2);
    assert_eq!(yaml_fault("a: *nowhere\n").at, at(1, 4));
    assert_eq!(yaml_fault("a: 1\n b: 2\n").at.line, 2);
    assert_eq!(yaml_fault("x: 1\na: [é").at, at(2, 6));
    assert_eq!(
        yaml_fault(&"[".repeat(1000)).message,
        "nested deeper than 100 levels"
    );
}

#[test]
fn no_part_of_a_text_vanishes_behind_a_control_character() {
    for c in ['\0', '\u{1}', '\u{1b}', '\u{7f}', '\u{9f}', '\u{fffe}'] {
        let fault = yaml_fault(&format!("a: 1\nb: é{c}\nc: 3\n"));
        assert_eq!(fault.at, at(2, 5), "{c:?}");
    }
    assert!(parse_yaml("a: \"\\0\\e\"\nb: \u{85}x\u{a0}\u{2028}\u{10ffff}").is_ok());
}

// Bombs

#[test]
fn aliases_copy_within_a_limit() {
    let laughs: String = (1..40)
        .map(|i| format!("a{i}: &a{i} [*a{0}, *a{0}, *a{0}]\n", i - 1))
        .collect();
    let fault = yaml_fault(&format!("a0: &a0 [lol, lol]\n{laughs}"));
    assert!(fault.message.contains("copy more than"), "{fault}");
    let long = "x".repeat(100_000);
    let copies = "- *a\n".repeat(20);
    assert!(
        yaml_fault(&format!("- &a {long}\n{copies}"))
            .message
            .contains("copy more than")
    );
    let copies = "- *a\n".repeat(1000);
    assert!(parse_yaml(&format!("- &a {{host: example, port: 80}}\n{copies}")).is_ok());
}

#[test]
fn nested_anchors_copy_within_a_limit() {
    let open: String = (0..99).map(|i| format!("&a{i} [")).collect();
    let text = format!("{open}{}{}", "x,".repeat(20_000), "]".repeat(99));
    assert!(yaml_fault(&text).message.contains("copy more than"));
}

#[test]
fn an_alias_reaches_neither_itself_nor_another_document() {
    assert!(yaml_fault("&a [*a]").message.contains("no finished value"));
    assert!(parse_yaml("- &a 1\n---\n- *a\n").is_err());
    assert_eq!(yaml("- &a 1\n- *a\n- &a 2\n- *a\n").to_json(), "[1,1,2,2]");
}

#[test]
fn nesting_ends_at_the_limit_in_both_languages() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let maps = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    for text in [nested(DEPTH_MAX), maps(DEPTH_MAX)] {
        let node = json(&text);
        assert_eq!(yaml(&text.replace(':', ": ")).to_value(), node.to_value());
        assert_eq!(node.to_json(), text);
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }
    for text in [
        nested(DEPTH_MAX + 1),
        maps(DEPTH_MAX + 1),
        "[".repeat(1 << 20),
        "{\"a\":".repeat(1 << 18),
    ] {
        assert!(parse_json(&text).is_err());
        assert!(parse_yaml(&text).is_err());
    }
    assert_eq!(json_fault(&nested(DEPTH_MAX + 1)).at, at(1, 101));
    assert!(
        yaml_fault(&"- ".repeat(1 << 18))
            .message
            .contains("nested deeper")
    );
    assert!(parse_yaml(&"? ".repeat(1 << 18)).is_err());
    let half = format!("- &a {}\n", nested(60));
    assert!(parse_yaml(&format!("{half}- {}*a{}\n", "[".repeat(39), "]".repeat(39))).is_ok());
    let fault = yaml_fault(&format!("{half}- {}*a{}\n", "[".repeat(40), "]".repeat(40)));
    assert!(fault.message.contains("nested deeper"), "{fault}");
}

#[test]
fn a_large_text_is_read_in_linear_time() {
    let items: Vec<String> = (0..200_000)
        .map(|i| format!("{{\"k{i}\":\"é\"}}"))
        .collect();
    let text = format!("[{}]", items.join(","));
    let node = json(&text);
    assert_eq!(node.as_list().unwrap().len(), 200_000);
    let last = node.position_of_pointer("/199999").column as usize;
    assert_eq!(text.chars().count() - last, items[199_999].chars().count());
    assert_eq!(yaml(&text), node);
}

// JSON

#[test]
fn json_faults_have_places_and_advice() {
    let cases = [
        ("{\"a\": 1,}", 1, 9, Some("remove the comma before it")),
        ("[1,\n 2,\n]", 3, 1, Some("remove the comma before it")),
        (
            "{'a': 1}",
            1,
            2,
            Some("JSON strings stand in double quotes"),
        ),
        (
            "// x\n{}",
            1,
            1,
            Some("JSON has no comments; a YAML file may have them"),
        ),
        ("", 1, 1, None),
        ("[1", 1, 3, None),
        ("{\"a\" 1}", 1, 6, None),
        ("[1 2]", 1, 4, None),
        ("01", 1, 1, None),
        ("1.", 1, 3, None),
        ("-", 1, 2, None),
        ("1e", 1, 3, None),
        ("nul", 1, 1, None),
        ("{} x", 1, 4, None),
        ("\"é\\x\"", 1, 3, Some("write a backslash itself as \\\\")),
        (
            "\"a\nb\"",
            1,
            3,
            Some("write it as an escape, such as \\n or \\t"),
        ),
        ("\"a", 1, 3, None),
        ("\"\\ud800\"", 1, 2, None),
        ("\"\\udc00\"", 1, 2, None),
        ("\"\\ud800\\u0041\"", 1, 2, None),
        ("\"\\u00é0\"", 1, 2, None),
        (
            "1e999",
            1,
            1,
            Some("put it in quotes if it is meant as text"),
        ),
        (
            "\u{FEFF}1",
            1,
            1,
            Some("save the file without a byte order mark"),
        ),
        ("{1: 2}", 1, 2, None),
        ("[+1]", 1, 2, None),
        ("[.5]", 1, 2, None),
        ("\u{a0}1", 1, 1, None),
    ];
    for (text, line, column, hint) in cases {
        let fault = json_fault(text);
        assert_eq!(
            (fault.at, fault.hint.as_deref()),
            (at(line, column), hint),
            "{text:?}: {fault}"
        );
    }
}

#[test]
fn escapes_are_read_and_written() {
    let node = json(r#""\"\\\/\b\f\n\r\t\u00e9\ud83e\udd80\u0000""#);
    assert_eq!(node.as_str(), Some("\"\\/\u{8}\u{c}\n\r\té🦀\0"));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&node.to_json()).unwrap(),
        node.to_value()
    );
}

#[test]
fn values_come_back_from_trees() {
    let value = json!({"b": [1, -2, 1.5, 1e300, 18_446_744_073_709_551_615_u64, null, true], "a": {"x": "é\n"}, "": []});
    let node = Node::from_value(&value);
    assert_eq!(node.to_value(), value);
    assert_eq!(json(&node.to_json()).to_value(), value);
    assert_eq!(node.to_json(), value.to_string());
    assert_eq!(node.at, Position::START);
}

#[test]
fn numbers_are_read_as_integers_where_they_are_whole() {
    let cases = [
        ("0", Some(0)),
        ("5.0", Some(5)),
        ("1e3", Some(1000)),
        ("18446744073709551615", Some(u64::MAX)),
        ("-0", Some(0)),
        ("1.5", None),
        ("-1", None),
        ("1e300", None),
        ("18446744073709551616", None),
        ("\"5\"", None),
    ];
    for (text, expected) in cases {
        assert_eq!(json(text).as_u64(), expected, "{text}");
    }
}

// Pointers

#[test]
fn pointers_find_values_and_places() {
    let node = yaml("a/b:\n  - x: 1\n  - ~\nc~d: {'': 2}\n");
    assert_eq!(
        node.at_pointer("/a~1b/0/x").map(Node::to_json).as_deref(),
        Some("1")
    );
    assert_eq!(
        node.at_pointer("/c~0d/").map(Node::to_json).as_deref(),
        Some("2")
    );
    assert_eq!(node.at_pointer(""), Some(&node));
    for pointer in [
        "/nope",
        "/a~1b/2",
        "/a~1b/00",
        "/a~1b/+0",
        "/a~1b/-",
        "a/b",
        "/a~1b/0/x/y",
        "/",
    ] {
        assert_eq!(node.at_pointer(pointer), None, "{pointer}");
    }
    assert_eq!(node.position_of_pointer("/a~1b/0/x"), at(2, 8));
    assert_eq!(node.key_position_of_pointer("/a~1b/0/x"), at(2, 5));
    assert_eq!(node.position_of_pointer("/a~1b/0/nope/deeper"), at(2, 5));
    assert_eq!(node.key_position_of_pointer("/a~1b/7"), at(1, 1));
    assert_eq!(node.key_position_of_pointer("/a~1b/1"), at(3, 5));
    assert_eq!(node.position_of_pointer("/nope"), at(1, 1));
    let long: String = (0..12).map(|i| format!("- {i}\n")).collect();
    assert_eq!(yaml(&long).position_of_pointer("/10"), at(11, 3));
}

// Fields

#[test]
fn fields_read_what_is_right_without_a_fault() {
    let node = yaml(
        "kind: Target\nname: fraud-check\nenabled: true\nconcurrency: 8\nrate: 1.5\ntimeout: 1h30m\nwait: 2.5\nthreshold: 64KiB\nlimit: 100\n\
         order: by_key\ntargets: [a, b]\none: c\npattern: {x: 1}\nheaders: {a: b}\ntests: [1]\nretry: {max: 3}\n",
    );
    let mut fields = Fields::new(&node, "a target");
    fields.ignore("kind");
    assert_eq!(fields.required_string("name"), Some("fraud-check"));
    assert_eq!(fields.required_name("name").unwrap(), "fraud-check");
    assert_eq!(fields.bool("enabled"), Some(true));
    assert_eq!(fields.integer("concurrency", 1..=1024), Some(8));
    assert_eq!(fields.number("rate", 0.0..=10.0), Some(1.5));
    assert_eq!(fields.duration("timeout"), Some(Duration::from_secs(5400)));
    assert_eq!(
        fields.duration_within("wait", Duration::ZERO..=Duration::from_secs(3)),
        Some(Duration::from_millis(2500))
    );
    assert_eq!(fields.size("threshold"), Some(65536));
    assert_eq!(fields.size_within("limit", 1..=100), Some(100));
    assert_eq!(fields.choice("order", &["none", "by_key"]), Some("by_key"));
    assert_eq!(
        fields.choice_of("order", &[("none", 0), ("by_key", 1)]),
        Some(1)
    );
    assert_eq!(fields.strings("targets"), Some(vec!["a", "b"]));
    assert_eq!(fields.strings("one"), Some(vec!["c"]));
    assert_eq!(
        fields.names("targets").unwrap()[1],
        (Name::parse("b").unwrap(), at(11, 14))
    );
    assert_eq!(
        fields.required_node("pattern").map(|node| node.at),
        Some(at(13, 10))
    );
    assert_eq!(fields.string_map("headers").unwrap()[0].1, "b");
    assert_eq!(fields.list("tests").map(<[Node]>::len), Some(1));
    let mut retry = fields.nested("retry", "a retry policy").unwrap();
    assert_eq!(retry.integer("max", 0..=10), Some(3));
    fields.absorb(retry);
    assert_eq!(fields.string("absent"), None);
    assert_eq!(fields.duration("absent"), None);
    assert_eq!(fields.finish(), []);
}

#[test]
fn every_fault_of_a_map_is_told_in_the_order_of_the_text() {
    let node = yaml(
        "concurency: 8\nenabled: yes\ntimeout: 30 parsecs\nthreshold: -1\nlimit: 0\nnegative: -3\nhalf: 1.5\norder: by-key\nmode: x\n\
         targets: [a, 1]\nname: 12\ndescription:\nowner: '-x'\nretry: {maxx: 1}\nheaders: {a: 1}\n",
    );
    let mut fields = Fields::new(&node, "a target");
    assert_eq!(fields.integer("concurrency", 1..=1024), None);
    assert_eq!(fields.bool("enabled"), None);
    assert_eq!(fields.duration("timeout"), None);
    assert_eq!(fields.size("threshold"), None);
    assert_eq!(fields.integer("limit", 1..=9), None);
    assert_eq!(fields.integer("negative", 0..=9), None);
    assert_eq!(fields.integer("half", 0..=9), None);
    assert_eq!(fields.choice("order", &["none", "by_key"]), None);
    assert_eq!(fields.choice("mode", &["enforce", "off"]), None);
    assert_eq!(fields.strings("targets"), Some(vec!["a"]));
    assert_eq!(fields.required_string("name"), None);
    assert_eq!(fields.string("description"), None);
    assert_eq!(fields.name("owner"), None);
    fields.require("url");
    let mut retry = fields.nested("retry", "a retry policy").unwrap();
    assert_eq!(retry.integer("max", 0..=10), None);
    fields.absorb(retry);
    assert_eq!(fields.string_map("headers"), Some(vec![]));
    let faults: Vec<String> = fields.finish().iter().map(Fault::to_string).collect();
    let expected = [
        "line 1, column 1: a target must have the field `url`",
        "line 1, column 1: a target has no field `concurency` (did you mean `concurrency`?)",
        "line 2, column 10: `enabled` of a target must be true or false, found a string",
        "line 3, column 10: `timeout` of a target is not a duration such as 30s or 1h30m: the unit \"parsecs\" is not known; use one of ms, s, m, h, d",
        "line 4, column 12: `threshold` of a target is not a size such as 64KiB or 1MB: \"-1\" does not start with a number",
        "line 5, column 8: `limit` of a target must be from 1 to 9",
        "line 6, column 11: `negative` of a target must be from 0 to 9",
        "line 7, column 7: `half` of a target must be a whole number, found a number",
        "line 8, column 8: `order` of a target cannot be `by-key` (did you mean `by_key`?)",
        "line 9, column 7: `mode` of a target cannot be `x` (use one of `enforce`, `off`)",
        "line 10, column 14: every item in `targets` of a target must be a string, found a number (put it in quotes)",
        "line 11, column 7: `name` of a target must be a string, found a number (put it in quotes)",
        "line 12, column 1: `description` of a target must be a string, found null (give it a value, or leave the field out)",
        "line 13, column 8: `owner` of a target is not a name: a name starts with a letter or digit, not with '-'",
        "line 14, column 9: a retry policy has no field `maxx` (did you mean `max`?)",
        "line 15, column 14: `a` in `headers` of a target must be a string, found a number (put it in quotes)",
    ];
    assert_eq!(faults, expected);
}

#[test]
fn what_is_no_map_is_one_fault() {
    let node = yaml("\n- a\n");
    let mut fields = Fields::new(&node, "a rule");
    assert_eq!(fields.required_string("name"), None);
    let faults = fields.finish();
    assert_eq!(
        faults,
        [Fault::new(at(2, 1), "a rule must be a map, found a list")]
    );
}

#[test]
fn a_flood_of_unknown_keys_is_counted() {
    let text: String = (0..1000).map(|i| format!("k{i}: 1\n")).collect();
    let node = yaml(&text);
    let faults = Fields::new(&node, "a rule").finish();
    assert_eq!(faults.len(), 21);
    assert_eq!(faults[20].message, "980 more fields are unknown to a rule");
}

#[test]
fn durations_read_as_people_write_them() {
    let cases = [
        ("30s", 30_000),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("250ms", 250),
        ("7d", 604_800_000),
        ("1d2h3m4s5ms", 93_784_005),
        ("90", 90_000),
        ("0", 0),
        ("0.25", 250),
        ("1.5h", 5_400_000),
        ("1h 30m", 5_400_000),
        (" 2s ", 2000),
        ("5 m", 300_000),
        ("36500d", 3_153_600_000_000),
    ];
    for (text, milliseconds) in cases {
        let duration = parse_duration(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(duration.as_millis(), milliseconds, "{text:?}");
        assert_eq!(
            parse_duration(&duration_text(duration)),
            Ok(duration),
            "{text:?}"
        );
    }
    for text in [
        "",
        " ",
        "s",
        "-1s",
        "+1s",
        "1x",
        "1S",
        "5m1h",
        "1h1h",
        "30s 5",
        "1.s",
        ".5s",
        "1..5s",
        "1e3",
        "36501d",
        "99999999999999999999s",
        "0.0000000001s",
        "1h30",
        "é",
        "1é",
    ] {
        assert!(parse_duration(text).is_err(), "{text:?}");
    }
}

#[test]
fn sizes_read_as_people_write_them() {
    let cases = [
        ("64KiB", 65_536),
        ("16MiB", 16_777_216),
        ("1MB", 1_000_000),
        ("1kB", 1000),
        ("0", 0),
        ("512", 512),
        ("10B", 10),
        ("2gib", 2_147_483_648),
        ("1 TiB", 1_099_511_627_776),
        ("1.5KiB", 1536),
        ("18446744073709551615", u64::MAX),
    ];
    for (text, bytes) in cases {
        assert_eq!(parse_size(text), Ok(bytes), "{text:?}");
        assert_eq!(parse_size(&size_text(bytes)), Ok(bytes), "{text:?}");
    }
    for text in [
        "",
        "KiB",
        "-1",
        "1K",
        "1M",
        "1 K iB",
        "1.1B",
        "0.3",
        "18446744073709551616",
        "16777216TiB",
        "1e3",
        "1é",
    ] {
        assert!(parse_size(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_misspelling_suggests_the_nearest_word() {
    let words = ["name", "targets", "pattern", "max_attempts", "id"];
    let cases = [
        ("nmae", Some("name")),
        ("Name", Some("name")),
        ("target", Some("targets")),
        ("patern", Some("pattern")),
        ("maxAttempts", Some("max_attempts")),
        ("max-attempts", Some("max_attempts")),
        ("maxatempt", Some("max_attempts")),
        ("x", None),
        ("completely", None),
        ("", None),
        ("ID", Some("id")),
    ];
    for (word, expected) in cases {
        assert_eq!(closest(word, words), expected, "{word}");
    }
    assert_eq!(closest(&"x".repeat(100_000), words), None);
}

// Names

#[test]
fn names_have_a_small_alphabet_and_a_length() {
    for text in ["a", "7", "fraud-check", "com.example_v1", &"x".repeat(64)] {
        let name = Name::parse(text).unwrap();
        assert_eq!(name.to_string(), text);
        let json = serde_json::to_string(&name).unwrap();
        assert_eq!(serde_json::from_str::<Name>(&json).unwrap(), name);
    }
    let cases = [
        ("", NameError::Empty),
        (".a", NameError::Start { character: '.' }),
        ("-a", NameError::Start { character: '-' }),
        ("_", NameError::Start { character: '_' }),
        ("a b", NameError::Character { character: ' ' }),
        ("é", NameError::Character { character: 'é' }),
        ("a/b", NameError::Character { character: '/' }),
        ("a\n", NameError::Character { character: '\n' }),
    ];
    for (text, error) in cases {
        assert_eq!(Name::parse(text), Err(error), "{text:?}");
    }
    assert_eq!(
        Name::parse(&"x".repeat(65)),
        Err(NameError::TooLong { characters: 65 })
    );
    assert!(serde_json::from_str::<Name>("\"-x\"").is_err());
    let set: HashSet<Name> = ["a", "a"]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
    assert!(set.len() == 1 && set.contains("a"));
}

// Reports

fn finding(file: &str, line: u32, column: u32, message: &str) -> Finding {
    Finding::error("unknown-field", file, Fault::new(at(line, column), message))
}

fn sources(entries: &[(&str, &str)]) -> Sources {
    entries
        .iter()
        .map(|(file, text)| ((*file).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn text_shows_the_line_with_a_caret_and_the_help() {
    let mut first = finding("a.yaml", 2, 4, "no such field");
    first.hint = Some("did you mean `name`?".to_owned());
    let mut second = finding("b.yaml", 12, 1, "bad");
    second.severity = Severity::Warning;
    let text = render(
        &[second, first],
        Format::Text,
        &sources(&[("a.yaml", "\u{FEFF}a: 1\r\n\té nmae: 2\r\n")]),
    );
    let expected = "a.yaml:2:4: error[unknown-field]: no such field\n   |\n 2 | \té nmae: 2\n   | \t  ^\n   help: did you mean `name`?\n\
                    b.yaml:12:1: warning[unknown-field]: bad\n";
    assert_eq!(text, expected);
}

#[test]
fn findings_are_sorted_by_file_line_and_column() {
    let findings = [
        finding("b", 1, 1, "4"),
        finding("a", 10, 1, "3"),
        finding("a", 2, 9, "2"),
        finding("a", 2, 3, "1"),
    ];
    let text = render(&findings, Format::Text, &Sources::new());
    let order: Vec<&str> = text
        .lines()
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    assert_eq!(order, ["1", "2", "3", "4"]);
}

#[test]
fn a_long_line_is_shown_around_its_caret() {
    let line = format!("{}HERE{}", "é".repeat(5000), "y".repeat(5000));
    let text = render(
        &[finding("a", 1, 5001, "x")],
        Format::Text,
        &sources(&[("a", &line)]),
    );
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[2].chars().count() < 140);
    let caret = lines[3].chars().position(|c| c == '^').unwrap();
    assert_eq!(
        lines[2].chars().skip(caret).take(4).collect::<String>(),
        "HERE"
    );
}

#[test]
fn a_place_outside_the_source_is_still_told() {
    let findings = [
        finding("a", 9, 1, "x"),
        finding("a", 1, 900, "y"),
        finding("a", 0, 0, "z"),
    ];
    let text = render(&findings, Format::Text, &sources(&[("a", "one line")]));
    assert_eq!(text.matches("error[").count(), 3);
}

#[test]
fn text_holds_no_control_characters_of_the_source() {
    let text = render(
        &[finding("a\u{1b}", 1, 1, "x\u{1b}[31m\ny\u{202e}")],
        Format::Text,
        &sources(&[("a\u{1b}", "\u{1b}[2J")]),
    );
    assert!(!text.contains(['\u{1b}', '\u{202e}']));
    assert_eq!(text.lines().count(), 1 + 3);
}

#[test]
fn json_is_an_array_of_objects() {
    let mut full = finding("a", 1, 2, "m\"\n").with_pointer("/x/0");
    full.hint = Some("h".to_owned());
    let text = render(
        &[full, finding("b", 3, 4, "n")],
        Format::Json,
        &Sources::new(),
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = json!([
        {"code": "unknown-field", "severity": "error", "file": "a", "line": 1, "column": 2, "message": "m\"\n", "hint": "h", "pointer": "/x/0"},
        {"code": "unknown-field", "severity": "error", "file": "b", "line": 3, "column": 4, "message": "n"},
    ]);
    assert_eq!(value, expected);
    assert_eq!(render(&[], Format::Json, &Sources::new()), "[]\n");
}

#[test]
fn github_annotations_are_escaped() {
    let mut odd = finding("a,b:c%.yaml", 1, 2, "100% of a: b, c\r\n::error::forged");
    odd.hint = Some("h".to_owned());
    let expected = "::error file=a%2Cb%3Ac%25.yaml,line=1,col=2,title=unknown-field::100%25 of a: b, c%0D%0A::error::forged%0Ahelp: h\n";
    assert_eq!(render(&[odd], Format::Github, &Sources::new()), expected);
}

#[test]
fn sarif_names_rule_level_and_region() {
    let text = render(
        &[finding("rules/a b.yaml", 3, 4, "n")],
        Format::Sarif,
        &Sources::new(),
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let result = &value["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "unknown-field");
    assert_eq!(result["level"], "error");
    let location = &result["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "rules/a%20b.yaml");
    assert_eq!(
        location["region"],
        json!({"startLine": 3, "startColumn": 4})
    );
}

// Any text

/// The places of all keys and values.
fn all_places(node: &Node) -> Vec<Position> {
    let mut out = vec![node.at];
    match &node.value {
        Content::List(items) => out.extend(items.iter().flat_map(all_places)),
        Content::Map(entries) => {
            for (key, value) in entries {
                out.push(key.at);
                out.extend(all_places(value));
            }
        }
        _ => {}
    }
    out
}

/// Texts made of the pieces that parsers branch on.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b: ",
        "- ",
        "? ",
        ": ",
        "\n",
        "\n  ",
        "\n    ",
        "\r\n",
        "\r",
        "\t",
        " ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&x ",
        "*x",
        "!!str ",
        "!t ",
        "!",
        "|",
        ">",
        "|-\n",
        ">+2\n",
        "'",
        "\"",
        "\\",
        "\\u12",
        "\\ud83e",
        "%YAML 1.2\n",
        "%TAG ! x\n",
        "---",
        "--- ",
        "...",
        "...\n",
        "# c",
        "<<",
        "\u{FEFF}",
        "é",
        "🦀",
        "0x1",
        "1e5",
        "-1",
        ".5",
        "null",
        "true",
        "~",
        "\u{85}",
        "\u{2028}",
        "@",
        "`",
        "=",
        "\"k\":",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|b| json!(b)),
        any::<i64>().prop_map(|n| json!(n)),
        any::<f64>().prop_map(|n| json!(n)),
        any::<String>().prop_map(|s| json!(s)),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|items| json!(items)),
            prop::collection::btree_map(".{0,8}", inner, 0..6).prop_map(|entries| json!(entries)),
        ]
    })
}

/// We refuse what `serde_json` refuses, and beyond that only repeated keys and deep nesting.
fn agrees_with_serde(text: &str) -> Result<(), TestCaseError> {
    let theirs = serde_json::from_str::<serde_json::Value>(text);
    match (parse_json(text), theirs) {
        // Through text, since `serde_json` reads some floats one bit off where we do not.
        (Ok(ours), Ok(theirs)) => {
            let again: serde_json::Value = serde_json::from_str(&ours.to_json()).unwrap();
            prop_assert_eq!(again, theirs);
        }
        (Err(fault), Ok(_)) => {
            let allowed =
                fault.message.contains("already there") || fault.message.contains("nested deeper");
            prop_assert!(allowed, "{:?}: {}", text, fault);
        }
        (Ok(_), Err(error)) => prop_assert!(false, "{:?}: {}", text, error),
        (Err(_), Err(_)) => {}
    }
    Ok(())
}

/// Writes a value in block style, and the places it should get. `indent` is where the value
/// starts; the cursor is there already.
fn write_block(
    value: &serde_json::Value,
    indent: usize,
    out: &mut String,
    expected: &mut Vec<String>,
) {
    let here = |out: &str| {
        let line = out.matches('\n').count() + 1;
        let column = out.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{line}:{column}")
    };
    let pad = |out: &mut String, columns: usize| *out += &format!("\n{}", " ".repeat(columns));
    match value {
        serde_json::Value::Array(items) if !items.is_empty() => {
            expected.push(format!("{} [", here(out)));
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    pad(out, indent);
                }
                *out += "- ";
                write_block(item, indent + 2, out, expected);
            }
        }
        serde_json::Value::Object(entries) if !entries.is_empty() => {
            expected.push(format!("{} {{", here(out)));
            for (index, (key, item)) in entries.iter().enumerate() {
                if index > 0 {
                    pad(out, indent);
                }
                expected.push(format!("{} {key}:", here(out)));
                *out += &format!("{key}: ");
                // Lists are indented below every other key only.
                let columns = match item {
                    serde_json::Value::Array(items) if items.is_empty() => None,
                    serde_json::Value::Array(_) => Some(indent + key.len() % 2 * 3),
                    serde_json::Value::Object(entries) if !entries.is_empty() => Some(indent + 2),
                    _ => None,
                };
                columns.into_iter().for_each(|columns| pad(out, columns));
                write_block(item, columns.unwrap_or(indent), out, expected);
            }
        }
        serde_json::Value::Array(_) => {
            expected.push(format!("{} [", here(out)));
            *out += "[]";
        }
        serde_json::Value::Object(_) => {
            expected.push(format!("{} {{", here(out)));
            *out += "{}";
        }
        _ => {
            expected.push(format!("{} {value}", here(out)));
            *out += &value.to_string();
        }
    }
}

fn block_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        any::<u32>().prop_map(|n| json!(n)),
        "[a-zé🦀 :#-]{0,5}".prop_map(|s| json!(s)),
        Just(json!(null))
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| json!(items)),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..5)
                .prop_map(|entries| json!(entries)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn no_text_makes_yaml_panic_and_every_place_lies_in_the_text(text in prop_oneof![any::<String>(), pieces()]) {
        let (found, fault) = match parse_yaml(&text) {
            Ok(documents) => (documents, None),
            Err(fault) => (vec![], Some(fault.at)),
        };
        for node in &found {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&node.to_json()).is_ok());
            let _ = node.to_value();
        }
        let lines = lines(&text);
        for at in found.iter().flat_map(all_places).chain(fault) {
            let line = lines.get(at.line as usize - 1);
            let inside = line.is_some_and(|line| (1..=line.chars().count() + 1).contains(&(at.column as usize)));
            prop_assert!(inside, "{:?} {}", text, at);
        }
    }

    #[test]
    fn json_is_taken_if_and_only_if_serde_json_takes_it(text in prop_oneof![any::<String>(), pieces(), "[\\[\\]{}\":,0-9eE.+\\- a\\\\untrlfs]{0,24}"]) {
        agrees_with_serde(&text)?;
    }

    #[test]
    fn json_with_one_byte_changed_is_judged_as_by_serde_json(value in json_value(), index in any::<prop::sample::Index>(), c in any::<char>()) {
        let text = value.to_string();
        agrees_with_serde(&text)?;
        let mut chars: Vec<char> = text.chars().collect();
        let index = index.index(chars.len());
        chars[index] = c;
        agrees_with_serde(&chars.iter().collect::<String>())?;
    }

    #[test]
    fn every_json_text_is_yaml_with_the_same_places(value in json_value()) {
        let printable = |s: &str| s.chars().all(|c| !c.is_control() && !matches!(c, '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}'));
        let text = serde_json::to_string_pretty(&value).unwrap();
        prop_assume!(text.lines().all(printable));
        let ours = parse_json(&text).unwrap();
        let yaml = parse_yaml(&text).map_err(|fault| TestCaseError::fail(format!("{text:?} {fault}")))?;
        prop_assert_eq!(&yaml[..], &[ours][..]);
    }

    #[test]
    fn every_place_in_block_style_is_exact(value in block_value()) {
        let (mut text, mut expected) = (String::new(), Vec::new());
        write_block(&value, 0, &mut text, &mut expected);
        text.push('\n');
        let node = parse_yaml(&text).map_err(|fault| TestCaseError::fail(format!("{text} {fault}")))?.remove(0);
        prop_assert_eq!(node.to_value(), value);
        prop_assert_eq!(places(&node), expected, "{}", text);
    }

    #[test]
    fn every_value_survives_its_tree(value in json_value()) {
        let node = Node::from_value(&value);
        prop_assert_eq!(&node.to_value(), &value);
        prop_assert_eq!(&json(&node.to_json()).to_value(), &value);
    }

    #[test]
    fn no_text_makes_quantities_names_or_spelling_panic(text in prop_oneof![any::<String>(), "[0-9.a-zA-Z ]{0,30}"]) {
        if let Ok(duration) = parse_duration(&text) {
            let shown = duration_text(duration);
            prop_assert!(parse_duration(&shown).is_ok_and(|again| again <= duration));
        }
        if let Ok(bytes) = parse_size(&text) {
            prop_assert_eq!(parse_size(&size_text(bytes)), Ok(bytes));
        }
        let _ = (Name::parse(&text), closest(&text, ["name", "targets"]));
    }

    #[test]
    fn no_finding_makes_a_report_panic(file in any::<String>(), source in any::<String>(), line in 0..5_u32, column in 0..300_u32, message in any::<String>()) {
        let sources = sources(&[(&file, &source)]);
        let findings = [finding(&file, line, column, &message)];
        for format in [Format::Text, Format::Json, Format::Sarif, Format::Github] {
            let text = render(&findings, format, &sources);
            prop_assert!(text.ends_with('\n'));
        }
        prop_assert_eq!(render(&findings, Format::Github, &sources).matches(['\n', '\r']).count(), 1);
    }
}
