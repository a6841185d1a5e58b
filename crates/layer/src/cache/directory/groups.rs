//! Bounds on groups of 64 buckets, which let a search skip groups without a candidate.

use super::bucket::Bucket;
use crate::numbers::BucketId;
use frit_core::convert::{to_u64, to_usize};
use std::cell::Cell;

/// Number of buckets of a group: one word of the set of active buckets.
pub(super) const GROUP: u32 = 64;

/// Marker of a group without bounds, more blocks than a bucket has. The clock may have any value
/// when a group is filled first, so no initial recency would be a bound.
const UNKNOWN: u16 = u16::MAX;

/// For each group, a bound on the number of blocks of a bucket and on recency. The bounds become
/// loose after blocks leave or are accessed, until they are tightened. 6 bytes for 64 buckets.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    most: Vec<Cell<u16>>,
    oldest: Vec<Cell<u32>>,
}

impl Groups {
    pub(super) fn new(buckets: u32) -> Groups {
        let n = to_usize(buckets.div_ceil(GROUP));
        Groups { most: vec![Cell::new(UNKNOWN); n], oldest: vec![Cell::new(0); n] }
    }

    /// Updates the bounds after a bucket has gained a block or has become active.
    #[inline]
    pub(super) fn grew(&self, bucket: BucketId, now: Bucket) {
        let group = to_usize(bucket.0 / GROUP);
        let (most, oldest) = (&self.most[group], &self.oldest[group]);
        most.set(most.get().max(now.count));
        if now.count == 1 && older(now.recency, oldest.get()) {
            oldest.set(now.recency);
        }
    }

    /// Returns the bounds of a group: the highest number of blocks of an active bucket, and the
    /// lowest recency.
    #[inline]
    pub(super) fn bounds(&self, group: u32) -> (u16, u32) {
        (self.most[to_usize(group)].get(), self.oldest[to_usize(group)].get())
    }

    /// Returns `true` if the group has no bounds yet.
    #[inline]
    pub(super) fn unknown(&self, group: u32) -> bool {
        self.most[to_usize(group)].get() == UNKNOWN
    }

    /// Sets the bounds of a group to the exact values of its active buckets.
    pub(super) fn tighten(&self, group: u32, active: impl Iterator<Item = Bucket>) {
        let mut bounds: Option<(u16, u32)> = None;
        for b in active {
            bounds = Some(bounds.map_or((b.count, b.recency), |(most, oldest)| {
                (most.max(b.count), if older(b.recency, oldest) { b.recency } else { oldest })
            }));
        }
        let (most, oldest) = bounds.unwrap_or((UNKNOWN, 0));
        self.most[to_usize(group)].set(most);
        self.oldest[to_usize(group)].set(oldest);
    }

    /// Returns the DRAM used, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        to_u64(size_of_val(self.most.as_slice()) + size_of_val(self.oldest.as_slice()))
    }
}

/// Returns `true` if `a` is before `b` on the request clock, which may wrap.
#[inline]
fn older(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}
