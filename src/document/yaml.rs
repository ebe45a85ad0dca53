//! YAML 1.2 text to located trees, through the events of `saphyr-parser`.
//!
//! The core schema decides the types (`yes`, `no`, `on` and `off` are strings). Of YAML's extras,
//! anchors and aliases are taken within a limit; merge keys, keys that are no scalars and
//! application tags are refused, since JSON has no place for them.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};

use super::scalar::{self, Type};
use super::{
    Content, DEPTH_MAX, Fault, Key, Node, Position, check_length, check_unique, json, lines,
    too_deep,
};

/// Nodes and bytes of text that the anchors and aliases of one text may copy, so that a few lines
/// cannot unfold into gigabytes.
const COPIES_MAX: usize = 1 << 20;

/// Parses a YAML 1.2 text into its documents, in order; a text without content has none.
///
/// # Errors
/// The first fault: a syntax error, a repeated key, a merge key, a foreign tag, `.inf` or `.nan`,
/// nesting over [`DEPTH_MAX`], or aliases that copy too much.
pub fn parse_yaml(text: &str) -> Result<Vec<Node>, Fault> {
    check_length(text)?;
    check_characters(text)?;
    let mut builder = Builder::new(text);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| builder.scan_fault(&error))?;
        let at = builder.position(span.start);
        builder.take(event, at)?;
    }
    Ok(builder.documents)
}

/// Refuses what YAML calls non-printable (§5.1). The parser takes NUL for the end of the text, so
/// without this check the rest of a file could vanish silently.
fn check_characters(text: &str) -> Result<(), Fault> {
    let printable = |c: char| {
        matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{A0}'..='\u{FFFD}')
            || c >= '\u{10000}'
    };
    let Some((offset, c)) = text.char_indices().find(|(_, c)| !printable(*c)) else {
        return Ok(());
    };
    let message = format!(
        "the control character U+{:04X} is not allowed",
        u32::from(c)
    );
    let hint = "remove it, or write it as an escape in double quotes";
    Err(Fault::new(json::position_at(text, offset), message).with_hint(hint))
}

/// Puts the events of the parser together, with an explicit stack in place of recursion.
struct Builder<'t> {
    lines: Vec<&'t str>,
    documents: Vec<Node>,
    /// Where the current document starts.
    document_at: Position,
    open: Vec<Open>,
    /// Finished nodes of the current document by the parser's anchor number.
    anchors: HashMap<usize, Anchored>,
    /// What anchors and aliases have copied so far, of [`COPIES_MAX`].
    copied: usize,
}

/// A list or map whose end has not come yet.
struct Open {
    at: Position,
    anchor: usize,
    items: Items,
}

enum Items {
    List(Vec<Node>),
    Map {
        entries: Vec<(Key, Node)>,
        /// A key that waits for its value.
        key: Option<Key>,
    },
}

struct Anchored {
    node: Node,
    extent: Extent,
}

/// How much a copy of a node costs.
#[derive(Clone, Copy)]
struct Extent {
    /// Nodes and bytes of text.
    size: usize,
    /// Levels of lists and maps.
    levels: usize,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str) -> Self {
        Builder {
            lines: lines(text),
            documents: Vec::new(),
            document_at: Position::START,
            open: Vec::new(),
            anchors: HashMap::new(),
            copied: 0,
        }
    }

    /// The parser places the end of the text on a line of its own; here it is the end of the last.
    fn position(&self, marker: Marker) -> Position {
        let (line, column) = match self.lines.last() {
            Some(last) if marker.line() > self.lines.len() => {
                (self.lines.len(), last.chars().count())
            }
            _ => (marker.line(), marker.col()),
        };
        let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Position {
            line: narrow(line),
            column: narrow(column).saturating_add(1),
        }
    }

    /// The fault of a text that is not YAML.
    fn scan_fault(&self, error: &ScanError) -> Fault {
        let mut at = self.position(*error.marker());
        let line = self.lines.get((at.line as usize).saturating_sub(1));
        let end = line.map_or(0, |line| line.chars().count()) + 1;
        at.column = at.column.min(u32::try_from(end).unwrap_or(u32::MAX));
        let info = error.info();
        let fault = Fault::new(at, format!("this is not valid YAML: {info}"));
        // The parser has no codes, only texts; what is not recognised goes without a hint.
        let hint = if info.contains("recursion limit") {
            return too_deep(at);
        } else if info.contains("mapping values are not allowed") {
            "put text that holds `: ` in quotes, and check the indentation"
        } else if info.contains("tab") || info.contains("valid YAML whitespace") {
            "use spaces in place of tabs"
        } else if info.contains("unknown anchor") {
            "define it with `&` further up, or put text that starts with `*` in quotes"
        } else {
            return fault;
        };
        fault.with_hint(hint)
    }

    fn take(&mut self, event: Event<'_>, at: Position) -> Result<(), Fault> {
        match event {
            Event::DocumentStart(_) => {
                self.anchors.clear();
                self.document_at = at;
            }
            Event::Scalar(text, style, anchor, tag) => {
                return self.scalar(&text, style, anchor, tag.as_deref(), at);
            }
            Event::Alias(anchor) => return self.alias(anchor, at),
            Event::SequenceStart(anchor, tag) => {
                check_tag(tag.as_deref(), Type::List, at)?;
                let at = self.list_at(at);
                return self.begin(at, anchor, Items::List(Vec::new()));
            }
            Event::MappingStart(anchor, tag) => {
                check_tag(tag.as_deref(), Type::Map, at)?;
                let (entries, key) = (Vec::new(), None);
                return self.begin(at, anchor, Items::Map { entries, key });
            }
            Event::SequenceEnd | Event::MappingEnd => return self.end(),
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => {}
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        at: Position,
    ) -> Result<(), Fault> {
        let plain = style == ScalarStyle::Plain;
        let kind = tag.map(|tag| core_type(tag, at)).transpose()?;
        if self.expects_key() {
            return self.key(text, plain, at);
        }
        let left_out = plain && text.is_empty() && anchor == 0 && tag.is_none();
        let at = if left_out { self.nothing_at(at) } else { at };
        let value = scalar::resolve(text, plain, kind, at)?;
        self.place(Node { value, at }, anchor)
    }

    fn key(&mut self, text: &str, plain: bool, at: Position) -> Result<(), Fault> {
        if plain && text == "<<" {
            let fault = Fault::new(at, "merge keys (`<<`) are not supported");
            return Err(fault.with_hint("write the fields out; YAML 1.2 has no merge keys"));
        }
        if plain && text.is_empty() {
            return Err(Fault::new(at, "a key is missing here"));
        }
        if let Some(Items::Map { key, .. }) = self.open.last_mut().map(|open| &mut open.items) {
            let text = text.to_owned();
            *key = Some(Key { text, at });
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Result<(), Fault> {
        if self.expects_key() {
            return Err(Fault::new(at, "an alias cannot be a key"));
        }
        let Some(Anchored { node, extent }) = self.anchors.get(&anchor) else {
            let message = "this alias names no finished value of this document";
            let hint = "an anchor cannot hold itself, and ends with its document";
            return Err(Fault::new(at, message).with_hint(hint));
        };
        let (mut node, extent) = (node.clone(), *extent);
        if self.open.len() + extent.levels > DEPTH_MAX {
            return Err(too_deep(at));
        }
        self.charge(extent.size, at)?;
        node.at = at;
        self.place(node, 0)
    }

    fn begin(&mut self, at: Position, anchor: usize, items: Items) -> Result<(), Fault> {
        if self.expects_key() {
            let fault = Fault::new(at, "a key must be a single value, not a list or a map");
            return Err(fault.with_hint("put `{…}` or `[…]` in quotes if it is meant as text"));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(too_deep(at));
        }
        self.open.push(Open { at, anchor, items });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        let Some(Open { at, anchor, items }) = self.open.pop() else {
            return Ok(());
        };
        let value = match items {
            Items::List(items) => Content::List(items),
            Items::Map { entries, .. } => {
                check_unique(&entries)?;
                Content::Map(entries)
            }
        };
        self.place(Node { value, at }, anchor)
    }

    /// Puts a finished node where it belongs, and keeps a copy for the aliases of its anchor.
    fn place(&mut self, node: Node, anchor: usize) -> Result<(), Fault> {
        if anchor != 0 {
            let extent = extent(&node);
            self.charge(extent.size, node.at)?;
            let node = node.clone();
            self.anchors.insert(anchor, Anchored { node, extent });
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.documents.push(node),
            Some(Items::List(items)) => items.push(node),
            Some(Items::Map { entries, key }) => entries.extend(key.take().map(|key| (key, node))),
        }
        Ok(())
    }

    fn charge(&mut self, size: usize, at: Position) -> Result<(), Fault> {
        self.copied = self.copied.saturating_add(size);
        if self.copied <= COPIES_MAX {
            return Ok(());
        }
        let message =
            format!("anchors and aliases copy more than {COPIES_MAX} values and characters");
        Err(Fault::new(at, message).with_hint("write the values out, or repeat less"))
    }

    fn expects_key(&self) -> bool {
        let items = self.open.last().map(|open| &open.items);
        matches!(items, Some(Items::Map { key: None, .. }))
    }

    /// The place of a value that was left out. The parser gives the place of a token near by.
    fn nothing_at(&self, at: Position) -> Position {
        match self.open.last() {
            None => self.document_at,
            Some(Open {
                items, at: around, ..
            }) => match items {
                Items::Map { key: Some(key), .. } => key.at,
                // Of a list in block style: its dashes stand below one another.
                Items::List(_) if around.column < at.column => Position {
                    line: at.line,
                    column: around.column,
                },
                Items::List(_) | Items::Map { key: None, .. } => at,
            },
        }
    }

    /// The place of a list. When its dashes are not indented below its key, the parser gives the
    /// place of the first item instead of the first dash.
    fn list_at(&self, at: Position) -> Position {
        let Some(Items::Map { key: Some(key), .. }) = self.open.last().map(|open| &open.items)
        else {
            return at;
        };
        let line = self
            .lines
            .get((at.line as usize).saturating_sub(1))
            .copied();
        let indent = line.map(|line| line.bytes().take_while(|b| *b == b' ').count());
        match (line, indent) {
            (Some(line), Some(indent))
                if at.line > key.at.line && line[indent..].starts_with('-') =>
            {
                let column = u32::try_from(indent + 1).unwrap_or(u32::MAX);
                Position { column, ..at }
            }
            _ => at,
        }
    }
}

fn extent(node: &Node) -> Extent {
    let none = Extent { size: 1, levels: 0 };
    let within = |children: &mut dyn Iterator<Item = (usize, &Node)>| {
        let around = Extent { size: 1, levels: 1 };
        children.fold(around, |sum, (key_bytes, child)| {
            let child = extent(child);
            Extent {
                size: sum.size + key_bytes + child.size,
                levels: sum.levels.max(child.levels + 1),
            }
        })
    };
    match &node.value {
        Content::Null | Content::Bool(_) => none,
        Content::Number(text) | Content::String(text) => Extent {
            size: 1 + text.len(),
            levels: 0,
        },
        Content::List(items) => within(&mut items.iter().map(|item| (0, item))),
        Content::Map(entries) => within(&mut entries.iter().map(|(k, v)| (1 + k.text.len(), v))),
    }
}

fn check_tag(tag: Option<&Tag>, expected: Type, at: Position) -> Result<(), Fault> {
    match tag.map(|tag| core_type(tag, at)).transpose()? {
        None | Some(Type::Unspecific) => Ok(()),
        Some(kind) if kind == expected => Ok(()),
        Some(_) => Err(Fault::new(at, "the tag does not fit the value")),
    }
}

/// The core schema's type of a tag (YAML 1.2 §10.3); every other tag is refused.
fn core_type(tag: &Tag, at: Position) -> Result<Type, Fault> {
    let full = format!("{}{}", tag.handle, tag.suffix);
    let kind = match full.strip_prefix("tag:yaml.org,2002:").unwrap_or(&full) {
        "!" => Type::Unspecific,
        _ if !full.starts_with("tag:yaml.org,2002:") => return Err(foreign_tag(&full, at)),
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Integer,
        "float" => Type::Float,
        "str" => Type::String,
        "seq" => Type::List,
        "map" => Type::Map,
        _ => return Err(foreign_tag(&full, at)),
    };
    Ok(kind)
}

fn foreign_tag(full: &str, at: Position) -> Fault {
    let message = format!("the tag `{full}` is not supported");
    let hint = "only !!str, !!int, !!float, !!bool, !!null, !!seq and !!map are; put text that starts with `!` in quotes";
    Fault::new(at, message).with_hint(hint)
}
