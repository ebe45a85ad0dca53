//! Publishing events, and looking them up.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing::Span;
use utoipa::{IntoParams, ToSchema};

use super::auth::Scope;
use super::problem::{Kind, Problem};
use super::{Api, Shared, edge, shown};
use crate::event::binding::{self, Message};
use crate::event::{self, Event};
use crate::ingest::{Receipt, Verdict};
use crate::rule::default_bus;
use crate::store::{JudgedBy, Members, Seq};
use crate::telemetry::trace::{self, TraceContext};

/// Events listed at most.
const LIST_MAX: u32 = 500;

/// What was decided about an accepted event.
#[derive(Debug, Serialize, ToSchema)]
struct Accepted<'a> {
    /// Position in the log.
    seq: Seq,
    /// The same event was accepted before; the rest is what was decided then.
    duplicate: bool,
    /// The schema version that judged it.
    #[schema(value_type = Option<Object>)]
    schema: Option<&'a JudgedBy>,
    /// It breaks its schema, whose mode is `warn`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    warned: bool,
    rules: &'a [String],
    targets: &'a [String],
}

impl<'a> From<&'a Receipt> for Accepted<'a> {
    fn from(receipt: &'a Receipt) -> Self {
        let facts = &receipt.facts;
        Self {
            seq: receipt.seq,
            duplicate: receipt.duplicate,
            schema: facts.schema.as_ref(),
            warned: facts.warned,
            rules: &facts.rules,
            targets: &facts.targets,
        }
    }
}

/// How a batch is taken.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(super) struct Publish {
    /// Store the good members of a batch and answer 207 with one result a member, instead of
    /// refusing all for one.
    #[serde(default)]
    partial: bool,
}

/// Publish to the default bus.
#[utoipa::path(post, path = "/v1/events", tag = "events", params(Publish),
    request_body(content = Object, content_type = "application/cloudevents+json",
        description = "A CloudEvent in binary, structured or batch mode"),
    responses((status = 202, body = Accepted<'static>), (status = 207, description = "Results of a partial batch"),
        (status = 400), (status = 409), (status = 413), (status = 415), (status = 422), (status = 503)))]
pub(super) async fn publish(
    State(api): Shared,
    how: Result<Query<Publish>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Response {
    respond(&api, default_bus().as_str(), how, request).await
}

/// Publish to a bus.
#[utoipa::path(post, path = "/v1/buses/{bus}/events", tag = "events", params(("bus" = String, Path), Publish),
    request_body(content = Object, content_type = "application/cloudevents+json",
        description = "A CloudEvent in binary, structured or batch mode"),
    responses((status = 202, body = Accepted<'static>), (status = 207), (status = 400), (status = 404),
        (status = 409), (status = 413), (status = 415), (status = 422), (status = 503)))]
pub(super) async fn publish_to_bus(
    State(api): Shared,
    Path(bus): Path<String>,
    how: Result<Query<Publish>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Response {
    respond(&api, &bus, how, request).await
}

async fn respond(
    api: &Arc<Api>,
    bus: &str,
    how: Result<Query<Publish>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Response {
    let started = Instant::now();
    let how = match how {
        Ok(Query(how)) => how,
        Err(error) => return Problem::new(Kind::InvalidRequest, error.to_string()).into_response(),
    };
    let answer = match take(api, bus, how, request).await {
        Ok(answer) => answer,
        Err(problem) => {
            api.metrics
                .rejected(known_bus(api, bus), problem.kind().slug());
            problem.into_response()
        }
    };
    api.metrics.published(started.elapsed());
    answer
}

/// A label that a client cannot make more of.
fn known_bus<'a>(api: &Api, bus: &'a str) -> &'a str {
    match api.live.current().bus(bus) {
        Some(_) => bus,
        None => "unknown",
    }
}

async fn take(
    api: &Arc<Api>,
    bus: &str,
    how: Publish,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    api.keys.check(&parts.headers, Scope::Publish, Some(bus))?;
    edge::check_length(api, &parts.headers)?;
    let taken = api.read_body(body).await?;
    let message = binding::decode(&parts.headers, taken.bytes.clone())
        .map_err(|error| Problem::from(&error))?;
    let incoming = TraceContext::from_headers(&parts.headers);
    match message {
        Message::Binary(event) | Message::Structured(event) => {
            one(api, bus, event, incoming.as_ref()).await
        }
        Message::Batch(members) if members.len() > api.options.batch_events_max => {
            let most = api.options.batch_events_max;
            let detail = format!(
                "the batch has {} events, of which {most} are taken",
                members.len()
            );
            Err(Problem::new(Kind::TooLarge, detail)
                .with("limit", "max_batch_events")
                .with("events_max", most))
        }
        Message::Batch(members) if how.partial => some(api, bus, members, incoming.as_ref()).await,
        Message::Batch(members) if members.iter().any(Result::is_err) => {
            none(api, bus, members, incoming.as_ref()).await
        }
        message @ Message::Batch(_) => {
            let events = message
                .into_events()
                .map_err(|error| Problem::from(&error))?;
            all(api, bus, events, incoming.as_ref()).await
        }
    }
}

async fn one(
    api: &Arc<Api>,
    bus: &str,
    event: Event,
    incoming: Option<&TraceContext>,
) -> Result<Response, Problem> {
    link(&event);
    let event_type = event.event_type().to_owned();
    let verdicts = api
        .ingest
        .accept(bus, vec![event], Members::Each, incoming)
        .await?;
    let Some(verdict) = verdicts.into_iter().next() else {
        return Err(Problem::new(Kind::Internal, "an event had no verdict"));
    };
    Ok(match verdict {
        Ok(receipt) => {
            note_unmatched(api, bus, &receipt, &event_type);
            edge::json(StatusCode::ACCEPTED, &Accepted::from(&receipt))
        }
        // The refusal is counted where it was decided.
        Err(refusal) => Problem::from(&refusal).into_response(),
    })
}

async fn all(
    api: &Arc<Api>,
    bus: &str,
    events: Vec<Event>,
    incoming: Option<&TraceContext>,
) -> Result<Response, Problem> {
    let types: Vec<String> = events.iter().map(|e| e.event_type().to_owned()).collect();
    events.iter().for_each(link);
    let verdicts = api
        .ingest
        .accept(bus, events, Members::Atomic, incoming)
        .await?;
    let mut receipts = Vec::with_capacity(verdicts.len());
    let mut refused = Vec::new();
    for (index, verdict) in verdicts.into_iter().enumerate() {
        match verdict {
            Ok(receipt) => receipts.push(receipt),
            Err(crate::ingest::Refusal::Withheld) => {}
            Err(refusal) => refused.push((index, Problem::from(&refusal))),
        }
    }
    if !refused.is_empty() {
        return Ok(Problem::of_batch(refused).into_response());
    }
    for (receipt, event_type) in receipts.iter().zip(&types) {
        note_unmatched(api, bus, receipt, event_type);
    }
    let events: Vec<Accepted<'_>> = receipts.iter().map(Accepted::from).collect();
    Ok(edge::json(StatusCode::ACCEPTED, &json!({"events": events})))
}

/// Refuses a batch for its malformed members, and names with them whatever else is wrong in it.
async fn none(
    api: &Arc<Api>,
    bus: &str,
    members: Vec<Result<Event, event::Error>>,
    incoming: Option<&TraceContext>,
) -> Result<Response, Problem> {
    let mut refused = Vec::new();
    let (mut places, mut events) = (Vec::new(), Vec::new());
    for (index, member) in members.into_iter().enumerate() {
        match member {
            Ok(event) => {
                places.push(index);
                events.push(event);
            }
            Err(error) => refused.push((index, Problem::from(&error))),
        }
    }
    let verdicts = api.ingest.refuse(bus, events, incoming).await?;
    for (_, problem) in &refused {
        api.metrics.rejected(bus, problem.kind().slug());
    }
    for (index, verdict) in places.into_iter().zip(verdicts) {
        match verdict {
            Ok(_) | Err(crate::ingest::Refusal::Withheld) => {}
            Err(refusal) => refused.push((index, Problem::from(&refusal))),
        }
    }
    Ok(Problem::of_batch(refused).into_response())
}

async fn some(
    api: &Arc<Api>,
    bus: &str,
    members: Vec<Result<Event, event::Error>>,
    incoming: Option<&TraceContext>,
) -> Result<Response, Problem> {
    let mut events = Vec::new();
    let mut malformed: Vec<Option<Problem>> = Vec::with_capacity(members.len());
    for member in members {
        match member {
            Ok(event) => {
                malformed.push(None);
                events.push(event);
            }
            Err(error) => {
                let problem = Problem::from(&error);
                api.metrics
                    .rejected(known_bus(api, bus), problem.kind().slug());
                malformed.push(Some(problem));
            }
        }
    }
    let types: Vec<String> = events.iter().map(|e| e.event_type().to_owned()).collect();
    let verdicts = api
        .ingest
        .accept(bus, events, Members::Each, incoming)
        .await?;
    let mut verdicts = verdicts.into_iter().zip(types);
    let results: Vec<Value> = malformed
        .into_iter()
        .map(|problem| match problem {
            Some(problem) => failed(&problem),
            None => match verdicts.next() {
                Some((verdict, event_type)) => result(api, bus, &verdict, &event_type),
                None => failed(&Problem::new(Kind::Internal, "an event had no verdict")),
            },
        })
        .collect();
    Ok(edge::json(
        StatusCode::MULTI_STATUS,
        &json!({"events": results}),
    ))
}

fn result(api: &Api, bus: &str, verdict: &Verdict, event_type: &str) -> Value {
    match verdict {
        Ok(receipt) => {
            note_unmatched(api, bus, receipt, event_type);
            let mut accepted = serde_json::to_value(Accepted::from(receipt)).unwrap_or_default();
            accepted["status"] = StatusCode::ACCEPTED.as_u16().into();
            accepted
        }
        Err(refusal) => failed(&Problem::from(refusal)),
    }
}

fn failed(problem: &Problem) -> Value {
    json!({"status": problem.kind().status().as_u16(), "problem": problem.to_json()})
}

fn note_unmatched(api: &Api, bus: &str, receipt: &Receipt, event_type: &str) {
    if !receipt.duplicate && receipt.facts.rules.is_empty() {
        api.metrics.unmatched(bus, event_type);
    }
}

/// Links the request's span to the trace that the event itself names, if it names one
/// (CloudEvents distributed-tracing extension).
fn link(event: &Event) {
    let Some(parent) = event.attribute("traceparent") else {
        return;
    };
    let state = event.attribute("tracestate").map(event::Value::text);
    let context = TraceContext::parse(&parent.text(), state.as_deref());
    trace::add_link(&Span::current(), context.as_ref());
}

#[derive(Serialize)]
struct Events<'a> {
    events: Vec<shown::Stored<'a>>,
}

/// Which part of the log is listed.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct Listing {
    /// Only events below this position.
    before: Option<Seq>,
    /// At most this many, 50 when absent.
    limit: Option<u32>,
}

/// The newest events of a bus.
#[utoipa::path(get, path = "/v1/buses/{bus}/events", tag = "events",
    params(("bus" = String, Path), Listing), responses((status = 200), (status = 404)))]
pub(super) async fn list(
    State(api): Shared,
    Path(bus): Path<String>,
    Query(listing): Query<Listing>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys.check(&headers, Scope::Admin, Some(&bus))?;
    if api.live.current().bus(&bus).is_none() {
        return Err(crate::ingest::Error::UnknownBus(bus).into());
    }
    let limit = listing.limit.unwrap_or(50).clamp(1, LIST_MAX);
    let before = listing.before.unwrap_or(Seq::MAX);
    let events = api.store.recent(bus, before, limit).await?;
    let events: Vec<shown::Stored<'_>> = events.iter().map(Into::into).collect();
    Ok(edge::json(StatusCode::OK, &Events { events }))
}

/// One event of the log.
#[utoipa::path(get, path = "/v1/events/{seq}", tag = "events", params(("seq" = i64, Path)),
    responses((status = 200), (status = 404)))]
pub(super) async fn show(
    State(api): Shared,
    Path(seq): Path<Seq>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let stored = find(&api, seq, &headers).await?;
    Ok(edge::json(StatusCode::OK, &shown::Stored::from(&stored)))
}

async fn find(
    api: &Api,
    seq: Seq,
    headers: &HeaderMap,
) -> Result<crate::store::StoredEvent, Problem> {
    let mut found = api.store.events(vec![seq]).await?;
    let Some(stored) = found.pop() else {
        api.keys.check(headers, Scope::Admin, None)?;
        return Err(Problem::new(
            Kind::NotFound,
            format!("there is no event at {seq}"),
        ));
    };
    api.keys.check(headers, Scope::Admin, Some(&stored.bus))?;
    Ok(stored)
}

/// Which rules are explained.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct Explain {
    /// Only this rule; all rules of the event's bus when absent.
    rule: Option<String>,
}

/// Why an event matched the rules it matched, and missed the others: nearest misses first.
#[utoipa::path(get, path = "/v1/events/{seq}/explain", tag = "events",
    params(("seq" = i64, Path), Explain), responses((status = 200), (status = 404)))]
pub(super) async fn explain(
    State(api): Shared,
    Path(seq): Path<Seq>,
    Query(only): Query<Explain>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let stored = find(&api, seq, &headers).await?;
    let whole = api.deliveries.whole(&stored).await?;
    let event = whole.unwrap_or_else(|| stored.event.clone());
    let catalog = api.live.current();
    let rules = catalog.bus(&stored.bus).map_or(&[][..], |bus| bus.rules());
    let verdicts = shown::explained(rules, &event, only.rule.as_deref());
    if let Some(name) = only.rule.filter(|_| verdicts.is_empty()) {
        return Err(Problem::new(
            Kind::NotFound,
            format!("there is no enabled rule `{name}`"),
        ));
    }
    let matched: Vec<&Value> = verdicts
        .iter()
        .filter(|verdict| verdict["matched"] == true)
        .map(|verdict| &verdict["rule"])
        .collect();
    let answer = json!({"seq": seq, "matched": matched, "rules": verdicts});
    Ok(edge::json(StatusCode::OK, &answer))
}
