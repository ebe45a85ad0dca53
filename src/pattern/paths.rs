//! The paths that patterns read, as a tree of keys that the walk over an event follows.
//!
//! A key with dots and the nested spelling are one path, so every key is cut at its dots here and
//! while walking. Keys are compared by their first eight bytes and length before anything else.

use rustc_hash::FxHashMap;

use super::scan;

/// Number of a path among those of one [`Paths`].
pub(crate) type PathId = u32;
/// Number of a node of the tree; [`ROOT`] is the event itself.
pub(crate) type NodeId = u32;

/// The node of the whole event.
pub(crate) const ROOT: NodeId = 0;
const NONE: u32 = u32::MAX;

/// A tree of keys; the end of each path is numbered in the order of adding.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    nodes: Vec<Node>,
    keys: Vec<u8>,
    ids: FxHashMap<Box<str>, PathId>,
    /// The node at which each path ends.
    ends: Vec<NodeId>,
}

#[derive(Debug, Clone)]
struct Node {
    parent: NodeId,
    path: PathId,
    children: Box<[Slot]>,
    count: u32,
}

/// One child in an open hash table whose length is a power of two.
#[derive(Debug, Clone, Copy)]
struct Slot {
    word: u64,
    length: u32,
    node: NodeId,
    key: u32,
}

const EMPTY: Slot = Slot {
    word: 0,
    length: NONE,
    node: NONE,
    key: 0,
};

impl Default for Paths {
    fn default() -> Self {
        Self {
            nodes: vec![Node::default()],
            keys: Vec::new(),
            ids: FxHashMap::default(),
            ends: Vec::new(),
        }
    }
}

impl Default for Node {
    fn default() -> Self {
        Self {
            parent: NONE,
            path: NONE,
            children: Box::default(),
            count: 0,
        }
    }
}

impl Paths {
    /// How many paths there are.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The number of a path that is known.
    pub(crate) fn id(&self, path: &str) -> Option<PathId> {
        self.ids.get(path).copied()
    }

    /// The number of a path, added if it is new.
    pub(crate) fn add(&mut self, path: &str) -> PathId {
        if let Some(id) = self.id(path) {
            return id;
        }
        let node = path
            .split('.')
            .fold(ROOT, |node, key| self.add_child(node, key.as_bytes()));
        let id = self.ids.len() as PathId;
        self.nodes[node as usize].path = id;
        self.ends.push(node);
        self.ids.insert(path.into(), id);
        id
    }

    /// The path that ends at a node.
    pub(crate) fn path_at(&self, node: NodeId) -> Option<PathId> {
        let path = self.nodes[node as usize].path;
        (path != NONE).then_some(path)
    }

    /// True when some path goes on below the node.
    pub(crate) fn continues(&self, node: NodeId) -> bool {
        self.nodes[node as usize].count > 0
    }

    /// The child that a key leads to, cutting the key at its dots.
    #[inline]
    pub(crate) fn descend(&self, node: NodeId, key: &[u8]) -> Option<NodeId> {
        let child = self.child(node, key);
        if child.is_some() || !has_dot(key) {
            return child;
        }
        self.descend_by_parts(node, key)
    }

    fn descend_by_parts(&self, node: NodeId, key: &[u8]) -> Option<NodeId> {
        key.split(|byte| *byte == b'.')
            .try_fold(node, |node, part| self.child(node, part))
    }

    /// The child of a key without dots; none for one with dots.
    #[inline]
    pub(crate) fn child(&self, node: NodeId, key: &[u8]) -> Option<NodeId> {
        let node = &self.nodes[node as usize];
        if node.count == 0 {
            return None;
        }
        let word = first_word(key);
        let mask = node.children.len() - 1;
        let mut place = slot_of(word, key.len()) & mask;
        loop {
            let slot = &node.children[place];
            if slot.length == NONE {
                return None;
            }
            if slot.word == word
                && slot.length as usize == key.len()
                && (key.len() <= 8 || self.key(slot) == key)
            {
                return Some(slot.node);
            }
            place = (place + 1) & mask;
        }
    }

    /// True when the path ends at the node or below it.
    pub(crate) fn is_under(&self, path: PathId, node: NodeId) -> bool {
        let mut above = self.ends[path as usize];
        while above > node {
            above = self.nodes[above as usize].parent;
        }
        above == node
    }

    /// Heap bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        let slots: usize = self.nodes.iter().map(|node| node.children.len()).sum();
        let paths: usize = self.ids.keys().map(|path| path.len() + 48).sum();
        slots * size_of::<Slot>()
            + self.nodes.capacity() * size_of::<Node>()
            + self.keys.capacity()
            + paths
    }

    fn key(&self, slot: &Slot) -> &[u8] {
        &self.keys[slot.key as usize..][..slot.length as usize]
    }

    fn add_child(&mut self, parent: NodeId, key: &[u8]) -> NodeId {
        if let Some(node) = self.child(parent, key) {
            return node;
        }
        let node = self.nodes.len() as NodeId;
        self.nodes.push(Node {
            parent,
            ..Node::default()
        });
        let slot = Slot {
            word: first_word(key),
            length: key.len() as u32,
            node,
            key: self.keys.len() as u32,
        };
        self.keys.extend_from_slice(key);
        self.nodes[parent as usize].insert(slot);
        node
    }
}

impl Node {
    fn insert(&mut self, slot: Slot) {
        if self.count as usize * 2 >= self.children.len() {
            let length = (self.children.len() * 2).max(4);
            let old = std::mem::replace(&mut self.children, vec![EMPTY; length].into());
            for slot in old.iter().filter(|slot| slot.length != NONE) {
                place(&mut self.children, *slot);
            }
        }
        place(&mut self.children, slot);
        self.count += 1;
    }
}

fn place(slots: &mut [Slot], slot: Slot) {
    let mask = slots.len() - 1;
    let mut place = slot_of(slot.word, slot.length as usize) & mask;
    while slots[place].length != NONE {
        place = (place + 1) & mask;
    }
    slots[place] = slot;
}

fn slot_of(word: u64, length: usize) -> usize {
    let mixed = (word ^ (length as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) as usize
}

/// The first eight bytes of a key; of a shorter one all, in some order that depends on its length.
#[inline]
fn first_word(key: &[u8]) -> u64 {
    if let Some(bytes) = key.first_chunk::<8>() {
        return u64::from_le_bytes(*bytes);
    }
    match (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => key
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[inline]
fn has_dot(key: &[u8]) -> bool {
    let mut words = key.chunks_exact(8);
    let in_words = words.by_ref().any(|word| {
        let word = word
            .first_chunk::<8>()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes));
        scan::equal_bytes(word, b'.') != 0
    });
    in_words || words.remainder().contains(&b'.')
}
