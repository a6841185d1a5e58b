//! Discards: pages that read as zeros afterwards.

use super::layer::Ntl;
use crate::payload::zeros_on;
use crate::planted::NtlBug;
use crate::spans::{PageSpan, page_spans_by_shift};
use frit_core::Lpn;
use frit_core::convert::bounded_u32;
use frit_core::planted::is_planted;
use frit_core::{Result, Sink};

impl Ntl {
    pub(super) fn discard_range(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        self.health.writable()?;
        let page = u64::from(self.page_bytes());
        self.logs = self.config.logs(1);
        let (first, end) = (at.div_ceil(page), (at + bytes) / page);
        if first > end {
            // The range lies inside one page.
            self.zero_part(sink, at, bytes)?;
        } else {
            self.zero_part(sink, at, (first * page).min(at + bytes) - at)?;
            let mut next = Lpn::of_u64(first);
            while let Some(lpn) = self.live.next(next).filter(|&lpn| u64::from(lpn) < end) {
                self.drop_page(sink, lpn)?;
                next = lpn.plus(1);
            }
            self.zero_part(sink, end * page, (at + bytes).saturating_sub(end * page))?;
        }
        self.commit(sink);
        if self.space.protected {
            // A page may have been discarded earlier by a request that is not durable yet, so this
            // request waits for it.
            sink.ack(self.space.fenced());
        }
        self.rounds.end_request(&mut self.stats);
        Ok(())
    }

    /// Writes zeros to parts of pages that hold data. The range is smaller than a page.
    fn zero_part(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        let shift = self.page_bytes().trailing_zeros();
        let spans = page_spans_by_shift(at, bounded_u32(bytes), shift);
        let parts: Vec<PageSpan> = spans.filter(|s| self.live.has(s.lpn)).collect();
        for span in parts {
            self.write_part(sink, span, zeros_on(self.stores_bytes(), span.len))?;
        }
        Ok(())
    }

    fn drop_page(&mut self, sink: &mut Sink, lpn: Lpn) -> Result<()> {
        if let Some(i) = self.buffer.find(lpn) {
            self.buffer.remove(i);
        }
        self.live.clear(lpn);
        if self.space.protected {
            // The discard is noted in the newest record of the page. If that record is in the log,
            // the record at home is updated when the log is merged.
            let after = self.space.fenced();
            if !is_planted(NtlBug::DiscardNotNoted)
                && let Some(place) = self.place_of(lpn)
            {
                self.space.end_record(sink, place, after)?;
            }
            return Ok(());
        }
        if self.is_logged(lpn) {
            self.forget_logged(lpn);
        }
        Ok(())
    }
}
