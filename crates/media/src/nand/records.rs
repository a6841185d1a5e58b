//! Records in the spare areas of a device's store, in one or two copies.

use super::page::{
    CopyPlace, ExpectedPage, PageRecord, SPARE_RECORD_BYTES, SpareRecord, decode_record, failed_record,
    record, sealed,
};
use super::{Nand, NandGeometry, Spare};
use crate::Store;
use crate::planted::Bug;
use frit_core::planted::is_planted;
use frit_core::{BlockId, Ppn, Result};

impl NandGeometry {
    /// Position of a copy of the record of a page. All first copies lie before all second ones, so
    /// that damage of one place affects one copy.
    pub(super) fn record_at(&self, ppn: Ppn, copy: u32) -> u64 {
        let number = u64::from(self.pages()) * u64::from(copy) + u64::from(ppn.0);
        self.bytes() + number * SPARE_RECORD_BYTES as u64
    }

    /// Bytes of the records of all pages.
    pub(super) fn record_bytes(&self) -> u64 {
        u64::from(self.pages()) * u64::from(self.record_copies) * SPARE_RECORD_BYTES as u64
    }

    fn place(&self, ppn: Ppn, copy: u32) -> CopyPlace {
        (self.record_copies > 1).then_some((ppn, copy))
    }
}

impl Nand {
    /// Writes the record that makes a page valid, given the digest of its data.
    #[inline]
    pub(super) fn write_record(&mut self, ppn: Ppn, digest: u64, spare: Spare) -> Result<()> {
        self.put_record(ppn, record(digest, spare))
    }

    /// Writes the record of a page whose program failed.
    pub(super) fn write_failed_record(&mut self, ppn: Ppn, spare: Spare) -> Result<()> {
        self.put_record(ppn, failed_record(spare))
    }

    #[inline]
    fn put_record(&mut self, ppn: Ppn, record: SpareRecord) -> Result<()> {
        let g = self.config.geometry;
        for copy in 0..g.record_copies {
            self.store.write(g.record_at(ppn, copy), &sealed(record, g.place(ppn, copy)))?;
        }
        Ok(())
    }

    #[inline]
    fn read_copy(&self, ppn: Ppn, copy: u32) -> Result<PageRecord> {
        let g = &self.config.geometry;
        let mut r: SpareRecord = [0; SPARE_RECORD_BYTES];
        self.store.read(g.record_at(ppn, copy), &mut r)?;
        Ok(decode_record(&r, g.place(ppn, copy)))
    }

    /// Reads and decodes the record of a page.
    pub(super) fn read_record(&self, ppn: Ppn) -> Result<PageRecord> {
        let first = self.read_copy(ppn, 0)?;
        let alone = self.config.geometry.record_copies == 1 || is_planted(Bug::NandSecondCopyIgnored);
        if alone { Ok(first) } else { Ok(first.or(self.read_copy(ppn, 1)?)) }
    }

    /// Reads the record of a page. The second copy is read only if the first one is not that of the
    /// expected page.
    #[inline]
    pub(super) fn read_record_of(&self, ppn: Ppn, expect: Option<ExpectedPage>) -> Result<PageRecord> {
        let first = self.read_copy(ppn, 0)?;
        match (first, expect) {
            (PageRecord::Page(spare, _), Some(expect)) if expect.is(spare) => Ok(first),
            _ if self.config.geometry.record_copies == 1 => Ok(first),
            _ => Ok(first.or(self.read_copy(ppn, 1)?)),
        }
    }

    /// Zeros the spare areas of a block, which makes its pages erased. The data stays in the store;
    /// it is never read without a record.
    pub(super) fn erase_records(&mut self, block: BlockId) -> Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let g = self.config.geometry;
        for copy in 0..g.record_copies {
            let (mut at, mut left) =
                (g.record_at(g.ppn(block, 0), copy), g.pages_per_block as usize * SPARE_RECORD_BYTES);
            while left > 0 {
                let n = left.min(ZEROS.len());
                self.store.write(at, &ZEROS[..n])?;
                at += n as u64;
                left -= n;
            }
        }
        Ok(())
    }

    /// Number of pages of a block up to the last one that has a record. A page whose program failed
    /// has one, too. `records` holds the records of a block.
    pub(super) fn recorded_pages(&self, block: BlockId, records: &mut [u8]) -> Result<u32> {
        let g = &self.config.geometry;
        let mut pages = 0;
        for copy in 0..g.record_copies {
            self.store.read(g.record_at(g.ppn(block, 0), copy), records)?;
            let last = records.chunks_exact(SPARE_RECORD_BYTES).rposition(|r| r.iter().any(|&x| x != 0));
            pages = pages.max(last.map_or(0, |p| p as u32 + 1));
        }
        Ok(pages)
    }
}
