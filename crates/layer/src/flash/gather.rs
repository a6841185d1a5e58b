//! Garbage collection on devices that program several pages with one command.
//!
//! Valid pages are read out of victims and gathered until they fill a program unit. A page stays
//! valid at its old place until its program: a victim whose pages are all read is *drained*, and is
//! erased once the pages that it still holds are programmed elsewhere. So no program unit is padded
//! between two victims.

use super::collect::tag_of;
use super::space::{Flash, ForwardMap, GcVictim, MovedPage, NandStream};
use crate::planted::FtlBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Error, Lpn, PAGE_NONE, Ppn, ReadTarget, Result, Sink, Tok, WriteData};
use frit_media::{ExpectedPage, Spare, Transfer};

/// A page that was read out of a victim.
#[derive(Clone, Copy, Debug)]
pub(super) struct GatheredPage {
    lpn: Lpn,
    from: Ppn,
    /// Sequence number of the copy; `None` for a new one.
    seq: Option<u64>,
}

impl GatheredPage {
    fn spare(self, next_seq: impl FnOnce() -> u64) -> Spare {
        Spare { lpn: self.lpn.0, seq: self.seq.unwrap_or_else(next_seq) }
    }
}

/// Pages of a unit that wait for a program.
#[derive(Clone, Default, Debug)]
pub(super) struct Gather {
    pages: Vec<GatheredPage>,
    /// Contents of the pages, a page each. Empty if the store holds no bytes.
    bytes: Vec<u8>,
    /// Token that is done when all pages are read.
    read: Tok,
    /// Victims whose pages are all read, and some of them not yet programmed.
    pub(super) drained: Vec<GcVictim>,
    /// Placement handle of the pages.
    handle: u8,
}

impl Gather {
    /// Token that is done when all pages are read.
    pub(super) fn read(&self) -> Tok {
        self.read
    }
}

/// A program unit of host data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitWrite<'a> {
    /// Logical page at each position; [`PAGE_NONE`] for padding.
    pub(crate) lpns: &'a [u32],
    pub(crate) unit: u32,
    pub(crate) stream: NandStream,
    pub(crate) data: WriteData<'a>,
    pub(crate) transfer: Transfer,
    pub(crate) cause: Cause,
    pub(crate) after: Tok,
}

/// A program unit that was programmed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgrammedUnit {
    /// Its first page.
    pub(crate) first: Ppn,
    /// Token that completes when it is programmed.
    pub(crate) done: Tok,
}

impl Flash {
    /// Writes a program unit of host data into a unit, with garbage collection if the unit has no
    /// free block. The sequence numbers of its pages are in [`Flash::unit_spares`] afterwards. The
    /// caller invalidates the old pages and updates the map.
    pub(crate) fn write_unit<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        write: UnitWrite<'_>,
    ) -> Result<ProgrammedUnit> {
        self.writable()?;
        loop {
            let write = UnitWrite { stream: self.stream_of(sink, map, write.unit, write.stream)?, ..write };
            self.reserve_block(sink, map, write.unit, write.stream)?;
            // Checked again after a failed program: the reserve of garbage collection is not for
            // host data.
            match self.try_program_unit(sink, write) {
                Ok(Some(done)) => {
                    let pages = write.lpns.iter().filter(|&&lpn| lpn != PAGE_NONE).count();
                    self.count_host_pages(write.stream, pages);
                    return Ok(done);
                }
                // The last block of the cache went bad.
                Err(Error::NoSpace { .. }) if write.stream == NandStream::Slc => {}
                failed => drop(failed?),
            }
        }
    }

    /// Programs a program unit into the stream of garbage collection, which may use the reserve.
    pub(crate) fn program_reserved(
        &mut self,
        sink: &mut Sink,
        write: UnitWrite<'_>,
    ) -> Result<ProgrammedUnit> {
        self.writable()?;
        loop {
            if let Some(done) = self.try_program_unit(sink, write)? {
                return Ok(done);
            }
        }
    }

    /// Spare areas of the last program unit.
    pub(crate) fn unit_spares(&self) -> &[Spare] {
        &self.unit_spares
    }

    /// Tries once to program a program unit. `None` if the program failed.
    fn try_program_unit(&mut self, sink: &mut Sink, write: UnitWrite<'_>) -> Result<Option<ProgrammedUnit>> {
        let first = self.next_page(sink, write.unit, write.stream)?;
        self.align_seq(self.unit_pages);
        let mut spares = std::mem::take(&mut self.unit_spares);
        spares.clear();
        spares.extend(write.lpns.iter().map(|&lpn| Spare { lpn, seq: self.next_seq() }));
        let after = self.order_after(sink, first, write.after);
        let programmed =
            self.nand.program_unit(sink, first, write.data, &spares, write.transfer, write.cause, after);
        self.unit_spares = spares;
        match programmed {
            Ok(done) => {
                if self.begins(first) {
                    self.named = done;
                }
                for (i, &lpn) in write.lpns.iter().enumerate() {
                    if lpn != PAGE_NONE {
                        self.mark_valid(write.unit, first.plus(count_u32(i)), Lpn(lpn));
                    }
                }
                Ok(Some(ProgrammedUnit { first, done }))
            }
            Err(Error::ProgramFailed { .. }) => {
                self.start_retiring(write.unit, write.stream);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Returns the token for which the program of a page waits, for crash safety.
    #[inline]
    pub(super) fn order_after(&self, sink: &mut Sink, first: Ppn, after: Tok) -> Tok {
        let after = sink.join(after, self.in_use);
        if !self.begins(first) {
            return after;
        }
        // See `Flash::named` and `Flash::begins_after_erases`.
        let after = sink.join(after, self.named);
        if !self.begins_after_erases || is_planted(FtlBug::BegunBeforeErases) {
            return after;
        }
        let g = self.nand.geometry();
        sink.join(after, self.units[to_usize(g.unit_of_block(g.block_of(first)))].erased)
    }

    /// Reads the valid pages of the next program unit of the victim. Returns their number, 0 if none
    /// is left.
    pub(super) fn gather_next<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
    ) -> Result<u32> {
        let Some(v) = self.units[to_usize(unit)].victim else { return Ok(0) };
        let base = self.nand.geometry().ppn(BlockId(v.block), 0);
        let pages = self.blocks.pages_per_block();
        let valid = |at: u32| self.reverse[base.plus(at).idx()] != 0;
        let Some(at) = (v.cursor..pages).find(|&at| valid(at)) else {
            self.drain(unit);
            return Ok(0);
        };
        self.gather_for_handle(sink, map, unit, v.block)?;
        let end = (at + 1).next_multiple_of(self.unit_pages);
        let mut all = std::mem::take(&mut self.run);
        all.clear();
        all.extend((at..end).filter(|&at| self.reverse[base.plus(at).idx()] != 0).map(|at| base.plus(at)));
        if let Some(v) = &mut self.units[to_usize(unit)].victim {
            v.cursor = end;
        }
        let gathered = self.gather_run(sink, map, unit, &all, v.cause);
        let n = count_u32(all.len());
        self.run = all;
        gathered.map(|()| n)
    }

    /// Programs what was gathered, if it has another placement handle than the data of a victim.
    fn gather_for_handle<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
        block: u32,
    ) -> Result<()> {
        let Some(&handle) = self.handle_of.get(to_usize(block)) else { return Ok(()) };
        if self.units[to_usize(unit)].gather.handle != handle {
            self.program_gathered(sink, map, unit, true)?;
            self.units[to_usize(unit)].gather.handle = handle;
        }
        Ok(())
    }

    /// Reads valid pages of one program unit of the victim, or moves them by copyback.
    fn gather_run<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
        pages: &[Ppn],
        cause: Cause,
    ) -> Result<()> {
        if self.copy_whole_unit(sink, map, unit, pages)? {
            return Ok(());
        }
        let read = self.nand.read_unit(sink, pages[0], count_u32(pages.len()), cause, self.in_use)?;
        // The pages of one program wait for the read once.
        let mut joined = false;
        for &from in pages {
            let after = self.gather_page(map, unit, from)?;
            let ready = if joined { after } else { sink.join(read, after) };
            let gather = &mut self.units[to_usize(unit)].gather;
            gather.read = sink.join(gather.read, ready);
            joined = true;
            if count_u32(gather.pages.len()) == self.unit_pages {
                self.program_gathered(sink, map, unit, false)?;
                joined = false;
            }
        }
        Ok(())
    }

    /// Adds a page that was read to those that wait for a program, and returns the token for which
    /// its copy waits. An unreadable page is marked as lost, so that it does not block the move of
    /// others.
    fn gather_page<M: ForwardMap>(&mut self, map: &mut M, unit: u32, from: Ppn) -> Result<Tok> {
        let Some(lpn) = self.lpn_of(from) else { return Ok(Tok::default()) };
        let page = to_usize(self.nand.geometry().page_bytes);
        let seq = self.sequence_of_copy(map, from);
        let expect = self.expected(from, || tag_of(map, lpn, &seq));
        let gather = &mut self.units[to_usize(unit)].gather;
        let copied = if self.nand.stores_bytes() {
            let at = gather.pages.len() * page;
            gather.bytes.resize(at + page, 0);
            self.nand.copy_out(from, 0, ReadTarget::Bytes(&mut gather.bytes[at..]), expect)
        } else {
            Ok(())
        };
        // Without the record, the version that the page must have may be unknown.
        match seq.and_then(|seq| copied.map(|()| seq)) {
            Ok(seq) => {
                gather.pages.push(GatheredPage { lpn, from, seq });
                return Ok(map.copy_after(lpn));
            }
            Err(e @ Error::Corrupt { .. }) => {
                gather.bytes.truncate(gather.pages.len() * page);
                map.lost_at(lpn, from, &e);
                self.leave(unit, from);
                self.retire_if_lost(map, unit);
            }
            Err(e) => return Err(e),
        }
        Ok(Tok::default())
    }

    /// Retires the victim instead of erasing it, because one of its pages is lost and its record must
    /// stay.
    pub(super) fn retire_if_lost<M: ForwardMap>(&mut self, map: &M, unit: u32) {
        if let Some(v) = self.units[to_usize(unit)].victim.as_mut().filter(|_| map.retires_lost()) {
            v.retiring = true;
        }
    }

    /// Records that a page is no longer at a place that garbage collection clears.
    fn leave(&mut self, unit: u32, from: Ppn) {
        self.reverse[from.idx()] = 0;
        let block = self.nand.geometry().block_of(from).idx();
        self.blocks.block[block].valid -= 1;
        self.units[to_usize(unit)].valid_pages -= 1;
    }

    /// Moves a program unit whose pages are all valid by copyback, if copyback is on and no page
    /// waits for a program.
    fn copy_whole_unit<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
        pages: &[Ppn],
    ) -> Result<bool> {
        let whole = count_u32(pages.len()) == self.unit_pages;
        if !self.config.copyback || !whole || !self.units[to_usize(unit)].gather.pages.is_empty() {
            return Ok(false);
        }
        let moved: Vec<GatheredPage> = pages
            .iter()
            .filter_map(|&from| {
                let seq = self.sequence_of_copy(map, from).ok()?;
                self.lpn_of(from).map(|lpn| GatheredPage { lpn, from, seq })
            })
            .collect();
        if moved.len() < pages.len() {
            // A damaged record: the other pages are moved alone.
            return Ok(false);
        }
        let tag = |p: &GatheredPage| tag_of(map, p.lpn, &Ok(p.seq));
        let expect: Vec<ExpectedPage> =
            moved.iter().map(|p| ExpectedPage { lpn: p.lpn.0, tag: tag(p) }).collect();
        let cause = self.units[to_usize(unit)].victim.map_or(Cause::Gc, |v| v.cause);
        let stream = NandStream::gc_of(self.units[to_usize(unit)].gather.handle);
        loop {
            let to = self.next_page_for_gc(sink, unit, stream)?;
            let mut spares = std::mem::take(&mut self.unit_spares);
            spares.clear();
            spares.extend(moved.iter().map(|p| p.spare(|| self.next_seq())));
            let after = moved.iter().fold(Tok::default(), |t, p| sink.join(t, map.copy_after(p.lpn)));
            let after = self.order_after(sink, to, after);
            let copied = self.nand.copyback_unit(sink, pages[0], to, &spares, &expect, cause, after);
            self.unit_spares = spares;
            match copied {
                Ok(done) => {
                    self.record_moved(sink, map, unit, to, &moved, done)?;
                    return Ok(true);
                }
                Err(Error::ProgramFailed { .. }) => self.start_retiring(unit, stream),
                // A damaged page: the unit is read, and its other pages are moved alone.
                Err(Error::Corrupt { .. }) => {
                    self.undo_next_page(unit, stream);
                    return Ok(false);
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Next position of garbage collection. The space becomes read-only if no block is left.
    fn next_page_for_gc(&mut self, sink: &mut Sink, unit: u32, stream: NandStream) -> Result<Ppn> {
        match self.next_page(sink, unit, stream) {
            Err(Error::NoSpace { .. }) => Err(self.out_of_blocks(unit)),
            next => next,
        }
    }

    /// Programs the gathered pages. With `pad`, also if they do not fill a program unit.
    pub(super) fn program_gathered<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
        pad: bool,
    ) -> Result<()> {
        self.drop_overwritten(unit);
        let full = to_usize(self.unit_pages);
        let waiting = self.units[to_usize(unit)].gather.pages.len();
        if waiting == 0 || (waiting < full && !pad) {
            return self.finish_drained(sink, map, unit);
        }
        let page = to_usize(self.nand.geometry().page_bytes);
        let mut gather = std::mem::take(&mut self.units[to_usize(unit)].gather);
        if self.stores_bytes() {
            gather.bytes.resize(full * page, 0);
        }
        let cause = self.units[to_usize(unit)].victim.map_or(Cause::Gc, |v| v.cause);
        let programmed = self.program_pages(sink, unit, &gather, cause);
        self.units[to_usize(unit)].gather.drained = std::mem::take(&mut gather.drained);
        self.units[to_usize(unit)].gather.handle = gather.handle;
        let ProgrammedUnit { first, done } = programmed?;
        self.record_moved(sink, map, unit, first, &gather.pages, done)?;
        // The memory of the pages is used again.
        gather.pages.clear();
        gather.bytes.clear();
        let next = &mut self.units[to_usize(unit)].gather;
        (next.pages, next.bytes) = (gather.pages, gather.bytes);
        self.finish_drained(sink, map, unit)
    }

    fn program_pages(
        &mut self,
        sink: &mut Sink,
        unit: u32,
        gather: &Gather,
        cause: Cause,
    ) -> Result<ProgrammedUnit> {
        let full = to_usize(self.unit_pages);
        let page = self.nand.geometry().page_bytes;
        let data = if self.stores_bytes() {
            WriteData::Bytes(&gather.bytes)
        } else {
            WriteData::Len(self.unit_pages * page)
        };
        let stream = NandStream::gc_of(gather.handle);
        loop {
            let to = self.next_page_for_gc(sink, unit, stream)?;
            let mut spares = std::mem::take(&mut self.unit_spares);
            spares.clear();
            spares.extend(gather.pages.iter().map(|p| p.spare(|| self.next_seq())));
            spares.resize_with(full, || Spare { lpn: PAGE_NONE, seq: self.next_seq() });
            let after = self.order_after(sink, to, gather.read);
            let done = self.nand.program_unit(sink, to, data, &spares, Transfer::Pages, cause, after);
            self.unit_spares = spares;
            match done {
                Ok(done) => return Ok(ProgrammedUnit { first: to, done }),
                Err(Error::ProgramFailed { .. }) => self.start_retiring(unit, stream),
                Err(e) => return Err(e),
            }
        }
    }

    /// Updates the tables for pages that were programmed from `to` on.
    fn record_moved<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
        to: Ppn,
        pages: &[GatheredPage],
        done: Tok,
    ) -> Result<()> {
        if self.begins(to) {
            self.named = done;
        }
        // Tokens are joined once for all pages of a victim: a join is an entry in the engine.
        let (mut all, mut of_block) = (Tok::default(), Tok::default());
        let mut i = 0;
        while let Some(&p) = pages.get(i) {
            self.leave(unit, p.from);
            let to = to.plus(count_u32(i));
            self.mark_valid(unit, to, p.lpn);
            let seq = self.unit_spares[i].seq;
            let durable = map.moved(sink, MovedPage { lpn: p.lpn, from: p.from, to, seq, done })?;
            of_block = sink.join(of_block, durable);
            let block = self.nand.geometry().block_of(p.from);
            i += 1;
            if pages.get(i).is_some_and(|next| self.nand.geometry().block_of(next.from) == block) {
                continue;
            }
            let u = &mut self.units[to_usize(unit)];
            let mut victims = u.victim.iter_mut().chain(&mut u.slc.victim).chain(&mut u.gather.drained);
            if let Some(v) = victims.find(|v| v.block == block.0) {
                v.done = sink.join(v.done, of_block);
            }
            all = sink.join(all, of_block);
            of_block = Tok::default();
        }
        self.record_named(sink, all);
        Ok(())
    }

    /// Removes gathered pages that were overwritten or discarded since they were read.
    pub(super) fn drop_overwritten(&mut self, unit: u32) {
        let page = to_usize(self.nand.geometry().page_bytes);
        let stores_bytes = self.stores_bytes();
        let (gather, reverse) = (&mut self.units[to_usize(unit)].gather, &self.reverse);
        let mut kept = 0;
        for i in 0..gather.pages.len() {
            let p = gather.pages[i];
            if reverse[p.from.idx()] != p.lpn.0 + 1 {
                continue;
            }
            gather.pages[kept] = p;
            if stores_bytes {
                gather.bytes.copy_within(i * page..(i + 1) * page, kept * page);
            }
            kept += 1;
        }
        gather.pages.truncate(kept);
        gather.bytes.truncate(kept * page);
    }

    /// Sets the victim aside, if its pages are all read.
    fn drain(&mut self, unit: u32) {
        let u = &mut self.units[to_usize(unit)];
        if let Some(v) = u.victim.filter(|v| self.blocks.valid(v.block) > 0) {
            u.gather.drained.push(v);
            u.victim = None;
        }
    }

    /// Finishes the drained victims that hold no valid page any more.
    pub(super) fn finish_drained<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
    ) -> Result<()> {
        loop {
            let drained = &mut self.units[to_usize(unit)].gather.drained;
            let Some(empty) = drained.iter().position(|v| self.blocks.valid(v.block) == 0) else {
                return Ok(());
            };
            let v = drained.swap_remove(empty);
            self.finish_victim(sink, map, unit, v)?;
        }
    }

    /// Programs what was gathered, so that the drained victims become free: `true` if any did. A
    /// drained victim whose pages were not gathered, in tables that are wrong, stays; callers try again
    /// only after progress.
    pub(super) fn finish_gathered<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
    ) -> Result<bool> {
        let drained = self.units[to_usize(unit)].gather.drained.len();
        if drained > 0 {
            self.program_gathered(sink, map, unit, true)?;
        }
        Ok(self.units[to_usize(unit)].gather.drained.len() < drained)
    }
}
