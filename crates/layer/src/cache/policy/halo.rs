//! HALO's destaging (Liu et al., "PCM-Based Durable Write Cache for Fast Disk I/O", MASCOTS 2012, section III-A): a
//! whole bucket of 1 MiB leaves, so that the disk writes it with one seek.
//!
//! A bucket may leave when it holds more blocks than the average by TH_BCOUNTS and was not accessed for
//! TH_RECENCY requests, or when it was not accessed for OUTDATE_RECENCY. The paper leaves open how the first
//! two "dynamically decrease with more scanned buckets". Here both fall linearly over `halo_scan` buckets: TH_RECENCY to
//! 0, TH_BCOUNTS to below zero, minus the average, where any bucket has enough. The next bucket then leaves,
//! whatever it is. A search goes on from where the last one ended (the paper's Buck_scan) and passes over buckets that
//! hold nothing.

use super::{Access, Setup, Victim, WriteCache};
use crate::cache::directory::{Bucket, BucketBlocks, Directory, PINNED};
use frit_core::Result;

/// Fixed point of thresholds: bits behind the point.
const POINT: u32 = 20;

/// All that HALO knows of blocks is in the directory's buckets.
#[derive(Clone, Debug, Default)]
pub struct Halo {
    th_bcounts: i64,
    th_recency: i64,
    outdate_recency: u32,
    scan: u32,
    /// The bucket where the next search begins (the paper's Buck_scan).
    cursor: u32,
    blocks: Box<BucketBlocks>,
}

/// What a bucket needs to leave, in fixed point, and by how much less with each bucket scanned.
struct Thresholds {
    count: i64,
    count_step: i64,
    age: i64,
    age_step: i64,
}

impl Thresholds {
    #[inline]
    fn met(&self, bucket: Bucket, age: u32) -> bool {
        i64::from(bucket.count) << POINT > self.count && i64::from(age) << POINT > self.age
    }

    #[inline]
    fn relax(&mut self) {
        self.count -= self.count_step;
        self.age -= self.age_step;
    }
}

impl Halo {
    fn thresholds(&self, dir: &Directory) -> Thresholds {
        let average = (i64::from(dir.len()) << POINT) / i64::from(dir.active().max(1));
        let scan = i64::from(self.scan);
        let (count, age) = (average + (self.th_bcounts << POINT), self.th_recency << POINT);
        Thresholds { count, count_step: count / scan, age, age_step: age / scan }
    }

    /// Adds a bucket's blocks to `out`. Returns whether any can leave.
    fn take(&mut self, dir: &Directory, bucket: u32, out: &mut Vec<Victim>) -> bool {
        let before = out.len();
        dir.blocks_of(bucket, &mut self.blocks);
        let free = self.blocks.iter().filter(|&(_, slot)| dir.flags(slot) & PINNED == 0);
        out.extend(free.map(|(lbn, slot)| Victim { lbn, slot }));
        out.len() > before
    }
}

impl WriteCache for Halo {
    fn reset(&mut self, setup: &Setup<'_>) -> Result<()> {
        let requests = |share: f64| (share * f64::from(setup.slots)).min(f64::from(u32::MAX / 2)) as u32;
        let c = setup.config;
        *self = Halo {
            th_bcounts: i64::from(c.th_bcounts),
            th_recency: i64::from(requests(c.th_recency)),
            outdate_recency: requests(c.outdate_recency),
            scan: c.halo_scan,
            cursor: 0,
            blocks: Box::default(),
        };
        Ok(())
    }

    #[inline]
    fn hit(&mut self, _: u32, _: &Access) {}

    #[inline]
    fn moved(&mut self, _: u32, _: u32) {}

    #[inline]
    fn insert(&mut self, _: u32, _: &Access) {}

    #[inline]
    fn remove(&mut self, _: u32, _: u32) {}

    fn victims(&mut self, dir: &Directory, clock: u32, out: &mut Vec<Victim>) {
        let mut needs = self.thresholds(dir);
        // When the thresholds are down each bucket will do, so one that can leave is met within one round.
        for scanned in 0..u64::from(self.scan) + u64::from(dir.active()) {
            let Some(i) = dir.next_active(self.cursor) else { return };
            self.cursor = i + 1;
            let bucket = dir.bucket(i);
            let age = bucket.age(clock);
            let eligible =
                needs.met(bucket, age) || age > self.outdate_recency || scanned >= u64::from(self.scan);
            if eligible && self.take(dir, i, out) {
                return;
            }
            needs.relax();
        }
    }

    fn by_place(&self) -> bool {
        true
    }

    fn dram_bytes(&self) -> u64 {
        (size_of::<Halo>() + size_of::<BucketBlocks>()) as u64
    }
}
