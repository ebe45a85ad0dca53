//! Long inputs of one JSON text a line, read in chunks of whole lines.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use bytes::Bytes;

/// Bytes read at once.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;
/// Longest line read, in bytes.
const LINE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Stands for standard input in place of a path.
pub(super) const STDIN: &str = "-";

/// An input, chunk by chunk.
pub(super) struct Chunks {
    input: Box<dyn Read>,
    /// The beginning of a line whose end has not been read.
    rest: Vec<u8>,
    has_ended: bool,
}

impl Chunks {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let input: Box<dyn Read> = if path == Path::new(STDIN) {
            Box::new(io::stdin().lock())
        } else {
            Box::new(File::open(path)?)
        };
        Ok(Self::new(input))
    }

    fn new(input: Box<dyn Read>) -> Self {
        Self {
            input,
            rest: Vec::new(),
            has_ended: false,
        }
    }

    /// The next whole lines; the last line may lack its line break.
    ///
    /// # Errors
    /// When the input cannot be read, or a line is longer than any that is meant.
    pub(super) fn next(&mut self) -> io::Result<Option<Bytes>> {
        while !self.has_ended {
            let before = self.rest.len();
            let limit = CHUNK_BYTES as u64;
            let read = self
                .input
                .by_ref()
                .take(limit)
                .read_to_end(&mut self.rest)?;
            self.has_ended = read < CHUNK_BYTES;
            if let Some(end) = memchr::memrchr(b'\n', &self.rest[before..]) {
                let rest = self.rest.split_off(before + end + 1);
                return Ok(Some(std::mem::replace(&mut self.rest, rest).into()));
            }
            if self.rest.len() > LINE_BYTES_MAX {
                let message = format!("a line has more than {LINE_BYTES_MAX} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
        let last = std::mem::take(&mut self.rest);
        Ok((!last.is_empty()).then(|| last.into()))
    }
}

/// The lines of a chunk without their line breaks, blank ones included.
pub(super) fn lines(chunk: &Bytes) -> impl Iterator<Item = Bytes> {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start == chunk.len() {
            return None;
        }
        let length = memchr::memchr(b'\n', &chunk[start..]);
        let end = length.map_or(chunk.len(), |length| start + length);
        let line = chunk.slice(start..end);
        start = (end + 1).min(chunk.len());
        Some(match line.last() {
            Some(b'\r') => line.slice(..line.len() - 1),
            _ => line,
        })
    })
}

/// Whether a line holds nothing.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: Vec<u8>) -> Vec<Bytes> {
        let mut chunks = Chunks::new(Box::new(io::Cursor::new(text)));
        let mut all = Vec::new();
        while let Some(chunk) = chunks.next().unwrap() {
            all.extend(lines(&chunk));
        }
        all
    }

    #[test]
    fn lines_keep_their_order_and_lose_their_breaks() {
        assert_eq!(read(b"a\n\nb\r\nc".to_vec()), ["a", "", "b", "c"]);
        assert_eq!(read(b"a\n".to_vec()), ["a"]);
        assert!(read(Vec::new()).is_empty());
    }

    #[test]
    fn lines_longer_than_a_chunk_stay_whole() {
        let long = "x".repeat(CHUNK_BYTES * 2 + 1);
        let text = format!("a\n{long}\nb\n");

        let read = read(text.into_bytes());

        assert_eq!(read.len(), 3);
        assert_eq!(read[1], long);
    }
}
