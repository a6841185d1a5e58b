//! FIFO: evicts the block that was inserted first, independent of later accesses.

use super::slot_lists::{ListId, SlotLists};
use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::directory::Directory;
use crate::numbers::{CacheSlot, Lbn};
use frit_core::Result;

const ALL: ListId = ListId(0);

/// One list, newest first.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    links: SlotLists,
}

impl EvictionPolicy for Fifo {
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()> {
        self.links = SlotLists::new(setup.slots, 1);
        Ok(())
    }

    #[inline]
    fn hit(&mut self, _: CacheSlot, _: &CacheAccess) {}

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

    fn dram_bytes(&self) -> u64 {
        self.links.bytes()
    }
}
