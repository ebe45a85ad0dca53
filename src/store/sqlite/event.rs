//! Reading the event log.

use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row, SqlitePool};

use crate::event::{Data, Event};
use crate::store::{Claim, Digest, Error, Facts, Found, Seq, StoredEvent, Unmatched};

const COLUMNS: &str = "seq, bus.name, accepted_at, attributes, data_kind, data, blob_key, \
                       data_bytes, facts, trace";

/// The events at these positions that exist, in order of position.
pub(super) async fn events(reads: &SqlitePool, seqs: &[Seq]) -> Result<Vec<StoredEvent>, Error> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let marks = vec!["?"; seqs.len()].join(",");
    let sql = format!(
        "SELECT {COLUMNS} FROM event JOIN bus USING (bus) WHERE seq IN ({marks}) ORDER BY seq"
    );
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for seq in seqs {
        query = query.bind(*seq);
    }
    let rows = query.fetch_all(reads).await.map_err(super::database)?;
    rows.iter().map(stored).collect()
}

/// Newest events of a bus first, below `before`.
pub(super) async fn recent(
    reads: &SqlitePool,
    bus: String,
    before: Seq,
    limit: u32,
) -> Result<Vec<StoredEvent>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM event JOIN bus USING (bus) \
         WHERE seq < ?1 AND bus.name = ?2 ORDER BY seq DESC LIMIT ?3"
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(before)
        .bind(bus)
        .bind(limit)
        .fetch_all(reads)
        .await
        .map_err(super::database)?;
    rows.iter().map(stored).collect()
}

/// Earlier acceptances under these identities, in order.
pub(super) async fn find(
    reads: &SqlitePool,
    identities: Vec<Digest>,
) -> Result<Vec<Option<Found>>, Error> {
    let mut found = Vec::with_capacity(identities.len());
    for identity in identities {
        let row = sqlx::query(
            "SELECT event.seq, content, facts FROM identity JOIN event USING (seq) WHERE digest = ?1",
        )
        .bind(identity.to_vec())
        .fetch_optional(reads)
        .await
        .map_err(super::database)?;
        found.push(row.as_ref().map(found_row).transpose()?);
    }
    Ok(found)
}

fn found_row(row: &SqliteRow) -> Result<Found, Error> {
    let content: Vec<u8> = row.try_get(1).map_err(super::database)?;
    Ok(Found {
        seq: row.try_get(0).map_err(super::database)?,
        content: content.try_into().map_err(|_| Error::Corrupt {
            what: "content digest",
        })?,
        facts: facts(row, 2)?,
    })
}

/// Groups of unmatched events, newest first.
pub(super) async fn unmatched(
    reads: &SqlitePool,
    bus: Option<String>,
    limit: u32,
) -> Result<Vec<Unmatched>, Error> {
    let rows = sqlx::query(
        "SELECT name, source, type, count, first_seen, last_seen, sample \
         FROM unmatched JOIN bus USING (bus) WHERE ?1 IS NULL OR name = ?1 \
         ORDER BY last_seen DESC LIMIT ?2",
    )
    .bind(bus)
    .bind(limit)
    .fetch_all(reads)
    .await
    .map_err(super::database)?;
    rows.iter()
        .map(|row| {
            Ok(Unmatched {
                bus: row.try_get(0)?,
                source: row.try_get(1)?,
                event_type: row.try_get(2)?,
                count: row.try_get(3)?,
                first_seen: row.try_get(4)?,
                last_seen: row.try_get(5)?,
                sample: row.try_get(6)?,
            })
        })
        .collect::<Result<_, sqlx::Error>>()
        .map_err(super::database)
}

/// Of these blob keys, those that an accepted event refers to.
pub(super) async fn blobs_in_use(
    reads: &SqlitePool,
    keys: Vec<String>,
) -> Result<Vec<String>, sqlx::Error> {
    let marks = vec!["?"; keys.len()].join(",");
    let sql = format!("SELECT DISTINCT blob_key FROM event WHERE blob_key IN ({marks})");
    let mut query = sqlx::query_scalar(AssertSqlSafe(sql));
    for key in keys {
        query = query.bind(key);
    }
    query.fetch_all(reads).await
}

fn stored(row: &SqliteRow) -> Result<StoredEvent, Error> {
    let read = |error| super::database::<sqlx::Error>(error);
    let attributes: String = row.try_get(3).map_err(read)?;
    let data_kind: u8 = row.try_get(4).map_err(read)?;
    let data: Option<Vec<u8>> = row.try_get(5).map_err(read)?;
    let blob_key: Option<String> = row.try_get(6).map_err(read)?;
    let data_bytes = u64::try_from(row.try_get::<i64, _>(7).map_err(read)?).unwrap_or(0);
    let data = match data {
        Some(data) => Data::from_code(data_kind, data.into()).ok_or(Error::Corrupt {
            what: "kind of data",
        })?,
        None => Data::Absent,
    };
    Ok(StoredEvent {
        seq: row.try_get(0).map_err(read)?,
        bus: row.try_get(1).map_err(read)?,
        accepted_at: row.try_get(2).map_err(read)?,
        event: Event::from_stored(&attributes, data)
            .map_err(|_| Error::Corrupt { what: "event" })?,
        claim: blob_key.map(|key| Claim {
            key,
            bytes: data_bytes,
        }),
        data_kind,
        data_bytes,
        facts: facts(row, 8)?,
        trace: row.try_get(9).map_err(read)?,
    })
}

fn facts(row: &SqliteRow, column: usize) -> Result<Facts, Error> {
    let text: String = row.try_get(column).map_err(super::database)?;
    serde_json::from_str(&text).map_err(|_| Error::Corrupt { what: "facts" })
}
