//! What every store must do, asked of each one there is.

mod commits;
mod dead_letters;
mod documents;
mod leases;
mod log;
mod queue;
mod unmatched;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use dak::clock::Millis;
use dak::event::{Attribute, Data, Event};
use dak::store::sqlite::{Options, Sqlite};
use dak::store::{
    Accept, Accepted, Attempt, Counts, DeadFilter, Digest, End, Facts, LaneId, Lease, Members,
    Pending, Secret, Seq, Settlement, Store,
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// A database that stores are opened on, one after the other.
#[async_trait]
trait Database: Send + Sync {
    async fn open(&self) -> Arc<dyn Store>;
    /// Commits since the first opening that held events.
    fn commits(&self) -> u64;
}

struct OnSqlite {
    folder: TempDir,
    commits: Arc<AtomicU64>,
}

#[async_trait]
impl Database for OnSqlite {
    async fn open(&self) -> Arc<dyn Store> {
        let commits = Arc::clone(&self.commits);
        let options = Options {
            on_commit: Arc::new(move |commit| {
                commits.fetch_add(u64::from(commit.events > 0), Ordering::SeqCst);
            }),
            ..Options::default()
        };
        let path = self.folder.path().join("dak.db");
        Arc::new(Sqlite::open(&path, options).await.expect("a store"))
    }

    fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }
}

fn on_sqlite() -> OnSqlite {
    OnSqlite {
        folder: tempfile::tempdir().expect("a folder"),
        commits: Arc::default(),
    }
}

/// The suite, once for each kind of database.
macro_rules! conformance {
    ($($module:ident: $database:ident;)*) => {$(
        mod $module {
            each! { super::$database;
                log::an_event_sent_twice_is_stored_once
                log::an_atomic_batch_stands_or_falls_whole
                log::members_of_a_loose_batch_stand_for_themselves
                log::events_come_back_as_they_were
                log::the_log_is_listed_newest_first_by_bus
                queue::ready_deliveries_come_in_order_above_a_position
                queue::a_settled_delivery_is_gone_and_a_retry_is_due_at_its_time
                dead_letters::a_dead_letter_keeps_its_attempts_and_a_delivery_forgets_them
                leases::a_lease_is_ended_by_its_token_alone
                leases::released_renewed_and_rejected_leases_go_where_they_should
                leases::what_is_gone_cannot_be_leased
                leases::expired_leases_return_until_they_have_failed_too_often
                dead_letters::dead_letters_are_found_redriven_and_purged_by_filter
                queue::a_lane_keeps_its_switches_and_goes_with_everything_in_it
                queue::the_oldest_waiting_delivery_is_known
                documents::documents_change_all_at_once
                documents::keys_have_one_name_each
                documents::the_first_value_under_a_name_stays
                log::blobs_in_use_are_told_from_others
                unmatched::unmatched_events_are_grouped
                unmatched::groups_of_unmatched_events_are_bounded
                queue::counts_equal_rows_after_every_step
                commits::many_events_share_a_commit
                commits::a_closed_store_has_committed_what_it_took_and_takes_no_more
            }
        }
    )*};
}

macro_rules! each {
    ($database:path; $($part:ident::$name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            super::$part::$name(&$database()).await;
        }
    )*};
}

conformance! {
    sqlite: on_sqlite;
}

const NOW: Millis = 1_700_000_000_000;

fn digest(text: &str) -> Digest {
    let sum: [u8; 32] = Sha256::digest(text).into();
    sum[..16].try_into().expect("half of it")
}

/// An event that goes to these targets by the rule `r`; no target means that no rule matched.
fn accept(id: &str, content: &str, targets: &[&str]) -> Accept {
    let attributes = [
        ("specversion", "1.0"),
        ("id", id),
        ("source", "/test"),
        ("type", "order"),
    ]
    .map(|(name, value)| Attribute::text(name, value));
    let rules = if targets.is_empty() {
        vec![]
    } else {
        vec!["r".to_owned()]
    };
    Accept {
        bus: "default".into(),
        event: Event::new(attributes.into(), Data::Binary(content.to_owned().into()))
            .expect("an event"),
        claim: None,
        data_kind: 3,
        identity: digest(id),
        content: digest(content),
        facts: Arc::new(Facts {
            rules,
            targets: targets.iter().map(|name| (*name).to_owned()).collect(),
            routes: targets.iter().map(|_| vec![0]).collect(),
            ..Facts::default()
        }),
        trace: None,
        accepted_at: NOW,
    }
}

async fn store_one(store: &dyn Store, event: Accept) -> Accepted {
    let mut accepted = store
        .accept(vec![event], Members::Each)
        .await
        .expect("accepted");
    assert_eq!(accepted.len(), 1);
    accepted.remove(0)
}

/// Accepts events 1 to `count` for a target and answers with its lane.
async fn filled(store: &dyn Store, target: &str, count: usize) -> LaneId {
    let batch = (1..=count)
        .map(|n| accept(&format!("{target}-{n}"), "x", &[target]))
        .collect();
    store.accept(batch, Members::Each).await.expect("accepted");
    store.lane(target.to_owned()).await.expect("a lane").lane
}

async fn ready(store: &dyn Store, lane: LaneId) -> Vec<Seq> {
    let rows = store.ready(lane, 0, 1_000).await.expect("read");
    rows.iter().map(|pending| pending.seq).collect()
}

/// Delayed deliveries, whenever they are due.
async fn delayed(store: &dyn Store, lane: LaneId) -> Vec<Pending> {
    store
        .due(lane, Millis::MAX, 1_000)
        .await
        .expect("read")
        .rows
}

fn settlement(lane: LaneId, pending: Pending, end: End) -> Settlement {
    Settlement {
        lane,
        pending,
        end,
        attempt: None,
    }
}

/// The end of a delivery that nobody tried.
fn death(reason: &str, at: Millis) -> End {
    End::DeadLetter {
        reason: reason.into(),
        detail: None,
        at,
        charged: false,
    }
}

fn failed(at: Millis) -> Attempt {
    Attempt {
        at,
        duration_ms: 5,
        outcome: "status".into(),
        status: Some(500),
        excerpt: Some("an answer".into()),
    }
}

fn lease(pending: Pending, secret: u8, until: Millis) -> Lease {
    Lease {
        pending,
        secret: [secret; 16],
        until,
    }
}

fn secret(of: u8) -> Secret {
    [of; 16]
}

fn counts(ready: i64, delayed: i64, leased: i64, dead: i64) -> Counts {
    Counts {
        ready,
        delayed,
        leased,
        dead,
    }
}

fn all_dead() -> DeadFilter {
    DeadFilter {
        limit: 1_000,
        ..DeadFilter::default()
    }
}
