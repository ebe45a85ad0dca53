//! `dak publish`: events from a file, from standard input or from flags.

mod build;
mod stream;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::ValueEnum;
use http::Method;
use serde_json::Value;
use url::Url;

use super::client::{self, Client, Remote};
use super::lines::STDIN;
use super::output::{self, cell, visible};
use super::problem::{self, Problem};
use super::{Error, Exit, settings};

pub(super) use build::Error as EventError;

const STRUCTURED: &str = "application/cloudevents+json";
const BATCH: &str = "application/cloudevents-batch+json";

/// Flags of `dak publish`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file of one CloudEvent in JSON, or of a JSON array of them; `-` for standard input.
    #[arg(
        value_name = "FILE",
        required_unless_present = "event_type",
        conflicts_with_all = [
            "event_type", "source", "id", "subject", "data", "datacontenttype", "attribute",
        ]
    )]
    file: Option<PathBuf>,
    /// The file holds one event a line. Good ones are published even when others are refused.
    #[arg(long, conflicts_with = "event_type")]
    lines: bool,
    /// The bus to publish to.
    #[arg(long, default_value = "default")]
    bus: String,
    #[command(flatten)]
    event: Parts,
    /// How to print receipts.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

/// An event in flags.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Event")]
struct Parts {
    /// Make an event of this type from flags.
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Where it happened, a URI reference.
    #[arg(long, requires = "event_type", default_value = "/dak/cli")]
    source: String,
    /// Its id [default: a random one].
    #[arg(long, requires = "event_type")]
    id: Option<String>,
    /// What it happened to.
    #[arg(long, requires = "event_type")]
    subject: Option<String>,
    /// Its data: JSON, or text when the content type is not JSON.
    #[arg(long, requires = "event_type")]
    data: Option<String>,
    /// The content type of the data [default: application/json].
    #[arg(long, requires = "event_type", value_name = "MEDIA_TYPE")]
    datacontenttype: Option<String>,
    /// A further attribute; may be repeated.
    #[arg(long, requires = "event_type", value_name = "NAME=VALUE", value_parser = settings::pair)]
    attribute: Vec<(String, String)>,
}

/// How receipts are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// For people, a line for each event.
    #[default]
    Text,
    /// A JSON object on a line for each event, as the server answers.
    Json,
}

pub(super) async fn run(args: Args) -> Result<Exit, Error> {
    let client = args.remote.client()?;
    let (body, media_type) = match &args.file {
        Some(file) if args.lines => return stream::run(&args, &client, file).await,
        Some(file) => whole(file)?,
        None => (build::event(&args.event).map_err(Error::Event)?, STRUCTURED),
    };
    let url = address(&client, &args.bus, false);
    match client.send(Method::POST, url, media_type, body).await {
        Ok(answer) => {
            print_receipts(&answer.json()?, args.format)?;
            Ok(Exit::Clean)
        }
        Err(client::Error::Refused(refused)) => {
            output::complain(&problem::text(&refused, &Default::default()));
            Ok(Exit::Found)
        }
        Err(error) => Err(error.into()),
    }
}

fn address(client: &Client, bus: &str, partial: bool) -> Url {
    let partial = partial.then(|| "true".to_owned());
    client.url(&["v1", "buses", bus, "events"], &[("partial", partial)])
}

/// A whole file; an array makes it a batch.
fn whole(path: &Path) -> Result<(Bytes, &'static str), Error> {
    let mut text = Vec::new();
    let read = if path == Path::new(STDIN) {
        std::io::stdin().lock().read_to_end(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut text))
    };
    read.map_err(|source| Error::read(path, source))?;
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    let media_type = if first == Some(&b'[') {
        BATCH
    } else {
        STRUCTURED
    };
    Ok((text.into(), media_type))
}

fn print_receipts(answer: &Value, format: Format) -> Result<(), Error> {
    let one = std::slice::from_ref(answer);
    let receipts = answer["events"].as_array().map_or(one, Vec::as_slice);
    let lines: Vec<String> = receipts
        .iter()
        .map(|receipt| line(receipt, format))
        .collect();
    output::print(&lines.concat())
}

fn line(receipt: &Value, format: Format) -> String {
    match format {
        Format::Json => format!("{receipt}\n"),
        Format::Text => visible(&receipt_text(receipt)) + "\n",
    }
}

/// `accepted at 812 (schema order.v1 version 2): rules a, b; targets x`.
fn receipt_text(receipt: &Value) -> String {
    let mut text = format!("accepted at {}", cell(receipt.get("seq")));
    if receipt["duplicate"] == true {
        text.push_str(" before");
    }
    if receipt["schema"].is_object() {
        let event_type = cell(receipt.pointer("/schema/type"));
        let version = cell(receipt.pointer("/schema/version"));
        text.push_str(&format!(" (schema {event_type} version {version}"));
        text.push_str(if receipt["warned"] == true {
            ", broken)"
        } else {
            ")"
        });
    }
    let names = |name: &str| {
        receipt[name]
            .as_array()
            .is_some_and(|names| !names.is_empty())
    };
    if !names("rules") {
        return text + ": matched no rule";
    }
    text.push_str(&format!(": rules {}", cell(receipt.get("rules"))));
    if names("targets") {
        text.push_str(&format!("; targets {}", cell(receipt.get("targets"))));
    }
    text
}

/// A refused line of a file.
fn complain_of_line(number: u64, problem: &Problem) {
    let text = problem::text(problem, &Default::default());
    output::complain(&format!("line {number} {text}"));
}
