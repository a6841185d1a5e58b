//! Sets of cached blocks for a simulation without media.

use crate::cache::directory::{Directory, SlotIndex};
use crate::cache::policy::Victim;
use crate::numbers::{CacheSlot, Lbn};
use frit_core::Result;
use frit_core::convert::{to_u64, to_usize};

/// Operations of a simulated cache on its set of blocks.
pub(super) trait CachedBlocks {
    fn get(&self, lbn: Lbn) -> Option<CacheSlot>;
    fn prefetch(&self, lbn: Lbn);
    fn prefetch_slot(&self, slot: CacheSlot);
    /// Notes an access to a cached block.
    fn hit(&mut self, lbn: Lbn, slot: CacheSlot, write: bool, clock: u32);
    /// Inserts a block. Returns its slot, or `None` if no slot is free.
    fn insert(&mut self, lbn: Lbn, write: bool, clock: u32) -> Option<CacheSlot>;
    /// Removes a block. Returns `true` if it is dirty.
    fn remove(&mut self, victim: Victim) -> bool;
    /// Returns the directory for the policy.
    fn directory(&self) -> &Directory;
    fn bytes(&self) -> u64;
}

impl CachedBlocks for Directory {
    #[inline]
    fn get(&self, lbn: Lbn) -> Option<CacheSlot> {
        Directory::get(self, lbn)
    }

    #[inline]
    fn prefetch(&self, lbn: Lbn) {
        Directory::prefetch(self, lbn);
    }

    #[inline]
    fn prefetch_slot(&self, slot: CacheSlot) {
        Directory::prefetch_slot(self, slot);
    }

    #[inline]
    fn hit(&mut self, lbn: Lbn, slot: CacheSlot, write: bool, clock: u32) {
        if write {
            self.set_dirty(lbn, slot, true);
        }
        self.touch(lbn, clock);
    }

    #[inline]
    fn insert(&mut self, lbn: Lbn, write: bool, clock: u32) -> Option<CacheSlot> {
        let slot = self.alloc()?;
        Directory::insert(self, lbn, slot, 0xff, write);
        self.touch(lbn, clock);
        Some(slot)
    }

    #[inline]
    fn remove(&mut self, victim: Victim) -> bool {
        let dirty = self.dirty(victim.slot);
        Directory::remove(self, victim.lbn);
        self.free(victim.slot);
        dirty
    }

    fn directory(&self) -> &Directory {
        self
    }

    fn bytes(&self) -> u64 {
        let bytes = Directory::bytes(self);
        bytes.blocks + bytes.buckets
    }
}

/// Cached blocks without buckets, for policies that do not use addresses on the disk.
#[derive(Clone, Debug)]
pub(super) struct UnplacedBlocks {
    index: SlotIndex,
    dirty: Vec<bool>,
    /// Freed slots. The last one, whose memory was just accessed, is reused first.
    free: Vec<CacheSlot>,
    fresh: CacheSlot,
    /// An empty directory, because the policy does not read it.
    directory: Directory,
}

impl UnplacedBlocks {
    pub(super) fn new(slots: u32) -> Result<UnplacedBlocks> {
        let directory = Directory::new(1, slots.min(1))?;
        let (index, dirty) = (SlotIndex::new(to_usize(slots)), vec![false; to_usize(slots)]);
        Ok(UnplacedBlocks { index, dirty, free: Vec::new(), fresh: CacheSlot(0), directory })
    }
}

impl CachedBlocks for UnplacedBlocks {
    #[inline]
    fn get(&self, lbn: Lbn) -> Option<CacheSlot> {
        self.index.get(lbn).map(CacheSlot)
    }

    #[inline]
    fn prefetch(&self, lbn: Lbn) {
        self.index.prefetch(lbn);
    }

    #[inline]
    fn prefetch_slot(&self, slot: CacheSlot) {
        frit_media::memory::prefetch(self.dirty.get(slot.idx()));
    }

    #[inline]
    fn hit(&mut self, _: Lbn, slot: CacheSlot, write: bool, _: u32) {
        self.dirty[slot.idx()] |= write;
    }

    #[inline]
    fn insert(&mut self, lbn: Lbn, write: bool, _: u32) -> Option<CacheSlot> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.fresh.idx() < self.dirty.len() => {
                let slot = self.fresh;
                self.fresh = slot.plus(1);
                slot
            }
            None => return None,
        };
        self.index.insert(lbn, slot.0);
        self.dirty[slot.idx()] = write;
        Some(slot)
    }

    #[inline]
    fn remove(&mut self, victim: Victim) -> bool {
        self.index.remove(victim.lbn);
        self.free.push(victim.slot);
        self.dirty[victim.slot.idx()]
    }

    fn directory(&self) -> &Directory {
        &self.directory
    }

    fn bytes(&self) -> u64 {
        self.index.bytes() + to_u64(self.dirty.len() + self.free.capacity() * size_of::<CacheSlot>())
    }
}
