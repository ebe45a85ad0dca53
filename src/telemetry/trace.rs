//! The spans of an event's way through dak, from the POST to the last delivery attempt.
//!
//! Every function here makes one span of the table in [`names`]. While OTLP is off
//! the spans are disabled: nothing is formatted, allocated or stored for them. Spans made without an
//! explicit parent become children of the span that is entered, so callers enter or
//! [`instrument`](tracing::Instrument) them.

use http::Method;
use opentelemetry::trace::TraceContextExt as _;
use tracing::Span;
use tracing::field::Empty;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

pub use super::context::{TRACEPARENT, TRACESTATE, TraceContext};
use super::names;

/// The tracing target of spans meant for traces; the log never shows them.
pub const TARGET: &str = "dak::trace";

/// Most deliveries that one receive or settle span links to.
const LINKS_MAX: usize = 100;

/// An HTTP request to dak, as its span tells it.
#[derive(Debug, Clone, Copy)]
pub struct ServerRequest<'a> {
    /// Method as it came.
    pub method: &'a Method,
    /// Template of the route, `None` when no route matched.
    pub route: Option<&'a str>,
    /// Path without the query.
    pub path: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// The host asked for, with or without a port.
    pub address: &'a str,
    /// Size of the body in bytes, where it is known beforehand.
    pub body_bytes: Option<u64>,
}

/// What spans tell of an event.
#[derive(Debug, Clone, Copy)]
pub struct EventFacts<'a> {
    /// The bus.
    pub bus: &'a str,
    /// The event's `id`.
    pub id: &'a str,
    /// The event's `source`.
    pub source: &'a str,
    /// The event's `type`.
    pub event_type: &'a str,
    /// The event's `subject`.
    pub subject: Option<&'a str>,
}

/// What a span tells of one delivery attempt.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The bus.
    pub bus: &'a str,
    /// The target.
    pub target: &'a str,
    /// The event's `id`.
    pub id: &'a str,
    /// Number of the attempt, from 1.
    pub number: u32,
    /// Size of the event's data in bytes, where it is at hand.
    pub body_bytes: Option<u64>,
}

/// What a consumer asks of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// Leases to hand out.
    Receive,
    /// Acknowledge, release, reject or renew.
    Settle,
}

/// `{method} {route}`, SERVER: one request. `parent` is the context of its HTTP headers, `link` that of
/// the event's own `traceparent` attribute, which is linked unless it names the same span.
pub fn server_span(
    request: &ServerRequest<'_>,
    parent: Option<&TraceContext>,
    link: Option<&TraceContext>,
) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        parent: None,
        names::SERVER,
        { names::OTEL_NAME } = Empty,
        { names::OTEL_KIND } = "server",
        { names::OTEL_STATUS_CODE } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::HTTP_REQUEST_METHOD } = known_method(request.method),
        { names::HTTP_REQUEST_METHOD_ORIGINAL } = Empty,
        { names::HTTP_ROUTE } = request.route,
        { names::HTTP_REQUEST_BODY_SIZE } = request.body_bytes.map(integer),
        { names::HTTP_RESPONSE_STATUS_CODE } = Empty,
        { names::URL_PATH } = request.path,
        { names::URL_SCHEME } = request.scheme,
        { names::SERVER_ADDRESS } = Empty,
        { names::SERVER_PORT } = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    record_request(&span, request);
    continue_from(&span, parent);
    let distinct = link.filter(|link| !parent.is_some_and(|parent| parent.same_span(link)));
    add_link(&span, distinct);
    span
}

fn record_request(span: &Span, request: &ServerRequest<'_>) {
    let method = known_method(request.method);
    let shown = if method == OTHER_METHOD {
        span.record(names::HTTP_REQUEST_METHOD_ORIGINAL, request.method.as_str());
        "HTTP"
    } else {
        method
    };
    match request.route {
        Some(route) => span.record(names::OTEL_NAME, format!("{shown} {route}")),
        None => span.record(names::OTEL_NAME, shown),
    };
    let (host, port) = split_address(request.address);
    span.record(names::SERVER_ADDRESS, host);
    if let Some(port) = port {
        span.record(names::SERVER_PORT, i64::from(port));
    }
}

/// `validate {bus}`, INTERNAL: judging an event by its schema. End it with [`record_verdict`].
pub fn validate_span(event: &EventFacts<'_>) -> Span {
    tracing::info_span!(
        target: TARGET,
        names::VALIDATE,
        { names::OTEL_NAME } = %format_args!("{} {}", names::VALIDATE, event.bus),
        { names::OTEL_STATUS_CODE } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::EVENT_ID } = event.id,
        { names::EVENT_SOURCE } = event.source,
        { names::EVENT_TYPE } = event.event_type,
        { names::EVENT_SUBJECT } = event.subject,
        { names::EVENT_SPEC_VERSION } = "1.0",
        { names::SCHEMA_VERSION } = Empty,
        { names::SCHEMA_VERDICT } = Empty,
    )
}

/// `match {bus}`, INTERNAL: finding an event's rules. End it with [`record_match`].
pub fn match_span(bus: &str) -> Span {
    tracing::info_span!(
        target: TARGET,
        names::MATCH,
        { names::OTEL_NAME } = %format_args!("{} {bus}", names::MATCH),
        { names::RULES_EVALUATED } = Empty,
        { names::RULES_MATCHED } = Empty,
        { names::UNMATCHED } = Empty,
    )
}

/// `publish {bus}`, PRODUCER: committing one event, whose data has `body_bytes`. The context to store
/// with the event is this span's: see [`context_or`].
pub fn publish_span(event: &EventFacts<'_>, body_bytes: u64) -> Span {
    tracing::info_span!(
        target: TARGET,
        names::PUBLISH,
        { names::OTEL_NAME } = %format_args!("{} {}", names::PUBLISH, event.bus),
        { names::OTEL_KIND } = "producer",
        { names::OTEL_STATUS_CODE } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::SYSTEM } = names::SYSTEM_DAK,
        { names::OPERATION_NAME } = names::PUBLISH,
        { names::OPERATION_TYPE } = "send",
        { names::DESTINATION_NAME } = event.bus,
        { names::MESSAGE_ID } = event.id,
        { names::MESSAGE_BODY_SIZE } = integer(body_bytes),
        { names::EVENT_ID } = event.id,
        { names::EVENT_SOURCE } = event.source,
        { names::EVENT_TYPE } = event.event_type,
        { names::EVENT_SUBJECT } = event.subject,
        { names::EVENT_SPEC_VERSION } = "1.0",
    )
}

/// `process {bus}`, CONSUMER: one attempt to deliver. `parent` is the context stored with the event, so
/// that attempts are siblings in the event's trace, also after a restart; `link` is for a redrive or a
/// replay, which starts a trace of its own. End it with [`record_outcome`].
pub fn process_span(
    attempt: &Attempt<'_>,
    parent: Option<&TraceContext>,
    link: Option<&TraceContext>,
) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        parent: None,
        names::PROCESS,
        { names::OTEL_NAME } = %format_args!("{} {}", names::PROCESS, attempt.bus),
        { names::OTEL_KIND } = "consumer",
        { names::OTEL_STATUS_CODE } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::SYSTEM } = names::SYSTEM_DAK,
        { names::OPERATION_NAME } = names::PROCESS,
        { names::OPERATION_TYPE } = "process",
        { names::DESTINATION_NAME } = attempt.bus,
        { names::DESTINATION_SUBSCRIPTION_NAME } = attempt.target,
        { names::MESSAGE_ID } = attempt.id,
        { names::MESSAGE_BODY_SIZE } = attempt.body_bytes.map(integer),
        { names::DELIVERY_ATTEMPT } = i64::from(attempt.number),
        { names::DELIVERY_OUTCOME } = Empty,
    );
    continue_from(&span, parent);
    add_link(&span, link);
    span
}

/// `{method}`, CLIENT: one HTTP request of a delivery, sent `resend_count` times before. Credentials,
/// query and fragment of the URL are left out. End it with [`record_client_status`] or [`record_error`].
pub fn client_span(method: &Method, url: &str, resend_count: u32) -> Span {
    tracing::info_span!(
        target: TARGET,
        names::CLIENT,
        { names::OTEL_NAME } = method.as_str(),
        { names::OTEL_KIND } = "client",
        { names::OTEL_STATUS_CODE } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::HTTP_REQUEST_METHOD } = method.as_str(),
        { names::URL_FULL } = without_secrets(url),
        { names::HTTP_RESPONSE_STATUS_CODE } = Empty,
        { names::HTTP_REQUEST_RESEND_COUNT } =
            (resend_count > 0).then_some(i64::from(resend_count)),
    )
}

/// `receive {target}` or `settle {target}`, SERVER: a consumer's call on a queue, linked to the contexts
/// stored with its deliveries (the first 100 of them).
pub fn pull_span<'a>(
    pull: Pull,
    target: &str,
    contexts: impl ExactSizeIterator<Item = &'a TraceContext>,
) -> Span {
    let operation = match pull {
        Pull::Receive => names::RECEIVE,
        Pull::Settle => names::SETTLE,
    };
    let span = tracing::info_span!(
        target: TARGET,
        names::PULL,
        { names::OTEL_NAME } = %format_args!("{operation} {target}"),
        { names::OTEL_KIND } = "server",
        { names::SYSTEM } = names::SYSTEM_DAK,
        { names::OPERATION_NAME } = operation,
        { names::OPERATION_TYPE } = operation,
        { names::DESTINATION_NAME } = target,
        { names::BATCH_MESSAGE_COUNT } = integer(contexts.len() as u64),
    );
    if !span.is_disabled() {
        contexts
            .take(LINKS_MAX)
            .for_each(|context| add_link(&span, Some(context)));
    }
    span
}

/// Records the answer to a request that dak served; 5xx is an error of ours, 4xx is not.
pub fn record_server_status(span: &Span, status: u16) {
    record_status(span, status, status >= 500);
}

/// Records the answer to a request that dak sent; 4xx and 5xx are errors.
pub fn record_client_status(span: &Span, status: u16) {
    record_status(span, status, status >= 400);
}

fn record_status(span: &Span, status: u16, error: bool) {
    if span.is_disabled() {
        return;
    }
    span.record(names::HTTP_RESPONSE_STATUS_CODE, i64::from(status));
    if error {
        record_error(span, &status.to_string());
    }
}

/// Marks a span as failed. `error_type` is a word of a small set, such as `timeout`, never a message.
pub fn record_error(span: &Span, error_type: &str) {
    span.record(names::ERROR_TYPE, error_type);
    span.record(names::OTEL_STATUS_CODE, "ERROR");
}

/// Records on a validate span what the schema said (`valid`, `invalid`, …) and which version of it.
pub fn record_verdict(span: &Span, verdict: &str, schema_version: Option<u32>) {
    span.record(names::SCHEMA_VERDICT, verdict);
    if let Some(version) = schema_version {
        span.record(names::SCHEMA_VERSION, i64::from(version));
    }
}

/// Records on a match span how many rules were `evaluated` and how many of them `matched`.
pub fn record_match(span: &Span, evaluated: usize, matched: usize) {
    span.record(names::RULES_EVALUATED, integer(evaluated as u64));
    span.record(names::RULES_MATCHED, integer(matched as u64));
    if matched == 0 {
        span.record(names::UNMATCHED, true);
    }
}

/// Records on a process span what became of the attempt (`delivered`, `retry`, `dead_letter`); a
/// `reason` is given when it failed and marks the span so.
pub fn record_outcome(span: &Span, outcome: &str, reason: Option<&str>) {
    span.record(names::DELIVERY_OUTCOME, outcome);
    if let Some(reason) = reason {
        record_error(span, reason);
    }
}

/// The context of a span, for the queue record and for outgoing headers. `None` while OTLP is off.
pub fn current_context(span: &Span) -> Option<TraceContext> {
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    TraceContext::from_span(context.span().span_context())
}

/// The context to hand on: the span's own or, while OTLP is off, the one that came in, so that dak is
/// then invisible in the trace instead of breaking it.
pub fn context_or(span: &Span, incoming: Option<&TraceContext>) -> Option<TraceContext> {
    current_context(span).or_else(|| incoming.cloned())
}

fn continue_from(span: &Span, parent: Option<&TraceContext>) {
    if span.is_disabled() {
        return;
    }
    if let Some(parent) = parent.and_then(TraceContext::to_remote) {
        let context = opentelemetry::Context::new().with_remote_span_context(parent);
        // It fails only where no exporter listens to this span, and then nothing is lost.
        let _ = span.set_parent(context);
    }
}

/// Links a span to another position, such as that of the event's own `traceparent` attribute.
pub fn add_link(span: &Span, link: Option<&TraceContext>) {
    if span.is_disabled() {
        return;
    }
    if let Some(link) = link.and_then(TraceContext::to_remote) {
        span.add_link(link);
    }
}

/// What stands for a method that HTTP does not define, of which a client can invent any number.
const OTHER_METHOD: &str = "_OTHER";

fn known_method(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::POST
        | Method::PUT
        | Method::DELETE
        | Method::HEAD
        | Method::OPTIONS
        | Method::CONNECT
        | Method::PATCH
        | Method::TRACE => method.as_str(),
        _ => OTHER_METHOD,
    }
}

/// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split_address(address: &str) -> (&str, Option<u16>) {
    let host_end = address.rfind(']').map_or(0, |bracket| bracket + 1);
    let colon = address[host_end..].rfind(':');
    match colon.map(|colon| address.split_at(host_end + colon)) {
        Some((host, port)) => (host, port[1..].parse().ok()),
        None => (address, None),
    }
}

/// The URL up to its query, without user and password.
fn without_secrets(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let url = &url[..end];
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    format!("{scheme}://{host}{path}")
}

/// An integer attribute; OpenTelemetry has only signed ones.
fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
