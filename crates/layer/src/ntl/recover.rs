//! Recovery: rebuilds the tables from the records, and merges the log, so that it is empty.

use super::layer::Ntl;
use super::layout::COPIES;
use super::mapping::MappingPolicy;
use crate::halt::compare_with_summary;
use crate::header::{HeaderNote, UsageState};
use crate::numbers::{LogSlot, Place, RecordSlot};
use crate::planted::NtlBug;
use crate::record::{COPIES_MAX, CombinedState, Copies, RECORD_LEN};
use crate::summary::{RecordSummary, SummaryEntry};
use frit_core::Lpn;
use frit_core::convert::{to_u64, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, CrashKind, Error, ReadTarget, Recovery, Result, Sink, Tok};
use frit_media::checksum::digest;
use std::collections::HashMap;
use std::ops::Range;

/// Number of records that are read together.
const CHUNK: u32 = 2048;

/// The newest version of a page in the log.
#[derive(Clone, Copy, Debug)]
struct LoggedPage {
    seq: u64,
    slot: LogSlot,
    /// `true` if the page has data, `false` if it was discarded.
    there: bool,
}

/// Callback of a scan for each place with a valid record.
type ScanCallback<'a, N> =
    dyn FnMut(&mut N, Place, CombinedState, &mut Repairs, &mut Recovery) -> Result<()> + 'a;

/// Result of a scan of the records.
#[derive(Debug, Default)]
pub(crate) struct ScannedPages {
    /// The newest versions that lie in the log.
    logged: HashMap<Lpn, LoggedPage>,
    /// Summary of the valid records at home.
    pub(super) homes: RecordSummary,
    repairs: Repairs,
}

impl ScannedPages {
    /// Returns `true` if the log holds the newest version of a page.
    pub(super) fn is_logged(&self) -> bool {
        !self.logged.is_empty()
    }

    /// Returns the places whose record is invalid.
    pub(super) fn damaged(&self) -> &[RecordSlot] {
        &self.repairs.wipe
    }
}

/// Repairs that a recovery has to make.
#[derive(Debug, Default)]
struct Repairs {
    /// Places whose record must be cleared.
    wipe: Vec<RecordSlot>,
    /// Places whose record is damaged or outdated in one copy.
    mend: Vec<Place>,
}

impl Ntl {
    /// Resets the layer and recovers the pages.
    pub(super) fn recover_pages(&mut self, sink: &mut Sink, stop: CrashKind) -> Result<Recovery> {
        // The wear leveler comes first: addresses are valid only after its recovery.
        self.space.pcm.recover(sink, stop)?;
        let state = self.read_head()?;
        self.forget();
        self.rounds.close(&mut self.stats);
        let mut recovery = Recovery { clean: state != UsageState::InUse, ..Recovery::default() };
        if !self.space.protected {
            if !recovery.clean {
                let why = "the layer was not shut down cleanly, and without protection its tables are lost; use redo";
                return Err(Error::param("protect", "none", why));
            }
            self.read_checkpoint(sink)?;
        } else {
            let scanned = self.scan_all(sink, Copies::All, &mut recovery)?;
            let bug = NtlBug::SummaryIgnored;
            let scanned = compare_with_summary(self, sink, state, bug, scanned, &mut recovery)?;
            if !self.health.has_missing() {
                self.note_use(sink)?;
                self.restore_logged(scanned.logged);
                self.apply_repairs(sink, &scanned.repairs)?;
            }
            if is_planted(NtlBug::SeqRestarts) {
                (self.space.seq, self.space.mark) = (0, 0);
            }
        }
        recovery.pages = self.live.len();
        recovery.pages_in_pcm = recovery.pages;
        Ok(recovery)
    }

    /// Resets all state in DRAM.
    pub(super) fn forget(&mut self) {
        self.space.forget();
        self.mapping.forget();
        for bits in [&mut self.used, &mut self.live, &mut self.logged] {
            bits.fill(0, false);
        }
        self.warm.iter_mut().for_each(|b| b.fill(0, false));
        if let Some(log) = &mut self.log {
            log.forget();
        }
        self.buffer.clear();
        self.buffer.ready = Tok::default();
        self.reuse_barrier = Tok::default();
        (self.warm_left, self.turn, self.usage) = (0, 0, HeaderNote::default());
        self.health.forget_missing();
    }

    /// Reads all records, and fills the tables from those at home.
    pub(super) fn scan_all(
        &mut self,
        sink: &mut Sink,
        which: Copies,
        recovery: &mut Recovery,
    ) -> Result<ScannedPages> {
        self.space.load_counters()?;
        let mut repairs = Repairs::default();
        let mut logged = self.scan_log(sink, which, &mut repairs, recovery)?;
        let homes = self.scan_homes(sink, which, &mut logged, &mut repairs, recovery)?;
        Ok(ScannedPages { logged, homes, repairs })
    }

    /// Reads the records of a range of indices on each chip.
    fn scan(
        &mut self,
        sink: &mut Sink,
        indices: &Range<u32>,
        which: Copies,
        repairs: &mut Repairs,
        recovery: &mut Recovery,
        each: &mut ScanCallback<'_, Self>,
    ) -> Result<()> {
        let start = sink.start();
        let mut copies = [const { Vec::new() }; to_usize(COPIES)];
        for chip in 0..self.space.layout.chips {
            let mut index = indices.start;
            while index < indices.end {
                let l = &self.space.layout;
                let together = (0..COPIES).map(|c| l.records_together(index, c)).min().unwrap_or(1);
                let n = together.min(CHUNK).min(indices.end - index);
                let place = |i: u32| l.place(index + i, chip);
                let first = place(0);
                let places: Vec<Place> = (0..n).map(place).collect();
                for (copy, bytes) in self.space.layout.places(first).zip(&mut copies) {
                    bytes.resize(to_usize(n) * RECORD_LEN, 0);
                    let at = self.space.layout.record(copy);
                    let tok = self.space.pcm.read(sink, at, ReadTarget::Bytes(bytes), Cause::Meta, start)?;
                    sink.ack(tok);
                    recovery.bytes_read += to_u64(bytes.len());
                }
                for (i, place) in places.into_iter().enumerate() {
                    let verdict = CombinedState::of_chunks(&copies, which, i, place);
                    if verdict.block.is_some() || verdict.ended.is_some() {
                        each(self, place, verdict, repairs, recovery)?;
                    } else if !is_blank(&copies, i) && !is_planted(NtlBug::RemainsKept) {
                        // The record is torn. Together with words of a later record of the same
                        // page it could become valid again.
                        repairs.wipe.push(place.into());
                    }
                }
                index += n;
            }
        }
        Ok(())
    }

    /// Returns the newest version of each page in the log.
    fn scan_log(
        &mut self,
        sink: &mut Sink,
        which: Copies,
        repairs: &mut Repairs,
        recovery: &mut Recovery,
    ) -> Result<HashMap<Lpn, LoggedPage>> {
        let (homes, logs) = (self.space.layout.homes, self.space.layout.logs);
        let first_slot = self.space.layout.home_places();
        let mut all: Vec<(Lpn, LoggedPage)> = Vec::new();
        let pages = self.pages();
        let indices = homes..homes + logs;
        self.scan(sink, &indices, which, repairs, recovery, &mut |ntl, place, v, repairs, recovery| {
            let slot = LogSlot(place.0 - first_slot);
            for (record, there) in
                v.block.map(|r| (r, true)).into_iter().chain(v.ended.map(|(r, _)| (r, false)))
            {
                ntl.space.seq = ntl.space.seq.max(record.seq);
                if record.seq <= ntl.space.tail || record.lbn >= pages {
                    continue;
                }
                if there && !ntl.is_whole(place, record.seq, record.digest, recovery)? {
                    repairs.wipe.push(place.into());
                    continue;
                }
                all.push((record.lpn(), LoggedPage { seq: record.seq, slot, there }));
            }
            Ok(())
        })?;
        let mut newest: HashMap<Lpn, LoggedPage> = HashMap::new();
        for (lpn, l) in all {
            let kept = newest.entry(lpn).or_insert(l);
            if (kept.seq < l.seq) != is_planted(NtlBug::OldVersionTaken) {
                *kept = l;
            }
        }
        Ok(newest)
    }

    /// Fills the tables from the records at home, and returns their summary. Versions in `logged`
    /// that are older than those at home are removed.
    fn scan_homes(
        &mut self,
        sink: &mut Sink,
        which: Copies,
        logged: &mut HashMap<Lpn, LoggedPage>,
        repairs: &mut Repairs,
        recovery: &mut Recovery,
    ) -> Result<RecordSummary> {
        let homes = self.space.layout.homes;
        let pages = self.pages();
        let mut sum = RecordSummary::default();
        self.scan(sink, &(0..homes), which, repairs, recovery, &mut |ntl, place, v, repairs, recovery| {
            let there = v.block.is_some();
            let Some(record) = v.block.or(v.ended.map(|(r, _)| r)) else { return Ok(()) };
            ntl.space.seq = ntl.space.seq.max(record.seq);
            let whole = !there || ntl.is_whole(place, record.seq, record.digest, recovery)?;
            if record.lbn >= pages || !whole || !ntl.mapping.restore(record.lpn(), place) {
                repairs.wipe.push(place.into());
                return Ok(());
            }
            if !v.agreed {
                repairs.mend.push(place);
            }
            ntl.used.set(record.lpn());
            sum.add(&SummaryEntry { slot: place.into(), record, ended: !there });
            match logged.get(&record.lpn()) {
                Some(l) if l.seq > record.seq => {}
                _ => {
                    logged.remove(&record.lpn());
                    if there {
                        ntl.live.set(record.lpn());
                    }
                }
            }
            Ok(())
        })?;
        self.mapping.end_restore();
        Ok(sum)
    }

    /// Returns `true` if the data of a page matches its record. Records up to the mark are known to
    /// match.
    fn is_whole(&mut self, place: Place, seq: u64, wanted: u64, recovery: &mut Recovery) -> Result<bool> {
        if seq <= self.space.mark || is_planted(NtlBug::TornTaken) {
            return Ok(true);
        }
        // A mismatch is read a second time, because a bit may have flipped during the transfer.
        for _ in 0..2 {
            recovery.bytes_read += u64::from(self.page_bytes());
            self.space.load(place, &mut self.copy)?;
            if digest(&self.copy) == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn restore_logged(&mut self, logged: HashMap<Lpn, LoggedPage>) {
        let mut all: Vec<(Lpn, LoggedPage)> = logged.into_iter().collect();
        all.sort_unstable_by_key(|(_, l)| l.slot);
        for (lpn, l) in all {
            if let Some(log) = &mut self.log {
                log.restore(lpn, l.slot);
            }
            self.logged.set(lpn);
            self.used.set(lpn);
            if l.there {
                self.live.set(lpn);
            } else {
                self.live.clear(lpn);
            }
        }
    }

    /// Clears invalid records, repairs damaged ones, and merges the log.
    fn apply_repairs(&mut self, sink: &mut Sink, repairs: &Repairs) -> Result<()> {
        let start = self.reuse_barrier;
        for &place in &repairs.wipe {
            self.space.wipe_record(sink, place.place(), start)?;
        }
        for &place in &repairs.mend {
            self.rewrite_record(sink, place, start)?;
        }
        self.commit(sink);
        if self.space.volatile() {
            // After a crash of the process its data is only in the page cache.
            self.space.pcm.flush(sink)?;
        }
        if let Some(rows) = self.log.as_ref().map(super::log::LogTables::rows) {
            // The merge of a recovery is not counted. The counts of earlier requests stay.
            let counted = self.stats;
            self.merge(sink, rows)?;
            self.stats = counted;
        }
        if let Some(log) = &mut self.log {
            log.forget();
        }
        if self.space.volatile() {
            self.space.pcm.flush(sink)?;
        }
        self.space.set_mark(sink)
    }

    /// Rewrites both copies of a page's record.
    pub(super) fn rewrite_record(&mut self, sink: &mut Sink, place: Place, after: Tok) -> Result<()> {
        let v = self.space.record_state(place)?;
        let Some(record) = v.block.or(v.ended.map(|(r, _)| r)) else { return Ok(()) };
        if v.block.is_none() {
            return self.space.end_record(sink, place, after);
        }
        self.space.put_record(sink, place, &record, after).map(|_| ())
    }
}

/// Returns `true` if all copies of a record are zero: never written, or cleared.
fn is_blank(copies: &[Vec<u8>; to_usize(COPIES)], i: usize) -> bool {
    let from = i * RECORD_LEN;
    copies.iter().all(|bytes| bytes[from..from + RECORD_LEN].iter().all(|&b| b == 0))
}

const _: () = assert!(COPIES == COPIES_MAX);
