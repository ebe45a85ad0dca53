//! The rules on attributes and on the kind of data, and the accessors.

use bytes::Bytes;

use super::structured;
use crate::event::json;
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
fn a_core_attribute_that_is_no_text_is_told_as_that_however_long_the_number() {
    for (member, reason) in [
        (r#""time":15229482600000"#, "invalid_attribute_type"),
        (r#""subject":1.5"#, "invalid_attribute_type"),
        (r#""subject":[]"#, "invalid_attribute_type"),
        (r#""n":15229482600000"#, "invalid_attribute_value"),
        (r#""n":-2147483649"#, "invalid_attribute_value"),
    ] {
        assert_eq!(structured(member).unwrap_err().reason(), reason, "{member}");
    }
}

#[test]
fn no_attribute_is_named_data() {
    assert_eq!(
        with("data", "x"),
        Err(Error::ReservedAttribute { name: "data" })
    );
}
