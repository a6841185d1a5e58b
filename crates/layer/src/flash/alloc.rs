//! Allocation of the next page, and programming with retries after failures.

use super::space::{Flash, ForwardMap, NandStream, OpenBlock};
use super::{BlockUse, GcPolicy, WearPolicy};
use crate::planted::FlashBug;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Error, Lpn, Ppn, Result, Sink, Tok, WriteData};
use frit_media::Spare;

impl Flash {
    /// Writes a whole host page into `unit`, with garbage collection if the unit has no free block.
    /// The caller invalidates the old page and updates the map.
    pub(crate) fn write<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        page: PageWrite<'_>,
    ) -> Result<(Ppn, Tok)> {
        self.writable()?;
        loop {
            let page = PageWrite { stream: self.stream_of(sink, map, page.unit, page.stream)?, ..page };
            self.reserve_block(sink, map, page.unit, page.stream)?;
            // Checked again after a failed program: the reserve of garbage collection is not for
            // host data.
            match self.try_program(sink, page) {
                Ok(Some(done)) => {
                    self.count_host_pages(page.stream, 1);
                    return Ok(done);
                }
                // The last block of the cache went bad.
                Err(Error::NoSpace { .. }) if page.stream == NandStream::Slc => {}
                failed => drop(failed?),
            }
        }
    }

    /// Frees a block if a write into the stream would have to open one of the reserve.
    #[inline]
    pub(super) fn reserve_block<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
        stream: NandStream,
    ) -> Result<()> {
        if !self.needs_reserve(unit, stream) {
            return Ok(());
        }
        // The full block becomes a candidate before a victim is chosen.
        self.close(unit, stream);
        self.collect_until_free(sink, map, unit)
    }

    /// Returns `true` if a write into the stream would have to open a block of the reserve.
    #[inline]
    fn needs_reserve(&self, unit: u32, stream: NandStream) -> bool {
        let u = &self.units[to_usize(unit)];
        let open = u.open[stream.idx()].is_some_and(|o| o.next < self.blocks.pages_in(o.block));
        !open && stream != NandStream::Slc && u.free.len() <= self.reserve
    }

    /// Programs a page at the next position of its stream. A failed program dooms the block, and
    /// the page is programmed into another one.
    #[inline]
    pub(crate) fn program(&mut self, sink: &mut Sink, page: PageWrite<'_>) -> Result<(Ppn, Tok)> {
        loop {
            if let Some(done) = self.try_program(sink, page)? {
                return Ok(done);
            }
        }
    }

    /// Tries once to program a page. `None` if the program failed.
    #[inline]
    fn try_program(&mut self, sink: &mut Sink, page: PageWrite<'_>) -> Result<Option<(Ppn, Tok)>> {
        let ppn = self.next_page(sink, page.unit, page.stream)?;
        let spare = Spare { lpn: page.lpn.0, seq: self.next_seq() };
        // Crash safety: see `Flash::named`.
        let begins = self.begins(ppn);
        let after = self.order_after(sink, ppn, page.after);
        let done = match self.nand.program(sink, ppn, page.data, spare, page.cause, after) {
            Ok(done) => done,
            Err(Error::ProgramFailed { .. }) if is_planted(FlashBug::ProgramFailureIgnored) => page.after,
            Err(Error::ProgramFailed { .. }) => {
                self.start_retiring(page.unit, page.stream);
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        if begins {
            // The program waits for `named`, so its token covers everything that `named` did.
            self.named = done;
        }
        self.mark_valid(page.unit, ppn, page.lpn);
        Ok(Some((ppn, done)))
    }

    #[inline]
    pub(super) fn mark_valid(&mut self, unit: u32, ppn: Ppn, lpn: Lpn) {
        self.reverse[ppn.idx()] = lpn.0 + 1;
        let block = self.nand.geometry().block_of(ppn).idx();
        self.blocks.block[block].valid += 1;
        self.units[to_usize(unit)].valid_pages += 1;
    }

    /// Next page of a stream. Opens a block when the last one is full.
    #[inline]
    pub(super) fn next_page(&mut self, sink: &mut Sink, unit: u32, stream: NandStream) -> Result<Ppn> {
        let programmed = self.unit_pages;
        let slot = &mut self.units[to_usize(unit)].open[stream.idx()];
        let open = match slot {
            Some(o) if o.next < self.blocks.pages_in(o.block) => o,
            _ => {
                self.open_block(sink, unit, stream)?;
                return self.next_page(sink, unit, stream);
            }
        };
        let ppn = self.nand.geometry().ppn(BlockId(open.block), open.next);
        open.next += programmed;
        Ok(ppn)
    }

    /// Undoes the allocation of a stream's next page.
    pub(super) fn undo_next_page(&mut self, unit: u32, stream: NandStream) {
        if let Some(open) = &mut self.units[to_usize(unit)].open[stream.idx()] {
            open.next = self.nand.next_page(BlockId(open.block));
        }
    }

    /// Seals the full block of a stream and opens a free one.
    fn open_block(&mut self, sink: &mut Sink, unit: u32, stream: NandStream) -> Result<()> {
        self.close(unit, stream);
        let u = &mut self.units[to_usize(unit)];
        // Garbage collection fills blocks left open by a crash before it takes a free block.
        if let Some(partial_blocks) = if stream.is_gc() { u.partial_blocks.pop() } else { None } {
            u.open[stream.idx()] = Some(partial_blocks);
            return Ok(());
        }
        let block = match self.alloc_block(sink, unit, stream) {
            Err(Error::NoSpace { .. }) if stream.is_gc() && self.lend_open_block(unit, stream) => {
                return Ok(());
            }
            taken => taken?,
        };
        if let Some(handle) = self.handle_of.get_mut(to_usize(block)) {
            *handle = stream.handle();
        }
        self.blocks.set_state(block, BlockUse::Open);
        self.idle_work_pending = true;
        self.units[to_usize(unit)].open[stream.idx()] =
            Some(OpenBlock { block, next: self.nand.next_page(BlockId(block)) });
        self.prefetch_reverse(block);
        Ok(())
    }

    /// Lends an open block of another stream to garbage collection if no block is free. Garbage
    /// collection frees more pages than it takes.
    fn lend_open_block(&mut self, unit: u32, stream: NandStream) -> bool {
        let pages = self.blocks.pages_per_block();
        let open = &mut self.units[to_usize(unit)].open;
        let shared = |l: &usize| *l != NandStream::Slc.idx() && open[*l].is_some_and(|o| o.next < pages);
        let lender = (0..open.len()).find(shared);
        let lent = lender.and_then(|l| open[l].take());
        open[stream.idx()] = lent;
        lent.is_some()
    }

    /// Takes a free block, and erases it again if a crash may have interrupted its erase.
    pub(super) fn alloc_block(&mut self, sink: &mut Sink, unit: u32, stream: NandStream) -> Result<u32> {
        loop {
            if stream == NandStream::Slc
                && self.units[to_usize(unit)].slc.free.is_empty()
                && self.cache_can_grow(unit)
            {
                self.change_mode(sink, unit, true)?;
            }
            let u = &mut self.units[to_usize(unit)];
            let nand = &self.nand;
            let erases = |b: u32| nand.erases(BlockId(b));
            // Pages that garbage collection moves count as cold, like those of the cold stream.
            let pool = if stream == NandStream::Slc { &mut u.slc.free } else { &mut u.free };
            let cold = stream == NandStream::Cold || stream.is_gc();
            let taken = self.config.wear.take(pool, cold, &erases);
            let block = taken.ok_or_else(|| Error::NoSpace {
                what: format!(
                    "no free block in {}; switch garbage collection on or raise over_provisioning",
                    nand.unit_name(unit)
                ),
            })?;
            if !self.blocks.is_suspect(block) || is_planted(FlashBug::SuspectNotErased) {
                return Ok(block);
            }
            self.blocks.set_suspect(block, false);
            match self.erase_as(sink, block, stream == NandStream::Slc, Cause::Meta, self.in_use) {
                Ok(done) => {
                    self.note_erased(sink, unit, done);
                    return Ok(block);
                }
                Err(Error::EraseFailed { .. }) => self.retire(unit, block),
                Err(e) => return Err(e),
            }
        }
    }

    /// Prefetches the block's part of the reverse map, which is about to be filled. Loads overlap,
    /// while stores that miss the processor's cache would block all later stores.
    fn prefetch_reverse(&self, block: u32) {
        let first = self.nand.geometry().ppn(BlockId(block), 0).idx();
        let rows = &self.reverse[first..first + to_usize(self.blocks.pages_per_block())];
        std::hint::black_box(rows.iter().step_by(16).fold(0, |a, r| a ^ r));
    }

    /// Seals the block of a stream, if it has one.
    pub(super) fn close(&mut self, unit: u32, stream: NandStream) {
        if let Some(o) = self.units[to_usize(unit)].open[stream.idx()].take() {
            self.seal(o.block);
        }
    }

    /// Seals the block with the fewest valid pages among those that a crash left partly written and no
    /// stream fills, so that it can be collected. Returns `false` if there is none. A power loss can leave
    /// many such blocks, because programs of different blocks have no order.
    pub(super) fn seal_partial_block(&mut self, unit: u32) -> bool {
        let partial = &mut self.units[to_usize(unit)].partial_blocks;
        let valid = |i: &usize| self.blocks.valid(partial[*i].block);
        let Some(fewest) = (0..partial.len()).min_by_key(valid) else { return false };
        let block = partial.remove(fewest).block;
        self.seal(block);
        true
    }

    /// Makes a full block a candidate for garbage collection.
    pub(super) fn seal(&mut self, block: u32) {
        self.blocks.clock = self.blocks.clock.wrapping_add(1);
        self.blocks.block[to_usize(block)].touched = self.blocks.clock;
        if self.blocks.is_slc(block) {
            self.blocks.set_state(block, BlockUse::Cached);
            self.units[to_usize(self.blocks.unit_of(block))].slc.full.push_back(block);
            return;
        }
        self.blocks.set_state(block, BlockUse::Sealed);
        self.config.gc.sealed(block, &self.blocks);
    }

    /// Closes the open block of a stream after a failed program. Garbage collection moves its valid
    /// pages, and then retires it.
    pub(super) fn start_retiring(&mut self, unit: u32, stream: NandStream) {
        let u = &mut self.units[to_usize(unit)];
        if let Some(o) = u.open[stream.idx()].take() {
            self.blocks.set_state(o.block, BlockUse::Retiring);
            match stream {
                NandStream::Slc => u.slc.full.push_front(o.block),
                _ => u.retiring.push(o.block),
            }
            self.idle_work_pending = true;
            self.stats.program_retries += 1;
        }
    }
}

/// Request to program a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageWrite<'a> {
    pub(crate) lpn: Lpn,
    pub(crate) unit: u32,
    pub(crate) stream: NandStream,
    pub(crate) data: WriteData<'a>,
    pub(crate) cause: Cause,
    pub(crate) after: Tok,
}
