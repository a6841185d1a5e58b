//! Clean shutdown: the summary of the records at home, and its comparison with the records that an
//! opening finds.
//!
//! A clean shutdown merges the log, so that each page has one record. All data is durable then: a
//! missing record is damage, and never a torn write.

use super::layer::Ntl;
use super::layout::{COPIES, FIRST_RECORD};
use super::mapping::MappingPolicy;
use super::recover::ScannedPages;
use crate::halt::SummarizedRecords;
use crate::header::{HeaderNote, UsageState};
use crate::health::Health;
use crate::numbers::Place;
use crate::record::{Copies, Record, RecordAddr};
use crate::summary::{RecordSummary, RecordTerms, SummaryEntry, damaged_records};
use frit_core::Lpn;
use frit_core::{Recovery, Result, Sink};
use frit_media::checksum::digest;

impl Ntl {
    /// Shuts down in order: makes all data durable, writes the summary or the checkpoint, and notes
    /// it in the header.
    pub(super) fn shut_down(&mut self, sink: &mut Sink) -> Result<()> {
        // Without a write, nothing else has made the header.
        self.head().preset_if_blank(&mut self.space.pcm)?;
        self.flush_all(sink)?;
        // No round is shared by requests before and after a shutdown.
        self.rounds.close(&mut self.stats);
        let sums = self.space.protected && self.stores_bytes();
        if self.space.protected {
            self.space.set_mark(sink)?;
        } else {
            self.write_checkpoint(sink)?;
        }
        if sums {
            self.write_summary(sink)?;
        }
        self.usage = HeaderNote::HALTED;
        self.write_state(sink, if sums { UsageState::HaltedWithSummary } else { UsageState::Halted })?;
        self.space.pcm.sync(sink)
    }

    /// Merges the log and writes the summary of all records, after the data that it covers is
    /// durable.
    pub(super) fn write_summary(&mut self, sink: &mut Sink) -> Result<()> {
        if let Some(rows) = self.log.as_ref().filter(|log| log.pages() > 0).map(super::log::LogTables::rows) {
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
    fn record_at_home(&self, lpn: Lpn) -> Result<Option<SummaryEntry>> {
        let Some(slot) = self.mapping.home(lpn) else { return Ok(None) };
        let v = self.space.record_state(slot)?;
        let block = v.block.map(|record| SummaryEntry { slot: slot.into(), record, ended: false });
        let found =
            block.or(v.ended.map(|(record, _)| SummaryEntry { slot: slot.into(), record, ended: true }));
        Ok(found.filter(|c| c.record.lpn() == lpn && c.ended != self.live.has(lpn)))
    }

    /// Writes a new record for each page whose record is damaged in both copies. Its digest is
    /// wrong on purpose, so that the page stays known as damaged.
    fn preserve_damage(&mut self, sink: &mut Sink) -> Result<()> {
        let mut next = Lpn(0);
        while let Some(lpn) = self.used.next(next) {
            next = lpn.plus(1);
            let Some(place) = self.mapping.home(lpn) else { continue };
            if self.record_at_home(lpn)?.is_some() {
                continue;
            }
            let start = sink.start();
            if self.live.has(lpn) {
                self.space.load(place, &mut self.copy)?;
                self.space.seq += 1;
                let digest = !digest(&self.copy);
                let wrong = Record { lbn: lpn.0, valid: u8::MAX, seq: self.space.seq, digest };
                self.space.put_record(sink, place, &wrong, start)?;
            } else {
                self.space.put_discard(sink, place, lpn, start)?;
            }
        }
        Ok(())
    }

    fn summary(&self) -> Result<RecordSummary> {
        let mut sum = RecordSummary::up_to(self.space.seq);
        let mut next = Lpn(0);
        while let Some(lpn) = self.used.next(next) {
            next = lpn.plus(1);
            if let Some(counted) = self.record_at_home(lpn)? {
                sum.add(&counted);
            }
        }
        Ok(sum)
    }

    /// Makes the repair durable before the header states that the layer is in use. If it is
    /// interrupted, the next opening repeats it.
    fn certain(&mut self, sink: &mut Sink) -> Result<()> {
        self.commit(sink);
        if self.space.volatile() { self.space.pcm.flush(sink) } else { Ok(()) }
    }

    /// Accepts that pages with missing records read as zeros.
    pub(super) fn accept_missing(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.accept_missing();
        self.note_use(sink)
    }

    /// Checks that a page without a record cannot be one whose record is missing.
    ///
    /// # Errors
    /// Returns `Corrupt` with a description of the missing records.
    pub(super) fn check_not_missing(&self, lpn: Lpn) -> Result<()> {
        let page = || format!("page {lpn} of the volume was never written");
        self.health.check_not_missing(|| (self.space.layout.record(FIRST_RECORD), page()))
    }
}

impl SummarizedRecords for Ntl {
    type Scan = ScannedPages;

    fn summary_of(scan: &ScannedPages) -> RecordSummary {
        scan.homes
    }

    fn written_summary(&mut self, scan: &ScannedPages) -> Result<Option<RecordSummary>> {
        // A header that is older than the records does not describe them.
        let newer = |s: &RecordSummary| self.space.seq > s.seq || scan.is_logged();
        Ok(RecordSummary::read(&self.space.pcm)?.filter(|s| !newer(s)))
    }

    fn record_copies(&self) -> u32 {
        COPIES
    }

    fn scan_again(
        &mut self,
        sink: &mut Sink,
        which: Copies,
        recovery: &mut Recovery,
    ) -> Result<ScannedPages> {
        self.forget();
        self.scan_all(sink, which, recovery)
    }

    fn end_trials(
        &mut self,
        sink: &mut Sink,
        _: ScannedPages,
        recovery: &mut Recovery,
    ) -> Result<ScannedPages> {
        // A scan fills the tables.
        self.scan_again(sink, Copies::All, recovery)
    }

    fn copy_records(&mut self, sink: &mut Sink, from: u32) -> Result<()> {
        for place in Place::first(self.space.layout.home_places()) {
            let right = self.space.copy_state(RecordAddr { slot: place.into(), copy: from })?;
            let mut same = true;
            for copy in self.space.layout.places(place) {
                same &= self.space.copy_state(copy)? == right;
            }
            if same {
                continue;
            }
            let start = sink.start();
            self.space.put_copies(sink, place, |copy| right.bytes(copy), start)?;
        }
        self.certain(sink)
    }

    fn fits(&self, entry: &SummaryEntry, _: &ScannedPages) -> Result<bool> {
        let (place, lpn) = (entry.slot.place(), entry.record.lpn());
        if place.0 >= self.space.layout.home_places() || lpn.0 >= self.pages() || self.used.has(lpn) {
            return Ok(false);
        }
        let v = self.space.record_state(place)?;
        let wiped = v.block.is_some_and(|r| r == entry.record);
        Ok(wiped || v.block.is_none() && v.ended.is_none())
    }

    fn restore_record(&mut self, sink: &mut Sink, entry: &SummaryEntry) -> Result<()> {
        let start = sink.start();
        self.space.put_counted(sink, entry, start)?;
        self.certain(sink)
    }

    fn describe_missing(&self, records: u32, scan: &ScannedPages) -> Result<String> {
        let (pcm, layout) = (&self.space.pcm, &self.space.layout);
        let terms = RecordTerms { slot: "place", block: "page", blocks: self.pages() };
        let damaged = damaged_records(pcm, scan.damaged(), terms, |place| layout.record(place))?;
        Ok(format!(
            "the records of {records} or more pages are damaged in both copies{damaged}; put the file of PCM back \
             as it was, or copy what can be read with frit export --rescue, or let these pages read as zeros with \
             frit check --repair --older"
        ))
    }

    fn health_mut(&mut self) -> &mut Health {
        &mut self.health
    }
}
