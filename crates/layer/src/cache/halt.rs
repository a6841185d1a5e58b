//! Clean shutdown: the summary of the records, and its comparison with the records that an opening
//! finds.
//!
//! After a clean shutdown all data is durable, so a missing record is damage and never a torn
//! write.

use super::fragments::digest_of;
use super::layer::Cache;
use super::layout::RECORDS_AT;
use super::recover::ScannedBlocks;
use crate::halt::SummarizedRecords;
use crate::header::{HeaderNote, UsageState};
use crate::health::Health;
use crate::numbers::{CacheSlot, Lbn};
use crate::record::{Copies, Record, RecordAddr};
use crate::summary::{RecordSummary, RecordTerms, SummaryEntry, damaged_records};
use frit_core::{BlockDevice, Cause, Recovery, Result, Sink, WriteData};

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Shuts down in order: completes all writebacks, writes the summary, and notes it in the
    /// header.
    pub(super) fn shut_down(&mut self, sink: &mut Sink) -> Result<()> {
        // Without a write, nothing else has made the header.
        self.head().preset_if_blank(&mut self.space.pcm)?;
        if self.in_flight.len() > 0 || self.unflushed.is_some() {
            let direct = self.unflushed.is_some() && self.config.bypasses();
            let landed = self.complete_writebacks(sink);
            // The halt is complete when the disk has what it was given, direct writes included.
            if let Ok(landed) = &landed {
                self.flushed = sink.join(self.flushed, *landed);
            }
            // Dirty blocks stay in PCM. Data that bypassed the cache has no other copy, so its
            // failure is an error.
            if landed.is_err() && (!self.take_disk_error() || direct) {
                landed?;
            }
        }
        self.preserve_damage(sink)?;
        self.sync_pcm(sink)?;
        if self.stores_bytes() {
            // The summary must not be durable before the data that it describes, also over files.
            self.space.pcm.flush(sink)?;
            // Records that were taken away without a fence are not in the summary: they must not be found again.
            let start = sink.start();
            let after = self.space.settle(sink, start);
            let put = self.summary()?.put(&mut self.space.pcm, sink, after)?;
            self.space.fence_after(sink, put);
        }
        self.usage = HeaderNote::HALTED;
        let state = if self.stores_bytes() { UsageState::HaltedWithSummary } else { UsageState::Halted };
        self.write_state(sink, state, self.flushed)?;
        self.space.pcm.sync(sink)
    }

    /// Writes a new record for each block whose record is damaged in all copies. Its digest is
    /// wrong on purpose, so that the block stays known as damaged.
    fn preserve_damage(&mut self, sink: &mut Sink) -> Result<()> {
        if !self.stores_bytes() {
            return Ok(());
        }
        let mut damaged = Vec::new();
        for (lbn, slot) in self.dir.iter() {
            let valid = self.dir.valid(slot);
            if self.space.record(slot)?.is_none_or(|r| (r.lbn(), r.valid) != (lbn, valid)) {
                damaged.push((lbn, slot, valid));
            }
        }
        for (lbn, slot, valid) in damaged {
            self.space.seq += 1;
            let any = Record { lbn: lbn.0, valid, seq: self.space.seq, digest: 0 };
            self.space.load(slot, &any, &mut self.block)?;
            let wrong = Record { digest: !digest_of(&self.block, valid), ..any };
            let start = sink.start();
            self.space.put_record(sink, slot, &wrong, start)?;
        }
        self.space.fence(sink);
        Ok(())
    }

    /// Returns the summary of the records that the next opening will find: those of cached blocks,
    /// and those of earlier versions in flight that were superseded.
    fn summary(&self) -> Result<RecordSummary> {
        let mut sum = RecordSummary::up_to(self.space.seq);
        let earlier = self.in_flight.blocks.iter().filter(|v| self.dir.get(v.lbn) != Some(v.slot));
        let earlier = earlier.map(|v| v.slot);
        for slot in self.dir.iter().map(|(_, slot)| slot).chain(earlier) {
            if let Some(record) = self.space.record(slot)? {
                sum.add(&SummaryEntry { slot: slot.into(), record, ended: false });
            }
        }
        Ok(sum)
    }

    /// Makes the PCM writes of an opening durable, before a later step of it relies on them.
    pub(super) fn make_durable(&mut self, sink: &mut Sink) -> Result<()> {
        self.space.fence(sink);
        if self.space.volatile() { self.space.pcm.flush(sink) } else { Ok(()) }
    }

    /// Accepts the disk's versions of the blocks whose records are missing.
    pub(super) fn accept_missing(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.accept_missing();
        self.note_use(sink)
    }

    /// Checks that a block that is not cached cannot be one whose record is missing. Its version on
    /// the disk would be outdated.
    ///
    /// # Errors
    /// Returns `Corrupt` with a description of the missing records.
    pub(super) fn check_not_missing(&self, lbn: Lbn) -> Result<()> {
        self.health.check_not_missing(|| (RECORDS_AT, format!("block {lbn} of the disk is not cached")))
    }
}

impl<D: BlockDevice + ?Sized> SummarizedRecords for Cache<D> {
    type Scan = ScannedBlocks;

    fn summary_of(scan: &ScannedBlocks) -> RecordSummary {
        scan.summary()
    }

    fn written_summary(&mut self, scan: &ScannedBlocks) -> Result<Option<RecordSummary>> {
        // A header that is older than the records does not describe them.
        let summary = RecordSummary::read(&self.space.pcm)?.filter(|s| scan.highest <= s.seq);
        if let Some(summary) = &summary {
            self.space.seq = self.space.seq.max(summary.seq);
        }
        Ok(summary)
    }

    fn record_copies(&self) -> u32 {
        self.space.layout.copies
    }

    fn scan_again(
        &mut self,
        sink: &mut Sink,
        which: Copies,
        recovery: &mut Recovery,
    ) -> Result<ScannedBlocks> {
        self.scan(sink, which, recovery)
    }

    fn end_trials(&mut self, _: &mut Sink, first: ScannedBlocks, _: &mut Recovery) -> Result<ScannedBlocks> {
        // A scan changes nothing in the cache.
        Ok(first)
    }

    fn copy_records(&mut self, sink: &mut Sink, from: u32) -> Result<()> {
        let layout = self.space.layout;
        for slot in CacheSlot::first(layout.slots) {
            let right = self.space.copy_state(RecordAddr { slot: slot.into(), copy: from })?;
            for place in layout.places(slot) {
                if self.space.copy_state(place)? == right {
                    continue;
                }
                let (at, bytes, start) = (layout.record(place), right.bytes(place), sink.start());
                let tok = self.space.pcm.write(sink, at, WriteData::Bytes(&bytes), Cause::Meta, start)?;
                self.space.fence_after(sink, tok);
            }
        }
        // The repair is durable before the header states that the cache is in use. If it is
        // interrupted, the next opening repeats it.
        self.make_durable(sink)
    }

    fn fits(&self, entry: &SummaryEntry, scan: &ScannedBlocks) -> Result<bool> {
        Ok(entry.slot.0 < self.space.layout.slots
            && entry.record.lbn < self.dir.disk_blocks()
            && !entry.ended
            && scan.found.iter().all(|f| f.slot != entry.slot.slot()))
    }

    fn restore_record(&mut self, sink: &mut Sink, entry: &SummaryEntry) -> Result<()> {
        let start = sink.start();
        self.space.put_record(sink, entry.slot.slot(), &entry.record, start)?;
        self.make_durable(sink)
    }

    fn describe_missing(&self, records: u32, scan: &ScannedBlocks) -> Result<String> {
        let (pcm, layout) = (&self.space.pcm, &self.space.layout);
        let terms = RecordTerms { slot: "slot", block: "block", blocks: self.dir.disk_blocks() };
        let damaged = damaged_records(pcm, &scan.remains, terms, |place| layout.record(place))?;
        Ok(format!(
            "the records of {records} or more cached blocks are damaged in all copies, and the disk has older \
             versions of these blocks{damaged}; put the file of PCM back as it was, or copy what can be read with \
             frit export --rescue, or let the disk's versions show with frit check --repair --older"
        ))
    }

    fn health_mut(&mut self) -> &mut Health {
        &mut self.health
    }
}
