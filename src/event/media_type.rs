//! Media types (RFC 2046, RFC 9110 §8.3.1): what is one, which declare JSON, which charset they name.

/// Whether a content type declares JSON: `*/json` or `*/*+json`, whatever the letter case and the
/// parameters (JSON event format §3.1).
pub fn is_json_media_type(media_type: &str) -> bool {
    let Some((_, subtype)) = essence(media_type).split_once('/') else {
        return false;
    };
    let suffix = match subtype.len().checked_sub("+json".len()) {
        Some(start) => &subtype.as_bytes()[start..],
        None => subtype.as_bytes(),
    };
    suffix.eq_ignore_ascii_case(b"+json") || subtype.eq_ignore_ascii_case("json")
}

/// Whether this is `type/subtype` with well-formed parameters.
pub(super) fn is_valid(media_type: &str) -> bool {
    let Some((kind, subtype)) = essence(media_type).split_once('/') else {
        return false;
    };
    let trimmed = media_type.trim_matches(is_blank).len() == media_type.len();
    trimmed && is_token(kind) && is_token(subtype) && parameters(media_type).all(|it| it.is_some())
}

/// The media type without its parameters and the blanks around it.
pub(super) fn essence(media_type: &str) -> &str {
    let end = media_type.find(';').unwrap_or(media_type.len());
    media_type[..end].trim_matches(is_blank)
}

/// The `charset` parameter, unquoted, when there is one.
pub(super) fn charset(media_type: &str) -> Option<&str> {
    parameters(media_type)
        .map_while(|parameter| parameter)
        .find(|(name, _)| name.eq_ignore_ascii_case("charset"))
        .map(|(_, value)| value.trim_matches('"'))
}

/// The parameters as name and raw value; `None` where they stop being well-formed.
fn parameters(media_type: &str) -> impl Iterator<Item = Option<(&str, &str)>> {
    let start = media_type.find(';').unwrap_or(media_type.len());
    let mut rest = media_type[start..].trim_start_matches([';', ' ', '\t']);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        match parameter(rest) {
            Some((name, value, tail)) => {
                rest = tail;
                Some(Some((name, value)))
            }
            None => {
                rest = "";
                Some(None)
            }
        }
    })
}

/// The first parameter of a list: its name, its value with any quotes, and the list after it.
fn parameter(list: &str) -> Option<(&str, &str, &str)> {
    let (name, after) = list.split_once('=')?;
    let name = name.trim_end_matches(is_blank);
    let after = after.trim_start_matches(is_blank);
    let length = if after.starts_with('"') {
        quoted_length(after)?
    } else {
        after.find([';', ' ', '\t']).unwrap_or(after.len())
    };
    let (value, tail) = after.split_at(length);
    let tail = tail.trim_start_matches(is_blank);
    let separated = tail.is_empty() || tail.starts_with(';');
    let plain = value.starts_with('"') || is_token(value);
    (is_token(name) && plain && separated)
        .then(|| (name, value, tail.trim_start_matches([';', ' ', '\t'])))
}

/// The length of the quoted string at the beginning, quotes included.
fn quoted_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
