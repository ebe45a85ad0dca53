//! `dak unmatched`: events that matched no rule, and the rule that came nearest.

use serde_json::Value;

use super::client::Remote;
use super::explain::failure_text;
use super::output::{self, Format, Table, cell};
use super::{Error, Exit};

/// Flags of `dak unmatched`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this bus.
    #[arg(long)]
    bus: Option<String>,
    /// The most groups to list.
    #[arg(long)]
    limit: Option<u32>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn run(args: Args) -> Result<Exit, Error> {
    let client = args.remote.client()?;
    let limit = args.limit.map(|limit| limit.to_string());
    let query = [("bus", args.bus), ("limit", limit)];
    let answer = client.get(client.url(&["v1", "unmatched"], &query)).await?;
    output::listing(&answer, args.format, table)?;
    Ok(Exit::Clean)
}

fn table(answer: &Value) -> String {
    let mut table = Table::new(&[
        "BUS",
        "SOURCE",
        "TYPE",
        "COUNT",
        "LAST_SEEN",
        "SAMPLE",
        "NEAREST",
        "BECAUSE",
    ]);
    for group in answer["unmatched"].as_array().into_iter().flatten() {
        let because = group.pointer("/nearest/failures/0").map(failure_text);
        let mut row: Vec<String> = [
            "/bus",
            "/source",
            "/type",
            "/count",
            "/last_seen",
            "/sample/seq",
            "/nearest/rule",
        ]
        .iter()
        .map(|pointer| cell(group.pointer(pointer)))
        .collect();
        row.push(because.unwrap_or_else(|| "-".to_owned()));
        table.add(row);
    }
    table.to_text()
}
