//! Group commit: one thread owns the only write connection and commits all that wait at once.
//!
//! A handler hands over a piece of work and waits. The thread takes whatever has gathered while the
//! last commit ran, does it in one transaction, syncs, and only then answers all of them. Nothing
//! is ever delayed to make a batch bigger.

use std::cell::Cell;
use std::collections::HashMap;
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::accept::UnmatchedGroups;
use super::checkpoint;
use super::counts::{Counters, Delta};
use crate::store::{Commit, Error, LaneId, Seq};

/// Pieces of work that may wait for the writer.
const WAITING_MAX: usize = 8_192;

thread_local! {
    /// Pages in the write-ahead log after the last commit of this thread.
    static WAL_PAGES: Cell<u32> = const { Cell::new(0) };
}

/// How the writer commits.
#[derive(Clone)]
pub(super) struct Settings {
    /// Most pieces of work in one transaction.
    pub commit_batch_max: usize,
    /// Called after each commit, on the writer's thread.
    pub on_commit: std::sync::Arc<dyn Fn(Commit) + Send + Sync>,
}

/// Hands work to the writer's thread.
pub(super) struct Writer {
    sender: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What a piece of work sees while its transaction is open.
pub(super) struct Transaction<'a> {
    pub connection: &'a Connection,
    pub state: &'a mut State,
}

/// Facts the writer keeps beside the database, all derived from it.
pub(super) struct State {
    pub next_seq: Seq,
    pub buses: HashMap<String, i64>,
    pub lanes: HashMap<String, LaneId>,
    /// Changes of the counters, applied when the transaction commits.
    pub deltas: Vec<(LaneId, Delta)>,
    pub unmatched: UnmatchedGroups,
    /// Events written in this transaction.
    pub events: u64,
}

trait Job: Send {
    fn run(&mut self, transaction: &mut Transaction<'_>) -> rusqlite::Result<()>;
    fn answer(self: Box<Self>, committed: Result<(), Failure>);
}

/// Why a whole transaction came to nothing; told to everyone in it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
struct Failure(String);

struct Work<T, F> {
    work: Option<F>,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, F> Job for Work<T, F>
where
    T: Send,
    F: FnOnce(&mut Transaction<'_>) -> rusqlite::Result<T> + Send,
{
    fn run(&mut self, transaction: &mut Transaction<'_>) -> rusqlite::Result<()> {
        if let Some(work) = self.work.take() {
            self.result = Some(work(transaction)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), Failure>) {
        let answer = match (committed, self.result) {
            (Ok(()), Some(result)) => Ok(result),
            (Ok(()), None) => Err(Error::Closed),
            (Err(failure), _) => Err(Error::Database(Box::new(failure))),
        };
        // The one who asked may be gone; what was committed stands all the same.
        let _gone = self.reply.send(answer);
    }
}

impl Writer {
    /// Starts the writer's thread on its connection.
    pub fn start(
        connection: Connection,
        state: State,
        counters: Counters,
        settings: Settings,
        checkpointer: checkpoint::Checkpointer,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("dak-writer".into())
            .spawn(move || {
                connection.wal_hook(Some(|_, pages| {
                    WAL_PAGES.set(u32::try_from(pages).unwrap_or(0));
                    Ok(())
                }));
                Committer {
                    connection,
                    state,
                    counters,
                    settings,
                    checkpointer,
                }
                .run(receiver);
            })?;
        Ok(Self {
            sender: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Does `work` in the next transaction and returns its result once that has been synced.
    pub async fn run<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let sender = self.sender.lock().clone().ok_or(Error::Closed)?;
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Work {
            work: Some(work),
            result: None,
            reply,
        });
        sender.try_send(job).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => Error::Overloaded {
                waiting: WAITING_MAX,
            },
            mpsc::error::TrySendError::Closed(_) => Error::Closed,
        })?;
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Takes no more work, commits what waits, and ends the thread.
    pub async fn close(&self) {
        drop(self.sender.lock().take());
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _joined = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

struct Committer {
    connection: Connection,
    state: State,
    counters: Counters,
    settings: Settings,
    checkpointer: checkpoint::Checkpointer,
}

impl Committer {
    fn run(mut self, mut receiver: mpsc::Receiver<Box<dyn Job>>) {
        let mut batch = Vec::new();
        while let Some(first) = receiver.blocking_recv() {
            batch.push(first);
            while batch.len() < self.settings.commit_batch_max {
                let Ok(next) = receiver.try_recv() else { break };
                batch.push(next);
            }
            self.commit(&mut batch);
            self.checkpointer
                .after_commit(&self.connection, WAL_PAGES.get());
        }
        self.checkpointer.finish(&self.connection);
    }

    fn commit(&mut self, batch: &mut Vec<Box<dyn Job>>) {
        let started = Instant::now();
        let first_seq = self.state.next_seq;
        let outcome = self.transact(batch);
        match &outcome {
            Ok(()) => self.counters.apply(&self.state.deltas),
            Err(error) => {
                self.state.next_seq = first_seq;
                tracing::error!(%error, "a commit failed; its {} writes were refused", batch.len());
            }
        }
        (self.settings.on_commit)(Commit {
            events: self.state.events,
            seconds: started.elapsed().as_secs_f64(),
        });
        self.state.deltas.clear();
        self.state.unmatched.clear();
        self.state.events = 0;
        let told = outcome.map_err(|error| Failure(error.to_string()));
        for job in batch.drain(..) {
            job.answer(told.clone());
        }
    }

    fn transact(&mut self, batch: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("BEGIN IMMEDIATE")?
            .execute([])?;
        match self.work(batch) {
            Ok(()) => Ok(()),
            Err(error) => {
                // Names given out in the failed transaction do not exist.
                if let Err(rollback) = self.connection.execute_batch("ROLLBACK") {
                    tracing::debug!(%rollback, "nothing to roll back");
                }
                self.state.reread(&self.connection);
                Err(error)
            }
        }
    }

    fn work(&mut self, batch: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
        let mut transaction = Transaction {
            connection: &self.connection,
            state: &mut self.state,
        };
        for job in batch {
            job.run(&mut transaction)?;
        }
        super::accept::write_unmatched(&mut transaction)?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

impl State {
    /// Reads what the writer keeps beside the database.
    pub fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let next_seq: Seq =
            connection.query_row("SELECT COALESCE(MAX(seq), 0) + 1 FROM event", [], |row| {
                row.get(0)
            })?;
        Ok(Self {
            next_seq,
            buses: names(connection, "SELECT name, bus FROM bus")?,
            lanes: names(connection, "SELECT target, lane FROM lane")?,
            deltas: Vec::new(),
            unmatched: UnmatchedGroups::load(connection)?,
            events: 0,
        })
    }

    /// Reads again what the failed transaction may have changed here and not in the database.
    fn reread(&mut self, connection: &Connection) {
        // When even reading fails, the next transaction fails too and comes back here.
        if let Ok(buses) = names(connection, "SELECT name, bus FROM bus") {
            self.buses = buses;
        }
        if let Ok(lanes) = names(connection, "SELECT target, lane FROM lane") {
            self.lanes = lanes;
        }
        if let Ok(unmatched) = UnmatchedGroups::load(connection) {
            self.unmatched = unmatched;
        }
    }
}

impl Transaction<'_> {
    /// The number of a bus, given on first use.
    pub fn bus(&mut self, name: &str) -> rusqlite::Result<i64> {
        if let Some(bus) = self.state.buses.get(name) {
            return Ok(*bus);
        }
        let bus = self.connection.query_row(
            "INSERT INTO bus (name) VALUES (?1) RETURNING bus",
            [name],
            |row| row.get(0),
        )?;
        self.state.buses.insert(name.to_owned(), bus);
        Ok(bus)
    }

    /// The lane of a target, made on first use.
    pub fn lane(&mut self, target: &str) -> rusqlite::Result<LaneId> {
        if let Some(lane) = self.state.lanes.get(target) {
            return Ok(*lane);
        }
        let lane = self.connection.query_row(
            "INSERT INTO lane (target) VALUES (?1) RETURNING lane",
            [target],
            |row| row.get(0),
        )?;
        self.state.lanes.insert(target.to_owned(), lane);
        Ok(lane)
    }

    /// Notes a change of a lane's counts for when the transaction commits.
    pub fn count(&mut self, lane: LaneId, delta: Delta) {
        self.state.deltas.push((lane, delta));
    }
}

fn names(connection: &Connection, sql: &str) -> rusqlite::Result<HashMap<String, i64>> {
    connection
        .prepare(sql)?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}
