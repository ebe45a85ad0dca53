//! Opens connections for webhooks: resolve, check every address, connect to a checked one.
//!
//! The name is resolved once and the connection goes to an address out of that answer, so a name
//! that changes between the check and the use gains nothing.

#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::Uri;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::target::address::{self, Range};
use crate::target::outcome::Cause;

/// How many look-ups may run at a time: each blocks a thread until the resolver gives up.
const LOOKUPS_MAX: usize = 32;
/// How many addresses of one host are tried.
const ADDRESSES_MAX: usize = 8;
/// How long one address may keep silent before the next is tried beside it (RFC 8305 §5).
const STAGGER: Duration = Duration::from_millis(250);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the address has no host")]
    NoHost,
    #[error("the host name {host} could not be resolved")]
    Lookup {
        host: String,
        #[source]
        source: io::Error,
    },
    #[error("the host name {host} has no address")]
    NoAddress { host: String },
    #[error(
        "{host} is at {address}, {range}, which this target may not reach; \
         allow private addresses on the target to let it through"
    )]
    Refused {
        host: String,
        address: IpAddr,
        range: Range,
    },
    #[error("no connection to {address}")]
    Connect {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("no connection to {host} within {} ms", limit.as_millis())]
    Timeout { host: String, limit: Duration },
}

impl Error {
    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::NoHost | Self::Connect { .. } | Self::Timeout { .. } => Cause::Connect,
            Self::Lookup { .. } | Self::NoAddress { .. } => Cause::Dns,
            Self::Refused { .. } => Cause::AddressRefused,
        }
    }
}

/// Makes TCP connections for one kind of target: those that may reach private addresses, or not.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) allow_private: bool,
    /// Bounds the look-up and the connection together.
    pub(super) timeout: Duration,
    pub(super) resolver: Resolver,
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let (host, port) = host_and_port(&uri).ok_or(Error::NoHost)?;
            let limit = connector.timeout;
            match timeout(limit, connector.connect(&host, port)).await {
                Ok(connected) => connected.map(TokioIo::new),
                Err(_elapsed) => Err(Error::Timeout { host, limit }),
            }
        })
    }
}

impl Connector {
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Error> {
        let found = self.resolver.lookup(host, port).await?;
        let reachable = self.reachable(host, found)?;
        let stream = connect_first(host, &reachable).await?;
        self.check_own(host, &stream)?;
        // Without it a small request may wait for the acknowledgement of the one before.
        // That it cannot be set costs time only.
        let _slower = stream.set_nodelay(true);
        Ok(stream)
    }

    /// The addresses that may be connected to; an error names the first refused one when none may.
    fn reachable(&self, host: &str, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Error> {
        let mut refusal = None;
        let mut reachable = Vec::new();
        for address in found.into_iter().take(ADDRESSES_MAX) {
            match address::refused(address.ip()) {
                Some(range) if !self.allow_private => {
                    refusal.get_or_insert((address.ip(), range));
                }
                _ => reachable.push(address),
            }
        }
        match (reachable.is_empty(), refusal) {
            (false, _) => Ok(reachable),
            (true, Some((address, range))) => Err(refused(host, address, range)),
            (true, None) => Err(Error::NoAddress {
                host: host.to_owned(),
            }),
        }
    }

    /// A connection between equal addresses has come back to this machine by a public address of
    /// its own, behind which dak itself may listen.
    fn check_own(&self, host: &str, stream: &TcpStream) -> Result<(), Error> {
        if self.allow_private {
            return Ok(());
        }
        match (stream.local_addr(), stream.peer_addr()) {
            (Ok(local), Ok(peer)) if local.ip().to_canonical() == peer.ip().to_canonical() => {
                Err(refused(host, peer.ip(), Range::Own))
            }
            _ => Ok(()),
        }
    }
}

fn refused(host: &str, address: IpAddr, range: Range) -> Error {
    Error::Refused {
        host: host.to_owned(),
        address,
        range,
    }
}

fn host_and_port(uri: &Uri) -> Option<(String, u16)> {
    let host = uri.host()?;
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let standard = if uri.scheme() == Some(&Scheme::HTTPS) {
        443
    } else {
        80
    };
    Some((bare.to_owned(), uri.port_u16().unwrap_or(standard)))
}

/// Tries the addresses in order, the next one as soon as one fails or keeps silent.
async fn connect_first(host: &str, addresses: &[SocketAddr]) -> Result<TcpStream, Error> {
    let mut waiting = addresses.iter().copied();
    let mut running = FuturesUnordered::new();
    let mut failure = None;
    loop {
        running.extend(waiting.next().map(connect_one));
        let finished = if waiting.len() == 0 {
            running.next().await
        } else {
            match timeout(STAGGER, running.next()).await {
                Ok(finished) => finished,
                Err(_elapsed) => continue,
            }
        };
        match finished {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error)) => failure = Some(error),
            None => {
                return Err(failure.unwrap_or_else(|| Error::NoAddress {
                    host: host.to_owned(),
                }));
            }
        }
    }
}

async fn connect_one(address: SocketAddr) -> Result<TcpStream, Error> {
    TcpStream::connect(address)
        .await
        .map_err(|source| Error::Connect { address, source })
}

/// Asks the machine's resolver, a bounded number of questions at a time.
#[derive(Clone)]
pub(super) struct Resolver {
    permits: Arc<Semaphore>,
}

impl Resolver {
    pub(super) fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(LOOKUPS_MAX)),
        }
    }

    async fn lookup(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let question = (host.to_owned(), port);
        let answer = tokio::task::spawn_blocking(move || {
            // The thread keeps the permit even when the one who asked has given up.
            let _permit = permit;
            question.to_socket_addrs().map(Iterator::collect)
        });
        let failed = |source| Error::Lookup {
            host: host.to_owned(),
            source,
        };
        answer
            .await
            .map_err(|stopped| failed(io::Error::other(stopped)))?
            .map_err(failed)
    }
}
