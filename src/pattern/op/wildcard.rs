//! `wildcard`: `*` for any run of characters, also none; `\*` and `\\` for the characters themselves.

use std::fmt;

use memchr::memmem;

use crate::pattern::error::{Error, Fault};
use crate::pattern::limits::Limits;
use crate::pattern::text::Node;

/// The literal pieces between the stars: one more than there are stars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard {
    pieces: Box<[Box<str>]>,
}

/// Reads the operand of `wildcard`.
pub(crate) fn parse(node: &Node<'_>, limits: &Limits) -> Result<Wildcard, Error> {
    let text = node.text("wildcard")?;
    let wildcard = Wildcard::read(text).map_err(|kind| node.fault(kind))?;
    if wildcard.stars() > limits.stars_max {
        return Err(node.fault(Fault::TooManyStars {
            found: wildcard.stars(),
            max: limits.stars_max,
        }));
    }
    Ok(wildcard)
}

impl Wildcard {
    fn read(text: &str) -> Result<Self, Fault> {
        let mut pieces = Vec::new();
        let mut piece = String::new();
        let mut letters = text.chars().enumerate().peekable();
        while let Some((position, letter)) = letters.next() {
            match (letter, letters.peek().map(|(_, next)| *next)) {
                ('*', Some('*')) => return Err(Fault::WildcardConsecutive { position }),
                ('*', _) => pieces.push(std::mem::take(&mut piece).into_boxed_str()),
                ('\\', Some(escaped @ ('*' | '\\'))) => {
                    piece.push(escaped);
                    letters.next();
                }
                ('\\', _) => return Err(Fault::WildcardEscape { position }),
                _ => piece.push(letter),
            }
        }
        pieces.push(piece.into_boxed_str());
        Ok(Self {
            pieces: pieces.into_boxed_slice(),
        })
    }

    /// `*` in the text.
    pub fn stars(&self) -> usize {
        self.pieces.len() - 1
    }

    /// The literal pieces; the first begins the value and the last ends it.
    pub fn pieces(&self) -> &[Box<str>] {
        &self.pieces
    }

    /// With only `*`, taking each inner piece at its first place leaves the most for the rest, so
    /// one pass decides.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        let [first, inner @ .., last] = &*self.pieces else {
            return text == self.pieces[0].as_bytes();
        };
        let Some(rest) = text.strip_prefix(first.as_bytes()) else {
            return false;
        };
        let Some(mut rest) = rest.strip_suffix(last.as_bytes()) else {
            return false;
        };
        for piece in inner {
            match memmem::find(rest, piece.as_bytes()) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        true
    }
}

impl fmt::Display for Wildcard {
    /// The text as in a pattern, before JSON quoting.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, piece) in self.pieces.iter().enumerate() {
            if index > 0 {
                out.write_str("*")?;
            }
            out.write_str(&piece.replace('\\', "\\\\").replace('*', "\\*"))?;
        }
        Ok(())
    }
}
