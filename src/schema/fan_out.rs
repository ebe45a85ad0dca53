//! How much work one value can make: the bound that keeps validation short and its stack flat.
//!
//! References and applicators that judge the same value (`$ref`, `allOf`, `oneOf` …) multiply:
//! thirty definitions of two references each are a billion visits. JSON bounds how deep a value
//! nests, so bounding the visits and the chain length at one place bounds the whole.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::Error;

/// Most subschemas that may judge one place of a value; real schemas stay under a few hundred.
pub(super) const VISITS_MAX: u64 = 20_000;

/// Longest chain of references and applicators at one place of a value.
pub(super) const CHAIN_MAX: usize = 256;

/// Longest way that validation may go on the caller's stack: levels of data times the chain at
/// each. In a debug build this stays far inside the 2 MiB of a runtime's thread.
const SHALLOW_WAY_MAX: usize = 512;

/// Deepest nesting that the JSON parser lets through.
const DATA_DEPTH_MAX: usize = 128;

const LIST_APPLICATORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const MAP_APPLICATORS: [&str; 2] = ["dependentSchemas", "dependencies"];
const SCHEMA_APPLICATORS: [&str; 4] = ["not", "if", "then", "else"];

/// Measures `document` and gives its longest chain.
///
/// # Errors
/// [`Error::TooBranchy`] beyond [`VISITS_MAX`] or [`CHAIN_MAX`], naming where the chain starts.
pub(super) fn check(document: &Value) -> Result<usize, Error> {
    let mut measure = Measure {
        document,
        known: FxHashMap::default(),
    };
    let mut longest = 0;
    let mut pending = vec![(String::new(), document)];
    while let Some((pointer, value)) = pending.pop() {
        let cost = measure.cost(value, 0);
        if cost.visits > VISITS_MAX || cost.chain > CHAIN_MAX {
            return Err(Error::TooBranchy { pointer });
        }
        longest = longest.max(cost.chain);
        match value {
            Value::Object(members) => pending.extend(
                members
                    .iter()
                    .map(|(name, member)| (format!("{pointer}/{}", escape(name)), member)),
            ),
            Value::Array(items) => pending.extend(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| (format!("{pointer}/{index}"), item)),
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(longest)
}

/// Whether judging `value` by a schema with that longest chain wants more stack than the caller's.
pub(super) fn needs_deep_stack(chain: usize, value: &Value) -> bool {
    // Plain schemas need no look at the data.
    chain * DATA_DEPTH_MAX > SHALLOW_WAY_MAX && chain * depth(value) > SHALLOW_WAY_MAX
}

/// How deep arrays and objects nest, at least one.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Object(members) => members.values().map(depth).max(),
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    1 + inner.unwrap_or(0)
}

/// `name` as a token of a JSON pointer (RFC 6901 §3).
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// What judging one place by a subschema takes.
#[derive(Debug, Clone, Copy)]
struct Cost {
    visits: u64,
    chain: usize,
}

/// Costs by address of the subschema; zero while a cycle is open, since the validator breaks cycles.
struct Measure<'a> {
    document: &'a Value,
    known: FxHashMap<*const Value, Cost>,
}

impl<'a> Measure<'a> {
    fn cost(&mut self, schema: &'a Value, depth: usize) -> Cost {
        let Value::Object(members) = schema else {
            return Cost {
                visits: 1,
                chain: 1,
            };
        };
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return *known;
        }
        if depth > CHAIN_MAX {
            return Cost {
                visits: 1,
                chain: CHAIN_MAX + 1,
            };
        }
        self.known.insert(
            schema,
            Cost {
                visits: 0,
                chain: 0,
            },
        );
        let mut children: Vec<&'a Value> = Vec::new();
        for name in LIST_APPLICATORS {
            children.extend(
                members
                    .get(name)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten(),
            );
        }
        for name in MAP_APPLICATORS {
            let map = members.get(name).and_then(Value::as_object);
            children.extend(map.into_iter().flat_map(serde_json::Map::values));
        }
        children.extend(
            SCHEMA_APPLICATORS
                .iter()
                .filter_map(|name| members.get(*name)),
        );
        children.extend(members.get("$ref").and_then(|target| self.target(target)));
        let mut total = Cost {
            visits: 1,
            chain: 1,
        };
        for child in children {
            let cost = self.cost(child, depth + 1);
            total.visits = total.visits.saturating_add(cost.visits);
            total.chain = total.chain.max(cost.chain + 1);
        }
        self.known.insert(schema, total);
        total
    }

    /// The subschema a local reference names by pointer. Anchors and identifiers are left to the
    /// validator: they only make the measure smaller.
    fn target(&self, reference: &Value) -> Option<&'a Value> {
        let fragment = reference.as_str()?.strip_prefix('#')?;
        self.document.pointer(&percent_decode(fragment))
    }
}

/// A URI fragment with its percent escapes undone; text that is not UTF-8 then is left as it was.
pub(super) fn percent_decode(fragment: &str) -> String {
    if !fragment.contains('%') {
        return fragment.to_owned();
    }
    let mut decoded = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escape = tail
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) if byte == b'%' => {
                decoded.push(value);
                rest = &tail[2..];
            }
            _ => {
                decoded.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| fragment.to_owned())
}
