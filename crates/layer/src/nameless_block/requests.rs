//! Block requests as virtual reads and writes.

use super::layer::NamelessBlock;
use crate::payload::{buffered, zeros_on};
use crate::spans::{PageSpan, divide_range, page_spans, whole_page_spans};
use frit_core::convert::{bounded_u32, to_usize};
use frit_core::{Cause, NamelessDevice, ReadTarget, Result, Sink, Tok, WriteData};

impl<D: NamelessDevice> NamelessBlock<D> {
    /// Reads a range of bytes.
    pub(super) fn read_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        for span in page_spans(at, into.len(), self.block_bytes) {
            let part = into.part(span.from, span.len);
            let read = self.device.virtual_read(sink, span.lpn.0, span.offset, part, cause)?;
            sink.ack(read);
        }
        Ok(())
    }

    /// Writes a range of bytes. Whole blocks that follow each other are written in one request queue.
    pub(super) fn write_range(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        for part in whole_page_spans(at, data.len(), self.block_bytes) {
            let bytes = data.part(part.from, part.len);
            if part.offset == 0 && part.len.is_multiple_of(self.block_bytes) {
                self.write_blocks(sink, part.lpn.0, bytes)?;
            } else {
                self.write_part(sink, part, bytes)?;
            }
        }
        Ok(())
    }

    fn write_blocks(&mut self, sink: &mut Sink, first: u32, data: WriteData<'_>) -> Result<()> {
        let queue = self.device.queue_blocks() * self.block_bytes;
        let mut from = 0;
        while from < data.len() {
            let len = queue.min(data.len() - from);
            let block = first + from / self.block_bytes;
            self.numbers.clear();
            self.numbers.extend(block..block + len / self.block_bytes);
            let after = sink.start();
            let part = data.part(from, len);
            let done = self.device.virtual_write(sink, &self.numbers, part, Cause::Host, after)?;
            sink.ack(done);
            from += len;
        }
        Ok(())
    }

    /// Writes part of a block.
    fn write_part(&mut self, sink: &mut Sink, part: PageSpan, data: WriteData<'_>) -> Result<()> {
        let mut block = std::mem::take(&mut self.block);
        let read = self.read_whole(sink, part.lpn.0, &mut block);
        let written = read.and_then(|after| {
            if let Some(bytes) = data.bytes().filter(|_| !block.is_empty()) {
                let from = to_usize(part.offset);
                block[from..from + bytes.len()].copy_from_slice(bytes);
            }
            let data = buffered(&block, self.block_bytes);
            self.device.virtual_write(sink, &[part.lpn.0], data, Cause::Host, after)
        });
        self.block = block;
        sink.ack(written?);
        Ok(())
    }

    /// Reads a whole block. `into` is empty if the media hold no bytes.
    fn read_whole(&mut self, sink: &mut Sink, block: u32, into: &mut [u8]) -> Result<Tok> {
        let target =
            if into.is_empty() { ReadTarget::Len(self.block_bytes) } else { ReadTarget::Bytes(into) };
        self.device.virtual_read(sink, block, 0, target, Cause::Merge)
    }

    /// Makes a range read as zeros, durably after the next flush: whole blocks are forgotten, and parts of
    /// blocks that have contents are overwritten.
    pub(super) fn discard_range(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        let block = u64::from(self.block_bytes);
        let divided = divide_range(at, bytes, block);
        for part in divided.parts {
            self.zero_part(sink, part.start, bounded_u32(part.end - part.start))?;
        }
        for number in bounded_u32(divided.whole.start / block)..bounded_u32(divided.whole.end / block) {
            if !self.device.virtual_written(number) {
                continue;
            }
            if self.device.flushes_atomically() {
                self.device.virtual_discard(sink, number)?;
            } else {
                let zeros = zeros_on(self.device.holds_bytes(), self.block_bytes);
                self.write_blocks(sink, number, zeros)?;
            }
        }
        Ok(())
    }

    fn zero_part(&mut self, sink: &mut Sink, at: u64, bytes: u32) -> Result<()> {
        let number = bounded_u32(at / u64::from(self.block_bytes));
        if bytes == 0 || !self.device.virtual_written(number) {
            return Ok(());
        }
        self.write_range(sink, at, zeros_on(self.device.holds_bytes(), bytes))
    }
}
