//! Population of the space from existing pages: those that a map names after a boot, and those that
//! preconditioning creates.

use super::BlockUse;
use super::space::{Flash, NandStream, OpenBlock};
use crate::planted::FlashBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Error, Lpn, MediumKind, Ppn, Result, Sink, WriteData};
use frit_media::{ExpectedPage, Spare};

impl Flash {
    /// Adopts a page that the map names. With `look`, the page's spare area must agree.
    pub(crate) fn adopt(&mut self, lpn: Lpn, ppn: Ppn, tag: u16, look: bool) -> Result<()> {
        let damaged = |what: String| self.corrupt(ppn, what);
        let g = *self.nand.geometry();
        if ppn.0 >= g.pages() || self.nand.next_page(g.block_of(ppn)) <= ppn.0 % g.pages_per_block {
            return Err(damaged(format!("the map names it for page {}, and it was not programmed", lpn.0)));
        }
        if let Some(other) = self.lpn_of(ppn) {
            return Err(damaged(format!("the map names it for pages {} and {}", lpn.0, other.0)));
        }
        if look {
            match self.version(ppn, lpn, tag) {
                Err(Error::Corrupt { .. }) if is_planted(FlashBug::AdoptAnyVersion) => {}
                found => drop(found?),
            }
        }
        let unit = g.unit_of_block(g.block_of(ppn));
        self.mark_valid(unit, ppn, lpn);
        Ok(())
    }

    /// Sequence number of a page, which must be the given version.
    pub(crate) fn version(&self, ppn: Ppn, lpn: Lpn, tag: u16) -> Result<u64> {
        let spare = self.nand.spare(ppn)?.filter(|s| ExpectedPage { lpn: lpn.0, tag }.is(*s));
        spare.map(|s| s.seq).ok_or_else(|| {
            let expected = format!("it does not hold the expected page {}, version {tag}", lpn.0);
            self.corrupt(ppn, expected + " (modulo 65536)")
        })
    }

    /// Returns the error for a page whose contents are not what the map states.
    fn corrupt(&self, ppn: Ppn, what: String) -> Error {
        let what = what + &self.nand.page_place(ppn);
        Error::Corrupt { medium: MediumKind::Nand, at: u64::from(ppn.0), what }
    }

    /// Completes the adoption of all pages: full blocks are sealed, and partly written blocks are
    /// assigned to the streams. With `suspect`, free blocks are erased again before use.
    pub(crate) fn adopted(&mut self, seq: u64, suspect: bool) {
        self.seq = seq;
        let pages = self.blocks.pages_per_block();
        for unit in 0..count_u32(self.units.len()) {
            let mut partial_blocks = Vec::new();
            self.units[to_usize(unit)].free.clear();
            self.units[to_usize(unit)].slc.clear();
            for b in self.blocks.of_unit(unit) {
                let next = match self.nand.next_page(BlockId(b)) {
                    // The block may contain an interrupted erase, whatever its pages look like.
                    _ if suspect && self.blocks.valid(b) == 0 => 0,
                    next => next,
                };
                match next {
                    _ if self.blocks.state(b) == BlockUse::Bad => {}
                    _ if self.blocks.is_slc(b) => self.adopt_cached(unit, b, next, suspect),
                    0 => {
                        self.blocks.set_suspect(b, suspect);
                        self.units[to_usize(unit)].free.push_back(b);
                    }
                    n if n < pages => partial_blocks.push(OpenBlock { block: b, next: n }),
                    _ => self.seal(b),
                }
            }
            // The emptiest block goes to garbage collection, which must not run out of pages, and
            // so do all blocks beyond three.
            partial_blocks.sort_by_key(|open| open.next);
            let slots = [NandStream::Gc.idx(), NandStream::Host.idx(), NandStream::Cold.idx()];
            let rest = partial_blocks.split_off(partial_blocks.len().min(slots.len()));
            for open in partial_blocks.iter().chain(&rest) {
                self.blocks.set_state(open.block, BlockUse::Open);
            }
            for (slot, open) in slots.into_iter().zip(partial_blocks) {
                self.units[to_usize(unit)].open[slot] = Some(open);
            }
            self.units[to_usize(unit)].partial_blocks = rest;
            self.degrade(unit);
        }
    }

    /// Pads the next page of each partly written block, since a crash may have interrupted its
    /// program. Called after all pages were adopted. Returns the number of padded pages.
    pub(crate) fn pad_partial_blocks(&mut self, sink: &mut Sink) -> Result<u32> {
        let mut padded = 0;
        for b in 0..self.blocks.count() {
            let next = self.nand.next_page(BlockId(b));
            let resumed = self.blocks.valid(b) > 0 && next < self.blocks.pages_in(b);
            if is_planted(FlashBug::ResumeTornPage) || self.nand.is_bad(BlockId(b)) || !resumed {
                continue;
            }
            let (ppn, start) = (self.nand.geometry().ppn(BlockId(b), next), sink.start());
            let done = self.nand.pad(sink, ppn, Cause::Meta, start)?;
            sink.ack(done);
            padded += 1;
        }
        Ok(padded)
    }

    /// Removes a block from the free pool and seals it, since one of its pages is still needed.
    pub(crate) fn keep_block(&mut self, ppn: Ppn) {
        let block = self.nand.geometry().block_of(ppn).0;
        if self.blocks.state(block) == BlockUse::Free {
            let u = &mut self.units[to_usize(self.blocks.unit_of(block))];
            u.free.retain(|&b| b != block);
            u.slc.free.retain(|&b| b != block);
            self.blocks.set_suspect(block, false);
            self.seal(block);
        }
    }

    /// Number of free blocks that are erased again before use.
    pub(crate) fn suspect_blocks(&self) -> u32 {
        count_u32((0..self.blocks.count()).filter(|&b| self.blocks.is_suspect(b)).count())
    }

    /// Free blocks of a unit that preconditioning may fill, in order.
    pub(crate) fn fillable(&self, unit: u32) -> Vec<u32> {
        let free = &self.units[to_usize(unit)].free;
        free.iter().copied().take(free.len().saturating_sub(self.reserve)).collect()
    }

    /// Free blocks of a unit that are reserved for garbage collection.
    pub(crate) fn reserved_blocks(&self) -> usize {
        self.reserve
    }

    /// Fills a free block for preconditioning, and seals it if it is full. An element of `pages` is
    /// LPN + 1, or 0 for an invalid page. No command is emitted or counted. `moved` is called for
    /// each valid page.
    pub(crate) fn preset_block(
        &mut self,
        unit: u32,
        block: u32,
        pages: &[u32],
        moved: &mut impl FnMut(Lpn, Ppn, u64),
    ) -> Result<()> {
        let first = self.nand.geometry().ppn(BlockId(block), 0).0;
        let mut valid = 0;
        for (i, &page) in pages.iter().enumerate() {
            let ppn = Ppn(first).plus(count_u32(i));
            self.next_seq();
            if page != 0 {
                self.reverse[ppn.idx()] = page;
                valid += 1;
                moved(Lpn(page - 1), ppn, self.seq);
            }
            if self.stores_bytes() {
                let lpn = if page == 0 { u32::MAX } else { page - 1 };
                let data = WriteData::Bytes(&self.scratch);
                self.nand.preset_page(ppn, data, Spare { lpn, seq: self.seq })?;
            }
        }
        self.nand.preset(BlockId(block), count_u32(pages.len()), self.nand.erases(BlockId(block)));
        self.blocks.block[to_usize(block)].valid = valid;
        self.units[to_usize(unit)].valid_pages += u32::from(valid);
        if count_u32(pages.len()) == self.blocks.pages_per_block() {
            self.seal(block);
        } else {
            self.blocks.set_state(block, BlockUse::Open);
            let open = OpenBlock { block, next: count_u32(pages.len()) };
            self.units[to_usize(unit)].open[NandStream::Host.idx()] = Some(open);
        }
        Ok(())
    }

    /// Removes the blocks that preconditioning has written from the pool of a unit.
    pub(crate) fn remove_filled(&mut self, unit: u32, blocks: usize) {
        self.units[to_usize(unit)].free.drain(..blocks);
    }

    /// Clears the buffer that preconditioning writes as page contents.
    pub(crate) fn zero_scratch(&mut self) {
        self.scratch.fill(0);
    }
}
