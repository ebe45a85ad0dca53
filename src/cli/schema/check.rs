//! `dak schema check`: whether one schema may follow another, without a server.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::json;

use crate::cli::output::{self, visible};
use crate::cli::{Error, Exit};
use crate::schema::compatibility::{
    self, CheckOptions, Dialect, Difference, Direction, Level, Report, Verdict,
};

const LEVELS: &str = "NONE, BACKWARD, BACKWARD_TRANSITIVE, FORWARD, FORWARD_TRANSITIVE, FULL or \
                      FULL_TRANSITIVE";
const DIALECTS: &str = "semantic, confluent or confluent-lenient";

/// Flags of `dak schema check`.
#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// The file of the old version.
    old: PathBuf,
    /// The file of the new version.
    new: PathBuf,
    /// Which must understand the other's data: BACKWARD, FORWARD, FULL and so on.
    #[arg(long, default_value = "BACKWARD", value_parser = level)]
    level: Level,
    /// By which judgement: semantic, confluent or confluent-lenient.
    #[arg(long, default_value = "semantic", value_parser = dialect)]
    dialect: Dialect,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How the answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

fn level(text: &str) -> Result<Level, String> {
    let word = text.to_ascii_uppercase().replace('-', "_");
    serde_json::from_value(json!(word)).map_err(|_| format!("the levels are {LEVELS}"))
}

fn dialect(text: &str) -> Result<Dialect, String> {
    serde_json::from_value(json!(text)).map_err(|_| format!("the dialects are {DIALECTS}"))
}

pub(super) fn run(args: &Check) -> Result<Exit, Error> {
    let (old, new) = (read(&args.old)?, read(&args.new)?);
    let options = CheckOptions {
        dialect: args.dialect,
        ..CheckOptions::default()
    };
    let report = compatibility::check(&old, &new, args.level, &options);
    output::print(&match args.format {
        Format::Text => text(&report),
        Format::Json => format!("{}\n", json!(report)),
    })?;
    Ok(match report.verdict {
        Verdict::Compatible => Exit::Clean,
        Verdict::Incompatible => Exit::Found,
        Verdict::Undecided => Exit::Undecided,
    })
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::read(path, source))
}

fn text(report: &Report) -> String {
    let mut text = match report.verdict {
        Verdict::Compatible => "compatible\n".to_owned(),
        Verdict::Incompatible => "incompatible\n".to_owned(),
        Verdict::Undecided => "undecided\n".to_owned(),
    };
    for difference in &report.differences {
        add(difference, &mut text);
    }
    text
}

fn add(difference: &Difference, text: &mut String) {
    let path = match difference.path.as_str() {
        "" => "(the whole)",
        path => path,
    };
    let (kind, message) = (&difference.kind, &difference.message);
    let (direction, witness) = match difference.direction {
        Direction::Backward => ("backward", "the old version takes and the new one refuses"),
        Direction::Forward => ("forward", "the new version takes and the old one refuses"),
    };
    let _ = writeln!(
        text,
        "  {}",
        visible(&format!("{path}: {message} ({kind}, {direction})"))
    );
    if let Some(value) = &difference.witness {
        let _ = writeln!(text, "    {witness}: {}", visible(&value.to_string()));
    }
    if let Some(suggestion) = &difference.suggestion {
        let _ = writeln!(text, "    try: {}", visible(suggestion));
    }
}
