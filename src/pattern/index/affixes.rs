//! Prefixes of texts: all of a set that a text begins with, by one binary search.

use std::cmp::Ordering;

/// A set of byte strings, each with a list. Suffixes are kept here read backwards.
#[derive(Debug, Default)]
pub(crate) struct Affixes {
    /// The first eight bytes of each member, zeros after a shorter one, in order: a search seldom
    /// needs more.
    heads: Box<[u64]>,
    members: Box<[Member]>,
    texts: Box<[u8]>,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    start: u32,
    length: u32,
    /// The longest other member that this one begins with.
    shorter: u32,
    list: u32,
}

const NONE: u32 = u32::MAX;

impl Affixes {
    /// Builds the set; no text may be given twice.
    pub(crate) fn build(mut pairs: Vec<(Vec<u8>, u32)>) -> Self {
        pairs.sort_unstable();
        let mut members: Vec<Member> = Vec::with_capacity(pairs.len());
        let mut texts = Vec::new();
        for (place, (text, list)) in pairs.iter().enumerate() {
            let mut shorter = place.checked_sub(1).map_or(NONE, |before| before as u32);
            while shorter != NONE && !text.starts_with(&pairs[shorter as usize].0) {
                shorter = members[shorter as usize].shorter;
            }
            members.push(Member {
                start: texts.len() as u32,
                length: text.len() as u32,
                shorter,
                list: *list,
            });
            texts.extend_from_slice(text);
        }
        Self {
            heads: pairs.iter().map(|(text, _)| head(text)).collect(),
            members: members.into(),
            texts: texts.into(),
        }
    }

    /// Calls `found` with the list of every member that `text` begins with.
    pub(crate) fn each(&self, text: &[u8], mut found: impl FnMut(u32)) {
        let wanted = head(text);
        let mut after = self.heads.partition_point(|head| *head < wanted);
        let same = self.heads[after..].partition_point(|head| *head == wanted);
        after += self.members[after..after + same]
            .partition_point(|member| self.text(member).cmp(text) != Ordering::Greater);
        let Some(last) = after.checked_sub(1) else {
            return;
        };
        let common = common_length(self.text(&self.members[last]), text);
        let mut place = last as u32;
        while place != NONE {
            let member = &self.members[place as usize];
            if member.length as usize <= common {
                found(member.list);
            }
            place = member.shorter;
        }
    }

    /// Heap bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.members.len() * (size_of::<Member>() + 8) + self.texts.len()
    }

    fn text(&self, member: &Member) -> &[u8] {
        &self.texts[member.start as usize..][..member.length as usize]
    }
}

fn common_length(one: &[u8], other: &[u8]) -> usize {
    one.iter()
        .zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}

fn head(text: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = text.len().min(8);
    bytes[..length].copy_from_slice(&text[..length]);
    u64::from_be_bytes(bytes)
}
