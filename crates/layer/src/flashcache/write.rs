//! Writes and discards.

use super::config::{FlashcacheMode, SetPolicy};
use super::layer::Flashcache;
use super::sets::flag;
use crate::payload::buffered;
use crate::planted::FlashcacheBug;
use crate::spans::{PageSpan, page_spans};
use crate::tokens::{JoinedToken, join_into};
use frit_core::convert::bounded_u32;
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, Cause, Result, Sink, Tok, WriteData};
use std::ops::Range;

/// Way of a part of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Path {
    /// To the slot of a dirty block: the disk must not lose the data that only the SSD has.
    Dirty(u32),
    /// To a slot, which becomes dirty.
    Cached,
    /// To the disk, and then to the SSD if `true`.
    Disk(bool),
}

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Flashcache<C, D> {
    /// Writes a range of bytes.
    pub(super) fn write_range(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        let mut done = JoinedToken::new();
        let parts = self.write_parts(sink, at, data, &mut done);
        let written = done.get(sink);
        sink.ack(written);
        // Blocks became dirty also if a later part failed: a flush has to find their metadata.
        if !self.changed.is_empty() {
            // The acknowledgement waits for the metadata, as in Flashcache.
            let noted = self.write_changed(sink, written).inspect_err(|_| self.intact = false)?;
            sink.ack(noted);
        }
        parts?;
        self.clean_above_threshold(sink, at, data.len())
    }

    /// Writes the parts of a range. Adds the completions of those on the SSD to `done`, and the metadata
    /// blocks of those that became dirty to `changed`.
    fn write_parts(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        done: &mut JoinedToken,
    ) -> Result<()> {
        let skip = self.is_sequential(at, data.len());
        let start = sink.start();
        // Adjacent parts that go to the disk are one write.
        let (mut run, mut run_fills): (Range<u32>, bool) = (0..0, false);
        for span in page_spans(at, data.len(), self.layout.block_bytes) {
            let part = data.part(span.from, span.len);
            let fills = match self.path_of(span, skip) {
                Path::Dirty(slot) => {
                    let written = self.rewrite(sink, slot, span.offset, part, start)?;
                    done.add(sink, written);
                    None
                }
                Path::Cached => match self.write_dirty(sink, span.lpn.0, part, start)? {
                    Some(written) => {
                        done.add(sink, written);
                        None
                    }
                    // The set is full of dirty blocks.
                    None => Some(false),
                },
                Path::Disk(fills) => Some(fills),
            };
            if fills != Some(run_fills) || run.is_empty() {
                self.write_through(sink, at, data, &run, run_fills)?;
                run = span.from..span.from;
            }
            if let Some(fills) = fills {
                (run, run_fills) = (run.start..span.from + span.len, fills);
            } else {
                run = 0..0;
            }
        }
        self.write_through(sink, at, data, &run, run_fills)
    }

    fn path_of(&self, span: PageSpan, skip: bool) -> Path {
        let dirty = self.sets.find(span.lpn.0).filter(|&slot| self.sets.is(slot, flag::DIRTY));
        match dirty {
            Some(slot) if !is_planted(FlashcacheBug::DirtyBypassed) => Path::Dirty(slot),
            _ if skip || span.len < self.layout.block_bytes => Path::Disk(false),
            _ if self.config.mode == FlashcacheMode::WriteThrough => Path::Disk(true),
            _ => Path::Cached,
        }
    }

    /// Writes a part of a dirty block. The metadata stays as it is.
    fn rewrite(
        &mut self,
        sink: &mut Sink,
        slot: u32,
        offset: u32,
        data: WriteData<'_>,
        after: Tok,
    ) -> Result<Tok> {
        let written = self.write_slot(sink, slot, offset, data, Cause::Host, after)?;
        let whole = data.len() == self.layout.block_bytes;
        let damaged = if whole { flag::DAMAGED } else { 0 };
        self.sets.change(slot, 0, flag::WRITTEN | flag::FLUSHED | damaged);
        self.stats.rewritten += 1;
        if self.config.policy == SetPolicy::Lru {
            self.sets.make_newest(slot);
        }
        Ok(written)
    }

    /// Writes a whole block that is not dirty to a slot. Returns `None` if its set has no slot for it.
    fn write_dirty(
        &mut self,
        sink: &mut Sink,
        block: u32,
        data: WriteData<'_>,
        after: Tok,
    ) -> Result<Option<Tok>> {
        let found = match self.sets.find(block) {
            Some(slot) => Some(slot),
            None => self.free_slot(sink, self.sets.set_of(block))?,
        };
        let Some(slot) = found else { return Ok(None) };
        if self.sets.block(slot) != Some(block) {
            self.evict(slot);
        }
        let written = self.write_slot(sink, slot, 0, data, Cause::Host, after)?;
        self.sets.put(slot, block);
        self.sets.change(slot, flag::DIRTY | flag::FRESH, 0);
        self.note_fresh(slot);
        self.changed.push(self.layout.metadata_of(slot));
        self.stats.written += 1;
        Ok(Some(written))
    }

    /// Writes a part of a request to the disk, and to the SSD if `fills`. Blocks that are cached leave
    /// the cache before.
    fn write_through(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        part: &Range<u32>,
        fills: bool,
    ) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let (at, data) = (at + u64::from(part.start), data.part(part.start, part.end - part.start));
        self.evict_range(at, u64::from(data.len()));
        self.stats.direct_writes += u64::from(!fills);
        let after = self.disk_after(sink);
        let done = self.disk.write(sink, at, data, Cause::Host, after);
        let done = self.of_disk(done)?;
        sink.ack(done);
        join_into(sink, &mut self.disk_pending, done);
        self.direct_pending = true;
        if fills {
            let filled = self.put_clean(sink, at, data, Cause::Host, done)?;
            sink.ack(filled);
        }
        Ok(())
    }

    /// Removes the blocks that a range touches.
    fn evict_range(&mut self, at: u64, bytes: u64) {
        for block in self.block_of(at)..=self.block_of(at + bytes - 1) {
            if let Some(slot) = self.sets.find(block) {
                self.evict(slot);
            }
        }
    }

    /// Token after which the disk may change: no older version of a block is recovered from the SSD.
    fn disk_after(&mut self, sink: &mut Sink) -> Tok {
        let after = sink.join(self.ready, self.reuse_after);
        let start = sink.start();
        sink.join(after, start)
    }

    /// Makes a range read as zeros. Dirty blocks are overwritten on the SSD, and all others on the
    /// disk.
    pub(super) fn discard_range(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        let block_bytes = self.config.block;
        let mut run = at..at;
        let mut from = at;
        while from < at + bytes {
            let len = (block_bytes - from % block_bytes).min(at + bytes - from);
            let slot = self.sets.find(self.block_of(from));
            match slot.filter(|&slot| self.sets.is(slot, flag::DIRTY)) {
                Some(slot) => {
                    let zeros = self.new_buffer(bounded_u32(len));
                    let data = buffered(&zeros, bounded_u32(len));
                    let start = sink.start();
                    let written = self.rewrite(sink, slot, bounded_u32(from % block_bytes), data, start)?;
                    sink.ack(written);
                    self.zero_disk(sink, &run)?;
                    run = from + len..from + len;
                }
                None => run.end = from + len,
            }
            from += len;
        }
        self.zero_disk(sink, &run)
    }

    fn zero_disk(&mut self, sink: &mut Sink, range: &Range<u64>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let bytes = range.end - range.start;
        self.evict_range(range.start, bytes);
        let after = self.disk_after(sink);
        let zeroed = self.disk.zero(sink, range.start, bytes, Cause::Host, after);
        let zeroed = self.of_disk(zeroed)?;
        sink.ack(zeroed);
        join_into(sink, &mut self.disk_pending, zeroed);
        self.direct_pending = true;
        Ok(())
    }
}
