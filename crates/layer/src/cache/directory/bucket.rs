//! State of a region of 1 MiB: HALO's bucketinfo item.

use crate::numbers::{BucketId, CacheSlot, Lbn};
use frit_core::convert::{low_u8, low_u16, low_u32, to_usize};

/// Number of blocks of a bucket: 1 MiB of disk (HALO paper, section III-A).
pub const BUCKET_BLOCKS: u32 = 256;

/// State of a bucket. It is stored in 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Bucket {
    /// Request clock at the last access to one of its blocks (the paper's recency).
    pub recency: u32,
    /// Number of cached blocks (the paper's bcounts), 0 to 256.
    pub count: u16,
    /// Number of dirty blocks.
    pub dirty: u16,
    /// Position in the bucket of the block that was inserted last (the paper's listhead). It is
    /// meaningless if the bucket is empty.
    pub head: u8,
}

impl Bucket {
    /// Returns the number of requests since its last access. The clock may wrap: ages below 2^32
    /// requests are right.
    #[inline]
    #[must_use]
    pub fn age(&self, clock: u32) -> u32 {
        clock.wrapping_sub(self.recency)
    }

    /// Bits 0 to 31 are the recency, 32 to 40 the count, 41 to 49 the dirty blocks, 50 to 57 the
    /// head.
    #[inline]
    pub(super) fn unpack(word: u64) -> Bucket {
        Bucket {
            recency: low_u32(word),
            count: low_u16(word >> 32) & 0x1ff,
            dirty: low_u16(word >> 41) & 0x1ff,
            head: low_u8(word >> 50),
        }
    }

    #[inline]
    pub(super) fn pack(self) -> u64 {
        u64::from(self.recency)
            | u64::from(self.count) << 32
            | u64::from(self.dirty) << 41
            | u64::from(self.head) << 50
    }
}

/// The blocks of one bucket, sorted by LBN. [`super::Directory::blocks_of`] fills it; it can be
/// reused.
#[derive(Clone, Debug)]
pub struct BucketBlocks {
    bucket: BucketId,
    present: [u64; 4],
    slots: [CacheSlot; to_usize(BUCKET_BLOCKS)],
}

impl Default for BucketBlocks {
    fn default() -> Self {
        BucketBlocks { bucket: BucketId(0), present: [0; 4], slots: [CacheSlot(0); to_usize(BUCKET_BLOCKS)] }
    }
}

impl BucketBlocks {
    pub(super) fn begin(&mut self, bucket: BucketId) {
        self.bucket = bucket;
        self.present = [0; 4];
    }

    #[inline]
    pub(super) fn add(&mut self, place: u8, slot: CacheSlot) {
        self.present[usize::from(place / 64)] |= 1 << (place % 64);
        self.slots[usize::from(place)] = slot;
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.present.iter().map(|w| to_usize(w.count_ones())).sum()
    }

    /// Returns `true` if there are no blocks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.present == [0; 4]
    }

    /// Iterates over the blocks and their slots, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (Lbn, CacheSlot)> + '_ {
        (0u32..4).flat_map(move |word| {
            let mut left = self.present[to_usize(word)];
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                let place = word * 64 + bit;
                Some((self.bucket.block(place), self.slots[to_usize(place)]))
            })
        })
    }
}
