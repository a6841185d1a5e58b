//! Reads.

use super::layer::Zns;
use super::log::{expected, log_spare, zone_spare};
use super::zone::NO_BLOCK;
use crate::spans::{PageSpan, page_spans};
use frit_core::convert::to_usize;
use frit_core::{BlockId, Cause, Error, MediumKind, Ppn, ReadTarget, Result, Sink};
use frit_media::Spare;

/// Location of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PagePlace {
    /// Behind the write pointer: it reads as zeros.
    Unwritten,
    /// In the write buffer of its zone.
    Buffered,
    /// In NAND, with its spare area.
    Nand(Ppn, Spare),
    /// Nowhere: it is lost.
    Lost,
}

impl Zns {
    /// Location of a logical page.
    pub(super) fn find(&self, lpn: u32) -> PagePlace {
        let (number, page) = (lpn / self.sizes.zone_pages, lpn % self.sizes.zone_pages);
        let zone = &self.zones[to_usize(number)];
        if page >= zone.written {
            return PagePlace::Unwritten;
        }
        if page < zone.programmed {
            let place = self.sizes.place(page);
            let block = zone.blocks[place.stripe].block;
            if block == NO_BLOCK || place.page >= self.nand.next_page(BlockId(block)) {
                return PagePlace::Lost;
            }
            let ppn = self.nand.geometry().ppn(BlockId(block), place.page);
            return PagePlace::Nand(ppn, zone_spare(lpn, zone.epoch));
        }
        if zone.buffer.is_some() {
            return PagePlace::Buffered;
        }
        match zone.saved_at(page) {
            Some(ppn) => PagePlace::Nand(ppn, log_spare(lpn, zone.epoch)),
            None => PagePlace::Lost,
        }
    }

    /// Reads a range of bytes. Pages of one program unit are read with one command.
    pub(super) fn read_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        let mut run: Vec<(PageSpan, Ppn, Spare)> = Vec::new();
        for span in page_spans(at, into.len(), self.sizes.page_bytes) {
            match self.find(span.lpn.0) {
                PagePlace::Unwritten => {
                    let page = || (u64::from(span.lpn.0), format!("page {} is not written", span.lpn.0));
                    self.health.check_not_missing(page)?;
                    into.part(span.from, span.len).zero();
                }
                PagePlace::Buffered => self.read_buffered(span, into.part(span.from, span.len)),
                PagePlace::Nand(ppn, spare) => {
                    let unit = |p: Ppn| p.0 / self.sizes.unit_pages;
                    if run.last().is_some_and(|&(_, last, _)| last.plus(1) != ppn || unit(last) != unit(ppn))
                    {
                        self.read_run(sink, &run, &mut into, cause)?;
                        run.clear();
                    }
                    run.push((span, ppn, spare));
                }
                PagePlace::Lost => return Err(lost(span.lpn.0)),
            }
        }
        self.read_run(sink, &run, &mut into, cause)
    }

    /// Reads pages of one program unit.
    fn read_run(
        &mut self,
        sink: &mut Sink,
        run: &[(PageSpan, Ppn, Spare)],
        into: &mut ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        let Some(&(_, first, _)) = run.first() else { return Ok(()) };
        let pages = frit_core::convert::count_u32(run.len());
        let read = self.nand.read_unit(sink, first, pages, cause, self.in_use)?;
        sink.ack(read);
        for &(span, ppn, spare) in run {
            self.nand.copy_out(ppn, span.offset, into.part(span.from, span.len), Some(expected(spare)))?;
        }
        Ok(())
    }

    /// Reads a page of a write buffer.
    fn read_buffered(&self, span: PageSpan, mut into: ReadTarget<'_>) {
        let (number, page) = (span.lpn.0 / self.sizes.zone_pages, span.lpn.0 % self.sizes.zone_pages);
        let zone = &self.zones[to_usize(number)];
        let Some(into) = into.bytes() else { return };
        let bytes = zone.buffer.as_ref().map_or(&[][..], |buffer| &buffer.bytes);
        let first = to_usize((page - zone.programmed) * self.sizes.page_bytes + span.offset);
        match bytes.get(first..first + into.len()) {
            Some(bytes) => into.copy_from_slice(bytes),
            None => into.fill(0),
        }
    }
}

/// Error for a page that is lost.
#[cold]
pub(super) fn lost(lpn: u32) -> Error {
    let what = "its erase block, or its saved copy, was not found".to_owned();
    Error::Corrupt { medium: MediumKind::Nand, at: u64::from(lpn), what }
}
