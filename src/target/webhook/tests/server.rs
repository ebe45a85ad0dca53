//! Servers inside a test: one that answers as told, one that answers bytes, one behind TLS.

use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes of the body that the tests' event has in binary mode.
pub const BODY_BYTES: usize = br#"{"n":1.50}"#.len();

pub fn respond(status: u16, body: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// Answers every request by a function and tells the test what it saw.
pub struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    seen: mpsc::UnboundedReceiver<Request<Bytes>>,
    accepting: JoinHandle<()>,
}

impl Server {
    pub async fn start<F, R>(answer: F) -> Self
    where
        F: Fn(Request<Bytes>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Response<Body>> + Send,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        let (seeing, seen) = mpsc::unbounded_channel();
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                let (answer, seeing) = (answer.clone(), seeing.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (answer, seeing) = (answer.clone(), seeing.clone());
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        let request = Request::from_parts(head, body);
                        // A test that looks at no request has dropped nothing it needs.
                        let _unwatched = seeing.send(request.clone());
                        Ok::<_, Infallible>(answer(request).await)
                    }
                });
                tokio::spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let connection = builder.serve_connection(TokioIo::new(stream), service);
                    // The client may hang up at any time; that is what some tests are about.
                    let _ended = connection.await;
                });
            }
        });
        Self {
            address,
            connections,
            seen,
            accepting,
        }
    }

    /// Accepts one connection, reads a little, answers `bytes` and hangs up; its URL.
    pub async fn start_raw(bytes: &[u8]) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let bytes = bytes.to_vec();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            while !heard.ends_with(b"}") {
                assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0);
            }
            // The client need not read it all.
            let _refused = stream.write_all(&bytes).await;
        });
        format!("http://{address}/")
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The next request.
    pub async fn seen(&mut self) -> Request<Bytes> {
        self.seen.recv().await.unwrap()
    }

    pub fn seen_no_more(&mut self) -> bool {
        self.seen.try_recv().is_err()
    }

    /// Closes the port.
    pub async fn stop(self) {
        self.accepting.abort();
        assert!(self.accepting.await.unwrap_err().is_cancelled());
    }
}

/// A certificate for `localhost` that signs itself, valid from 2020 to 2120.
const CERTIFICATE: &str = "\
    MIIBXTCCAQSgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwIBcNMjAwMTAxMDAwMDAw\
    WhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMMCWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA\
    BJXF39anHW5zc86xH0oB6JGQf4QzFR+JOOEcMRWacmTV4qdXQlP51gxGggjmQF4VIQSY3SFZDg9g+KDeTeTrchqj\
    RTBDMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAMBgNVHRMBAf8EAjAAMB0GA1UdDgQWBBR+t5bizADLn4n+mHHt7jKv\
    Xok5+zAKBggqhkjOPQQDAgNHADBEAiAsD4JoIkWEkPx+n6+wU13riFSnu+hYgoFi7jHUuHGL5wIgThI5DreXACge\
    EtJpNgPD3xJVUNv0SiB6LE5n7BOxWh4=";

/// The key of [`CERTIFICATE`], which protects nothing.
const CERTIFICATE_KEY: &str = "\
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgFD2btN6W24dGElaM6FSdMqPLqmAdRZl12/B6UuQu\
    u+ahRANCAASVxd/Wpx1uc3POsR9KAeiRkH+EMxUfiTjhHDEVmnJk1eKnV0JT+dYMRoII5kBeFSEEmN0hWQ4PYPig\
    3k3k63Ia";

fn certificate() -> CertificateDer<'static> {
    STANDARD.decode(CERTIFICATE).unwrap().into()
}

/// Trust in [`CERTIFICATE`] alone.
pub fn localhost_roots() -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate()).unwrap();
    roots
}

/// Speaks TLS on threads of its own and answers each connection's first request.
pub struct TlsServer {
    port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl TlsServer {
    pub fn start(answer: &'static [u8]) -> Self {
        let key = PrivatePkcs8KeyDer::from(STANDARD.decode(CERTIFICATE_KEY).unwrap());
        let provider = rustls::crypto::ring::default_provider();
        let config = rustls::ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate()], PrivateKeyDer::from(key))
            .unwrap();
        let config = Arc::new(config);
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hearing = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = rustls::StreamOwned::new(session, stream.unwrap());
                // A client that does not trust the certificate leaves before it has said anything.
                if let Ok(request) = read_request(&mut stream) {
                    hearing
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .extend(request);
                    stream.write_all(answer).unwrap();
                    stream.flush().unwrap();
                }
            }
        });
        Self { port, heard }
    }

    pub fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/", self.port)
    }

    /// All that clients have said.
    pub fn heard(&self) -> Vec<u8> {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn read_request(
    stream: &mut rustls::StreamOwned<rustls::ServerConnection, std::net::TcpStream>,
) -> std::io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    while !request.ends_with(b"}") {
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(&chunk[..count]);
    }
    Ok(request)
}
