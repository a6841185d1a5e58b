//! Reads of a page from either medium.

use super::Hfsl;
use super::entry::PageLocation;
use super::pcm::NONE;
use crate::spans::{PageSpan, parts, split};
use crate::tokens::JoinedToken;
use frit_core::{Cause, ReadTarget, Result, Sink, Tok, WriteData};

impl Hfsl {
    /// Reads part of a page for the host, or for the processing engine.
    #[inline]
    pub(crate) fn read_page(
        &mut self,
        sink: &mut Sink,
        span: PageSpan,
        into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        // Pages in PCM bypass the buffer: it keeps pages of NAND only.
        // A query of the processing engine reads each byte once.
        let buffered = self.dram.is_some()
            && cause != Cause::Isp
            && matches!(self.map.get(span.lpn).place(), PageLocation::Nand(_));
        let done = if buffered {
            self.read_buffered(sink, span, into)?
        } else {
            self.read_part(sink, span, into, cause)?
        };
        sink.ack(done);
        Ok(())
    }

    /// Reads a page in NAND through the DRAM buffer.
    fn read_buffered(&mut self, sink: &mut Sink, span: PageSpan, mut into: ReadTarget<'_>) -> Result<Tok> {
        let Some(dram) = &mut self.dram else { return self.read_part(sink, span, into, Cause::Host) };
        if let Some(done) = dram.read(sink, span.lpn, span.offset, into.part(0, span.len))? {
            return Ok(done);
        }
        let mut page = std::mem::take(&mut self.scratch);
        let read = self.read_whole(sink, span.lpn, &mut page, Cause::Host).and_then(|read| {
            if let Some(bytes) = into.bytes() {
                bytes.copy_from_slice(&page[span.offset as usize..(span.offset + span.len) as usize]);
            }
            let whole =
                if self.stores_bytes() { WriteData::Bytes(&page) } else { WriteData::Len(self.page_bytes) };
            match &mut self.dram {
                Some(dram) => dram.insert_copy(sink, span.lpn, whole, read).map(|()| read),
                None => Ok(read),
            }
        });
        self.scratch = page;
        read
    }

    /// Reads part of a page from either medium, with the given cause.
    pub(crate) fn read_part(
        &mut self,
        sink: &mut Sink,
        span: PageSpan,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<Tok> {
        match self.map.get(span.lpn).place() {
            PageLocation::Unmapped => {
                self.map.check_not_lost(span.lpn)?;
                into.zero();
                Ok(sink.start())
            }
            PageLocation::Nand(ppn) => {
                let tag = self.map.get(span.lpn).tag();
                self.flash.read(sink, ppn, span.offset, into, tag, cause)
            }
            PageLocation::Pcm(desc) => self.read_from_pcm(sink, desc, span, into, cause),
        }
    }

    fn read_from_pcm(
        &mut self,
        sink: &mut Sink,
        desc: u32,
        span: PageSpan,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<Tok> {
        let mut all = JoinedToken::new();
        let Some(pcm) = &mut self.map.pcm else { return Ok(sink.start()) };
        let subs = pcm.desc[desc as usize].subs;
        for part in sub_spans(span.offset, span.len, pcm.layout.sub_bytes) {
            let mut piece = into.part(part.from, part.len);
            match subs[part.sub] {
                NONE => piece.zero(),
                slot => {
                    let at = pcm.slot_at(slot) + u64::from(part.offset);
                    let after = sink.start();
                    let done = pcm.medium.read(sink, at, piece.part(0, part.len), cause, after)?;
                    if let Some(bytes) = piece.bytes() {
                        pcm.verify(span.lpn.0, part.sub, slot, bytes)?;
                    }
                    all.add(sink, done);
                }
            }
        }
        Ok(all.get(sink))
    }
}

/// Part of one sub-page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubSpan {
    pub(crate) sub: usize,
    /// Offset from the start of the sub-page, in bytes.
    pub(crate) offset: u32,
    pub(crate) len: u32,
    /// Offset from the start of the span, in bytes.
    pub(crate) from: u32,
}

/// Divides part of a page into parts of sub-pages.
#[inline]
pub(crate) fn sub_spans(offset: u32, len: u32, sub_bytes: u32) -> impl Iterator<Item = SubSpan> {
    let parts = parts(u64::from(offset), len, sub_bytes, move |byte| split(byte, u64::from(sub_bytes)));
    parts.map(|p| SubSpan { sub: p.index as usize, offset: p.offset, len: p.len, from: p.from })
}
