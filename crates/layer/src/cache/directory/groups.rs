//! Bounds on 64 buckets at a time: a search passes over those of which none can be what it looks for.

use super::bucket::Bucket;
use std::cell::Cell;

/// Buckets of a group: a word of the set of active ones.
pub(super) const GROUP: u32 = 64;

/// More blocks than a bucket has: nobody has looked yet. The clock may be anywhere when a group is filled first, so
/// that no recency to begin with would be a bound.
const UNKNOWN: u16 = u16::MAX;

/// For each group a bound on the blocks of a bucket and on recency. Bounds are loose after blocks left or were
/// accessed, until somebody tightens them. 6 bytes for 64 buckets.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    most: Vec<Cell<u16>>,
    oldest: Vec<Cell<u32>>,
}

impl Groups {
    pub(super) fn new(buckets: u32) -> Groups {
        let n = buckets.div_ceil(GROUP) as usize;
        Groups { most: vec![Cell::new(UNKNOWN); n], oldest: vec![Cell::new(0); n] }
    }

    /// A bucket has more blocks than before, or is active again.
    #[inline]
    pub(super) fn grew(&self, bucket: u32, now: Bucket) {
        let group = (bucket / GROUP) as usize;
        let (most, oldest) = (&self.most[group], &self.oldest[group]);
        most.set(most.get().max(now.count));
        if now.count == 1 && older(now.recency, oldest.get()) {
            oldest.set(now.recency);
        }
    }

    /// The bounds of a group: no active bucket has more blocks, or was accessed before.
    #[inline]
    pub(super) fn bounds(&self, group: u32) -> (u16, u32) {
        (self.most[group as usize].get(), self.oldest[group as usize].get())
    }

    /// Whether nobody has looked at a group yet.
    #[inline]
    pub(super) fn unknown(&self, group: u32) -> bool {
        self.most[group as usize].get() == UNKNOWN
    }

    /// Sets the bounds of a group to what its active buckets are.
    pub(super) fn tighten(&self, group: u32, active: impl Iterator<Item = Bucket>) {
        let mut bounds: Option<(u16, u32)> = None;
        for b in active {
            bounds = Some(bounds.map_or((b.count, b.recency), |(most, oldest)| {
                (most.max(b.count), if older(b.recency, oldest) { b.recency } else { oldest })
            }));
        }
        let (most, oldest) = bounds.unwrap_or((UNKNOWN, 0));
        self.most[group as usize].set(most);
        self.oldest[group as usize].set(oldest);
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        (size_of_val(self.most.as_slice()) + size_of_val(self.oldest.as_slice())) as u64
    }
}

/// Whether a comes before b on the request clock, which may wrap.
#[inline]
fn older(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
