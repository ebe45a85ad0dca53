//! `dak receive`: events from a pull target's queue, one JSON line each.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use url::Url;

use super::client::{Client, Remote};
use super::output::{self, one_line};
use super::{Error, Exit};

/// Events of one call at most, as the API has it.
const CALL_EVENTS_MAX: u64 = 100;
/// Seconds that the server waits at most.
const WAIT_SECONDS_MAX: u64 = 20;
/// How many are received when nobody says how many.
const EVENTS_USUAL: u64 = 10;

/// Flags of `dak receive`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The pull target.
    target: String,
    /// The most events to receive [default: 10, or no limit with --follow].
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// Seconds to wait for the first event [default: 0, or 20 with --follow].
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(..=WAIT_SECONDS_MAX))]
    wait: Option<u64>,
    /// Seconds to hold what is received [default: the target's setting].
    #[arg(long, value_name = "S")]
    lease: Option<u64>,
    /// Acknowledge each event once it is printed; otherwise it comes again when its lease ends.
    #[arg(long)]
    ack: bool,
    /// Go on until stopped.
    #[arg(long)]
    follow: bool,
    /// Print the whole delivery (lease token, rules, counts) with the event inside.
    #[arg(long)]
    deliveries: bool,
    #[command(flatten)]
    remote: Remote,
}

/// What one call received, each delivery as the server wrote it.
#[derive(Debug, Deserialize)]
struct Received<'a> {
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Delivery<'a> {
    lease_token: String,
    #[serde(borrow)]
    event: &'a RawValue,
}

#[derive(Debug, Deserialize)]
struct Settled {
    failed: Vec<serde_json::Value>,
}

pub(super) async fn run(args: Args) -> Result<Exit, Error> {
    let client = args.remote.client()?;
    let usual = if args.follow { u64::MAX } else { EVENTS_USUAL };
    let mut left = args.max.unwrap_or(usual);
    let mut wait = args
        .wait
        .unwrap_or(if args.follow { WAIT_SECONDS_MAX } else { 0 });
    while left > 0 {
        let received = receive(&client, &args, left.min(CALL_EVENTS_MAX), wait).await?;
        left -= received.min(left);
        if !args.follow {
            if received == 0 {
                break;
            }
            wait = 0;
        }
    }
    Ok(Exit::Clean)
}

/// Receives, prints and perhaps acknowledges up to `events_max` events; tells how many came.
async fn receive(
    client: &Client,
    args: &Args,
    events_max: u64,
    wait_seconds: u64,
) -> Result<u64, Error> {
    let mut ask = json!({ "max_events": events_max, "wait_seconds": wait_seconds });
    if let Some(seconds) = args.lease {
        ask["lease_seconds"] = json!(seconds);
    }
    let answer = client.post(address(client, args, "receive"), &ask).await?;
    let received: Received<'_> = answer.parse()?;
    let mut tokens = Vec::with_capacity(received.events.len());
    let mut text = String::new();
    for raw in &received.events {
        let delivery: Delivery<'_> = answer.parse_part(raw)?;
        let shown = if args.deliveries {
            *raw
        } else {
            delivery.event
        };
        text.push_str(&one_line(shown.get()));
        text.push('\n');
        tokens.push(delivery.lease_token);
    }
    // Nothing is acknowledged that nobody has seen.
    output::print(&text)?;
    let count = tokens.len() as u64;
    if args.ack && count > 0 {
        acknowledge(client, args, tokens).await?;
    }
    Ok(count)
}

async fn acknowledge(client: &Client, args: &Args, tokens: Vec<String>) -> Result<(), Error> {
    let ask = json!({ "lease_tokens": tokens });
    let answer = client
        .post(address(client, args, "acknowledge"), &ask)
        .await?;
    let settled: Settled = answer.parse()?;
    if !settled.failed.is_empty() {
        let count = settled.failed.len();
        output::complain(&format!(
            "{count} leases had ended before; those events come again"
        ));
    }
    Ok(())
}

fn address(client: &Client, args: &Args, verb: &str) -> Url {
    client.url(&["v1", "queues", &args.target, verb], &[])
}
