//! Findings for a person, a program, or a pull request.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::json;

use super::{Finding, Position, Severity, lines};

/// How findings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `file:line:column: error[code]: message`, the source line with a caret, and the help.
    Text,
    /// An array of objects, one a line.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Workflow commands that GitHub turns into annotations.
    Github,
}

/// Texts by file name, as [`Finding::file`] has it; they let [`Format::Text`] show source lines.
pub type Sources = BTreeMap<String, String>;

/// Characters of a source line that are shown around the caret.
const EXCERPT_CHARACTERS_MAX: usize = 120;

/// Writes findings, sorted by file, line and column. [`Format::Text`] and [`Format::Github`] of
/// no findings are empty; every other answer ends with a line break.
pub fn render(findings: &[Finding], format: Format, sources: &Sources) -> String {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by(|a, b| (&a.file, a.at).cmp(&(&b.file, b.at)));
    match format {
        Format::Text => text(&sorted, sources),
        Format::Json => json_lines(&sorted),
        Format::Sarif => sarif(&sorted),
        Format::Github => sorted.iter().map(|finding| github(finding)).collect(),
    }
}

fn text(findings: &[&Finding], sources: &Sources) -> String {
    let mut out = String::new();
    for of_file in findings.chunk_by(|a, b| a.file == b.file) {
        let source = of_file.first().and_then(|first| sources.get(&first.file));
        let lines = source.map_or_else(Vec::new, |source| lines(source));
        for finding in of_file {
            let line = (finding.at.line as usize)
                .checked_sub(1)
                .and_then(|i| lines.get(i));
            text_finding(finding, line.copied(), &mut out);
        }
    }
    out
}

fn text_finding(finding: &Finding, line: Option<&str>, out: &mut String) {
    let head = format!(
        "{}:{}: {}[{}]: {}",
        finding.file,
        finding.at,
        finding.severity.as_str(),
        finding.code,
        finding.message
    );
    out.push_str(&visible(&head));
    out.push('\n');
    if let Some(line) = line {
        let number = finding.at.line.to_string();
        let gutter = " ".repeat(number.len());
        let (shown, indent) = excerpt(line, finding.at.column);
        let _ = writeln!(
            out,
            " {gutter} |\n {number} | {shown}\n {gutter} | {indent}^"
        );
    }
    if let Some(hint) = &finding.hint {
        let _ = writeln!(out, "   help: {}", visible(hint));
    }
}

/// The part of a line around a column, and the blanks that bring a caret below it. Tabs stay tabs
/// in both, so that they line up however wide the terminal makes them.
fn excerpt(line: &str, column: u32) -> (String, String) {
    let before = (column as usize).saturating_sub(1);
    let skipped = if before >= EXCERPT_CHARACTERS_MAX {
        before - EXCERPT_CHARACTERS_MAX / 2
    } else {
        0
    };
    let mut rest = line.chars().skip(skipped);
    let kept: String = rest.by_ref().take(EXCERPT_CHARACTERS_MAX).collect();
    let (head, tail) = (
        if skipped > 0 { "…" } else { "" },
        if rest.next().is_some() { "…" } else { "" },
    );
    let shown: String = kept.chars().map(|c| shown_char(c, '\t')).collect();
    let blank = |c: char| if c == '\t' { '\t' } else { ' ' };
    let indent = head.chars().chain(kept.chars().take(before - skipped));
    let indent: String = indent.map(blank).collect();
    (format!("{head}{shown}{tail}"), indent)
}

/// One line without control characters, which could move the cursor or forge another finding.
fn visible(text: &str) -> String {
    text.chars().map(|c| shown_char(c, ' ')).collect()
}

fn shown_char(c: char, tab: char) -> char {
    // Bidirectional overrides and isolates can make text read other than it is.
    match c {
        '\t' => tab,
        '\n' | '\r' => ' ',
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => '\u{FFFD}',
        c if c.is_control() => '\u{FFFD}',
        c => c,
    }
}

fn json_lines(findings: &[&Finding]) -> String {
    let object = |finding: &&Finding| {
        let mut object = json!({
            "code": finding.code,
            "severity": finding.severity,
            "file": finding.file,
            "line": finding.at.line,
            "column": finding.at.column,
            "message": finding.message,
        });
        if let Some(hint) = &finding.hint {
            object["hint"] = json!(hint);
        }
        if let Some(pointer) = &finding.pointer {
            object["pointer"] = json!(pointer);
        }
        object.to_string()
    };
    let objects: Vec<String> = findings.iter().map(object).collect();
    match objects.is_empty() {
        true => "[]\n".to_owned(),
        false => format!("[\n{}\n]\n", objects.join(",\n")),
    }
}

fn sarif(findings: &[&Finding]) -> String {
    let mut codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules: Vec<_> = codes.iter().map(|code| json!({ "id": code })).collect();
    let results: Vec<_> = findings.iter().map(|f| sarif_result(f)).collect();
    let driver = json!({
        "name": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules,
    });
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{log}\n")
}

fn sarif_result(finding: &Finding) -> serde_json::Value {
    let Position { line, column } = finding.at;
    let region = json!({ "startLine": line, "startColumn": column });
    let artifact = json!({ "uri": file_uri(&finding.file) });
    let location = json!({ "artifactLocation": artifact, "region": region });
    json!({
        "ruleId": finding.code,
        "level": finding.severity.as_str(),
        "message": { "text": with_help(finding) },
        "locations": [{ "physicalLocation": location }],
    })
}

/// A path as a URI reference (RFC 3986): what is no path character is percent-encoded.
fn file_uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => {
                uri.push(char::from(byte));
            }
            b'\\' => uri.push('/'),
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

fn with_help(finding: &Finding) -> String {
    match &finding.hint {
        Some(hint) => format!("{}\nhelp: {hint}", finding.message),
        None => finding.message.clone(),
    }
}

fn github(finding: &Finding) -> String {
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let Position { line, column } = finding.at;
    let file = github_property(&finding.file);
    let title = github_property(finding.code);
    let message = github_data(&with_help(finding));
    format!("::{command} file={file},line={line},col={column},title={title}::{message}\n")
}

/// Escapes the message of a workflow command.
fn github_data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a workflow command, where `:` and `,` end the value.
fn github_property(text: &str) -> String {
    github_data(text).replace(':', "%3A").replace(',', "%2C")
}
