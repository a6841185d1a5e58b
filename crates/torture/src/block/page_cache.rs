//! Backing files behind a page cache: their contents after a crash and after a power loss.
//!
//! A crash (the process is killed) leaves everything that the program wrote, up to some write to a
//! store, or up to a page of the cache within that write. A power loss leaves what was synced. Each
//! 4 KiB page of the cache that was not synced has its contents as of some moment since the sync,
//! or was not written back at all. A page in writeback is torn between sectors of 512 bytes.

use crate::block::access_log::{AccessLog, AccessRecords, LoggedAccessKind};
use crate::block::command_set::CommandSet;
use crate::block::medium::{SharedMedium, TortureMedium};
use crate::block::oracle::{ExamineOptions, describe_difference, examine, recover_and_read};
use crate::block::recording::{RecordedRun, RecordingSession};
use crate::block::self_describing::Versions;
use crate::block::violation::{Oracle, Violation};
use crate::block::work_item::{WorkItem, copy, guarded};
use crate::block::workload::{ClientRequest, ClientRequestKind, WorkloadMix, fill_requests};
use frit_core::split_mix::mix;
use frit_core::{CrashKind, Hints, Sink};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::{Arc, MutexGuard};

/// Largest number of cuts of a workload.
const CUTS: usize = 900;
/// Largest number of cuts of one recovery.
const NESTED: usize = 16;
const CACHE_PAGE: u64 = 4096;
const DISK_SECTOR: u64 = 512;

/// Selection of the unsynced data that was written back before the stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WritebackOutcome {
    /// Everything, and the first pages (this many) of the next write.
    All(u8),
    /// Nothing.
    None,
    /// Each page, as of some moment since the sync.
    Pages,
    /// Each sector, as of some moment since the sync.
    Sectors,
    /// A single page with its last contents.
    One,
    /// All pages with their last contents, except one.
    AllBut,
}

/// A crash or a power loss within a log of accesses.
#[derive(Clone, Copy, Debug)]
pub struct FileStop {
    /// Number of accesses before it.
    pub at: usize,
    /// The kind of stop: crash or power loss.
    pub stop: CrashKind,
    /// Unsynced data that was written back.
    pub back: WritebackOutcome,
    /// Seed of the remaining random choices.
    pub seed: u64,
}

/// Chooses stops at every access of a log, or at up to `most` random ones, sorted by access.
#[must_use]
pub fn choose_stops(accesses: usize, seed: u64, most: usize) -> Vec<FileStop> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut cuts: Vec<FileStop> = (0..most)
        .map(|i| {
            // With few accesses, each of them is cut in turn.
            let at = if accesses < most / 2 { i % (accesses + 1) } else { rng.random_range(0..=accesses) };
            let (stop, back) = match rng.random_range(0..12u8) {
                0..3 => (CrashKind::Process, WritebackOutcome::All(0)),
                3 => (CrashKind::Process, WritebackOutcome::All(rng.random_range(1..4))),
                4 => (CrashKind::PowerLoss, WritebackOutcome::All(0)),
                5 => (CrashKind::PowerLoss, WritebackOutcome::None),
                6..8 => (CrashKind::PowerLoss, WritebackOutcome::Pages),
                8..10 => (CrashKind::PowerLoss, WritebackOutcome::Sectors),
                10 => (CrashKind::PowerLoss, WritebackOutcome::One),
                _ => (CrashKind::PowerLoss, WritebackOutcome::AllBut),
            };
            FileStop { at, stop, back, seed: rng.random() }
        })
        .collect();
    cuts.sort_by_key(|c| c.at);
    cuts
}

/// Builds the contents of the stores after a stop. Stops come in rising order.
#[derive(Debug)]
pub struct FileImages<'a> {
    log: &'a AccessRecords,
    stores: &'a [SharedMedium],
    /// Number of accesses that are part of the base, by medium.
    rolled: Vec<usize>,
}

impl<'a> FileImages<'a> {
    /// Creates a builder over stores whose base is the contents before the log.
    #[must_use]
    pub fn new(log: &'a AccessRecords, stores: &'a [SharedMedium]) -> FileImages<'a> {
        FileImages { log, stores, rolled: vec![0; stores.len()] }
    }

    /// Returns the writes to a medium in a range of accesses, with their numbers.
    fn writes(&self, medium: usize, from: usize, to: usize) -> impl Iterator<Item = (usize, u64, &'a [u8])> {
        let log = self.log;
        log.accesses[from..to].iter().enumerate().filter_map(move |(i, a)| match a.kind {
            LoggedAccessKind::Write { at, from: f, len } if a.medium as usize == medium => {
                Some((from + i, at, log.data(f, len)))
            }
            _ => None,
        })
    }

    /// Builds the contents after this stop. Stops must come in rising order. Crashes and power
    /// losses need separate stores.
    pub fn apply(&mut self, cut: FileStop) {
        let kill = cut.stop == CrashKind::Process;
        for (i, store) in self.stores.iter().enumerate() {
            let mut m = store.lock();
            m.undo();
            // A crash loses no write that reached the page cache. A power loss keeps only what a
            // sync made durable.
            let synced = self.log.accesses[..cut.at]
                .iter()
                .rposition(|a| a.medium as usize == i && a.kind == LoggedAccessKind::Sync)
                .map_or(0, |s| s + 1);
            let certain = if kill { cut.at } else { synced };
            if certain > self.rolled[i] {
                for (_, at, data) in self.writes(i, self.rolled[i], certain) {
                    m.put(at, data);
                }
                m.commit();
                self.rolled[i] = certain;
            }
            // The base may be ahead of the last sync, since the cuts before this one advanced it. A
            // power loss may leave such data as well.
            let from = self.rolled[i].max(certain);
            if from < cut.at {
                self.unsynced(&mut m, i, from, cut);
            }
        }
        // A crash within a write leaves the first pages of it in the page cache.
        if let (WritebackOutcome::All(pages @ 1..), Some(a)) = (cut.back, self.log.accesses.get(cut.at))
            && let LoggedAccessKind::Write { at, from, len } = a.kind
        {
            let end = (at / CACHE_PAGE + u64::from(pages)) * CACHE_PAGE;
            let part = (end - at).min(u64::from(len)) as u32;
            self.stores[a.medium as usize].lock().put(at, self.log.data(from, part));
        }
    }

    fn unsynced(&self, m: &mut MutexGuard<'_, TortureMedium>, medium: usize, from: usize, cut: FileStop) {
        let span = (cut.at - from) as u64 + 1;
        let unit = if cut.back == WritebackOutcome::Sectors { DISK_SECTOR } else { CACHE_PAGE };
        // One of the written pages, for the selections that pick one.
        let pages: Vec<u64> = self
            .writes(medium, from, cut.at)
            .flat_map(|(_, at, d)| at / unit..(at + d.len() as u64).div_ceil(unit))
            .collect();
        let one = pages.get(cut.seed as usize % pages.len().max(1)).copied();
        // Number of accesses whose writes a page holds.
        let until = |page: u64| match cut.back {
            WritebackOutcome::All(_) => cut.at,
            WritebackOutcome::None => from,
            WritebackOutcome::Pages | WritebackOutcome::Sectors => {
                from + (mix(cut.seed ^ page ^ (medium as u64) << 48) % span) as usize
            }
            WritebackOutcome::One => {
                if Some(page) == one {
                    cut.at
                } else {
                    from
                }
            }
            WritebackOutcome::AllBut => {
                if Some(page) == one {
                    from
                } else {
                    cut.at
                }
            }
        };
        for (i, at, data) in self.writes(medium, from, cut.at) {
            let mut done = 0u64;
            while done < data.len() as u64 {
                let page = (at + done) / unit;
                let n = ((page + 1) * unit - at - done).min(data.len() as u64 - done);
                if i < until(page) {
                    m.put(at + done, &data[done as usize..(done + n) as usize]);
                }
                done += n;
            }
        }
    }
}

impl WorkItem<'_> {
    /// Runs a workload over backing files, with crashes and power losses.
    pub(crate) fn files(&mut self) {
        let (run, stores, requests) = match guarded(|| self.files_run()) {
            Ok(r) => r,
            Err(v) => return self.found(self.case.clone(), v),
        };
        self.tally.requests += requests.len() as u64;
        self.tally.commands += run.commands;
        let most = self.options.cuts_most.unwrap_or(CUTS);
        let cuts = choose_stops(run.log.accesses.len(), self.seed(300), most);
        self.tally.cuts += cuts.len() as u64;
        // The bases of crashes and of power losses advance differently, so each kind has its own
        // copies.
        for stop in [CrashKind::Process, CrashKind::PowerLoss] {
            let own = copy(&stores, self.target.over_files());
            self.files_cuts(&run, &own, &requests, &cuts, stop);
            if self.done() {
                return;
            }
        }
    }

    fn files_cuts(
        &mut self,
        run: &RecordedRun,
        stores: &[SharedMedium],
        requests: &[ClientRequest],
        cuts: &[FileStop],
        stop: CrashKind,
    ) {
        let mut files = FileImages::new(&run.log, stores);
        let every = self.options.nested_every.max(1) as usize / 4 + 1;
        for (i, &cut) in cuts.iter().enumerate().filter(|(_, c)| c.stop == stop) {
            if self.case.cut.is_some_and(|c| c != i as u32) {
                continue;
            }
            let case = self.case.at(0, i as u32);
            let lasted = lasted(run, requests, cut);
            files.apply(cut);
            let alive = i % self.options.alive_every.max(1) as usize == 0;
            let depth = ExamineOptions { twice: true, alive, worn: false, stop, seed: cut.seed };
            let target = self.target.over_files();
            match guarded(|| examine(target, stores, &run.history, &lasted, depth)) {
                Ok(seen) => {
                    let versions = seen.versions.clone();
                    self.tally.image(&seen);
                    if i % every == 0 || !self.case.nested.is_empty() {
                        files.apply(cut);
                        self.files_nested(&case, stores, &versions, cut);
                    }
                }
                Err(v) => {
                    let n = run.log.accesses.len();
                    let what = format!(
                        "{} [{stop:?} stopped at access {} of {n}; written back: {:?}]",
                        v.what, cut.at, cut.back
                    );
                    self.found(case, Violation { what, ..v });
                }
            }
            if self.done() {
                return;
            }
        }
    }

    fn files_run(&self) -> Result<(RecordedRun, Vec<SharedMedium>, Vec<ClientRequest>), Violation> {
        let mut rng = SmallRng::seed_from_u64(self.seed(1));
        let mut session = RecordingSession::new(self.target.over_files(), true, self.options.mutation)?;
        let flush = ClientRequestKind::Flush.without_range();
        let mut before = Vec::new();
        if rng.random_bool(0.7) {
            before.extend(fill_requests(session.blocks));
            let mix = WorkloadMix { requests: 80, clients: 1, hot_blocks: 8, most_sectors: 16, discards: 30 };
            before.extend(mix.requests(&mut rng, session.blocks));
        }
        // The stores are fully synced where the recording starts. The flush lets the layer know it.
        before.push(flush);
        session.prepare(&before)?;
        if rng.random_bool(0.3) {
            session.restart()?;
            session.prepare(&[flush])?;
        }
        let requests = self.requests(0, session.blocks);
        let (run, stores) = session.record(&requests)?;
        // The base of the media is their contents before the recording.
        for s in &stores {
            s.lock().undo();
        }
        Ok((run, stores, requests))
    }

    /// Stops the recovery in the same way, and compares the contents after a second recovery.
    fn files_nested(
        &mut self,
        case: &crate::block::case::TortureCase,
        stores: &[SharedMedium],
        want: &[Versions],
        cut: FileStop,
    ) {
        let target = self.target.over_files();
        let copies = copy(stores, target);
        let log = match guarded(|| recovery_log(target, &copies, cut.stop)) {
            Ok(l) => l,
            Err(v) => return self.found(case.clone(), v),
        };
        let again = choose_stops(log.accesses.len(), cut.seed, NESTED);
        let mut files = FileImages::new(&log, &copies);
        for (i, inner) in again.into_iter().enumerate() {
            if self.case.nested.first().is_some_and(|&n| n != i as u32) {
                continue;
            }
            let back = if cut.stop == CrashKind::Process { WritebackOutcome::All(0) } else { inner.back };
            files.apply(FileStop { stop: cut.stop, back, ..inner });
            self.tally.nested += 1;
            match guarded(|| recover_and_read(target, &copies, want.len(), cut.stop)) {
                Ok(up) if up.seen.versions == want => self.tally.image(&up.seen),
                Ok(up) => {
                    let what = format!(
                        "{} [{:?} stopped, then again at access {} of {} of recovery, {back:?}]",
                        describe_difference(want, &up.seen.versions),
                        cut.stop,
                        inner.at,
                        log.accesses.len()
                    );
                    return self.found(case.inner(i as u32), Violation::new(Oracle::Converges, what));
                }
                Err(v) => {
                    let what = format!(
                        "after a recovery that was cut off: {} [{:?} at access {} of {}, {back:?}]",
                        v.what,
                        cut.stop,
                        inner.at,
                        log.accesses.len()
                    );
                    return self.found(case.inner(i as u32), Violation { what, ..v });
                }
            }
        }
    }
}

/// Records the accesses of a recovery. The stores keep the image as their base.
fn recovery_log(
    target: &dyn crate::block::target::TortureTarget,
    stores: &[SharedMedium],
    stop: CrashKind,
) -> Result<AccessRecords, Violation> {
    let access_log = Arc::new(AccessLog::default());
    for s in stores {
        let mut m = s.lock();
        m.commit();
        m.access_log = Some(access_log.clone());
    }
    let opening = |e| Violation::error(Oracle::Recovers, "recovery", &e);
    let mut layer = target.build(stores).map_err(opening)?;
    let done = layer.recover(&mut Sink::untimed(), stop);
    drop(layer);
    for s in stores {
        let mut m = s.lock();
        m.access_log = None;
        m.undo();
    }
    done.map_err(opening)?;
    Ok(access_log.take())
}

/// Returns the requests that must be durable after a stop. After a crash these are all acknowledged
/// requests. After a power loss these are the requests before an acknowledged flush, and FUA
/// writes.
fn lasted(run: &RecordedRun, requests: &[ClientRequest], cut: FileStop) -> CommandSet {
    let acknowledged = |r: usize| run.spans[r].2 && run.spans[r].1 as usize <= cut.at;
    let mut set = CommandSet::new(requests.len());
    let flushed = (0..requests.len()).rev().find(|&r| requests[r].kind.makes_certain() && acknowledged(r));
    for (r, request) in requests.iter().enumerate() {
        let fua = matches!(request.kind, ClientRequestKind::Write(h) if h.has(Hints::FUA));
        // A layer that buffers writes in DRAM loses them in a crash as well.
        let sure = cut.stop == CrashKind::Process && !run.in_dram || fua || flushed.is_some_and(|f| r < f);
        if sure && acknowledged(r) {
            set.add(r);
        }
    }
    set
}
