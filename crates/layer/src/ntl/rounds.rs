//! Counters of parallel writes as in the paper: in a round, each chip writes at most one page.
//!
//! The paper does not specify how pages are grouped. Its numbers for trace C do: one round is open
//! at a time, all requests share it, and it is closed by a page whose chip is in it already
//! ([`RoundScope::Shared`]). The other scope groups the pages of each request alone.

use super::stats::NtlStats;
use frit_core::convert::{to_u64, to_usize};
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Requests whose pages can be in the same round.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum RoundScope {
    /// All requests: a round is closed by the first page whose chip is in it already (the paper).
    #[default]
    Shared,
    /// One request: the first page of each chip is in its first round, the second page in its
    /// second round, and so on. This is the time of a client with one outstanding request.
    Request,
}

/// Rule by which a shared round counts as dirty.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum RoundFlag {
    /// A flag is set when the layer looks up an updated page, before it checks whether the chip is
    /// in the round, and is cleared with the round. So an update that closes a round makes that
    /// round dirty, and not its own. The paper's counts of dynamic mapping follow this rule.
    #[default]
    Lookup,
    /// A round with an updated page is dirty.
    Any,
    /// A round of which more than half of the pages are updates is dirty.
    Most,
}

/// A round that can take further pages.
#[derive(Clone, Debug)]
struct OpenRound {
    /// For each chip, the number of the last round with a page of it. Numbers start with 1.
    last: Vec<u64>,
    /// Number of this round.
    number: u64,
    pages: u32,
    dirty_pages: u32,
    /// The flag of [`RoundFlag::Lookup`].
    dirty_seen: bool,
}

/// Counts of rounds by kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct RoundCounts {
    pub(super) clean: u64,
    pub(super) dirty: u64,
    /// Rounds with clean and dirty pages.
    pub(super) mixed: u64,
}

/// Groups page writes into rounds.
#[derive(Clone, Debug)]
pub(super) struct WriteRounds {
    scope: RoundScope,
    flag: RoundFlag,
    /// Number of pages of the current request on each chip.
    pages: Vec<u32>,
    /// Kinds of pages in each round of the current request: [`CLEAN`], [`DIRTY`] or both. Empty if
    /// rounds are shared.
    kinds: Vec<u8>,
    open: OpenRound,
}

/// Bit of a round with a clean page.
const CLEAN: u8 = 1;
/// Bit of a round with a dirty page.
const DIRTY: u8 = 2;

impl OpenRound {
    fn new(chips: u32) -> OpenRound {
        let last = vec![0; to_usize(chips)];
        OpenRound { last, number: 1, pages: 0, dirty_pages: 0, dirty_seen: false }
    }

    /// Returns the round as counts, all zero if it has no page.
    fn counts(&self, flag: RoundFlag) -> RoundCounts {
        if self.pages == 0 {
            return RoundCounts::default();
        }
        let dirty = match flag {
            RoundFlag::Lookup => self.dirty_seen,
            RoundFlag::Any => self.dirty_pages > 0,
            RoundFlag::Most => self.dirty_pages > self.pages / 2,
        };
        let mixed = self.dirty_pages > 0 && self.dirty_pages < self.pages;
        RoundCounts { clean: (!dirty).into(), dirty: dirty.into(), mixed: mixed.into() }
    }

    fn close(&mut self, flag: RoundFlag, stats: &mut NtlStats) {
        stats.add_rounds(self.counts(flag));
        self.number += 1;
        (self.pages, self.dirty_pages, self.dirty_seen) = (0, 0, false);
    }

    #[inline]
    fn add(&mut self, chip: u32, dirty: bool, flag: RoundFlag, stats: &mut NtlStats) {
        self.dirty_seen |= dirty;
        let chip = to_usize(chip);
        if self.last[chip] == self.number {
            self.close(flag, stats);
        }
        self.last[chip] = self.number;
        self.pages += 1;
        self.dirty_pages += u32::from(dirty);
    }
}

impl WriteRounds {
    pub(super) fn new(chips: u32, scope: RoundScope, flag: RoundFlag) -> WriteRounds {
        let pages = vec![0; to_usize(chips)];
        WriteRounds { scope, flag, pages, kinds: Vec::new(), open: OpenRound::new(chips) }
    }

    /// Adds a page that is written on a chip.
    #[inline]
    pub(super) fn add(&mut self, chip: u32, dirty: bool, stats: &mut NtlStats) {
        let round = to_usize(self.pages[to_usize(chip)]);
        self.pages[to_usize(chip)] += 1;
        if self.scope == RoundScope::Shared {
            return self.open.add(chip, dirty, self.flag, stats);
        }
        let kind = if dirty { DIRTY } else { CLEAN };
        match self.kinds.get_mut(round) {
            Some(k) => *k |= kind,
            None => self.kinds.push(kind),
        }
    }

    /// Counts a round that takes no page of a request: all chips write at the same time. It closes
    /// the open round, because it needs chips that are busy with it.
    pub(super) fn add_whole(&mut self, dirty: bool, stats: &mut NtlStats) {
        self.close(stats);
        stats.add_rounds(RoundCounts { clean: (!dirty).into(), dirty: dirty.into(), mixed: 0 });
    }

    /// Closes the open round, so that later pages are in another one.
    pub(super) fn close(&mut self, stats: &mut NtlStats) {
        self.open.close(self.flag, stats);
    }

    /// Returns the number of pages of the request on each chip.
    #[inline]
    pub(super) fn pages(&self) -> &[u32] {
        &self.pages
    }

    /// Returns the open round as counts: with those of the closed rounds they are the counts so
    /// far.
    pub(super) fn open(&self) -> RoundCounts {
        self.open.counts(self.flag)
    }

    /// Ends a request: its own rounds are counted. A shared round stays open.
    #[inline]
    pub(super) fn end_request(&mut self, stats: &mut NtlStats) {
        if !self.kinds.is_empty() {
            let dirty = to_u64(self.kinds.iter().filter(|&&k| k & DIRTY != 0).count());
            let mixed = to_u64(self.kinds.iter().filter(|&&k| k == CLEAN | DIRTY).count());
            stats.add_rounds(RoundCounts { clean: to_u64(self.kinds.len()) - dirty, dirty, mixed });
            self.kinds.clear();
        }
        self.pages.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the counts of all rounds, with the open one.
    fn counts(rounds: &WriteRounds, stats: &NtlStats) -> (u64, u64, u64) {
        let open = rounds.open();
        (stats.parallel_clean + open.clean, stats.parallel_dirty + open.dirty, stats.mixed + open.mixed)
    }

    #[test]
    fn a_round_of_a_request_takes_a_page_of_each_chip() {
        let mut s = NtlStats::default();
        let mut r = WriteRounds::new(4, RoundScope::Request, RoundFlag::Lookup);
        // Six pages from chip 2 on; the third is an update.
        for (i, chip) in [2, 3, 0, 1, 2, 3].into_iter().enumerate() {
            r.add(chip, i == 2, &mut s);
        }
        r.end_request(&mut s);
        assert_eq!(counts(&r, &s), (1, 1, 1));
        // All pages are on one chip.
        for _ in 0..3 {
            r.add(1, true, &mut s);
        }
        assert_eq!(r.pages(), [0, 3, 0, 0]);
        r.end_request(&mut s);
        r.end_request(&mut s);
        assert_eq!(counts(&r, &s), (1, 4, 1));
    }

    #[test]
    fn a_shared_round_is_closed_by_a_page_of_a_chip_that_it_has() {
        let mut s = NtlStats::default();
        let mut r = WriteRounds::new(4, RoundScope::Shared, RoundFlag::Any);
        // Three requests of one, two and two pages: chips 0, 1, 2 | 1, 3.
        for request in [&[0][..], &[1, 2], &[1, 3]] {
            request.iter().for_each(|&chip| r.add(chip, false, &mut s));
            r.end_request(&mut s);
        }
        assert_eq!((s.parallel_clean, counts(&r, &s)), (1, (2, 0, 0)));
        assert_eq!(r.pages(), [0; 4], "the pages of a request are those of the last one");
        r.close(&mut s);
        r.close(&mut s);
        assert_eq!((s.parallel_clean, counts(&r, &s)), (2, (2, 0, 0)), "no round without a page");
    }

    #[test]
    fn flags_decide_which_of_two_rounds_is_dirty() {
        // Chips 0, 1, 2 | 0, 1 | 1: the update on chip 0 closes the first round.
        let pages = [(0, false), (1, false), (2, false), (0, true), (1, false), (1, false)];
        let run = |flag| {
            let mut s = NtlStats::default();
            let mut r = WriteRounds::new(4, RoundScope::Shared, flag);
            let each = pages.map(|(chip, dirty)| {
                r.add(chip, dirty, &mut s);
                (s.parallel_clean, s.parallel_dirty)
            });
            (each[3], each[5], counts(&r, &s))
        };
        assert_eq!(run(RoundFlag::Lookup), ((0, 1), (1, 1), (2, 1, 1)));
        assert_eq!(run(RoundFlag::Any), ((1, 0), (1, 1), (2, 1, 1)));
        assert_eq!(run(RoundFlag::Most), ((1, 0), (2, 0), (3, 0, 1)), "one of two pages is not most");
    }

    #[test]
    fn a_whole_round_closes_the_open_one() {
        let mut s = NtlStats::default();
        let mut r = WriteRounds::new(4, RoundScope::Shared, RoundFlag::Lookup);
        r.add_whole(false, &mut s);
        assert_eq!(counts(&r, &s), (1, 0, 0));
        r.add(3, true, &mut s);
        r.add_whole(false, &mut s);
        assert_eq!(counts(&r, &s), (2, 1, 0), "two parallel writes: chip 3 was busy");
        r.add(3, false, &mut s);
        assert_eq!(counts(&r, &s), (3, 1, 0), "the flag went with its round");
    }
}
