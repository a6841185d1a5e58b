//! Greedy garbage collection: the victim has the fewest valid pages. Exact, and nearly free when a
//! page becomes invalid.

use super::GcPolicy;
use crate::flash::{BlockTable, BlockUse};
use frit_core::convert::to_usize;

const NONE: u32 = u32::MAX;

/// Range of valid counts above that of the last victim for which blocks are kept in lists. In the
/// steady state each count has some percent of the blocks, so a range of two lasts for hundreds of
/// victims.
const MARGIN: u32 = 2;

#[derive(Clone, Copy, Debug)]
struct Links {
    next: u32,
    prev: u32,
}

/// Keeps, for each unit, doubly linked lists of the blocks with few valid pages, one list for each
/// count up to a limit. A block enters the lists when its count falls to the limit. Most pages
/// become invalid in blocks above the limit, at the cost of one comparison. When the lists are
/// empty, the unit is scanned once, and the limit is set just above the smallest valid count.
#[derive(Clone, Default, Debug)]
pub struct Greedy {
    heads: Vec<u32>,
    links: Vec<Links>,
    /// For each unit, the least count whose list may not be empty.
    least: Vec<u32>,
    /// For each unit, the largest valid count for which blocks are in lists.
    limit: Vec<u32>,
    lists_per_unit: u32,
}

impl Greedy {
    #[inline]
    fn list(&self, unit: u32, valid: u32) -> usize {
        to_usize(unit * self.lists_per_unit + valid)
    }

    fn link(&mut self, unit: u32, block: u32, valid: u32) {
        let list = self.list(unit, valid);
        let head = self.heads[list];
        self.links[to_usize(block)] = Links { next: head, prev: NONE };
        if head != NONE {
            self.links[to_usize(head)].prev = block;
        }
        self.heads[list] = block;
        let least = &mut self.least[to_usize(unit)];
        *least = (*least).min(valid);
    }

    fn unlink(&mut self, unit: u32, block: u32, valid: u32) {
        let Links { next, prev } = self.links[to_usize(block)];
        if next != NONE {
            self.links[to_usize(next)].prev = prev;
        }
        if prev != NONE {
            self.links[to_usize(prev)].next = next;
        } else {
            let list = self.list(unit, valid);
            self.heads[list] = next;
        }
    }

    /// First block of the lowest list that is not empty.
    fn lowest(&mut self, unit: u32) -> Option<(u32, u32)> {
        let limit = self.limit[to_usize(unit)];
        let found = (self.least[to_usize(unit)]..=limit)
            .map(|valid| (valid, self.heads[self.list(unit, valid)]))
            .find(|&(_, head)| head != NONE);
        self.least[to_usize(unit)] = found.map_or(limit + 1, |(valid, _)| valid);
        found
    }

    /// Sets the limit by a scan of the unit's blocks. The lists must be empty.
    fn rebuild_lists(&mut self, unit: u32, blocks: &BlockTable) {
        let sealed = || blocks.of_unit(unit).filter(|&b| blocks.state(b) == BlockUse::Sealed);
        let Some(fewest) = sealed().map(|b| u32::from(blocks.valid(b))).min() else { return };
        let limit = (fewest + MARGIN).min(blocks.pages_per_block() - 1);
        self.limit[to_usize(unit)] = limit;
        self.least[to_usize(unit)] = limit + 1;
        for b in sealed().filter(|&b| u32::from(blocks.valid(b)) <= limit) {
            self.link(unit, b, u32::from(blocks.valid(b)));
        }
    }

    /// Lowers the limit when victims have fewer valid pages; blocks above it are dropped from their
    /// lists.
    fn lower_limit(&mut self, unit: u32, valid: u32) {
        let limit = valid + MARGIN;
        if limit + MARGIN < self.limit[to_usize(unit)] {
            let (from, to) = (self.list(unit, limit + 1), self.list(unit, self.limit[to_usize(unit)]));
            // Links of dropped blocks become stale; they are never followed, since the blocks are
            // above the limit.
            self.heads[from..=to].fill(NONE);
            self.limit[to_usize(unit)] = limit;
        }
    }
}

impl GcPolicy for Greedy {
    fn reset(&mut self, blocks: &BlockTable) {
        let n = to_usize(blocks.count());
        let units = to_usize(blocks.count() / blocks.blocks_per_unit().max(1));
        self.lists_per_unit = blocks.pages_per_block() + 1;
        self.heads = vec![NONE; units * to_usize(self.lists_per_unit)];
        self.links = vec![Links { next: NONE, prev: NONE }; n];
        self.limit = vec![0; units];
        self.least = vec![1; units];
    }

    fn sealed(&mut self, block: u32, blocks: &BlockTable) {
        let (unit, valid) = (blocks.unit_of(block), u32::from(blocks.valid(block)));
        if valid <= self.limit[to_usize(unit)] {
            self.link(unit, block, valid);
        }
    }

    #[inline]
    fn invalidated(&mut self, block: u32, blocks: &BlockTable) {
        let (unit, valid) = (blocks.unit_of(block), u32::from(blocks.valid(block)));
        let limit = self.limit[to_usize(unit)];
        if valid > limit {
            return;
        }
        // At exactly the limit the block was in no list before.
        if valid < limit {
            self.unlink(unit, block, valid + 1);
        }
        self.link(unit, block, valid);
    }

    fn removed(&mut self, block: u32, blocks: &BlockTable) {
        let (unit, valid) = (blocks.unit_of(block), u32::from(blocks.valid(block)));
        if valid <= self.limit[to_usize(unit)] {
            self.unlink(unit, block, valid);
        }
    }

    fn victim(&mut self, unit: u32, blocks: &BlockTable) -> Option<u32> {
        if self.lowest(unit).is_none() {
            self.rebuild_lists(unit, blocks);
        }
        let (valid, block) = self.lowest(unit)?;
        self.lower_limit(unit, valid);
        (valid < blocks.pages_per_block()).then_some(block)
    }
}
