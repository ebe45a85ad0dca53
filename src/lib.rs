//! dak: an event bus that you run yourself.
//!
//! The map, bottom to top; a module imports only from lines above its own
//! (`tests/tidy.rs` holds the exact table).

pub mod clock; // the only source of time
pub mod document; // located YAML and JSON, findings with their place
pub mod telemetry; // logs, traces, metrics

pub mod blob; // claim-check payloads
pub mod event; // the CloudEvents model and codec

pub mod pattern; // the pattern language and the many-pattern index
pub mod schema; // validation and compatibility
pub mod target; // target kinds: options, sending, outcomes

pub mod rule; // one rule: a pattern and its targets
pub mod store; // all SQL: events, queues, leases, documents

pub mod catalog; // documents compiled to the live set

pub mod delivery; // lease, send, settle
pub mod ingest; // validate, match, offload, commit

pub mod api; // HTTP: publishing, queues, administration

pub mod config; // flags, environment and file to checked settings

pub mod server; // builds everything, runs it, stops it

pub mod cli; // the command line
