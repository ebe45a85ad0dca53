//! What makes two publishes the same event: identity and content.
//!
//! Each part is hashed with its length before it, so that no two different lists of parts give the
//! same bytes.

use sha2::{Digest as _, Sha256};

use crate::event::{Data, Event};
use crate::store::Digest;

/// Identity: bus, source and id (CloudEvents core §3.1.1, within a bus).
pub(super) fn identity(bus: &str, event: &Event) -> Digest {
    let mut hasher = Sha256::new();
    for part in [bus, event.source(), event.id()] {
        feed(&mut hasher, part.as_bytes());
    }
    first_half(hasher)
}

/// Content: type, subject, datacontenttype, dataschema and the data bytes. Not the time and not
/// tracing attributes, which an honest retry may change.
pub(super) fn content(event: &Event) -> Digest {
    let mut hasher = Sha256::new();
    feed(&mut hasher, event.event_type().as_bytes());
    feed_optional(&mut hasher, event.subject());
    // Structured mode may leave the type of JSON data out, which means the same.
    let implied = matches!(event.data(), Data::Json(_)).then_some("application/json");
    feed_optional(&mut hasher, event.datacontenttype().or(implied));
    feed_optional(&mut hasher, event.dataschema());
    feed(&mut hasher, data(event));
    first_half(hasher)
}

/// The data bytes; white space around a JSON text, which structured mode drops, does not count.
fn data(event: &Event) -> &[u8] {
    match event.data() {
        Data::Json(text) => text.trim_ascii(),
        Data::Absent | Data::Text(_) | Data::Binary(_) => event.data_bytes(),
    }
}

fn feed(hasher: &mut Sha256, part: &[u8]) {
    hasher.update((part.len() as u64).to_le_bytes());
    hasher.update(part);
}

fn feed_optional(hasher: &mut Sha256, part: Option<&str>) {
    hasher.update([u8::from(part.is_some())]);
    feed(hasher, part.unwrap_or_default().as_bytes());
}

fn first_half(hasher: Sha256) -> Digest {
    let full = hasher.finalize();
    let mut half = Digest::default();
    half.copy_from_slice(&full[..16]);
    half
}
