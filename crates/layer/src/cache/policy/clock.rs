//! CLOCK: first in, first out, but a block that was accessed since its insertion, or since the hand
//! passed it last, gets a second round. With one bit this is also called second chance or
//! FIFO-Reinsertion.

use super::slot_lists::{ListId, SlotLists};
use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::directory::Directory;
use frit_core::Result;

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
        self.accessed = vec![false; setup.slots as usize];
        Ok(())
    }

    #[inline]
    fn hit(&mut self, slot: u32, _: &CacheAccess) {
        self.accessed[slot as usize] = true;
    }

    #[inline]
    fn moved(&mut self, from: u32, to: u32) {
        self.links.replace(from, to);
        self.accessed[to as usize] = self.accessed[from as usize];
    }

    #[inline]
    fn insert(&mut self, slot: u32, access: &CacheAccess) {
        self.links.set_lbn(slot, access.lbn);
        self.links.link(RING, slot);
        self.accessed[slot as usize] = false;
    }

    #[inline]
    fn remove(&mut self, slot: u32, _: u32) {
        self.links.unlink(slot);
    }

    #[inline]
    fn victims(&mut self, _: &Directory, _: u32, out: &mut Vec<Victim>) {
        while let Some(slot) = self.links.oldest(RING) {
            if !std::mem::take(&mut self.accessed[slot as usize]) {
                self.links.unlink(slot);
                out.push(Victim { lbn: self.links.lbn(slot), slot });
                return;
            }
            self.links.renew(RING, slot);
        }
    }

    #[inline]
    fn prefetch(&self, slot: u32) {
        frit_media::memory::prefetch(self.accessed.get(slot as usize));
    }

    fn dram_bytes(&self) -> u64 {
        self.links.bytes() + self.accessed.len() as u64
    }
}
