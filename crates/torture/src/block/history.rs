//! Allowed contents of a volume: for each block of 4 KiB, its contents at the start and the changes
//! by requests.
//!
//! After a crash, the contents of a block must follow from all acknowledged requests and any subset
//! of the others, in their order. A request that was not acknowledged may be lost although a later
//! one persists, since both were in flight together. Within a block, each request persists
//! completely or not at all.

use crate::block::command_set::CommandSet;
use crate::block::self_describing::{PER_BLOCK, Versions};

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

/// Changes of all blocks.
#[derive(Clone, Debug)]
pub struct History {
    blocks: Vec<BlockHistory>,
    /// Requests that end with a flush, if flushes are atomic.
    flushes: Option<Vec<u32>>,
}

impl History {
    /// Creates a history of blocks with these contents.
    #[must_use]
    pub fn new(start: &[Versions]) -> History {
        let block = |&start: &Versions| BlockHistory { start, changes: Vec::new() };
        History { blocks: start.iter().map(block).collect(), flushes: None }
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
    #[must_use]
    pub fn allows(&self, block: usize, lasted: &CommandSet, found: &Versions) -> bool {
        let b = &self.blocks[block];
        let mut open = [true; PER_BLOCK];
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
    /// later one.
    #[must_use]
    pub fn may_show(&self, block: usize, sector: usize, version: u32, sure: impl Fn(u32) -> bool) -> bool {
        let b = &self.blocks[block];
        for c in b.changes.iter().rev().filter(|c| (c.from..c.to).contains(&(sector as u8))) {
            if c.version == version {
                return true;
            }
            if sure(c.request) {
                return false;
            }
        }
        b.start[sector] == version
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

    #[test]
    fn what_lasted_has_to_show_and_the_rest_may() {
        let mut h = History::empty(3);
        h.change(0, 6, 4, 10);
        h.change(1, 8, 8, 11);
        h.change(2, 0, 24, 0);
        let old = [10, 10, 0, 0, 0, 0, 0, 0];
        assert_eq!(h.now(0), [0; 8]);
        assert_eq!(h.after(1, |r| r < 1), old);
        assert!(h.allows(1, &set(&[1]), &[11; 8]) && h.allows(1, &set(&[1]), &[0; 8]));
        assert!(!h.allows(1, &set(&[1]), &old) && h.ever_or_zero(1, &old));
        assert!(h.allows(1, &set(&[0]), &old) && h.allows(1, &set(&[]), &[0; 8]));
        assert!(!h.allows(1, &set(&[]), &[11, 11, 11, 11, 0, 0, 0, 0]));
        assert!(!h.allows(1, &set(&[0, 1]), &[10, 10, 11, 11, 11, 11, 11, 11]));
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
            prop_assert_eq!(h.allows(0, &lasted, &found), any);
        }
    }
}
