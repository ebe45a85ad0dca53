//! The HTTP client of the commands that speak to a running server.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{self, HeaderValue};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

use super::problem::Problem;

/// Where the server is when nobody says so.
const URL: &str = "http://127.0.0.1:8080";
/// Longest time from a request to the end of its answer.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Largest answer read, in bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024 * 1024;
const JSON: &str = "application/json";
const AGENT: &str = concat!("dak-cli/", env!("CARGO_PKG_VERSION"));

/// Which server to speak to.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Remote {
    /// The server's URL [default: http://127.0.0.1:8080].
    #[arg(long, env = "DAK_URL", value_name = "URL", help_heading = "Server")]
    url: Option<String>,
    /// The API key.
    #[arg(
        long,
        env = "DAK_KEY",
        value_name = "KEY",
        hide_env_values = true,
        help_heading = "Server"
    )]
    key: Option<String>,
}

/// Why the server gave no good answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The server's address is no URL.
    #[error("`{url}` is no http or https URL")]
    Url { url: String },
    /// The key has characters that no key has.
    #[error("the API key holds characters that no key has")]
    Key,
    /// There is no connection to the server.
    #[error("cannot reach {url}: {}", cause(error))]
    Unreachable { url: String, error: legacy::Error },
    /// The server said nothing for too long.
    #[error("{url} did not answer within {} s", TIMEOUT.as_secs())]
    Timeout { url: String },
    /// The connection broke while the answer came, or the answer is beyond all measure.
    #[error("the answer of {url} broke off")]
    Broken {
        url: String,
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The answer is not what dak answers.
    #[error("{url} gave an answer that dak does not give; is it a dak server?")]
    NotJson {
        url: String,
        #[source]
        source: serde_json::Error,
    },
    /// The server refused.
    #[error("the server refused: {0}")]
    Refused(Box<Problem>),
}

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Client {
    base: Url,
    authorization: Option<HeaderValue>,
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// What the server answered to a request that it took.
#[derive(Debug)]
pub(super) struct Answer {
    body: Bytes,
    url: String,
}

impl Remote {
    /// A client of the server; nothing is sent yet.
    ///
    /// # Errors
    /// When the URL or the key cannot be one.
    pub(super) fn client(&self) -> Result<Client, Error> {
        let given = self.url.as_deref().filter(|url| !url.is_empty());
        let base = base(given.unwrap_or(URL))?;
        let key = self.key.as_deref().filter(|key| !key.is_empty());
        let authorization = key.map(bearer).transpose()?;
        let provider = rustls::crypto::ring::default_provider();
        let https = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(provider)
            .expect("the provider supports the default protocol versions")
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Client {
            base,
            authorization,
            http: legacy::Client::builder(TokioExecutor::new()).build(https),
        })
    }
}

fn base(text: &str) -> Result<Url, Error> {
    let url = Url::parse(text).ok();
    url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| Error::Url {
            url: text.to_owned(),
        })
}

fn bearer(key: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| Error::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

impl Client {
    /// The URL of these path segments, each encoded as needed, and these query parameters; one
    /// without a value is left out.
    pub(super) fn url(&self, segments: &[&str], query: &[(&str, Option<String>)]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        for (name, value) in query {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        url
    }

    /// Fetches.
    pub(super) async fn get(&self, url: Url) -> Result<Answer, Error> {
        self.send(Method::GET, url, JSON, Bytes::new()).await
    }

    /// Deletes.
    pub(super) async fn delete(&self, url: Url) -> Result<Answer, Error> {
        self.send(Method::DELETE, url, JSON, Bytes::new()).await
    }

    /// Posts JSON.
    pub(super) async fn post(&self, url: Url, body: &Value) -> Result<Answer, Error> {
        let body = Bytes::from(body.to_string());
        self.send(Method::POST, url, JSON, body).await
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// When the server cannot be asked, and with [`Error::Refused`] when it answers with an error.
    pub(super) async fn send(
        &self,
        method: Method,
        url: Url,
        content_type: &str,
        body: Bytes,
    ) -> Result<Answer, Error> {
        let request = self.request(method, &url, content_type, body)?;
        let base = self.shown();
        match tokio::time::timeout(TIMEOUT, self.exchange(request)).await {
            Ok(answered) => answered,
            Err(_elapsed) => Err(Error::Timeout { url: base }),
        }
    }

    fn request(
        &self,
        method: Method,
        url: &Url,
        content_type: &str,
        body: Bytes,
    ) -> Result<http::Request<Full<Bytes>>, Error> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(url.as_str())
            .header(header::USER_AGENT, AGENT);
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        request.body(Full::new(body)).map_err(|_| Error::Url {
            url: url.to_string(),
        })
    }

    async fn exchange(&self, request: http::Request<Full<Bytes>>) -> Result<Answer, Error> {
        let url = self.shown();
        let response = match self.http.request(request).await {
            Ok(response) => response,
            Err(error) => return Err(Error::Unreachable { url, error }),
        };
        let status = response.status();
        let body = match Limited::new(response.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await
        {
            Ok(body) => body.to_bytes(),
            Err(source) => return Err(Error::Broken { url, source }),
        };
        if !status.is_success() {
            let problem = Problem::new(status, &body);
            return Err(Error::Refused(Box::new(problem)));
        }
        Ok(Answer { body, url })
    }

    /// The server's address for messages, without credentials and without the slash at its end.
    fn shown(&self) -> String {
        let mut url = self.base.clone();
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.as_str().trim_end_matches('/').to_owned()
    }
}

impl Answer {
    /// The body as text; what is not UTF-8 is replaced.
    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn json(&self) -> Result<Value, Error> {
        self.parse()
    }

    /// The body read as JSON of some shape.
    ///
    /// # Errors
    /// When it is none, or of another shape.
    pub(super) fn parse<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|source| self.not_json(source))
    }

    /// A part of the body read as JSON of some shape.
    ///
    /// # Errors
    /// When it is of another shape.
    pub(super) fn parse_part<'a, T: serde::Deserialize<'a>>(
        &self,
        part: &'a RawValue,
    ) -> Result<T, Error> {
        serde_json::from_str(part.get()).map_err(|source| self.not_json(source))
    }

    fn not_json(&self, source: serde_json::Error) -> Error {
        Error::NotJson {
            url: self.url.clone(),
            source,
        }
    }
}

/// Why a connection failed, in few words, and what to do when that is known.
fn cause(error: &legacy::Error) -> String {
    let mut deepest: &dyn StdError = error;
    while let Some(source) = deepest.source() {
        deepest = source;
        if let Some(error) = source.downcast_ref::<io::Error>()
            && error.kind() != io::ErrorKind::Other
        {
            let hint = match error.kind() {
                io::ErrorKind::ConnectionRefused => "; is `dak serve` running?",
                _ => "",
            };
            return format!("{}{hint}", error.kind());
        }
    }
    deepest.to_string()
}
