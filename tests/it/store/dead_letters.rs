//! Dead letters: what they keep, how they are found, redriven and purged.

use dak::store::{DeadFilter, End, LaneId, Origin, Pending, Seq, Settlement, Store};

use super::{Database, NOW, all_dead, counts, death, delayed, failed, filled, settlement};

pub(super) async fn a_dead_letter_keeps_its_attempts_and_a_delivery_forgets_them(
    database: &dyn Database,
) {
    let store = database.open().await;
    let lane = filled(&*store, "a", 2).await;
    for seq in [1, 2] {
        let retry = Settlement {
            attempt: Some(failed(NOW)),
            ..settlement(
                lane,
                Pending::fresh(seq),
                End::Retry {
                    due: NOW,
                    failures: 1,
                },
            )
        };
        store.settle(vec![retry]).await.expect("settled");
    }
    let [first, second] = delayed(&*store, lane).await[..] else {
        panic!("two rows")
    };
    let dead = Settlement {
        attempt: Some(failed(NOW + 9)),
        ..settlement(
            lane,
            first,
            End::DeadLetter {
                reason: "exhausted".into(),
                detail: Some("an answer".into()),
                at: NOW + 10,
                charged: true,
            },
        )
    };
    let delivered = settlement(lane, second, End::Delivered);
    store.settle(vec![dead, delivered]).await.expect("settled");
    assert_eq!(store.counts(lane), counts(0, 0, 0, 1));
    let dead = store
        .dead_letters(all_dead())
        .await
        .expect("read")
        .remove(0);
    assert_eq!((&*dead.target, dead.seq, dead.died_at), ("a", 1, NOW + 10));
    assert_eq!(
        (&*dead.reason, dead.detail.as_deref()),
        ("exhausted", Some("an answer"))
    );
    assert_eq!(dead.attempts, [failed(NOW), failed(NOW + 9)]);
    assert_eq!((dead.failures, dead.receives), (2, 0));

    // Redriven and dead again, it shows the attempts of its new life alone.
    store.redrive(all_dead(), NOW + 20).await.expect("redriven");
    let again = delayed(&*store, lane).await[0];
    assert_eq!(
        (again.failures, again.receives, again.since),
        (0, 0, NOW + 20)
    );
    store
        .settle(vec![settlement(lane, again, death("expired", NOW + 30))])
        .await
        .expect("settled");
    let dead = store
        .dead_letters(all_dead())
        .await
        .expect("read")
        .remove(0);
    assert_eq!((&*dead.reason, &dead.attempts[..]), ("expired", &[][..]));
}

/// Three dead letters of `a`, of which the second expired, and one of `b`.
async fn buried(store: &dyn Store) -> (LaneId, LaneId) {
    let (a, b) = (filled(store, "a", 3).await, filled(store, "b", 1).await);
    for (lane, seq, reason) in [
        (a, 1, "exhausted"),
        (a, 2, "expired"),
        (a, 3, "exhausted"),
        (b, 4, "exhausted"),
    ] {
        store
            .settle(vec![settlement(
                lane,
                Pending::fresh(seq),
                death(reason, NOW),
            )])
            .await
            .expect("settled");
    }
    (a, b)
}

pub(super) async fn dead_letters_are_found_redriven_and_purged_by_filter(database: &dyn Database) {
    let store = database.open().await;
    let (a, b) = buried(&*store).await;
    let found = async |filter: DeadFilter| -> Vec<Seq> {
        let dead = store.dead_letters(filter).await.expect("read");
        dead.iter().map(|dead| dead.seq).collect()
    };
    let of = |target: &str| DeadFilter {
        target: Some(target.into()),
        ..all_dead()
    };
    let for_reason = |reason: &str| DeadFilter {
        reason: Some(reason.into()),
        ..all_dead()
    };
    let with_ids = |ids: &[i64]| DeadFilter {
        ids: Some(ids.to_vec()),
        ..all_dead()
    };
    assert_eq!(found(all_dead()).await, [1, 2, 3, 4]);
    assert_eq!(found(of("a")).await, [1, 2, 3]);
    assert_eq!(found(for_reason("exhausted")).await, [1, 3, 4]);
    assert_eq!(
        found(DeadFilter {
            target: Some("b".into()),
            ..for_reason("expired")
        })
        .await,
        [0; 0]
    );
    assert_eq!(found(with_ids(&[4, 2, 99])).await, [2, 4]);
    assert_eq!(found(with_ids(&[])).await, [0; 0]);
    assert_eq!(
        found(DeadFilter {
            after: 1,
            limit: 2,
            ..all_dead()
        })
        .await,
        [2, 3]
    );

    let moved = store
        .redrive(for_reason("expired"), NOW + 9)
        .await
        .expect("redriven");
    assert_eq!(moved, [("a".to_owned(), 1)]);
    assert_eq!(store.counts(a), counts(0, 1, 0, 2));
    let back = delayed(&*store, a).await[0];
    assert_eq!(
        (back.origin, back.since),
        (Origin::Delayed { due: NOW + 9 }, NOW + 9)
    );
    assert_eq!(
        store
            .purge(DeadFilter {
                limit: 1,
                ..all_dead()
            })
            .await
            .expect("purged"),
        1
    );
    assert_eq!(found(all_dead()).await, [3, 4]);
    let mut moved = store.redrive(all_dead(), NOW + 9).await.expect("redriven");
    moved.sort();
    assert_eq!(moved, [("a".to_owned(), 1), ("b".to_owned(), 1)]);
    assert_eq!(
        store.redrive(all_dead(), NOW + 9).await.expect("redriven"),
        []
    );
    assert_eq!(store.purge(all_dead()).await.expect("purged"), 0);
    assert_eq!(
        (store.counts(a), store.counts(b)),
        (counts(0, 2, 0, 0), counts(0, 1, 0, 0))
    );
}
