//! Whether the fields of a conjunction hold within one choice of list elements, in one sweep from
//! the innermost elements outwards: linear in the elements and values of the event.
//!
//! The meaning is that of [`combine`](crate::pattern::combine). The sweep needs each field to be
//! reached through one list at most in every element; where a repeated or dotted key breaks that,
//! it says so and the slower way decides.

use super::segment::Ask;
use crate::pattern::combine::Needs;
use crate::pattern::leaves::{Leaves, NO_ELEMENT};
use crate::pattern::paths::{NodeId, PathId, Paths};

/// Memory of the sweep, used again.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    needs: Needs,
    fields: Vec<(u64, PathId)>,
    elements: Vec<ElementState>,
    arrays: Vec<ArrayState>,
    /// The fields at or below a node, once asked for.
    below: Vec<(NodeId, u64)>,
}

/// Fields as bits.
#[derive(Debug, Clone, Copy, Default)]
struct ElementState {
    /// With a passing value right here.
    held: u64,
    /// With any value right here.
    present: u64,
    /// Held here or in an element around.
    held_above: u64,
    /// Present here or in an element around.
    present_above: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct ArrayState {
    /// Some member has a value of some field.
    touched: bool,
    /// Some member can be chosen.
    chosen: bool,
    /// What members that can be chosen hold.
    held: u64,
    /// With any value in any member.
    present: u64,
}

/// The sweep cannot decide: a field is reached through two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TwoRoutes;

impl Sweep {
    pub(crate) fn begin(&mut self, leaves: &Leaves) {
        self.needs = Needs::default();
        self.fields.clear();
        self.below.clear();
        self.elements.clear();
        self.elements
            .resize(leaves.elements.len(), ElementState::default());
        self.arrays.clear();
        self.arrays
            .resize(leaves.arrays.len(), ArrayState::default());
    }

    /// Adds a field.
    pub(crate) fn ask(&mut self, bit: u64, ask: Ask, path: PathId) {
        self.fields.push((bit, path));
        match ask {
            Ask::Value => self.needs.value |= bit,
            Ask::Either => self.needs.either |= bit,
            Ask::Absence => self.needs.absence |= bit,
        }
    }

    /// Adds a value of a field.
    pub(crate) fn add(&mut self, element: u32, bit: u64, passes: bool) {
        let state = &mut self.elements[element as usize];
        state.present |= bit;
        if passes {
            state.held |= bit;
        }
    }

    pub(crate) fn needs(&self) -> Needs {
        self.needs
    }

    pub(crate) fn decide(&mut self, leaves: &Leaves, paths: &Paths) -> Result<bool, TwoRoutes> {
        for place in 0..self.elements.len() {
            let above = match place as u32 {
                NO_ELEMENT => ElementState::default(),
                _ => self.elements[leaves.elements[place].parent as usize],
            };
            let state = &mut self.elements[place];
            state.held_above = state.held | above.held_above;
            state.present_above = state.present | above.present_above;
        }
        for element in (1..self.elements.len() as u32).rev() {
            let (state, all_present) = self.gather(element, leaves, paths)?;
            if state.held | all_present == 0 {
                continue;
            }
            let known = leaves.elements[element as usize];
            let below = self.fields_below(leaves.arrays[known.array as usize].node, paths);
            let above = self.elements[known.parent as usize].held_above;
            let chosen = state.held != 0 && self.is_met(below, state, above);
            let array = &mut self.arrays[known.array as usize];
            array.touched = true;
            array.present |= all_present;
            if chosen {
                array.chosen = true;
                array.held |= state.held;
            }
        }
        let (state, _) = self.gather(NO_ELEMENT, leaves, paths)?;
        Ok(self.is_met(u64::MAX, state, 0))
    }

    /// Whether the fields among `which` are met by what is held and present.
    fn is_met(&self, which: u64, state: ElementState, held_above: u64) -> bool {
        let missing = self.needs.value & which & !(state.held | held_above);
        let failing = self.needs.either & which & !state.held & state.present;
        let extra = self.needs.absence & which & state.present;
        missing | failing | extra == 0
    }

    /// What an element holds with the lists in it, each by a member that can be chosen, or by none;
    /// and every field with any value in it.
    fn gather(
        &mut self,
        element: u32,
        leaves: &Leaves,
        paths: &Paths,
    ) -> Result<(ElementState, u64), TwoRoutes> {
        let mut state = self.elements[element as usize];
        let mut all_present = state.present;
        let mut claimed = 0;
        for array in leaves.arrays_in(element) {
            let known = self.arrays[array as usize];
            if !known.touched {
                continue;
            }
            let below = self.fields_below(leaves.arrays[array as usize].node, paths);
            let optional = (self.needs.either | self.needs.absence) & below;
            if claimed & below != 0 || state.present_above & optional != 0 {
                return Err(TwoRoutes);
            }
            claimed |= below;
            all_present |= known.present;
            if known.chosen {
                state.held |= known.held;
            } else {
                state.present |= known.present;
            }
        }
        Ok((state, all_present))
    }

    fn fields_below(&mut self, node: NodeId, paths: &Paths) -> u64 {
        if let Some((_, below)) = self.below.iter().find(|(known, _)| *known == node) {
            return *below;
        }
        let below = self
            .fields
            .iter()
            .filter(|(_, path)| paths.is_under(*path, node))
            .fold(0, |below, (bit, _)| below | bit);
        self.below.push((node, below));
        below
    }
}
