//! Reads: from the buffer, the log, or the home location of a page.

use super::layer::Ntl;
use super::mapping::MappingPolicy;
use crate::numbers::Place;
use crate::spans::page_spans_by_shift;
use frit_core::Lpn;
use frit_core::convert::to_usize;
use frit_core::{Cause, Error, MediumKind, ReadTarget, Result, Sink, Tok};

impl Ntl {
    pub(super) fn read_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        let shift = self.page_bytes().trailing_zeros();
        for span in page_spans_by_shift(at, into.len(), shift) {
            let part = into.part(span.from, span.len);
            let tok = self.read_page(sink, span.lpn, span.offset, part, cause)?;
            sink.ack(tok);
        }
        Ok(())
    }

    /// Returns the location of the newest version of a live page, unless it is in the buffer.
    #[inline]
    pub(super) fn place_of(&self, lpn: Lpn) -> Option<Place> {
        if self.is_logged(lpn)
            && let Some(slot) = self.log.as_ref().and_then(|log| log.slot_of(lpn))
        {
            return Some(self.space.layout.slot_place(slot));
        }
        self.mapping.home(lpn)
    }

    /// Reads a part of a page, from byte `first` on.
    #[inline]
    pub(super) fn read_page(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        first: u32,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<Tok> {
        let start = sink.start();
        if !self.live.has(lpn) {
            if !self.used.has(lpn) {
                self.check_not_missing(lpn)?;
            }
            into.zero();
            return Ok(start);
        }
        let len = into.len();
        if !self.buffer.is_empty()
            && let Some(i) = self.buffer.find(lpn)
        {
            if let (Some(to), Some(from)) = (into.bytes(), self.buffer.bytes(i)) {
                to.copy_from_slice(&from[to_usize(first)..to_usize(first + len)]);
            }
            return Ok(start);
        }
        let Some(place) = self.place_of(lpn) else {
            let what = format!("page {lpn} has no place: this is a bug of the mapping");
            return Err(Error::Corrupt { medium: MediumKind::Pcm, at: u64::from(lpn), what });
        };
        if !self.space.protected || !self.stores_bytes() {
            return self.space.read(sink, place, first, into, cause, start);
        }
        let tok = self.space.read(sink, place, first, ReadTarget::Len(len), cause, start)?;
        if let Some(to) = into.bytes() {
            self.read_checked(place, lpn, first, to)?;
        }
        Ok(tok)
    }

    /// Reads a part of a page and verifies the whole page. A mismatch is read a second time,
    /// because a bit may have flipped during the transfer.
    fn read_checked(&mut self, place: Place, lpn: Lpn, first: u32, to: &mut [u8]) -> Result<()> {
        let mut outcome = Ok(());
        for _ in 0..2 {
            self.space.load(place, &mut self.copy)?;
            outcome = self.space.verify(place, lpn, &self.copy);
            if outcome.is_ok() {
                to.copy_from_slice(&self.copy[to_usize(first)..to_usize(first) + to.len()]);
                break;
            }
        }
        outcome
    }
}
