//! The values of one event at the paths that patterns read, and the list elements they lie in.

use super::input::Input;
use super::number::Number;
use super::op::Value;
use super::paths::{NodeId, PathId};

/// The element that is not in any list.
pub(crate) const NO_ELEMENT: u32 = 0;
const NONE: u32 = u32::MAX;

/// Everything that one event has at the paths of one [`Paths`](super::paths::Paths).
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    pub(crate) leaves: Vec<Leaf>,
    /// Objects and lists that are members of lists; the first stands for being in none.
    pub(crate) elements: Vec<Element>,
    pub(crate) arrays: Vec<Array>,
    pub(crate) decoded: Vec<u8>,
    /// Paths at which there is an object or list; only an explanation asks for them.
    pub(crate) containers: Option<Vec<PathId>>,
    heads: Vec<Head>,
    epoch: u32,
}

/// One value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf {
    pub(crate) path: PathId,
    /// The value before it at the same path.
    earlier: u32,
    /// The innermost element it lies in. A plain member of a list lies in what the list lies in.
    pub(crate) element: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) kind: Kind,
}

/// What a leaf is, and where its text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    True,
    False,
    /// A number in the input's bytes.
    Number,
    /// A number in the decoded bytes.
    DecodedNumber,
    /// A string in the input's bytes.
    Text,
    /// A string in the decoded bytes.
    DecodedText,
    /// The attribute at place `start`.
    Attribute,
}

/// An object or list that is a member of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Element {
    pub(crate) array: u32,
    /// The element that its list lies in.
    pub(crate) parent: u32,
    /// The last list that lies in it.
    last_array: u32,
}

/// A list on the way to some path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Array {
    pub(crate) node: NodeId,
    /// The list before it in the same element.
    earlier: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Head {
    epoch: u32,
    last: u32,
}

impl Leaves {
    /// Forgets the last event and makes room for so many paths.
    pub(crate) fn begin(&mut self, paths: usize) {
        self.leaves.clear();
        self.elements.clear();
        self.elements.push(Element {
            array: NONE,
            parent: NONE,
            last_array: NONE,
        });
        self.arrays.clear();
        self.decoded.clear();
        if self.heads.len() < paths {
            self.heads.resize(paths, Head::default());
        }
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.heads.fill(Head::default());
            self.epoch = 1;
        }
    }

    pub(crate) fn push(&mut self, path: PathId, element: u32, kind: Kind, span: (usize, usize)) {
        let place = self.leaves.len() as u32;
        let head = &mut self.heads[path as usize];
        let earlier = if head.epoch == self.epoch {
            head.last
        } else {
            NONE
        };
        *head = Head {
            epoch: self.epoch,
            last: place,
        };
        self.leaves.push(Leaf {
            path,
            earlier,
            element,
            start: span.0 as u32,
            end: span.1 as u32,
            kind,
        });
    }

    /// Notes that an object or list is at a path, if that was asked for.
    pub(crate) fn note_container(&mut self, path: Option<PathId>) {
        if let (Some(containers), Some(path)) = (&mut self.containers, path) {
            containers.push(path);
        }
    }

    pub(crate) fn push_array(&mut self, node: NodeId, element: u32) -> u32 {
        let place = self.arrays.len() as u32;
        let within = &mut self.elements[element as usize];
        let earlier = std::mem::replace(&mut within.last_array, place);
        self.arrays.push(Array { node, earlier });
        place
    }

    pub(crate) fn push_element(&mut self, array: u32, parent: u32) -> u32 {
        self.elements.push(Element {
            array,
            parent,
            last_array: NONE,
        });
        self.elements.len() as u32 - 1
    }

    /// The lists that lie in an element, the last one first.
    pub(crate) fn arrays_in(&self, element: u32) -> impl Iterator<Item = u32> {
        let known = |array: u32| (array != NONE).then_some(array);
        std::iter::successors(
            known(self.elements[element as usize].last_array),
            move |array| known(self.arrays[*array as usize].earlier),
        )
    }

    /// The place of the last value at a path.
    pub(crate) fn last_at(&self, path: PathId) -> Option<u32> {
        let head = self.heads.get(path as usize)?;
        (head.epoch == self.epoch).then_some(head.last)
    }

    /// The place of the value before this one at the same path.
    pub(crate) fn earlier(&self, place: u32) -> Option<u32> {
        let earlier = self.leaves[place as usize].earlier;
        (earlier != NONE).then_some(earlier)
    }

    /// The values at a path, the last one first.
    pub(crate) fn at(&self, path: PathId) -> impl Iterator<Item = &Leaf> {
        std::iter::successors(self.last_at(path), |place| self.earlier(*place))
            .map(|place| &self.leaves[place as usize])
    }

    pub(crate) fn value<'v>(&'v self, leaf: &Leaf, input: &Input<'v>) -> Value<'v> {
        let span = leaf.start as usize..leaf.end as usize;
        match leaf.kind {
            Kind::Null => Value::Null,
            Kind::True => Value::Bool(true),
            Kind::False => Value::Bool(false),
            Kind::Number => Value::Number(Number::read(&input.bytes()[span])),
            Kind::DecodedNumber => Value::Number(Number::read(&self.decoded[span])),
            Kind::Text => Value::Text(&input.bytes()[span]),
            Kind::DecodedText => Value::Text(&self.decoded[span]),
            Kind::Attribute => Value::Text(input.attribute_text(leaf.start as usize)),
        }
    }
}
