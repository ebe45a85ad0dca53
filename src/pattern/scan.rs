//! Fast ways over JSON bytes: the end of a string, the end of a value that nobody reads.

mod block;

/// Where a string ends, and what is in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StringEnd {
    /// Place of the closing quote.
    pub(crate) end: usize,
    /// True when there is a backslash before it.
    pub(crate) escaped: bool,
}

/// Finds the quote that closes the string whose first byte stands at `start`.
#[inline]
pub(crate) fn string_end(bytes: &[u8], start: usize) -> Option<StringEnd> {
    let mut at = start;
    // Most strings are short, and a word at a time finds their end sooner than a wider search.
    for _ in 0..STRING_WORDS {
        let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) else {
            break;
        };
        let word = u64::from_le_bytes(*word);
        let found = equal_bytes(word, b'"') | equal_bytes(word, b'\\');
        if found != 0 {
            at += found.trailing_zeros() as usize / 8;
            if bytes[at] == b'"' {
                return Some(StringEnd {
                    end: at,
                    escaped: false,
                });
            }
            return long_string_end(bytes, at);
        }
        at += 8;
    }
    long_string_end(bytes, at)
}

/// Words of a string that are looked at one by one.
const STRING_WORDS: usize = 3;

fn long_string_end(bytes: &[u8], start: usize) -> Option<StringEnd> {
    let mut at = start;
    let mut escaped = false;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(StringEnd { end: at, escaped });
        }
        escaped = true;
        at += 2;
    }
}

/// The highest bit of each byte of `word` that equals `byte`; bytes after the first such one may be
/// marked wrongly.
#[inline]
pub(crate) fn equal_bytes(word: u64, byte: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let differing = word ^ (ONES * byte as u64);
    differing.wrapping_sub(ONES) & !differing & (ONES << 7)
}

/// The place after the object or list that opens at `start`.
pub(crate) fn skip_container(bytes: &[u8], start: usize) -> Option<usize> {
    block::skip_container(bytes, start)
}

/// The place after the number or literal that begins at `start`.
#[inline]
pub(crate) fn word_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while bytes
        .get(at)
        .is_some_and(|byte| !ENDS_WORD[usize::from(*byte)])
    {
        at += 1;
    }
    at
}

/// The bytes that end a number or literal.
const ENDS_WORD: [bool; 256] = {
    let mut ends = [false; 256];
    let mut place = 0;
    while place < ENDING.len() {
        ends[ENDING[place] as usize] = true;
        place += 1;
    }
    ends
};
const ENDING: &[u8] = b",}] \n\r\t";

/// The first place from `start` on that is not white space.
#[inline]
pub(crate) fn skip_space(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// Writes what a JSON string with escapes stands for; half a surrogate pair becomes its three
/// bytes. Unknown escapes, which no JSON text has, are left as they are.
pub(crate) fn unescape(text: &[u8], into: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        into.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((letter, after)) = rest.split_first() else {
            return;
        };
        rest = after;
        match letter {
            b'b' => into.push(8),
            b'f' => into.push(12),
            b'n' => into.push(b'\n'),
            b'r' => into.push(b'\r'),
            b't' => into.push(b'\t'),
            b'u' => rest = unescape_unit(rest, into),
            other => into.push(*other),
        }
    }
    into.extend_from_slice(rest);
}

fn unescape_unit<'t>(text: &'t [u8], into: &mut Vec<u8>) -> &'t [u8] {
    let Some((first, rest)) = code_unit(text) else {
        return text;
    };
    if (0xD800..0xDC00).contains(&first) {
        let low = rest.strip_prefix(b"\\u").and_then(code_unit);
        if let Some((low @ 0xDC00..0xE000, rest)) = low {
            push_code(0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00), into);
            return rest;
        }
    }
    push_code(first, into);
    rest
}

fn code_unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let unit = digits.iter().try_fold(0, |unit, digit| {
        Some(unit * 16 + char::from(*digit).to_digit(16)?)
    })?;
    Some((unit, rest))
}

fn push_code(code: u32, into: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(letter) => into.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        None => into.extend([
            0xE0 | (code >> 12) as u8,
            0x80 | (code >> 6 & 0x3F) as u8,
            0x80 | (code & 0x3F) as u8,
        ]),
    }
}
