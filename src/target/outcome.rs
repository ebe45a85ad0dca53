//! What a target's answer means: delivered, try again, or never again.
//!
//! [`classify`] reads an HTTP answer by the default table (or a target's own [`Statuses`]).
//! What follows from an outcome, and when, is decided in `delivery::retry`.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use http::HeaderMap;
use http::header::RETRY_AFTER;

use crate::clock::Millis;

/// Most bytes of a response (or of an error text) that an [`Excerpt`] keeps.
pub const EXCERPT_BYTES_MAX: usize = 4096;

/// What one attempt to deliver came to. `status` is the HTTP status, `None` where there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The target took the event.
    Delivered { status: Option<u16> },
    /// It did not work now and may work later. A `retry_after` here binds this delivery only.
    Retry {
        status: Option<u16>,
        cause: Cause,
        retry_after: Option<RetryAfter>,
        excerpt: Excerpt,
    },
    /// The target asks for less: the whole target waits and no attempt is charged.
    Throttled {
        status: Option<u16>,
        retry_after: Option<RetryAfter>,
        excerpt: Excerpt,
    },
    /// The target does not know or trust us: retried slowly, and the breaker opens.
    Unauthorized {
        status: Option<u16>,
        excerpt: Excerpt,
    },
    /// The target will never take this event.
    Permanent {
        status: Option<u16>,
        reason: Reason,
        excerpt: Excerpt,
    },
    /// The endpoint is retired: nothing is to be sent to it any more.
    Gone {
        status: Option<u16>,
        excerpt: Excerpt,
    },
}

impl Outcome {
    /// A failure that no HTTP status tells of, to be tried again; `text` says what happened.
    pub fn failed(cause: Cause, text: &str) -> Self {
        Self::Retry {
            status: None,
            cause,
            retry_after: None,
            excerpt: Excerpt::new(text),
        }
    }

    /// The HTTP status of the answer, when there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Delivered { status }
            | Self::Retry { status, .. }
            | Self::Throttled { status, .. }
            | Self::Unauthorized { status, .. }
            | Self::Permanent { status, .. }
            | Self::Gone { status, .. } => *status,
        }
    }

    /// The class of the outcome, whose name serves records and metrics.
    pub fn class(&self) -> Class {
        match self {
            Self::Delivered { .. } => Class::Delivered,
            Self::Retry { .. } => Class::Retry,
            Self::Throttled { .. } => Class::Throttled,
            Self::Unauthorized { .. } => Class::Unauthorized,
            Self::Permanent { .. } => Class::Permanent,
            Self::Gone { .. } => Class::Gone,
        }
    }

    /// What the target said, or what went wrong; empty for a delivered event.
    pub fn excerpt(&self) -> &str {
        match self {
            Self::Delivered { .. } => "",
            Self::Retry { excerpt, .. }
            | Self::Throttled { excerpt, .. }
            | Self::Unauthorized { excerpt, .. }
            | Self::Permanent { excerpt, .. }
            | Self::Gone { excerpt, .. } => excerpt.as_str(),
        }
    }
}

/// The kinds of [`Outcome`], as a target's status table names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// See [`Outcome::Delivered`].
    Delivered,
    /// See [`Outcome::Retry`].
    Retry,
    /// See [`Outcome::Throttled`].
    Throttled,
    /// See [`Outcome::Unauthorized`].
    Unauthorized,
    /// See [`Outcome::Permanent`].
    Permanent,
    /// See [`Outcome::Gone`].
    Gone,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 6] = [
        Self::Delivered,
        Self::Retry,
        Self::Throttled,
        Self::Unauthorized,
        Self::Permanent,
        Self::Gone,
    ];

    /// The stable `snake_case` name, for settings, records and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retry => "retry",
            Self::Throttled => "throttled",
            Self::Unauthorized => "unauthorized",
            Self::Permanent => "permanent",
            Self::Gone => "gone",
        }
    }

    /// The class of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// The default table. A 503 that says when to come back throttles; any other 503 is retried.
    pub fn of_status(status: u16, says_when: bool) -> Self {
        match status {
            200..=299 => Self::Delivered,
            401 | 403 => Self::Unauthorized,
            410 => Self::Gone,
            429 => Self::Throttled,
            503 if says_when => Self::Throttled,
            404 | 408 | 409 | 425 | 500..=599 => Self::Retry,
            300..=499 => Self::Permanent,
            // Not a final HTTP status at all: the fault of something between, as a rule.
            _ => Self::Retry,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why an attempt failed in a way worth trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The target answered with a status of this class.
    Status,
    /// The answer did not come within the target's timeout.
    Timeout,
    /// The host name has no address, or the resolver did not answer.
    Dns,
    /// No connection could be made.
    Connect,
    /// The TLS handshake failed, or the certificate is not trusted.
    Tls,
    /// Every address of the host is one that this target may not reach. It is a setting, not a
    /// property of the event, so the delivery waits for the setting to change.
    AddressRefused,
    /// The connection broke, or what came back is not HTTP.
    Protocol,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 7] = [
        Self::Status,
        Self::Timeout,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::AddressRefused,
        Self::Protocol,
    ];

    /// The stable `snake_case` name, for records and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Timeout => "timeout",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::AddressRefused => "address_refused",
            Self::Protocol => "protocol",
        }
    }

    /// The cause of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a delivery became a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Every attempt the policy allows was made.
    Exhausted,
    /// The event's `expirytime` or the policy's `max_age` comes before the next attempt.
    Expired,
    /// The target answered with a status that no retry can change.
    PermanentStatus,
    /// The endpoint is retired (410).
    EndpointGone,
    /// A pull consumer rejected the event.
    RejectedByConsumer,
    /// The rule's transform failed on this event.
    TransformError,
    /// The event is larger than the target takes.
    PayloadTooLarge,
    /// The event's data is no longer in the blob store.
    BlobMissing,
    /// A policy forbids this event to this target.
    PolicyDenied,
    /// The queue was full and is set to dead-letter what does not fit.
    QueueFull,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 10] = [
        Self::Exhausted,
        Self::Expired,
        Self::PermanentStatus,
        Self::EndpointGone,
        Self::RejectedByConsumer,
        Self::TransformError,
        Self::PayloadTooLarge,
        Self::BlobMissing,
        Self::PolicyDenied,
        Self::QueueFull,
    ];

    /// The stable `snake_case` name, for records, filters and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::Expired => "expired",
            Self::PermanentStatus => "permanent_status",
            Self::EndpointGone => "endpoint_gone",
            Self::RejectedByConsumer => "rejected_by_consumer",
            Self::TransformError => "transform_error",
            Self::PayloadTooLarge => "payload_too_large",
            Self::BlobMissing => "blob_missing",
            Self::PolicyDenied => "policy_denied",
            Self::QueueFull => "queue_full",
        }
    }

    /// The reason of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Text from outside, made safe to store and show: at most [`EXCERPT_BYTES_MAX`] bytes, and no
/// control characters but tab and line feed (a NUL would be refused by a database).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpt(String);

impl Excerpt {
    /// The beginning of `text`.
    pub fn new(text: &str) -> Self {
        let mut kept = String::with_capacity(text.len().min(EXCERPT_BYTES_MAX));
        for character in text.chars() {
            let shown = match character {
                '\n' | '\t' => character,
                '\r' => continue,
                _ if character.is_control() => char::REPLACEMENT_CHARACTER,
                _ => character,
            };
            if kept.len() + shown.len_utf8() > EXCERPT_BYTES_MAX {
                break;
            }
            kept.push(shown);
        }
        Self(kept)
    }

    /// The beginning of `bytes` read as UTF-8, with U+FFFD for what is none.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let bounded = &bytes[..bytes.len().min(EXCERPT_BYTES_MAX)];
        Self::new(&String::from_utf8_lossy(bounded))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A `Retry-After` (RFC 9110 §10.2.3) as the instant before which nothing should be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RetryAfter {
    /// Milliseconds since the Unix epoch; not bounded here.
    pub not_before: Millis,
}

impl RetryAfter {
    /// Reads a number of seconds from `now`, or any of the three forms of an HTTP date.
    /// `None` for anything else, a negative number among it.
    pub fn parse(value: &str, now: Millis) -> Option<Self> {
        let value = value.trim_matches([' ', '\t']);
        let not_before = if is_number(value) {
            // Only too many digits can fail here, and then "for ever" is what they mean.
            let seconds = value.parse::<Millis>().unwrap_or(Millis::MAX);
            now.saturating_add(seconds.saturating_mul(1000))
        } else {
            http_date(value, now)?
        };
        Some(Self { not_before })
    }

    fn from_headers(headers: &HeaderMap, now: Millis) -> Option<Self> {
        // Of several, the latest: to wait too long is a lesser fault than to press on.
        headers
            .get_all(RETRY_AFTER)
            .iter()
            .filter_map(|value| Self::parse(value.to_str().ok()?, now))
            .max()
    }
}

/// A target's own readings of single statuses, over the default table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statuses(BTreeMap<u16, Class>);

impl Statuses {
    /// What this table makes of an answer; `now` is when it came.
    pub fn classify(
        &self,
        status: u16,
        headers: &HeaderMap,
        excerpt: Excerpt,
        now: Millis,
    ) -> Outcome {
        let retry_after = RetryAfter::from_headers(headers, now);
        let class = match self.0.get(&status) {
            Some(class) => *class,
            None => Class::of_status(status, retry_after.is_some()),
        };
        let status = Some(status);
        match class {
            Class::Delivered => Outcome::Delivered { status },
            Class::Retry => Outcome::Retry {
                status,
                cause: Cause::Status,
                retry_after,
                excerpt,
            },
            Class::Throttled => Outcome::Throttled {
                status,
                retry_after,
                excerpt,
            },
            Class::Unauthorized => Outcome::Unauthorized { status, excerpt },
            Class::Permanent => Outcome::Permanent {
                status,
                reason: Reason::PermanentStatus,
                excerpt,
            },
            Class::Gone => Outcome::Gone { status, excerpt },
        }
    }
}

impl FromIterator<(u16, Class)> for Statuses {
    fn from_iter<I: IntoIterator<Item = (u16, Class)>>(readings: I) -> Self {
        Self(readings.into_iter().collect())
    }
}

/// What an answer means by the default table; `now` is when it came.
pub fn classify(status: u16, headers: &HeaderMap, excerpt: Excerpt, now: Millis) -> Outcome {
    Statuses::default().classify(status, headers, excerpt, now)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads an HTTP date (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`,
/// `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov  6 08:49:37 1994`.
/// The day of the week is not looked at: it says nothing that the date does not.
fn http_date(text: &str, now: Millis) -> Option<Millis> {
    let mut words = [""; 6];
    let mut count = 0;
    for word in text.split([' ', ',', '-']).filter(|word| !word.is_empty()) {
        *words.get_mut(count)? = word;
        count += 1;
    }
    match words[..count] {
        [_, day, month, year, clock, "GMT"] if year.len() == 2 => {
            let year = full_year(number(year)?, now)?;
            instant(year, month, day, clock)
        }
        [_, day, month, year, clock, "GMT"] => instant(number(year)?, month, day, clock),
        [_, month, day, clock, year] => instant(number(year)?, month, day, clock),
        _ => None,
    }
}

/// A year of two digits is the one that lies at most 50 years ahead of `now` (RFC 9110 §5.6.7).
fn full_year(two_digits: u16, now: Millis) -> Option<u16> {
    let this_year = time::OffsetDateTime::from_unix_timestamp(now / 1000)
        .ok()?
        .year();
    let ahead = (i32::from(two_digits) - this_year).rem_euclid(100);
    let year = if ahead > 50 {
        this_year + ahead - 100
    } else {
        this_year + ahead
    };
    u16::try_from(year).ok()
}

fn instant(year: u16, month: &str, day: &str, clock: &str) -> Option<Millis> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = (1..).zip(MONTHS).find(|(_, name)| *name == month)?.0;
    let month = time::Month::try_from(month).ok()?;
    let date = time::Date::from_calendar_date(i32::from(year), month, small(day)?).ok()?;

    let mut parts = clock.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    // A leap second is read as the second before it.
    let second = match small(second)? {
        60 => 59,
        second => second,
    };
    let clock = time::Time::from_hms(small(hour)?, small(minute)?, second).ok()?;
    let seconds = date.with_time(clock).assume_utc().unix_timestamp();
    seconds.checked_mul(1000)
}

fn small(text: &str) -> Option<u8> {
    u8::try_from(number(text)?).ok()
}

fn number(text: &str) -> Option<u16> {
    if is_number(text) {
        text.parse().ok()
    } else {
        None
    }
}
