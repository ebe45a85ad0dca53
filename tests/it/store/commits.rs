//! Group commit, and the end of a store.

use std::sync::Arc;

use dak::store::{Accepted, Error, Members, Seq};
use futures::future::join_all;

use super::{Database, accept, counts, filled, store_one};

pub(super) async fn many_events_share_a_commit(database: &dyn Database) {
    const EVENTS: u64 = 500;
    let store = database.open().await;
    let lane = filled(&*store, "a", 1).await;
    let before = database.commits();
    let accepts = (0..EVENTS).map(|n| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store_one(&*store, accept(&n.to_string(), "x", &["a"])).await })
    });
    let mut seqs: Vec<Seq> = Vec::new();
    for accepted in join_all(accepts).await {
        let Accepted::New { seq } = accepted.expect("accepted") else {
            panic!("each is new")
        };
        seqs.push(seq);
    }
    seqs.sort_unstable();
    let commits = database.commits() - before;
    assert_eq!(seqs, (2..=501).collect::<Vec<Seq>>());
    assert_eq!(store.counts(lane).ready, 501);
    assert!(
        commits < EVENTS / 2,
        "{commits} commits for {EVENTS} events"
    );
    println!("{EVENTS} concurrent accepts in {commits} commits");
}

pub(super) async fn a_closed_store_has_committed_what_it_took_and_takes_no_more(
    database: &dyn Database,
) {
    let store = database.open().await;
    let taken =
        (0..50).map(|n| store.accept(vec![accept(&n.to_string(), "x", &["a"])], Members::Each));
    // The accepts are handed over in the order they stand, the closing comes after.
    let (accepted, ()) = futures::join!(join_all(taken), store.close());
    let new = accepted
        .into_iter()
        .map(|accepted| accepted.expect("it was taken before"));
    assert_eq!(new.count(), 50);
    let late = store
        .accept(vec![accept("late", "x", &["a"])], Members::Each)
        .await;
    assert!(matches!(late, Err(Error::Closed)), "{late:?}");
    let late = store.lane("a".into()).await;
    assert!(matches!(late, Err(Error::Closed)), "{late:?}");
    assert!(store.documents().await.is_err(), "reads end too");
    store.close().await;

    let store = database.open().await;
    let lane = store.lane("a".into()).await.expect("a lane").lane;
    assert_eq!(store.counts(lane), counts(50, 0, 0, 0));
}
