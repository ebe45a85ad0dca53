//! Why a schema text is refused: what is wrong, where, and what to do.

use std::fmt;

use jsonschema::{ReferencingError, ValidationError, error::ValidationErrorKind};
use serde_json::Value;

use super::{SCHEMA_DEPTH_MAX, fan_out};

/// Members whose value is data, never a subschema.
pub(super) const DATA_KEYWORDS: [&str; 5] = ["const", "enum", "default", "examples", "example"];

/// Why a schema was refused. Pointers are JSON pointers (RFC 6901) into the schema, `""` its root.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is longer than the limit.
    #[error("the schema has {bytes} bytes, the limit is {bytes_max}: split it or raise the limit")]
    TooLarge { bytes: usize, bytes_max: usize },
    /// Arrays and objects nest deeper than the limit.
    #[error(
        "line {line}, column {column}: nesting is deeper than {depth_max} levels: \
         move inner parts to `$defs` and refer to them"
    )]
    TooDeep {
        line: usize,
        column: usize,
        depth_max: usize,
    },
    /// The text is not JSON.
    #[error("line {line}, column {column}: this is not JSON")]
    NotJson {
        line: usize,
        column: usize,
        source: serde_json::Error,
    },
    /// The root is neither an object nor a boolean.
    #[error("a schema is a JSON object or a boolean, this is {found}")]
    NotASchema { found: &'static str },
    /// `$schema` names no draft known here.
    #[error(
        "/$schema: \"{uri}\" is not a draft known here: use one of draft-04, draft-06, draft-07, \
         2019-09, 2020-12, such as \"https://json-schema.org/draft/2020-12/schema\""
    )]
    UnknownDraft { uri: String },
    /// A keyword has a value that its draft does not allow.
    #[error("{pointer}: {detail} (`{keyword}` of the draft's meta-schema): correct the value")]
    MetaSchema {
        pointer: String,
        keyword: String,
        detail: String,
    },
    /// A `$ref` leads outside the document, which is never fetched.
    #[error(
        "{pointer}: \"{reference}\" is outside this schema and is never fetched: \
         copy the target under `$defs` and refer to it by `#/$defs/…`"
    )]
    RemoteReference { pointer: String, reference: String },
    /// A `$ref` leads nowhere in the document.
    #[error(
        "{pointer}: \"{reference}\" leads nowhere: correct it, \
         and look for an `id` or `$id` above it that changes what it is relative to"
    )]
    UnresolvableReference { pointer: String, reference: String },
    /// A pattern is not a regular expression that matches in linear time.
    #[error("{pointer}: the pattern \"{pattern}\" {fault}")]
    Pattern {
        pointer: String,
        pattern: String,
        fault: PatternFault,
    },
    /// References and applicators multiply beyond the limit.
    #[error(
        "{pointer}: more than {visits} subschemas, or a chain longer than {chain}, judge one place: \
         flatten the references", visits = fan_out::VISITS_MAX, chain = fan_out::CHAIN_MAX
    )]
    TooBranchy { pointer: String },
    /// The validator failed on this schema; a fault of ours that the text brought out.
    #[error("the validator failed on this schema: report it, and simplify the schema meanwhile")]
    Engine,
}

/// What is wrong with a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternFault {
    /// It looks ahead or behind.
    LookAround,
    /// It refers back to a group.
    BackReference,
    /// It is not a regular expression, or a larger one than allowed.
    Syntax,
}

impl fmt::Display for PatternFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::LookAround => {
                "looks ahead or behind, which has no bound in time: \
                 write it without (?=, (?!, (?<= and (?<!, or as `allOf` and `not` of patterns"
            }
            Self::BackReference => {
                "refers back to a group, which has no bound in time: write it without"
            }
            Self::Syntax => "is not a regular expression, or is too large: correct it",
        })
    }
}

/// Parses a schema's text within the limits.
pub(super) fn parse(text: &str, bytes_max: usize) -> Result<Value, Error> {
    if text.len() > bytes_max {
        return Err(Error::TooLarge {
            bytes: text.len(),
            bytes_max,
        });
    }
    check_depth(text)?;
    let document: Value = serde_json::from_str(text).map_err(|source| Error::NotJson {
        line: source.line(),
        column: source.column(),
        source,
    })?;
    let found = match document {
        Value::Object(_) | Value::Bool(_) => return Ok(document),
        Value::Null => "null",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
    };
    Err(Error::NotASchema { found })
}

/// Counts brackets outside strings; what is no JSON at all is left to the parser.
fn check_depth(text: &str) -> Result<(), Error> {
    let (mut depth, mut line, mut line_start) = (0_usize, 1, 0);
    let (mut in_string, mut escaped) = (false, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            b'\n' => (line, line_start) = (line + 1, index + 1),
            _ => {}
        }
        if depth > SCHEMA_DEPTH_MAX {
            let column = index - line_start + 1;
            return Err(Error::TooDeep {
                line,
                column,
                depth_max: SCHEMA_DEPTH_MAX,
            });
        }
    }
    Ok(())
}

/// Turns the validator's refusal into ours.
pub(super) fn explain(error: &ValidationError<'_>, document: &Value) -> Error {
    match error.kind() {
        ValidationErrorKind::Referencing(cause) => explain_reference(cause, document),
        ValidationErrorKind::Format { format } if format == "regex" => {
            let pattern = error.instance().as_str().unwrap_or_default().to_owned();
            let fault = pattern_fault(&pattern);
            let pointer = [error.instance_path(), error.schema_path()]
                .into_iter()
                .map(|path| path.as_str().to_owned())
                .find(|path| {
                    document.pointer(path).and_then(Value::as_str) == Some(&pattern)
                        || path.ends_with(&fan_out::escape(&pattern))
                });
            let pointer = pointer
                .or_else(|| {
                    find(document, &|_, name, value| {
                        name == fan_out::escape(&pattern) || value.as_str() == Some(&pattern)
                    })
                })
                .unwrap_or_default();
            Error::Pattern {
                pointer,
                pattern,
                fault,
            }
        }
        kind => Error::MetaSchema {
            pointer: error.instance_path().as_str().to_owned(),
            keyword: kind.keyword().to_owned(),
            detail: cut(&error.to_string()),
        },
    }
}

fn pattern_fault(pattern: &str) -> PatternFault {
    const LOOK_AROUND: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];
    if LOOK_AROUND.iter().any(|group| pattern.contains(group)) {
        return PatternFault::LookAround;
    }
    let refers_back = pattern
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0] == b'\\' && (pair[1].is_ascii_digit() || pair[1] == b'k'));
    if refers_back {
        PatternFault::BackReference
    } else {
        PatternFault::Syntax
    }
}

fn explain_reference(cause: &ReferencingError, document: &Value) -> Error {
    // The cause names the target and not the place, so the place is looked up by its target.
    let (tail, outside) = match cause {
        ReferencingError::Unretrievable { uri, .. } => (uri.clone(), has_remote_scheme(uri)),
        ReferencingError::PointerToNowhere { pointer }
        | ReferencingError::InvalidPercentEncoding { pointer, .. }
        | ReferencingError::InvalidArrayIndex { pointer, .. } => (pointer.clone(), false),
        ReferencingError::NoSuchAnchor { anchor } | ReferencingError::InvalidAnchor { anchor } => {
            (anchor.clone(), false)
        }
        ReferencingError::UnknownSpecification { specification } => (specification.clone(), true),
        ReferencingError::CircularMetaschema { uri } => (uri.clone(), true),
        ReferencingError::InvalidUri(_) => (String::new(), false),
    };
    let names_it = |reference: &str| {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let target = if outside || fragment.is_empty() {
            base
        } else {
            fragment
        };
        !target.is_empty()
            && tail.ends_with(target.trim_start_matches("./").trim_start_matches("../"))
    };
    let is_reference = |keyword: &str| matches!(keyword, "$ref" | "$dynamicRef" | "$recursiveRef");
    let pointer = find(document, &|_, name, value| {
        is_reference(name) && value.as_str().is_some_and(names_it)
    })
    .or_else(|| {
        find(document, &|_, name, value| {
            is_reference(name)
                && value.as_str().is_some_and(|text| {
                    text.strip_prefix('#').is_none_or(|fragment| {
                        document
                            .pointer(&fan_out::percent_decode(fragment))
                            .is_none()
                    })
                })
        })
    })
    .or_else(|| find(document, &|_, name, _| is_reference(name)))
    .unwrap_or_default();
    let reference = document
        .pointer(&pointer)
        .and_then(Value::as_str)
        .map_or(tail, str::to_owned);
    if outside {
        Error::RemoteReference { pointer, reference }
    } else {
        Error::UnresolvableReference { pointer, reference }
    }
}

/// Whether a URI names another document, and not a part of this one.
fn has_remote_scheme(uri: &str) -> bool {
    uri.split_once(':')
        .is_some_and(|(scheme, _)| scheme != "json-schema")
}

/// The pointer of the first member that `wanted` takes, outside data; its name comes escaped.
fn find(document: &Value, wanted: &dyn Fn(&str, &str, &Value) -> bool) -> Option<String> {
    let mut pending = vec![(String::new(), document)];
    while let Some((pointer, value)) = pending.pop() {
        let members: Vec<(String, &Value)> = match value {
            Value::Object(members) => members
                .iter()
                .filter(|(name, _)| !DATA_KEYWORDS.contains(&name.as_str()))
                .map(|(name, member)| (fan_out::escape(name), member))
                .collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| (index.to_string(), item))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
        };
        for (name, member) in members.into_iter().rev() {
            let inner = format!("{pointer}/{name}");
            if wanted(&pointer, &name, member) {
                return Some(inner);
            }
            pending.push((inner, member));
        }
    }
    None
}

/// A message of bounded length: values in it come from the schema and may be long.
fn cut(message: &str) -> String {
    const MESSAGE_CHARS_MAX: usize = 300;
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}
