//! API keys.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::auth::{self, Scope};
use super::problem::{Kind, Problem};
use super::{Shared, edge};
use crate::clock::rfc3339;
use crate::document::Name;

/// A key to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKey {
    name: String,
    /// `publish`, `consume`, `admin`.
    scopes: Vec<String>,
    /// The only bus it may touch; any when absent.
    bus: Option<String>,
}

/// All keys, without their secrets.
#[utoipa::path(get, path = "/v1/keys", tag = "server", responses((status = 200)))]
pub(super) async fn list(State(api): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let keys: Vec<Value> = api
        .keys
        .list()
        .into_iter()
        .map(|key| {
            json!({
                "name": key.name,
                "scopes": key.scopes,
                "bus": key.bus,
                "created_at": rfc3339(key.created_at),
            })
        })
        .collect();
    Ok(edge::json(StatusCode::OK, &json!({"keys": keys})))
}

/// Makes a key; its text is in the answer and never shown again. The first key must be an admin
/// key, since from then on every request needs one.
#[utoipa::path(post, path = "/v1/keys", tag = "server", request_body = NewKey,
    responses((status = 201), (status = 400), (status = 409)))]
pub(super) async fn create(
    State(api): Shared,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let asked: NewKey = api.read_json(body).await?;
    let invalid = |detail: String| Problem::new(Kind::InvalidRequest, detail);
    let name = Name::parse(&asked.name).map_err(|error| invalid(format!("`name`: {error}")))?;
    let scopes: Option<Vec<Scope>> = asked.scopes.iter().map(|word| Scope::of(word)).collect();
    let scopes = scopes
        .filter(|scopes| !scopes.is_empty())
        .ok_or_else(|| invalid("`scopes` lists publish, consume or admin".into()))?;
    let makes_others = scopes.contains(&Scope::Admin) && asked.bus.is_none();
    if !api.keys.any() && !makes_others {
        let detail =
            "the first key must have the scope `admin` for every bus, or nobody could make another";
        return Err(invalid(detail.into()));
    }
    let (text, key) = auth::mint(name.as_str(), &scopes, asked.bus, api.clock.now());
    if !api.keys.add(key).await? {
        let detail = format!("there is a key `{name}` already; delete it first");
        return Err(Problem::new(Kind::NameTaken, detail));
    }
    let answer = json!({"name": name.as_str(), "scopes": asked.scopes, "key": text});
    Ok(edge::json(StatusCode::CREATED, &answer))
}

/// Removes a key; it stops working at once.
#[utoipa::path(delete, path = "/v1/keys/{name}", tag = "server", params(("name" = String, Path)),
    responses((status = 204), (status = 404)))]
pub(super) async fn remove(
    State(api): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    if api.keys.is_last_admin(&name) {
        let detail = format!(
            "without `{name}` nobody could administer, or everybody could; make another admin key first"
        );
        return Err(Problem::new(Kind::LastAdminKey, detail));
    }
    if api.keys.remove(&name).await? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(Problem::new(
            Kind::NotFound,
            format!("there is no key `{name}`"),
        ))
    }
}
