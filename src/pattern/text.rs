//! A strict JSON reader for pattern text that keeps what a generic value loses: the order of keys,
//! repeated keys, the spelling of numbers, and where everything stands.

use super::error::{Error, Fault, JsonFault};

/// One JSON value and where it stands.
#[derive(Debug)]
pub(crate) struct Node<'t> {
    pub(crate) value: Json<'t>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A JSON value; numbers as written, members in order.
#[derive(Debug)]
pub(crate) enum Json<'t> {
    Null,
    Bool(bool),
    Number(&'t str),
    String(String),
    Array(Vec<Node<'t>>),
    Object(Vec<(String, Node<'t>)>),
}

/// Reads one JSON text that nests at most `depth_max` deep.
pub(crate) fn read(text: &str, depth_max: usize) -> Result<Node<'_>, Error> {
    let mut reader = Reader {
        text,
        position: 0,
        depth: 0,
        depth_max,
    };
    reader.skip_space();
    let node = reader.value()?;
    reader.skip_space();
    if reader.position < text.len() {
        return Err(reader.fault(JsonFault::Trailing));
    }
    Ok(node)
}

struct Reader<'t> {
    text: &'t str,
    position: usize,
    depth: usize,
    depth_max: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    fn fault(&self, fault: JsonFault) -> Error {
        let fault = if self.position >= self.text.len() && fault == JsonFault::Unexpected {
            JsonFault::End
        } else {
            fault
        };
        Error {
            pointer: String::new(),
            offset: self.position.min(self.text.len()),
            kind: Fault::Json(fault),
        }
    }

    fn value(&mut self) -> Result<Node<'t>, Error> {
        let start = self.position;
        let value = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Json::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Json::Number(self.number()?),
            Some(b't') => self.word("true", Json::Bool(true))?,
            Some(b'f') => self.word("false", Json::Bool(false))?,
            Some(b'n') => self.word("null", Json::Null)?,
            _ => return Err(self.fault(JsonFault::Unexpected)),
        };
        Ok(Node {
            value,
            start,
            end: self.position,
        })
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Json<'t>, Error>,
    ) -> Result<Json<'t>, Error> {
        if self.depth == self.depth_max {
            return Err(Error {
                pointer: String::new(),
                offset: self.position,
                kind: Fault::TooComplex {
                    measure: "objects and lists inside one another",
                    found: self.depth + 1,
                    max: self.depth_max,
                },
            });
        }
        self.depth += 1;
        self.position += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Json<'t>, Error> {
        let mut members = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.fault(JsonFault::Unexpected));
            }
            let key = self.string()?;
            self.skip_space();
            self.expect(b':')?;
            self.skip_space();
            members.push((key, self.value()?));
            self.skip_space();
            if self.take(b'}') {
                return Ok(Json::Object(members));
            }
            self.expect(b',')?;
        }
    }

    fn array(&mut self) -> Result<Json<'t>, Error> {
        let mut members = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Json::Array(members));
        }
        loop {
            self.skip_space();
            members.push(self.value()?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Json::Array(members));
            }
            self.expect(b',')?;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Error> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.fault(JsonFault::Unexpected))
        }
    }

    fn word(&mut self, word: &str, value: Json<'t>) -> Result<Json<'t>, Error> {
        if !self.text[self.position..].starts_with(word) {
            return Err(self.fault(JsonFault::Unexpected));
        }
        self.position += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<&'t str, Error> {
        let start = self.position;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'0'..=b'9' | b'.')) {
            return Err(self.fault(JsonFault::Number));
        }
        Ok(&self.text[start..self.position])
    }

    fn digits(&mut self) -> Result<(), Error> {
        let start = self.position;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.position += 1;
        }
        if self.position == start {
            return Err(self.fault(JsonFault::Number));
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, Error> {
        self.position += 1;
        let mut value = String::new();
        loop {
            let start = self.position;
            while self
                .peek()
                .is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
            {
                self.position += 1;
            }
            value.push_str(&self.text[start..self.position]);
            match self.peek() {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(value);
                }
                Some(b'\\') => value.push(self.escape()?),
                Some(_) => return Err(self.fault(JsonFault::Control)),
                None => return Err(self.fault(JsonFault::End)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        self.position += 1;
        let letter = match self.peek() {
            Some(b'u') => return self.unicode_escape(),
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.fault(JsonFault::Escape)),
        };
        self.position += 1;
        Ok(letter)
    }

    fn unicode_escape(&mut self) -> Result<char, Error> {
        let high = self.code_unit()?;
        if let Some(letter) = char::from_u32(high) {
            return Ok(letter);
        }
        let is_high = (0xD800..0xDC00).contains(&high);
        if !is_high || !self.text[self.position..].starts_with("\\u") {
            return Err(self.fault(JsonFault::Surrogate));
        }
        self.position += 1;
        let low = self.code_unit()?;
        if !(0xDC00..0xE000).contains(&low) {
            return Err(self.fault(JsonFault::Surrogate));
        }
        let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        char::from_u32(code).ok_or_else(|| self.fault(JsonFault::Surrogate))
    }

    /// The four digits after the `u` that stands here.
    fn code_unit(&mut self) -> Result<u32, Error> {
        let digits = self
            .text
            .as_bytes()
            .get(self.position + 1..self.position + 5)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .ok_or_else(|| self.fault(JsonFault::Escape))?;
        self.position += 5;
        Ok(digits.iter().fold(0, |code, digit| {
            code * 16 + char::from(*digit).to_digit(16).unwrap_or(0)
        }))
    }
}
