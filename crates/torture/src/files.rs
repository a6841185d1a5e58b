//! Backing files behind a page cache: what is left of them when the program is killed, and when the machine
//! stops.
//!
//! A killed program leaves all that it wrote, up to some write to a store, or up to a page of the cache
//! within it. A machine that stops leaves what was synced; each page of 4 KiB of the cache had been written
//! back as it was at some moment since, or not at all, and one that was being written back is torn between
//! sectors of 512 bytes.

use crate::cuts::{Item, copy, guarded};
use crate::medium::{Medium, Shared};
use crate::oracle::{Depth, Oracle, Violation, bring_up, differing, examine};
use crate::session::{Run, Session};
use crate::set::Set;
use crate::stamp::{Versions, mix};
use crate::tap::{AccessKind, Log, Tap};
use crate::workload::{Kind, Mix, Request, fill_requests};
use frit_core::{Hints, Null, Stop};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::{Arc, MutexGuard};

/// Cuts of a workload, at most.
const CUTS: usize = 900;
/// Cuts of one recovery.
const NESTED: usize = 16;
const CACHE_PAGE: u64 = 4096;
const DISK_SECTOR: u64 = 512;

/// What was written back, of what was not synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Back {
    /// Everything, and of the next write the part before this many pages.
    All(u8),
    /// Nothing.
    None,
    /// Each page as it was at some moment.
    Pages,
    /// Each sector as it was at some moment.
    Sectors,
    /// One page as it was last, the others not.
    One,
    /// All as they were last, one not.
    AllBut,
}

/// A stop.
#[derive(Clone, Copy, Debug)]
pub struct FileCut {
    /// Accesses before it.
    pub at: usize,
    /// What stopped.
    pub stop: Stop,
    /// What is there of what was not synced.
    pub back: Back,
    /// For what is left to chance.
    pub seed: u64,
}

/// Stops at every access, or at as many as are wanted.
#[must_use]
pub fn choose(accesses: usize, seed: u64, most: usize) -> Vec<FileCut> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut cuts: Vec<FileCut> = (0..most)
        .map(|i| {
            let at = if accesses < most / 2 { i % (accesses + 1) } else { rng.random_range(0..=accesses) };
            let (stop, back) = match rng.random_range(0..12u8) {
                0..3 => (Stop::Process, Back::All(0)),
                3 => (Stop::Process, Back::All(rng.random_range(1..4))),
                4 => (Stop::Machine, Back::All(0)),
                5 => (Stop::Machine, Back::None),
                6..8 => (Stop::Machine, Back::Pages),
                8..10 => (Stop::Machine, Back::Sectors),
                10 => (Stop::Machine, Back::One),
                _ => (Stop::Machine, Back::AllBut),
            };
            FileCut { at, stop, back, seed: rng.random() }
        })
        .collect();
    cuts.sort_by_key(|c| c.at);
    cuts
}

/// Makes what a stop leaves, in rising order of stops.
#[derive(Debug)]
pub struct Files<'a> {
    log: &'a Log,
    stores: &'a [Shared],
    /// For each medium, accesses that are part of its base.
    rolled: Vec<usize>,
}

impl<'a> Files<'a> {
    /// Over stores that hold what was there before the log.
    #[must_use]
    pub fn new(log: &'a Log, stores: &'a [Shared]) -> Files<'a> {
        Files { log, stores, rolled: vec![0; stores.len()] }
    }

    /// The accesses to a medium in a range that wrote, with their numbers.
    fn writes(&self, medium: usize, from: usize, to: usize) -> impl Iterator<Item = (usize, u64, &'a [u8])> {
        let log = self.log;
        log.accesses[from..to].iter().enumerate().filter_map(move |(i, a)| match a.kind {
            AccessKind::Write { at, from: f, len } if a.medium as usize == medium => {
                Some((from + i, at, log.data(f, len)))
            }
            _ => None,
        })
    }

    /// Makes what this stop leaves. Stops have to come in rising order, those of processes and of machines
    /// over stores of their own.
    pub fn apply(&mut self, cut: FileCut) {
        let kill = cut.stop == Stop::Process;
        for (i, store) in self.stores.iter().enumerate() {
            let mut m = store.lock();
            m.undo();
            let synced = self.log.accesses[..cut.at]
                .iter()
                .rposition(|a| a.medium as usize == i && a.kind == AccessKind::Sync)
                .map_or(0, |s| s + 1);
            let certain = if kill { cut.at } else { synced };
            if certain > self.rolled[i] {
                for (_, at, data) in self.writes(i, self.rolled[i], certain) {
                    m.put(at, data);
                }
                m.commit();
                self.rolled[i] = certain;
            }
            // A kill may have rolled the base past what a machine would have synced: then all of it is there,
            // which a machine may leave as well.
            let from = self.rolled[i].max(certain);
            if from < cut.at {
                self.unsynced(&mut m, i, from, cut);
            }
        }
        if let (Back::All(pages @ 1..), Some(a)) = (cut.back, self.log.accesses.get(cut.at))
            && let AccessKind::Write { at, from, len } = a.kind
        {
            let end = (at / CACHE_PAGE + u64::from(pages)) * CACHE_PAGE;
            let part = (end - at).min(u64::from(len)) as u32;
            self.stores[a.medium as usize].lock().put(at, self.log.data(from, part));
        }
    }

    fn unsynced(&self, m: &mut MutexGuard<'_, Medium>, medium: usize, from: usize, cut: FileCut) {
        let span = (cut.at - from) as u64 + 1;
        let unit = if cut.back == Back::Sectors { DISK_SECTOR } else { CACHE_PAGE };
        // One page of those that were written, for the modes that pick one.
        let pages: Vec<u64> = self
            .writes(medium, from, cut.at)
            .flat_map(|(_, at, d)| at / unit..(at + d.len() as u64).div_ceil(unit))
            .collect();
        let one = pages.get(cut.seed as usize % pages.len().max(1)).copied();
        // Until which access a page is as it was written back.
        let until = |page: u64| match cut.back {
            Back::All(_) => cut.at,
            Back::None => from,
            Back::Pages | Back::Sectors => {
                from + (mix(cut.seed ^ page ^ (medium as u64) << 48) % span) as usize
            }
            Back::One => {
                if Some(page) == one {
                    cut.at
                } else {
                    from
                }
            }
            Back::AllBut => {
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

impl Item<'_> {
    /// A workload over files.
    pub(crate) fn files(&mut self) {
        let (run, stores, requests) = match guarded(|| self.files_run()) {
            Ok(r) => r,
            Err(v) => return self.found(self.case.clone(), v),
        };
        self.tally.requests += requests.len() as u64;
        self.tally.commands += run.commands;
        let most = self.options.cuts_most.unwrap_or(CUTS);
        let cuts = choose(run.log.accesses.len(), self.seed(300), most);
        self.tally.cuts += cuts.len() as u64;
        // Kills and machine stops roll their bases apart.
        for stop in [Stop::Process, Stop::Machine] {
            let own = copy(&stores, self.subject.over_files());
            self.files_cuts(&run, &own, &requests, &cuts, stop);
            if self.done() {
                return;
            }
        }
    }

    fn files_cuts(
        &mut self,
        run: &Run,
        stores: &[Shared],
        requests: &[Request],
        cuts: &[FileCut],
        stop: Stop,
    ) {
        let mut files = Files::new(&run.log, stores);
        let every = self.options.nested_every.max(1) as usize / 4 + 1;
        for (i, &cut) in cuts.iter().enumerate().filter(|(_, c)| c.stop == stop) {
            if self.case.cut.is_some_and(|c| c != i as u32) {
                continue;
            }
            let case = self.case.at(0, i as u32);
            let lasted = lasted(run, requests, cut);
            files.apply(cut);
            let alive = i % self.options.alive_every.max(1) as usize == 0;
            let depth = Depth { twice: true, alive, worn: false, stop, seed: cut.seed };
            let subject = self.subject.over_files();
            match guarded(|| examine(subject, stores, &run.history, &lasted, depth)) {
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

    fn files_run(&self) -> Result<(Run, Vec<Shared>, Vec<Request>), Violation> {
        let mut rng = SmallRng::seed_from_u64(self.seed(1));
        let mut session = Session::new(self.subject.over_files(), true, self.options.mutation)?;
        let flush = Kind::Flush.alone();
        let mut before = Vec::new();
        if rng.random_bool(0.7) {
            before.extend(fill_requests(session.blocks));
            let mix = Mix { requests: 80, clients: 1, hot_blocks: 8, most_sectors: 16, discards: 30 };
            before.extend(mix.requests(&mut rng, session.blocks));
        }
        // Where recording starts all is on the disk, so the layer has to know it too.
        before.push(flush);
        session.prepare(&before)?;
        if rng.random_bool(0.3) {
            session.restart()?;
            session.prepare(&[flush])?;
        }
        let requests = self.requests(0, session.blocks);
        let (run, stores) = session.record(&requests)?;
        // The base of the media is what was there before.
        for s in &stores {
            s.lock().undo();
        }
        Ok((run, stores, requests))
    }

    /// The recovery, stopped in the same way.
    fn files_nested(&mut self, case: &crate::case::Case, stores: &[Shared], want: &[Versions], cut: FileCut) {
        let subject = self.subject.over_files();
        let copies = copy(stores, subject);
        let log = match guarded(|| recovery_log(subject, &copies, cut.stop)) {
            Ok(l) => l,
            Err(v) => return self.found(case.clone(), v),
        };
        let again = choose(log.accesses.len(), cut.seed, NESTED);
        let mut files = Files::new(&log, &copies);
        for (i, inner) in again.into_iter().enumerate() {
            if self.case.nested.first().is_some_and(|&n| n != i as u32) {
                continue;
            }
            let back = if cut.stop == Stop::Process { Back::All(0) } else { inner.back };
            files.apply(FileCut { stop: cut.stop, back, ..inner });
            self.tally.nested += 1;
            match guarded(|| bring_up(subject, &copies, want.len(), cut.stop)) {
                Ok(up) if up.seen.versions == want => self.tally.image(&up.seen),
                Ok(up) => {
                    let what = format!(
                        "{} [{:?} stopped, then again at access {} of {} of recovery, {back:?}]",
                        differing(want, &up.seen.versions),
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

/// What a recovery does to the stores, which keep the image as their base.
fn recovery_log(
    subject: &dyn crate::subject::Subject,
    stores: &[Shared],
    stop: Stop,
) -> Result<Log, Violation> {
    let tap = Arc::new(Tap::default());
    for s in stores {
        let mut m = s.lock();
        m.commit();
        m.tap = Some(tap.clone());
    }
    let opening = |e| Violation::error(Oracle::Recovers, "recovery", &e);
    let mut layer = subject.live(stores).map_err(opening)?;
    let done = layer.recover(&mut Null, stop);
    drop(layer);
    for s in stores {
        let mut m = s.lock();
        m.tap = None;
        m.undo();
    }
    done.map_err(opening)?;
    Ok(tap.take())
}

/// The requests that are sure to have lasted: after a kill all that were acknowledged; after a stop of the
/// machine those before a flush that was, and writes that had to be durable themselves.
fn lasted(run: &Run, requests: &[Request], cut: FileCut) -> Set {
    let acknowledged = |r: usize| run.spans[r].2 && run.spans[r].1 as usize <= cut.at;
    let mut set = Set::new(requests.len());
    let flushed = (0..requests.len()).rev().find(|&r| requests[r].kind.makes_certain() && acknowledged(r));
    for (r, request) in requests.iter().enumerate() {
        let fua = matches!(request.kind, Kind::Write(h) if h.has(Hints::FUA));
        let sure = cut.stop == Stop::Process && !run.in_dram || fua || flushed.is_some_and(|f| r < f);
        if sure && acknowledged(r) {
            set.add(r);
        }
    }
    set
}
