//! Allocation in the coarse log: each data block that is updated has a log block, which is filled
//! in order. The oldest log block is merged if another data block needs one.

use super::LogSpace;
use crate::ntl::mapping::PLACE_NONE;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Log blocks, numbered `index * chips + chip`, and their data blocks.
#[derive(Clone, Debug)]
pub(super) struct LogBlocks {
    pages: u32,
    chips: u32,
    /// For each log block: the data block, and the number of filled pages.
    used: Vec<(u32, u32)>,
    of: HashMap<u32, u32>,
    free: VecDeque<u32>,
    /// Used log blocks, oldest first.
    taken: VecDeque<u32>,
}

impl LogBlocks {
    pub(super) fn new(blocks: u32, pages: u32, chips: u32) -> LogBlocks {
        let mut b = LogBlocks {
            pages,
            chips,
            used: vec![(PLACE_NONE, 0); blocks as usize],
            of: HashMap::new(),
            free: VecDeque::new(),
            taken: VecDeque::new(),
        };
        b.clear();
        b
    }

    fn slot(&self, log_block: u32, page: u32) -> u32 {
        let (index, chip) = (log_block / self.chips, log_block % self.chips);
        (index * self.pages + page) * self.chips + chip
    }

    pub(super) fn next_slot(&self, block: u32) -> LogSpace {
        match (self.of.get(&block), self.free.front()) {
            (Some(&b), _) if self.used[b as usize].1 < self.pages => {
                LogSpace::Slot(self.slot(b, self.used[b as usize].1))
            }
            (Some(&b), _) => LogSpace::Merge(b..b + 1),
            (None, Some(&b)) => LogSpace::Slot(self.slot(b, 0)),
            (None, None) => {
                let oldest = self.taken.front().copied().unwrap_or(0);
                LogSpace::Merge(oldest..oldest + 1)
            }
        }
    }

    pub(super) fn take(&mut self, block: u32, slot: u32) {
        let (index, chip) = (slot / self.chips, slot % self.chips);
        let log_block = index / self.pages * self.chips + chip;
        // The first page of a data block claims the free log block that `room` returned.
        if self.free.front() == Some(&log_block) {
            self.free.pop_front();
            self.taken.push_back(log_block);
            self.of.insert(block, log_block);
            self.used[log_block as usize] = (block, 0);
        }
        self.used[log_block as usize].1 += 1;
    }

    pub(super) fn reclaim(&mut self, rows: &Range<u32>) {
        for b in rows.clone() {
            let (block, _) = std::mem::replace(&mut self.used[b as usize], (PLACE_NONE, 0));
            if block == PLACE_NONE {
                continue;
            }
            self.of.remove(&block);
            self.taken.retain(|&t| t != b);
            self.free.push_back(b);
        }
    }

    pub(super) fn clear(&mut self) {
        self.used.fill((PLACE_NONE, 0));
        self.of.clear();
        self.taken.clear();
        self.free = (0..self.used.len() as u32).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_block_fills_its_own_and_the_oldest_goes() {
        let mut b = LogBlocks::new(2, 2, 2);
        let write = |b: &mut LogBlocks, block| match b.next_slot(block) {
            LogSpace::Slot(s) => {
                b.take(block, s);
                Ok(s)
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
