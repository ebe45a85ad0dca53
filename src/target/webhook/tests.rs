//! Tests of sending, against servers on ports of their own.

mod server;

use std::io;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Response, StatusCode};

use self::server::{BODY_BYTES, Server, TlsServer, localhost_roots, respond};
use super::*;
use crate::event::json;
use crate::target::address::Range;
use crate::target::outcome::{Class, RetryAfter};
use crate::target::sign::{Key, Keys};

/// 2023-11-14T22:13:20Z.
const NOW: i64 = 1_700_000_000_000;

fn client() -> Client {
    Client::new(&Options {
        clock: Clock::manual(NOW),
        ..Options::default()
    })
}

fn webhook(url: &str) -> Webhook {
    Webhook {
        allow_private: true,
        ..Webhook::new(Endpoint::parse(url).unwrap())
    }
}

fn event() -> Event {
    let document = br#"{"specversion":"1.0","id":"e-1","source":"/shop","type":"t","traceparent":"00-origin","datacontenttype":"application/json","data":{"n":1.50}}"#;
    json::decode(&Bytes::from_static(document)).unwrap()
}

async fn send(client: &Client, webhook: &Webhook) -> Outcome {
    let event = event();
    let request = Request {
        event: &event,
        delivery_id: "dlv_42",
        attempt: 3,
        traceparent: Some("00-hop"),
        tracestate: Some("a=b"),
    };
    client.send(webhook, request).await
}

fn cause(outcome: &Outcome) -> Option<Cause> {
    match outcome {
        Outcome::Retry {
            status: None,
            cause,
            ..
        } => Some(*cause),
        _ => None,
    }
}

#[tokio::test]
async fn an_event_is_posted_in_binary_mode_with_the_context_of_this_hop() {
    let mut server = Server::start(async |_| respond(204, "")).await;
    let mut webhook = webhook(&server.url("/hook?token=t"));
    webhook.headers =
        Headers::new([("authorization", "Bearer x"), ("x-a", "1"), ("x-a", "2")]).unwrap();

    let outcome = send(&client(), &webhook).await;

    assert_eq!(outcome, Outcome::Delivered { status: Some(204) });
    let seen = server.seen().await;
    assert_eq!(seen.method(), Method::POST);
    assert_eq!(seen.uri(), "/hook?token=t");
    assert_eq!(seen.body(), r#"{"n":1.50}"#);
    for (name, value) in [
        ("content-type", "application/json"),
        ("content-length", "10"),
        ("ce-specversion", "1.0"),
        ("ce-id", "e-1"),
        ("ce-source", "/shop"),
        ("ce-type", "t"),
        ("ce-traceparent", "00-origin"),
        ("traceparent", "00-hop"),
        ("tracestate", "a=b"),
        ("dak-attempt", "3"),
        ("authorization", "Bearer x"),
    ] {
        assert_eq!(seen.headers()[name], value, "{name}");
    }
    let repeated = seen.headers().get_all("x-a").iter();
    assert!(repeated.eq(["1", "2"]));
    assert!(!seen.headers().contains_key("webhook-id"));
}

#[tokio::test]
async fn an_event_is_posted_in_structured_mode() {
    let mut server = Server::start(async |_| respond(200, "thanks")).await;
    let mut webhook = webhook(&server.url("/"));
    webhook.mode = Mode::Structured;

    let outcome = send(&client(), &webhook).await;

    assert_eq!(outcome.class(), Class::Delivered);
    let seen = server.seen().await;
    let content_type = seen.headers()["content-type"].to_str().unwrap();
    assert!(content_type.starts_with("application/cloudevents+json"));
    assert!(!seen.headers().contains_key("ce-id"));
    assert_eq!(json::decode(seen.body()).unwrap(), event());
}

#[tokio::test]
async fn what_was_sent_can_be_verified_with_either_key() {
    let secrets = [
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=",
    ];
    let keys: Vec<Key> = secrets
        .iter()
        .map(|text| Key::parse(text).unwrap())
        .collect();
    let mut server = Server::start(async |_| respond(200, "")).await;
    let mut webhook = webhook(&server.url("/"));
    webhook.keys = Keys::new(keys.clone()).unwrap();

    send(&client(), &webhook).await;

    let seen = server.seen().await;
    assert_eq!(seen.headers()["webhook-id"], "dlv_42");
    assert_eq!(seen.headers()["webhook-timestamp"], "1700000000");
    let text = seen.headers()["webhook-signature"].to_str().unwrap();
    let signatures: Vec<&str> = text.split(' ').collect();
    assert_eq!(signatures.len(), keys.len());
    for (key, signature) in keys.into_iter().zip(signatures) {
        let mut alone = HeaderMap::new();
        let verifier = Keys::new(vec![key]).unwrap();
        verifier.sign(&mut alone, "dlv_42", NOW, seen.body());
        assert_eq!(alone["webhook-signature"], signature);
    }
}

#[tokio::test]
async fn every_class_of_status_comes_back_as_its_outcome() {
    let server = Server::start(async |request: http::Request<Bytes>| {
        let status = request.uri().path()[1..].parse().unwrap();
        respond(status, "because")
    })
    .await;
    let client = client();
    for (status, class) in [
        (200, Class::Delivered),
        (202, Class::Delivered),
        (300, Class::Permanent),
        (304, Class::Permanent),
        (400, Class::Permanent),
        (401, Class::Unauthorized),
        (403, Class::Unauthorized),
        (404, Class::Retry),
        (408, Class::Retry),
        (409, Class::Retry),
        (410, Class::Gone),
        (413, Class::Permanent),
        (422, Class::Permanent),
        (425, Class::Retry),
        (429, Class::Throttled),
        (500, Class::Retry),
        (503, Class::Retry),
        (599, Class::Retry),
    ] {
        let outcome = send(&client, &webhook(&server.url(&format!("/{status}")))).await;
        assert_eq!(outcome.class(), class, "{status}");
        assert_eq!(outcome.status(), Some(status));
        if class != Class::Delivered && status != 304 {
            assert_eq!(outcome.excerpt(), "because", "{status}");
        }
    }
}

#[tokio::test]
async fn a_throttled_answer_carries_when_to_come_back() {
    let server = Server::start(async |_| {
        let mut response = respond(429, "slow down");
        response
            .headers_mut()
            .insert("retry-after", HeaderValue::from_static("30"));
        response
    })
    .await;
    let outcome = send(&client(), &webhook(&server.url("/"))).await;
    let expected = Outcome::Throttled {
        status: Some(429),
        retry_after: Some(RetryAfter {
            not_before: NOW + 30_000,
        }),
        excerpt: Excerpt::new("slow down"),
    };
    assert_eq!(outcome, expected);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut server = Server::start(async |_| {
        let mut response = respond(307, "");
        response
            .headers_mut()
            .insert("location", HeaderValue::from_static("/elsewhere"));
        response
    })
    .await;
    let outcome = send(&client(), &webhook(&server.url("/hook"))).await;
    assert_eq!(outcome.class(), Class::Permanent);
    assert_eq!(server.seen().await.uri(), "/hook");
    assert!(server.seen_no_more());
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_a_timeout() {
    let server = Server::start(async |_| std::future::pending().await).await;
    let mut webhook = webhook(&server.url("/"));
    webhook.timeout = Duration::from_millis(50);
    let outcome = send(&client(), &webhook).await;
    assert_eq!(cause(&outcome), Some(Cause::Timeout));
    assert_eq!(outcome.excerpt(), "no answer within 50 ms");
}

#[tokio::test]
async fn a_body_that_does_not_end_leaves_the_status_to_decide() {
    let server = Server::start(async |request: http::Request<Bytes>| {
        let start = stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"so far"))]);
        let body = Body::from_stream(start.chain(stream::pending()));
        let mut response = Response::new(body);
        *response.status_mut() = request.uri().path()[1..].parse().unwrap();
        response
    })
    .await;
    for (path, class, excerpt) in [
        ("/200", Class::Delivered, ""),
        ("/500", Class::Retry, "so far"),
    ] {
        let mut webhook = webhook(&server.url(path));
        webhook.timeout = Duration::from_millis(200);
        let outcome = send(&client(), &webhook).await;
        assert_eq!((outcome.class(), outcome.excerpt()), (class, excerpt));
    }
}

#[tokio::test]
async fn of_a_body_without_end_an_excerpt_is_read_and_its_connection_dropped() {
    let mut server = Server::start(async |_| {
        let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
        let endless = stream::repeat_with(move || Ok::<_, io::Error>(chunk.clone()));
        let mut response = Response::new(Body::from_stream(endless));
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response
    })
    .await;
    let (client, webhook) = (client(), webhook(&server.url("/")));
    for _ in 0..2 {
        let outcome = send(&client, &webhook).await;
        assert_eq!(outcome.class(), Class::Permanent);
        assert_eq!(outcome.excerpt(), "x".repeat(EXCERPT_BYTES_MAX));
        server.seen().await;
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = Server::start(async |_| respond(200, "ok")).await;
    let (client, webhook) = (client(), webhook(&server.url("/")));
    for _ in 0..5 {
        assert_eq!(send(&client, &webhook).await.class(), Class::Delivered);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_refused_connection_is_tried_again() {
    let server = Server::start(async |_| respond(200, "")).await;
    let url = server.url("/");
    server.stop().await;
    let outcome = send(&client(), &webhook(&url)).await;
    assert_eq!(cause(&outcome), Some(Cause::Connect));
    let text = outcome.excerpt();
    assert!(
        text.contains("refused") && text.contains("127.0.0.1"),
        "{text}"
    );
}

#[tokio::test]
async fn a_host_without_an_address_is_tried_again() {
    // A label of more than 63 characters is in no resolver.
    let url = format!("http://{}.invalid/", "a".repeat(64));
    let outcome = send(&client(), &webhook(&url)).await;
    assert_eq!(cause(&outcome), Some(Cause::Dns));
}

#[tokio::test]
async fn a_connection_that_breaks_off_is_tried_again() {
    let server = Server::start_raw(b"").await;
    let outcome = send(&client(), &webhook(&server)).await;
    assert_eq!(cause(&outcome), Some(Cause::Protocol));
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_tried_again() {
    let server = Server::start_raw(b"220 mail.example ESMTP\r\n").await;
    let outcome = send(&client(), &webhook(&server)).await;
    assert_eq!(cause(&outcome), Some(Cause::Protocol));
    assert!(!outcome.excerpt().is_empty());
}

#[tokio::test]
async fn an_answer_with_too_large_a_head_is_refused() {
    let mut answer = b"HTTP/1.1 200 OK\r\nx: ".to_vec();
    answer.extend(std::iter::repeat_n(b'x', 2 * RESPONSE_HEAD_BYTES_MAX));
    let server = Server::start_raw(&answer).await;
    let outcome = send(&client(), &webhook(&server)).await;
    assert_eq!(cause(&outcome), Some(Cause::Protocol));
}

#[tokio::test]
async fn private_addresses_are_refused_however_they_are_written() {
    let server = Server::start(async |_| respond(200, "")).await;
    let port = server.port();
    let client = client();
    for host in [
        "127.0.0.1",
        "localhost",
        "0x7f.1",
        "2130706433",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "169.254.169.254",
    ] {
        let mut webhook = webhook(&format!("http://{host}:{port}/"));
        webhook.allow_private = false;
        let outcome = send(&client, &webhook).await;
        assert_eq!(cause(&outcome), Some(Cause::AddressRefused), "{host}");
        let text = outcome.excerpt();
        assert!(text.contains("allow private addresses"), "{text}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_target_kept_from_private_addresses_does_not_share_anothers_connection() {
    let server = Server::start(async |_| respond(200, "")).await;
    let client = client();
    let allowed = webhook(&server.url("/"));
    let forbidden = Webhook {
        allow_private: false,
        ..allowed.clone()
    };
    assert_eq!(send(&client, &allowed).await.class(), Class::Delivered);
    let outcome = send(&client, &forbidden).await;
    assert_eq!(cause(&outcome), Some(Cause::AddressRefused));
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let server = TlsServer::start(b"HTTP/1.1 204 No Content\r\n\r\n");
    let outcome = send(&client(), &webhook(&server.url("localhost"))).await;
    assert_eq!(cause(&outcome), Some(Cause::Tls));
    assert!(outcome.excerpt().contains("certificate"), "{outcome:?}");
}

#[tokio::test]
async fn an_event_is_posted_over_tls_to_the_host_that_the_certificate_names() {
    let server = TlsServer::start(b"HTTP/1.1 204 No Content\r\n\r\n");
    let client = Client::with_tls(&Options::default(), |builder| {
        builder.with_root_certificates(localhost_roots())
    });
    let outcome = send(&client, &webhook(&server.url("localhost"))).await;
    assert_eq!(outcome.class(), Class::Delivered, "{outcome:?}");
    let outcome = send(&client, &webhook(&server.url("127.0.0.1"))).await;
    assert_eq!(cause(&outcome), Some(Cause::Tls), "{outcome:?}");
    assert!(server.heard().ends_with(&[b'}'; 1]));
    assert!(server.heard().len() > BODY_BYTES);
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_tried_again() {
    let server = Server::start(async |_| respond(200, "")).await;
    let url = server.url("/").replace("http:", "https:");
    let outcome = send(&client(), &webhook(&url)).await;
    assert_eq!(cause(&outcome), Some(Cause::Tls));
}

#[tokio::test]
async fn trace_context_that_no_header_can_carry_is_left_out() {
    let mut server = Server::start(async |_| respond(200, "")).await;
    let event = event();
    let request = Request {
        event: &event,
        delivery_id: "",
        attempt: 1,
        traceparent: Some("a\nb"),
        tracestate: None,
    };
    let outcome = client().send(&webhook(&server.url("/")), request).await;
    assert_eq!(outcome.class(), Class::Delivered);
    assert!(!server.seen().await.headers().contains_key("traceparent"));
}

#[test]
fn a_url_must_be_absolute_http_without_credentials() {
    let error = |text| Endpoint::parse(text).unwrap_err();
    assert!(matches!(error("/hook"), EndpointError::Syntax(_)));
    assert!(matches!(error("http://"), EndpointError::Syntax(_)));
    assert!(matches!(error("ftp://a/"), EndpointError::Scheme { .. }));
    assert!(matches!(error("file:///a"), EndpointError::Scheme { .. }));
    assert_eq!(error("https://u:p@a/"), EndpointError::Credentials);
    assert_eq!(error("https://u@a/"), EndpointError::Credentials);
    let long = format!("https://a/{}", "a".repeat(70_000));
    assert_eq!(error(&long), EndpointError::Unusable);
}

#[test]
fn a_url_written_as_a_refused_address_is_known_before_anything_is_sent() {
    let range = |text| Endpoint::parse(text).unwrap().refused();
    assert_eq!(range("http://0x7f.1/"), Some(Range::Loopback));
    assert_eq!(range("http://[fd00::1]:80/"), Some(Range::UniqueLocal));
    assert_eq!(range("https://1.1.1.1/"), None);
    assert_eq!(range("https://localhost/"), None);
}

#[test]
fn headers_that_dak_sets_cannot_be_set_on_a_target() {
    for name in [
        "Host",
        "content-type",
        "Content-Length",
        "transfer-encoding",
        "connection",
        "ce-id",
        "webhook-signature",
        "traceparent",
        "dak-attempt",
        "Keep-Alive",
    ] {
        let refused = Headers::new([(name, "x")]);
        let name = name.to_owned();
        assert_eq!(refused, Err(HeaderError::Reserved { name }));
    }
    assert!(matches!(
        Headers::new([("a b", "x")]),
        Err(HeaderError::Name { .. })
    ));
    assert!(matches!(
        Headers::new([("a", "x\r\nb: c")]),
        Err(HeaderError::Value { .. })
    ));
}

#[test]
fn no_secret_of_a_webhook_is_printed() {
    let mut webhook = webhook("https://example.com/hook?token=hidden");
    webhook.headers = Headers::new([("authorization", "Bearer hidden")]).unwrap();
    webhook.keys = Keys::new(vec![
        Key::parse("whsec_aGlkZGVuaGlkZGVuaGlkZGVuaGlkZGVu").unwrap(),
    ])
    .unwrap();
    let printed = format!("{webhook:?} {}", webhook.url);
    assert!(
        !printed.contains("hidden") && !printed.contains("104"),
        "{printed}"
    );
    assert!(
        printed.contains("https://example.com/hook?***"),
        "{printed}"
    );
}
