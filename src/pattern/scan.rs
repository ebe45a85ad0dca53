//! Fast ways over JSON bytes: the end of a string, the end of a value that nobody reads.

/// Where a string ends, and what is in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StringEnd {
    /// Place of the closing quote.
    pub(crate) end: usize,
    /// True when there is a backslash before it.
    pub(crate) escaped: bool,
}

/// Finds the quote that closes the string whose first byte stands at `start`.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> Option<StringEnd> {
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

/// The place after the object or list that opens at `start`.
pub(crate) fn skip_container(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = start;
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at + 1)?.end,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The place after the number or literal that begins at `start`.
pub(crate) fn word_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let length = rest
        .iter()
        .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
        .unwrap_or(rest.len());
    start + length
}

/// The first place from `start` on that is not white space.
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
