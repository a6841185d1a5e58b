//! Baseline for the comparison in the same run: a greedy page-mapped FTL in some forty lines,
//! without time, rules, policies, units or statistics. It shows the minimum cost of such a map.

use std::collections::VecDeque;

/// Number of pages in a block.
const B: usize = 64;
const NONE: u32 = u32::MAX;

/// A page map with a reverse map, valid counts, and lists of blocks by valid count.
pub(crate) struct GreedyFtl {
    map: Vec<u32>,
    reverse: Vec<u32>,
    valid: Vec<u8>,
    lists: Vec<VecDeque<u32>>,
    free: Vec<u32>,
    open: u32,
    next: usize,
    /// Number of pages programmed.
    pub(crate) programs: u64,
}

impl GreedyFtl {
    /// Creates a full volume of `pages` pages on `blocks` blocks.
    pub(crate) fn new(pages: usize, blocks: usize) -> GreedyFtl {
        let mut f = GreedyFtl {
            map: vec![NONE; pages],
            reverse: vec![NONE; blocks * B],
            valid: vec![0; blocks],
            lists: vec![VecDeque::new(); B + 1],
            free: (1..blocks as u32).rev().collect(),
            open: 0,
            next: 0,
            programs: 0,
        };
        (0..pages).for_each(|p| f.write(p));
        f
    }

    /// Overwrites a page.
    pub(crate) fn write(&mut self, page: usize) {
        let old = self.map[page];
        if old != NONE {
            self.reverse[old as usize] = NONE;
            self.valid[old as usize / B] -= 1;
            let (v, block) = (self.valid[old as usize / B] as usize, old / B as u32);
            self.lists[v].push_back(block);
        }
        self.place(page);
        while self.free.len() < 2 {
            self.clean();
        }
    }

    fn place(&mut self, page: usize) {
        if self.next == B {
            self.open = self.free.pop().unwrap_or(0);
            self.next = 0;
        }
        let at = self.open as usize * B + self.next;
        self.next += 1;
        self.map[page] = at as u32;
        self.reverse[at] = page as u32;
        self.valid[self.open as usize] += 1;
        self.programs += 1;
    }

    /// Reclaims the block with the fewest valid pages. An entry of a list may be outdated, because
    /// the block may have lost pages since; it is checked when it is taken.
    fn clean(&mut self) {
        for v in 0..B {
            while let Some(block) = self.lists[v].pop_front() {
                if self.valid[block as usize] as usize != v || block == self.open {
                    continue;
                }
                let first = block as usize * B;
                for at in first..first + B {
                    let page = self.reverse[at];
                    if page != NONE {
                        self.reverse[at] = NONE;
                        self.place(page as usize);
                    }
                }
                self.valid[block as usize] = 0;
                self.free.push(block);
                return;
            }
        }
    }
}
