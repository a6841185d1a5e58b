//! A bitmap with one bit for each page.

use frit_core::Lpn;
use frit_core::convert::{count_u32, to_u64, to_usize};

/// A bitmap. All bits are initially zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PageBitmap {
    words: Vec<u64>,
}

impl PageBitmap {
    pub(super) fn new(n: u32) -> PageBitmap {
        PageBitmap { words: vec![0; to_usize(n).div_ceil(64)] }
    }

    #[inline]
    pub(super) fn has(&self, lpn: Lpn) -> bool {
        self.words[to_usize(lpn.0 / 64)] >> (lpn.0 % 64) & 1 == 1
    }

    #[inline]
    pub(super) fn set(&mut self, lpn: Lpn) {
        self.words[to_usize(lpn.0 / 64)] |= 1 << (lpn.0 % 64);
    }

    #[inline]
    pub(super) fn clear(&mut self, lpn: Lpn) {
        self.words[to_usize(lpn.0 / 64)] &= !(1 << (lpn.0 % 64));
    }

    pub(super) fn fill(&mut self, n: u32, on: bool) {
        self.words.fill(if on { u64::MAX } else { 0 });
        // The bits after the last page stay zero, because `next` and `len` read whole words.
        if on && !n.is_multiple_of(64) {
            self.words[to_usize(n / 64)] = (1 << (n % 64)) - 1;
        }
    }

    /// Returns the first set bit from `from` on.
    pub(super) fn next(&self, from: Lpn) -> Option<Lpn> {
        let mut word = to_usize(from.0 / 64);
        let mut left = self.words.get(word)? & u64::MAX << (from.0 % 64);
        while left == 0 {
            word += 1;
            left = *self.words.get(word)?;
        }
        Some(Lpn(count_u32(word) * 64 + left.trailing_zeros()))
    }

    pub(super) fn len(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// Returns the number of set bits in a range.
    pub(super) fn count(&self, range: std::ops::Range<u32>) -> u32 {
        count_u32(range.filter(|&i| self.has(Lpn(i))).count())
    }

    pub(super) fn bytes(&self) -> u64 {
        to_u64(self.words.len()) * 8
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_found_in_order() {
        let mut b = PageBitmap::new(200);
        for i in [0, 63, 64, 199].map(Lpn) {
            b.set(i);
        }
        let all: Vec<Lpn> = std::iter::successors(b.next(Lpn(0)), |&i| b.next(i.plus(1))).collect();
        assert_eq!(all, [0, 63, 64, 199].map(Lpn));
        b.clear(Lpn(63));
        assert!(!b.has(Lpn(63)) && b.has(Lpn(64)));
        assert_eq!((b.len(), b.count(1..199), b.next(Lpn(200))), (3, 1, None));
        b.fill(200, true);
        assert_eq!((b.len(), b.next(Lpn(199)), b.next(Lpn(200))), (200, Some(Lpn(199)), None));
    }
}
