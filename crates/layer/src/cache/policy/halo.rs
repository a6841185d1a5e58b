//! HALO's destaging (Liu et al., "PCM-Based Durable Write Cache for Fast Disk I/O", MASCOTS 2012,
//! section III-A): it evicts a whole bucket of 1 MiB, so that the disk writes it with one seek.
//!
//! A bucket may be evicted if it holds more blocks than the average by TH_BCOUNTS and was not
//! accessed for TH_RECENCY requests, or if it was not accessed for OUTDATE_RECENCY requests. The
//! paper does not specify how the first two "dynamically decrease with more scanned buckets". Here
//! both fall linearly over `halo_scan` buckets: TH_RECENCY to 0, TH_BCOUNTS to minus the average,
//! at which any bucket has enough blocks. The next bucket is then evicted in any case. A search
//! continues where the last one ended (the paper's Buck_scan) and skips empty buckets.

use super::{CacheAccess, EvictionPolicy, EvictionReasons, PolicySetup, Victim};
use crate::cache::directory::{BucketBlocks, Directory, GroupBounds, PINNED};
use crate::numbers::{BucketId, CacheSlot, Lbn};
use frit_core::Result;
use frit_core::convert::{floor_u32, to_u64};

/// Number of fraction bits of the thresholds, which are fixed-point numbers.
const POINT: u32 = 20;

/// The policy HALO. All state of blocks is in the buckets of the directory.
#[derive(Clone, Debug, Default)]
pub struct Halo {
    th_bcounts: i64,
    th_recency: i64,
    outdate_recency: u32,
    scan: u32,
    /// The bucket at which the next search begins (the paper's Buck_scan).
    cursor: BucketId,
    reasons: EvictionReasons,
    blocks: Box<BucketBlocks>,
}

/// Thresholds for the eviction of a bucket in fixed point, and their decrease with each scanned
/// bucket.
struct Thresholds {
    count: i64,
    count_step: i64,
    age: i64,
    age_step: i64,
}

impl Thresholds {
    #[inline]
    fn met(&self, count: u16, age: u32) -> bool {
        i64::from(count) << POINT > self.count && i64::from(age) << POINT > self.age
    }

    /// Returns `true` if none of some buckets can reach the thresholds by the time it is scanned,
    /// and none is outdated.
    #[inline]
    fn none_of(&self, rest: &GroupBounds, clock: u32, outdate: u32) -> bool {
        let age = clock.wrapping_sub(rest.oldest);
        let n = i64::from(rest.active) - 1;
        // A threshold that is already negative rises.
        let count = self.count.min(self.count - n * self.count_step);
        let by_then = Thresholds { count, age: self.age - n * self.age_step, ..*self };
        age <= outdate && !by_then.met(rest.most, age)
    }

    /// Lowers the thresholds after more buckets were scanned.
    #[inline]
    fn relax(&mut self, scanned: i64) {
        self.count -= scanned * self.count_step;
        self.age -= scanned * self.age_step;
    }
}

impl Halo {
    fn thresholds(&self, dir: &Directory) -> Thresholds {
        let average = (i64::from(dir.len()) << POINT) / i64::from(dir.active().max(1));
        let scan = i64::from(self.scan);
        let (count, age) = (average + (self.th_bcounts << POINT), self.th_recency << POINT);
        Thresholds { count, count_step: count / scan, age, age_step: age / scan }
    }

    /// Counts an eviction after `scanned` buckets, which met the thresholds or was outdated.
    fn count(&mut self, scanned: u64, met: bool, outdated: bool) {
        let r = &mut self.reasons;
        *match (met, outdated) {
            (true, _) if scanned == 0 => &mut r.thresholds,
            (true, _) if scanned < u64::from(self.scan) => &mut r.lowered_thresholds,
            (false, true) => &mut r.outdated,
            _ => &mut r.end_of_scan,
        } += 1;
    }

    /// Appends the blocks of a bucket that can be evicted to `out`. Returns `true` if there are
    /// any.
    fn take(&mut self, dir: &Directory, bucket: BucketId, out: &mut Vec<Victim>) -> bool {
        let before = out.len();
        dir.blocks_of(bucket, &mut self.blocks);
        let free = self.blocks.iter().filter(|&(_, slot)| dir.flags(slot) & PINNED == 0);
        out.extend(free.map(|(lbn, slot)| Victim { lbn, slot }));
        out.len() > before
    }
}

impl EvictionPolicy for Halo {
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()> {
        let requests = |share: f64| floor_u32((share * f64::from(setup.slots)).min(f64::from(u32::MAX / 2)));
        let c = setup.config;
        *self = Halo {
            th_bcounts: i64::from(c.th_bcounts),
            th_recency: i64::from(requests(c.th_recency)),
            outdate_recency: requests(c.outdate_recency),
            scan: c.halo_scan,
            cursor: BucketId(0),
            reasons: EvictionReasons::default(),
            blocks: Box::default(),
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
        let mut needs = self.thresholds(dir);
        let scan = u64::from(self.scan);
        // Once the thresholds are zero, any bucket qualifies, so one that can be evicted is found
        // within one round.
        let last = scan + u64::from(dir.active());
        let mut scanned = 0;
        let mut tightened = None;
        while scanned < last {
            let Some(i) = dir.next_active(self.cursor) else { return };
            // Most searches pass hundreds of buckets without a candidate, so they skip 64 at a
            // time.
            let mut rest = dir.rest_of_group(i, false);
            let none = |rest: &GroupBounds| {
                scanned + u64::from(rest.active) <= scan && needs.none_of(rest, clock, self.outdate_recency)
            };
            let mut skip = none(&rest);
            if !skip && tightened != Some(rest.next) {
                tightened = Some(rest.next);
                rest = dir.rest_of_group(i, true);
                skip = none(&rest);
            }
            if skip {
                needs.relax(i64::from(rest.active));
                scanned += u64::from(rest.active);
                self.cursor = rest.next;
                continue;
            }
            self.cursor = i.plus(1);
            let bucket = dir.bucket(i);
            let age = bucket.age(clock);
            let (met, outdated) = (needs.met(bucket.count, age), age > self.outdate_recency);
            if (met || outdated || scanned >= scan) && self.take(dir, i, out) {
                self.count(scanned, met, outdated);
                return;
            }
            needs.relax(1);
            scanned += 1;
        }
    }

    fn by_address(&self) -> bool {
        true
    }

    fn reasons(&self) -> Option<EvictionReasons> {
        Some(self.reasons)
    }

    fn dram_bytes(&self) -> u64 {
        to_u64(size_of::<Halo>() + size_of::<BucketBlocks>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::policy::PolicyConfig;
    use crate::numbers::Lbn;
    use proptest::prelude::*;

    const BUCKETS: u32 = 1024;
    const SLOTS: u32 = 2000;

    /// The search as published: one bucket after the other.
    fn plain(halo: &mut Halo, dir: &Directory, clock: u32, out: &mut Vec<Victim>) {
        let mut needs = halo.thresholds(dir);
        for scanned in 0..u64::from(halo.scan) + u64::from(dir.active()) {
            let Some(i) = dir.next_active(halo.cursor) else { return };
            halo.cursor = i.plus(1);
            let bucket = dir.bucket(i);
            let age = bucket.age(clock);
            let old = age > halo.outdate_recency;
            let eligible = needs.met(bucket.count, age) || old || scanned >= u64::from(halo.scan);
            if eligible && halo.take(dir, i, out) {
                return;
            }
            needs.relax(1);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn groups_are_passed_over_that_have_no_victim_and_no_others(
            ops in prop::collection::vec((0..BUCKETS * 256, 0u32..40, 0u8..8), 1..1500),
            th_bcounts in -8i32..40,
            (halo_scan, outdate, start) in (1u32..400, 1u32..3000, any::<u32>()),
        ) {
            let config = PolicyConfig {
                th_bcounts,
                halo_scan,
                th_recency: 0.05,
                outdate_recency: f64::from(outdate) / f64::from(SLOTS),
                ..PolicyConfig::default()
            };
            let mut halo = Halo::default();
            let setup = PolicySetup { slots: SLOTS, disk_blocks: BUCKETS * 256, config: &config, next_use: None };
            halo.reset(&setup).unwrap();
            let mut dir = Directory::new(BUCKETS * 256, SLOTS).unwrap();
            // The clock starts near its end in half of the cases, so that it wraps.
            let mut clock = if start % 2 == 0 { u32::MAX - start % 500 } else { start % 500 };
            for (lbn, blocks, op) in ops {
                clock = clock.wrapping_add(1);
                // Half of the accesses go to few buckets, and some are long runs.
                let lbn = if op % 2 == 0 { lbn % (40 * 256) } else { lbn };
                for lbn in Lbn::range(Lbn(lbn), Lbn((lbn + blocks).min(BUCKETS * 256))) {
                    if dir.get(lbn).is_none() && let Some(slot) = dir.alloc() {
                        dir.insert(lbn, slot, 0xff, true);
                    }
                    if dir.get(lbn).is_some() {
                        dir.touch(lbn, clock);
                    }
                }
                if op > 1 && dir.free_len() > 500 {
                    continue;
                }
                let (mut slow, mut expected, mut found) = (halo.clone(), Vec::new(), Vec::new());
                plain(&mut slow, &dir, clock, &mut expected);
                halo.victims(&dir, clock, &mut found);
                prop_assert_eq!(&found, &expected);
                prop_assert!(found.is_empty() || halo.cursor == slow.cursor);
                for v in found {
                    let slot = dir.remove(v.lbn).unwrap();
                    dir.free(slot);
                }
            }
        }
    }

    /// A cache of 2000 slots, of which each bucket in `counts` has so many blocks, accessed at `at`.
    fn filled(counts: &[(u32, u32, u32)]) -> Directory {
        let mut dir = Directory::new(BUCKETS * 256, SLOTS).unwrap();
        for &(bucket, count, at) in counts {
            for lbn in Lbn::range(BucketId(bucket).block(0), BucketId(bucket).block(count)) {
                let slot = dir.alloc().unwrap();
                dir.insert(lbn, slot, 0xff, true);
                dir.touch(lbn, at);
            }
        }
        dir
    }

    #[test]
    fn evictions_are_counted_by_the_condition_that_holds() {
        let config =
            PolicyConfig { th_bcounts: 20, halo_scan: 4, outdate_recency: 0.5, ..PolicyConfig::default() };
        let setup = PolicySetup { slots: SLOTS, disk_blocks: BUCKETS * 256, config: &config, next_use: None };
        let reasons = |counts: &[(u32, u32, u32)], clock| {
            let mut halo = Halo::default();
            halo.reset(&setup).unwrap();
            let mut found = Vec::new();
            halo.victims(&filled(counts), clock, &mut found);
            assert!(!found.is_empty());
            let r = halo.reasons().unwrap();
            [r.thresholds, r.lowered_thresholds, r.outdated, r.end_of_scan]
        };
        // TH_RECENCY is 100 requests and OUTDATE_RECENCY 1000.
        assert_eq!(reasons(&[(0, 100, 1), (1, 10, 1)], 500), [1, 0, 0, 0]);
        assert_eq!(reasons(&[(0, 10, 450), (1, 100, 450)], 500), [0, 1, 0, 0]);
        assert_eq!(reasons(&[(0, 10, 1), (1, 10, 1)], 1500), [0, 0, 1, 0]);
        // Accessed at this moment, no bucket is old, and the fifth is taken.
        let all: Vec<_> = (0..6).map(|b| (b, 10, 500)).collect();
        assert_eq!(reasons(&all, 500), [0, 0, 0, 1]);
    }
}
