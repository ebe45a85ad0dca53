//! What commands print: lines, tables and JSON to standard output, complaints to standard error.

use std::io::{self, Write as _};

use clap::ValueEnum;
use serde_json::Value;

use super::Error;
use super::client::Answer;

/// How a listing is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Format {
    /// Columns, for people.
    #[default]
    Table,
    /// One JSON document, for programs.
    Json,
}

/// Rows under headings.
#[derive(Debug, Clone)]
pub(super) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    /// A row for each item of a JSON list; a column is a heading and the JSON pointer to its cell.
    pub(super) fn of(items: &Value, columns: &[(&'static str, &str)]) -> Self {
        let headings: Vec<&'static str> = columns.iter().map(|(heading, _)| *heading).collect();
        let mut table = Self::new(&headings);
        for item in items.as_array().into_iter().flatten() {
            let cell = |(_, pointer): &(_, &str)| cell(item.pointer(pointer));
            table.add(columns.iter().map(cell).collect());
        }
        table
    }

    /// Adds a row; a cell for each heading.
    pub(super) fn add(&mut self, row: Vec<String>) {
        self.rows
            .push(row.iter().map(|cell| visible(cell)).collect());
    }

    /// The table as lines of equal columns; without rows, the word for nothing.
    pub(super) fn to_text(&self) -> String {
        if self.rows.is_empty() {
            return "none\n".to_owned();
        }
        let headings: Vec<String> = self.headings.iter().map(|h| (*h).to_owned()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&headings).chain(&self.rows).collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..headings.len()).map(width).collect();
        let mut text = String::new();
        for line in lines {
            let cells = line.iter().zip(&widths);
            let padded: Vec<String> = cells
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            text.push_str(padded.join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// Prints the server's answer: as it came, or as a table made of it.
pub(super) fn listing(
    answer: &Answer,
    format: Format,
    table: impl FnOnce(&Value) -> String,
) -> Result<(), Error> {
    match format {
        Format::Json => print(&format!("{}\n", answer.text().trim_end())),
        Format::Table => print(&table(&answer.json()?)),
    }
}

/// Writes to standard output.
pub(super) fn print(text: &str) -> Result<(), Error> {
    let mut output = io::stdout().lock();
    let written = output.write_all(text.as_bytes());
    written.and_then(|()| output.flush()).map_err(Error::Output)
}

/// Writes a line to standard error; when even that fails there is nobody to tell.
pub(super) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{}", text.trim_end());
}

/// A JSON value as a cell of a table.
pub(super) fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) if items.is_empty() => "-".to_owned(),
        Some(Value::Array(items)) => {
            let cells: Vec<String> = items.iter().map(|item| cell(Some(item))).collect();
            cells.join(", ")
        }
        Some(other) => other.to_string(),
    }
}

/// Text without control characters, which could move the cursor or hide what stands there.
pub(super) fn visible(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => '\u{FFFD}',
        c if c.is_control() => '\u{FFFD}',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// JSON text on one line: white space between its parts goes, every digit and escape stays.
pub(super) fn one_line(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for c in json.chars() {
        if !in_string && matches!(c, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        if c == '"' && !is_escaped {
            in_string = !in_string;
        }
        is_escaped = c == '\\' && !is_escaped;
        line.push(c);
    }
    line
}
