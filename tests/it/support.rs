//! What tests stand on: a gateway of their own, a receiver of webhooks, a small HTTP client.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use dak::clock::{Clock, Millis};
use dak::config::Config;
use dak::server::{self, Running};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;

/// Longest wait for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Where manual clocks begin: 2023-11-14T22:13:20Z.
pub const NOW: Millis = 1_700_000_000_000;

/// A gateway on a free port with a database of its own.
pub struct Gateway {
    running: Option<Running>,
    pub clock: Clock,
    pub http: Http,
    settings: Vec<(String, String)>,
    folder: TempDir,
}

impl Gateway {
    /// A gateway with the default settings.
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    /// A gateway with settings.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        Self::with_clock(settings, Clock::system()).await
    }

    /// A gateway whose time the test moves.
    pub async fn with_clock(settings: &[(&str, &str)], clock: Clock) -> Self {
        trace_side_by_side();
        let folder = tempfile::tempdir().expect("a folder");
        let mut all = vec![
            ("listen".to_owned(), "127.0.0.1:0".to_owned()),
            ("data_dir".to_owned(), folder.path().display().to_string()),
        ];
        all.extend(
            settings
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
        );
        let mut gateway = Self {
            running: None,
            clock,
            http: Http::to(SocketAddr::from(([127, 0, 0, 1], 0))),
            settings: all,
            folder,
        };
        gateway.begin().await;
        gateway
    }

    async fn begin(&mut self) {
        let config = Config::load(&self.settings, [], None).expect("settings");
        let running = server::start(config, self.clock.clone())
            .await
            .expect("a gateway");
        self.http = Http::to(running.address);
        self.running = Some(running);
    }

    /// Stops in order and starts again on the same data.
    pub async fn restart(&mut self) {
        self.running.take().expect("running").stop().await;
        self.begin().await;
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.running.as_ref().expect("running").address
    }

    /// Its data folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Delivers what is due to a push target, and waits for that.
    pub async fn deliver(&self, target: &str) -> usize {
        let deliveries = &self.running.as_ref().expect("running").deliveries;
        deliveries.run_once(target).await.expect("a push target")
    }

    /// Makes a pull target and a rule that sends everything of a type to it.
    pub async fn pull_rule(&self, target: &str, event_type: &str) {
        self.http
            .put(&format!("/v1/targets/{target}"), &json!({"type": "pull"}))
            .await
            .ok();
        self.rule(
            &format!("{target}-rule"),
            &json!({"type": [event_type]}),
            &[target],
        )
        .await;
    }

    /// Makes a webhook target that posts to `url`, which may be private.
    pub async fn webhook(&self, target: &str, url: &str, more: Value) {
        let mut document = json!({"type": "webhook", "url": url, "allow_private": true});
        for (key, value) in more.as_object().expect("fields") {
            document[key] = value.clone();
        }
        self.http
            .put(&format!("/v1/targets/{target}"), &document)
            .await
            .ok();
    }

    /// Makes a rule on the default bus.
    pub async fn rule(&self, name: &str, pattern: &Value, targets: &[&str]) {
        let document = json!({"pattern": pattern, "targets": targets});
        self.http
            .put(&format!("/v1/rules/{name}"), &document)
            .await
            .ok();
    }

    /// Receives what is due from a pull target.
    pub async fn receive(&self, target: &str, most: usize) -> Vec<Value> {
        let answer = self
            .http
            .post(
                &format!("/v1/queues/{target}/receive"),
                &json!({"max_events": most}),
            )
            .await
            .ok();
        answer["events"].as_array().expect("events").clone()
    }

    /// How a target's queue stands.
    pub async fn queue(&self, target: &str) -> Value {
        let shown = self.http.get(&format!("/v1/targets/{target}")).await.ok();
        shown["queue"].clone()
    }

    /// Acknowledges, releases, rejects or renews leases.
    pub async fn settle(&self, target: &str, verb: &str, tokens: &[Value]) -> Value {
        let ask = json!({"lease_tokens": tokens});
        self.http
            .post(&format!("/v1/queues/{target}/{verb}"), &ask)
            .await
            .ok()
    }

    /// The value of a metric line, 0 when it is not there.
    pub async fn metric(&self, line: &str) -> f64 {
        let text = self.http.get("/metrics").await.text();
        text.lines()
            .find_map(|found| found.strip_prefix(line)?.trim().parse().ok())
            .unwrap_or(0.0)
    }
}

/// Lets tests trace side by side, each with a subscriber on its own thread. While a process has one
/// subscriber only, `tracing` takes the word of whichever thread meets a span first, and a thread
/// without a subscriber would switch that span off for all; so two idle ones are kept.
pub fn trace_side_by_side() {
    static IDLE: OnceLock<[Dispatch; 2]> = OnceLock::new();
    IDLE.get_or_init(|| [(); 2].map(|()| Dispatch::new(NoSubscriber::default())));
}

/// Asks again until the answer is the one to wait for.
pub async fn until<T: Debug>(ask: impl AsyncFn() -> T, is_it: impl Fn(&T) -> bool) -> T {
    let begun_at = Instant::now();
    loop {
        let answer = ask().await;
        if is_it(&answer) {
            return answer;
        }
        assert!(begun_at.elapsed() < PATIENCE, "still {answer:?}");
        tokio::task::yield_now().await;
    }
}

/// A client of one address.
#[derive(Clone)]
pub struct Http {
    base: String,
    client: Client<HttpConnector, Full<Bytes>>,
    pub key: Option<String>,
}

/// Why there is no answer.
pub type NoAnswer = Box<dyn std::error::Error + Send + Sync>;

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body of a success.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.text());
        if self.body.is_empty() {
            Value::Null
        } else {
            self.json()
        }
    }

    /// The problem of a refusal with this status and kind.
    #[track_caller]
    pub fn problem(self, status: u16, kind: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let problem = self.json();
        assert_eq!(
            problem["type"],
            format!("urn:dak:problem:{kind}"),
            "{problem}"
        );
        problem
    }
}

impl Http {
    pub fn to(address: SocketAddr) -> Self {
        Self {
            base: format!("http://{address}"),
            client: Client::builder(TokioExecutor::new()).build_http(),
            key: None,
        }
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        self.try_send(request).await.expect("an answer")
    }

    /// Sends a request that may get no answer, as when the server is killed.
    pub async fn try_send(&self, mut request: Request<Full<Bytes>>) -> Result<Answer, NoAnswer> {
        let path = request.uri().to_string();
        *request.uri_mut() = format!("{}{path}", self.base).parse().expect("an address");
        if let Some(key) = &self.key {
            let value = format!("Bearer {key}").parse().expect("a header");
            request.headers_mut().insert("authorization", value);
        }
        let response = self.client.request(request).await?;
        let (parts, body) = response.into_parts();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await?.to_bytes(),
        })
    }

    async fn call(&self, method: &str, path: &str, body: Vec<u8>) -> Answer {
        let request = Request::builder().method(method).uri(path);
        self.send(request.body(Full::from(body)).expect("a request"))
            .await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, Vec::new()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, Vec::new()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call("PUT", path, body.to_string().into_bytes()).await
    }

    /// Puts a document as text, such as YAML.
    pub async fn put_text(&self, path: &str, text: impl Into<Vec<u8>>) -> Answer {
        self.call("PUT", path, text.into()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, body.to_string().into_bytes()).await
    }

    /// Publishes text in structured or batch mode.
    pub async fn publish_text(
        &self,
        path: &str,
        media_type: &str,
        text: impl Into<Bytes>,
    ) -> Answer {
        let request = Request::post(path).header("content-type", media_type);
        self.send(request.body(Full::from(text.into())).expect("a request"))
            .await
    }

    /// Publishes one event to the default bus.
    pub async fn publish(&self, event: &Value) -> Answer {
        let media_type = "application/cloudevents+json";
        self.publish_text("/v1/events", media_type, event.to_string())
            .await
    }

    /// Publishes a batch to the default bus.
    pub async fn publish_batch(&self, events: &[Value]) -> Answer {
        let media_type = "application/cloudevents-batch+json";
        self.publish_text("/v1/events", media_type, json!(events).to_string())
            .await
    }
}

/// An event with JSON data.
pub fn event(id: &str, event_type: &str, data: Value) -> Value {
    json!({"specversion": "1.0", "id": id, "source": "/test", "type": event_type,
        "datacontenttype": "application/json", "data": data})
}

/// A request that a receiver got.
#[derive(Debug, Clone)]
pub struct Got {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Got {
    /// A header's text; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("text"))
    }

    /// An attribute of an event in binary mode.
    pub fn attribute(&self, name: &str) -> String {
        percent_decode(self.header(&format!("ce-{name}")).as_bytes())
    }
}

/// The text of a `ce-*` header: one round of percent-decoding, as the HTTP binding says.
pub fn percent_decode(value: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.iter();
    while let Some(byte) = rest.next() {
        if *byte == b'%' {
            let hex: Vec<u8> = rest.by_ref().take(2).copied().collect();
            let hex = std::str::from_utf8(&hex).expect("ASCII");
            bytes.push(u8::from_str_radix(hex, 16).expect("two hex digits"));
        } else {
            assert!(byte.is_ascii_graphic(), "byte {byte:#x} came unencoded");
            bytes.push(*byte);
        }
    }
    String::from_utf8(bytes).expect("UTF-8")
}

/// How a receiver answers the n-th request, from 0.
type Script = dyn Fn(usize, &Got) -> (u16, Vec<(&'static str, String)>) + Send + Sync;

/// A real HTTP server that takes webhooks.
pub struct Receiver {
    pub address: SocketAddr,
    count: watch::Receiver<usize>,
    desk: Arc<Desk>,
}

/// Where a receiver takes its requests.
struct Desk {
    script: Box<Script>,
    got: Mutex<Vec<Got>>,
    count: watch::Sender<usize>,
    /// Answers that may go out.
    let_go: Semaphore,
    present: AtomicUsize,
    present_most: AtomicUsize,
}

impl Receiver {
    /// A receiver that takes everything.
    pub async fn start() -> Self {
        Self::answering(|_, _| (204, Vec::new())).await
    }

    /// A receiver that answers as the script says.
    pub async fn answering(
        script: impl Fn(usize, &Got) -> (u16, Vec<(&'static str, String)>) + Send + Sync + 'static,
    ) -> Self {
        Self::open(Box::new(script), Semaphore::MAX_PERMITS).await
    }

    /// A receiver that keeps each request waiting until it is let go.
    pub async fn holding() -> Self {
        Self::open(Box::new(|_, _| (204, Vec::new())), 0).await
    }

    async fn open(script: Box<Script>, permits: usize) -> Self {
        let (counter, count) = watch::channel(0);
        let desk = Arc::new(Desk {
            script,
            got: Mutex::default(),
            count: counter,
            let_go: Semaphore::new(permits),
            present: AtomicUsize::new(0),
            present_most: AtomicUsize::new(0),
        });
        let router = axum::Router::new()
            .fallback(take)
            .with_state(Arc::clone(&desk));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            address,
            count,
            desk,
        }
    }

    /// Answers so many of the requests that are kept waiting, or come to be.
    pub fn let_go(&self, count: usize) {
        self.desk.let_go.add_permits(count);
    }

    /// How many requests it had at the same time, at most.
    pub fn present_most(&self) -> usize {
        self.desk.present_most.load(Ordering::SeqCst)
    }

    /// The URL to post to.
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Waits until it got so many requests; answers with all of them.
    pub async fn wait_for(&self, count: usize) -> Vec<Got> {
        let mut counter = self.count.clone();
        let reached = counter.wait_for(|got| *got >= count);
        let waited = tokio::time::timeout(PATIENCE, reached).await.map(|_| ());
        let got = self.desk.got.lock().clone();
        assert!(waited.is_ok(), "{} of {count} requests came", got.len());
        got
    }

    /// What it got so far.
    pub fn got(&self) -> Vec<Got> {
        self.desk.got.lock().clone()
    }
}

/// A request that is at the desk; it leaves when it is answered or its sender hangs up.
struct Present(Arc<Desk>);

impl Present {
    fn at(desk: &Arc<Desk>) -> Self {
        let present = desk.present.fetch_add(1, Ordering::SeqCst) + 1;
        desk.present_most.fetch_max(present, Ordering::SeqCst);
        Self(Arc::clone(desk))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.present.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn take(
    axum::extract::State(desk): axum::extract::State<Arc<Desk>>,
    request: axum::extract::Request,
) -> axum::response::Response {
    let _present = Present::at(&desk);
    let (parts, body) = request.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let request = Got {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        body,
    };
    let nth = {
        let mut all = desk.got.lock();
        all.push(request.clone());
        all.len() - 1
    };
    let (status, headers) = (desk.script)(nth, &request);
    desk.count.send_modify(|count| *count += 1);
    desk.let_go
        .acquire()
        .await
        .expect("the desk stays open")
        .forget();
    let mut response = axum::response::Response::new(axum::body::Body::from("an answer"));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    for (name, value) in headers {
        response
            .headers_mut()
            .insert(name, value.parse().expect("a header"));
    }
    response
}

/// The folder of shared vectors; `None`, said aloud, when it is not there. In CI it must be.
pub fn shared() -> Option<PathBuf> {
    let folder = std::env::var_os("DAK_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    if folder.join("vectors").is_dir() {
        return Some(folder);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "the shared vectors are not at {}; set DAK_SHARED",
        folder.display()
    );
    eprintln!("skipped: no shared vectors at {}", folder.display());
    None
}
