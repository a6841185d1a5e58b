//! An index from LBN to slot: a cuckoo hash table with full keys.
//!
//! Two hash functions, rows of four entries, rows of 32 bytes that never straddle a cache line: a
//! lookup touches one or two lines, whatever the size (Pagh and Rodler 2001; rows of four reach a
//! load of 0.97, Dietzfelbinger and Weidling 2007). Keys are stored in full, as in HALO (section
//! III-A): with partial keys, a read of PCM would be needed to distinguish blocks.

use crate::numbers::Lbn;
use frit_core::convert::{bounded_u32, count_u32, low_u8, low_u16, size_in_memory, to_u64, to_usize};
use frit_media::memory::prefetch;
use frit_media::memory::table_of;

/// The key of an empty entry. Therefore the last block of 16 TiB cannot be cached.
const EMPTY: Lbn = Lbn(u32::MAX);

const WAYS: usize = 4;

/// Largest load, in tenths of the entries. At this load an insertion examines few rows (measured in
/// docs/reference/cache-policies.md), and 8 bytes for an entry become 8.9.
const LOAD_TENTHS: u64 = 9;

/// Number of rows that an insertion examines before it gives up and uses the stash. At the design
/// load an insertion examines 4.2 rows on average, and one in some millions more than 64 (`make
/// bench`).
const SEARCH: usize = 256;

const NONE: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct IndexRow {
    keys: [Lbn; WAYS],
    values: [u32; WAYS],
}

impl IndexRow {
    #[inline]
    fn way(&self, key: Lbn) -> Option<usize> {
        // There is no early exit, so that the compiler can vectorize the comparisons.
        let mut hits = 0u32;
        for (way, &k) in self.keys.iter().enumerate() {
            hits |= u32::from(k == key) << way;
        }
        (hits != 0).then(|| to_usize(hits.trailing_zeros()) % WAYS)
    }
}

/// A row that the search for a free entry has reached, and the step that led to it.
#[derive(Clone, Copy)]
struct SearchStep {
    row: u32,
    parent: u16,
    /// The entry of the parent's row that could move here.
    way: u8,
}

/// The table. Values are numbers of slots, but any 32 bits are possible: the ghost lists of policies
/// use the table too.
#[derive(Clone, Debug)]
pub struct SlotIndex {
    rows: Vec<IndexRow>,
    len: usize,
    capacity: usize,
    /// Entries that found no row. It is empty unless keys were chosen to collide, or the table is
    /// filled above its capacity.
    stash: Vec<(Lbn, u32)>,
}

impl SlotIndex {
    /// Creates an empty table for `capacity` blocks. More can be inserted, but insertion becomes
    /// slower.
    #[must_use]
    pub fn new(capacity: usize) -> SlotIndex {
        let rows = (to_u64(capacity) * 10).div_ceil(LOAD_TENTHS * to_u64(WAYS)).max(1);
        let empty = IndexRow { keys: [EMPTY; WAYS], values: [0; WAYS] };
        SlotIndex { rows: table_of(size_in_memory(rows), empty), len: 0, capacity, stash: Vec::new() }
    }

    /// Returns the two rows of a key, from the two halves of its hash. Two rounds of multiply and
    /// shift spread neighbouring and strided keys.
    #[inline]
    fn places(&self, lbn: Lbn) -> [u32; 2] {
        let mut x = u64::from(lbn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^= x >> 32;
        x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
        x ^= x >> 32;
        let rows = to_u64(self.rows.len());
        let range = |half: u64| bounded_u32((half * rows) >> 32);
        [range(x >> 32), range(x & 0xffff_ffff)]
    }

    /// Returns the other row of a key that lies in `row`.
    fn other(&self, lbn: Lbn, row: u32) -> u32 {
        let [a, b] = self.places(lbn);
        if a == row { b } else { a }
    }

    #[inline]
    fn find(&self, lbn: Lbn) -> Option<(usize, usize)> {
        let [a, b] = self.places(lbn).map(to_usize);
        if let Some(way) = self.rows[a].way(lbn) {
            return Some((a, way));
        }
        self.rows[b].way(lbn).map(|way| (b, way))
    }

    /// Returns the slot of a block.
    #[inline]
    #[must_use]
    pub fn get(&self, lbn: Lbn) -> Option<u32> {
        match self.find(lbn) {
            Some((row, way)) => Some(self.rows[row].values[way]),
            None if self.stash.is_empty() => None,
            None => self.stash.iter().find(|e| e.0 == lbn).map(|e| e.1),
        }
    }

    /// Prefetches the rows for [`SlotIndex::get`] of a block.
    #[inline]
    pub fn prefetch(&self, lbn: Lbn) {
        for row in self.places(lbn) {
            prefetch(self.rows.get(to_usize(row)));
        }
    }

    /// Returns the number of cache lines that [`SlotIndex::get`] of a block touches.
    #[must_use]
    pub fn probes_of(&self, lbn: Lbn) -> u32 {
        let [a, b] = self.places(lbn).map(to_usize);
        // Adjacent rows may share a line of 64 bytes.
        if self.rows[a].way(lbn).is_some() || a / 2 == b / 2 { 1 } else { 2 }
    }

    /// Inserts a block that is not in the table. Returns the number of rows that were examined.
    #[inline]
    pub fn insert(&mut self, lbn: Lbn, value: u32) -> u32 {
        debug_assert!(lbn != EMPTY && self.get(lbn).is_none(), "block {lbn} is there already");
        self.len += 1;
        let places = self.places(lbn);
        for (row, probes) in places.into_iter().zip(1..) {
            if let Some(way) = self.rows[to_usize(row)].way(EMPTY) {
                self.put(to_usize(row), way, lbn, value);
                return probes;
            }
        }
        // Most often one of the eight entries in both rows can move to its other row.
        for (row, before) in places.into_iter().zip([2, 6]) {
            for (way, probes) in (0..WAYS).zip(before + 1..) {
                let (key, moved) = (self.rows[to_usize(row)].keys[way], self.rows[to_usize(row)].values[way]);
                let to = to_usize(self.other(key, row));
                if let Some(free) = self.rows[to].way(EMPTY) {
                    self.put(to, free, key, moved);
                    self.put(to_usize(row), way, lbn, value);
                    return probes;
                }
            }
        }
        self.insert_full(lbn, value, places)
    }

    /// Inserts a block if both rows, and all rows one move away, are full: entries move along the
    /// shortest path to a free entry.
    #[cold]
    fn insert_full(&mut self, lbn: Lbn, value: u32, [a, b]: [u32; 2]) -> u32 {
        let mut queue = [SearchStep { row: a, parent: NONE, way: 0 }; SEARCH];
        queue[1].row = b;
        let mut tail = 2;
        'search: for head in 0..SEARCH {
            if head == tail {
                break;
            }
            let row = queue[head].row;
            for way in 0..WAYS {
                if tail == SEARCH {
                    break 'search;
                }
                let to = self.other(self.rows[to_usize(row)].keys[way], row);
                queue[tail] = SearchStep { row: to, parent: low_u16(to_u64(head)), way: low_u8(to_u64(way)) };
                tail += 1;
                if let Some(free) = self.rows[to_usize(to)].way(EMPTY) {
                    match self.shift(&queue, tail - 1, free) {
                        Some((row, way)) => self.put(row, way, lbn, value),
                        None => self.stash.push((lbn, value)),
                    }
                    return count_u32(tail);
                }
            }
        }
        self.stash.push((lbn, value));
        count_u32(tail)
    }

    /// Moves entries along the path that ends at step `at`, whose row has `way` free, the last
    /// entry first. Returns the entry that is free afterwards, or `None` if the path crosses
    /// itself; the entries moved so far are in valid rows.
    fn shift(&mut self, queue: &[SearchStep; SEARCH], mut at: usize, way: usize) -> Option<(usize, usize)> {
        let mut free = (to_usize(queue[at].row), way);
        loop {
            let step = queue[at];
            if step.parent == NONE {
                return Some(free);
            }
            let parent = queue[usize::from(step.parent)].row;
            let (row, way) = (to_usize(parent), usize::from(step.way));
            let (key, value) = (self.rows[row].keys[way], self.rows[row].values[way]);
            if to_usize(self.other(key, parent)) != free.0 {
                return None;
            }
            self.put(free.0, free.1, key, value);
            self.rows[row].keys[way] = EMPTY;
            free = (row, way);
            at = usize::from(step.parent);
        }
    }

    #[inline]
    fn put(&mut self, row: usize, way: usize, lbn: Lbn, value: u32) {
        self.rows[row].keys[way] = lbn;
        self.rows[row].values[way] = value;
    }

    /// Sets the slot of a block. Returns the previous slot, or `None` if the block is not in the
    /// table.
    #[inline]
    pub fn set(&mut self, lbn: Lbn, value: u32) -> Option<u32> {
        let place = match self.find(lbn) {
            Some((row, way)) => &mut self.rows[row].values[way],
            None => self.stash.iter_mut().find(|e| e.0 == lbn).map(|e| &mut e.1)?,
        };
        Some(std::mem::replace(place, value))
    }

    /// Removes a block and returns its slot.
    #[inline]
    pub fn remove(&mut self, lbn: Lbn) -> Option<u32> {
        let Some((row, way)) = self.find(lbn) else {
            let at = self.stash.iter().position(|e| e.0 == lbn)?;
            self.len -= 1;
            return Some(self.stash.swap_remove(at).1);
        };
        self.rows[row].keys[way] = EMPTY;
        self.len -= 1;
        let value = self.rows[row].values[way];
        if !self.stash.is_empty() {
            self.unstash(row, way);
        }
        Some(value)
    }

    /// Moves a stashed entry to a row that has become free.
    #[cold]
    fn unstash(&mut self, row: usize, way: usize) {
        let fits = |e: &(Lbn, u32)| self.places(e.0).contains(&count_u32(row));
        if let Some(at) = self.stash.iter().position(fits) {
            let (lbn, value) = self.stash.swap_remove(at);
            self.put(row, way, lbn, value);
        }
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the capacity for which the table was made.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of blocks in the stash.
    #[must_use]
    pub fn stashed(&self) -> usize {
        self.stash.len()
    }

    /// Returns the DRAM used, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        to_u64(size_of_val(self.rows.as_slice()) + self.stash.capacity() * size_of::<(Lbn, u32)>())
    }

    /// Iterates over all blocks and their slots, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Lbn, u32)> + '_ {
        let rows = self.rows.iter().flat_map(|r| r.keys.into_iter().zip(r.values));
        rows.filter(|e| e.0 != EMPTY).chain(self.stash.iter().copied())
    }
}
