//! Greedy cleaning: the fewest valid pages, found in constant time.

use super::GcPolicy;
use crate::flash::Blocks;

const NONE: u32 = u32::MAX;

/// One doubly linked list of blocks for each unit and valid count, threaded through two arrays: 8
/// bytes a block, and a block changes lists in a few loads when a page becomes invalid.
#[derive(Clone, Default, Debug)]
pub struct Greedy {
    heads: Vec<u32>,
    next: Vec<u32>,
    prev: Vec<u32>,
    /// For each unit, no list below this valid count has a block.
    least: Vec<u32>,
    lists_per_unit: u32,
}

impl Greedy {
    #[inline]
    fn list(&self, block: u32, valid: u32, blocks: &Blocks) -> usize {
        (blocks.unit_of(block) * self.lists_per_unit + valid) as usize
    }

    #[inline]
    fn link(&mut self, block: u32, valid: u32, blocks: &Blocks) {
        let list = self.list(block, valid, blocks);
        let head = self.heads[list];
        self.next[block as usize] = head;
        self.prev[block as usize] = NONE;
        if head != NONE {
            self.prev[head as usize] = block;
        }
        self.heads[list] = block;
        let least = &mut self.least[blocks.unit_of(block) as usize];
        *least = (*least).min(valid);
    }

    #[inline]
    fn unlink(&mut self, block: u32, valid: u32, blocks: &Blocks) {
        let (next, prev) = (self.next[block as usize], self.prev[block as usize]);
        if next != NONE {
            self.prev[next as usize] = prev;
        }
        if prev != NONE {
            self.next[prev as usize] = next;
        } else {
            let list = self.list(block, valid, blocks);
            self.heads[list] = next;
        }
    }
}

impl GcPolicy for Greedy {
    fn reset(&mut self, blocks: &Blocks) {
        let n = blocks.count() as usize;
        let units = (blocks.count() / blocks.blocks_per_unit().max(1)) as usize;
        self.lists_per_unit = blocks.pages_per_block() + 1;
        self.heads = vec![NONE; units * self.lists_per_unit as usize];
        self.next = vec![NONE; n];
        self.prev = vec![NONE; n];
        self.least = vec![self.lists_per_unit; units];
    }

    fn sealed(&mut self, block: u32, blocks: &Blocks) {
        self.link(block, u32::from(blocks.valid(block)), blocks);
    }

    #[inline]
    fn invalidated(&mut self, block: u32, blocks: &Blocks) {
        let valid = u32::from(blocks.valid(block));
        self.unlink(block, valid + 1, blocks);
        self.link(block, valid, blocks);
    }

    fn removed(&mut self, block: u32, blocks: &Blocks) {
        self.unlink(block, u32::from(blocks.valid(block)), blocks);
    }

    fn victim(&mut self, unit: u32, blocks: &Blocks) -> Option<u32> {
        let full = blocks.pages_per_block();
        let mut valid = self.least[unit as usize];
        while valid < full {
            let head = self.heads[(unit * self.lists_per_unit + valid) as usize];
            if head != NONE {
                self.least[unit as usize] = valid;
                return Some(head);
            }
            valid += 1;
        }
        self.least[unit as usize] = full;
        None
    }
}
