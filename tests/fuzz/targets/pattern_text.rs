//! Any text as a pattern: refused with a place that is in the text, or read, shown and matched.

#![no_main]

use std::sync::Arc;

use dak::pattern::{Index, Input, Limits, Pattern, Scratch, explain};
use libfuzzer_sys::fuzz_target;

const EVENTS: [&str; 3] = [
    r#"{"a":"x","b":[1,{"c":null}],"$or":[{"a":1}],"":""}"#,
    r#"{"source":"aws.ec2","detail":{"state":["running"],"ip":"10.0.0.1"}}"#,
    "{}",
];

fuzz_target!(|text: &str| {
    for extensions in [false, true] {
        let limits = Limits {
            extensions,
            ..Limits::for_events()
        };
        match Pattern::parse_with(text, &limits) {
            Err(error) => {
                assert!(error.offset <= text.len());
                assert!(!error.to_string().is_empty());
            }
            Ok(pattern) => {
                for field in pattern.leaves() {
                    assert!(text[field.offset()..].starts_with('['));
                    let shown: Vec<String> =
                        field.tests().iter().map(ToString::to_string).collect();
                    let again = format!("{{\"a\":[{}]}}", shown.join(","));
                    let limits = Limits {
                        text_bytes_max: usize::MAX,
                        depth_max: 64,
                        ..limits
                    };
                    let again =
                        Pattern::parse_with(&again, &limits).expect("a shown test is correct");
                    assert_eq!(
                        again.leaves().next().map(|one| one.tests()),
                        Some(field.tests())
                    );
                }
                let pattern = Arc::new(pattern);
                let index = Index::build([(0, Arc::clone(&pattern))]);
                let mut scratch = Scratch::default();
                for event in EVENTS {
                    let input = Input::raw(event.as_bytes());
                    let matched = index.matches(&input, &mut scratch).expect("small").len() == 1;
                    assert_eq!(matched, explain(&pattern, &input).matched);
                }
            }
        }
    }
});
