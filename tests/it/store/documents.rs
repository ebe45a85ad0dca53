//! Documents, keys and named values.

use dak::clock::Millis;
use dak::store::{Change, Key, StoredDocument};

use super::{Database, NOW};

fn document(name: &str, version: u32, text: &str, at: Millis) -> StoredDocument {
    StoredDocument {
        kind: "rule".into(),
        bus: "default".into(),
        name: name.into(),
        version,
        text: text.into(),
        created_at: at,
        updated_at: at,
    }
}

pub(super) async fn documents_change_all_at_once(database: &dyn Database) {
    let store = database.open().await;
    let put = |name: &str, version, text: &str, at| Change::Put(document(name, version, text, at));
    let changes = vec![
        put("a", 0, "one", NOW),
        put("b", 1, "two", NOW),
        put("b", 2, "three", NOW),
    ];
    store.change_documents(changes).await.expect("changed");
    let delete = Change::Delete {
        kind: "rule".into(),
        bus: "default".into(),
        name: "b".into(),
        version: 1,
    };
    let changes = vec![put("a", 0, "four", NOW + 5), delete];
    store.change_documents(changes).await.expect("changed");
    store.close().await;

    let store = database.open().await;
    let mut documents = store.documents().await.expect("read");
    documents.sort_by(|one, other| one.name.cmp(&other.name));
    let changed = StoredDocument {
        created_at: NOW,
        ..document("a", 0, "four", NOW + 5)
    };
    assert_eq!(documents, [changed, document("b", 2, "three", NOW)]);
}

pub(super) async fn keys_have_one_name_each(database: &dyn Database) {
    let store = database.open().await;
    let key = |name: &str, bus: Option<&str>| Key {
        name: name.into(),
        digest: vec![0, 255],
        scopes: vec!["publish".into(), "consume".into()],
        bus: bus.map(str::to_owned),
        created_at: NOW,
    };
    assert!(store.add_key(key("shop", None)).await.expect("answered"));
    assert!(
        !store
            .add_key(key("shop", Some("other")))
            .await
            .expect("answered")
    );
    assert!(
        store
            .add_key(key("audit", Some("other")))
            .await
            .expect("answered")
    );
    let mut keys = store.keys().await.expect("read");
    keys.sort_by(|one, other| one.name.cmp(&other.name));
    assert_eq!(keys, [key("audit", Some("other")), key("shop", None)]);
    assert!(store.remove_key("shop".into()).await.expect("answered"));
    assert!(!store.remove_key("shop".into()).await.expect("answered"));
    assert_eq!(
        store.keys().await.expect("read"),
        [key("audit", Some("other"))]
    );
}

pub(super) async fn the_first_value_under_a_name_stays(database: &dyn Database) {
    let store = database.open().await;
    assert_eq!(store.meta("k".into(), vec![1]).await.expect("kept"), [1]);
    assert_eq!(store.meta("k".into(), vec![2]).await.expect("kept"), [1]);
    store.close().await;
    let store = database.open().await;
    assert_eq!(store.meta("k".into(), vec![3]).await.expect("kept"), [1]);
    assert_eq!(
        store.meta("other".into(), vec![3]).await.expect("kept"),
        [3]
    );
}
