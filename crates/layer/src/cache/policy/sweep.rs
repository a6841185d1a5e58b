//! Sweep, a policy of frit derived from HALO: it evicts whole buckets in the order of the disk and
//! reduces the disk's rotations for their writes. `docs/design/cache-own-policy.md` has the
//! reasons, and the effect of each part.
//!
//! 1. *Buckets worth a visit.* A bucket is evicted if it holds more blocks than the average by a
//!    factor that falls to zero over `sweep_scan` buckets. Blocks of a young bucket, relative to
//!    the mean age of buckets, have a lower weight.
//! 2. *Several buckets together*, in the order of the disk, so that the seek from the last read and
//!    back happens once.
//! 3. *Close runs in separate passes.* A disk that acknowledges writes from the platter has passed
//!    the start of a close run when its command arrives, and waits for a whole revolution. So each
//!    pass over a bucket takes the runs that begin at least `sweep_gap` after the last one, as old
//!    formats interleaved sectors.

use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::BLOCK_BYTES;
use crate::cache::directory::{BucketBlocks, Directory, PINNED};
use crate::numbers::{BucketId, CacheSlot, Lbn};
use frit_core::Result;
use frit_core::convert::{bounded_u32, to_u64, to_usize};

/// Weight of one bucket in the mean age: the mean is over about the last thousand buckets.
const MEAN_WEIGHT: f64 = 1.0 / 1024.0;

/// A hand that moves over the disk. All state of blocks is in the buckets of the directory.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// The bucket at which the next search begins.
    cursor: BucketId,
    /// Smallest number of blocks that are evicted together.
    batch: usize,
    /// Smallest number of blocks between the end of a run and the start of the next one of the same
    /// pass.
    gap: u32,
    /// Initial threshold of a bucket's blocks, as a multiple of the average.
    dense: f64,
    /// Age below which the blocks of a bucket have a lower weight, as a multiple of the mean.
    age: f64,
    /// Mean age of the buckets that the hand passed, in requests.
    mean_age: f64,
    /// Number of buckets over which the threshold falls to zero.
    scan: u32,
    blocks: Box<BucketBlocks>,
    leaving: Vec<Victim>,
}

impl Sweep {
    /// Collects the blocks of a bucket that can be evicted in `leaving`.
    fn look(&mut self, dir: &Directory, bucket: BucketId) {
        self.leaving.clear();
        dir.blocks_of(bucket, &mut self.blocks);
        let free = self.blocks.iter().filter(|&(_, slot)| dir.flags(slot) & PINNED == 0);
        self.leaving.extend(free.map(|(lbn, slot)| Victim { lbn, slot }));
    }

    /// Moves the collected blocks to `out`, in passes over their runs.
    fn take(&mut self, out: &mut Vec<Victim>) {
        while !self.leaving.is_empty() {
            let (mut end, mut taken): (Option<Lbn>, bool) = (None, false);
            let gap = self.gap;
            let mut last = None;
            self.leaving.retain(|v| {
                let goes_on = last.is_some_and(|last: Lbn| last.plus(1) == v.lbn);
                last = Some(v.lbn);
                // A run is taken or kept as a whole.
                taken = if goes_on { taken } else { end.is_none_or(|e| v.lbn.0 - e.0 >= gap) };
                if taken {
                    end = Some(v.lbn.plus(1));
                    out.push(*v);
                }
                !taken
            });
        }
    }
}

impl EvictionPolicy for Sweep {
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()> {
        let c = setup.config;
        *self = Sweep {
            batch: to_usize(c.sweep_batch.clamp(1, (setup.slots / 64).max(1))),
            gap: bounded_u32(c.sweep_gap / BLOCK_BYTES),
            dense: c.sweep_dense,
            age: c.sweep_age,
            scan: c.sweep_scan,
            ..Sweep::default()
        };
        Ok(())
    }

    #[inline]
    fn hit(&mut self, _: CacheSlot, _: &CacheAccess) {}

    #[inline]
    fn moved(&mut self, _: CacheSlot, _: CacheSlot) {}

    #[inline]
    fn insert(&mut self, _: CacheSlot, _: &CacheAccess) {}

    #[inline]
    fn remove(&mut self, _: CacheSlot, _: Lbn) {}

    fn victims(&mut self, dir: &Directory, clock: u32, out: &mut Vec<Victim>) {
        let average = f64::from(dir.len()) / f64::from(dir.active().max(1));
        let (mut passed, mut first) = (0, None);
        // Once the threshold is zero, a block that can be evicted is found within one round.
        for _ in 0..u64::from(dir.active()) + u64::from(self.scan) {
            let Some(i) = dir.next_active(self.cursor) else { return };
            if first == Some(i) {
                // The hand has made a full round, so all blocks here are chosen already.
                return;
            }
            self.cursor = i.plus(1);
            let left = 1.0 - f64::from(passed) / f64::from(self.scan);
            passed = (passed + 1).min(self.scan);
            let bucket = dir.bucket(i);
            let age = f64::from(bucket.age(clock));
            // The blocks of young buckets have a lower weight, because they are likely to be
            // written again soon.
            let old = self.age * self.mean_age;
            let counts =
                if age < old { f64::from(bucket.count) * age / old } else { f64::from(bucket.count) };
            self.mean_age += (age - self.mean_age) * MEAN_WEIGHT;
            if counts < self.dense * average * left {
                continue;
            }
            self.look(dir, i);
            if self.leaving.is_empty() {
                continue;
            }
            passed = 0;
            first = first.or(Some(i));
            self.take(out);
            if out.len() >= self.batch {
                return;
            }
        }
    }

    fn by_address(&self) -> bool {
        true
    }

    fn dram_bytes(&self) -> u64 {
        to_u64(size_of::<Sweep>() + size_of::<BucketBlocks>() + self.leaving.capacity() * size_of::<Victim>())
    }
}

#[cfg(test)]
mod tests {
    use super::super::PolicyConfig;
    use super::*;

    const DISK: u32 = 64 * 256;

    fn sweep(config: &PolicyConfig) -> Sweep {
        let mut s = Sweep::default();
        s.reset(&PolicySetup { slots: 4096, disk_blocks: DISK, config, next_use: None }).unwrap();
        s
    }

    /// Creates buckets at clock 1000 from their number, cached blocks and age.
    fn directory(all: &[(u32, &[u32], u32)]) -> Directory {
        let mut dir = Directory::new(DISK, 4096).unwrap();
        for &(bucket, blocks, age) in all {
            for block in blocks {
                let slot = dir.alloc().unwrap();
                dir.insert(BucketId(bucket).block(*block), slot, 0xff, true);
            }
            dir.touch(BucketId(bucket).block(0), 1000 - age);
        }
        dir
    }

    fn victims(s: &mut Sweep, dir: &Directory) -> Vec<u32> {
        let mut out = Vec::new();
        s.victims(dir, 1000, &mut out);
        out.iter().map(|v| v.lbn.0).collect()
    }

    #[test]
    fn near_runs_take_turns_and_runs_are_not_cut() {
        let config = PolicyConfig { sweep_gap: 5 * 4096, sweep_batch: 1, ..PolicyConfig::named("sweep") };
        let dir = directory(&[(0, &[0, 1, 3, 4, 6, 9, 20, 21, 22, 30], 5)]);
        // First 0 and 1, then the runs that begin at least 5 after the end of the last: 9, 20 to
        // 22, 30. Next pass: 3 and 4. Last pass: 6, too close after 4.
        assert_eq!(victims(&mut sweep(&config), &dir), [0, 1, 9, 20, 21, 22, 30, 3, 4, 6]);
        let plain = PolicyConfig { sweep_gap: 0, ..config };
        assert_eq!(victims(&mut sweep(&plain), &dir), [0, 1, 3, 4, 6, 9, 20, 21, 22, 30]);
    }

    #[test]
    fn dense_buckets_leave_first_and_young_ones_count_for_less() {
        let (few, many): (Vec<u32>, Vec<u32>) = ((0..4).collect(), (0..40).collect());
        let config = PolicyConfig { sweep_age: 0.0, sweep_batch: 1, ..PolicyConfig::named("sweep") };
        let dir = directory(&[(1, &few, 900), (2, &few, 900), (3, &many, 1), (4, &many, 800)]);
        assert_eq!(victims(&mut sweep(&config), &dir)[0] / 256, 3, "the first dense one");
        let aged = PolicyConfig { sweep_age: 1.0, ..config };
        let mut s = sweep(&aged);
        s.mean_age = 500.0;
        assert_eq!(victims(&mut s, &dir)[0] / 256, 4, "the first dense one that is not young");
    }

    #[test]
    fn buckets_leave_together_and_none_twice() {
        let config = PolicyConfig { sweep_batch: 60, sweep_dense: 0.0, ..PolicyConfig::named("sweep") };
        let blocks: Vec<u32> = (0..30).collect();
        let dir = directory(&[(1, &blocks, 9), (5, &blocks, 9), (9, &blocks, 9)]);
        let mut s = sweep(&config);
        let buckets = |out: Vec<u32>| {
            let mut b: Vec<u32> = out.iter().map(|l| l / 256).collect();
            b.dedup();
            b
        };
        assert_eq!(buckets(victims(&mut s, &dir)), [1, 5]);
        assert_eq!(buckets(victims(&mut s, &dir)), [9, 1], "on from there");
        let all = PolicyConfig { sweep_batch: 1000, ..config };
        assert_eq!(victims(&mut sweep(&all), &dir).len(), 90, "once around, and none twice");
        let few = directory(&[(7, &[1, 2], 9)]);
        assert_eq!(victims(&mut sweep(&all), &few).len(), 2);
    }
}
