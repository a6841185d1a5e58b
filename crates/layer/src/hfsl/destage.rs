//! Pages that leave PCM: along with writes while little is free, ahead in idle time, and before a
//! write only when nothing is free.

use super::Hfsl;
use super::buffer::BufferPolicy;
use super::entry::{Entry, Place};
use super::heat::HeatPolicy;
use super::layer::Span;
use super::pcm::{NONE, Region};
use super::read::sub_spans;
use crate::Token;
use crate::flash::Stream;
use frit_core::{Cause, Error, Lpn, Progress, Result, Sink};
use frit_media::Store;

/// How many hot pages are passed over for a cold one when storage in PCM runs short.
const SECOND_CHANCES: u32 = 8;

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// Slots that a write of part of a page to PCM will take.
    fn slots_for(&self, span: Span) -> u32 {
        let Some(pcm) = &self.map.pcm else { return 0 };
        match self.map.get(span.lpn).place() {
            Place::Pcm(desc) if !self.map.each() => {
                let subs = &pcm.desc[desc as usize].subs;
                sub_spans(span.offset, span.len, pcm.sub_bytes).filter(|p| subs[p.sub] == NONE).count() as u32
            }
            _ => self.slots_for_all(&[span]),
        }
    }

    /// Makes room for part of a page in a region; `false` when PCM cannot take it.
    #[inline]
    pub(crate) fn make_pcm_room<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        region: Region,
    ) -> Result<bool> {
        // Asked anew each time: the page that leaves may be this one.
        self.make_room_with(sink, |hfsl| (hfsl.slots_for(span), 1), region)
    }

    /// Makes room for parts of pages that are written before any of them is mapped.
    pub(crate) fn make_room_for<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        spans: &[Span],
        region: Region,
    ) -> Result<bool> {
        self.make_room_with(sink, |hfsl| (hfsl.slots_for_all(spans), spans.len()), region)
    }

    #[inline]
    fn make_room_with<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        need: impl Fn(&Self) -> (u32, usize),
        region: Region,
    ) -> Result<bool> {
        loop {
            let (n, descs) = need(self);
            match &self.map.pcm {
                None => return Ok(false),
                Some(_) if n == 0 => return Ok(true),
                Some(pcm) if pcm.has_room(region, n, descs) => return Ok(true),
                Some(pcm) if pcm.regions[region as usize].quota < n.max(pcm.subs) => return Ok(false),
                Some(pcm) if pcm.holds_back() => {
                    self.flash.outlive(sink, &mut self.map)?;
                    continue;
                }
                Some(_) => {}
            }
            let Some(from) = self.region_to_shrink(region, n) else { return Ok(false) };
            self.stats.destage_waits += 1;
            self.destage_from(sink, from)?;
        }
    }

    /// The region that has to give up a page so that `region` can grow.
    fn region_to_shrink(&self, region: Region, n: u32) -> Option<Region> {
        let pcm = self.map.pcm.as_ref()?;
        let own = &pcm.regions[region as usize];
        if own.pages > 0 && own.used + n > own.quota {
            return Some(region);
        }
        let over = |r: &&Region| {
            let s = &pcm.regions[**r as usize];
            s.pages > 0 && s.used > s.quota
        };
        let fullest = |r: &&Region| pcm.regions[**r as usize].pages;
        let some = Region::ALL.iter().find(over).or_else(|| Region::ALL.iter().max_by_key(fullest)).copied();
        some.filter(|r| pcm.regions[*r as usize].pages > 0)
    }

    /// Whether a region holds more than it should: above its quota, or close to it.
    fn wants_out(&self, region: Region, margin: f64) -> bool {
        let Some(pcm) = &self.map.pcm else { return false };
        let r = &pcm.regions[region as usize];
        let spare = (f64::from(r.quota) * margin) as u32;
        r.pages > 0 && r.used + spare > r.quota
    }

    /// Pays for a page that came into PCM: at most one (run of) page leaves while little is free.
    #[inline]
    pub(crate) fn pace_pcm<S: Sink<Tok = T>>(&mut self, sink: &mut S, region: Region) -> Result<()> {
        let other = if region == Region::Level { Region::Cache } else { Region::Level };
        if self.wants_out(region, self.config.pcm_low) {
            self.destage_from(sink, region)?;
        } else if self.wants_out(other, 0.0) {
            self.destage_from(sink, other)?;
        }
        Ok(())
    }

    /// Moves the coldest page of a region to NAND, with its neighbours when it is a cache.
    fn destage_from<S: Sink<Tok = T>>(&mut self, sink: &mut S, region: Region) -> Result<T> {
        let Some(desc) = self.coldest(region) else { return Ok(sink.start()) };
        let Some(pcm) = &self.map.pcm else { return Ok(sink.start()) };
        let lpn = Lpn(pcm.desc[desc as usize].lpn);
        let run = match region {
            Region::Cache => pcm.regions[region as usize].buffer.followers(lpn, self.config.destage_run - 1),
            Region::Level => Vec::new(),
        };
        let mut done = self.destage(sink, lpn)?;
        for desc in run {
            let Some(pcm) = &self.map.pcm else { break };
            let lpn = Lpn(pcm.desc[desc as usize].lpn);
            // An earlier page of the run may have displaced this one.
            if self.map.get(lpn).place() == Place::Pcm(desc) {
                let next = self.destage(sink, lpn)?;
                done = sink.join(done, next);
            }
        }
        Ok(done)
    }

    /// The next page to leave a region: what the buffer says, but in storage hot pages stay.
    fn coldest(&mut self, region: Region) -> Option<u32> {
        let pcm = self.map.pcm.as_mut()?;
        let r = &mut pcm.regions[region as usize];
        for _ in 0..SECOND_CHANCES {
            let desc = r.buffer.victim()?;
            let lpn = Lpn(pcm.desc[desc as usize].lpn);
            let counter = Entry(self.map.table[lpn.idx()]).counter();
            if region == Region::Cache || !self.heat_on || !self.heat.is_hot(lpn, counter) {
                return Some(desc);
            }
            r.buffer.touched(desc);
        }
        r.buffer.victim()
    }

    /// Moves one page from PCM to NAND. Its slots are free once the program is done.
    fn destage<S: Sink<Tok = T>>(&mut self, sink: &mut S, lpn: Lpn) -> Result<T> {
        self.stats.destaged += 1;
        let mut page = std::mem::take(&mut self.scratch);
        let moved = self.fetch(sink, lpn, &mut page, Cause::Destage).and_then(|read| {
            let whole = self.source(&page);
            // Not the cold stream: what was in PCM is younger than what the filter calls cold, and mixed
            // with that spoils its blocks (bundled mail recording: 1.08 × the baseline's programs, not 0.86 ×).
            let stream = Stream::Host;
            self.program_page(sink, lpn, whole, stream, Cause::Destage, read)
        });
        self.scratch = page;
        match moved {
            // It cannot be given back, and does not hold up the others.
            Err(e @ Error::Corrupt { .. }) if matches!(self.map.get(lpn).place(), Place::Pcm(_)) => {
                let old = self.map.get(lpn).place();
                self.map.lose(lpn, &e);
                let start = sink.start();
                self.leave(sink, old, start);
                Ok(start)
            }
            moved => moved,
        }
    }

    /// Idle time: frees PCM, then cleans NAND.
    pub(crate) fn background<S: Sink<Tok = T>>(&mut self, sink: &mut S, budget: u32) -> Result<Progress<T>> {
        if self.flash.writable().is_err() {
            return Ok(Progress::Idle);
        }
        if self.usage.formatted {
            // Behind a halt, background work is a use as well.
            self.begin_use(sink)?;
        }
        for region in Region::ALL {
            if self.wants_out(region, self.config.pcm_high) {
                return Ok(Progress::Busy(self.destage_from(sink, region)?));
            }
        }
        self.flash.step(sink, &mut self.map, budget)
    }
}
