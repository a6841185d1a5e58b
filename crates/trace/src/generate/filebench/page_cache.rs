//! The page cache of the file system model: blocks of 4 KiB, replaced in LRU order.

use super::extents::BlockRun;
use std::collections::{HashMap, VecDeque};

const NONE: u32 = u32::MAX;

/// A cached block, linked in the order of use.
#[derive(Clone, Copy)]
struct Page {
    block: u32,
    newer: u32,
    older: u32,
    /// Time of the first change since the block was written, in nanoseconds.
    dirty_since: Option<u64>,
}

/// Cached blocks of a disk.
pub(super) struct PageCache {
    capacity: usize,
    slots: HashMap<u32, u32>,
    pages: Vec<Page>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    /// Dirty blocks by the time of their first change. Entries of blocks that were written since
    /// are skipped.
    aging: VecDeque<(u64, u32)>,
    dirty: usize,
}

impl PageCache {
    pub(super) fn new(capacity: usize) -> PageCache {
        PageCache {
            capacity,
            slots: HashMap::new(),
            pages: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            aging: VecDeque::new(),
            dirty: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.slots.len() >= self.capacity
    }

    /// Returns the number of dirty blocks.
    pub(super) fn dirty(&self) -> usize {
        self.dirty
    }

    /// Returns the least recently used block.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.pages.get(self.oldest as usize).map(|p| p.block)
    }

    /// Returns `true` if a block is cached, and makes it the most recently used one.
    pub(super) fn touch(&mut self, block: u32) -> bool {
        let Some(&slot) = self.slots.get(&block) else { return false };
        self.unlink(slot);
        self.link(slot);
        true
    }

    /// Adds a clean block that is not cached.
    pub(super) fn insert(&mut self, block: u32) {
        let page = Page { block, newer: NONE, older: NONE, dirty_since: None };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.pages[slot as usize] = page;
                slot
            }
            None => {
                self.pages.push(page);
                (self.pages.len() - 1) as u32
            }
        };
        self.slots.insert(block, slot);
        self.link(slot);
    }

    /// Removes a block, dirty or not.
    pub(super) fn remove(&mut self, block: u32) {
        self.clean(block);
        if let Some(slot) = self.slots.remove(&block) {
            self.unlink(slot);
            self.free.push(slot);
        }
    }

    /// Marks a cached block as dirty.
    pub(super) fn dirty_now(&mut self, block: u32, now: u64) {
        let Some(page) = self.slots.get(&block).map(|&s| &mut self.pages[s as usize]) else { return };
        if page.dirty_since.is_none() {
            page.dirty_since = Some(now);
            self.dirty += 1;
            self.aging.push_back((now, block));
        }
    }

    /// Marks a block as clean.
    pub(super) fn clean(&mut self, block: u32) {
        let Some(page) = self.slots.get(&block).map(|&s| &mut self.pages[s as usize]) else { return };
        if page.dirty_since.take().is_some() {
            self.dirty -= 1;
        }
    }

    pub(super) fn is_dirty(&self, block: u32) -> bool {
        self.dirty_since(block).is_some()
    }

    /// Returns the block that is dirty for the longest time, and the time since.
    pub(super) fn longest_dirty(&mut self) -> Option<(u64, u32)> {
        while let Some(&(since, block)) = self.aging.front() {
            if self.dirty_since(block) == Some(since) {
                return Some((since, block));
            }
            self.aging.pop_front();
        }
        None
    }

    /// Returns the consecutive dirty blocks around a dirty block, at most `limit`, none of them
    /// before or after `within`.
    pub(super) fn dirty_run(&self, block: u32, limit: u32, within: BlockRun) -> BlockRun {
        let (mut first, mut end) = (block, block + 1);
        while end - first < limit && end < within.first + within.blocks && self.is_dirty(end) {
            end += 1;
        }
        while end - first < limit && first > within.first && self.is_dirty(first - 1) {
            first -= 1;
        }
        BlockRun { first, blocks: end - first }
    }

    fn dirty_since(&self, block: u32) -> Option<u64> {
        self.slots.get(&block).and_then(|&s| self.pages[s as usize].dirty_since)
    }

    fn link(&mut self, slot: u32) {
        let before = std::mem::replace(&mut self.newest, slot);
        let page = &mut self.pages[slot as usize];
        (page.newer, page.older) = (NONE, before);
        match self.pages.get_mut(before as usize) {
            Some(page) => page.newer = slot,
            None => self.oldest = slot,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Page { newer, older, .. } = self.pages[slot as usize];
        match self.pages.get_mut(newer as usize) {
            Some(page) => page.older = older,
            None => self.newest = older,
        }
        match self.pages.get_mut(older as usize) {
            Some(page) => page.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: BlockRun = BlockRun { first: 0, blocks: 1000 };

    #[test]
    fn the_least_recently_used_block_is_the_oldest() {
        let mut cache = PageCache::new(3);
        (1..=3).for_each(|b| cache.insert(b));
        assert!(cache.is_full() && cache.touch(1) && !cache.touch(4));
        assert_eq!(cache.oldest(), Some(2));
        cache.remove(2);
        cache.insert(4);
        assert_eq!(cache.oldest(), Some(3));
        [3, 1, 4].into_iter().for_each(|b| cache.remove(b));
        assert_eq!((cache.oldest(), cache.is_full()), (None, false));
    }

    #[test]
    fn dirty_blocks_age_and_are_found_in_runs() {
        let mut cache = PageCache::new(100);
        for (time, block) in [(5, 11), (6, 10), (7, 12), (8, 20)] {
            cache.insert(block);
            cache.dirty_now(block, time);
        }
        cache.dirty_now(11, 9);
        assert_eq!((cache.dirty(), cache.longest_dirty()), (4, Some((5, 11))));
        assert_eq!(cache.dirty_run(11, 64, ALL), BlockRun { first: 10, blocks: 3 });
        assert_eq!(cache.dirty_run(11, 2, ALL), BlockRun { first: 11, blocks: 2 });
        assert_eq!(cache.dirty_run(11, 64, BlockRun { first: 11, blocks: 1 }).blocks, 1);
        cache.clean(11);
        cache.dirty_now(11, 10);
        assert_eq!(cache.longest_dirty(), Some((6, 10)));
        cache.remove(10);
        assert_eq!((cache.dirty(), cache.longest_dirty()), (3, Some((7, 12))));
    }
}
