//! The server at a glance.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::json;

use super::auth::Scope;
use super::problem::Problem;
use super::{Shared, edge, targets};
use crate::catalog::Kind;

/// How many of what there is, and how the queues stand.
#[utoipa::path(get, path = "/v1/status", tag = "server", responses((status = 200)))]
pub(super) async fn status(State(api): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let catalog = api.live.current();
    let now = api.clock.now();
    let mut queues = Vec::new();
    for target in catalog.targets() {
        let standing = api.deliveries.standing(target.name.as_str()).await?;
        queues.push(json!({
            "name": target.name.as_str(),
            "type": target.kind_name(),
            "queue": targets::queue(&standing, now),
        }));
    }
    let answer = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": (now - api.started_at) / 1_000,
        "authentication": api.keys.any(),
        "buses": catalog.buses().count(),
        "rules": catalog.of_kind(Kind::Rule).count(),
        "schemas": catalog.of_kind(Kind::Schema).count(),
        "targets": queues,
    });
    Ok(edge::json(StatusCode::OK, &answer))
}
