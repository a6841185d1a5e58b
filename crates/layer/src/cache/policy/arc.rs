//! ARC (Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003, figure 4).
//!
//! T1 holds blocks that were accessed once, T2 those that were accessed again. B1 and B2 remember
//! the blocks that were evicted from them. A miss in B1 raises the target size of T1, one in B2
//! lowers it, by at least 1 and by the ratio of the two. The paper does not specify whether that
//! ratio is rounded; it is not rounded here, as in libCacheSim.

use super::ghosts::Ghosts;
use super::slot_lists::{ListId, SlotLists};
use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::directory::Directory;
use crate::numbers::{CacheSlot, Lbn};
use frit_core::Result;
use frit_core::convert::{to_u64, to_usize};

/// Blocks that were accessed once, and their ghosts (T1 and B1).
const FIRST: ListId = ListId(0);
/// Blocks that were accessed more than once, and their ghosts (T2 and B2).
const SECOND: ListId = ListId(1);

/// Four lists: T1 and T2 over slots, B1 and B2 as ghosts.
#[derive(Clone, Debug, Default)]
pub struct Arc {
    links: SlotLists,
    again: Vec<bool>,
    lens: [u32; 2],
    ghosts: Ghosts,
    slots: u32,
    /// The target size of T1 (the paper's p), in blocks.
    target: f64,
    /// The ghost list in which the current miss was found.
    met: Option<ListId>,
}

impl Arc {
    fn list(&self, slot: CacheSlot) -> ListId {
        ListId(u32::from(self.again[slot.idx()]))
    }

    fn add(&mut self, list: ListId, slot: CacheSlot) {
        self.links.link(list, slot);
        self.again[slot.idx()] = list == SECOND;
        self.lens[list.idx()] += 1;
    }

    fn take(&mut self, list: ListId, slot: CacheSlot) {
        self.links.unlink(slot);
        self.lens[list.idx()] -= 1;
    }

    /// Returns the list from which a block is evicted (the paper's REPLACE).
    fn giving(&self) -> ListId {
        let first = f64::from(self.lens[0]);
        let long = first > self.target || (self.met == Some(SECOND) && first == self.target);
        if self.lens[1] == 0 || (self.lens[0] > 0 && long) { FIRST } else { SECOND }
    }

    /// Drops ghosts for a miss that was not found among them (case IV). Returns `true` if the
    /// victim must not be remembered.
    fn trim(&mut self) -> bool {
        let (b1, b2) = (self.ghosts.len(FIRST), self.ghosts.len(SECOND));
        if self.lens[0] + b1 >= self.slots {
            self.ghosts.forget_oldest(FIRST);
            return b1 == 0;
        }
        if self.lens[0] + self.lens[1] + b1 + b2 >= 2 * self.slots {
            self.ghosts.forget_oldest(SECOND);
        }
        false
    }
}

impl EvictionPolicy for Arc {
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()> {
        *self = Arc {
            links: SlotLists::new(setup.slots, 2),
            again: vec![false; to_usize(setup.slots)],
            lens: [0; 2],
            ghosts: Ghosts::new(setup.slots),
            slots: setup.slots,
            target: 0.0,
            met: None,
        };
        Ok(())
    }

    #[inline]
    fn hit(&mut self, slot: CacheSlot, _: &CacheAccess) {
        let list = self.list(slot);
        if list == SECOND {
            self.links.renew(SECOND, slot);
        } else {
            self.take(list, slot);
            self.add(SECOND, slot);
        }
    }

    #[inline]
    fn moved(&mut self, from: CacheSlot, to: CacheSlot) {
        self.links.replace(from, to);
        self.again[to.idx()] = self.again[from.idx()];
    }

    #[inline]
    fn miss(&mut self, access: &CacheAccess) {
        // The sizes before the block is removed, as in the paper.
        let (b1, b2) = (f64::from(self.ghosts.len(FIRST)), f64::from(self.ghosts.len(SECOND)));
        self.met = self.ghosts.take(access.lbn);
        match self.met {
            Some(FIRST) => self.target = (self.target + (b2 / b1).max(1.0)).min(f64::from(self.slots)),
            Some(_) => self.target = (self.target - (b1 / b2).max(1.0)).max(0.0),
            None => {}
        }
    }

    #[inline]
    fn insert(&mut self, slot: CacheSlot, access: &CacheAccess) {
        self.links.set_lbn(slot, access.lbn);
        let list = if self.met.take().is_some() { SECOND } else { FIRST };
        self.add(list, slot);
    }

    #[inline]
    fn remove(&mut self, slot: CacheSlot, _: Lbn) {
        self.take(self.list(slot), slot);
    }

    #[inline]
    fn victims(&mut self, _: &Directory, _: u32, out: &mut Vec<Victim>) {
        let forget = self.met.is_none() && self.trim();
        let list = if forget && self.lens[0] > 0 { FIRST } else { self.giving() };
        let Some(slot) = self.links.oldest(list) else { return };
        self.take(list, slot);
        let lbn = self.links.lbn(slot);
        if !forget {
            self.ghosts.push(list, lbn);
        }
        out.push(Victim { lbn, slot });
    }

    #[inline]
    fn prefetch(&self, slot: CacheSlot) {
        self.links.prefetch(slot);
    }

    #[inline]
    fn prefetch_miss(&self, lbn: Lbn) {
        self.ghosts.prefetch(lbn);
    }

    fn dram_bytes(&self) -> u64 {
        self.links.bytes() + to_u64(self.again.len()) + self.ghosts.bytes()
    }
}
