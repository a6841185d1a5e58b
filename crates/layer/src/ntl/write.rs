//! Writes: a first write goes to the home location of a page, an update to the same place or to the
//! log.

use super::config::LogKind;
use super::layer::Ntl;
use super::log::LogSpace;
use super::mapping::MappingPolicy;
use super::space::{CellState, PageWrite};
use crate::numbers::{LogSlot, LogicalBlock, Place};
use crate::spans::{PageSpan, page_spans_by_shift};
use frit_core::Lpn;
use frit_core::convert::to_usize;
use frit_core::{Cause, Error, ReadTarget, Result, Sink, Tok, WriteData};

/// The window in which updates make a page hot, as a multiple of the slots of the remap table.
const HOT_WINDOW: u32 = 8;

impl Ntl {
    pub(super) fn write_range(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        self.health.writable()?;
        let page = self.page_bytes();
        self.logs = self.config.logs(u64::from(data.len()).div_ceil(u64::from(page)));
        for span in page_spans_by_shift(at, data.len(), page.trailing_zeros()) {
            let part = data.part(span.from, span.len);
            if span.len == page {
                let start = sink.start();
                self.write_page(sink, span.lpn, part, start)?;
            } else {
                self.write_part(sink, span, part)?;
            }
        }
        self.commit(sink);
        self.rounds.end_request(&mut self.stats);
        if self.space.mark_due() { self.space.set_mark(sink) } else { Ok(()) }
    }

    /// Writes a part of a page: the old page is read, merged, and written as a whole.
    pub(super) fn write_part(&mut self, sink: &mut Sink, span: PageSpan, data: WriteData<'_>) -> Result<()> {
        let page = self.page_bytes();
        let mut whole = std::mem::take(&mut self.page);
        let into = if self.stores_bytes() { ReadTarget::Bytes(&mut whole) } else { ReadTarget::Len(page) };
        let outcome = self.read_page(sink, span.lpn, 0, into, Cause::Merge).and_then(|after| {
            let source = match data.bytes() {
                Some(bytes) if self.stores_bytes() => {
                    whole[to_usize(span.offset)..to_usize(span.offset + span.len)].copy_from_slice(bytes);
                    WriteData::Bytes(&whole)
                }
                _ => WriteData::Len(page),
            };
            self.write_page(sink, span.lpn, source, after)
        });
        self.page = whole;
        outcome
    }

    /// Writes a whole page.
    #[inline]
    fn write_page(&mut self, sink: &mut Sink, lpn: Lpn, data: WriteData<'_>, after: Tok) -> Result<()> {
        if !self.used.has(lpn) {
            return self.write_first(sink, lpn, data, after);
        }
        self.stats.updates += 1;
        match self.log.as_ref().map_or(LogKind::None, super::log::LogTables::kind) {
            LogKind::None => self.write_over(sink, lpn, data, after),
            LogKind::Remap if !self.is_hot(lpn) => self.write_over(sink, lpn, data, after),
            LogKind::Full if !self.logs => {
                // The version in the log is outdated from now on.
                if let Some(i) = self.buffer.find(lpn) {
                    self.buffer.remove(i);
                }
                if self.logged.has(lpn) {
                    self.forget_logged(lpn);
                }
                self.write_over(sink, lpn, data, after)
            }
            LogKind::Full if self.buffer.is_there() => self.write_buffer(sink, lpn, data, after),
            _ => {
                let tok = self.write_log(sink, lpn, data, after)?;
                if !self.space.protected {
                    sink.ack(tok);
                }
                Ok(())
            }
        }
    }

    /// Writes a page for the first time, at its home location.
    #[inline]
    fn write_first(&mut self, sink: &mut Sink, lpn: Lpn, data: WriteData<'_>, after: Tok) -> Result<()> {
        let place = self.home_for(sink, lpn)?;
        let tok = self.space.put(sink, place, lpn, PageWrite::of_host(data, CellState::Fresh, after))?;
        if !self.space.protected {
            sink.ack(tok);
        }
        self.rounds.add(self.space.chip(place), false, &mut self.stats);
        self.stats.first_writes += 1;
        self.used.set(lpn);
        self.live.set(lpn);
        Ok(())
    }

    /// Returns the home location of a page, and assigns one if it has none.
    #[inline]
    pub(super) fn home_for(&mut self, sink: &Sink, lpn: Lpn) -> Result<Place> {
        match self.mapping.home(lpn) {
            Some(place) => Ok(place),
            None => self.find_home(sink, lpn),
        }
    }

    /// Assigns a home location to a page.
    fn find_home(&mut self, sink: &Sink, lpn: Lpn) -> Result<Place> {
        let unit = self.space.pcm.unit_id(0);
        self.config.placement.costs(sink, unit, self.rounds.pages(), self.turn, &mut self.costs);
        let place = self.mapping.assign(lpn, &self.costs).ok_or_else(|| Error::NoSpace {
            what: "all chips are full, though the volume is not: this is a bug of the mapping".into(),
        })?;
        let chip = self.space.layout.chip(place);
        self.turn = if chip + 1 == self.space.layout.chips { 0 } else { chip + 1 };
        Ok(place)
    }

    /// Overwrites a page in place.
    #[inline]
    fn write_over(&mut self, sink: &mut Sink, lpn: Lpn, data: WriteData<'_>, after: Tok) -> Result<()> {
        let place = self.home_for(sink, lpn)?;
        let tok = self.space.put(sink, place, lpn, PageWrite::of_host(data, CellState::Used, after))?;
        sink.ack(tok);
        self.rounds.add(self.space.chip(place), true, &mut self.stats);
        self.live.set(lpn);
        Ok(())
    }

    /// Writes an update to the log.
    fn write_log(&mut self, sink: &mut Sink, lpn: Lpn, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        let slot = self.find_log_slot(sink, lpn)?;
        let place = self.space.layout.slot_place(slot);
        // A slot must not be written again before its merge is durable.
        let after = sink.join(after, self.reuse_barrier);
        let tok = self.space.put(sink, place, lpn, PageWrite::of_host(data, CellState::Fresh, after))?;
        self.take_slot(lpn, slot);
        let dirty = self.overwrites_slots();
        self.rounds.add(self.space.chip(place), dirty, &mut self.stats);
        self.stats.log_writes += 1;
        Ok(tok)
    }

    /// Returns `true` if the next slot was written before and not refreshed, as in a log that only
    /// overwrites, from its second round on.
    fn overwrites_slots(&self) -> bool {
        !self.config.refreshes() && self.stats.log_writes >= u64::from(self.space.layout.slots())
    }

    fn take_slot(&mut self, lpn: Lpn, slot: LogSlot) {
        let block = LogicalBlock::of(lpn, self.config.block_pages);
        if let Some(log) = &mut self.log {
            log.take(lpn, block, slot);
        }
        self.logged.set(lpn);
        self.live.set(lpn);
    }

    /// Returns a slot for a page. Merges rows of the log if there is none.
    fn find_log_slot(&mut self, sink: &mut Sink, lpn: Lpn) -> Result<LogSlot> {
        let block = LogicalBlock::of(lpn, self.config.block_pages);
        loop {
            match self.log.as_ref().map(|log| log.next_slot(block)) {
                Some(LogSpace::Slot(slot)) => return Ok(slot),
                Some(LogSpace::Merge(rows)) => self.merge(sink, rows)?,
                None => return Err(Error::NoSpace { what: "the layer has no log".into() }),
            }
        }
    }

    /// Writes an update to the buffer.
    fn write_buffer(&mut self, sink: &mut Sink, lpn: Lpn, data: WriteData<'_>, after: Tok) -> Result<()> {
        let i = match self.buffer.find(lpn) {
            Some(i) => {
                self.stats.buffer_hits += 1;
                i
            }
            None => self.buffer.push(lpn),
        };
        if let (Some(to), Some(bytes)) = (self.buffer.bytes_mut(i), data.bytes()) {
            to.copy_from_slice(bytes);
        }
        let done = sink.join(after, self.buffer.ready);
        sink.ack(done);
        self.live.set(lpn);
        if self.buffer.is_full() { self.flush_buffer(sink) } else { Ok(()) }
    }

    /// Writes the buffer to the log: a page on each chip at the same time.
    pub(super) fn flush_buffer(&mut self, sink: &mut Sink) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        // The request waits for its own writes, not for those of the buffer.
        self.commit(sink);
        let mut done = sink.start();
        let dirty = self.overwrites_slots();
        for i in 0..self.buffer.lpns().len() {
            let lpn = self.buffer.lpns()[i];
            let slot = self.find_log_slot(sink, lpn)?;
            let place = self.space.layout.slot_place(slot);
            let data = match self.buffer.bytes(i) {
                Some(bytes) if self.stores_bytes() => WriteData::Bytes(bytes),
                _ => WriteData::Len(self.space.layout.page_bytes),
            };
            let page = PageWrite::of_host(data, CellState::Fresh, self.reuse_barrier);
            let tok = self.space.put(sink, place, lpn, page)?;
            done = sink.join(done, tok);
            self.take_slot(lpn, slot);
            self.stats.log_writes += 1;
        }
        self.buffer.clear();
        let done = self.space.fence(sink).unwrap_or(done);
        self.buffer.ready = sink.join(self.buffer.ready, done);
        self.stats.buffer_flushes += 1;
        self.rounds.add_whole(dirty, &mut self.stats);
        Ok(())
    }

    /// Fences the writes of the request, if the layer is protected.
    pub(super) fn commit(&mut self, sink: &mut Sink) {
        if let Some(done) = self.space.fence(sink) {
            sink.ack(done);
        }
    }

    /// Makes all acknowledged writes durable.
    pub(super) fn flush_all(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.writable()?;
        self.flush_buffer(sink)?;
        sink.ack(self.buffer.ready);
        sink.ack(self.space.fenced());
        self.space.pcm.flush(sink)?;
        if self.space.protected && self.space.seq > self.space.mark {
            self.space.set_mark(sink)?;
        }
        Ok(())
    }

    /// Returns `true` if a page is hot: it lies in the remap table, or was updated often enough in
    /// the current window. The counters are reset after each window.
    fn is_hot(&mut self, lpn: Lpn) -> bool {
        if self.logged.has(lpn) {
            return true;
        }
        if self.warm_left == 0 {
            self.warm_left = self.space.layout.slots() * HOT_WINDOW;
            self.warm.iter_mut().for_each(|b| b.fill(0, false));
        }
        self.warm_left -= 1;
        // Two bitmaps form a two-bit counter for each page.
        let (low, high) = (self.warm[0].has(lpn), self.warm[1].has(lpn));
        let count = u32::from(low) + 2 * u32::from(high) + 1;
        if count >= self.config.hot_updates {
            return true;
        }
        if low {
            self.warm[0].clear(lpn);
        } else {
            self.warm[0].set(lpn);
        }
        if count & 2 == 2 {
            self.warm[1].set(lpn);
        }
        false
    }
}
