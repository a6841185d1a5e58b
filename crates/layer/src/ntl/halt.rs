//! Clean shutdown: the summary of the records at home, and its comparison with the records that an
//! opening finds.
//!
//! A clean shutdown merges the log, so that each page has one record. All data is durable then: a
//! missing record is damage, and never a torn write.

use super::layer::Ntl;
use super::layout::COPIES;
use super::mapping::Mapping;
use super::recover::{Copies, ScannedPages};
use crate::Token;
use crate::header::UsageState;
use crate::planted::NtlBug;
use crate::record::{CopyState, RECORD_BYTES, Record, RecordAddr};
use crate::summary::{Summary, SummaryEntry, damaged_records};
use frit_core::planted::is;
use frit_core::{Error, MediumKind, Recovery, Result, Sink};
use frit_media::Store;
use frit_media::checksum::digest;

impl<T: Token, P: Store> Ntl<T, P> {
    /// Shuts down in order: makes all data durable, writes the summary or the checkpoint, and notes
    /// it in the header.
    pub(super) fn shut_down<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.flush_all(sink)?;
        let sums = self.space.protected && P::HOLDS;
        if self.space.protected {
            self.space.set_mark(sink)?;
        } else {
            self.write_checkpoint(sink)?;
        }
        if sums {
            self.write_summary(sink)?;
        }
        self.noted = false;
        self.write_state(sink, if sums { UsageState::HaltedWithSummary } else { UsageState::Halted })?;
        self.space.pcm.sync(sink)
    }

    /// Merges the log and writes the summary of all records, after the data that it covers is
    /// durable.
    pub(super) fn write_summary<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if let Some(rows) = self.log.as_ref().filter(|log| log.pages() > 0).map(super::log::Log::rows) {
            self.merge(sink, rows)?;
        }
        self.preserve_damage(sink)?;
        self.commit(sink);
        self.space.pcm.flush(sink)?;
        self.space.set_mark(sink)?;
        let sum = self.summary()?;
        let after = self.space.fenced();
        let put = sum.put(&mut self.space.pcm, sink, after)?;
        self.space.fence_after(sink, put);
        Ok(())
    }

    /// Returns the record at the home location of a page, if it is valid.
    fn record_at_home(&self, lpn: u32) -> Result<Option<SummaryEntry>> {
        let Some(slot) = self.mapping.home(lpn) else { return Ok(None) };
        let v = self.space.record_state(slot)?;
        let block = v.block.map(|record| SummaryEntry { slot, record, ended: false });
        let found = block.or(v.ended.map(|(record, _)| SummaryEntry { slot, record, ended: true }));
        Ok(found.filter(|c| c.record.lbn == lpn && c.ended != self.live.has(lpn)))
    }

    /// Writes a new record for each page whose record is damaged in both copies. Its digest is
    /// wrong on purpose, so that the page stays known as damaged.
    fn preserve_damage<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let mut next = 0;
        while let Some(lpn) = self.used.next(next) {
            next = lpn + 1;
            let Some(place) = self.mapping.home(lpn) else { continue };
            if self.record_at_home(lpn)?.is_some() {
                continue;
            }
            let start = sink.start();
            if self.live.has(lpn) {
                self.space.load(place, &mut self.copy)?;
                self.space.seq += 1;
                let digest = !digest(&self.copy);
                let wrong = Record { lbn: lpn, valid: u8::MAX, seq: self.space.seq, digest };
                self.space.put_record(sink, place, &wrong, start)?;
            } else {
                self.space.put_discard(sink, place, lpn, start)?;
            }
        }
        Ok(())
    }

    fn summary(&self) -> Result<Summary> {
        let mut sum = Summary::up_to(self.space.seq);
        let mut next = 0;
        while let Some(lpn) = self.used.next(next) {
            next = lpn + 1;
            if let Some(counted) = self.record_at_home(lpn)? {
                sum.add(&counted);
            }
        }
        Ok(sum)
    }

    /// Compares the records with the summary, and notes in `recovery` if the layer was not shut
    /// down cleanly. A record that is outdated in one copy, or missing, is restored if the summary
    /// determines its contents.
    pub(super) fn compare_with_halt<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        state: UsageState,
        scanned: ScannedPages,
        recovery: &mut Recovery,
    ) -> Result<ScannedPages> {
        if state != UsageState::HaltedWithSummary || is(NtlBug::SummaryIgnored) {
            return Ok(scanned);
        }
        // A header that is older than the records does not describe them.
        let newer = |s: &Summary| self.space.seq > s.seq || scanned.is_logged();
        let Some(summary) = Summary::read(&self.space.pcm)?.filter(|s| !newer(s)) else {
            recovery.clean = false;
            return Ok(scanned);
        };
        if summary.same_records(&scanned.homes) {
            return Ok(scanned);
        }
        // If all records of one copy are outdated, the other copy alone matches the summary.
        for copy in 0..COPIES {
            self.forget();
            let one = self.scan_all(sink, Copies::One(copy), recovery)?;
            if summary.same_records(&one.homes) {
                self.copy_records(sink, copy)?;
                return self.scan_anew(sink, recovery);
            }
        }
        let scanned = self.scan_anew(sink, recovery)?;
        let missing = summary.missing_one(&scanned.homes);
        let missing = match missing {
            Some(c) if self.fits(&c)? => Some(c),
            _ => None,
        };
        if let Some(counted) = missing {
            let start = sink.start();
            self.space.put_counted(sink, &counted, start)?;
            self.certain(sink)?;
            return self.scan_anew(sink, recovery);
        }
        self.note_missing(&summary, &scanned, recovery)?;
        Ok(scanned)
    }

    fn scan_anew<S: Sink<Tok = T>>(&mut self, sink: &mut S, recovery: &mut Recovery) -> Result<ScannedPages> {
        self.forget();
        self.scan_all(sink, Copies::All, recovery)
    }

    /// Returns `true` if a record is plausible for a place that has none.
    fn fits(&self, counted: &SummaryEntry) -> Result<bool> {
        let (place, lpn) = (counted.slot, counted.record.lbn);
        if place >= self.space.layout.home_places() || lpn >= self.pages() || self.used.has(lpn) {
            return Ok(false);
        }
        let v = self.space.record_state(place)?;
        let wiped = v.block.is_some_and(|r| r == counted.record);
        Ok(wiped || v.block.is_none() && v.ended.is_none())
    }

    /// Makes the repair durable before the header states that the layer is in use. If it is
    /// interrupted, the next opening repeats it.
    fn certain<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.commit(sink);
        if self.space.volatile() { self.space.pcm.flush(sink) } else { Ok(()) }
    }

    /// Makes both copies of the records at home equal to one of them.
    fn copy_records<S: Sink<Tok = T>>(&mut self, sink: &mut S, from: u32) -> Result<()> {
        for place in 0..self.space.layout.home_places() {
            let read = |copy: u32| -> Result<CopyState> {
                let mut bytes = [0; RECORD_BYTES as usize];
                self.space.pcm.peek(self.space.layout.record(place, copy), &mut bytes)?;
                Ok(CopyState::read(&bytes, RecordAddr { slot: place, copy }))
            };
            let right = read(from)?;
            if (0..COPIES).map(read).all(|state| state.is_ok_and(|s| s == right)) {
                continue;
            }
            let start = sink.start();
            match right {
                CopyState::Block(record) => {
                    let counted = SummaryEntry { slot: place, record, ended: false };
                    self.space.put_counted(sink, &counted, start)?;
                }
                CopyState::Ended(record, _) => {
                    let counted = SummaryEntry { slot: place, record, ended: true };
                    self.space.put_counted(sink, &counted, start)?;
                }
                CopyState::Bad => self.space.wipe_record(sink, place, start)?,
            }
        }
        self.certain(sink)
    }

    /// Handles missing records of unknown pages: refuses writes, and reads of pages without a
    /// record.
    fn note_missing(
        &mut self,
        summary: &Summary,
        scanned: &ScannedPages,
        recovery: &mut Recovery,
    ) -> Result<()> {
        let records = summary.missing_at_least(&scanned.homes);
        let damaged = damaged_records(scanned.damaged(), |place| {
            let at = self.space.layout.record(place, 0);
            let mut lpn = [0; 4];
            self.space.pcm.peek(at, &mut lpn)?;
            let lpn = u32::from_le_bytes(lpn);
            let of = if lpn < self.pages() { format!(" (page {lpn}, as recorded)") } else { String::new() };
            Ok(format!("place {place} at {at}{of}"))
        })?;
        let what = format!(
            "the records of {records} or more pages are damaged in both copies{damaged}; put the file of PCM back as it \
             was, or copy what can be read with frit export --rescue, or let these pages read as zeros with frit check \
             --repair --older"
        );
        self.refusal = Some(what.clone());
        recovery.unnamed.push(what.clone());
        self.missing = Some(what);
        Ok(())
    }

    /// Accepts that pages with missing records read as zeros.
    pub(super) fn accept_missing<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.missing = None;
        self.refusal = None;
        self.note_use(sink)
    }

    /// Returns an error if a page without a record may be one whose record is missing.
    ///
    /// # Errors
    /// Returns `Corrupt` with a description of the missing records.
    pub(super) fn is_blank(&self, lpn: u32) -> Result<()> {
        let Some(missing) = &self.missing else { return Ok(()) };
        let what = format!("page {lpn} of the volume was never written, or its record is lost: {missing}");
        Err(Error::Corrupt { medium: MediumKind::Pcm, at: self.space.layout.record(0, 0), what })
    }
}
