//! Merges: pages are copied from the log to their home locations, and their slots become free
//! (section IV.C.1, Equation 1).
//!
//! `T_merge = T_dirty · M + T_refresh · units`: M is the largest number of valid pages that go to
//! one chip, units is the number of refresh units of a chip that are refreshed. Chips work in
//! parallel.

use super::config::LogKind;
use super::layer::Ntl;
use super::log::LogTables;
use super::space::{CellState, PageWrite};
use crate::numbers::{LogSlot, Place};
use crate::planted::NtlBug;
use frit_core::Lpn;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{Cause, ReadTarget, Result, Sink, Tok, WriteData};
use frit_media::checksum::digest;
use std::ops::Range;

impl Ntl {
    /// Copies the pages of rows of the log to their home locations, and frees the rows.
    pub(super) fn merge(&mut self, sink: &mut Sink, rows: Range<u32>) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        // A merge needs all chips, so no page of a later request can be written beside it.
        self.rounds.close(&mut self.stats);
        let slots = log.slots(&rows);
        let coarse = log.kind() == LogKind::Coarse;
        // An update must be durable in the log before it overwrites the page at home.
        self.commit(sink);
        self.sync_before(sink, NtlBug::HomeBeforeSync)?;
        let seq = self.last_number(&rows, coarse)?;
        let start = sink.start();
        let certain = if is_planted(NtlBug::HomeEarly) { start } else { self.space.fenced() };
        let mut done = start;
        for slot in slots {
            let Some(lpn) = self.log.as_ref().and_then(|log| log.owner(slot)) else { continue };
            if self.live.has(lpn) {
                let home = self.copy_home(sink, lpn, slot, certain)?;
                done = sink.join(done, home);
            } else if self.space.protected && !is_planted(NtlBug::DiscardForgotten) {
                let home = self.home_for(sink, lpn)?;
                self.space.put_discard(sink, home, lpn, certain)?;
            }
            // The page leaves the log only after the copy succeeded, so that a failure does not
            // lose it.
            self.forget_logged(lpn);
        }
        self.count_merge();
        if self.space.protected {
            done = match self.space.fence(sink) {
                Some(fenced) => sink.join(done, fenced),
                None => sink.join(done, certain),
            };
            self.sync_before(sink, NtlBug::ReuseBeforeSync)?;
            let void = if coarse {
                self.void_slots(sink, &rows, done)?
            } else {
                self.space.set_tail(sink, seq, done)?
            };
            done = sink.join(done, void);
        }
        let refreshed = self.refresh(sink, &rows, done)?;
        let reuse_barrier = sink.join(done, refreshed);
        self.reuse_barrier =
            if is_planted(NtlBug::ReuseEarly) { start } else { sink.join(self.reuse_barrier, reuse_barrier) };
        if let Some(log) = &mut self.log {
            log.reclaim(&rows);
        }
        Ok(())
    }

    /// Syncs the memory if it is backed by files, so that later writes cannot become durable before
    /// earlier ones.
    fn sync_before(&mut self, sink: &mut Sink, bug: NtlBug) -> Result<()> {
        if self.space.protected && self.space.volatile() && !is_planted(bug) {
            self.space.pcm.flush(sink)?;
        }
        Ok(())
    }

    /// Returns the highest sequence number of a record in these rows. Records up to it are invalid
    /// once the rows are merged, because rows of the full log are merged in the order in which they
    /// were filled.
    fn last_number(&self, rows: &Range<u32>, coarse: bool) -> Result<u64> {
        let Some(log) = self.log.as_ref().filter(|_| self.space.protected && self.stores_bytes() && !coarse)
        else {
            return Ok(self.space.seq);
        };
        let mut last = self.space.tail;
        for slot in log.slots(rows) {
            let v = self.space.record_state(self.space.layout.slot_place(slot))?;
            let seq = v.block.map(|r| r.seq).max(v.ended.map(|(r, _)| r.seq)).unwrap_or(0);
            last = last.max(seq);
        }
        Ok(last)
    }

    /// Copies a page from the log to its home location.
    fn copy_home(&mut self, sink: &mut Sink, lpn: Lpn, slot: LogSlot, certain: Tok) -> Result<Tok> {
        let place = self.space.layout.slot_place(slot);
        let home = self.home_for(sink, lpn)?;
        let page = self.page_bytes();
        let read = self.space.read(sink, place, 0, ReadTarget::Len(page), Cause::Gc, certain)?;
        let mut copy = std::mem::take(&mut self.copy);
        let outcome = self.digest_of_slot(place, lpn, &mut copy).and_then(|was| {
            let data = if self.stores_bytes() { WriteData::Bytes(&copy) } else { WriteData::Len(page) };
            let cells = if self.used.has(lpn) { CellState::Used } else { CellState::Fresh };
            let after = sink.join(read, certain);
            self.space.put_copy(sink, home, lpn, was, PageWrite { data, cells, cause: Cause::Gc, after })
        });
        self.copy = copy;
        self.used.set(lpn);
        self.pages_by_chip[to_usize(self.space.chip(home))] += 1;
        self.stats.merged_pages += 1;
        outcome
    }

    /// Loads a page of the log. Returns the digest in its record.
    fn digest_of_slot(&self, place: Place, lpn: Lpn, copy: &mut [u8]) -> Result<u64> {
        if !self.stores_bytes() {
            return Ok(0);
        }
        self.space.load(place, copy)?;
        if !self.space.protected {
            return Ok(0);
        }
        let Some(record) = self.space.record_state(place)?.block.filter(|r| r.lpn() == lpn) else {
            // Without its record the contents are not trustworthy. A digest that cannot match keeps
            // the page known as damaged.
            return Ok(!digest(copy));
        };
        if digest(copy) != record.digest {
            // The page is read a second time, because a bit may have flipped during the transfer.
            self.space.load(place, copy)?;
        }
        Ok(record.digest)
    }

    /// Removes a page from the tables of the log.
    pub(super) fn forget_logged(&mut self, lpn: Lpn) {
        if let Some(log) = &mut self.log {
            log.drop_page(lpn);
        }
        self.logged.clear(lpn);
    }

    fn count_merge(&mut self) {
        let rounds = u64::from(self.pages_by_chip.iter().copied().max().unwrap_or(0));
        self.pages_by_chip.fill(0);
        self.stats.merges += 1;
        self.stats.merge_rounds += rounds;
        self.stats.parallel_dirty += rounds;
    }

    /// Clears the records of slots after `after`.
    fn void_slots(&mut self, sink: &mut Sink, rows: &Range<u32>, after: Tok) -> Result<Tok> {
        let slots = self.log.as_ref().map(|log| log.slots(rows));
        for slot in slots.into_iter().flatten() {
            self.space.wipe_record(sink, self.space.layout.slot_place(slot), after)?;
        }
        Ok(self.space.fence(sink).unwrap_or(after))
    }

    /// Refreshes the units of these rows that were written.
    fn refresh(&mut self, sink: &mut Sink, rows: &Range<u32>, after: Tok) -> Result<Tok> {
        if !self.config.refreshes() {
            return Ok(after);
        }
        let Some(slots) = self.log.as_ref().map(|log: &LogTables| log.slots(rows)) else { return Ok(after) };
        // `pages_by_chip` is zero after `count_merge`. Here it counts the refreshes of each chip.
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
            self.pages_by_chip[to_usize(chip)] += 1;
        }
        self.stats.refreshes += u64::from(self.pages_by_chip.iter().copied().max().unwrap_or(0));
        self.pages_by_chip.fill(0);
        Ok(done)
    }
}
