//! Every span operation and attribute name of dak's traces, in one table.
//!
//! The names follow the OpenTelemetry semantic conventions 1.44 (HTTP, messaging, CloudEvents). The last
//! two are still in development there: when they rename something, this file is all that changes.

// Operations: the first word of a span's name and the value of `messaging.operation.name`.

/// An HTTP request that dak answers; exported as `{method} {route}`.
pub const SERVER: &str = "server";
/// Judging an event by its schema; exported as `validate {bus}`.
pub const VALIDATE: &str = "validate";
/// Finding the rules of an event; exported as `match {bus}`.
pub const MATCH: &str = "match";
/// Committing an event and its deliveries; exported as `publish {bus}`.
pub const PUBLISH: &str = "publish";
/// One attempt to deliver one event; exported as `process {bus}`.
pub const PROCESS: &str = "process";
/// An HTTP request that dak sends; exported as `{method}`.
pub const CLIENT: &str = "client";
/// A consumer's call on a queue; exported as [`RECEIVE`] or [`SETTLE`].
pub const PULL: &str = "pull";
/// A consumer pulling deliveries; exported as `receive {target}`.
pub const RECEIVE: &str = "receive";
/// A consumer settling deliveries; exported as `settle {target}`.
pub const SETTLE: &str = "settle";

// Fields that steer the exporter and are not attributes themselves.

/// Name of the exported span.
pub const OTEL_NAME: &str = "otel.name";
/// Kind of the exported span.
pub const OTEL_KIND: &str = "otel.kind";
/// Status of the exported span: `OK` or `ERROR`.
pub const OTEL_STATUS_CODE: &str = "otel.status_code";

// General and HTTP attributes.

/// Class of a failure: a status code or a low-cardinality word.
pub const ERROR_TYPE: &str = "error.type";
/// Request method; `_OTHER` for methods HTTP does not define.
pub const HTTP_REQUEST_METHOD: &str = "http.request.method";
/// The method as it came, when it is not one HTTP defines.
pub const HTTP_REQUEST_METHOD_ORIGINAL: &str = "http.request.method_original";
/// Size of the request body in bytes.
pub const HTTP_REQUEST_BODY_SIZE: &str = "http.request.body.size";
/// How often this request was sent before.
pub const HTTP_REQUEST_RESEND_COUNT: &str = "http.request.resend_count";
/// Status of the answer.
pub const HTTP_RESPONSE_STATUS_CODE: &str = "http.response.status_code";
/// The route's template.
pub const HTTP_ROUTE: &str = "http.route";
/// Host the client asked for.
pub const SERVER_ADDRESS: &str = "server.address";
/// Port the client asked for.
pub const SERVER_PORT: &str = "server.port";
/// Absolute URL without credentials, query and fragment.
pub const URL_FULL: &str = "url.full";
/// Path of the request.
pub const URL_PATH: &str = "url.path";
/// `http` or `https`.
pub const URL_SCHEME: &str = "url.scheme";

// CloudEvents attributes.

/// The event's `id`.
pub const EVENT_ID: &str = "cloudevents.event_id";
/// The event's `source`.
pub const EVENT_SOURCE: &str = "cloudevents.event_source";
/// The event's `specversion`.
pub const EVENT_SPEC_VERSION: &str = "cloudevents.event_spec_version";
/// The event's `subject`.
pub const EVENT_SUBJECT: &str = "cloudevents.event_subject";
/// The event's `type`.
pub const EVENT_TYPE: &str = "cloudevents.event_type";

// Messaging attributes.

/// Number of deliveries in one receive or settle call.
pub const BATCH_MESSAGE_COUNT: &str = "messaging.batch.message_count";
/// The bus; for pulls the target's queue.
pub const DESTINATION_NAME: &str = "messaging.destination.name";
/// The target.
pub const DESTINATION_SUBSCRIPTION_NAME: &str = "messaging.destination.subscription.name";
/// Size of the event's data in bytes.
pub const MESSAGE_BODY_SIZE: &str = "messaging.message.body.size";
/// The event's `id` again, where messaging tools look for it.
pub const MESSAGE_ID: &str = "messaging.message.id";
/// One of the operations above.
pub const OPERATION_NAME: &str = "messaging.operation.name";
/// `send`, `process`, `receive` or `settle`.
pub const OPERATION_TYPE: &str = "messaging.operation.type";
/// Always [`SYSTEM_DAK`].
pub const SYSTEM: &str = "messaging.system";
/// The value of [`SYSTEM`].
pub const SYSTEM_DAK: &str = "dak";

// Attributes of dak's own.

/// Number of the delivery attempt, from 1.
pub const DELIVERY_ATTEMPT: &str = "dak.delivery.attempt";
/// What became of the attempt.
pub const DELIVERY_OUTCOME: &str = "dak.delivery.outcome";
/// How many rules were tried.
pub const RULES_EVALUATED: &str = "dak.rules.evaluated";
/// How many rules matched.
pub const RULES_MATCHED: &str = "dak.rules.matched";
/// True when no rule matched.
pub const UNMATCHED: &str = "dak.unmatched";
/// What the schema said of the event.
pub const SCHEMA_VERDICT: &str = "dak.schema.verdict";
/// Version of the schema that judged the event.
pub const SCHEMA_VERSION: &str = "dak.schema.version";
