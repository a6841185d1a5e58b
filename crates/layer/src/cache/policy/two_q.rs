//! 2Q, the full version (Johnson and Shasha, "2Q: A Low Overhead High Performance Buffer Management
//! Replacement Algorithm", VLDB 1994, section 3.2).
//!
//! New blocks enter a FIFO (A1in); blocks evicted from it are remembered (A1out); a block that is
//! accessed again while it is remembered enters an LRU (Am). The paper's sizes: a quarter of the
//! cache for A1in, and half of the cache's number of blocks remembered.

use super::ghosts::Ghosts;
use super::slot_lists::{ListId, SlotLists};
use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::directory::Directory;
use crate::numbers::{CacheSlot, Lbn};
use frit_core::Result;
use frit_core::convert::{floor_u32, to_u64, to_usize};

/// New blocks, and their ghosts (A1in and A1out).
const NEW: ListId = ListId(0);
/// Blocks that were accessed again (Am).
const MAIN: ListId = ListId(1);

/// A FIFO, an LRU, and a FIFO of ghosts.
#[derive(Clone, Debug, Default)]
pub struct TwoQ {
    links: SlotLists,
    main: Vec<bool>,
    new_len: u32,
    main_len: u32,
    /// Number of blocks of A1in above which it gives up one (the paper's Kin).
    kin: u32,
    ghosts: Ghosts,
    /// The current miss was found among the ghosts.
    met: bool,
}

impl EvictionPolicy for TwoQ {
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()> {
        let share = |s: f64| floor_u32(f64::from(setup.slots) * s);
        *self = TwoQ {
            links: SlotLists::new(setup.slots, 2),
            main: vec![false; to_usize(setup.slots)],
            new_len: 0,
            main_len: 0,
            kin: share(setup.config.two_q_in),
            ghosts: Ghosts::new(share(setup.config.two_q_out)),
            met: false,
        };
        Ok(())
    }

    #[inline]
    fn hit(&mut self, slot: CacheSlot, _: &CacheAccess) {
        if self.main[slot.idx()] {
            self.links.renew(MAIN, slot);
        }
    }

    #[inline]
    fn moved(&mut self, from: CacheSlot, to: CacheSlot) {
        self.links.replace(from, to);
        self.main[to.idx()] = self.main[from.idx()];
    }

    #[inline]
    fn miss(&mut self, access: &CacheAccess) {
        self.met = self.ghosts.take(access.lbn).is_some();
    }

    #[inline]
    fn insert(&mut self, slot: CacheSlot, access: &CacheAccess) {
        self.links.set_lbn(slot, access.lbn);
        let main = std::mem::take(&mut self.met);
        self.main[slot.idx()] = main;
        self.links.link(if main { MAIN } else { NEW }, slot);
        *(if main { &mut self.main_len } else { &mut self.new_len }) += 1;
    }

    #[inline]
    fn remove(&mut self, slot: CacheSlot, _: Lbn) {
        self.links.unlink(slot);
        *(if self.main[slot.idx()] { &mut self.main_len } else { &mut self.new_len }) -= 1;
    }

    #[inline]
    fn victims(&mut self, _: &Directory, _: u32, out: &mut Vec<Victim>) {
        let new = self.new_len > self.kin || self.main_len == 0;
        let Some(slot) = self.links.oldest(if new { NEW } else { MAIN }) else { return };
        let lbn = self.links.lbn(slot);
        self.remove(slot, lbn);
        if new {
            self.ghosts.push(NEW, lbn);
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
        self.links.bytes() + to_u64(self.main.len()) + self.ghosts.bytes()
    }
}
