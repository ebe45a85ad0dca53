//! Reading a map field by field, with every fault collected.
//!
//! ```text
//! let mut fields = Fields::new(node, "a target");
//! let name = fields.required_name("name");
//! let timeout = fields.duration("timeout").unwrap_or(TIMEOUT);
//! let concurrency = fields.integer("concurrency", 1..=1024).unwrap_or(8);
//! faults.extend(fields.finish());
//! ```
//!
//! A field that is absent or wrong answers `None`; whether it was wrong, [`Fields::finish`] tells.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{
    Content, Fault, Key, Name, Node, Position, closest, duration_text, parse_duration, parse_size,
    size_text,
};

/// Unknown keys that are reported one by one; the rest is counted.
const UNKNOWN_KEYS_MAX: usize = 20;

/// The fields of one map, each read at most once, and the faults found on the way.
#[must_use = "the faults are lost unless `finish` is called"]
#[derive(Debug)]
pub struct Fields<'a> {
    entries: &'a [(Key, Node)],
    /// Where the map starts; `None` when the node is no map, so that nothing is missing in it.
    map_at: Option<Position>,
    what: &'a str,
    known: Vec<&'static str>,
    faults: Vec<Fault>,
}

impl<'a> Fields<'a> {
    /// Begins to read a map; `what` names it with its article, such as "a rule".
    pub fn new(node: &'a Node, what: &'a str) -> Self {
        let (entries, map_at, faults) = match &node.value {
            Content::Map(entries) => (&entries[..], Some(node.at), Vec::new()),
            _ => {
                let message = format!("{what} must be a map, found {}", node.kind_name());
                (&[][..], None, vec![Fault::new(node.at, message)])
            }
        };
        Fields {
            entries,
            map_at,
            what,
            known: Vec::new(),
            faults,
        }
    }

    /// A field of any kind, left to the caller to read.
    pub fn node(&mut self, name: &'static str) -> Option<&'a Node> {
        self.ignore(name);
        self.entry(name).map(|(_, node)| node)
    }

    /// Takes a field as known without reading it.
    pub fn ignore(&mut self, name: &'static str) {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
    }

    /// Adds a fault if the field is absent. Its kind is judged by whoever reads it.
    pub fn require(&mut self, name: &'static str) {
        self.ignore(name);
        if let Some(at) = self.map_at
            && self.entry(name).is_none()
        {
            let message = format!("{} must have the field `{name}`", self.what);
            self.faults.push(Fault::new(at, message));
        }
    }

    /// A field of any kind that must be there.
    pub fn required_node(&mut self, name: &'static str) -> Option<&'a Node> {
        self.require(name);
        self.node(name)
    }

    /// A string that must be there.
    pub fn required_string(&mut self, name: &'static str) -> Option<&'a str> {
        self.require(name);
        self.string(name)
    }

    /// A name that must be there.
    pub fn required_name(&mut self, name: &'static str) -> Option<Name> {
        self.require(name);
        self.name(name)
    }

    /// A string.
    pub fn string(&mut self, name: &'static str) -> Option<&'a str> {
        self.read(name, "a string", Node::as_str)
    }

    /// `true` or `false`.
    pub fn bool(&mut self, name: &'static str) -> Option<bool> {
        self.read(name, "true or false", Node::as_bool)
    }

    /// A whole number within a range.
    pub fn integer(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.read(name, "a whole number", |node| {
            // A negative number is out of range rather than of the wrong kind.
            let negative = node.as_f64().is_some_and(|n| n < 0.0 && n.fract() == 0.0);
            node.as_u64().map(Some).or_else(|| negative.then_some(None))
        })?;
        let within = value.filter(|value| range.contains(value));
        if within.is_none() {
            self.out_of_range(name, range.start(), range.end());
        }
        within
    }

    /// A number within a range of finite bounds.
    pub fn number(&mut self, name: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.read(name, "a number", Node::as_f64)?;
        if !range.contains(&value) {
            self.out_of_range(name, range.start(), range.end());
            return None;
        }
        Some(value)
    }

    /// A duration such as `30s`, `1h30m` or `250ms`, or a number of seconds.
    pub fn duration(&mut self, name: &'static str) -> Option<Duration> {
        self.quantity(name, "a duration such as 30s or 1h30m", parse_duration)
    }

    /// A duration within a range.
    pub fn duration_within(
        &mut self,
        name: &'static str,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let value = self.duration(name)?;
        if !range.contains(&value) {
            let (least, most) = (duration_text(*range.start()), duration_text(*range.end()));
            self.out_of_range(name, &least, &most);
            return None;
        }
        Some(value)
    }

    /// A size in bytes such as `64KiB` or `1MB`, or a number of bytes.
    pub fn size(&mut self, name: &'static str) -> Option<u64> {
        self.quantity(name, "a size such as 64KiB or 1MB", parse_size)
    }

    /// A size in bytes within a range.
    pub fn size_within(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.size(name)?;
        if !range.contains(&value) {
            let (least, most) = (size_text(*range.start()), size_text(*range.end()));
            self.out_of_range(name, &least, &most);
            return None;
        }
        Some(value)
    }

    /// One of several words.
    pub fn choice<'c>(&mut self, name: &'static str, words: &[&'c str]) -> Option<&'c str> {
        let found = self.string(name)?;
        let chosen = words.iter().find(|word| **word == found).copied();
        if chosen.is_none() {
            let message = format!("{} cannot be `{found}`", self.called(name));
            let hint = match closest(found, words.iter().copied()) {
                Some(word) => format!("did you mean `{word}`?"),
                None => format!("use one of {}", quoted(words)),
            };
            self.fault(name, message, Some(hint));
        }
        chosen
    }

    /// One of several words, as the value that stands beside it.
    pub fn choice_of<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        let texts: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let chosen = self.choice(name, &texts)?;
        let mut words = words.iter();
        words.find(|(word, _)| *word == chosen).map(|(_, t)| *t)
    }

    /// A list of strings, or one string in place of a list of one.
    pub fn strings(&mut self, name: &'static str) -> Option<Vec<&'a str>> {
        let items = self.string_items(name)?;
        Some(items.into_iter().map(|(text, _)| text).collect())
    }

    /// The name of a rule, target or bus.
    pub fn name(&mut self, name: &'static str) -> Option<Name> {
        let text = self.string(name)?;
        let at = self.value_at(name);
        self.checked_name(name, text, at)
    }

    /// A list of names, or one name, each with its place. Wrong ones are reported and left out.
    pub fn names(&mut self, name: &'static str) -> Option<Vec<(Name, Position)>> {
        let items = self.string_items(name)?;
        let mut names = Vec::with_capacity(items.len());
        for (text, at) in items {
            names.extend(self.checked_name(name, text, at).map(|name| (name, at)));
        }
        Some(names)
    }

    /// A list of anything.
    pub fn list(&mut self, name: &'static str) -> Option<&'a [Node]> {
        self.read(name, "a list", Node::as_list)
    }

    /// A map of anything.
    pub fn map(&mut self, name: &'static str) -> Option<&'a [(Key, Node)]> {
        self.read(name, "a map", Node::as_map)
    }

    /// A map of strings, such as headers. Wrong values are reported and left out.
    pub fn string_map(&mut self, name: &'static str) -> Option<Vec<(&'a Key, &'a str)>> {
        let entries = self.map(name)?;
        let mut strings = Vec::with_capacity(entries.len());
        for (key, node) in entries {
            match node.as_str() {
                Some(text) => strings.push((key, text)),
                None => {
                    let called = format!("`{}` in {}", key.text, self.called(name));
                    self.faults.push(wrong_kind(&called, "a string", node));
                }
            }
        }
        Some(strings)
    }

    /// A map of known fields of its own; give its faults back with [`Fields::absorb`].
    pub fn nested(&mut self, name: &'static str, what: &'a str) -> Option<Fields<'a>> {
        self.node(name).map(|node| Fields::new(node, what))
    }

    /// Ends a nested map and takes over its faults.
    pub fn absorb(&mut self, nested: Fields<'_>) {
        self.faults.extend(nested.finish());
    }

    /// Adds a fault at the value of a field, or at the map when the field is absent.
    pub fn fault(&mut self, name: &str, message: impl Into<String>, hint: Option<String>) {
        let (at, message) = (self.value_at(name), message.into());
        self.faults.push(Fault { at, message, hint });
    }

    /// The place of a field's value, or of the map when the field is absent.
    pub fn value_at(&self, name: &str) -> Position {
        let value_at = self.entry(name).map(|(_, node)| node.at);
        value_at.or(self.map_at).unwrap_or(Position::START)
    }

    /// The place of a field's key, or of the map when the field is absent.
    pub fn key_at(&self, name: &str) -> Position {
        let key_at = self.entry(name).map(|(key, _)| key.at);
        key_at.or(self.map_at).unwrap_or(Position::START)
    }

    /// Every fault, in the order of the text; keys that nobody asked for are among them.
    pub fn finish(mut self) -> Vec<Fault> {
        let known = |key: &Key| self.known.contains(&key.text.as_str());
        let unknown: Vec<&Key> = self.entries.iter().map(|(key, _)| key).collect();
        let unknown: Vec<&Key> = unknown.into_iter().filter(|key| !known(key)).collect();
        for key in unknown.iter().take(UNKNOWN_KEYS_MAX) {
            let fault = self.unknown_key(key);
            self.faults.push(fault);
        }
        if let Some(key) = unknown.get(UNKNOWN_KEYS_MAX) {
            let more = unknown.len() - UNKNOWN_KEYS_MAX;
            let message = format!("{more} more fields are unknown to {}", self.what);
            self.faults.push(Fault::new(key.at, message));
        }
        self.faults.sort_by_key(|fault| fault.at);
        self.faults
    }

    fn unknown_key(&self, key: &Key) -> Fault {
        let absent = |name: &&&str| self.entry(name).is_none();
        let candidates = self.known.iter().filter(absent).copied();
        let hint = match closest(&key.text, candidates) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("its fields are {}", quoted(&self.known)),
        };
        let message = format!("{} has no field `{}`", self.what, key.text);
        Fault::new(key.at, message).with_hint(hint)
    }

    fn entry(&self, name: &str) -> Option<&'a (Key, Node)> {
        self.entries.iter().find(|(key, _)| key.text == name)
    }

    /// How messages call a field: "`timeout` of a target".
    fn called(&self, name: &str) -> String {
        format!("`{name}` of {}", self.what)
    }

    fn read<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        convert: impl FnOnce(&'a Node) -> Option<T>,
    ) -> Option<T> {
        let node = self.node(name)?;
        let value = convert(node);
        if value.is_none() {
            let fault = wrong_kind(&self.called(name), expected, node);
            self.faults.push(fault);
        }
        value
    }

    fn quantity<T, E: Display>(
        &mut self,
        name: &'static str,
        expected: &str,
        parse: fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.read(name, expected, |node| {
            node.as_str().or_else(|| node.as_number_text())
        })?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                let message = format!("{} is not {expected}: {error}", self.called(name));
                self.fault(name, message, None);
                None
            }
        }
    }

    fn string_items(&mut self, name: &'static str) -> Option<Vec<(&'a str, Position)>> {
        const EXPECTED: &str = "a string or a list of strings";
        let nodes = self.read(name, EXPECTED, |node| match &node.value {
            Content::String(_) => Some(std::slice::from_ref(node)),
            Content::List(items) => Some(&items[..]),
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::Map(_) => None,
        })?;
        let mut items = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node.as_str() {
                Some(text) => items.push((text, node.at)),
                None => {
                    let called = format!("every item in {}", self.called(name));
                    self.faults.push(wrong_kind(&called, "a string", node));
                }
            }
        }
        Some(items)
    }

    fn checked_name(&mut self, field: &str, text: &str, at: Position) -> Option<Name> {
        match Name::parse(text) {
            Ok(name) => Some(name),
            Err(error) => {
                let message = format!("{} is not a name: {error}", self.called(field));
                self.faults.push(Fault::new(at, message));
                None
            }
        }
    }

    fn out_of_range(&mut self, name: &'static str, least: &dyn Display, most: &dyn Display) {
        let message = format!("{} must be from {least} to {most}", self.called(name));
        self.fault(name, message, None);
    }
}

fn wrong_kind(called: &str, expected: &str, node: &Node) -> Fault {
    let message = format!("{called} must be {expected}, found {}", node.kind_name());
    let fault = Fault::new(node.at, message);
    match node.value {
        Content::Null => fault.with_hint("give it a value, or leave the field out"),
        Content::Bool(_) | Content::Number(_) if expected.starts_with("a string") => {
            fault.with_hint("put it in quotes")
        }
        _ => fault,
    }
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
