//! What is read and written in each mode and in storage, where the vectors do not tell.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use super::{REQUIRED, binary, structured};
use crate::event::binding;
use crate::event::json::{self, Fault, Malformed};
use crate::event::{Data, Error, Event};

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

#[test]
fn a_broken_content_type_is_told_only_where_an_event_was_meant() {
    let reason = |headers: &[(&'static str, &'static [u8])]| {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        binding::decode(&map, Bytes::new()).unwrap_err().reason()
    };
    let json = ("content-type", &b"application/json"[..]);
    let event = ("content-type", &b"Application/CloudEvents+json"[..]);
    let not_utf8 = ("content-type", &b"a/b;c=\"\xff\""[..]);
    let id = ("ce-id", &b"1"[..]);
    assert_eq!(reason(&[json, json]), "not_a_cloudevent");
    assert_eq!(reason(&[json, event]), "duplicate_attribute");
    assert_eq!(reason(&[json, json, id]), "duplicate_attribute");
    assert_eq!(reason(&[not_utf8]), "not_a_cloudevent");
    assert_eq!(reason(&[not_utf8, id]), "invalid_attribute_value");
    assert_eq!(reason(&[("content-type", b""), id]), "empty_attribute");
}
