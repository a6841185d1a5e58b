//! S3-FIFO (Yang et al., "FIFO Queues Are All You Need for Cache Eviction", SOSP 2023, algorithm 1).
//!
//! New blocks enter a small FIFO. At its end, blocks that were accessed often enough move to the
//! main FIFO; all others are evicted and remembered. Remembered blocks that are accessed again
//! enter the main FIFO, which gives a block as many more rounds as it had accesses, at most three.
//! As in the authors' later code, while the cache fills for the first time, blocks beyond the size
//! of the small FIFO enter the main one.

use super::ghosts::Ghosts;
use super::slot_lists::{ListId, SlotLists};
use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::directory::Directory;
use crate::numbers::{CacheSlot, Lbn};
use frit_core::Result;
use frit_core::convert::{floor_u32, to_u64, to_usize};

const SMALL: ListId = ListId(0);
const MAIN: ListId = ListId(1);

/// Flag of a slot in the main FIFO. The bits below it count accesses.
const IN_MAIN: u8 = 4;
/// Largest access count (the paper: two bits).
const ACCESSES_MAX: u8 = 3;

/// Two FIFOs, and a FIFO of ghosts.
#[derive(Clone, Debug, Default)]
pub struct S3Fifo {
    links: SlotLists,
    state: Vec<u8>,
    small_len: u32,
    main_len: u32,
    small_size: u32,
    main_size: u32,
    threshold: u8,
    ghosts: Ghosts,
    /// The current miss was found among the ghosts.
    met: bool,
    /// The cache was full at least once.
    filled: bool,
}

impl S3Fifo {
    fn add_main(&mut self, slot: CacheSlot, accesses: u8) {
        self.state[slot.idx()] = IN_MAIN | accesses;
        self.links.link(MAIN, slot);
        self.main_len += 1;
    }

    fn leave(&mut self, slot: CacheSlot, out: &mut Vec<Victim>) {
        let lbn = self.links.lbn(slot);
        self.remove(slot, lbn);
        out.push(Victim { lbn, slot });
    }

    /// Evicts a block of the small FIFO, unless all of its blocks move to the main one.
    fn evict_small(&mut self, out: &mut Vec<Victim>) {
        while let Some(slot) = self.links.oldest(SMALL) {
            if self.state[slot.idx()] < self.threshold {
                self.ghosts.push(SMALL, self.links.lbn(slot));
                return self.leave(slot, out);
            }
            self.links.unlink(slot);
            self.small_len -= 1;
            self.add_main(slot, 0);
        }
    }

    fn evict_main(&mut self, out: &mut Vec<Victim>) {
        while let Some(slot) = self.links.oldest(MAIN) {
            let state = &mut self.state[slot.idx()];
            if *state == IN_MAIN {
                return self.leave(slot, out);
            }
            *state -= 1;
            self.links.renew(MAIN, slot);
        }
    }
}

impl EvictionPolicy for S3Fifo {
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()> {
        let share = |s: f64| floor_u32(f64::from(setup.slots) * s);
        let small_size = share(setup.config.s3_small);
        *self = S3Fifo {
            links: SlotLists::new(setup.slots, 2),
            state: vec![0; to_usize(setup.slots)],
            small_len: 0,
            main_len: 0,
            small_size,
            main_size: setup.slots - small_size,
            threshold: setup.config.s3_threshold,
            ghosts: Ghosts::new(share(setup.config.s3_ghost)),
            met: false,
            filled: false,
        };
        Ok(())
    }

    #[inline]
    fn hit(&mut self, slot: CacheSlot, _: &CacheAccess) {
        let state = &mut self.state[slot.idx()];
        *state += u8::from(*state & ACCESSES_MAX < ACCESSES_MAX);
    }

    #[inline]
    fn moved(&mut self, from: CacheSlot, to: CacheSlot) {
        self.links.replace(from, to);
        self.state[to.idx()] = self.state[from.idx()];
    }

    #[inline]
    fn miss(&mut self, access: &CacheAccess) {
        self.met = self.ghosts.take(access.lbn).is_some();
    }

    #[inline]
    fn insert(&mut self, slot: CacheSlot, access: &CacheAccess) {
        self.links.set_lbn(slot, access.lbn);
        if std::mem::take(&mut self.met) || (!self.filled && self.small_len >= self.small_size) {
            self.add_main(slot, 0);
        } else {
            self.state[slot.idx()] = 0;
            self.links.link(SMALL, slot);
            self.small_len += 1;
        }
    }

    #[inline]
    fn remove(&mut self, slot: CacheSlot, _: Lbn) {
        self.links.unlink(slot);
        let main = self.state[slot.idx()] & IN_MAIN != 0;
        *(if main { &mut self.main_len } else { &mut self.small_len }) -= 1;
    }

    fn victims(&mut self, _: &Directory, _: u32, out: &mut Vec<Victim>) {
        self.filled = true;
        let before = out.len();
        if self.main_len <= self.main_size && self.small_len > 0 {
            self.evict_small(out);
        }
        if out.len() == before {
            self.evict_main(out);
        }
    }

    #[inline]
    fn prefetch(&self, slot: CacheSlot) {
        frit_media::memory::prefetch(self.state.get(slot.idx()));
    }

    #[inline]
    fn prefetch_miss(&self, lbn: Lbn) {
        self.ghosts.prefetch(lbn);
    }

    fn dram_bytes(&self) -> u64 {
        self.links.bytes() + to_u64(self.state.len()) + self.ghosts.bytes()
    }
}
