//! A run that is recorded: preparation, requests, and what came of them as a graph.

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

/// A layer that is recorded, and its clients.
pub struct Session<'a> {
    subject: &'a dyn Subject,
    /// Its stores.
    pub stores: Vec<Shared>,
    /// Its clients.
    pub clients: Clients,
    layer: Box<dyn Top<Tape>>,
    sink: Tape,
    tap: Arc<Tap>,
    mutation: Option<Mutation>,
    /// Blocks of 4 KiB.
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
    /// What it did, as an order of durability.
    pub graph: Graph,
    /// What the volume may hold.
    pub history: History,
    /// Accesses to the stores, in order, and how many there were when each request had ended.
    pub log: Log,
    /// For each request: accesses before it began, accesses when it had ended, whether it succeeded.
    pub spans: Vec<(u32, u32, bool)>,
    /// Requests that went past durable memory to a disk with a cache of its own: certain once flushed.
    pub late: Set,
    /// Acknowledged requests may be in DRAM alone until a flush.
    pub in_dram: bool,
    /// For each request, whether it makes what was acknowledged before certain.
    flushes: Vec<bool>,
    /// The version that comes next.
    pub version: u32,
    /// Media commands.
    pub commands: u64,
    /// Why the volume took no more writes, when it did.
    pub read_only: Option<String>,
}

impl Run {
    /// Requests that have to last when just these commands are done: those that were acknowledged, and of
    /// those that are certain only once flushed the ones before a flush that was acknowledged.
    #[must_use]
    pub fn lasting(&self, done: &Set) -> Set {
        let mut lasting = self.graph.acknowledged(done);
        (0..self.spans.len()).filter(|&r| !self.spans[r].2).for_each(|r| lasting.remove(r));
        let flushed = (0..self.flushes.len()).rev().find(|&r| self.flushes[r] && lasting.has(r)).unwrap_or(0);
        self.late.iter().filter(|&r| r >= flushed).for_each(|r| lasting.remove(r));
        lasting
    }
}

/// Requests that were written to a disk past durable memory, of those that the layer may so write.
fn direct(promise: Promise, recording: &Recording, requests: &[Request]) -> Set {
    let mut direct = Set::new(requests.len());
    let small = u64::from(promise.atomic_bytes) < BLOCK as u64;
    for op in recording.ops.iter().filter(|op| op.cmd.op == Op::DiskWrite && op.cmd.cause == Cause::Host) {
        let Some(r) = op.request.map(|r| r as usize) else { continue };
        // Of a discard only sectors are whole: nobody asks for what was in them.
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
    /// Formats blank media.
    ///
    /// # Errors
    /// A layer that cannot.
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

    /// Media that hold something, after a recovery.
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

    /// Takes a volume that becomes read-only as an end, not as a fault.
    pub fn tolerate_read_only(&mut self) {
        self.tolerant = true;
    }

    /// Requests that are not recorded: what they wrote is certain.
    ///
    /// # Errors
    /// One that fails.
    pub fn prepare(&mut self, requests: &[Request]) -> Result<(), Violation> {
        for r in requests {
            match self.clients.perform(self.layer.as_mut(), &mut self.sink, r, 0) {
                Err(Failure::Error(Error::ReadOnly { .. })) if self.tolerant => break,
                other => other.map_err(|f| of(f, r))?,
            }
        }
        if self.layer.promise().lasting == Lasting::OnFlush {
            self.layer.flush(&mut self.sink).map_err(|e| failed("the flush of what goes before", &e))?;
        }
        let blocks = self.clients.history.len();
        let now = if self.clients.unsure.is_empty() {
            (0..blocks).map(|b| self.clients.history.now(b)).collect()
        } else {
            read_all(self.layer.as_mut(), &mut self.sink, blocks)?
        };
        self.clients.unsure.clear();
        self.clients.history.settle(&now);
        Ok(())
    }

    /// Stops and starts the layer as a kill would: what it kept in memory is gone.
    ///
    /// # Errors
    /// Media that do not recover.
    pub fn restart(&mut self) -> Result<(), Violation> {
        let (layer, sink, tap) = taped(self.subject, &self.stores, self.mutation)?;
        (self.layer, self.sink, self.tap) = (layer, sink, tap);
        self.layer.recover(&mut self.sink, Stop::Process).map_err(|e| failed("recovery", &e))?;
        Ok(())
    }

    /// Records requests. What the media held before is their base from now on.
    ///
    /// # Errors
    /// A request that fails, or commands that do not add up.
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
        // What is written again in DRAM reaches no medium.
        if self.mutation.is_none() && !in_dram {
            account(&recording, &done, requests, &spans)?;
        }
        let log = self.tap.take();
        let commands = recording.ops.len() as u64;
        let graph = Graph::new(&recording, log.clone(), self.subject.media());
        let Clients { mut history, version, .. } = self.clients;
        let mut direct = direct(promise, &recording, requests);
        // Without a disk, all may be in small parts, or be kept back until a flush.
        let small = u64::from(promise.atomic_bytes) < BLOCK as u64;
        if !disk && small || in_dram {
            (0..requests.len()).for_each(|r| direct.add(r));
        }
        history.split(&direct);
        let mut late = Set::new(requests.len());
        if promise.lasting == Lasting::OnFlush {
            // What has to be durable itself was flushed by its client.
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

/// Records the recovery of an image, which stays the base of its media.
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
    // HFSL's head takes a sub-page: 512 bytes, or an eighth of a page.
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

/// Commands by cause, as the media count them, are those that the sink saw; and those that the host
/// caused carry at least what it wrote.
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
                let what = format!("{op:?} for {cause:?}: media counted {a:?}, given were {b:?}");
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
        let what = format!("clients wrote {user} bytes, and media {host} on their behalf");
        return Err(Violation::new(Oracle::Accounting, what));
    }
    Ok(())
}
