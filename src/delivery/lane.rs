//! One lane as its owner holds it: a window of deliveries in memory over the rows in the store.
//!
//! Ready rows are read once, in order, from a cursor that only moves forward; what was read is in
//! this window or in somebody's hands until it is settled. Delayed rows stay where they are until
//! they are settled, so those that were read are remembered.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use crate::clock::{Clock, Millis};
use crate::store::{
    self, Counts, End, Expired, LaneId, LaneState, Origin, Pending, Seq, Settlement, Store,
};

/// Deliveries read ahead into memory for each lane.
const WINDOW: u32 = 512;

/// The queue of one target, owned by this process.
pub struct Lane {
    pub id: LaneId,
    store: Arc<dyn Store>,
    clock: Clock,
    state: Mutex<State>,
    /// Rings when something may have become due.
    ring: Notify,
    /// Rings when the time of the next due delivery or lease expiry may have changed.
    retimed: Notify,
    /// Lets one reader fill the window at a time.
    turn: Semaphore,
}

#[derive(Default)]
struct State {
    window: VecDeque<Pending>,
    cursor: Seq,
    /// Delayed rows that are in the window or in somebody's hands.
    taken: HashSet<Seq>,
    /// While the window is being filled: delayed rows settled meanwhile, which the read under way
    /// may still show.
    settled_meanwhile: Option<HashSet<Seq>>,
    /// Ready rows may lie beyond the cursor.
    more: bool,
    /// When the next delayed row is due, as far as is known.
    next_due: Option<Millis>,
    /// When the next lease expires, as far as is known.
    next_expiry: Option<Millis>,
    paused: bool,
    disabled: Option<String>,
}

/// A delivery in somebody's hands. Dropped unsettled, it goes back into the window.
pub(super) struct Held {
    lane: Arc<Lane>,
    pending: Option<Pending>,
}

impl Lane {
    /// Takes a lane over; everything in it is due to be read.
    #[must_use]
    pub fn new(state: LaneState, store: Arc<dyn Store>, clock: Clock) -> Self {
        let now = clock.now();
        Self {
            id: state.lane,
            store,
            clock,
            state: Mutex::new(State {
                more: true,
                next_due: Some(now),
                next_expiry: Some(now),
                paused: state.paused,
                disabled: state.disabled,
                ..State::default()
            }),
            ring: Notify::new(),
            retimed: Notify::new(),
            turn: Semaphore::new(1),
        }
    }

    /// Says that ready rows were committed.
    pub fn wake(&self) {
        self.state.lock().more = true;
        self.ring.notify_one();
    }

    /// Says that there may be room again to hand out what is waiting.
    pub(super) fn ring(&self) {
        self.ring.notify_one();
    }

    /// Says that a row will be due at `due`.
    pub fn expect_due(&self, due: Millis) {
        earliest(&mut self.state.lock().next_due, due);
        self.ring.notify_one();
        self.retimed.notify_one();
    }

    /// Says that a lease will expire at `until`.
    pub fn expect_expiry(&self, until: Millis) {
        earliest(&mut self.state.lock().next_expiry, until);
        self.retimed.notify_one();
    }

    /// Whether deliveries may be handed out at all.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let state = self.state.lock();
        !state.paused && state.disabled.is_none()
    }

    /// Whether a person paused it, and why dak disabled it.
    #[must_use]
    pub fn switches(&self) -> (bool, Option<String>) {
        let state = self.state.lock();
        (state.paused, state.disabled.clone())
    }

    /// Pauses, resumes, disables or enables the lane, durably.
    ///
    /// # Errors
    /// When the store fails; then nothing has changed.
    pub async fn switch(&self, paused: bool, disabled: Option<String>) -> Result<(), store::Error> {
        self.store
            .switch_lane(self.id, paused, disabled.clone())
            .await?;
        {
            let mut state = self.state.lock();
            state.paused = paused;
            state.disabled = disabled;
        }
        self.ring.notify_one();
        Ok(())
    }

    /// How many deliveries stand where.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.store.counts(self.id)
    }

    /// Takes up to `most` deliveries that are due; none when none is.
    pub(super) async fn take(self: &Arc<Self>, most: usize) -> Result<Vec<Held>, store::Error> {
        let mut taken = self.pop(most);
        if !taken.is_empty() || !self.is_stale() || !self.is_open() {
            return Ok(taken);
        }
        let Ok(_turn) = self.turn.acquire().await else {
            return Ok(taken);
        };
        if self.is_stale() {
            self.fill().await?;
        }
        taken.extend(self.pop(most));
        Ok(taken)
    }

    fn pop(self: &Arc<Self>, most: usize) -> Vec<Held> {
        let mut state = self.state.lock();
        if state.paused || state.disabled.is_some() {
            return Vec::new();
        }
        let count = most.min(state.window.len());
        let held = state.window.drain(..count).map(|pending| Held {
            lane: Arc::clone(self),
            pending: Some(pending),
        });
        let held = held.collect();
        let more = state.more || !state.window.is_empty();
        drop(state);
        if more {
            // Another one may be waiting for what is left.
            self.ring.notify_one();
        }
        held
    }

    fn is_stale(&self) -> bool {
        let state = self.state.lock();
        let now = self.clock.now();
        state.window.is_empty() && (state.more || state.next_due.is_some_and(|due| due <= now))
    }

    async fn fill(&self) -> Result<(), store::Error> {
        let now = self.clock.now();
        let (due_now, taken, more, cursor) = {
            let mut state = self.state.lock();
            let due_now = state.next_due.is_some_and(|due| due <= now);
            if due_now {
                state.next_due = None;
                state.settled_meanwhile = Some(HashSet::new());
            }
            let more = std::mem::take(&mut state.more);
            (due_now, state.taken.len(), more, state.cursor)
        };
        let filled = self.fill_from(now, (due_now, taken), (more, cursor)).await;
        self.state.lock().settled_meanwhile = None;
        if filled.is_err() {
            let mut state = self.state.lock();
            state.more |= more;
            if due_now {
                earliest(&mut state.next_due, now);
            }
        }
        filled
    }

    async fn fill_from(
        &self,
        now: Millis,
        (due_now, taken): (bool, usize),
        (more, cursor): (bool, Seq),
    ) -> Result<(), store::Error> {
        if due_now {
            let limit = WINDOW + u32::try_from(taken).unwrap_or(u32::MAX / 2);
            let due = self.store.due(self.id, now, limit).await?;
            let is_full = due.rows.len() as u64 >= u64::from(limit);
            let mut state = self.state.lock();
            let settled = state.settled_meanwhile.take().unwrap_or_default();
            for pending in due.rows {
                if !settled.contains(&pending.seq) && state.taken.insert(pending.seq) {
                    state.window.push_back(pending);
                }
            }
            if let Some(next) = due.next.or(is_full.then_some(now)) {
                earliest(&mut state.next_due, next);
            }
        }
        if more {
            let ready = self.store.ready(self.id, cursor, WINDOW).await?;
            let mut state = self.state.lock();
            state.more |= ready.len() as u64 >= u64::from(WINDOW);
            if let Some(last) = ready.last() {
                state.cursor = last.seq;
            }
            state.window.extend(ready);
        }
        self.retimed.notify_one();
        Ok(())
    }

    /// Returns when something may be due: a commit, a due time reached, a switch.
    pub(super) async fn due(&self) {
        let next = {
            let state = self.state.lock();
            let is_open = !state.paused && state.disabled.is_none();
            state.next_due.filter(|_| is_open)
        };
        tokio::select! {
            () = self.ring.notified() => {}
            () = self.sleep_until(next) => {}
        }
    }

    /// Returns when a due time or a lease expiry is reached, or may have moved.
    pub(super) async fn timer(&self) {
        let next = {
            let now = self.clock.now();
            let state = self.state.lock();
            // What is due already has been rung for; only its consumer is missing.
            let future_due = state.next_due.filter(|due| *due > now);
            match (future_due, state.next_expiry) {
                (Some(due), Some(expiry)) => Some(due.min(expiry)),
                (due, expiry) => due.or(expiry),
            }
        };
        tokio::select! {
            () = self.retimed.notified() => {}
            () = self.sleep_until(next) => {}
        }
    }

    async fn sleep_until(&self, at: Option<Millis>) {
        match at {
            Some(at) => self.clock.sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Returns expired leases to the queue; says what became of how many.
    pub(super) async fn expire(&self, failures_max: u32) -> Result<Expired, store::Error> {
        let now = self.clock.now();
        let is_time = self
            .state
            .lock()
            .next_expiry
            .is_some_and(|expiry| expiry <= now);
        if !is_time {
            return Ok(Expired::default());
        }
        let expired = self.store.expire_leases(self.id, now, failures_max).await?;
        {
            let mut state = self.state.lock();
            state.next_expiry = expired.next;
            if expired.returned > 0 {
                earliest(&mut state.next_due, now);
            }
        }
        if expired.returned > 0 {
            self.ring.notify_one();
        }
        Ok(expired)
    }

    /// Rings once more when a due time has been reached and nobody took it yet.
    pub(super) fn ring_if_due(&self) {
        let now = self.clock.now();
        let is_due = self.state.lock().next_due.is_some_and(|due| due <= now);
        if is_due {
            self.ring.notify_one();
        }
    }

    fn put_back(&self, pending: Pending) {
        self.state.lock().window.push_front(pending);
        self.ring.notify_one();
    }

    fn let_go(&self, pending: Pending) {
        if matches!(pending.origin, Origin::Delayed { .. }) {
            let mut state = self.state.lock();
            state.taken.remove(&pending.seq);
            if let Some(settled) = &mut state.settled_meanwhile {
                settled.insert(pending.seq);
            }
        }
    }
}

impl Held {
    /// The delivery in hand.
    pub fn pending(&self) -> Pending {
        self.pending
            .expect("a delivery is in hand until it is settled")
    }

    /// Settles it durably. Gives it back when the store fails.
    pub async fn settle(
        mut self,
        end: End,
        attempt: Option<store::Attempt>,
    ) -> Result<(), (Self, store::Error)> {
        let pending = self.pending();
        let due = match &end {
            End::Retry { due, .. } => Some(*due),
            End::Delivered | End::DeadLetter { .. } => None,
        };
        let settlement = Settlement {
            lane: self.lane.id,
            pending,
            end,
            attempt,
        };
        if let Err(error) = self.lane.store.settle(vec![settlement]).await {
            return Err((self, error));
        }
        self.pending = None;
        self.lane.let_go(pending);
        if let Some(due) = due {
            self.lane.expect_due(due);
        }
        Ok(())
    }

    /// Gives it out of hand because its row is a lease now.
    pub fn leased(mut self) {
        if let Some(pending) = self.pending.take() {
            self.lane.let_go(pending);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.lane.put_back(pending);
        }
    }
}

fn earliest(known: &mut Option<Millis>, other: Millis) {
    *known = Some(known.map_or(other, |known| known.min(other)));
}
