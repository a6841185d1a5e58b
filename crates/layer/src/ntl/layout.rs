//! Areas of the memory. Each chip has the same areas at the same offsets:
//!
//! ```text
//! 0        header, state; 4 KiB: marks; 8 KiB: tails (from address 0; unused on other chips)
//! 12 KiB   checkpoint, page by page over the chips (unprotected), or
//!          records, 32 bytes for each page; then their second copies (protected)
//! H        home pages
//! L        log pages, aligned to a refresh unit
//! ```
//!
//! A *place* is the location of a page on a chip: number `index * chips + chip`, home locations
//! first, so that with static mapping the place of a page is its number. *Slots* are the places of
//! the log, counted from 0.

use super::config::{LogKind, NtlConfig, Protect};
use crate::marks::word_at;
use crate::numbers::{LogSlot, Place, RecordSlot};
use crate::record::{RECORD_BYTES, RecordAddr};
use frit_core::convert::{bounded_u32, floor_u64, to_f64};
use frit_core::{Error, Result, size};
use frit_media::PcmGeometry;

/// Number of copies of a record, with which a damaged record is distinguished from a torn one.
pub(super) const COPIES: u32 = 2;
/// Place of the first record.
pub(super) const FIRST_RECORD: RecordAddr = RecordAddr { slot: RecordSlot(0), copy: 0 };
const TAILS_AT: u64 = 8192;
const TABLES_AT: u64 = 12288;
/// Size of the header of a checkpoint, in bytes.
pub(super) const CHECKPOINT_HEADER_BYTES: u64 = 64;

/// Sizes and addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NtlLayout {
    pub(super) chips: u32,
    chip_shift: Option<u32>,
    pub(super) page_bytes: u32,
    page_shift: u32,
    strip_shift: u32,
    /// Number of home locations on a chip.
    pub(super) homes: u32,
    /// Number of log pages on a chip.
    pub(super) logs: u32,
    /// Number of log pages on a chip that are reclaimed together.
    pub(super) row_pages: u32,
    /// Pages of a refresh unit.
    pub(super) refresh_pages: u32,
    protected: bool,
    home_at: u64,
    log_at: u64,
}

/// Properties of the memory below.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryShape {
    pub(super) geometry: PcmGeometry,
    /// Capacity after wear leveling, in bytes.
    pub(super) bytes: u64,
    /// Bytes of a refresh unit, if there is one and the leveler does not split it.
    pub(super) refresh_bytes: Option<u32>,
    /// Bytes of a refresh unit of the memory itself.
    pub(super) cells_refresh_bytes: Option<u32>,
}

/// Returns the size of a checkpoint in bytes: for each page two bits, and four bytes for a mapping
/// that has a table.
fn checkpoint_bytes(pages: u64, log_pages: u64) -> u64 {
    CHECKPOINT_HEADER_BYTES + pages.div_ceil(64) * 16 + 4 * pages + 4 * log_pages
}

impl NtlLayout {
    /// Computes the layout for a memory.
    ///
    /// # Errors
    /// Returns an error if a page or refresh unit would not lie on one chip, or if no page fits.
    pub(super) fn new(config: &NtlConfig, below: &MemoryShape) -> Result<NtlLayout> {
        let g = &below.geometry;
        let page = bounded_u32(config.page_bytes);
        if g.interleave_bytes < page {
            let why = format!("has to be at least a page of {page} bytes, so that a page lies in one chip");
            return Err(Error::param("interleave_bytes", size::format(u64::from(g.interleave_bytes)), why));
        }
        let refresh = refresh_bytes(config, below, page)?;
        let strip = u64::from(g.interleave_bytes);
        let chip_bytes = below.bytes / u64::from(g.channels) / strip * strip;
        let kind = config.log_kind();
        let row_pages = match kind {
            LogKind::Coarse => config.block_pages,
            LogKind::Full if config.refreshes() => refresh / page,
            _ => 1,
        };
        let row_bytes = u64::from(row_pages) * u64::from(page);
        let all = chip_bytes / u64::from(page);
        let logs = if kind == LogKind::None {
            0
        } else {
            // At least two rows: one is written while the other is merged.
            floor_u64((to_f64(all) * config.log_share / f64::from(row_pages)).ceil()).max(2)
                * u64::from(row_pages)
        };
        let align = if logs == 0 { u64::from(page) } else { row_bytes.max(u64::from(page)) };
        // The log lies at the end of the chip and is aligned, so that no refresh unit is split.
        let log_at = (chip_bytes / align * align).saturating_sub(logs * u64::from(page));
        let mut layout = NtlLayout {
            chips: g.channels,
            chip_shift: g.channels.is_power_of_two().then(|| g.channels.trailing_zeros()),
            page_bytes: page,
            page_shift: page.trailing_zeros(),
            strip_shift: g.interleave_bytes.trailing_zeros(),
            homes: 0,
            logs: bounded_u32(logs),
            row_pages,
            refresh_pages: (refresh / page).max(1),
            protected: config.protect == Protect::Redo,
            home_at: 0,
            log_at,
        };
        layout.fit_homes(config, log_at)?;
        Ok(layout)
    }

    /// Sets the number of home locations to the largest that fits below the log.
    fn fit_homes(&mut self, config: &NtlConfig, room: u64) -> Result<()> {
        let page = u64::from(self.page_bytes);
        let unit = if config.mapping == "block" { u64::from(config.block_pages) } else { 1 };
        let chips = u64::from(self.chips);
        let most = (room.saturating_sub(TABLES_AT) / page).min(u64::from(u32::MAX >> 1) / chips);
        let wanted = config.capacity.div_ceil(page).div_ceil(chips).next_multiple_of(unit);
        // Records or tables grow with the number of homes, so it is reduced until all of them fit.
        let mut homes = if config.capacity == 0 { most } else { most.min(wanted) };
        loop {
            homes -= homes % unit;
            if homes == 0 {
                let why = format!(
                    "leaves no page of {} on a chip beside the log and the records or tables",
                    size::format(page)
                );
                return Err(Error::param("chip_bytes", size::format(room), why));
            }
            let home_at = (TABLES_AT + self.tables_bytes(homes)).next_multiple_of(page);
            if home_at + homes * page <= room {
                if homes * chips * page < config.capacity {
                    let why = format!("the memory has room for {}", size::format(homes * chips * page));
                    return Err(Error::param("capacity", size::format(config.capacity), why));
                }
                self.homes = bounded_u32(homes);
                self.home_at = home_at;
                return Ok(());
            }
            let over = (home_at + homes * page - room).div_ceil(page).max(1);
            homes = homes.saturating_sub(over.max(unit));
        }
    }

    /// Returns the bytes of a chip that hold records, or the checkpoint.
    fn tables_bytes(&self, homes: u64) -> u64 {
        let (pages, logs) = (homes * u64::from(self.chips), u64::from(self.logs) * u64::from(self.chips));
        if self.protected {
            return (homes + u64::from(self.logs)) * RECORD_BYTES * u64::from(COPIES);
        }
        let all = checkpoint_bytes(pages, logs).div_ceil(u64::from(self.page_bytes));
        all.div_ceil(u64::from(self.chips)) * u64::from(self.page_bytes)
    }

    /// Returns the number of home locations.
    #[inline]
    pub(super) fn home_places(&self) -> u32 {
        self.homes * self.chips
    }

    /// Returns the number of slots of the log.
    #[inline]
    pub(super) fn slots(&self) -> u32 {
        self.logs * self.chips
    }

    /// Returns the number of all places.
    pub(super) fn all_places(&self) -> u32 {
        self.home_places() + self.slots()
    }

    /// Returns a place by its index on a chip.
    #[inline]
    pub(super) fn place(&self, index: u32, chip: u32) -> Place {
        Place(index * self.chips + chip)
    }

    /// Returns the place of a slot.
    #[inline]
    pub(super) fn slot_place(&self, slot: LogSlot) -> Place {
        Place(self.home_places() + slot.0)
    }

    /// Returns the index on its chip, and the chip: quotient and remainder by the number of chips.
    #[inline]
    pub(super) fn split(&self, place: Place) -> (u32, u32) {
        match self.chip_shift {
            Some(shift) => (place.0 >> shift, place.0 & (self.chips - 1)),
            None => (place.0 / self.chips, place.0 % self.chips),
        }
    }

    /// Returns the chip of a place.
    #[inline]
    pub(super) fn chip(&self, place: Place) -> u32 {
        self.split(place).1
    }

    /// Returns the address of byte `offset` of a chip.
    #[inline]
    fn on_chip(&self, chip: u32, offset: u64) -> u64 {
        // The memory is interleaved: consecutive strips lie on consecutive chips.
        let strip = offset >> self.strip_shift;
        ((strip * u64::from(self.chips) + u64::from(chip)) << self.strip_shift)
            | offset & ((1 << self.strip_shift) - 1)
    }

    /// Returns the address of a page.
    #[inline]
    pub(super) fn data(&self, place: Place) -> u64 {
        let (index, chip) = self.split(place);
        let offset = if index < self.homes {
            self.home_at + (u64::from(index) << self.page_shift)
        } else {
            self.log_at + (u64::from(index - self.homes) << self.page_shift)
        };
        self.on_chip(chip, offset)
    }

    /// Returns the address of a copy of the record of a page, which lies on the page's chip.
    #[inline]
    pub(super) fn record(&self, place: RecordAddr) -> u64 {
        let (index, chip) = self.split(place.slot.place());
        let rows = u64::from(self.homes + self.logs);
        self.on_chip(chip, TABLES_AT + (u64::from(place.copy) * rows + u64::from(index)) * RECORD_BYTES)
    }

    /// Iterates over the places of the copies of a page's record.
    #[inline]
    pub(super) fn places(&self, place: Place) -> impl Iterator<Item = RecordAddr> + use<> {
        RecordAddr::copies(place, COPIES)
    }

    /// Returns the number of consecutive indices on a chip, from `index` on, whose records are
    /// contiguous: at least one.
    pub(super) fn records_together(&self, index: u32, copy: u32) -> u32 {
        let rows = u64::from(self.homes + self.logs);
        let offset = TABLES_AT + (u64::from(copy) * rows + u64::from(index)) * RECORD_BYTES;
        let strip = 1u64 << self.strip_shift;
        let left = (strip - (offset & (strip - 1))) / RECORD_BYTES;
        bounded_u32(left.min(rows - u64::from(index)).max(1))
    }

    /// Returns the address of a part of the checkpoint, which must not cross a page boundary.
    pub(super) fn checkpoint(&self, from: u64) -> u64 {
        let (page, offset) = (from >> self.page_shift, from & (u64::from(self.page_bytes) - 1));
        let (row, chip) = self.split(Place::of_u64(page));
        self.on_chip(chip, TABLES_AT + (u64::from(row) << self.page_shift) + offset)
    }

    /// Returns the number of bytes on all chips that hold neither data nor log.
    pub(super) fn meta_bytes(&self) -> u64 {
        self.home_at * u64::from(self.chips)
    }
}

/// Returns the address of the tail of the log with index `i`.
pub(super) fn tail_at(i: u64) -> u64 {
    word_at(TAILS_AT, i)
}

/// Returns the bytes of a refresh unit for the log, or of a page if the log is not refreshed.
fn refresh_bytes(config: &NtlConfig, below: &MemoryShape, page: u32) -> Result<u32> {
    if !config.refreshes() {
        return Ok(page);
    }
    let Some(bytes) = below.refresh_bytes else {
        if let Some(unit) = below.cells_refresh_bytes {
            let why =
                format!("has to be at least a refresh unit of {} for a log", size::format(u64::from(unit)));
            return Err(Error::param("wear_stripe", size::format(config.wear.wear_stripe), why));
        }
        let log: &'static str = config.log.into();
        return Err(Error::param("log", log, "needs a memory with clean writes: `refresh_bytes`"));
    };
    let most = below.geometry.interleave_bytes;
    if bytes < page || bytes > most {
        let why = format!("has to be from a page of {page} bytes to interleave_bytes, {most}, for a log");
        return Err(Error::param("refresh_bytes", size::format(u64::from(bytes)), why));
    }
    if config.log == LogKind::Coarse && u64::from(bytes) > u64::from(config.block_pages) * u64::from(page) {
        let why = "has to be at most block_pages pages: a log block is refreshed alone";
        return Err(Error::param("refresh_bytes", size::format(u64::from(bytes)), why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::mark_at;

    fn below(channels: u32, chip_bytes: u64) -> MemoryShape {
        let geometry = PcmGeometry {
            channels,
            chips_per_channel: 1,
            groups: 1,
            chip_bytes,
            write_unit: 512,
            line_bytes: 4096,
            interleave_bytes: 512 << 10,
        };
        MemoryShape {
            geometry,
            bytes: geometry.bytes(),
            refresh_bytes: Some(64 << 10),
            cells_refresh_bytes: None,
        }
    }

    #[test]
    fn nothing_overlaps_and_everything_fits() {
        for channels in [1, 3, 4] {
            for (log, protect) in [
                (LogKind::None, Protect::None),
                (LogKind::Full, Protect::None),
                (LogKind::None, Protect::Redo),
                (LogKind::Full, Protect::Redo),
                (LogKind::Remap, Protect::None),
            ] {
                let config = NtlConfig { log, protect, log_share: 0.02, ..NtlConfig::default() };
                let b = below(channels, 4 << 20);
                let l = NtlLayout::new(&config, &b).unwrap();
                let mut all: Vec<(u64, u64)> =
                    vec![(0, 128), (mark_at(0), mark_at(63) + 64), (tail_at(0), tail_at(63) + 64)];
                for place in Place::first(l.all_places()) {
                    all.push((l.data(place), l.data(place) + 4096));
                    if protect == Protect::Redo {
                        all.extend(l.places(place).map(|copy| (l.record(copy), l.record(copy) + 32)));
                    }
                    assert_eq!(l.data(place) / (512 << 10) % u64::from(channels), u64::from(l.chip(place)));
                }
                if protect == Protect::None {
                    let saved = checkpoint_bytes(u64::from(l.home_places()), u64::from(l.slots()));
                    all.extend((0..saved).step_by(4096).map(|n| (l.checkpoint(n), l.checkpoint(n) + 4096)));
                }
                all.sort_unstable();
                assert!(all.windows(2).all(|w| w[0].1 <= w[1].0), "{log:?} {protect:?} overlaps");
                assert!(all[all.len() - 1].1 <= b.geometry.bytes());
                let meta = if protect == Protect::Redo { 64 } else { 5 };
                assert!(
                    u64::from(l.all_places()) * (4096 + meta) + (64 << 10) * u64::from(channels)
                        > b.bytes * 9 / 10
                );
                if log == LogKind::Full {
                    assert_eq!((l.row_pages, l.logs % 16), (16, 0));
                    assert_eq!(l.data(l.slot_place(LogSlot(0))) % (64 << 10), 0);
                }
            }
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused_by_key() {
        let key = |config: &NtlConfig, b: &MemoryShape| match NtlLayout::new(config, b) {
            Err(Error::Param { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        let full = NtlConfig { log: LogKind::Full, ..NtlConfig::default() };
        let mut b = below(4, 4 << 20);
        b.geometry.interleave_bytes = 512;
        assert_eq!(key(&NtlConfig::default(), &b), "interleave_bytes");
        let none = MemoryShape { refresh_bytes: None, ..below(4, 4 << 20) };
        assert_eq!(key(&full, &none), "log");
        assert_eq!(key(&full, &MemoryShape { cells_refresh_bytes: Some(1 << 20), ..none }), "wear_stripe");
        assert_eq!(
            key(&full, &MemoryShape { refresh_bytes: Some(1 << 20), ..below(4, 4 << 20) }),
            "refresh_bytes"
        );
        let blocks = NtlConfig { mapping: "block".into(), ..full };
        assert_eq!(key(&blocks, &below(4, 512 << 10)), "chip_bytes");
    }
}
