//! Choice of the medium of a write.

use super::entry::{MapEntry, PageLocation};
use super::heat::HeatPolicy;
use super::pcm::PcmRegion;
use super::placement::{PlacementPolicy, WriteView};
use super::{FusionMethod, Hfsl, SswCompare};
use crate::flash::NandStream;
use crate::planted::HfslBug;
use crate::spans::PageSpan;
use frit_core::planted::is_planted;
use frit_core::{Hints, Lpn, Result, Sink, Tok, WriteData};

/// Properties of the whole host request; placement uses these, not those of the part in one page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostRequest {
    pub(crate) bytes: u64,
    pub(crate) hints: Hints,
}

impl Hfsl {
    /// Writes the part of a request that falls on one page.
    #[inline]
    pub(crate) fn write_page(
        &mut self,
        sink: &mut Sink,
        request: HostRequest,
        span: PageSpan,
        data: WriteData<'_>,
    ) -> Result<()> {
        self.flash.writable()?;
        let hot = self.note_write(span.lpn, request.hints);
        self.invalidate_copy(span.lpn);
        match self.route(request, hot) {
            Some(region) => {
                if self.reserve_pcm(sink, span, region)? {
                    self.write_to_pcm(sink, span, data, region)?;
                    return self.destage_on_write(sink, region);
                }
                self.stats.overflowed += 1;
                self.write_to_nand(sink, span, data, self.stream(hot))
            }
            None => self.write_to_nand(sink, span, data, self.stream(hot)),
        }
    }

    /// Counts a write. Returns `true` if the page is hot.
    #[inline]
    pub(crate) fn note_write(&mut self, lpn: Lpn, hints: Hints) -> bool {
        let entry = &mut self.map.table[lpn.idx()];
        let with_write_counted = MapEntry(*entry).with_write_counted();
        *entry = with_write_counted.0;
        let counter = with_write_counted.counter();
        let judged = self.heat_on && self.heat.record_write(lpn, counter);
        (judged || hints.has(Hints::HOT)) && !hints.has(Hints::COLD)
    }

    /// NAND stream of a page. Cold data has its own stream, which takes worn blocks (section 2.6.1
    /// b).
    #[inline]
    pub(crate) fn stream(&self, hot: bool) -> NandStream {
        if self.heat_on && !hot { NandStream::Cold } else { NandStream::Host }
    }

    /// Returns the region of PCM that takes the write; `None` for NAND.
    #[inline]
    pub(crate) fn route(&self, request: HostRequest, hot: bool) -> Option<PcmRegion> {
        let wants_pcm = || {
            self.placement.to_pcm(&WriteView {
                bytes: request.bytes,
                ssw: self.config.ssw,
                inclusive: self.config.ssw_compare == SswCompare::Le,
                metadata: request.hints.has(Hints::METADATA),
                hot,
                cold: request.hints.has(Hints::COLD),
            })
        };
        match self.config.fusion_method {
            FusionMethod::None => None,
            FusionMethod::Cache => Some(PcmRegion::Cache),
            FusionMethod::SameLevel => wants_pcm().then_some(PcmRegion::Storage),
            FusionMethod::Both if wants_pcm() => Some(PcmRegion::Storage),
            FusionMethod::Both => hot.then_some(PcmRegion::Cache),
        }
    }

    /// Drops the DRAM copy of a page, which becomes stale.
    #[inline]
    pub(crate) fn invalidate_copy(&mut self, lpn: Lpn) {
        if let Some(dram) = &mut self.dram {
            dram.invalidate(lpn);
        }
    }

    pub(crate) fn is_mapped(&self, lpn: Lpn) -> bool {
        self.map.get(lpn).place() != PageLocation::Unmapped || self.map.check_not_lost(lpn).is_err()
    }

    /// Returns `true` if the entry of an earlier discard of the page may not be durable yet. A
    /// second discard then writes the entry again, since its acknowledgement depends on it. With
    /// the null sink an entry is durable as soon as it is written.
    pub(crate) fn discard_pending(&self, lpn: Lpn) -> bool {
        size_of::<Tok>() > 0 && self.map.each() && self.map.get(lpn).tag() != 0
    }

    /// Discards a page: it reads as zeros, and its space is free after the change is durable.
    pub(crate) fn unmap(&mut self, sink: &mut Sink, lpn: Lpn) -> Result<()> {
        let old = self.map.get(lpn);
        if !self.is_mapped(lpn) && !self.discard_pending(lpn) {
            return Ok(());
        }
        self.invalidate_copy(lpn);
        let seq = self.flash.next_seq();
        let after = sink.start();
        let gone = old.moved(PageLocation::Unmapped, 0, seq);
        if is_planted(HfslBug::DropTrim) {
            self.map.note(lpn, gone);
            self.release_location(sink, old.place(), after);
            return Ok(());
        }
        let done = self.map.set(sink, lpn, gone, after)?;
        self.release_location(sink, old.place(), done);
        if !is_planted(HfslBug::TrimNotAcked) {
            sink.ack(done);
        }
        Ok(())
    }

    /// Releases the old location of a page once `done` completes.
    #[inline]
    pub(crate) fn release_location(&mut self, sink: &mut Sink, old: PageLocation, done: Tok) {
        match old {
            PageLocation::Unmapped => {}
            PageLocation::Nand(ppn) => self.flash.invalidate_after(sink, ppn, done),
            PageLocation::Pcm(desc) => {
                if let Some(pcm) = &mut self.map.pcm {
                    pcm.release(desc, 0, done);
                }
            }
        }
    }
}
