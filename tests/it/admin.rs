//! Administration: rules, targets, buses, one by one and in one go.

use serde_json::{Value, json};

use crate::support::{Gateway, Receiver, event};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A document without the dates that the server adds.
fn undated(mut document: Value) -> Value {
    let members = document.as_object_mut().expect("a document");
    for date in ["created_at", "updated_at"] {
        assert!(members.remove(date).is_some(), "{date} is missing");
    }
    document
}

fn findings(problem: &Value) -> Vec<(&str, u64)> {
    let findings = problem["findings"].as_array().expect("findings");
    let short = |finding: &'_ Value| finding["line"].as_u64().expect("a line");
    findings
        .iter()
        .map(|finding| (finding["code"].as_str().expect("a code"), short(finding)))
        .collect()
}

#[tokio::test]
async fn a_rule_is_made_shown_changed_listed_and_removed() {
    let gateway = Gateway::start().await;
    gateway
        .http
        .put("/v1/targets/audit", &json!({"type": "pull"}))
        .await
        .ok();
    let body = json!({"description": "d", "pattern": {"type": ["a"]}, "targets": ["audit"]});
    let made = gateway.http.put("/v1/rules/r", &body).await.ok();
    let expected = json!({"kind": "Rule", "name": "r", "bus": "default", "description": "d",
        "pattern": {"type": ["a"]}, "targets": ["audit"]});
    assert_eq!(undated(made.clone()), expected);
    assert_eq!(gateway.http.get("/v1/rules/r").await.ok(), made);
    assert_eq!(
        gateway.http.get("/v1/rules").await.ok(),
        json!({"rules": [made]})
    );

    gateway.http.publish(&event("1", "a", json!({}))).await.ok();
    let changed = json!({"pattern": {"type": ["b"]}, "targets": ["audit"]});
    let changed = gateway.http.put("/v1/rules/r", &changed).await.ok();
    assert_eq!(changed["created_at"], made["created_at"]);
    assert_eq!(changed.get("description"), None);
    let rules = |receipt: Value| receipt["rules"].clone();
    assert_eq!(
        rules(gateway.http.publish(&event("2", "a", json!({}))).await.ok()),
        json!([])
    );
    assert_eq!(
        rules(gateway.http.publish(&event("3", "b", json!({}))).await.ok()),
        json!(["r"])
    );

    assert_eq!(gateway.http.delete("/v1/rules/r").await.status, 204);
    gateway
        .http
        .delete("/v1/rules/r")
        .await
        .problem(404, "not-found");
    gateway
        .http
        .get("/v1/rules/r")
        .await
        .problem(404, "not-found");
    assert_eq!(
        gateway.http.get("/v1/rules").await.ok(),
        json!({"rules": []})
    );
    // What the rule queued stays queued.
    assert_eq!(gateway.receive("audit", 10).await.len(), 2);
}

#[tokio::test]
async fn a_disabled_rule_is_kept_but_matches_nothing() {
    let gateway = Gateway::start().await;
    gateway
        .http
        .put("/v1/targets/audit", &json!({"type": "pull"}))
        .await
        .ok();
    let mut rule = json!({"enabled": false, "pattern": {"type": ["a"]}, "targets": ["audit"]});
    gateway.http.put("/v1/rules/r", &rule).await.ok();
    let receipt = gateway.http.publish(&event("1", "a", json!({}))).await.ok();
    assert_eq!(receipt["rules"], json!([]));
    assert_eq!(gateway.http.get("/v1/rules/r").await.ok()["enabled"], false);
    assert_eq!(
        gateway.http.get("/v1/buses/default").await.ok()["enabled_rules"],
        0
    );
    rule["enabled"] = true.into();
    gateway.http.put("/v1/rules/r", &rule).await.ok();
    let receipt = gateway.http.publish(&event("2", "a", json!({}))).await.ok();
    assert_eq!(receipt["rules"], json!(["r"]));
}

#[tokio::test]
async fn everything_wrong_with_a_rule_is_said_with_line_and_column() {
    let gateway = Gateway::start().await;
    gateway
        .http
        .put("/v1/targets/fraud", &json!({"type": "pull"}))
        .await
        .ok();
    let text = "# large orders\n\
                pattern:\n  type: [order.placed]\n  data:\n    amount: [{numeric: [\">=\", many]}]\n\
                targets: [fraud]\n\
                descripton: x\n";
    let problem = gateway
        .http
        .put_text("/v1/rules/large", text)
        .await
        .problem(422, "findings");
    assert_eq!(
        findings(&problem),
        [("invalid-pattern", 5), ("invalid-rule", 7)],
        "{problem}"
    );
    let [pattern, field] = [&problem["findings"][0], &problem["findings"][1]];
    assert_eq!(pattern["file"], "Rule large");
    assert!(pattern["column"].as_u64() > Some(12), "{pattern}");
    let pointer = pattern["pointer"].as_str().expect("a pointer");
    assert!(
        pointer.starts_with("/pattern/data/amount/0/numeric"),
        "{pointer}"
    );
    assert_eq!(field["column"], 1);
    assert!(
        field["hint"]
            .as_str()
            .expect("a hint")
            .contains("description"),
        "{field}"
    );
    let broken = "pattern: {type: [a]}\ntargets: [audit\n";
    let problem = gateway
        .http
        .put_text("/v1/rules/r", broken)
        .await
        .problem(400, "invalid-request");
    assert!(
        problem["detail"]
            .as_str()
            .expect("a detail")
            .contains("3:1"),
        "{problem}"
    );
    gateway
        .http
        .put_text("/v1/rules/r", "")
        .await
        .problem(400, "invalid-request");
    gateway
        .http
        .put_text("/v1/rules/r", "a: 1\n---\nb: 2\n")
        .await
        .problem(400, "invalid-request");
    assert_eq!(
        gateway.http.get("/v1/rules").await.ok(),
        json!({"rules": []})
    );
}

#[tokio::test]
async fn a_rule_must_name_targets_and_buses_that_exist() {
    let gateway = Gateway::start().await;
    gateway
        .http
        .put("/v1/targets/fraud-check", &json!({"type": "pull"}))
        .await
        .ok();
    let text = "pattern: {type: [a]}\ntargets:\n  - fraud-check\n  - fraud-chek\n";
    let problem = gateway
        .http
        .put_text("/v1/rules/r", text)
        .await
        .problem(422, "findings");
    assert_eq!(findings(&problem), [("unknown-target", 4)]);
    assert_eq!(problem["findings"][0]["column"], 5);
    assert_eq!(
        problem["findings"][0]["hint"],
        "did you mean `fraud-check`?"
    );
    let rule = json!({"pattern": {"type": ["a"]}, "targets": ["fraud-check"]});
    let problem = gateway
        .http
        .put("/v1/rules/r?bus=shop", &rule)
        .await
        .problem(422, "findings");
    assert_eq!(findings(&problem)[0].0, "unknown-bus");
    for (field, value) in [("name", "other"), ("kind", "Target"), ("bus", "shop")] {
        let mut elsewhere = rule.clone();
        elsewhere[field] = value.into();
        let problem = gateway
            .http
            .put("/v1/rules/r", &elsewhere)
            .await
            .problem(422, "findings");
        assert_eq!(findings(&problem)[0].0, "wrong-address", "{problem}");
    }
    for wrong in ["_r", "r%20r", &"r".repeat(65)] {
        let problem = gateway
            .http
            .put(&format!("/v1/rules/{wrong}"), &rule)
            .await
            .problem(422, "findings");
        assert_eq!(findings(&problem)[0].0, "invalid-rule", "{problem}");
    }
}

#[tokio::test]
async fn the_secrets_of_a_target_are_never_shown_and_their_mask_is_never_taken() {
    let gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    let document = json!({"type": "webhook", "url": receiver.url(), "allow_private": true,
        "secrets": [SECRET], "headers": {"authorization": "Bearer hunter2"}});
    let made = gateway.http.put("/v1/targets/hook", &document).await.ok();
    assert_eq!(made["secrets"], json!(["***"]));
    assert_eq!(made["headers"], json!({"authorization": "***"}));
    for path in ["/v1/targets/hook", "/v1/targets", "/v1/status", "/metrics"] {
        let shown = gateway.http.get(path).await.text();
        assert!(
            !shown.contains("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
            "{shown}"
        );
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    let mut shown = undated(gateway.http.get("/v1/targets/hook").await.ok()["target"].clone());
    let problem = gateway
        .http
        .put("/v1/targets/hook", &shown)
        .await
        .problem(422, "findings");
    assert_eq!(findings(&problem)[0].0, "hidden-secret");
    shown["secrets"] = json!([SECRET]);
    let problem = gateway
        .http
        .put("/v1/targets/hook", &shown)
        .await
        .problem(422, "findings");
    assert_eq!(findings(&problem)[0].0, "hidden-secret");
    let mut wrong = document.clone();
    wrong["secrets"] = json!(["whsec_c2hvcnQtc2VjcmV0"]);
    let problem = gateway.http.put("/v1/targets/hook", &wrong).await;
    assert!(!problem.text().contains("c2hvcnQ"), "{}", problem.text());
    problem.problem(422, "findings");

    // The secret in force is still the first one.
    gateway
        .rule("all", &json!({"type": ["a"]}), &["hook"])
        .await;
    gateway.http.publish(&event("1", "a", json!({}))).await.ok();
    let got = receiver.wait_for(1).await;
    assert_eq!(got[0].header("authorization"), "Bearer hunter2");
    assert!(got[0].header("webhook-signature").starts_with("v1,"));
}

#[tokio::test]
async fn a_target_that_rules_name_or_that_still_holds_deliveries_is_not_removed_by_accident() {
    let gateway = Gateway::start().await;
    gateway.pull_rule("audit", "a").await;
    gateway.http.publish(&event("1", "a", json!({}))).await.ok();
    gateway
        .http
        .delete("/v1/targets/audit?force=true")
        .await
        .problem(422, "findings");
    gateway.http.delete("/v1/rules/audit-rule").await.ok();
    let problem = gateway
        .http
        .delete("/v1/targets/audit")
        .await
        .problem(409, "queue-not-empty");
    assert_eq!(problem["waiting"], 1);
    assert_eq!(gateway.receive("audit", 1).await.len(), 1);
    let problem = gateway
        .http
        .delete("/v1/targets/audit")
        .await
        .problem(409, "queue-not-empty");
    assert_eq!(problem["waiting"], 1);
    assert_eq!(
        gateway
            .http
            .delete("/v1/targets/audit?force=true")
            .await
            .status,
        204
    );
    gateway
        .http
        .get("/v1/targets/audit")
        .await
        .problem(404, "not-found");
    gateway
        .http
        .post("/v1/queues/audit/receive", &json!({}))
        .await
        .problem(404, "not-found");
    gateway
        .http
        .delete("/v1/targets/audit")
        .await
        .problem(404, "not-found");

    // A target of the same name begins with an empty queue, and works.
    gateway.pull_rule("audit", "a").await;
    assert_eq!(gateway.queue("audit").await["ready"], 0);
    assert!(gateway.receive("audit", 1).await.is_empty());
    gateway.http.publish(&event("2", "a", json!({}))).await.ok();
    let received = gateway.receive("audit", 10).await;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0]["event"]["id"], "2");
    gateway
        .settle(
            "audit",
            "acknowledge",
            &[received[0]["lease_token"].clone()],
        )
        .await;
    gateway.http.delete("/v1/rules/audit-rule").await.ok();
    assert_eq!(gateway.http.delete("/v1/targets/audit").await.status, 204);
}

#[tokio::test]
async fn a_paused_target_hands_out_nothing_and_keeps_accepting() {
    let mut gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    gateway.pull_rule("audit", "a").await;
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    gateway
        .rule("push", &json!({"type": ["a"]}), &["hook"])
        .await;
    for target in ["audit", "hook"] {
        let paused = gateway
            .http
            .post(&format!("/v1/targets/{target}/pause"), &json!({}))
            .await
            .ok();
        assert_eq!(paused["queue"]["paused"], true);
    }
    gateway.http.publish(&event("1", "a", json!({}))).await.ok();
    assert!(gateway.receive("audit", 10).await.is_empty());
    assert_eq!(gateway.deliver("hook").await, 0);
    gateway.restart().await;
    assert_eq!(gateway.queue("audit").await["paused"], true);
    assert_eq!(gateway.deliver("hook").await, 0);
    assert!(receiver.got().is_empty());
    for target in ["audit", "hook"] {
        let resumed = gateway
            .http
            .post(&format!("/v1/targets/{target}/resume"), &json!({}))
            .await
            .ok();
        assert_eq!(resumed["queue"]["paused"], false);
    }
    receiver.wait_for(1).await;
    assert_eq!(gateway.receive("audit", 10).await.len(), 1);
    gateway
        .http
        .post("/v1/targets/none/pause", &json!({}))
        .await
        .problem(404, "not-found");
}

#[tokio::test]
async fn a_webhook_may_not_lead_to_a_private_address_unless_it_says_so() {
    let gateway = Gateway::start().await;
    for url in [
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "http://169.254.169.254/latest",
        "http://10.0.0.1/",
    ] {
        let document = json!({"type": "webhook", "url": url});
        let problem = gateway
            .http
            .put("/v1/targets/hook", &document)
            .await
            .problem(422, "findings");
        assert_eq!(findings(&problem)[0].0, "invalid-target", "{problem}");
    }
    let document = json!({"type": "carrier-pigeon"});
    gateway
        .http
        .put("/v1/targets/hook", &document)
        .await
        .problem(422, "findings");
    assert_eq!(
        gateway.http.get("/v1/targets").await.ok(),
        json!({"targets": []})
    );
}

#[tokio::test]
async fn a_bus_is_made_shown_listed_and_removed_when_no_rule_is_on_it() {
    let gateway = Gateway::start().await;
    gateway
        .http
        .put("/v1/targets/audit", &json!({"type": "pull"}))
        .await
        .ok();
    let body = json!({"description": "orders", "unknown_types": "reject"});
    gateway.http.put("/v1/buses/shop", &body).await.ok();
    let shop = json!({"name": "shop", "description": "orders", "unknown_types": "reject", "enabled_rules": 0});
    let default = json!({"name": "default", "description": null, "unknown_types": "accept", "enabled_rules": 0});
    assert_eq!(gateway.http.get("/v1/buses/shop").await.ok(), shop);
    assert_eq!(
        gateway.http.get("/v1/buses").await.ok(),
        json!({"buses": [default, shop]})
    );
    gateway
        .http
        .get("/v1/buses/none")
        .await
        .problem(404, "unknown-bus");
    let problem = gateway
        .http
        .put("/v1/buses/shop", &json!({"unknown_types": "maybe"}))
        .await;
    assert_eq!(
        findings(&problem.problem(422, "findings"))[0].0,
        "invalid-bus"
    );

    let rule = json!({"pattern": {"type": ["a"]}, "targets": ["audit"]});
    gateway.http.put("/v1/rules/r?bus=shop", &rule).await.ok();
    gateway
        .http
        .get("/v1/rules/r")
        .await
        .problem(404, "not-found");
    assert_eq!(
        gateway.http.get("/v1/rules?bus=shop").await.ok()["rules"][0]["bus"],
        "shop"
    );
    gateway
        .http
        .delete("/v1/buses/shop")
        .await
        .problem(422, "findings");
    gateway.http.delete("/v1/rules/r?bus=shop").await.ok();
    assert_eq!(gateway.http.delete("/v1/buses/shop").await.status, 204);
    gateway
        .http
        .delete("/v1/buses/shop")
        .await
        .problem(404, "not-found");
    gateway
        .http
        .delete("/v1/buses/default")
        .await
        .problem(404, "not-found");
    gateway.http.publish(&event("1", "a", json!({}))).await.ok();
}

#[tokio::test]
async fn a_folder_is_applied_as_a_whole_or_not_at_all() {
    let gateway = Gateway::start().await;
    let rules = "kind: Rule\nname: large\npattern: {type: [order.placed]}\ntargets: [audit]\n\
                 ---\nkind: Target\nname: audit\ntype: pull\n";
    let schemas = json!([{"type": "order.placed", "version": 1, "file": "schemas/order.placed/1.json",
        "text": "{\"type\": \"object\"}"}]);
    let broken = "kind: Rule\nname: small\npattern: {type: [order.placed]}\ntargets: [adit]\n";
    let files = json!({"documents": [{"file": "rules/a.yaml", "text": rules},
        {"file": "rules/b.yaml", "text": broken}], "schemas": schemas});
    let problem = gateway
        .http
        .post("/v1/apply", &files)
        .await
        .problem(422, "findings");
    assert_eq!(findings(&problem), [("unknown-target", 4)]);
    assert_eq!(problem["findings"][0]["file"], "rules/b.yaml");
    assert_eq!(
        gateway.http.get("/v1/rules").await.ok(),
        json!({"rules": []})
    );
    assert_eq!(
        gateway.http.get("/v1/schemas").await.ok(),
        json!({"schemas": []})
    );

    let good = |text: &str| json!({"documents": [{"file": "rules/a.yaml", "text": text}], "schemas": schemas});
    let applied = gateway.http.post("/v1/apply", &good(rules)).await.ok();
    let created = json!([
        "Schema order.placed version 1",
        "Target audit",
        "Rule large"
    ]);
    let expected = json!({"created": created, "changed": [], "unchanged": 0, "warnings": []});
    assert_eq!(applied, expected);
    let receipt = gateway
        .http
        .publish(&event("1", "order.placed", json!({})))
        .await
        .ok();
    assert_eq!(receipt["rules"], json!(["large"]));

    let changed = rules.replace("[order.placed]", "[order.place]");
    let applied = gateway.http.post("/v1/apply", &good(&changed)).await.ok();
    assert_eq!(applied["created"], json!([]));
    assert_eq!(applied["changed"], json!(["Rule large"]));
    assert_eq!(applied["unchanged"], 2);
    let warning = &applied["warnings"][0];
    assert_eq!(
        (&warning["code"], &warning["line"]),
        (&json!("unknown-type"), &json!(3))
    );
    assert_eq!(warning["hint"], "did you mean `order.placed`?");
    assert_eq!(
        gateway.http.post("/v1/apply", &json!({})).await.ok()["unchanged"],
        0
    );
}

#[tokio::test]
async fn what_stands_twice_or_rewrites_a_version_is_not_applied() {
    let gateway = Gateway::start().await;
    let target = "kind: Target\nname: audit\ntype: pull\n";
    let twice = json!({"documents": [{"file": "a.yaml", "text": target}, {"file": "b.yaml", "text": target}]});
    let problem = gateway
        .http
        .post("/v1/apply", &twice)
        .await
        .problem(422, "findings");
    assert_eq!(findings(&problem), [("defined-twice", 1)]);
    assert_eq!(problem["findings"][0]["file"], "b.yaml");
    let schema = |text: &str| json!({"schemas": [{"type": "t", "version": 1, "file": "schemas/t/1.json", "text": text}]});
    gateway.http.post("/v1/apply", &schema("true")).await.ok();
    let problem = gateway
        .http
        .post("/v1/apply", &schema("false"))
        .await
        .problem(422, "findings");
    assert_eq!(findings(&problem)[0].0, "version-immutable");
    assert_eq!(
        gateway.http.get("/v1/schemas/t/versions/1").await.text(),
        "true"
    );
    let schema = json!({"documents": [{"file": "s.yaml", "text": "kind: Schema\nname: t\n"}]});
    let problem = gateway
        .http
        .post("/v1/apply", &schema)
        .await
        .problem(422, "findings");
    assert_eq!(findings(&problem)[0].0, "schema-in-document");
    gateway
        .http
        .post("/v1/apply", &json!({"document": []}))
        .await
        .problem(400, "invalid-request");
}

#[tokio::test]
async fn a_restart_keeps_everything() {
    let mut gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    gateway
        .http
        .put("/v1/buses/shop", &json!({"unknown_types": "reject"}))
        .await
        .ok();
    gateway.pull_rule("audit", "a").await;
    gateway
        .webhook("hook", &receiver.url(), json!({"secrets": [SECRET]}))
        .await;
    gateway
        .http
        .put(
            "/v1/rules/off",
            &json!({"enabled": false, "pattern": {"type": ["a"]}, "targets": ["hook"]}),
        )
        .await
        .ok();
    gateway
        .http
        .post("/v1/schemas/a/versions", &json!({"type": "object"}))
        .await
        .ok();
    gateway
        .http
        .publish(&event("1", "a", json!({"n": 1})))
        .await
        .ok();
    gateway.http.publish(&event("2", "b", json!({}))).await.ok();
    let paths = [
        "/v1/buses",
        "/v1/rules",
        "/v1/schemas",
        "/v1/buses/default/events",
        "/v1/unmatched",
        "/v1/dead-letters",
        "/v1/keys",
        "/v1/events/1/explain",
    ];
    let look = async |gateway: &Gateway| {
        let mut seen = Vec::new();
        for path in paths {
            seen.push(gateway.http.get(path).await.ok());
        }
        for target in ["audit", "hook"] {
            let mut shown = gateway
                .http
                .get(&format!("/v1/targets/{target}"))
                .await
                .ok();
            // Time goes on.
            shown["queue"]["oldest_age_seconds"] = Value::Null;
            seen.push(shown);
        }
        seen
    };
    let before = look(&gateway).await;
    gateway.restart().await;
    assert_eq!(look(&gateway).await, before);
    let received = gateway.receive("audit", 10).await;
    assert_eq!(received[0]["event"]["data"], json!({"n": 1}));
    let third = gateway.http.publish(&event("3", "a", json!({}))).await.ok();
    assert_eq!(third["seq"], 3);
}
