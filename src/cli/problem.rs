//! Problem documents (RFC 9457) as a person reads them.

use std::fmt::{self, Write as _};

use http::StatusCode;
use serde_json::Value;

use super::findings;
use super::output::{cell, visible};
use crate::document::report::{self, Sources};

/// Characters of an answer that is no problem document which are shown.
const EXCERPT_CHARACTERS_MAX: usize = 500;
/// Members that every problem has, and those that its text already tells.
const TOLD: [&str; 8] = [
    "type",
    "title",
    "status",
    "detail",
    "violations",
    "members",
    "findings",
    "reason",
];

/// A refusal of the server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Problem {
    status: StatusCode,
    document: Value,
}

impl Problem {
    /// The problem in the body of an answer with an error status.
    pub(super) fn new(status: StatusCode, body: &[u8]) -> Self {
        let document = serde_json::from_slice(body).ok();
        let document = document.filter(Value::is_object).unwrap_or_else(|| {
            let text = String::from_utf8_lossy(body);
            let excerpt: String = text.chars().take(EXCERPT_CHARACTERS_MAX).collect();
            serde_json::json!({ "detail": excerpt.trim() })
        });
        Self { status, document }
    }

    /// The problem of one member of a batch.
    pub(super) fn of_member(result: &Value) -> Self {
        let status = result["status"]
            .as_u64()
            .and_then(|n| u16::try_from(n).ok());
        let status = status.and_then(|code| StatusCode::from_u16(code).ok());
        Self {
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            document: result["problem"].clone(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = self.document["title"].as_str();
        let title = title.or_else(|| self.status.canonical_reason());
        write!(f, "{}", self.status.as_u16())?;
        write!(f, " {}", visible(title.unwrap_or("refused")))
    }
}

/// The whole problem: what, why, and every violation, member and finding. `sources` let findings
/// show their lines.
pub(super) fn text(problem: &Problem, sources: &Sources) -> String {
    let mut text = format!("refused: {problem}\n");
    details(&problem.document, "  ", sources, &mut text);
    text
}

fn details(document: &Value, indent: &str, sources: &Sources, text: &mut String) {
    let members = document["members"].as_array();
    if let Some(detail) = document["detail"]
        .as_str()
        .filter(|detail| !detail.is_empty())
    {
        let _ = writeln!(text, "{indent}{}", visible(detail));
    }
    for (name, value) in document.as_object().into_iter().flatten() {
        if !TOLD.contains(&name.as_str()) && !value.is_null() && members.is_none() {
            let _ = writeln!(
                text,
                "{indent}{}: {}",
                visible(name),
                visible(&cell(Some(value)))
            );
        }
    }
    if let Some(members) = members {
        let inner = format!("{indent}  ");
        for member in members {
            let index = cell(member.get("index"));
            let title = visible(member["title"].as_str().unwrap_or("refused"));
            let _ = writeln!(text, "{indent}member {index}: {title}");
            details(&without_index(member), &inner, sources, text);
        }
        return;
    }
    for violation in document["violations"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "{indent}- {}", violation_text(violation));
    }
    if let Some(found) = document.get("findings") {
        let found = findings::read(found);
        text.push_str(&report::render(&found, report::Format::Text, sources));
    }
}

fn without_index(member: &Value) -> Value {
    let mut member = member.clone();
    if let Some(fields) = member.as_object_mut() {
        fields.remove("index");
    }
    member
}

/// `/data/amount: must be a number (type; expected "number", actual "5")`.
fn violation_text(violation: &Value) -> String {
    let path = match violation["instance_path"].as_str() {
        None | Some("") => "(the whole)",
        Some(path) => path,
    };
    let message = violation["message"].as_str().unwrap_or_default();
    let mut facts = vec![cell(violation.get("keyword"))];
    for name in ["expected", "actual"] {
        if let Some(value) = violation.get(name).filter(|value| !value.is_null()) {
            facts.push(format!("{name} {value}"));
        }
    }
    visible(&format!("{path}: {message} ({})", facts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_told_with_its_place_and_values() {
        let body =
            br#"{"type":"urn:x","title":"The data breaks the schema of its type","status":422,
            "detail":"the data breaks version 1","schema":{"type":"t","version":1},
            "violations":[{"instance_path":"/amount","schema_path":"/p","keyword":"type",
            "message":"must be a number","expected":"number","actual":"5"}]}"#;
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, body);

        assert_eq!(
            text(&problem, &Sources::new()),
            "refused: 422 The data breaks the schema of its type\n  the data breaks version 1\n  \
             schema: {\"type\":\"t\",\"version\":1}\n  \
             - /amount: must be a number (type; expected \"number\"; actual \"5\")\n"
        );
    }

    #[test]
    fn every_refused_member_of_a_batch_is_told() {
        let body = br#"{"title":"T","status":422,"detail":"d","index":1,"violations":[{}],
            "members":[{"index":1,"title":"T","detail":"one"},{"index":4,"title":"U","detail":"two"}]}"#;
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, body);

        assert_eq!(
            text(&problem, &Sources::new()),
            "refused: 422 T\n  d\n  member 1: T\n    one\n  member 4: U\n    two\n"
        );
    }

    #[test]
    fn an_answer_that_is_no_problem_document_is_shown_without_control_characters() {
        let problem = Problem::new(StatusCode::BAD_GATEWAY, b"<html>\x1b[2J</html>");

        assert_eq!(
            text(&problem, &Sources::new()),
            "refused: 502 Bad Gateway\n  <html>\u{FFFD}[2J</html>\n"
        );
    }
}
