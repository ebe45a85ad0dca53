//! The official crate as the client: what it writes is taken, and what comes out it can read.

use bytes::Bytes;
use cloudevents::{AttributesReader as _, Data, EventBuilder as _, EventBuilderV10};
use dak::event::{interop, json as codec};
use serde_json::json;

use crate::support::{Gateway, Receiver};

fn placed(id: &str) -> EventBuilderV10 {
    EventBuilderV10::new()
        .id(id)
        .ty("order.placed")
        .source("https://shop.example/orders")
        .subject("o-1")
        .time("2024-02-29T12:00:00.5Z")
        .extension("partitionkey", "customer-7")
        .extension("attempt", 3_i64)
        .extension("sampled", true)
}

/// Publishes an event in structured mode, as the crate writes it.
async fn publish(gateway: &Gateway, event: &cloudevents::Event) {
    let text = serde_json::to_string(event).expect("the crate writes events");
    let receipt = gateway
        .http
        .publish_text("/v1/events", "application/cloudevents+json", text)
        .await
        .ok();
    assert_eq!(receipt["targets"], json!(["audit", "hook"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_the_official_crate_go_in_and_come_out_the_same() {
    let gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    gateway
        .webhook("hook", &receiver.url(), json!({"mode": "structured"}))
        .await;
    gateway
        .http
        .put("/v1/targets/audit", &json!({"type": "pull"}))
        .await
        .ok();
    gateway
        .rule(
            "orders",
            &json!({"type": ["order.placed"]}),
            &["audit", "hook"],
        )
        .await;
    let events = [
        placed("json").data(
            "application/json",
            json!({"amount": 7, "items": ["a", null]}),
        ),
        placed("text").data("text/plain", "Grüße".to_owned()),
        placed("bytes").data("application/octet-stream", vec![0, 159, 146, 150]),
        placed("none"),
    ]
    .map(|builder| builder.build().expect("an event"));
    for (at, event) in events.iter().enumerate() {
        publish(&gateway, event).await;
        let received = gateway.receive("audit", 1).await;
        let pulled = received[0]["event"].to_string();
        let pushed = receiver.wait_for(at + 1).await.pop().expect("a delivery");
        for text in [Bytes::from(pulled), pushed.body] {
            let read: cloudevents::Event =
                serde_json::from_slice(&text).expect("the crate reads it");
            assert_eq!(read, *event);
            let ours = codec::decode(&text).expect("a valid event");
            assert_eq!(
                interop::to_sdk(&ours).expect("the crate can hold it"),
                *event
            );
            let converted = interop::from_sdk(event.clone()).expect("a valid event");
            assert_eq!(converted.id(), ours.id());
            assert_eq!(converted.data(), ours.data());
        }
    }
}

#[tokio::test]
async fn the_official_crate_reads_what_another_producer_sent() {
    let gateway = Gateway::start().await;
    gateway.pull_rule("audit", "order.placed").await;
    let text = r#"{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed",
        "time":"2024-01-01T05:30:00+05:30","count":5,"datacontenttype":"application/json","data":{"a":[1,2]}}"#;
    gateway
        .http
        .publish_text("/v1/events", "application/cloudevents+json", text)
        .await
        .ok();
    let received = gateway.receive("audit", 1).await;
    let event: cloudevents::Event =
        serde_json::from_value(received[0]["event"].clone()).expect("the crate reads it");
    assert_eq!(event.id(), "1");
    assert_eq!(event.source().as_str(), "/shop");
    assert_eq!(
        event.time().expect("a time").to_rfc3339(),
        "2024-01-01T00:00:00+00:00"
    );
    assert_eq!(event.data(), Some(&Data::Json(json!({"a": [1, 2]}))));
}
