//! API keys, and the lock on addresses that others reach.

use std::net::SocketAddr;

use dak::clock::Clock;
use dak::config::Config;
use dak::server::{self, Error, Running};
use serde_json::{Value, json};

use crate::support::{Gateway, Http, event};

const EVENT_TYPE: &str = "application/cloudevents+json";

/// Makes a key and answers with a client that shows it.
async fn client(gateway: &Gateway, admin: &Http, name: &str, scopes: &[&str], bus: Value) -> Http {
    let made = admin
        .post(
            "/v1/keys",
            &json!({"name": name, "scopes": scopes, "bus": bus}),
        )
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    let key = made.json()["key"].as_str().expect("a key").to_owned();
    assert!(key.starts_with(&format!("dak_{name}_")), "{key}");
    let mut http = Http::to(gateway.address());
    http.key = Some(key);
    http
}

async fn publish(http: &Http, bus: &str, id: &str) -> crate::support::Answer {
    let placed = event(id, "order.placed", json!({})).to_string();
    http.publish_text(&format!("/v1/buses/{bus}/events"), EVENT_TYPE, placed)
        .await
}

#[tokio::test]
async fn the_first_key_must_be_able_to_make_others() {
    let gateway = Gateway::start().await;
    for first in [
        json!({"name": "p", "scopes": ["publish", "consume"]}),
        json!({"name": "a", "scopes": ["admin"], "bus": "default"}),
    ] {
        let problem = gateway
            .http
            .post("/v1/keys", &first)
            .await
            .problem(400, "invalid-request");
        assert!(
            problem["detail"]
                .as_str()
                .expect("a detail")
                .contains("first key"),
            "{problem}"
        );
    }
    for wrong in [
        json!({"name": "a", "scopes": []}),
        json!({"name": "a", "scopes": ["root"]}),
        json!({"name": "", "scopes": ["admin"]}),
        json!({"name": "a b", "scopes": ["admin"]}),
        json!({"scopes": ["admin"]}),
        json!({"name": "a", "scopes": ["admin"], "expires": "never"}),
    ] {
        gateway
            .http
            .post("/v1/keys", &wrong)
            .await
            .problem(400, "invalid-request");
    }
    assert_eq!(gateway.http.get("/v1/keys").await.ok(), json!({"keys": []}));
    assert_eq!(
        gateway.http.get("/v1/status").await.ok()["authentication"],
        false
    );
}

#[tokio::test]
async fn with_a_key_in_force_nobody_comes_in_without_one() {
    let mut gateway = Gateway::start().await;
    let admin = client(&gateway, &gateway.http, "root", &["admin"], Value::Null).await;
    for path in [
        "/v1/rules",
        "/v1/targets",
        "/v1/buses",
        "/v1/schemas",
        "/v1/keys",
        "/v1/status",
        "/v1/unmatched",
        "/v1/dead-letters",
        "/v1/events/1",
        "/v1/buses/default/events",
        "/metrics",
    ] {
        let answer = gateway.http.get(path).await;
        assert_eq!(answer.headers["www-authenticate"], "Bearer realm=\"dak\"");
        answer.problem(401, "unauthorized");
        assert_ne!(admin.get(path).await.status, 401, "{path}");
    }
    publish(&gateway.http, "default", "1")
        .await
        .problem(401, "unauthorized");
    gateway
        .http
        .post("/v1/queues/q/receive", &json!({}))
        .await
        .problem(401, "unauthorized");
    gateway
        .http
        .post("/v1/apply", &json!({}))
        .await
        .problem(401, "unauthorized");
    gateway
        .http
        .put("/v1/targets/t", &json!({"type": "pull"}))
        .await
        .problem(401, "unauthorized");
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(gateway.http.get(path).await.status, 200, "{path}");
    }

    let key = admin.key.clone().expect("a key");
    let wrong_end = format!("{}x", &key[..key.len() - 1]);
    for wrong in [
        "",
        "dak_root_",
        "dak_none_AAAA",
        &key[..key.len() - 1],
        &wrong_end,
    ] {
        let mut http = Http::to(gateway.address());
        http.key = Some(wrong.to_owned());
        http.get("/v1/rules").await.problem(401, "unauthorized");
    }
    // Also after a restart, and the stored form is not the key.
    gateway.restart().await;
    gateway
        .http
        .get("/v1/rules")
        .await
        .problem(401, "unauthorized");
    let mut again = Http::to(gateway.address());
    again.key = Some(key.clone());
    let listed = again.get("/v1/keys").await;
    assert!(!listed.text().contains(&key[9..]), "{}", listed.text());
    let listed = listed.ok();
    assert_eq!(listed["keys"][0]["name"], "root");
    assert_eq!(listed["keys"][0]["scopes"], json!(["admin"]));
    assert!(!store_holds(&gateway, &key));
}

/// Whether any file of the data folder holds the text.
fn store_holds(gateway: &Gateway, text: &str) -> bool {
    let files = std::fs::read_dir(gateway.folder()).expect("a folder");
    files
        .map(|file| file.expect("an entry").path())
        .filter(|path| path.is_file())
        .any(|path| {
            let bytes = std::fs::read(path).expect("a file");
            bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        })
}

#[tokio::test]
async fn a_key_may_do_what_its_scopes_say_and_no_more() {
    let gateway = Gateway::start().await;
    gateway.pull_rule("audit", "order.placed").await;
    let admin = client(&gateway, &gateway.http, "root", &["admin"], Value::Null).await;
    let producer = client(&gateway, &admin, "producer", &["publish"], Value::Null).await;
    let consumer = client(&gateway, &admin, "consumer", &["consume"], Value::Null).await;
    let both = client(
        &gateway,
        &admin,
        "both",
        &["publish", "consume"],
        Value::Null,
    )
    .await;

    publish(&producer, "default", "1").await.ok();
    publish(&both, "default", "2").await.ok();
    publish(&admin, "default", "3").await.ok();
    let problem = publish(&consumer, "default", "4")
        .await
        .problem(403, "forbidden");
    assert_eq!(problem["scope"], "publish");

    let receive = "/v1/queues/audit/receive";
    let one = json!({"max_events": 1});
    let problem = producer.post(receive, &one).await.problem(403, "forbidden");
    assert_eq!(problem["scope"], "consume");
    for allowed in [&consumer, &both, &admin] {
        let received = allowed.post(receive, &one).await.ok();
        let token = &received["events"][0]["lease_token"];
        let settle = json!({"lease_tokens": [token]});
        producer
            .post("/v1/queues/audit/acknowledge", &settle)
            .await
            .problem(403, "forbidden");
        let settled = allowed
            .post("/v1/queues/audit/acknowledge", &settle)
            .await
            .ok();
        assert_eq!(settled["failed"], json!([]));
    }

    for limited in [&producer, &consumer, &both] {
        for path in [
            "/v1/rules",
            "/v1/targets",
            "/v1/keys",
            "/v1/status",
            "/v1/events/1",
            "/metrics",
        ] {
            limited.get(path).await.problem(403, "forbidden");
        }
        let key = json!({"name": "mine", "scopes": ["admin"]});
        limited
            .post("/v1/keys", &key)
            .await
            .problem(403, "forbidden");
        limited
            .delete("/v1/keys/root")
            .await
            .problem(403, "forbidden");
        limited
            .put("/v1/targets/t", &json!({"type": "pull"}))
            .await
            .problem(403, "forbidden");
        limited
            .post("/v1/apply", &json!({}))
            .await
            .problem(403, "forbidden");
        limited
            .post("/v1/dead-letters/purge", &json!({}))
            .await
            .problem(403, "forbidden");
    }
    admin
        .post("/v1/keys", &json!({"name": "both", "scopes": ["publish"]}))
        .await
        .problem(409, "name-taken");
}

#[tokio::test]
async fn a_key_for_one_bus_reaches_no_other() {
    let gateway = Gateway::start().await;
    gateway.http.put("/v1/buses/shop", &json!({})).await.ok();
    gateway.pull_rule("default-queue", "order.placed").await;
    for target in ["shop-queue", "both-queue"] {
        gateway
            .http
            .put(&format!("/v1/targets/{target}"), &json!({"type": "pull"}))
            .await
            .ok();
    }
    let rule =
        json!({"pattern": {"type": ["order.placed"]}, "targets": ["shop-queue", "both-queue"]});
    gateway
        .http
        .put("/v1/rules/shop?bus=shop", &rule)
        .await
        .ok();
    gateway
        .rule("both", &json!({"type": ["order.placed"]}), &["both-queue"])
        .await;
    let admin = client(&gateway, &gateway.http, "root", &["admin"], Value::Null).await;
    let scopes = ["publish", "consume"];
    let shop = client(&gateway, &admin, "shop", &scopes, json!("shop")).await;
    let keeper = client(&gateway, &admin, "keeper", &["admin"], json!("shop")).await;

    publish(&shop, "shop", "1").await.ok();
    let problem = publish(&shop, "default", "2")
        .await
        .problem(403, "forbidden");
    assert_eq!(problem["bus"], "shop");
    publish(&admin, "default", "3").await.ok();
    let received = shop
        .post("/v1/queues/shop-queue/receive", &json!({}))
        .await
        .ok();
    assert_eq!(received["events"][0]["event"]["id"], "1");
    let settle = json!({"lease_tokens": [received["events"][0]["lease_token"]]});
    shop.post("/v1/queues/shop-queue/acknowledge", &settle)
        .await
        .ok();
    for target in ["default-queue", "both-queue", "none"] {
        for verb in ["receive", "acknowledge"] {
            let body = if verb == "receive" {
                json!({})
            } else {
                settle.clone()
            };
            let path = format!("/v1/queues/{target}/{verb}");
            shop.post(&path, &body).await.problem(403, "forbidden");
        }
    }

    keeper.get("/v1/rules?bus=shop").await.ok();
    keeper.get("/v1/buses/shop/events").await.ok();
    keeper.get("/v1/events/1").await.ok();
    keeper.put("/v1/rules/more?bus=shop", &rule).await.ok();
    for path in [
        "/v1/rules",
        "/v1/buses/default/events",
        "/v1/events/2",
        "/v1/keys",
        "/v1/targets",
        "/v1/status",
        "/v1/unmatched",
        "/v1/dead-letters",
        "/metrics",
    ] {
        keeper.get(path).await.problem(403, "forbidden");
    }
    keeper
        .put("/v1/rules/more", &rule)
        .await
        .problem(403, "forbidden");
    keeper
        .put("/v1/targets/t", &json!({"type": "pull"}))
        .await
        .problem(403, "forbidden");
    keeper
        .post("/v1/apply", &json!({}))
        .await
        .problem(403, "forbidden");
    let key = json!({"name": "mine", "scopes": ["admin"]});
    keeper
        .post("/v1/keys", &key)
        .await
        .problem(403, "forbidden");
}

#[tokio::test]
async fn a_removed_key_stops_working_at_once() {
    let gateway = Gateway::start().await;
    let admin = client(&gateway, &gateway.http, "root", &["admin"], Value::Null).await;
    let producer = client(&gateway, &admin, "producer", &["publish"], Value::Null).await;
    publish(&producer, "default", "1").await.ok();
    assert_eq!(admin.delete("/v1/keys/producer").await.status, 204);
    publish(&producer, "default", "2")
        .await
        .problem(401, "unauthorized");
    admin
        .delete("/v1/keys/producer")
        .await
        .problem(404, "not-found");
    // A new key of the same name is another key.
    let renewed = client(&gateway, &admin, "producer", &["publish"], Value::Null).await;
    publish(&producer, "default", "3")
        .await
        .problem(401, "unauthorized");
    publish(&renewed, "default", "4").await.ok();
}

fn config(folder: &tempfile::TempDir, listen: &str, insecure: bool) -> Config {
    let settings = [
        ("listen".to_owned(), listen.to_owned()),
        ("data_dir".to_owned(), folder.path().display().to_string()),
        ("insecure".to_owned(), insecure.to_string()),
    ];
    Config::load(&settings, [], None).expect("settings")
}

fn on_loopback(running: &Running) -> Http {
    Http::to(SocketAddr::from(([127, 0, 0, 1], running.address.port())))
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_key_or_the_word_insecure() {
    let folder = tempfile::tempdir().expect("a folder");
    for address in ["0.0.0.0:0", "[::]:0"] {
        let started = server::start(config(&folder, address, false), Clock::system()).await;
        match started.map(|running| running.address) {
            Err(Error::Exposed { address }) => assert!(!address.ip().is_loopback()),
            // A machine without IPv6 cannot be exposed on it.
            Err(Error::Listen { .. }) if address.starts_with('[') => {}
            other => panic!("{other:?}"),
        }
    }
    let insecure = server::start(config(&folder, "0.0.0.0:0", true), Clock::system()).await;
    let running = insecure.expect("a gateway");
    on_loopback(&running).get("/v1/rules").await.ok();
    let root = json!({"name": "root", "scopes": ["admin"]});
    let made = on_loopback(&running).post("/v1/keys", &root).await.ok();
    running.stop().await;

    let locked = server::start(config(&folder, "0.0.0.0:0", false), Clock::system()).await;
    let running = locked.expect("a gateway");
    let mut http = on_loopback(&running);
    http.get("/v1/rules").await.problem(401, "unauthorized");
    http.key = Some(made["key"].as_str().expect("a key").to_owned());
    http.get("/v1/rules").await.ok();
    running.stop().await;
}

#[tokio::test]
async fn the_last_key_that_administers_cannot_be_removed() {
    let gateway = Gateway::start().await;
    let admin = client(&gateway, &gateway.http, "root", &["admin"], Value::Null).await;
    let limited = json!("default");
    client(&gateway, &admin, "limited", &["admin"], limited).await;
    admin
        .delete("/v1/keys/root")
        .await
        .problem(409, "last-admin-key");
    let second = client(&gateway, &admin, "second", &["admin"], Value::Null).await;
    assert_eq!(second.delete("/v1/keys/root").await.status, 204);
    admin.get("/v1/keys").await.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_second_server_on_the_same_folder_is_refused() {
    let gateway = Gateway::start().await;
    let folder = gateway.folder().display().to_string();
    let settings = [
        ("listen".to_owned(), "127.0.0.1:0".to_owned()),
        ("data_dir".to_owned(), folder),
    ];
    let config = Config::load(&settings, [], None).expect("settings");
    let refused = server::start(config, dak::clock::Clock::system()).await;
    assert!(matches!(refused, Err(server::Error::InUse { .. })));
}
