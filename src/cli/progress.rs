//! A line on the terminal that says how far long work has come.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How often the line changes.
const INTERVAL: Duration = Duration::from_millis(200);

/// Shows progress on standard error when that is a terminal, and nothing otherwise.
#[derive(Debug)]
pub(super) struct Progress {
    what: &'static str,
    is_terminal: bool,
    shown_at: Option<Instant>,
    begun_at: Instant,
}

impl Progress {
    /// Begins; `what` is counted, such as "events".
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            is_terminal: io::stderr().is_terminal(),
            shown_at: None,
            begun_at: Instant::now(),
        }
    }

    /// So many are done.
    pub(super) fn at(&mut self, count: u64) {
        let last = self.shown_at.unwrap_or(self.begun_at);
        if !self.is_terminal || last.elapsed() < INTERVAL {
            return;
        }
        self.shown_at = Some(Instant::now());
        let _ = write!(io::stderr(), "\r{count} {}\x1b[K", self.what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown_at.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
