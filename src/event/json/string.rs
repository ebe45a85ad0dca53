//! JSON strings: where they end, what their escapes stand for, and how they are written.

use crate::event::json::{Fault, Malformed};

/// Writes a JSON string, escaping only what must be.
pub(super) fn write(text: &mut Vec<u8>, string: &str) {
    text.push(b'"');
    let mut rest = string.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_end(rest, 0));
        text.extend_from_slice(plain);
        let Some((&byte, after)) = special.split_first() else {
            break;
        };
        write_escape(text, byte);
        rest = after;
    }
    text.push(b'"');
}

fn write_escape(text: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' | b'\\' => text.extend_from_slice(&[b'\\', byte]),
        b'\n' => text.extend_from_slice(b"\\n"),
        b'\r' => text.extend_from_slice(b"\\r"),
        b'\t' => text.extend_from_slice(b"\\t"),
        _ => {
            text.extend_from_slice(b"\\u00");
            text.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// Where a string ends whose first byte that is not plain, and not its end, is at `at`.
#[inline(never)]
pub(super) fn escaped_end(bytes: &[u8], mut at: usize) -> Result<usize, Malformed> {
    loop {
        let rest = &bytes[at..];
        let fault = match rest.first() {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => match escaped_unit(rest) {
                Some((Escaped::Character(_), length)) => {
                    at = plain_end(bytes, at + length);
                    continue;
                }
                Some((Escaped::Surrogate, _)) => Fault::LoneSurrogate,
                None if rest.len() < 2 => Fault::UnexpectedEnd,
                None => Fault::Escape,
            },
            Some(_) => Fault::ControlCharacter,
            None => Fault::UnexpectedEnd,
        };
        return Err(Malformed { fault, at });
    }
}

/// Bytes that are looked at one by one before whole words: most strings are shorter.
const SINGLE_BYTES: usize = 24;

/// Where the next quote, backslash or control character is, from `at` on.
#[inline(always)]
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    let singles_end = bytes.len().min(at + SINGLE_BYTES);
    while at < singles_end && !SPECIAL[usize::from(bytes[at])] {
        at += 1;
    }
    if at == singles_end {
        at += plain_length(&bytes[at..]);
    }
    at
}

/// The number of plain bytes at the beginning, eight at a time.
fn plain_length(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| SPECIAL[usize::from(*byte)];
    let in_tail = tail.iter().position(is_special).unwrap_or(tail.len());
    words.len() * 8 + in_tail
}

/// The bytes that end a run of plain characters in a string.
static SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = true;
        byte += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special
};

/// The high bit of every byte that is a quote, a backslash or a control character. Bits above the
/// lowest one may be set wrongly, by a borrow; the lowest is right.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGH;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | equal(b'"') | equal(b'\\')
}

enum Escaped {
    Character(char),
    Surrogate,
}

/// What the escape at the beginning stands for, and its length in bytes.
fn escaped_unit(text: &[u8]) -> Option<(Escaped, usize)> {
    let character = match *text.get(1)? {
        quoted @ (b'"' | b'\\' | b'/') => char::from(quoted),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return escaped_utf16(text),
        _ => return None,
    };
    Some((Escaped::Character(character), 2))
}

fn escaped_utf16(text: &[u8]) -> Option<(Escaped, usize)> {
    let first = utf16_unit(text)?;
    let second = utf16_unit(&text[6..]);
    let mut decoded = char::decode_utf16([Some(first), second].into_iter().flatten());
    match decoded.next()? {
        Ok(character) => {
            let length = if character.len_utf16() == 2 { 12 } else { 6 };
            Some((Escaped::Character(character), length))
        }
        Err(_) => Some((Escaped::Surrogate, 6)),
    }
}

/// The code unit of a `\uXXXX` at the beginning.
fn utf16_unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| {
        let value = char::from(digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(value).ok()?)
    })
}

/// The characters of a scanned string with escapes.
pub(super) fn unescape(inside: &str) -> String {
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, escape) = rest.split_at(at);
        text.push_str(plain);
        match escaped_unit(escape.as_bytes()) {
            Some((Escaped::Character(character), length)) => {
                text.push(character);
                rest = &escape[length..];
            }
            // The scanner lets no such string through.
            Some((Escaped::Surrogate, _)) | None => return text,
        }
    }
    text.push_str(rest);
    text
}
