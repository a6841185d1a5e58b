//! Sets of cached blocks for a simulation without media.

use crate::cache::directory::{Directory, SlotIndex};
use crate::cache::policy::Victim;
use frit_core::Result;

/// Operations of a simulated cache on its set of blocks.
pub(super) trait CachedBlocks {
    fn get(&self, lbn: u32) -> Option<u32>;
    fn prefetch(&self, lbn: u32);
    fn prefetch_slot(&self, slot: u32);
    /// Notes an access to a cached block.
    fn hit(&mut self, lbn: u32, slot: u32, write: bool, clock: u32);
    /// Inserts a block. Returns its slot, or `None` if no slot is free.
    fn insert(&mut self, lbn: u32, write: bool, clock: u32) -> Option<u32>;
    /// Removes a block. Returns `true` if it is dirty.
    fn remove(&mut self, victim: Victim) -> bool;
    /// Returns the directory for the policy.
    fn directory(&self) -> &Directory;
    fn bytes(&self) -> u64;
}

impl CachedBlocks for Directory {
    #[inline]
    fn get(&self, lbn: u32) -> Option<u32> {
        Directory::get(self, lbn)
    }

    #[inline]
    fn prefetch(&self, lbn: u32) {
        Directory::prefetch(self, lbn);
    }

    #[inline]
    fn prefetch_slot(&self, slot: u32) {
        Directory::prefetch_slot(self, slot);
    }

    #[inline]
    fn hit(&mut self, lbn: u32, slot: u32, write: bool, clock: u32) {
        if write {
            self.set_dirty(lbn, slot, true);
        }
        self.touch(lbn, clock);
    }

    #[inline]
    fn insert(&mut self, lbn: u32, write: bool, clock: u32) -> Option<u32> {
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
    free: Vec<u32>,
    fresh: u32,
    /// An empty directory, because the policy does not read it.
    directory: Directory,
}

impl UnplacedBlocks {
    pub(super) fn new(slots: u32) -> Result<UnplacedBlocks> {
        let directory = Directory::new(1, slots.min(1))?;
        let (index, dirty) = (SlotIndex::new(slots as usize), vec![false; slots as usize]);
        Ok(UnplacedBlocks { index, dirty, free: Vec::new(), fresh: 0, directory })
    }
}

impl CachedBlocks for UnplacedBlocks {
    #[inline]
    fn get(&self, lbn: u32) -> Option<u32> {
        self.index.get(lbn)
    }

    #[inline]
    fn prefetch(&self, lbn: u32) {
        self.index.prefetch(lbn);
    }

    #[inline]
    fn prefetch_slot(&self, slot: u32) {
        frit_media::memory::prefetch(self.dirty.get(slot as usize));
    }

    #[inline]
    fn hit(&mut self, _: u32, slot: u32, write: bool, _: u32) {
        self.dirty[slot as usize] |= write;
    }

    #[inline]
    fn insert(&mut self, lbn: u32, write: bool, _: u32) -> Option<u32> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if (self.fresh as usize) < self.dirty.len() => {
                self.fresh += 1;
                self.fresh - 1
            }
            None => return None,
        };
        self.index.insert(lbn, slot);
        self.dirty[slot as usize] = write;
        Some(slot)
    }

    #[inline]
    fn remove(&mut self, victim: Victim) -> bool {
        self.index.remove(victim.lbn);
        self.free.push(victim.slot);
        self.dirty[victim.slot as usize]
    }

    fn directory(&self) -> &Directory {
        &self.directory
    }

    fn bytes(&self) -> u64 {
        self.index.bytes() + (self.dirty.len() + self.free.capacity() * size_of::<u32>()) as u64
    }
}
