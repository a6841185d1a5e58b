//! The log of saved program units: parts of program units of zones, and the table of zones.
//!
//! Each unit of the NAND has a log of its own, a queue of blocks. If it has too many, the pages in use of
//! the oldest block are written again at its end, and the block is erased.

use super::layer::Zns;
use frit_core::convert::{count_u32, to_usize};
use frit_core::{BlockId, Cause, Error, PAGE_NONE, Ppn, ReadTarget, Result, Sink, Tok, WriteData};
use frit_media::{ExpectedPage, Spare, Transfer};
use std::collections::VecDeque;

/// Places of the copies of a part of the table; `PAGE_NONE` for none.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartPlace {
    pub(super) copies: [Ppn; 2],
    /// Versions of the copies.
    pub(super) versions: [u64; 2],
}

impl Default for PartPlace {
    fn default() -> PartPlace {
        PartPlace { copies: [Ppn(PAGE_NONE); 2], versions: [0; 2] }
    }
}

/// Log of a unit of the NAND.
#[derive(Clone, Default, Debug)]
pub(super) struct Log {
    /// Its blocks, the oldest first.
    pub(super) blocks: VecDeque<u32>,
    /// Next page of the last block; `None` if the last block takes no further programs.
    pub(super) next: Option<u32>,
}

/// A page of the log that is in use.
#[derive(Clone, Copy, Debug)]
enum LivePage {
    Part { part: u32, copy: usize },
    Saved { zone: u32, page: u32 },
}

/// Spare area of a page of the log: the lowest bit distinguishes it from a page in the blocks of its zone.
pub(super) fn log_spare(lpn: u32, version: u64) -> Spare {
    Spare { lpn, seq: version << 1 | 1 }
}

/// Spare area of a page in the blocks of its zone.
pub(super) fn zone_spare(lpn: u32, epoch: u64) -> Spare {
    Spare { lpn, seq: epoch << 1 }
}

/// Spare area of padding.
pub(super) const PADDING: Spare = Spare { lpn: PAGE_NONE, seq: 0 };

pub(super) fn expected(spare: Spare) -> ExpectedPage {
    ExpectedPage { lpn: spare.lpn, tag: spare.seq as u16 }
}

impl Zns {
    /// Saves the program unit in `unit`, with the spare areas in `spares`, in the log of the next unit of
    /// the NAND in turn. Returns its place.
    pub(super) fn save_unit(&mut self, sink: &mut Sink, after: Tok) -> Result<(Ppn, Tok)> {
        let log = self.turn;
        self.turn = (self.turn + 1) % self.logs.len();
        self.spares.resize(to_usize(self.sizes.unit_pages), PADDING);
        self.append(sink, log, after)
    }

    fn append(&mut self, sink: &mut Sink, log: usize, after: Tok) -> Result<(Ppn, Tok)> {
        let unit = std::mem::take(&mut self.unit);
        let spares = std::mem::take(&mut self.spares);
        let done = self.append_unit(sink, log, &unit, &spares, after);
        (self.unit, self.spares) = (unit, spares);
        done
    }

    /// Programs a program unit at the end of a log.
    fn append_unit(
        &mut self,
        sink: &mut Sink,
        log: usize,
        bytes: &[u8],
        spares: &[Spare],
        after: Tok,
    ) -> Result<(Ppn, Tok)> {
        let mut cleaned = 0;
        loop {
            let Some(next) = self.logs[log].next else {
                // Every block was cleaned, and the pages in use still fill all of them.
                if cleaned > 2 * self.sizes.log_reserve() {
                    let what = "the log of saved program units is full; too many blocks went bad".to_owned();
                    self.health.refuse(what.clone());
                    return Err(Error::NoSpace { what });
                }
                cleaned += self.open_log_block(sink, log)?;
                continue;
            };
            let Some(&block) = self.logs[log].blocks.back() else {
                self.logs[log].next = None;
                continue;
            };
            if let Some(done) = self.program_in_log(sink, log, (block, next), (bytes, spares), after)? {
                return Ok(done);
            }
        }
    }

    /// Tries once to program a program unit into a block of a log. `None` if the program failed: the block
    /// takes no further programs.
    fn program_in_log(
        &mut self,
        sink: &mut Sink,
        log: usize,
        (block, next): (u32, u32),
        (bytes, spares): (&[u8], &[Spare]),
        after: Tok,
    ) -> Result<Option<(Ppn, Tok)>> {
        let ppn = self.nand.geometry().ppn(BlockId(block), next);
        let following = next + self.sizes.unit_pages;
        self.logs[log].next = (following < self.sizes.block_pages()).then_some(following);
        let data = if self.stores_bytes() {
            WriteData::Bytes(bytes)
        } else {
            WriteData::Len(self.sizes.unit_bytes())
        };
        let after = sink.join(after, self.in_use);
        match self.nand.program_unit(sink, ppn, data, spares, Transfer::Pages, Cause::Meta, after) {
            Ok(done) => {
                self.programmed = sink.join(self.programmed, done);
                Ok(Some((ppn, done)))
            }
            Err(Error::ProgramFailed { .. }) => {
                self.stats.program_retries += 1;
                self.failed.insert(block);
                self.logs[log].next = None;
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Opens a block at the end of a log. Cleans the oldest blocks if there are too many. Returns the
    /// number of blocks that were opened.
    fn open_log_block(&mut self, sink: &mut Sink, log: usize) -> Result<u32> {
        let block = self.take_for_log(sink, count_u32(log))?;
        self.logs[log].blocks.push_back(block);
        self.logs[log].next = Some(0);
        if self.logs[log].blocks.len() > to_usize(self.sizes.log_blocks) {
            self.clean_oldest(sink, log)?;
        }
        Ok(1)
    }

    /// Writes the pages in use of the oldest block of a log again, and frees the block.
    fn clean_oldest(&mut self, sink: &mut Sink, log: usize) -> Result<()> {
        let Some(oldest) = self.logs[log].blocks.pop_front() else { return Ok(()) };
        let mut live = self.live_pages(oldest);
        while !live.is_empty() {
            let rest = live.split_off(live.len().min(to_usize(self.sizes.unit_pages)));
            self.move_pages(sink, log, &live)?;
            live = rest;
        }
        self.stats.log_cleanings += 1;
        if self.failed.remove(&oldest) {
            return self.erase_and_retire(sink, oldest, self.programmed);
        }
        self.release(oldest, self.programmed);
        Ok(())
    }

    /// Pages in use in a block of the log, with their places.
    fn live_pages(&self, block: u32) -> Vec<(LivePage, Ppn)> {
        let g = self.nand.geometry();
        let is_here = |ppn: Ppn| ppn.0 != PAGE_NONE && g.block_of(ppn).0 == block;
        let mut live = Vec::new();
        for (part, place) in (0..).zip(&self.parts) {
            for (copy, &ppn) in place.copies.iter().enumerate().filter(|&(_, &ppn)| is_here(ppn)) {
                live.push((LivePage::Part { part, copy }, ppn));
            }
        }
        for (number, zone) in (0..).zip(&self.zones) {
            for (page, &ppn) in (zone.programmed..).zip(&zone.saved).filter(|&(_, &ppn)| is_here(ppn)) {
                live.push((LivePage::Saved { zone: number, page }, ppn));
            }
        }
        live
    }

    /// Moves pages in use to the end of a log, as one program unit. A page that is damaged has no place
    /// afterwards.
    fn move_pages(&mut self, sink: &mut Sink, log: usize, pages: &[(LivePage, Ppn)]) -> Result<()> {
        // A buffer of its own: a program of moved pages can open a block, and so clean another one.
        let mut bytes = vec![0; if self.stores_bytes() { to_usize(self.sizes.unit_bytes()) } else { 0 }];
        let mut spares = vec![PADDING; to_usize(self.sizes.unit_pages)];
        // Programs of these pages may be in progress.
        let mut read = sink.join(self.in_use, self.programmed);
        let size = to_usize(self.sizes.page_bytes);
        for (i, &(page, ppn)) in pages.iter().enumerate() {
            let spare = self.spare_of_live(page);
            let into = match bytes.get_mut(i * size..(i + 1) * size) {
                Some(into) => ReadTarget::Bytes(into),
                None => ReadTarget::Len(self.sizes.page_bytes),
            };
            match self.nand.read_expected(sink, ppn, 0, into, Some(expected(spare)), Cause::Meta, read) {
                Ok(done) => {
                    read = done;
                    spares[i] = spare;
                }
                Err(Error::Corrupt { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        let (first, _) = self.append_unit(sink, log, &bytes, &spares, read)?;
        for (i, &(page, _)) in (0..).zip(pages) {
            let damaged = spares[to_usize(i)] == PADDING;
            self.set_place(page, if damaged { Ppn(PAGE_NONE) } else { first.plus(i) });
        }
        Ok(())
    }

    fn spare_of_live(&self, page: LivePage) -> Spare {
        match page {
            LivePage::Part { part, copy } => {
                log_spare(self.sizes.part_lpn(part), self.parts[to_usize(part)].versions[copy])
            }
            LivePage::Saved { zone, page } => {
                log_spare(self.sizes.lpn(zone, page), self.zones[to_usize(zone)].epoch)
            }
        }
    }

    fn set_place(&mut self, page: LivePage, ppn: Ppn) {
        match page {
            LivePage::Part { part, copy } => self.parts[to_usize(part)].copies[copy] = ppn,
            LivePage::Saved { zone, page } => {
                let zone = &mut self.zones[to_usize(zone)];
                let at = to_usize(page - zone.programmed);
                zone.saved[at] = ppn;
            }
        }
    }
}
