//! The medium: every access of the file system becomes commands.
//!
//! A load waits for its bytes, so what the program does next comes after it. A store is posted: it crosses the link,
//! and is in the cells later. A fence waits for all that was posted, and the program for the fence.

mod access;

use crate::area::{Access, Area, Areas, Traffic};
use crate::build::{Carrier, Parts};
use crate::error::{Error, Result};
use crate::host::Host;
use access::sure;
use frit_core::{Cause, Nanos, Sink};
use frit_engine::Engine;
use frit_fs::{Geometry, Medium};
use frit_media::{MemoryStore, Pcm};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
        let geometry = Geometry::divide_for(parts.bytes, None, parts.sums)
            .map_err(Error::fs("the regions of the file system"))?;
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
