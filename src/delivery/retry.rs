//! What follows from an outcome: when to try again, or why not to.
//!
//! Pure: time and chance are handed in. Carrying the decision out is left to the caller.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::clock::{Millis, millis};
use crate::target::Retry;
use crate::target::outcome::{Outcome, Reason, RetryAfter};

/// The longest that one answer may hold back a target or a delivery, whatever it asks for.
pub const HOLD_MAX: Duration = Duration::from_secs(3600);

/// What went before the outcome that is being decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// Charged attempts of this delivery before this one.
    pub failures: u32,
    /// Answers in a row before this one by which the target, not only for this delivery, asked
    /// for less. They are not charged, but the backoff must still grow.
    pub throttles: u32,
    /// Since when the delivery's age counts: when its event was accepted.
    pub first_at: Millis,
    /// When the outcome came.
    pub now: Millis,
    /// The event's own `expirytime`.
    pub expires_at: Option<Millis>,
}

/// What is to become of the delivery and of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// For the delivery that was attempted.
    pub delivery: Next,
    /// For all deliveries of its target.
    pub target: Effect,
}

/// What is to become of the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It is done.
    Delivered,
    /// It is due again at a time; `charged` says whether this attempt counts as a failure.
    RetryAt { at: Millis, charged: bool },
    /// It becomes a dead letter now.
    DeadLetter(Reason),
}

/// What is to become of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing (a circuit breaker that counts failures still sees this one).
    Keep,
    /// Nothing is sent to it before that time.
    HoldUntil(Millis),
    /// Its circuit breaker opens at once.
    OpenBreaker,
    /// It is disabled until someone enables it.
    Disable,
}

/// Decides what follows from `outcome`. `draw` is a random number in [0, 1).
///
/// The wait is drawn evenly between `min_delay` and `min_delay * 2^(failures + 1)`, never above
/// `max_delay`. A retry that would not come before the delivery's last moment is not planned: the
/// delivery is a dead letter now.
pub fn decide(outcome: &Outcome, history: History, policy: &Retry, draw: f64) -> Decision {
    let backoff = Backoff { policy, draw };
    match outcome {
        Outcome::Delivered { .. } => Decision {
            delivery: Next::Delivered,
            target: Effect::Keep,
        },
        Outcome::Retry { retry_after, .. } => {
            let at = later(history.now, backoff.growing(history.failures), *retry_after);
            Decision {
                delivery: charged_retry(at, history, policy),
                target: Effect::Keep,
            }
        }
        Outcome::Throttled { retry_after, .. } => {
            let wait = backoff.growing(history.throttles).min(millis(HOLD_MAX));
            let at = later(history.now, wait, *retry_after);
            Decision {
                delivery: retry(at, false, history, policy),
                target: Effect::HoldUntil(at),
            }
        }
        Outcome::Unauthorized { .. } => Decision {
            delivery: charged_retry(history.now.saturating_add(backoff.slow()), history, policy),
            target: Effect::OpenBreaker,
        },
        Outcome::Permanent { reason, .. } => Decision {
            delivery: Next::DeadLetter(*reason),
            target: Effect::Keep,
        },
        Outcome::Gone { .. } => Decision {
            delivery: Next::DeadLetter(Reason::EndpointGone),
            target: Effect::Disable,
        },
    }
}

/// The later of our own wait and what the target asks for, the latter bounded by [`HOLD_MAX`].
fn later(now: Millis, wait: Millis, retry_after: Option<RetryAfter>) -> Millis {
    let own = now.saturating_add(wait);
    match retry_after {
        Some(asked) => {
            let bounded = asked.not_before.min(now.saturating_add(millis(HOLD_MAX)));
            own.max(bounded)
        }
        None => own,
    }
}

fn charged_retry(at: Millis, history: History, policy: &Retry) -> Next {
    if history.failures.saturating_add(1) >= policy.max_attempts {
        return Next::DeadLetter(Reason::Exhausted);
    }
    retry(at, true, history, policy)
}

fn retry(at: Millis, charged: bool, history: History, policy: &Retry) -> Next {
    let oldest = history.first_at.saturating_add(millis(policy.max_age));
    let last_moment = history
        .expires_at
        .map_or(oldest, |expires_at| expires_at.min(oldest));
    if at >= last_moment {
        return Next::DeadLetter(Reason::Expired);
    }
    Next::RetryAt { at, charged }
}

/// Waits in milliseconds by a policy and one draw of chance.
struct Backoff<'a> {
    policy: &'a Retry,
    draw: f64,
}

impl Backoff<'_> {
    /// Full jitter under a ceiling that doubles with each one before.
    fn growing(&self, before: u32) -> Millis {
        // 2^62 is past every `max_delay`, and still fits.
        const DOUBLINGS_MAX: u32 = 62;
        let (min, max) = self.bounds();
        let doublings = before.saturating_add(1).min(DOUBLINGS_MAX);
        // From a `min_delay` of nothing the wait grows all the same.
        let ceiling = min.max(1).saturating_mul(1 << doublings).min(max);
        self.between(min, ceiling)
    }

    /// Near the policy's longest wait, whatever went before.
    fn slow(&self) -> Millis {
        let (min, max) = self.bounds();
        self.between(min.max(max / 2), max)
    }

    /// `max_delay` wins over a `min_delay` above it.
    fn bounds(&self) -> (Millis, Millis) {
        let max = millis(self.policy.max_delay);
        (millis(self.policy.min_delay).min(max), max)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a wait need not be exact, and the cast from f64 saturates"
    )]
    fn between(&self, low: Millis, high: Millis) -> Millis {
        let draw = if self.draw.is_nan() { 0.0 } else { self.draw };
        let span = high.saturating_sub(low).max(0);
        let drawn = (span as f64 * draw.clamp(0.0, 1.0)) as Millis;
        low.saturating_add(drawn.min(span))
    }
}
