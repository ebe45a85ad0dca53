//! The tests of one path in the making: what is listed under which, by kind of test.

use std::net::IpAddr;

use rustc_hash::FxHashMap;

use super::affixes::Affixes;
use super::blocks::Blocks;
use super::grams::Grams;
use super::level::{Folded, NO_LIST, PathTests, TextTests};
use super::ranges::Ranges;
use super::segment::LocalPath;
use crate::pattern::op::{Cidr, Range};

/// A test by its operator and operand.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum TestKey<'s> {
    Prefix(&'s str),
    Suffix(&'s str),
    /// The fold of the text.
    Folded(Box<[u8]>),
    FoldedPrefix(Box<[u8]>),
    FoldedSuffix(Box<[u8]>),
    Gram(u64),
    Block(u8, IpAddr),
    /// By place: ranges are not compared.
    Range(u32),
}

fn reversed(text: &[u8]) -> Vec<u8> {
    text.iter().rev().copied().collect()
}

/// The tests of a path in the making.
#[derive(Default)]
pub(super) struct PathDraft {
    pub(super) any: Option<u32>,
    pub(super) has_atoms: bool,
    prefixes: Vec<(Vec<u8>, u32)>,
    suffixes: Vec<(Vec<u8>, u32)>,
    whole: FxHashMap<Box<[u8]>, u32>,
    folded_prefixes: Vec<(Vec<u8>, u32)>,
    folded_suffixes: Vec<(Vec<u8>, u32)>,
    grams: Vec<(u64, u32)>,
    blocks: Option<Blocks>,
    ranges: Vec<(u32, u32)>,
}

impl PathDraft {
    /// Puts a list under a test.
    pub(super) fn add(&mut self, test: &TestKey<'_>, list: u32) {
        match test {
            TestKey::Prefix(text) => self.prefixes.push((text.as_bytes().into(), list)),
            TestKey::Suffix(text) => self.suffixes.push((reversed(text.as_bytes()), list)),
            TestKey::Folded(text) => {
                self.whole.insert(text.clone(), list);
            }
            TestKey::FoldedPrefix(text) => self.folded_prefixes.push((text.to_vec(), list)),
            TestKey::FoldedSuffix(text) => self.folded_suffixes.push((reversed(text), list)),
            TestKey::Gram(gram) => self.grams.push((*gram, list)),
            TestKey::Block(bits, first) => {
                let block = Cidr {
                    first: *first,
                    bits: *bits,
                };
                self.blocks.get_or_insert_default().add(&block, list);
            }
            TestKey::Range(place) => self.ranges.push((*place, list)),
        }
    }

    /// The finished tests; ranges are by place in `ranges`.
    pub(super) fn finish(self, path: LocalPath, ranges: &[&Range]) -> PathTests {
        let affixes = |pairs: Vec<_>| (!pairs.is_empty()).then(|| Affixes::build(pairs));
        let folded = Folded {
            whole: self.whole,
            prefixes: affixes(self.folded_prefixes),
            suffixes: affixes(self.folded_suffixes),
        };
        let has_folded =
            !folded.whole.is_empty() || folded.prefixes.is_some() || folded.suffixes.is_some();
        let texts = TextTests {
            prefixes: affixes(self.prefixes),
            suffixes: affixes(self.suffixes),
            folded: has_folded.then_some(folded),
            grams: (!self.grams.is_empty()).then(|| Grams::build(&self.grams)),
            blocks: self.blocks,
        };
        let has_texts = texts.prefixes.is_some()
            || texts.suffixes.is_some()
            || texts.folded.is_some()
            || texts.grams.is_some()
            || texts.blocks.is_some();
        let members: Vec<(Range, u32)> = self
            .ranges
            .into_iter()
            .map(|(place, list)| (ranges[place as usize].clone(), list))
            .collect();
        PathTests {
            path,
            any: self.any.unwrap_or(NO_LIST),
            has_atoms: self.has_atoms,
            texts: has_texts.then(|| texts.into()),
            ranges: (!members.is_empty()).then(|| Ranges::build(members)),
        }
    }
}
