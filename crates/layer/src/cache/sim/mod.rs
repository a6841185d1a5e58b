//! A policy alone over a sequence of blocks: hits and what leaves, without media.

mod future;

pub use future::next_uses;

use super::directory::{DIRTY, Directory};
use super::policy::{Access, Policy, PolicyConfig, Setup, Victim, WriteCache};
use frit_core::Result;
use std::sync::Arc;

/// How many accesses ahead a block's place in the directory is fetched, and its place in the policy half as many.
const AHEAD: usize = 16;

/// One access of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockAccess {
    /// The block.
    pub lbn: u32,
    /// Whether it is written.
    pub write: bool,
    /// Whether it begins a request: the request clock goes on.
    pub begins: bool,
}

/// What came of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// Block accesses.
    pub accesses: u64,
    /// Those that found the block.
    pub hits: u64,
    /// Accesses that write.
    pub writes: u64,
    /// Writes that found the block.
    pub write_hits: u64,
    /// Blocks that left.
    pub evicted: u64,
    /// Those of them that the disk did not have: what would be written to it.
    pub destaged: u64,
    /// Times that the policy was asked: how many groups the blocks left in.
    pub evictions: u64,
}

impl Outcome {
    /// Accesses that did not find the block, as a share of all.
    #[must_use]
    pub fn miss_ratio(&self) -> f64 {
        (self.accesses - self.hits) as f64 / self.accesses.max(1) as f64
    }
}

/// A cache without media.
#[derive(Clone, Debug)]
pub struct Sim {
    dir: Directory,
    policy: Policy,
    /// Only writes bring blocks in, as in HALO; else reads do as well.
    writes_only: bool,
    clock: u32,
    out: Vec<Victim>,
    /// So far.
    pub outcome: Outcome,
}

impl Sim {
    /// An empty cache of `slots` blocks before a disk of `disk_blocks`. `next_use` is for the oracle.
    ///
    /// # Errors
    /// Sizes or parameters that cannot be.
    pub fn new(
        config: &PolicyConfig,
        slots: u32,
        disk_blocks: u32,
        writes_only: bool,
        next_use: Option<&Arc<[u64]>>,
    ) -> Result<Sim> {
        let dir = Directory::new(disk_blocks, slots)?;
        let policy = Policy::new(&Setup { slots, disk_blocks, config, next_use })?;
        let (out, outcome) = (Vec::new(), Outcome::default());
        Ok(Sim { dir, policy, writes_only, clock: 0, out, outcome })
    }

    /// A sequence of accesses. What comes next is known, so it is fetched ahead of its turn: a cache with
    /// millions of blocks would otherwise miss the processor's cache for each.
    pub fn run(&mut self, accesses: &[BlockAccess]) {
        for (i, &a) in accesses.iter().enumerate() {
            if let Some(a) = accesses.get(i + AHEAD) {
                self.dir.prefetch(a.lbn);
            }
            if let Some(slot) = accesses.get(i + AHEAD / 2).and_then(|a| self.dir.get(a.lbn)) {
                self.dir.prefetch_slot(slot);
                self.policy.prefetch(slot);
            }
            self.access(a);
        }
    }

    /// One access.
    #[inline]
    pub fn access(&mut self, a: BlockAccess) {
        self.clock = self.clock.wrapping_add(u32::from(a.begins));
        let access = Access { lbn: a.lbn, write: a.write, at: self.outcome.accesses, clock: self.clock };
        self.outcome.accesses += 1;
        self.outcome.writes += u64::from(a.write);
        if let Some(slot) = self.dir.get(a.lbn) {
            self.outcome.hits += 1;
            self.outcome.write_hits += u64::from(a.write);
            self.policy.hit(slot, &access);
            if a.write {
                self.dir.set_dirty(a.lbn, slot, true);
            }
        } else {
            if self.writes_only && !a.write {
                return;
            }
            self.policy.miss(&access);
            let Some(slot) = self.room() else { return };
            self.dir.insert(a.lbn, slot, 0xff, a.write);
            self.policy.insert(slot, &access);
        }
        self.dir.touch(a.lbn, self.clock);
    }

    /// A free slot; blocks leave for it when there is none.
    fn room(&mut self) -> Option<u32> {
        loop {
            if let Some(slot) = self.dir.alloc() {
                return Some(slot);
            }
            self.out.clear();
            self.policy.victims(&self.dir, self.clock, &mut self.out);
            if self.out.is_empty() {
                return None;
            }
            self.outcome.evictions += 1;
            self.outcome.evicted += self.out.len() as u64;
            for v in &self.out {
                self.outcome.destaged += u64::from(self.dir.flags(v.slot) & DIRTY);
                self.dir.remove(v.lbn);
                self.dir.free(v.slot);
            }
        }
    }

    /// Memory: of the directory and of the policy, in bytes.
    #[must_use]
    pub fn dram_bytes(&self) -> (u64, u64) {
        let dir = self.dir.bytes();
        (dir.blocks + dir.buckets, self.policy.dram_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_counts_what_it_does() {
        let config = PolicyConfig::named("lru");
        let mut sim = Sim::new(&config, 2, 100, true, None).unwrap();
        // Writes of 1 and 2, a read of 3 that stays outside, 1 again, then 4 drives 2 out.
        for (lbn, write) in [(1, true), (2, true), (3, false), (1, false), (4, true), (2, true)] {
            sim.access(BlockAccess { lbn, write, begins: true });
        }
        let want =
            Outcome { accesses: 6, hits: 1, writes: 4, write_hits: 0, evicted: 2, destaged: 2, evictions: 2 };
        assert_eq!(sim.outcome, want);
    }
}
