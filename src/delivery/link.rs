//! Signed addresses of offloaded data: whoever has one may fetch that data until it expires.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::time::Duration;

use crate::clock::{Millis, millis};
use crate::store::Seq;

/// How long an address works.
pub const LINK_AGE: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Bytes of the key that signs addresses.
pub const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const TOKEN_BYTES: usize = 8 + 8 + TAG_BYTES;

/// Makes and checks the addresses.
#[derive(Clone)]
pub struct Links {
    key: Vec<u8>,
    /// Where this server is reached, without a slash at the end.
    base: String,
}

impl Links {
    /// Signs with `key`; addresses begin with `base`.
    #[must_use]
    pub fn new(key: Vec<u8>, base: &str) -> Self {
        Self {
            key,
            base: base.trim_end_matches('/').to_owned(),
        }
    }

    /// An address of the data of the event at `seq`.
    #[must_use]
    pub fn address(&self, seq: Seq, now: Millis) -> String {
        let expires = now + millis(LINK_AGE);
        let mut token = Vec::with_capacity(TOKEN_BYTES);
        token.extend(seq.to_be_bytes());
        token.extend(expires.to_be_bytes());
        let tag = self.mac(&token).finalize().into_bytes();
        token.extend(&tag[..TAG_BYTES]);
        format!("{}/v1/blobs/{}", self.base, URL_SAFE_NO_PAD.encode(token))
    }

    /// The event whose data a token gives access to; `None` when it is forged or has expired.
    #[must_use]
    pub fn open(&self, token: &str, now: Millis) -> Option<Seq> {
        let bytes: [u8; TOKEN_BYTES] = URL_SAFE_NO_PAD.decode(token).ok()?.try_into().ok()?;
        let (signed, tag) = bytes.split_at(16);
        self.mac(signed).verify_truncated_left(tag).ok()?;
        let (seq, expires) = signed.split_at(8);
        let expires = Millis::from_be_bytes(expires.try_into().ok()?);
        (now < expires).then_some(Seq::from_be_bytes(seq.try_into().ok()?))
    }

    fn mac(&self, signed: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes any key");
        mac.update(signed);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_opens_until_it_expires_and_only_unchanged() {
        let links = Links::new(vec![7; KEY_BYTES], "http://dak.example/");
        let address = links.address(42, 1_000);
        let token = address
            .strip_prefix("http://dak.example/v1/blobs/")
            .expect("an address of the base");
        assert_eq!(links.open(token, 2_000), Some(42));
        assert_eq!(links.open(token, 1_000 + millis(LINK_AGE)), None);
        for at in 0..token.len() {
            let mut forged = token.to_owned();
            let other = if token.as_bytes()[at] == b'Q' {
                "g"
            } else {
                "Q"
            };
            forged.replace_range(at..=at, other);
            assert_eq!(links.open(&forged, 2_000), None, "changed at {at}");
        }
        assert_eq!(Links::new(vec![8; KEY_BYTES], "x").open(token, 2_000), None);
        assert_eq!(links.open("short", 0), None);
    }
}
