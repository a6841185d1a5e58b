//! The log: tables of the newest versions in its slots, and allocation of slots.
//!
//! A slot has an owner while it holds the newest version of a page. The full log fills slots in
//! order, cycling over the chips. The coarse log has a log block for each updated data block.

mod coarse;
mod index;
mod ring;

use super::config::{LogKind, MergeUnit, NtlConfig};
use super::layout::NtlLayout;
use super::mapping::LPN_NONE;
use crate::numbers::{LogSlot, LogicalBlock};
use coarse::LogBlocks;
use frit_core::Lpn;
use frit_core::convert::{count_u32, to_u64, to_usize};
use index::LogIndex;
use ring::RingAllocator;

/// Result of a request for a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LogSpace {
    /// The next slot.
    Slot(LogSlot),
    /// No slot is free until these rows of the log are merged.
    Merge(std::ops::Range<u32>),
}

#[derive(Clone, Debug)]
enum SlotOrder {
    RingAllocator(RingAllocator),
    LogBlocks(LogBlocks),
}

/// Tables of the log.
#[derive(Clone, Debug)]
pub(super) struct LogTables {
    kind: LogKind,
    order: SlotOrder,
    /// For each slot, the page whose newest version it holds.
    owners: Vec<Lpn>,
    index: LogIndex,
    chips: u32,
    row_pages: u32,
}

impl LogTables {
    pub(super) fn new(config: &NtlConfig, layout: &NtlLayout) -> LogTables {
        let kind = config.log_kind();
        let rows = layout.logs / layout.row_pages.max(1);
        let order = match kind {
            LogKind::Coarse => {
                SlotOrder::LogBlocks(LogBlocks::new(rows * layout.chips, layout.row_pages, layout.chips))
            }
            _ => {
                let rows_at_once = if config.merge == MergeUnit::All { rows } else { 1 };
                SlotOrder::RingAllocator(RingAllocator::new(
                    layout.slots(),
                    layout.row_pages * layout.chips,
                    rows_at_once,
                ))
            }
        };
        LogTables {
            kind,
            order,
            owners: vec![LPN_NONE; to_usize(layout.slots())],
            index: LogIndex::new(layout.slots()),
            chips: layout.chips,
            row_pages: layout.row_pages,
        }
    }

    pub(super) fn kind(&self) -> LogKind {
        self.kind
    }

    /// Returns the slot for the next version of a page. `block` is the page's block, for the coarse
    /// log.
    #[inline]
    pub(super) fn next_slot(&self, block: LogicalBlock) -> LogSpace {
        match &self.order {
            SlotOrder::RingAllocator(ring) => ring.next_slot(),
            SlotOrder::LogBlocks(blocks) => blocks.next_slot(block),
        }
    }

    /// Takes the slot that [`LogTables::next_slot`] returned. It holds the newest version of `lpn`
    /// from now on.
    #[inline]
    pub(super) fn take(&mut self, lpn: Lpn, block: LogicalBlock, slot: LogSlot) {
        match &mut self.order {
            SlotOrder::RingAllocator(ring) => ring.take(),
            SlotOrder::LogBlocks(blocks) => blocks.take(block, slot),
        }
        self.own(lpn, slot);
    }

    #[inline]
    fn own(&mut self, lpn: Lpn, slot: LogSlot) {
        self.owners[slot.idx()] = lpn;
        if let Some(old) = self.index.put(lpn, slot) {
            self.owners[old.idx()] = LPN_NONE;
        }
    }

    /// Notes, during a recovery, that a slot holds the newest version of a page.
    pub(super) fn restore(&mut self, lpn: Lpn, slot: LogSlot) {
        self.own(lpn, slot);
    }

    /// Returns the slot of a page's newest version, if it lies in the log.
    #[inline]
    pub(super) fn slot_of(&self, lpn: Lpn) -> Option<LogSlot> {
        self.index.get(lpn)
    }

    /// Returns the page whose newest version a slot holds.
    #[inline]
    pub(super) fn owner(&self, slot: LogSlot) -> Option<Lpn> {
        Some(self.owners[slot.idx()]).filter(|&lpn| lpn != LPN_NONE)
    }

    /// Removes a page whose newest version is no longer in the log.
    pub(super) fn drop_page(&mut self, lpn: Lpn) {
        if let Some(slot) = self.index.remove(lpn) {
            self.owners[slot.idx()] = LPN_NONE;
        }
    }

    /// Frees rows that were merged.
    pub(super) fn reclaim(&mut self, rows: &std::ops::Range<u32>) {
        match &mut self.order {
            SlotOrder::RingAllocator(ring) => ring.reclaim(rows),
            SlotOrder::LogBlocks(blocks) => blocks.reclaim(rows),
        }
    }

    /// Iterates over the slots of rows. A row of the full log spans all chips, a row of the coarse
    /// log lies on one.
    pub(super) fn slots(&self, rows: &std::ops::Range<u32>) -> impl Iterator<Item = LogSlot> + use<> {
        let (chips, pages, rows) = (self.chips, self.row_pages, rows.clone());
        let coarse = matches!(self.order, SlotOrder::LogBlocks(_));
        let (count, row_chips) = if coarse { (1, 1) } else { (chips, chips) };
        rows.flat_map(move |row| {
            let (index, chip) = if coarse { (row / chips, row % chips) } else { (row, 0) };
            (0..pages).flat_map(move |page| {
                (0..count).map(move |c| LogSlot((index * pages + page) * chips + chip + c % row_chips))
            })
        })
    }

    /// Returns the range of all rows.
    pub(super) fn rows(&self) -> std::ops::Range<u32> {
        let rows = count_u32(self.owners.len()) / self.chips / self.row_pages.max(1);
        0..if matches!(self.order, SlotOrder::LogBlocks(_)) { rows * self.chips } else { rows }
    }

    /// Returns the number of pages whose newest version lies in the log.
    pub(super) fn pages(&self) -> u32 {
        self.index.len()
    }

    pub(super) fn forget(&mut self) {
        self.owners.fill(LPN_NONE);
        self.index.clear();
        match &mut self.order {
            SlotOrder::RingAllocator(ring) => ring.clear(),
            SlotOrder::LogBlocks(blocks) => blocks.clear(),
        }
    }

    /// Returns the size of its tables, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        to_u64(size_of_val(self.owners.as_slice())) + self.index.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_cover_all_slots_once() {
        for (kind, merge) in [
            (LogKind::Full, MergeUnit::All),
            (LogKind::Full, MergeUnit::Row),
            (LogKind::Coarse, MergeUnit::All),
        ] {
            let order = match kind {
                LogKind::Coarse => SlotOrder::LogBlocks(LogBlocks::new(6, 4, 3)),
                _ => SlotOrder::RingAllocator(RingAllocator::new(
                    24,
                    12,
                    if merge == MergeUnit::All { 2 } else { 1 },
                )),
            };
            let log = LogTables {
                kind,
                order,
                owners: vec![LPN_NONE; 24],
                index: LogIndex::new(24),
                chips: 3,
                row_pages: 4,
            };
            let mut all: Vec<LogSlot> = log.slots(&log.rows()).collect();
            all.sort_unstable();
            assert_eq!(all, LogSlot::first(24).collect::<Vec<_>>(), "{kind:?}");
            let one: Vec<u32> = log.slots(&(1..2)).map(|s| s.0 % 3).collect();
            assert_eq!(one.iter().all(|&c| c == 1), kind == LogKind::Coarse);
        }
    }
}
