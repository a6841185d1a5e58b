//! An index from a page to the slot of its newest version: open addressing with linear probing, at
//! most half full.

use crate::ntl::mapping::LPN_NONE;
use crate::numbers::LogSlot;
use frit_core::Lpn;
use frit_core::convert::{to_u64, to_usize};

/// A free row.
const FREE: (Lpn, LogSlot) = (LPN_NONE, LogSlot(0));

/// Map from pages to slots. Eight bytes for a row, two to four rows for a slot.
#[derive(Clone, Debug)]
pub(super) struct LogIndex {
    rows: Vec<(Lpn, LogSlot)>,
    shift: u32,
    len: u32,
}

impl LogIndex {
    /// Creates an index for `entries` entries.
    pub(super) fn new(entries: u32) -> LogIndex {
        let rows = (to_usize(entries) * 2).next_power_of_two().max(4);
        LogIndex { rows: vec![FREE; rows], shift: 32 - rows.trailing_zeros(), len: 0 }
    }

    /// Returns the first row of a page's probe sequence. Fibonacci hashing (Knuth, The Art of
    /// Computer Programming, volume 3, section 6.4).
    #[inline]
    fn start(&self, lpn: Lpn) -> usize {
        to_usize(lpn.0.wrapping_mul(0x9E37_79B1) >> self.shift)
    }

    /// Returns the row of a page, or the free row for it.
    #[inline]
    fn find(&self, lpn: Lpn) -> usize {
        let mask = self.rows.len() - 1;
        let mut row = self.start(lpn);
        while self.rows[row].0 != lpn && self.rows[row].0 != LPN_NONE {
            row = (row + 1) & mask;
        }
        row
    }

    #[inline]
    pub(super) fn get(&self, lpn: Lpn) -> Option<LogSlot> {
        let (found, slot) = self.rows[self.find(lpn)];
        (found == lpn).then_some(slot)
    }

    /// Sets the slot of a page, and returns its previous slot.
    #[inline]
    pub(super) fn put(&mut self, lpn: Lpn, slot: LogSlot) -> Option<LogSlot> {
        let row = self.find(lpn);
        let (found, old) = std::mem::replace(&mut self.rows[row], (lpn, slot));
        if found == lpn {
            return Some(old);
        }
        self.len += 1;
        None
    }

    pub(super) fn remove(&mut self, lpn: Lpn) -> Option<LogSlot> {
        let mask = self.rows.len() - 1;
        let mut hole = self.find(lpn);
        let (found, slot) = self.rows[hole];
        if found != lpn {
            return None;
        }
        self.len -= 1;
        // Later rows that a search could not reach past the hole are moved into it.
        let mut row = hole;
        loop {
            row = (row + 1) & mask;
            let (next, _) = self.rows[row];
            if next == LPN_NONE {
                break;
            }
            let from_start = row.wrapping_sub(self.start(next)) & mask;
            if from_start >= row.wrapping_sub(hole) & mask {
                self.rows[hole] = self.rows[row];
                hole = row;
            }
        }
        self.rows[hole] = FREE;
        Some(slot)
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn clear(&mut self) {
        self.rows.fill(FREE);
        self.len = 0;
    }

    pub(super) fn bytes(&self) -> u64 {
        to_u64(size_of_val(self.rows.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn it_is_a_map(ops in prop::collection::vec((0..3u8, 0..40u32, 0..64u32), 0..400)) {
            let (mut index, mut model) = (LogIndex::new(40), HashMap::new());
            for (op, lpn, slot) in ops {
                let slot = LogSlot(slot);
                // Colliding keys: multiples of a large power of two have similar hashes in their
                // low bits.
                let lpn = Lpn(lpn << 20 | lpn);
                match op {
                    0 => prop_assert_eq!(index.put(lpn, slot), model.insert(lpn, slot)),
                    1 => prop_assert_eq!(index.remove(lpn), model.remove(&lpn)),
                    _ => prop_assert_eq!(index.get(lpn), model.get(&lpn).copied()),
                }
                prop_assert_eq!(to_usize(index.len()), model.len());
            }
            for (lpn, slot) in model {
                prop_assert_eq!(index.get(lpn), Some(slot));
            }
        }
    }
}
