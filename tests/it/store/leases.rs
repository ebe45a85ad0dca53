//! Leases of pull consumers.

use dak::clock::Millis;
use dak::store::{End, Expired, LaneId, LeaseEnd, Origin, Pending, Secret, Seq};

use super::{Database, NOW, all_dead, counts, delayed, filled, lease, ready, secret, settlement};

pub(super) async fn a_lease_is_ended_by_its_token_alone(database: &dyn Database) {
    let store = database.open().await;
    let lane = filled(&*store, "a", 3).await;
    let other = filled(&*store, "b", 1).await;
    let leases = (1..=3)
        .map(|n| lease(Pending::fresh(n), 7, NOW + 100))
        .collect();
    store.lease(lane, leases).await.expect("leased");
    assert_eq!(
        (store.counts(lane), ready(&*store, lane).await),
        (counts(0, 0, 3, 0), vec![])
    );
    let end = async |lane: LaneId, named: &[(Seq, Secret)], now: Millis| {
        store
            .end_leases(lane, named.to_vec(), LeaseEnd::Acknowledge, now)
            .await
            .expect("answered")
    };
    assert_eq!(
        end(lane, &[(1, secret(8)), (9, secret(7))], NOW).await,
        [false, false]
    );
    assert_eq!(
        end(other, &[(1, secret(7))], NOW).await,
        [false],
        "another queue"
    );
    assert_eq!(
        end(lane, &[(1, secret(7))], NOW + 100).await,
        [false],
        "it has run out"
    );
    let named = [(1, secret(7)), (2, secret(8)), (3, secret(7))];
    assert_eq!(end(lane, &named, NOW + 99).await, [true, false, true]);
    assert_eq!(
        end(lane, &named[..1], NOW + 99).await,
        [false],
        "it is settled already"
    );
    assert_eq!(store.counts(lane), counts(0, 0, 1, 0));
}

pub(super) async fn released_renewed_and_rejected_leases_go_where_they_should(
    database: &dyn Database,
) {
    let store = database.open().await;
    let lane = filled(&*store, "a", 3).await;
    let leases = (1..=3)
        .map(|n| lease(Pending::fresh(n), 7, NOW + 100))
        .collect();
    store.lease(lane, leases).await.expect("leased");
    let end = async |seq: Seq, end: LeaseEnd, now: Millis| {
        store
            .end_leases(lane, vec![(seq, secret(7))], end, now)
            .await
            .expect("answered")[0]
    };
    assert!(end(1, LeaseEnd::Release { due: NOW + 40 }, NOW).await);
    assert!(end(2, LeaseEnd::Renew { until: NOW + 500 }, NOW).await);
    let reject = LeaseEnd::Reject {
        reason: "rejected_by_consumer".into(),
        detail: Some("no".into()),
    };
    assert!(end(3, reject, NOW + 1).await);
    assert_eq!(store.counts(lane), counts(0, 1, 1, 1));

    let released = Pending {
        origin: Origin::Delayed { due: NOW + 40 },
        receives: 1,
        ..Pending::fresh(1)
    };
    assert_eq!(delayed(&*store, lane).await, [released]);
    assert!(
        !end(2, LeaseEnd::Renew { until: NOW + 900 }, NOW + 500).await,
        "it ran out"
    );
    assert!(end(2, LeaseEnd::Acknowledge, NOW + 499).await);
    let dead = store
        .dead_letters(all_dead())
        .await
        .expect("read")
        .remove(0);
    assert_eq!(
        (dead.seq, &*dead.reason, dead.died_at, dead.receives),
        (3, "rejected_by_consumer", NOW + 1, 1)
    );

    store
        .lease(lane, vec![lease(released, 9, NOW + 200)])
        .await
        .expect("leased");
    assert_eq!(store.counts(lane), counts(0, 0, 1, 1));
    let named = vec![(1, secret(9))];
    let ended = store
        .end_leases(lane, named, LeaseEnd::Release { due: NOW + 60 }, NOW + 50)
        .await;
    assert_eq!(ended.expect("answered"), [true]);
    assert_eq!(delayed(&*store, lane).await[0].receives, 2);
}

pub(super) async fn what_is_gone_cannot_be_leased(database: &dyn Database) {
    let store = database.open().await;
    let lane = filled(&*store, "a", 1).await;
    store
        .settle(vec![settlement(lane, Pending::fresh(1), End::Delivered)])
        .await
        .expect("settled");
    store
        .lease(lane, vec![lease(Pending::fresh(1), 7, NOW + 100)])
        .await
        .expect("answered");
    assert_eq!(store.counts(lane), counts(0, 0, 0, 0));
    let ended = store
        .end_leases(lane, vec![(1, secret(7))], LeaseEnd::Acknowledge, NOW)
        .await;
    assert_eq!(ended.expect("answered"), [false]);
}

pub(super) async fn expired_leases_return_until_they_have_failed_too_often(
    database: &dyn Database,
) {
    let store = database.open().await;
    let lane = filled(&*store, "a", 2).await;
    let leases = vec![
        lease(Pending::fresh(1), 7, NOW + 100),
        lease(Pending::fresh(2), 7, NOW + 200),
    ];
    store.lease(lane, leases).await.expect("leased");
    let expire = async |now: Millis| store.expire_leases(lane, now, 2).await.expect("answered");
    let became = |returned, buried, next| Expired {
        returned,
        buried,
        next,
    };
    assert_eq!(expire(NOW + 99).await, became(0, 0, Some(NOW + 100)));
    assert_eq!(expire(NOW + 100).await, became(1, 0, Some(NOW + 200)));
    assert_eq!(store.counts(lane), counts(0, 1, 1, 0));
    let back = delayed(&*store, lane).await[0];
    assert_eq!((back.seq, back.failures, back.receives), (1, 1, 1));

    store
        .lease(lane, vec![lease(back, 8, NOW + 150)])
        .await
        .expect("leased");
    assert_eq!(expire(NOW + 150).await, became(0, 1, Some(NOW + 200)));
    assert_eq!(store.counts(lane), counts(0, 0, 1, 1));
    let dead = store
        .dead_letters(all_dead())
        .await
        .expect("read")
        .remove(0);
    assert_eq!(
        (&*dead.reason, dead.failures, dead.receives),
        ("exhausted", 2, 2)
    );
    let ended: Vec<(Millis, &str)> = dead
        .attempts
        .iter()
        .map(|one| (one.at, &*one.outcome))
        .collect();
    assert_eq!(
        ended,
        [(NOW + 100, "lease_expired"), (NOW + 150, "lease_expired")]
    );
    assert_eq!(expire(NOW + 200).await, became(1, 0, None));
}
