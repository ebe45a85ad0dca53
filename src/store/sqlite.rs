//! The store on an embedded SQLite: one write connection behind a group-committing thread, a small
//! pool of read connections, checkpoints beside the commits.

mod accept;
mod checkpoint;
mod counts;
mod dead;
mod document;
mod event;
mod lease;
mod queue;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::{
    Accept, Accepted, Change, Commit, Counts, DeadFilter, DeadLetter, Digest, Due, Error, Expired,
    Found, Key, LaneId, LaneState, Lease, LeaseEnd, Members, Pending, Secret, Seq, Settlement,
    Store, StoredDocument, StoredEvent, Unmatched,
};
use crate::clock::Millis;
use counts::Counters;
use writer::{Settings, State, Writer};

/// Read connections.
const READERS: u32 = 4;
/// How long a connection waits for another one's lock.
const BUSY: Duration = Duration::from_secs(5);
/// Page cache of the write connection, in KiB. Larger is slower: splitting the identity table makes
/// SQLite walk the cache's whole hash table at each commit; what falls out is in the system's cache.
const CACHE_KIB: i64 = 16 * 1024;

/// How the store is opened.
#[derive(Clone)]
pub struct Options {
    /// Most writes committed together; 1 makes every write its own transaction.
    pub commit_batch_max: usize,
    /// Called after each commit, on the writer's thread.
    pub on_commit: Arc<dyn Fn(Commit) + Send + Sync>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            commit_batch_max: 2_000,
            on_commit: Arc::new(|_| {}),
        }
    }
}

/// An open SQLite database.
pub struct Sqlite {
    writer: Writer,
    reads: SqlitePool,
    counters: Counters,
}

impl Sqlite {
    /// Opens or creates the database file at `path` and brings its tables up to date.
    ///
    /// # Errors
    /// When the file cannot be opened or written, or comes from a newer version of dak.
    pub async fn open(path: &Path, options: Options) -> Result<Self, Error> {
        let reads = migrate(path).await?;
        let path = path.to_owned();
        let (writer, counters) = tokio::task::spawn_blocking(move || start_writer(&path, options))
            .await
            .map_err(database)??;
        Ok(Self {
            writer,
            reads,
            counters,
        })
    }
}

async fn migrate(path: &Path) -> Result<SqlitePool, Error> {
    let connect = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY);
    let migrations = SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(connect.clone())
        .await
        .map_err(database)?;
    sqlx::migrate!("migrations/sqlite")
        .run(&migrations)
        .await
        .map_err(database)?;
    migrations.close().await;
    SqlitePoolOptions::new()
        .max_connections(READERS)
        .connect_with(connect.read_only(true).create_if_missing(false))
        .await
        .map_err(database)
}

fn start_writer(path: &Path, options: Options) -> Result<(Writer, Counters), Error> {
    let connection = Connection::open(path).map_err(database)?;
    connection.busy_timeout(BUSY).map_err(database)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; \
             PRAGMA cache_size = -{CACHE_KIB}; PRAGMA temp_store = MEMORY"
        ))
        .map_err(database)?;
    let counters = Counters::load(&connection).map_err(database)?;
    let state = State::load(&connection).map_err(database)?;
    let checkpointer = checkpoint::Checkpointer::start(path).map_err(database)?;
    let settings = Settings {
        commit_batch_max: options.commit_batch_max.max(1),
        on_commit: options.on_commit,
    };
    let writer = Writer::start(connection, state, counters.clone(), settings, checkpointer)
        .map_err(database)?;
    Ok((writer, counters))
}

fn database<E: std::error::Error + Send + Sync + 'static>(error: E) -> Error {
    Error::Database(Box::new(error))
}

/// A value as the JSON text that a column keeps.
fn to_json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

#[async_trait]
impl Store for Sqlite {
    async fn documents(&self) -> Result<Vec<StoredDocument>, Error> {
        document::documents(&self.reads).await.map_err(database)
    }

    async fn change_documents(&self, changes: Vec<Change>) -> Result<(), Error> {
        self.writer
            .run(move |transaction| document::change_documents(transaction, &changes))
            .await
    }

    async fn accept(&self, batch: Vec<Accept>, members: Members) -> Result<Vec<Accepted>, Error> {
        self.writer
            .run(move |transaction| accept::accept(transaction, batch, members))
            .await
    }

    async fn find(&self, identities: Vec<Digest>) -> Result<Vec<Option<Found>>, Error> {
        event::find(&self.reads, identities).await
    }

    async fn events(&self, seqs: Vec<Seq>) -> Result<Vec<StoredEvent>, Error> {
        event::events(&self.reads, &seqs).await
    }

    async fn recent(
        &self,
        bus: String,
        before: Seq,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, Error> {
        event::recent(&self.reads, bus, before, limit).await
    }

    async fn lane(&self, target: String) -> Result<LaneState, Error> {
        self.writer
            .run(move |transaction| queue::lane(transaction, &target))
            .await
    }

    async fn switch_lane(
        &self,
        lane: LaneId,
        paused: bool,
        disabled: Option<String>,
    ) -> Result<(), Error> {
        self.writer
            .run(move |transaction| {
                queue::switch_lane(transaction, lane, paused, disabled.as_deref())
            })
            .await
    }

    async fn drop_lane(&self, lane: LaneId) -> Result<u64, Error> {
        let dropped = self
            .writer
            .run(move |transaction| queue::drop_lane(transaction, lane))
            .await?;
        self.counters.forget(lane);
        Ok(dropped)
    }

    async fn ready(&self, lane: LaneId, after: Seq, limit: u32) -> Result<Vec<Pending>, Error> {
        queue::ready(&self.reads, lane, after, limit)
            .await
            .map_err(database)
    }

    async fn due(&self, lane: LaneId, now: Millis, limit: u32) -> Result<Due, Error> {
        queue::due(&self.reads, lane, now, limit)
            .await
            .map_err(database)
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<(), Error> {
        self.writer
            .run(move |transaction| queue::settle(transaction, settlements))
            .await
    }

    async fn lease(&self, lane: LaneId, leases: Vec<Lease>) -> Result<(), Error> {
        self.writer
            .run(move |transaction| lease::lease(transaction, lane, &leases))
            .await
    }

    async fn end_leases(
        &self,
        lane: LaneId,
        leases: Vec<(Seq, Secret)>,
        end: LeaseEnd,
        now: Millis,
    ) -> Result<Vec<bool>, Error> {
        self.writer
            .run(move |transaction| lease::end_leases(transaction, lane, &leases, &end, now))
            .await
    }

    async fn expire_leases(
        &self,
        lane: LaneId,
        now: Millis,
        failures_max: u32,
    ) -> Result<Expired, Error> {
        self.writer
            .run(move |transaction| lease::expire_leases(transaction, lane, now, failures_max))
            .await
    }

    async fn dead_letters(&self, filter: DeadFilter) -> Result<Vec<DeadLetter>, Error> {
        dead::dead_letters(&self.reads, &filter)
            .await
            .map_err(database)
    }

    async fn redrive(&self, filter: DeadFilter, now: Millis) -> Result<Vec<(String, u64)>, Error> {
        self.writer
            .run(move |transaction| dead::redrive(transaction, &filter, now))
            .await
    }

    async fn purge(&self, filter: DeadFilter) -> Result<u64, Error> {
        self.writer
            .run(move |transaction| dead::purge(transaction, &filter))
            .await
    }

    async fn unmatched(&self, bus: Option<String>, limit: u32) -> Result<Vec<Unmatched>, Error> {
        event::unmatched(&self.reads, bus, limit).await
    }

    async fn keys(&self) -> Result<Vec<Key>, Error> {
        document::keys(&self.reads).await.map_err(database)
    }

    async fn add_key(&self, key: Key) -> Result<bool, Error> {
        self.writer
            .run(move |transaction| document::add_key(transaction, &key))
            .await
    }

    async fn remove_key(&self, name: String) -> Result<bool, Error> {
        self.writer
            .run(move |transaction| document::remove_key(transaction, &name))
            .await
    }

    async fn meta(&self, name: String, fresh: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.writer
            .run(move |transaction| document::meta(transaction, &name, fresh))
            .await
    }

    async fn blobs_in_use(&self, keys: Vec<String>) -> Result<Vec<String>, Error> {
        event::blobs_in_use(&self.reads, keys)
            .await
            .map_err(database)
    }

    fn counts(&self, lane: LaneId) -> Counts {
        self.counters.get(lane)
    }

    async fn oldest(&self, lane: LaneId) -> Result<Option<Millis>, Error> {
        queue::oldest(&self.reads, lane).await.map_err(database)
    }

    async fn close(&self) {
        self.writer.close().await;
        self.reads.close().await;
    }
}
