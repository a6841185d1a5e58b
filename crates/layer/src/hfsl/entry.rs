//! Format of an entry of the mapping table: 8 bytes a page, in PCM and in DRAM.
//!
//! | bits | field | HFSL paper, Table 3 |
//! |---|---|---|
//! | 0–31 | location: NAND page (PPN), or descriptor of a page in PCM | |
//! | 32 | mapped | |
//! | 33 | medium: 0 NAND, 1 PCM | Add_Flag |
//! | 34 | dirty: changed since it was last written to PCM | Flag |
//! | 35–42 | sub-pages stored in PCM | State |
//! | 43–47 | write counter, saturating | Counter |
//! | 48–63 | version tag: low bits of the sequence number of the write | |
//!
//! In PCM, bits 34–47 hold a check over the other bits and the page number instead: the descriptor
//! has State as well, and Counter restarts after a boot. The check detects a flipped bit and an
//! entry in the wrong position (all flips of one or two bits; other damage passes with a
//! probability of 1 in 16 384).
//!
//! In DRAM, zero is an unmapped page. In PCM, zeros are damage, or, where the table was not
//! initialised at format time, a page that was never written.

use crate::planted::HfslBug;
use frit_core::Ppn;
use frit_core::planted::is_planted;

/// Largest number of sub-pages of a page: the state bits of an entry.
pub(crate) const SUBPAGES_MAX: u32 = 8;
/// Value at which the write counter saturates.
pub(super) const COUNTER_MAX: u8 = 31;

const MAPPED: u64 = 1 << 32;
const PCM: u64 = 1 << 33;
const CHANGED: u64 = 1 << 34;
const STATE_SHIFT: u32 = 35;
const COUNTER_SHIFT: u32 = 43;
const TAG_SHIFT: u32 = 48;
/// Position of the check bits of an entry in PCM.
const CHECK_SHIFT: u32 = 34;
const CHECK: u64 = 0x3FFF;

/// Returns the 14-bit check of an entry in PCM, over the page number and the bits that are kept.
fn check(lpn: u32, kept: u64) -> u64 {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&lpn.to_le_bytes());
    bytes[4..].copy_from_slice(&kept.to_le_bytes());
    // The top bits of the CRC: its low bits do not distinguish all pairs of flipped bits.
    let check = u64::from(frit_media::checksum::crc32c(&bytes) >> 18) & CHECK;
    // Zero is never a valid entry: lost or unwritten storage reads as zeros.
    if kept == 0 { check.max(1) } else { check }
}

/// Location of a logical page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageLocation {
    /// No location: the page was never written, or was discarded.
    Unmapped,
    /// A NAND page.
    Nand(Ppn),
    /// A page in PCM, by the number of its descriptor.
    Pcm(u32),
}

/// An entry of the mapping table.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MapEntry(pub(crate) u64);

impl MapEntry {
    /// Location of the page.
    #[inline]
    #[must_use]
    pub fn place(self) -> PageLocation {
        match (self.0 & MAPPED != 0, self.0 & PCM != 0) {
            (false, _) => PageLocation::Unmapped,
            (true, false) => PageLocation::Nand(Ppn(self.0 as u32)),
            (true, true) => PageLocation::Pcm(self.0 as u32),
        }
    }

    /// Returns the entry for the page at a new location: dirty, with the same write counter.
    #[inline]
    #[must_use]
    pub(crate) fn moved(self, to: PageLocation, state: u8, seq: u64) -> MapEntry {
        let keep = self.0 & (u64::from(COUNTER_MAX) << COUNTER_SHIFT);
        let place = match to {
            // The tag distinguishes a discarded page from one that was never written (tag 0).
            PageLocation::Unmapped => return MapEntry(keep | CHANGED | (seq << TAG_SHIFT)),
            PageLocation::Nand(ppn) => MAPPED | u64::from(ppn.0),
            PageLocation::Pcm(desc) => MAPPED | PCM | u64::from(desc) | (u64::from(state) << STATE_SHIFT),
        };
        MapEntry(keep | CHANGED | place | (seq << TAG_SHIFT))
    }

    /// Sub-pages stored in PCM, one bit each.
    #[must_use]
    pub fn state(self) -> u8 {
        (self.0 >> STATE_SHIFT) as u8
    }

    /// Write counter.
    #[inline]
    #[must_use]
    pub fn counter(self) -> u8 {
        (self.0 >> COUNTER_SHIFT) as u8 & COUNTER_MAX
    }

    /// Returns the entry with its write counter incremented.
    #[inline]
    #[must_use]
    pub(crate) fn with_write_counted(self) -> MapEntry {
        if self.counter() == COUNTER_MAX { self } else { MapEntry(self.0 + (1 << COUNTER_SHIFT)) }
    }

    /// Version tag.
    #[must_use]
    pub fn tag(self) -> u16 {
        (self.0 >> TAG_SHIFT) as u16
    }

    /// Returns `true` if the entry changed since it was last written to PCM.
    #[must_use]
    pub fn changed(self) -> bool {
        self.0 & CHANGED != 0
    }

    /// Returns the entry marked as dirty, so that it and its descriptor are written to PCM.
    #[must_use]
    pub(crate) fn marked_dirty(self) -> MapEntry {
        MapEntry(self.0 | CHANGED)
    }

    /// Returns the entry marked as clean: equal to the entry in PCM.
    #[must_use]
    pub(crate) fn clean(self) -> MapEntry {
        MapEntry(self.0 & !CHANGED)
    }

    /// Encodes the entry for PCM, with its check bits.
    #[must_use]
    pub(crate) fn sealed(self, lpn: u32) -> u64 {
        let kept = self.0 & !(CHECK << CHECK_SHIFT);
        kept | check(lpn, kept) << CHECK_SHIFT
    }

    /// Decodes an entry from PCM. `None` if it is damaged or belongs to another page.
    #[must_use]
    pub(crate) fn decode_checked(raw: u64, lpn: u32) -> Option<MapEntry> {
        let entry = MapEntry(raw & !(CHECK << CHECK_SHIFT));
        (entry.sealed(lpn) == raw || is_planted(HfslBug::EntryCheckIgnored)).then_some(entry)
    }

    /// Returns the entry with the sub-pages that its descriptor names.
    #[must_use]
    pub(crate) fn with_state(self, state: u8) -> MapEntry {
        MapEntry(self.0 & !(0xFF << STATE_SHIFT) | u64::from(state) << STATE_SHIFT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let mut e = MapEntry::default();
        assert_eq!(e.place(), PageLocation::Unmapped);
        for _ in 0..40 {
            e = e.with_write_counted();
        }
        assert_eq!(e.counter(), COUNTER_MAX);
        e = e.moved(PageLocation::Pcm(u32::MAX), 0xFF, 0x1_ABCD);
        assert_eq!((e.place(), e.state(), e.tag()), (PageLocation::Pcm(u32::MAX), 0xFF, 0xABCD));
        assert_eq!(e.counter(), COUNTER_MAX);
        assert!(e.changed() && !e.clean().changed());
        e = e.moved(PageLocation::Nand(Ppn(7)), 0, 0);
        assert_eq!((e.place(), e.state(), e.tag()), (PageLocation::Nand(Ppn(7)), 0, 0));
        assert_eq!(e.moved(PageLocation::Unmapped, 0, 9).place(), PageLocation::Unmapped);
    }

    #[test]
    fn flipped_bits_and_misplaced_entries_are_seen() {
        let e = MapEntry::default().moved(PageLocation::Nand(Ppn(0x1234)), 0, 77);
        let raw = e.sealed(9);
        assert_eq!(MapEntry::decode_checked(raw, 9), Some(e.clean()));
        assert_eq!(MapEntry::decode_checked(raw, 8), None);
        for a in 0..64 {
            assert_eq!(MapEntry::decode_checked(raw ^ 1 << a, 9), None, "bit {a}");
            for b in 0..a {
                assert_eq!(MapEntry::decode_checked(raw ^ 1 << a ^ 1 << b, 9), None, "bits {a} and {b}");
            }
        }
        assert_eq!(MapEntry::decode_checked(0, 9), None);
        assert!((0..100_000).all(|lpn| MapEntry::default().sealed(lpn) != 0));
        assert_eq!(MapEntry::decode_checked(MapEntry::default().sealed(9), 9), Some(MapEntry::default()));
    }
}
