//! Closed hashing with linear probing, in a table that is allocated at the start (Saxena et al., FAST
//! 2013, section 3.3.2).
//!
//! A deletion moves later entries of the run back, so no marks of deleted entries lengthen the runs.

use super::{BlockMap, Entry};
use frit_core::PAGE_NONE;
use frit_core::convert::{count_u32, to_u64, to_usize};

/// A row of the table: 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// [`PAGE_NONE`] in an empty row.
    block: u32,
    entry: Entry,
}

const EMPTY: Row = Row { block: PAGE_NONE, entry: Entry { ppn: PAGE_NONE, tag: 0, flags: 0 } };

/// Returns `n` mod `divisor`, which is at most 2^32, without a division. `inverse` is 2^64 / `divisor`,
/// rounded up (Lemire, Kaser and Kurz, "Faster remainder by direct computation", 2019).
#[inline]
fn remainder(n: u32, divisor: u64, inverse: u64) -> u64 {
    let fraction = inverse.wrapping_mul(u64::from(n));
    ((u128::from(fraction) * u128::from(divisor)) >> 64) as u64
}

/// A hash table with linear probing.
#[derive(Clone, Debug)]
pub(in crate::ssc) struct LinearMap {
    rows: Vec<Row>,
    used: u32,
    /// 2^64 / number of rows, rounded up.
    inverse: u64,
}

impl LinearMap {
    /// Creates a map for `blocks` blocks. At most three quarters of its rows are used.
    pub(in crate::ssc) fn new(blocks: u32) -> LinearMap {
        // An odd number of rows: the remainder of a division by it depends on all bits of the hash.
        let rows = (u64::from(blocks) * 4 / 3 + 2) | 1;
        LinearMap { rows: vec![EMPTY; rows as usize], used: 0, inverse: u64::MAX / rows + 1 }
    }

    /// Row at which the search for a block begins: rotations and a remainder, as in the firmware of
    /// the prototype.
    #[inline]
    fn home(&self, block: u32) -> usize {
        let hash = block ^ block.rotate_left(7) ^ block.rotate_left(19);
        remainder(hash, to_u64(self.rows.len()), self.inverse) as usize
    }

    #[inline]
    fn next(&self, row: usize) -> usize {
        if row + 1 == self.rows.len() { 0 } else { row + 1 }
    }

    /// Returns the row of a block, or the empty row where it belongs.
    #[inline]
    fn find(&self, block: u32) -> usize {
        let mut row = self.home(block);
        while self.rows[row].block != block && self.rows[row].block != PAGE_NONE {
            row = self.next(row);
        }
        row
    }

    /// Number of rows from the home of the entry in `row` to `row`.
    fn distance(&self, row: usize) -> usize {
        let home = self.home(self.rows[row].block);
        if row >= home { row - home } else { row + self.rows.len() - home }
    }

    fn remove(&mut self, mut hole: usize) {
        let mut row = hole;
        let mut gap = 0;
        loop {
            row = self.next(row);
            gap += 1;
            if self.rows[row].block == PAGE_NONE {
                break;
            }
            // The entry may move back if its home is not behind the hole.
            if self.distance(row) >= gap {
                self.rows[hole] = self.rows[row];
                hole = row;
                gap = 0;
            }
        }
        self.rows[hole] = EMPTY;
        self.used -= 1;
    }

    /// Mean number of rows that a search for a present block examines.
    #[cfg(test)]
    pub(in crate::ssc) fn mean_probes(&self) -> f64 {
        let used = (0..self.rows.len()).filter(|&r| self.rows[r].block != PAGE_NONE);
        let sum: usize = used.map(|r| self.distance(r) + 1).sum();
        sum as f64 / f64::from(self.used.max(1))
    }
}

impl BlockMap for LinearMap {
    #[inline]
    fn get(&self, block: u32) -> Entry {
        self.rows[self.find(block)].entry
    }

    #[inline]
    fn replace(&mut self, block: u32, entry: Entry) -> Entry {
        let row = self.find(block);
        let before = self.rows[row];
        let present = before.block == block;
        if entry.is_empty() {
            if present {
                self.remove(row);
            }
            return before.entry;
        }
        debug_assert!(present || to_usize(self.used) + 1 < self.rows.len(), "the map is full");
        self.used += u32::from(!present);
        self.rows[row] = Row { block, entry };
        before.entry
    }

    #[inline]
    fn prefetch(&self, block: u32) {
        frit_media::memory::prefetch(self.rows.get(self.home(block)));
    }

    fn len(&self) -> u32 {
        self.used
    }

    fn rows(&self) -> u32 {
        count_u32(self.rows.len())
    }

    fn each(&self, each: &mut dyn FnMut(u32, Entry)) {
        for row in self.rows.iter().filter(|r| r.block != PAGE_NONE) {
            each(row.block, row.entry);
        }
    }

    fn clear(&mut self) {
        self.rows.fill(EMPTY);
        self.used = 0;
    }

    fn dram_bytes(&self) -> u64 {
        to_u64(self.rows.len() * size_of::<Row>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::Ppn;

    #[test]
    fn remainders_are_exact() {
        for divisor in [3, 5, 135, 133_335, (1 << 31) + 1, (1 << 32) - 1, 1 << 32] {
            for n in (0..2000).chain((0..2000).map(|n| u32::MAX - n * 77)) {
                assert_eq!(remainder(n, divisor, u64::MAX / divisor + 1), u64::from(n) % divisor);
            }
        }
    }

    #[test]
    fn searches_stay_short_in_a_full_map() {
        for stride in [1, 8, 1 << 12] {
            let mut map = LinearMap::new(100_000);
            for n in 0..100_000u32 {
                map.replace(n.wrapping_mul(stride), Entry::in_nand(Ppn(n), 0));
            }
            assert!(map.mean_probes() < 8.0, "stride {stride}: {}", map.mean_probes());
        }
        assert_eq!(size_of::<Row>(), 12);
    }
}
