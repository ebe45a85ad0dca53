//! To the official crate and back.

use cloudevents::{
    AttributesReader as _, AttributesWriter as _, EventBuilder as _, EventBuilderV10,
};

use super::structured;
use crate::event::interop::{from_sdk, to_sdk};
use crate::event::{Attribute, Data, Error, Event, Value, ValueFault};

fn sorted(event: Event) -> (Vec<Attribute>, Data) {
    let (mut attributes, data) = event.into_parts();
    attributes.sort_by(|one, other| one.name.cmp(&other.name));
    (attributes, data)
}

#[test]
fn what_the_crate_can_hold_comes_back_as_it_was() {
    for members in [
        "",
        r#""subject":"s","time":"2026-01-01T00:00:00Z","dataschema":"https://x.example/y""#,
        r#""n":-2147483648,"b":false,"s":"é 😀""#,
        r#""data":{"a":[1,-2.5,"x",null,true]}"#,
        r#""data":null,"datacontenttype":"application/json""#,
        r#""data":"{}""#,
        r#""data":"a text","datacontenttype":"text/plain; charset=utf-8""#,
        r#""data_base64":"AP8=","datacontenttype":"application/octet-stream""#,
        r#""data_base64":"e30=","datacontenttype":"application/json""#,
        r#""data_base64":"""#,
        r#""datacontenttype":"text/plain""#,
    ] {
        let event = structured(members).unwrap();
        let back = from_sdk(to_sdk(&event).unwrap()).unwrap();
        assert_eq!(sorted(back), sorted(event), "{members}");
    }
}

#[test]
fn what_the_crate_cannot_hold_changes_as_documented() {
    let back = |members| from_sdk(to_sdk(&structured(members).unwrap()).unwrap()).unwrap();
    let event = back(r#""time":"2026-01-01T01:00:00.1234567891+01:00""#);
    assert_eq!(event.time(), Some("2026-01-01T00:00:00.123456789Z"));
    assert_eq!(
        back(r#""dataschema":"HTTPS://X""#).dataschema(),
        Some("https://x/")
    );
    assert_eq!(back(r#""data": [ 1.0 ] "#).data_bytes(), "[1.0]");
    let huge = back(r#""data":1E400"#);
    assert_eq!(*huge.data(), Data::Binary("1E400".into()));
}

#[test]
fn what_the_crate_refuses_is_told_by_attribute() {
    let event = structured(r#""dataschema":"http://""#).unwrap();
    assert_eq!(
        to_sdk(&event).unwrap_err(),
        Error::Unrepresentable { name: "dataschema" }
    );
}

#[test]
fn an_event_of_the_crate_is_held_to_the_rules() {
    let built = || EventBuilderV10::new().id("1").source("/s").ty("t");
    let valid = built().extension("n", 7).build().unwrap();
    assert_eq!(
        from_sdk(valid).unwrap().attribute("n"),
        Some(&Value::Integer(7))
    );
    let mut empty = built().build().unwrap();
    empty.set_id("");
    assert_eq!(from_sdk(empty), Err(Error::EmptyAttribute { name: "id" }));
    let name = built().extension("Bad-Name", "x").build().unwrap();
    assert_eq!(
        from_sdk(name).unwrap_err().reason(),
        "invalid_attribute_name"
    );
    let long = built().extension("n", i64::MAX).build().unwrap();
    let fault = ValueFault::IntegerRange;
    let refused = Error::InvalidAttributeValue {
        name: "n".into(),
        fault,
    };
    assert_eq!(from_sdk(long), Err(refused));
    let old = cloudevents::EventBuilderV03::new()
        .id("1")
        .source("/s")
        .ty("t")
        .build()
        .unwrap();
    assert_eq!(old.specversion().as_str(), "0.3");
    assert_eq!(
        from_sdk(old),
        Err(Error::UnsupportedSpecversion {
            found: "0.3".into()
        })
    );
}

#[test]
fn a_string_of_the_crate_is_what_its_type_says() {
    let data = |datacontenttype: &str, text: &str| {
        let built = EventBuilderV10::new().id("1").source("/s").ty("t");
        from_sdk(built.data(datacontenttype, text).build().unwrap())
            .unwrap()
            .into_parts()
            .1
    };
    assert_eq!(data("application/json", "{}"), Data::Json("{}".into()));
    assert_eq!(data("application/json", "{"), Data::Binary("{".into()));
    assert_eq!(data("text/plain", "{}"), Data::Text("{}".into()));
}
