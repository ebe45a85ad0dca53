//! The only source of time.
//!
//! Everything that waits or stamps asks a [`Clock`], so that a test moves time by hand.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::watch;

/// Milliseconds since the Unix epoch.
pub type Millis = i64;

/// Tells the time and waits for it.
#[derive(Debug, Clone)]
pub struct Clock(Arc<Source>);

#[derive(Debug)]
enum Source {
    System,
    Manual(watch::Sender<Millis>),
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Arc::new(Source::System))
    }

    /// A clock that stands at `start` until [`Clock::advance`] moves it.
    #[must_use]
    pub fn manual(start: Millis) -> Self {
        Self(Arc::new(Source::Manual(watch::Sender::new(start))))
    }

    /// The present, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now(&self) -> Millis {
        match &*self.0 {
            Source::System => system_now(),
            Source::Manual(now) => *now.borrow(),
        }
    }

    /// Moves a manual clock forward; a system clock moves by itself and ignores this.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(now) = &*self.0 {
            now.send_modify(|now| *now += millis(by));
        }
    }

    /// Returns once the clock has reached `at`; at once when it already has.
    pub async fn sleep_until(&self, at: Millis) {
        match &*self.0 {
            Source::System => {
                let wait = u64::try_from(at - system_now()).unwrap_or(0);
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
            Source::Manual(now) => {
                // The sender lives in `self`, so the channel cannot close while we wait.
                let mut changes = now.subscribe();
                let _reached = changes.wait_for(|now| *now >= at).await;
            }
        }
    }
}

fn system_now() -> Millis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    millis(since)
}

/// A duration in whole milliseconds, saturating.
#[must_use]
pub fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

/// An instant as RFC 3339 text in UTC, milliseconds kept.
#[must_use]
pub fn rfc3339(at: Millis) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000)
        .ok()
        .and_then(|at| at.format(&Rfc3339).ok())
        .unwrap_or_else(|| at.to_string())
}

/// Reads RFC 3339 text; `None` when it is not.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<Millis> {
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    Millis::try_from(at.unix_timestamp_nanos() / 1_000_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_the_manual_clock_reaches_its_time() {
        let clock = Clock::manual(1_000);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(3_000).await }
        });
        clock.advance(Duration::from_millis(2_000));
        sleeper.await.expect("the sleeper ends");
        assert_eq!(clock.now(), 3_000);
    }

    #[test]
    fn instants_survive_their_text_form() {
        assert_eq!(rfc3339(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(
            parse_rfc3339("2023-11-14T22:13:20.123Z"),
            Some(1_700_000_000_123)
        );
    }
}
