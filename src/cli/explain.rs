//! `dak explain`: why a stored event matched its rules and missed the others.

use std::fmt::Write as _;

use serde_json::Value;

use super::client::Remote;
use super::output::{self, Format, cell, visible};
use super::{Error, Exit};

/// Flags of `dak explain`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The event's position in the log, as its receipt says.
    seq: i64,
    /// Only this rule.
    #[arg(long)]
    rule: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn run(args: Args) -> Result<Exit, Error> {
    let client = args.remote.client()?;
    let seq = args.seq.to_string();
    let url = client.url(&["v1", "events", &seq, "explain"], &[("rule", args.rule)]);
    let answer = client.get(url).await?;
    output::listing(&answer, args.format, text)?;
    Ok(Exit::Clean)
}

fn text(answer: &Value) -> String {
    let mut text = String::new();
    for verdict in answer["rules"].as_array().into_iter().flatten() {
        let rule = visible(&cell(verdict.get("rule")));
        if verdict["matched"] == true {
            let _ = writeln!(text, "{rule}: matches");
            continue;
        }
        let failures = verdict["failures"].as_array();
        let failures = failures.map(Vec::as_slice).unwrap_or_default();
        let held = cell(verdict.get("held"));
        let failed = failures.len();
        let _ = writeln!(
            text,
            "{rule}: no match; conditions held {held}, failed {failed}"
        );
        for failure in failures {
            let _ = writeln!(text, "  {}", failure_text(failure));
        }
    }
    if text.is_empty() {
        text.push_str("no rules\n");
    }
    text
}

/// `data.amount: expected [{"numeric":[">=",5000]}], is 12 (out of range)`.
pub(super) fn failure_text(failure: &Value) -> String {
    let path = cell(failure.get("path"));
    let expected = cell(failure.get("expected"));
    let is = match failure["actual"].as_str() {
        Some(actual) => format!("is {actual}"),
        None => "is not there".to_owned(),
    };
    let reason = failure.pointer("/reason/kind").or(failure.get("reason"));
    let reason = cell(reason).replace('_', " ");
    visible(&format!("{path}: expected {expected}, {is} ({reason})"))
}
