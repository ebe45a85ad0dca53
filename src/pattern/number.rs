//! Exact decimal numbers: any JSON number in one normal form, compared digit by digit.
//!
//! No value passes through binary floating point and no exponent is ever expanded, so that
//! 64-bit identifiers, long decimals and `1e1000000000` compare as written and cost their text.

use std::cmp::Ordering;

/// Exponents beyond this are held at it; a pattern may not name such a number.
pub(crate) const EXPONENT_MAX: i64 = 1_000_000_000;

/// Digits that fit the leading word.
const LEAD_DIGITS: usize = 19;

/// A number in normal form: `0.d1d2d3… × 10^scale`, where `d1` is not zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number<'a> {
    negative: bool,
    /// `i64::MIN` for zero.
    scale: i64,
    /// The first 19 digits, padded with zeros on the right.
    lead: u64,
    /// What follows them up to the last digit that is not zero; may hold the decimal point.
    rest: &'a [u8],
}

/// A [`Number`] that owns its digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    scale: i64,
    lead: u64,
    rest: Box<[u8]>,
}

impl<'a> Number<'a> {
    /// Reads the text of a number that is correct by the JSON grammar.
    pub(crate) fn read(text: &'a [u8]) -> Self {
        if let Some(number) = Self::read_short(text) {
            return number;
        }
        let negative = text.first() == Some(&b'-');
        let text = &text[usize::from(negative)..];
        let mantissa_end = text
            .iter()
            .position(|byte| matches!(byte, b'e' | b'E'))
            .unwrap_or(text.len());
        let (mantissa, exponent) = text.split_at(mantissa_end);
        let point = mantissa.iter().position(|byte| *byte == b'.');
        let is_digit_set = |byte: &u8| (b'1'..=b'9').contains(byte);
        let Some(first) = mantissa.iter().position(is_digit_set) else {
            return Self::ZERO;
        };
        let last = mantissa.iter().rposition(is_digit_set).unwrap_or(first);
        let whole = point.unwrap_or(mantissa.len());
        let shift = if first < whole {
            whole as i64 - first as i64
        } else {
            whole as i64 + 1 - first as i64
        };
        let digits = &mantissa[first..=last];
        let (lead, taken) = lead_of(digits);
        Self {
            negative,
            scale: shift.saturating_add(read_exponent(exponent)),
            lead,
            rest: &digits[taken..],
        }
    }

    const ZERO: Self = Number {
        negative: false,
        scale: i64::MIN,
        lead: 0,
        rest: &[],
    };

    /// The usual case in one pass: at most 19 digits that count, no exponent.
    fn read_short(text: &[u8]) -> Option<Self> {
        let negative = text.first() == Some(&b'-');
        let (mut value, mut count, mut scale) = (0u64, 0, 0i64);
        let mut after_point = false;
        for byte in &text[usize::from(negative)..] {
            let digit = byte.wrapping_sub(b'0');
            if *byte == b'.' {
                after_point = true;
            } else if digit > 9 || count == LEAD_DIGITS {
                return None;
            } else if value == 0 && digit == 0 {
                scale -= i64::from(after_point);
            } else {
                value = value * 10 + u64::from(digit);
                count += 1;
                scale += i64::from(!after_point);
            }
        }
        if value == 0 {
            return Some(Self::ZERO);
        }
        Some(Self {
            negative,
            scale,
            lead: value * POWERS[LEAD_DIGITS - count],
            rest: &[],
        })
    }

    /// A copy that owns its digits.
    pub(crate) fn to_decimal(self) -> Decimal {
        Decimal {
            negative: self.negative,
            scale: self.scale,
            lead: self.lead,
            rest: digits_of(self.rest).collect(),
        }
    }

    /// A number that is equal for equal numbers.
    pub(crate) fn hash(self) -> u64 {
        let mut hash = self.lead ^ (self.scale as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for digit in digits_of(self.rest) {
            hash = (hash.rotate_left(5) ^ u64::from(digit)).wrapping_mul(0x517C_C1B7_2722_0A95);
        }
        hash ^= u64::from(self.negative);
        hash.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn magnitude_cmp(self, other: Number<'_>) -> Ordering {
        self.scale
            .cmp(&other.scale)
            .then(self.lead.cmp(&other.lead))
            .then_with(|| {
                if self.rest.is_empty() && other.rest.is_empty() {
                    Ordering::Equal
                } else {
                    digits_of(self.rest).cmp(digits_of(other.rest))
                }
            })
    }
}

impl PartialEq for Number<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number<'_> {}

impl PartialOrd for Number<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude_cmp(*other),
            (true, true) => other.magnitude_cmp(*self),
        }
    }
}

impl Decimal {
    /// The same number, borrowed.
    pub(crate) fn as_number(&self) -> Number<'_> {
        Number {
            negative: self.negative,
            scale: self.scale,
            lead: self.lead,
            rest: &self.rest,
        }
    }

    /// True when the number has no fraction.
    pub(crate) fn is_integral(&self) -> bool {
        self.is_zero() || self.scale >= self.digits().len() as i64
    }

    /// True for zero in any spelling.
    pub(crate) fn is_zero(&self) -> bool {
        self.scale == i64::MIN
    }

    /// True when the exponent is one that [`Number::read`] may have cut.
    pub(crate) fn is_extreme(&self) -> bool {
        !self.is_zero() && self.scale.abs() >= EXPONENT_MAX
    }

    fn digits(&self) -> String {
        let mut digits = format!("{:019}", self.lead);
        digits.extend(self.rest.iter().map(|digit| char::from(*digit)));
        digits.truncate(digits.trim_end_matches('0').len());
        digits
    }
}

impl std::fmt::Display for Decimal {
    /// JSON text of the number: plain where it is short, with an exponent elsewhere.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_zero() {
            return out.write_str("0");
        }
        let digits = self.digits();
        let count = digits.len() as i64;
        if self.negative {
            out.write_str("-")?;
        }
        match self.scale {
            scale if scale >= count && scale <= 21 => {
                let zeros = (scale - count) as usize;
                write!(out, "{digits}{:0<zeros$}", "")
            }
            scale if scale > 0 && scale < count => {
                let (whole, fraction) = digits.split_at(scale as usize);
                write!(out, "{whole}.{fraction}")
            }
            scale if (-6..=0).contains(&scale) => {
                let zeros = -scale as usize;
                write!(out, "0.{:0<zeros$}{digits}", "")
            }
            scale => {
                let (first, others) = digits.split_at(1);
                let point = if others.is_empty() { "" } else { "." };
                write!(out, "{first}{point}{others}e{}", scale - 1)
            }
        }
    }
}

const POWERS: [u64; LEAD_DIGITS] = {
    let mut powers = [1u64; LEAD_DIGITS];
    let mut index = 1;
    while index < LEAD_DIGITS {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

/// The leading word, and how many bytes of `digits` (which may hold a point) it took.
fn lead_of(digits: &[u8]) -> (u64, usize) {
    let mut lead = 0u64;
    let mut count = 0;
    let mut taken = 0;
    for byte in digits {
        if count == LEAD_DIGITS {
            break;
        }
        taken += 1;
        if byte.is_ascii_digit() {
            lead = lead * 10 + u64::from(byte - b'0');
            count += 1;
        }
    }
    if count < LEAD_DIGITS {
        lead *= POWERS[LEAD_DIGITS - count];
    }
    (lead, taken)
}

fn digits_of(text: &[u8]) -> impl Iterator<Item = u8> {
    text.iter().copied().filter(u8::is_ascii_digit)
}

/// The exponent of `e+12` or nothing, held within ±[`EXPONENT_MAX`].
fn read_exponent(text: &[u8]) -> i64 {
    let Some((_, text)) = text.split_first() else {
        return 0;
    };
    let negative = text.first() == Some(&b'-');
    let magnitude = digits_of(text).fold(0i64, |value, digit| {
        (value * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX)
    });
    if negative { -magnitude } else { magnitude }
}
