//! The main job in one go.

use serde_json::json;

use crate::support::{Gateway, Receiver, event};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_goes_from_the_post_to_a_webhook_and_a_puller() {
    let gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    gateway.pull_rule("audit", "order.placed").await;
    gateway
        .rule(
            "large",
            &json!({"type": ["order.placed"], "data": {"amount": [{"numeric": [">=", 5000]}]}}),
            &["hook", "audit"],
        )
        .await;

    let placed = event("1", "order.placed", json!({"amount": 7000}));
    let receipt = gateway.http.publish(&placed).await.ok();
    assert_eq!(receipt["seq"], 1);
    assert_eq!(receipt["rules"], json!(["audit-rule", "large"]));
    assert_eq!(receipt["targets"], json!(["audit", "hook"]));

    let got = receiver.wait_for(1).await;
    assert_eq!(got[0].header("ce-id"), "1");
    assert_eq!(&got[0].body[..], br#"{"amount":7000}"#);
    let received = gateway.receive("audit", 10).await;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0]["rules"], json!(["audit-rule", "large"]));
    let settled = gateway
        .http
        .post(
            "/v1/queues/audit/acknowledge",
            &json!({"lease_tokens": [received[0]["lease_token"], "stale"]}),
        )
        .await
        .ok();
    assert_eq!(settled["succeeded"].as_array().expect("a list").len(), 1);
    assert_eq!(settled["failed"][0]["error"], "lease_lost");

    let again = gateway.http.publish(&placed).await.ok();
    assert_eq!(again["duplicate"], true);
    gateway
        .http
        .publish(&event("1", "order.placed", json!({})))
        .await
        .problem(409, "event-conflict");
    let small = gateway
        .http
        .publish(&event("2", "order.paid", json!({})))
        .await
        .ok();
    assert_eq!(small["rules"], json!([]));
    let unmatched = gateway.http.get("/v1/unmatched").await.ok();
    assert_eq!(unmatched["unmatched"][0]["count"], 1, "{unmatched}");
    assert_eq!(unmatched["unmatched"][0]["type"], "order.paid");
}
