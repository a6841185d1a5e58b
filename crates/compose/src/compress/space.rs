//! Free runs of sectors.

use crate::planted::CompressBug;
use frit_core::planted::is_planted;
use std::collections::{BTreeMap, BTreeSet};

/// Free runs of sectors, by place and by length, and the runs that wait for a commit.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct RunSpace {
    by_place: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    free: u64,
    /// Runs that no entry names any more, but that the durable table may still name.
    freed: Vec<(u64, u64)>,
    freed_sectors: u64,
}

impl RunSpace {
    /// Creates a space with one free run.
    pub(super) fn new(first: u64, end: u64) -> RunSpace {
        let mut space = RunSpace::default();
        space.insert(first, end - first);
        space
    }

    /// Returns the number of free sectors, with those that wait for a commit.
    pub(super) fn sectors(&self) -> u64 {
        self.free + self.freed_sectors
    }

    /// Returns the number of free sectors that can be taken now.
    pub(super) fn free(&self) -> u64 {
        self.free
    }

    /// Returns `true` if runs wait for a commit.
    pub(super) fn waits(&self) -> bool {
        !self.freed.is_empty()
    }

    /// Returns the length of the longest free run.
    pub(super) fn longest(&self) -> u64 {
        self.by_length.last().map_or(0, |&(len, _)| len)
    }

    /// Returns the free runs in the order of their places.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_place.iter().map(|(&first, &len)| (first, len))
    }

    /// Takes a run from the shortest free run that holds it (best fit): long runs stay for chunks
    /// that compress badly.
    pub(super) fn take(&mut self, sectors: u64) -> Option<u64> {
        let &(len, first) = self.by_length.range((sectors, 0)..).next()?;
        self.remove(first, len);
        if len > sectors {
            self.insert(first + sectors, len - sectors);
        }
        Some(first)
    }

    /// Takes a certain run. Returns `false` if a part of it is not free.
    pub(super) fn take_at(&mut self, first: u64, sectors: u64) -> bool {
        let Some((&start, &len)) = self.by_place.range(..=first).next_back() else { return false };
        let (end, wanted) = (start + len, first + sectors);
        if wanted > end {
            return false;
        }
        self.remove(start, len);
        if start < first {
            self.insert(start, first - start);
        }
        if wanted < end {
            self.insert(wanted, end - wanted);
        }
        true
    }

    /// Gives back a run that no entry has named.
    pub(super) fn give_back(&mut self, mut first: u64, mut sectors: u64) {
        if let Some((&start, &len)) = self.by_place.range(..first).next_back().filter(|r| r.0 + r.1 == first)
        {
            self.remove(start, len);
            (first, sectors) = (start, len + sectors);
        }
        if let Some(&len) = self.by_place.get(&(first + sectors)) {
            self.remove(first + sectors, len);
            sectors += len;
        }
        self.insert(first, sectors);
    }

    /// Frees a run after the next commit.
    pub(super) fn free_later(&mut self, first: u64, sectors: u64) {
        if is_planted(CompressBug::OldRunFreedEarly) {
            return self.give_back(first, sectors);
        }
        self.freed.push((first, sectors));
        self.freed_sectors += sectors;
    }

    /// Frees the runs that waited for a commit.
    pub(super) fn committed(&mut self) {
        self.freed_sectors = 0;
        for (first, sectors) in std::mem::take(&mut self.freed) {
            self.give_back(first, sectors);
        }
    }

    /// Returns the part of the space in which runs have to move so that a run of this length
    /// becomes free: its first sector, and its end. It is the part with the fewest sectors in use.
    pub(super) fn part_to_compact(&self, sectors: u64) -> Option<(u64, u64)> {
        let runs: Vec<(u64, u64)> = self.runs().collect();
        let (mut from, mut sum) = (0, 0);
        let mut best: Option<(u64, u64, u64)> = None;
        for &(first, len) in &runs {
            sum += len;
            while sum - runs[from].1 >= sectors {
                sum -= runs[from].1;
                from += 1;
            }
            if sum >= sectors {
                let (start, end) = (runs[from].0, first + len);
                let used = end - start - sum;
                if best.is_none_or(|(least, ..)| used < least) {
                    best = Some((used, start, end));
                }
            }
        }
        best.map(|(_, start, end)| (start, end))
    }

    fn insert(&mut self, first: u64, sectors: u64) {
        if sectors > 0 {
            self.by_place.insert(first, sectors);
            self.by_length.insert((sectors, first));
            self.free += sectors;
        }
    }

    fn remove(&mut self, first: u64, sectors: u64) {
        self.by_place.remove(&first);
        self.by_length.remove(&(sectors, first));
        self.free -= sectors;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_run_that_fits_is_taken_and_neighbours_are_joined() {
        let mut s = RunSpace::new(10, 40);
        assert!(s.take_at(14, 2) && s.take_at(20, 10) && !s.take_at(15, 1) && !s.take_at(39, 2));
        // Free are 10..14, 16..20 and 30..40.
        assert_eq!((s.take(3), s.take(4), s.take(5), s.take(6)), (Some(10), Some(16), Some(30), None));
        assert_eq!((s.free(), s.longest()), (6, 5));
        s.free_later(14, 2);
        assert_eq!((s.sectors(), s.free(), s.waits()), (8, 6, true));
        s.committed();
        assert_eq!(s.runs().collect::<Vec<_>>(), [(13, 3), (35, 5)]);
        s.give_back(16, 4);
        assert_eq!(s.runs().collect::<Vec<_>>(), [(13, 7), (35, 5)]);
    }

    #[test]
    fn the_part_to_compact_has_the_fewest_sectors_in_use() {
        let mut s = RunSpace::new(0, 100);
        // Free: 0..2, 12..14, 15..17, 18..20, 60..62.
        for (first, n) in [(2, 10), (14, 1), (17, 1), (20, 40), (62, 38)] {
            assert!(s.take_at(first, n));
        }
        assert_eq!(s.part_to_compact(3), Some((12, 17)));
        assert_eq!(s.part_to_compact(6), Some((12, 20)));
        assert_eq!(s.part_to_compact(10), Some((0, 62)));
        assert_eq!(s.part_to_compact(11), None);
    }
}
