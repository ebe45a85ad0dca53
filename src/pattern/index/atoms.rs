//! The plain values that patterns name, each numbered once for its path: a value of an event is
//! looked up once, and after that equality is a comparison of numbers.

use crate::pattern::number::Decimal;
use crate::pattern::op::{Scalar, Value};

/// Number of a plain value among all of a segment; it belongs to one path.
pub(crate) type Atom = u32;

/// A value that no pattern names.
pub(crate) const NO_ATOM: Atom = u32::MAX;

/// The plain values of every path of a segment.
#[derive(Debug, Default)]
pub(crate) struct Atoms {
    tables: Vec<Table>,
    /// Where the text of each atom is; for a number its place among the numbers.
    spans: Vec<Span>,
    texts: Vec<u8>,
    numbers: Vec<Decimal>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    length: u32,
}

/// Marks the span of a number.
const IS_NUMBER: u32 = u32::MAX;

/// The plain values of one path: literals by place, all others in an open hash table.
#[derive(Debug)]
struct Table {
    literals: [Atom; 3],
    slots: Box<[Slot]>,
    count: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    tag: u32,
    atom: Atom,
}

const EMPTY: Slot = Slot {
    tag: 0,
    atom: NO_ATOM,
};

impl Default for Table {
    fn default() -> Self {
        Self {
            literals: [NO_ATOM; 3],
            slots: Box::default(),
            count: 0,
        }
    }
}

impl Atoms {
    /// How many atoms there are.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Makes room for so many paths.
    pub(crate) fn reserve_paths(&mut self, paths: usize) {
        if self.tables.len() < paths {
            self.tables.resize_with(paths, Table::default);
        }
    }

    /// The atom of a value at a path, or [`NO_ATOM`].
    pub(crate) fn find(&self, path: usize, value: &Value<'_>) -> Atom {
        let table = &self.tables[path];
        match value {
            Value::Null => table.literals[0],
            Value::Bool(value) => table.literals[1 + usize::from(*value)],
            Value::Text(text) => {
                if table.slots.is_empty() {
                    return NO_ATOM;
                }
                self.probe(table, hash_text(text), |span| {
                    span.length as usize == text.len() && self.text(span) == *text
                })
            }
            Value::Number(number) => {
                if table.slots.is_empty() {
                    return NO_ATOM;
                }
                self.probe(table, number.hash(), |span| {
                    span.length == IS_NUMBER
                        && self.numbers[span.start as usize].as_number() == *number
                })
            }
        }
    }

    /// The atom of a plain value that was added.
    pub(crate) fn find_scalar(&self, path: usize, scalar: &Scalar) -> Atom {
        self.find(path, &scalar.as_value())
    }

    /// The atom of a number that was added.
    pub(crate) fn find_number(&self, path: usize, number: &Decimal) -> Atom {
        self.find(path, &Value::Number(number.as_number()))
    }

    /// The atom of a value that a pattern names at a path, numbered if it is new.
    pub(crate) fn add(&mut self, path: usize, scalar: &Scalar) -> Atom {
        match scalar {
            Scalar::Null => self.add_literal(path, 0),
            Scalar::Bool(value) => self.add_literal(path, 1 + usize::from(*value)),
            Scalar::Text(text) => self.add_text(path, text),
            Scalar::Number(number) => self.add_number(path, number),
        }
    }

    /// The atom of a string, numbered if it is new.
    pub(crate) fn add_text(&mut self, path: usize, text: &str) -> Atom {
        let known = self.find(path, &Value::Text(text.as_bytes()));
        if known != NO_ATOM {
            return known;
        }
        let span = Span {
            start: self.texts.len() as u32,
            length: text.len() as u32,
        };
        self.texts.extend_from_slice(text.as_bytes());
        self.insert(path, hash_text(text.as_bytes()), span)
    }

    /// The atom of a number, numbered if it is new.
    pub(crate) fn add_number(&mut self, path: usize, number: &Decimal) -> Atom {
        let known = self.find(path, &Value::Number(number.as_number()));
        if known != NO_ATOM {
            return known;
        }
        let span = Span {
            start: self.numbers.len() as u32,
            length: IS_NUMBER,
        };
        self.numbers.push(number.clone());
        self.insert(path, number.as_number().hash(), span)
    }

    /// Gives back the room that growing left over.
    pub(crate) fn shrink(&mut self) {
        self.spans.shrink_to_fit();
        self.texts.shrink_to_fit();
        self.numbers.shrink_to_fit();
    }

    /// Heap bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        let slots: usize = self.tables.iter().map(|table| table.slots.len()).sum();
        slots * size_of::<Slot>()
            + self.tables.capacity() * size_of::<Table>()
            + self.spans.capacity() * size_of::<Span>()
            + self.texts.capacity()
            + self.numbers.capacity() * size_of::<Decimal>()
    }

    fn add_literal(&mut self, path: usize, place: usize) -> Atom {
        let literals = &mut self.tables[path].literals;
        if literals[place] == NO_ATOM {
            literals[place] = self.spans.len() as Atom;
            self.spans.push(Span {
                start: 0,
                length: 0,
            });
        }
        literals[place]
    }

    fn insert(&mut self, path: usize, hash: u64, span: Span) -> Atom {
        let atom = self.spans.len() as Atom;
        self.spans.push(span);
        let table = &mut self.tables[path];
        table.count += 1;
        if table.count as usize * 3 > table.slots.len() * 2 {
            self.grow(path);
        }
        let table = &mut self.tables[path];
        place(&mut table.slots, hash, atom);
        atom
    }

    fn grow(&mut self, path: usize) {
        let length = (self.tables[path].slots.len() * 2).max(4);
        let old = std::mem::replace(&mut self.tables[path].slots, vec![EMPTY; length].into());
        for slot in old.iter().filter(|slot| slot.atom != NO_ATOM) {
            let span = self.spans[slot.atom as usize];
            let hash = if span.length == IS_NUMBER {
                self.numbers[span.start as usize].as_number().hash()
            } else {
                hash_text(self.text(span))
            };
            place(&mut self.tables[path].slots, hash, slot.atom);
        }
    }

    fn probe(&self, table: &Table, hash: u64, same: impl Fn(Span) -> bool) -> Atom {
        let mask = table.slots.len() - 1;
        let mut at = hash as usize & mask;
        let tag = (hash >> 32) as u32;
        loop {
            let slot = table.slots[at];
            if slot.atom == NO_ATOM {
                return NO_ATOM;
            }
            if slot.tag == tag && same(self.spans[slot.atom as usize]) {
                return slot.atom;
            }
            at = (at + 1) & mask;
        }
    }

    fn text(&self, span: Span) -> &[u8] {
        &self.texts[span.start as usize..][..span.length as usize]
    }
}

fn place(slots: &mut [Slot], hash: u64, atom: Atom) {
    let mask = slots.len() - 1;
    let mut at = hash as usize & mask;
    while slots[at].atom != NO_ATOM {
        at = (at + 1) & mask;
    }
    slots[at] = Slot {
        tag: (hash >> 32) as u32,
        atom,
    };
}

/// A hash of a text, eight bytes a step; the last step may overlap the one before.
pub(crate) fn hash_text(text: &[u8]) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    const OTHER: u64 = 0xD6E8_FEB8_6659_FD93;
    let fold = |one: u64, two: u64| {
        let product = u128::from(one) * u128::from(two);
        product as u64 ^ (product >> 64) as u64
    };
    let mut hash = (text.len() as u64).wrapping_mul(ODD) ^ OTHER;
    let last = match (
        text.last_chunk::<8>(),
        text.first_chunk::<4>(),
        text.last_chunk::<4>(),
    ) {
        (Some(last), _, _) => {
            let mut rest = text;
            while rest.len() > 8 {
                let (word, after) = rest.split_first_chunk::<8>().unwrap_or((last, &[]));
                hash = fold(hash ^ u64::from_le_bytes(*word), ODD);
                rest = after;
            }
            u64::from_le_bytes(*last)
        }
        (None, Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => text
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    fold(hash ^ last, OTHER)
}
