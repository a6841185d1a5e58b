//! Ghosts: numbers of evicted blocks, in lists in order of eviction, with an index.

use super::slot_lists::{ListId, SlotLists};
use crate::cache::directory::SlotIndex;
use crate::numbers::{CacheSlot, Lbn};
use frit_core::convert::to_usize;

/// Bit of an index entry that selects one of two lists.
const SECOND: u32 = 1 << 31;

/// At most two lists that share one capacity.
#[derive(Clone, Debug)]
pub(super) struct Ghosts {
    index: SlotIndex,
    /// Lists 0 and 1; list 2 holds the free nodes. A node stands for a remembered block, as a slot
    /// for a cached one.
    links: SlotLists,
    /// First node that was never used.
    fresh: CacheSlot,
    room: u32,
    lens: [u32; 2],
}

const FREE: ListId = ListId(2);

impl Default for Ghosts {
    fn default() -> Self {
        Ghosts::new(0)
    }
}

impl Ghosts {
    /// Creates empty lists for `room` blocks in total.
    pub(super) fn new(room: u32) -> Ghosts {
        Ghosts {
            index: SlotIndex::new(to_usize(room)),
            links: SlotLists::new(room, 3),
            fresh: CacheSlot(0),
            room,
            lens: [0; 2],
        }
    }

    pub(super) fn len(&self, list: ListId) -> u32 {
        self.lens[list.idx()]
    }

    /// Removes a block. Returns the list in which it was.
    #[inline]
    pub(super) fn take(&mut self, lbn: Lbn) -> Option<ListId> {
        let entry = self.index.remove(lbn)?;
        let list = ListId(entry >> 31);
        self.release(CacheSlot(entry & !SECOND), list);
        Some(list)
    }

    /// Removes the oldest block of a list.
    #[inline]
    pub(super) fn forget_oldest(&mut self, list: ListId) {
        if let Some(node) = self.links.oldest(list) {
            self.index.remove(self.links.lbn(node));
            self.release(node, list);
        }
    }

    fn release(&mut self, node: CacheSlot, list: ListId) {
        self.links.unlink(node);
        self.links.link(FREE, node);
        self.lens[list.idx()] -= 1;
    }

    /// Adds an evicted block. If the lists are full, the oldest block of the second list is
    /// removed, or else of the first. With a capacity of zero nothing is remembered. A block that
    /// is remembered already keeps its position.
    #[inline]
    pub(super) fn push(&mut self, list: ListId, lbn: Lbn) {
        if self.room == 0 || self.index.get(lbn).is_some() {
            return;
        }
        if self.lens[0] + self.lens[1] == self.room {
            self.forget_oldest(ListId(u32::from(self.lens[1] > 0)));
        }
        let node = match self.links.oldest(FREE) {
            Some(node) => {
                self.links.unlink(node);
                node
            }
            None => {
                let node = self.fresh;
                self.fresh = node.plus(1);
                node
            }
        };
        self.links.set_lbn(node, lbn);
        self.links.link(list, node);
        self.index.insert(lbn, node.0 | list.0 << 31);
        self.lens[list.idx()] += 1;
    }

    #[inline]
    pub(super) fn prefetch(&self, lbn: Lbn) {
        self.index.prefetch(lbn);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.index.bytes() + self.links.bytes()
    }
}
