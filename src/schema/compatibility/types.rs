//! Sets of JSON types, with numbers split so that every draft's `integer` is a union of parts.

use serde_json::Value;

/// A set of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(1 << 1);
    /// Whole numbers written without fraction or exponent, draft 4's `integer`.
    pub(super) const INTEGER: Self = Self(1 << 2);
    /// Whole numbers written as `1.0`, integers since draft 6.
    pub(super) const WHOLE: Self = Self(1 << 3);
    pub(super) const FRACTION: Self = Self(1 << 4);
    pub(super) const STRING: Self = Self(1 << 5);
    pub(super) const ARRAY: Self = Self(1 << 6);
    pub(super) const OBJECT: Self = Self(1 << 7);
    pub(super) const ALL: Self = Self(0xff);
    pub(super) const NUMBER: Self = Self(Self::INTEGER.0 | Self::WHOLE.0 | Self::FRACTION.0);

    /// The members of [`Types::ALL`], one by one.
    pub(super) const SINGLE: [Self; 8] = [
        Self::NULL,
        Self::BOOLEAN,
        Self::INTEGER,
        Self::WHOLE,
        Self::FRACTION,
        Self::STRING,
        Self::ARRAY,
        Self::OBJECT,
    ];

    /// The type of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) => match number.as_f64() {
                _ if number.is_i64() || number.is_u64() => Self::INTEGER,
                Some(float) if float.fract() == 0.0 => Self::WHOLE,
                _ => Self::FRACTION,
            },
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The set in words, such as `integer or string`.
    pub(super) fn words(self) -> String {
        let number = if self.contains(Self::FRACTION) {
            "number"
        } else {
            "integer"
        };
        let names = [
            (Self::NULL, "null"),
            (Self::BOOLEAN, "boolean"),
            (Self::NUMBER, number),
            (Self::STRING, "string"),
            (Self::ARRAY, "array"),
            (Self::OBJECT, "object"),
        ];
        let words: Vec<&str> = names
            .iter()
            .filter(|(types, _)| self.meets(*types))
            .map(|(_, name)| *name)
            .collect();
        words.join(" or ")
    }
}

/// Without a `type`, every type is meant.
impl Default for Types {
    fn default() -> Self {
        Self::ALL
    }
}
