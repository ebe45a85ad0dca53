//! Patterns compiled together: their fields as checks, and the level that finds candidates.

use std::sync::Arc;

use super::RuleId;
use super::atoms::{Atom, Atoms, NO_ATOM};
use super::build;
use super::level::{Level, Lists};
use crate::pattern::op::AnythingBut;
use crate::pattern::paths::{PathId, Paths};
use crate::pattern::{Field, Op, Pattern};

/// Number of a path among those of one segment.
pub(crate) type LocalPath = u32;
/// Number of a rule among those of one segment, in the order of rule numbers.
pub(crate) type Slot = u32;

const NONE: u32 = u32::MAX;

/// An immutable index over some rules; atoms, checks and lists are its own, paths are shared.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) rules: Box<[RuleId]>,
    pub(crate) patterns: Box<[Arc<Pattern>]>,
    /// The path of each local path.
    pub(crate) paths: Box<[PathId]>,
    /// The local path of each path; shorter than the paths when others were added later.
    locals: Box<[LocalPath]>,
    pub(crate) atoms: Atoms,
    /// Each conjunction is a head and its checks; its number is the place of the head.
    words: Box<[Word]>,
    conjunction_count: usize,
    sets: Box<[Atom]>,
    ops: Box<[Op]>,
    pub(crate) lists: Lists,
    pub(crate) levels: Box<[Level]>,
}

/// Marks a conjunction that is in several lists which one value may be under.
pub(crate) const MAY_REPEAT: u32 = 1 << 31;

/// A conjunction's rule and number of checks, or one of its checks.
#[derive(Debug, Clone, Copy)]
enum Word {
    Head { slot: Slot, count: u32 },
    Check(Check),
}

/// One field of a conjunction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub(crate) path: LocalPath,
    pub(crate) ask: Ask,
    kind: Kind,
    start: u32,
    end: u32,
}

/// What a field asks of the values at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A value that passes the test.
    Value,
    /// A value that passes the test, or no value.
    Either,
    /// No value.
    Absence,
}

/// What the test of a check is, and what its `start` and `end` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The atom `start`.
    One,
    /// A run of the sets, sorted.
    In,
    NotIn,
    /// A run of the operators.
    Ops,
}

/// The tests of a field in the cheapest form.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Test<'s> {
    /// This atom.
    One(Atom),
    /// Any of these atoms.
    In(&'s [Atom]),
    /// None of these atoms.
    NotIn(&'s [Atom]),
    /// Any of these operators.
    Ops(&'s [Op]),
}

impl Segment {
    /// Compiles rules, which are sorted by number, each once.
    pub(crate) fn build(rules: Vec<(RuleId, Arc<Pattern>)>, paths: &mut Paths) -> Self {
        let mut compiler = Compiler {
            paths,
            globals: Vec::new(),
            locals: Vec::new(),
            atoms: Atoms::default(),
            words: Vec::new(),
            conjunction_count: 0,
            sets: Vec::new(),
            ops: Vec::new(),
            fields: Vec::new(),
        };
        for (slot, (_, pattern)) in (0..).zip(&rules) {
            compiler.rule(slot, pattern);
        }
        compiler.atoms.shrink();
        let (rules, patterns): (Vec<_>, Vec<_>) = rules.into_iter().unzip();
        let mut segment = Self {
            rules: rules.into(),
            patterns: patterns.into(),
            paths: compiler.globals.into(),
            locals: compiler.locals.into(),
            atoms: compiler.atoms,
            words: compiler.words.into(),
            conjunction_count: compiler.conjunction_count,
            sets: compiler.sets.into(),
            ops: compiler.ops.into(),
            lists: Lists::default(),
            levels: Box::default(),
        };
        (segment.levels, segment.lists) = build::build(&segment);
        segment
    }

    /// The local path of a path, if a rule here reads it.
    pub(crate) fn local(&self, path: PathId) -> Option<LocalPath> {
        let local = self.locals.get(path as usize).copied();
        local.filter(|local| *local != NONE)
    }

    /// The numbers of all conjunctions.
    pub(crate) fn conjunctions(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.words).filter_map(|(place, word)| match word {
            Word::Head { .. } => Some(place),
            Word::Check(_) => None,
        })
    }

    pub(crate) fn conjunction_count(&self) -> usize {
        self.conjunction_count
    }

    /// The rule and the checks of a conjunction.
    pub(crate) fn conjunction(&self, number: u32) -> (Slot, impl Iterator<Item = &Check> + Clone) {
        let words = &self.words[number as usize..];
        let (slot, count) = match words[0] {
            Word::Head { slot, count } => (slot, count as usize),
            Word::Check(_) => (0, 0),
        };
        let checks = words[1..=count].iter().filter_map(|word| match word {
            Word::Check(check) => Some(check),
            Word::Head { .. } => None,
        });
        (slot, checks)
    }

    /// Reads the head of a conjunction, so that its memory is at hand when it is checked.
    pub(crate) fn touch(&self, number: u32) -> u32 {
        match self.words[number as usize] {
            Word::Head { slot, .. } => slot,
            Word::Check(_) => 0,
        }
    }

    /// The test of a check.
    pub(crate) fn test(&self, check: &Check) -> Test<'_> {
        let run = check.start as usize..check.end as usize;
        match check.kind {
            Kind::One => Test::One(check.start),
            Kind::In => Test::In(&self.sets[run]),
            Kind::NotIn => Test::NotIn(&self.sets[run]),
            Kind::Ops => Test::Ops(&self.ops[run]),
        }
    }

    /// The atoms that a check asks for; none when it asks for more than atoms.
    pub(crate) fn atoms_of<'c>(&'c self, check: &'c Check) -> &'c [Atom] {
        match (check.kind, self.test(check)) {
            (Kind::One, _) => std::slice::from_ref(&check.start),
            (_, Test::In(set)) => set,
            (_, Test::One(_) | Test::NotIn(_) | Test::Ops(_)) => &[],
        }
    }

    /// The number of a rule among those here.
    pub(crate) fn slot(&self, rule: RuleId) -> Option<Slot> {
        self.rules.binary_search(&rule).ok().map(|slot| slot as Slot)
    }

    /// Heap bytes, about, the patterns not counted.
    pub(crate) fn bytes(&self) -> usize {
        self.rules.len() * (size_of::<RuleId>() + size_of::<Arc<Pattern>>())
            + (self.paths.len() + self.locals.len() + self.sets.len()) * 4
            + self.atoms.bytes()
            + self.words.len() * size_of::<Word>()
            + self.ops.len() * size_of::<Op>()
            + self.lists.bytes()
            + self.levels.iter().map(Level::bytes).sum::<usize>()
    }
}

impl Check {
    /// The atom that a check asks for, when it is one.
    pub(crate) fn atom(&self) -> Option<Atom> {
        (self.kind == Kind::One).then_some(self.start)
    }

    /// True when only a value can make the check hold.
    pub(crate) fn is_for_value(&self) -> bool {
        self.ask == Ask::Value
    }
}

struct Compiler<'c> {
    paths: &'c mut Paths,
    globals: Vec<PathId>,
    locals: Vec<LocalPath>,
    atoms: Atoms,
    words: Vec<Word>,
    conjunction_count: usize,
    sets: Vec<Atom>,
    ops: Vec<Op>,
    /// The checks of the fields of the pattern at hand.
    fields: Vec<Check>,
}

impl Compiler<'_> {
    fn rule(&mut self, slot: Slot, pattern: &Pattern) {
        self.fields.clear();
        for field in &pattern.fields {
            let check = self.check(field);
            self.fields.push(check);
        }
        for conjunction in &pattern.conjunctions {
            let head = self.words.len();
            self.conjunction_count += 1;
            self.words.push(Word::Head {
                slot,
                count: conjunction.len() as u32,
            });
            let checks = conjunction.iter().map(|place| self.fields[usize::from(*place)]);
            self.words.extend(checks.map(Word::Check));
            // What is cheap to check comes first.
            self.words[head + 1..].sort_by_key(|word| match word {
                Word::Check(check) => check.kind,
                Word::Head { .. } => Kind::One,
            });
        }
    }

    fn check(&mut self, field: &Field) -> Check {
        let path = self.local(field.path());
        let ask = match (field.wants_value(), field.allows_absence()) {
            (true, false) => Ask::Value,
            (true, true) => Ask::Either,
            (false, _) => Ask::Absence,
        };
        let start = self.sets.len();
        let mut kind = if self.add_atoms(path, field.tests()) {
            Kind::In
        } else {
            self.sets.truncate(start);
            Kind::Ops
        };
        if let [Op::AnythingBut(excluded)] = field.tests() {
            match excluded {
                AnythingBut::Texts(texts) => {
                    kind = Kind::NotIn;
                    let atoms = texts.iter().map(|text| self.atoms.add_text(path as usize, text));
                    self.sets.extend(atoms);
                }
                AnythingBut::Numbers(numbers) => {
                    kind = Kind::NotIn;
                    let atoms = numbers.iter().map(|one| self.atoms.add_number(path as usize, one));
                    self.sets.extend(atoms);
                }
                AnythingBut::Prefixes(_)
                | AnythingBut::Suffixes(_)
                | AnythingBut::IgnoreCase(_)
                | AnythingBut::Wildcards(_) => {}
            }
        }
        let (start, end) = match kind {
            Kind::Ops => self.add_ops(field.tests()),
            Kind::One | Kind::In | Kind::NotIn => self.finish_set(start),
        };
        if kind == Kind::In && end - start == 1 {
            kind = Kind::One;
            let atom = self.sets.pop().unwrap_or(NO_ATOM);
            return Check { path, ask, kind, start: atom, end: 0 };
        }
        Check { path, ask, kind, start, end }
    }

    fn add_ops(&mut self, tests: &[Op]) -> (u32, u32) {
        let start = self.ops.len() as u32;
        self.ops.extend(tests.iter().filter(|test| **test != Op::Exists(false)).cloned());
        (start, self.ops.len() as u32)
    }

    /// Numbers the plain values among the tests; false when there are other tests too.
    fn add_atoms(&mut self, path: LocalPath, tests: &[Op]) -> bool {
        let mut is_set = true;
        for test in tests {
            let atom = match test {
                Op::Exact(scalar) => self.atoms.add(path as usize, scalar),
                Op::Numeric(range) => match range.as_point() {
                    Some(number) => self.atoms.add_number(path as usize, number),
                    None => {
                        is_set = false;
                        continue;
                    }
                },
                Op::Exists(false) => continue,
                _ => {
                    is_set = false;
                    continue;
                }
            };
            self.sets.push(atom);
        }
        is_set
    }

    /// Sorts what was added to the sets since `start` and keeps each atom once.
    fn finish_set(&mut self, start: usize) -> (u32, u32) {
        let set = &mut self.sets[start..];
        set.sort_unstable();
        let mut kept = 0;
        for place in 0..set.len() {
            if place == 0 || set[place] != set[kept - 1] {
                set[kept] = set[place];
                kept += 1;
            }
        }
        self.sets.truncate(start + kept);
        (start as u32, self.sets.len() as u32)
    }

    fn local(&mut self, path: &str) -> LocalPath {
        let global = self.paths.add(path);
        if self.locals.len() <= global as usize {
            self.locals.resize(global as usize + 1, NONE);
        }
        let local = &mut self.locals[global as usize];
        if *local == NONE {
            *local = self.globals.len() as LocalPath;
            self.globals.push(global);
            self.atoms.reserve_paths(self.globals.len());
        }
        *local
    }
}
