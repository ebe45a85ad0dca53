//! A strict scanner for JSON text (RFC 8259): it checks every byte and yields where values lie.
//!
//! It builds nothing and does not recurse, so neither size nor depth of the input costs memory.

use std::borrow::Cow;

use crate::event::json::string;

/// Arrays and objects inside one another at most, the event itself being the first. Data thus
/// nests 127 deep, which is what `serde_json` reads as well.
pub const DEPTH_MAX: usize = 128;

/// Why a text is no JSON, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {at}")]
pub struct Malformed {
    /// What is wrong.
    pub fault: Fault,
    /// The offset in bytes, from 0.
    pub at: usize,
}

/// What makes a text no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text ends before the document does.
    #[error("unexpected end")]
    UnexpectedEnd,
    /// A byte that cannot stand here.
    #[error("unexpected character")]
    UnexpectedCharacter,
    /// Something follows the document.
    #[error("text after the document")]
    TrailingText,
    /// A sequence of bytes that is not UTF-8.
    #[error("invalid UTF-8")]
    NotUtf8,
    /// A raw control character inside a string.
    #[error("control character in a string")]
    ControlCharacter,
    /// A backslash with something else than an escape after it.
    #[error("invalid escape")]
    Escape,
    /// An escaped UTF-16 surrogate without its partner.
    #[error("unpaired surrogate")]
    LoneSurrogate,
    /// More than [`DEPTH_MAX`] arrays and objects inside one another.
    #[error("more than {DEPTH_MAX} arrays and objects inside one another")]
    TooDeep,
}

/// Where a value lies and what it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub kind: Kind,
    /// The first byte of the value, a string's quote included.
    pub start: usize,
    /// The byte after its last one.
    pub end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean(bool),
    /// `integral` has neither fraction nor exponent.
    Number {
        integral: bool,
    },
    /// `escaped` has a backslash.
    String {
        escaped: bool,
    },
    Array,
    Object,
}

/// A position in a text that is known to be UTF-8.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// The arrays and objects that are open, one bit each: 1 is an object.
struct Levels {
    objects: u128,
    open: usize,
    max: usize,
}

impl Levels {
    fn push(&mut self, object: bool) -> Result<(), Fault> {
        if self.open == self.max {
            return Err(Fault::TooDeep);
        }
        self.objects = self.objects << 1 | u128::from(object);
        self.open += 1;
        Ok(())
    }

    fn pop(&mut self) {
        self.objects >>= 1;
        self.open -= 1;
    }

    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8]) -> Result<Self, Malformed> {
        match std::str::from_utf8(text) {
            Ok(text) => Ok(Self { text, at: 0 }),
            Err(error) => Err(Malformed {
                fault: Fault::NotUtf8,
                at: error.valid_up_to(),
            }),
        }
    }

    /// The text of a token.
    pub fn raw(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    /// The characters that a string token stands for.
    pub fn string(&self, token: Token, escaped: bool) -> Cow<'a, str> {
        let inside = &self.text[token.start + 1..token.end - 1];
        if escaped {
            Cow::Owned(string::unescape(inside))
        } else {
            Cow::Borrowed(inside)
        }
    }

    /// Goes past white space and this byte, if it is the next one.
    pub fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Goes past white space and this byte, which must come.
    pub fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        self.expected(byte).map_err(|fault| self.here(fault))
    }

    /// Nothing but white space may follow.
    pub fn end(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.here(Fault::TrailingText)),
        }
    }

    /// Goes past the key of a member and its colon.
    pub fn key(&mut self) -> Result<Cow<'a, str>, Malformed> {
        self.peek();
        let start = self.at;
        match self.raw_key() {
            Ok((end, escaped)) => {
                let kind = Kind::String { escaped };
                Ok(self.string(Token { kind, start, end }, escaped))
            }
            Err(fault) => Err(self.here(fault)),
        }
    }

    /// Goes past one value, in which at most `levels_max` arrays and objects lie in one another.
    pub fn value(&mut self, levels_max: usize) -> Result<Token, Malformed> {
        let first = self.peek();
        let start = self.at;
        let kind = match first {
            Some(b'{') => self.container(levels_max).map(|()| Kind::Object),
            Some(b'[') => self.container(levels_max).map(|()| Kind::Array),
            other => self.scalar(other),
        };
        match kind {
            Ok(kind) => Ok(Token {
                kind,
                start,
                end: self.at,
            }),
            Err(fault) => Err(self.here(fault)),
        }
    }

    // Below, a fault is where the scanner stands: one byte to hand up, where speed counts.

    /// The next byte that is no white space, without going past it.
    #[inline(always)]
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            let byte = *bytes.get(self.at)?;
            if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Goes past an array or object.
    fn container(&mut self, levels_max: usize) -> Result<(), Fault> {
        // On a copy, so that the position stays in a register: twice as fast.
        let mut copy = Self { ..*self };
        let result = copy.levels(levels_max);
        self.at = copy.at;
        result
    }

    #[inline(always)]
    fn levels(&mut self, levels_max: usize) -> Result<(), Fault> {
        debug_assert!(levels_max <= DEPTH_MAX, "the open levels fit their bits");
        let mut levels = Levels {
            objects: 0,
            open: 0,
            max: levels_max,
        };
        loop {
            let opened = match self.peek() {
                Some(b'{') => self.open(&mut levels, b'}')?,
                Some(b'[') => self.open(&mut levels, b']')?,
                other => {
                    self.scalar(other)?;
                    false
                }
            };
            if !opened && self.close(&mut levels)? {
                return Ok(());
            }
        }
    }

    /// Enters an array or object; `false` when it is empty and left at once.
    #[inline(always)]
    fn open(&mut self, levels: &mut Levels, closing: u8) -> Result<bool, Fault> {
        let object = closing == b'}';
        levels.push(object)?;
        self.at += 1;
        if self.take(closing) {
            levels.pop();
            return Ok(false);
        }
        if object {
            self.peek();
            self.raw_key()?;
        }
        Ok(true)
    }

    /// After a value: leaves what closes here and goes past the comma to the next value;
    /// `true` when nothing is open any more.
    #[inline(always)]
    fn close(&mut self, levels: &mut Levels) -> Result<bool, Fault> {
        while levels.open > 0 {
            let object = levels.in_object();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    if object {
                        self.peek();
                        self.raw_key()?;
                    }
                    return Ok(false);
                }
                Some(b'}') if object => self.at += 1,
                Some(b']') if !object => self.at += 1,
                _ => return Err(self.unexpected()),
            }
            levels.pop();
        }
        Ok(true)
    }

    /// Goes past a key that begins here, and its colon; gives where the key ends and whether it
    /// has escapes.
    #[inline(always)]
    fn raw_key(&mut self) -> Result<(usize, bool), Fault> {
        if !self.take_raw(b"\"") {
            return Err(self.unexpected());
        }
        let escaped = self.string_rest()?;
        let end = self.at;
        self.expected(b':')?;
        Ok((end, escaped))
    }

    #[inline(always)]
    fn expected(&mut self, byte: u8) -> Result<(), Fault> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    /// Goes past a value that is neither array nor object and begins with this byte.
    #[inline(always)]
    fn scalar(&mut self, first: Option<u8>) -> Result<Kind, Fault> {
        match first {
            Some(b'"') => {
                self.at += 1;
                let escaped = self.string_rest()?;
                Ok(Kind::String { escaped })
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Kind::Boolean(true)),
            Some(b'f') => self.word("false", Kind::Boolean(false)),
            Some(b'n') => self.word("null", Kind::Null),
            _ => Err(self.unexpected()),
        }
    }

    #[inline(always)]
    fn word(&mut self, word: &str, kind: Kind) -> Result<Kind, Fault> {
        for byte in word.bytes() {
            if self.text.as_bytes().get(self.at) != Some(&byte) {
                return Err(self.unexpected());
            }
            self.at += 1;
        }
        Ok(kind)
    }

    #[inline(always)]
    fn number(&mut self) -> Result<Kind, Fault> {
        self.take_raw(b"-");
        if !self.take_raw(b"0") {
            self.digits()?;
        }
        let mut integral = true;
        if self.take_raw(b".") {
            integral = false;
            self.digits()?;
        }
        if self.take_raw(b"eE") {
            integral = false;
            self.take_raw(b"+-");
            self.digits()?;
        }
        Ok(Kind::Number { integral })
    }

    /// One digit or more.
    #[inline(always)]
    fn digits(&mut self) -> Result<(), Fault> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        while bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.unexpected());
        }
        Ok(())
    }

    /// Goes past the next byte if it is one of these.
    #[inline(always)]
    fn take_raw(&mut self, allowed: &[u8]) -> bool {
        let next = self.text.as_bytes().get(self.at);
        let found = next.is_some_and(|byte| allowed.contains(byte));
        self.at += usize::from(found);
        found
    }

    /// Goes past a string whose opening quote is behind; tells whether it has escapes.
    #[inline(always)]
    fn string_rest(&mut self) -> Result<bool, Fault> {
        let bytes = self.text.as_bytes();
        self.at = string::plain_end(bytes, self.at);
        if bytes.get(self.at) == Some(&b'"') {
            self.at += 1;
            return Ok(false);
        }
        match string::escaped_end(self.text.as_bytes(), self.at) {
            Ok(end) => {
                self.at = end;
                Ok(true)
            }
            Err(Malformed { fault, at }) => {
                self.at = at;
                Err(fault)
            }
        }
    }

    #[inline(always)]
    fn unexpected(&self) -> Fault {
        if self.at < self.text.len() {
            Fault::UnexpectedCharacter
        } else {
            Fault::UnexpectedEnd
        }
    }

    fn here(&self, fault: Fault) -> Malformed {
        Malformed { fault, at: self.at }
    }
}
