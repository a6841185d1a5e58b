//! Positions of pages, spare records and block states in the store of a NAND device.

use frit_media::NandGeometry;
use frit_media::nand::SPARE_RECORD_BYTES;
use std::ops::Range;

/// Layout of a NAND device's store (docs/reference/media.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NandLayout {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Number of pages in a block.
    pub pages_per_block: u64,
    /// Total number of pages.
    pub pages: u64,
    /// Number of pages that one command programs.
    pub program_pages: u64,
    /// Number of copies of a record.
    pub record_copies: u64,
}

impl NandLayout {
    /// Returns the layout for a geometry.
    #[must_use]
    pub fn new(g: &NandGeometry) -> NandLayout {
        NandLayout {
            page_bytes: u64::from(g.page_bytes),
            pages_per_block: u64::from(g.pages_per_block),
            pages: u64::from(g.pages()),
            program_pages: u64::from(g.program_pages),
            record_copies: u64::from(g.record_copies),
        }
    }

    /// Returns the position of the first spare record. The pages lie before it.
    #[must_use]
    pub fn records_at(&self) -> u64 {
        self.page_bytes * self.pages
    }

    /// Returns the position of a copy of the spare record of a page.
    #[must_use]
    pub fn record_at(&self, page: u64, copy: u64) -> u64 {
        self.records_at() + (copy * self.pages + page) * SPARE_RECORD_BYTES as u64
    }

    /// Returns the copy of a spare record of a page that begins at a position.
    #[must_use]
    pub fn copy_at(&self, page: u64, at: u64) -> Option<u64> {
        (0..self.record_copies).find(|&copy| self.record_at(page, copy) == at)
    }

    /// Returns the position of the block states.
    #[must_use]
    pub fn states_at(&self) -> u64 {
        self.record_at(0, self.record_copies)
    }

    /// Returns the numbers of the records that lie completely in a range. The number of a page's
    /// record, modulo the number of pages, is that of the page.
    pub(crate) fn records_in(&self, at: u64, len: u64) -> Range<u64> {
        let rec = SPARE_RECORD_BYTES as u64;
        let (from, to) = (at.max(self.records_at()), (at + len).min(self.states_at()));
        if from >= to {
            return 0..0;
        }
        (from - self.records_at()).div_ceil(rec)..(to - self.records_at()) / rec
    }
}
