//! Rules and events made from the bytes: the index, the explanation and the plain evaluator agree,
//! also after deleting and adding.

#![no_main]

use std::sync::Arc;

use dak::pattern::{Index, Input, Pattern, RuleId, Scratch, explain};
use libfuzzer_sys::fuzz_target;

#[path = "../oracle.rs"]
mod oracle;

use oracle::Choices;

fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices::from_bytes(bytes);
    let members: Vec<_> = (0..1 + choices.below(6))
        .map(|_| oracle::pattern(&mut choices))
        .collect();
    let rules: Vec<(RuleId, Arc<Pattern>)> = (0..)
        .zip(&members)
        .filter_map(|(id, members)| {
            let text = oracle::pattern_text(members, &mut choices);
            Some((id, Arc::new(Pattern::parse(&text).ok()?)))
        })
        .collect();
    let index = Index::build(rules.iter().cloned());
    let changed = index
        .with_removed(rules.iter().map(|(id, _)| *id).filter(|id| id % 2 == 0))
        .with_added(rules.iter().filter(|(id, _)| id % 2 == 0).cloned());
    let mut scratch = Scratch::default();
    for _ in 0..3 {
        let event = oracle::event(&mut choices);
        let text = oracle::event_text(&event, &mut choices);
        let input = Input::raw(text.as_bytes());
        let matched = index.matches(&input, &mut scratch).expect("small").to_vec();
        assert_eq!(
            matched,
            changed.matches(&input, &mut scratch).expect("small"),
            "{text}"
        );
        for (id, pattern) in &rules {
            let expected = oracle::matches(&members[*id as usize], &event);
            assert_eq!(
                matched.contains(id),
                expected,
                "{:?} {text}",
                members[*id as usize]
            );
            assert_eq!(
                explain(pattern, &input).matched,
                expected,
                "{pattern:?} {text}"
            );
        }
    }
});
