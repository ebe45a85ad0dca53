//! Pushes one event to an HTTP endpoint and tells what became of it.
//!
//! Nothing here retries or records: a [`Client`] makes one attempt and answers with an
//! [`Outcome`], whatever happens. Redirects are never followed. Where a target may connect to is
//! checked in `connect`, after the name is resolved.

mod connect;
mod document;
mod failure;
mod settings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tokio::time::{Instant, timeout_at};

use self::connect::{Connector, Resolver};
pub use self::settings::{Endpoint, EndpointError, HeaderError, Headers, Mode, Webhook};
use crate::clock::Clock;
use crate::event::{Event, binding};
use crate::target::outcome::{Cause, EXCERPT_BYTES_MAX, Excerpt, Outcome};

/// The kind's name in documents.
pub const NAME: &str = "webhook";
/// The longest that one attempt may take, whatever the target's timeout says.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(600);

const RESPONSE_HEAD_BYTES_MAX: usize = 64 * 1024;
const RESPONSE_HEADERS_MAX: usize = 100;
const HTTP2_HEADER_LIST_BYTES_MAX: u32 = 16 * 1024;
const HTTP2_STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const ATTEMPT: HeaderName = HeaderName::from_static("dak-attempt");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("dak/", env!("CARGO_PKG_VERSION")));

/// How the connections of all webhooks are made and kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long the look-up of a name and the connection may take together.
    pub connect_timeout: Duration,
    /// How many unused connections are kept open for a host.
    pub idle_per_host_max: usize,
    /// How long an unused connection is kept open.
    pub idle_timeout: Duration,
    /// Dates the attempts.
    pub clock: Clock,
    /// Whether targets that say so may reach private addresses.
    pub private_addresses: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            idle_per_host_max: 64,
            idle_timeout: Duration::from_secs(30),
            clock: Clock::system(),
            private_addresses: true,
        }
    }
}

/// One attempt to deliver.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What is to be delivered.
    pub event: &'a Event,
    /// Names the delivery, the same over all its attempts.
    pub delivery_id: &'a str,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The trace context of this hop; the event's own `traceparent` attribute goes out as it came.
    pub traceparent: Option<&'a str>,
    /// Goes with `traceparent`.
    pub tracestate: Option<&'a str>,
}

/// Sends for all webhooks, and keeps their connections.
#[derive(Clone)]
pub struct Client {
    /// The two never share a connection: one opened to a private address for a target that may do
    /// so must not serve a target of the same host that may not.
    public_only: Pool,
    any_address: Pool,
    clock: Clock,
}

type Pool = legacy::Client<HttpsConnector<Connector>, Full<Bytes>>;

impl Client {
    /// A client that trusts the certificate authorities that Mozilla trusts.
    pub fn new(options: &Options) -> Self {
        use hyper_rustls::ConfigBuilderExt as _;

        Self::with_tls(options, |builder| builder.with_webpki_roots())
    }

    fn with_tls(options: &Options, trust: impl FnOnce(Verifiable) -> Authenticable) -> Self {
        let provider = rustls::crypto::ring::default_provider();
        let builder = ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default protocol versions");
        let tls = trust(builder).with_no_client_auth();
        let resolver = Resolver::new();
        let pool = |allow_private| {
            let connector = Connector {
                allow_private,
                timeout: options.connect_timeout,
                resolver: resolver.clone(),
            };
            pool(options, tls.clone(), connector)
        };
        Self {
            public_only: pool(false),
            any_address: pool(options.private_addresses),
            clock: options.clock.clone(),
        }
    }

    /// Makes one attempt. It takes no longer than the webhook's timeout, and it never fails:
    /// what goes wrong on the way is an outcome too.
    ///
    /// The status decides: when it has come, a body that breaks off or is too slow only shortens
    /// the excerpt, since the target has had the event.
    pub async fn send(&self, webhook: &Webhook, request: Request<'_>) -> Outcome {
        let limit = webhook.timeout.min(TIMEOUT_MAX);
        let deadline = Instant::now() + limit;
        let message = self.message(webhook, request);
        let pool = if webhook.allow_private {
            &self.any_address
        } else {
            &self.public_only
        };
        let response = match timeout_at(deadline, pool.request(message)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return failure::outcome(&error, &webhook.url),
            Err(_elapsed) => {
                let text = format!("no answer within {} ms", limit.as_millis());
                return Outcome::failed(Cause::Timeout, &text);
            }
        };
        let (head, body) = response.into_parts();
        let excerpt = read_excerpt(body, deadline).await;
        let status = head.status.as_u16();
        let now = self.clock.now();
        webhook
            .statuses
            .classify(status, &head.headers, excerpt, now)
    }

    fn message(&self, webhook: &Webhook, request: Request<'_>) -> http::Request<Full<Bytes>> {
        let (mut headers, body) = match webhook.mode {
            Mode::Binary => binding::encode_binary(request.event),
            Mode::Structured => binding::encode_structured(request.event),
        };
        headers.insert(USER_AGENT, AGENT);
        headers.insert(ATTEMPT, HeaderValue::from(request.attempt));
        insert_text(&mut headers, TRACEPARENT, request.traceparent);
        insert_text(&mut headers, TRACESTATE, request.tracestate);
        webhook.headers.add_to(&mut headers);
        let now = self.clock.now();
        webhook
            .keys
            .sign(&mut headers, request.delivery_id, now, &body);

        let mut message = http::Request::new(Full::new(body));
        *message.method_mut() = Method::POST;
        *message.uri_mut() = webhook.url.uri().clone();
        *message.headers_mut() = headers;
        message
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

type Verifiable = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;
type Authenticable = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn pool(options: &Options, tls: ClientConfig, connector: Connector) -> Pool {
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(connector);
    legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(options.idle_timeout)
        .pool_max_idle_per_host(options.idle_per_host_max)
        .http1_max_buf_size(RESPONSE_HEAD_BYTES_MAX)
        .http1_max_headers(RESPONSE_HEADERS_MAX)
        .http2_max_header_list_size(HTTP2_HEADER_LIST_BYTES_MAX)
        .http2_initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
        .build(https)
}

/// A text that no header can carry is left out: a broken trace is no reason to keep an event back.
fn insert_text(headers: &mut HeaderMap, name: HeaderName, text: Option<&str>) {
    if let Some(Ok(value)) = text.map(HeaderValue::from_str) {
        headers.insert(name, value);
    }
}

/// Reads the body's beginning. A body that ends within it leaves the connection for the next
/// request; the rest of a longer one is dropped, and its connection with it.
async fn read_excerpt(mut body: Incoming, deadline: Instant) -> Excerpt {
    let mut read = Vec::new();
    while read.len() <= EXCERPT_BYTES_MAX {
        let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await else {
            break;
        };
        if let Some(data) = frame.data_ref() {
            let room = EXCERPT_BYTES_MAX + 1 - read.len();
            read.extend_from_slice(&data[..data.len().min(room)]);
        }
    }
    Excerpt::from_bytes(&read)
}
