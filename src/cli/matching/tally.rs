//! Totals over all matches, and a checksum that two engines can compare.

use serde_json::{Map, Value, json};

use crate::pattern::RuleId;

/// Events after which the totals so far are noted too, for engines that are slow.
const FIRST_EVENTS: u64 = 1_000;

/// Matches counted so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    events: u64,
    matches: u64,
    events_matched: u64,
    checksum: u64,
    first: Option<(u64, u64)>,
}

impl Tally {
    /// Counts the next event; `number` gives the number under which a rule is summed.
    pub(super) fn add(&mut self, matched: &[RuleId], number: impl Fn(RuleId) -> u64) {
        if self.events == FIRST_EVENTS {
            self.first = Some((self.matches, self.checksum));
        }
        for id in matched {
            let pair = (self.events << 32).wrapping_add(number(*id));
            self.checksum = self.checksum.wrapping_add(mixed(pair));
        }
        self.events += 1;
        self.matches += matched.len() as u64;
        self.events_matched += u64::from(!matched.is_empty());
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// The totals. The checksum is the sum modulo 2^64, over all matches, of
    /// `mix(event * 2^32 + rule)`, where events count from 0 and `mix` is the finaliser of
    /// splitmix64; `first` has the same over the first 1,000 events, when there are more.
    pub(super) fn totals(&self, rules: usize) -> Map<String, Value> {
        let per_event = self.matches as f64 / self.events.max(1) as f64;
        let first = self.first.map(|(matches, checksum)| {
            json!({
                "events": FIRST_EVENTS,
                "matches": matches,
                "checksum": format!("{checksum:016x}"),
            })
        });
        let totals = [
            ("events", json!(self.events)),
            ("rules", json!(rules)),
            ("matches", json!(self.matches)),
            ("events_matched", json!(self.events_matched)),
            ("matches_per_event", json!((per_event * 1e4).round() / 1e4)),
            ("checksum", json!(format!("{:016x}", self.checksum))),
            ("first", json!(first)),
        ];
        let totals = totals.into_iter();
        totals
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_over_pairs_and_needs_no_order() {
        let count = |ids: &[RuleId]| {
            let mut tally = Tally::default();
            tally.add(ids, u64::from);
            tally.totals(3)["checksum"].clone()
        };

        // The first value of splitmix64 seeded with 0.
        assert_eq!(count(&[0]), "e220a8397b1dcdaf");
        assert_eq!(count(&[1, 2]), count(&[2, 1]));
        assert_ne!(count(&[1, 2]), count(&[0, 3]));
    }

    #[test]
    fn the_first_thousand_are_noted_once_there_are_more() {
        let mut tally = Tally::default();
        for _ in 0..FIRST_EVENTS {
            tally.add(&[7], u64::from);
        }
        assert_eq!(tally.totals(1)["first"], Value::Null);
        tally.add(&[7], u64::from);

        let totals = tally.totals(1);
        assert_eq!(totals["first"]["matches"], 1_000);
        assert_eq!(totals["matches"], 1_001);
        assert_eq!(totals["matches_per_event"], 1.0);
    }
}
