//! Tests of deciding about retries.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::target::outcome::{Cause, Excerpt};

const NOW: Millis = 1_700_000_000_000;
const HOUR: Millis = 3_600_000;

fn policy() -> Retry {
    Retry {
        min_delay: Duration::from_secs(1),
        max_delay: Duration::from_secs(60),
        max_attempts: 5,
        max_age: Duration::from_secs(3600),
    }
}

fn first_attempt() -> History {
    History {
        failures: 0,
        throttles: 0,
        first_at: NOW,
        now: NOW,
        expires_at: None,
    }
}

fn failed(retry_after: Option<Millis>) -> Outcome {
    Outcome::Retry {
        status: Some(500),
        cause: Cause::Status,
        retry_after: retry_after.map(|not_before| RetryAfter { not_before }),
        excerpt: Excerpt::default(),
    }
}

fn throttled(retry_after: Option<Millis>) -> Outcome {
    Outcome::Throttled {
        status: Some(429),
        retry_after: retry_after.map(|not_before| RetryAfter { not_before }),
        excerpt: Excerpt::default(),
    }
}

fn unauthorized() -> Outcome {
    Outcome::Unauthorized {
        status: Some(401),
        excerpt: Excerpt::default(),
    }
}

fn kept(delivery: Next) -> Decision {
    Decision {
        delivery,
        target: Effect::Keep,
    }
}

fn retry_at(at: Millis, charged: bool) -> Next {
    Next::RetryAt { at, charged }
}

#[test]
fn a_delivered_event_is_done() {
    let outcome = Outcome::Delivered { status: Some(204) };
    let decision = decide(&outcome, first_attempt(), &policy(), 0.5);
    assert_eq!(decision, kept(Next::Delivered));
}

#[test]
fn the_wait_doubles_with_each_failure_up_to_its_maximum() {
    for (failures, draw, wait) in [
        (0, 0.0, 1_000),
        (0, 0.5, 1_500),
        (1, 0.5, 2_500),
        (2, 0.5, 4_500),
        (3, 0.5, 8_500),
        (3, 0.0, 1_000),
    ] {
        let history = History {
            failures,
            ..first_attempt()
        };
        let decision = decide(&failed(None), history, &policy(), draw);
        assert_eq!(decision, kept(retry_at(NOW + wait, true)), "{failures}");
    }
    let history = History {
        failures: 1_000,
        ..first_attempt()
    };
    let patient = Retry {
        max_attempts: u32::MAX,
        ..policy()
    };
    let decision = decide(&failed(None), history, &patient, 0.5);
    assert_eq!(decision, kept(retry_at(NOW + 30_500, true)));
}

#[test]
fn the_last_allowed_attempt_ends_exhausted() {
    let last = History {
        failures: 4,
        ..first_attempt()
    };
    for outcome in [failed(None), failed(Some(NOW + HOUR))] {
        let decision = decide(&outcome, last, &policy(), 0.0);
        assert_eq!(decision, kept(Next::DeadLetter(Reason::Exhausted)));
    }
    let decision = decide(&unauthorized(), last, &policy(), 0.0);
    assert_eq!(decision.delivery, Next::DeadLetter(Reason::Exhausted));
    assert_eq!(decision.target, Effect::OpenBreaker);
    let single = Retry {
        max_attempts: 0,
        ..policy()
    };
    let decision = decide(&failed(None), first_attempt(), &single, 0.0);
    assert_eq!(decision, kept(Next::DeadLetter(Reason::Exhausted)));
}

#[test]
fn a_retry_that_would_come_too_late_is_a_dead_letter_now() {
    let old = |age| History {
        first_at: NOW - age,
        ..first_attempt()
    };
    let decision = decide(&failed(None), old(HOUR - 1_001), &policy(), 0.0);
    assert_eq!(decision, kept(retry_at(NOW + 1_000, true)));
    let decision = decide(&failed(None), old(HOUR - 1_000), &policy(), 0.0);
    assert_eq!(decision, kept(Next::DeadLetter(Reason::Expired)));

    let perishable = History {
        expires_at: Some(NOW + 1_000),
        ..first_attempt()
    };
    let decision = decide(&failed(None), perishable, &policy(), 0.0);
    assert_eq!(decision, kept(Next::DeadLetter(Reason::Expired)));
}

#[test]
fn a_throttled_target_is_held_and_no_attempt_is_charged() {
    let asked = NOW + 120_000;
    let last = History {
        failures: 4,
        ..first_attempt()
    };
    let decision = decide(&throttled(Some(asked)), last, &policy(), 0.5);
    let expected = Decision {
        delivery: retry_at(asked, false),
        target: Effect::HoldUntil(asked),
    };
    assert_eq!(decision, expected);
}

#[test]
fn a_hold_lasts_no_longer_than_an_hour_and_no_shorter_than_the_backoff() {
    let lasting = Retry {
        max_age: Duration::from_secs(7 * 24 * 3600),
        ..policy()
    };
    for (asked, held) in [
        (Some(NOW + 2 * HOUR), NOW + HOUR),
        (Some(Millis::MAX), NOW + HOUR),
        (Some(NOW - HOUR), NOW + 1_500),
        (Some(Millis::MIN), NOW + 1_500),
        (None, NOW + 1_500),
    ] {
        let decision = decide(&throttled(asked), first_attempt(), &lasting, 0.5);
        assert_eq!(decision.target, Effect::HoldUntil(held), "{asked:?}");
        assert_eq!(decision.delivery, retry_at(held, false), "{asked:?}");
    }
    let again = History {
        throttles: 3,
        ..first_attempt()
    };
    let decision = decide(&throttled(None), again, &lasting, 0.5);
    assert_eq!(decision.target, Effect::HoldUntil(NOW + 8_500));
}

#[test]
fn a_throttled_delivery_that_cannot_wait_expires_and_the_target_is_held_all_the_same() {
    let asked = NOW + 120_000;
    let perishable = History {
        expires_at: Some(NOW + 60_000),
        ..first_attempt()
    };
    let decision = decide(&throttled(Some(asked)), perishable, &policy(), 0.5);
    let expected = Decision {
        delivery: Next::DeadLetter(Reason::Expired),
        target: Effect::HoldUntil(asked),
    };
    assert_eq!(decision, expected);
}

#[test]
fn a_retry_after_on_a_failure_delays_the_delivery_alone() {
    let decision = decide(&failed(Some(NOW + 90_000)), first_attempt(), &policy(), 0.5);
    assert_eq!(decision, kept(retry_at(NOW + 90_000, true)));
}

#[test]
fn an_unauthorized_delivery_waits_long_and_opens_the_breaker() {
    let decision = decide(&unauthorized(), first_attempt(), &policy(), 0.5);
    let expected = Decision {
        delivery: retry_at(NOW + 45_000, true),
        target: Effect::OpenBreaker,
    };
    assert_eq!(decision, expected);
}

#[test]
fn a_gone_endpoint_is_disabled_and_its_delivery_dead_lettered() {
    let outcome = Outcome::Gone {
        status: Some(410),
        excerpt: Excerpt::default(),
    };
    let decision = decide(&outcome, first_attempt(), &policy(), 0.5);
    let expected = Decision {
        delivery: Next::DeadLetter(Reason::EndpointGone),
        target: Effect::Disable,
    };
    assert_eq!(decision, expected);
}

#[test]
fn a_permanent_failure_is_a_dead_letter_with_its_own_reason() {
    for reason in [Reason::PermanentStatus, Reason::BlobMissing] {
        let outcome = Outcome::Permanent {
            status: None,
            reason,
            excerpt: Excerpt::default(),
        };
        let decision = decide(&outcome, first_attempt(), &policy(), 0.5);
        assert_eq!(decision, kept(Next::DeadLetter(reason)));
    }
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let retry_after = prop::option::of(any::<Millis>());
    (0..3_u8, retry_after).prop_map(|(kind, retry_after)| match kind {
        0 => failed(retry_after),
        1 => throttled(retry_after),
        _ => unauthorized(),
    })
}

fn any_policy() -> impl Strategy<Value = Retry> {
    let delays = (0..10_000_000_u64, 0..10_000_000_u64);
    (delays, any::<u32>(), any::<u64>()).prop_map(|((one, other), max_attempts, max_age)| Retry {
        min_delay: Duration::from_millis(one.min(other)),
        max_delay: Duration::from_millis(one.max(other)),
        max_attempts,
        max_age: Duration::from_millis(max_age),
    })
}

fn any_history() -> impl Strategy<Value = History> {
    let expires_at = prop::option::of(any::<Millis>());
    let times = (any::<Millis>(), 0..4_000_000_000_000_i64, expires_at);
    (any::<u32>(), any::<u32>(), times).prop_map(
        |(failures, throttles, (first_at, now, expires_at))| History {
            failures,
            throttles,
            first_at,
            now,
            expires_at,
        },
    )
}

proptest! {
    #[test]
    fn a_retry_comes_within_the_policys_bounds(
        outcome in any_outcome(),
        history in any_history(),
        policy in any_policy(),
        draw in 0.0..1.0_f64,
    ) {
        let decision = decide(&outcome, history, &policy, draw);
        let Next::RetryAt { at, charged } = decision.delivery else {
            return Ok(());
        };
        let wait = at - history.now;
        prop_assert!(wait >= millis(policy.min_delay).min(millis(HOLD_MAX)));
        prop_assert!(wait <= millis(policy.max_delay).max(millis(HOLD_MAX)));
        prop_assert!(i128::from(at) < i128::from(history.first_at) + i128::from(millis(policy.max_age)));
        prop_assert!(history.expires_at.is_none_or(|expires_at| at < expires_at));
        prop_assert!(!charged || history.failures < policy.max_attempts);
        if let Effect::HoldUntil(until) = decision.target {
            prop_assert!(!charged && until == at && wait <= millis(HOLD_MAX));
        }
    }

    #[test]
    fn any_input_at_all_gets_a_decision(
        outcome in any_outcome(),
        failures in any::<u32>(),
        times in any::<[Millis; 3]>(),
        delays in any::<[u64; 3]>(),
        draw in any::<f64>(),
    ) {
        let [first_at, now, expires_at] = times;
        let history = History {
            failures,
            throttles: failures,
            first_at,
            now,
            expires_at: Some(expires_at),
        };
        let [min_delay, max_delay, max_age] = delays.map(Duration::from_secs);
        let policy = Retry { min_delay, max_delay, max_attempts: failures, max_age };
        let _any = decide(&outcome, history, &policy, draw);
    }

    #[test]
    fn more_failures_never_shorten_the_longest_wait(failures in 0..1_000_u32, policy in any_policy()) {
        let backoff = Backoff { policy: &policy, draw: 1.0 };
        prop_assert!(backoff.growing(failures) <= backoff.growing(failures + 1));
    }
}
