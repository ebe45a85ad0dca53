//! Acceptance, duplicates and conflicts, and the log as it is read back.

use std::sync::Arc;

use dak::event::{Data, Event};
use dak::store::{Accept, Accepted, Claim, JudgedBy, Members, Seq};

use super::{Database, NOW, accept, counts, digest, filled, ready, store_one};

pub(super) async fn an_event_sent_twice_is_stored_once(database: &dyn Database) {
    let store = database.open().await;
    let lane = store.lane("a".into()).await.expect("a lane").lane;
    let first = accept("1", "x", &["a"]);
    assert_eq!(
        store_one(&*store, first.clone()).await,
        Accepted::New { seq: 1 }
    );
    // The facts are those of the first acceptance, whatever was decided this time.
    let again = accept("1", "x", &["b"]);
    let duplicate = Accepted::Duplicate {
        seq: 1,
        facts: Arc::clone(&first.facts),
    };
    assert_eq!(store_one(&*store, again).await, duplicate);
    let other = accept("1", "y", &["a"]);
    assert_eq!(
        store_one(&*store, other).await,
        Accepted::Conflict { seq: 1 }
    );
    assert_eq!(
        store_one(&*store, accept("2", "x", &["a"])).await,
        Accepted::New { seq: 2 }
    );
    assert_eq!(ready(&*store, lane).await, [1, 2]);
    let found = store
        .find(vec![digest("9"), digest("1")])
        .await
        .expect("found");
    assert!(found[0].is_none());
    let found = found[1].as_ref().expect("it is known");
    assert_eq!(
        (found.seq, found.content, &found.facts),
        (1, digest("x"), &*first.facts)
    );

    store.close().await;
    let store = database.open().await;
    assert_eq!(
        store_one(&*store, first).await,
        duplicate,
        "also after a restart"
    );
    assert_eq!(
        store_one(&*store, accept("3", "x", &[])).await,
        Accepted::New { seq: 3 }
    );
}

pub(super) async fn an_atomic_batch_stands_or_falls_whole(database: &dyn Database) {
    let store = database.open().await;
    let lane = filled(&*store, "a", 1).await;
    let batch = vec![
        accept("2", "x", &["a"]),
        accept("a-1", "other", &["a"]),
        accept("3", "x", &["a"]),
    ];
    let accepted = store
        .accept(batch, Members::Atomic)
        .await
        .expect("answered");
    assert_eq!(
        accepted,
        [
            Accepted::Withheld,
            Accepted::Conflict { seq: 1 },
            Accepted::Withheld
        ]
    );
    let batch = vec![accept("4", "x", &["a"]), accept("4", "y", &["a"])];
    let accepted = store
        .accept(batch, Members::Atomic)
        .await
        .expect("answered");
    assert_eq!(
        accepted,
        [Accepted::Withheld, Accepted::Conflict { seq: 0 }]
    );
    assert_eq!(
        ready(&*store, lane).await,
        [1],
        "nothing of either is stored"
    );
    assert_eq!(store.counts(lane), counts(1, 0, 0, 0));

    let batch = vec![
        accept("2", "x", &["a"]),
        accept("a-1", "x", &["a"]),
        accept("2", "x", &["a"]),
        accept("3", "x", &["a"]),
    ];
    let facts = Arc::clone(&batch[0].facts);
    let accepted = store
        .accept(batch, Members::Atomic)
        .await
        .expect("answered");
    let duplicate = |seq| Accepted::Duplicate {
        seq,
        facts: Arc::clone(&facts),
    };
    assert_eq!(
        accepted,
        [
            Accepted::New { seq: 2 },
            duplicate(1),
            duplicate(2),
            Accepted::New { seq: 3 }
        ]
    );
    assert_eq!(ready(&*store, lane).await, [1, 2, 3]);
}

pub(super) async fn members_of_a_loose_batch_stand_for_themselves(database: &dyn Database) {
    let store = database.open().await;
    let lane = filled(&*store, "a", 1).await;
    let batch = vec![
        accept("2", "x", &["a"]),
        accept("a-1", "other", &["a"]),
        accept("3", "x", &["a"]),
    ];
    let accepted = store.accept(batch, Members::Each).await.expect("answered");
    let expected = [
        Accepted::New { seq: 2 },
        Accepted::Conflict { seq: 1 },
        Accepted::New { seq: 3 },
    ];
    assert_eq!(accepted, expected);
    assert_eq!(ready(&*store, lane).await, [1, 2, 3]);
    assert_eq!(
        store
            .accept(Vec::new(), Members::Each)
            .await
            .expect("answered"),
        []
    );
    assert_eq!(
        store
            .accept(Vec::new(), Members::Atomic)
            .await
            .expect("answered"),
        []
    );
}

pub(super) async fn events_come_back_as_they_were(database: &dyn Database) {
    let store = database.open().await;
    let kinds = [
        Data::Absent,
        Data::Json(r#"{"n": 1.0}"#.into()),
        Data::Text("চা\n".into()),
        Data::Binary(vec![0, 255, 10].into()),
        Data::Binary(Vec::new().into()),
    ];
    let mut sent = Vec::new();
    for (n, data) in kinds.into_iter().enumerate() {
        let mut one = accept(&n.to_string(), "x", &["a"]);
        let attributes = r#"{"specversion":"1.0","id":"I","source":"/s","type":"t","n":7,"yes":true,"time":"2023-11-14T22:13:20.50+06:00"}"#;
        one.data_kind = data.kind_code();
        one.event = Event::from_stored(attributes, data).expect("an event");
        one.trace = (n % 2 == 0).then(|| format!("trace {n}"));
        one.accepted_at = NOW + 7;
        sent.push(one);
    }
    let mut offloaded = accept("offloaded", "x", &["a"]);
    offloaded.event = offloaded.event.with_data(Data::Absent);
    offloaded.claim = Some(Claim {
        key: "k/1".into(),
        bytes: 1 << 33,
    });
    let facts = Arc::make_mut(&mut offloaded.facts);
    facts.schema = Some(JudgedBy {
        event_type: "order".into(),
        version: 3,
    });
    facts.warned = true;
    sent.push(offloaded);
    store
        .accept(sent.clone(), Members::Each)
        .await
        .expect("accepted");
    store.close().await;

    let store = database.open().await;
    let got = store
        .events(vec![6, 2, 1, 99, 3, 4, 5])
        .await
        .expect("read");
    assert_eq!(
        got.iter().map(|event| event.seq).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
    for (got, sent) in got.iter().zip(&sent) {
        assert_eq!(got.event, sent.event);
        assert_eq!(
            got.event.attributes_to_json(),
            sent.event.attributes_to_json()
        );
        assert_eq!(
            (&got.facts, &got.claim, &got.trace),
            (&*sent.facts, &sent.claim, &sent.trace)
        );
        assert_eq!(
            (got.data_kind, got.accepted_at, &*got.bus),
            (sent.data_kind, sent.accepted_at, "default")
        );
        let inline = sent.event.data_bytes().len() as u64;
        assert_eq!(
            got.data_bytes,
            sent.claim.as_ref().map_or(inline, |claim| claim.bytes)
        );
    }
    assert!(store.events(Vec::new()).await.expect("read").is_empty());
}

pub(super) async fn the_log_is_listed_newest_first_by_bus(database: &dyn Database) {
    let store = database.open().await;
    for n in 0..7 {
        let mut one = accept(&n.to_string(), "x", &[]);
        one.bus = if n % 3 == 0 {
            "other".into()
        } else {
            "default".into()
        };
        store_one(&*store, one).await;
    }
    let recent = async |bus: &str, before: Seq, limit: u32| -> Vec<Seq> {
        let events = store
            .recent(bus.to_owned(), before, limit)
            .await
            .expect("read");
        events.iter().map(|event| event.seq).collect()
    };
    assert_eq!(recent("default", Seq::MAX, 10).await, [6, 5, 3, 2]);
    assert_eq!(recent("default", 6, 2).await, [5, 3]);
    assert_eq!(recent("other", Seq::MAX, 2).await, [7, 4]);
    assert_eq!(recent("nowhere", Seq::MAX, 2).await, [0; 0]);
}

pub(super) async fn blobs_in_use_are_told_from_others(database: &dyn Database) {
    let store = database.open().await;
    for (id, key) in [("1", "k/1"), ("2", "k/2"), ("3", "k/1")] {
        let claim = Some(Claim {
            key: key.into(),
            bytes: 9,
        });
        store_one(
            &*store,
            Accept {
                claim,
                ..accept(id, "x", &[])
            },
        )
        .await;
    }
    let asked = ["k/1", "k/3", "k/2"].map(str::to_owned).to_vec();
    let mut used = store.blobs_in_use(asked).await.expect("read");
    used.sort();
    assert_eq!(used, ["k/1", "k/2"]);
    assert!(
        store
            .blobs_in_use(Vec::new())
            .await
            .expect("read")
            .is_empty()
    );
}
