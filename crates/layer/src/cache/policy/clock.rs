//! CLOCK: first in, first out, but a block that was accessed since its insertion, or since the hand
//! passed it last, gets a second round. With one bit this is also called second chance or
//! FIFO-Reinsertion.

use super::slot_lists::{ListId, SlotLists};
use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::directory::Directory;
use crate::numbers::{CacheSlot, Lbn};
use frit_core::Result;
use frit_core::convert::{to_u64, to_usize};

const RING: ListId = ListId(0);

/// The ring begins at the hand: the oldest block is next, the newest last.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    links: SlotLists,
    accessed: Vec<bool>,
}

impl EvictionPolicy for Clock {
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()> {
        self.links = SlotLists::new(setup.slots, 1);
        self.accessed = vec![false; to_usize(setup.slots)];
        Ok(())
    }

    #[inline]
    fn hit(&mut self, slot: CacheSlot, _: &CacheAccess) {
        self.accessed[slot.idx()] = true;
    }

    #[inline]
    fn moved(&mut self, from: CacheSlot, to: CacheSlot) {
        self.links.replace(from, to);
        self.accessed[to.idx()] = self.accessed[from.idx()];
    }

    #[inline]
    fn insert(&mut self, slot: CacheSlot, access: &CacheAccess) {
        self.links.set_lbn(slot, access.lbn);
        self.links.link(RING, slot);
        self.accessed[slot.idx()] = false;
    }

    #[inline]
    fn remove(&mut self, slot: CacheSlot, _: Lbn) {
        self.links.unlink(slot);
    }

    #[inline]
    fn victims(&mut self, _: &Directory, _: u32, out: &mut Vec<Victim>) {
        while let Some(slot) = self.links.oldest(RING) {
            if !std::mem::take(&mut self.accessed[slot.idx()]) {
                self.links.unlink(slot);
                out.push(Victim { lbn: self.links.lbn(slot), slot });
                return;
            }
            self.links.renew(RING, slot);
        }
    }

    #[inline]
    fn prefetch(&self, slot: CacheSlot) {
        frit_media::memory::prefetch(self.accessed.get(slot.idx()));
    }

    fn dram_bytes(&self) -> u64 {
        self.links.bytes() + to_u64(self.accessed.len())
    }
}
