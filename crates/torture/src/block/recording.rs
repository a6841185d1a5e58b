//! Recording of runs: preparation, requests, and the result as a graph.

use crate::block::access_log::{AccessLog, AccessRecords};
use crate::block::command_set::CommandSet;
use crate::block::graph::Graph;
use crate::block::history::{BeforeCrash, History};
use crate::block::medium::SharedMedium;
use crate::block::mirror_sources::MirrorSources;
use crate::block::oracle::{read_all, recover_and_read};
use crate::block::recording_sink::{Mutation, recorded, recording_sink, start_recording};
use crate::block::self_describing::{BLOCK, PER_BLOCK};
use crate::block::target::TortureTarget;
use crate::block::violation::{Oracle, Violation};
use crate::block::workload::{ClientRequest, ClientRequestKind, Clients, RequestFailure};
use frit_core::visible::StackView;
use frit_core::{
    Cause, Counts, CrashKind, DurabilityPoint, Error, Hints, MediumKind, Op, Sink, StackDevice,
    WriteGuarantee,
};
use frit_engine::Recording;
use frit_engine::record::RecordedCommand;
use std::sync::Arc;
use strum::IntoEnumIterator;

/// A recorded layer and its clients.
pub struct RecordingSession<'a> {
    target: &'a dyn TortureTarget,
    /// Stores of the media.
    pub stores: Vec<SharedMedium>,
    /// Clients of the layer.
    pub clients: Clients,
    layer: Box<dyn StackDevice>,
    sink: Sink,
    access_log: Arc<AccessLog>,
    mutation: Option<Mutation>,
    /// Number of 4 KiB blocks of the volume.
    pub blocks: u64,
    tolerant: bool,
}

impl std::fmt::Debug for RecordingSession<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordingSession").field("blocks", &self.blocks).finish_non_exhaustive()
    }
}

/// A recorded run.
#[derive(Debug)]
pub struct RecordedRun {
    /// Commands of the run, as an order of durability.
    pub graph: Graph,
    /// Allowed contents of the volume.
    pub history: History,
    /// Accesses to the stores, in order.
    pub log: AccessRecords,
    /// For each request: number of accesses before it, number of accesses up to its end, and `true`
    /// if it succeeded.
    pub spans: Vec<(u32, u32, bool)>,
    /// Requests that are certain only after a flush, since they bypass durable memory and reach a
    /// disk with a volatile cache, or stay in DRAM.
    pub late: CommandSet,
    /// Acknowledged requests may be only in DRAM until a flush.
    pub in_dram: bool,
    /// For each request, `true` if it makes all earlier acknowledged requests certain.
    flushes: Vec<bool>,
    /// Version of the next request.
    pub version: u32,
    /// Number of media commands.
    pub commands: u64,
    /// Reason for which the volume became read-only, if it did.
    pub read_only: Option<String>,
}

impl RecordedRun {
    /// Returns the requests that must persist when exactly these commands are complete. These are
    /// the acknowledged requests. Of those that are certain only after a flush, only the requests
    /// before an acknowledged flush count.
    #[must_use]
    pub fn lasting(&self, done: &CommandSet) -> CommandSet {
        let mut lasting = self.graph.acknowledged(done);
        (0..self.spans.len()).filter(|&r| !self.spans[r].2).for_each(|r| lasting.remove(r));
        let flushed = (0..self.flushes.len()).rev().find(|&r| self.flushes[r] && lasting.has(r)).unwrap_or(0);
        self.late.iter().filter(|&r| r >= flushed).for_each(|r| lasting.remove(r));
        lasting
    }
}

/// Returns the requests that bypassed durable memory and wrote to a disk, if the layer may do so.
fn direct(promise: WriteGuarantee, recording: &Recording, requests: &[ClientRequest]) -> CommandSet {
    let mut direct = CommandSet::new(requests.len());
    let small = u64::from(promise.atomic_bytes) < BLOCK as u64;
    for op in recording.ops.iter().filter(|op| op.cmd.op == Op::DiskWrite && op.cmd.cause == Cause::Host) {
        let Some(r) = op.request.map(|r| r as usize) else { continue };
        // A discard is atomic by sector only: the former contents of discarded sectors do not
        // matter.
        if small || requests[r].kind == ClientRequestKind::Discard {
            direct.add(r);
        }
    }
    direct
}

/// Returns `true` if the writes to the disks of a target do not show which requests bypassed durable
/// memory: a layer below the top layer divides requests, and a layer that commits at a flush may write
/// nothing for a request.
fn changes_host_writes(target: &dyn TortureTarget) -> bool {
    target.is_layered() || target.commits_at_flush()
}

/// Adds the requests that may be durable in parts: discards, which are atomic by sector only, and all
/// requests if the top layer promises no more than its device.
pub(crate) fn add_divisible(direct: &mut CommandSet, promise: WriteGuarantee, requests: &[ClientRequest]) {
    let small = u64::from(promise.atomic_bytes) < BLOCK as u64;
    for (r, request) in requests.iter().enumerate() {
        if small || request.kind == ClientRequestKind::Discard {
            direct.add(r);
        }
    }
}

fn failed(doing: &str, e: &Error) -> Violation {
    Violation::error(Oracle::Recovers, doing, e)
}

impl<'a> RecordingSession<'a> {
    /// Formats blank media and starts a session on them.
    ///
    /// # Errors
    /// Errors of the layer.
    pub fn new(
        target: &'a dyn TortureTarget,
        volatile: bool,
        mutation: Option<Mutation>,
    ) -> Result<Self, Violation> {
        let stores = target.blank_stores();
        for s in &stores {
            s.lock().volatile = volatile;
        }
        let (layer, sink, access_log) = build_recording(target, &stores, mutation)?;
        let blocks = layer.info().sectors / PER_BLOCK as u64;
        let mut clients = Clients::new(History::empty(blocks as usize), 0);
        clients.ignore_fua = mutation == Some(Mutation::IgnoreFua);
        let mut s = RecordingSession {
            target,
            stores,
            clients,
            layer,
            sink,
            access_log,
            mutation,
            blocks,
            tolerant: false,
        };
        s.layer.format(&mut s.sink).map_err(|e| failed("format", &e))?;
        Ok(s)
    }

    /// Starts a session on media with contents, after a recovery. `before` has the history that the crash
    /// ended, and the requests that certainly persisted.
    ///
    /// # Errors
    /// Media that do not recover.
    pub fn resume(
        target: &'a dyn TortureTarget,
        stores: Vec<SharedMedium>,
        version: u32,
        before: (History, CommandSet),
        mutation: Option<Mutation>,
    ) -> Result<Self, Violation> {
        let (layer, _, _) = build_recording(target, &stores, None)?;
        let blocks = layer.info().sectors / PER_BLOCK as u64;
        drop(layer);
        let found = recover_and_read(target, &stores, blocks as usize, CrashKind::Process)?.seen;
        let (mut layer, mut sink, access_log) = build_recording(target, &stores, mutation)?;
        layer.recover(&mut sink, CrashKind::Process).map_err(|e| failed("recovery", &e))?;
        let (history, lasted) = before;
        let before = BeforeCrash { history, lasted, sources: MirrorSources::of(layer.as_ref()) };
        let clients = Clients::new(History::after_crash(&found.versions, before), version);
        Ok(RecordingSession {
            target,
            stores,
            clients,
            layer,
            sink,
            access_log,
            mutation,
            blocks,
            tolerant: false,
        })
    }

    /// Accepts that the volume becomes read-only, and ends the run there.
    pub fn tolerate_read_only(&mut self) {
        self.tolerant = true;
    }

    /// Performs requests without recording; their effects are certain.
    ///
    /// # Errors
    /// A request that fails.
    pub fn prepare(&mut self, requests: &[ClientRequest]) -> Result<(), Violation> {
        for r in requests {
            match self.clients.perform(self.layer.as_mut(), &mut self.sink, r, 0) {
                Err(RequestFailure::Error(Error::ReadOnly { .. })) if self.tolerant => break,
                other => other.map_err(|f| of(f, r))?,
            }
        }
        let mut lost = false;
        if self.layer.write_guarantee().durable_at == DurabilityPoint::OnFlush {
            match self.layer.flush(&mut self.sink) {
                // What was not flushed is gone after a restart.
                Err(Error::ReadOnly { .. }) if self.tolerant => {
                    self.restart()?;
                    lost = true;
                }
                flushed => flushed.map_err(|e| failed("flush of the preparation", &e))?,
            }
        }
        let blocks = self.clients.history.len();
        let now = if self.clients.uncertain_requests.is_empty() && !lost {
            // A failed request may have changed its sectors or not, so the contents are read from
            // the volume.
            (0..blocks).map(|b| self.clients.history.now(b)).collect()
        } else {
            read_all(self.layer.as_mut(), &mut self.sink, blocks)?
        };
        self.clients.uncertain_requests.clear();
        self.clients.history.settle(&now);
        Ok(())
    }

    /// Restarts the layer as after a crash: its state in memory is lost.
    ///
    /// # Errors
    /// Media that do not recover.
    pub fn restart(&mut self) -> Result<(), Violation> {
        let (layer, sink, access_log) = build_recording(self.target, &self.stores, self.mutation)?;
        (self.layer, self.sink, self.access_log) = (layer, sink, access_log);
        self.layer.recover(&mut self.sink, CrashKind::Process).map_err(|e| failed("recovery", &e))?;
        Ok(())
    }

    /// Records requests. The contents of the media before them become the base.
    ///
    /// # Errors
    /// A request that fails, or command counts that do not add up.
    pub fn record(
        mut self,
        requests: &[ClientRequest],
    ) -> Result<(RecordedRun, Vec<SharedMedium>), Violation> {
        for s in &self.stores {
            let mut m = s.lock();
            m.commit();
            m.access_log = Some(self.access_log.clone());
        }
        start_recording(&mut self.sink);
        let before = counts(self.layer.as_ref());
        let promise = self.layer.write_guarantee();
        let mut spans = Vec::new();
        let mut read_only = None;
        for (i, r) in requests.iter().enumerate() {
            let from = self.access_log.len() as u32;
            let done = self.clients.perform(self.layer.as_mut(), &mut self.sink, r, i as u32);
            let ok = match done {
                Err(RequestFailure::Error(Error::ReadOnly { why })) if self.tolerant => {
                    read_only = Some(why);
                    false
                }
                other => other.map(|()| true).map_err(|f| of(f, r))?,
            };
            spans.push((from, self.access_log.len() as u32, ok));
        }
        let done = counts(self.layer.as_ref()).since(&before);
        drop(self.layer);
        for s in &self.stores {
            s.lock().access_log = None;
        }
        let recording = recorded(self.sink);
        let disk = self.target.media().iter().any(|m| m.kind == MediumKind::Disk);
        let buffers = !disk || self.target.commits_at_flush();
        let in_dram = buffers && promise.durable_at == DurabilityPoint::OnFlush;
        // A page that is overwritten in DRAM reaches no medium, so the counts need not cover it.
        if self.mutation.is_none() && !in_dram {
            account(&recording, &done, requests, &spans)?;
        }
        let log = self.access_log.take();
        let commands = recording.ops.len() as u64;
        let graph = Graph::new(&recording, log.clone(), self.target.media());
        let Clients { mut history, version, .. } = self.clients;
        let mut direct = direct(promise, &recording, requests);
        if changes_host_writes(self.target) {
            add_divisible(&mut direct, promise, requests);
        }
        // Without a disk, every request may be split into small parts, or be buffered until a
        // flush.
        let small = u64::from(promise.atomic_bytes) < BLOCK as u64;
        if !disk && small || in_dram {
            (0..requests.len()).for_each(|r| direct.add(r));
        }
        history.split(&direct);
        let mut late = CommandSet::new(requests.len());
        if promise.durable_at == DurabilityPoint::OnFlush {
            // A FUA write is followed by a flush, so it is certain.
            let fua = |r: usize| matches!(requests[r].kind, ClientRequestKind::Write(h) if h.has(Hints::FUA));
            direct.iter().filter(|&r| !fua(r)).for_each(|r| late.add(r));
        }
        if promise.atomic_flush && spans.iter().all(|span| span.2) {
            // A FUA write ends with a flush.
            let fua = |r: &ClientRequest| matches!(r.kind, ClientRequestKind::Write(h) if h.has(Hints::FUA));
            let ends = |(i, r): (u32, &ClientRequest)| (r.kind.makes_certain() || fua(r)).then_some(i);
            history.flush_atomically((0..).zip(requests).filter_map(ends).collect());
        }
        let flushes = requests.iter().map(|r| r.kind.makes_certain()).collect();
        Ok((
            RecordedRun { graph, history, log, spans, late, in_dram, flushes, version, commands, read_only },
            self.stores,
        ))
    }
}

/// Records the recovery of an image. The image stays the base of its media.
///
/// # Errors
/// An image that does not recover.
pub fn record_recovery(
    target: &dyn TortureTarget,
    stores: &[SharedMedium],
    stop: CrashKind,
) -> Result<Graph, Violation> {
    let access_log = Arc::new(AccessLog::default());
    for s in stores {
        let mut m = s.lock();
        m.commit();
        m.access_log = Some(access_log.clone());
    }
    let mut sink = recording_sink(access_log.clone(), None, 0..0);
    start_recording(&mut sink);
    let mut layer = target.build(stores).map_err(|e| failed("opening", &e))?;
    let done = layer.recover(&mut sink, stop);
    drop(layer);
    for s in stores {
        let mut m = s.lock();
        m.access_log = None;
        m.undo();
    }
    done.map_err(|e| failed("recovery", &e))?;
    Ok(Graph::new(&recorded(sink), access_log.take(), target.media()))
}

type RecordedLayer = (Box<dyn StackDevice>, Sink, Arc<AccessLog>);

fn build_recording(
    target: &dyn TortureTarget,
    stores: &[SharedMedium],
    mutation: Option<Mutation>,
) -> Result<RecordedLayer, Violation> {
    let layer = target.build(stores).map_err(|e| failed("opening", &e))?;
    let access_log = Arc::new(AccessLog::default());
    let info = layer.info();
    // HFSL's header takes a sub-page: an eighth of a page, but at least 512 bytes.
    let head = u64::from(info.page_bytes / 8).max(frit_core::SECTOR_BYTES);
    let sink = recording_sink(access_log.clone(), mutation, head..head + info.durable_map_bytes);
    Ok((layer, sink, access_log))
}

fn of(f: RequestFailure, r: &ClientRequest) -> Violation {
    match f {
        RequestFailure::Error(e) => Violation::error(Oracle::Alive, &r.to_string(), &e),
        RequestFailure::Violation(v) => v,
    }
}

fn counts(layer: &dyn StackDevice) -> Counts {
    let mut view = StackView::default();
    layer.visible(&mut view);
    view.counts()
}

/// Verifies that the media counted the same commands by cause as the sink recorded, and that the
/// commands caused by the host carry at least the bytes that it wrote.
fn account(
    recording: &Recording,
    done: &Counts,
    requests: &[ClientRequest],
    spans: &[(u32, u32, bool)],
) -> Result<(), Violation> {
    let mut seen = Counts::default();
    for RecordedCommand { cmd, .. } in &recording.ops {
        seen.add(cmd.op, cmd.cause, cmd.len);
    }
    for op in Op::iter() {
        for cause in Cause::iter() {
            let (a, b) = (done.get(op, cause), seen.get(op, cause));
            if a != b {
                let what = format!("{op:?} for {cause:?}: media counted {a:?}, the sink recorded {b:?}");
                return Err(Violation::new(Oracle::Accounting, what));
            }
        }
    }
    let host: u64 = [Op::NandProgram, Op::PcmWrite, Op::PcmWriteClean, Op::DiskWrite]
        .iter()
        .map(|&op| done.get(op, Cause::Host).bytes)
        .sum();
    let written =
        requests.iter().zip(spans).filter(|(r, s)| matches!(r.kind, ClientRequestKind::Write(_)) && s.2);
    let user: u64 = written.map(|(r, _)| r.sectors * frit_core::SECTOR_BYTES).sum();
    if host < user {
        let what = format!("clients wrote {user} bytes, but media wrote only {host} for them");
        return Err(Violation::new(Oracle::Accounting, what));
    }
    Ok(())
}
