//! Writes: request queues of at most one virtual page.

use super::layer::Nameless;
use crate::planted::NamelessBug;
use crate::spans::{PageSpan, page_spans};
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, Lpn, NamelessDevice, OwnedBlock, ReadTarget, Result, Sink, Tok, WriteData};

impl<D: NamelessDevice> Nameless<D> {
    /// Writes a range of bytes.
    pub(super) fn write_range(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        self.merge_request(sink, at, data.len())?;
        for span in page_spans(at, data.len(), self.page_bytes) {
            self.write_page(sink, span, data.part(span.from, span.len))?;
        }
        if !self.buffers() {
            self.dispatch(sink)?;
        }
        Ok(())
    }

    /// Dispatches the request queue if a write at an unrelated place may not be merged into it. Writes
    /// that follow each other are always merged.
    fn merge_request(&mut self, sink: &mut Sink, at: u64, len: u32) -> Result<()> {
        let page = u64::from(self.page_bytes);
        let first = frit_core::convert::bounded_u32(at / page);
        let related = first == self.next_page || first.checked_add(1) == Some(self.next_page);
        self.next_page = frit_core::convert::bounded_u32((at + u64::from(len)).div_ceil(page));
        if related && !self.queue.is_empty() {
            return Ok(());
        }
        if self.unrelated >= self.config.queue_writes {
            self.dispatch(sink)?;
        }
        self.unrelated += 1;
        Ok(())
    }

    /// Writes part of a page into the request queue.
    fn write_page(&mut self, sink: &mut Sink, span: PageSpan, data: WriteData<'_>) -> Result<()> {
        let position = match self.queue.find(span.lpn) {
            Some(position) => {
                self.stats.merged_in_queue += 1;
                position
            }
            None => self.add_to_queue(sink, span)?,
        };
        if let (Some(page), Some(bytes)) = (self.queue.bytes_mut(position), data.bytes()) {
            page[to_usize(span.offset)..to_usize(span.offset + span.len)].copy_from_slice(bytes);
        }
        if self.buffers() {
            sink.ack(self.queue.ready());
        }
        if self.queue.is_full() { self.dispatch(sink) } else { Ok(()) }
    }

    /// Adds a page to the request queue, with its old contents if only a part of it is written.
    fn add_to_queue(&mut self, sink: &mut Sink, span: PageSpan) -> Result<usize> {
        if self.queue.is_full() {
            // Its program failed for want of space.
            self.dispatch(sink)?;
        }
        let partial = span.len < self.page_bytes;
        if partial {
            self.check_not_lost(span.lpn)?;
        }
        let position = self.queue.push(span.lpn);
        if !partial || is_planted(NamelessBug::BlockNotMerged) {
            return Ok(position);
        }
        let Some(block) = self.block_of(span.lpn) else {
            if let Some(page) = self.queue.bytes_mut(position) {
                page.fill(0);
            }
            return Ok(position);
        };
        self.stats.read_modify_writes += 1;
        let page_bytes = self.page_bytes;
        let into = match self.queue.bytes_mut(position) {
            Some(page) => ReadTarget::Bytes(page),
            None => ReadTarget::Len(page_bytes),
        };
        match self.device.physical_read(sink, &[block], 0, into, Cause::Merge) {
            Ok(read) => self.queue.wait_for(sink, read),
            Err(e) => {
                self.queue.pop();
                return Err(e);
            }
        }
        Ok(position)
    }

    /// Programs the request queue.
    pub(super) fn dispatch(&mut self, sink: &mut Sink) -> Result<()> {
        self.unrelated = 0;
        if self.queue.is_empty() {
            return Ok(());
        }
        let dispatched = self.program_queue(sink);
        if dispatched.is_err() && !self.buffers() {
            // None of its writes was acknowledged.
            self.queue.reset_unit();
        }
        dispatched
    }

    fn program_queue(&mut self, sink: &mut Sink) -> Result<()> {
        if count_u32(self.waiting.len() + self.queue.len()) > self.waiting_limit && !self.waiting.is_empty() {
            self.save_map(sink)?;
        }
        let done = match self.try_program(sink) {
            // Blocks that wait for a save of the map take space.
            Err(Error::NoSpace { .. }) if !self.waiting.is_empty() => {
                self.save_map(sink)?;
                self.try_program(sink)?
            }
            done => done?,
        };
        for i in 0..self.queue.len() {
            let lpn = Lpn(self.queue.lpns()[i]);
            self.replace(lpn, self.placed.get(i).copied());
        }
        self.take_migrations();
        self.release_replaced(sink);
        if !self.buffers() {
            // A request waits for the queues that hold its pages, and for no others.
            sink.ack(done);
        }
        self.queue.programmed(done);
        Ok(())
    }

    /// Gives the request queue to the device.
    fn try_program(&mut self, sink: &mut Sink) -> Result<Tok> {
        self.placed.clear();
        let len = count_u32(self.queue.len()) * self.page_bytes;
        let data = match self.queue.unit().get(..to_usize(len)) {
            Some(bytes) => WriteData::Bytes(bytes),
            None => WriteData::Len(len),
        };
        let (owners, after) = (self.queue.lpns(), self.queue.read);
        let written = self.device.nameless_write(sink, owners, data, Cause::Host, after, &mut self.placed);
        if written.is_err() {
            self.take_migrations();
        }
        written
    }

    /// Gives a page a new address, and notes the block that it replaces.
    pub(super) fn replace(&mut self, lpn: Lpn, at: Option<frit_core::PhysicalAddress>) {
        if let Some(old) = self.map.get(lpn) {
            let block = OwnedBlock { owner: lpn.0, at: old };
            match self.waiting_limit > 0 && !self.map.is_unsaved(lpn) {
                true => drop(self.waiting.insert(old.page, block)),
                false => self.replaced.push(block),
            }
        }
        self.map.set(lpn, at);
    }
}
