//! How long matching took and how much memory it needs.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::pattern::Index;

/// What was measured.
#[derive(Debug)]
pub(super) struct Measured {
    /// From the start to the compiled index, reading and parsing rules included.
    pub(super) load_time: Duration,
    /// In matching alone, without reading and parsing lines or writing answers.
    pub(super) match_time: Duration,
    pub(super) events: u64,
    /// Memory of the process before the index was compiled.
    pub(super) memory_before: Option<u64>,
}

impl Measured {
    /// The measures by name; times in seconds, memory in bytes.
    pub(super) fn facts(&self, index: &Index) -> Map<String, Value> {
        let stats = index.stats();
        let seconds = self.match_time.as_secs_f64();
        let rate = self.events as f64 / seconds.max(f64::MIN_POSITIVE);
        let facts = [
            ("load_seconds", json!(self.load_time.as_secs_f64())),
            ("match_seconds", json!(seconds)),
            ("events_per_second", json!(rate.round())),
            ("memory_bytes", json!(peak_bytes())),
            ("memory_before_index_bytes", json!(self.memory_before)),
            ("index_bytes", json!(stats.bytes)),
            (
                "index_bytes_per_rule",
                json!(stats.bytes / stats.rules.max(1)),
            ),
            ("index_paths", json!(stats.paths)),
            ("index_conjunctions", json!(stats.conjunctions)),
        ];
        let facts = facts.into_iter();
        facts
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

/// Memory that the process holds now, in bytes; `None` where the system does not tell.
pub(super) fn resident_bytes() -> Option<u64> {
    status_bytes("VmRSS:")
}

/// The most memory that the process has held.
fn peak_bytes() -> Option<u64> {
    status_bytes("VmHWM:")
}

fn status_bytes(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
