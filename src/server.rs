//! Builds everything, serves until told to stop, and stops in order.

use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::api::{self, Api, auth};
use crate::blob::{self, Blobs};
use crate::catalog::{ChangeError, Live};
use crate::clock::Clock;
use crate::config::{Config, PrivateAddresses};
use crate::delivery::link::{KEY_BYTES, Links};
use crate::delivery::{self, Deliveries};
use crate::document::Finding;
use crate::ingest::Ingest;
use crate::store::sqlite::{self, Sqlite};
use crate::store::{self, Store};
use crate::target::{Senders, webhook};
use crate::telemetry::{self, Metrics};

/// Wait after a connection could not be accepted, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The file whose lock says that a server uses the folder.
const LOCK_FILE: &str = "dak.lock";
/// Name under which the key that signs blob addresses is kept.
const LINK_KEY: &str = "blob-address-key";

/// Why the server could not start or went down.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Logs and traces cannot be set up.
    #[error("logs or traces cannot be set up")]
    Telemetry(#[from] telemetry::Error),
    /// The data folder cannot be made.
    #[error("the data folder {folder} cannot be made; give another one with --data-dir")]
    Folder {
        folder: String,
        source: std::io::Error,
    },
    /// Another process serves from the same folder.
    #[error(
        "another dak serves from {folder}; stop it, or give this one a folder of its own with --data-dir"
    )]
    InUse { folder: String },
    /// The database cannot be opened.
    #[error("the database cannot be opened")]
    Store(#[from] store::Error),
    /// The blob store cannot be opened.
    #[error("the blob store cannot be opened")]
    Blobs(#[from] blob::Error),
    /// Stored documents are no longer valid.
    #[error("{} stored documents are no longer valid", .0.len())]
    Documents(Vec<Finding>),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    /// The address can be reached by others, and nobody would have to show a key.
    #[error(
        "{address} can be reached from other machines and there is no API key: make one with \
         `dak keys create --scope admin --data-dir DIR`, or say --insecure"
    )]
    Exposed { address: SocketAddr },
    /// The signals of the operating system cannot be watched.
    #[error("signals cannot be watched")]
    Signals(#[source] std::io::Error),
}

/// Serves until SIGTERM or SIGINT, then stops in order.
///
/// # Errors
/// When something cannot be opened; what goes wrong later is logged and answered instead.
pub async fn run(config: Config) -> Result<(), Error> {
    let telemetry = telemetry::init(&config.telemetry)?;
    let stop = signals()?;
    let running = start(config, Clock::system()).await?;
    tracing::info!(
        address = %running.address,
        version = env!("CARGO_PKG_VERSION"),
        "dak is ready"
    );
    stop.cancelled().await;
    tracing::info!("stopping: no new connections, finishing what is under way");
    running.stop().await;
    if let Err(error) = telemetry.shutdown().await {
        tracing::warn!(%error, "some spans were lost");
    }
    Ok(())
}

fn signals() -> Result<CancellationToken, Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
    let token = CancellationToken::new();
    tokio::spawn({
        let token = token.clone();
        async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            token.cancel();
        }
    });
    Ok(token)
}

/// A server that serves.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// The queues, for tests that drive them.
    pub deliveries: Arc<Deliveries>,
    store: Arc<dyn Store>,
    /// Held while this process may write to the folder.
    lock: File,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    sweeping: JoinHandle<()>,
    limit: Duration,
}

/// Opens everything and starts serving.
///
/// # Errors
/// When something cannot be opened.
pub async fn start(mut config: Config, clock: Clock) -> Result<Running, Error> {
    let metrics = Arc::new(Metrics::new());
    let lock = lock_folder(&config)?;
    let store = open_store(&config, &metrics).await?;
    let listener = TcpListener::bind(config.server.listen)
        .await
        .map_err(|source| Error::Listen {
            address: config.server.listen,
            source,
        })?;
    let address = listener.local_addr().map_err(|source| Error::Listen {
        address: config.server.listen,
        source,
    })?;
    config.listening_on(address);
    let keys = auth::Keys::load(Arc::clone(&store)).await?;
    if !address.ip().is_loopback() && !keys.any() && !config.server.insecure {
        return Err(Error::Exposed { address });
    }
    let api = Arc::new(assemble(&config, clock, (store, metrics), keys).await?);
    api.deliveries.follow().await?;
    let sweeping = tokio::spawn({
        let ingest = api.ingest.clone();
        async move { ingest.keep_sweeping().await }
    });
    let stop = CancellationToken::new();
    let edge = Edge {
        router: api::router(Arc::clone(&api)),
        header_bytes_max: config.api.header_bytes_max,
        request_timeout: config.server.request_timeout,
        connections_max: config.server.connections_max,
        limit: config.server.shutdown_timeout,
    };
    let serving = tokio::spawn(edge.serve(listener, stop.clone()));
    Ok(Running {
        address,
        deliveries: Arc::clone(&api.deliveries),
        store: Arc::clone(&api.store),
        lock,
        stop,
        serving,
        sweeping,
        limit: config.server.shutdown_timeout,
    })
}

/// Makes the data folder and keeps other servers out of it: two writers would give one position in
/// the log to two events. The system releases the lock when the process ends, however it ends.
fn lock_folder(config: &Config) -> Result<File, Error> {
    let folder = &config.server.data_dir;
    let unusable = |source| Error::Folder {
        folder: folder.display().to_string(),
        source,
    };
    std::fs::create_dir_all(folder).map_err(unusable)?;
    let lock = File::create(folder.join(LOCK_FILE)).map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::InUse {
            folder: folder.display().to_string(),
        }),
        Err(TryLockError::Error(source)) => Err(unusable(source)),
    }
}

async fn open_store(config: &Config, metrics: &Arc<Metrics>) -> Result<Arc<dyn Store>, Error> {
    let options = sqlite::Options {
        commit_batch_max: config.store.commit_batch_max,
        on_commit: {
            let metrics = Arc::clone(metrics);
            Arc::new(move |commit| {
                // Commits of settlements alone say nothing about how events share commits.
                if commit.events > 0 {
                    let events = usize::try_from(commit.events).unwrap_or(usize::MAX);
                    metrics.committed(events, Duration::from_secs_f64(commit.seconds));
                }
            })
        },
    };
    Ok(Arc::new(Sqlite::open(&config.database(), options).await?))
}

async fn assemble(
    config: &Config,
    clock: Clock,
    (store, metrics): (Arc<dyn Store>, Arc<Metrics>),
    keys: auth::Keys,
) -> Result<Api, Error> {
    let live = match Live::load(Arc::clone(&store)).await {
        Ok(live) => Arc::new(live),
        Err(ChangeError::Refused(findings)) => return Err(Error::Documents(findings)),
        Err(ChangeError::Store(error)) => return Err(error.into()),
        Err(ChangeError::Missing(_)) => return Err(Error::Documents(Vec::new())),
    };
    let blobs = Blobs::dir(&config.store.blobs_dir)?;
    let link_key = rand::random::<[u8; KEY_BYTES]>().to_vec();
    let link_key = store.meta(LINK_KEY.into(), link_key).await?;
    let deliveries = Arc::new(Deliveries::new(delivery::Parts {
        store: Arc::clone(&store),
        live: Arc::clone(&live),
        metrics: Arc::clone(&metrics),
        clock: clock.clone(),
        blobs: blobs.clone(),
        links: Links::new(link_key, &config.server.public_url),
        senders: senders(config, &clock),
    }));
    let ingest = Ingest {
        store: Arc::clone(&store),
        blobs,
        live: Arc::clone(&live),
        metrics: Arc::clone(&metrics),
        clock: clock.clone(),
        wake: {
            let deliveries = Arc::clone(&deliveries);
            Arc::new(move |target| deliveries.wake(target))
        },
        options: Arc::new(config.ingest.clone()),
    };
    let options = api::Options {
        body_bytes_max: usize::try_from(config.api.body_bytes_max).unwrap_or(usize::MAX),
        batch_events_max: config.api.batch_events_max,
        body_timeout: config.server.request_timeout,
        ..api::Options::default()
    };
    Ok(Api {
        ingest,
        deliveries,
        live,
        store,
        metrics,
        keys,
        room: api::memory(&options),
        options,
        started_at: clock.now(),
        clock,
    })
}

fn senders(config: &Config, clock: &Clock) -> Senders {
    let options = webhook::Options {
        clock: clock.clone(),
        private_addresses: config.webhook.private_addresses == PrivateAddresses::PerTarget,
        ..config.webhook.client.clone()
    };
    Senders {
        webhook: webhook::Client::new(&options),
    }
}

impl Running {
    /// Stops in order: no new connections, requests under way finish, sends under way are settled,
    /// what was handed over is committed.
    pub async fn stop(self) {
        self.stop.cancel();
        self.deliveries.stop();
        if self.serving.await.is_err() {
            tracing::error!("the listener broke off");
        }
        if !self.deliveries.finish(self.limit).await {
            tracing::warn!(
                "some sends did not finish in time; they are made again after the next start"
            );
        }
        self.sweeping.abort();
        self.store.close().await;
        drop(self.lock);
    }
}

/// The listener and its limits.
struct Edge {
    router: axum::Router,
    header_bytes_max: usize,
    request_timeout: Duration,
    connections_max: usize,
    limit: Duration,
}

impl Edge {
    async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let server = self.connections();
        let graceful = GracefulShutdown::new();
        let room = Arc::new(Semaphore::new(self.connections_max));
        // Dropping a branch loses nothing: a connection not yet accepted stays in the backlog.
        loop {
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
                break;
            };
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            let Some(stream) = usable(accepted).await else {
                continue;
            };
            let heard = Arc::new(Notify::new());
            let service = self.router.clone().map_request({
                let heard = Arc::clone(&heard);
                move |request: Request<Incoming>| {
                    heard.notify_one();
                    request
                }
            });
            let service = TowerToHyperService::new(service);
            let connection = server.serve_connection_with_upgrades(TokioIo::new(stream), service);
            let connection = graceful.watch(connection.into_owned());
            let wait = self.request_timeout;
            tokio::spawn(async move {
                attend(connection, &heard, wait).await;
                drop(permit);
            });
        }
        drop(listener);
        if tokio::time::timeout(self.limit, graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("some requests did not finish in time");
        }
    }

    fn connections(&self) -> auto::Builder<TokioExecutor> {
        let mut server = auto::Builder::new(TokioExecutor::new());
        server
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.request_timeout)
            .max_buf_size(self.header_bytes_max.max(8 * 1024));
        server
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(Some(self.request_timeout))
            .max_header_list_size(u32::try_from(self.header_bytes_max).unwrap_or(u32::MAX));
        server
    }
}

/// Serves one connection to its end, or until its first request is late: HTTP/1 has its own limit
/// for a request's head, but only once it is known which HTTP is spoken.
async fn attend<E: std::fmt::Display>(
    connection: impl Future<Output = Result<(), E>>,
    heard: &Notify,
    wait: Duration,
) {
    let mut connection = std::pin::pin!(connection);
    // Dropping the other two branches loses nothing: they only tell the time and what was noted.
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = heard.notified() => connection.await,
        () = tokio::time::sleep(wait) => {
            tracing::debug!("a connection was closed that brought no request");
            return;
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn usable(accepted: std::io::Result<(TcpStream, SocketAddr)>) -> Option<TcpStream> {
    match accepted {
        Ok((stream, _)) => {
            // Answers are small and wait for nothing.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection answers in larger packets");
            }
            Some(stream)
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}
