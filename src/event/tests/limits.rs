//! Every limit, at it and one beyond.

use bytes::Bytes;

use super::{REQUIRED, binary, structured};
use crate::event::json::{self, BATCH_EVENTS_MAX, DEPTH_MAX, Fault};
use crate::event::{ATTRIBUTES_MAX, Attribute, Data, Error, Event, NAME_BYTES_MAX, binding};

fn nested(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

#[test]
fn data_nests_as_deep_as_the_limit_in_every_mode() {
    let deep = nested(DEPTH_MAX - 1);
    assert!(serde_json::from_str::<serde_json::Value>(&deep).is_ok());
    assert!(structured(&format!(r#""data":{deep}"#)).is_ok());
    let batch = format!(r#"[{{{REQUIRED},"data":{deep}}}]"#);
    assert!(json::decode_batch(&Bytes::from(batch)).unwrap()[0].is_ok());
    let body: &'static str = deep.leak();
    let event = binary(&[("content-type", "text/json")], body).unwrap();
    assert!(matches!(event.data(), Data::Json(_)));
}

#[test]
fn deeper_data_is_refused_in_json_and_opaque_in_binary_mode() {
    for levels in [DEPTH_MAX, 10_000, 1_000_000] {
        let deep = nested(levels);
        let error = structured(&format!(r#""data":{deep}"#)).unwrap_err();
        assert!(matches!(error, Error::MalformedJson(it) if it.fault == Fault::TooDeep));
        let unclosed = "[".repeat(levels);
        let error = structured(&format!(r#""data":{unclosed}"#)).unwrap_err();
        assert_eq!(error.reason(), "malformed_json");
        let error = json::decode_batch(&Bytes::from(format!("[[{deep}]]"))).unwrap_err();
        assert_eq!(error.reason(), "malformed_json");
        let body: &'static str = deep.leak();
        let event = binary(&[("content-type", "text/json")], body).unwrap();
        assert!(matches!(event.data(), Data::Binary(_)));
        assert_eq!(event.data_json(), None);
    }
}

/// This many extensions, each with its own name.
fn extensions(count: usize) -> String {
    let members: Vec<_> = (0..count).map(|index| format!(r#""x{index}":1"#)).collect();
    members.join(",")
}

#[test]
fn an_event_has_as_many_attributes_as_the_limit_and_no_more() {
    let room = ATTRIBUTES_MAX - 4;
    let event = structured(&extensions(room)).unwrap();
    assert_eq!(event.attributes().len(), ATTRIBUTES_MAX);
    assert_eq!(binding::encode_binary(&event).0.len(), ATTRIBUTES_MAX);
    let refused = Err(Error::TooManyAttributes {
        max: ATTRIBUTES_MAX,
    });
    assert_eq!(structured(&extensions(room + 1)), refused);
    assert_eq!(structured(&extensions(room * 10)), refused);
}

#[test]
fn a_repeated_attribute_is_found_among_many() {
    for count in [3, 50, 5_000] {
        let members = extensions(count) + r#","x2":1"#;
        let name = "x2".into();
        assert_eq!(
            structured(&members),
            Err(Error::DuplicateAttribute { name })
        );
    }
}

#[test]
fn a_name_is_as_long_as_a_header_can_be() {
    let longest = "n".repeat(NAME_BYTES_MAX);
    let event = structured(&format!(r#""{longest}":"x""#)).unwrap();
    let (headers, body) = binding::encode_binary(&event);
    assert!(headers.contains_key(format!("ce-{longest}")));
    assert!(binding::decode(&headers, body).is_ok());
    let error = structured(&format!(r#""{longest}n":"x""#)).unwrap_err();
    assert_eq!(error.reason(), "invalid_attribute_name");
    assert!(
        error.attribute().unwrap().len() < 100,
        "an error does not grow with its input"
    );
}

#[test]
fn a_batch_has_as_many_events_as_the_limit_and_no_more() {
    let batch = |count| {
        let members = vec![format!("{{{REQUIRED}}}"); count];
        json::decode_batch(&Bytes::from(format!("[{}]", members.join(","))))
    };
    assert_eq!(batch(BATCH_EVENTS_MAX).unwrap().len(), BATCH_EVENTS_MAX);
    let max = BATCH_EVENTS_MAX;
    assert_eq!(
        batch(BATCH_EVENTS_MAX + 1),
        Err(Error::BatchTooLong { max })
    );
}

#[test]
fn an_event_built_by_hand_obeys_the_same_limits() {
    let many = (0..=ATTRIBUTES_MAX).map(|index| Attribute::text(format!("x{index}"), ""));
    let error = Event::new(many.collect(), Data::Absent).unwrap_err();
    assert_eq!(error.reason(), "too_many_attributes");
}
