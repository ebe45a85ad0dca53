//! `cidr`: a string that is an address of a block. IPv4 and IPv6 are families apart, and a plain
//! string in a pattern is never an address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::pattern::error::{Error, Fault};
use crate::pattern::text::Node;

/// A block of addresses of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    /// The first address; the bits after the mask are zero.
    pub first: IpAddr,
    /// Bits that every address of the block shares.
    pub bits: u8,
}

/// Reads the operand of `cidr`.
pub(crate) fn parse(node: &Node<'_>) -> Result<Cidr, Error> {
    Cidr::read(node.text("cidr")?).map_err(|kind| node.fault(kind))
}

/// The address that a text is: dotted decimal without leading zeros, or IPv6 in any spelling.
pub(crate) fn read_address(text: &[u8]) -> Option<IpAddr> {
    if text.len() < 2 || text.len() > 45 {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl Cidr {
    fn read(text: &str) -> Result<Self, Fault> {
        let (address, mask) = text.split_once('/').ok_or(Fault::CidrSlash)?;
        if mask.contains('/') {
            return Err(Fault::CidrSlash);
        }
        let digits = mask.strip_prefix('-').unwrap_or(mask);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Fault::CidrMask);
        }
        let address = address.parse().map_err(|_| Fault::CidrAddress {
            address: address.into(),
        })?;
        let bits_max = width(address);
        match mask.parse::<u8>() {
            Ok(bits) if bits <= bits_max => Ok(Self {
                first: mask_address(address, bits),
                bits,
            }),
            _ => Err(Fault::CidrMaskRange { bits_max }),
        }
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        width(address) == width(self.first) && mask_address(address, self.bits) == self.first
    }

    pub(crate) fn contains_text(&self, text: &[u8]) -> bool {
        read_address(text).is_some_and(|address| self.contains(address))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.first, self.bits)
    }
}

/// Bits of an address of this family.
pub(crate) fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address with only its first `bits` kept.
pub(crate) fn mask_address(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Ipv4Addr::from(u32::from(address) & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from(u128::from(address) & mask).into()
        }
    }
}
