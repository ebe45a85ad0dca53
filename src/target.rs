//! Targets: named destinations, each with one durable queue.
//!
//! A kind of target is a file below `target/` and a variant of [`Kind`]. Reading the document and
//! checking it is done here; sending is the kind's own business; waiting, retrying and settling
//! are left to `delivery`.

pub mod address;
pub mod outcome;
pub mod pull;
pub mod sign;
pub mod webhook;

use std::time::Duration;

use http::Method;
use tracing::Instrument as _;

use crate::document::{Fault, Fields, Name, Node};
use crate::event::Event;
use crate::telemetry::trace::{self, TraceContext};
use outcome::{Cause, Outcome};
use pull::Pull;
use webhook::Webhook;

/// Most deliveries of one target that may be under way at once.
const CONCURRENCY_MAX: u64 = 1_024;
/// Most attempts a policy may allow.
const ATTEMPTS_MAX: u64 = 1_000;
/// Longest delay and age a policy may set: thirty days.
const AGE_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

/// A destination as its document describes it, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    pub name: Name,
    pub description: Option<String>,
    pub kind: Kind,
    pub payload: Payload,
    pub retry: Retry,
}

/// The kinds of target.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Consumers come and fetch.
    Pull(Pull),
    /// dak posts to a URL.
    Webhook(Box<Pushed<Webhook>>),
}

/// A kind that dak pushes to, with how hard it may push.
#[derive(Debug, Clone, PartialEq)]
pub struct Pushed<T> {
    pub to: T,
    /// Deliveries under way at once, from 1.
    pub concurrency: u32,
}

/// How a target gets data that was offloaded to the blob store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Payload {
    /// Put back into the event, as if it had never left.
    #[default]
    Inline,
    /// As a `dataref` attribute (CloudEvents claim-check extension).
    Reference,
}

/// How a target's deliveries are retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The shortest wait before a retry.
    pub min_delay: Duration,
    /// The longest wait that the backoff grows to.
    pub max_delay: Duration,
    /// How many charged attempts a delivery gets; the first is always made.
    pub max_attempts: u32,
    /// How long after acceptance an attempt may still be made.
    pub max_age: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            min_delay: Duration::from_secs(5),
            max_delay: Duration::from_secs(3_600),
            max_attempts: 20,
            max_age: Duration::from_secs(24 * 3_600),
        }
    }
}

/// What it takes to send, shared by all targets of a kind.
#[derive(Clone)]
pub struct Senders {
    pub webhook: webhook::Client,
}

/// One attempt to deliver.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub event: &'a Event,
    /// Names the delivery, the same over all its attempts.
    pub delivery_id: &'a str,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The trace context to continue when this process does not trace.
    pub context: Option<&'a TraceContext>,
}

impl Target {
    /// Reads a target's document.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn parse(node: &Node) -> Result<Self, Vec<Fault>> {
        let mut fields = Fields::new(node, "a target");
        fields.ignore("kind");
        let name = fields.required_name("name");
        let description = fields.string("description").map(str::to_owned);
        fields.require("type");
        let kind_name = fields.choice("type", &[pull::NAME, webhook::NAME]);
        let payload = fields
            .choice_of(
                "payload",
                &[
                    ("inline", Payload::Inline),
                    ("reference", Payload::Reference),
                ],
            )
            .unwrap_or_default();
        let retry = parse_retry(&mut fields);
        let kind = match kind_name {
            Some(webhook::NAME) => parse_webhook(&mut fields),
            Some(_) => Some(Kind::Pull(Pull::read(&mut fields))),
            None => None,
        };
        let faults = fields.finish();
        match (name, kind) {
            (Some(name), Some(kind)) if faults.is_empty() => Ok(Self {
                name,
                description,
                kind,
                payload,
                retry,
            }),
            _ => Err(faults),
        }
    }

    /// Makes one attempt to deliver an event; whatever happens is an [`Outcome`].
    pub async fn send(&self, senders: &Senders, request: Request<'_>) -> Outcome {
        match &self.kind {
            Kind::Webhook(pushed) => send_webhook(&pushed.to, senders, request).await,
            Kind::Pull(_) => Outcome::failed(
                Cause::Connect,
                "consumers of a pull target come by themselves",
            ),
        }
    }

    /// The name of the target's kind, as its document has it under `type`.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            Kind::Pull(_) => pull::NAME,
            Kind::Webhook(_) => webhook::NAME,
        }
    }
}

async fn send_webhook(to: &Webhook, senders: &Senders, request: Request<'_>) -> Outcome {
    let resend_count = request.attempt.saturating_sub(1);
    let span = trace::client_span(&Method::POST, &to.url.to_string(), resend_count);
    let hop = trace::context_or(&span, request.context);
    let outcome = senders
        .webhook
        .send(
            to,
            webhook::Request {
                event: request.event,
                delivery_id: request.delivery_id,
                attempt: request.attempt,
                traceparent: hop.as_ref().map(|hop| hop.traceparent.as_str()),
                tracestate: hop.as_ref().and_then(|hop| hop.tracestate.as_deref()),
            },
        )
        .instrument(span.clone())
        .await;
    match (&outcome, outcome.status()) {
        (_, Some(status)) => trace::record_client_status(&span, status),
        (Outcome::Retry { cause, .. }, None) => trace::record_error(&span, cause.name()),
        (_, None) => {}
    }
    outcome
}

fn parse_webhook(fields: &mut Fields<'_>) -> Option<Kind> {
    let concurrency = fields.integer("concurrency", 1..=CONCURRENCY_MAX);
    let to = Webhook::read(fields)?;
    Some(Kind::Webhook(Box::new(Pushed {
        to,
        concurrency: concurrency.map_or(16, |n| u32::try_from(n).unwrap_or(1)),
    })))
}

fn parse_retry(fields: &mut Fields<'_>) -> Retry {
    let mut retry = Retry::default();
    let Some(mut given) = fields.nested("retry", "a retry policy") else {
        return retry;
    };
    let delays = Duration::from_millis(1)..=AGE_MAX;
    if let Some(delay) = given.duration_within("min_delay", delays.clone()) {
        retry.min_delay = delay;
        retry.max_delay = retry.max_delay.max(delay);
    }
    if let Some(delay) = given.duration_within("max_delay", delays.clone()) {
        retry.max_delay = delay;
    }
    if retry.max_delay < retry.min_delay {
        given.fault("max_delay", "max_delay is shorter than min_delay", None);
    }
    if let Some(attempts) = given.integer("max_attempts", 1..=ATTEMPTS_MAX) {
        retry.max_attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
    }
    if let Some(age) = given.duration_within("max_age", delays) {
        retry.max_age = age;
    }
    fields.absorb(given);
    retry
}
