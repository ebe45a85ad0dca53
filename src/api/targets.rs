//! Targets and how their queues stand.

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::auth::Scope;
use super::problem::{Kind, Problem};
use super::{Api, Shared, edge, rules};
use crate::catalog::{self, Edit, Id};
use crate::clock::{Millis, rfc3339};
use crate::delivery::{Hold, Standing};

/// All targets.
#[utoipa::path(get, path = "/v1/targets", tag = "targets", responses((status = 200)))]
pub(super) async fn list(State(api): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let catalog = api.live.current();
    let mut targets = Vec::new();
    for document in catalog.of_kind(catalog::Kind::Target) {
        let standing = api.deliveries.standing(&document.id.name).await?;
        let queue = queue(&standing, api.clock.now());
        targets.push(json!({"target": rules::shown(document), "queue": queue}));
    }
    Ok(edge::json(StatusCode::OK, &json!({"targets": targets})))
}

/// One target.
#[utoipa::path(get, path = "/v1/targets/{name}", tag = "targets", params(("name" = String, Path)),
    responses((status = 200), (status = 404)))]
pub(super) async fn show(
    State(api): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let catalog = api.live.current();
    let id = Id::shared(catalog::Kind::Target, &name);
    let Some(document) = catalog.documents().get(&id) else {
        return Err(Problem::new(Kind::NotFound, format!("there is no {id}")));
    };
    let standing = api.deliveries.standing(&name).await?;
    let queue = queue(&standing, api.clock.now());
    let shown = json!({"target": rules::shown(document), "queue": queue});
    Ok(edge::json(StatusCode::OK, &shown))
}

/// How a queue stands, as JSON.
pub(super) fn queue(standing: &Standing, now: Millis) -> Value {
    let held = standing.hold.map(|hold| match hold {
        Hold::Asked { until } => json!({"why": "asked", "until": rfc3339(until)}),
        Hold::Breaker { until } => json!({"why": "breaker", "until": until.map(rfc3339)}),
    });
    json!({
        "ready": standing.counts.ready,
        "delayed": standing.counts.delayed,
        "leased": standing.counts.leased,
        "dead": standing.counts.dead,
        "oldest_age_seconds": standing.oldest.map(|at| (now - at) / 1_000),
        "paused": standing.paused,
        "disabled": standing.disabled,
        "held": held,
    })
}

/// Makes or changes a target. The body is its document, as JSON or YAML.
#[utoipa::path(put, path = "/v1/targets/{name}", tag = "targets", params(("name" = String, Path)),
    request_body = Object, responses((status = 200), (status = 422)))]
pub(super) async fn put(
    State(api): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let id = Id::shared(catalog::Kind::Target, &name);
    rules::put_document(&api, &id, &headers, body).await
}

/// How a target is removed.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct Remove {
    /// Remove it with everything that waits in its queue, and its dead letters.
    #[serde(default)]
    force: bool,
}

/// Removes a target and its queue; refused while something waits in it, unless forced.
#[utoipa::path(delete, path = "/v1/targets/{name}", tag = "targets",
    params(("name" = String, Path), Remove), responses((status = 204), (status = 404), (status = 409), (status = 422)))]
pub(super) async fn remove(
    State(api): Shared,
    Path(name): Path<String>,
    Query(how): Query<Remove>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let standing = api.deliveries.standing(&name).await?;
    let counts = standing.counts;
    let waiting = counts.ready + counts.delayed + counts.leased + counts.dead;
    if waiting > 0 && !how.force {
        let detail = format!(
            "{waiting} deliveries and dead letters of `{name}` would be lost; say ?force=true to lose them"
        );
        return Err(Problem::new(Kind::QueueNotEmpty, detail).with("waiting", waiting));
    }
    let id = Id::shared(catalog::Kind::Target, &name);
    api.live.change(vec![Edit::Delete(id)]).await?;
    api.deliveries.follow().await?;
    api.deliveries.drop_queue(&name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn switched(api: &Api, name: &str) -> Result<Response, Problem> {
    let standing = api.deliveries.standing(name).await?;
    let queue = queue(&standing, api.clock.now());
    Ok(edge::json(StatusCode::OK, &json!({"queue": queue})))
}

/// Stops handing out a target's deliveries; its queue keeps accepting.
#[utoipa::path(post, path = "/v1/targets/{name}/pause", tag = "targets", params(("name" = String, Path)),
    responses((status = 200), (status = 404)))]
pub(super) async fn pause(
    State(api): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    api.deliveries.pause(&name, true).await?;
    switched(&api, &name).await
}

/// Hands out a paused target's deliveries again.
#[utoipa::path(post, path = "/v1/targets/{name}/resume", tag = "targets", params(("name" = String, Path)),
    responses((status = 200), (status = 404)))]
pub(super) async fn resume(
    State(api): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    api.deliveries.pause(&name, false).await?;
    switched(&api, &name).await
}

/// Enables a target that was disabled because its endpoint was gone.
#[utoipa::path(post, path = "/v1/targets/{name}/enable", tag = "targets", params(("name" = String, Path)),
    responses((status = 200), (status = 404)))]
pub(super) async fn enable(
    State(api): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    api.deliveries.enable(&name).await?;
    switched(&api, &name).await
}
