//! Health, metrics, and the description of the API.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};

use super::auth::Scope;
use super::problem::{Kind, Problem};
use super::{Api, Shared};
use crate::telemetry;

/// Whether the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "server", responses((status = 200)))]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// Whether the server can do its work: the store answers.
#[utoipa::path(get, path = "/readyz", tag = "server", responses((status = 200), (status = 503)))]
pub(super) async fn ready(State(api): Shared) -> Result<&'static str, Problem> {
    match api.store.events(vec![0]).await {
        Ok(_) => Ok("ok\n"),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            Err(Problem::new(Kind::Unavailable, "the store does not answer"))
        }
    }
}

/// Metrics in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "server", responses((status = 200)))]
pub(super) async fn metrics(State(api): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    api.deliveries.measure().await;
    let content_type = [(header::CONTENT_TYPE, telemetry::CONTENT_TYPE)];
    Ok((content_type, api.metrics.render()).into_response())
}

/// The description of the API, made once.
pub(super) fn openapi(description: &utoipa::openapi::OpenApi) -> MethodRouter<Arc<Api>> {
    let text = description.to_json().unwrap_or_default();
    get(move || async move { ([(header::CONTENT_TYPE, "application/json")], text) })
}
