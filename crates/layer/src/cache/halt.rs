//! Clean shutdown: the summary of the records, and its comparison with the records that an opening
//! finds.
//!
//! After a clean shutdown all data is durable, so a missing record is damage and never a torn
//! write.

use super::header::HeaderNote;
use super::health::MissingRecords;
use super::layer::Cache;
use super::recover::{Copies, ScannedBlocks};
use super::space::digest_of;
use crate::Token;
use crate::header::UsageState;
use crate::planted::CacheBug;
use crate::record::{CopyState, RECORD_BYTES, Record, RecordAddr};
use crate::summary::{Summary, SummaryEntry, damaged_records};
use frit_core::planted::is;
use frit_core::{Cause, Recovery, Result, Sink, Source};
use frit_media::Store;

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    /// Shuts down in order: completes all writebacks, writes the summary, and notes it in the
    /// header.
    pub(super) fn shut_down<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
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
        if P::HOLDS {
            // The summary must not be durable before the data that it describes, also over files.
            self.space.pcm.flush(sink)?;
            // Records that were taken away without a fence are not in the summary: they must not be found again.
            let start = sink.start();
            let after = self.space.settle(sink, start);
            let put = self.summary()?.put(&mut self.space.pcm, sink, after)?;
            self.space.fence_after(sink, put);
        }
        self.usage = HeaderNote { noted: false, halted: true };
        let state = if P::HOLDS { UsageState::HaltedWithSummary } else { UsageState::Halted };
        self.write_state(sink, state, self.flushed)?;
        self.space.pcm.sync(sink)
    }

    /// Writes a new record for each block whose record is damaged in all copies. Its digest is
    /// wrong on purpose, so that the block stays known as damaged.
    fn preserve_damage<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if !P::HOLDS {
            return Ok(());
        }
        let mut damaged = Vec::new();
        for (lbn, slot) in self.dir.iter() {
            let valid = self.dir.valid(slot);
            if self.space.record(slot)?.is_none_or(|r| (r.lbn, r.valid) != (lbn, valid)) {
                damaged.push((lbn, slot, valid));
            }
        }
        for (lbn, slot, valid) in damaged {
            self.space.seq += 1;
            let any = Record { lbn, valid, seq: self.space.seq, digest: 0 };
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
    fn summary(&self) -> Result<Summary> {
        let mut sum = Summary::up_to(self.space.seq);
        let earlier = self.in_flight.blocks.iter().filter(|v| self.dir.get(v.lbn) != Some(v.slot));
        let earlier = earlier.map(|v| v.slot);
        for slot in self.dir.iter().map(|(_, slot)| slot).chain(earlier) {
            if let Some(record) = self.space.record(slot)? {
                sum.add(&SummaryEntry { slot, record, ended: false });
            }
        }
        Ok(sum)
    }

    /// Compares the records with the summary. Returns `true` if the cache was shut down cleanly. A
    /// record that is outdated in one copy, or missing, is restored if the summary determines its
    /// contents.
    pub(super) fn compare_with_halt<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        state: UsageState,
        scanned: &mut ScannedBlocks,
        recovery: &mut Recovery,
    ) -> Result<bool> {
        if state != UsageState::HaltedWithSummary || is(CacheBug::SummaryIgnored) {
            return Ok(state != UsageState::InUse);
        }
        // A header that is older than the records does not describe them.
        let summary = Summary::read(&self.space.pcm)?.filter(|s| scanned.highest <= s.seq);
        let Some(summary) = summary else { return Ok(false) };
        self.space.seq = self.space.seq.max(summary.seq);
        if summary.same_records(&scanned.summary()) {
            return Ok(true);
        }
        // If all records of one copy are outdated, the other copy alone matches the summary.
        for copy in 0..self.space.layout.copies {
            let one = self.scan(sink, Copies::One(copy), recovery)?;
            if summary.same_records(&one.summary()) {
                self.copy_records(sink, copy)?;
                *scanned = self.scan(sink, Copies::All, recovery)?;
                return Ok(true);
            }
        }
        let missing = summary.missing_one(&scanned.summary()).filter(|c| self.fits(c, scanned));
        if let Some(SummaryEntry { slot, record, .. }) = missing {
            let start = sink.start();
            self.space.put_record(sink, slot, &record, start)?;
            self.certain(sink)?;
            *scanned = self.scan(sink, Copies::All, recovery)?;
            return Ok(true);
        }
        self.note_missing(&summary, scanned, recovery)?;
        Ok(true)
    }

    /// Returns `true` if a record is plausible for a slot that has none.
    fn fits(&self, counted: &SummaryEntry, scanned: &ScannedBlocks) -> bool {
        counted.slot < self.space.layout.slots
            && counted.record.lbn < self.dir.disk_blocks()
            && !counted.ended
            && scanned.found.iter().all(|f| f.slot != counted.slot)
    }

    /// Makes the repair durable before the header states that the cache is in use. If it is
    /// interrupted, the next opening repeats it.
    fn certain<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.space.fence(sink);
        if self.space.volatile() { self.space.pcm.flush(sink) } else { Ok(()) }
    }

    /// Makes all copies of the records equal to one of them.
    fn copy_records<S: Sink<Tok = T>>(&mut self, sink: &mut S, from: u32) -> Result<()> {
        let layout = self.space.layout;
        let read = |cache: &Self, place: RecordAddr| -> Result<CopyState> {
            let mut bytes = [0; RECORD_BYTES as usize];
            cache.space.pcm.peek(layout.record(place), &mut bytes)?;
            Ok(CopyState::read(&bytes, place))
        };
        for slot in 0..layout.slots {
            let right = read(self, RecordAddr { slot, copy: from })?;
            for place in layout.places(slot) {
                if read(self, place)? == right {
                    continue;
                }
                let bytes = match right {
                    CopyState::Block(record) => record.bytes(place),
                    CopyState::Ended(record, end) => record.ended_bytes(end, place),
                    CopyState::Bad => [0; RECORD_BYTES as usize],
                };
                let start = sink.start();
                let tok = self.space.pcm.write(
                    sink,
                    layout.record(place),
                    Source::Bytes(&bytes),
                    Cause::Meta,
                    start,
                )?;
                self.space.fence_after(sink, tok);
            }
        }
        self.certain(sink)
    }

    /// Handles missing records of unknown blocks: refuses writes, and reads of blocks that are not
    /// cached.
    fn note_missing(
        &mut self,
        summary: &Summary,
        scanned: &ScannedBlocks,
        recovery: &mut Recovery,
    ) -> Result<()> {
        let records = summary.missing_at_least(&scanned.summary());
        let damaged = damaged_records(&scanned.remains, |slot| {
            let at = self.space.layout.record(RecordAddr { slot, copy: 0 });
            let mut lbn = [0; 4];
            self.space.pcm.peek(at, &mut lbn)?;
            let lbn = u32::from_le_bytes(lbn);
            let of = if lbn < self.dir.disk_blocks() {
                format!(" (block {lbn}, as recorded)")
            } else {
                String::new()
            };
            Ok(format!("slot {slot} at {at}{of}"))
        })?;
        let what = format!(
            "the records of {records} or more cached blocks are damaged in all copies, and the disk has older versions of \
             these blocks{damaged}; put the file of PCM back as it was, or copy what can be read with frit export \
             --rescue, or let the disk's versions show with frit check --repair --older"
        );
        self.health.refusal = Some(what.clone());
        recovery.unnamed.push(what.clone());
        self.health.missing = Some(MissingRecords { what });
        Ok(())
    }

    /// Accepts the disk's versions of the blocks whose records are missing.
    pub(super) fn accept_missing<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.health.missing = None;
        self.health.refusal = None;
        self.note_use(sink)
    }
}
