//! Writes of a page to NAND. NAND takes whole pages only, so a partial page is read, merged and
//! written whole.

use super::Hfsl;
use super::entry::PageLocation;
use crate::flash::NandStream;
use crate::flash::alloc::PageWrite;
use crate::planted::HfslBug;
use crate::spans::PageSpan;
use frit_core::planted::is_planted;
use frit_core::{Cause, Lpn, ReadTarget, Result, Sink, Tok, WriteData};

impl Hfsl {
    /// Writes all or part of a page to NAND.
    #[inline]
    pub(crate) fn write_to_nand(
        &mut self,
        sink: &mut Sink,
        span: PageSpan,
        data: WriteData<'_>,
        stream: NandStream,
    ) -> Result<()> {
        let done = if span.len == self.page_bytes {
            let after = sink.start();
            self.program_page(sink, span.lpn, data, stream, Cause::Host, after)?
        } else {
            self.merge_to_nand(sink, span, data, stream)?
        };
        sink.ack(done);
        Ok(())
    }

    /// Writes part of a page: reads the rest from either medium and programs the merged page.
    fn merge_to_nand(
        &mut self,
        sink: &mut Sink,
        span: PageSpan,
        data: WriteData<'_>,
        stream: NandStream,
    ) -> Result<Tok> {
        if matches!(self.map.get(span.lpn).place(), PageLocation::Nand(_)) {
            self.stats.flash_updates += 1;
        }
        let mut page = std::mem::take(&mut self.scratch);
        let done = self.read_whole(sink, span.lpn, &mut page, Cause::Merge).and_then(|read| {
            overlay(&mut page, span.offset, data);
            let whole = self.source(&page);
            self.program_page(sink, span.lpn, whole, stream, Cause::Host, read)
        });
        self.scratch = page;
        done
    }

    /// Source for an assembled page: its bytes, or only its length if the media hold no bytes.
    #[inline]
    pub(crate) fn source<'a>(&self, page: &'a [u8]) -> WriteData<'a> {
        if self.stores_bytes() { WriteData::Bytes(page) } else { WriteData::Len(self.page_bytes) }
    }

    /// Reads the current contents of a whole page; zeros where nothing was written.
    pub(crate) fn read_whole(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        page: &mut [u8],
        cause: Cause,
    ) -> Result<Tok> {
        let into =
            if self.stores_bytes() { ReadTarget::Bytes(page) } else { ReadTarget::Len(self.page_bytes) };
        self.read_part(sink, PageSpan::whole(lpn, self.page_bytes), into, cause)
    }

    /// Programs a whole page, maps it, and releases its old location.
    #[inline]
    pub(crate) fn program_page(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        data: WriteData<'_>,
        stream: NandStream,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let unit = self.unit_for(sink, lpn);
        let page = PageWrite { lpn, unit, stream, data, cause, after };
        let (ppn, programmed) = self.flash.write(sink, &mut self.map, page)?;
        // Garbage collection may have moved the old page in `flash.write`, so the entry is read
        // again.
        let old = self.map.get(lpn);
        let entry = old.moved(PageLocation::Nand(ppn), 0, self.flash.last_seq());
        let done = self.map.set(sink, lpn, entry, programmed)?;
        self.flash.record_named(sink, done);
        if matches!(old.place(), PageLocation::Pcm(_)) && cause == Cause::Host {
            self.stats.to_nand += 1;
        }
        // The old location may be reused only after the new entry is durable (`done`).
        self.release_location(sink, old.place(), done);
        // Garbage collection runs after the page is mapped: a victim could contain the page just
        // written.
        self.flash.collect_on_write(sink, &mut self.map, unit, 1)?;
        Ok(if is_planted(HfslBug::AckBeforeMap) { programmed } else { done })
    }
}

/// Copies new bytes over old ones, if the source has bytes.
pub(crate) fn overlay(page: &mut [u8], offset: u32, data: WriteData<'_>) {
    if let Some(bytes) = data.bytes() {
        page[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
    }
}
