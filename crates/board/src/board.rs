//! The medium: every access of the file system becomes commands.
//!
//! A load waits for its bytes, so what the program does next comes after it. A store is posted: it crosses the link,
//! and is in the cells later. A fence waits for all that was posted, and the program for the fence.

use crate::area::{Access, Area, Areas, Traffic};
use crate::build::{Carrier, Parts};
use crate::error::{Error, Result};
use crate::host::Host;
use frit_core::{Cause, Nanos, Op, Sink, Source, Target};
use frit_engine::Engine;
use frit_fs::{Geometry, Medium};
use frit_media::{MemoryStore, Pcm};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a fence reads over the link, in bytes: a word that says that all programming is over.
const STATUS_BYTES: u32 = 4;
/// Zeros that are written at a time, in bytes.
const ZEROS: usize = 4096;

/// A call of the file system to its medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Bytes were read.
    Read,
    /// Metadata or contents were written.
    Write,
    /// Zeros were written.
    Zero,
    /// A fence.
    Fence,
}

/// One call, and the commands that it became.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// What was called.
    pub call: Call,
    /// Where, in bytes; 0 of a fence.
    pub at: u64,
    /// How many bytes; 0 of a fence.
    pub bytes: u64,
    /// What for; none of a fence.
    pub area: Option<Area>,
    /// The first of its commands, counted from the board's first.
    pub first: u64,
    /// The command behind its last.
    pub end: u64,
}

/// A medium for a file system, whose accesses are commands to modelled memory behind a modelled host.
pub struct Board<S: Sink> {
    bytes: u64,
    inner: Mutex<Inner<S>>,
}

impl<S: Sink> std::fmt::Debug for Board<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Board").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

struct Inner<S: Sink> {
    sink: S,
    host: Host,
    pcm: Pcm<MemoryStore>,
    link: Option<Carrier>,
    copies: Option<Carrier>,
    calls: Option<Carrier>,
    areas: Areas,
    traffic: Traffic,
    /// When the program goes on.
    cpu: S::Tok,
    /// Stores that may not be in the cells yet, oldest first, and their bytes.
    posted: VecDeque<(S::Tok, u32)>,
    posted_bytes: u64,
    /// Requests of the load that is being made, kept for its memory.
    loads: VecDeque<S::Tok>,
    given: u64,
    steps: Option<Vec<Step>>,
}

impl<S: Sink + Send> Board<S> {
    /// A board that gives its commands to `sink`, which knows its hardware.
    ///
    /// # Errors
    /// Too few bytes for a file system.
    pub fn new(parts: Parts, sink: S) -> Result<Self> {
        let geometry =
            Geometry::divide(parts.bytes, None).map_err(Error::fs("the regions of the file system"))?;
        let Parts { host, bytes, pcm, link, copies, calls, .. } = parts;
        let inner = Inner {
            cpu: sink.start(),
            sink,
            host,
            pcm,
            link,
            copies,
            calls,
            areas: Areas::new(geometry),
            traffic: Traffic::default(),
            posted: VecDeque::new(),
            posted_bytes: 0,
            loads: VecDeque::new(),
            given: 0,
            steps: None,
        };
        Ok(Self { bytes, inner: Mutex::new(inner) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What went to the medium so far.
    pub fn traffic(&self) -> Traffic {
        self.inner().traffic.clone()
    }

    /// Looks at the sink, or changes it.
    pub fn with_sink<T>(&self, look: impl FnOnce(&mut S) -> T) -> T {
        look(&mut self.inner().sink)
    }

    /// Keeps every call from here on.
    pub fn keep_steps(&self) {
        self.inner().steps = Some(Vec::new());
    }

    /// The calls since [`Board::keep_steps`], which ends.
    pub fn take_steps(&self) -> Vec<Step> {
        self.inner().steps.take().unwrap_or_default()
    }

    /// Commands that were given so far, to all devices of the board.
    pub fn commands(&self) -> u64 {
        self.inner().given
    }

    /// All bytes, free of cost.
    ///
    /// # Errors
    /// A store that fails.
    pub fn image(&self) -> Result<Vec<u8>> {
        let mut image = vec![0; self.bytes as usize];
        let inner = self.inner();
        for (i, part) in image.chunks_mut(1 << 20).enumerate() {
            inner.pcm.peek((i as u64) << 20, part)?;
        }
        Ok(image)
    }

    /// Ends the use of the board; the sink is left.
    pub fn into_sink(self) -> S {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner).sink
    }
}

impl<S: Engine + Send> Board<S> {
    /// The time of the board's engine.
    pub fn now(&self) -> Nanos {
        self.inner().sink.now()
    }

    /// Makes one operation and takes time to where the program has its answer; returns what it returned, and how long
    /// it took. Stores may still be on their way then.
    pub fn operation<T>(&self, operation: impl FnOnce() -> T) -> (T, Nanos) {
        let begun = self.inner().begin();
        let answer = operation();
        let done = self.inner().end();
        (answer, done.since(begun))
    }

    /// Takes time to where all that was given so far is done.
    pub fn quiet(&self) {
        let mut inner = self.inner();
        let Inner { posted, sink, cpu, .. } = &mut *inner;
        *cpu = posted.drain(..).fold(*cpu, |all, (tok, _)| sink.join(all, tok));
        inner.posted_bytes = 0;
        inner.sink.begin();
        inner.end();
    }
}

impl<S: Engine> Inner<S> {
    fn begin(&mut self) -> Nanos {
        self.sink.begin();
        self.cpu = self.sink.start();
        if let Some(calls) = &mut self.calls {
            let given = calls.outwards(&mut self.sink, 1, Cause::Meta, self.cpu);
            self.cpu = sure(given);
            self.given += 1;
        }
        self.sink.now()
    }

    fn end(&mut self) -> Nanos {
        self.sink.ack(self.cpu);
        let tok = self.sink.end();
        let done = match self.sink.settle(tok, 0) {
            Some(at) => at,
            None => self.sink.next_done(Nanos::MAX).map_or(self.sink.now(), |done| done.at),
        };
        self.sink.next_done(done);
        done
    }
}

/// What a device answered. The file system stays inside of its medium, and memory does not fail.
#[allow(clippy::panic)]
fn sure<T>(answer: frit_core::Result<T>) -> T {
    match answer {
        Ok(answer) => answer,
        Err(error) => panic!("a board refused an access of the file system: {error}"),
    }
}

/// The requests that an access is cut into: position and length of each. With `burst` 0 it is one.
fn requests(at: u64, len: u64, burst: u64) -> impl Iterator<Item = (u64, u32)> {
    let mut from = at;
    let end = at + len;
    std::iter::from_fn(move || {
        if from == end {
            return None;
        }
        let next = if burst == 0 { end } else { end.min((from / burst + 1) * burst) };
        let request = (from, (next - from) as u32);
        from = next;
        Some(request)
    })
}

impl<S: Sink> Inner<S> {
    /// Notes what a call became.
    fn step(&mut self, call: Call, at: u64, bytes: u64, area: Option<Area>, first: u64) {
        if let Some(steps) = &mut self.steps {
            steps.push(Step { call, at, bytes, area, first, end: self.given });
        }
    }

    /// Commands and bytes written by the memory for a cause so far.
    fn counted(&self, cause: Cause) -> (u64, u64) {
        let counts = self.pcm.counts();
        let (read, write) = (counts.get(Op::PcmRead, cause), counts.get(Op::PcmWrite, cause));
        (read.commands + write.commands, write.bytes)
    }

    fn read(&mut self, at: u64, into: &mut [u8]) {
        let len = into.len() as u64;
        if len == 0 {
            return;
        }
        let area = self.areas.of(Access::Read, at, len);
        let (cause, first) = (area.cause(), self.given);
        let before = self.counted(cause);
        let burst = self.host.values.burst_bytes.0;
        let depth = self.host.values.outstanding as usize;
        let mut rest = into;
        let mut done = self.cpu;
        self.loads.clear();
        for (from, n) in requests(at, len, burst) {
            let (part, later) = std::mem::take(&mut rest).split_at_mut(n as usize);
            rest = later;
            let after = match self.loads.len() >= depth {
                true => self.loads.pop_front().map_or(self.cpu, |tok| self.sink.join(self.cpu, tok)),
                false => self.cpu,
            };
            let mut tok = sure(self.pcm.read(&mut self.sink, from, Target::Bytes(part), cause, after));
            if let Some(link) = &mut self.link {
                // The processor takes whole lines.
                let carried = n.max(burst as u32);
                tok = sure(link.inwards(&mut self.sink, carried, cause, tok));
                self.given += 1;
            }
            self.loads.push_back(tok);
            done = if from == at { tok } else { self.sink.join(done, tok) };
        }
        self.cpu = done;
        let now = self.counted(cause);
        self.given += now.0 - before.0;
        self.copy(len, cause);
        let count = self.traffic.of_mut(area);
        count.reads += 1;
        count.read_bytes += len;
        count.commands += now.0 - before.0;
        self.step(Call::Read, at, len, Some(area), first);
    }

    /// The processor's time for moving bytes.
    fn copy(&mut self, len: u64, cause: Cause) {
        if let Some(copies) = &mut self.copies {
            self.cpu = sure(copies.outwards(&mut self.sink, len as u32, cause, self.cpu));
            self.given += 1;
        }
    }

    fn write(&mut self, access: Access, at: u64, data: &[u8]) {
        let len = data.len() as u64;
        if len == 0 {
            return;
        }
        let area = self.areas.of(access, at, len);
        let first = self.given;
        self.copy(len, area.cause());
        self.store(area, at, data);
        self.traffic.of_mut(area).writes += 1;
        self.step(Call::Write, at, len, Some(area), first);
    }

    fn zero(&mut self, at: u64, len: u64) {
        if len == 0 {
            return;
        }
        let area = self.areas.of(Access::Zero, at, len);
        let first = self.given;
        let zeros = [0; ZEROS];
        for (from, n) in requests(at, len, ZEROS as u64) {
            self.store(area, from, &zeros[..n as usize]);
        }
        self.traffic.of_mut(area).writes += 1;
        self.step(Call::Zero, at, len, Some(area), first);
    }

    /// Posts bytes.
    fn store(&mut self, area: Area, at: u64, data: &[u8]) {
        let cause = area.cause();
        let before = self.counted(cause);
        let mut rest = data;
        for (from, n) in requests(at, data.len() as u64, self.host.values.burst_bytes.0) {
            let (part, later) = rest.split_at(n as usize);
            rest = later;
            if let Some(link) = &mut self.link {
                self.cpu = sure(link.outwards(&mut self.sink, n, cause, self.cpu));
                self.given += 1;
            }
            let tok = sure(self.pcm.write(&mut self.sink, from, Source::Bytes(part), cause, self.cpu));
            self.post(tok, n);
        }
        let now = self.counted(cause);
        self.given += now.0 - before.0;
        let count = self.traffic.of_mut(area);
        count.written_bytes += data.len() as u64;
        count.commands += now.0 - before.0;
        count.medium_bytes += now.1 - before.1;
    }

    /// Takes a store among those that are posted, and waits where they are too many.
    fn post(&mut self, tok: S::Tok, bytes: u32) {
        self.posted.push_back((tok, bytes));
        self.posted_bytes += u64::from(bytes);
        while self.posted_bytes > self.host.values.posted_bytes.0 {
            let Some((oldest, n)) = self.posted.pop_front() else { return };
            self.posted_bytes -= u64::from(n);
            self.cpu = self.sink.join(self.cpu, oldest);
        }
    }

    fn fence(&mut self) {
        let first = self.given;
        let mut all = self.cpu;
        for (tok, _) in self.posted.drain(..) {
            all = self.sink.join(all, tok);
        }
        self.posted_bytes = 0;
        self.cpu = self.pcm.fence(&mut self.sink, all);
        self.given += u64::from(self.pcm.geometry().units());
        if let Some(link) = &mut self.link {
            self.cpu = sure(link.inwards(&mut self.sink, STATUS_BYTES, Cause::Meta, self.cpu));
            self.given += 1;
        }
        self.traffic.fences += 1;
        self.step(Call::Fence, 0, 0, None, first);
    }
}

impl<S: Sink + Send> Medium for Board<S> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        self.inner().read(at, into);
    }

    fn write(&self, at: u64, data: &[u8]) {
        self.inner().write(Access::Metadata, at, data);
    }

    fn write_data(&self, at: u64, data: &[u8]) {
        self.inner().write(Access::Contents, at, data);
    }

    fn zero(&self, at: u64, len: u64) {
        self.inner().zero(at, len);
    }

    fn fence(&self) {
        self.inner().fence();
    }

    fn sync(&self) -> frit_fs::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_is_cut_at_multiples_of_the_burst() {
        let cut = |at, len, burst| requests(at, len, burst).collect::<Vec<_>>();
        assert_eq!(cut(60, 72, 64), [(60, 4), (64, 64), (128, 4)]);
        assert_eq!(cut(64, 64, 64), [(64, 64)]);
        assert_eq!(cut(5, 1000, 0), [(5, 1000)]);
        assert_eq!(cut(5, 0, 64), []);
    }
}
