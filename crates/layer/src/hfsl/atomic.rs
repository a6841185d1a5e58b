//! Pages smaller than 4 KiB that lie in one block of 4 KiB change together: programs that write 4 KiB
//! find the old block or the new one after a power cut, as on a disk of such sectors.
//!
//! All pages are put in their new places first, where nothing names them; the redo record makes the
//! new entries one change. No page may be cleaned in between, since cleaning would map it: so room is
//! made beforehand.

use super::Hfsl;
use super::entry::{Entry, Place};
use super::head::{REDO_ENTRIES, Redo};
use super::layer::{Span, spans};
use super::pcm::Region;
use super::read::sub_spans;
use super::route::Request;
use super::to_nand::overlay;
use super::to_pcm::no_pcm;
use crate::Token;
use crate::flash::Stream;
use crate::flash::alloc::PageWrite;
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Lpn, Result, Sink, Source};
use frit_media::Store;

/// What changes as a whole, in bytes.
pub(crate) const ATOMIC_BYTES: u32 = 4096;

/// A page of a group and where it goes.
#[derive(Clone, Copy, Debug)]
struct Planned {
    span: Span,
    region: Option<Region>,
    unit: u32,
}

/// A page in its new place, which nothing names yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<T> {
    lpn: Lpn,
    entry: Entry,
    /// Sub-pages that its old descriptor shares with the new one.
    kept: u8,
    /// When its data is durable.
    durable: T,
}

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// Whether several pages lie in what changes as a whole.
    #[inline]
    pub(crate) fn has_groups(&self) -> bool {
        self.page_bytes < ATOMIC_BYTES && self.map.each()
    }

    /// The block of 4 KiB in which a page lies.
    fn group_of(&self, lpn: Lpn) -> u32 {
        lpn.0 / (ATOMIC_BYTES / self.page_bytes)
    }

    /// Writes a range, block by block of 4 KiB.
    pub(crate) fn write_groups<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        at: u64,
        data: Source<'_>,
        request: Request,
    ) -> Result<()> {
        let mut group: Vec<Span> = Vec::with_capacity(REDO_ENTRIES);
        for span in spans(at, data.len(), self.page_bytes) {
            if group.first().is_some_and(|first| self.group_of(first.lpn) != self.group_of(span.lpn)) {
                self.write_group(sink, request, &group, data)?;
                group.clear();
            }
            group.push(span);
        }
        self.write_group(sink, request, &group, data)
    }

    fn write_group<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        request: Request,
        group: &[Span],
        data: Source<'_>,
    ) -> Result<()> {
        match group {
            [] => Ok(()),
            [one] => self.write_page(sink, request, *one, data.part(one.from, one.len)),
            _ => {
                self.flash.writable()?;
                let (plan, stream) = self.plan(sink, request, group)?;
                let placed = self.place(sink, &plan, stream, data)?;
                self.commit(sink, &placed)?;
                for p in &plan {
                    match p.region {
                        Some(region) => self.pace_pcm(sink, region)?,
                        None => self.flash.pace(sink, &mut self.map, p.unit)?,
                    }
                }
                Ok(())
            }
        }
    }

    /// Where each page goes, with room made for all.
    fn plan<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        request: Request,
        group: &[Span],
    ) -> Result<(Vec<Planned>, Stream)> {
        let mut plan = Vec::with_capacity(group.len());
        let mut hot = false;
        for &span in group {
            let is_hot = self.note_write(span.lpn, request.hints);
            hot |= is_hot;
            self.forget_copy(span.lpn);
            plan.push(Planned { span, region: self.route(request, is_hot), unit: 0 });
        }
        for region in Region::ALL {
            self.make_group_room(sink, &mut plan, region)?;
        }
        // One stream for all: then a unit has to open one block at most.
        let stream = self.stream(hot);
        for i in 0..plan.len() {
            if plan[i].region.is_some() {
                continue;
            }
            plan[i].unit = self.unit_for(sink, plan[i].span.lpn);
            let pages = plan[..=i].iter().filter(|p| p.region.is_none() && p.unit == plan[i].unit).count();
            self.flash.reserve(sink, &mut self.map, plan[i].unit, stream, pages as u32)?;
        }
        Ok((plan, stream))
    }

    /// Makes room in PCM for all pages that go to a region; else they go to NAND.
    fn make_group_room<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        plan: &mut [Planned],
        region: Region,
    ) -> Result<()> {
        let mine: Vec<Span> = plan.iter().filter(|p| p.region == Some(region)).map(|p| p.span).collect();
        if mine.is_empty() || self.make_room_for(sink, &mine, region)? {
            return Ok(());
        }
        for p in plan.iter_mut().filter(|p| p.region == Some(region)) {
            p.region = None;
            self.stats.overflowed += 1;
        }
        Ok(())
    }

    fn place<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        plan: &[Planned],
        stream: Stream,
        data: Source<'_>,
    ) -> Result<Vec<Placed<T>>> {
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
                    self.take_back(sink, &placed);
                    return Err(e);
                }
            }
        }
        Ok(placed)
    }

    fn place_in_nand<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        p: Planned,
        data: Source<'_>,
        stream: Stream,
    ) -> Result<Placed<T>> {
        let (lpn, start) = (p.span.lpn, sink.start());
        let write = |data, after| PageWrite { lpn, unit: p.unit, stream, data, cause: Cause::Host, after };
        let (ppn, durable) = if p.span.len == self.page_bytes {
            self.flash.program(sink, write(data, start))?
        } else {
            let mut page = std::mem::take(&mut self.scratch);
            let done = self.fetch(sink, lpn, &mut page, Cause::Merge).and_then(|read| {
                overlay(&mut page, p.span.offset, data);
                let whole = self.source(&page);
                self.flash.program(sink, write(whole, read))
            });
            self.scratch = page;
            done?
        };
        let entry = self.map.get(lpn).moved(Place::Nand(ppn), 0, self.flash.last_seq());
        Ok(Placed { lpn, entry, kept: 0, durable })
    }

    fn place_in_pcm<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        data: Source<'_>,
        region: Region,
    ) -> Result<Placed<T>> {
        let (desc, written, kept) = match self.map.get(span.lpn).place() {
            Place::Pcm(old) => {
                let shadow = self.shadow(sink, old, span, data, region)?;
                (shadow.desc, shadow.written, shadow.kept)
            }
            place => {
                let (desc, written) = self.bring(sink, place, span, data, region)?;
                (desc, written, 0)
            }
        };
        let (entry, durable) = self.describe(sink, span.lpn, desc, written)?;
        Ok(Placed { lpn: span.lpn, entry, kept, durable })
    }

    /// Gives up pages that were placed and will not be mapped.
    fn take_back<S: Sink<Tok = T>>(&mut self, sink: &mut S, placed: &[Placed<T>]) {
        for p in placed {
            match p.entry.place() {
                Place::Unmapped => {}
                Place::Nand(ppn) => self.flash.invalidate(ppn),
                Place::Pcm(desc) => {
                    if let Some(pcm) = &mut self.map.pcm {
                        let start = sink.start();
                        pcm.release(desc, p.kept, start);
                    }
                }
            }
        }
    }

    /// Maps all pages to their new places at once, and gives up the old ones.
    pub(crate) fn commit<S: Sink<Tok = T>>(&mut self, sink: &mut S, placed: &[Placed<T>]) -> Result<()> {
        let Some(first) = placed.first().map(|p| p.lpn.0) else { return Ok(()) };
        let mut redo = Redo { first, mask: 0, raw: [0; REDO_ENTRIES] };
        let mut durable = self.map.gate;
        for p in placed {
            let i = p.lpn.0 - first;
            redo.mask |= 1 << i;
            redo.raw[i as usize] = p.entry.sealed(p.lpn.0);
            durable = sink.join(durable, p.durable);
        }
        let Some(pcm) = &mut self.map.pcm else { return Err(no_pcm()) };
        let redoable = match () {
            () if is(Bug::NoRedo) => durable,
            () => pcm.write_redo(sink, &redo, durable)?,
        };
        let redoable = if is(Bug::RedoNotFenced) { durable } else { redoable };
        let mut written = redoable;
        for (lpn, raw) in redo.entries() {
            let one = pcm.write_entry(sink, lpn, raw, redoable)?;
            written = sink.join(written, one);
        }
        let done = pcm.medium.fence(sink, written);
        self.map.written = sink.join(self.map.written, done);
        // Whoever changes one of these entries next waits until the record cannot undo that.
        if !is(Bug::RedoNotCleared) {
            self.map.gate = pcm.clear_redo(sink, done)?;
        }
        self.flash.note_named(sink, done);
        for p in placed {
            let old = self.map.get(p.lpn).place();
            self.map.note(p.lpn, p.entry.clean());
            match old {
                Place::Pcm(desc) => {
                    self.stats.to_nand += u64::from(matches!(p.entry.place(), Place::Nand(_)));
                    if let Some(pcm) = &mut self.map.pcm {
                        pcm.release(desc, p.kept, done);
                    }
                }
                old => self.leave(sink, old, done),
            }
        }
        sink.ack(done);
        Ok(())
    }

    /// Forgets pages of one block of 4 KiB together.
    pub(crate) fn unmap_group<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        first: u32,
        pages: u32,
    ) -> Result<()> {
        let gone: Vec<Lpn> = (first..first + pages)
            .map(Lpn)
            .filter(|&l| self.is_mapped(l) || self.may_be_pending(l))
            .collect();
        for &lpn in &gone {
            self.forget_copy(lpn);
        }
        if let [one] = gone[..] {
            return self.unmap(sink, one);
        }
        let durable = sink.start();
        let placed: Vec<Placed<T>> = gone
            .into_iter()
            .map(|lpn| {
                let entry = self.map.get(lpn).moved(Place::Unmapped, 0, self.flash.next_seq());
                Placed { lpn, entry, kept: 0, durable }
            })
            .collect();
        self.commit(sink, &placed)
    }

    /// Forgets a range, block by block of 4 KiB; where only part of a page goes, all of the block is
    /// written, with zeros.
    pub(crate) fn discard_groups<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        mut byte: u64,
        end: u64,
        zeros: impl Fn(u32) -> Source<'static>,
    ) -> Result<()> {
        let page = u64::from(self.page_bytes);
        while byte < end {
            let len = (u64::from(ATOMIC_BYTES) - byte % u64::from(ATOMIC_BYTES)).min(end - byte);
            let (first, last) = (byte / page, (byte + len - 1) / page);
            let whole = byte.is_multiple_of(page) && (byte + len).is_multiple_of(page);
            if whole || !(first..=last).any(|lpn| self.is_mapped(Lpn(lpn as u32))) {
                self.unmap_group(sink, first as u32, (last - first + 1) as u32)?;
            } else {
                self.write_range(sink, byte, zeros(len as u32), frit_core::Hints::NONE)?;
            }
            byte += len;
        }
        Ok(())
    }

    /// The unit in which a page is written: where it lies, so that units stay evenly full.
    #[inline]
    pub(crate) fn unit_for<S: Sink<Tok = T>>(&self, sink: &S, lpn: Lpn) -> u32 {
        match self.map.get(lpn).place() {
            Place::Nand(ppn) => {
                let g = self.flash.nand().geometry();
                g.unit_of_block(g.block_of(ppn))
            }
            _ => self.flash.first_unit(sink, lpn),
        }
    }

    /// Slots that writes of parts of pages to PCM will take, all to new places.
    pub(crate) fn slots_for_all(&self, spans: &[Span]) -> u32 {
        let Some(pcm) = &self.map.pcm else { return 0 };
        let touched = |s: &Span| sub_spans(s.offset, s.len, pcm.sub_bytes).count() as u32;
        spans
            .iter()
            .map(
                |s| if matches!(self.map.get(s.lpn).place(), Place::Nand(_)) { pcm.subs } else { touched(s) },
            )
            .sum()
    }
}
