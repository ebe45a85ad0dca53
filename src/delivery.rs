//! The way out: lease, send, settle.
//!
//! [`Deliveries`] owns one lane for each target, with a worker for those that dak pushes to and
//! queue calls for those that consumers pull from. What a failed attempt means is decided in
//! [`retry`], purely.

mod gate;
mod lane;
pub mod link;
mod pull;
mod push;
mod render;
pub mod retry;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::blob::Blobs;
use crate::catalog::Live;
use crate::clock::{Clock, Millis};
use crate::store::{self, Counts, LeaseEnd, Store, StoredEvent};
use crate::target::{Kind, Senders, Target};
use crate::telemetry::Metrics;
use crate::telemetry::trace::{self, TraceContext};

use gate::Gate;
pub use gate::Hold;
use lane::Lane;
use link::Links;
use pull::Puller;
pub use pull::{EVENTS_MAX, Receive, Received, WAIT_MAX};
use push::Worker;
use render::Render;

/// Why a queue call could not be answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such target.
    #[error("there is no target `{0}`")]
    UnknownTarget(String),
    /// The target is not one that consumers pull from.
    #[error("`{name}` is a {kind} target; only pull targets have consumers")]
    NotPull { name: String, kind: &'static str },
    /// As many deliveries are leased as the target allows.
    #[error("{leased_max} deliveries are leased, as many as may")]
    TooManyLeased { leased_max: u32 },
    /// The server is shutting down.
    #[error("the server is stopping")]
    Stopping,
    /// The store failed.
    #[error("the queue could not be read or written")]
    Store(#[source] store::Error),
}

/// What workers and queue calls share.
pub struct Context {
    pub store: Arc<dyn Store>,
    pub live: Arc<Live>,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    pub senders: Senders,
    pub render: Render,
    /// Ends long polls and workers.
    pub stop: CancellationToken,
}

/// All lanes and their workers.
pub struct Deliveries {
    context: Arc<Context>,
    entries: RwLock<HashMap<String, Entry>>,
    tasks: TaskTracker,
}

#[derive(Clone)]
struct Entry {
    target: Arc<Target>,
    lane: Arc<Lane>,
    gate: Arc<Gate>,
    stop: CancellationToken,
}

/// A target's queue as it stands.
#[derive(Debug, Clone)]
pub struct Standing {
    pub counts: Counts,
    /// When the oldest waiting delivery was accepted.
    pub oldest: Option<Millis>,
    pub paused: bool,
    pub disabled: Option<String>,
    pub hold: Option<Hold>,
}

/// What the deliveries are built from.
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub live: Arc<Live>,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    pub blobs: Blobs,
    pub links: Links,
    pub senders: Senders,
}

impl Deliveries {
    /// Deliveries without lanes yet; [`Deliveries::follow`] opens them.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            context: Arc::new(Context {
                store: parts.store,
                live: parts.live,
                metrics: parts.metrics,
                clock: parts.clock,
                senders: parts.senders,
                render: Render {
                    blobs: parts.blobs,
                    links: parts.links,
                },
                stop: CancellationToken::new(),
            }),
            entries: RwLock::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Brings lanes and workers in line with the catalog in force.
    ///
    /// # Errors
    /// When a lane cannot be opened.
    pub async fn follow(&self) -> Result<(), store::Error> {
        let catalog = self.context.live.current();
        for target in catalog.targets() {
            let name = target.name.as_str();
            let known = self.entries.read().get(name).cloned();
            if known
                .as_ref()
                .is_some_and(|known| Arc::ptr_eq(&known.target, target))
            {
                continue;
            }
            self.open(Arc::clone(target), known).await?;
        }
        let gone: Vec<Entry> = {
            let mut entries = self.entries.write();
            entries
                .extract_if(|name, _| catalog.target(name).is_none())
                .map(|(_, entry)| entry)
                .collect()
        };
        for entry in gone {
            entry.stop.cancel();
            self.context
                .metrics
                .forget_target(entry.target.name.as_str());
        }
        Ok(())
    }

    /// Starts a target's worker, in place of the one for its earlier document.
    async fn open(&self, target: Arc<Target>, known: Option<Entry>) -> Result<(), store::Error> {
        let (lane, gate) = match known {
            Some(known) => {
                known.stop.cancel();
                (known.lane, known.gate)
            }
            None => {
                let state = self.context.store.lane(target.name.to_string()).await?;
                let store = Arc::clone(&self.context.store);
                let lane = Lane::new(state, store, self.context.clock.clone());
                (Arc::new(lane), Arc::new(Gate::default()))
            }
        };
        let entry = Entry {
            target: Arc::clone(&target),
            lane,
            gate,
            stop: self.context.stop.child_token(),
        };
        match &target.kind {
            Kind::Pull(pull) => {
                let puller = self.puller(&entry, pull.clone());
                self.tasks.spawn(puller.keep_time(entry.stop.clone()));
            }
            Kind::Webhook(pushed) => {
                let worker = Arc::new(self.worker(&entry, pushed.concurrency));
                self.tasks.spawn(worker.run(entry.stop.clone()));
            }
        }
        self.entries.write().insert(target.name.to_string(), entry);
        Ok(())
    }

    fn worker(&self, entry: &Entry, concurrency: u32) -> Worker {
        Worker {
            context: Arc::clone(&self.context),
            target: Arc::clone(&entry.target),
            concurrency,
            lane: Arc::clone(&entry.lane),
            gate: Arc::clone(&entry.gate),
        }
    }

    fn puller(&self, entry: &Entry, pull: crate::target::pull::Pull) -> Puller {
        Puller {
            context: Arc::clone(&self.context),
            target: Arc::clone(&entry.target),
            pull,
            lane: Arc::clone(&entry.lane),
        }
    }

    /// Says that something was committed for a target.
    pub fn wake(&self, target: &str) {
        if let Some(entry) = self.entries.read().get(target) {
            entry.lane.wake();
        }
    }

    /// Hands a pull target's due deliveries to a consumer.
    ///
    /// # Errors
    /// When there is no such pull target, too much is leased, or the store fails.
    pub async fn receive(&self, target: &str, ask: Receive) -> Result<Vec<Received>, Error> {
        let received = self.pull_target(target)?.receive(ask).await?;
        let contexts: Vec<TraceContext> = received
            .iter()
            .filter_map(|received| push::stored_context(&received.stored))
            .collect();
        // It says which events' traces end in this consumer's hands.
        drop(trace::pull_span(
            trace::Pull::Receive,
            target,
            contexts.iter(),
        ));
        Ok(received)
    }

    /// Settles leases by token; false where a token is not the live one.
    ///
    /// # Errors
    /// When there is no such pull target, or the store fails.
    pub async fn settle(
        &self,
        target: &str,
        tokens: Vec<String>,
        end: LeaseEnd,
    ) -> Result<Vec<bool>, Error> {
        self.pull_target(target)?.settle(tokens, end).await
    }

    /// How long the consumers of a pull target hold a delivery when they do not say.
    ///
    /// # Errors
    /// When there is no such pull target.
    pub fn lease(&self, target: &str) -> Result<Duration, Error> {
        Ok(self.pull_target(target)?.pull.lease)
    }

    fn pull_target(&self, name: &str) -> Result<Puller, Error> {
        let entry = self.entry(name)?;
        match &entry.target.kind {
            Kind::Pull(pull) => Ok(self.puller(&entry, pull.clone())),
            Kind::Webhook(_) => Err(Error::NotPull {
                name: name.to_owned(),
                kind: entry.target.kind_name(),
            }),
        }
    }

    fn entry(&self, name: &str) -> Result<Entry, Error> {
        self.entries
            .read()
            .get(name)
            .cloned()
            .ok_or_else(|| Error::UnknownTarget(name.to_owned()))
    }

    /// Pauses or resumes a target.
    ///
    /// # Errors
    /// When there is no such target, or the store fails.
    pub async fn pause(&self, target: &str, paused: bool) -> Result<(), Error> {
        let lane = self.entry(target)?.lane;
        let (_, disabled) = lane.switches();
        Ok(lane.switch(paused, disabled).await?)
    }

    /// Enables a target that dak disabled.
    ///
    /// # Errors
    /// When there is no such target, or the store fails.
    pub async fn enable(&self, target: &str) -> Result<(), Error> {
        let entry = self.entry(target)?;
        let (paused, _) = entry.lane.switches();
        entry.gate.succeeded();
        Ok(entry.lane.switch(paused, None).await?)
    }

    /// Says that deliveries of these targets are due now, such as redriven ones.
    pub fn expect(&self, targets: impl IntoIterator<Item = String>) {
        let now = self.context.clock.now();
        for target in targets {
            if let Ok(entry) = self.entry(&target) {
                entry.lane.expect_due(now);
            }
        }
    }

    /// How a target's queue stands.
    ///
    /// # Errors
    /// When there is no such target, or the store fails.
    pub async fn standing(&self, target: &str) -> Result<Standing, Error> {
        let entry = self.entry(target)?;
        let (paused, disabled) = entry.lane.switches();
        Ok(Standing {
            counts: entry.lane.counts(),
            oldest: self.context.store.oldest(entry.lane.id).await?,
            paused,
            disabled,
            hold: entry.gate.hold(self.context.clock.now()),
        })
    }

    /// Empties and forgets the queue of a target that is no longer in the catalog.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn drop_queue(&self, target: &str) -> Result<u64, store::Error> {
        let lane = self.context.store.lane(target.to_owned()).await?;
        self.context.store.drop_lane(lane.lane).await
    }

    /// An event with its data, wherever that lies; `None` when its data is lost.
    ///
    /// # Errors
    /// When the blob store does not answer.
    pub async fn whole(
        &self,
        stored: &StoredEvent,
    ) -> Result<Option<crate::event::Event>, crate::blob::Error> {
        match self.context.render.whole(stored).await {
            Ok(event) => Ok(Some(event)),
            Err(render::Error::Never { .. }) => Ok(None),
            Err(render::Error::Later(error)) => Err(error),
        }
    }

    /// The event that a signed address gives access to.
    #[must_use]
    pub fn linked(&self, token: &str) -> Option<store::Seq> {
        self.context
            .render
            .links
            .open(token, self.context.clock.now())
    }

    /// Writes the gauges of all queues.
    pub async fn measure(&self) {
        let names: Vec<String> = self.entries.read().keys().cloned().collect();
        for name in names {
            let Ok(standing) = self.standing(&name).await else {
                continue;
            };
            let metrics = &self.context.metrics;
            let counts = standing.counts;
            let depth = counts.ready + counts.delayed + counts.leased;
            metrics.queue_depth(&name, u64::try_from(depth).unwrap_or(0));
            metrics.dead_letters(&name, u64::try_from(counts.dead).unwrap_or(0));
            let age = standing
                .oldest
                .map_or(0, |at| self.context.clock.now() - at);
            let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
            metrics.queue_oldest_age(&name, age);
            metrics.held(&name, "paused", standing.paused);
            metrics.held(&name, "disabled", standing.disabled.is_some());
            let asked = matches!(standing.hold, Some(Hold::Asked { .. }));
            let breaker = matches!(standing.hold, Some(Hold::Breaker { .. }));
            metrics.held(&name, "asked", asked);
            metrics.held(&name, "breaker", breaker);
        }
    }

    /// Sends what is due to a push target now and waits until it is settled; for tests.
    ///
    /// # Errors
    /// When there is no such push target.
    pub async fn run_once(&self, target: &str) -> Result<usize, Error> {
        let entry = self.entry(target)?;
        match &entry.target.kind {
            Kind::Webhook(pushed) => {
                let worker = Arc::new(self.worker(&entry, pushed.concurrency));
                Ok(worker.run_once().await)
            }
            Kind::Pull(_) => Ok(0),
        }
    }

    /// Ends long polls at once, so that the server can finish its requests.
    pub fn stop(&self) {
        self.context.stop.cancel();
    }

    /// Waits for sends under way to be settled; false when `limit` was reached first.
    pub async fn finish(&self, limit: Duration) -> bool {
        self.stop();
        self.tasks.close();
        tokio::time::timeout(limit, self.tasks.wait()).await.is_ok()
    }
}
