//! `dak lint`: what the server would refuse or warn of, found without a server.

use std::path::PathBuf;

use clap::ValueEnum;

use super::findings::{counted, plural};
use super::{Error, Exit, output};
use crate::catalog::{Catalog, dir};
use crate::clock::Clock;
use crate::document::{Finding, report};

/// Flags of `dak lint`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files and folders of schemas, rules and targets, judged together.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How to print findings.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// For people, with the line that is meant.
    #[default]
    Text,
    /// A JSON list.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations on a pull request on GitHub.
    Github,
}

pub(super) fn run(args: &Args) -> Result<Exit, Error> {
    let files = dir::read(&args.paths, Clock::system().now())?;
    let count = files.sources.len();
    let mut findings = files.findings;
    match Catalog::compile(files.documents, None) {
        Ok(catalog) => findings.extend(catalog.warnings()),
        Err(found) => findings.extend(found),
    }
    let format = match args.format {
        Format::Text => report::Format::Text,
        Format::Json => report::Format::Json,
        Format::Sarif => report::Format::Sarif,
        Format::Github => report::Format::Github,
    };
    output::print(&report::render(&findings, format, &files.sources))?;
    output::complain(&summary(&findings, count));
    Ok(match findings.is_empty() {
        true => Exit::Clean,
        false => Exit::Found,
    })
}

fn summary(findings: &[Finding], files: usize) -> String {
    let files = plural(files, "file");
    match findings.is_empty() {
        true => format!("{files}, no findings"),
        false => format!("{} in {files}", counted(findings)),
    }
}
