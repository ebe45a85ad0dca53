//! Documents as files: `rules/**/*.{yaml,yml,json}`, `schemas/<type>/<version>.json` and
//! `schemas/<type>/policy.yaml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Document, Id, Unread};
use crate::clock::Millis;
use crate::document::{Fault, Finding, Position};

/// Files read in one go.
const FILES_MAX: usize = 100_000;
/// Longest file read, in bytes.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The folder whose JSON files are schemas.
const SCHEMAS: &str = "schemas";

/// Why files could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is not there or may not be read.
    #[error("{path}: {source}")]
    Unreadable {
        path: String,
        source: std::io::Error,
    },
    /// More files than anyone means.
    #[error("{path}: more than {FILES_MAX} files")]
    TooMany { path: String },
}

/// What was found in files.
#[derive(Debug, Default)]
pub struct Files {
    pub documents: BTreeMap<Id, Arc<Document>>,
    pub findings: Vec<Finding>,
    /// The text of each file, for showing findings in their place.
    pub sources: BTreeMap<String, String>,
}

/// Reads all documents below `paths`.
///
/// # Errors
/// When a path cannot be read; what is wrong inside files comes as findings.
pub fn read(paths: &[PathBuf], now: Millis) -> Result<Files, Error> {
    let mut files = Files::default();
    for path in paths {
        let mut found = Vec::new();
        walk(path, &mut found)?;
        found.sort();
        for file in found {
            read_file(&file, now, &mut files)?;
        }
    }
    Ok(files)
}

fn walk(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let kind = std::fs::metadata(path).map_err(|source| unreadable(path, source))?;
    if kind.is_file() {
        found.push(path.to_owned());
        return Ok(());
    }
    if found.len() > FILES_MAX {
        return Err(Error::TooMany {
            path: path.display().to_string(),
        });
    }
    let entries = std::fs::read_dir(path).map_err(|source| unreadable(path, source))?;
    for entry in entries {
        let path = entry.map_err(|source| unreadable(path, source))?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && (path.is_dir() || is_document(&path)) {
            walk(&path, found)?;
        }
    }
    Ok(())
}

fn is_document(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

fn unreadable(path: &Path, source: std::io::Error) -> Error {
    Error::Unreadable {
        path: path.display().to_string(),
        source,
    }
}

fn read_file(path: &Path, now: Millis, files: &mut Files) -> Result<(), Error> {
    let name = path.display().to_string();
    let size = std::fs::metadata(path)
        .map_err(|source| unreadable(path, source))?
        .len();
    if size > FILE_BYTES_MAX {
        let message = format!("the file has {size} bytes, of which {FILE_BYTES_MAX} are read");
        let fault = Fault::new(Position::START, message);
        files
            .findings
            .push(Finding::error("file-too-large", &name, fault));
        return Ok(());
    }
    let bytes = std::fs::read(path).map_err(|source| unreadable(path, source))?;
    let Ok(text) = String::from_utf8(bytes) else {
        let fault = Fault::new(Position::START, "the file is not UTF-8 text");
        files
            .findings
            .push(Finding::error("not-text", &name, fault));
        return Ok(());
    };
    let unread = Unread {
        text: &text,
        file: &name,
        now,
    };
    let (documents, findings) = read_text(path, unread);
    files.findings.extend(findings);
    for document in documents {
        files.add(document);
    }
    files.sources.insert(name, text);
    Ok(())
}

fn read_text(path: &Path, unread: Unread<'_>) -> (Vec<Document>, Vec<Finding>) {
    let Some(event_type) = schema_type(path) else {
        return Document::read_all(unread);
    };
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    match stem.and_then(|stem| stem.parse().ok()) {
        Some(version) if version > 0 => match Document::read_schema(&event_type, version, unread) {
            Ok(schema) => (vec![schema], Vec::new()),
            Err(findings) => (Vec::new(), findings),
        },
        _ => {
            let fault = Fault::new(Position::START, "this file name is no version")
                .with_hint("schema files are called 1.json, 2.json and so on");
            let finding = Finding::error("schema-file-name", unread.file, fault);
            (Vec::new(), vec![finding])
        }
    }
}

/// The event type of a schema file: the name of its folder, somewhere below `schemas`.
fn schema_type(path: &Path) -> Option<String> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return None;
    }
    let folder = path.parent()?;
    let absolute = std::path::absolute(folder).ok()?;
    let inside = absolute
        .parent()?
        .components()
        .any(|component| component.as_os_str() == SCHEMAS);
    inside.then(|| {
        folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
    })?
}

impl Files {
    fn add(&mut self, document: Document) {
        if let Some(first) = self.documents.get(&document.id) {
            let message = format!(
                "{} stands twice; the first is in {}",
                document.id, first.file
            );
            let fault = Fault::new(document.position(""), message)
                .with_hint("rename one of the two, or remove it");
            self.findings
                .push(Finding::error("defined-twice", &document.file, fault));
            return;
        }
        self.documents
            .insert(document.id.clone(), Arc::new(document));
    }
}
