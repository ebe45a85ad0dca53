//! The command line: one command, one file.
//!
//! Commands for a running server speak its HTTP API through `client`; `lint`, `match` and `config`
//! need no server. Every command answers 0 when all is well, 1 when something was found or refused,
//! and 2 when it could not do its work.

mod apply;
mod client;
mod config;
mod dlq;
mod explain;
mod findings;
mod keys;
mod lines;
mod lint;
mod matching;
mod output;
mod problem;
mod progress;
mod publish;
mod receive;
mod schema;
mod serve;
mod settings;
mod status;
#[cfg(test)]
mod tests;
mod unmatched;

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::Fault;
use crate::{catalog, server, store};

/// An event bus that you run yourself: schemas at the door, content rules, durable queues.
#[derive(Debug, Parser)]
#[command(name = "dak", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server.
    Serve(serve::Args),
    /// Publish events.
    Publish(publish::Args),
    /// Receive events from a pull target's queue.
    Receive(receive::Args),
    /// Send a folder of schemas, rules and targets to the server, all or nothing.
    Apply(apply::Args),
    /// Check schemas, rules and targets without a server.
    Lint(lint::Args),
    /// Match events against rules without a server.
    Match(matching::Args),
    /// Say why a stored event matched its rules and missed the others.
    Explain(explain::Args),
    /// List events that matched no rule.
    Unmatched(unmatched::Args),
    /// Dead letters: list, show, redrive, purge.
    Dlq(dlq::Args),
    /// Schemas: register, list, show, check.
    Schema(schema::Args),
    /// How the server and its queues stand.
    Status(status::Args),
    /// API keys: create, list, delete.
    Keys(keys::Args),
    /// Show the settings in force, and where each came from.
    Config(config::Args),
}

/// How a command ended when it could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    /// All is well.
    Clean,
    /// Something was found, or refused.
    Found,
    /// There is no answer.
    Undecided,
}

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The settings are not valid.
    #[error("the settings are not valid:{}", listed(.0))]
    Config(Vec<Fault>),
    /// The server could not be started, or failed.
    #[error("the server cannot run")]
    Server(#[source] server::Error),
    /// The server could not be asked, or refused.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// An event cannot be made of the flags.
    #[error("this makes no event")]
    Event(#[source] publish::EventError),
    /// Rule or schema files cannot be read.
    #[error("the files could not be read")]
    Files(#[from] catalog::dir::Error),
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A data folder cannot be made.
    #[error("cannot make the folder {}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// The answer cannot be written.
    #[error("cannot write the answer")]
    Output(#[source] io::Error),
    /// The database of a data folder cannot be opened or changed.
    #[error("cannot use the database {}", path.display())]
    Store { path: PathBuf, source: store::Error },
    /// A name is none.
    #[error("`{name}` is no name")]
    Name {
        name: String,
        source: crate::document::NameError,
    },
    /// The threads of the program cannot be started.
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}

impl Error {
    /// Reading `path` failed.
    fn read(path: &Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }
}

/// Runs a command and tells how it ended.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    match cli.command.run() {
        Ok(Exit::Clean) => ExitCode::SUCCESS,
        Ok(Exit::Found) => ExitCode::from(1),
        Ok(Exit::Undecided) => ExitCode::from(2),
        // Whoever reads has read enough.
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Error::Client(client::Error::Refused(refused))) => {
            output::complain(&problem::text(&refused, &Default::default()));
            ExitCode::from(1)
        }
        Err(error) => {
            output::complain(&chain(&error));
            ExitCode::from(2)
        }
    }
}

impl Command {
    fn run(self) -> Result<Exit, Error> {
        match self {
            Self::Serve(args) => serve::run(&args),
            Self::Publish(args) => wait_for(publish::run(args)),
            Self::Receive(args) => wait_for(receive::run(args)),
            Self::Apply(args) => wait_for(apply::run(args)),
            Self::Lint(args) => lint::run(&args),
            Self::Match(args) => matching::run(&args),
            Self::Explain(args) => wait_for(explain::run(args)),
            Self::Unmatched(args) => wait_for(unmatched::run(args)),
            Self::Dlq(args) => wait_for(dlq::run(args)),
            Self::Schema(args) => wait_for(schema::run(args)),
            Self::Status(args) => wait_for(status::run(args)),
            Self::Keys(args) => wait_for(keys::run(args)),
            Self::Config(args) => config::run(&args),
        }
    }
}

/// Runs a command that waits for a server, on this thread.
fn wait_for(command: impl Future<Output = Result<Exit, Error>>) -> Result<Exit, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    runtime.block_on(command)
}

fn listed(faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("\n  {fault}")).collect()
}

/// An error and everything that led to it; what an error has said of its source is not repeated.
fn chain(error: &Error) -> String {
    let mut text = format!("error: {error}");
    let mut source = error.source();
    while let Some(error) = source {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text.push_str(&format!(": {said}"));
        }
        source = error.source();
    }
    text
}
