//! How stored things are shown as JSON.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::clock::rfc3339;
use crate::event::{self, Event};
use crate::rule::Rule;
use crate::store::{JudgedBy, Seq, StoredEvent};

/// Rules explained for one event at most.
const RULES_MAX: usize = 1_000;

/// An event of the log with what was decided about it.
#[derive(Debug, Serialize)]
pub(super) struct Stored<'a> {
    seq: Seq,
    bus: &'a str,
    accepted_at: String,
    event: Box<RawValue>,
    data_bytes: u64,
    /// Its data lies in the blob store and is not shown.
    offloaded: bool,
    schema: Option<&'a JudgedBy>,
    warned: bool,
    rules: &'a [String],
    targets: &'a [String],
}

impl<'a> From<&'a StoredEvent> for Stored<'a> {
    fn from(stored: &'a StoredEvent) -> Self {
        Self {
            seq: stored.seq,
            bus: &stored.bus,
            accepted_at: rfc3339(stored.accepted_at),
            event: event(&stored.event),
            data_bytes: stored.data_bytes,
            offloaded: stored.claim.is_some(),
            schema: stored.facts.schema.as_ref(),
            warned: stored.facts.warned,
            rules: &stored.facts.rules,
            targets: &stored.facts.targets,
        }
    }
}

/// An event in the JSON event format, digit for digit.
pub(super) fn event(event: &Event) -> Box<RawValue> {
    let text = String::from_utf8(event::json::encode(event)).unwrap_or_else(|_| "null".into());
    RawValue::from_string(text).unwrap_or_default()
}

/// Each rule's verdict on an event: matches first, then the nearest misses.
pub(super) fn explained(rules: &[Arc<Rule>], event: &Event, only: Option<&str>) -> Vec<Value> {
    let mut verdicts: Vec<_> = rules
        .iter()
        .filter(|rule| only.is_none_or(|name| rule.name.as_str() == name))
        .take(RULES_MAX)
        .map(|rule| (rule, rule.explain(event)))
        .collect();
    verdicts.sort_by_key(|(_, verdict)| {
        (
            !verdict.matched,
            verdict.failures.len(),
            std::cmp::Reverse(verdict.held),
        )
    });
    verdicts
        .into_iter()
        .map(|(rule, verdict)| {
            let mut shown = serde_json::to_value(&verdict).unwrap_or_default();
            shown["rule"] = rule.name.as_str().into();
            shown
        })
        .collect()
}
