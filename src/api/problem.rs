//! The only place that makes HTTP of errors: problem documents (RFC 9457).
//!
//! The catalogue of kinds stands in [`Kind`]; `docs/errors.md` lists the same ones.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::catalog::ChangeError;
use crate::document::Finding;
use crate::{blob, delivery, event, ingest, store};

/// Media type of problem documents.
const CONTENT_TYPE: &str = "application/problem+json";
/// Address under which the kinds are documented; the slug follows.
const TYPE_BASE: &str = "urn:dak:problem:";
/// Seconds after which a producer that was turned away may come again.
const RETRY_AFTER_SECONDS: u32 = 1;

macro_rules! kinds {
    ($($kind:ident $slug:literal $status:ident $title:literal;)*) => {
        /// What kind of problem; each has a stable slug, a title and a status.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind { $(#[doc = $title] $kind,)* }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The stable name.
            #[must_use]
            pub fn slug(self) -> &'static str {
                match self { $(Self::$kind => $slug,)* }
            }

            /// The same for all problems of the kind.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)* }
            }

            /// The HTTP status.
            #[must_use]
            pub fn status(self) -> StatusCode {
                match self { $(Self::$kind => StatusCode::$status,)* }
            }
        }
    };
}

kinds! {
    MalformedEvent "malformed-event" BAD_REQUEST "The request holds no valid CloudEvent";
    InvalidRequest "invalid-request" BAD_REQUEST "The request cannot be understood";
    Unauthorized "unauthorized" UNAUTHORIZED "An API key is needed";
    Forbidden "forbidden" FORBIDDEN "The API key does not allow this";
    NotFound "not-found" NOT_FOUND "There is no such thing";
    UnknownBus "unknown-bus" NOT_FOUND "There is no such bus";
    MethodNotAllowed "method-not-allowed" METHOD_NOT_ALLOWED "This address has no such method";
    RequestTimeout "request-timeout" REQUEST_TIMEOUT "The request took too long to arrive";
    EventConflict "event-conflict" CONFLICT "The event came before with other content";
    QueueNotEmpty "queue-not-empty" CONFLICT "The target's queue is not empty";
    NotPull "not-a-pull-target" CONFLICT "The target has no consumers";
    NameTaken "name-taken" CONFLICT "The name is taken";
    LastAdminKey "last-admin-key" CONFLICT "The key is the last that administers";
    TooLarge "too-large" PAYLOAD_TOO_LARGE "The request is larger than the limit";
    NotACloudEvent "not-a-cloudevent" UNSUPPORTED_MEDIA_TYPE "The request is not a CloudEvent";
    UnsupportedFormat "unsupported-format" UNSUPPORTED_MEDIA_TYPE "The event format is not spoken here";
    SchemaViolation "schema-violation" UNPROCESSABLE_ENTITY "The data breaks the schema of its type";
    UnknownType "unknown-type" UNPROCESSABLE_ENTITY "The bus takes no events of this type";
    WrongSchema "wrong-schema" UNPROCESSABLE_ENTITY "The named schema cannot judge this event";
    TooComplex "event-too-complex" UNPROCESSABLE_ENTITY "Matching the event would cost too much";
    Findings "findings" UNPROCESSABLE_ENTITY "The documents are not valid";
    TooManyLeased "too-many-leased" TOO_MANY_REQUESTS "Too many deliveries are leased";
    Overloaded "overloaded" SERVICE_UNAVAILABLE "More work waits than may";
    Unavailable "unavailable" SERVICE_UNAVAILABLE "The storage did not answer";
    Stopping "stopping" SERVICE_UNAVAILABLE "The server is stopping";
    Internal "internal" INTERNAL_SERVER_ERROR "Something is wrong with the server";
}

/// A problem on its way to the client.
#[derive(Debug)]
pub struct Problem {
    kind: Kind,
    detail: String,
    fields: Map<String, Value>,
}

impl Problem {
    /// A problem of a kind; `detail` says what is wrong here and what to do.
    #[must_use]
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            fields: Map::new(),
        }
    }

    /// The problem with one more field for machines.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(field.to_owned(), value.into());
        self
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The document.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut document = Map::new();
        document.insert(
            "type".into(),
            format!("{TYPE_BASE}{}", self.kind.slug()).into(),
        );
        document.insert("title".into(), self.kind.title().into());
        document.insert("status".into(), self.kind.status().as_u16().into());
        document.insert("detail".into(), self.detail.clone().into());
        document.extend(self.fields.clone());
        document.into()
    }

    /// One problem for a batch whose members at these places were refused: the first one's kind,
    /// and all of them listed.
    #[must_use]
    pub fn of_batch(members: Vec<(usize, Self)>) -> Self {
        let count = members.len();
        let listed: Vec<Value> = members
            .iter()
            .map(|(index, problem)| {
                let mut member = problem.to_json();
                member["index"] = (*index).into();
                member
            })
            .collect();
        let Some((index, first)) = members.into_iter().next() else {
            return Self::new(Kind::Internal, "a batch was refused without a reason");
        };
        let detail = format!(
            "member {index} of the batch was refused ({count} in all), so nothing of it was stored: {}",
            first.detail
        );
        let mut whole = Self {
            kind: first.kind,
            detail,
            fields: first.fields,
        };
        whole.fields.insert("index".into(), index.into());
        whole.fields.insert("members".into(), listed.into());
        whole
    }

    fn retry_after(&self) -> Option<u32> {
        match self.kind.status() {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                Some(RETRY_AFTER_SECONDS)
            }
            _ => None,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.kind.status(), self.to_json().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        if let Some(seconds) = self.retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.kind == Kind::Unauthorized {
            let scheme = HeaderValue::from_static("Bearer realm=\"dak\"");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl From<&event::Error> for Problem {
    fn from(error: &event::Error) -> Self {
        let reason = error.reason();
        let kind = match reason {
            "not_a_cloudevent" => Kind::NotACloudEvent,
            "unsupported_event_format" | "unsupported_charset" => Kind::UnsupportedFormat,
            "too_many_attributes" | "batch_too_long" => Kind::TooLarge,
            _ => Kind::MalformedEvent,
        };
        let detail = match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        let mut problem = Self::new(kind, detail).with("reason", reason);
        if let Some(attribute) = error.attribute() {
            problem = problem.with("attribute", attribute);
        }
        if !error.members().is_empty() {
            let members = error
                .members()
                .iter()
                .map(|(index, error)| (*index, Self::from(error)));
            return Self::of_batch(members.collect());
        }
        problem
    }
}

impl From<&ingest::Refusal> for Problem {
    fn from(refusal: &ingest::Refusal) -> Self {
        use ingest::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::SchemaViolation { by, invalid } => {
                let violations = serde_json::to_value(&invalid.violations).unwrap_or_default();
                Self::new(Kind::SchemaViolation, detail)
                    .with(
                        "schema",
                        json!({"type": by.event_type, "version": by.version}),
                    )
                    .with("violation_count", invalid.count)
                    .with("violations", violations)
            }
            Refusal::UnknownType { event_type, bus } => Self::new(Kind::UnknownType, detail)
                .with("event_type", event_type.as_str())
                .with("bus", bus.as_str()),
            Refusal::WrongSchema { named, .. } => {
                Self::new(Kind::WrongSchema, detail).with("dataschema", named.as_str())
            }
            Refusal::Conflict { seq } => {
                let problem = Self::new(Kind::EventConflict, detail);
                // Within a batch the first of the two has no position yet.
                if *seq > 0 {
                    problem.with("first_seq", *seq)
                } else {
                    problem
                }
            }
            Refusal::TooLarge { bytes, bytes_max } => Self::new(Kind::TooLarge, detail)
                .with("limit", "max_event_bytes")
                .with("bytes", *bytes)
                .with("bytes_max", *bytes_max),
            Refusal::TooComplex { .. } => Self::new(Kind::TooComplex, detail),
            Refusal::Withheld => Self::new(Kind::InvalidRequest, detail),
        }
        .with("reason", refusal.reason())
    }
}

impl From<ingest::Error> for Problem {
    fn from(error: ingest::Error) -> Self {
        match error {
            ingest::Error::UnknownBus(name) => Self::new(
                Kind::UnknownBus,
                format!("there is no bus `{name}`; make it with PUT /v1/buses/{name}"),
            )
            .with("bus", name),
            ingest::Error::Store(error) => error.into(),
            ingest::Error::Blob(error) => error.into(),
        }
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Overloaded { waiting } => Self::new(
                Kind::Overloaded,
                "more writes wait than may; come again shortly",
            )
            .with("waiting", waiting),
            store::Error::Closed => Self::new(Kind::Stopping, "the server is stopping"),
            store::Error::Database(source) => {
                tracing::error!(error = %source, "the database failed a request");
                Self::new(Kind::Unavailable, "nothing was stored; come again shortly")
            }
            store::Error::Corrupt { what } => {
                tracing::error!(what, "a stored row cannot be read");
                Self::new(Kind::Internal, "a stored row cannot be read")
            }
        }
    }
}

impl From<blob::Error> for Problem {
    fn from(error: blob::Error) -> Self {
        match error {
            blob::Error::Missing { .. } => Self::new(Kind::NotFound, "the data is gone"),
            blob::Error::Backend(_) | blob::Error::Folder(_) => {
                tracing::error!(error = %error, source = ?std::error::Error::source(&error), "the blob store failed a request");
                Self::new(
                    Kind::Unavailable,
                    "the blob store did not answer; come again shortly",
                )
            }
        }
    }
}

impl From<delivery::Error> for Problem {
    fn from(error: delivery::Error) -> Self {
        let detail = error.to_string();
        match error {
            delivery::Error::UnknownTarget(name) => {
                Self::new(Kind::NotFound, detail).with("target", name)
            }
            delivery::Error::NotPull { name, .. } => {
                Self::new(Kind::NotPull, detail).with("target", name)
            }
            delivery::Error::TooManyLeased { leased_max } => Self::new(
                Kind::TooManyLeased,
                format!("{detail}; settle some of them first"),
            )
            .with("leased_max", leased_max),
            delivery::Error::Stopping => Self::new(Kind::Stopping, detail),
            delivery::Error::Store(error) => error.into(),
        }
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Refused(findings) => findings.into(),
            ChangeError::Missing(id) => Self::new(Kind::NotFound, format!("there is no {id}")),
            ChangeError::Store(error) => error.into(),
        }
    }
}

impl From<Vec<Finding>> for Problem {
    fn from(findings: Vec<Finding>) -> Self {
        let detail = match findings.first() {
            Some(first) => format!("{} ({} in all)", first.message, findings.len()),
            None => String::new(),
        };
        Self::new(Kind::Findings, detail).with("findings", shown(&findings))
    }
}

/// Findings as JSON.
#[must_use]
pub fn shown(findings: &[Finding]) -> Value {
    findings
        .iter()
        .map(|finding| {
            json!({
                "code": finding.code,
                "severity": finding.severity.as_str(),
                "file": finding.file,
                "line": finding.at.line,
                "column": finding.at.column,
                "message": finding.message,
                "hint": finding.hint,
                "pointer": finding.pointer,
            })
        })
        .collect()
}
