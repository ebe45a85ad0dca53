//! `dak.toml` as keys and texts, each with its line.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, Origin, Why};
use super::settings::{self, Setting};

/// Largest file read, in bytes.
const BYTES_MAX: u64 = 1024 * 1024;
/// Faults of syntax told of one file; those after the first tend to follow from it.
const SYNTAX_FAULTS_MAX: usize = 5;

/// What a file sets.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) entries: Vec<Entry>,
    pub(super) faults: Vec<Fault>,
}

/// One value as text.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) origin: Origin,
}

/// Reads a file; one that cannot be read is a fault too.
pub(super) fn read(path: &Path) -> Contents {
    let name = path.display().to_string();
    match text_at(path) {
        Ok(text) => parse(&name, &text),
        Err(why) => {
            let origin = Origin::File {
                file: name.clone(),
                line: 1,
            };
            Contents {
                entries: Vec::new(),
                faults: vec![Fault::new(&name, origin, why)],
            }
        }
    }
}

fn text_at(path: &Path) -> Result<String, Why> {
    let bytes = std::fs::metadata(path).map_err(Why::Unreadable)?.len();
    if bytes > BYTES_MAX {
        return Err(Why::TooLarge {
            bytes,
            bytes_max: BYTES_MAX,
        });
    }
    std::fs::read_to_string(path).map_err(Why::Unreadable)
}

fn parse(name: &str, text: &str) -> Contents {
    let mut reader = Reader {
        name,
        text,
        contents: Contents::default(),
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors.iter().take(SYNTAX_FAULTS_MAX) {
        let at = error.span().map_or(0, |span| span.start);
        let message = error.message().to_owned();
        reader.fault(name, at, Why::Syntax { message });
    }
    // A broken file can be read in ways that nobody meant.
    if errors.is_empty() {
        reader.table("", table.get_ref());
    }
    reader.contents
}

struct Reader<'a> {
    name: &'a str,
    text: &'a str,
    contents: Contents,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (name, value) in entries {
            let key = match prefix {
                "" => name.get_ref().to_string(),
                prefix => format!("{prefix}.{}", name.get_ref()),
            };
            self.value(&key, name.span().start, value);
        }
    }

    fn value(&mut self, key: &str, at: usize, value: &Spanned<DeValue<'_>>) {
        if let DeValue::Table(table) = value.get_ref()
            && Setting::sections().any(|section| section == key)
        {
            self.table(key, table);
            return;
        }
        let Some(setting) = settings::all().iter().find(|setting| setting.key == key) else {
            let fault = Fault::unknown(key, self.origin(at));
            self.contents.faults.push(fault);
            return;
        };
        match text_of(value.get_ref()) {
            Ok(value) => {
                let entry = Entry {
                    key: key.to_owned(),
                    value,
                    origin: self.origin(at),
                };
                self.contents.entries.push(entry);
            }
            Err(found) => {
                let allowed = setting.allowed;
                self.fault(key, at, Why::Kind { found, allowed });
            }
        }
    }

    fn fault(&mut self, key: &str, at: usize, why: Why) {
        let fault = Fault::new(key, self.origin(at), why);
        self.contents.faults.push(fault);
    }

    fn origin(&self, at: usize) -> Origin {
        let before = self.text.as_bytes().iter().take(at);
        Origin::File {
            file: self.name.to_owned(),
            line: before.filter(|byte| **byte == b'\n').count() + 1,
        }
    }
}

/// A value as a flag would spell it, or what else it is.
fn text_of(value: &DeValue<'_>) -> Result<String, &'static str> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Boolean(flag) => Ok(flag.to_string()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Integer(number) => {
            let decimal = i64::from_str_radix(number.as_str(), number.radix());
            Ok(decimal.map_or_else(|_| number.to_string(), |number| number.to_string()))
        }
        DeValue::Datetime(_) => Err("a date or time"),
        DeValue::Array(_) => Err("a list"),
        DeValue::Table(_) => Err("a table"),
    }
}
