//! URIs and URI-references by the grammar of RFC 3986, appendix A; nothing is normalised.

use std::net::Ipv6Addr;

const UNRESERVED: u8 = 1;
const SUB_DELIMITER: u8 = 2;
const COLON: u8 = 4;
const AT: u8 = 8;
const SLASH: u8 = 16;
const QUESTION: u8 = 32;

const REG_NAME: u8 = UNRESERVED | SUB_DELIMITER;
const USER_INFO: u8 = REG_NAME | COLON;
const PATH: u8 = USER_INFO | AT | SLASH;
const QUERY: u8 = PATH | QUESTION;

/// The class of every byte; 0 for those that appear in percent-encoded form only.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => UNRESERVED,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => {
                SUB_DELIMITER
            }
            b':' => COLON,
            b'@' => AT,
            b'/' => SLASH,
            b'?' => QUESTION,
            _ => 0,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    classes
};

/// Whether this is a URI or a relative reference.
pub(super) fn is_reference(text: &str) -> bool {
    match scheme(text) {
        Scheme::Valid(rest) => is_after_scheme(rest),
        Scheme::Invalid => false,
        Scheme::Absent => is_after_scheme(text),
    }
}

/// Whether this is a URI, that is, has a scheme.
pub(super) fn is_absolute(text: &str) -> bool {
    matches!(scheme(text), Scheme::Valid(rest) if is_after_scheme(rest))
}

enum Scheme<'a> {
    /// A scheme, and what follows its colon.
    Valid(&'a str),
    /// A colon in the first segment, but no scheme before it.
    Invalid,
    Absent,
}

fn scheme(text: &str) -> Scheme<'_> {
    let Some(end) = text.find([':', '/', '?', '#']) else {
        return Scheme::Absent;
    };
    let (scheme, rest) = text.split_at(end);
    let Some(rest) = rest.strip_prefix(':') else {
        return Scheme::Absent;
    };
    let letter_first = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if letter_first && scheme.bytes().all(allowed) {
        Scheme::Valid(rest)
    } else {
        Scheme::Invalid
    }
}

/// Authority, path, query and fragment.
fn is_after_scheme(text: &str) -> bool {
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let (authority, path) = match text.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", text),
    };
    is_authority(authority)
        && consists_of(path, PATH)
        && consists_of(query, QUERY)
        && consists_of(fragment, QUERY)
}

fn is_authority(authority: &str) -> bool {
    let (user, host_port) = authority.split_once('@').unwrap_or(("", authority));
    let (host_valid, port) = if let Some(rest) = host_port.strip_prefix('[') {
        match rest.split_once(']') {
            Some((literal, port)) => (is_ip_literal(literal), port),
            None => return false,
        }
    } else {
        let (host, port) = host_port.split_at(host_port.find(':').unwrap_or(host_port.len()));
        (consists_of(host, REG_NAME), port)
    };
    host_valid && consists_of(user, USER_INFO) && is_port(port)
}

/// Nothing, or a colon and any number of digits.
fn is_port(port: &str) -> bool {
    port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_ip_literal(literal: &str) -> bool {
    let Some(future) = literal.strip_prefix(['v', 'V']) else {
        return literal.parse::<Ipv6Addr>().is_ok();
    };
    let Some((version, address)) = future.split_once('.') else {
        return false;
    };
    let class_fits = |byte: u8| CLASSES[usize::from(byte)] & USER_INFO != 0;
    !version.is_empty()
        && version.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !address.is_empty()
        && address.bytes().all(class_fits)
}

/// Only bytes of these classes, and percent signs with two hexadecimal digits.
fn consists_of(text: &str, classes: u8) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut is_digit = || bytes.next().is_some_and(|byte| byte.is_ascii_hexdigit());
        let fits = CLASSES[usize::from(byte)] & classes != 0;
        if !(fits || byte == b'%' && is_digit() && is_digit()) {
            return false;
        }
    }
    true
}
