//! The W3C trace context: strict reading, bounded storage, headers out.
//!
//! A header that breaks the grammar is ignored, never an error (Trace Context §4.3).

use std::fmt::Write as _;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// Header and attribute name of the trace's ids and flags.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Header and attribute name of the vendors' list.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Length of a version 00 `traceparent` in bytes.
const TRACEPARENT_BYTES: usize = 55;
/// Most members a `tracestate` may have (Trace Context §3.3.1).
const TRACESTATE_MEMBERS_MAX: usize = 32;
/// Longest `tracestate` kept, in bytes; the standard asks for at least 512.
const TRACESTATE_BYTES_MAX: usize = 2_048;
/// Members longer than this are the first to go from a `tracestate` that is too long (§3.3.1.5).
const TRACESTATE_MEMBER_BYTES_KEPT: usize = 128;
/// The flags this version of the standard gives a meaning: sampled and random trace id.
const FLAGS_KNOWN: u8 = 0b11;
/// The bit that says the caller records this trace.
const FLAG_SAMPLED: u8 = 0b01;

/// One position in a distributed trace, as text that can be stored and sent.
///
/// Values from [`TraceContext::parse`] are valid and of version 00; other values are checked again where
/// they are used, and a broken one counts as absent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct TraceContext {
    /// `00-{trace id}-{span id}-{flags}` in lower-case hex.
    pub traceparent: String,
    /// Vendors' data that travels along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

impl TraceContext {
    /// Reads a `traceparent` and, beside it, a `tracestate`.
    ///
    /// `None` when the `traceparent` is malformed. A malformed `tracestate` is dropped alone. A later
    /// version is read by its first four fields and written back as version 00 (§4.3).
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let ids = Ids::parse(traceparent)?;
        Some(Self {
            traceparent: ids.to_string(),
            tracestate: tracestate.and_then(normalize_tracestate),
        })
    }

    /// Reads the context of an HTTP request. A repeated `traceparent` is no context at all; repeated
    /// `tracestate` headers are one list.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut parents = headers.get_all(TRACEPARENT).iter();
        let (Some(parent), None) = (parents.next(), parents.next()) else {
            return None;
        };
        let states: Result<Vec<&str>, _> = headers
            .get_all(TRACESTATE)
            .iter()
            .map(HeaderValue::to_str)
            .collect();
        let state = states.ok().map(|states| states.join(","));
        Self::parse(parent.to_str().ok()?, state.as_deref())
    }

    /// Puts this context on an outgoing request, in place of any other.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        headers.remove(TRACEPARENT);
        headers.remove(TRACESTATE);
        let Ok(parent) = HeaderValue::from_str(&self.traceparent) else {
            return;
        };
        headers.insert(TRACEPARENT, parent);
        let state = self.tracestate.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(state)) = state {
            headers.insert(TRACESTATE, state);
        }
    }

    /// Whether the caller asks for this trace to be recorded.
    pub fn sampled(&self) -> bool {
        Ids::parse(&self.traceparent).is_some_and(|ids| ids.flags & FLAG_SAMPLED != 0)
    }

    /// Whether both name the same span, whatever their flags.
    pub fn same_span(&self, other: &TraceContext) -> bool {
        match (
            Ids::parse(&self.traceparent),
            Ids::parse(&other.traceparent),
        ) {
            (Some(a), Some(b)) => a.trace == b.trace && a.span == b.span,
            _ => false,
        }
    }

    /// The context as OpenTelemetry holds it, marked as coming from outside.
    pub(super) fn to_remote(&self) -> Option<SpanContext> {
        let ids = Ids::parse(&self.traceparent)?;
        let members = self.tracestate.as_deref().and_then(split_tracestate);
        let state = TraceState::from_key_value(members.unwrap_or_default()).unwrap_or_default();
        Some(SpanContext::new(
            TraceId::from_bytes(ids.trace.to_be_bytes()),
            SpanId::from_bytes(ids.span.to_be_bytes()),
            TraceFlags::new(ids.flags),
            true,
            state,
        ))
    }

    /// The text of a live span's context; `None` when there is no such span.
    pub(super) fn from_span(context: &SpanContext) -> Option<Self> {
        if !context.is_valid() {
            return None;
        }
        let ids = Ids {
            trace: u128::from_be_bytes(context.trace_id().to_bytes()),
            span: u64::from_be_bytes(context.span_id().to_bytes()),
            flags: context.trace_flags().to_u8() & FLAGS_KNOWN,
        };
        let state = context.trace_state().header();
        Some(Self {
            traceparent: ids.to_string(),
            tracestate: (!state.is_empty()).then_some(state),
        })
    }
}

/// The content of a valid `traceparent`; neither id is zero.
struct Ids {
    trace: u128,
    span: u64,
    flags: u8,
}

impl Ids {
    fn parse(text: &str) -> Option<Self> {
        let fields = text.as_bytes().get(..TRACEPARENT_BYTES)?;
        let dashes = [2, 35, 52].iter().all(|&at| fields[at] == b'-');
        let version = hex(&fields[0..2])?;
        let ends_well = match (version, text.as_bytes().get(TRACEPARENT_BYTES)) {
            (0xff, _) => false,
            (_, None) => true,
            (0, Some(_)) => false,
            (_, Some(&next)) => next == b'-',
        };
        if !dashes || !ends_well {
            return None;
        }
        let trace = hex(&fields[3..35])?;
        let span = hex(&fields[36..52])?;
        let flags = hex(&fields[53..55])?;
        if trace == 0 || span == 0 {
            return None;
        }
        Some(Self {
            trace,
            span: u64::try_from(span).ok()?,
            flags: u8::try_from(flags).ok()? & FLAGS_KNOWN,
        })
    }
}

impl std::fmt::Display for Ids {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace, self.span, self.flags
        )
    }
}

/// The number that at most 32 digits of lower-case hex spell.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0_u128, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some((number << 4) | u128::from(value))
    })
}

/// The list without white space and empty members, cut to [`TRACESTATE_BYTES_MAX`].
fn normalize_tracestate(text: &str) -> Option<String> {
    let mut members = split_tracestate(text)?;
    let bytes = |members: &[(&str, &str)]| -> usize {
        members.iter().map(|member| member_bytes(member) + 1).sum()
    };
    if bytes(&members) > TRACESTATE_BYTES_MAX {
        members.retain(|member| member_bytes(member) <= TRACESTATE_MEMBER_BYTES_KEPT);
    }
    while bytes(&members) > TRACESTATE_BYTES_MAX {
        members.pop();
    }
    let mut list = String::new();
    for (key, value) in members {
        let comma = if list.is_empty() { "" } else { "," };
        write!(list, "{comma}{key}={value}").ok()?;
    }
    (!list.is_empty()).then_some(list)
}

fn member_bytes((key, value): &(&str, &str)) -> usize {
    key.len() + 1 + value.len()
}

/// The members of a `tracestate` that keeps to the grammar (§3.3.1): known characters, no key twice, no
/// more members than allowed. Empty members do not count.
fn split_tracestate(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut members: Vec<(&str, &str)> = Vec::new();
    for member in text.split(',') {
        let member = member.trim_matches([' ', '\t']);
        if member.is_empty() {
            continue;
        }
        let (key, value) = member.split_once('=')?;
        let repeated = members.iter().any(|(known, _)| *known == key);
        if repeated || !is_key(key) || !is_value(value) || members.len() == TRACESTATE_MEMBERS_MAX {
            return None;
        }
        members.push((key, value));
    }
    Some(members)
}

/// `key` of the grammar: simple, or `tenant@system`.
fn is_key(key: &str) -> bool {
    let rest = |text: &str| {
        text.bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/'))
    };
    let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_lowercase());
    match key.split_once('@') {
        None => key.len() <= 256 && begins(key) && rest(key),
        Some((tenant, system)) => {
            let tenant_begins = begins(tenant) || tenant.starts_with(|c: char| c.is_ascii_digit());
            let lengths = tenant.len() <= 241 && system.len() <= 14;
            lengths && tenant_begins && rest(tenant) && begins(system) && rest(system)
        }
    }
}

/// `value` of the grammar: 1 to 256 printable characters but comma and equals, not ending in a space.
fn is_value(value: &str) -> bool {
    let printable = value
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'=');
    printable && (1..=256).contains(&value.len())
}
