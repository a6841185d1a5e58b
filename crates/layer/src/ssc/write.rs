//! Writes and flushes.

use super::config::SscFlush;
use super::layer::Ssc;
use super::map::{BlockMap, Entry};
use super::records::Change;
use crate::payload::buffered;
use crate::planted::SscBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, Lpn, PAGE_NONE, Result, Sink, Tok, WriteData};

impl Ssc {
    /// Writes whole blocks, from `first` on.
    pub(super) fn write_blocks(
        &mut self,
        sink: &mut Sink,
        first: u32,
        data: WriteData<'_>,
        dirty: bool,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.health.writable()?;
        let page = self.sizes.page_bytes;
        let count = data.len() / page;
        if dirty {
            self.check_dirty_space(first, count)?;
        }
        let mut done = after;
        for i in 0..count {
            let programmed =
                self.buffer_block(sink, first + i, data.part(i * page, page), dirty, cause, after)?;
            if let Some(programmed) = programmed {
                done = sink.join(done, programmed);
            }
            if !self.config.is_synchronous() {
                let ready = self.buffer.ready();
                done = sink.join(after, ready);
            }
        }
        if self.config.is_synchronous()
            && let Some(programmed) = self.program_buffer(sink, cause)?
        {
            done = sink.join(done, programmed);
        }
        if is_planted(SscBug::AckBeforeProgram) { Ok(sink.start()) } else { Ok(done) }
    }

    /// Checks that there is space for dirty blocks.
    fn check_dirty_space(&self, first: u32, count: u32) -> Result<()> {
        if self.dirty + u64::from(count) <= self.space_for_dirty() {
            return Ok(());
        }
        let more = (first..first + count).filter(|&b| !self.map.get(b).is_dirty()).count() as u64;
        if self.dirty + more <= self.space_for_dirty() {
            return Ok(());
        }
        let what = format!("the cache has {} dirty blocks; clean or evict some", self.dirty);
        Err(Error::NoSpace { what })
    }

    /// Adds a block to the write buffer. Returns the token of a program that it caused.
    fn buffer_block(
        &mut self,
        sink: &mut Sink,
        block: u32,
        data: WriteData<'_>,
        dirty: bool,
        cause: Cause,
        after: Tok,
    ) -> Result<Option<Tok>> {
        let mut done = None;
        if self.buffer.is_full() {
            // An earlier program failed for want of space.
            done = self.program_buffer(sink, cause)?;
        }
        let entry = self.map.get(block);
        let waiting = if entry.is_buffered() { self.buffer.find(Lpn(block)) } else { None };
        let position = waiting.unwrap_or_else(|| self.buffer.push(Lpn(block)));
        if let (Some(to), Some(from)) = (self.buffer.bytes_mut(position), data.bytes()) {
            to.copy_from_slice(from);
        }
        self.buffer.wait_for(sink, after);
        self.set_entry(block, entry.buffered(dirty));
        self.stats.merged_in_buffer += u64::from(waiting.is_some());
        if self.buffer.is_full() {
            done = match self.program_buffer(sink, cause)? {
                Some(programmed) => Some(done.map_or(programmed, |d| sink.join(d, programmed))),
                None => done,
            };
        }
        Ok(done)
    }

    /// Programs the blocks of the write buffer, with padding if they do not fill a program unit.
    /// Returns the token of the program, if there was one.
    pub(super) fn program_buffer(&mut self, sink: &mut Sink, cause: Cause) -> Result<Option<Tok>> {
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let unit = match self.unit_with_room(sink) {
            Ok(unit) => unit,
            Err(e) => {
                self.drop_unacknowledged();
                return Err(e);
            }
        };
        self.buffer.pad();
        let blocks: Vec<u32> = self.buffer.lpns().to_vec();
        self.stats.padded += blocks.iter().filter(|&&b| b == PAGE_NONE).count() as u64;
        let dirty: Vec<bool> = blocks.iter().map(|&b| b != PAGE_NONE && self.map.get(b).is_dirty()).collect();
        let size = self.sizes.unit_bytes();
        let bytes = if self.stores_bytes() { self.buffer.unit().to_vec() } else { Vec::new() };
        let (data, after) = (buffered(&bytes, size), self.buffer.read);
        let programmed = self.program_data(sink, unit, &blocks, |i| dirty[i], data, cause, after);
        let (first, spares, done) = match programmed {
            Ok(programmed) => programmed,
            Err(e) => {
                self.buffer.unpad();
                self.drop_unacknowledged();
                return Err(e);
            }
        };
        for (i, &block) in (0..).zip(&blocks) {
            if block == PAGE_NONE {
                continue;
            }
            let (ppn, stamp) = (first.plus(i), spares[to_usize(i)].seq);
            // An eviction for this program may have dropped the older version in NAND.
            self.set_entry(block, Entry::in_nand(ppn, stamp));
            self.log.add(stamp >> 1, Change::Written { block, ppn, dirty: stamp & 1 == 1 });
        }
        self.stats.written += u64::from(count_u32(blocks.len()));
        self.note_programmed(sink, done);
        self.buffer.programmed(done);
        self.log_as_due(sink, unit)?;
        self.checkpoint_as_due(sink)?;
        Ok(Some(done))
    }

    /// Unit for the next program, which has room. If the one whose turn it is has none, another one.
    fn unit_with_room(&mut self, sink: &mut Sink) -> Result<u32> {
        let first = self.next_unit(sink);
        let n = self.nand.geometry().units();
        let mut failed = None;
        for unit in (first..n).chain(0..first) {
            match self.make_room(sink, unit) {
                Ok(()) => return Ok(unit),
                Err(e @ Error::NoSpace { .. }) => failed = failed.or(Some(e)),
                Err(e) => return Err(e),
            }
        }
        Err(failed.unwrap_or_else(|| Error::NoSpace { what: "the NAND has no unit".into() }))
    }

    /// Makes sure that a log page which no data precedes finds an open block, or a free one beyond the
    /// reserve. Otherwise flushes and evictions alone would use up the reserve.
    pub(super) fn make_room_for_log(&mut self, sink: &mut Sink) -> Result<()> {
        if (0..count_u32(self.units.len())).any(|unit| self.has_room(unit)) {
            return Ok(());
        }
        match self.unit_with_room(sink) {
            Ok(_) | Err(Error::NoSpace { .. }) => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Drops the blocks of the write buffer after a failure, if none of them was acknowledged.
    fn drop_unacknowledged(&mut self) {
        if !self.config.is_synchronous() {
            return;
        }
        for i in 0..self.buffer.len() {
            let block = self.buffer.lpns()[i];
            if block != PAGE_NONE {
                self.set_entry(block, self.map.get(block).unbuffered());
            }
        }
        self.buffer.reset_unit();
    }

    /// Makes all acknowledged accesses durable.
    pub(super) fn flush_all(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        if is_planted(SscBug::FlushIgnored) {
            return Ok(after);
        }
        self.health.writable()?;
        self.program_buffer(sink, Cause::Host)?;
        match self.config.flush {
            // The spare areas and the log have everything already. A second flush, if damage has to be
            // told from an interrupted program, states in the log what is complete.
            _ if self.config.is_synchronous() && !self.has_copies() => {}
            SscFlush::Checkpoint if !self.config.is_synchronous() && !self.log.pending.is_empty() => {
                self.write_checkpoint(sink, false)?;
            }
            _ => self.flush_log(sink)?,
        }
        self.sync()?;
        self.flushed = self.seq;
        let done = sink.join(after, self.log.written);
        Ok(sink.join(done, self.programmed))
    }

    /// Writes all pending changes, and, with media in files, up to where everything is synced.
    fn flush_log(&mut self, sink: &mut Sink) -> Result<()> {
        self.make_room_for_log(sink)?;
        let states_sync = self.config.over_files && self.has_copies() && self.seq > self.flushed;
        if states_sync {
            self.sync()?;
            if self.log.pending.is_empty() {
                return self.write_mark(sink);
            }
        }
        self.write_log(sink)
    }

    /// Makes everything durable, and states a halt in a checkpoint.
    pub(super) fn shut_down(&mut self, sink: &mut Sink, after: Tok) -> Result<()> {
        self.health.writable()?;
        self.log.after = sink.join(self.log.after, after);
        self.program_buffer(sink, Cause::Host)?;
        self.write_checkpoint(sink, true)?;
        self.sync()?;
        sink.ack(self.log.written);
        Ok(())
    }
}
