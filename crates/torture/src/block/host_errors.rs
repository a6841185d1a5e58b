//! Errors of the host while a volume is used. Each error reaches the client whose request met it,
//! no acknowledged data is lost, and a layer that can no longer write refuses writes.

use crate::block::command_set::CommandSet;
use crate::block::fault::{Fault, FaultKind};
use crate::block::history::History;
use crate::block::medium::SharedMedium;
use crate::block::mirror_sources::MirrorSources;
use crate::block::oracle::{ExamineOptions, examine, read_all, verify_contents};
use crate::block::self_describing::{BLOCK, PER_BLOCK};
use crate::block::target::TortureTarget;
use crate::block::violation::{Oracle, Violation};
use crate::block::work_item::{WorkItem, guarded};
use crate::block::workload::{
    ClientRequest, ClientRequestKind, Clients, RequestFailure, WorkloadMix, fill_requests, forget_unflushed,
};
use frit_core::{
    CrashKind, DurabilityPoint, Error, Hints, MediumKind, ReadTarget, Sector, Sink, StackDevice,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::ErrorKind;

/// Largest number of requests that a layer refuses after its disk has recovered: it tries the disk again
/// with one of them in 64 (`RETRY_STEPS` of the cache).
const REFUSED_MAX: usize = 64;
/// Number of errors of one volume.
const ERRORS: usize = 60;

impl WorkItem<'_> {
    /// Injects errors of the host: for each volume one error, or errors of one kind from some
    /// access on.
    pub(crate) fn errors(&mut self) {
        for i in 0..ERRORS.min(self.options.cuts_most.unwrap_or(ERRORS)) {
            if self.case.cut.is_some_and(|c| c != i as u32) {
                continue;
            }
            self.tally.faults += 1;
            let mut counts = (false, false);
            let done = guarded(|| {
                counts = self.error(i)?;
                Ok(())
            });
            self.tally.faults_struck += u64::from(counts.0);
            self.tally.faults_seen += u64::from(counts.1);
            if let Err(v) = done {
                self.found(self.case.at(0, i as u32), v);
            }
            if self.done() {
                return;
            }
        }
    }

    fn plan(rng: &mut SmallRng, media: usize) -> Fault {
        let kind = if rng.random_bool(0.4) { ErrorKind::StorageFull } else { ErrorKind::Other };
        let what = match rng.random_range(0..8u8) {
            0..5 => FaultKind::WriteError(kind, rng.random()),
            5..7 => FaultKind::ReadError(ErrorKind::Other),
            _ if rng.random() => FaultKind::SyncErrorToAnother(ErrorKind::Other),
            _ => FaultKind::SyncError(ErrorKind::Other),
        };
        let most = if what.is_of_syncs() { 6 } else { 200 };
        let t = Fault::new(rng.random_range(0..media) as u8, rng.random_range(0..most), what);
        if rng.random_bool(0.5) { t.sticky() } else { t }
    }

    /// Injects an error into one volume. Returns whether it struck, and whether a client received
    /// an error.
    fn error(&self, i: usize) -> Result<(bool, bool), Violation> {
        let mut rng = SmallRng::seed_from_u64(self.seed(2000 + i as u64));
        let files = rng.random_bool(0.5);
        let target = if files { self.target.over_files() } else { self.target };
        let (stores, mut layer, mut clients) = full(target, files)?;
        let fault = Self::plan(&mut rng, stores.len());
        let (medium, what, after, sticky) = (fault.medium as usize, fault.what, fault.after, fault.sticky);
        let named = |v: Violation| {
            let sticky = if sticky { ", persistent" } else { "" };
            Violation {
                what: format!("{what:?} at access {after} of medium {medium}{sticky}: {}", v.what),
                ..v
            }
        };
        // The layer does without the device for a while, and resumes when it works again.
        let device = matches!(target.media()[medium].kind, MediumKind::Disk | MediumKind::Object);
        {
            // Only files drop their unsynced writes when a sync fails.
            let mut m = stores[medium].lock();
            m.commit();
            m.loses_unsynced = device;
            m.fault = Some(fault);
        }
        let mix = WorkloadMix { requests: 60, clients: 3, hot_blocks: 6, most_sectors: 32, discards: 30 };
        let requests = mix.requests(&mut rng, clients.history.len() as u64);
        let writes = !matches!(what, FaultKind::ReadError(_));
        // A layer can serve writes while a layer below it refuses them: a cache keeps the data, and
        // a stripe writes to its other devices.
        let poisons = writes && !device && target.media()[medium].of_top;
        let loses_unsynced = device && what.is_of_syncs();
        let met =
            run_faulted(layer.as_mut(), &mut clients, &requests, (poisons, loses_unsynced)).map_err(named)?;
        let struck = stores[medium].lock().fault.as_ref().is_some_and(|t| t.struck > 0);
        if struck && !met.told && poisons && layer.refuses().is_none() {
            return Err(named(Violation::new(Oracle::Poisoned, "no client received the error")));
        }
        // A failed write must not prevent reads. A failed flush may: what a table names since the last
        // flush may hold the contents of other places. A layer fails a flush after a failed write.
        if writes && !(target.commits_at_flush() && layer.refuses().is_some()) {
            let mut sector = [0; 512];
            layer
                .read(&mut Sink::untimed(), Sector(0), ReadTarget::Bytes(&mut sector), Hints::NONE)
                .map_err(|e| named(Violation::error(Oracle::Reads, "reads after a failed write", &e)))?;
        }
        stores[medium].lock().fault = None;
        let mut met = met;
        let small = u64::from(layer.write_guarantee().atomic_bytes) < BLOCK as u64;
        if small || target.is_layered() || target.media().iter().any(|m| m.kind == MediumKind::Disk) {
            // The part of a failed request that reached a disk is whole by sectors, and so are
            // smaller pages.
            clients.history.split(&CommandSet::below(requests.len(), requests.len()));
        }
        if device {
            self.resumes(target, layer.as_mut(), &mut clients, &mut met, &mut rng).map_err(named)?;
        }
        drop(layer);
        let alive = i.is_multiple_of(4);
        let depth =
            ExamineOptions { twice: true, alive, worn: false, stop: CrashKind::Process, seed: rng.random() };
        examine(target, &stores, &clients.history, &met.lasted, depth)
            .map_err(|v| named(Violation { what: format!("after reopening: {}", v.what), ..v }))?;
        Ok((struck, met.told))
    }
}

impl WorkItem<'_> {
    /// Continues on a disk that failed and works again. All acknowledged data is still readable,
    /// and the layer resumes by itself, unless writes past the cache may be lost, or a table on the disk.
    fn resumes(
        &self,
        target: &dyn TortureTarget,
        layer: &mut dyn StackDevice,
        clients: &mut Clients,
        met: &mut FaultedRun,
        rng: &mut SmallRng,
    ) -> Result<(), Violation> {
        let late = layer.write_guarantee().durable_at == DurabilityPoint::OnFlush;
        if (late || target.commits_at_flush()) && layer.refuses().is_some() {
            return Ok(());
        }
        // The new requests are numbered after all earlier ones.
        let from = met.lasted.limit();
        let count = if self.target.is_layered() { 320 } else { 160 };
        let mix = WorkloadMix { requests: count, clients: 2, hot_blocks: 0, most_sectors: 16, discards: 20 };
        let mut requests = mix.requests(rng, clients.history.len() as u64);
        requests.push(ClientRequestKind::Flush.without_range());
        let mut lasted = CommandSet::new(from + requests.len());
        lasted.add_all(&met.lasted);
        // A layer below a failing one tries its own device again in background steps.
        let layers = self.target.is_layered();
        let refused_max = if layers { 2 * REFUSED_MAX } else { REFUSED_MAX };
        let (mut refused, mut flushed) = (0, from);
        for (n, r) in (from..).zip(&requests) {
            if layers {
                layer
                    .step(&mut Sink::untimed(), 4)
                    .map_err(|e| Violation::error(Oracle::Alive, "a step", &e))?;
            }
            match clients.perform(layer, &mut Sink::untimed(), r, n as u32) {
                Ok(()) => {
                    lasted.add(n);
                    if r.kind.makes_certain() {
                        flushed = n;
                    }
                }
                // The layer tries the disk again after some requests, not with each one.
                Err(RequestFailure::Error(Error::NoSpace { .. })) if refused < refused_max => refused += 1,
                // The layer fails a flush because the device does not accept writes again yet.
                Err(RequestFailure::Error(Error::ReadOnly { .. })) if late || target.commits_at_flush() => {
                    let unflushed = (from..).zip(&requests).skip_while(|(n, _)| *n < flushed);
                    unflushed.filter(|(_, r)| !r.is_fua()).for_each(|(n, _)| lasted.remove(n));
                    met.lasted = lasted;
                    return Ok(());
                }
                Err(RequestFailure::Error(e)) => {
                    return Err(Violation::error(Oracle::Alive, &format!("the disk works again: {r}"), &e));
                }
                Err(RequestFailure::Violation(v)) => return Err(v),
            }
        }
        let found = read_all(layer, &mut Sink::untimed(), clients.history.len())?;
        clients.history.split(&CommandSet::below(lasted.limit(), lasted.limit()));
        verify_contents(&clients.history, &lasted, &found, &MirrorSources::default())?;
        met.lasted = lasted;
        Ok(())
    }
}

/// Stores, the layer on them, and clients that know the contents.
type FilledVolume = (Vec<SharedMedium>, Box<dyn StackDevice>, Clients);

/// Creates a volume and writes all of it.
fn full(target: &dyn TortureTarget, files: bool) -> Result<FilledVolume, Violation> {
    let stores = target.blank_stores();
    for s in &stores {
        s.lock().volatile = files;
    }
    let failed = |doing: &'static str| move |e| Violation::error(Oracle::Alive, doing, &e);
    let mut layer = target.build(&stores).map_err(failed("opening"))?;
    layer.format(&mut Sink::untimed()).map_err(failed("format"))?;
    let blocks = layer.info().sectors / PER_BLOCK as u64;
    let mut clients = Clients::new(History::empty(blocks as usize), 0);
    for r in fill_requests(blocks) {
        if let Err(RequestFailure::Error(e)) = clients.perform(layer.as_mut(), &mut Sink::untimed(), &r, 0) {
            return Err(failed("filling")(e));
        }
    }
    if layer.write_guarantee().durable_at == DurabilityPoint::OnFlush {
        layer.flush(&mut Sink::untimed()).map_err(failed("flush of the preparation"))?;
    }
    let now: Vec<_> = (0..blocks as usize).map(|b| clients.history.now(b)).collect();
    clients.history.settle(&now);
    Ok((stores, layer, clients))
}

/// Result of the requests over a failing medium.
struct FaultedRun {
    /// Requests that succeeded.
    lasted: CommandSet,
    /// `true` if a request failed.
    told: bool,
}

/// Performs requests over media that fail.
///
/// `poisons` is `true` if the failures are writes or syncs that the layer cannot do without: after
/// such a failure it must accept no write. If the layer promises durability only after a flush,
/// only flushed requests count as durable. If the failing medium `loses_unsynced` what it had not synced,
/// unflushed requests may not even be readable.
fn run_faulted(
    layer: &mut dyn StackDevice,
    clients: &mut Clients,
    requests: &[ClientRequest],
    (poisons, loses_unsynced): (bool, bool),
) -> Result<FaultedRun, Violation> {
    let late = layer.write_guarantee().durable_at == DurabilityPoint::OnFlush;
    let mut flushed = 0;
    let mut met = FaultedRun { lasted: CommandSet::new(requests.len()), told: false };
    let mut refused = false;
    for (n, r) in requests.iter().enumerate() {
        match clients.perform(layer, &mut Sink::untimed(), r, n as u32) {
            Ok(()) => {
                met.lasted.add(n);
                if r.kind == ClientRequestKind::Flush {
                    flushed = n;
                    clients.uncertain_requests.retain(|&u| !met.lasted.has(u as usize));
                } else if late && loses_unsynced && !r.is_fua() {
                    clients.uncertain_requests.push(n as u32);
                }
                if refused && poisons && matches!(r.kind, ClientRequestKind::Write(_)) {
                    let what = format!("{r} succeeded after a write had failed");
                    return Err(Violation::new(Oracle::Poisoned, what));
                }
            }
            Err(RequestFailure::Error(e @ Error::Rule { .. })) => {
                return Err(Violation::error(Oracle::Rule, &r.to_string(), &e));
            }
            Err(RequestFailure::Error(_)) => {
                met.told = true;
                refused |= layer.refuses().is_some();
                if poisons && r.kind != ClientRequestKind::Read && !refused {
                    let what = format!("{r} failed, and the volume still accepts writes");
                    return Err(Violation::new(Oracle::Poisoned, what));
                }
            }
            Err(RequestFailure::Violation(v)) => return Err(v),
        }
    }
    if late {
        forget_unflushed(&mut met.lasted, requests, flushed);
    }
    Ok(met)
}
