//! Reads: blocks that are present come from the device, all others from the disk.

use super::layer::Flashtier;
use super::tunnel::DeviceRead;
use crate::planted::FlashtierBug;
use crate::spans::{PageSpan, page_spans};
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, CacheDevice, Cause, Error, ReadTarget, Result, Sink, Tok, WriteData};
use std::ops::Range;

impl<C: CacheDevice, D: BlockDevice + ?Sized> Flashtier<C, D> {
    /// Reads a range of bytes. Misses that follow each other are read with one request to the disk.
    pub(super) fn read_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        let mut missing: Range<u32> = 0..0;
        let mut known = sink.start();
        for span in page_spans(at, into.len(), self.page) {
            let part = into.part(span.from, span.len);
            match self.read_device(sink, span.lpn.0, span.offset, part, cause)? {
                DeviceRead::Hit(read) => {
                    sink.ack(read);
                    self.stats.read_hits += 1;
                }
                DeviceRead::Miss(miss) => {
                    self.stats.read_misses += 1;
                    if missing.end != span.from || missing.is_empty() {
                        self.read_disk(sink, at, &mut into, (&missing, cause), known)?;
                        (missing.start, known) = (span.from, miss);
                    }
                    missing.end = span.from + span.len;
                    known = sink.join(known, miss);
                }
            }
        }
        self.read_disk(sink, at, &mut into, (&missing, cause), known)
    }

    /// Reads a part of a request from the disk after `after`, and caches its whole blocks.
    fn read_disk(
        &mut self,
        sink: &mut Sink,
        at: u64,
        into: &mut ReadTarget<'_>,
        (part, cause): (&Range<u32>, Cause),
        after: Tok,
    ) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let (from, len) = (at + u64::from(part.start), part.end - part.start);
        let read = self.disk.read(sink, from, into.part(part.start, len), cause, after)?;
        sink.ack(read);
        // A query reads each byte once.
        if cause == Cause::Isp || !self.may_cache_reads() {
            return Ok(());
        }
        let target = into.part(part.start, len);
        let data = match &target {
            ReadTarget::Bytes(b) => WriteData::Bytes(b),
            ReadTarget::Len(n) => WriteData::Len(*n),
        };
        let page = u64::from(self.page);
        let (first, last) = (from.div_ceil(page) * page, (from + u64::from(len)) / page * page);
        if first >= last {
            return Ok(());
        }
        let data = data.part((first - from) as u32, (last - first) as u32);
        // The read is complete. The device refuses writes if it fails.
        let after = sink.join(read, self.flushed);
        match self.ssc.write_clean(sink, self.block_of(first), data, Cause::Migrate, after) {
            Ok(_) | Err(Error::NoSpace { .. } | Error::ReadOnly { .. }) => Ok(()),
            Err(e) => Err(self.refuse_after(e)),
        }
    }

    /// Returns `true` if blocks that are read may be cached. A clean block that survives a crash must not
    /// be newer than what the disk durably has.
    fn may_cache_reads(&self) -> bool {
        let volatile = self.config.keeps_clean() && self.unflushed.is_some();
        self.config.read_caching
            && self.health.refusal().is_none()
            && (!volatile || is_planted(FlashtierBug::VolatileCached))
    }

    /// Reads the block of a span into the block buffer, from the device or from the disk. Returns the
    /// token of the read.
    pub(super) fn load_block(&mut self, sink: &mut Sink, span: PageSpan) -> Result<Tok> {
        let mut buffer = std::mem::take(&mut self.block);
        let read = self.load_into(sink, span.lpn.0, &mut buffer);
        self.block = buffer;
        read
    }

    fn load_into(&mut self, sink: &mut Sink, block: u32, buffer: &mut [u8]) -> Result<Tok> {
        let page = self.page;
        let into = if buffer.is_empty() { ReadTarget::Len(page) } else { ReadTarget::Bytes(buffer) };
        let known = match self.read_device(sink, block, 0, into, Cause::Merge)? {
            DeviceRead::Hit(read) => return Ok(read),
            DeviceRead::Miss(known) => known,
        };
        let into = if buffer.is_empty() { ReadTarget::Len(page) } else { ReadTarget::Bytes(buffer) };
        self.disk.read(sink, self.byte_of(block), into, Cause::Merge, known)
    }
}
