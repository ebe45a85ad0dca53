//! The limit of one check in steps and in time.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// Steps and time left. Steps make an answer repeatable; time is the last resort.
#[derive(Debug)]
pub(super) struct Budget {
    steps: Cell<u64>,
    deadline: Instant,
}

impl Budget {
    pub(super) fn new(steps: u64, time: Duration) -> Self {
        let deadline = Instant::now() + time;
        Self {
            steps: Cell::new(steps),
            deadline,
        }
    }

    /// Takes `count` steps; `false` when the budget is spent.
    pub(super) fn spend(&self, count: u64) -> bool {
        const CLOCK_EVERY: u64 = 16;
        let before = self.steps.get();
        let left = before.saturating_sub(count);
        self.steps.set(left);
        if left / CLOCK_EVERY != before / CLOCK_EVERY && self.time_left().is_zero() {
            self.steps.set(0);
        }
        self.steps.get() > 0
    }

    pub(super) fn is_spent(&self) -> bool {
        self.steps.get() == 0
    }

    /// Gives another part of the check its own steps, within the same time.
    pub(super) fn refill(&self, steps: u64) {
        if !self.time_left().is_zero() {
            self.steps.set(steps);
        }
    }

    pub(super) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
