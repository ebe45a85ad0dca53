//! The schema registry: types, versions, policies.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::auth::Scope;
use super::problem::{Kind, Problem};
use super::{Shared, edge};
use crate::catalog::{self, Catalog, ChangeError, Document, Edit, Id, Part, Subject, Unread};
use crate::clock::rfc3339;
use crate::document::parse_yaml;
use crate::schema::{DefaultVersion, Mode};

/// How long a client may keep a version, which never changes: a year.
const VERSION_CACHE: &str = "public, max-age=31536000, immutable";

/// All event types that have schemas.
#[utoipa::path(get, path = "/v1/schemas", tag = "schemas", responses((status = 200)))]
pub(super) async fn list(State(api): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Publish, None)?;
    let catalog = api.live.current();
    let mut types: Vec<&str> = catalog
        .documents()
        .keys()
        .filter(|id| id.kind == catalog::Kind::Schema)
        .map(|id| id.name.as_str())
        .collect();
    types.dedup();
    let schemas: Vec<Value> = types
        .iter()
        .filter_map(|name| Some(described(name, catalog.subject(name)?)))
        .collect();
    Ok(edge::json(StatusCode::OK, &json!({"schemas": schemas})))
}

/// The versions and the policy of one event type.
#[utoipa::path(get, path = "/v1/schemas/{type}", tag = "schemas", params(("type" = String, Path)),
    responses((status = 200), (status = 404)))]
pub(super) async fn show(
    State(api): Shared,
    Path(event_type): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Publish, None)?;
    let catalog = api.live.current();
    let subject = subject(&catalog, &event_type)?;
    Ok(edge::json(StatusCode::OK, &described(&event_type, subject)))
}

fn subject<'a>(catalog: &'a Catalog, event_type: &str) -> Result<&'a Subject, Problem> {
    catalog
        .subject(event_type)
        .filter(|subject| !subject.versions.is_empty())
        .ok_or_else(|| {
            Problem::new(
                Kind::NotFound,
                format!("no schema describes `{event_type}`"),
            )
        })
}

fn described(event_type: &str, subject: &Subject) -> Value {
    let versions: Vec<u32> = subject.versions.keys().copied().collect();
    json!({
        "type": event_type,
        "versions": versions,
        "default_version": default_version(subject.policy.default_version),
        "mode": mode(subject.policy.mode),
    })
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Warn => "warn",
        Mode::Off => "off",
    }
}

fn default_version(version: DefaultVersion) -> Value {
    match version {
        DefaultVersion::Latest => "latest".into(),
        DefaultVersion::Number(number) => number.into(),
    }
}

/// Registers the next version of a type's schema. The same content registers to the same version.
#[utoipa::path(post, path = "/v1/schemas/{type}/versions", tag = "schemas", params(("type" = String, Path)),
    request_body(content = Object, description = "A JSON Schema"),
    responses((status = 200, description = "The content is registered already"), (status = 201), (status = 422)))]
pub(super) async fn register(
    State(api): Shared,
    Path(event_type): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let text = api.read_text(body).await?;
    let now = api.clock.now();
    // Compiled once here; which number it gets is only known in its turn.
    let file = format!("schemas/{event_type}");
    let unread = Unread {
        text: &text,
        file: &file,
        now,
    };
    let candidate = Document::read_schema(&event_type, 1, unread).map_err(Problem::from)?;
    let mut answer = (0, false);
    api.live
        .change_with(|catalog| {
            let (version, is_new) = number(catalog, &event_type, &candidate);
            answer = (version, is_new);
            if !is_new {
                return Ok(Vec::new());
            }
            Ok(vec![Edit::Put(candidate.with_version(version))])
        })
        .await
        .map_err(|error: ChangeError| Problem::from(error))?;
    let (version, created) = answer;
    let status = if created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let shown = json!({"type": event_type, "version": version, "created": created});
    Ok(edge::json(status, &shown))
}

/// The version that has this content, or the next one.
fn number(catalog: &Catalog, event_type: &str, candidate: &Document) -> (u32, bool) {
    let Some(subject) = catalog.subject(event_type) else {
        return (1, true);
    };
    let Part::Schema(schema) = &candidate.part else {
        return (1, true);
    };
    let same = subject
        .versions
        .iter()
        .find(|(_, known)| known.content_hash() == schema.content_hash());
    match same {
        Some((version, _)) => (*version, false),
        None => (subject.next_version(), true),
    }
}

/// One version's schema as it was sent; `latest` names the newest.
#[utoipa::path(get, path = "/v1/schemas/{type}/versions/{version}", tag = "schemas",
    params(("type" = String, Path), ("version" = String, Path)),
    responses((status = 200), (status = 304), (status = 404)))]
pub(super) async fn version(
    State(api): Shared,
    Path((event_type, version)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Publish, None)?;
    let catalog = api.live.current();
    let subject = subject(&catalog, &event_type)?;
    let number = if version == "latest" {
        subject
            .versions
            .last_key_value()
            .map(|(version, _)| *version)
    } else {
        version.parse().ok()
    };
    let found = number.and_then(|number| {
        let document = catalog.documents().get(&Id::schema(&event_type, number))?;
        Some((number, document, subject.versions.get(&number)?))
    });
    let Some((number, document, schema)) = found else {
        let known: Vec<String> = subject.versions.keys().map(u32::to_string).collect();
        let detail = format!(
            "`{event_type}` has no version {version}, only {}",
            known.join(", ")
        );
        return Err(Problem::new(Kind::NotFound, detail));
    };
    let tag = format!("\"{}\"", schema.content_hash());
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|given| names_tag(given, &tag));
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let cache = if version == "latest" {
        "no-cache"
    } else {
        VERSION_CACHE
    };
    Ok((
        [
            (header::CONTENT_TYPE, "application/schema+json".to_owned()),
            (header::ETAG, tag),
            (header::CACHE_CONTROL, cache.to_owned()),
            (header::LAST_MODIFIED, http_date(document.created_at)),
            (
                header::HeaderName::from_static("dak-schema-version"),
                number.to_string(),
            ),
        ],
        document.text.clone(),
    )
        .into_response())
}

/// Whether an `If-None-Match` header names the tag (RFC 9110 §13.1.2: a list, compared weakly). Our
/// tags hold no comma.
fn names_tag(given: &HeaderValue, tag: &str) -> bool {
    let Ok(given) = given.to_str() else {
        return false;
    };
    given
        .split(',')
        .map(str::trim)
        .any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

fn http_date(at: crate::clock::Millis) -> String {
    time::OffsetDateTime::from_unix_timestamp(at / 1_000)
        .ok()
        .and_then(|at| {
            at.format(&time::format_description::well_known::Rfc2822)
                .ok()
        })
        .map_or_else(|| rfc3339(at), |text| text.replace("+0000", "GMT"))
}

/// Removes a version; its number is never given out again.
#[utoipa::path(delete, path = "/v1/schemas/{type}/versions/{version}", tag = "schemas",
    params(("type" = String, Path), ("version" = u32, Path)), responses((status = 204), (status = 404), (status = 422)))]
pub(super) async fn remove(
    State(api): Shared,
    Path((event_type, version)): Path<(String, u32)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let now = api.clock.now();
    api.live
        .change_with(|catalog| {
            let mut edits = vec![Edit::Delete(Id::schema(&event_type, version))];
            let next = catalog.subject(&event_type).map(Subject::next_version);
            if let Some(last) = next
                .filter(|next| *next == version + 1)
                .map(|next| next - 1)
            {
                edits.push(Edit::Put(Document::last_number(&event_type, last, now)));
            }
            Ok(edits)
        })
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// How events of a type are validated.
#[utoipa::path(get, path = "/v1/schemas/{type}/policy", tag = "schemas", params(("type" = String, Path)),
    responses((status = 200)))]
pub(super) async fn policy(
    State(api): Shared,
    Path(event_type): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Publish, None)?;
    let catalog = api.live.current();
    let policy = catalog
        .subject(&event_type)
        .map(|subject| subject.policy.clone());
    let policy = policy.unwrap_or_default();
    let shown = json!({
        "type": event_type,
        "mode": mode(policy.mode),
        "default_version": default_version(policy.default_version),
    });
    Ok(edge::json(StatusCode::OK, &shown))
}

/// Sets how events of a type are validated: `mode` and `default_version`.
#[utoipa::path(put, path = "/v1/schemas/{type}/policy", tag = "schemas", params(("type" = String, Path)),
    request_body = Object, responses((status = 200), (status = 422)))]
pub(super) async fn set_policy(
    State(api): Shared,
    Path(event_type): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let id = Id::shared(catalog::Kind::SchemaPolicy, &event_type);
    super::rules::put_document(&api, &id, &headers, body).await
}

/// The one document in a text, for a request that carries one.
pub(super) fn only_node(text: &str) -> Result<crate::document::Node, Problem> {
    let mut nodes = parse_yaml(text).map_err(|fault| {
        Problem::new(
            Kind::InvalidRequest,
            format!("the body, {}: {}", fault.at, fault.message),
        )
    })?;
    match (nodes.pop(), nodes.is_empty()) {
        (Some(node), true) => Ok(node),
        _ => Err(Problem::new(
            Kind::InvalidRequest,
            "the body is one document",
        )),
    }
}
