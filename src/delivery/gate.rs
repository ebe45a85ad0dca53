//! Whether a target may be sent to now: holds that the target asked for, and the circuit breaker.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::{Millis, millis};

/// Failures in a row after which the breaker opens.
const FAILURES_MAX: u32 = 10;
/// How long the breaker stays open the first time; doubles with each failed probe.
const OPEN_FIRST: Duration = Duration::from_secs(5);
/// How long it stays open at most.
const OPEN_MAX: Duration = Duration::from_secs(300);

/// Stands between a lane and its target.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The target asked to be left alone until then.
    held_until: Option<Millis>,
    failures: u32,
    throttles: u32,
    breaker: Breaker,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Breaker {
    #[default]
    Closed,
    Open {
        until: Millis,
        wait: Millis,
    },
    /// One delivery is out to find whether the target works again.
    Probing {
        wait: Millis,
    },
}

/// How many deliveries may start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// As many as the target's concurrency allows.
    Wide,
    /// One probe.
    One,
    /// None; [`Gate::closed_until`] says for how long.
    Closed,
}

/// Why a target is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It asked to be left alone until then.
    Asked { until: Millis },
    /// Its circuit breaker is open.
    Breaker { until: Option<Millis> },
}

impl Gate {
    /// What may start at `now`. Answering [`Opening::One`] sends the probe out.
    pub fn open(&self, now: Millis) -> Opening {
        let mut state = self.state.lock();
        if let Some(until) = state.held_until {
            if now < until {
                return Opening::Closed;
            }
            state.held_until = None;
        }
        match state.breaker {
            Breaker::Closed => Opening::Wide,
            Breaker::Open { until, .. } if now < until => Opening::Closed,
            Breaker::Open { wait, .. } => {
                state.breaker = Breaker::Probing { wait };
                Opening::One
            }
            Breaker::Probing { .. } => Opening::Closed,
        }
    }

    /// Until when nothing may start, seen at `now`: [`Millis::MAX`] when that hangs on the probe
    /// under way.
    pub fn closed_until(&self, now: Millis) -> Option<Millis> {
        let state = self.state.lock();
        if let Some(until) = state.held_until.filter(|until| now < *until) {
            return Some(until);
        }
        match state.breaker {
            Breaker::Closed => None,
            Breaker::Open { until, .. } => (now < until).then_some(until),
            Breaker::Probing { .. } => Some(Millis::MAX),
        }
    }

    /// Takes a probe back that found nothing to send.
    pub fn unprobe(&self, now: Millis) {
        let mut state = self.state.lock();
        if let Breaker::Probing { wait } = state.breaker {
            state.breaker = Breaker::Open { until: now, wait };
        }
    }

    /// Returns when the gate may have opened.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Answers in a row by which the target asked for less.
    pub fn throttles(&self) -> u32 {
        self.state.lock().throttles
    }

    /// Why the target is held at `now`, if it is.
    pub fn hold(&self, now: Millis) -> Option<Hold> {
        let state = self.state.lock();
        if let Some(until) = state.held_until.filter(|until| now < *until) {
            return Some(Hold::Asked { until });
        }
        match state.breaker {
            Breaker::Closed => None,
            Breaker::Open { until, .. } => Some(Hold::Breaker { until: Some(until) }),
            Breaker::Probing { .. } => Some(Hold::Breaker { until: None }),
        }
    }

    /// The target took a delivery.
    pub fn succeeded(&self) {
        let mut state = self.state.lock();
        state.failures = 0;
        state.throttles = 0;
        if state.breaker != Breaker::Closed {
            state.breaker = Breaker::Closed;
            self.changed.notify_one();
        }
    }

    /// An attempt failed; says whether this opened the breaker.
    pub fn failed(&self, now: Millis) -> bool {
        let mut state = self.state.lock();
        state.failures = state.failures.saturating_add(1);
        let opens =
            state.failures >= FAILURES_MAX || matches!(state.breaker, Breaker::Probing { .. });
        opens && state.trip(now, &self.changed)
    }

    /// The breaker opens at once; says whether it was closed.
    pub fn trip(&self, now: Millis) -> bool {
        self.state.lock().trip(now, &self.changed)
    }

    /// Nothing is sent before `until`.
    pub fn hold_until(&self, until: Millis) {
        let mut state = self.state.lock();
        state.throttles = state.throttles.saturating_add(1);
        state.held_until = Some(state.held_until.map_or(until, |held| held.max(until)));
        if let Breaker::Probing { wait } = state.breaker {
            state.breaker = Breaker::Open { until, wait };
        }
        self.changed.notify_one();
    }
}

impl State {
    fn trip(&mut self, now: Millis, changed: &Notify) -> bool {
        let (wait, was_closed) = match self.breaker {
            Breaker::Closed => (millis(OPEN_FIRST), true),
            Breaker::Probing { wait } => (wait.saturating_mul(2).min(millis(OPEN_MAX)), false),
            // Stragglers of before it opened say nothing new.
            Breaker::Open { .. } => return false,
        };
        self.breaker = Breaker::Open {
            until: now + wait,
            wait,
        };
        changed.notify_one();
        was_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_breaker_opens_after_failures_in_a_row_and_lets_one_probe_through() {
        let gate = Gate::default();
        for _ in 1..FAILURES_MAX {
            assert!(!gate.failed(0));
        }
        assert_eq!(gate.open(0), Opening::Wide);
        assert!(gate.failed(0));
        assert_eq!(gate.open(0), Opening::Closed);
        assert_eq!(gate.closed_until(0), Some(5_000));
        assert_eq!(gate.open(5_000), Opening::One);
        assert_eq!(gate.open(5_000), Opening::Closed);
        gate.failed(5_100);
        assert_eq!(gate.closed_until(5_200), Some(15_100));
        assert_eq!(gate.open(15_100), Opening::One);
        gate.succeeded();
        assert_eq!(gate.open(15_100), Opening::Wide);
    }

    #[test]
    fn a_success_between_failures_keeps_the_breaker_closed() {
        let gate = Gate::default();
        for _ in 0..5 * FAILURES_MAX {
            gate.failed(0);
            gate.succeeded();
        }
        assert_eq!(gate.open(0), Opening::Wide);
    }

    #[test]
    fn a_target_that_asked_for_a_pause_is_left_alone_until_then() {
        let gate = Gate::default();
        gate.hold_until(9_000);
        gate.hold_until(4_000);
        assert_eq!(gate.open(8_999), Opening::Closed);
        assert_eq!(gate.hold(0), Some(Hold::Asked { until: 9_000 }));
        assert_eq!(gate.open(9_000), Opening::Wide);
    }
}
