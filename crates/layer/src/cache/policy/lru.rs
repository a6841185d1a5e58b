//! LRU: evicts the block whose last access is longest ago. If only writes are cached, this is LRW,
//! the cache that the HALO paper compares with.

use super::slot_lists::{ListId, SlotLists};
use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::directory::Directory;
use crate::numbers::{CacheSlot, Lbn};
use frit_core::Result;

const ALL: ListId = ListId(0);

/// One list, newest first.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    links: SlotLists,
}

impl EvictionPolicy for Lru {
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()> {
        self.links = SlotLists::new(setup.slots, 1);
        Ok(())
    }

    #[inline]
    fn hit(&mut self, slot: CacheSlot, _: &CacheAccess) {
        self.links.renew(ALL, slot);
    }

    #[inline]
    fn moved(&mut self, from: CacheSlot, to: CacheSlot) {
        self.links.replace(from, to);
    }

    #[inline]
    fn insert(&mut self, slot: CacheSlot, access: &CacheAccess) {
        self.links.set_lbn(slot, access.lbn);
        self.links.link(ALL, slot);
    }

    #[inline]
    fn remove(&mut self, slot: CacheSlot, _: Lbn) {
        self.links.unlink(slot);
    }

    #[inline]
    fn victims(&mut self, _: &Directory, _: u32, out: &mut Vec<Victim>) {
        if let Some(slot) = self.links.oldest(ALL) {
            self.links.unlink(slot);
            out.push(Victim { lbn: self.links.lbn(slot), slot });
        }
    }

    #[inline]
    fn prefetch(&self, slot: CacheSlot) {
        self.links.prefetch(slot);
    }

    fn dram_bytes(&self) -> u64 {
        self.links.bytes()
    }
}
