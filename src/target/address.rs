//! Which network addresses a target may not reach unless it is allowed private ones.
//!
//! An event's destination is chosen by whoever may create targets, so without this check a
//! webhook could be aimed at services that only this machine can see. The check is on the
//! address that is about to be connected to, never on the name.

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of address a refused one is (IANA special-purpose registries).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Range {
    Unspecified,
    Loopback,
    Private,
    LinkLocal,
    CarrierGradeNat,
    Metadata,
    Benchmark,
    Documentation,
    Multicast,
    UniqueLocal,
    /// NAT64, 6to4, Teredo and their like: an IPv4 address in disguise.
    Translated,
    SegmentRouting,
    Reserved,
    /// An address of this machine itself, seen only once connected.
    Own,
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::CarrierGradeNat => "a carrier-grade NAT address",
            Self::Metadata => "a cloud metadata address",
            Self::Benchmark => "a benchmarking address",
            Self::Documentation => "a documentation address",
            Self::Multicast => "a multicast address",
            Self::UniqueLocal => "a unique local address",
            Self::Translated => "an IPv6 address that stands for an IPv4 address",
            Self::SegmentRouting => "a segment routing address",
            Self::Reserved => "a reserved address",
            Self::Own => "an address of this machine",
        })
    }
}

/// Why `address` may be reached by no target that is not allowed private addresses;
/// `None` when it is an ordinary public one.
pub fn refused(address: IpAddr) -> Option<Range> {
    // A v4-mapped address reaches the IPv4 address inside it, so that one is judged.
    match address.to_canonical() {
        IpAddr::V4(address) => refused_v4(address),
        IpAddr::V6(address) => refused_v6(address),
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8) -> u32 {
    Ipv4Addr::new(a, b, c, d).to_bits()
}

/// First address, length of the prefix, kind; the first row that fits is the answer.
const REFUSED_V4: [(u32, u32, Range); 16] = [
    (v4(0, 0, 0, 0), 8, Range::Unspecified),
    (v4(10, 0, 0, 0), 8, Range::Private),
    (v4(100, 64, 0, 0), 10, Range::CarrierGradeNat),
    (v4(127, 0, 0, 0), 8, Range::Loopback),
    // The platform channel of Azure's virtual machines, though the address is a public one.
    (v4(168, 63, 129, 16), 32, Range::Metadata),
    (v4(169, 254, 0, 0), 16, Range::LinkLocal),
    (v4(172, 16, 0, 0), 12, Range::Private),
    (v4(192, 0, 0, 0), 24, Range::Reserved),
    (v4(192, 0, 2, 0), 24, Range::Documentation),
    (v4(192, 88, 99, 0), 24, Range::Translated),
    (v4(192, 168, 0, 0), 16, Range::Private),
    (v4(198, 18, 0, 0), 15, Range::Benchmark),
    (v4(198, 51, 100, 0), 24, Range::Documentation),
    (v4(203, 0, 113, 0), 24, Range::Documentation),
    (v4(224, 0, 0, 0), 4, Range::Multicast),
    (v4(240, 0, 0, 0), 4, Range::Reserved),
];

fn refused_v4(address: Ipv4Addr) -> Option<Range> {
    REFUSED_V4
        .iter()
        .find(|(first, prefix, _)| (address.to_bits() ^ first) >> (32 - prefix) == 0)
        .map(|(_, _, range)| *range)
}

const fn v6(a: u16, b: u16, c: u16) -> u128 {
    Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).to_bits()
}

/// As [`REFUSED_V4`]. What lies outside 2000::/3 is refused in any case; the rows for it only
/// give the kind its name.
const REFUSED_V6: [(u128, u32, Range); 16] = [
    (0, 128, Range::Unspecified),
    (1, 128, Range::Loopback),
    (0, 96, Range::Translated),
    (v6(0x64, 0xff9b, 0), 96, Range::Translated),
    (v6(0x64, 0xff9b, 1), 48, Range::Translated),
    (v6(0x2001, 0, 0), 32, Range::Translated),
    (v6(0x2001, 2, 0), 48, Range::Benchmark),
    (v6(0x2001, 0, 0), 23, Range::Reserved),
    (v6(0x2001, 0xdb8, 0), 32, Range::Documentation),
    (v6(0x2002, 0, 0), 16, Range::Translated),
    (v6(0x3fff, 0, 0), 20, Range::Documentation),
    (v6(0x5f00, 0, 0), 16, Range::SegmentRouting),
    (v6(0xfc00, 0, 0), 7, Range::UniqueLocal),
    (v6(0xfe80, 0, 0), 10, Range::LinkLocal),
    (v6(0xfec0, 0, 0), 10, Range::Private),
    (v6(0xff00, 0, 0), 8, Range::Multicast),
];

fn refused_v6(address: Ipv6Addr) -> Option<Range> {
    let bits = address.to_bits();
    let named = REFUSED_V6
        .iter()
        .find(|(first, prefix, _)| (bits ^ first) >> (128 - prefix) == 0)
        .map(|(_, _, range)| *range);
    let is_global_unicast = bits >> 125 == 0b001;
    named.or((!is_global_unicast).then_some(Range::Reserved))
}
