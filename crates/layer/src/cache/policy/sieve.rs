//! SIEVE (Zhang et al., "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction Algorithm for Web
//! Caches", NSDI 2024, algorithm 1).
//!
//! One FIFO with a bit for each block, which a hit sets. A hand moves from the oldest block to newer
//! ones. It clears the bits that are set, and evicts the first block whose bit is not set. Unlike in
//! CLOCK, a block with a set bit keeps its position, so that the hand passes new blocks soon after
//! their insertion.

use super::slot_lists::{ListId, SlotLists};
use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::directory::Directory;
use crate::numbers::{CacheSlot, Lbn};
use frit_core::Result;
use frit_core::convert::{to_u64, to_usize};

const QUEUE: ListId = ListId(0);

/// The queue in order of insertion, and the hand.
#[derive(Clone, Debug, Default)]
pub struct Sieve {
    links: SlotLists,
    visited: Vec<bool>,
    /// The block that the hand examines next; `None` for the oldest block.
    hand: Option<CacheSlot>,
}

impl Sieve {
    /// Unlinks a block. A hand at this block moves on to the next newer one.
    #[inline]
    fn leave(&mut self, slot: CacheSlot) {
        if self.hand == Some(slot) {
            self.hand = self.links.newer(slot);
        }
        self.links.unlink(slot);
    }
}

impl EvictionPolicy for Sieve {
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()> {
        self.links = SlotLists::new(setup.slots, 1);
        self.visited = vec![false; to_usize(setup.slots)];
        self.hand = None;
        Ok(())
    }

    #[inline]
    fn hit(&mut self, slot: CacheSlot, _: &CacheAccess) {
        self.visited[slot.idx()] = true;
    }

    #[inline]
    fn moved(&mut self, from: CacheSlot, to: CacheSlot) {
        self.links.replace(from, to);
        self.visited[to.idx()] = self.visited[from.idx()];
        if self.hand == Some(from) {
            self.hand = Some(to);
        }
    }

    #[inline]
    fn insert(&mut self, slot: CacheSlot, access: &CacheAccess) {
        self.links.set_lbn(slot, access.lbn);
        self.links.link(QUEUE, slot);
        self.visited[slot.idx()] = false;
    }

    #[inline]
    fn remove(&mut self, slot: CacheSlot, _: Lbn) {
        self.leave(slot);
    }

    #[inline]
    fn victims(&mut self, _: &Directory, _: u32, out: &mut Vec<Victim>) {
        // Ends after at most one round, which clears all bits.
        while let Some(slot) = self.hand.or_else(|| self.links.oldest(QUEUE)) {
            if !std::mem::take(&mut self.visited[slot.idx()]) {
                self.hand = Some(slot);
                self.leave(slot);
                out.push(Victim { lbn: self.links.lbn(slot), slot });
                return;
            }
            self.hand = self.links.newer(slot);
        }
    }

    #[inline]
    fn prefetch(&self, slot: CacheSlot) {
        frit_media::memory::prefetch(self.visited.get(slot.idx()));
    }

    fn dram_bytes(&self) -> u64 {
        self.links.bytes() + to_u64(self.visited.len())
    }
}
