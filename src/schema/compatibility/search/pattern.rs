//! Strings that a regular expression matches, for the constructs that schemas use.
//!
//! A sampler and no engine: what it does not understand it skips, and every string is checked by
//! the real engine before it counts.

/// Deepest nesting of groups.
const DEPTH_MAX: usize = 16;

/// Longest string built.
const LENGTH_MAX: usize = 512;

/// One part of a sequence with how often it may come.
#[derive(Debug)]
struct Piece {
    what: What,
    min: usize,
    max: Option<usize>,
}

#[derive(Debug)]
enum What {
    /// One of these characters.
    Class(Vec<char>),
    /// One of these sequences.
    Group(Vec<Vec<Piece>>),
    Start,
    End,
    /// A place at the edge of a word, or not at one.
    Boundary,
}

/// Up to `count` strings that `pattern` should match, some of them of the wanted lengths.
pub(super) fn samples(pattern: &str, lengths: &[usize], count: usize) -> Vec<String> {
    let Some(branches) = parse(pattern) else {
        return Vec::new();
    };
    let mut texts = Vec::new();
    for seed in 0..count as u64 {
        let mut choice = Choice {
            state: seed,
            extra: seed as usize % 4,
        };
        let index = seed as usize % branches.len().max(1);
        let mut text = String::new();
        if let Some(branch) = branches.get(index) {
            choice.write(branch, &mut text);
        }
        // What the pattern leaves open around the match.
        let is_open = |end: &str| {
            branches.iter().flatten().all(|piece| match piece.what {
                What::Start => end != "^",
                What::End => end != "$",
                What::Class(_) | What::Group(_) | What::Boundary => true,
            })
        };
        if seed % 3 == 1 && is_open("$") {
            text.push('z');
        }
        if seed % 3 == 2 && is_open("^") {
            text.insert(0, 'z');
        }
        texts.push(text);
    }
    let stretched: Vec<String> = lengths
        .iter()
        .filter_map(|length| branches.iter().find_map(|branch| stretch(branch, *length)))
        .collect();
    texts.extend(stretched);
    texts.retain(|text| text.len() <= LENGTH_MAX);
    texts.dedup();
    texts
}

/// Whether `pattern` matches every string; yes only where it is certain.
pub(in crate::schema::compatibility) fn matches_everything(pattern: &str) -> bool {
    parse(pattern).is_some_and(|branches| {
        branches.iter().any(|branch| {
            let has = |anchor: &str| {
                branch.iter().any(|piece| match piece.what {
                    What::Start => anchor == "^",
                    What::End => anchor == "$",
                    What::Class(_) | What::Group(_) | What::Boundary => false,
                })
            };
            // An empty match is everywhere, and at either end, but not at both ends at once.
            !(has("^") && has("$"))
                && branch
                    .iter()
                    .all(|piece| is_anchor(piece) || may_be_empty(piece))
        })
    })
}

fn is_anchor(piece: &Piece) -> bool {
    matches!(piece.what, What::Start | What::End)
}

/// Whether a piece matches the empty string wherever it stands.
fn may_be_empty(piece: &Piece) -> bool {
    let is_inside = match &piece.what {
        What::Group(branches) => branches
            .iter()
            .any(|branch| branch.iter().all(may_be_empty)),
        What::Class(_) | What::Start | What::End | What::Boundary => false,
    };
    piece.min == 0 || is_inside
}

fn parse(pattern: &str) -> Option<Vec<Vec<Piece>>> {
    let mut parser = Parser {
        rest: pattern.chars().collect(),
        at: 0,
        depth: 0,
    };
    parser
        .alternatives()
        .filter(|_| parser.at == parser.rest.len())
}

/// A string of exactly `length` characters, by repeating each repeatable piece in turn.
fn stretch(branch: &[Piece], length: usize) -> Option<String> {
    (0..branch.len()).rev().find_map(|longest| {
        (0..=length).find_map(|extra| {
            let mut text = String::new();
            for (index, piece) in branch.iter().enumerate() {
                let times = if index == longest {
                    piece.min + extra
                } else {
                    piece.min
                };
                let times = piece.max.map_or(times, |max| times.min(max));
                let mut choice = Choice { state: 0, extra: 0 };
                (0..times).for_each(|_| choice.write_one(&piece.what, &mut text));
                if text.len() > LENGTH_MAX {
                    return None;
                }
            }
            (text.chars().count() == length).then_some(text)
        })
    })
}

/// A repeatable source of choices.
struct Choice {
    state: u64,
    extra: usize,
}

impl Choice {
    fn below(&mut self, count: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if count == 0 {
            0
        } else {
            (self.state >> 33) as usize % count
        }
    }

    fn write(&mut self, branch: &[Piece], text: &mut String) {
        for piece in branch {
            let most = piece.max.unwrap_or(piece.min + 3).max(piece.min);
            let times = (piece.min + self.extra).min(most);
            for _ in 0..times {
                if text.len() > LENGTH_MAX {
                    return;
                }
                self.write_one(&piece.what, text);
            }
        }
    }

    fn write_one(&mut self, what: &What, text: &mut String) {
        match what {
            What::Class(letters) => {
                let index = if self.state == 0 {
                    0
                } else {
                    self.below(letters.len())
                };
                text.extend(letters.get(index));
            }
            What::Group(branches) => {
                let index = if self.state == 0 {
                    0
                } else {
                    self.below(branches.len())
                };
                if let Some(branch) = branches.get(index) {
                    self.write(branch, text);
                }
            }
            What::Start | What::End | What::Boundary => {}
        }
    }
}

struct Parser {
    rest: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        Some(letter)
    }

    fn eat(&mut self, letter: char) -> bool {
        let is_there = self.peek() == Some(letter);
        self.at += usize::from(is_there);
        is_there
    }

    fn alternatives(&mut self) -> Option<Vec<Vec<Piece>>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let mut branches = vec![Vec::new()];
        while let Some(letter) = self.peek() {
            match letter {
                ')' => break,
                '|' => {
                    self.at += 1;
                    branches.push(Vec::new());
                }
                _ => {
                    let piece = self.piece()?;
                    branches.last_mut()?.push(piece);
                }
            }
        }
        self.depth -= 1;
        Some(branches)
    }

    fn piece(&mut self) -> Option<Piece> {
        let what = match self.next()? {
            '^' => What::Start,
            '$' => What::End,
            '.' => What::Class("aZ0 -é".chars().collect()),
            '[' => What::Class(self.class()?),
            '(' => {
                if self.eat('?') && !self.eat(':') {
                    // Named groups; look-around is refused by the validator anyway.
                    self.eat('P');
                    if !self.eat('<') {
                        return None;
                    }
                    while self.next()? != '>' {}
                }
                let branches = self.alternatives()?;
                if !self.eat(')') {
                    return None;
                }
                What::Group(branches)
            }
            '\\' => self.escape()?,
            letter => What::Class(vec![letter]),
        };
        let (min, max) = self.repeat()?;
        Some(Piece { what, min, max })
    }

    fn repeat(&mut self) -> Option<(usize, Option<usize>)> {
        let counts = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                let end = self.rest[self.at..]
                    .iter()
                    .position(|letter| *letter == '}')?;
                let inside: String = self.rest[self.at + 1..self.at + end].iter().collect();
                self.at += end;
                let (min, max) = inside.split_once(',').unwrap_or((&inside, &inside));
                (min.trim().parse().ok()?, max.trim().parse().ok())
            }
            _ => return Some((1, Some(1))),
        };
        self.at += 1;
        self.eat('?');
        Some(counts)
    }

    fn escape(&mut self) -> Option<What> {
        Some(match self.next()? {
            'b' | 'B' => What::Boundary,
            // Anchors to some engines and letters to others.
            'A' | 'z' | 'Z' | 'G' => return None,
            letter => What::Class(self.escaped(letter)?),
        })
    }

    fn escaped(&mut self, letter: char) -> Option<Vec<char>> {
        Some(match letter {
            'd' => "0195".chars().collect(),
            'w' => "aZ0_".chars().collect(),
            's' => vec![' ', '\t'],
            'D' => "a -".chars().collect(),
            'W' => "- .!".chars().collect(),
            'S' => "a0-Z".chars().collect(),
            'n' => vec!['\n'],
            'r' => vec!['\r'],
            't' => vec!['\t'],
            'x' => vec![self.code(2)?],
            'u' => vec![self.code(4)?],
            'p' | 'P' => {
                if self.eat('{') {
                    while self.next()? != '}' {}
                } else {
                    self.next()?;
                }
                "aZé0 -".chars().collect()
            }
            letter => vec![letter],
        })
    }

    fn code(&mut self, digits: usize) -> Option<char> {
        let end = self.at + digits;
        let text: String = self.rest.get(self.at..end)?.iter().collect();
        self.at = end;
        char::from_u32(u32::from_str_radix(&text, 16).ok()?)
    }

    /// The characters of a bracket expression, a few of each range.
    fn class(&mut self) -> Option<Vec<char>> {
        let is_negated = self.eat('^');
        let mut letters: Vec<char> = Vec::new();
        let mut ranges: Vec<(char, char)> = Vec::new();
        let mut is_first = true;
        loop {
            let letter = self.next()?;
            match letter {
                ']' if !is_first || is_negated => break,
                '\\' => {
                    let escaped = self.next()?;
                    letters.extend(self.escaped(escaped)?);
                }
                _ => letters.push(letter),
            }
            is_first = false;
            let is_range = self.peek() == Some('-')
                && self.rest.get(self.at + 1).is_some_and(|next| *next != ']');
            if is_range {
                self.at += 1;
                let end = match self.next()? {
                    '\\' => {
                        let escaped = self.next()?;
                        *self.escaped(escaped)?.first()?
                    }
                    end => end,
                };
                let start = letters.pop()?;
                ranges.push((start, end));
                let middle = u32::midpoint(start as u32, end as u32);
                letters.extend(
                    [Some(start), char::from_u32(middle), Some(end)]
                        .into_iter()
                        .flatten(),
                );
            }
        }
        if !is_negated {
            return (!letters.is_empty()).then_some(letters);
        }
        let is_inside = |letter: char| {
            letters.contains(&letter)
                || ranges
                    .iter()
                    .any(|(start, end)| (*start..=*end).contains(&letter))
        };
        let others: Vec<char> = "aZ0 -_.é/:\u{1F600}"
            .chars()
            .filter(|letter| !is_inside(*letter))
            .collect();
        (!others.is_empty()).then_some(others)
    }
}
