//! How candidates are found. Every conjunction is listed under the tests of one field, its most
//! selective; a value of an event is looked up among the tests at its path, and only the
//! conjunctions listed under a test that holds are looked at. Long lists get a level of their own,
//! by the next field. Nothing of one rule is ever merged with another, so rules cannot change each
//! other.

use rustc_hash::FxHashMap;

use super::affixes::Affixes;
use super::atoms::Atom;
use super::blocks::Blocks;
use super::grams::Grams;
use super::ranges::Ranges;
use super::segment::LocalPath;

/// No list.
pub(crate) const NO_LIST: u32 = u32::MAX;

/// The path of a group of a list whose conjunctions have no guard.
pub(crate) const NO_GUARD: LocalPath = u32::MAX;

/// The path of a group that is not of conjunctions but of one level to go through as well.
pub(crate) const LINK: LocalPath = u32::MAX - 1;

/// Marks a list that is a level.
pub(super) const IS_LEVEL: u32 = u32::MAX;

/// The lists of all levels, each known by where it begins, in one run of words so that reading a
/// list reads memory in order.
///
/// A list is the number of its groups and then the groups; or [`IS_LEVEL`] and a level. A group is a
/// path, the number of its conjunctions, for each the atom that one of its other fields asks for at
/// that path (its guard), then the conjunctions, then for each a [`SecondGuard`]. A group without
/// guard has the path [`NO_GUARD`] and neither atoms nor second guards.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(super) words: Vec<u32>,
}

/// What is listed under a test.
#[derive(Debug, Clone)]
pub(crate) enum Listed<'l> {
    Groups(Groups<'l>),
    Level(u32),
}

/// The groups of a list.
#[derive(Debug, Clone)]
pub(crate) struct Groups<'l> {
    left: u32,
    words: &'l [u32],
}

/// Conjunctions of a list whose guards are at one path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group<'l> {
    pub(crate) path: LocalPath,
    /// As many as conjunctions, in order; none without guard.
    pub(crate) guards: &'l [Atom],
    pub(crate) conjunctions: &'l [u32],
    seconds: &'l [u32],
}

/// A further filter of a guarded conjunction: the path of another of its fields, and a bit for each
/// atom that the field asks for, by the lowest bits of its number. It lets some pass that the field
/// does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SecondGuard {
    /// [`NO_GUARD`] when there is none.
    pub(crate) path: LocalPath,
    mask: u32,
}

impl SecondGuard {
    pub(super) const NONE: Self = Self {
        path: NO_GUARD,
        mask: 0,
    };

    pub(super) fn new(path: LocalPath, atoms: &[Atom]) -> Self {
        let mask = atoms.iter().fold(0, |mask, atom| mask | 1 << (atom % 32));
        Self { path, mask }
    }

    pub(super) fn words(self) -> [u32; 2] {
        [self.path, self.mask]
    }

    /// False when the field certainly does not ask for the atom.
    pub(crate) fn may_be(self, atom: Atom) -> bool {
        self.mask >> (atom % 32) & 1 == 1
    }
}

impl Group<'_> {
    /// The second guard of the conjunction at a place.
    pub(crate) fn second(&self, place: usize) -> SecondGuard {
        match self.seconds.get(place * 2..place * 2 + 2) {
            Some([path, mask]) => SecondGuard {
                path: *path,
                mask: *mask,
            },
            _ => SecondGuard::NONE,
        }
    }
}

impl<'l> Iterator for Groups<'l> {
    type Item = Group<'l>;

    fn next(&mut self) -> Option<Group<'l>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let (head, rest) = self.words.split_first_chunk::<2>()?;
        let [path, length] = *head;
        let guards = if path >= LINK { 0 } else { length as usize };
        let (guards, rest) = rest.split_at_checked(guards)?;
        let (conjunctions, rest) = rest.split_at_checked(length as usize)?;
        let (seconds, rest) = rest.split_at_checked(guards.len() * 2)?;
        self.words = rest;
        Some(Group {
            path,
            guards,
            conjunctions,
            seconds,
        })
    }
}

/// Conjunctions by the tests of one field each.
#[derive(Debug, Default)]
pub(crate) struct Level {
    /// Sorted by path.
    pub(crate) paths: Box<[PathTests]>,
    /// The place in `paths` of each local path; only the first level has it.
    pub(super) by_path: Box<[u32]>,
    /// Conjunctions that no value is needed for.
    pub(crate) always: u32,
    pub(super) lists_by_atom: AtomLists,
}

/// The list of each atom that has one: by number in the first level, in order in the others.
#[derive(Debug)]
pub(super) enum AtomLists {
    Dense(Box<[u32]>),
    Sorted(Box<[(Atom, u32)]>),
}

impl Default for AtomLists {
    fn default() -> Self {
        Self::Sorted(Box::default())
    }
}

/// The tests at one path that conjunctions are listed under.
#[derive(Debug)]
pub(crate) struct PathTests {
    pub(crate) path: LocalPath,
    /// Listed under any value at all.
    pub(crate) any: u32,
    pub(crate) has_atoms: bool,
    pub(crate) texts: Option<Box<TextTests>>,
    pub(crate) ranges: Option<Ranges>,
}

/// The tests of text other than equality.
#[derive(Debug, Default)]
pub(crate) struct TextTests {
    pub(crate) prefixes: Option<Affixes>,
    pub(crate) suffixes: Option<Affixes>,
    pub(crate) folded: Option<Folded>,
    pub(crate) grams: Option<Grams>,
    pub(crate) blocks: Option<Blocks>,
}

/// The tests of text in any case, by its fold.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub(crate) whole: FxHashMap<Box<[u8]>, u32>,
    pub(crate) prefixes: Option<Affixes>,
    pub(crate) suffixes: Option<Affixes>,
}

impl Lists {
    pub(crate) fn get(&self, list: u32) -> Listed<'_> {
        match self.words.get(list as usize..) {
            Some([IS_LEVEL, level, ..]) => Listed::Level(*level),
            Some([left, words @ ..]) => Listed::Groups(Groups { left: *left, words }),
            Some([]) | None => Listed::Groups(Groups {
                left: 0,
                words: &[],
            }),
        }
    }

    /// Reads the beginning of a list, so that its memory is at hand when it is gone through.
    pub(crate) fn touch(&self, list: u32) -> u32 {
        let later = self
            .words
            .get(list as usize + 15)
            .copied()
            .unwrap_or_default();
        self.words[list as usize] ^ later
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity() * 4
    }
}

impl Level {
    /// The tests at a local path.
    pub(crate) fn tests_at(&self, path: LocalPath) -> Option<&PathTests> {
        if self.by_path.is_empty() {
            let place = self.paths.binary_search_by_key(&path, |tests| tests.path);
            return place.ok().map(|place| &self.paths[place]);
        }
        self.paths.get(self.by_path[path as usize] as usize)
    }

    /// The list of an atom, or [`NO_LIST`].
    pub(crate) fn list_of(&self, atom: Atom) -> u32 {
        match &self.lists_by_atom {
            AtomLists::Dense(lists) => lists.get(atom as usize).copied().unwrap_or(NO_LIST),
            AtomLists::Sorted(lists) => lists
                .binary_search_by_key(&atom, |(atom, _)| *atom)
                .map_or(NO_LIST, |place| lists[place].1),
        }
    }

    /// Heap bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        let atoms = match &self.lists_by_atom {
            AtomLists::Dense(lists) => lists.len() * 4,
            AtomLists::Sorted(lists) => lists.len() * 8,
        };
        let tests = self.paths.iter().map(PathTests::bytes).sum::<usize>();
        atoms + tests + self.by_path.len() * 4
    }
}

impl PathTests {
    fn bytes(&self) -> usize {
        let affixes = |set: &Option<Affixes>| set.as_ref().map_or(0, Affixes::bytes);
        let texts = self.texts.as_ref().map_or(0, |texts| {
            let folded = texts.folded.as_ref().map_or(0, |folded| {
                let whole: usize = folded.whole.keys().map(|text| text.len() + 40).sum();
                whole + affixes(&folded.prefixes) + affixes(&folded.suffixes)
            });
            size_of::<TextTests>()
                + affixes(&texts.prefixes)
                + affixes(&texts.suffixes)
                + texts.grams.as_ref().map_or(0, Grams::bytes)
                + texts.blocks.as_ref().map_or(0, Blocks::bytes)
                + folded
        });
        size_of::<Self>() + texts + self.ranges.as_ref().map_or(0, Ranges::bytes)
    }
}
