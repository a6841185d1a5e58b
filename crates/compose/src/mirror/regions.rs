//! Regions of the data in DRAM: those that are marked in the bitmaps, and those that are to be
//! copied.

use frit_core::Tok;
use std::collections::VecDeque;
use std::ops::Range;

/// A set of regions, one bit each.
#[derive(Clone, Default, Debug)]
struct RegionSet {
    words: Vec<u64>,
    len: usize,
}

impl RegionSet {
    fn new(regions: usize) -> RegionSet {
        RegionSet { words: vec![0; regions.div_ceil(64)], len: 0 }
    }

    #[inline]
    fn has(&self, region: usize) -> bool {
        self.words[region / 64] >> (region % 64) & 1 == 1
    }

    /// Adds a region. Returns `true` if it was not in the set.
    #[inline]
    fn add(&mut self, region: usize) -> bool {
        let new = !self.has(region);
        self.words[region / 64] |= 1 << (region % 64);
        self.len += usize::from(new);
        new
    }

    fn remove(&mut self, region: usize) {
        self.len -= usize::from(self.has(region));
        self.words[region / 64] &= !(1 << (region % 64));
    }

    fn clear(&mut self) {
        self.words.fill(0);
        self.len = 0;
    }
}

/// State of all regions.
#[derive(Debug)]
pub(super) struct Regions {
    /// Regions that are marked in the bitmaps.
    marked: RegionSet,
    /// Marked regions that were written since the last search for regions to clear.
    written: RegionSet,
    /// Regions in which sides may differ.
    to_copy: RegionSet,
    /// Regions that could not be copied.
    stuck: RegionSet,
    /// The marked regions, in the order of their turns to be cleared.
    turns: VecDeque<u32>,
    /// For each region, the token with which its mark is durable.
    durable: Vec<Tok>,
    regions: usize,
}

impl Regions {
    pub(super) fn new(regions: usize) -> Regions {
        let set = || RegionSet::new(regions);
        Regions {
            marked: set(),
            written: set(),
            to_copy: set(),
            stuck: set(),
            turns: VecDeque::new(),
            durable: vec![Tok::default(); regions],
            regions,
        }
    }

    #[inline]
    pub(super) fn is_marked(&self, region: usize) -> bool {
        region < self.regions && self.marked.has(region)
    }

    pub(super) fn marks(&self) -> usize {
        self.marked.len
    }

    /// Notes a write to regions. Returns `true` if all of them are marked.
    #[inline]
    pub(super) fn write(&mut self, regions: Range<usize>) -> bool {
        let mut all = true;
        for region in regions {
            self.written.add(region);
            all &= self.marked.has(region);
        }
        all
    }

    /// Marks a region. Returns `true` if it was not marked.
    pub(super) fn mark(&mut self, region: usize) -> bool {
        let new = self.marked.add(region);
        if new {
            self.turns.push_back(region as u32);
        }
        new
    }

    /// Takes marks back, of which none is durable.
    pub(super) fn unmark(&mut self, regions: &[usize]) {
        regions.iter().for_each(|&r| self.marked.remove(r));
        let marked = &self.marked;
        self.turns.retain(|&r| marked.has(r as usize));
    }

    /// Returns the token with which the mark of a region is durable.
    #[inline]
    pub(super) fn durable(&self, region: usize) -> Tok {
        self.durable[region]
    }

    pub(super) fn set_durable(&mut self, regions: &[usize], tok: Tok) {
        regions.iter().for_each(|&r| self.durable[r] = tok);
    }

    /// Returns up to `most` marked regions whose turn it is to be cleared: those that were not
    /// written for the longest time.
    pub(super) fn idle(&mut self, most: usize) -> Vec<usize> {
        let mut idle = Vec::new();
        // A region that was written since its last turn gets another turn, the last one.
        for _ in 0..2 * self.turns.len() {
            if idle.len() == most {
                break;
            }
            let Some(region) = self.turns.pop_front() else { break };
            if self.written.has(region as usize) {
                self.written.remove(region as usize);
                self.turns.push_back(region);
            } else {
                idle.push(region as usize);
            }
        }
        // They stay marked until the caller has cleared them.
        idle.iter().rev().for_each(|&r| self.turns.push_front(r as u32));
        idle
    }

    /// Removes all marks.
    pub(super) fn unmark_all(&mut self) {
        self.marked.clear();
        self.written.clear();
        self.turns.clear();
    }

    /// Returns the marked regions.
    pub(super) fn marked(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.regions).filter(|&r| self.marked.has(r))
    }

    /// Returns `true` if the sides may differ in a region.
    #[inline]
    pub(super) fn differs(&self, region: usize) -> bool {
        self.to_copy.len > 0 && self.to_copy.has(region)
    }

    /// Number of regions that are to be copied.
    #[inline]
    pub(super) fn copies(&self) -> usize {
        self.to_copy.len
    }

    pub(super) fn copy(&mut self, region: usize) {
        self.to_copy.add(region);
    }

    /// Notes that a region was copied.
    pub(super) fn copied(&mut self, region: usize) {
        self.to_copy.remove(region);
    }

    /// Notes that a region could not be copied. It is not tried again.
    pub(super) fn stuck(&mut self, region: usize) {
        self.stuck.add(region);
    }

    /// Forgets which regions are to be copied.
    pub(super) fn no_copies(&mut self) {
        self.to_copy.clear();
        self.stuck.clear();
    }

    /// Returns the next region to copy.
    pub(super) fn next_copy(&self) -> Option<usize> {
        let words = self.to_copy.words.iter().zip(&self.stuck.words).map(|(copy, stuck)| copy & !stuck);
        let (i, word) = words.enumerate().find(|(_, word)| *word != 0)?;
        Some(i * 64 + word.trailing_zeros() as usize)
    }

    /// Returns the size of the tables, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        // Four bits for each region; the list of marked regions is short.
        4 * 8 * self.marked.words.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_that_are_written_keep_their_marks() {
        let mut r = Regions::new(100);
        for region in [3, 70, 5] {
            assert!(!r.write(region..region + 1) && r.mark(region) && !r.mark(region));
            assert!(r.write(region..region + 1));
        }
        // The first search finds that all were written, and begins the second round.
        assert_eq!(r.idle(1), [3]);
        r.write(3..4);
        assert_eq!(r.idle(2), [70, 5]);
        r.unmark(&[70, 5]);
        assert_eq!((r.marks(), r.marked().collect::<Vec<_>>()), (1, vec![3]));
        assert!(!r.write(3..6));
    }

    #[test]
    fn copies_go_on_without_what_failed() {
        let mut r = Regions::new(100);
        [2, 80].iter().for_each(|&x| r.copy(x));
        assert_eq!(r.next_copy(), Some(2));
        r.stuck(2);
        assert_eq!(r.next_copy(), Some(80));
        r.copied(80);
        assert_eq!((r.next_copy(), r.copies(), r.differs(2)), (None, 1, true));
    }
}
