//! Durable leases of pull consumers.

use rusqlite::{OptionalExtension, params};

use super::counts::Delta;
use super::writer::Transaction;
use super::{dead, queue};
use crate::clock::Millis;
use crate::store::{
    Attempt, Counts, Expired, LaneId, Lease, LeaseEnd, Origin, Pending, Secret, Seq,
};

/// Expired leases returned in one transaction.
const EXPIRED_MAX: u32 = 1_000;

/// Turns pending deliveries into leases.
pub(super) fn lease(
    transaction: &mut Transaction<'_>,
    lane: LaneId,
    leases: &[Lease],
) -> rusqlite::Result<()> {
    for lease in leases {
        if !queue::take(transaction, lane, lease.pending)? {
            continue;
        }
        transaction
            .connection
            .prepare_cached(
                "INSERT INTO lease (lane, seq, token, until, since, failures, receives) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                lane,
                lease.pending.seq,
                lease.secret,
                lease.until,
                lease.pending.since,
                lease.pending.failures,
                lease.pending.receives + 1
            ])?;
        transaction.count(lane, leased(1));
    }
    Ok(())
}

/// Ends or renews leases; false where the token is not the live one.
pub(super) fn end_leases(
    transaction: &mut Transaction<'_>,
    lane: LaneId,
    leases: &[(Seq, Secret)],
    end: &LeaseEnd,
    now: Millis,
) -> rusqlite::Result<Vec<bool>> {
    leases
        .iter()
        .map(|(seq, secret)| end_one(transaction, lane, (*seq, secret), end, now))
        .collect()
}

fn end_one(
    transaction: &mut Transaction<'_>,
    lane: LaneId,
    (seq, secret): (Seq, &Secret),
    end: &LeaseEnd,
    now: Millis,
) -> rusqlite::Result<bool> {
    if let LeaseEnd::Renew { until } = end {
        let renewed = transaction
            .connection
            .prepare_cached(
                "UPDATE lease SET until = ?5 \
                 WHERE lane = ?1 AND seq = ?2 AND token = ?3 AND until > ?4",
            )?
            .execute(params![lane, seq, secret, now, until])?;
        return Ok(renewed > 0);
    }
    let held = transaction
        .connection
        .prepare_cached(
            "DELETE FROM lease WHERE lane = ?1 AND seq = ?2 AND token = ?3 AND until > ?4 \
             RETURNING failures, receives, since",
        )?
        .query_row(params![lane, seq, secret, now], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((failures, receives, since)) = held else {
        return Ok(false);
    };
    transaction.count(lane, leased(-1));
    let pending = Pending {
        seq,
        origin: Origin::Ready,
        failures,
        receives,
        since,
    };
    match end {
        LeaseEnd::Acknowledge => {
            if failures > 0 {
                queue::forget_attempts(transaction, lane, seq)?;
            }
        }
        LeaseEnd::Release { due } => queue::delay(transaction, lane, *due, pending)?,
        LeaseEnd::Reject { reason, detail } => {
            let death = dead::Death {
                reason,
                detail: detail.as_deref(),
                at: now,
            };
            dead::bury(transaction, lane, pending, &death)?;
        }
        LeaseEnd::Renew { .. } => {}
    }
    Ok(true)
}

/// Returns expired leases to the queue, or dead-letters those that failed too often.
pub(super) fn expire_leases(
    transaction: &mut Transaction<'_>,
    lane: LaneId,
    now: Millis,
    failures_max: u32,
) -> rusqlite::Result<Expired> {
    let expired: Vec<(Seq, u32, u32, Millis, Millis)> = transaction
        .connection
        .prepare_cached(
            "SELECT seq, failures, receives, until, since FROM lease \
             WHERE lane = ?1 AND until <= ?2 ORDER BY until LIMIT ?3",
        )?
        .query_map(params![lane, now, EXPIRED_MAX], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut ended = Expired::default();
    for (seq, failures, receives, until, since) in &expired {
        transaction
            .connection
            .prepare_cached("DELETE FROM lease WHERE lane = ?1 AND seq = ?2")?
            .execute([lane, *seq])?;
        transaction.count(lane, leased(-1));
        let attempt = Attempt {
            at: *until,
            duration_ms: 0,
            outcome: "lease_expired".into(),
            status: None,
            excerpt: None,
        };
        queue::write_attempt(transaction, lane, *seq, &attempt)?;
        let pending = Pending {
            seq: *seq,
            origin: Origin::Ready,
            failures: failures + 1,
            receives: *receives,
            since: *since,
        };
        if pending.failures >= failures_max {
            let death = dead::Death {
                reason: "exhausted",
                detail: Some("its leases expired as often as the target's max_attempts allows"),
                at: now,
            };
            dead::bury(transaction, lane, pending, &death)?;
            ended.buried += 1;
        } else {
            queue::delay(transaction, lane, now, pending)?;
            ended.returned += 1;
        }
    }
    ended.next = transaction
        .connection
        .prepare_cached("SELECT MIN(until) FROM lease WHERE lane = ?1")?
        .query_row([lane], |row| row.get(0))?;
    Ok(ended)
}

fn leased(by: i64) -> Delta {
    Counts {
        leased: by,
        ..Delta::default()
    }
}
