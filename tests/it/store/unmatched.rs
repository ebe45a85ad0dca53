//! Groups of events that matched no rule.

use dak::clock::Millis;
use dak::event::{Attribute, Data, Event};
use dak::store::{Accept, Members, Seq};

use super::{Database, NOW, accept, store_one};

/// An event that no rule matched.
fn unmatched(id: &str, bus: &str, source: &str, at: Millis) -> Accept {
    let attributes = [
        ("specversion", "1.0"),
        ("id", id),
        ("source", source),
        ("type", "t"),
    ]
    .map(|(name, value)| Attribute::text(name, value));
    Accept {
        bus: bus.into(),
        event: Event::new(attributes.into(), Data::Absent).expect("an event"),
        data_kind: 0,
        accepted_at: at,
        ..accept(id, "x", &[])
    }
}

pub(super) async fn unmatched_events_are_grouped(database: &dyn Database) {
    let store = database.open().await;
    for (id, bus, source, at) in [
        ("1", "default", "/a", NOW + 1),
        ("2", "default", "/a", NOW + 2),
        ("3", "default", "/b", NOW + 3),
        ("4", "other", "/a", NOW + 4),
        ("5", "default", "/a", NOW + 5),
    ] {
        store_one(&*store, unmatched(id, bus, source, at)).await;
    }
    store_one(&*store, unmatched("5", "default", "/a", NOW + 9)).await;
    store_one(&*store, accept("6", "x", &["a"])).await;
    store.close().await;

    let store = database.open().await;
    let groups =
        async |bus: Option<&str>, limit: u32| -> Vec<(String, String, i64, Millis, Millis, Seq)> {
            let groups = store
                .unmatched(bus.map(str::to_owned), limit)
                .await
                .expect("read");
            let told = groups.into_iter().map(|group| {
                assert_eq!(group.event_type, "t");
                (
                    group.bus,
                    group.source,
                    group.count,
                    group.first_seen,
                    group.last_seen,
                    group.sample,
                )
            });
            told.collect()
        };
    let a = (
        "default".to_owned(),
        "/a".to_owned(),
        3,
        NOW + 1,
        NOW + 5,
        5,
    );
    let b = (
        "default".to_owned(),
        "/b".to_owned(),
        1,
        NOW + 3,
        NOW + 3,
        3,
    );
    let other = ("other".to_owned(), "/a".to_owned(), 1, NOW + 4, NOW + 4, 4);
    assert_eq!(
        groups(None, 10).await,
        [a.clone(), other.clone(), b.clone()]
    );
    assert_eq!(groups(Some("default"), 10).await, [a.clone(), b]);
    assert_eq!(groups(Some("other"), 10).await, [other]);
    assert_eq!(groups(None, 1).await, [a]);
}

pub(super) async fn groups_of_unmatched_events_are_bounded(database: &dyn Database) {
    const GROUPS_MAX: usize = 10_000;
    let store = database.open().await;
    for chunk in 0..21 {
        let batch = (chunk * 500..(chunk + 1) * 500)
            .map(|n| unmatched(&n.to_string(), "default", &format!("/{n}"), NOW))
            .collect();
        store.accept(batch, Members::Each).await.expect("accepted");
    }
    // One that is known already still counts for itself.
    store_one(&*store, unmatched("again", "default", "/0", NOW + 1)).await;
    let groups = store.unmatched(None, 100_000).await.expect("read");
    assert_eq!(
        groups.iter().map(|group| group.count).sum::<i64>(),
        10_501,
        "all are counted"
    );
    let own = groups
        .iter()
        .filter(|group| group.source != "other")
        .count();
    assert_eq!(own, GROUPS_MAX);
    let other = groups
        .iter()
        .find(|group| group.source == "other")
        .expect("a group for the rest");
    assert_eq!((&*other.event_type, other.count), ("other", 500));
    assert_eq!(groups[0].source, "/0");
    assert_eq!(groups[0].count, 2);
}
