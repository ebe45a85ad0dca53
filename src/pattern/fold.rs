//! Letter case, as EventBridge sees it: a pattern's character stands for its own lower-case and
//! upper-case mapping, whole (`ß` stands for `SS`, not the reverse), and for nothing else.

/// True when `pattern` stands for exactly `text` (UTF-8, or what JSON made of it).
pub(crate) fn equals(pattern: &str, text: &[u8]) -> bool {
    if pattern.is_ascii() {
        return pattern.as_bytes().eq_ignore_ascii_case(text);
    }
    prefix_length(pattern, text) == Some(text.len())
}

/// True when `pattern` stands for the start of `text`.
pub(crate) fn starts(pattern: &str, text: &[u8]) -> bool {
    if pattern.is_ascii() {
        return text
            .get(..pattern.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(pattern.as_bytes()));
    }
    prefix_length(pattern, text).is_some()
}

/// True when `pattern` stands for the end of `text`.
pub(crate) fn ends(pattern: &str, text: &[u8]) -> bool {
    if pattern.is_ascii() {
        return text.len() >= pattern.len()
            && text[text.len() - pattern.len()..].eq_ignore_ascii_case(pattern.as_bytes());
    }
    let mut rest = text;
    for letter in pattern.chars().rev() {
        match spellings(letter).find_map(|form| rest.strip_suffix(form.bytes())) {
            Some(shorter) => rest = shorter,
            None => return false,
        }
    }
    true
}

/// The fold under which whatever a pattern stands for equals the pattern: both mapped to lower
/// case, then to upper, letter by letter. More texts fold together than match.
pub(crate) fn key(text: &[u8], into: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_ascii() {
                into.push(letter.to_ascii_uppercase() as u8);
                continue;
            }
            for lower in letter.to_lowercase() {
                for upper in lower.to_uppercase() {
                    into.extend_from_slice(upper.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
        into.extend_from_slice(chunk.invalid());
    }
}

/// Bytes of `text` that `pattern` stands for at its start.
///
/// The spellings of one letter begin, and end, with different characters (a test goes through
/// all of Unicode), so the first that fits is the only one.
fn prefix_length(pattern: &str, text: &[u8]) -> Option<usize> {
    let mut rest = text;
    for letter in pattern.chars() {
        rest = spellings(letter).find_map(|form| rest.strip_prefix(form.bytes()))?;
    }
    Some(text.len() - rest.len())
}

/// One spelling of a letter; three characters at most, by the Unicode tables.
struct Spelling {
    bytes: [u8; 12],
    length: usize,
}

impl Spelling {
    fn of(letters: impl Iterator<Item = char>) -> Self {
        let mut bytes = [0; 12];
        let mut length = 0;
        for letter in letters {
            length += letter.encode_utf8(&mut bytes[length..]).len();
        }
        Self { bytes, length }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn spellings(letter: char) -> impl Iterator<Item = Spelling> {
    [
        Spelling::of(letter.to_lowercase()),
        Spelling::of(letter.to_uppercase()),
    ]
    .into_iter()
}
