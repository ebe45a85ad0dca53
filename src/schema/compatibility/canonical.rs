//! The set algebra of the `jsonschema` crate: the last judge, bounded in size and time.
//!
//! Its work cannot be stopped half-way, so it runs on a thread of its own; one that is late is
//! left behind, and while too many are, the algebra is not asked at all.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use jsonschema::{
    PatternOptions,
    canonical::{CanonicalSchema, Containment, options},
};
use serde_json::{Map, Value, json};

use crate::schema::{DEEP_STACK_BYTES, Draft, refusal::DATA_KEYWORDS};

/// Longest schema handed to the algebra, in bytes of JSON.
const BYTES_MAX: usize = 64 * 1024;

/// Most threads left behind at a time.
const LATE_MAX: usize = 2;

/// Threads that are still at work on a question.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// What the algebra says about one direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    /// Whether the accepting side takes all; `None` where the algebra does not know.
    pub(super) is_covered: Option<bool>,
    /// The values it lost, as a schema.
    pub(super) lost: Option<Value>,
}

/// A schema as the algebra wants it.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    document: Value,
    draft: Draft,
}

impl Operand {
    pub(super) fn of(document: &Value, draft: Draft) -> Self {
        let mut document = document.clone();
        if refers_to_root(&document) {
            document = move_root(document, draft);
        }
        strip_content(&mut document);
        Self { document, draft }
    }
}

/// Asks whether `accepting` takes all that `giving` takes.
pub(super) fn ask(
    giving: Operand,
    accepting: Operand,
    assert_formats: bool,
    time: Duration,
) -> Answer {
    let is_small = |operand: &Operand| operand.document.to_string().len() <= BYTES_MAX;
    let fits = giving.draft == accepting.draft && is_small(&giving) && is_small(&accepting);
    if !fits || RUNNING.load(Ordering::Relaxed) > LATE_MAX {
        return Answer::default();
    }
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        let _guard = Running::start();
        // The asker may have gone; nobody is left to tell then.
        let _ = sender.send(compare(&giving, &accepting, assert_formats));
    };
    let thread = std::thread::Builder::new().name("schema-algebra".to_owned());
    match thread.stack_size(DEEP_STACK_BYTES).spawn(work) {
        Ok(_) => receiver.recv_timeout(time).unwrap_or_default(),
        Err(_) => Answer::default(),
    }
}

/// Counts a thread for as long as it works, also when it panics.
struct Running;

impl Running {
    fn start() -> Self {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

fn compare(giving: &Operand, accepting: &Operand, assert_formats: bool) -> Answer {
    let canonical = |operand: &Operand| -> Option<CanonicalSchema> {
        options()
            .with_draft(operand.draft.into())
            .should_validate_formats(assert_formats)
            .with_pattern_options(PatternOptions::regex())
            .offline()
            .canonicalize(&operand.document)
            .ok()
    };
    let (Some(given), Some(accepted)) = (canonical(giving), canonical(accepting)) else {
        return Answer::default();
    };
    let is_covered = match accepted.covers(&given) {
        Ok(Containment::Yes) => Some(true),
        Ok(Containment::No) => Some(false),
        Ok(Containment::Unknown) | Err(_) => None,
    };
    let lost = match is_covered {
        Some(true) => None,
        _ => given
            .subtract(&accepted)
            .ok()
            .map(|lost| lost.to_json_schema()),
    };
    Answer { is_covered, lost }
}

/// Whether a reference leads into the document other than to its definitions: two documents that
/// both do so cannot be compared as they are.
fn refers_to_root(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, member)| match member.as_str() {
            Some(reference) if name == "$ref" => {
                reference.starts_with('#')
                    && !reference.starts_with("#/$defs/")
                    && !reference.starts_with("#/definitions/")
            }
            _ => !DATA_KEYWORDS.contains(&name.as_str()) && refers_to_root(member),
        }),
        Value::Array(items) => items.iter().any(refers_to_root),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The document as a definition of another, which refers to it: the same set of values.
fn move_root(mut document: Value, draft: Draft) -> Value {
    let definitions = if draft >= Draft::Draft201909 {
        "$defs"
    } else {
        "definitions"
    };
    let place = format!("#/{definitions}/document-root");
    move_references(&mut document, &place);
    if let Value::Object(members) = &mut document {
        let own_id = if draft == Draft::Draft4 { "id" } else { "$id" };
        for name in [own_id, "$schema"] {
            if members.get(name).is_some_and(Value::is_string) {
                members.remove(name);
            }
        }
    }
    json!({ definitions: {"document-root": document}, "$ref": place })
}

fn move_references(value: &mut Value, place: &str) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(reference) if name == "$ref" => {
                        if let Some(fragment) = reference.strip_prefix('#')
                            && (fragment.is_empty() || fragment.starts_with('/'))
                        {
                            *reference = format!("{place}{fragment}");
                        }
                    }
                    _ if DATA_KEYWORDS.contains(&name.as_str()) => {}
                    _ => move_references(member, place),
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| move_references(item, place)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes the content keywords, which only describe here and which the algebra asserts in some
/// drafts. As keywords their value is a string; as names of members it is a schema.
fn strip_content(value: &mut Value) {
    match value {
        Value::Object(members) => strip_members(members),
        Value::Array(items) => items.iter_mut().for_each(strip_content),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn strip_members(members: &mut Map<String, Value>) {
    for name in ["contentEncoding", "contentMediaType"] {
        if members.get(name).is_some_and(Value::is_string) {
            members.remove(name);
        }
    }
    for (name, member) in members {
        if !DATA_KEYWORDS.contains(&name.as_str()) {
            strip_content(member);
        }
    }
}
