//! Exact decimal numbers, for bounds and multiples that must not round.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// `digits · 10^exponent`, without trailing zeros in the digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    digits: i128,
    exponent: i32,
}

impl Decimal {
    pub(super) const ZERO: Self = Self {
        digits: 0,
        exponent: 0,
    };
    pub(super) const ONE: Self = Self {
        digits: 1,
        exponent: 0,
    };

    /// The value of a JSON number; `None` beyond what an `i128` holds, which no `f64` needs.
    pub(super) fn of(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().ok()?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let shift = i32::try_from(fraction.len()).ok()?;
        Some(
            Self {
                digits,
                exponent: exponent.checked_sub(shift)?,
            }
            .normal(),
        )
    }

    /// The value of a JSON number, when `value` is one.
    pub(super) fn of_value(value: &Value) -> Option<Self> {
        value.as_number().and_then(Self::of)
    }

    fn normal(mut self) -> Self {
        if self.digits == 0 {
            return Self::ZERO;
        }
        while self.digits % 10 == 0 {
            self.digits /= 10;
            self.exponent += 1;
        }
        self
    }

    /// Both digits at the smaller exponent, or `None` when that overflows.
    fn aligned(self, other: Self) -> Option<(i128, i128, i32)> {
        let exponent = self.exponent.min(other.exponent);
        let scale = |value: Self| {
            let power = u32::try_from(value.exponent - exponent).ok()?;
            value.digits.checked_mul(10_i128.checked_pow(power)?)
        };
        Some((scale(self)?, scale(other)?, exponent))
    }

    pub(super) fn compare(self, other: Self) -> Ordering {
        match self.aligned(other) {
            Some((left, right, _)) => left.cmp(&right),
            None => self.to_f64().total_cmp(&other.to_f64()),
        }
    }

    /// Whether this is a whole multiple of `unit`; `None` where the answer overflows.
    pub(super) fn is_multiple_of(self, unit: Self) -> Option<bool> {
        let (value, unit, _) = self.aligned(unit)?;
        (unit != 0).then(|| value % unit == 0)
    }

    pub(super) fn is_integer(self) -> bool {
        self.exponent >= 0
    }

    pub(super) fn add(self, other: Self) -> Option<Self> {
        let (left, right, exponent) = self.aligned(other)?;
        Some(
            Self {
                digits: left.checked_add(right)?,
                exponent,
            }
            .normal(),
        )
    }

    pub(super) fn negated(self) -> Self {
        Self {
            digits: -self.digits,
            exponent: self.exponent,
        }
    }

    pub(super) fn times(self, count: i128) -> Option<Self> {
        Some(
            Self {
                digits: self.digits.checked_mul(count)?,
                exponent: self.exponent,
            }
            .normal(),
        )
    }

    /// How often `unit` fits into this value, rounded towards minus infinity.
    pub(super) fn divided_floor(self, unit: Self) -> Option<i128> {
        let (value, unit, _) = self.aligned(unit)?;
        (unit != 0).then(|| value.div_euclid(unit))
    }

    /// The least common multiple of two positive values.
    pub(super) fn common_multiple(self, other: Self) -> Option<Self> {
        let (left, right, exponent) = self.aligned(other)?;
        let (mut a, mut b) = (left.abs(), right.abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        (a != 0).then_some(())?;
        let digits = (left / a).checked_mul(right)?;
        Some(Self { digits, exponent }.normal())
    }

    /// The value as the JSON number a writer would use: an integer where it is one.
    pub(super) fn to_value(self) -> Option<Value> {
        if self.exponent >= 0 {
            let power = 10_i128.checked_pow(u32::try_from(self.exponent).ok()?);
            if let Some(whole) = power.and_then(|power| self.digits.checked_mul(power)) {
                if let Ok(small) = i64::try_from(whole) {
                    return Some(small.into());
                }
                if let Ok(large) = u64::try_from(whole) {
                    return Some(large.into());
                }
            }
        }
        Number::from_f64(self.to_f64()).map(Value::Number)
    }

    pub(super) fn to_f64(self) -> f64 {
        format!("{}e{}", self.digits, self.exponent)
            .parse()
            .unwrap_or(f64::NAN)
    }
}
