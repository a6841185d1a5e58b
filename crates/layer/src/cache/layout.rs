//! Areas of a cache in its PCM.
//!
//! ```text
//! 0       header: identity, state, shutdown summary; from 1 KiB on, second copies of marks
//! 4 KiB   marks: 64 words on separate lines, each followed by a synced mark
//! 8 KiB   records, 32 bytes for each slot; then their second copies, if there are any
//! D       data, 4 KiB for each slot, aligned to 4 KiB
//! ```

use super::BLOCK_BYTES;
use crate::marks::{mark_at, mark_copy_at};
use crate::numbers::CacheSlot;
use crate::record::{RECORD_BYTES, RecordAddr};
use frit_core::convert::{bounded_u32, to_usize};
use frit_core::{Error, Result, size};

pub(super) const RECORDS_AT: u64 = 8192;

/// Sizes and addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CacheLayout {
    pub(super) slots: u32,
    /// Number of copies of each record.
    pub(super) copies: u32,
    data_at: u64,
}

impl CacheLayout {
    /// Lays out a PCM of `bytes`, of which `cache_bytes` hold data (0: as many as fit), with the
    /// given number of copies of each record.
    ///
    /// # Errors
    /// Returns an error if fewer than 64 blocks fit, the least that a cache works with.
    pub(super) fn new(bytes: u64, cache_bytes: u64, copies: u32) -> Result<CacheLayout> {
        let meta = RECORD_BYTES * u64::from(copies);
        let most = bytes.saturating_sub(RECORDS_AT + BLOCK_BYTES) / (BLOCK_BYTES + meta);
        let slots = if cache_bytes == 0 { most } else { cache_bytes / BLOCK_BYTES };
        if slots > most {
            let why = format!("the PCM has room for {} beside the records", size::format(most * BLOCK_BYTES));
            return Err(Error::param("cache_bytes", size::format(cache_bytes), why));
        }
        if slots < SLOTS_LEAST {
            let why = format!("has to leave room for {SLOTS_LEAST} blocks of 4 KiB, but leaves {slots}");
            let key = if cache_bytes == 0 { "chip_bytes" } else { "cache_bytes" };
            return Err(Error::param(
                key,
                size::format(if cache_bytes == 0 { bytes } else { cache_bytes }),
                why,
            ));
        }
        let slots = slots.min(u64::from(u32::MAX >> 1) - 2);
        let data_at = (RECORDS_AT + slots * meta).next_multiple_of(BLOCK_BYTES);
        Ok(CacheLayout { slots: bounded_u32(slots), copies, data_at })
    }

    #[inline]
    pub(super) fn data(&self, slot: CacheSlot) -> u64 {
        self.data_at + u64::from(slot) * BLOCK_BYTES
    }

    #[inline]
    pub(super) fn record(&self, place: RecordAddr) -> u64 {
        let index = u64::from(place.copy) * u64::from(self.slots) + u64::from(place.slot);
        RECORDS_AT + index * RECORD_BYTES
    }

    /// Iterates over the places of the copies of a slot's record.
    #[inline]
    pub(super) fn places(&self, slot: CacheSlot) -> impl Iterator<Item = RecordAddr> + use<> {
        RecordAddr::copies(slot, self.copies)
    }

    /// Returns the number of bytes that do not hold data.
    pub(super) fn meta_bytes(&self) -> u64 {
        self.data_at
    }
}

/// Smallest number of blocks that a cache works with.
const SLOTS_LEAST: u64 = 64;

/// Returns the addresses of the copies of the mark with index `i`: one in a simulation, and two in a
/// volume, which has two copies of records. They lie on separate pages, so that damage to one page
/// cannot make damaged blocks look like torn ones.
pub(super) fn marks_at(i: u64, copies: u32) -> impl Iterator<Item = u64> {
    [mark_at(i), mark_copy_at(i) + 8].into_iter().take(to_usize(copies))
}

/// Returns the addresses of the two copies of the synced mark with index `i`. They lie on separate
/// pages, so that damage to one page cannot make all blocks uncertain.
pub(super) fn synced_marks_at(i: u64) -> [u64; 2] {
    [mark_at(i) + 8, mark_copy_at(i)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::WORDS;
    use crate::numbers::RecordSlot;

    #[test]
    fn everything_fits_and_nothing_overlaps() {
        for bytes in [1 << 20, (1 << 20) + 12_345, 1 << 30, 3 << 33] {
            for copies in 1..=2 {
                let l = CacheLayout::new(bytes, 0, copies).unwrap();
                let record = |slot, copy| l.record(RecordAddr { slot: RecordSlot(slot), copy });
                assert!(l.data(CacheSlot(l.slots - 1)) + BLOCK_BYTES <= bytes);
                assert!(record(l.slots - 1, copies - 1) + RECORD_BYTES <= l.data(CacheSlot(0)));
                assert!(copies == 1 || record(l.slots - 1, 0) + RECORD_BYTES <= record(0, 1));
                assert!(l.data(CacheSlot(0)).is_multiple_of(4096));
                assert!(mark_at(WORDS - 1) < record(0, 0) && mark_at(0) > crate::header::STATE_AT);
                let each = 4096 + 32 * u64::from(copies);
                assert!(u64::from(l.slots) * each + 16384 + each > bytes, "room is left");
            }
        }
        assert!(CacheLayout::new(1 << 20, 2 << 20, 1).is_err());
        assert!(CacheLayout::new(100_000, 0, 1).is_err());
        assert_eq!(CacheLayout::new(1 << 20, 512 << 10, 1).unwrap().slots, 128);
    }
}
