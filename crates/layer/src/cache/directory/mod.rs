//! What the cache holds: [`Index`] finds a block's slot, and a bucket for each MiB of disk chains the
//! blocks that would be written back together.
//!
//! The chain of a bucket links places in the bucket (8 bits), not slots (32): a step is a lookup. A block
//! that is written to another slot so keeps its place in the chain without a change to its neighbours,
//! and a slot needs one word: next, previous, valid fragments, flags. Per cached block that is 8.9 bytes
//! in the index and 4 in the word; per bucket 8 bytes and a bit. A full directory counts itself in
//! [`Directory::bytes`].
//!
//! It is not: durable. It lives in DRAM and is rebuilt from the records in PCM.

mod active;
mod bucket;
mod groups;
mod index;
mod slots;
#[cfg(test)]
mod tests;

pub(crate) use active::Bits;
pub use bucket::{BUCKET_BLOCKS, Bucket, BucketBlocks};
pub use index::Index;
pub use slots::{DIRTY, PINNED};

use frit_core::{Error, Result};
use frit_media::memory::fetch;
use frit_media::memory::table64;
use groups::{GROUP, Groups};
use slots::Slots;

/// From so many blocks on all places of a bucket are looked at, instead of following its chain: a step of the
/// chain waits for two reads of memory, one after the other, and lookups that are known beforehand overlap.
const DENSE: u32 = 32;
/// How far ahead of a lookup its rows are fetched.
const AHEAD: u32 = 16;

/// The directory of a cache.
#[derive(Clone, Debug)]
pub struct Directory {
    index: Index,
    slots: Slots,
    /// [`Bucket`]s, packed.
    buckets: Vec<u64>,
    active: Bits,
    groups: Groups,
    dirty: u32,
    disk_blocks: u32,
}

impl Directory {
    /// An empty directory for a disk of `disk_blocks` and a cache of `slots`, both in blocks of 4 KiB.
    ///
    /// # Errors
    /// A disk or a cache without blocks, or a cache of 8 TiB and more.
    pub fn new(disk_blocks: u32, slots: u32) -> Result<Directory> {
        let sizes = [("disk_blocks", disk_blocks), ("slots", slots)];
        if let Some((key, _)) = sizes.iter().find(|s| s.1 == 0) {
            return Err(Error::param(key, 0, "has to be above 0"));
        }
        // First: it refuses what would be too large for the index.
        let words = Slots::new(slots)?;
        let buckets = disk_blocks.div_ceil(BUCKET_BLOCKS);
        Ok(Directory {
            index: Index::new(slots as usize),
            slots: words,
            buckets: table64(buckets as usize),
            active: Bits::new(u64::from(buckets)),
            groups: Groups::new(buckets),
            dirty: 0,
            disk_blocks,
        })
    }

    /// The slot of a block.
    #[inline]
    #[must_use]
    pub fn get(&self, lbn: u32) -> Option<u32> {
        self.index.get(lbn)
    }

    /// Starts to load what an access to a block will look at: index and bucket.
    #[inline]
    pub fn prefetch(&self, lbn: u32) {
        self.index.prefetch(lbn);
        fetch(self.buckets.get(self.bucket_of(lbn) as usize));
    }

    /// Starts to load what adding a block will look at beyond [`Directory::prefetch`], which has to be done: the
    /// head of its bucket's chain.
    #[inline]
    pub fn prefetch_chain(&self, lbn: u32) {
        let i = self.bucket_of(lbn);
        let bucket = self.bucket(i);
        if bucket.count > 0 {
            self.index.prefetch(i * BUCKET_BLOCKS + u32::from(bucket.head));
        }
    }

    /// Starts to load the word of a slot.
    #[inline]
    pub fn prefetch_slot(&self, slot: u32) {
        fetch(self.slots.word(slot));
    }

    /// A free slot: one that was never used, or else the one that was freed first. It is neither free nor
    /// a block's until [`Directory::insert`], [`Directory::relocate`] or [`Directory::free`].
    #[inline]
    pub fn alloc(&mut self) -> Option<u32> {
        self.slots.take()
    }

    /// A slot that [`Directory::alloc`] will give some calls from now, when it is known.
    #[inline]
    #[must_use]
    pub fn soon(&self) -> Option<u32> {
        self.slots.soon()
    }

    /// Gives back a slot that holds no block.
    #[inline]
    pub fn free(&mut self, slot: u32) {
        self.slots.give(slot);
    }

    /// How many slots are free.
    #[must_use]
    pub fn free_len(&self) -> u32 {
        self.slots.free()
    }

    /// Frees all slots that hold no block, in ascending order: after recovery, which inserts blocks at the
    /// slots where it found them. Slots from [`Directory::alloc`] that were not used are freed as well.
    pub fn free_rest(&mut self) {
        self.slots.rebuild();
    }

    /// Adds a block that is not there, in a slot that holds none, with its valid fragments of 512 bytes
    /// (bit 0 is the first; 0xFF: all of it). Its bucket becomes active; the recency is as it was.
    #[inline]
    pub fn insert(&mut self, lbn: u32, slot: u32, valid: u8, dirty: bool) {
        debug_assert!(lbn < self.disk_blocks, "block {lbn} of {}", self.disk_blocks);
        let (i, place) = (self.bucket_of(lbn), lbn as u8);
        let mut bucket = self.bucket(i);
        let mut next = place;
        if bucket.count == 0 {
            self.active.insert(i);
        } else {
            next = bucket.head;
            if let Some(old) = self.slot_at(i, next) {
                self.slots.set_prev(old, place);
            }
        }
        self.index.insert(lbn, slot);
        self.slots.fill(slot, next, place, valid, if dirty { DIRTY } else { 0 });
        bucket.head = place;
        bucket.count += 1;
        bucket.dirty += u16::from(dirty);
        self.dirty += u32::from(dirty);
        self.put(i, bucket);
        self.groups.grew(i, bucket);
    }

    /// A block of the directory, or of the same bucket, lies in another slot now; it keeps its place in
    /// the chain, its fragments and flags. `to` holds no block before, `from` none after (it is not freed).
    #[inline]
    pub fn relocate(&mut self, lbn: u32, from: u32, to: u32) {
        let old = self.index.set(lbn, to);
        debug_assert_eq!(old, Some(from), "block {lbn} lies elsewhere");
        self.slots.shift(from, to);
    }

    /// Takes a block out and returns its slot, which is not freed.
    #[inline]
    pub fn remove(&mut self, lbn: u32) -> Option<u32> {
        let slot = self.index.remove(lbn)?;
        let [next, prev, _, flags] = self.slots.clear(slot).to_le_bytes();
        let (i, place) = (self.bucket_of(lbn), lbn as u8);
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
            self.active.remove(i);
        }
        self.put(i, bucket);
        Some(slot)
    }

    /// The slot of a block by its place in a bucket.
    #[inline]
    fn slot_at(&self, bucket: u32, place: u8) -> Option<u32> {
        self.index.get(bucket * BUCKET_BLOCKS + u32::from(place))
    }

    #[inline]
    fn put(&mut self, i: u32, bucket: Bucket) {
        self.buckets[i as usize] = bucket.pack();
    }

    /// The fragments of 512 bytes that a slot's block has.
    #[inline]
    #[must_use]
    pub fn valid(&self, slot: u32) -> u8 {
        self.slots.valid(slot)
    }

    /// Changes them.
    #[inline]
    pub fn set_valid(&mut self, slot: u32, valid: u8) {
        self.slots.set_valid(slot, valid);
    }

    /// Whether the disk does not have a slot's block yet.
    #[inline]
    #[must_use]
    pub fn dirty(&self, slot: u32) -> bool {
        self.slots.flags(slot) & DIRTY != 0
    }

    /// Changes that, and what the bucket and the directory count.
    #[inline]
    pub fn set_dirty(&mut self, lbn: u32, slot: u32, dirty: bool) {
        let flags = self.slots.flags(slot);
        if (flags & DIRTY != 0) == dirty {
            return;
        }
        self.slots.set_flags(slot, flags ^ DIRTY);
        let i = self.bucket_of(lbn);
        let mut bucket = self.bucket(i);
        if dirty {
            (bucket.dirty, self.dirty) = (bucket.dirty + 1, self.dirty + 1);
        } else {
            (bucket.dirty, self.dirty) = (bucket.dirty - 1, self.dirty - 1);
        }
        self.put(i, bucket);
    }

    /// The flags of a slot's block: [`DIRTY`], [`PINNED`], and bits 2 to 6, which are the
    /// caller's.
    #[inline]
    #[must_use]
    pub fn flags(&self, slot: u32) -> u8 {
        self.slots.flags(slot)
    }

    /// Changes the caller's flags; [`DIRTY`] stays as it is. A new block has none.
    #[inline]
    pub fn set_flags(&mut self, slot: u32, flags: u8) {
        let dirty = self.slots.flags(slot) & DIRTY;
        self.slots.set_flags(slot, flags & !DIRTY | dirty);
    }

    /// The bucket of a block was accessed at this request.
    #[inline]
    pub fn touch(&mut self, lbn: u32, clock: u32) {
        let i = self.bucket_of(lbn) as usize;
        self.buckets[i] = self.buckets[i] >> 32 << 32 | u64::from(clock);
    }

    /// What is known of a bucket.
    #[inline]
    #[must_use]
    pub fn bucket(&self, i: u32) -> Bucket {
        Bucket::unpack(self.buckets[i as usize])
    }

    /// The bucket of a block.
    #[inline]
    #[must_use]
    pub fn bucket_of(&self, lbn: u32) -> u32 {
        lbn / BUCKET_BLOCKS
    }

    /// How many buckets there are: one for each MiB of disk.
    #[must_use]
    pub fn buckets(&self) -> u32 {
        self.buckets.len() as u32
    }

    /// How many buckets hold blocks (the paper's activated_bucks).
    #[must_use]
    pub fn active(&self) -> u32 {
        self.active.len()
    }

    /// The first bucket from `from` on that holds blocks, beginning anew at the end of the disk.
    #[inline]
    #[must_use]
    pub fn next_active(&self, from: u32) -> Option<u32> {
        self.active.next(from)
    }

    /// What is certain of the active buckets from `i` to the end of its group of 64. With `tighten` it is what
    /// they are just now, which costs a look at each of the group.
    #[inline]
    #[must_use]
    pub fn rest_of_group(&self, i: u32, tighten: bool) -> Rest {
        let group = i / GROUP;
        if tighten || self.groups.unknown(group) {
            let first = group * GROUP;
            let mut left = self.active.rest_of_word(first);
            let all = std::iter::from_fn(|| {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(self.bucket(first + bit))
            });
            self.groups.tighten(group, all);
        }
        let (most, oldest) = self.groups.bounds(group);
        Rest { active: self.active.rest_of_word(i).count_ones(), most, oldest, next: (group + 1) * GROUP }
    }

    /// The blocks of a bucket, in ascending order.
    pub fn blocks_of(&self, bucket: u32, into: &mut BucketBlocks) {
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

    /// Looks for each block that a bucket can hold: many lookups, but none waits for the one before.
    fn look_for_all(&self, bucket: u32, count: u16, into: &mut BucketBlocks) {
        let first = bucket * BUCKET_BLOCKS;
        let mut left = count;
        (0..AHEAD).for_each(|i| self.index.prefetch(first + i));
        for i in 0..BUCKET_BLOCKS {
            self.index.prefetch(first + (i + AHEAD).min(BUCKET_BLOCKS - 1));
            if let Some(slot) = self.index.get(first + i) {
                fetch(self.slots.word(slot));
                into.add(i as u8, slot);
                left -= 1;
                if left == 0 {
                    return;
                }
            }
        }
        debug_assert!(false, "bucket {bucket} has {left} blocks less than it counts");
    }

    /// How many blocks are cached (the paper's total_bcnts).
    #[must_use]
    pub fn len(&self) -> u32 {
        self.index.len() as u32
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// How many blocks the disk does not have yet.
    #[must_use]
    pub fn dirty_len(&self) -> u32 {
        self.dirty
    }

    /// How many blocks can be cached.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.slots.len()
    }

    /// How many blocks the disk has.
    #[must_use]
    pub fn disk_blocks(&self) -> u32 {
        self.disk_blocks
    }

    /// All blocks with their slots, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.index.iter()
    }

    /// Memory, in bytes: what grows with the cache, and what grows with the disk.
    #[must_use]
    pub fn bytes(&self) -> DirectoryBytes {
        DirectoryBytes {
            blocks: self.index.bytes() + self.slots.bytes(),
            buckets: size_of_val(self.buckets.as_slice()) as u64 + self.active.bytes() + self.groups.bytes(),
        }
    }
}

/// What is certain of some buckets that follow one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rest {
    /// How many of them are active.
    pub active: u32,
    /// None has more blocks.
    pub most: u16,
    /// None was accessed before this request.
    pub oldest: u32,
    /// The bucket behind them.
    pub next: u32,
}

/// The memory of a directory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectoryBytes {
    /// Index and words: at most 16 a slot, in practice 12.9.
    pub blocks: u64,
    /// Buckets of the whole disk: at most 16 a bucket, in practice 8.2.
    pub buckets: u64,
}
