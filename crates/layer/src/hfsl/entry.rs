//! An entry of the mapping table: 8 bytes a page, in PCM as in DRAM.
//!
//! | bits | field | HFSL paper, Table 3 |
//! |---|---|---|
//! | 0–31 | location: NAND page (PPN), or descriptor of a page in PCM | |
//! | 32 | mapped | |
//! | 33 | medium: 0 NAND, 1 PCM | Add_Flag |
//! | 34 | changed since it was last written to PCM | Flag |
//! | 35–42 | sub-pages that are stored in PCM | State |
//! | 43–47 | write counter, saturating | Counter |
//! | 48–63 | version tag: low bits of the write's sequence number | |
//!
//! Zero is an unmapped page, so that an erased table is an empty one.

use frit_core::Ppn;

/// Sub-pages that an entry can tell apart.
pub(crate) const SUBPAGES_MAX: u32 = 8;
/// Where the write counter saturates.
pub(super) const COUNTER_MAX: u8 = 31;

const MAPPED: u64 = 1 << 32;
const PCM: u64 = 1 << 33;
const CHANGED: u64 = 1 << 34;
const STATE_SHIFT: u32 = 35;
const COUNTER_SHIFT: u32 = 43;
const TAG_SHIFT: u32 = 48;

/// Where a logical page lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Nowhere: never written, or discarded.
    Unmapped,
    /// In a NAND page.
    Nand(Ppn),
    /// In PCM, by the number of its descriptor.
    Pcm(u32),
}

/// One entry of the mapping table.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Entry(pub(crate) u64);

impl Entry {
    /// Where the page lies.
    #[inline]
    #[must_use]
    pub fn place(self) -> Place {
        match (self.0 & MAPPED != 0, self.0 & PCM != 0) {
            (false, _) => Place::Unmapped,
            (true, false) => Place::Nand(Ppn(self.0 as u32)),
            (true, true) => Place::Pcm(self.0 as u32),
        }
    }

    /// The entry for a page that now lies elsewhere: changed, with the same write counter.
    #[inline]
    #[must_use]
    pub(crate) fn moved(self, to: Place, state: u8, seq: u64) -> Entry {
        let keep = self.0 & (u64::from(COUNTER_MAX) << COUNTER_SHIFT);
        let place = match to {
            Place::Unmapped => return Entry(keep | CHANGED | (seq << TAG_SHIFT)),
            Place::Nand(ppn) => MAPPED | u64::from(ppn.0),
            Place::Pcm(desc) => MAPPED | PCM | u64::from(desc) | (u64::from(state) << STATE_SHIFT),
        };
        Entry(keep | CHANGED | place | (seq << TAG_SHIFT))
    }

    /// Sub-pages that are stored in PCM, one bit each.
    #[must_use]
    pub fn state(self) -> u8 {
        (self.0 >> STATE_SHIFT) as u8
    }

    /// The write counter.
    #[inline]
    #[must_use]
    pub fn counter(self) -> u8 {
        (self.0 >> COUNTER_SHIFT) as u8 & COUNTER_MAX
    }

    /// Counts a write.
    #[inline]
    #[must_use]
    pub(crate) fn counted(self) -> Entry {
        if self.counter() == COUNTER_MAX { self } else { Entry(self.0 + (1 << COUNTER_SHIFT)) }
    }

    /// The version tag.
    #[must_use]
    pub fn tag(self) -> u16 {
        (self.0 >> TAG_SHIFT) as u16
    }

    /// Whether it was changed since it was last written to PCM.
    #[must_use]
    pub fn changed(self) -> bool {
        self.0 & CHANGED != 0
    }

    /// As it is written to PCM.
    #[must_use]
    pub(crate) fn clean(self) -> Entry {
        Entry(self.0 & !CHANGED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let mut e = Entry::default();
        assert_eq!(e.place(), Place::Unmapped);
        for _ in 0..40 {
            e = e.counted();
        }
        assert_eq!(e.counter(), COUNTER_MAX);
        e = e.moved(Place::Pcm(u32::MAX), 0xFF, 0x1_ABCD);
        assert_eq!((e.place(), e.state(), e.tag()), (Place::Pcm(u32::MAX), 0xFF, 0xABCD));
        assert_eq!(e.counter(), COUNTER_MAX);
        assert!(e.changed() && !e.clean().changed());
        e = e.moved(Place::Nand(Ppn(7)), 0, 0);
        assert_eq!((e.place(), e.state(), e.tag()), (Place::Nand(Ppn(7)), 0, 0));
        assert_eq!(e.moved(Place::Unmapped, 0, 9).place(), Place::Unmapped);
    }
}
