//! Lanes and settlement: what is waiting, what is due, and what became of it.

use rusqlite::params;
use sqlx::{Row, SqlitePool};

use super::counts::Delta;
use super::writer::Transaction;
use crate::clock::Millis;
use crate::store::{
    Attempt, Counts, Due, End, LaneId, LaneState, Origin, Pending, Seq, Settlement,
};

/// The lane of a target, made on first use.
pub(super) fn lane(transaction: &mut Transaction<'_>, target: &str) -> rusqlite::Result<LaneState> {
    let lane = transaction.lane(target)?;
    transaction
        .connection
        .prepare_cached("SELECT paused, disabled FROM lane WHERE lane = ?1")?
        .query_row([lane], |row| {
            Ok(LaneState {
                lane,
                paused: row.get(0)?,
                disabled: row.get(1)?,
            })
        })
}

/// Switches a lane on or off.
pub(super) fn switch_lane(
    transaction: &mut Transaction<'_>,
    lane: LaneId,
    paused: bool,
    disabled: Option<&str>,
) -> rusqlite::Result<()> {
    transaction.connection.execute(
        "UPDATE lane SET paused = ?2, disabled = ?3 WHERE lane = ?1",
        params![lane, paused, disabled],
    )?;
    Ok(())
}

/// Removes a lane with everything in it; says how many deliveries were dropped.
pub(super) fn drop_lane(transaction: &mut Transaction<'_>, lane: LaneId) -> rusqlite::Result<u64> {
    let connection = transaction.connection;
    let mut dropped = 0;
    for table in ["ready", "delayed", "lease"] {
        dropped += connection.execute(&format!("DELETE FROM {table} WHERE lane = ?1"), [lane])?;
    }
    for table in ["attempt", "dead", "lane"] {
        connection.execute(&format!("DELETE FROM {table} WHERE lane = ?1"), [lane])?;
    }
    transaction.state.lanes.retain(|_, known| *known != lane);
    Ok(dropped as u64)
}

/// Ready deliveries above `after`, in order of acceptance.
pub(super) async fn ready(
    reads: &SqlitePool,
    lane: LaneId,
    after: Seq,
    limit: u32,
) -> Result<Vec<Pending>, sqlx::Error> {
    let rows =
        sqlx::query("SELECT seq FROM ready WHERE lane = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3")
            .bind(lane)
            .bind(after)
            .bind(limit)
            .fetch_all(reads)
            .await?;
    rows.iter()
        .map(|row| row.try_get(0).map(Pending::fresh))
        .collect()
}

/// Delayed deliveries due by `now`, at most `limit`, and when the first of the others is due.
pub(super) async fn due(
    reads: &SqlitePool,
    lane: LaneId,
    now: Millis,
    limit: u32,
) -> Result<Due, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT due, seq, failures, receives, since FROM delayed WHERE lane = ?1 ORDER BY due, seq LIMIT ?2",
    )
    .bind(lane)
    .bind(limit.saturating_add(1))
    .fetch_all(reads)
    .await?;
    let mut found = Due::default();
    for row in &rows {
        let due: Millis = row.try_get(0)?;
        if due > now || found.rows.len() as u64 >= u64::from(limit) {
            found.next = Some(due);
            break;
        }
        found.rows.push(Pending {
            seq: row.try_get(1)?,
            origin: Origin::Delayed { due },
            failures: row.try_get(2)?,
            receives: row.try_get(3)?,
            since: row.try_get(4)?,
        });
    }
    Ok(found)
}

/// When the oldest waiting delivery of a lane was accepted.
pub(super) async fn oldest(
    reads: &SqlitePool,
    lane: LaneId,
) -> Result<Option<Millis>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT accepted_at FROM event WHERE seq = (SELECT MIN(seq) FROM (\
         SELECT * FROM (SELECT seq FROM ready WHERE lane = ?1 ORDER BY seq LIMIT 1) UNION ALL \
         SELECT seq FROM lease WHERE lane = ?1 UNION ALL \
         SELECT * FROM (SELECT seq FROM delayed WHERE lane = ?1 ORDER BY due LIMIT 100)))",
    )
    .bind(lane)
    .fetch_optional(reads)
    .await?;
    row.map(|row| row.try_get(0)).transpose()
}

/// Settles deliveries that a worker held in memory.
pub(super) fn settle(
    transaction: &mut Transaction<'_>,
    mut settlements: Vec<Settlement>,
) -> rusqlite::Result<()> {
    // Neighbours share a page, so sorted deletes touch each page once.
    settlements.sort_unstable_by_key(|settlement| (settlement.lane, settlement.pending.seq));
    for settlement in &settlements {
        settle_one(transaction, settlement)?;
    }
    Ok(())
}

fn settle_one(transaction: &mut Transaction<'_>, settlement: &Settlement) -> rusqlite::Result<()> {
    let Settlement { lane, pending, .. } = *settlement;
    if !take(transaction, lane, pending)? {
        // The lane was dropped, or this delivery was settled before; there is nothing to settle.
        return Ok(());
    }
    match &settlement.end {
        End::Delivered => {
            if pending.failures > 0 {
                forget_attempts(transaction, lane, pending.seq)?;
            }
        }
        End::Retry { due, failures } => {
            note_attempt(transaction, settlement)?;
            delay(
                transaction,
                lane,
                *due,
                Pending {
                    failures: *failures,
                    ..pending
                },
            )?;
        }
        End::DeadLetter {
            reason,
            detail,
            at,
            charged,
        } => {
            note_attempt(transaction, settlement)?;
            let death = super::dead::Death {
                reason,
                detail: detail.as_deref(),
                at: *at,
            };
            let failures = pending.failures + u32::from(*charged);
            super::dead::bury(
                transaction,
                lane,
                Pending {
                    failures,
                    ..pending
                },
                &death,
            )?;
        }
    }
    Ok(())
}

/// Takes a delivery's row out of the queue; false when it is not there.
pub(super) fn take(
    transaction: &mut Transaction<'_>,
    lane: LaneId,
    pending: Pending,
) -> rusqlite::Result<bool> {
    let connection = transaction.connection;
    let (taken, delta) = match pending.origin {
        Origin::Ready => (
            connection
                .prepare_cached("DELETE FROM ready WHERE lane = ?1 AND seq = ?2")?
                .execute([lane, pending.seq])?,
            super::counts::ready(-1),
        ),
        Origin::Delayed { due } => (
            connection
                .prepare_cached("DELETE FROM delayed WHERE lane = ?1 AND due = ?2 AND seq = ?3")?
                .execute([lane, due, pending.seq])?,
            Counts {
                delayed: -1,
                ..Delta::default()
            },
        ),
    };
    if taken > 0 {
        transaction.count(lane, delta);
    }
    Ok(taken > 0)
}

/// Puts a delivery among the delayed ones.
pub(super) fn delay(
    transaction: &mut Transaction<'_>,
    lane: LaneId,
    due: Millis,
    pending: Pending,
) -> rusqlite::Result<()> {
    transaction
        .connection
        .prepare_cached(
            "INSERT INTO delayed (lane, due, seq, since, failures, receives) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            lane,
            due,
            pending.seq,
            pending.since,
            pending.failures,
            pending.receives
        ])?;
    transaction.count(
        lane,
        Counts {
            delayed: 1,
            ..Delta::default()
        },
    );
    Ok(())
}

fn note_attempt(transaction: &Transaction<'_>, settlement: &Settlement) -> rusqlite::Result<()> {
    let Some(attempt) = &settlement.attempt else {
        return Ok(());
    };
    write_attempt(
        transaction,
        settlement.lane,
        settlement.pending.seq,
        attempt,
    )
}

/// Keeps a failed attempt until its delivery is settled.
pub(super) fn write_attempt(
    transaction: &Transaction<'_>,
    lane: LaneId,
    seq: Seq,
    attempt: &Attempt,
) -> rusqlite::Result<()> {
    let record = super::to_json(attempt)?;
    transaction
        .connection
        .prepare_cached(
            "INSERT INTO attempt (lane, seq, number, record) VALUES (?1, ?2, (SELECT \
             COALESCE(MAX(number), 0) + 1 FROM attempt WHERE lane = ?1 AND seq = ?2), ?3)",
        )?
        .execute(params![lane, seq, record])?;
    Ok(())
}

/// Forgets the failed attempts of a settled delivery.
pub(super) fn forget_attempts(
    transaction: &Transaction<'_>,
    lane: LaneId,
    seq: Seq,
) -> rusqlite::Result<()> {
    transaction
        .connection
        .prepare_cached("DELETE FROM attempt WHERE lane = ?1 AND seq = ?2")?
        .execute([lane, seq])?;
    Ok(())
}
