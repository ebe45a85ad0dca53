//! RFC 3339 timestamps: the grammar and the calendar, nothing rewritten.

/// Whether this is an RFC 3339 `date-time`. Lower-case `t` and `z`, any number of fraction digits
/// and second 60 (a leap second) are allowed.
pub(super) fn is_rfc3339(text: &str) -> bool {
    date_time(text.as_bytes()).is_some_and(<[u8]>::is_empty)
}

/// Reads one `date-time` and gives what follows it.
fn date_time(text: &[u8]) -> Option<&[u8]> {
    let (year, text) = number(text, 4)?;
    let (month, text) = number(literal(text, b"-")?, 2)?;
    let (day, text) = number(literal(text, b"-")?, 2)?;
    let (hour, text) = number(literal(text, b"Tt")?, 2)?;
    let (minute, text) = number(literal(text, b":")?, 2)?;
    let (second, text) = number(literal(text, b":")?, 2)?;
    let date = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    let time = hour <= 23 && minute <= 59 && second <= 60;
    if date && time {
        offset(fraction(text)?)
    } else {
        None
    }
}

/// Skips `.` and its digits, of which there must be one at least.
fn fraction(text: &[u8]) -> Option<&[u8]> {
    let Some(digits) = literal(text, b".") else {
        return Some(text);
    };
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    (count > 0).then(|| &digits[count..])
}

fn offset(text: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = literal(text, b"Zz") {
        return Some(rest);
    }
    let (hour, text) = number(literal(text, b"+-")?, 2)?;
    let (minute, text) = number(literal(text, b":")?, 2)?;
    (hour <= 23 && minute <= 59).then_some(text)
}

/// A number of exactly this many digits.
fn number(text: &[u8], digits: usize) -> Option<(u32, &[u8])> {
    let (head, tail) = text.split_at_checked(digits)?;
    let mut number = 0;
    for byte in head {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number * 10 + u32::from(byte - b'0');
    }
    Some((number, tail))
}

/// One byte out of these.
fn literal<'a>(text: &'a [u8], allowed: &[u8]) -> Option<&'a [u8]> {
    let (first, rest) = text.split_first()?;
    allowed.contains(first).then_some(rest)
}

fn days_in_month(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
