//! Wildcards by the rarest few bytes of their literal pieces: a text can only match a wildcard
//! whose bytes occur in it.

use rustc_hash::FxHashMap;

use crate::pattern::op::Wildcard;

/// Bytes of a piece that are looked for, at most.
const GRAM_BYTES: usize = 4;

/// A set of wildcards, each list under one run of up to four bytes.
#[derive(Debug, Default)]
pub(crate) struct Grams {
    slots: Box<[Slot]>,
    /// For each length from one on, whether some run has it.
    lengths: [bool; GRAM_BYTES],
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    gram: u64,
    list: u32,
}

const EMPTY: Slot = Slot { gram: 0, list: 0 };

/// Counts how often each run occurs, so that every wildcard can be put under its rarest.
#[derive(Debug, Default)]
pub(crate) struct GramCounts {
    counts: FxHashMap<u64, u32>,
}

impl GramCounts {
    pub(crate) fn add(&mut self, wildcard: &Wildcard) {
        for gram in grams_of(wildcard) {
            *self.counts.entry(gram).or_default() += 1;
        }
    }

    /// The rarest run of a wildcard, longer ones first; none for a lone star.
    pub(crate) fn rarest(&self, wildcard: &Wildcard) -> Option<u64> {
        grams_of(wildcard).min_by_key(|gram| (self.counts.get(gram), std::cmp::Reverse(gram >> 56)))
    }
}

impl Grams {
    /// Builds the set from runs, none given twice, and their lists.
    pub(crate) fn build(pairs: &[(u64, u32)]) -> Self {
        let mut grams = Self {
            slots: vec![EMPTY; (pairs.len() * 2).next_power_of_two().max(4)].into(),
            lengths: [false; GRAM_BYTES],
        };
        let mask = grams.slots.len() - 1;
        for (gram, list) in pairs {
            grams.lengths[(gram >> 56) as usize - 1] = true;
            let mut at = place_of(*gram) & mask;
            while grams.slots[at].gram != 0 {
                at = (at + 1) & mask;
            }
            grams.slots[at] = Slot {
                gram: *gram,
                list: *list,
            };
        }
        grams
    }

    /// Calls `found` with the list of every run that occurs in `text`, perhaps several times.
    pub(crate) fn each(&self, text: &[u8], mut found: impl FnMut(u32)) {
        let mask = self.slots.len() - 1;
        for (length, _) in (1..).zip(&self.lengths).filter(|(_, used)| **used) {
            for window in text.windows(length) {
                let gram = gram_of(window);
                let mut at = place_of(gram) & mask;
                while self.slots[at].gram != 0 {
                    if self.slots[at].gram == gram {
                        found(self.slots[at].list);
                        break;
                    }
                    at = (at + 1) & mask;
                }
            }
        }
    }

    /// Heap bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>()
    }
}

/// The runs of a wildcard's pieces: those of four bytes, or the whole of a shorter piece.
fn grams_of(wildcard: &Wildcard) -> impl Iterator<Item = u64> {
    wildcard
        .pieces()
        .iter()
        .filter(|piece| !piece.is_empty())
        .flat_map(|piece| {
            let bytes = piece.as_bytes();
            bytes.windows(GRAM_BYTES.min(bytes.len())).map(gram_of)
        })
}

/// The bytes, and their number in the highest byte, so that no run is zero.
fn gram_of(window: &[u8]) -> u64 {
    let bytes = window
        .iter()
        .fold(0, |gram, byte| gram << 8 | u64::from(*byte));
    (window.len() as u64) << 56 | bytes
}

fn place_of(gram: u64) -> usize {
    (gram.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
}
