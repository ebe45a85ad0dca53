//! Blocks of addresses: all of a set that hold one address, by a lookup for each mask length.

use std::net::IpAddr;

use rustc_hash::FxHashMap;

use crate::pattern::op::Cidr;
use crate::pattern::op::cidr::{mask_address, width};

/// A set of blocks, each with a list.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    lists: FxHashMap<(u8, IpAddr), u32>,
    /// Address widths and mask lengths in use.
    masks: Vec<(u8, u8)>,
}

impl Blocks {
    /// Adds a block that the set does not have.
    pub(crate) fn add(&mut self, block: &Cidr, list: u32) {
        self.lists.insert((block.bits, block.first), list);
        let mask = (width(block.first), block.bits);
        if !self.masks.contains(&mask) {
            self.masks.push(mask);
        }
    }

    /// Calls `found` with the list of every block that holds `address`.
    pub(crate) fn each(&self, address: IpAddr, mut found: impl FnMut(u32)) {
        for (address_width, bits) in &self.masks {
            if *address_width != width(address) {
                continue;
            }
            if let Some(list) = self.lists.get(&(*bits, mask_address(address, *bits))) {
                found(*list);
            }
        }
    }

    /// Heap bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.lists.capacity() * 28 + self.masks.capacity() * 2
    }
}
