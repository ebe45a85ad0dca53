//! Checkpoints: moving committed pages from the write-ahead log into the database file.
//!
//! SQLite would do this inside whichever commit crosses a threshold, and that commit would stall
//! everyone in it. Here a thread of its own copies and syncs while commits go on; the writer only
//! copies the small rest between two commits, after which the log starts again from its beginning
//! and its file is reused instead of growing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;

/// Pages in the log from which the thread starts copying (16 MiB of 4 KiB pages).
const START_PAGES: u32 = 4_096;
/// Pages left to copy that the writer takes on between two commits.
const REST_PAGES: u32 = 512;
/// Pages in the log from which the writer copies whatever is left, so that it stays bounded.
const LIMIT_PAGES: u32 = 65_536;

/// The writer's handle on the checkpoint thread.
pub(super) struct Checkpointer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    wanted: Mutex<Wanted>,
    wake: Condvar,
    /// Pages of the log that are in the database file already.
    copied: AtomicU32,
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Wanted {
    Nothing,
    Copy,
    Stop,
}

impl Checkpointer {
    /// Starts the thread on the database at `path`.
    pub fn start(path: &Path) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            wanted: Mutex::new(Wanted::Nothing),
            wake: Condvar::new(),
            copied: AtomicU32::new(0),
        });
        let thread = std::thread::Builder::new()
            .name("dak-checkpoint".into())
            .spawn({
                let shared = Arc::clone(&shared);
                let path = path.to_owned();
                move || shared.run(path)
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Called by the writer between two commits, with the pages now in the log.
    pub fn after_commit(&self, writer: &Connection, pages: u32) {
        if pages < START_PAGES {
            return;
        }
        let copied = self.shared.copied.load(Ordering::Acquire);
        let rest = pages.saturating_sub(copied);
        if (copied > 0 && rest <= REST_PAGES) || pages >= LIMIT_PAGES {
            self.shared.copied.store(0, Ordering::Release);
            copy(writer);
        } else {
            self.shared.want(Wanted::Copy);
        }
    }

    /// Copies everything and ends the thread.
    pub fn finish(mut self, writer: &Connection) {
        self.shared.want(Wanted::Stop);
        if let Some(thread) = self.thread.take() {
            let _joined = thread.join();
        }
        if let Err(error) = writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(%error, "the last checkpoint failed; the log is read at the next start");
        }
    }
}

impl Shared {
    fn want(&self, wanted: Wanted) {
        let mut current = self.wanted.lock();
        if *current != Wanted::Stop {
            *current = wanted;
        }
        self.wake.notify_one();
    }

    fn run(&self, path: PathBuf) {
        let connection = match Connection::open(&path) {
            Ok(connection) => connection,
            Err(error) => {
                tracing::error!(%error, "checkpoints run inside commits, which makes some slow");
                return;
            }
        };
        loop {
            let mut wanted = self.wanted.lock();
            while *wanted == Wanted::Nothing {
                self.wake.wait(&mut wanted);
            }
            if *wanted == Wanted::Stop {
                return;
            }
            *wanted = Wanted::Nothing;
            drop(wanted);
            if let Some(copied) = copy(&connection) {
                self.copied.store(copied, Ordering::Release);
            }
        }
    }
}

/// Copies what no reader holds back; says how many pages of the log are copied now.
fn copy(connection: &Connection) -> Option<u32> {
    let copied = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        row.get::<_, i64>(2)
    });
    match copied {
        Ok(copied) => u32::try_from(copied).ok(),
        Err(error) => {
            tracing::warn!(%error, "a checkpoint failed; it is tried again");
            None
        }
    }
}
