//! A bitmap with one bit for each page.

/// A bitmap. All bits are initially zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PageBitmap {
    words: Vec<u64>,
}

impl PageBitmap {
    pub(super) fn new(n: u32) -> PageBitmap {
        PageBitmap { words: vec![0; (n as usize).div_ceil(64)] }
    }

    #[inline]
    pub(super) fn has(&self, i: u32) -> bool {
        self.words[(i / 64) as usize] >> (i % 64) & 1 == 1
    }

    #[inline]
    pub(super) fn set(&mut self, i: u32) {
        self.words[(i / 64) as usize] |= 1 << (i % 64);
    }

    #[inline]
    pub(super) fn clear(&mut self, i: u32) {
        self.words[(i / 64) as usize] &= !(1 << (i % 64));
    }

    pub(super) fn fill(&mut self, n: u32, on: bool) {
        self.words.fill(if on { u64::MAX } else { 0 });
        // The bits after the last page stay zero, because `next` and `len` read whole words.
        if on && !n.is_multiple_of(64) {
            self.words[(n / 64) as usize] = (1 << (n % 64)) - 1;
        }
    }

    /// Returns the first set bit from `from` on.
    pub(super) fn next(&self, from: u32) -> Option<u32> {
        let mut word = (from / 64) as usize;
        let mut left = self.words.get(word)? & u64::MAX << (from % 64);
        while left == 0 {
            word += 1;
            left = *self.words.get(word)?;
        }
        Some(word as u32 * 64 + left.trailing_zeros())
    }

    pub(super) fn len(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// Returns the number of set bits in a range.
    pub(super) fn count(&self, range: std::ops::Range<u32>) -> u32 {
        range.filter(|&i| self.has(i)).count() as u32
    }

    pub(super) fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
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
        for i in [0, 63, 64, 199] {
            b.set(i);
        }
        let all: Vec<u32> = std::iter::successors(b.next(0), |&i| b.next(i + 1)).collect();
        assert_eq!(all, [0, 63, 64, 199]);
        b.clear(63);
        assert!(!b.has(63) && b.has(64));
        assert_eq!((b.len(), b.count(1..199), b.next(200)), (3, 1, None));
        b.fill(200, true);
        assert_eq!((b.len(), b.next(199), b.next(200)), (200, Some(199), None));
    }
}
