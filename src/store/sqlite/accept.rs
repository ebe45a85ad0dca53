//! Acceptance: events, their identities and their deliveries, in the writer's transaction.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::types::{Type, ValueRef};
use rusqlite::{OptionalExtension, params};

use super::counts;
use super::writer::Transaction;
use crate::clock::Millis;
use crate::event::{Data, Event};
use crate::store::{Accept, Accepted, Digest, Facts, Members, Seq};

/// Groups of unmatched events kept per database; what comes after is counted under `other`.
const GROUPS_MAX: usize = 10_000;
/// Source and type of the group that takes what does not fit.
const OTHER: &str = "other";

/// Accepts a batch; what it answers holds once the transaction commits.
pub(super) fn accept(
    transaction: &mut Transaction<'_>,
    batch: Vec<Accept>,
    members: Members,
) -> rusqlite::Result<Vec<Accepted>> {
    if members == Members::Each || batch.len() == 1 {
        return batch
            .into_iter()
            .map(|event| accept_one(transaction, event))
            .collect();
    }
    let verdicts = foresee(transaction, &batch)?;
    if verdicts
        .iter()
        .any(|verdict| matches!(verdict, Some(Accepted::Conflict { .. })))
    {
        return Ok(verdicts
            .into_iter()
            .map(|verdict| verdict.unwrap_or(Accepted::Withheld))
            .collect());
    }
    batch
        .into_iter()
        .map(|event| accept_one(transaction, event))
        .collect()
}

/// What each member would meet, without writing; `None` for a new event.
fn foresee(
    transaction: &Transaction<'_>,
    batch: &[Accept],
) -> rusqlite::Result<Vec<Option<Accepted>>> {
    let mut within: HashMap<Digest, Digest> = HashMap::with_capacity(batch.len());
    batch
        .iter()
        .map(|event| {
            if let Some(earlier) = within.insert(event.identity, event.content) {
                // The first one of the batch has no position yet, so the conflict names none.
                return Ok((earlier != event.content).then_some(Accepted::Conflict { seq: 0 }));
            }
            met(transaction, event)
        })
        .collect()
}

fn accept_one(transaction: &mut Transaction<'_>, event: Accept) -> rusqlite::Result<Accepted> {
    if let Some(met) = met(transaction, &event)? {
        return Ok(met);
    }
    let seq = transaction.state.next_seq;
    transaction.state.next_seq += 1;
    transaction.state.events += 1;
    let bus = transaction.bus(&event.bus)?;
    let facts = super::to_json(&*event.facts)?;
    transaction
        .connection
        .prepare_cached(
            "INSERT INTO event (seq, bus, accepted_at, attributes, data_kind, data, blob_key, \
             data_bytes, content, facts, trace) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            seq,
            bus,
            event.accepted_at,
            event.event.attributes_to_json(),
            event.data_kind,
            data(&event.event),
            event.claim.as_ref().map(|claim| claim.key.as_str()),
            data_bytes(&event),
            event.content,
            facts,
            event.trace,
        ])?;
    transaction
        .connection
        .prepare_cached("INSERT INTO identity (digest, seq) VALUES (?1, ?2)")?
        .execute(params![event.identity, seq])?;
    enqueue(transaction, seq, &event.facts)?;
    if event.facts.rules.is_empty() {
        let at = (event.accepted_at, seq);
        transaction
            .state
            .unmatched
            .add(transaction.connection, bus, &event.event, at)?;
    }
    Ok(Accepted::New { seq })
}

fn enqueue(transaction: &mut Transaction<'_>, seq: Seq, facts: &Facts) -> rusqlite::Result<()> {
    let connection = transaction.connection;
    let mut insert = connection.prepare_cached("INSERT INTO ready (lane, seq) VALUES (?1, ?2)")?;
    for target in &facts.targets {
        let lane = transaction.lane(target)?;
        insert.execute([lane, seq])?;
        transaction.count(lane, counts::ready(1));
    }
    Ok(())
}

/// Whether this identity was accepted before, and how the two compare.
fn met(transaction: &Transaction<'_>, event: &Accept) -> rusqlite::Result<Option<Accepted>> {
    let seq: Option<Seq> = transaction
        .connection
        .prepare_cached("SELECT seq FROM identity WHERE digest = ?1")?
        .query_row([event.identity], |row| row.get(0))
        .optional()?;
    let Some(seq) = seq else { return Ok(None) };
    transaction
        .connection
        .prepare_cached("SELECT content, facts FROM event WHERE seq = ?1")?
        .query_row([seq], |row| {
            let content: Digest = row.get(0)?;
            if content != event.content {
                return Ok(Accepted::Conflict { seq });
            }
            let text: String = row.get(1)?;
            // Better no answer than another one than the first publish got.
            let facts = serde_json::from_str(&text).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(1, Type::Text, Box::new(error))
            })?;
            Ok(Accepted::Duplicate {
                seq,
                facts: Arc::new(facts),
            })
        })
        .optional()
}

fn data(event: &Event) -> rusqlite::types::ToSqlOutput<'_> {
    let bytes = match event.data() {
        Data::Absent => ValueRef::Null,
        Data::Json(bytes) | Data::Text(bytes) | Data::Binary(bytes) => ValueRef::Blob(bytes),
    };
    rusqlite::types::ToSqlOutput::Borrowed(bytes)
}

fn data_bytes(event: &Accept) -> i64 {
    let inline = event.event.data_bytes().len() as u64;
    let bytes = event.claim.as_ref().map_or(inline, |claim| claim.bytes);
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Unmatched events of one transaction, folded so that a group costs one row write.
pub(super) struct UnmatchedGroups {
    known: usize,
    groups: HashMap<(i64, String, String), Group>,
}

struct Group {
    count: i64,
    first_seen: Millis,
    last_seen: Millis,
    sample: Seq,
}

impl UnmatchedGroups {
    /// Counts the groups there are, once, at start.
    pub fn load(connection: &rusqlite::Connection) -> rusqlite::Result<Self> {
        let known = connection.query_row("SELECT COUNT(*) FROM unmatched", [], |row| {
            row.get::<_, i64>(0)
        })?;
        Ok(Self {
            known: usize::try_from(known).unwrap_or(0),
            groups: HashMap::new(),
        })
    }

    fn add(
        &mut self,
        connection: &rusqlite::Connection,
        bus: i64,
        event: &Event,
        (at, seq): (Millis, Seq),
    ) -> rusqlite::Result<()> {
        let own = (
            bus,
            event.source().to_owned(),
            event.event_type().to_owned(),
        );
        let has_room = self.known + self.groups.len() < GROUPS_MAX;
        let key = if has_room || self.groups.contains_key(&own) || is_kept(connection, &own)? {
            own
        } else {
            (bus, OTHER.to_owned(), OTHER.to_owned())
        };
        let group = self.groups.entry(key).or_insert(Group {
            count: 0,
            first_seen: at,
            last_seen: at,
            sample: seq,
        });
        group.count += 1;
        group.first_seen = group.first_seen.min(at);
        group.last_seen = group.last_seen.max(at);
        group.sample = seq;
        Ok(())
    }

    /// Forgets what the ended transaction gathered.
    pub fn clear(&mut self) {
        self.groups.clear();
    }
}

/// Whether a group has its row already; only asked when there is no room for another one.
fn is_kept(
    connection: &rusqlite::Connection,
    (bus, source, event_type): &(i64, String, String),
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM unmatched WHERE bus = ?1 AND source = ?2 AND type = ?3")?
        .exists(params![bus, source, event_type])
}

/// Adds the transaction's unmatched events to their groups.
pub(super) fn write_unmatched(transaction: &mut Transaction<'_>) -> rusqlite::Result<()> {
    let groups = &mut transaction.state.unmatched;
    if groups.groups.is_empty() {
        return Ok(());
    }
    let mut upsert = transaction.connection.prepare_cached(
        "INSERT INTO unmatched (bus, source, type, count, first_seen, last_seen, sample) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (bus, source, type) DO UPDATE SET \
         count = count + excluded.count, last_seen = max(last_seen, excluded.last_seen), \
         sample = excluded.sample RETURNING count",
    )?;
    for ((bus, source, event_type), group) in &groups.groups {
        let count: i64 = upsert.query_row(
            params![
                bus,
                source,
                event_type,
                group.count,
                group.first_seen,
                group.last_seen,
                group.sample
            ],
            |row| row.get(0),
        )?;
        groups.known += usize::from(count == group.count);
    }
    Ok(())
}
