//! `dak status`: how the server and its queues stand.

use std::time::Duration;

use serde_json::Value;

use super::client::Remote;
use super::output::{self, Format, Table, cell};
use super::{Error, Exit};
use crate::document::duration_text;

/// Flags of `dak status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn run(args: Args) -> Result<Exit, Error> {
    let client = args.remote.client()?;
    let answer = client.get(client.url(&["v1", "status"], &[])).await?;
    output::listing(&answer, args.format, table)?;
    Ok(Exit::Clean)
}

fn table(status: &Value) -> String {
    let count = |name: &str| cell(status.get(name));
    let uptime = status["uptime_seconds"].as_u64().unwrap_or_default();
    let uptime = duration_text(Duration::from_secs(uptime));
    let head = format!(
        "dak {}, up {uptime}: buses {}, schemas {}, rules {}\n\n",
        count("version"),
        count("buses"),
        count("schemas"),
        count("rules"),
    );
    let columns = [
        ("TARGET", "/name"),
        ("TYPE", "/type"),
        ("READY", "/queue/ready"),
        ("DELAYED", "/queue/delayed"),
        ("LEASED", "/queue/leased"),
        ("DEAD", "/queue/dead"),
        ("OLDEST_S", "/queue/oldest_age_seconds"),
        ("PAUSED", "/queue/paused"),
        ("DISABLED", "/queue/disabled"),
        ("HELD", "/queue/held/why"),
    ];
    format!(
        "{head}{}",
        Table::of(&status["targets"], &columns).to_text()
    )
}
