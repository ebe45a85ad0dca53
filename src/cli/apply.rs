//! `dak apply`: send a folder to the server, which makes or changes everything in it, or nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::client::{self, Remote};
use super::findings::{self, counted, plural};
use super::output::{self, Format, cell, visible};
use super::{Error, Exit, problem};
use crate::catalog::Kind;
use crate::catalog::dir::{self, Files};
use crate::clock::Clock;
use crate::document::report;

/// Flags of `dak apply`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folders of schemas, rules and targets.
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn run(args: Args) -> Result<Exit, Error> {
    let files = dir::read(&args.paths, Clock::system().now())?;
    // What is wrong within a document stays wrong wherever it is sent. Whether a name it mentions
    // is known, only the server can tell.
    if !files.findings.is_empty() {
        let text = report::render(&files.findings, report::Format::Text, &files.sources);
        output::print(&text)?;
        let counted = counted(&files.findings);
        output::complain(&format!("nothing was sent: {counted}"));
        return Ok(Exit::Found);
    }
    let client = args.remote.client()?;
    let url = client.url(&["v1", "apply"], &[]);
    match client.post(url, &body(&files)).await {
        Ok(answer) => {
            output::listing(&answer, args.format, |applied| {
                applied_text(applied, &files)
            })?;
            Ok(Exit::Clean)
        }
        Err(client::Error::Refused(refused)) => {
            output::complain(&problem::text(&refused, &files.sources));
            Ok(Exit::Found)
        }
        Err(error) => Err(error.into()),
    }
}

fn body(files: &Files) -> Value {
    let schemas: Vec<Value> = files
        .documents
        .values()
        .filter(|document| document.id.kind == Kind::Schema)
        .map(|schema| {
            json!({
                "type": schema.id.name,
                "version": schema.id.version,
                "file": schema.file,
                "text": schema.text,
            })
        })
        .collect();
    let others = files
        .documents
        .values()
        .filter(|document| document.id.kind != Kind::Schema);
    let names: BTreeSet<&String> = others.map(|document| &document.file).collect();
    let documents: Vec<Value> = names
        .into_iter()
        .map(|file| json!({ "file": file, "text": files.sources.get(file) }))
        .collect();
    json!({ "documents": documents, "schemas": schemas })
}

fn applied_text(applied: &Value, files: &Files) -> String {
    let warnings = findings::read(&applied["warnings"]);
    let mut text = report::render(&warnings, report::Format::Text, &files.sources);
    let mut counts = Vec::new();
    for what in ["created", "changed"] {
        let documents = applied[what]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for document in documents {
            text.push_str(&visible(&format!("{what} {}", cell(Some(document)))));
            text.push('\n');
        }
        counts.push(format!("{} {what}", documents.len()));
    }
    counts.push(format!("{} unchanged", cell(applied.get("unchanged"))));
    let files = plural(files.sources.len(), "file");
    text.push_str(&format!("{files} applied: {}\n", counts.join(", ")));
    text
}
