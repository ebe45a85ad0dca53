//! Dead letters: burying, listing, redriving, purging.

use rusqlite::params;
use rusqlite::types::Value;
use sqlx::{AssertSqlSafe, Row, SqlitePool};

use super::counts::Delta;
use super::queue;
use super::writer::Transaction;
use crate::clock::Millis;
use crate::store::{Attempt, Counts, DeadFilter, DeadLetter, LaneId, Pending};

/// Dead letters moved or forgotten by one call at most.
const MOVED_MAX: u32 = 1_000;

/// Why and when a delivery died.
pub(super) struct Death<'a> {
    pub reason: &'a str,
    pub detail: Option<&'a str>,
    pub at: Millis,
}

/// Turns a delivery that is out of its queue into a dead letter, with all its attempts.
pub(super) fn bury(
    transaction: &mut Transaction<'_>,
    lane: LaneId,
    pending: Pending,
    death: &Death<'_>,
) -> rusqlite::Result<()> {
    transaction
        .connection
        .prepare_cached(
            "INSERT INTO dead (lane, seq, died_at, reason, detail, failures, receives, attempts) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, (SELECT json_group_array(json(record)) FROM \
             (SELECT record FROM attempt WHERE lane = ?1 AND seq = ?2 ORDER BY number)))",
        )?
        .execute(params![
            lane,
            pending.seq,
            death.at,
            death.reason,
            death.detail,
            pending.failures,
            pending.receives
        ])?;
    queue::forget_attempts(transaction, lane, pending.seq)?;
    transaction.count(lane, buried(1));
    Ok(())
}

/// Dead letters that the filter means, by id.
pub(super) async fn dead_letters(
    reads: &SqlitePool,
    filter: &DeadFilter,
) -> Result<Vec<DeadLetter>, sqlx::Error> {
    let (condition, values) = condition(filter);
    let sql = format!(
        "SELECT dead, target, seq, died_at, reason, detail, failures, receives, attempts \
         FROM dead JOIN lane USING (lane) WHERE {condition} ORDER BY dead LIMIT ?"
    );
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for value in values {
        query = match value {
            Value::Integer(integer) => query.bind(integer),
            Value::Text(text) => query.bind(text),
            Value::Null | Value::Real(_) | Value::Blob(_) => query,
        };
    }
    let rows = query.bind(filter.limit).fetch_all(reads).await?;
    rows.iter()
        .map(|row| {
            let attempts: String = row.try_get(8)?;
            let attempts: Vec<Attempt> = serde_json::from_str(&attempts)
                .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
            Ok(DeadLetter {
                id: row.try_get(0)?,
                target: row.try_get(1)?,
                seq: row.try_get(2)?,
                died_at: row.try_get(3)?,
                reason: row.try_get(4)?,
                detail: row.try_get(5)?,
                failures: row.try_get(6)?,
                receives: row.try_get(7)?,
                attempts,
            })
        })
        .collect()
}

/// Puts dead letters back into their queues, due now and with a clean slate.
pub(super) fn redrive(
    transaction: &mut Transaction<'_>,
    filter: &DeadFilter,
    now: Millis,
) -> rusqlite::Result<Vec<(String, u64)>> {
    let mut moved: Vec<(String, u64)> = Vec::new();
    for (lane, target, seq) in exhume(transaction, filter)? {
        let pending = Pending {
            since: now,
            ..Pending::fresh(seq)
        };
        queue::delay(transaction, lane, now, pending)?;
        match moved.iter_mut().find(|(name, _)| *name == target) {
            Some((_, count)) => *count += 1,
            None => moved.push((target, 1)),
        }
    }
    Ok(moved)
}

/// Forgets dead letters.
pub(super) fn purge(
    transaction: &mut Transaction<'_>,
    filter: &DeadFilter,
) -> rusqlite::Result<u64> {
    Ok(exhume(transaction, filter)?.len() as u64)
}

/// Takes dead letters out; says which they were.
fn exhume(
    transaction: &mut Transaction<'_>,
    filter: &DeadFilter,
) -> rusqlite::Result<Vec<(LaneId, String, i64)>> {
    let (condition, mut values) = condition(filter);
    values.push(Value::Integer(i64::from(filter.limit.min(MOVED_MAX))));
    let sql = format!(
        "SELECT dead, lane, target, seq FROM dead JOIN lane USING (lane) \
         WHERE {condition} ORDER BY dead LIMIT ?"
    );
    let rows: Vec<(i64, LaneId, String, i64)> = transaction
        .connection
        .prepare(&sql)?
        .query_map(rusqlite::params_from_iter(values), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut taken = Vec::with_capacity(rows.len());
    for (dead, lane, target, seq) in rows {
        transaction
            .connection
            .prepare_cached("DELETE FROM dead WHERE dead = ?1")?
            .execute([dead])?;
        transaction.count(lane, buried(-1));
        taken.push((lane, target, seq));
    }
    Ok(taken)
}

/// The filter as SQL with positional parameters, in order.
fn condition(filter: &DeadFilter) -> (String, Vec<Value>) {
    let mut sql = String::from("dead > ?");
    let mut values = vec![Value::Integer(filter.after)];
    if let Some(target) = &filter.target {
        sql.push_str(" AND target = ?");
        values.push(Value::Text(target.clone()));
    }
    if let Some(reason) = &filter.reason {
        sql.push_str(" AND reason = ?");
        values.push(Value::Text(reason.clone()));
    }
    if let Some(ids) = &filter.ids {
        let marks = vec!["?"; ids.len()].join(", ");
        sql.push_str(&format!(" AND dead IN ({marks})"));
        values.extend(ids.iter().map(|id| Value::Integer(*id)));
    }
    (sql, values)
}

fn buried(by: i64) -> Delta {
    Counts {
        dead: by,
        ..Delta::default()
    }
}
