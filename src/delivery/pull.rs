//! Pulling: consumers receive under a lease and settle by its token.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::lane::Lane;
use super::{Context, Error, render};
use crate::clock::{Millis, millis};
use crate::event::Event;
use crate::store::{self, Lease, LeaseEnd, Pending, Secret, Seq, StoredEvent};
use crate::target::Target;
use crate::target::outcome::Reason;
use crate::target::pull::Pull;

/// Most deliveries one receive may ask for.
pub const EVENTS_MAX: usize = 100;
/// Longest time one receive may wait.
pub const WAIT_MAX: Duration = Duration::from_secs(20);
const TOKEN_BYTES: usize = 8 + 16;

/// What a consumer asks for.
#[derive(Debug, Clone, Copy)]
pub struct Receive {
    pub events_max: usize,
    pub wait: Duration,
    /// How long it will hold what it gets; the target's setting when absent.
    pub lease: Option<Duration>,
}

/// A delivery handed to a consumer.
#[derive(Debug)]
pub struct Received {
    pub token: String,
    pub until: Millis,
    /// How often it has been handed out, this time included.
    pub receives: u32,
    pub failures: u32,
    pub event: Event,
    pub stored: StoredEvent,
}

/// A consumer's own queue calls.
#[derive(Clone)]
pub(super) struct Puller {
    pub context: Arc<Context>,
    pub target: Arc<Target>,
    pub pull: Pull,
    pub lane: Arc<Lane>,
}

impl Puller {
    /// Hands out what is due, waiting for the first of it.
    pub async fn receive(&self, ask: Receive) -> Result<Vec<Received>, Error> {
        let deadline = self.context.clock.now() + millis(ask.wait.min(WAIT_MAX));
        loop {
            let room = i64::from(self.pull.leased_max) - self.lane.counts().leased;
            let room = usize::try_from(room).unwrap_or(0);
            if room == 0 {
                return Err(Error::TooManyLeased {
                    leased_max: self.pull.leased_max,
                });
            }
            let ask = Receive {
                events_max: ask.events_max.min(room),
                ..ask
            };
            let received = self.receive_now(ask).await?;
            if !received.is_empty() || self.context.clock.now() >= deadline {
                return Ok(received);
            }
            tokio::select! {
                () = self.lane.due() => {}
                () = self.context.clock.sleep_until(deadline) => {}
                () = self.context.stop.cancelled() => return Ok(Vec::new()),
            }
        }
    }

    /// Takes and leases in a task of its own, so that a consumer who hangs up loses nothing: when
    /// nobody is there to take the answer, the leases are released at once.
    async fn receive_now(&self, ask: Receive) -> Result<Vec<Received>, Error> {
        let (reply, answer) = oneshot::channel();
        let puller = self.clone();
        tokio::spawn(async move {
            let received = puller.lease(ask).await;
            if let Err(Ok(unread)) = reply.send(received) {
                puller.release_unread(&unread).await;
            }
        });
        answer.await.unwrap_or(Err(Error::Stopping))
    }

    async fn lease(&self, ask: Receive) -> Result<Vec<Received>, Error> {
        let held = self.lane.take(ask.events_max.clamp(1, EVENTS_MAX)).await?;
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let until = self.context.clock.now() + millis(ask.lease.unwrap_or(self.pull.lease));
        let leases: Vec<Lease> = held
            .iter()
            .map(|held| Lease {
                pending: held.pending(),
                secret: rand::random(),
                until,
            })
            .collect();
        self.context
            .store
            .lease(self.lane.id, leases.clone())
            .await?;
        held.into_iter().for_each(super::lane::Held::leased);
        self.lane.expect_expiry(until);
        self.load(leases).await
    }

    async fn load(&self, leases: Vec<Lease>) -> Result<Vec<Received>, Error> {
        let context = &self.context;
        let seqs = leases.iter().map(|lease| lease.pending.seq).collect();
        let events = context.store.events(seqs).await?;
        let catalog = context.live.current();
        let target = (self.target.name.as_str(), self.target.payload);
        let now = context.clock.now();
        let mut received = Vec::with_capacity(leases.len());
        for stored in events {
            let Some(lease) = leases.iter().find(|lease| lease.pending.seq == stored.seq) else {
                continue;
            };
            match context.render.render(&catalog, &stored, target, now).await {
                Ok(event) => received.push(hand_out(lease, event, stored)),
                Err(render::Error::Never { reason, detail }) => {
                    self.bury(lease, reason, detail).await?;
                }
                // The lease runs out, and it is tried again then.
                Err(error @ render::Error::Later(_)) => {
                    tracing::warn!(target = %self.target.name, %error, "a delivery cannot be made ready");
                }
            }
        }
        Ok(received)
    }

    async fn bury(&self, lease: &Lease, reason: Reason, detail: String) -> Result<(), Error> {
        let end = LeaseEnd::Reject {
            reason: reason.name().to_owned(),
            detail: Some(detail),
        };
        let named = vec![(lease.pending.seq, lease.secret)];
        let now = self.context.clock.now();
        self.context
            .store
            .end_leases(self.lane.id, named, end, now)
            .await?;
        self.context
            .metrics
            .dead_lettered(self.target.name.as_str(), reason.name());
        Ok(())
    }

    async fn release_unread(&self, unread: &[Received]) {
        let tokens = unread.iter().map(|received| received.token.clone());
        let end = LeaseEnd::Release {
            due: self.context.clock.now(),
        };
        if let Err(error) = self.settle(tokens.collect(), end).await {
            tracing::debug!(%error, "unread leases run out by themselves");
        }
    }

    /// Settles leases by their tokens; false where a token is not the live one.
    pub async fn settle(&self, tokens: Vec<String>, end: LeaseEnd) -> Result<Vec<bool>, Error> {
        let parsed: Vec<Option<(Seq, Secret)>> =
            tokens.iter().map(|token| parse_token(token)).collect();
        let named = parsed.iter().flatten().copied().collect();
        let now = self.context.clock.now();
        let ended = self
            .context
            .store
            .end_leases(self.lane.id, named, end.clone(), now)
            .await?;
        let count = ended.iter().filter(|ended| **ended).count() as u64;
        if count > 0 {
            self.note_settled(&end, count);
        }
        let mut ended = ended.into_iter();
        Ok(parsed
            .into_iter()
            .map(|named| named.is_some() && ended.next().unwrap_or(false))
            .collect())
    }

    fn note_settled(&self, end: &LeaseEnd, count: u64) {
        let name = self.target.name.as_str();
        match end {
            LeaseEnd::Acknowledge => self.context.metrics.delivered(name, count),
            LeaseEnd::Release { due } => self.lane.expect_due(*due),
            LeaseEnd::Renew { until } => self.lane.expect_expiry(*until),
            LeaseEnd::Reject { reason, .. } => self.note_dead(reason, count),
        }
    }

    fn note_dead(&self, reason: &str, count: u64) {
        let name = self.target.name.as_str();
        (0..count).for_each(|_| self.context.metrics.dead_lettered(name, reason));
    }

    /// Keeps the lane's times until told to stop: returns expired leases, rings when delayed
    /// deliveries become due.
    pub async fn keep_time(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            match self.lane.expire(self.target.retry.max_attempts).await {
                Ok(expired) => {
                    let count = expired.returned + expired.buried;
                    if count > 0 {
                        let name = self.target.name.as_str();
                        self.context.metrics.lease_expired(name, count);
                        self.note_dead(Reason::Exhausted.name(), expired.buried);
                    }
                }
                Err(error) => {
                    tracing::warn!(target = %self.target.name, %error, "leases could not be expired; tried again");
                    let again = self.context.clock.now() + 1_000;
                    self.context.clock.sleep_until(again).await;
                }
            }
            self.lane.ring_if_due();
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.lane.timer() => {}
            }
        }
    }
}

fn hand_out(lease: &Lease, event: Event, stored: StoredEvent) -> Received {
    let Pending {
        seq,
        receives,
        failures,
        ..
    } = lease.pending;
    let mut token = Vec::with_capacity(TOKEN_BYTES);
    token.extend(seq.to_be_bytes());
    token.extend(lease.secret);
    Received {
        token: URL_SAFE_NO_PAD.encode(token),
        until: lease.until,
        receives: receives + 1,
        failures,
        event,
        stored,
    }
}

fn parse_token(token: &str) -> Option<(Seq, Secret)> {
    let bytes: [u8; TOKEN_BYTES] = URL_SAFE_NO_PAD.decode(token).ok()?.try_into().ok()?;
    let (seq, secret) = bytes.split_at(8);
    Some((
        Seq::from_be_bytes(seq.try_into().ok()?),
        secret.try_into().ok()?,
    ))
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}
