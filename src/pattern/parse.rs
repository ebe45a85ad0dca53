//! From the text of a pattern to its conjunctions: fields merged by path, every `$or` multiplied out.

use super::error::{Error, Fault};
use super::limits::{FIELDS_MAX, Limits};
use super::op::Op;
use super::text::{self, Json, Node};
use super::{Conjunction, Field, Pattern};

/// Words that cannot be fields anywhere inside `$or`: EventBridge keeps them for operators.
const RESERVED_IN_OR: [&str; 24] = [
    "exactly",
    "equals-ignore-case",
    "prefix",
    "suffix",
    "anything-but",
    "exists",
    "wildcard",
    "numeric",
    "cidr",
    "=",
    "<",
    "<=",
    ">",
    ">=",
    "regex",
    "not-wildcard",
    "not-equals-ignore-case",
    "date-after",
    "date-on-or-after",
    "date-before",
    "date-on-or-before",
    "in-date-range",
    "ip-address-in-range",
    "ip-address-not-in-range",
];

/// Reads a pattern.
pub(crate) fn parse(text: &str, limits: &Limits) -> Result<Pattern, Error> {
    if text.len() > limits.text_bytes_max {
        return Err(too_complex(
            0,
            "bytes of text",
            text.len(),
            limits.text_bytes_max,
        ));
    }
    let root = text::read(text, limits.depth_max)?;
    let Json::Object(members) = &root.value else {
        return Err(root.fault(Fault::NotAnObject));
    };
    let mut reader = Reader {
        text,
        limits,
        fields: Vec::new(),
    };
    let mut conjunctions = vec![Draft::default()];
    reader.object(&root, members, Within::TOP, &mut conjunctions)?;
    let pattern = finish(reader.fields, conjunctions);
    let stars = pattern.complexity().stars;
    if stars > limits.stars_total_max {
        return Err(root.fault(Fault::TooManyStars {
            found: stars,
            max: limits.stars_total_max,
        }));
    }
    Ok(pattern)
}

/// Leaves out the fields that later ones replaced everywhere.
fn finish(fields: Vec<Field>, conjunctions: Vec<Draft>) -> Pattern {
    let mut used = vec![false; fields.len()];
    for place in conjunctions.iter().flatten() {
        used[usize::from(*place)] = true;
    }
    let mut places = vec![0u16; fields.len()];
    let mut kept = Vec::with_capacity(fields.len());
    for (old, field) in fields.into_iter().enumerate() {
        if used[old] {
            places[old] = kept.len() as u16;
            kept.push(field);
        }
    }
    let renumber = |draft: Draft| -> Conjunction {
        draft
            .into_iter()
            .map(|place| places[usize::from(place)])
            .collect()
    };
    Pattern {
        fields: kept.into(),
        conjunctions: conjunctions.into_iter().map(renumber).collect(),
    }
}

/// A conjunction in the making: places in the reader's fields.
type Draft = Vec<u16>;

/// Where an object of fields stands.
#[derive(Debug, Clone, Copy)]
struct Within<'p> {
    /// The path above; none at the top.
    path: Option<&'p str>,
    in_or: bool,
}

impl Within<'_> {
    const TOP: Self = Self {
        path: None,
        in_or: false,
    };
}

struct Reader<'r> {
    text: &'r str,
    limits: &'r Limits,
    fields: Vec<Field>,
}

impl Reader<'_> {
    fn object(
        &mut self,
        node: &Node<'_>,
        members: &[(String, Node<'_>)],
        within: Within<'_>,
        conjunctions: &mut Vec<Draft>,
    ) -> Result<(), Error> {
        if members.is_empty() {
            return Err(node.fault(Fault::EmptyObject));
        }
        for (key, value) in members {
            self.member(key, value, within, conjunctions)
                .map_err(|error| error.under(key))?;
        }
        Ok(())
    }

    fn member(
        &mut self,
        key: &str,
        value: &Node<'_>,
        within: Within<'_>,
        conjunctions: &mut Vec<Draft>,
    ) -> Result<(), Error> {
        if key == "$or" {
            return self.alternatives(value, within, conjunctions);
        }
        if within.in_or && RESERVED_IN_OR.contains(&key) {
            return Err(value.fault(Fault::OrReserved { word: key.into() }));
        }
        let path = match within.path {
            None => self.top_key(key).into_owned(),
            Some(path) => format!("{path}.{key}"),
        };
        match &value.value {
            Json::Object(members) => {
                let within = Within {
                    path: Some(&path),
                    ..within
                };
                self.object(value, members, within, conjunctions)
            }
            Json::Array(tests) => self.field(path, value, tests, conjunctions),
            _ => Err(value.fault(Fault::BareValue {
                key: key.into(),
                value: self.text[value.start..value.end].into(),
            })),
        }
    }

    /// The attribute that a key at the top stands for.
    fn top_key<'k>(&self, key: &'k str) -> std::borrow::Cow<'k, str> {
        if !self.limits.aliases {
            return key.into();
        }
        match key.strip_prefix("detail") {
            Some("") => "data".into(),
            Some("-type") => "type".into(),
            Some(rest) if rest.starts_with('.') => format!("data{rest}").into(),
            _ => key.into(),
        }
    }

    fn field(
        &mut self,
        path: String,
        node: &Node<'_>,
        members: &[Node<'_>],
        conjunctions: &mut [Draft],
    ) -> Result<(), Error> {
        if members.is_empty() {
            return Err(node.fault(Fault::EmptyArray));
        }
        let tests: Result<Box<[Op]>, Error> = members
            .iter()
            .enumerate()
            .map(|(index, member)| {
                Op::parse(member, self.limits).map_err(|error| error.under(&index.to_string()))
            })
            .collect();
        let tests = tests?;
        let values = tests.iter().map(Op::value_count).sum();
        if values > self.limits.values_max {
            let max = self.limits.values_max;
            return Err(too_complex(node.start, "values in one field", values, max));
        }
        let place = u16::try_from(self.fields.len()).map_err(|_| {
            too_complex(
                node.start,
                "fields",
                self.fields.len(),
                usize::from(u16::MAX),
            )
        })?;
        self.fields.push(Field {
            path: path.into(),
            offset: node.start as u32,
            tests,
        });
        let fields_max = self.limits.fields_max.min(FIELDS_MAX);
        for conjunction in conjunctions {
            self.set(conjunction, place);
            let fields = conjunction.len();
            if fields > fields_max {
                return Err(too_complex(
                    node.start,
                    "fields that must all hold",
                    fields,
                    fields_max,
                ));
            }
        }
        Ok(())
    }

    /// A later field replaces an earlier one of the same path.
    fn set(&self, conjunction: &mut Draft, place: u16) {
        let path = &self.fields[usize::from(place)].path;
        let same = |known: &&mut u16| self.fields[usize::from(**known)].path == *path;
        match conjunction.iter_mut().find(same) {
            Some(known) => *known = place,
            None => conjunction.push(place),
        }
    }

    fn alternatives(
        &mut self,
        node: &Node<'_>,
        within: Within<'_>,
        conjunctions: &mut Vec<Draft>,
    ) -> Result<(), Error> {
        let Json::Array(branches) = &node.value else {
            return Err(node.fault(Fault::OrNotAList));
        };
        if branches.len() < 2 {
            return Err(node.fault(Fault::OrTooFew));
        }
        let within = Within {
            in_or: true,
            ..within
        };
        let mut all = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            let at = |error: Error| error.under(&index.to_string());
            let Json::Object(members) = &branch.value else {
                return Err(at(branch.fault(Fault::OrBranch)));
            };
            let max = self.limits.conjunctions_max;
            let found = all.len() + conjunctions.len();
            if found > max {
                return Err(at(too_complex(
                    branch.start,
                    "alternatives after $or is multiplied out",
                    found,
                    max,
                )));
            }
            let mut copies = conjunctions.clone();
            self.object(branch, members, within, &mut copies)
                .map_err(at)?;
            all.append(&mut copies);
        }
        *conjunctions = all;
        Ok(())
    }
}

fn too_complex(offset: usize, measure: &'static str, found: usize, max: usize) -> Error {
    Error {
        pointer: String::new(),
        offset,
        kind: Fault::TooComplex {
            measure,
            found,
            max,
        },
    }
}
