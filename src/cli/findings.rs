//! Findings that came over the wire, to be told like those found here.

use serde_json::Value;

use crate::document::{Fault, Finding, Position, Severity};

/// The findings in a JSON list of them; what is no finding is left out.
pub(super) fn read(list: &Value) -> Vec<Finding> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(finding).collect()
}

fn finding(value: &Value) -> Option<Finding> {
    let text = |name: &str| value[name].as_str();
    let number = |name: &str| value[name].as_u64().and_then(|n| u32::try_from(n).ok());
    let severity = match text("severity")? {
        "warning" => Severity::Warning,
        _ => Severity::Error,
    };
    let at = Position {
        line: number("line")?,
        column: number("column")?,
    };
    let mut fault = Fault::new(at, text("message")?);
    if let Some(hint) = text("hint") {
        fault = fault.with_hint(hint);
    }
    // A code is a static text where findings are made. There are few, and the command ends soon.
    let code: &'static str = text("code")?.to_owned().leak();
    Some(Finding::new(code, severity, text("file")?, fault))
}

/// "2 errors, 1 warning".
pub(super) fn counted(findings: &[Finding]) -> String {
    let errors = findings.iter().filter(|finding| finding.is_error()).count();
    let warnings = findings.len() - errors;
    let counts = [(errors, "error"), (warnings, "warning")];
    let words: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| plural(*count, word))
        .collect();
    words.join(", ")
}

/// "1 file", "2 files".
pub(super) fn plural(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}
