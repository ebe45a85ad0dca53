//! Dead letters: looking at them, sending them again, forgetting them.

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::auth::Scope;
use super::problem::{Kind, Problem};
use super::{Api, Shared, edge, shown};
use crate::clock::rfc3339;
use crate::store::{Attempt, DeadFilter, DeadLetter, StoredEvent};

/// Dead letters listed or moved by one call at most.
const COUNT_MAX: u32 = 1_000;

/// Which dead letters are meant.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Which {
    target: Option<String>,
    /// A reason class, such as `exhausted` or `permanent_status`.
    reason: Option<String>,
    /// Only these; for redrive and purge.
    #[param(ignore)]
    ids: Option<Vec<i64>>,
    /// Only ids above this one.
    after: Option<i64>,
    /// At most this many: 100 in a list, 1000 otherwise.
    limit: Option<u32>,
}

impl Which {
    fn filter(self, limit: u32) -> Result<DeadFilter, Problem> {
        if self
            .ids
            .as_ref()
            .is_some_and(|ids| ids.len() > COUNT_MAX as usize)
        {
            let detail = format!("at most {COUNT_MAX} ids");
            return Err(Problem::new(Kind::InvalidRequest, detail));
        }
        Ok(DeadFilter {
            target: self.target,
            reason: self.reason,
            ids: self.ids,
            after: self.after.unwrap_or(0),
            limit: self.limit.unwrap_or(limit).clamp(1, COUNT_MAX),
        })
    }
}

#[derive(Serialize)]
struct Shown<'a> {
    id: i64,
    target: &'a str,
    seq: i64,
    reason: &'a str,
    detail: Option<&'a str>,
    died_at: String,
    failures: u32,
    receives: u32,
    rules: Vec<&'a str>,
    attempts: Vec<Value>,
    event: Option<Box<RawValue>>,
}

fn attempt(attempt: &Attempt) -> Value {
    json!({
        "at": rfc3339(attempt.at),
        "duration_ms": attempt.duration_ms,
        "outcome": attempt.outcome,
        "status": attempt.status,
        "excerpt": attempt.excerpt,
    })
}

fn letter<'a>(dead: &'a DeadLetter, stored: Option<&'a StoredEvent>, whole: bool) -> Shown<'a> {
    let attempts: Vec<Value> = if whole {
        dead.attempts.iter().map(attempt).collect()
    } else {
        dead.attempts.last().map(attempt).into_iter().collect()
    };
    Shown {
        id: dead.id,
        target: &dead.target,
        seq: dead.seq,
        reason: &dead.reason,
        detail: dead.detail.as_deref(),
        died_at: rfc3339(dead.died_at),
        failures: dead.failures,
        receives: dead.receives,
        rules: stored.map_or_else(Vec::new, |stored| stored.facts.rules_for(&dead.target)),
        attempts,
        event: stored.map(|stored| shown::event(&stored.event)),
    }
}

#[derive(Serialize)]
struct Letters<'a> {
    dead_letters: Vec<Shown<'a>>,
}

/// Dead letters by id, each with its event and its last attempt.
#[utoipa::path(get, path = "/v1/dead-letters", tag = "dead letters", params(Which), responses((status = 200)))]
pub(super) async fn list(
    State(api): Shared,
    Query(which): Query<Which>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let dead = api.store.dead_letters(which.filter(100)?).await?;
    let events = events_of(&api, &dead).await?;
    let dead_letters = dead
        .iter()
        .map(|dead| {
            letter(
                dead,
                events.iter().find(|event| event.seq == dead.seq),
                false,
            )
        })
        .collect();
    Ok(edge::json(StatusCode::OK, &Letters { dead_letters }))
}

async fn events_of(api: &Api, dead: &[DeadLetter]) -> Result<Vec<StoredEvent>, Problem> {
    let mut seqs: Vec<i64> = dead.iter().map(|dead| dead.seq).collect();
    seqs.sort_unstable();
    seqs.dedup();
    Ok(api.store.events(seqs).await?)
}

/// One dead letter: the whole event and every attempt.
#[utoipa::path(get, path = "/v1/dead-letters/{id}", tag = "dead letters", params(("id" = i64, Path)),
    responses((status = 200), (status = 404)))]
pub(super) async fn show(
    State(api): Shared,
    Path(id): Path<i64>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let filter = DeadFilter {
        ids: Some(vec![id]),
        limit: 1,
        ..DeadFilter::default()
    };
    let dead = api.store.dead_letters(filter).await?;
    let Some(dead) = dead.first() else {
        return Err(Problem::new(
            Kind::NotFound,
            format!("there is no dead letter {id}"),
        ));
    };
    let mut stored = events_of(&api, std::slice::from_ref(dead)).await?.pop();
    if let Some(stored) = &mut stored
        && let Some(whole) = api.deliveries.whole(stored).await?
    {
        stored.event = whole;
    }
    Ok(edge::json(
        StatusCode::OK,
        &letter(dead, stored.as_ref(), true),
    ))
}

/// Puts dead letters back into their queues, due now and with a clean slate.
#[utoipa::path(post, path = "/v1/dead-letters/redrive", tag = "dead letters", request_body = Which,
    responses((status = 200)))]
pub(super) async fn redrive(
    State(api): Shared,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let which: Which = api.read_json(body).await?;
    let moved = api
        .store
        .redrive(which.filter(COUNT_MAX)?, api.clock.now())
        .await?;
    let redriven: u64 = moved.iter().map(|(_, count)| count).sum();
    let targets: Vec<Value> = moved
        .iter()
        .map(|(target, count)| json!({"target": target, "count": count}))
        .collect();
    api.deliveries
        .expect(moved.into_iter().map(|(target, _)| target));
    let answer = json!({"redriven": redriven, "targets": targets});
    Ok(edge::json(StatusCode::OK, &answer))
}

/// Forgets dead letters for good.
#[utoipa::path(post, path = "/v1/dead-letters/purge", tag = "dead letters", request_body = Which,
    responses((status = 200)))]
pub(super) async fn purge(
    State(api): Shared,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, None)?;
    let which: Which = api.read_json(body).await?;
    let purged = api.store.purge(which.filter(COUNT_MAX)?).await?;
    Ok(edge::json(StatusCode::OK, &json!({"purged": purged})))
}
