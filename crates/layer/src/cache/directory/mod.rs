//! Directory of the cached blocks: [`SlotIndex`] finds the slot of a block, and a bucket for each MiB
//! of disk chains the blocks that would be written back together.
//!
//! The chain of a bucket links positions in the bucket (8 bits), not slots (32 bits), so each step
//! is a lookup. A block that is rewritten in another slot keeps its position in the chain without a
//! change to its neighbours. A slot needs one word: next, previous, valid fragments, flags. This is
//! 8.9 bytes in the index and 4 bytes in the word for each cached block, and 8 bytes and a bit for
//! each bucket. [`Directory::bytes`] returns the size of a directory.
//!
//! It is not: durable. It is held in DRAM and rebuilt from the records in PCM.

mod bucket;
mod groups;
mod index;
mod slots;
mod sparse_bitmap;
#[cfg(test)]
mod tests;

pub use bucket::{BUCKET_BLOCKS, Bucket, BucketBlocks};
pub use index::SlotIndex;
pub use slots::{DIRTY, PINNED};
pub(crate) use sparse_bitmap::SparseBitmap;

use crate::numbers::{BucketId, CacheSlot, Lbn};
use frit_core::convert::{count_u32, to_u64, to_usize};
use frit_core::{Error, Result};
use frit_media::memory::prefetch;
use frit_media::memory::table64;
use groups::{GROUP, Groups};
use slots::Slots;

/// Number of blocks from which on all positions of a bucket are looked up, instead of following its
/// chain. A step of the chain waits for two dependent reads of memory, while independent lookups
/// overlap.
const DENSE: u32 = 32;
/// Number of lookups by which prefetches run ahead.
const AHEAD: u32 = 16;

/// The directory of a cache.
#[derive(Clone, Debug)]
pub struct Directory {
    index: SlotIndex,
    slots: Slots,
    /// The [`Bucket`]s in packed form.
    buckets: Vec<u64>,
    active: SparseBitmap,
    groups: Groups,
    dirty: u32,
    disk_blocks: u32,
}

impl Directory {
    /// Creates an empty directory for a disk of `disk_blocks` and a cache of `slots`, both in
    /// blocks of 4 KiB.
    ///
    /// # Errors
    /// Returns an error if the disk or the cache has no blocks, or the cache has 8 TiB or more.
    pub fn new(disk_blocks: u32, slots: u32) -> Result<Directory> {
        let sizes = [("disk_blocks", disk_blocks), ("slots", slots)];
        if let Some((key, _)) = sizes.iter().find(|s| s.1 == 0) {
            return Err(Error::param(key, 0, "has to be above 0"));
        }
        // This comes first because it rejects sizes that are too large for the index.
        let words = Slots::new(slots)?;
        let buckets = disk_blocks.div_ceil(BUCKET_BLOCKS);
        Ok(Directory {
            index: SlotIndex::new(to_usize(slots)),
            slots: words,
            buckets: table64(to_usize(buckets)),
            active: SparseBitmap::new(u64::from(buckets)),
            groups: Groups::new(buckets),
            dirty: 0,
            disk_blocks,
        })
    }

    /// Returns the slot of a block.
    #[inline]
    #[must_use]
    pub fn get(&self, lbn: Lbn) -> Option<CacheSlot> {
        self.index.get(lbn).map(CacheSlot)
    }

    /// Prefetches the index row and the bucket for an access to a block.
    #[inline]
    pub fn prefetch(&self, lbn: Lbn) {
        self.index.prefetch(lbn);
        prefetch(self.buckets.get(lbn.bucket().idx()));
    }

    /// Prefetches the head of a bucket's chain for the insertion of a block.
    /// [`Directory::prefetch`] must come first.
    #[inline]
    pub fn prefetch_chain(&self, lbn: Lbn) {
        let i = lbn.bucket();
        let bucket = self.bucket(i);
        if bucket.count > 0 {
            self.index.prefetch(i.block(u32::from(bucket.head)));
        }
    }

    /// Prefetches the word of a slot.
    #[inline]
    pub fn prefetch_slot(&self, slot: CacheSlot) {
        prefetch(self.slots.word(slot));
    }

    /// Allocates a free slot: one that was never used, or else the one that was freed first. The
    /// slot is neither free nor in use until [`Directory::insert`], [`Directory::relocate`] or
    /// [`Directory::free`].
    #[inline]
    pub fn alloc(&mut self) -> Option<CacheSlot> {
        self.slots.take()
    }

    /// Returns a slot that [`Directory::alloc`] will return after some more calls, if it is known.
    #[inline]
    #[must_use]
    pub fn soon(&self) -> Option<CacheSlot> {
        self.slots.soon()
    }

    /// Frees a slot that holds no block.
    #[inline]
    pub fn free(&mut self, slot: CacheSlot) {
        self.slots.give(slot);
    }

    /// Returns the number of free slots.
    #[must_use]
    pub fn free_len(&self) -> u32 {
        self.slots.free()
    }

    /// Frees all slots that hold no block, in ascending order. Recovery calls it after it has
    /// inserted the blocks that it found. Slots from [`Directory::alloc`] that were not used are
    /// freed too.
    pub fn free_rest(&mut self) {
        self.slots.rebuild();
    }

    /// Inserts a block that is not cached, in a slot that holds none, with its valid fragments of
    /// 512 bytes (bit 0 is the first; 0xFF: all of them). Its bucket becomes active; the recency
    /// does not change.
    #[inline]
    pub fn insert(&mut self, lbn: Lbn, slot: CacheSlot, valid: u8, dirty: bool) {
        debug_assert!(lbn.0 < self.disk_blocks, "block {lbn} of {}", self.disk_blocks);
        let (i, place) = (lbn.bucket(), lbn.in_bucket());
        let mut bucket = self.bucket(i);
        // The only block of a chain is its own next and previous one.
        let mut next = place;
        if bucket.count == 0 {
            self.active.insert(i.0);
        } else {
            next = bucket.head;
            if let Some(old) = self.slot_at(i, next) {
                self.slots.set_prev(old, place);
            }
        }
        self.index.insert(lbn, slot.0);
        self.slots.fill(slot, next, place, valid, if dirty { DIRTY } else { 0 });
        bucket.head = place;
        bucket.count += 1;
        bucket.dirty += u16::from(dirty);
        self.dirty += u32::from(dirty);
        self.put(i, bucket);
        self.groups.grew(i, bucket);
    }

    /// Moves a block to another slot. It keeps its position in the chain, its fragments and its
    /// flags. `to` must hold no block before, and `from` holds none after; `from` is not freed.
    #[inline]
    pub fn relocate(&mut self, lbn: Lbn, from: CacheSlot, to: CacheSlot) {
        let old = self.index.set(lbn, to.0).map(CacheSlot);
        debug_assert_eq!(old, Some(from), "block {lbn} lies elsewhere");
        self.slots.shift(from, to);
    }

    /// Removes a block and returns its slot, which is not freed.
    #[inline]
    pub fn remove(&mut self, lbn: Lbn) -> Option<CacheSlot> {
        let slot = CacheSlot(self.index.remove(lbn)?);
        let [next, prev, _, flags] = self.slots.clear(slot).to_le_bytes();
        let (i, place) = (lbn.bucket(), lbn.in_bucket());
        let mut bucket = self.bucket(i);
        // The ends of a chain point to themselves.
        let (last, first) = (next == place, prev == place);
        if !last && let Some(after) = self.slot_at(i, next) {
            self.slots.set_prev(after, if first { next } else { prev });
        }
        if first {
            bucket.head = next;
        } else if let Some(before) = self.slot_at(i, prev) {
            self.slots.set_next(before, if last { prev } else { next });
        }
        let dirty = flags & DIRTY != 0;
        bucket.count -= 1;
        bucket.dirty -= u16::from(dirty);
        self.dirty -= u32::from(dirty);
        if bucket.count == 0 {
            self.active.remove(i.0);
        }
        self.put(i, bucket);
        Some(slot)
    }

    /// Returns the slot of a block by its position in a bucket.
    #[inline]
    fn slot_at(&self, bucket: BucketId, place: u8) -> Option<CacheSlot> {
        self.get(bucket.block(u32::from(place)))
    }

    #[inline]
    fn put(&mut self, i: BucketId, bucket: Bucket) {
        self.buckets[i.idx()] = bucket.pack();
    }

    /// Returns the valid fragments of 512 bytes of a slot's block.
    #[inline]
    #[must_use]
    pub fn valid(&self, slot: CacheSlot) -> u8 {
        self.slots.valid(slot)
    }

    /// Sets the valid fragments of a slot's block.
    #[inline]
    pub fn set_valid(&mut self, slot: CacheSlot, valid: u8) {
        self.slots.set_valid(slot, valid);
    }

    /// Returns `true` if the disk does not have the current version of a slot's block.
    #[inline]
    #[must_use]
    pub fn dirty(&self, slot: CacheSlot) -> bool {
        self.slots.flags(slot) & DIRTY != 0
    }

    /// Sets or clears the dirty flag, and updates the counters of the bucket and of the directory.
    #[inline]
    pub fn set_dirty(&mut self, lbn: Lbn, slot: CacheSlot, dirty: bool) {
        let flags = self.slots.flags(slot);
        if (flags & DIRTY != 0) == dirty {
            return;
        }
        self.slots.set_flags(slot, flags ^ DIRTY);
        let i = lbn.bucket();
        let mut bucket = self.bucket(i);
        if dirty {
            (bucket.dirty, self.dirty) = (bucket.dirty + 1, self.dirty + 1);
        } else {
            (bucket.dirty, self.dirty) = (bucket.dirty - 1, self.dirty - 1);
        }
        self.put(i, bucket);
    }

    /// Returns the flags of a slot's block: [`DIRTY`], [`PINNED`], and bits 2 to 6, which belong to
    /// the caller.
    #[inline]
    #[must_use]
    pub fn flags(&self, slot: CacheSlot) -> u8 {
        self.slots.flags(slot)
    }

    /// Sets the flags of the caller. [`DIRTY`] does not change. A new block has no flags.
    #[inline]
    pub fn set_flags(&mut self, slot: CacheSlot, flags: u8) {
        let dirty = self.slots.flags(slot) & DIRTY;
        self.slots.set_flags(slot, flags & !DIRTY | dirty);
    }

    /// Notes an access to the bucket of a block at this request.
    #[inline]
    pub fn touch(&mut self, lbn: Lbn, clock: u32) {
        let i = lbn.bucket().idx();
        // The recency is the low half of the packed word.
        self.buckets[i] = self.buckets[i] >> 32 << 32 | u64::from(clock);
    }

    /// Returns the state of a bucket.
    #[inline]
    #[must_use]
    pub fn bucket(&self, i: BucketId) -> Bucket {
        Bucket::unpack(self.buckets[i.idx()])
    }

    /// Returns the number of buckets: one for each MiB of disk.
    #[must_use]
    pub fn buckets(&self) -> u32 {
        count_u32(self.buckets.len())
    }

    /// Returns the number of buckets that hold blocks (the paper's activated_bucks).
    #[must_use]
    pub fn active(&self) -> u32 {
        self.active.len()
    }

    /// Returns the first active bucket from `from` on, with wrap-around at the end of the disk.
    #[inline]
    #[must_use]
    pub fn next_active(&self, from: BucketId) -> Option<BucketId> {
        self.active.next(from.0).map(BucketId)
    }

    /// Returns bounds on the active buckets from `i` to the end of its group of 64. With `tighten`
    /// the bounds are made exact, which reads all active buckets of the group.
    #[inline]
    #[must_use]
    pub fn rest_of_group(&self, i: BucketId, tighten: bool) -> GroupBounds {
        let group = i.0 / GROUP;
        if tighten || self.groups.unknown(group) {
            let first = BucketId(group * GROUP);
            let mut left = self.active.rest_of_word(first.0);
            let all = std::iter::from_fn(|| {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(self.bucket(first.plus(bit)))
            });
            self.groups.tighten(group, all);
        }
        let (most, oldest) = self.groups.bounds(group);
        GroupBounds {
            active: self.active.rest_of_word(i.0).count_ones(),
            most,
            oldest,
            next: BucketId((group + 1) * GROUP),
        }
    }

    /// Lists the blocks of a bucket in ascending order.
    pub fn blocks_of(&self, bucket: BucketId, into: &mut BucketBlocks) {
        into.begin(bucket);
        let b = self.bucket(bucket);
        if u32::from(b.count) >= DENSE {
            return self.look_for_all(bucket, b.count, into);
        }
        let mut place = b.head;
        for _ in 0..b.count {
            let Some(slot) = self.slot_at(bucket, place) else {
                debug_assert!(false, "the chain of bucket {bucket} is broken at {place}");
                return;
            };
            into.add(place, slot);
            place = self.slots.next(slot);
        }
    }

    /// Looks up every block that a bucket can hold. These are many lookups, but they do not depend
    /// on each other.
    fn look_for_all(&self, bucket: BucketId, count: u16, into: &mut BucketBlocks) {
        let mut left = count;
        (0..AHEAD).for_each(|i| self.index.prefetch(bucket.block(i)));
        for i in 0..BUCKET_BLOCKS {
            self.index.prefetch(bucket.block((i + AHEAD).min(BUCKET_BLOCKS - 1)));
            let lbn = bucket.block(i);
            if let Some(slot) = self.get(lbn) {
                prefetch(self.slots.word(slot));
                into.add(lbn.in_bucket(), slot);
                left -= 1;
                if left == 0 {
                    return;
                }
            }
        }
        debug_assert!(false, "bucket {bucket} has {left} blocks less than it counts");
    }

    /// Returns the number of cached blocks (the paper's total_bcnts).
    #[must_use]
    pub fn len(&self) -> u32 {
        count_u32(self.index.len())
    }

    /// Returns `true` if no block is cached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns the number of dirty blocks.
    #[must_use]
    pub fn dirty_len(&self) -> u32 {
        self.dirty
    }

    /// Returns the number of blocks that can be cached.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.slots.len()
    }

    /// Returns the number of blocks of the disk.
    #[must_use]
    pub fn disk_blocks(&self) -> u32 {
        self.disk_blocks
    }

    /// Iterates over all blocks and their slots, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Lbn, CacheSlot)> + '_ {
        self.index.iter().map(|(lbn, slot)| (lbn, CacheSlot(slot)))
    }

    /// Returns the DRAM of the directory, in bytes: the part that grows with the cache, and the
    /// part that grows with the disk.
    #[must_use]
    pub fn bytes(&self) -> DirectoryBytes {
        DirectoryBytes {
            blocks: self.index.bytes() + self.slots.bytes(),
            buckets: to_u64(size_of_val(self.buckets.as_slice())) + self.active.bytes() + self.groups.bytes(),
        }
    }
}

/// Bounds on some consecutive buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupBounds {
    /// Number of active buckets.
    pub active: u32,
    /// Upper bound of the number of blocks of a bucket.
    pub most: u16,
    /// Lower bound of the recency of a bucket, on the request clock.
    pub oldest: u32,
    /// The bucket after them.
    pub next: BucketId,
}

/// DRAM of a directory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectoryBytes {
    /// The index and the words: at most 16 for each slot, in practice 12.9.
    pub blocks: u64,
    /// Buckets of the whole disk: at most 16 for each bucket, in practice 8.2.
    pub buckets: u64,
}
