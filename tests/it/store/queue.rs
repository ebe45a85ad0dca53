//! Lanes: ready and delayed deliveries, settlement, counts.

use std::sync::Arc;

use dak::store::{Accept, DeadFilter, End, LaneId, LeaseEnd, Origin, Pending, Seq, Store};

use super::{
    Database, NOW, accept, all_dead, counts, death, delayed, filled, lease, ready, secret,
    settlement, store_one,
};

pub(super) async fn ready_deliveries_come_in_order_above_a_position(database: &dyn Database) {
    let store = database.open().await;
    let a = filled(&*store, "a", 5).await;
    let b = filled(&*store, "b", 2).await;
    assert_eq!(ready(&*store, a).await, [1, 2, 3, 4, 5]);
    assert_eq!(ready(&*store, b).await, [6, 7]);
    let rows = store.ready(a, 2, 2).await.expect("read");
    assert_eq!(rows, [Pending::fresh(3), Pending::fresh(4)]);
    assert_eq!(store.ready(a, 5, 2).await.expect("read"), []);
    assert_eq!(
        store.ready(77, 0, 2).await.expect("read"),
        [],
        "there is no such lane"
    );
}

pub(super) async fn a_settled_delivery_is_gone_and_a_retry_is_due_at_its_time(
    database: &dyn Database,
) {
    let store = database.open().await;
    let lane = filled(&*store, "a", 3).await;
    let delivered = settlement(lane, Pending::fresh(2), End::Delivered);
    let later = End::Retry {
        due: NOW + 50,
        failures: 1,
    };
    let sooner = End::Retry {
        due: NOW + 20,
        failures: 4,
    };
    let retried = [
        settlement(lane, Pending::fresh(1), later),
        settlement(lane, Pending::fresh(3), sooner),
        delivered.clone(),
    ];
    store.settle(retried.to_vec()).await.expect("settled");
    store
        .settle(vec![delivered])
        .await
        .expect("to settle twice is no fault");
    assert_eq!(ready(&*store, lane).await, [0; 0]);
    assert_eq!(store.counts(lane), counts(0, 2, 0, 0));

    let due = store.due(lane, NOW + 19, 10).await.expect("read");
    assert_eq!((due.rows.len(), due.next), (0, Some(NOW + 20)));
    let due = store.due(lane, NOW + 20, 10).await.expect("read");
    let third = Pending {
        origin: Origin::Delayed { due: NOW + 20 },
        failures: 4,
        ..Pending::fresh(3)
    };
    assert_eq!((&due.rows[..], due.next), (&[third][..], Some(NOW + 50)));
    let due = store.due(lane, NOW + 50, 10).await.expect("read");
    let seqs: Vec<Seq> = due.rows.iter().map(|row| row.seq).collect();
    assert_eq!((seqs, due.next), (vec![3, 1], None));
    let due = store.due(lane, NOW + 50, 1).await.expect("read");
    assert_eq!(
        (&due.rows[..], due.next),
        (&[third][..], Some(NOW + 50)),
        "no more than asked for"
    );

    store
        .settle(vec![settlement(lane, third, End::Delivered)])
        .await
        .expect("settled");
    assert_eq!(store.counts(lane), counts(0, 1, 0, 0));
    assert_eq!(delayed(&*store, lane).await.len(), 1);
}

pub(super) async fn a_lane_keeps_its_switches_and_goes_with_everything_in_it(
    database: &dyn Database,
) {
    let store = database.open().await;
    let lane = filled(&*store, "a", 4).await;
    let other = filled(&*store, "b", 1).await;
    let state = store.lane("a".into()).await.expect("a lane");
    assert_eq!(
        (state.lane, state.paused, state.disabled),
        (lane, false, None)
    );
    store
        .switch_lane(lane, true, Some("endpoint_gone".into()))
        .await
        .expect("switched");
    store.close().await;
    let store = database.open().await;
    let state = store.lane("a".into()).await.expect("a lane");
    assert_eq!(
        (state.lane, state.paused, state.disabled.as_deref()),
        (lane, true, Some("endpoint_gone"))
    );

    store
        .lease(lane, vec![lease(Pending::fresh(1), 7, NOW)])
        .await
        .expect("leased");
    let retry = End::Retry {
        due: NOW,
        failures: 1,
    };
    let died = settlement(lane, Pending::fresh(3), death("expired", NOW));
    let settled = vec![settlement(lane, Pending::fresh(2), retry), died];
    store.settle(settled).await.expect("settled");
    assert_eq!(
        store.drop_lane(lane).await.expect("dropped"),
        3,
        "ready, delayed and leased"
    );
    assert!(
        store
            .dead_letters(all_dead())
            .await
            .expect("read")
            .is_empty()
    );
    let state = store.lane("a".into()).await.expect("a new lane");
    assert_eq!((state.paused, state.disabled), (false, None));
    assert_eq!(
        (store.counts(state.lane), ready(&*store, state.lane).await),
        (counts(0, 0, 0, 0), vec![])
    );
    assert_eq!(
        ready(&*store, other).await,
        [5],
        "another lane stays as it was"
    );
}

pub(super) async fn the_oldest_waiting_delivery_is_known(database: &dyn Database) {
    let store = database.open().await;
    let lane = store.lane("a".into()).await.expect("a lane").lane;
    assert_eq!(store.oldest(lane).await.expect("read"), None);
    for n in 1..=4 {
        let one = Accept {
            accepted_at: NOW + n,
            ..accept(&n.to_string(), "x", &["a"])
        };
        store_one(&*store, one).await;
    }
    assert_eq!(store.oldest(lane).await.expect("read"), Some(NOW + 1));
    store
        .lease(lane, vec![lease(Pending::fresh(1), 7, NOW)])
        .await
        .expect("leased");
    assert_eq!(
        store.oldest(lane).await.expect("read"),
        Some(NOW + 1),
        "what is leased waits too"
    );
    let named = vec![(1, secret(7))];
    store
        .end_leases(lane, named, LeaseEnd::Acknowledge, 0)
        .await
        .expect("ended");
    let retry = End::Retry {
        due: NOW + 999,
        failures: 1,
    };
    store
        .settle(vec![settlement(lane, Pending::fresh(2), retry)])
        .await
        .expect("settled");
    assert_eq!(
        store.oldest(lane).await.expect("read"),
        Some(NOW + 2),
        "what is delayed waits too"
    );
}

/// The counts by the rows themselves, which a store counts when it is opened.
async fn recounted(database: &dyn Database, store: Arc<dyn Store>, lane: LaneId) -> Arc<dyn Store> {
    let kept = store.counts(lane);
    let rows = (
        ready(&*store, lane).await.len(),
        delayed(&*store, lane).await.len(),
    );
    let filter = DeadFilter {
        target: Some("a".into()),
        ..all_dead()
    };
    let dead = store.dead_letters(filter).await.expect("read").len();
    store.close().await;
    let store = database.open().await;
    assert_eq!(store.counts(lane), kept);
    let counted = (kept.ready, kept.delayed, kept.dead);
    assert_eq!(counted, (rows.0 as i64, rows.1 as i64, dead as i64));
    store
}

pub(super) async fn counts_equal_rows_after_every_step(database: &dyn Database) {
    let mut store = database.open().await;
    let lane = filled(&*store, "a", 8).await;
    assert_eq!(store.counts(lane), counts(8, 0, 0, 0));
    for step in 0..10 {
        let pending = Pending::fresh;
        match step {
            0 => store
                .settle(vec![settlement(lane, pending(1), End::Delivered)])
                .await
                .expect("settled"),
            1 => {
                let retry = End::Retry {
                    due: NOW,
                    failures: 1,
                };
                store
                    .settle(vec![settlement(lane, pending(2), retry)])
                    .await
                    .expect("settled");
            }
            2 => {
                store
                    .settle(vec![settlement(lane, pending(3), death("expired", NOW))])
                    .await
                    .expect("settled");
            }
            3 => {
                let leases = (4..=8).map(|n| lease(pending(n), 7, NOW + n)).collect();
                store.lease(lane, leases).await.expect("leased");
            }
            4 => {
                let named = vec![(8, secret(7)), (7, secret(1))];
                store
                    .end_leases(lane, named, LeaseEnd::Acknowledge, NOW)
                    .await
                    .expect("ended");
            }
            5 => {
                let named = vec![(7, secret(7))];
                let release = LeaseEnd::Release { due: NOW };
                store
                    .end_leases(lane, named, release, NOW)
                    .await
                    .expect("ended");
            }
            6 => {
                let named = vec![(6, secret(7))];
                let reject = LeaseEnd::Reject {
                    reason: "no".into(),
                    detail: None,
                };
                store
                    .end_leases(lane, named, reject, NOW)
                    .await
                    .expect("ended");
            }
            7 => drop(
                store
                    .expire_leases(lane, NOW + 4, 1)
                    .await
                    .expect("expired"),
            ),
            8 => drop(
                store
                    .redrive(
                        DeadFilter {
                            limit: 2,
                            ..all_dead()
                        },
                        NOW,
                    )
                    .await
                    .expect("redriven"),
            ),
            _ => drop(store.purge(all_dead()).await.expect("purged")),
        }
        store = recounted(database, store, lane).await;
    }
    // 5 is still leased; 2, 7 and two that were redriven are delayed.
    assert_eq!(store.counts(lane), counts(0, 4, 1, 0));
}
