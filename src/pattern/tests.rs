//! What the public surface cannot show: numbers, letter case, and the pieces of the index.

use super::fold;
use super::number::Number;

#[test]
fn spellings_of_a_letter_begin_and_end_with_different_characters() {
    for letter in (0..=0x10FFFF).filter_map(char::from_u32) {
        let lower: Vec<char> = letter.to_lowercase().collect();
        let upper: Vec<char> = letter.to_uppercase().collect();
        if lower != upper {
            assert_ne!(lower.first(), upper.first(), "{letter}");
            assert_ne!(lower.last(), upper.last(), "{letter}");
        }
    }
}

#[test]
fn the_fold_of_a_letter_is_the_fold_of_its_spellings() {
    let key = |text: &str| {
        let mut folded = Vec::new();
        fold::key(text.as_bytes(), &mut folded);
        folded
    };
    for letter in (0..=0x10FFFF).filter_map(char::from_u32) {
        let folded = key(&letter.to_string());
        assert_eq!(folded, key(&letter.to_lowercase().to_string()), "{letter}");
        assert_eq!(folded, key(&letter.to_uppercase().to_string()), "{letter}");
    }
}

#[test]
fn numbers_order_as_decimals() {
    let ordered = [
        "-1e400",
        "-10.5",
        "-10",
        "-1e-7",
        "0",
        "1e-1000000000",
        "5e-324",
        "1e-7",
        "0.1",
        "0.10000000000000000001",
        "1",
        "9007199254740993",
        "9007199254740993.5",
        "12345678901234567890",
        "12345678901234567890.1",
        "1e400",
        "1e1000",
    ];
    for (low, one) in ordered.iter().enumerate() {
        for (high, other) in ordered.iter().enumerate() {
            let order = Number::read(one.as_bytes()).cmp(&Number::read(other.as_bytes()));
            assert_eq!(order, low.cmp(&high), "{one} and {other}");
        }
    }
}

#[test]
fn spellings_of_one_number_are_equal_and_hash_alike() {
    let same = [
        ["300", "3e2", "3.0E+2", "30000e-2", "0.3e3"],
        ["0", "-0", "0.0", "0e10", "-0.0e-7"],
        ["-1.5", "-15e-1", "-0.15e1", "-1.50", "-1500e-3"],
        [
            "123456789012345678901",
            "1.23456789012345678901e20",
            "123456789012345678901.0",
            "1234567890123456789010e-1",
            "0.123456789012345678901e21",
        ],
    ];
    for group in same {
        for other in group {
            let (one, other) = (
                Number::read(group[0].as_bytes()),
                Number::read(other.as_bytes()),
            );
            assert_eq!(one, other);
            assert_eq!(one.hash(), other.hash());
        }
    }
}

#[test]
fn a_number_is_shown_as_a_number_that_equals_it() {
    for text in [
        "0",
        "5",
        "-0.5",
        "1e21",
        "1e22",
        "123456.789",
        "1e-7",
        "0.000001",
        "-12e30",
    ] {
        let shown = Number::read(text.as_bytes()).to_decimal().to_string();
        assert_eq!(
            Number::read(shown.as_bytes()),
            Number::read(text.as_bytes()),
            "{shown}"
        );
    }
}
