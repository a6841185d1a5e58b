//! Writes and flushes.

use super::config::Allocation;
use super::layer::Ftl;
use super::meta::Mark;
use super::page_map::PageEntry;
use crate::flash::gather::{ProgrammedUnit, UnitWrite};
use crate::planted::FtlBug;
use crate::spans::{PageSpan, page_spans};
use frit_core::convert::count_u32;
use frit_core::planted::is_planted;
use frit_core::{Cause, Hints, Lpn, PAGE_NONE, ReadTarget, Result, Sink, Tok, WriteData};
use frit_media::Transfer;

impl Ftl {
    /// Writes a range of bytes.
    pub(super) fn write_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        hints: Hints,
    ) -> Result<()> {
        self.write_discards(sink)?;
        self.select_stream(hints);
        for span in page_spans(at, data.len(), self.page_bytes) {
            self.write_page(sink, span, data.part(span.from, span.len))?;
        }
        if !self.buffers() {
            // The rest of the request fills no program unit, and nothing waits.
            self.program_all(sink, Cause::Host)?;
        }
        self.end_request(sink)
    }

    /// Writes part of a page into the merge buffer.
    fn write_page(&mut self, sink: &mut Sink, span: PageSpan, data: WriteData<'_>) -> Result<()> {
        let translated = self.translate(sink, span.lpn, true)?;
        let entry = self.map.get(span.lpn);
        let stream = self.streams.current();
        let waiting = if entry.is_buffered() { self.find_buffered(span.lpn) } else { None };
        let position = match waiting {
            Some(position) => {
                self.stats.merged_in_buffer += 1;
                position
            }
            None => self.add_to_buffer(sink, span)?,
        };
        self.buffer.wait_for(sink, translated);
        if let (Some(page), Some(bytes)) = (self.buffer.bytes_mut(position), data.bytes()) {
            page[span.offset as usize..(span.offset + span.len) as usize].copy_from_slice(bytes);
        }
        self.buffer.note_written(position, span.offset, span.len);
        self.written_bytes = span.len;
        self.map.set(span.lpn, self.map.get(span.lpn).buffered());
        if self.buffers() {
            sink.ack(self.buffer.ready());
        }
        // With a merge buffer, a page of which only a part was written waits for the rest, until another
        // page needs its place.
        if self.buffer.is_full() && (!self.buffers() || self.buffer.is_whole()) {
            self.program_buffer(sink, Cause::Host)?;
        }
        self.switch_to(stream);
        Ok(())
    }

    /// Adds a page to the merge buffer, with its old contents if only a part of it is written.
    fn add_to_buffer(&mut self, sink: &mut Sink, span: PageSpan) -> Result<usize> {
        if self.buffer.is_full() {
            // One of its pages was written in part only, or its program failed for want of space.
            self.program_buffer(sink, Cause::Host)?;
        }
        let partial = span.len < self.page_bytes;
        if partial {
            self.check_readable(span.lpn)?;
        }
        let position = self.buffer.push(span.lpn);
        if !partial || is_planted(FtlBug::PageNotMerged) {
            return Ok(position);
        }
        // After the program, whose garbage collection can move the page.
        let entry = self.map.get(span.lpn);
        let Some(ppn) = entry.ppn() else {
            if let Some(page) = self.buffer.bytes_mut(position) {
                page.fill(0);
            }
            return Ok(position);
        };
        self.stats.read_modify_writes += 1;
        let page_bytes = self.page_bytes;
        let into = match self.buffer.bytes_mut(position) {
            Some(page) => ReadTarget::Bytes(page),
            None => ReadTarget::Len(page_bytes),
        };
        let read = match self.config.partial_transfers {
            // The part that is not written.
            true => {
                let rest = page_bytes - span.len;
                let read = self.flash.read_part(sink, ppn, rest, Cause::Merge, Tok::default());
                read.and_then(|read| self.flash.copy_out(ppn, 0, into, entry.tag()).map(|()| read))
            }
            false => self.flash.read(sink, ppn, 0, into, entry.tag(), Cause::Merge),
        };
        match read {
            Ok(read) => {
                let unit = self.flash.blocks().unit_of(self.block_of(ppn).0);
                self.buffer.note_read(sink, position, read, unit);
            }
            Err(e) => {
                self.buffer.pop();
                return Err(e);
            }
        }
        Ok(position)
    }

    /// Programs the pages of the merge buffer, with padding if they do not fill a program unit.
    pub(super) fn program_buffer(&mut self, sink: &mut Sink, cause: Cause) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.stats.padded += u64::from(self.unit_pages) - self.buffer.len() as u64;
        self.buffer.pad();
        if let Some(lpn) = self.placed_page() {
            return self.program_placed(sink, lpn, cause);
        }
        let unit = self.next_unit(sink);
        let size = self.unit_pages * self.page_bytes;
        let data =
            if self.stores_bytes() { WriteData::Bytes(self.buffer.unit()) } else { WriteData::Len(size) };
        let write = UnitWrite {
            lpns: self.buffer.lpns(),
            unit,
            stream: self.streams.nand_stream(),
            data,
            transfer: self.program_transfer(),
            cause,
            after: self.buffer.read,
        };
        self.changed = true;
        let cached = match self.flash.write_unit(sink, &mut self.map, write) {
            Ok(programmed) => {
                self.map_buffer(sink, programmed)?;
                self.flash.is_cached(programmed.first)
            }
            Err(e) => {
                self.buffer.unpad();
                if !self.buffers() {
                    self.drop_buffer();
                }
                return Err(e);
            }
        };
        // Pages in the cache pay when they are folded.
        if !cached {
            self.flash.collect_on_write(sink, &mut self.map, unit, self.unit_pages)?;
        }
        self.note_moved();
        Ok(())
    }

    /// Bytes that the program of the buffer transfers.
    fn program_transfer(&self) -> Transfer {
        match self.config.partial_transfers && self.unit_pages == 1 && !self.buffers() {
            true => Transfer::Bytes(self.written_bytes),
            false => Transfer::Pages,
        }
    }

    /// The page in the buffer, if the mapping scheme determines its place.
    fn placed_page(&self) -> Option<Lpn> {
        let first = self.buffer.lpns().first().copied();
        first.filter(|&lpn| self.config.mapping.maps_blocks() && lpn < self.pages).map(Lpn)
    }

    /// Programs the page in the buffer where the mapping scheme wants it.
    fn program_placed(&mut self, sink: &mut Sink, lpn: Lpn, cause: Cause) -> Result<()> {
        self.changed = true;
        let (unit, placed) = match self.place_page(sink, lpn, cause) {
            Ok(placed) => placed,
            Err(e) => {
                self.drop_buffer();
                return Err(e);
            }
        };
        if let Some(old) = self.map.get(lpn).ppn() {
            let durable = if is_planted(FtlBug::OldFreedEarly) { sink.start() } else { placed.done };
            self.flash.invalidate_after(sink, old, durable);
        }
        self.map.set(lpn, PageEntry::in_nand(placed.ppn, placed.seq));
        self.programmed = sink.join(self.programmed, placed.done);
        sink.ack(placed.done);
        self.buffer.programmed(placed.done);
        self.flash.collect_on_write(sink, &mut self.map, unit, self.unit_pages)
    }

    /// Drops the pages of the merge buffer, none of which was acknowledged.
    fn drop_buffer(&mut self) {
        for i in 0..self.buffer.len() {
            let lpn = Lpn(self.buffer.lpns()[i]);
            self.map.set(lpn, self.map.get(lpn).unbuffered());
        }
        self.buffer.reset_unit();
    }

    /// Maps the pages of the merge buffer, which were programmed.
    fn map_buffer(&mut self, sink: &mut Sink, unit: ProgrammedUnit) -> Result<()> {
        for i in 0..self.buffer.lpns().len() {
            let lpn = Lpn(self.buffer.lpns()[i]);
            let Some(old) = self.map.find(u64::from(lpn.0)) else { continue };
            if let Some(ppn) = old.ppn() {
                let durable = if is_planted(FtlBug::OldFreedEarly) { sink.start() } else { unit.done };
                self.flash.invalidate_after(sink, ppn, durable);
            }
            let seq = self.flash.unit_spares()[i].seq;
            self.map.set(lpn, PageEntry::in_nand(unit.first.plus(count_u32(i)), seq));
        }
        self.programmed = sink.join(self.programmed, unit.done);
        if !self.buffers() {
            // A request waits for the program units that hold its pages, and for no others.
            sink.ack(unit.done);
        }
        if self.buffer.lpns().iter().any(|&lpn| lpn >= self.pages && lpn != PAGE_NONE) {
            self.map.meta_written = sink.join(self.map.meta_written, unit.done);
        }
        self.buffer.programmed(unit.done);
        Ok(())
    }

    /// NAND unit of the program unit that is written next.
    fn next_unit(&mut self, sink: &Sink) -> u32 {
        let start = match self.config.allocation {
            Allocation::Static => self.buffer.lpns().first().map_or(0, |lpn| lpn / self.unit_pages),
            Allocation::Dynamic => self.streams.next_turn(),
        };
        match self.config.allocation {
            Allocation::Static => self.flash.unit_in_turn(start),
            Allocation::Dynamic => match self.buffer.read_unit {
                // A program that waits for a read of another unit would keep its own unit from the
                // commands behind it.
                Some(unit) if !self.buffers() && self.flash.has_room(unit) => unit,
                _ => self.flash.first_unit(sink, Lpn(start)),
            },
        }
    }

    /// Adds a page of metadata to the merge buffer.
    pub(super) fn buffer_meta(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        if self.buffer.is_full() {
            self.program_buffer(sink, Cause::Host)?;
        }
        let position = match self.buffer.find(lpn) {
            Some(position) => position,
            None => self.buffer.push(lpn),
        };
        if let Some(page) = self.buffer.bytes_mut(position) {
            fill(page);
        }
        self.buffer.note_written(position, 0, self.page_bytes);
        self.written_bytes = self.page_bytes;
        self.map.set(lpn, self.map.get(lpn).buffered());
        Ok(())
    }

    /// Makes all acknowledged writes and discards durable. An FTL that has become read-only and has
    /// accepted none since the last flush, or since its recovery, has nothing to program.
    pub(super) fn flush_all(&mut self, sink: &mut Sink) -> Result<()> {
        if is_planted(FtlBug::FlushIgnored) {
            return Ok(());
        }
        if !self.unflushed && self.flash.health.refusal().is_some() {
            // What a recovery has read can be in the page cache only.
            self.flash.nand_mut().sync()?;
            sink.ack(self.programmed);
            return Ok(());
        }
        self.flash.writable()?;
        self.switch_to(0);
        let changed = self.changed || self.buffered_pages() > 0;
        self.restore_lost_maps();
        self.write_discards(sink)?;
        if self.config.scans() && (changed || self.unmarked) {
            let mark = self.mark();
            self.write_mark(sink, &mark)?;
            self.buffer.wait_for(sink, self.mark_after);
            if !is_planted(FtlBug::MarkBeforeFlush) {
                self.buffer.wait_for(sink, self.flush_done);
            }
        }
        self.program_all(sink, Cause::Host)?;
        let flushed = self.flash.last_seq();
        self.flash.make_durable(sink, &mut self.map)?;
        sink.ack(self.programmed);
        self.flushed = flushed;
        // Pages that garbage collection has moved have numbers below that of the flush, too.
        self.flush_done = sink.join(self.programmed, self.flash.named);
        (self.changed, self.unflushed) = (false, false);
        // The mark of this flush states the one before, because it may be programmed before other
        // pages. A flush without changes writes a mark that states this one.
        self.unmarked = changed;
        Ok(())
    }

    /// Adds the mark to the merge buffer.
    fn write_mark(&mut self, sink: &mut Sink, mark: &Mark) -> Result<()> {
        self.stats.marks += 1;
        self.buffer_meta(sink, self.meta.mark(), |page| mark.encode(page))
    }
}
