//! `dak dlq`: dead letters, to look at, send again or forget.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::client::{Answer, Client, Remote};
use super::findings::plural;
use super::output::{self, Format, Table, cell, one_line, visible};
use super::progress::Progress;
use super::{Error, Exit};

/// Dead letters that the server moves or forgets in one call.
const CALL_MAX: u64 = 1_000;

/// Flags of `dak dlq`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List dead letters.
    List {
        #[command(flatten)]
        which: Which,
        /// The most to list.
        #[arg(long)]
        limit: Option<u64>,
        #[command(flatten)]
        how: How,
    },
    /// Show one dead letter: why it died, every attempt, the whole event.
    Show {
        /// Its id, as `list` prints it.
        id: i64,
        #[command(flatten)]
        how: How,
    },
    /// Put dead letters back into their queues; all of them when nothing narrows it.
    Redrive {
        #[command(flatten)]
        settle: Settle,
    },
    /// Forget dead letters for good.
    Purge {
        #[command(flatten)]
        settle: Settle,
        /// Purge all dead letters of all targets.
        #[arg(long, required_unless_present_any = ["target", "reason", "id"])]
        all: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Only those of this target.
    #[arg(long)]
    target: Option<String>,
    /// Only those with this reason, such as `exhausted`.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Settle {
    #[command(flatten)]
    which: Which,
    /// Only this one; may be repeated.
    #[arg(long)]
    id: Vec<i64>,
    /// The most to take, oldest first.
    #[arg(long)]
    limit: Option<u64>,
    #[command(flatten)]
    how: How,
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
        Command::List { which, limit, how } => list(which, limit, how).await?,
        Command::Show { id, how } => show(id, how).await?,
        Command::Redrive { settle } => settle.run("redrive", "redriven").await?,
        Command::Purge { settle, .. } => settle.run("purge", "purged").await?,
    }
    Ok(Exit::Clean)
}

async fn list(which: Which, limit: Option<u64>, how: How) -> Result<(), Error> {
    let client = how.remote.client()?;
    let query = [
        ("target", which.target),
        ("reason", which.reason),
        ("limit", limit.map(|limit| limit.to_string())),
    ];
    let answer = client
        .get(client.url(&["v1", "dead-letters"], &query))
        .await?;
    output::listing(&answer, how.format, |answer| {
        let columns = [
            ("ID", "/id"),
            ("TARGET", "/target"),
            ("SEQ", "/seq"),
            ("REASON", "/reason"),
            ("DETAIL", "/detail"),
            ("DIED_AT", "/died_at"),
            ("FAILURES", "/failures"),
            ("TYPE", "/event/type"),
            ("EVENT_ID", "/event/id"),
        ];
        Table::of(&answer["dead_letters"], &columns).to_text()
    })
}

async fn show(id: i64, how: How) -> Result<(), Error> {
    let client = how.remote.client()?;
    let url = client.url(&["v1", "dead-letters", &id.to_string()], &[]);
    let answer = client.get(url).await?;
    let event = event_of(&answer)?;
    output::listing(&answer, how.format, |letter| letter_text(letter, &event))
}

/// The event of an answer as JSON text, digit for digit.
fn event_of(answer: &Answer) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct Holder<'a> {
        #[serde(borrow)]
        event: Option<&'a RawValue>,
    }
    let holder: Holder<'_> = answer.parse()?;
    Ok(holder
        .event
        .map_or_else(String::new, |event| one_line(event.get())))
}

fn letter_text(letter: &Value, event: &str) -> String {
    let mut text = String::new();
    for name in [
        "id", "target", "seq", "rules", "reason", "detail", "died_at", "failures", "receives",
    ] {
        let _ = writeln!(
            text,
            "{:10}{}",
            format!("{name}:"),
            visible(&cell(letter.get(name)))
        );
    }
    let columns = [
        ("AT", "/at"),
        ("MS", "/duration_ms"),
        ("OUTCOME", "/outcome"),
        ("STATUS", "/status"),
        ("EXCERPT", "/excerpt"),
    ];
    let attempts = Table::of(&letter["attempts"], &columns).to_text();
    let _ = write!(text, "attempts:\n{attempts}event:\n{}\n", visible(event));
    text
}

impl Settle {
    /// Calls until all that are meant are settled.
    async fn run(self, verb: &str, done: &str) -> Result<(), Error> {
        let client = self.how.remote.client()?;
        let url = client.url(&["v1", "dead-letters", verb], &[]);
        let mut left = self.meant(&client).await?;
        let mut settled = 0;
        let mut progress = Progress::new("dead letters");
        while left > 0 {
            let ask = self.body(left.min(CALL_MAX));
            let answer = client.post(url.clone(), &ask).await?.json()?;
            let count = answer[done].as_u64().unwrap_or_default();
            settled += count;
            progress.at(settled);
            // Those that die again meanwhile are not taken a second time.
            left = if count < left.min(CALL_MAX) {
                0
            } else {
                left - count
            };
        }
        drop(progress);
        match self.how.format {
            Format::Json => output::print(&format!("{}\n", json!({ (done): settled }))),
            Format::Table => {
                let count = usize::try_from(settled).unwrap_or(usize::MAX);
                output::print(&format!("{done} {}\n", plural(count, "dead letter")))
            }
        }
    }

    /// At most how many are meant: those asked for, or as many as there are now.
    async fn meant(&self, client: &Client) -> Result<u64, Error> {
        if !self.id.is_empty() {
            return Ok(self.id.len() as u64);
        }
        if let Some(limit) = self.limit {
            return Ok(limit);
        }
        let status = client
            .get(client.url(&["v1", "status"], &[]))
            .await?
            .json()?;
        let targets = status["targets"].as_array().into_iter().flatten();
        Ok(targets
            .filter_map(|target| target.pointer("/queue/dead")?.as_u64())
            .sum())
    }

    fn body(&self, limit: u64) -> Value {
        let mut body = json!({ "limit": limit });
        if let Some(target) = &self.which.target {
            body["target"] = json!(target);
        }
        if let Some(reason) = &self.which.reason {
            body["reason"] = json!(reason);
        }
        if !self.id.is_empty() {
            body["ids"] = json!(self.id);
        }
        body
    }
}
