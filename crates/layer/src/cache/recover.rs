//! Recovery: rebuilds the directory from the records in PCM, so that the cache is as warm as
//! before.

use super::BLOCK_BYTES;
use super::disk_health::DiskHealth;
use super::layer::Cache;
use super::merge::MergedVersions;
use super::policy::{EvictionPolicy, Policy, PolicySetup};
use crate::halt::compare_with_summary;
use crate::health::Health;
use crate::numbers::{CacheSlot, Lbn, RecordSlot};
use crate::planted::CacheBug;
use crate::record::{CombinedState, Copies, RECORD_LEN, Record, RecordEnd, STATE_WORD_AT};
use crate::summary::{RecordSummary, SummaryEntry};
use frit_core::convert::{count_u32, size_in_memory, to_u64, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, Cause, CrashKind, ReadTarget, Recovery, Result, Sink, Tok};
use std::collections::HashSet;

/// Number of records that are read together.
const CHUNK: u32 = 2048;
/// Number of records by which prefetches run ahead.
const AHEAD: usize = 8;

/// A record that the scan found.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundRecord {
    seq: u64,
    digest: u64,
    lbn: Lbn,
    pub(super) slot: CacheSlot,
    valid: u8,
    /// `true` if the slot holds the block, `false` if the record says that the block left the
    /// cache.
    there: bool,
    /// `true` if all copies of the record agree.
    agreed: bool,
}

/// Result of a scan of the records.
#[derive(Debug, Default)]
pub(crate) struct ScannedBlocks {
    pub(super) found: Vec<FoundRecord>,
    /// The highest sequence number of a record.
    pub(super) highest: u64,
    /// Slots whose record has ended in some copies only, because a power loss interrupted its end.
    halves: Vec<(CacheSlot, (Record, RecordEnd))>,
    /// Slots whose record is invalid. Together with words of a later record of the same block it
    /// could become valid again, without valid data.
    pub(super) remains: Vec<RecordSlot>,
}

impl ScannedBlocks {
    /// Returns the summary of the blocks that the slots hold.
    pub(super) fn summary(&self) -> RecordSummary {
        let mut sum = RecordSummary::default();
        for f in self.found.iter().filter(|f| f.there) {
            let record = Record { lbn: f.lbn.0, valid: f.valid, seq: f.seq, digest: f.digest };
            sum.add(&SummaryEntry { slot: f.slot.into(), record, ended: false });
        }
        sum
    }
}

/// Result of handling an earlier version of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EarlierVersion {
    /// The earlier version has fragments that the later version lacks.
    Merged,
    /// The same, but the earlier version is damaged.
    Damaged,
    /// The earlier version has no fragment that is needed.
    Unneeded,
}

/// Slots that the recovery chooses among those with records.
#[derive(Default, Debug)]
struct ChosenSlots {
    /// Slots whose records are no longer valid.
    gone: Vec<CacheSlot>,
    /// Slots of the versions of each block that are merged in the slot of the last version. The
    /// last version comes first.
    merged: MergedVersions,
}

/// Returns `true` if a copy of a slot's record has a last word that is not zero. `i` is the
/// index of the slot in the chunks in `copies`.
fn has_remains(copies: &[Vec<u8>], i: usize) -> bool {
    copies.iter().any(|bytes| {
        let (records, _) = bytes.as_chunks::<RECORD_LEN>();
        records[i][size_in_memory(STATE_WORD_AT)..].iter().any(|&b| b != 0)
    })
}

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Resets the cache and recovers the cached blocks from PCM.
    pub(super) fn recover_blocks(&mut self, sink: &mut Sink, stop: CrashKind) -> Result<Recovery> {
        // The wear leveler comes first: addresses are valid only after its recovery.
        self.space.pcm.recover(sink, stop)?;
        let state = self.read_head()?;
        self.reset()?;
        let mut recovery = Recovery::default();
        let scanned = self.scan(sink, Copies::All, &mut recovery)?;
        self.space.load_marks(scanned.highest)?;
        let bug = CacheBug::SummaryIgnored;
        let scanned = compare_with_summary(self, sink, state, bug, scanned, &mut recovery)?;
        if !self.health.has_missing() {
            self.note_use(sink)?;
        }
        let doubt = !recovery.clean && stop == CrashKind::PowerLoss && self.space.volatile();
        let sure = self.sure(stop, recovery.clean);
        let ScannedBlocks { mut found, halves, remains, .. } = scanned;
        // The newest version of a block comes first. If all of it is valid, it is the current one.
        found.sort_unstable_by_key(|f| std::cmp::Reverse(f.seq));
        if is_planted(CacheBug::AnyVersionTaken) {
            found.reverse();
        }
        let ChosenSlots { gone, merged } = self.choose(&mut found, sure, &mut recovery)?;
        self.dir.free_rest();
        self.warm(&found);
        recovery.padded = count_u32(gone.len());
        recovery.pages = u64::from(self.dir.len());
        recovery.pages_in_pcm = recovery.pages;
        // It is not known whether the disk was flushed since its last write, so the next flush must
        // do it.
        self.unflushed = Some(sink.start());
        if self.health.has_missing() {
            // The records stay unchanged, because they may be needed to find out which ones are
            // missing.
            return Ok(recovery);
        }
        for f in found.iter().filter(|f| f.seq > 0 && !f.agreed) {
            let Some(record) = self.space.record(f.slot)? else { continue };
            self.space.put_record(sink, f.slot, &record, self.space.noted)?;
        }
        let records = self.write_merged_data(sink, &merged)?;
        // After a crash of the process the data is only in the page cache, and has to be synced
        // before the records of earlier versions end.
        self.make_durable(sink)?;
        self.replace_records(sink, &records)?;
        if self.space.volatile() {
            self.space.synced = self.space.seq;
        }
        // The summary of the shutdown includes these records, so they may change only after the
        // header states that the cache is in use.
        let after = sink.join(self.space.fenced(), self.space.noted);
        for slot in gone.into_iter().chain(remains.into_iter().map(RecordSlot::slot)) {
            self.space.wipe_record(sink, slot, after)?;
        }
        for (slot, (record, end)) in halves {
            self.space.close_record(sink, slot, Some((&record, end)), after)?;
        }
        let done = self.space.settle(sink, after);
        self.space.fence_after(sink, done);
        self.space.set_mark(sink)?;
        if doubt {
            self.space.pcm.flush(sink)?;
        }
        Ok(recovery)
    }

    /// Takes the valid blocks into the directory. The records are sorted with the newest first;
    /// those that are not taken get the sequence number 0.
    fn choose(
        &mut self,
        found: &mut [FoundRecord],
        sure: u64,
        recovery: &mut Recovery,
    ) -> Result<ChosenSlots> {
        let mut chosen = ChosenSlots::default();
        // Blocks of which a later version has left the cache.
        let mut left = HashSet::new();
        for i in 0..found.len() {
            self.fetch_ahead(found, i);
            let f = &found[i];
            if !f.there {
                left.insert(f.lbn);
                found[i].seq = 0;
                continue;
            }
            if left.contains(&f.lbn) && !is_planted(CacheBug::GoneForgotten) {
                // A later version has left the cache, so this one is outdated.
            } else if let Some(last) = self.dir.get(f.lbn) {
                match self.keep_earlier(f, last, sure, recovery)? {
                    EarlierVersion::Merged => {
                        self.dir.set_valid(last, self.dir.valid(last) | f.valid);
                        chosen.merged.entry(f.lbn).or_insert_with(|| vec![last]).push(f.slot);
                    }
                    // Neither version has the whole block, and the disk may lack the rest. The
                    // block stays in the cache as damaged.
                    EarlierVersion::Damaged => {
                        self.dir.remove(f.lbn);
                        self.dir.insert(f.lbn, f.slot, f.valid, true);
                        chosen.merged.remove(&f.lbn);
                        chosen.gone.push(last);
                        found[..i].iter_mut().filter(|f| f.slot == last).for_each(|f| f.seq = 0);
                        continue;
                    }
                    EarlierVersion::Unneeded => {}
                }
            } else if f.lbn.0 < self.dir.disk_blocks() && self.is_whole(f, sure, recovery)? {
                self.dir.insert(f.lbn, f.slot, f.valid, true);
                continue;
            }
            chosen.gone.push(f.slot);
            found[i].seq = 0;
        }
        Ok(chosen)
    }

    /// Prefetches the data for later records. Each of them would otherwise wait for memory several
    /// times.
    #[inline]
    fn fetch_ahead(&self, found: &[FoundRecord], i: usize) {
        let inside = |f: &&FoundRecord| f.lbn.0 < self.dir.disk_blocks();
        if let Some(f) = found.get(i + 2 * AHEAD).filter(inside) {
            self.dir.prefetch(f.lbn);
            self.dir.prefetch_slot(f.slot);
        }
        if let Some(f) = found.get(i + AHEAD).filter(inside) {
            self.dir.prefetch_chain(f.lbn);
        }
    }

    /// Inserts the blocks into the policy in the order in which they were written.
    fn warm(&mut self, found: &[FoundRecord]) {
        for (i, f) in found.iter().enumerate().rev().filter(|(_, f)| f.seq > 0) {
            if let Some(before) = i.checked_sub(AHEAD) {
                self.dir.prefetch(found[before].lbn);
            }
            self.tick();
            let access = self.access(f.lbn, true);
            self.policy.insert(f.slot, &access);
            self.dir.touch(f.lbn, self.clock);
        }
    }

    /// Handles an earlier record of a block whose newest record is in slot `last`. If a part of a
    /// block was written again during its writeback, a crash may leave both versions, and the disk
    /// may not have the rest of the block yet. (While such a record exists, the disk has nothing
    /// newer: every direct write to the disk first makes the ends of records of evicted blocks
    /// durable.)
    fn keep_earlier(
        &mut self,
        f: &FoundRecord,
        last: CacheSlot,
        sure: u64,
        recovery: &mut Recovery,
    ) -> Result<EarlierVersion> {
        let rest = f.valid & !self.dir.valid(last);
        if rest == 0 || self.health.has_missing() || is_planted(CacheBug::RestForgotten) {
            return Ok(EarlierVersion::Unneeded);
        }
        if self.is_whole(f, 0, recovery)? {
            return Ok(EarlierVersion::Merged);
        }
        let torn = f.seq > sure;
        Ok(if torn { EarlierVersion::Unneeded } else { EarlierVersion::Damaged })
    }

    /// Returns `true` if the data of a block matches its record. If the data was read, it is in the
    /// block buffer.
    fn is_whole(&mut self, f: &FoundRecord, sure: u64, recovery: &mut Recovery) -> Result<bool> {
        if f.seq <= sure || is_planted(CacheBug::TornBlockTaken) {
            return Ok(true);
        }
        // A mismatch is read a second time, because a bit may have flipped during the transfer.
        for _ in 0..2 {
            recovery.bytes_read += BLOCK_BYTES;
            let record = self.space.record(f.slot)?;
            if let Some(r) = record.filter(|r| r.seq == f.seq)
                && self.space.load(f.slot, &r, &mut self.block)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the sequence number up to which blocks are known to be durable. A mismatch of their
    /// data is damage, not a torn write.
    fn sure(&self, stop: CrashKind, clean: bool) -> u64 {
        if is_planted(CacheBug::HaltIgnored) && stop == CrashKind::PowerLoss && self.space.volatile() {
            0
        } else if clean {
            u64::MAX
        } else if stop == CrashKind::PowerLoss && self.space.volatile() {
            // Data that the machine had not synced to its files may be missing anywhere.
            self.space.synced_mark
        } else {
            self.space.mark.max(self.space.synced_mark)
        }
    }

    /// Reads all records.
    pub(super) fn scan(
        &mut self,
        sink: &mut Sink,
        which: Copies,
        recovery: &mut Recovery,
    ) -> Result<ScannedBlocks> {
        let layout = self.space.layout;
        let mut all = ScannedBlocks::default();
        let chunk = to_usize(CHUNK.min(layout.slots)) * RECORD_LEN;
        let mut copies = vec![vec![0; chunk]; to_usize(layout.copies)];
        let start = sink.start();
        for first in (0..layout.slots).step_by(to_usize(CHUNK)) {
            let n = CHUNK.min(layout.slots - first);
            for (place, bytes) in layout.places(CacheSlot(first)).zip(&mut copies) {
                let part = &mut bytes[..to_usize(n) * RECORD_LEN];
                recovery.bytes_read += to_u64(part.len());
                let at = layout.record(place);
                self.space.pcm.read(sink, at, ReadTarget::Bytes(part), Cause::Meta, start)?;
            }
            for (i, slot) in CacheSlot::range(CacheSlot(first), CacheSlot(first + n)).enumerate() {
                let CombinedState { block, ended, agreed } =
                    CombinedState::of_chunks(&copies, which, i, slot);
                if let (None, Some(ended), false) = (block, ended, agreed) {
                    all.halves.push((slot, ended));
                }
                if block.is_none() && ended.is_none() && has_remains(&copies, i) {
                    all.remains.push(slot.into());
                }
                let left = ended.filter(|(_, end)| *end == RecordEnd::Evicted).map(|(r, _)| r);
                for r in [block, ended.map(|(r, _)| r)].into_iter().flatten() {
                    all.highest = all.highest.max(r.seq);
                }
                let both = [(block, true), (left, false)];
                for (r, there) in both.into_iter().filter_map(|(r, there)| Some((r?, there))) {
                    let (seq, digest, lbn, valid) = (r.seq, r.digest, r.lbn(), r.valid);
                    all.found.push(FoundRecord { seq, digest, lbn, slot, valid, there, agreed });
                }
            }
        }
        Ok(all)
    }

    /// Resets the cache to its initial state.
    fn reset(&mut self) -> Result<()> {
        let slots = self.space.layout.slots;
        let disk_blocks = self.dir.disk_blocks();
        self.dir = super::directory::Directory::new(disk_blocks, slots)?;
        let setup = PolicySetup { slots, disk_blocks, config: &self.config.policy, next_use: None };
        self.policy = Policy::new(&setup)?;
        self.space.forget_reuse();
        self.in_flight = super::in_flight::InFlight::default();
        self.replaced.clear();
        self.unflushed = None;
        self.flushed = Tok::default();
        self.deferred_io = super::deferred_io::DeferredIo::default();
        self.health = Health::default();
        self.disk_health = DiskHealth::default();
        Ok(())
    }
}
