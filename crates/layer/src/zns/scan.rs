//! Contents of the NAND at a start: a scan of all spare areas.

use super::layer::Zns;
use super::table::{Record, decode};
use crate::planted::ZnsBug;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{BlockId, Error, Ppn, ReadTarget, Result};
use frit_media::{ExpectedPage, PageState, SPARE_RECORD_BYTES, Spare};
use std::collections::{BTreeMap, BTreeSet};

/// A block with pages of a zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundBlock {
    pub(super) block: u32,
    pub(super) epoch: u64,
    pub(super) bad: bool,
}

/// A copy of a part of the table, by its spare area.
#[derive(Clone, Copy, Debug)]
struct FoundPart {
    version: u64,
    ppn: Ppn,
}

/// Contents of the NAND.
#[derive(Default)]
pub(super) struct Scan {
    /// Blocks of zones, by zone and index in the zone.
    pub(super) blocks: BTreeMap<(u32, usize), Vec<FoundBlock>>,
    /// Saved pages by logical page: epoch and place.
    pub(super) saved: BTreeMap<u32, Vec<(u64, Ppn)>>,
    /// Copies of the parts of the table, by part.
    parts: BTreeMap<u32, Vec<FoundPart>>,
    /// Blocks of the log.
    pub(super) log_blocks: BTreeSet<u32>,
    /// Newest epoch of pages in the blocks of a zone.
    pub(super) newest: BTreeMap<u32, u64>,
    epoch: u64,
    version: u64,
    pub(super) bytes_read: u64,
}

impl Zns {
    /// Reads all spare areas.
    pub(super) fn scan(&self) -> Result<Scan> {
        let g = *self.nand.geometry();
        let mut scan = Scan::default();
        let copies = u64::from(g.record_copies) * SPARE_RECORD_BYTES as u64;
        for block in (0..g.blocks()).map(BlockId) {
            for page in 0..self.nand.next_page(block) {
                scan.bytes_read += copies;
                let ppn = g.ppn(block, page);
                if let PageState::Programmed(spare) = self.nand.page_state(ppn)? {
                    self.scan_page(&mut scan, block, page, spare);
                }
            }
        }
        Ok(scan)
    }

    /// Adds a page to the contents.
    fn scan_page(&self, scan: &mut Scan, block: BlockId, page: u32, spare: Spare) {
        let number = spare.seq >> 1;
        let data_pages = self.sizes.zones * self.sizes.zone_pages;
        let ppn = self.nand.geometry().ppn(block, page);
        let saved = spare.seq & 1 == 1;
        if spare.lpn < data_pages && saved {
            scan.epoch = scan.epoch.max(number);
            scan.log_blocks.insert(block.0);
            scan.saved.entry(spare.lpn).or_default().push((number, ppn));
        } else if spare.lpn < data_pages {
            let (zone, of_zone) = (spare.lpn / self.sizes.zone_pages, spare.lpn % self.sizes.zone_pages);
            let place = self.sizes.place(of_zone);
            if place.page != page {
                return;
            }
            scan.epoch = scan.epoch.max(number);
            let newest = scan.newest.entry(zone).or_default();
            *newest = number.max(*newest);
            let found = scan.blocks.entry((zone, place.stripe)).or_default();
            if !found.iter().any(|f| f.block == block.0 && f.epoch == number) {
                found.push(FoundBlock { block: block.0, epoch: number, bad: self.nand.is_bad(block) });
            }
        } else if saved && spare.lpn - data_pages < self.sizes.parts {
            scan.version = scan.version.max(number);
            scan.log_blocks.insert(block.0);
            let part = scan.parts.entry(spare.lpn - data_pages).or_default();
            part.push(FoundPart { version: number, ppn });
        }
    }

    /// Finds the newest version of each part of the table that can be read. Returns whether the table
    /// states a clean halt.
    pub(super) fn read_table(&mut self, scan: &Scan) -> Result<bool> {
        let mut page = vec![0; to_usize(self.sizes.page_bytes)];
        let mut halted = false;
        for (&part, copies) in &scan.parts {
            let mut copies = copies.clone();
            copies.sort_unstable_by_key(|c| (std::cmp::Reverse(c.version), c.ppn.0));
            let first = part * self.sizes.part_zones;
            let count = self.sizes.part_zones.min(self.sizes.zones - first);
            let mut found: Option<(u64, Vec<Record>)> = None;
            for copy in copies {
                if found.as_ref().is_some_and(|(version, _)| *version != copy.version) {
                    break;
                }
                let lpn = self.sizes.part_lpn(part);
                let expect = ExpectedPage { lpn, tag: (copy.version << 1 | 1) as u16 };
                match self.nand.copy_out(copy.ppn, 0, ReadTarget::Bytes(&mut page), Some(expect)) {
                    Ok(()) => {}
                    Err(Error::Corrupt { .. }) => continue,
                    Err(e) => return Err(e),
                }
                let Some((records, flag)) = decode(&page, self.sizes.zones, count) else { continue };
                let known = &mut self.parts[to_usize(part)];
                let second = usize::from(found.is_some());
                // There are more than two copies while one is moved.
                (known.copies[second], known.versions[second]) = (copy.ppn, copy.version);
                halted |= part == 0 && flag;
                found = Some((copy.version, records));
            }
            if let Some((_, records)) = found {
                let to = to_usize(first);
                self.records[to..to + records.len()].copy_from_slice(&records);
            }
        }
        self.epoch = self.records.iter().map(|r| r.epoch).max().unwrap_or(0).max(scan.epoch);
        self.version = scan.version;
        Ok(halted)
    }

    /// Returns `true` if a physical page has this spare area and undamaged data.
    pub(super) fn is_valid(&mut self, ppn: Ppn, spare: Spare) -> Result<bool> {
        if self.nand.page_state(ppn)? != PageState::Programmed(spare) {
            return Ok(false);
        }
        if is_planted(ZnsBug::TornTaken) {
            return Ok(true);
        }
        let mut page = std::mem::take(&mut self.moved);
        let size = to_usize(self.sizes.page_bytes);
        let read = self.nand.copy_out(ppn, 0, ReadTarget::Bytes(&mut page[..size]), None);
        self.moved = page;
        match read {
            Ok(()) => Ok(true),
            Err(Error::Corrupt { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    }
}
