//! Number types of the layers: blocks, slots and buckets of the cache, places and log slots of NTL,
//! and the slots of their records.
//!
//! All of them are 32 bits wide, so a mixture would compile and address the wrong block.

use crate::cache::BLOCK_BYTES;
use crate::cache::directory::BUCKET_BLOCKS;
use frit_core::convert::low_u8;
use frit_core::{Lpn, number_types};

/// Number of a block of 4 KiB on a disk (LBN).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lbn(pub u32);

/// Location of a block in a cache (the HALO paper's PBN).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct CacheSlot(pub u32);

/// Number of a bucket: a region of 1 MiB of a disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct BucketId(pub u32);

/// Location of a page in NTL's memory: `index * chips + chip`, home locations first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Place(pub u32);

/// Block of consecutive pages of NTL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(crate) struct LogicalBlock(pub(crate) u32);

/// Slot of NTL's log: the places of the log, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(crate) struct LogSlot(pub(crate) u32);

/// Slot of a record: that of its block in a cache, or the place of its page in NTL's memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(crate) struct RecordSlot(pub(crate) u32);

number_types!(Lbn, CacheSlot, BucketId, Place, LogicalBlock, LogSlot, RecordSlot);

impl Lbn {
    /// Returns the block that contains a byte of the disk, which must be below 16 TiB.
    #[inline]
    #[must_use]
    pub const fn at_byte(at: u64) -> Lbn {
        Lbn::of_u64(at / BLOCK_BYTES)
    }

    /// Returns the address of its first byte on the disk.
    #[inline]
    #[must_use]
    pub const fn byte(self) -> u64 {
        self.0 as u64 * BLOCK_BYTES
    }

    /// Returns its bucket.
    #[inline]
    #[must_use]
    pub const fn bucket(self) -> BucketId {
        BucketId(self.0 / BUCKET_BLOCKS)
    }

    /// Returns its position in its bucket, which has 256 blocks: the lowest byte.
    #[inline]
    #[must_use]
    pub const fn in_bucket(self) -> u8 {
        low_u8(self.0 as u64)
    }
}

impl LogicalBlock {
    /// Returns the block that contains a page, for blocks of `block_pages` pages.
    #[inline]
    pub(crate) fn of(lpn: Lpn, block_pages: u32) -> LogicalBlock {
        LogicalBlock(lpn.0 / block_pages)
    }
}

impl BucketId {
    /// Returns a block by its position in the bucket.
    #[inline]
    #[must_use]
    pub const fn block(self, position: u32) -> Lbn {
        Lbn(self.0 * BUCKET_BLOCKS + position)
    }
}

const _: () = assert!(BUCKET_BLOCKS == 1 << 8);

impl From<CacheSlot> for RecordSlot {
    #[inline]
    fn from(slot: CacheSlot) -> RecordSlot {
        RecordSlot(slot.0)
    }
}

impl From<Place> for RecordSlot {
    #[inline]
    fn from(place: Place) -> RecordSlot {
        RecordSlot(place.0)
    }
}

impl RecordSlot {
    /// Returns it as a place of NTL.
    #[inline]
    pub(crate) fn place(self) -> Place {
        Place(self.0)
    }

    /// Returns it as a slot of a cache.
    #[inline]
    pub(crate) fn slot(self) -> CacheSlot {
        CacheSlot(self.0)
    }
}
