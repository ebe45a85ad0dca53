//! One pass over an event that keeps the values at the paths patterns read and skips the rest.

use super::input::{EventData, Input, Source};
use super::leaves::{Kind, Leaves, NO_ELEMENT};
use super::limits::{EventLimits, LimitReached};
use super::paths::{NodeId, Paths, ROOT};
use super::scan;
use crate::event::Value;

/// Fills `leaves` with what `input` has at `paths`. Bytes that turn out not to be JSON have no
/// fields.
pub(crate) fn walk(
    input: &Input<'_>,
    paths: &Paths,
    limits: &EventLimits,
    leaves: &mut Leaves,
) -> Result<(), LimitReached> {
    leaves.begin(paths.len());
    let bytes = input.bytes();
    if u32::try_from(bytes.len()).is_err() {
        return Err(LimitReached::Work {
            work_max: limits.work_max,
        });
    }
    let mut walker = Walker {
        bytes,
        paths,
        limits,
        leaves,
    };
    let outcome = match input.source {
        Source::Document(_) => walker.document(),
        Source::Event { event, data } => {
            walker.attributes(event.attributes());
            walker.data(data)
        }
    };
    match outcome {
        Ok(()) => Ok(()),
        Err(Stop::Malformed) => {
            leaves.begin(paths.len());
            Ok(())
        }
        Err(Stop::Limit(limit)) => Err(limit),
    }
}

/// Why a walk ends before the end.
enum Stop {
    Malformed,
    Limit(LimitReached),
}

struct Walker<'w> {
    bytes: &'w [u8],
    paths: &'w Paths,
    limits: &'w EventLimits,
    leaves: &'w mut Leaves,
}

/// Where in the paths and lists a value stands.
#[derive(Clone, Copy)]
struct Place {
    node: NodeId,
    element: u32,
    depth: usize,
}

impl Walker<'_> {
    fn document(&mut self) -> Result<(), Stop> {
        let start = scan::skip_space(self.bytes, 0);
        if self.bytes.get(start) != Some(&b'{') {
            return Ok(());
        }
        self.object(start, TOP)?;
        Ok(())
    }

    fn attributes(&mut self, attributes: &[crate::event::Attribute]) {
        for (index, attribute) in attributes.iter().enumerate() {
            let node = self.paths.child(ROOT, attribute.name.as_bytes());
            let Some(path) = node.and_then(|node| self.paths.path_at(node)) else {
                continue;
            };
            let (kind, span) = match &attribute.value {
                Value::String(_) => (Kind::Attribute, (index, index)),
                Value::Boolean(true) => (Kind::True, (0, 0)),
                Value::Boolean(false) => (Kind::False, (0, 0)),
                Value::Integer(number) => {
                    let start = self.leaves.decoded.len();
                    let text = number.to_string();
                    self.leaves.decoded.extend_from_slice(text.as_bytes());
                    (Kind::DecodedNumber, (start, self.leaves.decoded.len()))
                }
            };
            self.leaves.push(path, NO_ELEMENT, kind, span);
        }
    }

    fn data(&mut self, data: EventData<'_>) -> Result<(), Stop> {
        let Some(node) = self.paths.child(ROOT, b"data") else {
            return Ok(());
        };
        let place = Place { node, ..TOP };
        match data {
            EventData::None => Ok(()),
            EventData::Text(text) => self.leaf(place, Kind::Text, (0, text.len())),
            EventData::Json(bytes) => {
                self.value(scan::skip_space(bytes, 0), place)?;
                Ok(())
            }
        }
    }

    /// Reads the value that begins at `start` and gives the place after it.
    fn value(&mut self, start: usize, place: Place) -> Result<usize, Stop> {
        if matches!(self.bytes.get(start), Some(b'{' | b'[')) {
            self.leaves.note_container(self.paths.path_at(place.node));
        }
        let (kind, end) = match self.bytes.get(start) {
            Some(b'{') if self.paths.continues(place.node) => return self.object(start, place),
            Some(b'{') => return scan::skip_container(self.bytes, start).ok_or(Stop::Malformed),
            Some(b'[') => return self.array(start, place),
            Some(b'"') => return self.string(start + 1, place),
            Some(b'n') => (Kind::Null, scan::word_end(self.bytes, start)),
            Some(b't') => (Kind::True, scan::word_end(self.bytes, start)),
            Some(b'f') => (Kind::False, scan::word_end(self.bytes, start)),
            Some(b'-' | b'0'..=b'9') => (Kind::Number, scan::word_end(self.bytes, start)),
            _ => return Err(Stop::Malformed),
        };
        self.leaf(place, kind, (start, end))?;
        Ok(end)
    }

    fn leaf(&mut self, place: Place, kind: Kind, span: (usize, usize)) -> Result<(), Stop> {
        let Some(path) = self.paths.path_at(place.node) else {
            return Ok(());
        };
        if self.leaves.leaves.len() >= self.limits.leaves_max {
            let leaves_max = self.limits.leaves_max;
            return Err(Stop::Limit(LimitReached::Leaves { leaves_max }));
        }
        self.leaves.push(path, place.element, kind, span);
        Ok(())
    }

    fn string(&mut self, start: usize, place: Place) -> Result<usize, Stop> {
        let found = scan::string_end(self.bytes, start).ok_or(Stop::Malformed)?;
        if !found.escaped {
            self.leaf(place, Kind::Text, (start, found.end))?;
        } else if self.paths.path_at(place.node).is_some() {
            let decoded = self.leaves.decoded.len();
            scan::unescape(&self.bytes[start..found.end], &mut self.leaves.decoded);
            let span = (decoded, self.leaves.decoded.len());
            self.leaf(place, Kind::DecodedText, span)?;
        }
        Ok(found.end + 1)
    }

    fn object(&mut self, start: usize, place: Place) -> Result<usize, Stop> {
        let depth = self.deeper(place)?;
        let mut at = scan::skip_space(self.bytes, start + 1);
        if self.bytes.get(at) == Some(&b'}') {
            return Ok(at + 1);
        }
        loop {
            if self.bytes.get(at) != Some(&b'"') {
                return Err(Stop::Malformed);
            }
            let key = scan::string_end(self.bytes, at + 1).ok_or(Stop::Malformed)?;
            let child = self.child(place.node, at + 1, key);
            at = scan::skip_space(self.bytes, key.end + 1);
            if self.bytes.get(at) != Some(&b':') {
                return Err(Stop::Malformed);
            }
            at = scan::skip_space(self.bytes, at + 1);
            at = match child {
                Some(node) => {
                    let inner = Place {
                        node,
                        depth,
                        ..place
                    };
                    self.value(at, inner)?
                }
                None => self.skip(at)?,
            };
            at = scan::skip_space(self.bytes, at);
            match self.bytes.get(at) {
                Some(b',') => at = scan::skip_space(self.bytes, at + 1),
                Some(b'}') => return Ok(at + 1),
                _ => return Err(Stop::Malformed),
            }
        }
    }

    fn child(&mut self, node: NodeId, start: usize, key: scan::StringEnd) -> Option<NodeId> {
        let text = &self.bytes[start..key.end];
        if !key.escaped {
            return self.paths.descend(node, text);
        }
        let before = self.leaves.decoded.len();
        scan::unescape(text, &mut self.leaves.decoded);
        let child = self.paths.descend(node, &self.leaves.decoded[before..]);
        self.leaves.decoded.truncate(before);
        child
    }

    fn array(&mut self, start: usize, place: Place) -> Result<usize, Stop> {
        let depth = self.deeper(place)?;
        let mut at = scan::skip_space(self.bytes, start + 1);
        if self.bytes.get(at) == Some(&b']') {
            return Ok(at + 1);
        }
        let array = self.leaves.push_array(place.node, place.element);
        loop {
            let opens = matches!(self.bytes.get(at), Some(b'{' | b'['));
            let element = if opens {
                self.leaves.push_element(array, place.element)
            } else {
                place.element
            };
            let inner = Place {
                element,
                depth,
                ..place
            };
            at = self.value(at, inner)?;
            at = scan::skip_space(self.bytes, at);
            match self.bytes.get(at) {
                Some(b',') => at = scan::skip_space(self.bytes, at + 1),
                Some(b']') => return Ok(at + 1),
                _ => return Err(Stop::Malformed),
            }
        }
    }

    fn deeper(&self, place: Place) -> Result<usize, Stop> {
        let depth_max = self.limits.depth_max;
        if place.depth >= depth_max {
            return Err(Stop::Limit(LimitReached::Depth { depth_max }));
        }
        Ok(place.depth + 1)
    }

    fn skip(&self, start: usize) -> Result<usize, Stop> {
        match self.bytes.get(start) {
            Some(b'{' | b'[') => scan::skip_container(self.bytes, start).ok_or(Stop::Malformed),
            Some(b'"') => scan::string_end(self.bytes, start + 1)
                .map(|found| found.end + 1)
                .ok_or(Stop::Malformed),
            Some(_) => Ok(scan::word_end(self.bytes, start)),
            None => Err(Stop::Malformed),
        }
    }
}

const TOP: Place = Place {
    node: ROOT,
    element: NO_ELEMENT,
    depth: 0,
};
