//! Atomic updates of 4 KiB blocks. Pages smaller than 4 KiB that belong to one 4 KiB block change
//! together: a program that writes 4 KiB finds either the old block or the new one after a power
//! loss, as on a disk with 4 KiB sectors.
//!
//! All pages are written to new locations first, which no entry names. A redo record
//! ([`super::redo`]) then makes the changes of the entries atomic. No page may be garbage-collected
//! in between, since that would map it; therefore space is reserved beforehand.

use super::Hfsl;
use super::entry::{MapEntry, PageLocation};
use super::pcm::PcmRegion;
use super::read::sub_spans;
use super::redo::{REDO_ENTRIES, RedoRecord};
use super::route::HostRequest;
use super::to_nand::overlay;
use super::to_pcm::no_pcm;
use crate::flash::NandStream;
use crate::flash::alloc::PageWrite;
use crate::payload::zeros_on;
use crate::planted::HfslBug;
use crate::spans::{PageSpan, page_spans};
use frit_core::planted::is_planted;
use frit_core::{Cause, Lpn, Result, Sink, Tok, WriteData};

/// Size of an atomic update, in bytes.
pub(crate) const ATOMIC_BYTES: u32 = 4096;

/// Page of a group with its destination.
#[derive(Clone, Copy, Debug)]
struct PlannedPage {
    span: PageSpan,
    region: Option<PcmRegion>,
    unit: u32,
}

/// Page written to a new location, which no entry names yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenPage {
    lpn: Lpn,
    entry: MapEntry,
    /// Sub-pages that the old and the new descriptor share, one bit each.
    kept: u8,
    /// Token that completes when the data is durable.
    durable: Tok,
}

impl Hfsl {
    /// Returns `true` if a 4 KiB block has several pages, which must change together.
    #[inline]
    pub(crate) fn has_groups(&self) -> bool {
        self.page_bytes < ATOMIC_BYTES && self.map.each()
    }

    /// The 4 KiB block of a page.
    fn group_of(&self, lpn: Lpn) -> u32 {
        lpn.0 / (ATOMIC_BYTES / self.page_bytes)
    }

    /// Writes a range, one 4 KiB block at a time.
    pub(crate) fn write_groups(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        request: HostRequest,
    ) -> Result<()> {
        let mut group: Vec<PageSpan> = Vec::with_capacity(REDO_ENTRIES);
        for span in page_spans(at, data.len(), self.page_bytes) {
            if group.first().is_some_and(|first| self.group_of(first.lpn) != self.group_of(span.lpn)) {
                self.write_group(sink, request, &group, data)?;
                group.clear();
            }
            group.push(span);
        }
        self.write_group(sink, request, &group, data)
    }

    fn write_group(
        &mut self,
        sink: &mut Sink,
        request: HostRequest,
        group: &[PageSpan],
        data: WriteData<'_>,
    ) -> Result<()> {
        match group {
            [] => Ok(()),
            [one] => self.write_page(sink, request, *one, data.part(one.from, one.len)),
            _ => {
                self.flash.writable()?;
                let (plan, stream) = self.plan(sink, request, group)?;
                let placed = self.place(sink, &plan, stream, data)?;
                self.commit(sink, &placed)?;
                // Garbage collection and destaging run only after the commit: until then they could
                // map a new page early.
                for p in &plan {
                    match p.region {
                        Some(region) => self.destage_on_write(sink, region)?,
                        None => self.flash.collect_on_write(sink, &mut self.map, p.unit, 1)?,
                    }
                }
                Ok(())
            }
        }
    }

    /// Chooses the destination of each page, and reserves space for all of them.
    fn plan(
        &mut self,
        sink: &mut Sink,
        request: HostRequest,
        group: &[PageSpan],
    ) -> Result<(Vec<PlannedPage>, NandStream)> {
        let mut plan = Vec::with_capacity(group.len());
        let mut hot = false;
        for &span in group {
            let is_hot = self.note_write(span.lpn, request.hints);
            hot |= is_hot;
            self.invalidate_copy(span.lpn);
            plan.push(PlannedPage { span, region: self.route(request, is_hot), unit: 0 });
        }
        for region in PcmRegion::ALL {
            self.reserve_group(sink, &mut plan, region)?;
        }
        // One stream for all pages, so that a unit opens at most one new block.
        let stream = self.stream(hot);
        for i in 0..plan.len() {
            if plan[i].region.is_some() {
                continue;
            }
            plan[i].unit = self.unit_for(sink, plan[i].span.lpn);
            // Pages of the group that go to this unit, this one included.
            let pages = plan[..=i].iter().filter(|p| p.region.is_none() && p.unit == plan[i].unit).count();
            self.flash.reserve(sink, &mut self.map, plan[i].unit, stream, pages as u32)?;
        }
        Ok((plan, stream))
    }

    /// Reserves space in PCM for all pages that go to a region. If there is too little, they go to
    /// NAND.
    fn reserve_group(&mut self, sink: &mut Sink, plan: &mut [PlannedPage], region: PcmRegion) -> Result<()> {
        let mine: Vec<PageSpan> = plan.iter().filter(|p| p.region == Some(region)).map(|p| p.span).collect();
        if mine.is_empty() || self.reserve_pcm_for(sink, &mine, region)? {
            return Ok(());
        }
        for p in plan.iter_mut().filter(|p| p.region == Some(region)) {
            p.region = None;
            self.stats.overflowed += 1;
        }
        Ok(())
    }

    fn place(
        &mut self,
        sink: &mut Sink,
        plan: &[PlannedPage],
        stream: NandStream,
        data: WriteData<'_>,
    ) -> Result<Vec<WrittenPage>> {
        let mut placed = Vec::with_capacity(plan.len());
        for p in plan {
            let part = data.part(p.span.from, p.span.len);
            let one = match p.region {
                Some(region) => self.place_in_pcm(sink, p.span, part, region),
                None => self.place_in_nand(sink, *p, part, stream),
            };
            match one {
                Ok(one) => placed.push(one),
                Err(e) => {
                    // Nothing is mapped yet, so the block keeps its old contents.
                    self.release_written(sink, &placed);
                    return Err(e);
                }
            }
        }
        Ok(placed)
    }

    fn place_in_nand(
        &mut self,
        sink: &mut Sink,
        p: PlannedPage,
        data: WriteData<'_>,
        stream: NandStream,
    ) -> Result<WrittenPage> {
        let (lpn, start) = (p.span.lpn, sink.start());
        let write = |data, after| PageWrite { lpn, unit: p.unit, stream, data, cause: Cause::Host, after };
        let (ppn, durable) = if p.span.len == self.page_bytes {
            self.flash.program(sink, write(data, start))?
        } else {
            let mut page = std::mem::take(&mut self.scratch);
            let done = self.read_whole(sink, lpn, &mut page, Cause::Merge).and_then(|read| {
                overlay(&mut page, p.span.offset, data);
                let whole = self.source(&page);
                self.flash.program(sink, write(whole, read))
            });
            self.scratch = page;
            done?
        };
        let entry = self.map.get(lpn).moved(PageLocation::Nand(ppn), 0, self.flash.last_seq());
        Ok(WrittenPage { lpn, entry, kept: 0, durable })
    }

    fn place_in_pcm(
        &mut self,
        sink: &mut Sink,
        span: PageSpan,
        data: WriteData<'_>,
        region: PcmRegion,
    ) -> Result<WrittenPage> {
        let (desc, written, kept) = match self.map.get(span.lpn).place() {
            PageLocation::Pcm(old) => {
                let shadow = self.shadow(sink, old, span, data, region)?;
                (shadow.desc, shadow.written, shadow.kept)
            }
            place => {
                let (desc, written) = self.write_to_new_desc(sink, place, span, data, region)?;
                (desc, written, 0)
            }
        };
        let (entry, durable) = self.number_desc(sink, span.lpn, desc, written)?;
        Ok(WrittenPage { lpn: span.lpn, entry, kept, durable })
    }

    /// Releases pages that were written and will not be mapped.
    fn release_written(&mut self, sink: &mut Sink, placed: &[WrittenPage]) {
        for p in placed {
            match p.entry.place() {
                PageLocation::Unmapped => {}
                PageLocation::Nand(ppn) => self.flash.invalidate(ppn),
                PageLocation::Pcm(desc) => {
                    if let Some(pcm) = &mut self.map.pcm {
                        let start = sink.start();
                        pcm.release(desc, p.kept, start);
                    }
                }
            }
        }
    }

    /// Maps all pages to their new locations atomically, and releases the old locations.
    pub(crate) fn commit(&mut self, sink: &mut Sink, placed: &[WrittenPage]) -> Result<()> {
        let Some(first) = placed.first().map(|p| p.lpn.0) else { return Ok(()) };
        let mut redo = RedoRecord { first, ..RedoRecord::EMPTY };
        // Larger than the numbers of all pages of the group, and smaller than those of later pages.
        let seq = self.flash.next_seq();
        let mut durable =
            if is_planted(HfslBug::RedoGateOpen) { sink.start() } else { self.map.redo_barrier };
        for p in placed {
            let i = p.lpn.0 - first;
            redo.mask |= 1 << i;
            redo.raw[i as usize] = p.entry.sealed(p.lpn.0);
            durable = sink.join(durable, p.durable);
        }
        let Some(pcm) = &mut self.map.pcm else { return Err(no_pcm()) };
        let redoable = match () {
            () if is_planted(HfslBug::NoRedo) => durable,
            // Order: data, record, entries, next record; each is durable before the next is written.
            () => pcm.write_redo(sink, &redo, seq, durable)?,
        };
        let redoable = if is_planted(HfslBug::RedoNotFenced) { durable } else { redoable };
        let mut written = redoable;
        for (lpn, raw) in redo.entries() {
            let one = pcm.write_entry(sink, lpn, raw, redoable)?;
            written = sink.join(written, one);
        }
        let done = pcm.medium.fence(sink, written);
        self.map.written = sink.join(self.map.written, done);
        // The next record waits for this token: it takes the place of this one.
        self.map.redo_barrier = pcm.end_commit(sink, done)?;
        self.flash.record_named(sink, done);
        for p in placed {
            let old = self.map.get(p.lpn).place();
            self.map.note(p.lpn, p.entry.clean());
            match old {
                PageLocation::Pcm(desc) => {
                    self.stats.to_nand += u64::from(matches!(p.entry.place(), PageLocation::Nand(_)));
                    if let Some(pcm) = &mut self.map.pcm {
                        pcm.release(desc, p.kept, done);
                    }
                }
                old => self.release_location(sink, old, done),
            }
        }
        sink.ack(done);
        Ok(())
    }

    /// Discards pages of one 4 KiB block together.
    pub(crate) fn unmap_group(&mut self, sink: &mut Sink, first: u32, pages: u32) -> Result<()> {
        let gone: Vec<Lpn> = (first..first + pages)
            .map(Lpn)
            .filter(|&l| self.is_mapped(l) || self.discard_pending(l))
            .collect();
        for &lpn in &gone {
            self.invalidate_copy(lpn);
        }
        if let [one] = gone[..] {
            return self.unmap(sink, one);
        }
        let durable = sink.start();
        let placed: Vec<WrittenPage> = gone
            .into_iter()
            .map(|lpn| {
                let entry = self.map.get(lpn).moved(PageLocation::Unmapped, 0, self.flash.next_seq());
                WrittenPage { lpn, entry, kept: 0, durable }
            })
            .collect();
        self.commit(sink, &placed)
    }

    /// Discards a range, one 4 KiB block at a time. Where the range covers part of a page, the
    /// whole part of the block is written with zeros instead.
    pub(crate) fn discard_groups(&mut self, sink: &mut Sink, mut byte: u64, end: u64) -> Result<()> {
        let page = u64::from(self.page_bytes);
        while byte < end {
            let len = (u64::from(ATOMIC_BYTES) - byte % u64::from(ATOMIC_BYTES)).min(end - byte);
            let (first, last) = (byte / page, (byte + len - 1) / page);
            let whole = byte.is_multiple_of(page) && (byte + len).is_multiple_of(page);
            if whole || !(first..=last).any(|lpn| self.is_mapped(Lpn(lpn as u32))) {
                self.unmap_group(sink, first as u32, (last - first + 1) as u32)?;
            } else {
                self.write_range(
                    sink,
                    byte,
                    zeros_on(self.stores_bytes(), len as u32),
                    frit_core::Hints::NONE,
                )?;
            }
            byte += len;
        }
        Ok(())
    }

    /// NAND unit for a page: its current unit, so that units stay evenly full.
    #[inline]
    pub(crate) fn unit_for(&self, sink: &Sink, lpn: Lpn) -> u32 {
        match self.map.get(lpn).place() {
            PageLocation::Nand(ppn) => {
                let g = self.flash.nand().geometry();
                g.unit_of_block(g.block_of(ppn))
            }
            _ => self.flash.first_unit(sink, lpn),
        }
    }

    /// Number of slots needed to write parts of pages to PCM, all of them to new slots.
    pub(crate) fn slots_for_all(&self, spans: &[PageSpan]) -> u32 {
        let Some(pcm) = &self.map.pcm else { return 0 };
        let touched = |s: &PageSpan| sub_spans(s.offset, s.len, pcm.layout.sub_bytes).count() as u32;
        spans
            .iter()
            .map(|s| {
                if matches!(self.map.get(s.lpn).place(), PageLocation::Nand(_)) {
                    pcm.layout.subs
                } else {
                    touched(s)
                }
            })
            .sum()
    }
}
