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
use frit_core::Result;

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
        let share = |s: f64| (f64::from(setup.slots) * s) as u32;
        *self = TwoQ {
            links: SlotLists::new(setup.slots, 2),
            main: vec![false; setup.slots as usize],
            new_len: 0,
            main_len: 0,
            kin: share(setup.config.two_q_in),
            ghosts: Ghosts::new(share(setup.config.two_q_out)),
            met: false,
        };
        Ok(())
    }

    #[inline]
    fn hit(&mut self, slot: u32, _: &CacheAccess) {
        if self.main[slot as usize] {
            self.links.renew(MAIN, slot);
        }
    }

    #[inline]
    fn moved(&mut self, from: u32, to: u32) {
        self.links.replace(from, to);
        self.main[to as usize] = self.main[from as usize];
    }

    #[inline]
    fn miss(&mut self, access: &CacheAccess) {
        self.met = self.ghosts.take(access.lbn).is_some();
    }

    #[inline]
    fn insert(&mut self, slot: u32, access: &CacheAccess) {
        self.links.set_lbn(slot, access.lbn);
        let main = std::mem::take(&mut self.met);
        self.main[slot as usize] = main;
        self.links.link(if main { MAIN } else { NEW }, slot);
        *(if main { &mut self.main_len } else { &mut self.new_len }) += 1;
    }

    #[inline]
    fn remove(&mut self, slot: u32, _: u32) {
        self.links.unlink(slot);
        *(if self.main[slot as usize] { &mut self.main_len } else { &mut self.new_len }) -= 1;
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
    fn prefetch(&self, slot: u32) {
        self.links.prefetch(slot);
    }

    #[inline]
    fn prefetch_miss(&self, lbn: u32) {
        self.ghosts.prefetch(lbn);
    }

    fn dram_bytes(&self) -> u64 {
        self.links.bytes() + self.main.len() as u64 + self.ghosts.bytes()
    }
}
