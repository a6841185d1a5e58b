//! Generated text of a queried file.

use super::words::WORDS;
use frit_core::split_mix::mix;

/// Words of the text beside those of the query, which are rare among them.
const COMMON: [&str; 16] = [
    "the",
    "system",
    "of",
    "memory",
    "a",
    "file",
    "and",
    "data",
    "is",
    "to",
    "in",
    "engine",
    "access",
    "that",
    "host",
    "processor",
];
/// One of this many words is a word of the query, on average.
const QUERY_SHARE: u64 = 64;

/// Generates words with spaces between them.
#[derive(Debug)]
pub(super) struct TextSource<'w> {
    words: &'w [String; WORDS],
    state: u64,
    rest: Vec<u8>,
}

impl<'w> TextSource<'w> {
    pub(super) fn new(words: &'w [String; WORDS], seed: u64) -> Self {
        TextSource { words, state: mix(seed), rest: Vec::new() }
    }

    /// Fills a buffer with the next bytes.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) {
        let mut text = std::mem::take(&mut self.rest);
        while text.len() < buffer.len() {
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let random = mix(self.state);
            let word = match random % QUERY_SHARE {
                0 => &self.words[(random >> 32) as usize % WORDS],
                _ => COMMON[(random >> 32) as usize % COMMON.len()],
            };
            text.extend_from_slice(word.as_bytes());
            text.push(if random >> 60 == 0 { b'\n' } else { b' ' });
        }
        buffer.copy_from_slice(&text[..buffer.len()]);
        text.drain(..buffer.len());
        self.rest = text;
    }
}
