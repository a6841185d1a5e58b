//! Blocks that the layer above fills itself, because the position of a page in its block has a
//! meaning: block maps, and their log blocks. Garbage collection does not choose them as victims.

use super::space::{Flash, ForwardMap, GcVictim, MovedPage, NandStream};
use super::{BlockUse, GcPolicy};
use crate::payload::buffered;
use crate::planted::FtlBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Error, Lpn, Ppn, ReadTarget, Result, Sink, Tok, WriteData};
use frit_media::Spare;

/// Page that was programmed into a placed block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedPage {
    pub(crate) ppn: Ppn,
    /// Sequence number in its spare area.
    pub(crate) seq: u64,
    /// Token that completes when the page is programmed.
    pub(crate) done: Tok,
}

/// Result of a copy of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Copied {
    /// The copy is done with this token.
    Page(Tok),
    /// The page is unreadable, and recorded as lost. Nothing was programmed.
    Lost,
    /// The program failed. The block takes no further pages.
    Failed,
}

impl Flash {
    /// Takes a free block for the layer above, from the unit with the most free blocks.
    ///
    /// # Errors
    /// `ReadOnly` if too many blocks went bad, `NoSpace` if none is free.
    pub(crate) fn take_placed<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        turn: u32,
    ) -> Result<u32> {
        self.writable()?;
        let n = count_u32(self.units.len());
        loop {
            let free = |u: u32| self.units[to_usize(u)].free.len();
            // The first of several with as many: successive blocks are on different units.
            let unit = (0..n).map(|u| (turn + u) % n).rev().max_by_key(|&u| free(u)).unwrap_or(0);
            if free(unit) > self.reserve {
                let block = self.alloc_block(sink, unit, NandStream::Host)?;
                self.blocks.set_state(block, BlockUse::Placed);
                self.idle_work_pending = true;
                return Ok(block);
            }
            if self.units.iter().any(|u| !u.awaiting_flush.is_empty()) {
                self.stats.space_flushes += 1;
                self.make_durable(sink, map)?;
                continue;
            }
            let unit = (0..n).find(|&u| self.victim(map, u).is_some()).unwrap_or(unit);
            self.collect_until_free(sink, map, unit)?;
        }
    }

    /// Next page of a block.
    pub(crate) fn next_in(&self, block: u32) -> u32 {
        self.nand.next_page(BlockId(block))
    }

    /// Programs a page as the next one of a placed block. `None` if the program failed: garbage
    /// collection then moves the pages of the block and retires it.
    pub(crate) fn program_placed(
        &mut self,
        sink: &mut Sink,
        block: u32,
        lpn: Lpn,
        (data, cause, after): (WriteData<'_>, Cause, Tok),
    ) -> Result<Option<PlacedPage>> {
        let ppn = self.nand.geometry().ppn(BlockId(block), self.next_in(block));
        let spare = Spare { lpn: lpn.0, seq: self.next_seq() };
        let after = self.order_after(sink, ppn, after);
        match self.nand.program(sink, ppn, data, spare, cause, after) {
            Ok(done) => {
                self.record_placed(ppn, lpn, done);
                Ok(Some(PlacedPage { ppn, seq: spare.seq, done }))
            }
            Err(Error::ProgramFailed { .. }) => {
                self.retire_placed(block);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Copies a valid page to the next page of a placed block, and updates the map.
    pub(crate) fn copy_placed<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        from: Ppn,
        block: u32,
    ) -> Result<Copied> {
        let Some(lpn) = self.lpn_of(from) else { return Ok(Copied::Lost) };
        let copied = self.sequence_of_copy(map, from).and_then(|seq| {
            let seq = seq.unwrap_or_else(|| self.next_seq());
            self.copy_into(sink, map, (from, lpn, seq), block).map(|copy| (seq, copy))
        });
        match copied {
            Ok((seq, (to, done))) => {
                self.record_placed(to, lpn, done);
                let freed = if is_planted(FtlBug::MergedErasedEarly) { sink.start() } else { done };
                self.invalidate_after(sink, from, freed);
                let durable = map.moved(sink, MovedPage { lpn, from, to, seq, done })?;
                self.record_named(sink, durable);
                Ok(Copied::Page(durable))
            }
            Err(e @ Error::Corrupt { .. }) => {
                map.lost_at(lpn, from, &e);
                self.invalidate(from);
                if map.retires_lost() {
                    self.retire_holder(self.nand.geometry().block_of(from).0);
                }
                Ok(Copied::Lost)
            }
            Err(Error::ProgramFailed { .. }) => {
                self.retire_placed(block);
                Ok(Copied::Failed)
            }
            Err(e) => Err(e),
        }
    }

    /// Copies the contents of a page to the next page of a block, which may be on another unit.
    fn copy_into<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &M,
        (from, lpn, seq): (Ppn, Lpn, u64),
        block: u32,
    ) -> Result<(Ppn, Tok)> {
        let g = *self.nand.geometry();
        let to = g.ppn(BlockId(block), self.next_in(block));
        let spare = Spare { lpn: lpn.0, seq };
        let expect = self.expected(from, || map.tag(lpn));
        let required = map.copy_after(lpn);
        let after = self.order_after(sink, to, required);
        if self.blocks.unit_of(g.block_of(from).0) == self.blocks.unit_of(block) {
            let done = if self.config.copyback {
                self.nand.copyback(sink, from, to, spare, expect, Cause::Gc, after)
            } else {
                self.nand.relocate(sink, from, to, spare, expect, Cause::Gc, after)
            };
            return done.map(|done| (to, done));
        }
        let mut page = std::mem::take(&mut self.scratch);
        let into = match self.stores_bytes() {
            true => ReadTarget::Bytes(&mut page),
            false => ReadTarget::Len(g.page_bytes),
        };
        let start = sink.start();
        let done = self.nand.read_expected(sink, from, 0, into, expect, Cause::Gc, start).and_then(|read| {
            let after = sink.join(after, read);
            self.nand.program(sink, to, buffered(&page, g.page_bytes), spare, Cause::Gc, after)
        });
        self.scratch = page;
        done.map(|done| (to, done))
    }

    /// Programs the next page of a placed block with padding.
    pub(crate) fn pad_placed(&mut self, sink: &mut Sink, block: u32, cause: Cause) -> Result<()> {
        let ppn = self.nand.geometry().ppn(BlockId(block), self.next_in(block));
        let start = sink.start();
        let after = self.order_after(sink, ppn, start);
        let done = self.nand.pad(sink, ppn, cause, after)?;
        if self.begins(ppn) {
            self.named = done;
        }
        Ok(())
    }

    fn record_placed(&mut self, ppn: Ppn, lpn: Lpn, done: Tok) {
        if self.begins(ppn) {
            // The program waits for `named`, so its token covers everything that `named` did.
            self.named = done;
        }
        self.mark_valid(self.blocks.unit_of(self.nand.geometry().block_of(ppn).0), ppn, lpn);
    }

    /// Gives up a placed block. It is erased after `done` if it is empty. Otherwise it becomes a
    /// candidate for garbage collection.
    pub(crate) fn give_up<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        block: u32,
        done: Tok,
    ) -> Result<()> {
        if self.blocks.state(block) != BlockUse::Placed {
            return Ok(());
        }
        if self.blocks.valid(block) > 0 {
            self.seal(block);
            return Ok(());
        }
        let gain = self.blocks.pages_per_block();
        let v = GcVictim { block, cursor: 0, valid: 0, gain, cause: Cause::Gc, retiring: false, done };
        self.finish_victim(sink, map, self.blocks.unit_of(block), v)?;
        Ok(())
    }

    /// Retires a placed block: garbage collection moves its valid pages first.
    fn retire_placed(&mut self, block: u32) {
        self.stats.program_retries += 1;
        self.blocks.set_state(block, BlockUse::Retiring);
        self.units[to_usize(self.blocks.unit_of(block))].retiring.push(block);
        self.idle_work_pending = true;
    }

    /// Retires a block that has the record of a lost page, instead of erasing it.
    fn retire_holder(&mut self, block: u32) {
        let unit = to_usize(self.blocks.unit_of(block));
        match self.blocks.state(block) {
            BlockUse::Sealed => self.config.gc.removed(block, &self.blocks),
            BlockUse::Placed => {}
            BlockUse::Open => self.remove_open(unit, block),
            BlockUse::Victim => {
                let u = &mut self.units[unit];
                let mut victims = u.victim.iter_mut().chain(&mut u.gather.drained);
                if let Some(v) = victims.find(|v| v.block == block) {
                    v.retiring = true;
                }
                return;
            }
            // The cache with one bit a cell holds no pages whose places the layer above chooses.
            BlockUse::Cached | BlockUse::Free | BlockUse::Emptied | BlockUse::Retiring | BlockUse::Bad => {
                return;
            }
        }
        self.blocks.set_state(block, BlockUse::Retiring);
        self.units[unit].retiring.push(block);
        self.idle_work_pending = true;
    }

    fn remove_open(&mut self, unit: usize, block: u32) {
        let u = &mut self.units[unit];
        for open in &mut u.open {
            if open.is_some_and(|o| o.block == block) {
                *open = None;
            }
        }
        u.partial_blocks.retain(|o| o.block != block);
    }

    /// Makes all open blocks candidates for garbage collection. The layer above does not continue the
    /// blocks that a crash left partly written, and garbage collection needs only one of them.
    pub(crate) fn seal_open_blocks(&mut self) {
        for unit in 0..self.units.len() {
            let u = &mut self.units[unit];
            let open = std::mem::take(&mut u.open).into_iter().flatten();
            let all: Vec<u32> = open.chain(u.partial_blocks.drain(..)).map(|o| o.block).collect();
            all.into_iter().for_each(|block| self.seal(block));
        }
    }

    /// Takes a block that was adopted or preconditioned out of garbage collection, for the layer above.
    pub(crate) fn claim_placed(&mut self, block: u32) {
        match self.blocks.state(block) {
            BlockUse::Sealed => self.config.gc.removed(block, &self.blocks),
            BlockUse::Open => self.remove_open(to_usize(self.blocks.unit_of(block)), block),
            _ => {}
        }
        self.blocks.set_state(block, BlockUse::Placed);
    }
}
