//! Rules, and what is common to all documents that are sent one by one.

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::auth::Scope;
use super::problem::{Kind, Problem};
use super::{Api, Shared, edge, schemas};
use crate::catalog::{self, Document, Edit, Id, Unread};
use crate::clock::rfc3339;
use crate::rule::default_bus;

/// Which bus is meant.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct OnBus {
    /// `default` when absent.
    bus: Option<String>,
}

impl OnBus {
    fn name(self) -> String {
        self.bus.unwrap_or_else(|| default_bus().to_string())
    }
}

/// Rules of a bus.
#[utoipa::path(get, path = "/v1/rules", tag = "rules", params(OnBus), responses((status = 200)))]
pub(super) async fn list(
    State(api): Shared,
    Query(on): Query<OnBus>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let bus = on.name();
    api.keys.check(&headers, Scope::Admin, Some(&bus))?;
    let catalog = api.live.current();
    let rules: Vec<Value> = catalog
        .of_kind(catalog::Kind::Rule)
        .filter(|rule| rule.id.bus == bus)
        .map(|rule| shown(rule))
        .collect();
    Ok(edge::json(StatusCode::OK, &json!({"rules": rules})))
}

/// One rule.
#[utoipa::path(get, path = "/v1/rules/{name}", tag = "rules", params(("name" = String, Path), OnBus),
    responses((status = 200), (status = 404)))]
pub(super) async fn show(
    State(api): Shared,
    Path(name): Path<String>,
    Query(on): Query<OnBus>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    show_document(&api, &Id::rule(&on.name(), &name), &headers)
}

/// Makes or changes a rule. The body is its document, as JSON or YAML.
#[utoipa::path(put, path = "/v1/rules/{name}", tag = "rules", params(("name" = String, Path), OnBus),
    request_body = Object, responses((status = 200), (status = 422)))]
pub(super) async fn put(
    State(api): Shared,
    Path(name): Path<String>,
    Query(on): Query<OnBus>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    put_document(&api, &Id::rule(&on.name(), &name), &headers, body).await
}

/// Removes a rule; what it queued stays queued.
#[utoipa::path(delete, path = "/v1/rules/{name}", tag = "rules", params(("name" = String, Path), OnBus),
    responses((status = 204), (status = 404)))]
pub(super) async fn remove(
    State(api): Shared,
    Path(name): Path<String>,
    Query(on): Query<OnBus>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    remove_document(&api, Id::rule(&on.name(), &name), &headers).await
}

/// A document with its dates, its secrets hidden.
pub(super) fn shown(document: &Document) -> Value {
    let mut value = document.shown();
    value["created_at"] = rfc3339(document.created_at).into();
    value["updated_at"] = rfc3339(document.updated_at).into();
    value
}

fn check_key(api: &Api, id: &Id, headers: &HeaderMap) -> Result<(), Problem> {
    let bus = match id.kind {
        catalog::Kind::Rule => Some(id.bus.as_str()),
        catalog::Kind::Bus => Some(id.name.as_str()),
        catalog::Kind::Schema
        | catalog::Kind::SchemaPolicy
        | catalog::Kind::SchemaNumber
        | catalog::Kind::Target => None,
    };
    api.keys.check(headers, Scope::Admin, bus)
}

/// Answers with one document.
pub(super) fn show_document(api: &Api, id: &Id, headers: &HeaderMap) -> Result<Response, Problem> {
    check_key(api, id, headers)?;
    let catalog = api.live.current();
    match catalog.documents().get(id) {
        Some(document) => Ok(edge::json(StatusCode::OK, &shown(document))),
        None => Err(Problem::new(Kind::NotFound, format!("there is no {id}"))),
    }
}

/// Takes one document and answers with it as it stands now.
pub(super) async fn put_document(
    api: &Api,
    id: &Id,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    check_key(api, id, headers)?;
    let text = api.read_text(body).await?;
    let node = schemas::only_node(&text)?;
    let file = id.to_string();
    let unread = Unread {
        text: &text,
        file: &file,
        now: api.clock.now(),
    };
    let document = Document::read_at(id, node, unread).map_err(Problem::from)?;
    let catalog = api.live.change(vec![Edit::Put(document)]).await?;
    api.deliveries.follow().await?;
    let document = catalog.documents().get(id);
    let value = document.map_or(Value::Null, |document| shown(document));
    Ok(edge::json(StatusCode::OK, &value))
}

/// Removes one document.
pub(super) async fn remove_document(
    api: &Api,
    id: Id,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    check_key(api, &id, headers)?;
    api.live.change(vec![Edit::Delete(id)]).await?;
    api.deliveries.follow().await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
