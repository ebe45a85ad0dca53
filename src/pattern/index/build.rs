//! Building levels: which field of each conjunction to list it under, and what goes where.

use rustc_hash::FxHashMap;

use super::atoms::{Atom, NO_ATOM};
use super::cost::{Counts, op_cost};
use super::level::{
    AtomLists, IS_LEVEL, LINK, Level, Lists, NO_GUARD, NO_LIST, PathTests, SecondGuard,
};
use super::segment::{Check, LocalPath, MAY_REPEAT, Segment};
use super::tests_at_path::{PathDraft, TestKey};
use crate::pattern::op::Range;
use crate::pattern::{Op, fold};

const NONE: u32 = u32::MAX;

/// A list longer than this becomes a level when its conjunctions have other fields to go by.
const LIST_LENGTH_MAX: usize = 512;
/// Conjunctions of a list without guard at most; more get a level.
const UNGUARDED_MAX: usize = 8;
/// Values of a guard at most; each makes an entry.
const GUARD_ATOMS_MAX: usize = 8;
/// Tests of a field at most whose conjunctions are listed with guards.
const GUARDED_TESTS_MAX: usize = 64;

/// Builds the levels of a segment; the first is the one to begin with.
pub(crate) fn build(segment: &Segment, conjunctions: &[u32]) -> (Box<[Level]>, Lists) {
    let mut builder = Builder {
        segment,
        levels: Vec::new(),
        lists: Lists::default(),
    };
    builder.level(conjunctions, &mut Vec::new());
    builder.lists.words.shrink_to_fit();
    (builder.levels.into(), builder.lists)
}

/// A conjunction in a list, with an atom that one of its other fields asks for as a first filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    list: u32,
    /// [`NO_GUARD`] for an entry without guard.
    guard_path: LocalPath,
    guard: Atom,
    conjunction: u32,
    second: SecondGuard,
}

struct Builder<'s> {
    segment: &'s Segment,
    levels: Vec<Level>,
    lists: Lists,
}

/// What a list of a level is under.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key<'s> {
    Always,
    Any(LocalPath),
    Atom(LocalPath, Atom),
    /// A test by its operator and operand.
    Test(LocalPath, TestKey<'s>),
}

/// A level in the making.
#[derive(Default)]
struct Draft<'s> {
    keys: FxHashMap<Key<'s>, u32>,
    ranges: Vec<&'s Range>,
    entries: Vec<Entry>,
}

impl<'s> Builder<'s> {
    /// Builds the level of some conjunctions that are not listed under `used` paths already.
    fn level(&mut self, conjunctions: &[u32], used: &mut Vec<LocalPath>) -> u32 {
        let number = self.levels.len() as u32;
        self.levels.push(Level::default());
        let counts = self.count(conjunctions, used);
        let mut draft = Draft::default();
        for conjunction in conjunctions {
            self.list(*conjunction, used, &counts, &mut draft);
        }
        drop(counts);
        let starts = self.add_lists(&mut draft, used);
        self.levels[number as usize] = self.finish(&draft, &starts, number == 0);
        number
    }

    fn count(&self, conjunctions: &[u32], used: &[LocalPath]) -> Counts {
        let mut counts = Counts::default();
        for conjunction in conjunctions {
            for check in self.segment.conjunction(*conjunction).1 {
                if check.is_for_value() && !used.contains(&check.path) {
                    counts.add(&check);
                }
            }
        }
        counts
    }

    /// Lists a conjunction under its most selective field.
    fn list(&self, conjunction: u32, used: &[LocalPath], counts: &Counts, draft: &mut Draft<'s>) {
        let checks = self.segment.conjunction(conjunction).1;
        let usable = |check: &Check<'s>| check.is_for_value() && !used.contains(&check.path);
        let cost = |check: &Check<'s>| counts.cost(check);
        let best = checks
            .clone()
            .filter(usable)
            .min_by(|one, other| cost(one).total_cmp(&cost(other)));
        let mut entry = Entry {
            list: 0,
            guard_path: NO_GUARD,
            conjunction,
            guard: NO_ATOM,
            second: SecondGuard::NONE,
        };
        let Some(best) = best else {
            draft.push(Key::Always, entry);
            return;
        };
        let mut keys = Vec::new();
        self.keys(&best, counts, &mut keys, draft);
        if keys.len() > 1 {
            entry.conjunction |= MAY_REPEAT;
        }
        let mut guards: Vec<Check<'s>> = checks
            .filter(usable)
            .filter(|check| check.path != best.path && !check.atoms().is_empty())
            .collect();
        guards.sort_by(|one, other| cost(one).total_cmp(&cost(other)));
        let first = guards
            .iter()
            .position(|guard| guard.atoms().len() <= GUARD_ATOMS_MAX);
        let guard = first
            .filter(|_| keys.len() <= GUARDED_TESTS_MAX)
            .map(|first| guards.remove(first));
        if let (Some(_), Some(second)) = (guard, guards.first()) {
            entry.second = SecondGuard::new(second.path, second.atoms());
        }
        for key in keys {
            let Some(guard) = guard else {
                draft.push(key, entry);
                continue;
            };
            for atom in guard.atoms() {
                entry.guard_path = guard.path;
                entry.guard = *atom;
                draft.push(key.clone(), entry);
            }
        }
    }

    /// The keys that a check's tests are listed under.
    fn keys(
        &self,
        check: &Check<'s>,
        counts: &Counts,
        keys: &mut Vec<Key<'s>>,
        draft: &mut Draft<'s>,
    ) {
        let path = check.path;
        let atoms = check.atoms();
        if !atoms.is_empty() {
            keys.extend(atoms.iter().map(|atom| Key::Atom(path, *atom)));
            return;
        }
        let ops = check.ops();
        if ops.is_empty() {
            keys.push(Key::Any(path));
        }
        for op in ops {
            let key = self.key_of(path, op, counts, draft);
            keys.push(key);
        }
        if keys.contains(&Key::Any(path)) {
            keys.clear();
            keys.push(Key::Any(path));
        }
    }

    fn key_of(
        &self,
        path: LocalPath,
        op: &'s Op,
        counts: &Counts,
        draft: &mut Draft<'s>,
    ) -> Key<'s> {
        let key = match op {
            Op::Exact(scalar) => {
                return Key::Atom(path, self.segment.atoms.find_scalar(path as usize, scalar));
            }
            Op::Numeric(range) => {
                if let Some(number) = range.as_point() {
                    let atom = self.segment.atoms.find_number(path as usize, number);
                    return Key::Atom(path, atom);
                }
                draft.ranges.push(range);
                TestKey::Range(draft.ranges.len() as u32 - 1)
            }
            Op::Prefix(text) => TestKey::Prefix(text),
            Op::Suffix(text) => TestKey::Suffix(text),
            Op::IgnoreCase(text) => TestKey::Folded(folded(text)),
            Op::PrefixIgnoreCase(text) => TestKey::FoldedPrefix(folded(text)),
            Op::SuffixIgnoreCase(text) => TestKey::FoldedSuffix(folded(text)),
            Op::Cidr(block) => TestKey::Block(block.bits, block.first),
            Op::Wildcard(wildcard) => match counts.rarest_gram(path, wildcard) {
                Some(gram) => TestKey::Gram(gram),
                None => return Key::Any(path),
            },
            Op::AllOf(tests) => {
                let best = tests
                    .iter()
                    .filter(|test| !matches!(test, Op::Wildcard(_) | Op::Exact(_)))
                    .filter(
                        |test| !matches!(test, Op::Numeric(range) if range.as_point().is_some()),
                    )
                    .min_by(|one, other| op_cost(one).total_cmp(&op_cost(other)));
                return best.map_or(Key::Any(path), |test| {
                    self.key_of(path, test, counts, draft)
                });
            }
            Op::AnythingBut(_) | Op::Exists(_) => return Key::Any(path),
        };
        Key::Test(path, key)
    }

    /// Writes the draft's lists and gives where each begins, in the order of keys.
    fn add_lists(&mut self, draft: &mut Draft<'s>, used: &mut Vec<LocalPath>) -> Vec<u32> {
        let mut paths = vec![NO_GUARD; draft.keys.len()];
        for (key, list) in &draft.keys {
            if let Key::Any(path) | Key::Atom(path, _) | Key::Test(path, _) = key {
                paths[*list as usize] = *path;
            }
        }
        draft.entries.sort_unstable();
        let mut starts = Vec::with_capacity(paths.len());
        for entries in draft.entries.chunk_by(|one, other| one.list == other.list) {
            let path = paths[entries[0].list as usize];
            let start = match self.level_of(entries, path, used, LIST_LENGTH_MAX) {
                Some(level) => {
                    let start = self.lists.words.len();
                    self.lists.words.extend([IS_LEVEL, level]);
                    start
                }
                None => {
                    let guarded = entries.partition_point(|entry| entry.guard_path != NO_GUARD);
                    let unguarded = &entries[guarded..];
                    match self.level_of(unguarded, path, used, UNGUARDED_MAX) {
                        Some(level) => self.add_list(&entries[..guarded], Some(level)),
                        None => self.add_list(entries, None),
                    }
                }
            };
            starts.push(start as u32);
        }
        starts
    }

    fn add_list(&mut self, entries: &[Entry], link: Option<u32>) -> usize {
        let words = &mut self.lists.words;
        let start = words.len();
        words.push(0);
        for group in entries.chunk_by(|one, other| one.guard_path == other.guard_path) {
            words[start] += 1;
            words.extend([group[0].guard_path, group.len() as u32]);
            if group[0].guard_path != NO_GUARD {
                words.extend(group.iter().map(|entry| entry.guard));
            }
            words.extend(group.iter().map(|entry| entry.conjunction));
            if group[0].guard_path != NO_GUARD {
                words.extend(group.iter().flat_map(|entry| entry.second.words()));
            }
        }
        if let Some(level) = link {
            words[start] += 1;
            words.extend([LINK, 1, level]);
        }
        start
    }

    fn finish(&self, draft: &Draft<'s>, starts: &[u32], is_first: bool) -> Level {
        let mut by_path: FxHashMap<LocalPath, PathDraft> = FxHashMap::default();
        let mut atoms = Vec::new();
        let mut always = NO_LIST;
        for (key, list) in &draft.keys {
            let list = starts[*list as usize];
            match key {
                Key::Always => always = list,
                Key::Any(path) => by_path.entry(*path).or_default().any = Some(list),
                Key::Atom(path, atom) => {
                    by_path.entry(*path).or_default().has_atoms = true;
                    atoms.push((*atom, list));
                }
                Key::Test(path, test) => by_path.entry(*path).or_default().add(test, list),
            }
        }
        let mut paths: Vec<PathTests> = by_path
            .into_iter()
            .map(|(path, tests)| tests.finish(path, &draft.ranges))
            .collect();
        paths.sort_unstable_by_key(|tests| tests.path);
        let mut places = Vec::new();
        if is_first {
            places.resize(self.segment.paths.len(), NONE);
            for (place, tests) in (0..).zip(&paths) {
                places[tests.path as usize] = place;
            }
        }
        Level {
            paths: paths.into(),
            by_path: places.into(),
            always,
            lists_by_atom: self.atom_lists(atoms, is_first),
        }
    }

    fn atom_lists(&self, mut atoms: Vec<(Atom, u32)>, is_first: bool) -> AtomLists {
        if !is_first {
            atoms.sort_unstable();
            return AtomLists::Sorted(atoms.into());
        }
        let mut lists = vec![NO_LIST; self.segment.atoms.len()];
        for (atom, list) in atoms {
            lists[atom as usize] = list;
        }
        AtomLists::Dense(lists.into())
    }

    /// A level for the conjunctions of a list that are more than `length_max`, where most of its conjunctions have another field to go by.
    fn level_of(
        &mut self,
        entries: &[Entry],
        path: LocalPath,
        used: &mut Vec<LocalPath>,
        length_max: usize,
    ) -> Option<u32> {
        if entries.len() <= length_max || path == NO_GUARD {
            return None;
        }
        let mut conjunctions: Vec<u32> = entries
            .iter()
            .map(|entry| entry.conjunction & !MAY_REPEAT)
            .collect();
        conjunctions.sort_unstable();
        conjunctions.dedup();
        used.push(path);
        let others = conjunctions
            .iter()
            .filter(|one| self.has_other_field(**one, used))
            .count();
        let is_worth_it = conjunctions.len() > length_max && others * 2 > conjunctions.len();
        let level = is_worth_it.then(|| self.level(&conjunctions, used));
        used.pop();
        level
    }

    fn has_other_field(&self, conjunction: u32, used: &[LocalPath]) -> bool {
        let (_, mut checks) = self.segment.conjunction(conjunction);
        checks.any(|check| check.is_for_value() && !used.contains(&check.path))
    }
}

impl<'s> Draft<'s> {
    fn push(&mut self, key: Key<'s>, entry: Entry) {
        let next = self.keys.len() as u32;
        let list = *self.keys.entry(key).or_insert(next);
        self.entries.push(Entry { list, ..entry });
    }
}

fn folded(text: &str) -> Box<[u8]> {
    let mut key = Vec::with_capacity(text.len());
    fold::key(text.as_bytes(), &mut key);
    key.into()
}
