//! Random eviction: every cached block is equally likely to be evicted.

use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::directory::Directory;
use crate::numbers::{CacheSlot, Lbn};
use frit_core::{Result, split_mix};
use std::collections::HashMap;

/// The cached blocks, in any order, and the position of each.
#[derive(Clone, Default, Debug)]
pub struct Random {
    blocks: Vec<Victim>,
    position: HashMap<u32, usize>,
    /// State of the draws, which are the same in each run.
    state: u64,
}

impl EvictionPolicy for Random {
    fn reset(&mut self, _: &PolicySetup<'_>) -> Result<()> {
        *self = Random::default();
        Ok(())
    }

    fn hit(&mut self, _: CacheSlot, _: &CacheAccess) {}

    fn moved(&mut self, from: CacheSlot, to: CacheSlot) {
        if let Some(at) = self.position.remove(&from.0) {
            self.blocks[at].slot = to;
            self.position.insert(to.0, at);
        }
    }

    fn insert(&mut self, slot: CacheSlot, access: &CacheAccess) {
        self.position.insert(slot.0, self.blocks.len());
        self.blocks.push(Victim { lbn: access.lbn, slot });
    }

    fn remove(&mut self, slot: CacheSlot, _: Lbn) {
        let Some(at) = self.position.remove(&slot.0) else { return };
        self.blocks.swap_remove(at);
        if let Some(last) = self.blocks.get(at) {
            self.position.insert(last.slot.0, at);
        }
    }

    fn victims(&mut self, _: &Directory, _: u32, out: &mut Vec<Victim>) {
        let at = split_mix::next(&mut self.state).checked_rem(self.blocks.len() as u64);
        if let Some(victim) = at.map(|at| self.blocks[at as usize]) {
            self.remove(victim.slot, victim.lbn);
            out.push(victim);
        }
    }

    fn dram_bytes(&self) -> u64 {
        (self.blocks.len() * (size_of::<Victim>() + size_of::<(u32, usize)>())) as u64
    }
}
