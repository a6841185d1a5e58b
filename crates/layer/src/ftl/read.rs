//! Reads.

use super::layer::{Ftl, unit_start};
use super::page_map::PageEntry;
use crate::spans::{PageSpan, page_spans};
use frit_core::{BlockId, Cause, Error, Lpn, MediumKind, Ppn, ReadTarget, Result, Sink, Tok};

impl Ftl {
    /// Reads a range of bytes. Pages of one program unit that follow each other are read with one
    /// command.
    pub(super) fn read_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        self.read_cause = cause;
        let mut run = std::mem::take(&mut self.run);
        run.clear();
        let mut result = Ok(());
        for span in page_spans(at, into.len(), self.page_bytes) {
            result = self.read_page(sink, span, into.part(span.from, span.len), &mut run);
            if result.is_err() {
                break;
            }
        }
        let read = self.read_run(sink, &mut run);
        self.run = run;
        result.and(read)
    }

    /// Copies part of a page out, and adds the page to the run of pages that one command reads.
    fn read_page(
        &mut self,
        sink: &mut Sink,
        span: PageSpan,
        mut into: ReadTarget<'_>,
        run: &mut Vec<Ppn>,
    ) -> Result<()> {
        let translated = self.translate_read(sink, span.lpn, run)?;
        let entry = self.map.get(span.lpn);
        if entry.is_buffered()
            && let Some(position) = self.find_buffered(span.lpn)
        {
            if let (Some(into), Some(page)) = (into.bytes(), self.buffer.bytes(position)) {
                into.copy_from_slice(&page[span.offset as usize..(span.offset + span.len) as usize]);
            }
            sink.ack(self.buffer.readable(position, span.offset, span.len));
            self.stats.buffer_reads += 1;
            return Ok(());
        }
        self.check_readable(span.lpn)?;
        let Some(ppn) = entry.ppn() else {
            into.zero();
            sink.ack(translated);
            return Ok(());
        };
        self.translated = translated;
        if run
            .first()
            .is_some_and(|&first| unit_start(first, self.unit_pages) != unit_start(ppn, self.unit_pages))
        {
            self.read_run(sink, run)?;
        }
        run.push(ppn);
        self.read_bytes = span.len;
        self.copy_out(span, entry, ppn, into)
    }

    /// Finds the entry of a page as the mapping scheme does. The pages that were found before are read
    /// first, because garbage collection may move them. A failure concerns writes only: the map has all
    /// entries.
    fn translate_read(&mut self, sink: &mut Sink, lpn: Lpn, run: &mut Vec<Ppn>) -> Result<Tok> {
        if self.translation_pages == 0 {
            return Ok(Tok::default());
        }
        self.read_run(sink, run)?;
        match self.translate(sink, lpn, false) {
            Err(e @ Error::Corrupt { .. }) => Err(e),
            Err(e) => {
                self.refuse_after(e);
                Ok(Tok::default())
            }
            translated => translated,
        }
    }

    /// Copies part of a page out of the store.
    fn copy_out(&mut self, span: PageSpan, entry: PageEntry, ppn: Ppn, into: ReadTarget<'_>) -> Result<()> {
        self.flash.copy_out(ppn, span.offset, into, entry.tag())
    }

    /// Emits the read of a run of pages of one program unit.
    fn read_run(&mut self, sink: &mut Sink, run: &mut Vec<Ppn>) -> Result<()> {
        let Some(&ppn) = run.first() else { return Ok(()) };
        let pages = run.len() as u32;
        run.clear();
        let first = unit_start(ppn, self.unit_pages);
        if self.config.partial_transfers && self.unit_pages == 1 {
            let read = self.flash.read_part(sink, ppn, self.read_bytes, self.read_cause, self.translated)?;
            sink.ack(read);
            return Ok(());
        }
        if !self.reads.is_there() {
            let read = self.flash.read_unit(sink, ppn, pages, self.read_cause, self.translated)?;
            sink.ack(read);
            return Ok(());
        }
        let erases = self.flash.nand().erases(self.block_of(ppn));
        if let Some(filled) = self.reads.hit(first, erases) {
            // The read that brings the page into the buffer may not have ended.
            sink.ack(filled);
            return Ok(());
        }
        let valid = (0..self.unit_pages).filter(|&i| self.flash.lpn_of(first.plus(i)).is_some()).count();
        let rest = pages < self.unit_pages;
        if rest && valid as f64 >= self.config.read_fill * f64::from(self.unit_pages) {
            // The host gets its pages before the rest of the NAND page is in the buffer.
            let causes = (self.read_cause, Cause::Migrate);
            let (read, filled) = self.flash.read_unit_in_parts(sink, ppn, pages, causes)?;
            sink.ack(read);
            self.reads.add(first, erases, filled);
            return Ok(());
        }
        let read = self.flash.read_unit(sink, ppn, pages, self.read_cause, self.translated)?;
        sink.ack(read);
        if !rest {
            self.reads.add(first, erases, read);
        }
        Ok(())
    }

    pub(super) fn block_of(&self, ppn: Ppn) -> BlockId {
        self.flash.nand().geometry().block_of(ppn)
    }

    /// Checks that the contents of a page are known.
    ///
    /// # Errors
    /// `Corrupt` if the page is lost, or if a newer version of it may be.
    pub(super) fn check_readable(&self, lpn: Lpn) -> Result<()> {
        let entry = self.map.get(lpn);
        if entry.is_buffered() {
            return Ok(());
        }
        match entry.ppn() {
            None => {
                self.map.check_not_lost(lpn)?;
                self.flash
                    .health
                    .check_not_missing(|| (0, format!("logical page {} was never written", lpn.0)))
            }
            Some(ppn) if self.stale_below > 0 => self.check_not_stale(lpn, ppn),
            Some(_) => Ok(()),
        }
    }

    /// Checks that no damaged record can be that of a newer version of a page.
    #[cold]
    fn check_not_stale(&self, lpn: Lpn, ppn: Ppn) -> Result<()> {
        match self.flash.nand().spare(ppn)? {
            Some(spare) if spare.seq >= self.stale_below => Ok(()),
            _ => Err(Error::Corrupt {
                medium: MediumKind::Nand,
                at: u64::from(ppn.0),
                what: format!(
                    "logical page {} may have a newer version whose record is damaged; frit check --repair \
                     --older accepts this one",
                    lpn.0
                ),
            }),
        }
    }
}
