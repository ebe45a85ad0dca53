//! Patterns and events made at random, biased to collide, and a plain evaluator written from
//! `docs/patterns.md`: it shares nothing with the engine, not even a parser, and tries every choice
//! of list elements.

use std::fmt::Write as _;

/// Where random choices come from: a seed, or the bytes of a fuzzer.
pub struct Choices<'b> {
    bytes: &'b [u8],
    state: u64,
}

impl<'b> Choices<'b> {
    pub fn from_seed(seed: u64) -> Self {
        Self {
            bytes: &[],
            state: seed,
        }
    }

    #[allow(dead_code)]
    pub fn from_bytes(bytes: &'b [u8]) -> Self {
        Self { bytes, state: 0 }
    }

    pub fn below(&mut self, bound: usize) -> usize {
        if let Some((byte, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            return usize::from(*byte) % bound;
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }

    fn pick<'t, T: ?Sized>(&mut self, from: &[&'t T]) -> &'t T {
        from[self.below(from.len())]
    }
}

/// A value of an event.
#[derive(Debug, Clone)]
pub enum Json {
    Null,
    Bool(bool),
    /// Tenths.
    Number(i64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// A test of a pattern.
#[derive(Debug, Clone)]
pub enum Test {
    Is(Json),
    Exists(bool),
    Prefix(String, bool),
    Suffix(String, bool),
    IgnoreCase(String),
    Wildcard(String),
    /// Bounds in tenths, each with whether it is inclusive.
    Numeric(Option<(i64, bool)>, Option<(i64, bool)>),
    NotTexts(Vec<String>),
    NotNumbers(Vec<i64>),
    NotPrefix(Vec<String>),
    NotSuffix(Vec<String>),
    NotIgnoreCase(Vec<String>),
    NotWildcard(Vec<String>),
}

/// A member of a pattern.
#[derive(Debug, Clone)]
pub enum Member {
    Tests(String, Vec<Test>),
    Fields(String, Vec<Member>),
    Or(Vec<Vec<Member>>),
}

const KEYS: [&str; 7] = ["a", "b", "c", "d", "a.b", "b.c", "c.a"];
const TEXTS: [&str; 14] = [
    "",
    "a",
    "b",
    "ab",
    "aB",
    "Ab",
    "abc",
    "ba",
    "a*b",
    "xaby",
    "abcabcabc",
    "ab-12",
    "É",
    "éa",
];
const PIECES: [&str; 8] = ["", "a", "b", "ab", "B", "bc", "é", "-1"];
const WILDCARDS: [&str; 9] = ["*", "a*", "*b", "*a*", "a*b", "ab", "*ab*c*", "", "*-1*"];
const NUMBERS: [i64; 8] = [0, 5, 10, -10, 15, 20, 1000, 11];

pub fn event(choices: &mut Choices<'_>) -> Json {
    object(choices, 0)
}

fn object(choices: &mut Choices<'_>, depth: usize) -> Json {
    let count = choices.below(4) + usize::from(depth == 0);
    let members = (0..count)
        .map(|_| {
            let key = choices.pick(&KEYS).to_owned();
            (key, value(choices, depth + 1))
        })
        .collect();
    Json::Object(members)
}

fn value(choices: &mut Choices<'_>, depth: usize) -> Json {
    match choices.below(if depth > 4 { 5 } else { 10 }) {
        0 | 1 => Json::Text(choices.pick(&TEXTS).to_owned()),
        2 => Json::Number(NUMBERS[choices.below(NUMBERS.len())]),
        3 => Json::Text(choices.pick(&["a", "b"]).to_owned()),
        4 => [Json::Null, Json::Bool(true), Json::Bool(false)][choices.below(3)].clone(),
        5 | 6 => object(choices, depth),
        _ => Json::List(
            (0..choices.below(4))
                .map(|_| value(choices, depth + 1))
                .collect(),
        ),
    }
}

pub fn pattern(choices: &mut Choices<'_>) -> Vec<Member> {
    fields(choices, 0)
}

fn fields(choices: &mut Choices<'_>, depth: usize) -> Vec<Member> {
    let count = 1 + choices.below(3);
    (0..count)
        .map(|_| {
            let key = choices.pick(&KEYS).to_owned();
            match choices.below(8) {
                0 | 1 if depth < 3 => Member::Fields(key, fields(choices, depth + 1)),
                2 if depth < 3 => {
                    let branches = 2 + choices.below(2);
                    Member::Or((0..branches).map(|_| fields(choices, depth + 1)).collect())
                }
                _ => {
                    let count = 1 + choices.below(3) / 2 * choices.below(3);
                    Member::Tests(key, (0..count).map(|_| test(choices)).collect())
                }
            }
        })
        .collect()
}

fn test(choices: &mut Choices<'_>) -> Test {
    let text = |choices: &mut Choices<'_>| choices.pick(&TEXTS).to_owned();
    let piece = |choices: &mut Choices<'_>| choices.pick(&PIECES).to_owned();
    let some = |choices: &mut Choices<'_>, from: &[&str]| -> Vec<String> {
        (0..=choices.below(2))
            .map(|_| choices.pick(from).to_owned())
            .collect()
    };
    match choices.below(18) {
        0..=2 => Test::Is(Json::Text(text(choices))),
        3 => Test::Is(Json::Number(NUMBERS[choices.below(NUMBERS.len())])),
        4 => Test::Is([Json::Null, Json::Bool(true), Json::Bool(false)][choices.below(3)].clone()),
        5 => Test::Exists(true),
        6 | 7 => Test::Exists(false),
        8 => Test::Prefix(piece(choices), choices.below(2) == 0),
        9 => Test::Suffix(piece(choices), choices.below(2) == 0),
        10 => Test::IgnoreCase(text(choices)),
        11 => Test::Wildcard(choices.pick(&WILDCARDS).to_owned()),
        12 => numeric(choices),
        13 => Test::NotTexts(some(choices, &TEXTS)),
        14 => Test::NotNumbers(vec![NUMBERS[choices.below(NUMBERS.len())]]),
        15 => Test::NotPrefix(some(choices, &PIECES[1..])),
        16 => Test::NotSuffix(some(choices, &PIECES[1..])),
        _ if choices.below(2) == 0 => Test::NotIgnoreCase(some(choices, &TEXTS)),
        _ => Test::NotWildcard(some(choices, &WILDCARDS)),
    }
}

fn numeric(choices: &mut Choices<'_>) -> Test {
    let bound =
        |choices: &mut Choices<'_>| (NUMBERS[choices.below(NUMBERS.len())], choices.below(2) == 0);
    match choices.below(4) {
        0 => Test::Numeric(Some(bound(choices)), None),
        1 => Test::Numeric(None, Some(bound(choices))),
        2 => {
            let (number, _) = bound(choices);
            Test::Numeric(Some((number, true)), Some((number, true)))
        }
        _ => {
            let (low, inclusive) = bound(choices);
            let above = 1 + choices.below(20) as i64;
            Test::Numeric(
                Some((low, inclusive)),
                Some((low + above, choices.below(2) == 0)),
            )
        }
    }
}

pub fn event_text(value: &Json, choices: &mut Choices<'_>) -> String {
    let mut text = String::new();
    write_json(value, choices, &mut text);
    text
}

fn write_json(value: &Json, choices: &mut Choices<'_>, out: &mut String) {
    let space = choices.pick(&["", "", "", " ", "\n\t"]).to_owned();
    out.push_str(&space);
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Number(tenths) => write_number(*tenths, choices, out),
        Json::Text(text) => write_text(text, choices, out),
        Json::List(members) => {
            out.push('[');
            for (index, member) in members.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_json(member, choices, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                out.push_str(&space);
                write_text(key, choices, out);
                out.push_str(&space);
                out.push(':');
                write_json(member, choices, out);
            }
            out.push('}');
        }
    }
    out.push_str(&space);
}

fn write_text(text: &str, choices: &mut Choices<'_>, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        if choices.below(12) == 0 {
            let _ = write!(out, "\\u{:04x}", letter as u32);
        } else {
            out.push(letter);
        }
    }
    out.push('"');
}

fn write_number(tenths: i64, choices: &mut Choices<'_>, out: &mut String) {
    let sign = if tenths < 0 { "-" } else { "" };
    let size = tenths.abs();
    let _ = match (choices.below(4), size % 10) {
        (0, _) => write!(out, "{tenths}e-1"),
        (1, _) => write!(out, "{sign}{}.{}0", size / 10, size % 10),
        (2, _) => write!(out, "{sign}{}.{}E+0", size / 10, size % 10),
        (_, 0) => write!(out, "{}", tenths / 10),
        _ => write!(out, "{sign}{}.{}", size / 10, size % 10),
    };
}

pub fn pattern_text(members: &[Member], choices: &mut Choices<'_>) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|member| match member {
            Member::Tests(key, tests) => {
                let tests: Vec<String> =
                    tests.iter().map(|test| test_text(test, choices)).collect();
                format!("{key:?}:[{}]", tests.join(","))
            }
            Member::Fields(key, members) => format!("{key:?}:{}", pattern_text(members, choices)),
            Member::Or(branches) => {
                let branches: Vec<String> = branches
                    .iter()
                    .map(|branch| pattern_text(branch, choices))
                    .collect();
                format!("\"$or\":[{}]", branches.join(","))
            }
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

fn test_text(test: &Test, choices: &mut Choices<'_>) -> String {
    let number = |tenths: i64, choices: &mut Choices<'_>| {
        let mut text = String::new();
        write_number(tenths, choices, &mut text);
        text
    };
    match test {
        Test::Is(value) => event_text(value, choices),
        Test::Exists(present) => format!("{{\"exists\":{present}}}"),
        Test::Prefix(text, true) => format!("{{\"prefix\":{text:?}}}"),
        Test::Prefix(text, false) => format!("{{\"prefix\":{{\"equals-ignore-case\":{text:?}}}}}"),
        Test::Suffix(text, true) => format!("{{\"suffix\":{text:?}}}"),
        Test::Suffix(text, false) => format!("{{\"suffix\":{{\"equals-ignore-case\":{text:?}}}}}"),
        Test::IgnoreCase(text) => format!("{{\"equals-ignore-case\":{text:?}}}"),
        Test::Wildcard(text) => format!("{{\"wildcard\":{text:?}}}"),
        Test::Numeric(lower, upper) => {
            let mut parts = Vec::new();
            for (bound, sign) in [(lower, '>'), (upper, '<')] {
                if let Some((tenths, inclusive)) = bound {
                    let equal = if *inclusive { "=" } else { "" };
                    parts.push(format!("\"{sign}{equal}\",{}", number(*tenths, choices)));
                }
            }
            format!("{{\"numeric\":[{}]}}", parts.join(","))
        }
        Test::NotTexts(texts) => format!("{{\"anything-but\":{texts:?}}}"),
        Test::NotNumbers(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(|one| number(*one, choices)).collect();
            format!("{{\"anything-but\":[{}]}}", numbers.join(","))
        }
        Test::NotPrefix(texts) => format!("{{\"anything-but\":{{\"prefix\":{texts:?}}}}}"),
        Test::NotSuffix(texts) => format!("{{\"anything-but\":{{\"suffix\":{texts:?}}}}}"),
        Test::NotIgnoreCase(texts) => {
            format!("{{\"anything-but\":{{\"equals-ignore-case\":{texts:?}}}}}")
        }
        Test::NotWildcard(texts) => format!("{{\"anything-but\":{{\"wildcard\":{texts:?}}}}}"),
    }
}

/// Whether the pattern matches the event, by trying everything.
pub fn matches(members: &[Member], event: &Json) -> bool {
    let mut alternatives = vec![Vec::new()];
    expand(members, "", &mut alternatives);
    let mut flat = Flat::default();
    flat.add(event, None, &[]);
    alternatives.iter().any(|fields| flat.satisfies(fields))
}

type Fields<'m> = Vec<(String, &'m [Test])>;

fn expand<'m>(members: &'m [Member], above: &str, alternatives: &mut Vec<Fields<'m>>) {
    let join = |key: &str| {
        if above.is_empty() {
            key.to_owned()
        } else {
            format!("{above}.{key}")
        }
    };
    for member in members {
        match member {
            Member::Tests(key, tests) => {
                for fields in &mut *alternatives {
                    match fields.iter_mut().find(|(path, _)| *path == join(key)) {
                        Some(field) => field.1 = tests,
                        None => fields.push((join(key), tests)),
                    }
                }
            }
            Member::Fields(key, members) => expand(members, &join(key), alternatives),
            Member::Or(branches) => {
                let before = std::mem::take(alternatives);
                for branch in branches {
                    let mut copies = before.clone();
                    expand(branch, above, &mut copies);
                    alternatives.append(&mut copies);
                }
            }
        }
    }
}

/// Lists that a leaf lies in, each with the member.
type Chain = Vec<(usize, usize)>;

/// The leaves of an event, and the containers that are members of its lists.
#[derive(Default)]
struct Flat<'e> {
    leaves: Vec<(String, &'e Json, Chain)>,
    /// How many containers each list has.
    lists: Vec<usize>,
}

impl<'e> Flat<'e> {
    fn add(&mut self, value: &'e Json, path: Option<&str>, chain: &[(usize, usize)]) {
        match value {
            Json::Object(members) => {
                for (key, member) in members {
                    let path = path.map_or(key.clone(), |path| format!("{path}.{key}"));
                    self.add(member, Some(&path), chain);
                }
            }
            Json::List(members) => {
                let list = self.lists.len();
                self.lists.push(0);
                for member in members {
                    let mut chain = chain.to_vec();
                    if matches!(member, Json::Object(_) | Json::List(_)) {
                        chain.push((list, self.lists[list]));
                        self.lists[list] += 1;
                    }
                    self.add(member, path, &chain);
                }
            }
            _ => self
                .leaves
                .push((path.unwrap_or_default().to_owned(), value, chain.to_vec())),
        }
    }

    fn satisfies(&self, fields: &Fields<'_>) -> bool {
        let mut choice = vec![None; self.lists.len()];
        self.try_choices(0, &mut choice, fields)
    }

    fn try_choices(
        &self,
        list: usize,
        choice: &mut Vec<Option<usize>>,
        fields: &Fields<'_>,
    ) -> bool {
        if list == self.lists.len() {
            return self.holds(choice, fields);
        }
        (0..=self.lists[list]).any(|member| {
            choice[list] = member.checked_sub(1);
            self.try_choices(list + 1, choice, fields)
        })
    }

    fn holds(&self, choice: &[Option<usize>], fields: &Fields<'_>) -> bool {
        let is_chosen = |chain: &[(usize, usize)]| {
            chain
                .iter()
                .all(|(list, member)| choice[*list] == Some(*member))
        };
        let goes_with = |chain: &[(usize, usize)]| {
            chain
                .iter()
                .all(|(list, member)| choice[*list].is_none_or(|one| one == *member))
        };
        // Elements are chosen by the values in them, so every chosen one has a passing value.
        let is_justified = choice.iter().enumerate().all(|(list, member)| {
            member.is_none_or(|member| {
                self.leaves.iter().any(|(path, value, chain)| {
                    chain.contains(&(list, member))
                        && is_chosen(chain)
                        && fields
                            .iter()
                            .any(|(field, tests)| field == path && passes(tests, value))
                })
            })
        });
        is_justified
            && fields.iter().all(|(field, tests)| {
                let mut here = self.leaves.iter().filter(|(path, _, _)| path == field);
                let absent = !here.clone().any(|(_, _, chain)| goes_with(chain));
                let may_be_absent = tests.iter().any(|test| matches!(test, Test::Exists(false)));
                (may_be_absent && absent)
                    || here.any(|(_, value, chain)| is_chosen(chain) && passes(tests, value))
            })
    }
}

fn passes(tests: &[Test], value: &Json) -> bool {
    tests.iter().any(|test| test_holds(test, value))
}

fn test_holds(test: &Test, value: &Json) -> bool {
    match (test, value) {
        (Test::Is(wanted), _) => match (wanted, value) {
            (Json::Null, Json::Null) => true,
            (Json::Bool(one), Json::Bool(other)) => one == other,
            (Json::Number(one), Json::Number(other)) => one == other,
            (Json::Text(one), Json::Text(other)) => one == other,
            _ => false,
        },
        (Test::Exists(present), _) => *present,
        (Test::Prefix(head, true), Json::Text(text)) => text.starts_with(head.as_str()),
        (Test::Prefix(head, false), Json::Text(text)) => lower(text).starts_with(&lower(head)),
        (Test::Suffix(tail, true), Json::Text(text)) => text.ends_with(tail.as_str()),
        (Test::Suffix(tail, false), Json::Text(text)) => lower(text).ends_with(&lower(tail)),
        (Test::IgnoreCase(whole), Json::Text(text)) => lower(text) == lower(whole),
        (Test::Wildcard(glob), Json::Text(text)) => globs(glob, text),
        (Test::Numeric(lower, upper), Json::Number(number)) => {
            lower.is_none_or(|(bound, inclusive)| *number > bound || inclusive && *number == bound)
                && upper.is_none_or(|(bound, inclusive)| {
                    *number < bound || inclusive && *number == bound
                })
        }
        (Test::NotTexts(texts), Json::Text(text)) => !texts.contains(text),
        (Test::NotNumbers(numbers), Json::Number(number)) => !numbers.contains(number),
        (Test::NotPrefix(heads), Json::Text(text)) => {
            !heads.iter().any(|head| text.starts_with(head.as_str()))
        }
        (Test::NotSuffix(tails), Json::Text(text)) => {
            !tails.iter().any(|tail| text.ends_with(tail.as_str()))
        }
        (Test::NotIgnoreCase(texts), Json::Text(text)) => {
            !texts.iter().any(|one| lower(one) == lower(text))
        }
        (Test::NotWildcard(globs_), Json::Text(text)) => {
            !globs_.iter().any(|glob| globs(glob, text))
        }
        (
            Test::NotTexts(_)
            | Test::NotNumbers(_)
            | Test::NotPrefix(_)
            | Test::NotSuffix(_)
            | Test::NotIgnoreCase(_)
            | Test::NotWildcard(_),
            _,
        ) => true,
        _ => false,
    }
}

/// Enough for the letters used here.
fn lower(text: &str) -> String {
    text.to_lowercase()
}

fn globs(glob: &str, text: &str) -> bool {
    match glob.split_once('*') {
        None => glob == text,
        Some((head, rest)) => text.strip_prefix(head).is_some_and(|text| {
            if !rest.contains('*') {
                return text.ends_with(rest);
            }
            (0..=text.len())
                .filter(|at| text.is_char_boundary(*at))
                .any(|at| globs(rest, &text[at..]))
        }),
    }
}
