//! The schema registry: versions, what they may be, how they are served, how types are judged.

use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::support::{Answer, Gateway, event};

const ORDER: &str = "/v1/schemas/order.placed";
const VERSIONS: &str = "/v1/schemas/order.placed/versions";

async fn register(gateway: &Gateway, path: &str, schema: &str) -> Answer {
    gateway
        .http
        .publish_text(path, "application/schema+json", schema.to_owned())
        .await
}

async fn get_if_none_match(gateway: &Gateway, path: &str, tags: &str) -> Answer {
    let request = Request::get(path).header("if-none-match", tags);
    gateway
        .http
        .send(request.body(Full::default()).expect("a request"))
        .await
}

#[tokio::test]
async fn the_same_content_registers_to_the_same_version() {
    let gateway = Gateway::start().await;
    let first = register(
        &gateway,
        VERSIONS,
        r#"{"type": "object", "minProperties": 1}"#,
    )
    .await;
    assert_eq!(first.status, 201);
    assert_eq!(
        first.json(),
        json!({"type": "order.placed", "version": 1, "created": true})
    );
    let spelled_otherwise = "{\"minProperties\":1,\n  \"type\":\"object\"}";
    let same = register(&gateway, VERSIONS, spelled_otherwise).await;
    assert_eq!(same.status, 200);
    assert_eq!(
        same.json(),
        json!({"type": "order.placed", "version": 1, "created": false})
    );
    let other = register(&gateway, VERSIONS, r#"{"type": "object"}"#).await;
    assert_eq!(
        other.json(),
        json!({"type": "order.placed", "version": 2, "created": true})
    );
    let again = register(
        &gateway,
        VERSIONS,
        r#"{"type": "object", "minProperties": 1}"#,
    )
    .await;
    assert_eq!(again.json()["version"], 1);
    let elsewhere = register(&gateway, "/v1/schemas/other/versions", "true").await;
    assert_eq!(elsewhere.json()["version"], 1);
}

#[tokio::test]
async fn types_are_listed_with_their_versions_and_policy() {
    let gateway = Gateway::start().await;
    assert_eq!(
        gateway.http.get("/v1/schemas").await.ok(),
        json!({"schemas": []})
    );
    gateway.http.get(ORDER).await.problem(404, "not-found");
    register(&gateway, VERSIONS, "true").await.ok();
    register(&gateway, VERSIONS, r#"{"type": "object"}"#)
        .await
        .ok();
    register(&gateway, "/v1/schemas/com%2Fexample%20x/versions", "true")
        .await
        .ok();
    let policy = json!({"mode": "warn", "default_version": 1});
    gateway
        .http
        .put(&format!("{ORDER}/policy"), &policy)
        .await
        .ok();
    let order =
        json!({"type": "order.placed", "versions": [1, 2], "default_version": 1, "mode": "warn"});
    let odd = json!({"type": "com/example x", "versions": [1], "default_version": "latest",
        "mode": "enforce"});
    assert_eq!(
        gateway.http.get("/v1/schemas").await.ok(),
        json!({"schemas": [odd, order]})
    );
    assert_eq!(gateway.http.get(ORDER).await.ok(), order);
    assert_eq!(
        gateway.http.get("/v1/schemas/com%2Fexample%20x").await.ok(),
        odd
    );
}

#[tokio::test]
async fn a_version_is_served_as_it_was_sent_and_may_be_kept() {
    let gateway = Gateway::start().await;
    let sent = "{ \"type\" : \"object\",\n \"const\": 1.50 }\n";
    register(&gateway, VERSIONS, sent).await.ok();
    register(&gateway, VERSIONS, "true").await.ok();
    let served = gateway.http.get(&format!("{VERSIONS}/1")).await;
    assert_eq!(served.status, 200);
    assert_eq!(served.text(), sent);
    assert_eq!(served.headers["content-type"], "application/schema+json");
    assert_eq!(served.headers["dak-schema-version"], "1");
    assert_eq!(
        served.headers["cache-control"],
        "public, max-age=31536000, immutable"
    );
    let tag = served.headers["etag"].to_str().expect("text").to_owned();

    for known in [
        tag.clone(),
        format!("\"x\", {tag}"),
        format!("W/{tag}"),
        "*".to_owned(),
    ] {
        let unchanged = get_if_none_match(&gateway, &format!("{VERSIONS}/1"), &known).await;
        assert_eq!(unchanged.status, 304, "{known}");
        assert_eq!(unchanged.headers["etag"], tag.as_str());
        assert!(unchanged.body.is_empty());
    }
    let changed = get_if_none_match(&gateway, &format!("{VERSIONS}/2"), &tag).await;
    assert_eq!(changed.status, 200);
    let latest = gateway.http.get(&format!("{VERSIONS}/latest")).await;
    assert_eq!(latest.text(), "true");
    assert_eq!(latest.headers["dak-schema-version"], "2");
    assert_eq!(latest.headers["cache-control"], "no-cache");
    for missing in ["3", "0", "01x", "-1"] {
        gateway
            .http
            .get(&format!("{VERSIONS}/{missing}"))
            .await
            .problem(404, "not-found");
    }
}

#[tokio::test]
async fn a_schema_that_cannot_judge_is_refused_with_its_place() {
    let gateway = Gateway::start().await;
    for (schema, line, pointer) in [
        (
            "{\"type\": \"object\",\n \"properties\": {\"a\": {\"type\": \"number\", \"minimum\": \"5\"}}}",
            2,
            "/properties/a/minimum",
        ),
        (
            "{\"properties\":\n {\"a\": {\"$ref\": \"https://example.com/a.json\"}}}",
            2,
            "/properties/a/$ref",
        ),
        (
            "{\"properties\":\n\n {\"a\": {\"$ref\": \"#/$defs/none\"}}}",
            3,
            "/properties/a/$ref",
        ),
        ("{\n\"pattern\": \"(\"}", 2, "/pattern"),
        (
            "{\n\"$schema\": \"https://example.com/my-draft\"}",
            2,
            "/$schema",
        ),
        ("[]", 1, ""),
    ] {
        let problem = register(&gateway, VERSIONS, schema)
            .await
            .problem(422, "findings");
        let finding = &problem["findings"][0];
        assert_eq!(finding["code"], "invalid-schema", "{problem}");
        assert_eq!(finding["file"], "schemas/order.placed", "{problem}");
        assert_eq!(finding["line"], line, "{problem}");
        assert_eq!(finding["pointer"], pointer, "{problem}");
    }
    let problem = register(&gateway, VERSIONS, "{\"type\":\n \"object\",}")
        .await
        .problem(422, "findings");
    assert_eq!(problem["findings"][0]["code"], "invalid-json");
    assert_eq!(problem["findings"][0]["line"], 2);
    let long = format!("/v1/schemas/{}/versions", "t".repeat(256));
    let problem = register(&gateway, &long, "true")
        .await
        .problem(422, "findings");
    assert_eq!(problem["findings"][0]["code"], "invalid-type");
    assert_eq!(
        gateway.http.get("/v1/schemas").await.ok(),
        json!({"schemas": []})
    );
}

#[tokio::test]
async fn a_policy_is_checked_against_the_versions_there_are() {
    let gateway = Gateway::start().await;
    let policy = format!("{ORDER}/policy");
    let default = json!({"type": "order.placed", "mode": "enforce", "default_version": "latest"});
    assert_eq!(gateway.http.get(&policy).await.ok(), default);
    register(&gateway, VERSIONS, "true").await.ok();
    let problem = gateway
        .http
        .put(&policy, &json!({"default_version": 2}))
        .await
        .problem(422, "findings");
    assert_eq!(problem["findings"][0]["code"], "unknown-version");
    for wrong in [
        json!({"mode": "strict"}),
        json!({"default_version": 0}),
        json!({"modus": "warn"}),
    ] {
        let problem = gateway
            .http
            .put(&policy, &wrong)
            .await
            .problem(422, "findings");
        assert_eq!(
            problem["findings"][0]["code"], "invalid-policy",
            "{problem}"
        );
    }
    assert_eq!(gateway.http.get(&policy).await.ok(), default);
    gateway
        .http
        .put(&policy, &json!({"mode": "off", "default_version": 1}))
        .await
        .ok();
    let set = json!({"type": "order.placed", "mode": "off", "default_version": 1});
    assert_eq!(gateway.http.get(&policy).await.ok(), set);
}

#[tokio::test]
async fn a_version_can_be_removed_unless_the_policy_names_it() {
    let gateway = Gateway::start().await;
    register(&gateway, VERSIONS, "true").await.ok();
    register(&gateway, VERSIONS, "false").await.ok();
    gateway
        .http
        .put(&format!("{ORDER}/policy"), &json!({"default_version": 2}))
        .await
        .ok();
    gateway
        .http
        .publish(&event("1", "order.placed", json!({})))
        .await
        .problem(422, "schema-violation");
    gateway
        .http
        .delete(&format!("{VERSIONS}/2"))
        .await
        .problem(422, "findings");
    gateway
        .http
        .put(
            &format!("{ORDER}/policy"),
            &json!({"default_version": "latest"}),
        )
        .await
        .ok();
    assert_eq!(
        gateway.http.delete(&format!("{VERSIONS}/2")).await.status,
        204
    );
    gateway
        .http
        .delete(&format!("{VERSIONS}/2"))
        .await
        .problem(404, "not-found");
    assert_eq!(gateway.http.get(ORDER).await.ok()["versions"], json!([1]));
    let receipt = gateway
        .http
        .publish(&event("1", "order.placed", json!({})))
        .await
        .ok();
    assert_eq!(receipt["schema"]["version"], 1);
    assert_eq!(
        gateway.http.delete(&format!("{VERSIONS}/1")).await.status,
        204
    );
    gateway.http.get(ORDER).await.problem(404, "not-found");
    let again = register(&gateway, VERSIONS, r#"{"required": ["c"]}"#)
        .await
        .ok();
    assert_eq!(again["version"], 3, "numbers are never given twice");
    gateway.http.delete(&format!("{VERSIONS}/3")).await.ok();
    let receipt = gateway
        .http
        .publish(&event("2", "order.placed", json!({})))
        .await
        .ok();
    assert_eq!(receipt["schema"], Value::Null);
}

#[tokio::test]
async fn registered_versions_survive_a_restart() {
    let mut gateway = Gateway::start().await;
    register(&gateway, VERSIONS, r#"{"required": ["a"]}"#)
        .await
        .ok();
    register(&gateway, VERSIONS, r#"{"required": ["b"]}"#)
        .await
        .ok();
    gateway
        .http
        .put(&format!("{ORDER}/policy"), &json!({"default_version": 1}))
        .await
        .ok();
    let before = gateway.http.get(ORDER).await.ok();
    gateway.restart().await;
    assert_eq!(gateway.http.get(ORDER).await.ok(), before);
    let again = register(&gateway, VERSIONS, r#"{"required": ["b"]}"#)
        .await
        .ok();
    assert_eq!(
        again,
        json!({"type": "order.placed", "version": 2, "created": false})
    );
    gateway
        .http
        .publish(&event("1", "order.placed", json!({"b": 1})))
        .await
        .problem(422, "schema-violation");
    gateway
        .http
        .publish(&event("2", "order.placed", json!({"a": 1})))
        .await
        .ok();
}

#[tokio::test]
async fn registrations_at_once_get_numbers_of_their_own() {
    let gateway = Gateway::start().await;
    let registrations = (1..=8).map(|minimum| {
        let http = gateway.http.clone();
        tokio::spawn(async move { http.post(VERSIONS, &json!({"minimum": minimum})).await.ok() })
    });
    let mut numbers = Vec::new();
    for registration in registrations.collect::<Vec<_>>() {
        let registered = registration.await.expect("an answer");
        assert_eq!(registered["created"], true);
        numbers.push(registered["version"].as_u64().expect("a number"));
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
}
