//! Words of a query, and the count of their occurrences in a stream.

/// Number of words of a query.
pub const WORDS: usize = 4;
/// Largest length of a word in bytes.
pub const WORD_MAX: usize = 16;

/// Counts the occurrences of words in bytes that arrive in parts. Occurrences may overlap.
#[derive(Clone, Debug)]
pub(crate) struct WordCounter {
    words: [Vec<u8>; WORDS],
    counts: [u64; WORDS],
    /// `true` for the first bytes of words.
    firsts: [bool; 256],
    longest: usize,
    /// The last bytes, in which a word may have begun.
    tail: Vec<u8>,
}

impl WordCounter {
    /// Creates a counter of these words, which have 1 to [`WORD_MAX`] bytes.
    pub(crate) fn new(words: &[String; WORDS]) -> WordCounter {
        let words = words.clone().map(String::into_bytes);
        let longest = words.iter().map(Vec::len).max().unwrap_or(1);
        let mut firsts = [false; 256];
        for word in &words {
            if let Some(first) = word.first() {
                firsts[usize::from(*first)] = true;
            }
        }
        WordCounter { words, counts: [0; WORDS], firsts, longest, tail: Vec::new() }
    }

    /// Counts in the next bytes of the stream.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let mut joined = std::mem::take(&mut self.tail);
        joined.extend_from_slice(bytes);
        // A position is compared once all bytes of the longest word are there.
        let ready = joined.len().saturating_sub(self.longest - 1);
        self.compare(&joined, ready);
        joined.drain(..ready);
        self.tail = joined;
    }

    /// Ends the stream: its last positions are compared as well. Bytes after it begin a new stream.
    pub(crate) fn end(&mut self) {
        let rest = std::mem::take(&mut self.tail);
        self.compare(&rest, rest.len());
    }

    fn compare(&mut self, bytes: &[u8], positions: usize) {
        for (at, first) in bytes[..positions].iter().enumerate() {
            if !self.firsts[usize::from(*first)] {
                continue;
            }
            for (word, count) in self.words.iter().zip(&mut self.counts) {
                *count += u64::from(bytes[at..].starts_with(word));
            }
        }
    }

    /// Returns the counts of the words.
    pub(crate) fn counts(&self) -> [u64; WORDS] {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(parts: &[&str]) -> [u64; WORDS] {
        let words = ["storage", "age", "aa", "e"].map(str::to_owned);
        let mut counter = WordCounter::new(&words);
        parts.iter().for_each(|p| counter.add(p.as_bytes()));
        counter.end();
        counter.counts()
    }

    #[test]
    fn words_are_found_across_parts_and_at_both_ends() {
        let whole = counted(&["storage of the aaa storag e age"]);
        assert_eq!(whole, [1, 2, 2, 4]);
        assert_eq!(counted(&["sto", "r", "age of the a", "aa storag", " e ag", "e"]), whole);
        let single: Vec<String> = "storage of the aaa storag e age".chars().map(String::from).collect();
        assert_eq!(counted(&single.iter().map(String::as_str).collect::<Vec<_>>()), whole);
        assert_eq!(counted(&["", "e"]), [0, 0, 0, 1]);
    }
}
