//! A webhook target's settings, checked.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Uri};

use crate::target::address::{self, Range};
use crate::target::outcome::Statuses;
use crate::target::sign::Keys;

/// Where and how a webhook target wants its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Where every attempt is posted to.
    pub url: Endpoint,
    /// From the start of an attempt to the end of the answer.
    pub timeout: Duration,
    /// Sent with every attempt.
    pub headers: Headers,
    /// Sign every attempt, when there are any.
    pub keys: Keys,
    /// How the event is laid out in the request.
    pub mode: Mode,
    /// Whether the URL may lead to this machine or into a private network.
    pub allow_private: bool,
    /// The target's own reading of statuses.
    pub statuses: Statuses,
}

impl Webhook {
    /// A webhook with the default settings: 15 s, binary mode, unsigned, public addresses only.
    pub fn new(url: Endpoint) -> Self {
        Self {
            url,
            timeout: Duration::from_secs(15),
            headers: Headers::default(),
            keys: Keys::default(),
            mode: Mode::default(),
            allow_private: false,
            statuses: Statuses::default(),
        }
    }
}

/// How an event is laid out in a request (CloudEvents HTTP binding §3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Attributes in headers, data as the body.
    #[default]
    Binary,
    /// The whole event as one JSON document.
    Structured,
}

/// Why a URL cannot be a webhook's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It is not an absolute URL.
    #[error("not an absolute URL ({0})")]
    Syntax(url::ParseError),
    /// It is not one that HTTP is spoken to.
    #[error("the scheme is `{scheme}`, not `https` or `http`")]
    Scheme { scheme: String },
    /// It holds a user name or password, which would end up in logs.
    #[error("credentials do not belong in the URL; send an `authorization` header instead")]
    Credentials,
    /// It is a URL, but not one that fits into a request (too long, as a rule).
    #[error("the URL does not fit into a request")]
    Unusable,
}

/// The URL of a webhook. Its query may hold a token, so `Display` and `Debug` leave that out.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Uri);

impl Endpoint {
    /// Reads an absolute `https` or `http` URL; a fragment is dropped.
    ///
    /// # Errors
    /// When the text is no such URL, or holds credentials.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let mut url = url::Url::parse(text).map_err(EndpointError::Syntax)?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(EndpointError::Scheme {
                scheme: url.scheme().to_owned(),
            });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::Credentials);
        }
        url.set_fragment(None);
        let uri: Uri = url.as_str().parse().map_err(|_| EndpointError::Unusable)?;
        match uri.host() {
            Some(host) if !host.is_empty() => Ok(Self(uri)),
            _ => Err(EndpointError::Unusable),
        }
    }

    /// Why a target that is not allowed private addresses can never reach this URL: its host is
    /// written as an address, and a refused one. A name is only judged when it is connected to.
    pub fn refused(&self) -> Option<Range> {
        let host = self.0.host()?.trim_matches(['[', ']']);
        address::refused(host.parse::<IpAddr>().ok()?)
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.0
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.scheme_str().unwrap_or_default();
        let authority = self
            .0
            .authority()
            .map_or("", |authority| authority.as_str());
        let hidden = if self.0.query().is_some() { "?***" } else { "" };
        write!(f, "{scheme}://{authority}{}{hidden}", self.0.path())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a custom header is refused; its value is never repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// No header can have that name.
    #[error("`{name}` is not a header name")]
    Name { name: String },
    /// No header can carry that value.
    #[error("the value of header `{name}` holds a character that a header cannot carry")]
    Value { name: String },
    /// The header is dak's or the protocol's to set.
    #[error("header `{name}` is set by dak and cannot be set on a target")]
    Reserved { name: String },
}

/// Headers that a target wants with every request. Values may be secrets: `Debug` hides them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(HeaderMap);

impl Headers {
    /// Takes names and values; a name that comes again is sent again.
    ///
    /// # Errors
    /// The first name or value that cannot be sent, or would change what dak itself says.
    pub fn new<'a>(
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, HeaderError> {
        let mut checked = HeaderMap::new();
        for (name, value) in headers {
            let owned = || name.to_owned();
            let parsed: HeaderName = name
                .parse()
                .map_err(|_| HeaderError::Name { name: owned() })?;
            if is_reserved(&parsed) {
                return Err(HeaderError::Reserved { name: owned() });
            }
            let mut value =
                HeaderValue::from_str(value).map_err(|_| HeaderError::Value { name: owned() })?;
            value.set_sensitive(true);
            checked
                .try_append(parsed, value)
                .map_err(|_| HeaderError::Name { name: owned() })?;
        }
        Ok(Self(checked))
    }

    /// Sets these headers over what `headers` has.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        for name in self.0.keys() {
            headers.remove(name);
        }
        for (name, value) in &self.0 {
            headers.append(name, value.clone());
        }
    }
}

fn is_reserved(name: &HeaderName) -> bool {
    const PREFIXES: [&str; 4] = ["ce-", "webhook-", "dak-", "proxy-"];
    const NAMES: [HeaderName; 10] = [
        header::HOST,
        header::CONTENT_TYPE,
        header::CONTENT_LENGTH,
        header::CONTENT_ENCODING,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
        header::UPGRADE,
        header::TE,
        header::TRAILER,
        header::EXPECT,
    ];
    let text = name.as_str();
    NAMES.contains(name)
        || PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        || matches!(text, "keep-alive" | "traceparent" | "tracestate")
}
