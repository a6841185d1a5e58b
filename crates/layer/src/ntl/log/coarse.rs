//! Allocation in the coarse log: each data block that is updated has a log block, which is filled
//! in order. The oldest log block is merged if another data block needs one.

use super::LogSpace;
use crate::numbers::{LogSlot, LogicalBlock};
use frit_core::convert::{count_u32, to_usize};
use frit_core::number_types;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// A log block: `index * chips + chip`. The row of a coarse log is a log block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LogBlock(u32);

number_types!(LogBlock);

/// Reserved number that means "no block".
const NO_BLOCK: LogicalBlock = LogicalBlock(u32::MAX);

/// Log blocks, and their data blocks.
#[derive(Clone, Debug)]
pub(super) struct LogBlocks {
    pages: u32,
    chips: u32,
    /// For each log block: the data block, and the number of filled pages.
    used: Vec<(LogicalBlock, u32)>,
    of: HashMap<LogicalBlock, LogBlock>,
    free: VecDeque<LogBlock>,
    /// Used log blocks, oldest first.
    taken: VecDeque<LogBlock>,
}

impl LogBlocks {
    pub(super) fn new(blocks: u32, pages: u32, chips: u32) -> LogBlocks {
        let mut b = LogBlocks {
            pages,
            chips,
            used: vec![(NO_BLOCK, 0); to_usize(blocks)],
            of: HashMap::new(),
            free: VecDeque::new(),
            taken: VecDeque::new(),
        };
        b.clear();
        b
    }

    fn slot(&self, log_block: LogBlock, page: u32) -> LogSlot {
        let (index, chip) = (log_block.0 / self.chips, log_block.0 % self.chips);
        LogSlot((index * self.pages + page) * self.chips + chip)
    }

    pub(super) fn next_slot(&self, block: LogicalBlock) -> LogSpace {
        match (self.of.get(&block), self.free.front()) {
            (Some(&b), _) if self.used[b.idx()].1 < self.pages => {
                LogSpace::Slot(self.slot(b, self.used[b.idx()].1))
            }
            (Some(&b), _) => LogSpace::Merge(b.0..b.0 + 1),
            (None, Some(&b)) => LogSpace::Slot(self.slot(b, 0)),
            (None, None) => {
                let oldest = self.taken.front().map_or(0, |b| b.0);
                LogSpace::Merge(oldest..oldest + 1)
            }
        }
    }

    pub(super) fn take(&mut self, block: LogicalBlock, slot: LogSlot) {
        let (index, chip) = (slot.0 / self.chips, slot.0 % self.chips);
        let log_block = LogBlock(index / self.pages * self.chips + chip);
        // The first page of a data block claims the free log block that `room` returned.
        if self.free.front() == Some(&log_block) {
            self.free.pop_front();
            self.taken.push_back(log_block);
            self.of.insert(block, log_block);
            self.used[log_block.idx()] = (block, 0);
        }
        self.used[log_block.idx()].1 += 1;
    }

    pub(super) fn reclaim(&mut self, rows: &Range<u32>) {
        for b in rows.clone().map(LogBlock) {
            let (block, _) = std::mem::replace(&mut self.used[b.idx()], (NO_BLOCK, 0));
            if block == NO_BLOCK {
                continue;
            }
            self.of.remove(&block);
            self.taken.retain(|&t| t != b);
            self.free.push_back(b);
        }
    }

    pub(super) fn clear(&mut self) {
        self.used.fill((NO_BLOCK, 0));
        self.of.clear();
        self.taken.clear();
        self.free = LogBlock::first(count_u32(self.used.len())).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_block_fills_its_own_and_the_oldest_goes() {
        let mut b = LogBlocks::new(2, 2, 2);
        let write = |b: &mut LogBlocks, block| match b.next_slot(LogicalBlock(block)) {
            LogSpace::Slot(s) => {
                b.take(LogicalBlock(block), s);
                Ok(s.0)
            }
            LogSpace::Merge(rows) => Err(rows.start),
        };
        assert_eq!(write(&mut b, 7), Ok(0));
        assert_eq!(write(&mut b, 9), Ok(1));
        assert_eq!(write(&mut b, 7), Ok(2));
        assert_eq!(write(&mut b, 7), Err(0), "its own is full");
        assert_eq!(write(&mut b, 5), Err(0), "the oldest");
        b.reclaim(&(0..1));
        assert_eq!(write(&mut b, 5), Ok(0));
        assert_eq!(write(&mut b, 7), Err(1), "now 9's is the oldest");
    }
}
