//! Patterns compiled together: their fields as checks, and the level that finds candidates.

use std::sync::Arc;

use super::RuleId;
use super::atoms::{Atom, Atoms};
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
    /// The conjunctions, each in one run of words and known by where it begins: its rule, the number
    /// of its checks, and the checks. A check is a path, then its kind, ask and number of atoms,
    /// then the atoms; or with [`ELSEWHERE`] for their number the run of `sets` or `ops`.
    words: Box<[u32]>,
    conjunction_count: usize,
    sets: Box<[Atom]>,
    ops: Box<[Op]>,
    pub(crate) lists: Lists,
    pub(crate) levels: Box<[Level]>,
}

/// Marks a conjunction that is in several lists which one value may be under.
pub(crate) const MAY_REPEAT: u32 = 1 << 31;

/// Atoms that stand in a check itself, at most.
const ATOMS_INLINE_MAX: usize = 8;
/// In place of the number of atoms: they, or operators, are in a run elsewhere.
const ELSEWHERE: u32 = 0xFF;

/// One field of a conjunction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check<'s> {
    pub(crate) path: LocalPath,
    pub(crate) ask: Ask,
    pub(crate) test: Test<'s>,
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

/// The tests of a field in the cheapest form.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Test<'s> {
    /// Any of these atoms, sorted.
    In(&'s [Atom]),
    /// None of these atoms, sorted.
    NotIn(&'s [Atom]),
    /// Any of these operators.
    Ops(&'s [Op]),
}

/// The checks of one conjunction, those that are cheap first.
#[derive(Debug, Clone)]
pub(crate) struct Checks<'s> {
    segment: &'s Segment,
    words: &'s [u32],
    left: u32,
}

impl<'s> Iterator for Checks<'s> {
    type Item = Check<'s>;

    #[inline]
    fn next(&mut self) -> Option<Check<'s>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let (head, rest) = self.words.split_first_chunk::<2>()?;
        let [path, code] = *head;
        let count = code >> 8;
        let length = if count == ELSEWHERE {
            2
        } else {
            count as usize
        };
        let (operand, rest) = rest.split_at_checked(length)?;
        self.words = rest;
        Some(Check {
            path,
            ask: match code >> 4 & 3 {
                0 => Ask::Value,
                1 => Ask::Either,
                _ => Ask::Absence,
            },
            test: match (code & 3, count) {
                (IN, ELSEWHERE) => Test::In(self.segment.set(operand)),
                (IN, _) => Test::In(operand),
                (NOT_IN, ELSEWHERE) => Test::NotIn(self.segment.set(operand)),
                (NOT_IN, _) => Test::NotIn(operand),
                _ => Test::Ops(self.segment.ops_at(operand)),
            },
        })
    }
}

impl<'s> Check<'s> {
    /// True when only a value can make the check hold.
    pub(crate) fn is_for_value(&self) -> bool {
        self.ask == Ask::Value
    }

    /// The atoms that the check asks for; none when it asks for more than atoms.
    pub(crate) fn atoms(&self) -> &'s [Atom] {
        match self.test {
            Test::In(atoms) => atoms,
            Test::NotIn(_) | Test::Ops(_) => &[],
        }
    }

    /// The operators of a check that needs a value and is not of plain values alone.
    pub(crate) fn ops(&self) -> &'s [Op] {
        match (self.ask, self.test) {
            (Ask::Value, Test::Ops(ops)) => ops,
            _ => &[],
        }
    }
}

const IN: u32 = 0;
const NOT_IN: u32 = 1;
const OPS: u32 = 2;

impl Segment {
    /// Compiles rules, which are sorted by number, each once.
    pub(crate) fn build(rules: Vec<(RuleId, Arc<Pattern>)>, paths: &mut Paths) -> Self {
        let mut compiler = Compiler {
            paths,
            globals: Vec::new(),
            locals: Vec::new(),
            atoms: Atoms::default(),
            words: Vec::new(),
            heads: Vec::new(),
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
            conjunction_count: compiler.heads.len(),
            sets: compiler.sets.into(),
            ops: compiler.ops.into(),
            lists: Lists::default(),
            levels: Box::default(),
        };
        (segment.levels, segment.lists) = build::build(&segment, &compiler.heads);
        segment
    }

    /// The local path of a path, if a rule here reads it.
    pub(crate) fn local(&self, path: PathId) -> Option<LocalPath> {
        let local = self.locals.get(path as usize).copied();
        local.filter(|local| *local != NONE)
    }

    pub(crate) fn conjunction_count(&self) -> usize {
        self.conjunction_count
    }

    /// The rule and the checks of a conjunction.
    #[inline]
    pub(crate) fn conjunction(&self, number: u32) -> (Slot, Checks<'_>) {
        let (slot, left, words) = match &self.words[number as usize..] {
            [slot, left, words @ ..] => (*slot, *left, words),
            _ => (0, 0, &[][..]),
        };
        let checks = Checks {
            segment: self,
            words,
            left,
        };
        (slot, checks)
    }

    /// Reads the beginning of a conjunction, so that its memory is at hand when it is checked.
    #[inline]
    pub(crate) fn touch(&self, number: u32) -> u32 {
        let later = self
            .words
            .get(number as usize + 15)
            .copied()
            .unwrap_or_default();
        self.words[number as usize] ^ later
    }

    fn set(&self, run: &[u32]) -> &[Atom] {
        match run {
            [start, end] => &self.sets[*start as usize..*end as usize],
            _ => &[],
        }
    }

    fn ops_at(&self, run: &[u32]) -> &[Op] {
        match run {
            [start, end] => &self.ops[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// The number of a rule among those here.
    pub(crate) fn slot(&self, rule: RuleId) -> Option<Slot> {
        self.rules
            .binary_search(&rule)
            .ok()
            .map(|slot| slot as Slot)
    }

    /// Heap bytes, about, the patterns not counted.
    pub(crate) fn bytes(&self) -> usize {
        self.rules.len() * (size_of::<RuleId>() + size_of::<Arc<Pattern>>())
            + (self.paths.len() + self.locals.len() + self.sets.len()) * 4
            + self.atoms.bytes()
            + self.words.len() * 4
            + self.ops.len() * size_of::<Op>()
            + self.lists.bytes()
            + self.levels.iter().map(Level::bytes).sum::<usize>()
    }
}

struct Compiler<'c> {
    paths: &'c mut Paths,
    globals: Vec<PathId>,
    locals: Vec<LocalPath>,
    atoms: Atoms,
    words: Vec<u32>,
    /// Where each conjunction begins.
    heads: Vec<u32>,
    sets: Vec<Atom>,
    ops: Vec<Op>,
    /// The checks of the fields of the pattern at hand.
    fields: Vec<Draft>,
}

/// A check in the making.
struct Draft {
    path: LocalPath,
    ask: Ask,
    kind: u32,
    atoms: Vec<Atom>,
    /// The run of operators.
    ops: (u32, u32),
}

impl Compiler<'_> {
    fn rule(&mut self, slot: Slot, pattern: &Pattern) {
        self.fields.clear();
        for field in &pattern.fields {
            let draft = self.check(field);
            self.fields.push(draft);
        }
        for conjunction in &pattern.conjunctions {
            self.heads.push(self.words.len() as u32);
            self.words.extend([slot, conjunction.len() as u32]);
            for kind in [IN, NOT_IN, OPS] {
                for place in conjunction {
                    let draft = &self.fields[usize::from(*place)];
                    if draft.kind == kind {
                        write(draft, &mut self.words, &mut self.sets);
                    }
                }
            }
        }
    }

    fn check(&mut self, field: &Field) -> Draft {
        let path = self.local(field.path());
        let ask = match (field.wants_value(), field.allows_absence()) {
            (true, false) => Ask::Value,
            (true, true) => Ask::Either,
            (false, _) => Ask::Absence,
        };
        let mut atoms = Vec::new();
        let is_set = self.add_atoms(path, field.tests(), &mut atoms);
        let excluded = match field.tests() {
            [Op::AnythingBut(excluded)] => self.excluded_atoms(path, excluded),
            _ => None,
        };
        let (kind, mut atoms) = match (is_set, excluded) {
            (true, _) => (IN, atoms),
            (false, Some(excluded)) => (NOT_IN, excluded),
            (false, None) => (OPS, Vec::new()),
        };
        atoms.sort_unstable();
        atoms.dedup();
        let start = self.ops.len() as u32;
        if kind == OPS {
            let tests = field
                .tests()
                .iter()
                .filter(|test| **test != Op::Exists(false));
            self.ops.extend(tests.cloned());
        }
        Draft {
            path,
            ask,
            kind,
            atoms,
            ops: (start, self.ops.len() as u32),
        }
    }

    /// The atoms of plain values that must not be.
    fn excluded_atoms(&mut self, path: LocalPath, excluded: &AnythingBut) -> Option<Vec<Atom>> {
        let path = path as usize;
        match excluded {
            AnythingBut::Texts(texts) => Some(
                texts
                    .iter()
                    .map(|text| self.atoms.add_text(path, text))
                    .collect(),
            ),
            AnythingBut::Numbers(numbers) => Some(
                numbers
                    .iter()
                    .map(|one| self.atoms.add_number(path, one))
                    .collect(),
            ),
            AnythingBut::Prefixes(_)
            | AnythingBut::Suffixes(_)
            | AnythingBut::IgnoreCase(_)
            | AnythingBut::Wildcards(_) => None,
        }
    }

    /// Numbers the plain values among the tests; false when there are other tests too.
    fn add_atoms(&mut self, path: LocalPath, tests: &[Op], atoms: &mut Vec<Atom>) -> bool {
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
            atoms.push(atom);
        }
        is_set
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

/// Writes a check; many atoms go to the sets.
fn write(draft: &Draft, words: &mut Vec<u32>, sets: &mut Vec<Atom>) {
    let ask = match draft.ask {
        Ask::Value => 0,
        Ask::Either => 1,
        Ask::Absence => 2,
    };
    let code = draft.kind | ask << 4;
    if draft.kind != OPS && draft.atoms.len() <= ATOMS_INLINE_MAX {
        words.extend([draft.path, code | (draft.atoms.len() as u32) << 8]);
        words.extend(&draft.atoms);
        return;
    }
    let run = if draft.kind == OPS {
        draft.ops
    } else {
        let start = sets.len() as u32;
        sets.extend(&draft.atoms);
        (start, sets.len() as u32)
    };
    words.extend([draft.path, code | ELSEWHERE << 8, run.0, run.1]);
}
