//! A sparse hash map, whose memory grows with its entries (FlashTier: Saxena et al., EuroSys 2012, section
//! 4.1, after Google's sparse hash map).
//!
//! The buckets are divided into groups. A group has a bitmap of its occupied buckets, and an array of
//! their entries only: an empty bucket costs a bit. Collisions are resolved by linear probing, and a
//! deletion moves later entries of the run back.

use super::{BlockMap, Entry};
use frit_core::convert::{count_u32, to_u64, to_usize};

/// Buckets of a group: the bits of its bitmap.
const GROUP: usize = 64;
/// Entries by which the array of a group grows.
const GROWTH: usize = 4;

/// An occupied bucket: 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Row {
    block: u32,
    entry: Entry,
}

/// A group of buckets.
#[derive(Clone, Default, Debug)]
struct Group {
    occupied: u64,
    rows: Vec<Row>,
}

impl Group {
    /// Place in the array of a bucket's entry: the number of occupied buckets before it.
    #[inline]
    fn rank(&self, bucket: usize) -> usize {
        (self.occupied & ((1 << bucket) - 1)).count_ones() as usize
    }

    #[inline]
    fn get(&self, bucket: usize) -> Option<&Row> {
        if self.occupied >> bucket & 1 == 0 { None } else { self.rows.get(self.rank(bucket)) }
    }

    fn insert(&mut self, bucket: usize, row: Row) {
        let at = self.rank(bucket);
        if self.occupied >> bucket & 1 == 1 {
            self.rows[at] = row;
            return;
        }
        if self.rows.len() == self.rows.capacity() {
            self.rows.reserve_exact(GROWTH);
        }
        self.rows.insert(at, row);
        self.occupied |= 1 << bucket;
    }

    fn remove(&mut self, bucket: usize) {
        self.rows.remove(self.rank(bucket));
        self.occupied &= !(1 << bucket);
        if self.rows.capacity() - self.rows.len() > 2 * GROWTH {
            self.rows.shrink_to(self.rows.len() + GROWTH);
        }
    }
}

/// A hash table of sparse groups.
#[derive(Clone, Debug)]
pub(in crate::ssc) struct SparseMap {
    groups: Vec<Group>,
    used: u32,
}

impl SparseMap {
    /// Creates a map for `blocks` blocks. At most three quarters of its buckets are used.
    pub(in crate::ssc) fn new(blocks: u32) -> SparseMap {
        let buckets = u64::from(blocks) * 4 / 3 + 2;
        // An odd number of groups, as in the linear map.
        let groups = buckets.div_ceil(to_u64(GROUP)) | 1;
        SparseMap { groups: vec![Group::default(); groups as usize], used: 0 }
    }

    fn buckets(&self) -> usize {
        self.groups.len() * GROUP
    }

    /// Bucket at which the search for a block begins. Neighbours are spread over groups, so that groups
    /// fill evenly.
    #[inline]
    fn home(&self, block: u32) -> usize {
        let hash = block ^ block.rotate_left(7) ^ block.rotate_left(19);
        // The multiplier is 2^32 / golden ratio (Knuth, multiplicative hashing).
        let spread = u64::from(hash.wrapping_mul(0x9E37_79B9));
        ((spread * to_u64(self.buckets())) >> 32) as usize
    }

    #[inline]
    fn at(&self, bucket: usize) -> Option<&Row> {
        self.groups[bucket / GROUP].get(bucket % GROUP)
    }

    #[inline]
    fn next(&self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets() { 0 } else { bucket + 1 }
    }

    /// Returns the bucket of a block, or the empty bucket where it belongs.
    #[inline]
    fn find(&self, block: u32) -> (usize, Option<&Row>) {
        let mut bucket = self.home(block);
        loop {
            match self.at(bucket) {
                Some(row) if row.block != block => bucket = self.next(bucket),
                found => return (bucket, found),
            }
        }
    }

    fn remove(&mut self, mut hole: usize) {
        let (mut bucket, mut gap) = (hole, 0);
        loop {
            bucket = self.next(bucket);
            gap += 1;
            let Some(&row) = self.at(bucket) else { break };
            let home = self.home(row.block);
            let distance = if bucket >= home { bucket - home } else { bucket + self.buckets() - home };
            // The entry may move back if its home is not behind the hole.
            if distance >= gap {
                self.groups[hole / GROUP].insert(hole % GROUP, row);
                (hole, gap) = (bucket, 0);
            }
        }
        self.groups[hole / GROUP].remove(hole % GROUP);
        self.used -= 1;
    }
}

impl BlockMap for SparseMap {
    #[inline]
    fn get(&self, block: u32) -> Entry {
        self.find(block).1.map(|row| row.entry).unwrap_or_default()
    }

    fn replace(&mut self, block: u32, entry: Entry) -> Entry {
        let (bucket, found) = self.find(block);
        let present = found.is_some();
        let before = found.map(|row| row.entry).unwrap_or_default();
        if entry.is_empty() {
            if present {
                self.remove(bucket);
            }
            return before;
        }
        debug_assert!(present || to_usize(self.used) + 1 < self.buckets(), "the map is full");
        self.used += u32::from(!present);
        self.groups[bucket / GROUP].insert(bucket % GROUP, Row { block, entry });
        before
    }

    #[inline]
    fn prefetch(&self, block: u32) {
        frit_media::memory::prefetch(self.groups.get(self.home(block) / GROUP));
    }

    #[inline]
    fn prefetch_entry(&self, block: u32) {
        let home = self.home(block);
        let group = &self.groups[home / GROUP];
        frit_media::memory::prefetch(group.rows.get(group.rank(home % GROUP)));
    }

    fn len(&self) -> u32 {
        self.used
    }

    fn rows(&self) -> u32 {
        count_u32(self.buckets())
    }

    fn each(&self, each: &mut dyn FnMut(u32, Entry)) {
        for row in self.groups.iter().flat_map(|g| &g.rows) {
            each(row.block, row.entry);
        }
    }

    fn clear(&mut self) {
        self.groups.fill(Group::default());
        self.used = 0;
    }

    fn dram_bytes(&self) -> u64 {
        let rows: usize = self.groups.iter().map(|g| g.rows.capacity()).sum();
        to_u64(self.groups.len() * size_of::<Group>() + rows * size_of::<Row>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_the_entries() {
        use frit_core::Ppn;
        let mut map = SparseMap::new(100_000);
        let bytes = |map: &SparseMap| map.dram_bytes() as f64;
        let empty = bytes(&map);
        assert!(empty < 100_000.0, "less than a byte for each block of the capacity: {empty}");
        for n in 0..10_000u32 {
            map.replace(n * 77, Entry::in_nand(Ppn(n), 0));
        }
        let few = bytes(&map);
        // A group has up to three unused rows.
        assert!(few - empty < 10_000.0 * 12.0 * 1.5, "{few}");
        for n in 10_000..100_000u32 {
            map.replace(n * 77, Entry::in_nand(Ppn(n), 0));
        }
        let full = bytes(&map) / 100_000.0;
        assert!((12.0..13.5).contains(&full), "{full}");
        (0..100_000u32).for_each(|n| {
            map.replace(n * 77, Entry::default());
        });
        assert!(map.len() == 0 && bytes(&map) < empty + 2100.0 * 12.0 * 12.0, "{}", bytes(&map));
    }
}
