//! Applying a folder of documents in one go.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::Scope;
use super::problem::{self, Problem};
use super::{Shared, edge};
use crate::catalog::{Catalog, Document, Edit, Id, Unread};
use crate::document::{Fault, Finding};

/// Files to apply.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Files {
    /// Files of buses, policies, targets and rules.
    #[serde(default)]
    documents: Vec<File>,
    #[serde(default)]
    schemas: Vec<SchemaFile>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct File {
    /// Its name, for findings.
    file: String,
    /// YAML or JSON.
    text: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SchemaFile {
    #[serde(rename = "type")]
    event_type: String,
    version: u32,
    file: String,
    text: String,
}

/// What applying changed.
#[derive(Debug, Default, Serialize, ToSchema)]
struct Applied {
    created: Vec<String>,
    changed: Vec<String>,
    unchanged: usize,
    #[schema(value_type = Vec<Object>)]
    warnings: serde_json::Value,
}

/// Makes or changes all documents, or none when there is a finding.
#[utoipa::path(post, path = "/v1/apply", tag = "rules", request_body = Files,
    responses((status = 200, body = Applied), (status = 422)))]
pub(super) async fn apply(
    State(api): Shared,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let files: Files = api.read_json(body).await?;
    let documents = read(&files, api.clock.now())?;
    let mut applied = Applied::default();
    let catalog = api
        .live
        .change_with(|catalog| {
            applied.note(catalog, &documents);
            Ok(documents.into_values().map(Edit::Put).collect())
        })
        .await?;
    api.deliveries.follow().await?;
    applied.warnings = problem::shown(&catalog.warnings());
    Ok(edge::json(StatusCode::OK, &applied))
}

fn read(files: &Files, now: crate::clock::Millis) -> Result<BTreeMap<Id, Document>, Problem> {
    let mut documents = BTreeMap::new();
    let mut findings = Vec::new();
    let mut keep = |(read, found): (Vec<Document>, Vec<Finding>)| {
        for document in read {
            if let Some(first) = documents.get(&document.id) {
                findings.push(twice(first, &document));
            }
            documents.insert(document.id.clone(), document);
        }
        findings.extend(found);
    };
    for file in &files.documents {
        keep(Document::read_all(Unread {
            text: &file.text,
            file: &file.file,
            now,
        }));
    }
    for schema in &files.schemas {
        let unread = Unread {
            text: &schema.text,
            file: &schema.file,
            now,
        };
        match Document::read_schema(&schema.event_type, schema.version, unread) {
            Ok(document) => keep((vec![document], Vec::new())),
            Err(found) => keep((Vec::new(), found)),
        }
    }
    if findings.is_empty() {
        Ok(documents)
    } else {
        Err(findings.into())
    }
}

fn twice(first: &Document, second: &Document) -> Finding {
    let message = format!("{} stands twice; the first is in {}", second.id, first.file);
    let fault = Fault::new(second.position(""), message);
    Finding::error("defined-twice", &second.file, fault)
}

impl Applied {
    fn note(&mut self, catalog: &Catalog, documents: &BTreeMap<Id, Document>) {
        for (id, document) in documents {
            match catalog.documents().get(id) {
                None => self.created.push(id.to_string()),
                Some(known) if known.text == document.text => self.unchanged += 1,
                Some(_) => self.changed.push(id.to_string()),
            }
        }
    }
}
