//! Strings of a length, after a pattern, of a format, or from the schemas themselves.

use serde_json::Value;

use super::{Facts, Merged, Search, lengths, pattern};

/// Most strings built after one pattern.
const SAMPLES_MAX: usize = 12;

impl Search<'_> {
    pub(super) fn strings(&self, merged: &Merged, refused: &[&Facts]) -> Vec<Value> {
        let limits: Vec<_> = refused
            .iter()
            .map(|facts| (facts.length_min, facts.length_max))
            .collect();
        let lengths = lengths((merged.length_min, merged.length_max), &limits);
        let mut texts: Vec<String> = Vec::new();
        for known in &merged.patterns {
            texts.extend(pattern::samples(known, &lengths, SAMPLES_MAX));
        }
        // Patterns that are open at their ends may all match in one string, one after the other.
        if let [first, second, ..] = merged.patterns.as_slice() {
            for text in pattern::samples(first, &[], 3) {
                let others = pattern::samples(second, &[], 3);
                texts.extend(others.iter().map(|other| format!("{text}{other}")));
            }
        }
        for format in &merged.formats {
            texts.extend(examples(format).iter().map(|text| (*text).to_owned()));
        }
        let pool = self
            .pool
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned);
        if merged.patterns.is_empty() && merged.formats.is_empty() {
            for length in &lengths {
                texts.extend(
                    ["a", "0", " ", "Z", "é"]
                        .iter()
                        .map(|letter| letter.repeat(*length)),
                );
            }
            texts.extend(["", "a", "A1", "\u{1F600}", "not-a-format"].map(str::to_owned));
            texts.extend(pool);
            // A string that one refused pattern matches may miss another.
            for known in refused.iter().flat_map(|facts| &facts.patterns) {
                texts.extend(pattern::samples(known, &lengths, SAMPLES_MAX));
            }
        } else {
            texts.extend(pool);
        }
        texts.retain(|text| merged.allows_length(text));
        texts.into_iter().map(Value::String).collect()
    }
}

/// Valid strings of the known formats.
fn examples(format: &str) -> &'static [&'static str] {
    match format {
        "date-time" => &["2024-02-29T12:00:00Z"],
        "date" => &["2024-02-29"],
        "time" => &["12:00:00Z"],
        "duration" => &["P1D"],
        "email" | "idn-email" => &["a@example.com"],
        "hostname" | "idn-hostname" => &["example.com"],
        "ipv4" => &["192.0.2.1"],
        "ipv6" => &["2001:db8::1"],
        "uri" | "iri" => &["https://example.com/"],
        "uri-reference" | "iri-reference" => &["/a", "https://example.com/"],
        "uri-template" => &["/{a}"],
        "uuid" => &["2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
        "json-pointer" => &["/a", ""],
        "relative-json-pointer" => &["0/a"],
        "regex" => &["a*"],
        _ => &["a", ""],
    }
}
