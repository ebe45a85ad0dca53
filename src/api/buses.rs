//! Buses.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use super::auth::Scope;
use super::problem::{Kind, Problem};
use super::{Shared, edge, rules};
use crate::catalog::{self, Bus, Id, UnknownTypes};

/// All buses.
#[utoipa::path(get, path = "/v1/buses", tag = "buses", responses((status = 200)))]
pub(super) async fn list(State(api): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let catalog = api.live.current();
    let mut buses: Vec<&Bus> = catalog.buses().collect();
    buses.sort_by(|a, b| a.name.cmp(&b.name));
    let buses: Vec<Value> = buses.into_iter().map(shown).collect();
    Ok(edge::json(StatusCode::OK, &json!({"buses": buses})))
}

fn shown(bus: &Bus) -> Value {
    let unknown_types = match bus.settings.unknown_types {
        UnknownTypes::Accept => "accept",
        UnknownTypes::Reject => "reject",
    };
    json!({
        "name": &*bus.name,
        "description": bus.settings.description,
        "unknown_types": unknown_types,
        "enabled_rules": bus.rules().len(),
    })
}

/// One bus.
#[utoipa::path(get, path = "/v1/buses/{bus}", tag = "buses", params(("bus" = String, Path)),
    responses((status = 200), (status = 404)))]
pub(super) async fn show(
    State(api): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, Some(&name))?;
    match api.live.current().bus(&name) {
        Some(bus) => Ok(edge::json(StatusCode::OK, &shown(bus))),
        None => Err(Problem::new(
            Kind::UnknownBus,
            format!("there is no bus `{name}`"),
        )),
    }
}

/// Makes or changes a bus: `description`, `unknown_types` (`accept` or `reject`).
#[utoipa::path(put, path = "/v1/buses/{bus}", tag = "buses", params(("bus" = String, Path)),
    request_body = Object, responses((status = 200), (status = 422)))]
pub(super) async fn put(
    State(api): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let id = Id::shared(catalog::Kind::Bus, &name);
    rules::put_document(&api, &id, &headers, body).await
}

/// Removes a bus; refused while rules listen on it. Its events stay in the log.
#[utoipa::path(delete, path = "/v1/buses/{bus}", tag = "buses", params(("bus" = String, Path)),
    responses((status = 204), (status = 404), (status = 422)))]
pub(super) async fn remove(
    State(api): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = Id::shared(catalog::Kind::Bus, &name);
    rules::remove_document(&api, id, &headers).await
}
