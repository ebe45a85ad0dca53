//! Tests of which addresses are refused.

use super::*;

fn kind(address: &str) -> Option<Range> {
    refused(address.parse().unwrap())
}

#[test]
fn special_ipv4_addresses_are_refused_to_their_last_one() {
    for (address, range) in [
        ("0.0.0.0", Range::Unspecified),
        ("0.255.255.255", Range::Unspecified),
        ("10.0.0.0", Range::Private),
        ("10.255.255.255", Range::Private),
        ("100.64.0.0", Range::CarrierGradeNat),
        ("100.100.100.200", Range::CarrierGradeNat),
        ("100.127.255.255", Range::CarrierGradeNat),
        ("127.0.0.1", Range::Loopback),
        ("127.255.255.255", Range::Loopback),
        ("168.63.129.16", Range::Metadata),
        ("169.254.169.254", Range::LinkLocal),
        ("172.16.0.0", Range::Private),
        ("172.31.255.255", Range::Private),
        ("192.0.0.192", Range::Reserved),
        ("192.0.2.1", Range::Documentation),
        ("192.88.99.1", Range::Translated),
        ("192.168.255.255", Range::Private),
        ("198.18.0.0", Range::Benchmark),
        ("198.19.255.255", Range::Benchmark),
        ("198.51.100.1", Range::Documentation),
        ("203.0.113.1", Range::Documentation),
        ("224.0.0.1", Range::Multicast),
        ("239.255.255.255", Range::Multicast),
        ("240.0.0.0", Range::Reserved),
        ("255.255.255.255", Range::Reserved),
    ] {
        assert_eq!(kind(address), Some(range), "{address}");
    }
}

#[test]
fn special_ipv6_addresses_are_refused() {
    for (address, range) in [
        ("::", Range::Unspecified),
        ("::1", Range::Loopback),
        ("::7f00:1", Range::Translated),
        ("::ffff:127.0.0.1", Range::Loopback),
        ("::ffff:10.1.2.3", Range::Private),
        ("::ffff:169.254.169.254", Range::LinkLocal),
        ("::ffff:0:127.0.0.1", Range::Reserved),
        ("64:ff9b::7f00:1", Range::Translated),
        ("64:ff9b:1::1", Range::Translated),
        ("100::1", Range::Reserved),
        ("2001::1", Range::Translated),
        ("2001:2::1", Range::Benchmark),
        ("2001:1ff:ffff::1", Range::Reserved),
        ("2001:db8::1", Range::Documentation),
        ("2002:7f00:1::", Range::Translated),
        ("3fff:fff::1", Range::Documentation),
        ("5f00::1", Range::SegmentRouting),
        ("fc00::1", Range::UniqueLocal),
        ("fd00:ec2::254", Range::UniqueLocal),
        ("fe80::1", Range::LinkLocal),
        ("febf::1", Range::LinkLocal),
        ("fec0::1", Range::Private),
        ("ff02::1", Range::Multicast),
        ("4000::1", Range::Reserved),
    ] {
        assert_eq!(kind(address), Some(range), "{address}");
    }
}

#[test]
fn public_addresses_next_to_special_ones_are_let_through() {
    for address in [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2606:4700::1111",
        "3ffe::1",
    ] {
        assert_eq!(kind(address), None, "{address}");
    }
}
