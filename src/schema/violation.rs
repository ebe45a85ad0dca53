//! What is wrong with data, in a form that programs and people can act on.

use std::fmt;

use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{closest, sensitive};

/// Most violations listed; the rest is only counted (design §4).
pub const VIOLATIONS_MAX: usize = 20;

/// Longest value shown in a violation, in bytes of its JSON; longer ones are cut.
pub const VALUE_BYTES_MAX: usize = 512;

/// Longest message, in characters.
const MESSAGE_CHARS_MAX: usize = 500;

/// Stands for values that the schema marks `x-sensitive`.
pub(super) const MASK: &str = "[sensitive]";

/// Data refused by its schema.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
pub struct Invalid {
    /// How many violations there are, listed or not.
    pub count: usize,
    /// The first [`VIOLATIONS_MAX`] of them.
    pub violations: Vec<Violation>,
}

/// One reason why data was refused (design §4, `violations[]`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Violation {
    /// JSON pointer into the data; `""` is the whole.
    pub instance_path: String,
    /// JSON pointer into the schema, down to the keyword, references followed.
    pub schema_path: String,
    /// The keyword that refused; `json` when the data is not JSON at all.
    pub keyword: String,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What the keyword asks for, where that is a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// The data found, cut to [`VALUE_BYTES_MAX`]; masked where the schema says `x-sensitive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<Value>,
}

impl Invalid {
    /// Collects what `validator` has against `value`.
    pub(super) fn collect(
        validator: &Validator,
        value: &Value,
        sensitive: &sensitive::Paths,
    ) -> Self {
        let mut invalid = Self {
            count: 0,
            violations: Vec::new(),
        };
        for error in validator.iter_errors(value) {
            closest::visit(&error, &mut |error| {
                invalid.count += 1;
                if invalid.violations.len() < VIOLATIONS_MAX {
                    invalid.violations.push(Violation::of(error, sensitive));
                }
            });
        }
        invalid
    }

    /// The single violation of bytes that are not JSON.
    pub(super) fn not_json(error: &serde_json::Error) -> Self {
        Self::whole("json", format!("the data is not JSON: {error}"))
    }

    /// The single violation of data on which the validator itself failed.
    pub(super) fn engine() -> Self {
        Self::whole(
            "schema",
            "the validator failed on this schema and data".to_owned(),
        )
    }

    fn whole(keyword: &str, message: String) -> Self {
        let violation = Violation {
            instance_path: String::new(),
            schema_path: String::new(),
            keyword: keyword.to_owned(),
            message,
            expected: None,
            actual: None,
        };
        Self {
            count: 1,
            violations: vec![violation],
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.violations.first() {
            Some(first) if self.count == 1 => first.fmt(formatter),
            Some(first) => write!(formatter, "{first} (and {} more)", self.count - 1),
            None => formatter.write_str("the data is refused by its schema"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.instance_path.is_empty() {
            "/"
        } else {
            &self.instance_path
        };
        write!(formatter, "{place}: {}", self.message)
    }
}

impl Violation {
    fn of(error: &ValidationError<'_>, sensitive: &sensitive::Paths) -> Self {
        let instance_path = error.instance_path().as_str();
        let masked = sensitive.covers(instance_path);
        let actual = if masked {
            json!(MASK)
        } else {
            cut_value(&sensitive.mask(instance_path, error.instance()))
        };
        Self {
            instance_path: instance_path.to_owned(),
            schema_path: error.schema_path().as_str().to_owned(),
            keyword: error.kind().keyword().to_owned(),
            message: cut_text(&message(error, masked), MESSAGE_CHARS_MAX),
            expected: expected(error.kind()).map(|value| cut_value(&value)),
            actual: Some(actual),
        }
    }
}

/// The validator's sentence, with the value in it only where it is short and may be shown.
fn message(error: &ValidationError<'_>, masked: bool) -> String {
    let instance = error.instance();
    if let ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } =
        error.kind()
        && let Some(types) = closest::types_asked_for(error)
    {
        let found = type_name(instance);
        return format!(
            "{found} is none of the types asked for: {}",
            types.join(", ")
        );
    }
    if let ValidationErrorKind::OneOfMultipleValid { context } = error.kind() {
        let matching: Vec<String> = (0..context.len())
            .filter(|branch| context[*branch].is_empty())
            .map(|branch| branch.to_string())
            .collect();
        let matching = matching.join(", ");
        return format!("exactly one schema of `oneOf` may match, but these do: {matching}");
    }
    match instance.as_ref() {
        _ if masked => error.masked_with(MASK).to_string(),
        Value::Array(_) => error.masked_with("the array").to_string(),
        Value::Object(_) => error.masked_with("the object").to_string(),
        Value::String(text) if text.len() > VALUE_BYTES_MAX => {
            error.masked_with("the string").to_string()
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => error.to_string(),
    }
}

/// What the keyword asked for, as a value.
fn expected(kind: &ValidationErrorKind) -> Option<Value> {
    Some(match kind {
        ValidationErrorKind::AdditionalItems { limit } => json!(limit),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            json!(closest::types_in(context)?)
        }
        ValidationErrorKind::Constant { expected_value } => expected_value.as_ref().clone(),
        ValidationErrorKind::ContentEncoding { content_encoding } => json!(content_encoding),
        ValidationErrorKind::ContentMediaType { content_media_type } => json!(content_media_type),
        ValidationErrorKind::Enum { options } => options.as_ref().clone(),
        ValidationErrorKind::ExclusiveMaximum { limit }
        | ValidationErrorKind::ExclusiveMinimum { limit }
        | ValidationErrorKind::Maximum { limit }
        | ValidationErrorKind::Minimum { limit } => limit.clone(),
        ValidationErrorKind::Format { format } => json!(format),
        ValidationErrorKind::MaxItems { limit }
        | ValidationErrorKind::MinItems { limit }
        | ValidationErrorKind::MaxLength { limit }
        | ValidationErrorKind::MinLength { limit }
        | ValidationErrorKind::MaxProperties { limit }
        | ValidationErrorKind::MinProperties { limit } => json!(limit),
        ValidationErrorKind::MultipleOf { multiple_of } => json!(multiple_of),
        ValidationErrorKind::Not { schema } => json!({ "not": schema }),
        ValidationErrorKind::Pattern { pattern } => json!(pattern),
        ValidationErrorKind::PropertyNames { error } => return expected(error.kind()),
        ValidationErrorKind::Required { property } => property.clone(),
        ValidationErrorKind::Type { kind } => type_names(kind),
        ValidationErrorKind::AdditionalProperties { .. }
        | ValidationErrorKind::BacktrackLimitExceeded { .. }
        | ValidationErrorKind::RegexEngineFailure { .. }
        | ValidationErrorKind::Contains
        | ValidationErrorKind::Custom { .. }
        | ValidationErrorKind::FalseSchema
        | ValidationErrorKind::FromUtf8 { .. }
        | ValidationErrorKind::OneOfMultipleValid { .. }
        | ValidationErrorKind::UnevaluatedItems { .. }
        | ValidationErrorKind::UnevaluatedProperties { .. }
        | ValidationErrorKind::UniqueItems
        | ValidationErrorKind::Referencing(_) => return None,
    })
}

fn type_names(kind: &TypeKind) -> Value {
    match kind {
        TypeKind::Single(name) => json!(name.to_string()),
        TypeKind::Multiple(names) => names.iter().map(|name| json!(name.to_string())).collect(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// `value`, or the beginning of its text when that is long.
pub(super) fn cut_value(value: &Value) -> Value {
    let (text, quoted) = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => return value.clone(),
        Value::String(text) if text.len() <= VALUE_BYTES_MAX => return value.clone(),
        Value::String(text) => (text.clone(), true),
        Value::Array(_) | Value::Object(_) => (value.to_string(), false),
    };
    if !quoted && text.len() <= VALUE_BYTES_MAX {
        return value.clone();
    }
    let end = text.floor_char_boundary(VALUE_BYTES_MAX);
    Value::String(format!("{}… ({} bytes)", &text[..end], text.len()))
}

fn cut_text(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
