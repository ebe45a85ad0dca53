//! What every request goes through: its span, its count, its body within limits.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::{Instrument as _, Span};

use super::problem::{Kind, Problem};
use super::{Api, Shared};
use crate::telemetry::trace::{self, ServerRequest, TraceContext};

/// Wraps a request in its span and counts its answer.
pub(super) async fn observe(State(api): Shared, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map(MatchedPath::as_str);
    let span = request_span(&request, route);
    let name = route.unwrap_or("unmatched").to_owned();
    let response = next.run(request).instrument(span.clone()).await;
    trace::record_server_status(&span, response.status().as_u16());
    api.metrics.http_request(&name, response.status());
    response
}

fn request_span(request: &Request, route: Option<&str>) -> Span {
    let parent = TraceContext::from_headers(request.headers());
    let header = |name| request.headers().get(name)?.to_str().ok();
    trace::server_span(
        &ServerRequest {
            method: request.method(),
            route,
            path: request.uri().path(),
            scheme: "http",
            address: header(header::HOST).unwrap_or_default(),
            body_bytes: header(header::CONTENT_LENGTH).and_then(|length| length.parse().ok()),
        },
        parent.as_ref(),
        None,
    )
}

/// Answers for addresses that do not exist.
pub(super) async fn no_such_address(request: Request) -> Problem {
    let detail = format!(
        "there is nothing at {}; /openapi.json lists what there is",
        request.uri().path()
    );
    Problem::new(Kind::NotFound, detail)
}

/// Answers for methods that an address does not have.
pub(super) async fn no_such_method(request: Request) -> Problem {
    let detail = format!("{} has no {}", request.uri().path(), request.method());
    Problem::new(Kind::MethodNotAllowed, detail)
}

impl Api {
    /// Reads a whole body within its limits of size, memory and time.
    pub(super) async fn read_body(&self, body: Body) -> Result<Taken, Problem> {
        let whole = self.collect(body);
        match tokio::time::timeout(self.options.body_timeout, whole).await {
            Ok(taken) => taken,
            Err(_) => {
                let seconds = self.options.body_timeout.as_secs();
                let detail = format!("the body did not arrive within {seconds} s");
                Err(Problem::new(Kind::RequestTimeout, detail))
            }
        }
    }

    async fn collect(&self, mut body: Body) -> Result<Taken, Problem> {
        let bytes_max = self.options.body_bytes_max;
        let mut room = Room::new(&self.room);
        let mut whole = Bytes::new();
        let mut parts: Vec<u8> = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                let detail = format!("the body broke off: {error}");
                Problem::new(Kind::InvalidRequest, detail)
            })?;
            let Ok(chunk) = frame.into_data() else {
                continue;
            };
            if whole.len() + parts.len() + chunk.len() > bytes_max {
                return Err(too_large(bytes_max));
            }
            room.make(whole.len() + parts.len() + chunk.len())?;
            if whole.is_empty() && parts.is_empty() {
                // Most bodies come in one piece, which is not copied.
                whole = chunk;
            } else {
                parts.extend_from_slice(&std::mem::take(&mut whole));
                parts.extend_from_slice(&chunk);
            }
        }
        let bytes = if parts.is_empty() {
            whole
        } else {
            parts.into()
        };
        Ok(Taken { bytes, _room: room })
    }

    /// Reads a JSON body; an empty one stands for `{}`.
    pub(super) async fn read_json<T: DeserializeOwned>(&self, body: Body) -> Result<T, Problem> {
        let taken = self.read_body(body).await?;
        let text: &[u8] = if taken.bytes.is_empty() {
            b"{}"
        } else {
            &taken.bytes
        };
        serde_json::from_slice(text)
            .map_err(|error| Problem::new(Kind::InvalidRequest, format!("the body: {error}")))
    }

    /// Reads a body as text.
    pub(super) async fn read_text(&self, body: Body) -> Result<String, Problem> {
        let taken = self.read_body(body).await?;
        String::from_utf8(taken.bytes.into())
            .map_err(|_| Problem::new(Kind::InvalidRequest, "the body is not UTF-8 text"))
    }
}

/// Bytes that one permit of the shared room stands for.
const ROOM_UNIT: usize = 1024;

/// A body read whole, and its share of the memory for bodies; hold it while the bytes are used.
pub(super) struct Taken {
    pub bytes: Bytes,
    _room: Room,
}

/// A share of the memory that the bodies of all requests may take together.
struct Room {
    shared: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl Room {
    fn new(shared: &Arc<Semaphore>) -> Self {
        Self {
            shared: Arc::clone(shared),
            held: None,
        }
    }

    /// Grows the share to `bytes`.
    fn make(&mut self, bytes: usize) -> Result<(), Problem> {
        let held = self
            .held
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        let more = bytes.div_ceil(ROOM_UNIT).saturating_sub(held);
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let Ok(permit) = Arc::clone(&self.shared).try_acquire_many_owned(more) else {
            let detail = "the bodies of other requests take all the memory there is for them; come again shortly";
            return Err(Problem::new(Kind::Overloaded, detail).with("limit", "inflight_bytes"));
        };
        match &mut self.held {
            Some(held) => held.merge(permit),
            None => self.held = Some(permit),
        }
        Ok(())
    }
}

/// The memory for the bodies of all requests, in units of [`Room`].
pub(super) fn room(bytes_max: usize) -> Arc<Semaphore> {
    let units = bytes_max.div_ceil(ROOM_UNIT).min(Semaphore::MAX_PERMITS);
    Arc::new(Semaphore::new(units))
}

fn too_large(bytes_max: usize) -> Problem {
    let detail = format!("the body is larger than {bytes_max} bytes");
    Problem::new(Kind::TooLarge, detail)
        .with("limit", "max_body_bytes")
        .with("bytes_max", bytes_max)
}

/// Refuses a request whose length is announced as too large, before its body is read.
pub(super) fn check_length(api: &Arc<Api>, headers: &axum::http::HeaderMap) -> Result<(), Problem> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    match announced {
        Some(length) if length > api.options.body_bytes_max => {
            Err(too_large(api.options.body_bytes_max))
        }
        _ => Ok(()),
    }
}

/// A JSON answer with a status.
pub(super) fn json(status: StatusCode, value: &impl serde::Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => (status, [(header::CONTENT_TYPE, "application/json")], bytes).into_response(),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written as JSON");
            Problem::new(Kind::Internal, "the answer could not be written").into_response()
        }
    }
}
