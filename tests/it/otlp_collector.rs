//! An OTLP collector inside a test: takes spans over gRPC and lets the test wait for them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1 as wire;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

pub use opentelemetry_proto::tonic::trace::v1::span::SpanKind;

/// Longest time a test waits for spans before it fails; spans come within a second or two.
const WAIT: Duration = Duration::from_secs(20);

/// A collector on a port of its own; it ends with the value.
pub struct Collector {
    address: SocketAddr,
    spans: watch::Receiver<Vec<Span>>,
    server: tokio::task::JoinHandle<()>,
}

/// One span as it arrived; ids are lower-case hex.
#[derive(Debug, Clone)]
pub struct Span {
    pub name: String,
    pub kind: SpanKind,
    pub trace_id: String,
    pub span_id: String,
    /// `None` for a root.
    pub parent_span_id: Option<String>,
    /// Trace id and span id of each link.
    pub links: Vec<(String, String)>,
    pub attributes: BTreeMap<String, Value>,
    /// Whether its status is an error.
    pub failed: bool,
    /// `service.name` of the process that sent it.
    pub service: String,
}

impl Collector {
    /// Listens on the loopback address; must be called within a tokio runtime.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, spans) = watch::channel(Vec::new());
        let service = TraceServiceServer::new(Intake { spans: sender });
        let serving = Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpIncoming::from(listener));
        let server = tokio::spawn(async move { serving.await.unwrap() });
        Self {
            address,
            spans,
            server,
        }
    }

    /// What to give as the OTLP endpoint.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All spans so far, as soon as there are `count` of them.
    pub async fn wait_for_count(&self, count: usize) -> Vec<Span> {
        self.wait_until(|spans| spans.len() >= count).await
    }

    /// All spans so far, as soon as the condition holds for them.
    pub async fn wait_until(&self, condition: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        let mut spans = self.spans.clone();
        let held = tokio::time::timeout(WAIT, spans.wait_for(|spans| condition(spans))).await;
        match held {
            Ok(spans) => spans
                .expect("the collector runs as long as its value")
                .clone(),
            Err(_) => {
                let spans = self.spans.borrow().clone();
                panic!("the condition does not hold after {WAIT:?} for the spans {spans:#?}");
            }
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Span {
    /// The text of an attribute, if it is there and a text.
    pub fn text(&self, attribute: &str) -> Option<&str> {
        self.attributes.get(attribute)?.as_str()
    }

    /// The number of an attribute, if it is there and an integer.
    pub fn integer(&self, attribute: &str) -> Option<i64> {
        self.attributes.get(attribute)?.as_i64()
    }
}

/// The one span of this name.
pub fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
    match found[..] {
        [span] => span,
        _ => panic!("{} spans are named `{name}` in {spans:#?}", found.len()),
    }
}

/// The span's parent, if it has one and that arrived too.
pub fn parent_of<'a>(spans: &'a [Span], span: &Span) -> Option<&'a Span> {
    let parent = span.parent_span_id.as_deref()?;
    spans
        .iter()
        .find(|other| other.span_id == parent && other.trace_id == span.trace_id)
}

struct Intake {
    spans: watch::Sender<Vec<Span>>,
}

#[tonic::async_trait]
impl TraceService for Intake {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let arrived: Vec<Span> = request
            .into_inner()
            .resource_spans
            .into_iter()
            .flat_map(read_resource)
            .collect();
        self.spans.send_modify(|spans| spans.extend(arrived));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn read_resource(resource_spans: wire::ResourceSpans) -> Vec<Span> {
    let resource = resource_spans.resource.unwrap_or_default();
    let attributes = read_attributes(resource.attributes);
    let service = attributes.get("service.name").and_then(Value::as_str);
    let service = service.unwrap_or_default().to_owned();
    resource_spans
        .scope_spans
        .into_iter()
        .flat_map(|scope| scope.spans)
        .map(|span| read_span(span, service.clone()))
        .collect()
}

fn read_span(span: wire::Span, service: String) -> Span {
    let failed = span
        .status
        .as_ref()
        .is_some_and(|status| status.code() == wire::status::StatusCode::Error);
    Span {
        kind: span.kind(),
        trace_id: hex(&span.trace_id),
        span_id: hex(&span.span_id),
        parent_span_id: (!span.parent_span_id.is_empty()).then(|| hex(&span.parent_span_id)),
        links: span
            .links
            .iter()
            .map(|link| (hex(&link.trace_id), hex(&link.span_id)))
            .collect(),
        attributes: read_attributes(span.attributes),
        name: span.name,
        failed,
        service,
    }
}

fn read_attributes(attributes: Vec<KeyValue>) -> BTreeMap<String, Value> {
    attributes
        .into_iter()
        .map(|attribute| {
            let value = match attribute.value.and_then(|value| value.value) {
                Some(any_value::Value::StringValue(text)) => Value::from(text),
                Some(any_value::Value::BoolValue(flag)) => Value::from(flag),
                Some(any_value::Value::IntValue(number)) => Value::from(number),
                Some(any_value::Value::DoubleValue(number)) => Value::from(number),
                other => Value::from(format!("{other:?}")),
            };
            (attribute.key, value)
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

mod tests {
    use dak::telemetry::trace::{
        Attempt, EventFacts, ServerRequest, TraceContext, client_span, current_context, match_span,
        process_span, publish_span, record_client_status, record_match, record_outcome,
        record_server_status, record_verdict, server_span, validate_span,
    };
    use dak::telemetry::{Options, build};
    use http::Method;

    use super::{Collector, SpanKind, named, parent_of};

    const REQUEST: ServerRequest<'_> = ServerRequest {
        method: &Method::POST,
        route: Some("/v1/buses/{bus}/events"),
        path: "/v1/buses/shop/events",
        scheme: "http",
        address: "dak.example:8080",
        body_bytes: Some(20),
    };
    const EVENT: EventFacts<'_> = EventFacts {
        bus: "shop",
        id: "o-1",
        source: "/orders",
        event_type: "order.placed.v1",
        subject: None,
    };

    /// Publishes one event that came with `incoming` and delivers it at the second attempt.
    fn publish_and_deliver(incoming: &TraceContext) {
        let stored = {
            let server = server_span(&REQUEST, Some(incoming), None);
            let _request = server.enter();
            record_verdict(&validate_span(&EVENT), "valid", Some(3));
            record_match(&match_span("shop"), 7, 1);
            let stored = current_context(&publish_span(&EVENT, 12)).unwrap();
            record_server_status(&server, 202);
            stored
        };
        for (number, status) in [(1, 503), (2, 204)] {
            let attempt = Attempt {
                bus: "shop",
                target: "fraud",
                id: "o-1",
                number,
                body_bytes: Some(12),
            };
            let process = process_span(&attempt, Some(&stored), None);
            let _attempt = process.enter();
            let client = client_span(
                &Method::POST,
                "https://u:p@hook.example/in?key=1",
                number - 1,
            );
            record_client_status(&client, status);
            match status {
                204 => record_outcome(&process, "delivered", None),
                _ => record_outcome(&process, "retry", Some("503")),
            }
        }
    }

    #[tokio::test]
    async fn a_collector_receives_the_whole_trace_of_an_event() {
        crate::support::trace_side_by_side();
        let collector = Collector::start().await;
        let options = Options {
            otlp_endpoint: Some(collector.endpoint()),
            service_name: "dak-test".to_owned(),
            ..Options::default()
        };
        let (dispatch, guard) = build(&options).unwrap();
        let scope = tracing::dispatcher::set_default(&dispatch);
        let incoming = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        publish_and_deliver(&TraceContext::parse(incoming, None).unwrap());
        drop(scope);
        guard.shutdown().await.unwrap();

        let spans = collector.wait_for_count(8).await;
        assert_eq!(spans.len(), 8);
        for span in &spans {
            assert_eq!(span.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
            assert_eq!(span.service, "dak-test");
            assert!(span.links.is_empty());
        }
        let server = named(&spans, "POST /v1/buses/{bus}/events");
        assert_eq!(server.kind, SpanKind::Server);
        assert_eq!(server.parent_span_id.as_deref(), Some("00f067aa0ba902b7"));
        assert_eq!(server.integer("http.response.status_code"), Some(202));
        assert_eq!(server.text("server.address"), Some("dak.example"));
        assert!(parent_of(&spans, server).is_none());
        let publish = named(&spans, "publish shop");
        for (span, kind) in [
            (named(&spans, "validate shop"), SpanKind::Internal),
            (named(&spans, "match shop"), SpanKind::Internal),
            (publish, SpanKind::Producer),
        ] {
            assert_eq!(span.kind, kind, "{}", span.name);
            assert_eq!(parent_of(&spans, span).unwrap().span_id, server.span_id);
        }
        let attempts = spans.iter().filter(|span| span.name == "process shop");
        for (attempt, (failed, status)) in attempts.zip([(true, 503), (false, 204)]) {
            assert_eq!(attempt.kind, SpanKind::Consumer);
            assert_eq!(attempt.failed, failed);
            assert_eq!(parent_of(&spans, attempt).unwrap().span_id, publish.span_id);
            let child = |span: &&super::Span| {
                span.parent_span_id.as_deref() == Some(attempt.span_id.as_str())
            };
            let client = spans.iter().find(child).unwrap();
            assert_eq!(client.kind, SpanKind::Client);
            assert_eq!(client.integer("http.response.status_code"), Some(status));
            assert_eq!(client.text("url.full"), Some("https://hook.example/in"));
        }
    }
}
