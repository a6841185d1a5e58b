//! Text that is searched.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::path::Path;

/// Words of generated text, the frequent ones first.
const VOCABULARY: [&str; 24] = [
    "the", "of", "and", "to", "in", "a", "file", "data", "is", "storage", "memory", "that", "system",
    "block", "request", "for", "engine", "with", "phase", "change", "error", "read", "warning", "needle",
];

/// Text of this size: a file that is repeated, or generated words.
pub(crate) fn text(bytes: usize, from: Option<&Path>) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + (1 << 20));
    if let Some(path) = from {
        let part = std::fs::read(path).unwrap();
        while text.len() < bytes {
            text.extend_from_slice(&part[..part.len().min(bytes)]);
        }
    }
    let mut rng = SmallRng::seed_from_u64(1);
    while text.len() < bytes {
        // Frequencies fall with the rank, as in texts (Zipf).
        let rank = (VOCABULARY.len() as f64 + 1.0).powf(rng.random::<f64>().powf(0.7)) as usize - 1;
        text.extend_from_slice(VOCABULARY[rank.min(VOCABULARY.len() - 1)].as_bytes());
        if rng.random_ratio(3, 10) {
            text.extend((0..rng.random_range(1..9)).map(|_| rng.random_range(b'a'..=b'z')));
        }
        text.push(if rng.random_ratio(1, 12) { b'\n' } else { b' ' });
    }
    text.truncate(bytes);
    text
}
