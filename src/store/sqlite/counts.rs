//! Counts of each lane, kept beside the database so that nobody counts rows.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use rusqlite::Connection;

use crate::store::{Counts, LaneId};

/// A change of one lane's counts.
pub(super) type Delta = Counts;

/// Counts of all lanes; clones share them.
#[derive(Clone, Default)]
pub(super) struct Counters(Arc<RwLock<HashMap<LaneId, Counts>>>);

impl Counters {
    /// Counts the rows once, at start.
    pub fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let mut all: HashMap<LaneId, Counts> = HashMap::new();
        let mut tally = |table: &str, add: fn(&mut Counts, i64)| -> rusqlite::Result<()> {
            let sql = format!("SELECT lane, COUNT(*) FROM {table} GROUP BY lane");
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            for row in rows {
                let (lane, count): (LaneId, i64) = row?;
                add(all.entry(lane).or_default(), count);
            }
            Ok(())
        };
        tally("ready", |counts, n| counts.ready = n)?;
        tally("delayed", |counts, n| counts.delayed = n)?;
        tally("lease", |counts, n| counts.leased = n)?;
        tally("dead", |counts, n| counts.dead = n)?;
        Ok(Self(Arc::new(RwLock::new(all))))
    }

    /// Counts of one lane.
    pub fn get(&self, lane: LaneId) -> Counts {
        self.0.read().get(&lane).copied().unwrap_or_default()
    }

    /// Adds what a committed transaction changed.
    pub fn apply(&self, deltas: &[(LaneId, Delta)]) {
        if deltas.is_empty() {
            return;
        }
        let mut all = self.0.write();
        for (lane, delta) in deltas {
            let counts = all.entry(*lane).or_default();
            counts.ready += delta.ready;
            counts.delayed += delta.delayed;
            counts.leased += delta.leased;
            counts.dead += delta.dead;
        }
    }

    /// Forgets a lane.
    pub fn forget(&self, lane: LaneId) {
        self.0.write().remove(&lane);
    }
}

/// One more or one fewer in a single place.
pub(super) fn ready(by: i64) -> Delta {
    Counts {
        ready: by,
        ..Counts::default()
    }
}
