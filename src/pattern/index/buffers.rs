//! Memory that matching uses again from event to event, and the work that it may still do.

use super::arrays::Sweep;
use super::atoms::Atom;
use crate::pattern::limits::LimitReached;

/// Memory that is used again from event to event.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// The atom of the only value at each local path, once it was looked up.
    pub(super) path_atoms: Vec<PathAtom>,
    /// The atom of each leaf, once it was looked up.
    pub(super) leaf_atoms: Vec<Atom>,
    /// Lists to go through.
    pub(super) lists: Vec<u32>,
    /// Conjunctions to check.
    pub(super) candidates: Vec<u32>,
    /// True when a conjunction may be among the candidates twice.
    pub(super) repeats: bool,
    pub(super) run: u32,
    pub(super) folded: Vec<u8>,
    pub(super) reversed: Vec<u8>,
    pub(super) sweep: Sweep,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PathAtom {
    pub(super) run: u32,
    pub(super) atom: Atom,
}

/// A leaf whose atom was not looked up yet.
pub(super) const UNKNOWN: Atom = u32::MAX - 1;

impl Buffers {
    /// Forgets the last run and makes room for so many paths and leaves.
    pub(super) fn begin(&mut self, paths: usize, leaves: usize) {
        self.run = self.run.wrapping_add(1);
        if self.run == 0 {
            self.run = 1;
            self.path_atoms.fill(PathAtom::default());
        }
        if self.path_atoms.len() < paths {
            self.path_atoms.resize(paths, PathAtom::default());
        }
        self.lists.clear();
        self.candidates.clear();
        self.repeats = false;
        self.leaf_atoms.clear();
        self.leaf_atoms.resize(leaves, UNKNOWN);
    }
}

/// Work that may still be done for the event.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) left: u64,
    pub(crate) work_max: u64,
}

impl Budget {
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), LimitReached> {
        self.left = self.left.checked_sub(steps).ok_or(LimitReached::Work {
            work_max: self.work_max,
        })?;
        Ok(())
    }
}
