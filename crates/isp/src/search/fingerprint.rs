//! Bytes by which the words of a group are recognized.

use super::Needle;

/// Number of bytes of a fingerprint. Equal positions are used for words with fewer bytes.
pub(super) const OFFSETS: usize = 3;
/// Largest position of a byte of a fingerprint: all bits of a power of two, for cheap bounds.
pub(super) const OFFSET_MAX: usize = 15;

/// Letters from the most frequent to the rarest in English texts.
const LETTERS: &[u8] = b"etaoinsrhldcumfpgwybvkxjqz";

/// Positions of the bytes in all words of a group, and the words with each half of a byte there. A
/// word is a bit.
#[derive(Clone, Debug)]
pub(super) struct Fingerprint {
    pub(super) at: [u8; OFFSETS],
    pub(super) low: [[u8; 16]; OFFSETS],
    pub(super) high: [[u8; 16]; OFFSETS],
}

impl Fingerprint {
    /// Selects the positions with the rarest bytes. There are at most eight words.
    pub(super) fn new(needles: &[Needle]) -> Self {
        let shortest = needles.iter().map(|needle| needle.bytes.len()).min().unwrap_or(1);
        let last = (shortest - 1).min(OFFSET_MAX);
        let mut best = (f32::MAX, [0; OFFSETS]);
        for first in 0..=last {
            for second in first..=last {
                for third in second..=last {
                    let at = [first, second, third];
                    let candidates = needles.iter().map(|needle| probability(&needle.bytes, at)).sum();
                    if candidates < best.0 {
                        best = (candidates, at);
                    }
                }
            }
        }
        let mut fingerprint =
            Self { at: best.1.map(|at| at as u8), low: [[0; 16]; OFFSETS], high: [[0; 16]; OFFSETS] };
        for (word, needle) in needles.iter().enumerate() {
            for (n, at) in best.1.into_iter().enumerate() {
                let byte = usize::from(needle.bytes[at]);
                fingerprint.low[n][byte & 15] |= 1 << word;
                fingerprint.high[n][byte >> 4] |= 1 << word;
            }
        }
        fingerprint
    }
}

/// Estimated probability that a position of a text has the bytes of a word at these offsets.
fn probability(word: &[u8], at: [usize; OFFSETS]) -> f32 {
    let mut product = 1.0;
    for (n, offset) in at.into_iter().enumerate() {
        if n == 0 || at[n - 1] != offset {
            product *= frequency(word[offset]);
        }
    }
    product
}

/// Estimated frequency of a byte in texts and tables.
fn frequency(byte: u8) -> f32 {
    match byte {
        0 | b' ' => 0.2,
        b'\n' | b',' | b'.' | b'"' | b'0'..=b'9' => 0.03,
        _ => match LETTERS.iter().position(|letter| *letter == byte) {
            Some(rank) => 0.1 * 0.85_f32.powi(rank as i32),
            None => 0.003,
        },
    }
}
