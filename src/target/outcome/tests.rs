//! Tests of reading answers.

use std::path::PathBuf;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::*;

/// 2023-11-14T22:13:20Z.
const NOW: Millis = 1_700_000_000_000;

fn class_of(status: u16) -> Class {
    classify(status, &HeaderMap::new(), Excerpt::default(), NOW).class()
}

fn retry_after(value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))])
}

fn after(seconds: Millis) -> Option<RetryAfter> {
    Some(RetryAfter {
        not_before: NOW + seconds * 1000,
    })
}

#[test]
fn every_status_has_the_class_of_the_default_table() {
    for status in 100..=999 {
        let expected = match status {
            200..=299 => Class::Delivered,
            401 | 403 => Class::Unauthorized,
            404 | 408 | 409 | 425 => Class::Retry,
            410 => Class::Gone,
            429 => Class::Throttled,
            300..=499 => Class::Permanent,
            _ => Class::Retry,
        };
        assert_eq!(class_of(status), expected, "{status}");
    }
}

#[test]
fn a_503_throttles_only_when_it_says_when_to_come_back() {
    let says_when = classify(503, &retry_after("120"), Excerpt::default(), NOW);
    let expected = Outcome::Throttled {
        status: Some(503),
        retry_after: after(120),
        excerpt: Excerpt::default(),
    };
    assert_eq!(says_when, expected);
    let unreadable = classify(503, &retry_after("soon"), Excerpt::default(), NOW);
    assert_eq!(unreadable.class(), Class::Retry);
}

#[test]
fn a_retry_after_on_another_retried_status_is_kept() {
    let outcome = classify(502, &retry_after("7"), Excerpt::new("oops"), NOW);
    let expected = Outcome::Retry {
        status: Some(502),
        cause: Cause::Status,
        retry_after: after(7),
        excerpt: Excerpt::new("oops"),
    };
    assert_eq!(outcome, expected);
}

#[test]
fn a_targets_own_table_goes_before_the_default_one() {
    let statuses: Statuses = [(404, Class::Permanent), (302, Class::Delivered)]
        .into_iter()
        .collect();
    let class = |status| {
        statuses
            .classify(status, &HeaderMap::new(), Excerpt::default(), NOW)
            .class()
    };
    assert_eq!(class(404), Class::Permanent);
    assert_eq!(class(302), Class::Delivered);
    assert_eq!(class(410), Class::Gone);
}

#[test]
fn retry_after_reads_seconds_and_all_three_forms_of_a_date() {
    let in_1994 = Some(RetryAfter {
        not_before: 784_111_777_000,
    });
    for (value, expected) in [
        ("0", after(0)),
        (" 120\t", after(120)),
        ("007", after(7)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", in_1994),
        ("Sunday, 06-Nov-94 08:49:37 GMT", in_1994),
        ("Sun Nov  6 08:49:37 1994", in_1994),
        (
            "Sat, 31 Dec 2016 23:59:60 GMT",
            Some(RetryAfter {
                not_before: 1_483_228_799_000,
            }),
        ),
        // Two digits: at most fifty years ahead of now (2023), else in the past.
        (
            "Saturday, 01-Jan-73 00:00:00 GMT",
            Some(RetryAfter {
                not_before: 3_250_454_400_000,
            }),
        ),
        (
            "Tuesday, 01-Jan-74 00:00:00 GMT",
            Some(RetryAfter {
                not_before: 126_230_400_000,
            }),
        ),
        (
            "99999999999999999999999999",
            Some(RetryAfter {
                not_before: Millis::MAX,
            }),
        ),
    ] {
        assert_eq!(RetryAfter::parse(value, NOW), expected, "{value:?}");
    }
}

#[test]
fn a_retry_after_that_is_neither_seconds_nor_a_date_says_nothing() {
    for value in [
        "",
        " ",
        "-1",
        "+1",
        "1.5",
        "1e3",
        "soon",
        "12 monkeys",
        "Sun, 31 Feb 2021 00:00:00 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 08:49:37:00 GMT",
        "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT GMT",
        "2099-10-21T07:28:00Z",
        "Sunday, 06-Nov-é 08:49:37 GMT",
        "Sun, 06 Nov 99999 08:49:37 GMT",
    ] {
        assert_eq!(RetryAfter::parse(value, NOW), None, "{value:?}");
    }
}

#[test]
fn of_several_retry_after_headers_the_latest_counts() {
    let mut headers = retry_after("5");
    headers.append(RETRY_AFTER, HeaderValue::from_static("50"));
    headers.append(RETRY_AFTER, HeaderValue::from_static("never"));
    assert_eq!(RetryAfter::from_headers(&headers, NOW), after(50));
}

#[test]
fn an_excerpt_is_bounded_and_holds_no_control_characters() {
    let long = "é".repeat(EXCERPT_BYTES_MAX);
    assert_eq!(Excerpt::new(&long).as_str().len(), EXCERPT_BYTES_MAX);
    let bytes = vec![0xff; 2 * EXCERPT_BYTES_MAX];
    assert!(Excerpt::from_bytes(&bytes).as_str().len() <= EXCERPT_BYTES_MAX);
    let dirty = Excerpt::from_bytes(b"a\0b\x1b[2J\r\n\tc");
    assert_eq!(dirty.as_str(), "a\u{fffd}b\u{fffd}[2J\n\tc");
}

#[test]
fn every_name_leads_back_to_its_value() {
    for class in Class::ALL {
        assert_eq!(Class::from_name(class.name()), Some(class));
    }
    for cause in Cause::ALL {
        assert_eq!(Cause::from_name(cause.name()), Some(cause));
    }
    for reason in Reason::ALL {
        assert_eq!(Reason::from_name(reason.name()), Some(reason));
    }
    assert_eq!(Reason::from_name("bored"), None);
}

#[test]
fn answers_are_read_as_the_shared_cases_say() {
    let Some(cases) = shared_cases() else { return };
    let mut passed = 0;
    let mut failed = Vec::new();
    for case in cases {
        match check(&case) {
            Ok(()) => passed += 1,
            Err(fault) => failed.push(format!("{}: {fault}", case["id"])),
        }
    }
    println!(
        "delivery_response: {passed} passed, {} failed",
        failed.len()
    );
    assert!(passed > 0 && failed.is_empty(), "{failed:#?}");
}

fn check(case: &Value) -> Result<(), String> {
    let answer = &case["target_response"];
    let status = u16::try_from(answer["status"].as_u64().unwrap()).unwrap();
    let mut headers = HeaderMap::new();
    for pair in answer["headers"].as_array().unwrap() {
        let name: HeaderName = pair[0].as_str().unwrap().parse().unwrap();
        headers.append(name, pair[1].as_str().unwrap().parse().unwrap());
    }
    let outcome = classify(status, &headers, Excerpt::default(), NOW);

    let expect = &case["expect"];
    let class = match outcome.class() {
        Class::Delivered => "success",
        Class::Retry | Class::Unauthorized => "retry",
        Class::Throttled => "throttled",
        Class::Permanent => "permanent_failure",
        Class::Gone => "target_gone",
    };
    let classes = match &expect["class_any_of"] {
        Value::Array(classes) => classes.clone(),
        _ => vec![expect["class"].clone()],
    };
    if !classes.iter().any(|expected| expected == class) {
        return Err(format!("read as {class}, expected {classes:?}"));
    }
    let not_before = match &outcome {
        Outcome::Throttled { retry_after, .. } | Outcome::Retry { retry_after, .. } => {
            retry_after.map(|retry_after| retry_after.not_before)
        }
        _ => None,
    };
    if let Some(seconds) = expect["not_before_s"].as_i64()
        && not_before != Some(NOW + seconds * 1000)
    {
        return Err(format!("not before {not_before:?}"));
    }
    if let Some(date) = expect["not_before_http_date"].as_str()
        && (not_before.is_none() || not_before != http_date(date, NOW))
    {
        return Err(format!("not before {not_before:?}"));
    }
    Ok(())
}

/// The cases of reading a target's answer; `None`, said aloud, where there are none.
fn shared_cases() -> Option<Vec<Value>> {
    let root = std::env::var_os("DAK_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let file = root.join("vectors/cloudevents/webhook.json");
    let Ok(text) = std::fs::read_to_string(&file) else {
        assert!(
            std::env::var_os("CI").is_none(),
            "{} must exist where CI is set",
            file.display()
        );
        println!("skipped: {} does not exist", file.display());
        return None;
    };
    let suite: Value = serde_json::from_str(&text).unwrap();
    let cases = suite["cases"].as_array().unwrap().iter();
    Some(
        cases
            .filter(|case| case["kind"] == "delivery_response")
            .cloned()
            .collect(),
    )
}
