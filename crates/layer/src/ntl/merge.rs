//! Merges: pages come home from the log, and their slots are free again (section IV.C.1, Equation 1).
//!
//! `T_merge = T_dirty · M + T_refresh · units`: M is the number of valid pages of the chip that most of them go to,
//! units the refresh units of a chip that are refreshed; chips work at a time.

use super::config::LogKind;
use super::layer::Ntl;
use super::log::Log;
use super::space::Cells;
use crate::Token;
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Result, Sink, Source, Target};
use frit_media::Store;
use frit_media::checksum::digest;
use std::ops::Range;

impl<T: Token, P: Store> Ntl<T, P> {
    /// Brings the pages of rows of the log home, and takes the rows back.
    pub(super) fn merge<S: Sink<Tok = T>>(&mut self, sink: &mut S, rows: Range<u32>) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let slots = log.slots(&rows);
        let coarse = log.kind() == LogKind::Coarse;
        // What overwrites a page at home is certain in the log before.
        self.commit(sink);
        self.outlive(sink, Bug::NtlHomeBeforeSync)?;
        let seq = self.last_number(&rows, coarse)?;
        let start = sink.start();
        let certain = if is(Bug::NtlHomeEarly) { start } else { self.space.fenced() };
        let mut done = start;
        for slot in slots {
            let Some(lpn) = self.log.as_ref().and_then(|log| log.owner(slot)) else { continue };
            if self.live.has(lpn) {
                let home = self.bring_home(sink, lpn, slot, certain)?;
                done = sink.join(done, home);
            } else if self.space.protected && !is(Bug::NtlDiscardForgotten) {
                let home = self.home_for(sink, lpn)?;
                self.space.put_gone(sink, home, lpn, certain)?;
            }
            // Not before: should that fail, the log has it.
            self.forget_logged(lpn);
        }
        self.count_merge();
        if self.space.protected {
            done = match self.space.fence(sink) {
                Some(fenced) => sink.join(done, fenced),
                None => sink.join(done, certain),
            };
            self.outlive(sink, Bug::NtlReuseBeforeSync)?;
            let void = if coarse {
                self.void_slots(sink, &rows, done)?
            } else {
                self.space.set_tail(sink, seq, done)?
            };
            done = sink.join(done, void);
        }
        let refreshed = self.refresh(sink, &rows, done)?;
        let gate = sink.join(done, refreshed);
        self.gate = if is(Bug::NtlReuseEarly) { start } else { sink.join(self.gate, gate) };
        if let Some(log) = &mut self.log {
            log.reclaim(&rows);
        }
        Ok(())
    }

    /// Over files: makes what was written outlive the machine, before what follows can reach them.
    fn outlive<S: Sink<Tok = T>>(&mut self, sink: &mut S, bug: Bug) -> Result<()> {
        if self.space.protected && self.space.volatile() && !is(bug) {
            self.space.pcm.flush(sink)?;
        }
        Ok(())
    }

    /// The highest number of a record in these rows: those up to it count no more once the rows are merged.
    /// Rows of the full log are merged in the order in which they were filled.
    fn last_number(&self, rows: &Range<u32>, coarse: bool) -> Result<u64> {
        let Some(log) = self.log.as_ref().filter(|_| self.space.protected && P::HOLDS && !coarse) else {
            return Ok(self.space.seq);
        };
        let mut last = self.space.tail;
        for slot in log.slots(rows) {
            let v = self.space.verdict(self.space.layout.slot_place(slot))?;
            let seq = v.block.map(|r| r.seq).max(v.ended.map(|(r, _)| r.seq)).unwrap_or(0);
            last = last.max(seq);
        }
        Ok(last)
    }

    /// Writes a page of the log where it belongs.
    fn bring_home<S: Sink<Tok = T>>(&mut self, sink: &mut S, lpn: u32, slot: u32, certain: T) -> Result<T> {
        let place = self.space.layout.slot_place(slot);
        let home = self.home_for(sink, lpn)?;
        let page = self.page_bytes();
        let read = self.space.read(sink, place, 0, Target::Len(page), (Cause::Gc, certain))?;
        let mut copy = std::mem::take(&mut self.copy);
        let outcome = self.digest_of_slot(place, lpn, &mut copy).and_then(|was| {
            let data = if P::HOLDS { Source::Bytes(&copy) } else { Source::Len(page) };
            let cells = if self.used.has(lpn) { Cells::Used } else { Cells::Fresh };
            let after = sink.join(read, certain);
            self.space.put_copy(sink, home, (lpn, was), (data, cells), after)
        });
        self.copy = copy;
        self.used.set(lpn);
        self.homing[self.space.chip(home) as usize] += 1;
        self.stats.merged_pages += 1;
        outcome
    }

    /// Loads a page of the log, and the digest that its record says it has.
    fn digest_of_slot(&self, place: u32, lpn: u32, copy: &mut [u8]) -> Result<u64> {
        if !P::HOLDS {
            return Ok(0);
        }
        self.space.load(place, copy)?;
        if !self.space.protected {
            return Ok(0);
        }
        let Some(record) = self.space.verdict(place)?.block.filter(|r| r.lbn == lpn) else {
            // A page whose record is gone is no page: it gets a digest that it does not have.
            return Ok(!digest(copy));
        };
        if digest(copy) != record.digest {
            // A bit may have flipped on its way.
            self.space.load(place, copy)?;
        }
        Ok(record.digest)
    }

    /// The newest version of a page is not in the log any more.
    pub(super) fn forget_logged(&mut self, lpn: u32) {
        if let Some(log) = &mut self.log {
            log.drop_page(lpn);
        }
        self.logged.clear(lpn);
    }

    fn count_merge(&mut self) {
        let rounds = u64::from(self.homing.iter().copied().max().unwrap_or(0));
        self.homing.fill(0);
        self.stats.merges += 1;
        self.stats.merge_rounds += rounds;
        self.stats.parallel_dirty += rounds;
    }

    /// Makes the records of slots none, after `after`.
    fn void_slots<S: Sink<Tok = T>>(&mut self, sink: &mut S, rows: &Range<u32>, after: T) -> Result<T> {
        let slots = self.log.as_ref().map(|log| log.slots(rows));
        for slot in slots.into_iter().flatten() {
            self.space.wipe_record(sink, self.space.layout.slot_place(slot), after)?;
        }
        Ok(self.space.fence(sink).unwrap_or(after))
    }

    /// Refreshes what was written in these rows.
    fn refresh<S: Sink<Tok = T>>(&mut self, sink: &mut S, rows: &Range<u32>, after: T) -> Result<T> {
        if !self.config.refreshes() {
            return Ok(after);
        }
        let Some(slots) = self.log.as_ref().map(|log: &Log| log.slots(rows)) else { return Ok(after) };
        let unit = self.space.layout.refresh_pages;
        let bytes = unit * self.page_bytes();
        let mut done = after;
        for slot in slots {
            let place = self.space.layout.slot_place(slot);
            let (index, chip) = self.space.layout.split(place);
            if !(index - self.space.layout.homes).is_multiple_of(unit) {
                continue;
            }
            let at = self.space.layout.data(place);
            if self.space.pcm.is_clean(at, bytes) {
                continue;
            }
            let tok = self.space.pcm.refresh(sink, at, Cause::Gc, after)?;
            done = sink.join(done, tok);
            self.homing[chip as usize] += 1;
        }
        self.stats.refreshes += u64::from(self.homing.iter().copied().max().unwrap_or(0));
        self.homing.fill(0);
        Ok(done)
    }
}
