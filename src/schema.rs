//! JSON Schemas: compiled once, shared by every request, and judged by meaning when they change.
//!
//! [`Schema::compile`] turns text into a validator or names what is wrong with it,
//! [`Schema::validate`] judges data, [`compatibility`] compares versions. Which schema judges an
//! event, and where versions are kept, is left to the modules above. Nothing here does I/O: a
//! `$ref` never leaves the document.

mod closest;
pub mod compatibility;
mod content_hash;
mod draft;
mod fan_out;
mod refusal;
mod sensitive;
#[cfg(test)]
mod tests;
mod violation;

use jsonschema::{PatternOptions, ValidationOptions, Validator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use content_hash::ContentHash;
pub use draft::Draft;
pub use refusal::{Error, PatternFault};
pub use violation::{Invalid, VALUE_BYTES_MAX, VIOLATIONS_MAX, Violation};

/// Longest schema text accepted by default, in bytes; real schemas stay under 32 KiB.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// Deepest nesting of arrays and objects in a schema's text. The JSON parser itself stops at 128.
pub const SCHEMA_DEPTH_MAX: usize = 100;

/// Stack of the thread that compiles and compares schemas, in bytes. Pages are taken as they are
/// touched, so the size costs nothing; it holds the longest chains allowed, in a debug build too.
const DEEP_STACK_BYTES: usize = 64 * 1024 * 1024;

/// How schemas are compiled. One value per schema type: the compatibility check reads the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether `format` refuses data (`true`) or only describes it (`false`, the default).
    pub assert_formats: bool,
    /// Longest schema text accepted, in bytes.
    pub bytes_max: usize,
    /// The draft of a schema without `$schema`.
    pub draft: Draft,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            assert_formats: false,
            bytes_max: SCHEMA_BYTES_MAX,
            draft: Draft::Draft202012,
        }
    }
}

/// What happens to an event that its schema refuses (design §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The event is refused with its violations.
    #[default]
    Enforce,
    /// The event is accepted, counted and marked.
    Warn,
    /// The event is not validated.
    Off,
}

/// The version that judges events which name none: `"latest"` or a number (design §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", untagged)]
pub enum DefaultVersion {
    /// The newest version that is not deleted.
    #[default]
    #[serde(with = "latest")]
    Latest,
    /// This version, whatever is registered later.
    Number(u32),
}

/// The word `latest` as the serde form of a variant without content.
mod latest {
    use serde::{Deserialize, Deserializer, Serializer, de};

    const WORD: &str = "latest";

    pub(super) fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(WORD)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        let word = String::deserialize(deserializer)?;
        if word == WORD {
            return Ok(());
        }
        Err(de::Error::invalid_value(de::Unexpected::Str(&word), &WORD))
    }
}

/// A compiled schema with the text it came from. Share it by `Arc`.
#[derive(Debug)]
pub struct Schema {
    text: String,
    document: Value,
    draft: Draft,
    hash: ContentHash,
    validator: Validator,
    has_sensitive: bool,
    /// Longest chain of references and applicators at one place.
    chain: usize,
}

impl Schema {
    /// Compiles `text`, in the draft that its `$schema` names.
    ///
    /// # Errors
    /// The first thing wrong with the text, with the JSON pointer (or line and column) of the place.
    pub fn compile(text: &str, options: &Options) -> Result<Self, Error> {
        let document = refusal::parse(text, options.bytes_max)?;
        let draft = Draft::of(&document, options.draft)?;
        let hash = ContentHash::of(&document);
        let chain = fan_out::check(&document)?;
        let built = on_deep_stack(|| build(&document, draft, options));
        let validator = built.ok_or(Error::Engine)??;
        let has_sensitive = sensitive::is_marked(&document);
        Ok(Self {
            text: text.to_owned(),
            document,
            draft,
            hash,
            validator,
            has_sensitive,
            chain,
        })
    }

    /// Judges JSON text.
    ///
    /// # Errors
    /// The violations, or a single one with keyword `json` when the bytes are not JSON.
    pub fn validate(&self, json: &[u8]) -> Result<(), Invalid> {
        match serde_json::from_slice(json) {
            Ok(value) => self.validate_value(&value),
            Err(error) => Err(Invalid::not_json(&error)),
        }
    }

    /// Judges data that is already parsed.
    ///
    /// # Errors
    /// The violations.
    pub fn validate_value(&self, value: &Value) -> Result<(), Invalid> {
        if fan_out::needs_deep_stack(self.chain, value) {
            return on_deep_stack(|| self.judge(value)).unwrap_or_else(|| Err(Invalid::engine()));
        }
        self.judge(value)
    }

    fn judge(&self, value: &Value) -> Result<(), Invalid> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let sensitive = if self.has_sensitive {
            sensitive::paths(&self.document, self.draft, value)
        } else {
            sensitive::Paths::none()
        };
        Err(Invalid::collect(&self.validator, value, &sensitive))
    }

    /// Whether the schema takes `value`: the answer of [`Schema::validate_value`] without reasons.
    pub fn is_valid(&self, value: &Value) -> bool {
        if fan_out::needs_deep_stack(self.chain, value) {
            return on_deep_stack(|| self.validator.is_valid(value)).unwrap_or(false);
        }
        self.validator.is_valid(value)
    }

    /// The text as it was given to [`Schema::compile`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text as a JSON value.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The draft the schema is read in.
    pub fn draft(&self) -> Draft {
        self.draft
    }

    /// SHA-256 of the canonical JSON: keys sorted, no white space. Equal content, equal hash.
    pub fn content_hash(&self) -> ContentHash {
        self.hash
    }
}

/// Builds the validator: offline, linear patterns, one draft.
fn build(document: &Value, draft: Draft, options: &Options) -> Result<Validator, Error> {
    validation_options(draft, options)
        .build(document)
        .map_err(|error| refusal::explain(&error, document))
}

/// The settings of every validator of this module.
fn validation_options(draft: Draft, options: &Options) -> ValidationOptions<'static> {
    let built = jsonschema::options()
        .with_draft(draft.into())
        .with_pattern_options(PatternOptions::regex())
        .should_validate_formats(options.assert_formats)
        .should_ignore_unknown_formats(true)
        .offline()
        .without_content_media_type_support("application/json");
    // Drafts 6 and 7 let a validator assert the content keywords; in every draft they describe here.
    let encodings = ["base64", "base64url", "base32", "base32hex", "base16"];
    encodings
        .into_iter()
        .fold(built, ValidationOptions::without_content_encoding_support)
}

/// Runs `work` on a thread whose stack is known, whatever the caller's is; `None` if it panicked.
fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    let mut work = Some(work);
    std::thread::scope(|scope| {
        let run = || work.take().map(|work| work());
        let thread = std::thread::Builder::new().name("schema".to_owned());
        match thread.stack_size(DEEP_STACK_BYTES).spawn_scoped(scope, run) {
            Ok(thread) => Some(thread.join().ok().flatten()),
            Err(_) => None,
        }
    })
    // A system out of threads leaves the caller's stack, which is enough for all but hostile text.
    .unwrap_or_else(|| work.take().map(|work| work()))
}
