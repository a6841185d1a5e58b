//! Allowed contents of a volume: for each block of 4 KiB, its contents at the start and the changes
//! by requests.
//!
//! After a crash, the contents of a block must follow from all acknowledged requests and any subset
//! of the others, in their order. A request that was not acknowledged may be lost although a later
//! one persists, since both were in flight together. Within a block, each request persists
//! completely or not at all.
//!
//! The contents at the start may be those after a crash that a mirror reads from one of its sides. While
//! that side works, they are certain. If it fails before it was copied, the contents may also be others
//! that were possible after the crash ([`BeforeCrash`]).

use crate::block::command_set::CommandSet;
use crate::block::mirror_sources::MirrorSources;
use crate::block::self_describing::{PER_BLOCK, Versions};
use frit_core::StackDevice;
use std::sync::Arc;

/// Change of a block by a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockChange {
    /// Index of the request.
    pub request: u32,
    /// First sector within the block.
    pub from: u8,
    /// One past the last sector.
    pub to: u8,
    /// Version that the sectors received; 0 for a discard.
    pub version: u32,
}

#[derive(Clone, Debug)]
struct BlockHistory {
    start: Versions,
    changes: Vec<BlockChange>,
}

/// The history before the crash that a history begins with, on mirrors whose sides may differ since then.
#[derive(Debug)]
pub struct BeforeCrash {
    /// The history that the crash ended.
    pub history: History,
    /// The requests that certainly persisted.
    pub lasted: CommandSet,
    /// The sides from which the contents at the start were read.
    pub sources: MirrorSources,
}

/// Changes of all blocks.
#[derive(Clone, Debug)]
pub struct History {
    blocks: Vec<BlockHistory>,
    /// Requests that end with a flush, if flushes are atomic.
    flushes: Option<Vec<u32>>,
    before: Option<Arc<BeforeCrash>>,
}

impl History {
    /// Creates a history of blocks with these contents.
    #[must_use]
    pub fn new(start: &[Versions]) -> History {
        let block = |&start: &Versions| BlockHistory { start, changes: Vec::new() };
        History { blocks: start.iter().map(block).collect(), flushes: None, before: None }
    }

    /// Creates a history of blocks that had these contents after a crash.
    #[must_use]
    pub fn after_crash(start: &[Versions], before: BeforeCrash) -> History {
        let before = (!before.sources.is_empty()).then(|| Arc::new(before));
        History { before, ..History::new(start) }
    }

    /// Returns the sides from which the mirrors of a layer are read, if the history depends on them.
    #[must_use]
    pub fn sources_now(&self, layer: &dyn StackDevice) -> MirrorSources {
        self.before.as_ref().map_or_else(MirrorSources::default, |_| MirrorSources::now(layer))
    }

    /// Returns the history before the crash if another side of a mirror is read now than at the start.
    fn of_other_side(&self, now: &MirrorSources) -> Option<&BeforeCrash> {
        self.before.as_deref().filter(|b| b.sources.failed_by(now))
    }

    /// Notes that flushes are atomic, and the requests that end with one.
    pub fn flush_atomically(&mut self, flushes: Vec<u32>) {
        self.flushes = Some(flushes);
    }

    /// Returns `true` if the volume may have the contents `found` as a whole: with atomic flushes, those at
    /// the start or at one of the flushes.
    #[must_use]
    pub fn is_of_a_flush(&self, found: &[Versions]) -> bool {
        let Some(flushes) = &self.flushes else { return true };
        let of = |flush: Option<u32>| {
            found.iter().enumerate().all(|(b, v)| self.after(b, |r| flush.is_some_and(|f| r <= f)) == *v)
        };
        flushes.iter().rev().copied().map(Some).chain([None]).any(of)
    }

    /// Creates the history of a volume without contents.
    #[must_use]
    pub fn empty(blocks: usize) -> History {
        History::new(&vec![[0; PER_BLOCK]; blocks])
    }

    /// Records a request that gives sectors a version; 0 for a discard.
    pub fn change(&mut self, request: u32, first: u64, sectors: u64, version: u32) {
        let mut at = first;
        while at < first + sectors {
            let block = at / PER_BLOCK as u64;
            let end = ((block + 1) * PER_BLOCK as u64).min(first + sectors);
            let from = (at % PER_BLOCK as u64) as u8;
            let to = from + (end - at) as u8;
            self.blocks[block as usize].changes.push(BlockChange { request, from, to, version });
            at = end;
        }
    }

    /// Splits these requests into sectors: they are atomic by sector only.
    pub fn split(&mut self, requests: &CommandSet) {
        for block in &mut self.blocks {
            let all = std::mem::take(&mut block.changes);
            for c in all {
                if (c.request as usize) < requests.limit() && requests.has(c.request as usize) {
                    block.changes.extend((c.from..c.to).map(|s| BlockChange { from: s, to: s + 1, ..c }));
                } else {
                    block.changes.push(c);
                }
            }
        }
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Returns `true` if there are no blocks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the contents of a block after all requests.
    #[must_use]
    pub fn now(&self, block: usize) -> Versions {
        self.after(block, |_| true)
    }

    /// Returns the contents of a block after a subset of the requests.
    #[must_use]
    pub fn after(&self, block: usize, done: impl Fn(u32) -> bool) -> Versions {
        let b = &self.blocks[block];
        let mut v = b.start;
        for c in b.changes.iter().filter(|c| done(c.request)) {
            v[c.from as usize..c.to as usize].fill(c.version);
        }
        v
    }

    /// Returns `true` if a block may have the contents `found`, when only the requests in `lasted`
    /// certainly persisted.
    ///
    /// The requests are visited from the last to the first. A certain request must be visible in
    /// all its sectors that no later request covers. Any other request is visible in all of them or
    /// in none. Accepting a request that can be visible is always correct: it explains its own
    /// sectors and does not affect the others.
    ///
    /// `now` are the sides from which mirrors are read.
    #[must_use]
    pub fn allows(&self, block: usize, lasted: &CommandSet, found: &Versions, now: &MirrorSources) -> bool {
        self.explains(block, lasted, found, [true; PER_BLOCK], now)
    }

    /// Returns `true` if these sectors of a block may have the contents `found`.
    fn explains(
        &self,
        block: usize,
        lasted: &CommandSet,
        found: &Versions,
        mut open: [bool; PER_BLOCK],
        now: &MirrorSources,
    ) -> bool {
        let b = &self.blocks[block];
        for c in b.changes.iter().rev() {
            let range = c.from as usize..c.to as usize;
            let shows = range.clone().all(|s| !open[s] || found[s] == c.version);
            if shows {
                open[range].fill(false);
            } else if lasted.has(c.request as usize) {
                return false;
            }
        }
        (0..PER_BLOCK).all(|s| !open[s] || found[s] == b.start[s])
            || self.of_other_side(now).is_some_and(|b| b.history.explains(block, &b.lasted, found, open, now))
    }

    /// Returns `true` if every sector of a block holds zeros or one of its former versions.
    #[must_use]
    pub fn ever_or_zero(&self, block: usize, found: &Versions) -> bool {
        (0..PER_BLOCK).all(|s| found[s] == 0 || self.held(block, s, found[s]))
    }

    /// Returns `true` if a sector of a block ever held a version.
    #[must_use]
    pub fn held(&self, block: usize, sector: usize, version: u32) -> bool {
        let b = &self.blocks[block];
        let holds = |c: &BlockChange| (c.from..c.to).contains(&(sector as u8)) && c.version == version;
        version == b.start[sector] || b.changes.iter().any(holds)
    }

    /// Returns `true` if a sector may have a version now: that of the last certain request, or of a
    /// later one. `now` are the sides from which mirrors are read.
    #[must_use]
    pub fn may_show(
        &self,
        block: usize,
        sector: usize,
        version: u32,
        sure: &dyn Fn(u32) -> bool,
        now: &MirrorSources,
    ) -> bool {
        let b = &self.blocks[block];
        for c in b.changes.iter().rev().filter(|c| (c.from..c.to).contains(&(sector as u8))) {
            if c.version == version {
                return true;
            }
            if sure(c.request) {
                return false;
            }
        }
        let certain = |b: &BeforeCrash, r: u32| b.lasted.has(r as usize);
        let on_other_side =
            |b: &BeforeCrash| b.history.may_show(block, sector, version, &|r| certain(b, r), now);
        b.start[sector] == version || self.of_other_side(now).is_some_and(on_other_side)
    }

    /// Returns `true` if some sector of a block had no contents at the start.
    #[must_use]
    pub fn had_zeros(&self, block: usize) -> bool {
        self.blocks[block].start.contains(&0)
    }

    /// Returns the changes of a block.
    #[must_use]
    pub fn changes(&self, block: usize) -> &[BlockChange] {
        &self.blocks[block].changes
    }

    /// Replaces all changes by the contents that were found.
    pub fn settle(&mut self, found: &[Versions]) {
        *self = History::new(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(of: &[usize]) -> CommandSet {
        let mut s = CommandSet::new(64);
        of.iter().for_each(|&i| s.add(i));
        s
    }

    /// Returns `true` if a history allows contents while no mirror failed.
    fn allows(h: &History, block: usize, lasted: &CommandSet, found: &Versions) -> bool {
        h.allows(block, lasted, found, &MirrorSources::default())
    }

    #[test]
    fn what_lasted_has_to_show_and_the_rest_may() {
        let mut h = History::empty(3);
        h.change(0, 6, 4, 10);
        h.change(1, 8, 8, 11);
        h.change(2, 0, 24, 0);
        let old = [10, 10, 0, 0, 0, 0, 0, 0];
        assert_eq!(h.now(0), [0; 8]);
        assert_eq!(h.after(1, |r| r < 1), old);
        assert!(allows(&h, 1, &set(&[1]), &[11; 8]) && allows(&h, 1, &set(&[1]), &[0; 8]));
        assert!(!allows(&h, 1, &set(&[1]), &old) && h.ever_or_zero(1, &old));
        assert!(allows(&h, 1, &set(&[0]), &old) && allows(&h, 1, &set(&[]), &[0; 8]));
        assert!(!allows(&h, 1, &set(&[]), &[11, 11, 11, 11, 0, 0, 0, 0]));
        assert!(!allows(&h, 1, &set(&[0, 1]), &[10, 10, 11, 11, 11, 11, 11, 11]));
    }

    #[test]
    fn after_a_failure_of_the_source_the_rest_may_be_of_another_side() {
        let sources = |side| MirrorSources::test(&[(0, side)]);
        let mut old = History::new(&[[1; 8]]);
        old.change(0, 2, 4, 2);
        old.change(1, 4, 4, 3);
        old.split(&set(&[0, 1]));
        // The first request was flushed, the other one is on the source only.
        let before = || BeforeCrash { history: old.clone(), lasted: set(&[0]), sources: sources(0) };
        let mut h = History::after_crash(&[[1, 1, 2, 2, 3, 3, 3, 3]], before());
        h.change(0, 0, 1, 9);
        let other = [9, 1, 2, 2, 2, 2, 1, 1];
        let allows = |lasted: &[usize], found, now| h.allows(0, &set(lasted), found, &now);
        assert!(allows(&[0], &[9, 1, 2, 2, 3, 3, 3, 3], sources(0)));
        assert!(!allows(&[0], &other, sources(0)) && allows(&[0], &other, sources(1)));
        // What was flushed before the crash and what was acknowledged since then has to be there.
        assert!(!allows(&[0], &[9, 1, 1, 1, 3, 3, 3, 3], sources(1)));
        assert!(!allows(&[0], &[1, 1, 2, 2, 2, 2, 1, 1], sources(1)));
        let shows = |version, now| h.may_show(0, 7, version, &|_| true, &now);
        assert!(
            shows(3, sources(0)) && !shows(1, sources(0)) && shows(1, sources(1)) && !shows(2, sources(1))
        );
        // Without regions to copy, no side may have other contents.
        let same = BeforeCrash { sources: MirrorSources::default(), ..before() };
        let h = History::after_crash(&[[3; 8]], same);
        assert!(!h.allows(0, &set(&[]), &[1; 8], &sources(1)));
    }

    #[test]
    fn with_atomic_flushes_all_blocks_are_of_one_flush() {
        let mut h = History::empty(2);
        h.change(0, 0, 8, 1);
        h.change(1, 8, 8, 2);
        h.change(3, 0, 8, 3);
        h.change(4, 8, 8, 4);
        let (old, new) = ([[1; 8], [2; 8]], [[3; 8], [4; 8]]);
        assert!(h.is_of_a_flush(&[[3; 8], [2; 8]]));
        h.flush_atomically(vec![2, 5]);
        assert!(h.is_of_a_flush(&old) && h.is_of_a_flush(&new) && h.is_of_a_flush(&[[0; 8]; 2]));
        assert!(!h.is_of_a_flush(&[[3; 8], [2; 8]]) && !h.is_of_a_flush(&[[1; 8], [0; 8]]));
    }

    proptest! {
        /// The result of `allows` equals that of a search through all subsets of the requests.
        #[test]
        fn the_judge_agrees_with_all_subsets(
            changes in prop::collection::vec((0u8..8, 1u8..9, any::<bool>(), any::<bool>()), 1..7),
            pick in any::<u8>(), spoil in prop::option::of((0usize..8, 0u32..8)),
        ) {
            let mut h = History::empty(1);
            let mut lasted = CommandSet::new(64);
            for (i, &(from, len, discard, last)) in changes.iter().enumerate() {
                let to = (from + len).min(8);
                h.change(i as u32, u64::from(from), u64::from(to - from), if discard { 0 } else { i as u32 + 1 });
                if last { lasted.add(i) }
            }
            let mut found = h.after(0, |r| pick >> r & 1 == 1);
            if let Some((s, v)) = spoil { found[s] = v }
            let any = (0u32..1 << changes.len()).any(|subset| {
                (0..changes.len()).all(|i| !lasted.has(i) || subset >> i & 1 == 1)
                    && h.after(0, |r| subset >> r & 1 == 1) == found
            });
            prop_assert_eq!(allows(&h, 0, &lasted, &found), any);
        }
    }
}
