//! The load: order events of which the id alone changes, and clients that each send the next request
//! when the last one is answered, on a connection that stays open.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Size of every event in bytes, as JSON.
pub const EVENT_BYTES: usize = 1_026;
/// The type of every event.
pub const EVENT_TYPE: &str = "com.example.order.placed.v1";
/// Stands where an id is written; as long as every id.
const ID: &str = "################";
/// Longest wait for the answers that are still due when the window has closed.
const LAST_ANSWERS: Duration = Duration::from_secs(30);

/// How events are sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Load {
    pub name: &'static str,
    /// Connections, each with one request under way.
    pub connections: u64,
    /// Events of one request; 1 sends it in structured mode, more as a batch.
    pub events: usize,
}

/// The time in which is measured; what comes before warms up.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub opens: Instant,
    pub closes: Instant,
}

/// What clients saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// Events accepted at any time.
    pub accepted: u64,
    /// Events accepted within the window.
    pub in_window: u64,
    /// Times of the requests answered within the window, shortest first.
    pub latencies: Vec<Duration>,
}

impl Seen {
    fn answered(&mut self, load: &Load, window: Window, sent: Instant) {
        let now = Instant::now();
        self.accepted += load.events as u64;
        if now >= window.opens && now < window.closes {
            self.in_window += load.events as u64;
            self.latencies.push(now - sent);
        }
    }

    fn join(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.in_window += other.in_window;
        self.latencies.extend(other.latencies);
    }

    /// The time within which this share of the requests was answered, in milliseconds; not a number
    /// when none was.
    pub fn latency_ms(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        let latency = self.latencies.get(at);
        latency.map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// Sends from now until the window closes.
pub async fn run(address: SocketAddr, load: &'static Load, window: Window) -> anyhow::Result<Seen> {
    let mut clients = JoinSet::new();
    for number in 0..load.connections {
        clients.spawn(client(address, load, number, window));
    }
    let mut all = Seen::default();
    let joined = async {
        while let Some(seen) = clients.join_next().await {
            all.join(seen??);
        }
        anyhow::Ok(())
    };
    tokio::time::timeout_at(window.closes + LAST_ANSWERS, joined)
        .await
        .context("some requests were never answered")??;
    all.latencies.sort_unstable();
    Ok(all)
}

async fn client(
    address: SocketAddr,
    load: &Load,
    number: u64,
    window: Window,
) -> anyhow::Result<Seen> {
    let (mut sender, connection) = connect(address).await?;
    let mut requests = Requests::new(address, load, number)?;
    let sending = async {
        let mut seen = Seen::default();
        while Instant::now() < window.closes {
            let request = requests.next();
            let sent = Instant::now();
            let (status, body) = exchange(&mut sender, request).await?;
            ensure!(
                status == StatusCode::ACCEPTED,
                "{status}: {}",
                body.escape_ascii()
            );
            seen.answered(load, window, sent);
        }
        Ok(seen)
    };
    // The connection and its requests are one task, so that an answer wakes one task only. The first
    // branch never loses: it ends when the server hangs up.
    tokio::select! {
        biased;
        ended = connection => {
            ended?;
            anyhow::bail!("the server closed a connection");
        }
        seen = sending => seen,
    }
}

type Sender = http1::SendRequest<Full<Bytes>>;
type Connection = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

async fn connect(address: SocketAddr) -> anyhow::Result<(Sender, Connection)> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(http1::handshake(TokioIo::new(stream)).await?)
}

async fn exchange(
    sender: &mut Sender,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let response = sender.send_request(request).await?;
    let status = response.status();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}

/// Makes one request on a connection of its own.
pub async fn call(
    address: SocketAddr,
    method: Method,
    path: &str,
    body: impl Into<Bytes>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let (mut sender, connection) = connect(address).await?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, address.to_string())
        .header(CONTENT_TYPE, media_type(1))
        .body(Full::new(body.into()))?;
    tokio::select! {
        answer = exchange(&mut sender, request) => answer,
        ended = connection => {
            ended?;
            anyhow::bail!("the server closed a connection");
        }
    }
}

fn media_type(events: usize) -> &'static str {
    match events {
        1 => "application/cloudevents+json",
        _ => "application/cloudevents-batch+json",
    }
}

/// The requests of one client.
struct Requests {
    body: Vec<u8>,
    /// Where the ids stand in the body.
    ids: Vec<usize>,
    headers: HeaderMap,
    uri: Uri,
    next_id: u64,
}

impl Requests {
    fn new(address: SocketAddr, load: &Load, client: u64) -> anyhow::Result<Self> {
        let event = event(ID);
        ensure!(
            event.len() == EVENT_BYTES,
            "an event has {} bytes",
            event.len()
        );
        let body = match load.events {
            1 => event,
            events => format!("[{}]", vec![event; events].join(",")),
        };
        let headers = [
            (HOST, HeaderValue::try_from(address.to_string())?),
            (
                CONTENT_TYPE,
                HeaderValue::from_static(media_type(load.events)),
            ),
        ];
        Ok(Self {
            ids: body.match_indices(ID).map(|(at, _)| at).collect(),
            body: body.into_bytes(),
            headers: headers.into_iter().collect(),
            uri: Uri::from_static("/v1/events"),
            next_id: client << 40,
        })
    }

    fn next(&mut self) -> Request<Full<Bytes>> {
        for at in &self.ids {
            write_id(&mut self.body[*at..*at + ID.len()], self.next_id);
            self.next_id += 1;
        }
        let mut request = Request::new(Full::new(Bytes::copy_from_slice(&self.body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        request.headers_mut().clone_from(&self.headers);
        request
    }
}

/// Writes a number in hexadecimal digits.
fn write_id(digits: &mut [u8], mut id: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(id & 15) as usize];
        id >>= 4;
    }
}

/// An order event of [`EVENT_BYTES`] when its id has 16 bytes; its data has 21 fields.
pub fn event(id: &str) -> String {
    let text = event_with(id, "");
    let missing = (EVENT_BYTES + id.len()).saturating_sub(text.len() + ID.len());
    event_with(id, &"leave it with the neighbour ".repeat(20)[..missing])
}

fn event_with(id: &str, note: &str) -> String {
    json!({
        "specversion": "1.0",
        "id": id,
        "source": "/shop/orders/eu",
        "type": EVENT_TYPE,
        "subject": "orders/ORD-00417211",
        "time": "2026-11-30T17:31:00.123Z",
        "datacontenttype": "application/json",
        "partitionkey": "C-048213",
        "data": {
            "order_id": "ORD-00417211",
            "customer_id": "C-048213",
            "email": "ines.hansen@mail.example.com",
            "placed_at": "2026-11-30T17:31:00Z",
            "status": "placed",
            "channel": "web",
            "country": "BD",
            "city": "Chattogram",
            "currency": "BDT",
            "amount": 7250.5,
            "tax": 945.72,
            "shipping_cost": 120,
            "discount": 0,
            "priority": 3,
            "gift": false,
            "coupon": null,
            "payment_method": "card",
            "carrier": "pathao",
            "items": [
                {"sku": "SKU-ELC-0413", "quantity": 1, "price": 5400.5},
                {"sku": "SKU-BKS-1207", "quantity": 2, "price": 925}
            ],
            "tags": ["vip", "insured", "same-day"],
            "note": note
        }
    })
    .to_string()
}
