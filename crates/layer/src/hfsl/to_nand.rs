//! Writing a page to NAND: whole pages only, so part of a page is read, merged and written whole.

use super::Hfsl;
use super::entry::Place;
use super::layer::Span;
use crate::Token;
use crate::flash::Stream;
use crate::flash::alloc::PageWrite;
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Lpn, Result, Sink, Source, Target};
use frit_media::Store;

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// Writes part of a page, or all of it, to NAND.
    #[inline]
    pub(crate) fn write_to_nand<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        data: Source<'_>,
        stream: Stream,
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

    /// Part of a page: the rest is read from wherever it lies.
    fn merge_to_nand<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        data: Source<'_>,
        stream: Stream,
    ) -> Result<T> {
        if matches!(self.map.get(span.lpn).place(), Place::Nand(_)) {
            self.stats.flash_updates += 1;
        }
        let mut page = std::mem::take(&mut self.scratch);
        let done = self.fetch(sink, span.lpn, &mut page, Cause::Merge).and_then(|read| {
            overlay(&mut page, span.offset, data);
            let whole = self.source(&page);
            self.program_page(sink, span.lpn, whole, stream, Cause::Host, read)
        });
        self.scratch = page;
        done
    }

    /// A page that is put together: its bytes, or their number.
    #[inline]
    pub(crate) fn source<'a>(&self, page: &'a [u8]) -> Source<'a> {
        if N::HOLDS { Source::Bytes(page) } else { Source::Len(self.page_bytes) }
    }

    /// Reads a whole page as it is now, zeros where nothing was written.
    pub(crate) fn fetch<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        lpn: Lpn,
        page: &mut [u8],
        cause: Cause,
    ) -> Result<T> {
        let into = if N::HOLDS { Target::Bytes(page) } else { Target::Len(self.page_bytes) };
        let whole = Span { lpn, offset: 0, len: self.page_bytes, from: 0 };
        self.gather(sink, whole, into, cause)
    }

    /// Programs a whole page, maps it, and gives up its old place.
    #[inline]
    pub(crate) fn program_page<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        lpn: Lpn,
        data: Source<'_>,
        stream: Stream,
        cause: Cause,
        after: T,
    ) -> Result<T> {
        let unit = self.unit_for(sink, lpn);
        let page = PageWrite { lpn, unit, stream, data, cause, after };
        let (ppn, programmed) = self.flash.write(sink, &mut self.map, page)?;
        // Cleaning may have moved the old page meanwhile: ask the map again.
        let old = self.map.get(lpn);
        let entry = old.moved(Place::Nand(ppn), 0, self.flash.last_seq());
        let done = self.map.set(sink, lpn, entry, programmed)?;
        self.flash.note_named(sink, done);
        if matches!(old.place(), Place::Pcm(_)) && cause == Cause::Host {
            self.stats.to_nand += 1;
        }
        self.leave(sink, old.place(), done);
        self.flash.pace(sink, &mut self.map, unit)?;
        Ok(if is(Bug::AckBeforeMap) { programmed } else { done })
    }
}

/// Puts new bytes over old ones, when there are any.
pub(crate) fn overlay(page: &mut [u8], offset: u32, data: Source<'_>) {
    if let Some(bytes) = data.bytes() {
        page[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
    }
}
