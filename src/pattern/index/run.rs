//! Matching one event against one segment: candidates from the levels, then their checks.

use super::RuleId;
use super::arrays::TwoRoutes;
use super::atoms::{Atom, NO_ATOM};
use super::buffers::{Budget, Buffers, PathAtom, UNKNOWN};
use super::level::{
    Folded, Group, LINK, Level, Listed, NO_GUARD, NO_LIST, PathTests, SecondGuard, TextTests,
};
use super::segment::{Ask, Check, Checks, LocalPath, MAY_REPEAT, Segment, Slot, Test};
use crate::pattern::combine::{self, Entry, Needs};
use crate::pattern::fold;
use crate::pattern::input::Input;
use crate::pattern::leaves::{Leaf, Leaves, NO_ELEMENT};
use crate::pattern::limits::LimitReached;
use crate::pattern::op::Value;
use crate::pattern::op::cidr;
use crate::pattern::paths::Paths;

/// A path with several values.
const SEVERAL: Atom = u32::MAX - 2;
/// Values at the path of a guard that are looked for one by one, at most.
const GUARD_VALUES_MAX: usize = 8;
/// Guards of a group that are gone through one by one; more are searched.
const GUARDS_SCANNED_MAX: usize = 16;

/// One event and one segment.
pub(crate) struct Run<'r> {
    pub(crate) segment: &'r Segment,
    pub(crate) input: &'r Input<'r>,
    pub(crate) leaves: &'r Leaves,
    pub(crate) paths: &'r Paths,
    pub(crate) buffers: &'r mut Buffers,
    pub(crate) budget: &'r mut Budget,
    pub(crate) matched: &'r mut Vec<RuleId>,
    /// Rules that are no longer there, by bit.
    pub(crate) removed: &'r [u64],
}

impl Run<'_> {
    /// Adds the rules that match to `matched`, some perhaps twice.
    pub(crate) fn run(&mut self) -> Result<(), LimitReached> {
        self.buffers
            .begin(self.segment.paths.len(), self.leaves.leaves.len());
        let segment = self.segment;
        let Some(level) = segment.levels.first() else {
            return Ok(());
        };
        self.find(level.always);
        for place in 0..self.leaves.leaves.len() as u32 {
            let leaf = self.leaves.leaves[place as usize];
            let Some(path) = segment.local(leaf.path) else {
                continue;
            };
            if let Some(tests) = level.tests_at(path) {
                self.leaf(level, tests, place);
            }
        }
        self.go_through_lists()?;
        self.check_candidates()
    }

    /// Marks a list to be gone through.
    #[inline]
    fn find(&mut self, list: u32) {
        if list != NO_LIST {
            self.buffers.lists.push(list);
        }
    }

    /// Finds the lists of a level that is not the first.
    fn level(&mut self, number: u32) {
        let segment = self.segment;
        let level = &segment.levels[number as usize];
        self.find(level.always);
        for tests in &level.paths {
            let mut next = self.leaves.last_at(segment.paths[tests.path as usize]);
            while let Some(place) = next {
                self.leaf(level, tests, place);
                next = self.leaves.earlier(place);
            }
        }
    }

    /// Finds the lists that one value is under.
    fn leaf(&mut self, level: &Level, tests: &PathTests, place: u32) {
        self.buffers.repeats |= self.leaves.earlier(place).is_some();
        self.find(tests.any);
        if tests.has_atoms {
            let atom = self.leaf_atom(tests.path, place);
            self.find(level.list_of(atom));
        }
        if tests.texts.is_none() && tests.ranges.is_none() {
            return;
        }
        let leaves = self.leaves;
        let value = leaves.value(&leaves.leaves[place as usize], self.input);
        match (value, &tests.texts, &tests.ranges) {
            (Value::Text(text), Some(tests), _) => self.text(tests, text),
            (Value::Number(number), _, Some(ranges)) => {
                ranges.each(number, &mut |list| self.find(list));
            }
            _ => {}
        }
    }

    fn text(&mut self, tests: &TextTests, text: &[u8]) {
        if let Some(prefixes) = &tests.prefixes {
            prefixes.each(text, |list| self.find(list));
        }
        if let Some(suffixes) = &tests.suffixes {
            let reversed = self.reverse(text);
            suffixes.each(&reversed, |list| self.find(list));
            self.buffers.reversed = reversed;
        }
        if let Some(grams) = &tests.grams {
            grams.each(text, |list| self.find(list));
        }
        if let Some(blocks) = &tests.blocks
            && let Some(address) = cidr::read_address(text)
        {
            blocks.each(address, |list| self.find(list));
        }
        if let Some(tests) = &tests.folded {
            self.folded(tests, text);
        }
    }

    fn folded(&mut self, tests: &Folded, text: &[u8]) {
        let mut folded = std::mem::take(&mut self.buffers.folded);
        folded.clear();
        fold::key(text, &mut folded);
        if let Some(list) = tests.whole.get(folded.as_slice()) {
            self.find(*list);
        }
        if let Some(prefixes) = &tests.prefixes {
            prefixes.each(&folded, |list| self.find(list));
        }
        if let Some(suffixes) = &tests.suffixes {
            let reversed = self.reverse(&folded);
            suffixes.each(&reversed, |list| self.find(list));
            self.buffers.reversed = reversed;
        }
        self.buffers.folded = folded;
    }

    /// The text backwards, in a buffer that the caller gives back.
    fn reverse(&mut self, text: &[u8]) -> Vec<u8> {
        let mut reversed = std::mem::take(&mut self.buffers.reversed);
        reversed.clear();
        reversed.extend(text.iter().rev());
        reversed
    }

    /// Takes candidates from the lists that were found, and from those found on the way.
    fn go_through_lists(&mut self) -> Result<(), LimitReached> {
        let segment = self.segment;
        let mut touched = 0;
        // Reading them all first lets the memory of one be fetched while another's is.
        for list in &self.buffers.lists {
            touched ^= segment.lists.touch(*list);
        }
        std::hint::black_box(touched);
        let mut next = 0;
        while let Some(list) = self.buffers.lists.get(next).copied() {
            next += 1;
            match segment.lists.get(list) {
                Listed::Level(level) => {
                    self.budget
                        .spend(segment.levels[level as usize].paths.len() as u64)?;
                    self.level(level);
                }
                Listed::Groups(groups) => {
                    for group in groups {
                        let before = self.buffers.candidates.len();
                        self.group(&group);
                        let found = self.buffers.candidates.len() - before;
                        self.budget.spend(1 + found as u64)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the conjunctions of a group whose guard holds as candidates.
    fn group(&mut self, group: &Group<'_>) {
        if group.path == LINK {
            for level in group.conjunctions {
                self.level(*level);
            }
            return;
        }
        let atom = if group.path == NO_GUARD {
            SEVERAL
        } else {
            self.path_atom(group.path)
        };
        match atom {
            SEVERAL => self.group_of_several(group),
            NO_ATOM => {}
            _ => self.guarded(group, atom),
        }
    }

    /// Takes what is guarded by any of a few values; with many values everything, unguarded.
    fn group_of_several(&mut self, group: &Group<'_>) {
        let mut next = None;
        if group.path != NO_GUARD {
            self.buffers.repeats = true;
            next = self.leaves.last_at(self.segment.paths[group.path as usize]);
        }
        let few = std::iter::successors(next, |place| self.leaves.earlier(*place));
        if group.path == NO_GUARD || few.take(GUARD_VALUES_MAX + 1).count() > GUARD_VALUES_MAX {
            for conjunction in group.conjunctions {
                self.take(*conjunction);
            }
            return;
        }
        while let Some(place) = next {
            let atom = self.leaf_atom(group.path, place);
            if atom != NO_ATOM {
                self.guarded(group, atom);
            }
            next = self.leaves.earlier(place);
        }
    }

    /// Takes the conjunctions that an atom guards.
    #[inline]
    fn guarded(&mut self, group: &Group<'_>, atom: Atom) {
        let first = if group.guards.len() > GUARDS_SCANNED_MAX {
            group.guards.partition_point(|guard| *guard < atom)
        } else {
            let smaller = group.guards.iter().take_while(|guard| **guard < atom);
            smaller.count()
        };
        for (place, guard) in group.guards.iter().enumerate().skip(first) {
            if *guard != atom {
                break;
            }
            let second = group.second(place);
            if second.path == NO_GUARD || self.may_pass(second) {
                self.take(group.conjunctions[place]);
            }
        }
    }

    #[inline]
    fn take(&mut self, conjunction: u32) {
        self.buffers.repeats |= conjunction & MAY_REPEAT != 0;
        self.buffers.candidates.push(conjunction & !MAY_REPEAT);
    }

    #[inline]
    fn may_pass(&mut self, guard: SecondGuard) -> bool {
        match self.path_atom(guard.path) {
            SEVERAL => true,
            NO_ATOM => false,
            atom => guard.may_be(atom),
        }
    }

    fn check_candidates(&mut self) -> Result<(), LimitReached> {
        let mut candidates = std::mem::take(&mut self.buffers.candidates);
        if self.buffers.repeats {
            candidates.sort_unstable();
            candidates.dedup();
        }
        // Reading them all first lets the memory of one be fetched while another's is.
        let touched = candidates
            .iter()
            .fold(0, |sum, one| sum ^ self.segment.touch(*one));
        std::hint::black_box(touched);
        let mut outcome = Ok(());
        for conjunction in &candidates {
            outcome = self.candidate(*conjunction);
            if outcome.is_err() {
                break;
            }
        }
        self.buffers.candidates = candidates;
        outcome
    }

    fn candidate(&mut self, conjunction: u32) -> Result<(), LimitReached> {
        let segment = self.segment;
        let (slot, checks) = segment.conjunction(conjunction);
        let mut apart = 0;
        for check in checks.clone() {
            match self.check(&check)? {
                Verdict::Fails => return Ok(()),
                Verdict::Holds => {}
                Verdict::HoldsInList => apart += 1,
                Verdict::DependsOnList => apart += 2,
            }
        }
        if self.is_removed(slot) || (apart > 1 && !self.hold_together(checks)?) {
            return Ok(());
        }
        self.matched.push(segment.rules[slot as usize]);
        Ok(())
    }

    fn is_removed(&self, slot: Slot) -> bool {
        self.removed
            .get(slot as usize / 64)
            .is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    #[inline]
    fn check(&mut self, check: &Check<'_>) -> Result<Verdict, LimitReached> {
        if check.ask == Ask::Value
            && let Test::In(set) = check.test
        {
            let atom = self.path_atom(check.path);
            if atom != SEVERAL {
                let leaf = self.leaves.last_at(self.segment.paths[check.path as usize]);
                return Ok(match leaf {
                    Some(place) if contains(set, atom) => self.place_of(place),
                    _ => Verdict::Fails,
                });
            }
        }
        self.check_each(check)
    }

    fn place_of(&self, place: u32) -> Verdict {
        if self.leaves.leaves[place as usize].element == NO_ELEMENT {
            Verdict::Holds
        } else {
            Verdict::HoldsInList
        }
    }

    fn check_each(&mut self, check: &Check<'_>) -> Result<Verdict, LimitReached> {
        let mut next = self.leaves.last_at(self.segment.paths[check.path as usize]);
        let mut verdict = match (next, check.ask) {
            (None, Ask::Either | Ask::Absence) => return Ok(Verdict::Holds),
            (None, Ask::Value) => return Ok(Verdict::Fails),
            (Some(_), _) => Verdict::Fails,
        };
        let mut all_in_lists = true;
        let mut steps = 0;
        while let Some(place) = next {
            steps += 1;
            let in_list = self.leaves.leaves[place as usize].element != NO_ELEMENT;
            all_in_lists &= in_list;
            if check.ask != Ask::Absence && self.passes(check, place) {
                if !in_list {
                    verdict = Verdict::Holds;
                    break;
                }
                verdict = Verdict::HoldsInList;
            }
            next = self.leaves.earlier(place);
        }
        self.budget.spend(steps)?;
        if matches!(check.ask, Ask::Either | Ask::Absence)
            && all_in_lists
            && !matches!(verdict, Verdict::Holds)
        {
            return Ok(Verdict::DependsOnList);
        }
        Ok(verdict)
    }

    /// Whether one value passes the test of a check.
    fn passes(&mut self, check: &Check<'_>, place: u32) -> bool {
        match check.test {
            Test::In(set) => contains(set, self.leaf_atom(check.path, place)),
            Test::NotIn(set) => !contains(set, self.leaf_atom(check.path, place)),
            Test::Ops(ops) => {
                let leaf = &self.leaves.leaves[place as usize];
                let value = self.leaves.value(leaf, self.input);
                ops.iter().any(|test| test.holds(&value))
            }
        }
    }

    /// The atom of the only value at a path, [`NO_ATOM`] when there is none, or [`SEVERAL`].
    fn path_atom(&mut self, path: LocalPath) -> Atom {
        let known = self.buffers.path_atoms[path as usize];
        if known.run == self.buffers.run {
            return known.atom;
        }
        let atom = match self.leaves.last_at(self.segment.paths[path as usize]) {
            None => NO_ATOM,
            Some(place) if self.leaves.earlier(place).is_some() => SEVERAL,
            Some(place) => self.leaf_atom(path, place),
        };
        self.buffers.path_atoms[path as usize] = PathAtom {
            run: self.buffers.run,
            atom,
        };
        atom
    }

    fn leaf_atom(&mut self, path: LocalPath, place: u32) -> Atom {
        let known = self.buffers.leaf_atoms[place as usize];
        if known != UNKNOWN {
            return known;
        }
        let leaf: &Leaf = &self.leaves.leaves[place as usize];
        let value = self.leaves.value(leaf, self.input);
        let atom = self.segment.atoms.find(path as usize, &value);
        self.buffers.leaf_atoms[place as usize] = atom;
        atom
    }

    /// Whether checks that each hold alone hold within one choice of list elements.
    fn hold_together(&mut self, checks: Checks<'_>) -> Result<bool, LimitReached> {
        let elements = self.leaves.elements.len() + self.leaves.arrays.len();
        self.budget.spend(elements as u64)?;
        let mut sweep = std::mem::take(&mut self.buffers.sweep);
        sweep.begin(self.leaves);
        let outcome = self
            .each_value(checks.clone(), |entry| {
                sweep.add(entry.element, entry.field, entry.passes)
            })
            .map(|()| {
                for (place, check) in checks.clone().enumerate() {
                    let path = self.segment.paths[check.path as usize];
                    sweep.ask(1 << place, check.ask, path);
                }
                sweep.decide(self.leaves, self.paths)
            });
        let needs = sweep.needs();
        self.buffers.sweep = sweep;
        match outcome? {
            Ok(verdict) => Ok(verdict),
            Err(TwoRoutes) => self.hold_together_by_search(needs, checks),
        }
    }

    fn hold_together_by_search(
        &mut self,
        needs: Needs,
        checks: Checks<'_>,
    ) -> Result<bool, LimitReached> {
        let mut entries = Vec::new();
        self.each_value(checks, |entry| entries.push(entry))?;
        combine::hold_together(needs, &entries, self.leaves).map_err(|combine::TooManyChoices| {
            LimitReached::Work {
                work_max: self.budget.work_max,
            }
        })
    }

    fn each_value(
        &mut self,
        checks: Checks<'_>,
        mut add: impl FnMut(Entry),
    ) -> Result<(), LimitReached> {
        for (place, check) in checks.enumerate() {
            let mut next = self.leaves.last_at(self.segment.paths[check.path as usize]);
            while let Some(leaf) = next {
                self.budget.spend(1)?;
                add(Entry {
                    element: self.leaves.leaves[leaf as usize].element,
                    field: 1 << place,
                    passes: check.ask != Ask::Absence && self.passes(&check, leaf),
                });
                next = self.leaves.earlier(leaf);
            }
        }
        Ok(())
    }
}

/// What a check comes to when nothing else is asked.
#[derive(Debug, Clone, Copy)]
enum Verdict {
    Fails,
    Holds,
    /// Only values inside lists pass.
    HoldsInList,
    /// Whether it holds depends on which elements of lists are chosen.
    DependsOnList,
}

fn contains(set: &[Atom], atom: Atom) -> bool {
    if set.len() <= 8 {
        set.contains(&atom)
    } else {
        set.binary_search(&atom).is_ok()
    }
}
