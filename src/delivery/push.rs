//! Pushing: one worker for each target that dak sends to.
//!
//! A worker takes what is due, sends with bounded concurrency, decides what each outcome means and
//! settles it durably. It holds no transaction while it calls out.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::gate::{Gate, Opening};
use super::lane::{Held, Lane};
use super::retry::{self, Effect, History, Next};
use super::{Context, render};
use crate::clock::{Millis, parse_rfc3339};
use crate::event::Event;
use crate::store::{self, Attempt, End, StoredEvent};
use crate::target::outcome::{Cause, Outcome, Reason};
use crate::target::{Request, Target};
use crate::telemetry::trace::{self, TraceContext};

/// Most deliveries taken from a lane in one go.
const TAKEN_MAX: usize = 64;
/// Wait before asking a store that failed again.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Sends one target's deliveries.
pub(super) struct Worker {
    pub context: Arc<Context>,
    pub target: Arc<Target>,
    pub concurrency: u32,
    pub lane: Arc<Lane>,
    pub gate: Arc<Gate>,
}

impl Worker {
    /// Sends until told to stop, then lets what is under way finish.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let permits = Arc::new(Semaphore::new(self.concurrency as usize));
        let mut sending = JoinSet::new();
        // Dropping a branch of this loop loses nothing: what was taken goes back to its lane.
        while !stop.is_cancelled() {
            while let Some(ended) = sending.try_join_next() {
                self.note_end(ended);
            }
            tokio::select! {
                () = stop.cancelled() => break,
                Some(ended) = sending.join_next() => self.note_end(ended),
                () = self.step(&permits) => {
                    let ready = self.start(&permits).await;
                    for (held, permit) in ready {
                        let worker = Arc::clone(&self);
                        sending.spawn(async move { worker.deliver(held, permit).await });
                    }
                }
            }
        }
        while let Some(ended) = sending.join_next().await {
            self.note_end(ended);
        }
    }

    /// Delivers what is due now and waits for it to be settled; says how much that was.
    pub async fn run_once(self: Arc<Self>) -> usize {
        let permits = Arc::new(Semaphore::new(self.concurrency as usize));
        let ready = self.start(&permits).await;
        let count = ready.len();
        let mut sending = JoinSet::new();
        for (held, permit) in ready {
            let worker = Arc::clone(&self);
            sending.spawn(async move { worker.deliver(held, permit).await });
        }
        while let Some(ended) = sending.join_next().await {
            self.note_end(ended);
        }
        count
    }

    fn note_end(&self, ended: Result<(), tokio::task::JoinError>) {
        if let Err(error) = ended {
            tracing::error!(target = %self.target.name, %error, "a delivery broke off; it is tried again");
            self.gate.failed(self.context.clock.now());
        }
    }

    /// Returns when there may be something to send and room to send it.
    async fn step(&self, permits: &Semaphore) {
        let Ok(_room) = permits.acquire().await else {
            return;
        };
        while let Some(until) = self.gate.closed_until(self.context.clock.now()) {
            tokio::select! {
                () = self.context.clock.sleep_until(until) => {}
                () = self.gate.changed() => {}
            }
        }
        self.lane.due().await;
    }

    /// Takes deliveries that may start now.
    async fn start(&self, permits: &Arc<Semaphore>) -> Vec<(Loaded, OwnedSemaphorePermit)> {
        let now = self.context.clock.now();
        let room = permits.available_permits().min(TAKEN_MAX);
        let opening = self.gate.open(now);
        let most = match opening {
            Opening::Wide => room,
            Opening::One => room.min(1),
            Opening::Closed => 0,
        };
        let loaded = self.load(most).await;
        if opening == Opening::One && loaded.is_empty() {
            self.gate.unprobe(now);
        }
        let mut ready = Vec::with_capacity(loaded.len());
        for loaded in loaded {
            // Only this worker takes permits, so as many are free as were counted.
            if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
                ready.push((loaded, permit));
            }
        }
        ready
    }

    async fn load(&self, most: usize) -> Vec<Loaded> {
        if most == 0 {
            return Vec::new();
        }
        match self.try_load(most).await {
            Ok(loaded) => loaded,
            Err(error) => {
                tracing::warn!(target = %self.target.name, %error, "the queue cannot be read; asked again");
                let again = self.context.clock.now() + crate::clock::millis(STORE_PAUSE);
                self.lane.expect_due(again);
                Vec::new()
            }
        }
    }

    async fn try_load(&self, most: usize) -> Result<Vec<Loaded>, store::Error> {
        let held = self.lane.take(most).await?;
        let seqs = held.iter().map(|held| held.pending().seq).collect();
        let mut events = self.context.store.events(seqs).await?;
        let mut loaded = Vec::with_capacity(held.len());
        for held in held {
            let seq = held.pending().seq;
            let found = events.iter().position(|event| event.seq == seq);
            loaded.push(Loaded {
                held,
                stored: found.map(|at| events.swap_remove(at)),
            });
        }
        Ok(loaded)
    }

    async fn deliver(&self, loaded: Loaded, permit: OwnedSemaphorePermit) {
        let Loaded { held, stored } = loaded;
        let settled = match stored {
            Some(stored) => self.attempt(held.pending(), &stored).await,
            None => Settled::lost(self.context.clock.now()),
        };
        self.apply(&settled);
        let mut held = held;
        while let Err((unsettled, error)) = held
            .settle(settled.end.clone(), settled.attempt.clone())
            .await
        {
            tracing::warn!(target = %self.target.name, %error, "an outcome cannot be recorded; tried again");
            if matches!(error, store::Error::Closed) {
                break;
            }
            let again = self.context.clock.now() + crate::clock::millis(STORE_PAUSE);
            self.context.clock.sleep_until(again).await;
            held = unsettled;
        }
        drop(permit);
        self.lane.ring();
    }

    /// Sends one event and decides what its outcome means.
    async fn attempt(&self, pending: store::Pending, stored: &StoredEvent) -> Settled {
        let context = &self.context;
        let started = context.clock.now();
        let since = if pending.since > 0 {
            pending.since
        } else {
            stored.accepted_at
        };
        let history = History {
            failures: pending.failures,
            throttles: self.gate.throttles(),
            first_at: since,
            now: started,
            expires_at: expiry(&stored.event),
        };
        if history.expires_at.is_some_and(|expires| expires <= started) {
            return Settled::dead(Reason::Expired, "its expirytime has passed", started);
        }
        let parent = stored_context(stored);
        let number = pending.failures + 1;
        let span = trace::process_span(
            &trace::Attempt {
                bus: &stored.bus,
                target: self.target.name.as_str(),
                id: stored.event.id(),
                number,
                body_bytes: Some(stored.data_bytes),
            },
            parent.as_ref(),
            None,
        );
        let outcome = self
            .send(stored, number, parent.as_ref())
            .instrument(span.clone())
            .await;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err((reason, detail)) => {
                trace::record_outcome(&span, "dead-lettered", Some(reason.name()));
                return Settled::dead(reason, &detail, context.clock.now());
            }
        };
        let now = context.clock.now();
        let decision = retry::decide(
            &outcome,
            History { now, ..history },
            &self.target.retry,
            rand::random(),
        );
        let settled = Settled::of(outcome, decision, pending.failures, (started, now, since));
        trace::record_outcome(&span, settled.word(), settled.reason());
        settled
    }

    async fn send(
        &self,
        stored: &StoredEvent,
        attempt: u32,
        parent: Option<&TraceContext>,
    ) -> Result<Outcome, (Reason, String)> {
        let context = &self.context;
        let catalog = context.live.current();
        let target = (self.target.name.as_str(), self.target.payload);
        let now = context.clock.now();
        let event = match context.render.render(&catalog, stored, target, now).await {
            Ok(event) => event,
            Err(render::Error::Never { reason, detail }) => return Err((reason, detail)),
            Err(error @ render::Error::Later(_)) => {
                return Ok(Outcome::failed(Cause::Protocol, &error.to_string()));
            }
        };
        let delivery_id = format!("{}-{}", stored.seq, self.target.name);
        let request = Request {
            event: &event,
            delivery_id: &delivery_id,
            attempt,
            context: parent,
        };
        Ok(self.target.send(&context.senders, request).await)
    }

    /// What an outcome means for the target and for the metrics.
    fn apply(&self, settled: &Settled) {
        let metrics = &self.context.metrics;
        let name = self.target.name.as_str();
        let now = self.context.clock.now();
        let elapsed = |from: Millis| {
            Duration::from_millis(u64::try_from(now.saturating_sub(from)).unwrap_or(0))
        };
        metrics.attempted(name, elapsed(settled.started));
        match &settled.end {
            End::Delivered => {
                metrics.delivered(name, 1);
                metrics.delivery_lag(name, elapsed(settled.since));
                self.gate.succeeded();
            }
            End::Retry { .. } => metrics.retried(name, settled.reason().unwrap_or("status")),
            End::DeadLetter { reason, detail, .. } => {
                metrics.dead_lettered(name, reason);
                tracing::warn!(target = name, reason, detail, "dead-lettered");
            }
        }
        match settled.effect {
            Effect::Keep if settled.failed && self.gate.failed(now) => {
                tracing::warn!(
                    target = name,
                    "the target keeps failing; it is held and probed"
                );
            }
            Effect::Keep => {}
            Effect::HoldUntil(until) => self.gate.hold_until(until),
            Effect::OpenBreaker => {
                if self.gate.trip(now) {
                    tracing::warn!(
                        target = name,
                        "the target refuses our credentials; it is held and probed"
                    );
                }
            }
            Effect::Disable => self.disable(),
        }
    }

    fn disable(&self) {
        let lane = Arc::clone(&self.lane);
        let name = self.target.name.clone();
        tokio::spawn(async move {
            let why = "endpoint_gone".to_owned();
            match lane.switch(lane.switches().0, Some(why)).await {
                Ok(()) => {
                    tracing::warn!(target = %name, "the endpoint is gone; the target is disabled and its queue keeps accepting")
                }
                Err(error) => {
                    tracing::warn!(target = %name, %error, "a target whose endpoint is gone could not be disabled")
                }
            }
        });
    }
}

/// A delivery in hand with its event.
struct Loaded {
    held: Held,
    stored: Option<StoredEvent>,
}

/// What became of a delivery, ready to be recorded.
struct Settled {
    end: End,
    attempt: Option<Attempt>,
    effect: Effect,
    /// The target failed, as its breaker sees it.
    failed: bool,
    cause: Option<String>,
    started: Millis,
    since: Millis,
}

impl Settled {
    fn of(
        outcome: Outcome,
        decision: retry::Decision,
        failures: u32,
        (started, now, since): (Millis, Millis, Millis),
    ) -> Self {
        let failed = matches!(outcome, Outcome::Retry { .. });
        let cause = match &outcome {
            Outcome::Retry { cause, .. } => cause.name().to_owned(),
            _ => outcome.class().name().to_owned(),
        };
        let delivered = matches!(decision.delivery, Next::Delivered);
        let attempt = (!delivered).then(|| Attempt {
            at: started,
            duration_ms: u64::try_from(now - started).unwrap_or(0),
            outcome: cause.clone(),
            status: outcome.status(),
            excerpt: Some(outcome.excerpt().to_owned()).filter(|text| !text.is_empty()),
        });
        let end = match decision.delivery {
            Next::Delivered => End::Delivered,
            Next::RetryAt { at, charged } => End::Retry {
                due: at,
                failures: failures + u32::from(charged),
            },
            Next::DeadLetter(reason) => End::DeadLetter {
                reason: reason.name().to_owned(),
                detail: Some(outcome.excerpt().to_owned()).filter(|text| !text.is_empty()),
                at: now,
                charged: !matches!(outcome, Outcome::Throttled { .. }),
            },
        };
        Self {
            end,
            attempt,
            effect: decision.target,
            failed,
            cause: Some(cause),
            started,
            since,
        }
    }

    fn dead(reason: Reason, detail: &str, now: Millis) -> Self {
        Self {
            end: End::DeadLetter {
                reason: reason.name().to_owned(),
                detail: Some(detail.to_owned()),
                at: now,
                charged: false,
            },
            attempt: None,
            effect: Effect::Keep,
            failed: false,
            cause: None,
            started: now,
            since: now,
        }
    }

    fn lost(now: Millis) -> Self {
        Self::dead(Reason::Expired, "its event is no longer in the log", now)
    }

    fn word(&self) -> &'static str {
        match self.end {
            End::Delivered => "delivered",
            End::Retry { .. } => "retry",
            End::DeadLetter { .. } => "dead-lettered",
        }
    }

    fn reason(&self) -> Option<&str> {
        match &self.end {
            End::Delivered => None,
            End::Retry { .. } => self.cause.as_deref(),
            End::DeadLetter { reason, .. } => Some(reason),
        }
    }
}

/// The trace context stored with an event.
pub(super) fn stored_context(stored: &StoredEvent) -> Option<TraceContext> {
    serde_json::from_str(stored.trace.as_deref()?).ok()
}

/// The event's own `expirytime` (CloudEvents expirytime extension).
fn expiry(event: &Event) -> Option<Millis> {
    parse_rfc3339(&event.attribute("expirytime")?.text())
}
