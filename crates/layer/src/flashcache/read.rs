//! Reads: cached blocks come from the SSD, all others from the disk.

use super::config::SetPolicy;
use super::layer::Flashcache;
use super::sets::flag;
use crate::spans::{PageSpan, page_spans};
use frit_core::{BlockDevice, Cause, Error, MediumKind, ReadTarget, Result, Sink, Tok, WriteData};
use std::ops::Range;

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Flashcache<C, D> {
    /// Reads a range of bytes. Misses that follow each other are read with one request to the disk.
    pub(super) fn read_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        // A query reads each byte once.
        let fill = cause != Cause::Isp && self.config.read_caching && !self.is_sequential(at, into.len());
        let mut missing: Range<u32> = 0..0;
        for span in page_spans(at, into.len(), self.layout.block_bytes) {
            let part = into.part(span.from, span.len);
            if self.read_cached(sink, span, part, cause)? {
                continue;
            }
            self.check_known(span.lpn.0)?;
            self.stats.read_misses += 1;
            if missing.end != span.from || missing.is_empty() {
                self.read_disk(sink, at, &mut into, &missing, (fill, cause))?;
                missing.start = span.from;
            }
            missing.end = span.from + span.len;
        }
        self.read_disk(sink, at, &mut into, &missing, (fill, cause))
    }

    /// Reads a part of a block from the SSD. Returns `false` if the block is not cached, or is clean
    /// and damaged.
    fn read_cached(
        &mut self,
        sink: &mut Sink,
        span: PageSpan,
        into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<bool> {
        let (block, offset) = (span.lpn.0, span.offset);
        let Some(slot) = self.sets.find(block) else { return Ok(false) };
        if self.ssd_failed {
            if !self.sets.is(slot, flag::DIRTY) {
                return Ok(false);
            }
            let what = format!("block {block} is on an SSD that failed to make its writes durable");
            return Err(Error::Medium { what });
        }
        let (from, start) = (self.layout.slot_at(slot) + u64::from(offset), sink.start());
        match self.ssd.read(sink, from, into, cause, start) {
            Ok(read) => sink.ack(read),
            Err(Error::Corrupt { .. } | Error::Medium { .. }) if !self.sets.is(slot, flag::DIRTY) => {
                self.stats.damaged_clean += 1;
                self.sets.remove(slot);
                return Ok(false);
            }
            Err(e) => return Err(e),
        }
        self.stats.read_hits += 1;
        if self.config.policy == SetPolicy::Lru && cause != Cause::Isp {
            self.sets.make_newest(slot);
        }
        Ok(true)
    }

    /// Returns an error if the metadata of a block that is not cached may be lost.
    pub(super) fn check_known(&self, block: u32) -> Result<()> {
        let known = self.health.check_not_missing(|| (0, format!("block {block} is not cached")));
        known.map_err(|e| match e {
            Error::Corrupt { at, what, .. } => Error::Corrupt { medium: MediumKind::Disk, at, what },
            other => other,
        })
    }

    /// Reads a part of a request from the disk, and caches its whole blocks.
    fn read_disk(
        &mut self,
        sink: &mut Sink,
        at: u64,
        into: &mut ReadTarget<'_>,
        part: &Range<u32>,
        (fill, cause): (bool, Cause),
    ) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let (from, len, start) = (at + u64::from(part.start), part.end - part.start, sink.start());
        let read = self.disk.read(sink, from, into.part(part.start, len), cause, start)?;
        sink.ack(read);
        if !fill || self.health.refusal().is_some() {
            return Ok(());
        }
        let target = into.part(part.start, len);
        let data = match &target {
            ReadTarget::Bytes(b) => WriteData::Bytes(b),
            ReadTarget::Len(n) => WriteData::Len(*n),
        };
        // The read is complete. The cache refuses writes if it fails.
        let filled =
            self.begin_use(sink).and_then(|()| self.put_clean(sink, from, data, Cause::Migrate, read));
        match filled {
            Ok(_) | Err(Error::NoSpace { .. } | Error::ReadOnly { .. }) => Ok(()),
            Err(e) => {
                self.refuse_after(e);
                Ok(())
            }
        }
    }

    /// Writes the whole blocks of a range, which the disk has, to the SSD. Returns the completion.
    pub(super) fn put_clean(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let mut done = after;
        for span in page_spans(at, data.len(), self.layout.block_bytes) {
            if span.len < self.layout.block_bytes {
                continue;
            }
            let block = span.lpn.0;
            let found = self.sets.find(block).or_else(|| self.sets.victim(self.sets.set_of(block)));
            let Some(slot) = found.filter(|&slot| !self.sets.is(slot, flag::DIRTY)) else { continue };
            // If the write fails, the slot has no block.
            self.evict(slot);
            let written = self.write_slot(sink, slot, 0, data.part(span.from, span.len), cause, after)?;
            self.sets.put(slot, block);
            self.stats.filled += 1;
            done = sink.join(done, written);
        }
        Ok(done)
    }

    /// Removes the block of a slot that is not dirty.
    pub(super) fn evict(&mut self, slot: u32) {
        if self.sets.block(slot).is_some() {
            self.stats.evicted += 1;
            self.sets.remove(slot);
        }
    }

    /// Returns `true` if a request belongs to a sequential stream that is not cached.
    pub(super) fn is_sequential(&mut self, at: u64, len: u32) -> bool {
        let limit = self.config.skip_sequential;
        limit > 0 && self.streams.write(at, u64::from(len)) > limit
    }
}
