//! A set of small integers as a bitmap with a summary level, which finds the next member fast even
//! if there are few.

use frit_core::convert::{count_u32, size_in_memory, to_u64, to_usize};

/// A set of integers.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseBitmap {
    bits: Vec<u64>,
    /// One bit for each word of `bits` that is not zero.
    summary: Vec<u64>,
    len: u32,
}

impl SparseBitmap {
    /// Creates an empty set for members below `end`.
    pub(crate) fn new(end: u64) -> SparseBitmap {
        let words = size_in_memory(end.div_ceil(64));
        SparseBitmap { bits: vec![0; words], summary: vec![0; words.div_ceil(64)], len: 0 }
    }

    /// Returns the number of members.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) fn contains(&self, i: u32) -> bool {
        self.bits[to_usize(i / 64)] >> (i % 64) & 1 != 0
    }

    /// Adds a member. Returns `true` if it is new.
    #[inline]
    pub(crate) fn insert(&mut self, i: u32) -> bool {
        let word = to_usize(i / 64);
        let new = !self.contains(i);
        self.bits[word] |= 1 << (i % 64);
        self.summary[word / 64] |= 1 << (word % 64);
        self.len += u32::from(new);
        new
    }

    /// Removes a member. Returns `true` if it was one.
    #[inline]
    pub(crate) fn remove(&mut self, i: u32) -> bool {
        let word = to_usize(i / 64);
        let was = self.contains(i);
        self.bits[word] &= !(1 << (i % 64));
        if self.bits[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
        self.len -= u32::from(was);
        was
    }

    /// Returns the members from `from` to the end of its word of 64 as bits, of which bit 0 stands
    /// for `from`.
    #[inline]
    pub(crate) fn rest_of_word(&self, from: u32) -> u64 {
        self.bits[to_usize(from / 64)] >> (from % 64)
    }

    /// Returns the first member from `from` on, with wrap-around after the last member.
    #[inline]
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        let (word, bit) = (to_usize(from / 64), from % 64);
        // Most often the next member is in the same word.
        match self.bits.get(word).map_or(0, |&w| w >> bit) {
            0 if self.len == 0 => None,
            0 => self.first_from(word + 1).or_else(|| self.first_from(0)),
            rest => Some(from + rest.trailing_zeros()),
        }
    }

    /// Returns the first member in the words from `word` on.
    fn first_from(&self, word: usize) -> Option<u32> {
        let start = word / 64;
        let head = self.summary.get(start)? & (u64::MAX << (word % 64));
        let found = |at: usize, set: u64| {
            let word = at * 64 + to_usize(set.trailing_zeros());
            count_u32(word) * 64 + self.bits[word].trailing_zeros()
        };
        if head != 0 {
            return Some(found(start, head));
        }
        let rest = self.summary[start + 1..].iter().position(|&s| s != 0)?;
        Some(found(start + 1 + rest, self.summary[start + 1 + rest]))
    }

    /// Returns the DRAM used, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        to_u64(size_of_val(self.bits.as_slice()) + size_of_val(self.summary.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_sorted_set(ops in prop::collection::vec((0u32..20_000, 0u8..3), 1..300)) {
            let (mut bits, mut shadow) = (SparseBitmap::new(20_000), BTreeSet::new());
            for (i, op) in ops {
                match op {
                    0 => prop_assert_eq!(bits.insert(i), shadow.insert(i)),
                    1 => prop_assert_eq!(bits.remove(i), shadow.remove(&i)),
                    _ => {}
                }
                let next = shadow.range(i..).next().or_else(|| shadow.iter().next()).copied();
                prop_assert_eq!(bits.next(i), next);
                prop_assert_eq!(bits.contains(i), shadow.contains(&i));
                prop_assert_eq!(bits.len() as usize, shadow.len());
            }
        }
    }
}
