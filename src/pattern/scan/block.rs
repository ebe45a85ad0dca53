//! Skipping an object or list 64 bytes at a time.
//!
//! For each block the quotes, backslashes and brackets become bit masks; from the quotes follows
//! what lies inside strings, and brackets outside them are counted. Nothing is checked but the
//! nesting, which is enough: a document is trusted to be JSON.
//!
//! Skipping is most of the work where few fields are read, and peers that stop reading early are
//! matched only when it runs at several bytes a cycle. The compiler does not find that for the
//! plain loops below, so on x86-64 the masks are made with its vector instructions; the loops
//! remain for everything else and as the measure in tests.

/// Bytes of a block.
const BLOCK: usize = 64;

/// The place after the object or list that opens at `start`; none when it does not end.
pub(super) fn skip_container(bytes: &[u8], start: usize) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if x86::is_supported() {
        // SAFETY: the processor was asked for every feature that the function needs.
        return unsafe { x86::skip_container(bytes, start) };
    }
    skip_with(bytes, start, masks_by_loop)
}

/// One bit for each byte of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Masks {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
}

fn masks_by_loop(block: &[u8; BLOCK]) -> Masks {
    let mask = |is_wanted: fn(u8) -> bool| {
        let bits = block.iter().enumerate();
        bits.fold(0, |mask, (place, byte)| {
            mask | u64::from(is_wanted(*byte)) << place
        })
    };
    Masks {
        quotes: mask(|byte| byte == b'"'),
        backslashes: mask(|byte| byte == b'\\'),
        opening: mask(|byte| byte | 0x20 == b'{'),
        closing: mask(|byte| byte | 0x20 == b'}'),
    }
}

/// What is carried from block to block.
#[derive(Default)]
struct State {
    depth: u32,
    /// All ones inside a string.
    in_string: u64,
    /// One when the last byte escapes the next.
    escape: u64,
}

#[inline(always)]
fn skip_with(bytes: &[u8], start: usize, masks: impl Fn(&[u8; BLOCK]) -> Masks) -> Option<usize> {
    let mut state = State::default();
    let mut at = start;
    while let Some(block) = bytes.get(at..)?.first_chunk::<BLOCK>() {
        if let Some(end) = state.advance(masks(block)) {
            return Some(at + end);
        }
        at += BLOCK;
    }
    let rest = bytes.get(at..)?;
    let mut block = [b' '; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    state.advance(masks(&block)).map(|end| at + end)
}

impl State {
    /// Takes a block, and gives the place after the bracket that closes the first one.
    #[inline(always)]
    fn advance(&mut self, masks: Masks) -> Option<usize> {
        let escaped = if masks.backslashes == 0 && self.escape == 0 {
            0
        } else {
            self.escaped(masks.backslashes)
        };
        let in_string = parity_before(masks.quotes & !escaped) ^ self.in_string;
        self.in_string = ((in_string as i64) >> 63) as u64;
        let opening = masks.opening & !in_string;
        let mut closing = masks.closing & !in_string;
        let open_count = opening.count_ones();
        let close_count = closing.count_ones();
        if self.depth > close_count {
            self.depth += open_count;
            self.depth -= close_count;
            return None;
        }
        let before = self.depth;
        for closed in 1.. {
            if closing == 0 {
                break;
            }
            let place = closing.trailing_zeros();
            let opened = (opening & ((1 << place) - 1)).count_ones();
            if before + opened <= closed {
                return Some(place as usize + 1);
            }
            closing &= closing - 1;
        }
        self.depth = before + open_count - close_count;
        None
    }

    /// The bytes that a backslash stands before; runs of backslashes escape every second byte.
    fn escaped(&mut self, backslashes: u64) -> u64 {
        let mut escaped = self.escape;
        let mut left = backslashes & !escaped;
        self.escape = 0;
        while left != 0 {
            let place = left.trailing_zeros();
            if place == 63 {
                self.escape = 1;
                break;
            }
            let next = 1 << (place + 1);
            escaped |= next;
            left &= !(next | 1 << place);
        }
        escaped
    }
}

/// For each bit, whether an odd number of bits up to and with it are set.
#[inline(always)]
fn parity_before(bits: u64) -> u64 {
    let mut parity = bits;
    for shift in [1, 2, 4, 8, 16, 32] {
        parity ^= parity << shift;
    }
    parity
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The same with vectors of 32 bytes. All of it is safe code but for the call from outside,
    //! which must know that the processor has the instructions.

    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set_epi64x,
        _mm256_set1_epi8,
    };

    use super::{BLOCK, Masks, skip_with};

    pub(super) fn is_supported() -> bool {
        std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("popcnt")
    }

    #[target_feature(enable = "avx2,bmi1,popcnt")]
    pub(super) fn skip_container(bytes: &[u8], start: usize) -> Option<usize> {
        skip_with(bytes, start, |block| masks(block))
    }

    #[target_feature(enable = "avx2,bmi1,popcnt")]
    pub(super) fn masks(block: &[u8; BLOCK]) -> Masks {
        let low = load(block, 0);
        let high = load(block, 32);
        let spaces = _mm256_set1_epi8(0x20);
        let (low_folded, high_folded) =
            (_mm256_or_si256(low, spaces), _mm256_or_si256(high, spaces));
        Masks {
            quotes: equal(low, high, b'"'),
            backslashes: equal(low, high, b'\\'),
            opening: equal(low_folded, high_folded, b'{'),
            closing: equal(low_folded, high_folded, b'}'),
        }
    }

    /// 32 bytes of a block; four loads of words, which the compiler makes one.
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn load(block: &[u8; BLOCK], start: usize) -> __m256i {
        let word = |place: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&block[start + place * 8..][..8]);
            i64::from_le_bytes(bytes)
        };
        _mm256_set_epi64x(word(3), word(2), word(1), word(0))
    }

    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn equal(low: __m256i, high: __m256i, byte: u8) -> u64 {
        let wanted = _mm256_set1_epi8(byte as i8);
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)) as u32;
        let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)) as u32;
        u64::from(high) << 32 | u64::from(low)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The plain way, a byte at a time.
    fn skip_by_byte(bytes: &[u8], start: usize) -> Option<usize> {
        let (mut depth, mut in_string, mut at) = (0, false, start);
        loop {
            match (*bytes.get(at)?, in_string) {
                (b'\\', true) => at += 1,
                (b'"', _) => in_string = !in_string,
                (b'{' | b'[', false) => depth += 1,
                (b'}' | b']', false) => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    proptest! {
        #[test]
        fn blocks_find_the_end_that_bytes_find(
            // Backslashes only inside strings, as in JSON.
            parts in proptest::collection::vec(r#"[\[\]{} ,a1]{0,9}|"([a\[\]{}]|\\\\|\\"|é){0,40}""#, 0..40),
            start in 0usize..80,
        ) {
            let text = format!("{:start$}[{}", "", parts.concat());
            prop_assert_eq!(skip_container(text.as_bytes(), start), skip_by_byte(text.as_bytes(), start));
            prop_assert_eq!(
                skip_with(text.as_bytes(), start, masks_by_loop),
                skip_by_byte(text.as_bytes(), start)
            );
        }
    }
}
