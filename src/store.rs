//! All SQL: the event log, queues, leases, dead letters, documents and keys.
//!
//! [`Store`] is what the rest of dak sees. One implementation for each database stands in its own
//! folder, with equal file and function names. The store keeps documents as text and knows nothing
//! of rules or schemas; what they mean is the catalog's business.

pub mod sqlite;

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::event::{Data, Event};

/// Position of an event in the log; grows by one for each accepted event.
pub type Seq = i64;
/// A target's queue inside this database.
pub type LaneId = i64;
/// First 16 bytes of a SHA-256: an event's identity or its content.
pub type Digest = [u8; 16];
/// Random part of a lease token.
pub type Secret = [u8; 16];

/// Why the store could not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// More writes wait than the queue in memory may hold.
    #[error("{waiting} writes are waiting, as many as may")]
    Overloaded { waiting: usize },
    /// The store is shutting down.
    #[error("the store is closed")]
    Closed,
    /// The database refused or did not answer: a full disk, a lost file, a lock.
    #[error("the database did not answer")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A stored row cannot be read back.
    #[error("stored {what} cannot be read")]
    Corrupt { what: &'static str },
}

/// A rule, target, schema version, policy or bus as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocument {
    pub kind: String,
    /// The bus of a rule; empty for what all buses share.
    pub bus: String,
    pub name: String,
    /// From 1 for schemas, 0 for everything else.
    pub version: u32,
    pub text: String,
    pub created_at: Millis,
    pub updated_at: Millis,
}

/// One change of the documents.
#[derive(Debug, Clone)]
pub enum Change {
    Put(StoredDocument),
    Delete {
        kind: String,
        bus: String,
        name: String,
        version: u32,
    },
}

/// The schema version that judged an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedBy {
    #[serde(rename = "type")]
    pub event_type: String,
    pub version: u32,
}

/// What was decided about an event when it was accepted; a repeated publish gets the same again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<JudgedBy>,
    /// The schema was violated, and its mode is `warn`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warned: bool,
    pub rules: Vec<String>,
    pub targets: Vec<String>,
    /// For each target, positions in `rules` of those that named it.
    pub routes: Vec<Vec<u32>>,
}

impl Facts {
    /// Names of the rules that led to `target`.
    #[must_use]
    pub fn rules_for(&self, target: &str) -> Vec<&str> {
        let Some(at) = self.targets.iter().position(|name| name == target) else {
            return Vec::new();
        };
        let route = self.routes.get(at).map_or(&[][..], Vec::as_slice);
        route
            .iter()
            .filter_map(|rule| self.rules.get(*rule as usize).map(String::as_str))
            .collect()
    }
}

/// Where an event's data lies when it is not in the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub key: String,
    pub bytes: u64,
}

/// An event ready to be committed, with one delivery for each target in its facts.
#[derive(Debug, Clone)]
pub struct Accept {
    pub bus: Arc<str>,
    /// Its data is [`Data::Absent`] when `claim` holds it.
    pub event: Event,
    pub claim: Option<Claim>,
    /// The kind of data behind the claim ([`Data::kind_code`]).
    pub data_kind: u8,
    pub identity: Digest,
    pub content: Digest,
    pub facts: Arc<Facts>,
    /// Stored trace context of the publish span, opaque here.
    pub trace: Option<String>,
    pub accepted_at: Millis,
}

/// What became of one event handed to [`Store::accept`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    New {
        seq: Seq,
    },
    /// The same identity and content came before.
    Duplicate {
        seq: Seq,
        facts: Arc<Facts>,
    },
    /// The same identity came before with other content; nothing is stored.
    Conflict {
        seq: Seq,
    },
    /// Another member of an atomic batch was in conflict, so nothing of the batch is stored.
    Withheld,
}

/// Whether the members of a batch stand or fall together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Members {
    Atomic,
    Each,
}

/// An earlier acceptance under some identity.
#[derive(Debug, Clone)]
pub struct Found {
    pub seq: Seq,
    pub content: Digest,
    pub facts: Facts,
}

/// An event as the log holds it.
#[derive(Debug, Clone)]
pub struct StoredEvent {
    pub seq: Seq,
    pub bus: String,
    pub accepted_at: Millis,
    /// Data is absent here when `claim` is set.
    pub event: Event,
    pub claim: Option<Claim>,
    pub data_kind: u8,
    pub data_bytes: u64,
    pub facts: Facts,
    pub trace: Option<String>,
}

/// Where a delivery's row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Ready,
    Delayed { due: Millis },
}

/// A delivery that may be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    pub seq: Seq,
    pub origin: Origin,
    /// Failed attempts so far.
    pub failures: u32,
    /// Times it was handed to a pull consumer so far.
    pub receives: u32,
    /// When its age begins; 0 stands for the event's acceptance.
    pub since: Millis,
}

impl Pending {
    /// A delivery that nobody has tried yet.
    #[must_use]
    pub fn fresh(seq: Seq) -> Self {
        Self {
            seq,
            origin: Origin::Ready,
            failures: 0,
            receives: 0,
            since: 0,
        }
    }
}

/// Deliveries that have become due, and when the next one will.
#[derive(Debug, Clone, Default)]
pub struct Due {
    pub rows: Vec<Pending>,
    pub next: Option<Millis>,
}

/// One failed attempt, kept until the delivery is settled and then with the dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub at: Millis,
    pub duration_ms: u64,
    pub outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

/// What a worker says of a delivery it held in memory.
#[derive(Debug, Clone)]
pub struct Settlement {
    pub lane: LaneId,
    pub pending: Pending,
    pub end: End,
    /// The attempt just made, when it failed.
    pub attempt: Option<Attempt>,
}

/// How a delivery leaves the hands that held it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Delivered,
    /// Back to the queue, due at a time, with this many failures charged so far.
    Retry {
        due: Millis,
        failures: u32,
    },
    DeadLetter {
        reason: String,
        detail: Option<String>,
        at: Millis,
        /// The attempt just made counts as a failure.
        charged: bool,
    },
}

/// A lease about to be written.
#[derive(Debug, Clone, Copy)]
pub struct Lease {
    pub pending: Pending,
    pub secret: Secret,
    pub until: Millis,
}

/// What a consumer asks for one of its leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseEnd {
    Acknowledge,
    /// Back to the queue, due at a time; charges no failure.
    Release {
        due: Millis,
    },
    Renew {
        until: Millis,
    },
    Reject {
        reason: String,
        detail: Option<String>,
    },
}

/// What became of leases that had run out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expired {
    /// Back in the queue, due now.
    pub returned: u64,
    /// Dead letters, because they failed too often.
    pub buried: u64,
    /// When the next lease expires.
    pub next: Option<Millis>,
}

/// Counts of one lane, kept without counting rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub ready: i64,
    pub delayed: i64,
    pub leased: i64,
    pub dead: i64,
}

/// A lane as it stands in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneState {
    pub lane: LaneId,
    pub paused: bool,
    /// Why the target was switched off, when it was.
    pub disabled: Option<String>,
}

/// A dead letter without its event.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    pub id: i64,
    pub target: String,
    pub seq: Seq,
    pub died_at: Millis,
    pub reason: String,
    pub detail: Option<String>,
    pub failures: u32,
    pub receives: u32,
    pub attempts: Vec<Attempt>,
}

/// Which dead letters are meant.
#[derive(Debug, Clone, Default)]
pub struct DeadFilter {
    pub target: Option<String>,
    pub reason: Option<String>,
    pub ids: Option<Vec<i64>>,
    /// Only ids above this one, for paging.
    pub after: i64,
    pub limit: u32,
}

/// A group of events that matched no rule.
#[derive(Debug, Clone)]
pub struct Unmatched {
    pub bus: String,
    pub source: String,
    pub event_type: String,
    pub count: i64,
    pub first_seen: Millis,
    pub last_seen: Millis,
    /// The newest such event.
    pub sample: Seq,
}

/// An API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    /// SHA-256 of the secret.
    pub digest: Vec<u8>,
    pub scopes: Vec<String>,
    /// The only bus it may touch; any when absent.
    pub bus: Option<String>,
    pub created_at: Millis,
}

/// Durable state. Every method is one transaction or one read; a write has been synced to disk
/// when it returns.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// All documents, in no order.
    async fn documents(&self) -> Result<Vec<StoredDocument>, Error>;
    /// Applies all changes or none.
    async fn change_documents(&self, changes: Vec<Change>) -> Result<(), Error>;

    /// Commits events and their deliveries; answers in order.
    async fn accept(&self, batch: Vec<Accept>, members: Members) -> Result<Vec<Accepted>, Error>;
    /// Earlier acceptances under these identities, in order.
    async fn find(&self, identities: Vec<Digest>) -> Result<Vec<Option<Found>>, Error>;
    /// The events at these positions that exist, in order of position.
    async fn events(&self, seqs: Vec<Seq>) -> Result<Vec<StoredEvent>, Error>;
    /// Newest events of a bus first, below `before`.
    async fn recent(&self, bus: String, before: Seq, limit: u32)
    -> Result<Vec<StoredEvent>, Error>;

    /// The lane of a target, made on first use.
    async fn lane(&self, target: String) -> Result<LaneState, Error>;
    /// Switches a lane: paused by a person, disabled with a reason by dak.
    async fn switch_lane(
        &self,
        lane: LaneId,
        paused: bool,
        disabled: Option<String>,
    ) -> Result<(), Error>;
    /// Removes a lane and everything waiting in it; says how many deliveries were dropped.
    async fn drop_lane(&self, lane: LaneId) -> Result<u64, Error>;
    /// Ready deliveries above `after`, in order.
    async fn ready(&self, lane: LaneId, after: Seq, limit: u32) -> Result<Vec<Pending>, Error>;
    /// Delayed deliveries due by `now`.
    async fn due(&self, lane: LaneId, now: Millis, limit: u32) -> Result<Due, Error>;
    /// Settles deliveries that a worker held.
    async fn settle(&self, settlements: Vec<Settlement>) -> Result<(), Error>;

    /// Turns pending deliveries into durable leases.
    async fn lease(&self, lane: LaneId, leases: Vec<Lease>) -> Result<(), Error>;
    /// Ends or renews leases; false where the token is not the live one.
    async fn end_leases(
        &self,
        lane: LaneId,
        leases: Vec<(Seq, Secret)>,
        end: LeaseEnd,
        now: Millis,
    ) -> Result<Vec<bool>, Error>;
    /// Returns expired leases to the queue, or dead-letters those with `failures_max` failures.
    async fn expire_leases(
        &self,
        lane: LaneId,
        now: Millis,
        failures_max: u32,
    ) -> Result<Expired, Error>;

    /// Dead letters by id.
    async fn dead_letters(&self, filter: DeadFilter) -> Result<Vec<DeadLetter>, Error>;
    /// Puts dead letters back into their queues as due now; says which lanes got how many.
    async fn redrive(&self, filter: DeadFilter, now: Millis) -> Result<Vec<(String, u64)>, Error>;
    /// Forgets dead letters; says how many.
    async fn purge(&self, filter: DeadFilter) -> Result<u64, Error>;

    /// Groups of unmatched events, newest first.
    async fn unmatched(&self, bus: Option<String>, limit: u32) -> Result<Vec<Unmatched>, Error>;

    /// All API keys.
    async fn keys(&self) -> Result<Vec<Key>, Error>;
    /// Adds a key; false when the name is taken.
    async fn add_key(&self, key: Key) -> Result<bool, Error>;
    /// Removes a key; false when there is none of that name.
    async fn remove_key(&self, name: String) -> Result<bool, Error>;
    /// The value kept under a name, `fresh` being kept when there is none yet.
    async fn meta(&self, name: String, fresh: Vec<u8>) -> Result<Vec<u8>, Error>;
    /// Of these blob keys, those that some event refers to.
    async fn blobs_in_use(&self, keys: Vec<String>) -> Result<Vec<String>, Error>;

    /// Counts of a lane.
    fn counts(&self, lane: LaneId) -> Counts;
    /// When the oldest delivery of a lane was accepted, if one waits.
    async fn oldest(&self, lane: LaneId) -> Result<Option<Millis>, Error>;
    /// Commits what was handed over and refuses everything after.
    async fn close(&self);
}

/// What a commit was like, for whoever keeps the metrics.
#[derive(Debug, Clone, Copy)]
pub struct Commit {
    pub events: u64,
    pub seconds: f64,
}

/// Data as it was before it was offloaded, from its kind and bytes.
#[must_use]
pub fn restore(event: Event, kind: u8, bytes: bytes::Bytes) -> Event {
    // A kind that is not known comes from a newer version; its bytes are still right.
    let data = Data::from_code(kind, bytes.clone()).unwrap_or(Data::Binary(bytes));
    event.with_data(data)
}
