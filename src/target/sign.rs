//! Standard Webhooks signatures (symmetric, `v1`): proof to the receiver that dak sent this.
//!
//! The signed text is `id.timestamp.body` over the exact bytes sent.

#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_PAD_INDIFFERENT};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

use crate::clock::Millis;

/// How many keys may be valid at a time: the present one and the one it replaces.
pub const KEYS_MAX: usize = 2;
/// Fewest bytes of a secret (Standard Webhooks).
pub const SECRET_BYTES_MIN: usize = 24;
/// Most bytes of a secret (Standard Webhooks).
pub const SECRET_BYTES_MAX: usize = 64;

const PREFIX: &str = "whsec_";
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Why a signing secret or a set of them is refused; the secret itself is never repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text does not start as a secret does.
    #[error("a signing secret starts with `whsec_`")]
    Prefix,
    /// What follows the prefix is not base64.
    #[error("a signing secret is base64 after `whsec_`")]
    Base64,
    /// The secret is too short to be safe, or longer than the specification allows.
    #[error(
        "a signing secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes, this one has {bytes}"
    )]
    Length { bytes: usize },
    /// More keys than a rotation needs.
    #[error("at most {KEYS_MAX} signing secrets may be valid at a time, these are {count}")]
    TooMany { count: usize },
}

/// A signing secret. It can be used but not read back: `Debug` prints `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl Key {
    /// Reads `whsec_` and base64, padded or not.
    ///
    /// # Errors
    /// When the text is not a secret as Standard Webhooks writes it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(Error::Prefix)?;
        let secret = STANDARD_PAD_INDIFFERENT
            .decode(encoded)
            .map_err(|_| Error::Base64)?;
        let bytes = secret.len();
        if (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes) {
            Ok(Self(secret))
        } else {
            Err(Error::Length { bytes })
        }
    }

    fn signature(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The keys that a target signs with: none, one, or two while one replaces the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// Takes the keys in the order in which their signatures are to stand, the newest first.
    ///
    /// # Errors
    /// When there are more than [`KEYS_MAX`].
    pub fn new(keys: Vec<Key>) -> Result<Self, Error> {
        let count = keys.len();
        if count > KEYS_MAX {
            return Err(Error::TooMany { count });
        }
        Ok(Self(keys))
    }

    /// Whether nothing is to be signed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds `webhook-id`, `webhook-timestamp` and `webhook-signature` (one signature a key);
    /// nothing without keys. `now` is the time of this attempt; `id` stays the same over retries.
    ///
    /// The specification forbids a dot in the id, so each byte of it that is no ASCII letter,
    /// digit, `-` or `_` is sent, and signed, as `_`.
    pub fn sign(&self, headers: &mut HeaderMap, id: &str, now: Millis, body: &[u8]) {
        if self.is_empty() {
            return;
        }
        let id = message_id(id);
        let timestamp = now.div_euclid(1000).to_string();
        let signatures: Vec<String> = self
            .0
            .iter()
            .map(|key| key.signature(&id, &timestamp, body))
            .collect();
        for (name, text) in [
            (WEBHOOK_ID, id),
            (WEBHOOK_TIMESTAMP, timestamp),
            (WEBHOOK_SIGNATURE, signatures.join(" ")),
        ] {
            let value = HeaderValue::try_from(text).expect("built of visible ASCII and spaces");
            headers.insert(name, value);
        }
    }
}

fn message_id(id: &str) -> String {
    id.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte),
            _ => '_',
        })
        .collect()
}
