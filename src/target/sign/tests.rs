//! Tests of signatures.

use super::*;

/// The example of the Standard Webhooks specification.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const AT: Millis = 1_614_265_330_000;
const BODY: &[u8] = br#"{"test": 2432232314}"#;
const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

fn signed(keys: Vec<Key>, id: &str, now: Millis) -> HeaderMap {
    let mut headers = HeaderMap::new();
    Keys::new(keys).unwrap().sign(&mut headers, id, now, BODY);
    headers
}

fn other_key() -> Key {
    Key::parse(&format!("{PREFIX}{}", STANDARD.encode([7; 32]))).unwrap()
}

#[test]
fn the_example_of_the_specification_is_signed_as_there() {
    let headers = signed(vec![Key::parse(SECRET).unwrap()], ID, AT + 999);
    assert_eq!(headers[&WEBHOOK_ID], ID);
    assert_eq!(headers[&WEBHOOK_TIMESTAMP], "1614265330");
    assert_eq!(headers[&WEBHOOK_SIGNATURE], SIGNATURE);
    assert_eq!(headers.len(), 3);
}

#[test]
fn two_keys_give_two_signatures_the_newest_first() {
    let headers = signed(vec![other_key(), Key::parse(SECRET).unwrap()], ID, AT);
    let text = headers[&WEBHOOK_SIGNATURE].to_str().unwrap();
    let (first, second) = text.split_once(' ').unwrap();
    assert!(first.starts_with("v1,") && first != SIGNATURE);
    assert_eq!(second, SIGNATURE);
}

#[test]
fn without_keys_nothing_is_added() {
    assert!(signed(Vec::new(), ID, AT).is_empty());
}

#[test]
fn an_id_is_sent_and_signed_without_dots_and_what_no_header_carries() {
    let headers = signed(vec![Key::parse(SECRET).unwrap()], "a.b c\n\u{e9}", AT);
    assert_eq!(headers[&WEBHOOK_ID], "a_b_c___");
    let same = signed(vec![Key::parse(SECRET).unwrap()], "a_b_c___", AT);
    assert_eq!(headers[&WEBHOOK_SIGNATURE], same[&WEBHOOK_SIGNATURE]);
}

#[test]
fn a_secret_is_read_with_and_without_padding_and_within_its_bounds() {
    let secret = |bytes: usize| format!("{PREFIX}{}", STANDARD.encode(vec![1; bytes]));
    for bytes in [24, 25, 26, 64] {
        let padded = secret(bytes);
        let bare = padded.trim_end_matches('=');
        assert_eq!(Key::parse(&padded), Key::parse(bare));
        assert!(Key::parse(&padded).is_ok());
    }
    assert_eq!(Key::parse(&secret(23)), Err(Error::Length { bytes: 23 }));
    assert_eq!(Key::parse(&secret(65)), Err(Error::Length { bytes: 65 }));
    assert_eq!(Key::parse("MfKQ9r8GKYqrTwjU"), Err(Error::Prefix));
    assert_eq!(Key::parse("whsec_*"), Err(Error::Base64));
    let three = vec![other_key(), other_key(), other_key()];
    assert_eq!(Keys::new(three), Err(Error::TooMany { count: 3 }));
}

#[test]
fn a_key_is_never_printed() {
    let keys = Keys::new(vec![Key::parse(SECRET).unwrap()]).unwrap();
    assert_eq!(format!("{keys:?}"), "Keys([***])");
}
