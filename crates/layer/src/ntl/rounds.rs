//! Counters of parallel writes as in the paper: in a round, each chip writes at most one page.
//!
//! The paper does not specify how pages are grouped. In this implementation rounds form within one
//! request: the first page of each chip is in the first round, its second in the second, and so on.
//! A round with a dirty page is dirty.

use super::stats::NtlStats;
use frit_core::convert::{to_u64, to_usize};

/// The rounds of a request.
#[derive(Clone, Debug)]
pub(super) struct WriteRounds {
    /// Number of pages of each chip so far.
    pages: Vec<u32>,
    /// Kinds of pages in each round: [`CLEAN`], [`DIRTY`] or both.
    kinds: Vec<u8>,
}

/// Bit of a round with a clean page.
const CLEAN: u8 = 1;
/// Bit of a round with a dirty page.
const DIRTY: u8 = 2;

impl WriteRounds {
    pub(super) fn new(chips: u32) -> WriteRounds {
        WriteRounds { pages: vec![0; to_usize(chips)], kinds: Vec::new() }
    }

    /// Adds a page that is written on a chip.
    #[inline]
    pub(super) fn add(&mut self, chip: u32, dirty: bool) {
        let round = to_usize(self.pages[to_usize(chip)]);
        self.pages[to_usize(chip)] += 1;
        let kind = if dirty { DIRTY } else { CLEAN };
        match self.kinds.get_mut(round) {
            Some(k) => *k |= kind,
            None => self.kinds.push(kind),
        }
    }

    /// Returns the number of pages of the request on each chip.
    #[inline]
    pub(super) fn pages(&self) -> &[u32] {
        &self.pages
    }

    /// Adds the rounds of a request to the counters, and resets them.
    #[inline]
    pub(super) fn end(&mut self, stats: &mut NtlStats) {
        if self.kinds.is_empty() {
            return;
        }
        let dirty = self.kinds.iter().filter(|&&k| k & DIRTY != 0).count();
        stats.parallel_dirty += to_u64(dirty);
        stats.parallel_clean += to_u64(self.kinds.len() - dirty);
        stats.mixed += to_u64(self.kinds.iter().filter(|&&k| k == CLEAN | DIRTY).count());
        self.kinds.clear();
        self.pages.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_takes_a_page_of_each_chip() {
        let mut s = NtlStats::default();
        let mut r = WriteRounds::new(4);
        // Six pages from chip 2 on; the third is an update.
        for (i, chip) in [2, 3, 0, 1, 2, 3].into_iter().enumerate() {
            r.add(chip, i == 2);
        }
        r.end(&mut s);
        assert_eq!((s.parallel_clean, s.parallel_dirty, s.mixed), (1, 1, 1));
        // All pages are on one chip.
        for _ in 0..3 {
            r.add(1, true);
        }
        assert_eq!(r.pages(), [0, 3, 0, 0]);
        r.end(&mut s);
        r.end(&mut s);
        assert_eq!((s.parallel_clean, s.parallel_dirty, s.mixed), (1, 4, 1));
    }
}
