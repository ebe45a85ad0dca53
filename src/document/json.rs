//! JSON text (RFC 8259) to a located tree and back.
//!
//! What `serde_json` refuses is refused here, and beyond that repeated keys and deep nesting.

use super::{
    Content, DEPTH_MAX, Fault, Key, Node, Position, check_length, check_unique, scalar, too_deep,
};

/// Parses one JSON text.
///
/// # Errors
/// The first fault: a syntax error, a repeated key, a number beyond `f64`, half a surrogate pair,
/// or nesting over [`DEPTH_MAX`].
pub fn parse_json(text: &str) -> Result<Node, Fault> {
    check_length(text)?;
    let mut scanner = Scanner::new(text);
    scanner.skip_whitespace();
    let node = scanner.value(0)?;
    scanner.skip_whitespace();
    match scanner.peek() {
        None => Ok(node),
        Some(_) => Err(scanner.unexpected("the end of the text")),
    }
}

/// The place of a byte offset, which must be a character boundary of the text.
pub(super) fn position_at(text: &str, offset: usize) -> Position {
    let mut scanner = Scanner::new(text);
    scanner.offset = offset;
    scanner.here()
}

struct Scanner<'t> {
    text: &'t str,
    offset: usize,
    /// The place of `placed`, an offset up to which lines and columns have been counted. Places
    /// are only asked for in rising order, so that counting stays linear.
    place: Position,
    placed: usize,
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str) -> Self {
        Scanner {
            text,
            offset: 0,
            place: Position::START,
            placed: 0,
        }
    }

    /// The place of the current offset.
    fn here(&mut self) -> Position {
        let bytes = self.text.as_bytes();
        let mut index = self.placed;
        while index < self.offset {
            match bytes[index] {
                b'\r' if bytes.get(index + 1) == Some(&b'\n') => {}
                b'\n' | b'\r' => {
                    self.place.line += 1;
                    self.place.column = 1;
                }
                // A byte order mark has no width; continuation bytes belong to their character.
                0xEF if index == 0 && self.text.starts_with('\u{FEFF}') => {}
                0x80..=0xBF => {}
                _ => self.place.column += 1,
            }
            index += 1;
        }
        self.placed = self.placed.max(self.offset);
        self.place
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn skip_whitespace(&mut self) {
        let rest = &self.text.as_bytes()[self.offset..];
        let blank = |b: &&u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
        self.offset += rest.iter().take_while(blank).count();
    }

    /// Takes one byte if it is next.
    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.offset += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        let at = self.here();
        let value = match self.peek() {
            Some(b'{' | b'[') if depth >= DEPTH_MAX => return Err(too_deep(at)),
            Some(b'{') => self.map(depth + 1)?,
            Some(b'[') => self.list(depth + 1)?,
            Some(b'"') => Content::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Content::Number(self.number()?),
            _ => self.word()?,
        };
        Ok(Node { value, at })
    }

    fn word(&mut self) -> Result<Content, Fault> {
        let words = [
            ("null", Content::Null),
            ("true", Content::Bool(true)),
            ("false", Content::Bool(false)),
        ];
        let rest = &self.text[self.offset..];
        for (word, content) in words {
            if rest.starts_with(word) {
                self.offset += word.len();
                return Ok(content);
            }
        }
        Err(self.unexpected("a value"))
    }

    fn list(&mut self, depth: usize) -> Result<Content, Fault> {
        self.offset += 1;
        let mut items = Vec::new();
        self.skip_whitespace();
        if self.accept(b']') {
            return Ok(Content::List(items));
        }
        loop {
            self.skip_whitespace();
            items.push(self.value(depth)?);
            self.skip_whitespace();
            if self.accept(b']') {
                return Ok(Content::List(items));
            }
            if !self.accept(b',') {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Content, Fault> {
        self.offset += 1;
        let mut entries = Vec::new();
        self.skip_whitespace();
        if self.accept(b'}') {
            return Ok(Content::Map(entries));
        }
        loop {
            self.skip_whitespace();
            entries.push(self.entry(depth)?);
            self.skip_whitespace();
            if self.accept(b'}') {
                check_unique(&entries)?;
                return Ok(Content::Map(entries));
            }
            if !self.accept(b',') {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }

    fn entry(&mut self, depth: usize) -> Result<(Key, Node), Fault> {
        let at = self.here();
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a key in double quotes"));
        }
        let text = self.string()?;
        self.skip_whitespace();
        if !self.accept(b':') {
            return Err(self.unexpected("`:`"));
        }
        self.skip_whitespace();
        Ok((Key { text, at }, self.value(depth)?))
    }

    fn string(&mut self) -> Result<String, Fault> {
        self.offset += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.offset..];
            let special = |b: u8| matches!(b, b'"' | b'\\' | 0..0x20);
            let plain = rest.bytes().position(special).unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.offset += plain;
            match self.peek() {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => {
                    let fault = Fault::new(self.here(), "a string cannot hold a control character");
                    return Err(fault.with_hint("write it as an escape, such as \\n or \\t"));
                }
                None => return Err(self.unexpected("the closing `\"` of a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let at = self.here();
        self.offset += 1;
        let c = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(at),
            _ => {
                let fault = Fault::new(at, "this is no escape of JSON");
                return Err(fault.with_hint("write a backslash itself as \\\\"));
            }
        };
        self.offset += 1;
        Ok(c)
    }

    /// `\uXXXX`, or two of them for a character beyond U+FFFF; the offset is at the `u`.
    fn unicode_escape(&mut self, at: Position) -> Result<char, Fault> {
        let first = self.code_unit(at)?;
        let mut units = vec![first];
        if matches!(first, 0xD800..=0xDBFF) && self.text[self.offset..].starts_with("\\u") {
            self.offset += 1;
            units.push(self.code_unit(at)?);
        }
        let mut chars = char::decode_utf16(units);
        match (chars.next(), chars.next()) {
            (Some(Ok(c)), None) => Ok(c),
            _ => Err(Fault::new(at, "this escape is half of a surrogate pair")),
        }
    }

    fn code_unit(&mut self, at: Position) -> Result<u16, Fault> {
        let digits = self.text.get(self.offset + 1..self.offset + 5);
        let hex = digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = hex.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        self.offset += 5;
        unit.ok_or_else(|| Fault::new(at, "\\u needs four hexadecimal digits"))
    }

    fn number(&mut self) -> Result<String, Fault> {
        let (start, at) = (self.offset, self.here());
        self.accept(b'-');
        if self.accept(b'0') {
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(Fault::new(at, "a number cannot start with 0"));
            }
        } else {
            self.digits()?;
        }
        if self.accept(b'.') {
            self.digits()?;
        }
        if self.accept(b'e') || self.accept(b'E') {
            let _signed = self.accept(b'+') || self.accept(b'-');
            self.digits()?;
        }
        let text = &self.text[start..self.offset];
        if !scalar::is_in_range(text) {
            return Err(scalar::out_of_range(at));
        }
        Ok(text.to_owned())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let rest = &self.text.as_bytes()[self.offset..];
        let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.offset += count;
        if count == 0 {
            return Err(self.unexpected("a digit"));
        }
        Ok(())
    }

    fn unexpected(&mut self, expected: &str) -> Fault {
        let at = self.here();
        let Some(found) = self.text[self.offset..].chars().next() else {
            let message = format!("expected {expected}, but the text ends here");
            return Fault::new(at, message);
        };
        let before = self.text[..self.offset].trim_end();
        let fault = Fault::new(at, format!("expected {expected}, found {found:?}"));
        match found {
            '\u{FEFF}' => fault.with_hint("save the file without a byte order mark"),
            '\'' => fault.with_hint("JSON strings stand in double quotes"),
            '/' | '#' => fault.with_hint("JSON has no comments; a YAML file may have them"),
            ']' | '}' if before.ends_with(',') => fault.with_hint("remove the comma before it"),
            _ => fault,
        }
    }
}

/// A tree as compact JSON text.
pub(super) fn write(node: &Node) -> String {
    let mut out = String::new();
    write_node(node, &mut out);
    out
}

fn write_node(node: &Node, out: &mut String) {
    match &node.value {
        Content::Null => out.push_str("null"),
        Content::Bool(true) => out.push_str("true"),
        Content::Bool(false) => out.push_str("false"),
        Content::Number(text) => out.push_str(text),
        Content::String(text) => write_string(text, out),
        Content::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_node(item, out);
            }
            out.push(']');
        }
        Content::Map(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_string(&key.text, out);
                out.push(':');
                write_node(value, out);
            }
            out.push('}');
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..'\u{20}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
}
