//! A medium whose accesses become commands.
//!
//! The program waits for the bytes of a load. A store is posted: the program waits until it has
//! crossed the link, but not until it is in the cells. A fence waits for all posted stores, and the
//! program waits for the fence.

mod access;
mod processing;

use crate::area::{Area, Areas, MediumAccess, Traffic};
use crate::build::{Devices, EngineUnits, HostDevice};
use crate::error::{Error, Result};
use crate::host::HostModel;
use access::expect_access;
use frit_core::{Cause, Nanos, Sink, Tok};
use frit_fs::{Geometry, Medium};
use frit_media::Pcm;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A call of the file system to its medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediumCall {
    /// A read of bytes.
    Read,
    /// A write of metadata or contents.
    Write,
    /// A write of zeros.
    Zero,
    /// A fence.
    Fence,
}

/// A call and its commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedCall {
    /// Kind of call.
    pub call: MediumCall,
    /// Position in bytes; 0 for a fence.
    pub at: u64,
    /// Number of bytes; 0 for a fence.
    pub bytes: u64,
    /// Area of the access; `None` for a fence.
    pub area: Option<Area>,
    /// Number of its first command, counted from the first command of the medium.
    pub first: u64,
    /// Number after its last command.
    pub end: u64,
}

/// A medium for a file system that issues commands to modelled memory behind a modelled host.
pub struct SimMedium {
    bytes: u64,
    inner: Mutex<SimState>,
}

impl std::fmt::Debug for SimMedium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimMedium").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

struct SimState {
    sink: Sink,
    host: HostModel,
    pcm: Pcm,
    link: Option<HostDevice>,
    copies: Option<HostDevice>,
    calls: Option<HostDevice>,
    engine: Option<EngineUnits>,
    areas: Areas,
    traffic: Traffic,
    /// Time at which the program continues.
    cpu: Tok,
    /// Stores that may not be in the cells yet, oldest first, with their bytes.
    posted: VecDeque<(Tok, u32)>,
    posted_bytes: u64,
    /// Requests of the current load. The queue is kept to reuse its allocation.
    loads: VecDeque<Tok>,
    issued: u64,
    steps: Option<Vec<RecordedCall>>,
}

impl SimMedium {
    /// Creates a medium that issues its commands to `sink`, which must know the hardware.
    ///
    /// # Errors
    /// A size that is too small for a file system.
    pub fn new(parts: Devices, sink: Sink) -> Result<Self> {
        let geometry = Geometry::divide_for(parts.bytes, None, parts.sums)
            .map_err(Error::fs("layout of the file system"))?;
        let Devices { host, bytes, pcm, link, copies, calls, engine, .. } = parts;
        let inner = SimState {
            cpu: sink.start(),
            sink,
            host,
            pcm,
            link,
            copies,
            calls,
            engine,
            areas: Areas::new(geometry),
            traffic: Traffic::default(),
            posted: VecDeque::new(),
            posted_bytes: 0,
            loads: VecDeque::new(),
            issued: 0,
            steps: None,
        };
        Ok(Self { bytes, inner: Mutex::new(inner) })
    }

    fn inner(&self) -> MutexGuard<'_, SimState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the traffic to the medium so far.
    pub fn traffic(&self) -> Traffic {
        self.inner().traffic.clone()
    }

    /// Calls a function with the sink.
    pub fn with_sink<T>(&self, look: impl FnOnce(&mut Sink) -> T) -> T {
        look(&mut self.inner().sink)
    }

    /// Starts to record calls.
    pub fn record_calls(&self) {
        self.inner().steps = Some(Vec::new());
    }

    /// Returns the calls since [`SimMedium::record_calls`] and stops recording.
    pub fn take_calls(&self) -> Vec<RecordedCall> {
        self.inner().steps.take().unwrap_or_default()
    }

    /// Returns the number of commands so far, to all of its devices.
    pub fn commands(&self) -> u64 {
        self.inner().issued
    }

    /// Returns a copy of all bytes, without any command.
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

    /// Returns the sink and drops the medium.
    pub fn into_sink(self) -> Sink {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner).sink
    }
}

impl SimMedium {
    /// Returns the time of the engine.
    pub fn now(&self) -> Nanos {
        self.inner().sink.now()
    }

    /// Runs an operation and advances the time until the program has the result. Returns the result
    /// and the latency. Stores may still be in flight then.
    pub fn operation<T>(&self, operation: impl FnOnce() -> T) -> (T, Nanos) {
        let begun = self.inner().begin();
        let answer = operation();
        let done = self.inner().end();
        (answer, done.since(begun))
    }

    /// Advances the time until all commands so far are complete.
    pub fn wait_idle(&self) {
        let mut inner = self.inner();
        let SimState { posted, sink, cpu, .. } = &mut *inner;
        *cpu = posted.drain(..).fold(*cpu, |all, (tok, _)| sink.join(all, tok));
        inner.posted_bytes = 0;
        inner.sink.begin();
        inner.end();
    }
}

impl SimState {
    fn begin(&mut self) -> Nanos {
        self.sink.begin();
        self.cpu = self.sink.start();
        if let Some(calls) = &mut self.calls {
            let issued = calls.send(&mut self.sink, 1, Cause::Meta, self.cpu);
            self.cpu = expect_access(issued);
            self.issued += 1;
        }
        self.sink.now()
    }

    fn end(&mut self) -> Nanos {
        self.sink.ack(self.cpu);
        let tok = self.sink.end();
        // An engine that computes times at once settles the token; an event-driven one runs until
        // it is done.
        let done = match self.sink.time_or_watch(tok, 0) {
            Some(at) => at,
            None => self.sink.next_done(Nanos::MAX).map_or(self.sink.now(), |done| done.at),
        };
        self.sink.next_done(done);
        done
    }
}

impl Medium for SimMedium {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        self.inner().read(at, into);
    }

    fn write(&self, at: u64, data: &[u8]) {
        self.inner().write(MediumAccess::Metadata, at, data);
    }

    fn write_data(&self, at: u64, data: &[u8]) {
        self.inner().write(MediumAccess::Contents, at, data);
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
