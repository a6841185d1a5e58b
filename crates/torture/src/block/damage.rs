//! Damage without a power cut: flipped bits; lost, misplaced and stale accesses.

use crate::block::at_rest::{AtRestDamage, DamagedRange};
use crate::block::command_set::CommandSet;
use crate::block::fault::{Fault, FaultKind};
use crate::block::history::History;
use crate::block::medium::SharedMedium;
use crate::block::mirror_sources::MirrorSources;
use crate::block::self_describing::{self, BLOCK, PER_BLOCK, SECTOR, Versions};
use crate::block::target::TortureTarget;
use crate::block::violation::{Oracle, Violation};
use crate::block::work_item::{WorkItem, guarded};
use crate::block::workload::{
    ClientRequest, Clients, RequestFailure, WorkloadMix, fill_requests, forget_unflushed,
};
use frit_core::{CheckScope, CrashKind, DurabilityPoint, Hints, ReadTarget, Sector, Sink, StackDevice};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Number of damages of one volume.
const DAMAGES: usize = 500;

/// Reports of damage by a client's request, a recovery or a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct DamageReports {
    /// Opening, recovery or a read failed.
    error: bool,
    /// A check reported a finding.
    found: bool,
}

impl DamageReports {
    fn any(self) -> bool {
        self.error || self.found
    }
}

/// Condition under which a read may return other data than the last version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WrongDataRule {
    Never,
    /// A check reports the damage.
    IfFound,
    /// The caller compares the data itself.
    CallerVerifies,
}

/// Contents of each block; `None` where the read failed.
type ReadBlocks = Vec<Option<Versions>>;

/// Reads each block with a request of its own.
fn read_each(layer: &mut dyn StackDevice, blocks: usize) -> Result<(ReadBlocks, bool), Violation> {
    let mut got = Vec::with_capacity(blocks);
    let mut bytes = [0u8; BLOCK];
    let mut errors = false;
    for b in 0..blocks {
        let first = (b * PER_BLOCK) as u64;
        match layer.read(&mut Sink::untimed(), Sector(first), ReadTarget::Bytes(&mut bytes), Hints::NONE) {
            Err(e @ frit_core::Error::Rule { .. }) => {
                return Err(Violation::error(Oracle::Rule, "reading", &e));
            }
            Err(_) => {
                errors = true;
                got.push(None);
            }
            Ok(()) => {
                let mut v: Versions = [0; PER_BLOCK];
                for (j, s) in bytes.chunks_exact(SECTOR).enumerate() {
                    v[j] = self_describing::version(first + j as u64, s).map_err(|bad| {
                        Violation::new(Oracle::Torn, format!("sector {} gave {bad:?}", first + j as u64))
                    })?;
                }
                got.push(Some(v));
            }
        }
    }
    Ok((got, errors))
}

/// Verifies that extents reported as holes read as zeros: a program that copies a volume by its
/// extents leaves them out.
fn holes_are_zeros(layer: &mut dyn StackDevice) -> Result<(), Violation> {
    let sectors = layer.info().sectors;
    let (mut holes, mut at) = (Vec::new(), 0);
    let told = layer.extents(Sector(0), sectors, &mut |e| {
        if e.place.is_none() {
            holes.push(at..at + e.sectors);
        }
        at += e.sectors;
    });
    if told.is_err() {
        return Ok(());
    }
    let mut bytes = [0u8; BLOCK];
    for hole in holes {
        for first in hole.clone().step_by(PER_BLOCK) {
            let part = &mut bytes[..(hole.end - first).min(PER_BLOCK as u64) as usize * SECTOR];
            let read = layer.read(&mut Sink::untimed(), Sector(first), ReadTarget::Bytes(part), Hints::NONE);
            let what = match read {
                Err(e) => format!("sector {first} is reported as a hole, and reading it fails: {e}"),
                Ok(()) if part.iter().any(|&b| b != 0) => {
                    format!("sector {first} is reported as a hole, and holds data")
                }
                Ok(()) => continue,
            };
            return Err(Violation::new(Oracle::Content, what));
        }
    }
    Ok(())
}

/// A volume with known contents that is not in use.
struct IdleVolume {
    stores: Vec<SharedMedium>,
    history: History,
    blocks: usize,
    /// The volume was closed with a halt.
    halted: bool,
    /// All versions that each block ever had.
    all: History,
    /// Contents of the stores after the first half of the requests.
    earlier: Vec<Vec<u8>>,
    /// The volume is made for backing files, which may lose what is not synced.
    over_files: bool,
    /// Kind of stop after which the volume is opened again. A volume over files is opened as after
    /// a power loss, also if it was halted.
    stop: CrashKind,
    /// For each medium, whether a damaged page of it may look like an incomplete one: it has an FTL
    /// below another layer, which the last flush did not reach. Its newest mark then states an
    /// earlier flush.
    last_flush_missed: Vec<bool>,
}

impl IdleVolume {
    /// Returns the rule for a damage of a page that is possibly newer than the flush of the newest
    /// mark.
    fn after_last_mark(&self, medium: usize) -> WrongDataRule {
        if self.last_flush_missed[medium] { WrongDataRule::CallerVerifies } else { WrongDataRule::Never }
    }
}

impl WorkItem<'_> {
    /// Applies damage of all kinds. A stack without a medium whose damage a layer can detect has
    /// none.
    pub(crate) fn damage(&mut self) {
        if self.target.media().iter().all(|m| !m.verified) {
            return;
        }
        match guarded(|| self.still()) {
            Ok(still) => {
                for i in 0..DAMAGES.min(self.options.cuts_most.unwrap_or(DAMAGES)) {
                    if self.case.cut.is_some_and(|c| c != i as u32) {
                        continue;
                    }
                    for s in &still.stores {
                        let mut m = s.lock();
                        m.fault = None;
                        m.undo();
                    }
                    let mut rng = SmallRng::seed_from_u64(self.seed(1000 + i as u64));
                    let kind = rng.random_range(0..10u8);
                    self.tally.faults += 1;
                    let done = guarded(|| match kind {
                        0..6 => self.at_rest(&still, &mut rng),
                        6 => self.on_read(&still, &mut rng),
                        _ => self.well_formed(&still, &mut rng),
                    });
                    match done {
                        Ok((struck, told)) => {
                            self.tally.faults_struck += u64::from(struck);
                            self.tally.faults_seen += u64::from(told.any());
                        }
                        Err(v) => self.found(self.case.at(0, i as u32), v),
                    }
                    if self.done() {
                        return;
                    }
                }
            }
            Err(v) => self.found(self.case.clone(), v),
        }
    }

    /// Returns the target that the volume was made with.
    fn subject_of(&self, still: &IdleVolume) -> &dyn TortureTarget {
        if still.over_files { self.target.over_files() } else { self.target }
    }

    /// Draws a medium whose damage a layer can detect.
    fn some_medium(&self, rng: &mut SmallRng) -> usize {
        let media = self.target.media();
        let all: Vec<usize> = (0..media.len()).filter(|&i| media[i].verified).collect();
        all[rng.random_range(0..all.len())]
    }

    /// Returns `true` if a layer finds its pages by their records alone.
    fn finds_by_records(&self) -> bool {
        self.target.media().iter().any(|m| m.nand.is_some_and(|nand| nand.record_copies > 1))
    }

    /// Creates a volume with contents, halted or not.
    fn still(&self) -> Result<IdleVolume, Violation> {
        let mut rng = SmallRng::seed_from_u64(self.seed(1));
        let over_files = rng.random_bool(0.5);
        let target = if over_files { self.target.over_files() } else { self.target };
        let stores = target.blank_stores();
        stores.iter().for_each(|s| s.lock().volatile = over_files);
        let failed = |doing: &'static str| move |e| Violation::error(Oracle::Alive, doing, &e);
        let mut layer = target.build(&stores).map_err(failed("opening"))?;
        layer.format(&mut Sink::untimed()).map_err(failed("format"))?;
        let blocks = layer.info().sectors / PER_BLOCK as u64;
        let mut clients = Clients::new(History::empty(blocks as usize), 0);
        let mut requests = fill_requests(blocks);
        let mix = WorkloadMix { requests: 120, clients: 2, hot_blocks: 10, most_sectors: 16, discards: 40 };
        requests.extend(mix.requests(&mut rng, blocks));
        let mut earlier = Vec::new();
        for (i, r) in requests.iter().enumerate() {
            if i == requests.len() / 2 {
                earlier = stores.iter().map(|s| s.lock().bytes().to_vec()).collect();
            }
            clients.perform(layer.as_mut(), &mut Sink::untimed(), r, 0).map_err(|f| plain(f, r))?;
        }
        let halted = rng.random_bool(0.5);
        let mut last_flush_missed = vec![false; stores.len()];
        if halted {
            layer.halt(&mut Sink::untimed()).map_err(failed("halt"))?;
        } else {
            // A record written shortly before a crash looks torn when it is damaged. After a flush
            // it does not; in an FTL, after the flush that follows.
            layer.flush(&mut Sink::untimed()).map_err(failed("flush"))?;
            let before: Vec<_> = stores.iter().map(|s| s.lock().bytes().to_vec()).collect();
            layer.flush(&mut Sink::untimed()).map_err(failed("flush"))?;
            for (i, medium) in target.media().iter().enumerate() {
                let by_records = medium.nand.is_some_and(|nand| nand.record_copies > 1);
                last_flush_missed[i] = by_records && !medium.of_top && stores[i].lock().bytes() == before[i];
            }
        }
        drop(layer);
        let now: Vec<Versions> = (0..blocks as usize).map(|b| clients.history.now(b)).collect();
        for s in &stores {
            s.lock().commit();
        }
        let stop = if over_files { CrashKind::PowerLoss } else { CrashKind::Process };
        let history = History::new(&now);
        let (blocks, all) = (blocks as usize, clients.history);
        Ok(IdleVolume { stores, history, blocks, halted, all, earlier, over_files, stop, last_flush_missed })
    }

    /// Opens, recovers, checks and reads the volume, and verifies the data that it returns.
    fn told(
        &self,
        still: &IdleVolume,
        wrong: WrongDataRule,
    ) -> Result<(DamageReports, Option<ReadBlocks>), Violation> {
        let error = DamageReports { error: true, found: false };
        let Ok(mut layer) = self.subject_of(still).build(&still.stores) else { return Ok((error, None)) };
        let recovery = match layer.recover(&mut Sink::untimed(), still.stop) {
            Ok(r) => r,
            Err(e @ frit_core::Error::Rule { .. }) => {
                return Err(Violation::error(Oracle::Rule, "recovery", &e));
            }
            Err(_) => return Ok((error, None)),
        };
        let mut found = recovery.lost_any();
        let scope = CheckScope { data: true, ..CheckScope::default() };
        let checked = layer.check(&mut Sink::untimed(), scope, &mut |_| found = true);
        let layered = self.target.is_layered();
        let (got, errors) = read_each(layer.as_mut(), still.blocks)?;
        holes_are_zeros(layer.as_mut())?;
        if wrong == WrongDataRule::Never || wrong == WrongDataRule::IfFound && !found {
            for (b, v) in got.iter().enumerate() {
                let want = still.history.now(b);
                // Only the map records a discard: an earlier map with an earlier page is consistent.
                let discarded = layered
                    && wrong == WrongDataRule::IfFound
                    && still.all.changes(b).iter().any(|c| c.version == 0);
                if v.is_some_and(|v| v != want) && !discarded {
                    let what =
                        format!("block {b} reads as {v:?}, written was {want:?}; a check found {found}");
                    return Err(Violation::new(Oracle::Content, what));
                }
            }
        }
        Ok((DamageReports { error: errors || checked.is_err(), found }, Some(got)))
    }

    /// Changes bits at rest, anywhere. The volume must never return wrong data.
    fn at_rest(&self, still: &IdleVolume, rng: &mut SmallRng) -> Result<(bool, DamageReports), Violation> {
        let medium = self.some_medium(rng);
        let what = AtRestDamage::draw(rng);
        let struck = {
            let mut m = still.stores[medium].lock();
            what.strike(&mut m, &still.earlier[medium], rng)
        };
        let wrong = self.exception(still, medium, what, struck);
        let named = |v: Violation| {
            let (at, len) = (struck.at, struck.len);
            let how = if still.halted { "closed in order" } else { "not closed" };
            let what =
                format!("{what:?} at {at}+{len} of medium {medium}, {how}, {:?}: {}", still.stop, v.what);
            Violation { what, ..v }
        };
        let (told, got) = self.told(still, wrong).map_err(named)?;
        for (b, v) in got.iter().flatten().enumerate() {
            if v.is_some_and(|v| !still.all.ever_or_zero(b, &v)) {
                let what = format!("block {b} reads as {v:?}, which it never was");
                return Err(named(Violation::new(Oracle::Content, what)));
            }
        }
        Ok((true, told))
    }

    /// Returns the damage at rest after which an older version may be read.
    /// docs/design/durability.md lists these exceptions; there are no others.
    fn exception(
        &self,
        still: &IdleVolume,
        medium: usize,
        what: AtRestDamage,
        struck: DamagedRange,
    ) -> WrongDataRule {
        let maps = self.target.media().iter().any(|m| m.nand.is_some());
        match what {
            // The map has entries of an earlier time, and their pages still exist. A check finds
            // the newer pages, unless a crash came between: a crash also leaves pages of writes
            // that were not acknowledged.
            AtRestDamage::Older if maps && still.halted => WrongDataRule::IfFound,
            AtRestDamage::Older if maps => WrongDataRule::CallerVerifies,
            // After a crash, a record with both copies damaged cannot be told from one that was
            // never complete.
            _ if struck.both_copies && !still.halted && (!maps || self.finds_by_records()) => {
                WrongDataRule::CallerVerifies
            }
            _ => still.after_last_mark(medium),
        }
    }

    /// Flips a bit once on a read. The volume must never return wrong data, and the damage must not
    /// last.
    fn on_read(&self, still: &IdleVolume, rng: &mut SmallRng) -> Result<(bool, DamageReports), Violation> {
        let medium = self.some_medium(rng);
        let fault = Fault::new(
            medium as u8,
            rng.random_range(0..400),
            FaultKind::FlipOnRead { bit: rng.random_range(0..1 << 15) },
        );
        let after = fault.after;
        still.stores[medium].lock().fault = Some(fault);
        let at = |v: Violation| {
            let what = format!("a bit flipped on read {after} of medium {medium}: {}", v.what);
            Violation { what, ..v }
        };
        let wrong = still.after_last_mark(medium);
        let (told, _) = self.told(still, wrong).map_err(at)?;
        let struck = still.stores[medium].lock().fault.take().is_some_and(|t| t.struck > 0);
        // A second pass without the fault shows whether the first one left any damage.
        let (again, got) = self.told(still, wrong).map_err(at)?;
        if again.any() || got.is_none() {
            let what = "the damage lasted though the medium has none";
            return Err(at(Violation::new(Oracle::Again, what)));
        }
        Ok((struck, told))
    }

    /// Loses, misplaces or delays accesses; all data stays well-formed. A read must return a
    /// version of the same block, and a check must find an old one.
    fn well_formed(
        &self,
        still: &IdleVolume,
        rng: &mut SmallRng,
    ) -> Result<(bool, DamageReports), Violation> {
        let medium = self.some_medium(rng);
        let what = well_formed_fault(&still.stores[medium], rng);
        let fault = Fault::new(medium as u8, rng.random_range(0..24), what);
        let struck_at;
        let mut open_found = false;
        let mut error = false;
        let struck;
        let mut lasted = CommandSet::new(64);
        let mut clients = Clients::new(still.history.clone(), 10_000);
        {
            let mut layer = self
                .subject_of(still)
                .build(&still.stores)
                .map_err(|e| Violation::error(Oracle::Recovers, "opening", &e))?;
            layer
                .recover(&mut Sink::untimed(), still.stop)
                .map_err(|e| Violation::error(Oracle::Recovers, "recovery", &e))?;
            still.stores[medium].lock().fault = Some(fault);
            let mix = WorkloadMix { requests: 6, clients: 1, hot_blocks: 0, most_sectors: 8, discards: 20 };
            let requests = mix.requests(rng, still.blocks as u64);
            let mut flushed = 0;
            for (i, r) in requests.iter().enumerate() {
                match clients.perform(layer.as_mut(), &mut Sink::untimed(), r, i as u32) {
                    Ok(()) => {
                        lasted.add(i);
                        if r.kind.makes_certain() {
                            flushed = i;
                        }
                    }
                    Err(RequestFailure::Error(frit_core::Error::Rule { what, at, .. })) => {
                        return Err(Violation::new(Oracle::Rule, format!("{r}: {what} at {at}")));
                    }
                    Err(RequestFailure::Error(_)) => error = true,
                    Err(RequestFailure::Violation(v)) => return Err(v),
                }
            }
            let fault = still.stores[medium].lock().fault.take();
            struck = fault.as_ref().is_some_and(|t| t.struck > 0);
            struck_at = fault.map_or((0, 0), |t| t.place);
            // While the volume is open, its map in DRAM holds the contents that PCM should have.
            // Only this check finds a lost map entry of a discard, or of a write over a discard:
            // after a restart no other record names the page.
            let scope = CheckScope { data: false, ..CheckScope::default() };
            error |= layer.check(&mut Sink::untimed(), scope, &mut |_| open_found = true).is_err();
            let halted = layer.halt(&mut Sink::untimed());
            error |= halted.is_err();
            // A request that failed leaves each sector old or new (docs/reference/composition.md, failure): the
            // pages before one that could not be read are written.
            let mut failed = CommandSet::new(requests.len());
            (0..requests.len()).filter(|&i| !lasted.has(i)).for_each(|i| failed.add(i));
            clients.history.split(&failed);
            // The halt reports the loss of what was not flushed.
            if halted.is_err() && layer.write_guarantee().durable_at == DurabilityPoint::OnFlush {
                forget_unflushed(&mut lasted, &requests, flushed);
                clients.history.split(&CommandSet::below(requests.len(), requests.len()));
            }
        }
        let named = |v: Violation| {
            let (at, len) = struck_at;
            Violation { what: format!("{what:?} on medium {medium} at {at}+{len}: {}", v.what), ..v }
        };
        let (told, got) = self.told(still, WrongDataRule::CallerVerifies).map_err(named)?;
        let found = (open_found, told.found);
        let told = DamageReports { error: told.error || error, found: told.found || open_found };
        for (b, v) in got.iter().flatten().enumerate() {
            if let Some(v) = v.filter(|v| !clients.history.allows(b, &lasted, v, &MirrorSources::default())) {
                self.is_known(still, &clients.history, b, &v, what, found).map_err(named)?;
            }
        }
        Ok((struck, told))
    }

    /// Verifies that a check has found the wrong version of a block, and that the block once had it.
    /// `found` tells what the checks of the open and of the closed volume found.
    fn is_known(
        &self,
        still: &IdleVolume,
        history: &History,
        b: usize,
        v: &Versions,
        what: FaultKind,
        (open_found, closed_found): (bool, bool),
    ) -> Result<(), Violation> {
        let layered = self.target.is_layered() || self.finds_by_records();
        // Only the map records a discard, and a misplaced entry may hit the descriptor that it
        // names. Every other change must also be found on a closed volume.
        let discarded = history.changes(b).iter().any(|c| c.version == 0);
        let had_zeros = history.had_zeros(b) || layered && still.all.had_zeros(b);
        let hidden = discarded || what != FaultKind::Lost || had_zeros;
        let known = closed_found || open_found && hidden;
        // A layer below a cache, and NAND without a map, can have a version from before this opening.
        let held = |s: usize| history.held(b, s, v[s]) || layered && still.all.held(b, s, v[s]);
        if known && (0..PER_BLOCK).all(|s| v[s] == 0 || held(s)) {
            return Ok(());
        }
        let want = history.now(b);
        let what = format!(
            "block {b} reads as {v:?}, written was {want:?}; a check of the open volume found {open_found}, of the \
             closed one {closed_found}"
        );
        Err(Violation::new(Oracle::Unseen, what))
    }
}

/// Draws a fault after which all data is well-formed.
fn well_formed_fault(medium: &SharedMedium, rng: &mut SmallRng) -> FaultKind {
    match rng.random_range(0..5u8) {
        0..2 => FaultKind::Lost,
        2..4 => {
            let pages = medium.lock().nand.is_some();
            FaultKind::Misplaced {
                by: if pages { rng.random_range(1..40) } else { 8 << rng.random_range(0..7) },
            }
        }
        _ => FaultKind::Stale,
    }
}

fn plain(f: RequestFailure, r: &ClientRequest) -> Violation {
    match f {
        RequestFailure::Error(e) => Violation::error(Oracle::Alive, &r.to_string(), &e),
        RequestFailure::Violation(v) => v,
    }
}
