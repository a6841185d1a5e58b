//! Recording of runs: preparation, requests, and the result as a graph.

use crate::graph::Graph;
use crate::history::History;
use crate::medium::Shared;
use crate::oracle::{Oracle, Violation, bring_up, read_all};
use crate::set::Set;
use crate::stamp::{BLOCK, PER_BLOCK};
use crate::subject::Subject;
use crate::tap::{Log, Tap};
use crate::tape::{Mutation, Tape};
use crate::workload::{Clients, Failure, Kind, Request};
use frit_core::visible::Visible;
use frit_core::{Cause, Counts, Error, Hints, Lasting, MediumKind, Op, Promise, Stop, Top};
use frit_engine::Recording;
use frit_engine::record::Recorded;
use std::sync::Arc;
use strum::IntoEnumIterator;

/// A recorded layer and its clients.
pub struct Session<'a> {
    subject: &'a dyn Subject,
    /// Stores of the media.
    pub stores: Vec<Shared>,
    /// Clients of the layer.
    pub clients: Clients,
    layer: Box<dyn Top<Tape>>,
    sink: Tape,
    tap: Arc<Tap>,
    mutation: Option<Mutation>,
    /// Number of 4 KiB blocks of the volume.
    pub blocks: u64,
    tolerant: bool,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("blocks", &self.blocks).finish_non_exhaustive()
    }
}

/// A recorded run.
#[derive(Debug)]
pub struct Run {
    /// Commands of the run, as an order of durability.
    pub graph: Graph,
    /// Allowed contents of the volume.
    pub history: History,
    /// Accesses to the stores, in order.
    pub log: Log,
    /// For each request: number of accesses before it, number of accesses up to its end, and `true`
    /// if it succeeded.
    pub spans: Vec<(u32, u32, bool)>,
    /// Requests that are certain only after a flush, since they bypass durable memory and reach a
    /// disk with a volatile cache, or stay in DRAM.
    pub late: Set,
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

impl Run {
    /// Returns the requests that must persist when exactly these commands are complete. These are
    /// the acknowledged requests. Of those that are certain only after a flush, only the requests
    /// before an acknowledged flush count.
    #[must_use]
    pub fn lasting(&self, done: &Set) -> Set {
        let mut lasting = self.graph.acknowledged(done);
        (0..self.spans.len()).filter(|&r| !self.spans[r].2).for_each(|r| lasting.remove(r));
        let flushed = (0..self.flushes.len()).rev().find(|&r| self.flushes[r] && lasting.has(r)).unwrap_or(0);
        self.late.iter().filter(|&r| r >= flushed).for_each(|r| lasting.remove(r));
        lasting
    }
}

/// Returns the requests that bypassed durable memory and wrote to a disk, if the layer may do so.
fn direct(promise: Promise, recording: &Recording, requests: &[Request]) -> Set {
    let mut direct = Set::new(requests.len());
    let small = u64::from(promise.atomic_bytes) < BLOCK as u64;
    for op in recording.ops.iter().filter(|op| op.cmd.op == Op::DiskWrite && op.cmd.cause == Cause::Host) {
        let Some(r) = op.request.map(|r| r as usize) else { continue };
        // A discard is atomic by sector only: the former contents of discarded sectors do not
        // matter.
        if small || requests[r].kind == Kind::Discard {
            direct.add(r);
        }
    }
    direct
}

fn failed(doing: &str, e: &Error) -> Violation {
    Violation::error(Oracle::Recovers, doing, e)
}

impl<'a> Session<'a> {
    /// Formats blank media and starts a session on them.
    ///
    /// # Errors
    /// Errors of the layer.
    pub fn new(
        subject: &'a dyn Subject,
        volatile: bool,
        mutation: Option<Mutation>,
    ) -> Result<Self, Violation> {
        let stores = subject.blank();
        for s in &stores {
            s.lock().volatile = volatile;
        }
        let (layer, sink, tap) = taped(subject, &stores, mutation)?;
        let blocks = layer.info().sectors / PER_BLOCK as u64;
        let mut clients = Clients::new(History::empty(blocks as usize), 0);
        clients.ignore_fua = mutation == Some(Mutation::IgnoreFua);
        let mut s = Session { subject, stores, clients, layer, sink, tap, mutation, blocks, tolerant: false };
        s.layer.format(&mut s.sink).map_err(|e| failed("format", &e))?;
        Ok(s)
    }

    /// Starts a session on media with contents, after a recovery.
    ///
    /// # Errors
    /// Media that do not recover.
    pub fn resume(
        subject: &'a dyn Subject,
        stores: Vec<Shared>,
        version: u32,
        mutation: Option<Mutation>,
    ) -> Result<Self, Violation> {
        let (layer, _, _) = taped(subject, &stores, None)?;
        let blocks = layer.info().sectors / PER_BLOCK as u64;
        drop(layer);
        let found = bring_up(subject, &stores, blocks as usize, Stop::Process)?.seen;
        let (mut layer, mut sink, tap) = taped(subject, &stores, mutation)?;
        layer.recover(&mut sink, Stop::Process).map_err(|e| failed("recovery", &e))?;
        let clients = Clients::new(History::new(&found.versions), version);
        Ok(Session { subject, stores, clients, layer, sink, tap, mutation, blocks, tolerant: false })
    }

    /// Accepts that the volume becomes read-only, and ends the run there.
    pub fn tolerate_read_only(&mut self) {
        self.tolerant = true;
    }

    /// Performs requests without recording; their effects are certain.
    ///
    /// # Errors
    /// A request that fails.
    pub fn prepare(&mut self, requests: &[Request]) -> Result<(), Violation> {
        for r in requests {
            match self.clients.perform(self.layer.as_mut(), &mut self.sink, r, 0) {
                Err(Failure::Error(Error::ReadOnly { .. })) if self.tolerant => break,
                other => other.map_err(|f| of(f, r))?,
            }
        }
        if self.layer.promise().lasting == Lasting::OnFlush {
            self.layer.flush(&mut self.sink).map_err(|e| failed("flush of the preparation", &e))?;
        }
        let blocks = self.clients.history.len();
        let now = if self.clients.unsure.is_empty() {
            // A failed request may have changed its sectors or not, so the contents are read from
            // the volume.
            (0..blocks).map(|b| self.clients.history.now(b)).collect()
        } else {
            read_all(self.layer.as_mut(), &mut self.sink, blocks)?
        };
        self.clients.unsure.clear();
        self.clients.history.settle(&now);
        Ok(())
    }

    /// Restarts the layer as after a crash: its state in memory is lost.
    ///
    /// # Errors
    /// Media that do not recover.
    pub fn restart(&mut self) -> Result<(), Violation> {
        let (layer, sink, tap) = taped(self.subject, &self.stores, self.mutation)?;
        (self.layer, self.sink, self.tap) = (layer, sink, tap);
        self.layer.recover(&mut self.sink, Stop::Process).map_err(|e| failed("recovery", &e))?;
        Ok(())
    }

    /// Records requests. The contents of the media before them become the base.
    ///
    /// # Errors
    /// A request that fails, or command counts that do not add up.
    pub fn record(mut self, requests: &[Request]) -> Result<(Run, Vec<Shared>), Violation> {
        for s in &self.stores {
            let mut m = s.lock();
            m.commit();
            m.tap = Some(self.tap.clone());
        }
        self.sink.roll();
        let before = counts(self.layer.as_ref());
        let promise = self.layer.promise();
        let mut spans = Vec::new();
        let mut read_only = None;
        for (i, r) in requests.iter().enumerate() {
            let from = self.tap.len() as u32;
            let done = self.clients.perform(self.layer.as_mut(), &mut self.sink, r, i as u32);
            let ok = match done {
                Err(Failure::Error(Error::ReadOnly { why })) if self.tolerant => {
                    read_only = Some(why);
                    false
                }
                other => other.map(|()| true).map_err(|f| of(f, r))?,
            };
            spans.push((from, self.tap.len() as u32, ok));
        }
        let done = counts(self.layer.as_ref()).since(&before);
        drop(self.layer);
        for s in &self.stores {
            s.lock().tap = None;
        }
        let recording = self.sink.finish();
        let disk = self.subject.media().iter().any(|m| m.kind == MediumKind::Disk);
        let in_dram = !disk && promise.lasting == Lasting::OnFlush;
        // A page that is overwritten in DRAM reaches no medium, so the counts need not cover it.
        if self.mutation.is_none() && !in_dram {
            account(&recording, &done, requests, &spans)?;
        }
        let log = self.tap.take();
        let commands = recording.ops.len() as u64;
        let graph = Graph::new(&recording, log.clone(), self.subject.media());
        let Clients { mut history, version, .. } = self.clients;
        let mut direct = direct(promise, &recording, requests);
        // Without a disk, every request may be split into small parts, or be buffered until a
        // flush.
        let small = u64::from(promise.atomic_bytes) < BLOCK as u64;
        if !disk && small || in_dram {
            (0..requests.len()).for_each(|r| direct.add(r));
        }
        history.split(&direct);
        let mut late = Set::new(requests.len());
        if promise.lasting == Lasting::OnFlush {
            // A FUA write is followed by a flush, so it is certain.
            let fua = |r: usize| matches!(requests[r].kind, Kind::Write(h) if h.has(Hints::FUA));
            direct.iter().filter(|&r| !fua(r)).for_each(|r| late.add(r));
        }
        let flushes = requests.iter().map(|r| r.kind.makes_certain()).collect();
        Ok((
            Run { graph, history, log, spans, late, in_dram, flushes, version, commands, read_only },
            self.stores,
        ))
    }
}

/// Records the recovery of an image. The image stays the base of its media.
///
/// # Errors
/// An image that does not recover.
pub fn record_recovery(subject: &dyn Subject, stores: &[Shared], stop: Stop) -> Result<Graph, Violation> {
    let tap = Arc::new(Tap::default());
    for s in stores {
        let mut m = s.lock();
        m.commit();
        m.tap = Some(tap.clone());
    }
    let mut sink = Tape::new(tap.clone(), None, 0..0);
    sink.roll();
    let mut layer = subject.taped(stores).map_err(|e| failed("opening", &e))?;
    let done = layer.recover(&mut sink, stop);
    drop(layer);
    for s in stores {
        let mut m = s.lock();
        m.tap = None;
        m.undo();
    }
    done.map_err(|e| failed("recovery", &e))?;
    Ok(Graph::new(&sink.finish(), tap.take(), subject.media()))
}

type Taped = (Box<dyn Top<Tape>>, Tape, Arc<Tap>);

fn taped(subject: &dyn Subject, stores: &[Shared], mutation: Option<Mutation>) -> Result<Taped, Violation> {
    let layer = subject.taped(stores).map_err(|e| failed("opening", &e))?;
    let tap = Arc::new(Tap::default());
    let info = layer.info();
    // HFSL's header takes a sub-page: an eighth of a page, but at least 512 bytes.
    let head = u64::from(info.page_bytes / 8).max(frit_core::SECTOR_BYTES);
    let sink = Tape::new(tap.clone(), mutation, head..head + info.durable_map_bytes);
    Ok((layer, sink, tap))
}

fn of(f: Failure, r: &Request) -> Violation {
    match f {
        Failure::Error(e) => Violation::error(Oracle::Alive, &r.to_string(), &e),
        Failure::Violation(v) => v,
    }
}

fn counts<S: frit_core::Sink>(layer: &dyn Top<S>) -> Counts {
    let mut view = Visible::default();
    layer.visible(&mut view);
    view.counts()
}

/// Verifies that the media counted the same commands by cause as the sink recorded, and that the
/// commands caused by the host carry at least the bytes that it wrote.
fn account(
    recording: &Recording,
    done: &Counts,
    requests: &[Request],
    spans: &[(u32, u32, bool)],
) -> Result<(), Violation> {
    let mut seen = Counts::default();
    for Recorded { cmd, .. } in &recording.ops {
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
    let written = requests.iter().zip(spans).filter(|(r, s)| matches!(r.kind, Kind::Write(_)) && s.2);
    let user: u64 = written.map(|(r, _)| r.sectors * frit_core::SECTOR_BYTES).sum();
    if host < user {
        let what = format!("clients wrote {user} bytes, but media wrote only {host} for them");
        return Err(Violation::new(Oracle::Accounting, what));
    }
    Ok(())
}
