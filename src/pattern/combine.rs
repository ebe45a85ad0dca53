//! Whether the fields of a conjunction can hold together, each list giving one element.
//!
//! The meaning, on which the index, its fast paths and the explanation agree: choose for each
//! field a value that passes, or for a field that allows absence none. Chosen values that lie in
//! elements of one list must lie in the same element; plain members of a list lie in no element of
//! it. A field without a chosen value needs that no value at its path goes with the choice.

use super::leaves::{Leaves, NO_ELEMENT};

/// Which fields need a value, by bit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs {
    /// Fields that hold only through a value.
    pub(crate) value: u64,
    /// Fields that hold through a value or through absence.
    pub(crate) either: u64,
    /// Fields that hold only through absence.
    pub(crate) absence: u64,
}

/// A value at the path of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) element: u32,
    /// The field's bit.
    pub(crate) field: u64,
    /// True when the value passes a test of the field.
    pub(crate) passes: bool,
}

/// Deciding would take more choices than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyChoices;

/// Choices kept for one list at most. Only events that reach one path by two routes through lists
/// (a repeated key, or a dotted one) keep more than a few.
pub(crate) const CHOICES_MAX: usize = 1_024;

/// What a choice of elements gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    /// Fields with a chosen value.
    held: u64,
    /// Fields with some value that goes with the choice.
    present: u64,
}

impl Choice {
    fn is_at_least(self, other: Self) -> bool {
        self.held & other.held == other.held && self.present & other.present == self.present
    }

    fn with(self, other: Self) -> Self {
        Self {
            held: self.held | other.held,
            present: self.present | other.present,
        }
    }
}

/// Decides by keeping, from the innermost elements outwards, every choice that no other beats.
pub(crate) fn hold_together(
    needs: Needs,
    entries: &[Entry],
    leaves: &Leaves,
) -> Result<bool, TooManyChoices> {
    let mut nodes = touched(entries, leaves);
    while let Some(mut node) = nodes.pop() {
        node.close()?;
        if node.element == NO_ELEMENT {
            return Ok(node.choices.iter().any(|choice| {
                let missing = needs.value & !choice.held;
                let failing = needs.either & !choice.held & choice.present;
                missing | failing | (needs.absence & choice.present) == 0
            }));
        }
        let element = leaves.elements[node.element as usize];
        if let Ok(parent) = nodes.binary_search_by_key(&element.parent, |node| node.element) {
            nodes[parent].take(element.array, &node)?;
        }
    }
    Ok(false)
}

/// One element with what is known of it so far.
#[derive(Debug)]
struct Node {
    element: u32,
    choices: Vec<Choice>,
    /// Fields with some value anywhere in the element.
    present: u64,
    open: Option<OpenList>,
}

/// A list inside an element whose members are being gathered, the last one first.
#[derive(Debug)]
struct OpenList {
    array: u32,
    choices: Vec<Choice>,
    present: u64,
}

impl Node {
    fn take(&mut self, array: u32, member: &Node) -> Result<(), TooManyChoices> {
        if self.open.as_ref().is_none_or(|open| open.array != array) {
            self.close()?;
            self.open = Some(OpenList {
                array,
                choices: Vec::new(),
                present: 0,
            });
        }
        if let Some(open) = &mut self.open {
            open.present |= member.present;
            for choice in member.choices.iter().filter(|choice| choice.held != 0) {
                keep(&mut open.choices, *choice)?;
            }
        }
        Ok(())
    }

    /// Lets every choice here go with every choice of the gathered list, or with none of it.
    fn close(&mut self) -> Result<(), TooManyChoices> {
        let Some(mut list) = self.open.take() else {
            return Ok(());
        };
        let unchosen = Choice {
            held: 0,
            present: list.present,
        };
        keep(&mut list.choices, unchosen)?;
        self.present |= list.present;
        let mut combined = Vec::new();
        for one in &self.choices {
            for other in &list.choices {
                keep(&mut combined, one.with(*other))?;
            }
        }
        self.choices = combined;
        Ok(())
    }
}

/// The elements that entries lie in and all around them, in order.
fn touched(entries: &[Entry], leaves: &Leaves) -> Vec<Node> {
    let mut elements = vec![NO_ELEMENT];
    for entry in entries {
        let mut element = entry.element;
        while element != NO_ELEMENT {
            elements.push(element);
            element = leaves.elements[element as usize].parent;
        }
    }
    elements.sort_unstable();
    elements.dedup();
    let mut nodes: Vec<Node> = elements
        .into_iter()
        .map(|element| Node {
            element,
            choices: vec![Choice {
                held: 0,
                present: 0,
            }],
            present: 0,
            open: None,
        })
        .collect();
    for entry in entries {
        if let Ok(place) = nodes.binary_search_by_key(&entry.element, |node| node.element) {
            let node = &mut nodes[place];
            node.present |= entry.field;
            node.choices[0].present |= entry.field;
            if entry.passes {
                node.choices[0].held |= entry.field;
            }
        }
    }
    nodes
}

/// Adds a choice unless a known one is at least as good, and drops those it beats.
fn keep(choices: &mut Vec<Choice>, choice: Choice) -> Result<(), TooManyChoices> {
    if choices.iter().any(|known| known.is_at_least(choice)) {
        return Ok(());
    }
    choices.retain(|known| !choice.is_at_least(*known));
    if choices.len() == CHOICES_MAX {
        return Err(TooManyChoices);
    }
    choices.push(choice);
    Ok(())
}
