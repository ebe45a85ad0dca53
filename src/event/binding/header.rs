//! Attribute values in HTTP headers: unquoting and percent-coding (HTTP binding §3.1.3.2).

use http::HeaderValue;

use crate::event::Error;

/// The value that a header stands for: first double-quoted runs are unquoted, then percent-encoded
/// bytes are decoded, once.
pub(super) fn decode(name: &str, header: &[u8]) -> Result<String, Error> {
    let header = trim(header);
    let name = || name.to_owned();
    let mut bytes = header.to_vec();
    if bytes.contains(&b'"') && !unquote(&mut bytes) {
        return Err(Error::InvalidQuotedString { name: name() });
    }
    if bytes.contains(&b'%') && !percent_decode(&mut bytes) {
        return Err(Error::InvalidPercentEncoding { name: name() });
    }
    String::from_utf8(bytes).map_err(|_| Error::InvalidPercentEncoding { name: name() })
}

/// The header for a value: space, `"`, `%` and all outside U+0021 to U+007E are percent-encoded.
pub(super) fn encode(value: &str) -> HeaderValue {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let is_plain = |byte: u8| matches!(byte, 0x21..=0x7e) && byte != b'"' && byte != b'%';
    let encoded = if value.bytes().all(is_plain) {
        HeaderValue::from_str(value)
    } else {
        let mut bytes = Vec::with_capacity(value.len() + 16);
        for byte in value.bytes() {
            if is_plain(byte) {
                bytes.push(byte);
            } else {
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                bytes.extend([b'%', digits[0], digits[1]]);
            }
        }
        HeaderValue::from_maybe_shared(bytes::Bytes::from(bytes))
    };
    encoded.expect("visible ASCII is a header value")
}

/// The value without the optional white space around it (RFC 9110 §5.5).
pub(super) fn trim(header: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = header.iter().position(|byte| !is_blank(byte));
    let end = header.iter().rposition(|byte| !is_blank(byte));
    match (start, end) {
        (Some(start), Some(end)) => &header[start..=end],
        _ => &[],
    }
}

/// Takes the quotes off quoted runs and the backslashes off what they escape in them; `false` when
/// a run does not end.
fn unquote(bytes: &mut Vec<u8>) -> bool {
    let mut quoted = false;
    let mut escaped = false;
    bytes.retain(|byte| {
        if escaped {
            escaped = false;
            return true;
        }
        escaped = quoted && *byte == b'\\';
        let quote = *byte == b'"';
        quoted ^= quote;
        !quote && !escaped
    });
    !quoted
}

/// Decodes `%XX` in place; `false` when a percent sign is followed by anything else.
fn percent_decode(bytes: &mut Vec<u8>) -> bool {
    let mut read = 0;
    let mut written = 0;
    while let Some(&byte) = bytes.get(read) {
        bytes[written] = byte;
        read += 1;
        if byte == b'%' {
            let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
            let (Some(high), Some(low)) = (digit(read), digit(read + 1)) else {
                return false;
            };
            bytes[written] = (high << 4 | low) as u8;
            read += 2;
        }
        written += 1;
    }
    bytes.truncate(written);
    true
}
