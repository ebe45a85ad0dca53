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
    pub(crate) conjunctions: Box<[Conjunction]>,
    pub(crate) checks: Box<[Check]>,
    tests: Box<[Test]>,
    sets: Box<[Atom]>,
    pub(crate) lists: Lists,
    pub(crate) levels: Box<[Level]>,
}

/// One alternative of a rule: its checks run to the first of the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conjunction {
    pub(crate) slot: Slot,
    pub(crate) first_check: u32,
}

/// One field of a conjunction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub(crate) path: LocalPath,
    pub(crate) ask: Ask,
    /// An atom when asking for one, else the place of a test.
    test: u32,
}

/// What a field asks of the values at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A value that is one atom.
    Atom,
    /// A value that passes a test.
    Value,
    /// A value that passes a test, or no value.
    Either,
    /// No value.
    Absence,
}

/// The tests of a field, in the cheapest form.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Test {
    /// Any of these atoms, sorted.
    In { start: u32, end: u32 },
    /// None of these atoms, sorted.
    NotIn { start: u32, end: u32 },
    /// As the field of the rule's pattern says.
    Field { slot: Slot, place: u16 },
}

impl Segment {
    /// Compiles rules, which are sorted by number, each once.
    pub(crate) fn build(rules: Vec<(RuleId, Arc<Pattern>)>, paths: &mut Paths) -> Self {
        let mut compiler = Compiler {
            paths,
            globals: Vec::new(),
            locals: Vec::new(),
            atoms: Atoms::default(),
            conjunctions: Vec::new(),
            checks: Vec::new(),
            tests: Vec::new(),
            sets: Vec::new(),
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
            conjunctions: compiler.conjunctions.into(),
            checks: compiler.checks.into(),
            tests: compiler.tests.into(),
            sets: compiler.sets.into(),
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

    /// The checks of a conjunction.
    pub(crate) fn checks_of(&self, conjunction: u32) -> &[Check] {
        let start = self.conjunctions[conjunction as usize].first_check as usize;
        let end = self
            .conjunctions
            .get(conjunction as usize + 1)
            .map_or(self.checks.len(), |next| next.first_check as usize);
        &self.checks[start..end]
    }

    /// The test of a check that does not ask for an atom.
    pub(crate) fn test(&self, check: &Check) -> Test {
        match check.ask {
            Ask::Atom => Test::In {
                start: NONE,
                end: NONE,
            },
            Ask::Value | Ask::Either | Ask::Absence => self.tests[check.test as usize],
        }
    }

    /// The atoms of a test.
    pub(crate) fn set(&self, start: u32, end: u32) -> &[Atom] {
        &self.sets[start as usize..end as usize]
    }

    /// The field that a test is read from.
    pub(crate) fn field(&self, slot: Slot, place: u16) -> &Field {
        &self.patterns[slot as usize].fields[usize::from(place)]
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
            + self.conjunctions.len() * size_of::<Conjunction>()
            + self.checks.len() * size_of::<Check>()
            + self.tests.len() * size_of::<Test>()
            + self.lists.bytes()
            + self.levels.iter().map(Level::bytes).sum::<usize>()
    }
}

impl Check {
    /// The atom that a check asks for when it asks for one.
    pub(crate) fn atom(&self) -> Atom {
        self.test
    }

    /// The same, borrowed.
    pub(crate) fn atom_ref(&self) -> &Atom {
        &self.test
    }

    /// True when only a value can make the check hold.
    pub(crate) fn is_for_value(&self) -> bool {
        matches!(self.ask, Ask::Atom | Ask::Value)
    }
}

struct Compiler<'c> {
    paths: &'c mut Paths,
    globals: Vec<PathId>,
    locals: Vec<LocalPath>,
    atoms: Atoms,
    conjunctions: Vec<Conjunction>,
    checks: Vec<Check>,
    tests: Vec<Test>,
    sets: Vec<Atom>,
    /// The checks of the fields of the pattern at hand.
    fields: Vec<Check>,
}

impl Compiler<'_> {
    fn rule(&mut self, slot: Slot, pattern: &Pattern) {
        self.fields.clear();
        for (place, field) in (0..).zip(&pattern.fields) {
            let check = self.check(slot, place, field);
            self.fields.push(check);
        }
        for conjunction in &pattern.conjunctions {
            self.conjunctions.push(Conjunction {
                slot,
                first_check: self.checks.len() as u32,
            });
            let checks = conjunction.iter().map(|place| self.fields[usize::from(*place)]);
            self.checks.extend(checks);
        }
    }

    fn check(&mut self, slot: Slot, place: u16, field: &Field) -> Check {
        let path = self.local(field.path());
        let ask = match (field.wants_value(), field.allows_absence()) {
            (true, false) => Ask::Value,
            (true, true) => Ask::Either,
            (false, _) => Ask::Absence,
        };
        let start = self.sets.len() as u32;
        let is_set = self.add_atoms(path, field.tests());
        let end = self.sets.len() as u32;
        if is_set && ask == Ask::Value && end - start == 1 {
            let atom = self.sets.pop().unwrap_or(NO_ATOM);
            let ask = Ask::Atom;
            return Check { path, ask, test: atom };
        }
        let test = match field.tests() {
            [Op::AnythingBut(AnythingBut::Texts(texts))] => {
                self.sets.truncate(start as usize);
                let atoms = texts.iter().map(|text| self.atoms.add_text(path as usize, text));
                self.sets.extend(atoms);
                self.finish_set(start, |start, end| Test::NotIn { start, end })
            }
            [Op::AnythingBut(AnythingBut::Numbers(numbers))] => {
                self.sets.truncate(start as usize);
                let atoms = numbers.iter().map(|one| self.atoms.add_number(path as usize, one));
                self.sets.extend(atoms);
                self.finish_set(start, |start, end| Test::NotIn { start, end })
            }
            _ if is_set => self.finish_set(start, |start, end| Test::In { start, end }),
            _ => {
                self.sets.truncate(start as usize);
                Test::Field { slot, place }
            }
        };
        self.tests.push(test);
        let test = self.tests.len() as u32 - 1;
        Check { path, ask, test }
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

    fn finish_set(&mut self, start: u32, test: impl Fn(u32, u32) -> Test) -> Test {
        let set = &mut self.sets[start as usize..];
        set.sort_unstable();
        let mut kept = 0;
        for place in 0..set.len() {
            if place == 0 || set[place] != set[kept - 1] {
                set[kept] = set[place];
                kept += 1;
            }
        }
        self.sets.truncate(start as usize + kept);
        test(start, self.sets.len() as u32)
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
