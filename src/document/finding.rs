//! What a check has to say about a file or a stored document.

use super::{Fault, Position};

/// One thing that a person should know about a file or a stored document, with its exact place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The stable kebab-case name of the kind of finding, such as `unknown-field`.
    pub code: &'static str,
    pub severity: Severity,
    /// The path as the person gave it, or the name of the stored document.
    pub file: String,
    pub at: Position,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The JSON Pointer (RFC 6901) to the value within its document.
    pub pointer: Option<String>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document is refused.
    Error,
    /// The document works, but probably not as meant.
    Warning,
}

impl Severity {
    /// The word for it: `error` or `warning`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

impl Finding {
    /// A finding of a kind, from a fault in a file.
    pub fn new(code: &'static str, severity: Severity, file: &str, fault: Fault) -> Self {
        Finding {
            code,
            severity,
            file: file.to_owned(),
            at: fault.at,
            message: fault.message,
            hint: fault.hint,
            pointer: None,
        }
    }

    /// An error from a fault in a file.
    pub fn error(code: &'static str, file: &str, fault: Fault) -> Self {
        Finding::new(code, Severity::Error, file, fault)
    }

    /// A warning from a fault in a file.
    pub fn warning(code: &'static str, file: &str, fault: Fault) -> Self {
        Finding::new(code, Severity::Warning, file, fault)
    }

    /// The same finding with the JSON Pointer to its value.
    #[must_use]
    pub fn with_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Whether the document is refused for it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
