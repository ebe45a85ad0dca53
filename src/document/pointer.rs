//! JSON Pointers (RFC 6901) into a tree.

use super::{Content, Key, Node, Position};

impl Node {
    /// The node that a JSON Pointer names; `""` is this node itself.
    pub fn at_pointer(&self, pointer: &str) -> Option<&Node> {
        let walk = walk(self, pointer);
        walk.complete.then_some(walk.node)
    }

    /// The place of the value that a JSON Pointer names, or of its nearest ancestor that exists.
    pub fn position_of_pointer(&self, pointer: &str) -> Position {
        walk(self, pointer).node.at
    }

    /// Like [`Node::position_of_pointer`], but for an entry of a map the place of its key.
    pub fn key_position_of_pointer(&self, pointer: &str) -> Position {
        let walk = walk(self, pointer);
        walk.key.map_or(walk.node.at, |key| key.at)
    }
}

/// How far a pointer leads.
struct Walk<'n> {
    node: &'n Node,
    /// The key of `node`, when it is an entry of a map.
    key: Option<&'n Key>,
    complete: bool,
}

fn walk<'n>(root: &'n Node, pointer: &str) -> Walk<'n> {
    let mut walk = Walk {
        node: root,
        key: None,
        complete: pointer.is_empty() || pointer.starts_with('/'),
    };
    for token in pointer.split('/').skip(1) {
        let Some((key, node)) = step(walk.node, token) else {
            walk.complete = false;
            break;
        };
        (walk.key, walk.node) = (key, node);
    }
    walk
}

fn step<'n>(node: &'n Node, token: &str) -> Option<(Option<&'n Key>, &'n Node)> {
    match &node.value {
        Content::List(items) => {
            let canonical = token == "0" || !token.starts_with(['0', '+']);
            let index = token.parse::<usize>().ok().filter(|_| canonical)?;
            items.get(index).map(|item| (None, item))
        }
        Content::Map(entries) => {
            let text = token.replace("~1", "/").replace("~0", "~");
            let mut entries = entries.iter();
            let (key, value) = entries.find(|(key, _)| key.text == text)?;
            Some((Some(key), value))
        }
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::String(_) => None,
    }
}
