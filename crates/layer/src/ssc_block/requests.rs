//! Block requests as commands of the device.

use super::layer::SscBlock;
use crate::payload::{buffered, zeros_on};
use crate::spans::{PageSpan, divide_range, page_spans, whole_page_spans};
use frit_core::convert::{bounded_u32, to_usize};
use frit_core::{CacheDevice, CacheRead, Cause, Error, ReadTarget, Result, Sink, Tok, WriteData};

impl<C: CacheDevice> SscBlock<C> {
    /// Reads a range of bytes. Blocks that are not present read as zeros.
    pub(super) fn read_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        for span in page_spans(at, into.len(), self.page) {
            let start = sink.start();
            let part = into.part(span.from, span.len);
            match self.ssc.read(sink, span.lpn.0, span.offset, part, cause, start)? {
                CacheRead::Hit(read) => sink.ack(read),
                CacheRead::Miss => {
                    if let Some(bytes) = into.part(span.from, span.len).bytes() {
                        bytes.fill(0);
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes a range of bytes as dirty blocks. Runs of whole blocks are written together.
    pub(super) fn write_range(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        for part in whole_page_spans(at, data.len(), self.page) {
            let bytes = data.part(part.from, part.len);
            if part.offset == 0 && part.len.is_multiple_of(self.page) {
                self.put_dirty(sink, part.lpn.0, bytes, self.ready)?;
            } else {
                self.write_part(sink, part, bytes)?;
            }
        }
        Ok(())
    }

    /// Writes part of a block.
    fn write_part(&mut self, sink: &mut Sink, part: PageSpan, data: WriteData<'_>) -> Result<()> {
        let mut block = std::mem::take(&mut self.block);
        let written = self.read_whole(sink, part.lpn.0, &mut block).and_then(|read| {
            if let Some(bytes) = data.bytes().filter(|_| !block.is_empty()) {
                let from = to_usize(part.offset);
                block[from..from + bytes.len()].copy_from_slice(bytes);
            }
            let after = sink.join(self.ready, read);
            self.put_dirty(sink, part.lpn.0, buffered(&block, self.page), after)
        });
        self.block = block;
        written
    }

    /// Reads a whole block, or zeros. `into` is empty if the media hold no bytes.
    fn read_whole(&mut self, sink: &mut Sink, block: u32, into: &mut [u8]) -> Result<Tok> {
        let start = sink.start();
        let target = if into.is_empty() { ReadTarget::Len(self.page) } else { ReadTarget::Bytes(&mut *into) };
        match self.ssc.read(sink, block, 0, target, Cause::Merge, start)? {
            CacheRead::Hit(read) => Ok(read),
            CacheRead::Miss => {
                into.fill(0);
                Ok(start)
            }
        }
    }

    /// Writes dirty blocks, and acknowledges with the device.
    pub(super) fn put_dirty(
        &mut self,
        sink: &mut Sink,
        first: u32,
        data: WriteData<'_>,
        after: Tok,
    ) -> Result<()> {
        // A request can be larger than what the device takes at once.
        let run = self.page * (self.ssc.dirty_limit() / 4).clamp(1, 1 << 16) as u32;
        let mut from = 0;
        while from < data.len() {
            let len = run.min(data.len() - from);
            let block = first + from / self.page;
            match self.ssc.write_dirty(sink, block, data.part(from, len), Cause::Host, after) {
                Ok(done) => sink.ack(done),
                Err(Error::NoSpace { .. }) if self.config.address_bytes == 0 => {
                    let why = "the device has less space than addresses: too many blocks went bad";
                    self.health.refuse(why.into());
                    return Err(Error::ReadOnly { why: why.into() });
                }
                Err(e) => return Err(e),
            }
            from += len;
        }
        Ok(())
    }

    /// Makes a range read as zeros: whole blocks are evicted, and parts of blocks that are present are
    /// overwritten.
    pub(super) fn discard_range(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        let page = u64::from(self.page);
        let divided = divide_range(at, bytes, page);
        for part in divided.parts {
            self.zero_part(sink, part.start, bounded_u32(part.end - part.start))?;
        }
        if divided.whole.is_empty() {
            return Ok(());
        }
        let blocks = bounded_u32(divided.whole.start / page)..bounded_u32(divided.whole.end / page);
        let evicted = self.ssc.evict(sink, blocks, self.ready)?;
        sink.ack(evicted);
        Ok(())
    }

    /// Overwrites part of a block with zeros, if it is present. The device may have dropped a block in
    /// memory only: an eviction makes that durable.
    fn zero_part(&mut self, sink: &mut Sink, at: u64, bytes: u32) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let block = bounded_u32(at / u64::from(self.page));
        if self.ssc.state(block).is_none() {
            let evicted = self.ssc.evict(sink, block..block + 1, self.ready)?;
            sink.ack(evicted);
            return Ok(());
        }
        self.write_range(sink, at, zeros_on(self.ssc.holds_bytes(), bytes))
    }
}
