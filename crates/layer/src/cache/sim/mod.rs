//! Simulation of a policy without media: hits and evictions over a sequence of block accesses.

mod cached_blocks;
mod future;

pub use future::next_uses;

use super::directory::Directory;
use super::policy::{
    CacheAccess, EvictionPolicy, EvictionReasons, Policy, PolicyConfig, PolicySetup, Victim,
};
use crate::numbers::Lbn;
use cached_blocks::{CachedBlocks, UnplacedBlocks};
use frit_core::Result;
use frit_core::convert::{to_f64, to_u64};
use std::sync::Arc;

/// Number of accesses by which prefetches of the directory run ahead. Prefetches of the policy run
/// ahead by half as many.
const AHEAD: usize = 16;

/// One access of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockAccess {
    /// The block.
    pub lbn: Lbn,
    /// The access is a write.
    pub write: bool,
    /// The access begins a request, which advances the request clock.
    pub begins: bool,
}

/// Counters of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SimCounts {
    /// Block accesses.
    pub accesses: u64,
    /// Accesses that found the block.
    pub hits: u64,
    /// Accesses that write.
    pub writes: u64,
    /// Writes that found the block.
    pub write_hits: u64,
    /// Blocks evicted.
    pub evicted: u64,
    /// Dirty blocks evicted, which would be written to the disk.
    pub destaged: u64,
    /// Victim selections, each of which evicts a group of blocks.
    pub evictions: u64,
}

impl SimCounts {
    /// Returns the share of accesses that did not find the block.
    #[must_use]
    pub fn miss_ratio(&self) -> f64 {
        to_f64(self.accesses - self.hits) / to_f64(self.accesses.max(1))
    }
}

/// A simulated cache without media.
#[derive(Debug)]
pub struct Sim {
    held: BlockSet,
    run: SimRun,
}

#[derive(Debug)]
enum BlockSet {
    UnplacedBlocks(UnplacedBlocks),
    Placed(Directory),
}

#[derive(Debug)]
struct SimRun {
    policy: Policy,
    /// Only writes insert blocks, as in HALO. Otherwise reads insert blocks too.
    writes_only: bool,
    clock: u32,
    out: Vec<Victim>,
    outcome: SimCounts,
}

impl Sim {
    /// Creates an empty cache of `slots` blocks for a disk of `disk_blocks`. `next_use` is for the
    /// policy `belady`.
    ///
    /// # Errors
    /// Returns an error if a size or a parameter is invalid.
    pub fn new(
        config: &PolicyConfig,
        slots: u32,
        disk_blocks: u32,
        writes_only: bool,
        next_use: Option<&Arc<[u64]>>,
    ) -> Result<Sim> {
        let policy = Policy::new(&PolicySetup { slots, disk_blocks, config, next_use })?;
        let held = match policy.by_address() {
            true => BlockSet::Placed(Directory::new(disk_blocks, slots)?),
            false => BlockSet::UnplacedBlocks(UnplacedBlocks::new(slots)?),
        };
        let run = SimRun { policy, writes_only, clock: 0, out: Vec::new(), outcome: SimCounts::default() };
        Ok(Sim { held, run })
    }

    /// Simulates the next accesses. Later accesses are known, so their data is prefetched; a cache
    /// of millions of blocks would otherwise miss the processor's cache at each access.
    pub fn run(&mut self, accesses: &[BlockAccess]) {
        match &mut self.held {
            BlockSet::UnplacedBlocks(held) => self.run.all(held, accesses),
            BlockSet::Placed(held) => self.run.all(held, accesses),
        }
    }

    /// Returns the counters of all accesses so far.
    #[must_use]
    pub fn outcome(&self) -> SimCounts {
        self.run.outcome
    }

    /// Returns the number of evictions by reason, if the policy has such reasons.
    #[must_use]
    pub fn reasons(&self) -> Option<EvictionReasons> {
        self.run.policy.reasons()
    }

    /// Returns the DRAM of the set of blocks and of the policy, in bytes.
    #[must_use]
    pub fn dram_bytes(&self) -> (u64, u64) {
        let held = match &self.held {
            BlockSet::UnplacedBlocks(held) => held.bytes(),
            BlockSet::Placed(held) => CachedBlocks::bytes(held),
        };
        (held, self.run.policy.dram_bytes())
    }
}

impl SimRun {
    fn all<H: CachedBlocks>(&mut self, held: &mut H, accesses: &[BlockAccess]) {
        for (i, &a) in accesses.iter().enumerate() {
            if let Some(a) = accesses.get(i + AHEAD) {
                held.prefetch(a.lbn);
            }
            if let Some(a) = accesses.get(i + AHEAD / 2) {
                match held.get(a.lbn) {
                    Some(slot) => {
                        held.prefetch_slot(slot);
                        self.policy.prefetch(slot);
                    }
                    None => self.policy.prefetch_miss(a.lbn),
                }
            }
            self.access(held, a);
        }
    }

    #[inline]
    fn access<H: CachedBlocks>(&mut self, held: &mut H, a: BlockAccess) {
        self.clock = self.clock.wrapping_add(u32::from(a.begins));
        let access = CacheAccess { lbn: a.lbn, write: a.write, at: self.outcome.accesses, clock: self.clock };
        self.outcome.accesses += 1;
        self.outcome.writes += u64::from(a.write);
        if let Some(slot) = held.get(a.lbn) {
            self.outcome.hits += 1;
            self.outcome.write_hits += u64::from(a.write);
            self.policy.hit(slot, &access);
            held.hit(a.lbn, slot, a.write, self.clock);
        } else if a.write || !self.writes_only {
            self.policy.miss(&access);
            loop {
                if let Some(slot) = held.insert(a.lbn, a.write, self.clock) {
                    return self.policy.insert(slot, &access);
                }
                if !self.evict(held) {
                    return;
                }
            }
        }
    }

    /// Evicts blocks. Returns `true` if any block was evicted.
    fn evict<H: CachedBlocks>(&mut self, held: &mut H) -> bool {
        self.out.clear();
        self.policy.victims(held.directory(), self.clock, &mut self.out);
        self.outcome.evictions += u64::from(!self.out.is_empty());
        self.outcome.evicted += to_u64(self.out.len());
        for &v in &self.out {
            self.outcome.destaged += u64::from(held.remove(v));
        }
        !self.out.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_counts_what_it_does() {
        let config = PolicyConfig::named("lru");
        let mut sim = Sim::new(&config, 2, 100, true, None).unwrap();
        // Writes of 1 and 2, a read of 3 that is not inserted, a read of 1, then a write of 4 that
        // evicts 2.
        let accesses = [(1, true), (2, true), (3, false), (1, false), (4, true), (2, true)];
        sim.run(&accesses.map(|(lbn, write)| BlockAccess { lbn: Lbn(lbn), write, begins: true }));
        let want = SimCounts {
            accesses: 6,
            hits: 1,
            writes: 4,
            write_hits: 0,
            evicted: 2,
            destaged: 2,
            evictions: 2,
        };
        assert_eq!(sim.outcome(), want);
    }
}
