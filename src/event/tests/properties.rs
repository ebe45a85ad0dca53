//! Generated events survive every mode; generated garbage never panics.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::event::binding::{self, Message};
use crate::event::{Attribute, Data, Event, Value, check, is_json_media_type, json};

/// Text that a String attribute may hold.
fn text() -> impl Strategy<Value = String> {
    let allowed = any::<char>().prop_filter("allowed in a String", |character| {
        let code = u32::from(*character);
        !character.is_control() && code & 0xfffe != 0xfffe && !(0xfdd0..=0xfdef).contains(&code)
    });
    vec(
        prop_oneof![3 => proptest::char::range(' ', '~'), 1 => allowed],
        1..12,
    )
    .prop_map(String::from_iter)
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(Value::String),
        Just(Value::String(String::new())),
        any::<i32>().prop_map(Value::Integer),
        any::<bool>().prop_map(Value::Boolean),
    ]
}

/// A JSON value of any shape, as text without white space around it.
fn document() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-0.10E+400".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|string| serde_json::Value::from(string).to_string()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(" , "))),
            vec((any::<String>(), inner), 0..4).prop_map(|members| {
                let members: Vec<_> = members
                    .into_iter()
                    .map(|(key, value)| format!("{}:{value}", serde_json::Value::from(key)))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// A content type and data of a kind that suits it.
fn typed_data() -> impl Strategy<Value = (Option<&'static str>, Data)> {
    let json_types = [
        None,
        Some("application/json"),
        Some("A/B+JSON; charset=\"utf-8\""),
    ];
    let other_types = [Some("text/plain"), Some("application/xml; x=y")];
    let json = document().prop_map(|text| Data::Json(text.into()));
    let text = any::<String>().prop_map(|text| Data::Text(text.into()));
    let bytes = vec(any::<u8>(), 0..40).prop_map(|bytes| Data::Binary(bytes.into()));
    let any_type = json_types
        .into_iter()
        .chain(other_types)
        .collect::<Vec<_>>();
    prop_oneof![
        (proptest::sample::select(json_types.to_vec()), json),
        (proptest::sample::select(other_types.to_vec()), text),
        (proptest::sample::select(any_type.clone()), bytes),
        (proptest::sample::select(any_type), Just(Data::Absent)),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let optional = (
        proptest::option::of(text()),
        proptest::option::of(Just("2026-02-28T12:00:00.5+14:00")),
        proptest::option::of(Just("https://x.example/%20y?z#f")),
    );
    let extensions = btree_map("x[a-z0-9]{1,8}", value(), 0..6);
    (
        text(),
        "[a-zA-Z/?%25]{0,9}[a-z]",
        text(),
        optional,
        extensions,
        typed_data(),
    )
        .prop_map(
            |(
                id,
                source,
                kind,
                (subject, time, dataschema),
                extensions,
                (datacontenttype, data),
            )| {
                let mut attributes = vec![
                    Attribute::text("type", kind),
                    Attribute::text("specversion", "1.0"),
                    Attribute::text("source", source.replace('%', "%25")),
                    Attribute::text("id", id),
                ];
                attributes.extend(subject.map(|text| Attribute::text("subject", text)));
                attributes.extend(time.map(|text| Attribute::text("time", text)));
                attributes.extend(dataschema.map(|text| Attribute::text("dataschema", text)));
                attributes
                    .extend(datacontenttype.map(|text| Attribute::text("datacontenttype", text)));
                let extensions = extensions.into_iter();
                attributes.extend(extensions.map(|(name, value)| Attribute { name, value }));
                Event::new(attributes, data).expect("the generator obeys the rules")
            },
        )
}

/// The attributes as binary mode carries them: text, in no order.
fn texts(event: &Event) -> BTreeMap<String, String> {
    let pair =
        |attribute: &Attribute| (attribute.name.clone(), attribute.value.text().into_owned());
    event.attributes().iter().map(pair).collect()
}

proptest! {
    #[test]
    fn an_event_survives_structured_mode_whole(event in event()) {
        let (headers, body) = binding::encode_structured(&event);
        let again = binding::decode(&headers, body);
        prop_assert_eq!(again, Ok(Message::Structured(event)));
    }

    #[test]
    fn events_survive_a_batch_whole(events in vec(event(), 0..4)) {
        let (headers, body) = binding::encode_batch(&events.iter().collect::<Vec<_>>());
        let again = binding::decode(&headers, body).and_then(Message::into_events);
        prop_assert_eq!(again, Ok(events));
    }

    #[test]
    fn an_event_survives_storage_whole(event in event()) {
        let data = Data::from_code(event.data().kind_code(), event.data_bytes().clone()).unwrap();
        prop_assert_eq!(Event::from_stored(&event.attributes_to_json(), data), Ok(event));
    }

    #[test]
    fn an_event_survives_binary_mode_up_to_what_that_cannot_carry(event in event()) {
        let (headers, body) = binding::encode_binary(&event);
        let again = match binding::decode(&headers, body) {
            Ok(Message::Binary(again)) => again,
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        let mut expected = texts(&event);
        if let (Data::Json(_), None) = (event.data(), event.datacontenttype()) {
            expected.insert("datacontenttype".into(), "application/json".into());
        }
        prop_assert_eq!(texts(&again), expected);
        prop_assert_eq!(again.data_bytes(), event.data_bytes());
        let is_json = again.datacontenttype().is_some_and(is_json_media_type);
        match again.data() {
            Data::Absent => prop_assert!(event.data_bytes().is_empty()),
            Data::Json(text) => prop_assert!(is_json && json::is_document(text)),
            Data::Binary(bytes) => prop_assert!(!(is_json && json::is_document(bytes))),
            Data::Text(_) => prop_assert!(false, "binary mode knows no text"),
        }
    }

    #[test]
    fn what_a_decoder_accepts_obeys_all_rules(
        headers in vec(("(ce-[a-z]{0,3}|ce-(id|type|source|specversion|time)|content-type)", "[ -~é]{0,6}|1\\.0"), 0..8),
        body in vec(any::<u8>(), 0..60),
    ) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        if let Ok(events) = binding::decode(&map, body.into()).and_then(Message::into_events) {
            for event in events {
                prop_assert_eq!(check::attributes(event.attributes()), Ok(()));
                prop_assert_eq!(check::data(&event), Ok(()));
            }
        }
    }

    #[test]
    fn any_document_of_json_tokens_is_answered(
        tokens in vec(proptest::sample::select(vec![
            "{", "}", "[", "]", ":", ",", "\"id\"", "\"source\"", "\"specversion\"", "\"1.0\"", "\"type\"", "\"data\"",
            "\"data_base64\"", "null", "1", "\"\\ud800\"", "\"\\\"", " ",
        ]), 0..30),
    ) {
        let text = Bytes::from(tokens.concat());
        let _ = json::decode(&text);
        let _ = json::decode_batch(&text);
        let _ = Event::from_stored(std::str::from_utf8(&text).unwrap(), Data::Absent);
    }

    #[test]
    fn bytes_are_json_exactly_where_serde_says_so(
        text in "[\\[\\]{}:, \n]{0,3}(\"[a\\\\u0-3/\u{1f}é\"]{0,12}\"?|-?[0-2]{0,3}\\.?[0-2]{0,2}([eE][+-]?[0-2]?)?|true|null|fals)[\\]}, :\"1]{0,3}",
    ) {
        let serde = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(json::is_document(text.as_bytes()), serde, "{}", text);
    }

    #[test]
    fn generated_documents_are_json(text in document()) {
        prop_assert!(json::is_document(text.as_bytes()), "{}", text);
    }

    #[test]
    fn a_string_is_read_as_serde_reads_it(string in any::<String>(), ascii in "[ -~\\n]{0,40}") {
        for string in [string, ascii] {
            let escaped: String = string.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            for literal in [format!("\"{escaped}\""), serde_json::Value::from(string.clone()).to_string()] {
                let members = format!(r#""datacontenttype":"text/plain","data":{literal}"#);
                let event = super::structured(&members).unwrap();
                prop_assert_eq!(event.data_bytes(), string.as_bytes());
            }
        }
    }
}
