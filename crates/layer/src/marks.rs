//! Marks: words that hold the sequence number up to which the records of a layer are complete.
//!
//! The words of a mark are written in turn, and the highest counts. Each lies on a cache line of
//! its own, so that no word wears more than data does.

/// Number of words that are used in turn.
pub(crate) const WORDS: u64 = 64;
/// Distance between the words, in bytes.
const STRIDE: u64 = 64;
/// Address of the words of the mark.
const MARKS_AT: u64 = 4096;
/// Address of the second copies of marks, on the page of the header.
const COPIES_AT: u64 = 1024;
/// Number of the second copies.
const COPIES: u64 = 48;

/// Highest number that the words of a mark hold, and the index of its word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct HighestMark {
    pub(crate) number: u64,
    pub(crate) index: u64,
}

/// Returns the address of the word with index `i`, of words that begin at `first`.
pub(crate) fn word_at(first: u64, i: u64) -> u64 {
    first + i % WORDS * STRIDE
}

/// Returns the address of the mark with index `i`.
pub(crate) fn mark_at(i: u64) -> u64 {
    word_at(MARKS_AT, i)
}

/// Returns the address of the second copy of the mark with index `i`. It lies on another page than
/// the mark.
pub(crate) fn mark_copy_at(i: u64) -> u64 {
    COPIES_AT + i % COPIES * STRIDE
}

/// Returns `true` if a mark should advance: a quarter of the slots was written since it was set.
#[inline]
pub(crate) fn is_due(seq: u64, mark: u64, slots: u32) -> bool {
    seq - mark >= u64::from(slots / 4).max(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_used_in_turn_and_do_not_overlap() {
        let mut all: Vec<u64> = (0..WORDS).map(mark_at).chain((0..COPIES).map(mark_copy_at)).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|w| w[0] + STRIDE <= w[1]));
        assert!(all[0] >= 1024 && all[all.len() - 1] + STRIDE <= 8192);
        assert_eq!((mark_at(WORDS), mark_copy_at(COPIES)), (mark_at(0), mark_copy_at(0)));
    }

    #[test]
    fn a_mark_is_due_after_a_quarter_of_the_slots() {
        assert!(!is_due(1099, 1000, 400) && is_due(1100, 1000, 400));
        assert!(!is_due(63, 0, 8) && is_due(64, 0, 8));
    }
}
