//! The rules on attributes and data, the accessors, and the stored form.

use bytes::Bytes;

use super::{REQUIRED, binary, structured};
use crate::event::binding;
use crate::event::json::{self, Fault, Malformed};
use crate::event::{Attribute, Data, Error, Event, Value, ValueFault, is_json_media_type};

fn required() -> Vec<Attribute> {
    [
        ("specversion", "1.0"),
        ("id", "1"),
        ("source", "/s"),
        ("type", "t"),
    ]
    .map(|(name, value)| Attribute::text(name, value))
    .to_vec()
}

fn with(name: &str, value: &str) -> Result<Event, Error> {
    let mut attributes = required();
    attributes.push(Attribute::text(name, value));
    Event::new(attributes, Data::Absent)
}

fn of_type(datacontenttype: &str, data: Data) -> Result<Event, Error> {
    let mut attributes = required();
    attributes.push(Attribute::text("datacontenttype", datacontenttype));
    Event::new(attributes, data)
}

#[test]
fn attributes_are_read_by_name_as_they_came() {
    let event = structured(
        r#""subject":"a","time":"2026-01-01T00:00:00.10+01:00","dataschema":"HTTPS://X","n":-7,"b":true"#,
    )
    .unwrap();
    assert_eq!(
        (event.id(), event.source(), event.event_type()),
        ("1", "/s", "t")
    );
    assert_eq!(event.specversion(), "1.0");
    assert_eq!(event.subject(), Some("a"));
    assert_eq!(event.time(), Some("2026-01-01T00:00:00.10+01:00"));
    assert_eq!(event.dataschema(), Some("HTTPS://X"));
    assert_eq!(event.datacontenttype(), None);
    assert_eq!(event.attribute("n"), Some(&Value::Integer(-7)));
    assert_eq!(event.attribute("n").unwrap().text(), "-7");
    assert_eq!(event.attribute("b").unwrap().text(), "true");
    assert_eq!(event.attribute("data"), None);
}

#[test]
fn an_event_is_built_only_from_attributes_that_obey_the_rules() {
    assert!(Event::new(required(), Data::Absent).is_ok());
    assert_eq!(
        Event::new(required()[1..].to_vec(), Data::Absent),
        Err(Error::MissingAttribute {
            name: "specversion"
        })
    );
    assert_eq!(
        with("id", "2"),
        Err(Error::DuplicateAttribute { name: "id".into() })
    );
    assert_eq!(
        with("Upper", "x"),
        Err(Error::InvalidAttributeName {
            name: "Upper".into()
        })
    );
    assert_eq!(
        with("subject", ""),
        Err(Error::EmptyAttribute { name: "subject" })
    );
    assert!(with("ext", "").is_ok());
    let mut attributes = required();
    attributes[1].value = Value::Integer(1);
    assert_eq!(
        Event::new(attributes, Data::Absent).unwrap_err().reason(),
        "invalid_attribute_type"
    );
}

#[test]
fn an_event_is_built_only_with_data_that_suits_its_type() {
    let json = || Data::Json(Bytes::from_static(b"{}"));
    let text = || Data::Text(Bytes::from_static(b"{}"));
    assert!(Event::new(required(), json()).is_ok());
    assert_eq!(
        Event::new(required(), text()).unwrap_err().reason(),
        "data_type_mismatch"
    );
    assert!(of_type("text/plain", text()).is_ok());
    assert_eq!(
        of_type("text/plain", json()).unwrap_err().reason(),
        "data_type_mismatch"
    );
    let broken = Data::Json(Bytes::from_static(b"{"));
    assert_eq!(
        Event::new(required(), broken).unwrap_err().reason(),
        "malformed_json"
    );
    let not_utf8 = Data::Text(Bytes::from_static(b"\xff"));
    assert_eq!(
        of_type("text/plain", not_utf8).unwrap_err().reason(),
        "data_type_mismatch"
    );
}

#[test]
fn a_source_is_a_uri_reference() {
    for good in [
        "a",
        "#",
        "?",
        "/",
        "//",
        "//h:",
        "//u:p@h:80/x",
        "urn:a:b",
        "a:",
        "mailto:a@b",
        "a/b:c",
        "%41",
        "http://[::1]:80/",
        "http://[v7.a:b]/",
        "http://[::ffff:1.2.3.4]",
        "a?b?c/d#e?f/g",
        "//h?q",
        "x://@",
    ] {
        assert!(with("x", good).is_ok());
        let event = structured("").unwrap().into_parts().0;
        let event: Vec<_> = event
            .into_iter()
            .map(|it| renamed(it, "source", good))
            .collect();
        assert!(Event::new(event, Data::Absent).is_ok(), "{good:?}");
    }
    for bad in [
        " ",
        "a b",
        "%",
        "%4",
        "%4g",
        "é",
        "a#b#c",
        "1:x",
        ":x",
        "http://[::1",
        "http://::1]",
        "//h:8x",
        "http://[::1]x",
        "//a@b@c",
        "<",
        "\\",
        "^",
        "`",
        "{",
        "|",
        "\"",
        "http://[v.a]",
        "http://[fe80::1%25en0]",
    ] {
        let event = structured("").unwrap().into_parts().0;
        let event: Vec<_> = event
            .into_iter()
            .map(|it| renamed(it, "source", bad))
            .collect();
        assert_eq!(
            Event::new(event, Data::Absent),
            Err(Error::InvalidAttributeValue {
                name: "source".into(),
                fault: ValueFault::UriReference
            }),
            "{bad:?}"
        );
    }
}

fn renamed(mut attribute: Attribute, name: &str, value: &str) -> Attribute {
    if attribute.name == name {
        attribute.value = Value::String(value.to_owned());
    }
    attribute
}

#[test]
fn a_dataschema_is_an_absolute_uri() {
    for good in ["http://x/y#z", "urn:x", "a+b-c.d:", "file:///x"] {
        assert!(with("dataschema", good).is_ok(), "{good:?}");
    }
    for bad in ["x", "//x", "/x:y", "?x:y", "#x:y", "1a:x", "a_b:x"] {
        let fault = ValueFault::AbsoluteUri;
        let name = "dataschema".into();
        assert_eq!(
            with("dataschema", bad),
            Err(Error::InvalidAttributeValue { name, fault }),
            "{bad:?}"
        );
    }
}

#[test]
fn a_time_is_an_rfc_3339_timestamp_of_a_day_that_exists() {
    for good in [
        "0000-01-01T00:00:00Z",
        "2024-02-29t23:59:60z",
        "2000-02-29T00:00:00-00:00",
        "2026-06-30T00:00:00.0Z",
    ] {
        assert!(with("time", good).is_ok(), "{good:?}");
    }
    for bad in [
        "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:61Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00,5Z",
        "2026-01-01T00:00:00+0100",
        "2026-01-01T00:00:00+01:60",
        "2026-01-01T00:00:00ZZ",
        "2026-01-01T00:00:00\u{2212}01:00",
        "２026-01-01T00:00:00Z",
        "2026-01-01",
    ] {
        let fault = ValueFault::Timestamp;
        let name = "time".into();
        assert_eq!(
            with("time", bad),
            Err(Error::InvalidAttributeValue { name, fault }),
            "{bad:?}"
        );
    }
}

#[test]
fn a_datacontenttype_is_a_media_type() {
    for good in [
        "a/b",
        "a/b;c=d",
        "a/b ; c = \"d;\\\"e\" ; f=g",
        "a/b;",
        "a/b;;c=d",
        "application/x+json",
        "text/x; a=\"é\"",
    ] {
        assert!(with("datacontenttype", good).is_ok(), "{good:?}");
    }
    for bad in [
        "a",
        "/",
        "a/",
        "/b",
        "a/b/c",
        "a b/c",
        "a/b c",
        " a/b",
        "a/b ",
        "a/b;c",
        "a/b;c=",
        "a/b;=d",
        "a/b;c=\"d",
        "a/b;c=d e",
        "a/b,c/d",
        "a/(b)",
        "a/é",
        "a/b;c=\"d\"e",
    ] {
        let fault = ValueFault::MediaType;
        let name = "datacontenttype".into();
        assert_eq!(
            with("datacontenttype", bad),
            Err(Error::InvalidAttributeValue { name, fault }),
            "{bad:?}"
        );
    }
}

#[test]
fn json_is_told_by_subtype_or_suffix_in_any_case() {
    for yes in [
        "application/json",
        "TEXT/JSON",
        "a/b+json",
        "a/b+JSON;c=d",
        " application/json ; x=y",
        "image/svg+Json",
    ] {
        assert!(is_json_media_type(yes), "{yes}");
    }
    for no in [
        "json",
        "application/jsonx",
        "application/x-ndjson",
        "application/xml",
        "a/json+b",
        "",
        "text/plain;x=a/json",
        "a/é+jso",
    ] {
        assert!(!is_json_media_type(no), "{no}");
    }
}

#[test]
fn text_has_neither_control_characters_nor_noncharacters() {
    for bad in [
        "\0",
        "\n",
        "\u{7f}",
        "\u{9f}",
        "\u{fdd0}",
        "\u{fdef}",
        "\u{fffe}",
        "\u{10ffff}",
    ] {
        let fault = ValueFault::ForbiddenCharacter;
        let name = "ext".into();
        assert_eq!(
            with("ext", bad),
            Err(Error::InvalidAttributeValue { name, fault }),
            "{bad:?}"
        );
    }
    for good in [
        "\u{a0}",
        "\u{fdcf}",
        "\u{fdf0}",
        "\u{fffd}",
        "\u{10fffd}",
        "😀",
    ] {
        assert!(with("ext", good).is_ok(), "{good:?}");
    }
}

#[test]
fn an_unsupported_version_is_told_before_what_only_version_1_0_forbids() {
    let event = json::decode(&Bytes::from_static(
        br#"{"extensions":{},"id":1,"specversion":"0.1"}"#,
    ));
    assert_eq!(
        event,
        Err(Error::UnsupportedSpecversion {
            found: "0.1".into()
        })
    );
}

#[test]
fn data_keeps_its_bytes_and_its_kind() {
    let json = structured(r#""data": { "n" : 1.0 } "#).unwrap();
    assert_eq!(
        *json.data(),
        Data::Json(Bytes::from_static(br#"{ "n" : 1.0 }"#))
    );
    let text = structured(r#""data":"a\n\ud83d\ude00","datacontenttype":"text/plain""#).unwrap();
    assert_eq!(*text.data(), Data::Text("a\n😀".into()));
    let null = structured(r#""data":null,"datacontenttype":"text/plain""#).unwrap();
    assert_eq!(*null.data(), Data::Absent);
    let empty = structured(r#""data_base64":"""#).unwrap();
    assert_eq!(*empty.data(), Data::Binary(Bytes::new()));
    let both_null = structured(r#""data_base64":null,"data":null"#).unwrap();
    assert_eq!(*both_null.data(), Data::Json(Bytes::from_static(b"null")));
}

#[test]
fn data_is_a_slice_of_the_document() {
    let document = Bytes::from(format!(r#"{{{REQUIRED},"data":[1,2]}}"#));
    let event = json::decode(&document).unwrap();
    let offset = document.len() - "[1,2]}".len();
    assert_eq!(event.data_bytes().as_ptr(), document[offset..].as_ptr());
}

#[test]
fn data_is_json_for_matching_only_where_its_type_says_so_and_its_bytes_are() {
    let json = |members: &str| structured(members).unwrap().data_json().map(<[u8]>::to_vec);
    assert_eq!(json(r#""data":1"#), Some(b"1".to_vec()));
    let base64 = r#""data_base64":"W10=","datacontenttype":"#;
    assert_eq!(
        json(&format!(r#"{base64}"a/b+json""#)),
        Some(b"[]".to_vec())
    );
    assert_eq!(json(&format!(r#"{base64}"a/b""#)), None);
    assert_eq!(json(r#""data_base64":"W10=""#), None);
    assert_eq!(
        json(r#""data_base64":"W1s=","datacontenttype":"a/json""#),
        None
    );
    assert_eq!(json(r#""data":"1","datacontenttype":"text/plain""#), None);
    assert_eq!(json(""), None);
}

#[test]
fn data_comes_back_from_the_code_of_its_kind() {
    let bytes = Bytes::from_static(b"1");
    for data in [
        Data::Absent,
        Data::Json(bytes.clone()),
        Data::Text(bytes.clone()),
        Data::Binary(bytes.clone()),
    ] {
        assert_eq!(
            Data::from_code(data.kind_code(), data.bytes().clone()),
            Some(data)
        );
    }
    assert_eq!(Data::from_code(4, bytes), None);
}

#[test]
fn an_event_comes_back_from_storage_with_native_types_and_order() {
    let event = structured(r#""z":1,"a":false,"q":"\"\\","data":[]"#).unwrap();
    let stored = event.attributes_to_json();
    assert_eq!(
        stored,
        r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","z":1,"a":false,"q":"\"\\"}"#
    );
    assert_eq!(Event::from_stored(&stored, event.data().clone()), Ok(event));
    assert_eq!(
        Event::from_stored("{}", Data::Absent),
        Err(Error::MissingAttribute {
            name: "specversion"
        })
    );
    assert_eq!(
        Event::from_stored("[]", Data::Absent),
        Err(Error::NotAnObject)
    );
}

#[test]
fn what_is_no_json_is_told_with_its_place() {
    for (text, fault, at) in [
        ("", Fault::UnexpectedEnd, 0),
        ("\u{feff}{}", Fault::UnexpectedCharacter, 0),
        ("{} x", Fault::TrailingText, 3),
        (r#"{"a":01}"#, Fault::UnexpectedCharacter, 6),
        (r#"{"a":1.}"#, Fault::UnexpectedCharacter, 7),
        (r#"{"a":1e}"#, Fault::UnexpectedCharacter, 7),
        (r#"{"a":+1}"#, Fault::UnexpectedCharacter, 5),
        (r#"{"a":-}"#, Fault::UnexpectedCharacter, 6),
        (r#"{"a":nul}"#, Fault::UnexpectedCharacter, 8),
        (r#"{"a":"\x"}"#, Fault::Escape, 6),
        (r#"{"a":"\u12g4"}"#, Fault::Escape, 6),
        (r#"{"a":"\ud800"}"#, Fault::LoneSurrogate, 6),
        (r#"{"a":"\ud800\u0041"}"#, Fault::LoneSurrogate, 6),
        (r#"{"a":"\udc00\ud800"}"#, Fault::LoneSurrogate, 6),
        (r#"{"\ud800":1}"#, Fault::LoneSurrogate, 2),
        ("{\"a\":\"\t\"}", Fault::ControlCharacter, 6),
        (r#"{"a":1,}"#, Fault::UnexpectedCharacter, 7),
        (r#"{"a":[1,]}"#, Fault::UnexpectedCharacter, 8),
        (r#"{"a":[1}}"#, Fault::UnexpectedCharacter, 7),
        (r#"{"a":{"b":1]}"#, Fault::UnexpectedCharacter, 11),
        (r#"{"a":{,}}"#, Fault::UnexpectedCharacter, 6),
        (r#"{"a" 1}"#, Fault::UnexpectedCharacter, 5),
        (r#"{a:1}"#, Fault::UnexpectedCharacter, 1),
        (r#"{"a":'b'}"#, Fault::UnexpectedCharacter, 5),
        (r#"{"a":"b"#, Fault::UnexpectedEnd, 7),
        (r#"{"a":"b\"#, Fault::UnexpectedEnd, 7),
        (r#"{"a":1"#, Fault::UnexpectedEnd, 6),
        (r#"{"a":[[]"#, Fault::UnexpectedEnd, 8),
    ] {
        let error = json::decode(&Bytes::from(text)).unwrap_err();
        assert_eq!(
            error,
            Error::MalformedJson(Malformed { fault, at }),
            "{text}"
        );
    }
}

#[test]
fn malformed_json_is_told_before_a_broken_rule() {
    let error = json::decode(&Bytes::from_static(br#"{"Bad":1} x"#)).unwrap_err();
    assert_eq!(error.reason(), "malformed_json");
}

#[test]
fn every_bad_member_of_a_batch_is_told_and_the_good_ones_are_kept() {
    let batch =
        format!(r#"[{{{REQUIRED}}},{{}},7,{{{REQUIRED},"id":"2"}},{{{REQUIRED},"data":2}}]"#);
    let members = json::decode_batch(&Bytes::from(batch)).unwrap();
    assert_eq!(members.len(), 5);
    assert!(members[0].is_ok() && members[4].is_ok());
    let error = binding::Message::Batch(members).into_events().unwrap_err();
    assert_eq!(
        (error.reason(), error.index()),
        ("batch_member_invalid", Some(1))
    );
    let told: Vec<_> = error
        .members()
        .iter()
        .map(|(index, error)| (*index, error.reason()))
        .collect();
    let expected = [
        (1, "missing_attribute"),
        (2, "not_an_object"),
        (3, "duplicate_attribute"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_batch_of_one_foreign_version_is_unsupported_and_of_several_is_mixed() {
    let version = |version: &str| {
        format!(r#"{{"id":"1","source":"/s","type":"t","specversion":"{version}"}}"#)
    };
    let refused = |members: &[String]| {
        let batch = format!("[{}]", members.join(","));
        let members = json::decode_batch(&Bytes::from(batch)).unwrap();
        binding::Message::Batch(members).into_events().unwrap_err()
    };
    let mixed = refused(&[version("1.0"), version("0.3")]);
    assert_eq!(
        (mixed.reason(), mixed.index()),
        ("batch_mixed_specversion", Some(1))
    );
    let foreign = refused(&[version("0.3"), version("0.3")]);
    assert_eq!(foreign.members()[1].1.reason(), "unsupported_specversion");
    assert_eq!(foreign.attribute(), Some("specversion"));
}

#[test]
fn headers_are_unquoted_and_decoded_once() {
    let subject = |value| {
        binary(&[("ce-subject", value)], "").map(|event| event.subject().unwrap().to_owned())
    };
    for (header, value) in [
        (r#"a "b\"c" d"#, "a b\"c d"),
        (r#""\%41""#, "A"),
        (r#"""x"#, "x"),
        ("%25%32%35", "%25"),
        ("  a b\t", "a b"),
        ("é", "é"),
        ("+", "+"),
    ] {
        assert_eq!(subject(header).as_deref(), Ok(value), "{header}");
    }
    for (header, reason) in [
        (r#"a "b"#, "invalid_quoted_string"),
        (r#""b\""#, "invalid_quoted_string"),
        ("%", "invalid_percent_encoding"),
        ("%4", "invalid_percent_encoding"),
        ("%+1", "invalid_percent_encoding"),
        ("%ff", "invalid_percent_encoding"),
        ("a\tb", "invalid_attribute_value"),
        (r#""""#, "empty_attribute"),
    ] {
        assert_eq!(subject(header).unwrap_err().reason(), reason, "{header}");
    }
}

#[test]
fn a_json_body_is_json_and_any_other_body_is_bytes() {
    let json = [("content-type", "application/json")];
    let data = |headers, body| binary(headers, body).unwrap().into_parts().1;
    assert_eq!(
        data(&json, " {} \n"),
        Data::Json(Bytes::from_static(b" {} \n"))
    );
    assert_eq!(data(&json, "{"), Data::Binary(Bytes::from_static(b"{")));
    assert_eq!(data(&json, ""), Data::Absent);
    assert_eq!(data(&[], "{}"), Data::Binary(Bytes::from_static(b"{}")));
    assert_eq!(
        data(&[("content-type", "text/plain")], "1"),
        Data::Binary(Bytes::from_static(b"1"))
    );
}

#[test]
fn text_leaves_in_the_charset_that_its_type_names() {
    let body = |charset: &str| {
        let members = format!(r#""datacontenttype":"text/plain; charset={charset}","data":"hé""#);
        binding::encode_binary(&structured(&members).unwrap()).1
    };
    assert_eq!(body("ISO-8859-1"), b"h\xe9"[..]);
    assert_eq!(body("utf-8"), "hé".as_bytes());
    let euro = structured(r#""datacontenttype":"text/plain;charset=latin1","data":"€""#).unwrap();
    assert_eq!(binding::encode_binary(&euro).1, "€".as_bytes());
}

#[test]
fn an_event_about_events_leaves_in_structured_mode() {
    let event =
        structured(r#""datacontenttype":"application/cloudevents+json","data":{}"#).unwrap();
    assert_eq!(
        binding::encode_binary(&event),
        binding::encode_structured(&event)
    );
}

#[test]
fn data_that_contradicts_its_type_leaves_without_loss() {
    let plain = || structured(r#""datacontenttype":"text/plain""#).unwrap();
    let again = |event: &Event| json::decode(&json::encode(event).into()).unwrap();
    let json = plain().with_data(Data::Json(Bytes::from_static(b"{}")));
    assert_eq!(again(&json).data_bytes(), json.data_bytes());
    let text = structured("")
        .unwrap()
        .with_data(Data::Text(Bytes::from_static(b"{")));
    assert_eq!(again(&text).data_bytes(), text.data_bytes());
    let not_utf8 = plain().with_data(Data::Text(Bytes::from_static(b"\xff")));
    assert_eq!(again(&not_utf8).data_bytes(), not_utf8.data_bytes());
}
