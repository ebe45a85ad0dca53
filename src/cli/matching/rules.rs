//! Rules from rule files, folders and JSON lines of `{"name", "pattern"}`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::catalog::{Document, Part, dir};
use crate::cli::Error;
use crate::cli::lines::{Chunks, is_blank, lines};
use crate::clock::Clock;
use crate::document::Finding;
use crate::pattern::{Limits, Pattern, RuleId};

/// Rules in the order in which they were read; a rule's place is its number in the index.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    name: String,
    pattern: Arc<Pattern>,
}

/// A pattern that is refused.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Refusal {
    /// The rule's name; the file and line when it has none.
    rule: String,
    error: String,
    /// JSON Pointer to the part of the pattern that is wrong.
    pointer: String,
}

/// A line of rules.
#[derive(Debug, Deserialize)]
struct Named<'a> {
    name: String,
    #[serde(borrow)]
    pattern: &'a RawValue,
}

/// What a rule's document holds beside its name.
#[derive(Debug, Deserialize)]
struct Patterned<'a> {
    #[serde(borrow)]
    pattern: &'a RawValue,
}

impl Rules {
    /// The number of rules.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Patterns with their numbers, for the index.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (RuleId, Arc<Pattern>)> {
        let numbers = 0..RuleId::MAX;
        numbers.zip(self.0.iter().map(|rule| Arc::clone(&rule.pattern)))
    }

    /// Names and patterns, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Pattern)> {
        self.0
            .iter()
            .map(|rule| (rule.name.as_str(), &*rule.pattern))
    }

    /// A rule's name.
    pub(super) fn name(&self, id: RuleId) -> &str {
        self.0.get(id as usize).map_or("", |rule| &rule.name)
    }

    /// The number under which checksums count a rule: the one in a name like `r17`, else its place.
    pub(super) fn number(&self, id: RuleId) -> u64 {
        let digits = self.name(id).strip_prefix('r');
        let number = digits.and_then(|digits| digits.parse::<u32>().ok());
        number.unwrap_or(id).into()
    }
}

/// Reads rules; what is refused comes beside those that are good. With `raw`, the paths of patterns
/// are as written, else the EventBridge names of attributes are understood.
///
/// # Errors
/// When a file cannot be read.
pub(super) fn read(paths: &[PathBuf], raw: bool) -> Result<(Rules, Vec<Refusal>), Error> {
    let limits = if raw {
        Limits::default()
    } else {
        Limits::for_events()
    };
    let mut reader = Reader {
        limits,
        rules: Rules::default(),
        refused: Vec::new(),
    };
    for path in paths {
        if path.is_dir() || is_document(path) {
            reader.documents(path)?;
        } else {
            reader.lines(path)?;
        }
    }
    Ok((reader.rules, reader.refused))
}

/// Whether a file is a rule file: YAML, or JSON that is not one of named patterns.
fn is_document(path: &Path) -> bool {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("yaml" | "yml") => true,
        Some("json") => !has_named_lines(path),
        _ => false,
    }
}

fn has_named_lines(path: &Path) -> bool {
    let chunk = Chunks::open(path).and_then(|mut chunks| chunks.next());
    let Ok(Some(chunk)) = chunk else {
        return false;
    };
    let first = lines(&chunk).find(|line| !is_blank(line));
    first.is_some_and(|line| {
        #[derive(Deserialize)]
        struct Kind {
            kind: Option<serde::de::IgnoredAny>,
        }
        let is_rule = serde_json::from_slice::<Kind>(&line).is_ok_and(|line| line.kind.is_some());
        serde_json::from_slice::<Named<'_>>(&line).is_ok() && !is_rule
    })
}

struct Reader {
    limits: Limits,
    rules: Rules,
    refused: Vec<Refusal>,
}

impl Reader {
    fn documents(&mut self, path: &Path) -> Result<(), Error> {
        let files = dir::read(&[path.to_owned()], Clock::system().now())?;
        self.refused.extend(files.findings.iter().map(refusal));
        for document in files.documents.values() {
            self.document(document);
        }
        Ok(())
    }

    /// Takes a rule's document. Its pattern is read once more, since how paths are read is up to
    /// the caller here.
    fn document(&mut self, document: &Document) {
        let Part::Rule(rule) = &document.part else {
            return;
        };
        if !rule.enabled {
            return;
        }
        if let Ok(Patterned { pattern }) = serde_json::from_str(&document.text) {
            self.add(rule.name.to_string(), pattern.get());
        }
    }

    fn lines(&mut self, path: &Path) -> Result<(), Error> {
        let read = |source| Error::read(path, source);
        let mut chunks = Chunks::open(path).map_err(read)?;
        let mut number = 0;
        while let Some(chunk) = chunks.next().map_err(read)? {
            for line in lines(&chunk) {
                number += 1;
                if !is_blank(&line) {
                    self.line(&line, path, number);
                }
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &Bytes, path: &Path, number: u64) {
        match serde_json::from_slice::<Named<'_>>(line) {
            Ok(Named { name, pattern }) => self.add(name, pattern.get()),
            Err(error) => self.refused.push(Refusal {
                rule: name_of_broken(line)
                    .unwrap_or_else(|| format!("{}:{number}", path.display())),
                error: format!("not a JSON object with `name` and `pattern`: {error}"),
                pointer: String::new(),
            }),
        }
    }

    fn add(&mut self, name: String, pattern: &str) {
        match Pattern::parse_with(pattern, &self.limits) {
            Ok(pattern) => self.rules.0.push(Rule {
                name,
                pattern: Arc::new(pattern),
            }),
            Err(error) => self.refused.push(Refusal {
                rule: name,
                error: error.to_string(),
                pointer: error.pointer,
            }),
        }
    }
}

fn refusal(finding: &Finding) -> Refusal {
    let pointer = finding.pointer.as_deref().unwrap_or_default();
    Refusal {
        rule: format!("{}:{}", finding.file, finding.at),
        error: finding.message.clone(),
        pointer: pointer
            .strip_prefix("/pattern")
            .unwrap_or(pointer)
            .to_owned(),
    }
}

/// The name at the beginning of a line whose pattern is not JSON.
fn name_of_broken(line: &[u8]) -> Option<String> {
    let after = |text: &'_ str, token: &str| -> Option<usize> {
        let rest = text.trim_start();
        rest.starts_with(token)
            .then(|| text.len() - rest.len() + token.len())
    };
    let mut text = std::str::from_utf8(line).ok()?;
    for token in ["{", "\"name\"", ":"] {
        text = &text[after(text, token)?..];
    }
    let mut names = serde_json::Deserializer::from_str(text).into_iter::<String>();
    names.next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(name: &str, text: &str, raw: bool) -> (Rules, Vec<Refusal>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        read(&[path], raw).unwrap()
    }

    fn names(rules: &Rules) -> Vec<&str> {
        rules.all().map(|(name, _)| name).collect()
    }

    #[test]
    fn lines_of_named_patterns_are_rules_whatever_the_file_is_called() {
        let text = "{\"name\":\"r7\",\"pattern\":{\"a\":[1]},\"ops\":[\"exact\"]}\n\n{\"name\":\"x\",\"pattern\":{\"a\":[2]}}\n";
        for name in ["rules.jsonl", "rules.json", "rules"] {
            let (rules, refused) = read_text(name, text, true);

            assert_eq!(names(&rules), ["r7", "x"], "{name}");
            assert!(refused.is_empty(), "{refused:?}");
            assert_eq!((rules.number(0), rules.number(1)), (7, 1));
        }
    }

    #[test]
    fn rule_files_give_their_enabled_rules() {
        let rule = |name: &str, enabled: bool| {
            format!(
                "kind: Rule\nname: {name}\nenabled: {enabled}\npattern: {{detail-type: [t]}}\ntargets: [nowhere]\n"
            )
        };
        let text = format!("{}---\n{}", rule("on", true), rule("off", false));

        let (rules, refused) = read_text("rules.yaml", &text, false);
        assert_eq!(names(&rules), ["on"]);
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(rules.all().next().unwrap().1.paths(), ["type"]);

        let (rules, _) = read_text("rules.yaml", &text, true);
        assert_eq!(rules.all().next().unwrap().1.paths(), ["detail-type"]);
    }

    #[test]
    fn refused_patterns_are_told_by_name_with_their_place() {
        let text = "{\"name\":\"bad\",\"pattern\":{\"a\":[]}}\n{\"name\": \"broken\", \"pattern\": {\"a\":[1]} x}\nnothing\n{\"name\":\"good\",\"pattern\":{\"a\":[1]}}\n";

        let (rules, refused) = read_text("rules.jsonl", text, true);

        assert_eq!(names(&rules), ["good"]);
        let told: Vec<(&str, &str)> = refused
            .iter()
            .map(|r| (r.rule.as_str(), r.pointer.as_str()))
            .collect();
        assert_eq!(told[0], ("bad", "/a"));
        assert_eq!(told[1], ("broken", ""));
        assert!(told[2].0.ends_with("rules.jsonl:3"), "{told:?}");
    }
}
