//! Durations and sizes as people write them: `1h30m`, `250ms`, `64KiB`.

use std::time::Duration;

/// The longest duration that is read: a hundred years.
const DURATION_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Nanoseconds of each unit of time, longest first.
const TIME_UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];

/// Bytes of each unit of size, largest first.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// Why a text is no duration or size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Nothing is written.
    #[error("nothing is written")]
    Empty,
    /// A part does not start with a decimal number.
    #[error("{text:?} does not start with a number")]
    Number { text: String },
    /// A unit that is not known.
    #[error("the unit {unit:?} is not known; use one of {known}")]
    Unit { unit: String, known: &'static str },
    /// A number without a unit among parts that have one.
    #[error("a number has no unit; use one of {known}")]
    NoUnit { known: &'static str },
    /// Units repeat, or a smaller one comes before a larger one.
    #[error("the units must go from large to small, each once")]
    Order,
    /// More than a hundred years, or than 2^64 bytes.
    #[error("it is too large")]
    TooLarge,
    /// A part of a byte or of a nanosecond.
    #[error("it is finer than one {unit}")]
    TooFine { unit: &'static str },
}

/// Reads a duration: parts of `d`, `h`, `m`, `s`, `ms` from large to small (`1h30m`, `1.5s`), or a
/// plain number of seconds. At most a hundred years.
///
/// # Errors
/// What keeps the text from being a duration.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(QuantityError::Empty);
    }
    if let (number, "") = Decimal::leading(rest)? {
        return duration(number.times(1_000_000_000, "nanosecond")?);
    }
    let mut total: u64 = 0;
    let mut units_left = &TIME_UNITS[..];
    while !rest.is_empty() {
        let (number, after) = Decimal::leading(rest)?;
        let after = after.trim_start();
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, after) = after.split_at(unit_end.unwrap_or(after.len()));
        let Some(nanoseconds) = find_unit(&TIME_UNITS, unit, str::eq) else {
            return Err(match (unit, "ms, s, m, h, d") {
                ("", known) => QuantityError::NoUnit { known },
                (unit, known) => QuantityError::Unit {
                    unit: unit.to_owned(),
                    known,
                },
            });
        };
        let index = units_left.iter().position(|(_, size)| *size == nanoseconds);
        units_left = &units_left[index.ok_or(QuantityError::Order)? + 1..];
        let part = number.times(nanoseconds, "nanosecond")?;
        total = total.checked_add(part).ok_or(QuantityError::TooLarge)?;
        rest = after.trim_start();
    }
    duration(total)
}

/// Reads a size in bytes: a number with `B`, `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024) or `KB`,
/// `MB`, `GB`, `TB` (powers of 1000), in any case, or a plain number of bytes.
///
/// # Errors
/// What keeps the text from being a size.
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(QuantityError::Empty);
    }
    let (number, unit) = Decimal::leading(text)?;
    let unit = unit.trim_start();
    let bytes = match unit {
        "" => 1,
        unit => find_unit(&SIZE_UNITS, unit, str::eq_ignore_ascii_case).ok_or_else(|| {
            let known = "B, KiB, MiB, GiB, TiB, KB, MB, GB, TB";
            let unit = unit.to_owned();
            QuantityError::Unit { unit, known }
        })?,
    };
    number.times(bytes, "byte")
}

/// A duration as [`parse_duration`] reads it, such as `1h30m`; parts below 1 ms are left off.
pub fn duration_text(duration: Duration) -> String {
    let mut milliseconds = duration.as_millis();
    let mut text = String::new();
    for (unit, nanoseconds) in TIME_UNITS {
        let size = u128::from(nanoseconds / 1_000_000);
        if milliseconds >= size {
            text.push_str(&format!("{}{unit}", milliseconds / size));
            milliseconds %= size;
        }
    }
    if text.is_empty() {
        text.push_str("0s");
    }
    text
}

/// A size as [`parse_size`] reads it, in the largest binary unit that divides it: `64KiB`.
pub fn size_text(bytes: u64) -> String {
    let binary = SIZE_UNITS.iter().filter(|(unit, _)| unit.ends_with("iB"));
    let mut fitting = binary.filter(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size));
    match fitting.next() {
        Some((unit, size)) => format!("{}{unit}", bytes / size),
        None => format!("{bytes}B"),
    }
}

fn duration(nanoseconds: u64) -> Result<Duration, QuantityError> {
    let duration = Duration::from_nanos(nanoseconds);
    if duration > DURATION_MAX {
        return Err(QuantityError::TooLarge);
    }
    Ok(duration)
}

fn find_unit(units: &[(&str, u64)], unit: &str, same: fn(&str, &str) -> bool) -> Option<u64> {
    let mut units = units.iter();
    units.find(|(name, _)| same(name, unit)).map(|(_, n)| *n)
}

/// A decimal number without sign and exponent, exact.
struct Decimal<'t> {
    integer: &'t str,
    fraction: &'t str,
}

impl<'t> Decimal<'t> {
    /// Splits the number off the front of a text.
    fn leading(text: &'t str) -> Result<(Decimal<'t>, &'t str), QuantityError> {
        let none = || QuantityError::Number {
            text: text.chars().take(32).collect(),
        };
        let (integer, rest) = digits(text);
        if integer.is_empty() {
            return Err(none());
        }
        let Some(rest) = rest.strip_prefix('.') else {
            let fraction = "";
            return Ok((Decimal { integer, fraction }, rest));
        };
        let (fraction, rest) = digits(rest);
        if fraction.is_empty() {
            return Err(none());
        }
        Ok((Decimal { integer, fraction }, rest))
    }

    /// The product with a unit, which must come out whole.
    fn times(&self, unit: u64, finest: &'static str) -> Result<u64, QuantityError> {
        const FRACTION_DIGITS_MAX: u32 = 18;
        let too_large = QuantityError::TooLarge;
        let integer: u64 = self.integer.parse().map_err(|_| QuantityError::TooLarge)?;
        let whole = integer.checked_mul(unit).ok_or(too_large.clone())?;
        let fraction = self.fraction.trim_end_matches('0');
        if fraction.is_empty() {
            return Ok(whole);
        }
        let too_fine = QuantityError::TooFine { unit: finest };
        let digits = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
        if digits > FRACTION_DIGITS_MAX {
            return Err(too_fine);
        }
        let part: u128 = fraction.parse().map_err(|_| too_fine.clone())?;
        let scale = 10_u128.pow(digits);
        let product = part * u128::from(unit);
        if !product.is_multiple_of(scale) {
            return Err(too_fine);
        }
        let part = u64::try_from(product / scale).map_err(|_| QuantityError::TooLarge)?;
        whole.checked_add(part).ok_or(too_large)
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}
