//! Queues of pull targets: receive, acknowledge, release, reject, renew (the verbs of Azure Event
//! Grid's pull API).

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::problem::{Kind, Problem};
use super::{Api, Shared, edge, shown};
use crate::clock::{millis, rfc3339};
use crate::delivery::{EVENTS_MAX, Receive, WAIT_MAX};
use crate::store::LeaseEnd;
use crate::target::outcome::Reason;
use crate::target::pull::LEASE_MAX;

/// Tokens settled in one call at most.
const TOKENS_MAX: usize = 1_000;
/// Longest delay of a release: thirty days.
const DELAY_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

/// What a consumer asks for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    /// 1 to 100, 10 when absent.
    max_events: Option<usize>,
    /// 0 to 20: how long to wait for the first event.
    wait_seconds: Option<u64>,
    /// How long to hold what is received; the target's setting when absent.
    lease_seconds: Option<u64>,
}

/// Deliveries handed to a consumer.
#[derive(Debug, Serialize, ToSchema)]
struct Answer {
    events: Vec<Delivery>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Delivery {
    lease_token: String,
    lease_until: String,
    /// How often it has been handed out, this time included.
    receives: u32,
    /// How often it failed.
    failures: u32,
    seq: i64,
    /// Names of the rules that led here.
    rules: Vec<String>,
    #[schema(value_type = Object)]
    event: Box<RawValue>,
}

/// Hands out deliveries that are due, under a lease.
#[utoipa::path(post, path = "/v1/queues/{target}/receive", tag = "queues", params(("target" = String, Path)),
    request_body = Ask, responses((status = 200, body = Answer), (status = 404), (status = 409), (status = 429)))]
pub(super) async fn receive(
    State(api): Shared,
    Path(target): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    api.keys
        .check_queue(&headers, &target, &api.live.current())?;
    let ask: Ask = api.read_json(body).await?;
    let ask = Receive {
        events_max: within("max_events", ask.max_events, 10, 1, EVENTS_MAX)?,
        wait: Duration::from_secs(within(
            "wait_seconds",
            ask.wait_seconds,
            0,
            0,
            WAIT_MAX.as_secs(),
        )?),
        lease: lease(ask.lease_seconds)?,
    };
    let received = api.deliveries.receive(&target, ask).await?;
    let events = received
        .into_iter()
        .map(|received| Delivery {
            lease_token: received.token,
            lease_until: rfc3339(received.until),
            receives: received.receives,
            failures: received.failures,
            seq: received.stored.seq,
            rules: owned(received.stored.facts.rules_for(&target)),
            event: shown::event(&received.event),
        })
        .collect();
    Ok(edge::json(StatusCode::OK, &Answer { events }))
}

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn within<T: PartialOrd + Copy + std::fmt::Display>(
    name: &str,
    given: Option<T>,
    absent: T,
    least: T,
    most: T,
) -> Result<T, Problem> {
    let value = given.unwrap_or(absent);
    if value < least || value > most {
        let detail = format!("`{name}` is {least} to {most}, not {value}");
        return Err(Problem::new(Kind::InvalidRequest, detail).with("field", name));
    }
    Ok(value)
}

fn lease(seconds: Option<u64>) -> Result<Option<Duration>, Problem> {
    let checked = seconds
        .map(|seconds| within("lease_seconds", Some(seconds), 0, 1, LEASE_MAX.as_secs()))
        .transpose()?;
    Ok(checked.map(Duration::from_secs))
}

/// Leases to settle.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tokens {
    lease_tokens: Vec<String>,
    /// Release only: how long until it is due again.
    delay_seconds: Option<u64>,
    /// Reject only: why, in the consumer's words.
    reason: Option<String>,
    /// Renew only: how long to hold from now on; the target's setting when absent.
    lease_seconds: Option<u64>,
}

/// Which leases were live.
#[derive(Debug, Serialize, ToSchema)]
struct Settled {
    succeeded: Vec<String>,
    failed: Vec<Lost>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Lost {
    lease_token: String,
    /// Always `lease_lost`: it ran out, was settled before, or never was.
    error: &'static str,
}

async fn settle(
    api: &Api,
    target: &str,
    (headers, body): (&HeaderMap, Body),
    end: impl FnOnce(&Tokens) -> Result<LeaseEnd, Problem>,
) -> Result<Response, Problem> {
    api.keys.check_queue(headers, target, &api.live.current())?;
    let asked: Tokens = api.read_json(body).await?;
    let count = asked.lease_tokens.len();
    within("lease_tokens", Some(count), 1, 1, TOKENS_MAX)?;
    let end = end(&asked)?;
    let ended = api
        .deliveries
        .settle(target, asked.lease_tokens.clone(), end)
        .await?;
    let mut settled = Settled {
        succeeded: Vec::with_capacity(count),
        failed: Vec::new(),
    };
    for (lease_token, ended) in asked.lease_tokens.into_iter().zip(ended) {
        if ended {
            settled.succeeded.push(lease_token);
        } else {
            settled.failed.push(Lost {
                lease_token,
                error: "lease_lost",
            });
        }
    }
    Ok(edge::json(StatusCode::OK, &settled))
}

/// Says that deliveries were dealt with.
#[utoipa::path(post, path = "/v1/queues/{target}/acknowledge", tag = "queues", params(("target" = String, Path)),
    request_body = Tokens, responses((status = 200, body = Settled), (status = 404)))]
pub(super) async fn acknowledge(
    State(api): Shared,
    Path(target): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    settle(&api, &target, (&headers, body), |_| {
        Ok(LeaseEnd::Acknowledge)
    })
    .await
}

/// Puts deliveries back, perhaps after a delay; charges no failure.
#[utoipa::path(post, path = "/v1/queues/{target}/release", tag = "queues", params(("target" = String, Path)),
    request_body = Tokens, responses((status = 200, body = Settled), (status = 404)))]
pub(super) async fn release(
    State(api): Shared,
    Path(target): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let now = api.clock.now();
    settle(&api, &target, (&headers, body), |asked| {
        let delay = within(
            "delay_seconds",
            asked.delay_seconds,
            0,
            0,
            DELAY_MAX.as_secs(),
        )?;
        Ok(LeaseEnd::Release {
            due: now + millis(Duration::from_secs(delay)),
        })
    })
    .await
}

/// Dead-letters deliveries at once.
#[utoipa::path(post, path = "/v1/queues/{target}/reject", tag = "queues", params(("target" = String, Path)),
    request_body = Tokens, responses((status = 200, body = Settled), (status = 404)))]
pub(super) async fn reject(
    State(api): Shared,
    Path(target): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    settle(&api, &target, (&headers, body), |asked| {
        Ok(LeaseEnd::Reject {
            reason: Reason::RejectedByConsumer.name().to_owned(),
            detail: asked.reason.clone(),
        })
    })
    .await
}

/// Holds deliveries longer.
#[utoipa::path(post, path = "/v1/queues/{target}/renew", tag = "queues", params(("target" = String, Path)),
    request_body = Tokens, responses((status = 200, body = Settled), (status = 404)))]
pub(super) async fn renew(
    State(api): Shared,
    Path(target): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let now = api.clock.now();
    settle(&api, &target, (&headers, body), |asked| {
        let hold = match lease(asked.lease_seconds)? {
            Some(hold) => hold,
            None => api.deliveries.lease(&target)?,
        };
        Ok(LeaseEnd::Renew {
            until: now + millis(hold),
        })
    })
    .await
}
