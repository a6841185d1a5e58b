//! Destaging of pages from PCM to NAND: along with writes while little space is free, ahead in idle
//! time, and before a write only when no space is free.

use super::Hfsl;
use super::buffer::BufferPolicy;
use super::entry::{MapEntry, PageLocation};
use super::heat::HeatPolicy;
use super::pcm::{NONE, PcmRegion};
use super::read::sub_spans;
use crate::flash::NandStream;
use crate::spans::PageSpan;
use frit_core::{Cause, Error, Lpn, Progress, Result, Sink, Tok};

/// Share of PCM that is kept free of pages over files (`flush_map`), whatever `pcm_low` says (our
/// choice).
///
/// There, a released slot is held back until the next flush, and the layer flushes when all others
/// are used. So this share is the number of slots that are written between two such flushes. With
/// the 2 % of `pcm_low`, a volume of 4 MiB of PCM makes three syncs for every ten writes of 4 KiB.
const HELD_SHARE: f64 = 0.125;

impl Hfsl {
    /// Number of slots that a write of part of a page to PCM takes.
    fn slots_for(&self, span: PageSpan) -> u32 {
        let Some(pcm) = &self.map.pcm else { return 0 };
        match self.map.get(span.lpn).place() {
            PageLocation::Pcm(desc) if !self.map.each() => {
                let subs = &pcm.desc[desc as usize].subs;
                sub_spans(span.offset, span.len, pcm.layout.sub_bytes).filter(|p| subs[p.sub] == NONE).count()
                    as u32
            }
            _ => self.slots_for_all(&[span]),
        }
    }

    /// Reserves space in a region for part of a page. Returns `false` if PCM cannot take it.
    #[inline]
    pub(crate) fn reserve_pcm(&mut self, sink: &mut Sink, span: PageSpan, region: PcmRegion) -> Result<bool> {
        // The need is computed again after each destage: the destaged page may be this one.
        self.reserve_pcm_with(sink, |hfsl| (hfsl.slots_for(span), 1), region)
    }

    /// Reserves space for parts of pages that are written before any of them is mapped.
    pub(crate) fn reserve_pcm_for(
        &mut self,
        sink: &mut Sink,
        spans: &[PageSpan],
        region: PcmRegion,
    ) -> Result<bool> {
        self.reserve_pcm_with(sink, |hfsl| (hfsl.slots_for_all(spans), spans.len()), region)
    }

    #[inline]
    fn reserve_pcm_with(
        &mut self,
        sink: &mut Sink,
        need: impl Fn(&Self) -> (u32, usize),
        region: PcmRegion,
    ) -> Result<bool> {
        loop {
            let (n, descs) = need(self);
            match &self.map.pcm {
                None => return Ok(false),
                // An update in place takes no slot.
                Some(_) if n == 0 => return Ok(true),
                Some(pcm) if pcm.has_space(region, n, descs) => return Ok(true),
                // The region can never hold the page, however much is destaged.
                Some(pcm) if pcm.regions[region as usize].quota < n.max(pcm.layout.subs) => return Ok(false),
                // A flush frees what is held back; a destage would only add to it.
                Some(pcm) if pcm.has_held() => {
                    self.stats.space_flushes += 1;
                    self.flash.make_durable(sink, &mut self.map)?;
                    continue;
                }
                Some(_) => {}
            }
            let Some(from) = self.region_to_shrink(region, n) else { return Ok(false) };
            self.stats.destage_waits += 1;
            self.destage_victim(sink, from)?;
        }
    }

    /// Chooses the region that must give up a page so that `region` can grow.
    fn region_to_shrink(&self, region: PcmRegion, n: u32) -> Option<PcmRegion> {
        let pcm = self.map.pcm.as_ref()?;
        // The region itself if it would exceed its quota, else one above its quota, else the
        // fullest.
        let own = &pcm.regions[region as usize];
        if own.pages > 0 && own.used + n > own.quota {
            return Some(region);
        }
        let over = |r: &&PcmRegion| {
            let s = &pcm.regions[**r as usize];
            s.pages > 0 && s.used > s.quota
        };
        let fullest = |r: &&PcmRegion| pcm.regions[**r as usize].pages;
        let some =
            PcmRegion::ALL.iter().find(over).or_else(|| PcmRegion::ALL.iter().max_by_key(fullest)).copied();
        some.filter(|r| pcm.regions[*r as usize].pages > 0)
    }

    /// Returns `true` if a region is above its quota, or closer to it than the share `margin` of
    /// the quota.
    fn above_quota(&self, region: PcmRegion, margin: f64) -> bool {
        let Some(pcm) = &self.map.pcm else { return false };
        let r = &pcm.regions[region as usize];
        let spare = (f64::from(r.quota) * margin) as u32;
        r.pages > 0 && r.used + spare > r.quota
    }

    /// Returns the share of a region's quota that is to be free of pages: `share`, or what the
    /// slots need that are held back until the next flush.
    fn free_share(&self, share: f64) -> f64 {
        if self.config.flush_map { share.max(HELD_SHARE) } else { share }
    }

    /// Destages at most one page (or run of pages) in return for a page written to PCM, while
    /// little space is free. Over files it destages two while less than half of the free share is
    /// free: with one for one, PCM that was filled once would stay full.
    #[inline]
    pub(crate) fn destage_on_write(&mut self, sink: &mut Sink, region: PcmRegion) -> Result<()> {
        let other = if region == PcmRegion::Storage { PcmRegion::Cache } else { PcmRegion::Storage };
        if self.above_quota(region, self.free_share(self.config.pcm_low)) {
            self.destage_victim(sink, region)?;
            if self.config.flush_map && self.above_quota(region, HELD_SHARE / 2.0) {
                self.destage_victim(sink, region)?;
            }
        } else if self.above_quota(other, 0.0) {
            self.destage_victim(sink, other)?;
        }
        Ok(())
    }

    /// Destages the victim of a region; in a cache also the pages that follow it.
    fn destage_victim(&mut self, sink: &mut Sink, region: PcmRegion) -> Result<Tok> {
        let Some(desc) = self.choose_victim(region) else { return Ok(sink.start()) };
        let Some(pcm) = &self.map.pcm else { return Ok(sink.start()) };
        let lpn = Lpn(pcm.desc[desc as usize].lpn);
        let run = match region {
            PcmRegion::Cache => {
                pcm.regions[region as usize].buffer.followers(lpn, self.config.destage_run - 1)
            }
            PcmRegion::Storage => Vec::new(),
        };
        let mut done = self.destage(sink, lpn)?;
        for desc in run {
            let Some(pcm) = &self.map.pcm else { break };
            let lpn = Lpn(pcm.desc[desc as usize].lpn);
            // The destage of an earlier page of the run may have moved this one.
            if self.map.get(lpn).place() == PageLocation::Pcm(desc) {
                let next = self.destage(sink, lpn)?;
                done = sink.join(done, next);
            }
        }
        Ok(done)
    }

    /// Chooses the next victim of a region by its buffer policy. In the storage region no hot page
    /// is chosen while another is cold. The search passes a hot page once in a window of the
    /// detector, and again if it is written again, so it passes O(1) pages per write on average.
    fn choose_victim(&mut self, region: PcmRegion) -> Option<u32> {
        let pcm = self.map.pcm.as_mut()?;
        let r = &mut pcm.regions[region as usize];
        if region == PcmRegion::Cache || !self.heat_on {
            return r.buffer.victim();
        }
        if r.cooldowns != self.heat.cooldowns() {
            r.cooldowns = self.heat.cooldowns();
            r.buffer.cooled();
        }
        let (descs, table, heat) = (&pcm.desc, &self.map.table, &self.heat);
        r.buffer.coldest(&mut |desc| {
            let lpn = Lpn(descs[desc as usize].lpn);
            heat.is_hot(lpn, MapEntry(table[lpn.idx()]).counter())
        })
    }

    /// Moves one page from PCM to NAND. Its slots are free after the program is complete.
    fn destage(&mut self, sink: &mut Sink, lpn: Lpn) -> Result<Tok> {
        self.stats.destaged += 1;
        let mut page = std::mem::take(&mut self.scratch);
        let moved = self.read_whole(sink, lpn, &mut page, Cause::Destage).and_then(|read| {
            let whole = self.source(&page);
            // Not the cold stream: pages from PCM are younger than the pages that the filter calls
            // cold, and mixing them spoils the blocks of cold data (bundled mail recording: 1.08 ×
            // the baseline's programs instead of 0.86 ×).
            let stream = NandStream::Host;
            self.program_page(sink, lpn, whole, stream, Cause::Destage, read)
        });
        self.scratch = page;
        match moved {
            // The page is unreadable. It is marked as lost, so that it does not block the destaging
            // of others.
            Err(e @ Error::Corrupt { .. }) if matches!(self.map.get(lpn).place(), PageLocation::Pcm(_)) => {
                let old = self.map.get(lpn).place();
                self.map.mark_lost(lpn, &e);
                let start = sink.start();
                self.release_location(sink, old, start);
                Ok(start)
            }
            moved => moved,
        }
    }

    /// Idle-time work: destages PCM, then collects garbage in NAND.
    pub(crate) fn idle_work(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        // After a halt the header vouches for the media as they are: idle_work work waits for the next write.
        let halted = self.usage.formatted && !self.usage.in_use;
        if halted || self.flash.writable().is_err() {
            return Ok(Progress::Idle);
        }
        for region in PcmRegion::ALL {
            if self.above_quota(region, self.free_share(self.config.pcm_high)) {
                return Ok(Progress::Busy(self.destage_victim(sink, region)?));
            }
        }
        self.flash.step(sink, &mut self.map, budget)
    }
}
