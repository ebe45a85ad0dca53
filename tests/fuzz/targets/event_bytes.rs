//! Any bytes as an event: no panic, no stall, and the index says what the explanation says.

#![no_main]

use std::sync::{Arc, LazyLock};

use dak::pattern::{Index, Input, Pattern, Scratch, explain};
use libfuzzer_sys::fuzz_target;

const PATTERNS: [&str; 12] = [
    r#"{"a":["x"]}"#,
    r#"{"a":{"b":[{"prefix":"x"}]}}"#,
    r#"{"a":{"b":["x"],"c":["x"]}}"#,
    r#"{"a":{"b":["x"],"c":[{"exists":false}]}}"#,
    r#"{"a":[{"exists":false},1]}"#,
    r#"{"a":[{"numeric":[">",0,"<=",1e10]}]}"#,
    r#"{"a":[{"wildcard":"*x*y*"}]}"#,
    r#"{"a":[{"anything-but":["x","y"]}],"b":[{"anything-but":{"suffix":"x"}}]}"#,
    r#"{"":[null,true]}"#,
    r#"{"b":[{"equals-ignore-case":"Stra\u00dfe"},{"suffix":{"equals-ignore-case":"x"}}]}"#,
    r#"{"b":[{"cidr":"10.0.0.0/8"},{"cidr":"::/0"}]}"#,
    r#"{"$or":[{"a":{"a":[1]}},{"b":{"b":[{"exists":true}]},"a":[0.5]}]}"#,
];

static RULES: LazyLock<(Vec<Arc<Pattern>>, Index)> = LazyLock::new(|| {
    let patterns: Vec<Arc<Pattern>> = PATTERNS
        .iter()
        .map(|text| Arc::new(Pattern::parse(text).expect("correct")))
        .collect();
    let index = Index::build((0..).zip(patterns.iter().cloned()));
    (patterns, index)
});

fuzz_target!(|bytes: &[u8]| {
    let (patterns, index) = &*RULES;
    let input = Input::raw(bytes);
    let mut scratch = Scratch::default();
    let Ok(matched) = index.matches(&input, &mut scratch) else {
        return;
    };
    for (id, pattern) in (0u32..).zip(patterns) {
        // What is no JSON may end a walk in another place for other patterns.
        if bytes.len() < 4_096 && is_json(bytes) {
            assert_eq!(
                matched.contains(&id),
                explain(pattern, &input).matched,
                "{id}"
            );
        }
    }
});

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}
