//! `dak schema`: register, list, show and compare schemas.

mod check;

use std::path::PathBuf;

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use super::client::{Client, Remote};
use super::output::{self, Format, Table, cell, visible};
use super::{Error, Exit};

const SCHEMA_JSON: &str = "application/schema+json";

/// Flags of `dak schema`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Register the next version of an event type's schema.
    Register {
        /// The event type.
        #[arg(value_name = "TYPE")]
        event_type: String,
        /// The file of the JSON Schema.
        file: PathBuf,
        #[command(flatten)]
        how: How,
    },
    /// List event types and the versions of their schemas.
    List {
        #[command(flatten)]
        how: How,
    },
    /// Print a version's schema as it was registered.
    Show {
        /// The event type.
        #[arg(value_name = "TYPE")]
        event_type: String,
        /// A number, or `latest`.
        #[arg(value_name = "VERSION", default_value = "latest")]
        number: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Say whether one schema may follow another, without a server: exit 0 when compatible, 1 when
    /// not, 2 when undecided.
    Check(check::Check),
}

#[derive(Debug, clap::Args)]
struct How {
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn run(args: Args) -> Result<Exit, Error> {
    match args.command {
        Command::Register {
            event_type,
            file,
            how,
        } => register(&event_type, file, how).await?,
        Command::List { how } => list(how).await?,
        Command::Show {
            event_type,
            number,
            remote,
        } => show(&remote.client()?, &event_type, &number).await?,
        Command::Check(args) => return check::run(&args),
    }
    Ok(Exit::Clean)
}

async fn register(event_type: &str, file: PathBuf, how: How) -> Result<(), Error> {
    let text = std::fs::read(&file).map_err(|source| Error::read(&file, source))?;
    let client = how.remote.client()?;
    let url = client.url(&["v1", "schemas", event_type, "versions"], &[]);
    let answer = client
        .send(Method::POST, url, SCHEMA_JSON, Bytes::from(text))
        .await?;
    output::listing(&answer, how.format, |registered| {
        let version = cell(registered.get("version"));
        let what = match registered["created"] == true {
            true => "registered as",
            false => "is already",
        };
        visible(&format!("{what} version {version} of {event_type}")) + "\n"
    })
}

async fn list(how: How) -> Result<(), Error> {
    let client = how.remote.client()?;
    let answer = client.get(client.url(&["v1", "schemas"], &[])).await?;
    output::listing(&answer, how.format, |answer: &Value| {
        let columns = [
            ("TYPE", "/type"),
            ("VERSIONS", "/versions"),
            ("DEFAULT", "/default_version"),
            ("MODE", "/mode"),
        ];
        Table::of(&answer["schemas"], &columns).to_text()
    })
}

async fn show(client: &Client, event_type: &str, number: &str) -> Result<(), Error> {
    let url = client.url(&["v1", "schemas", event_type, "versions", number], &[]);
    let answer = client.get(url).await?;
    output::print(&format!("{}\n", answer.text().trim_end()))
}
