//! Accesses of in-storage processing, and operations that run beside it.
//!
//! The engine is behind the link: its reads go from the cells to the unit of the engine beside their
//! controller. The processor writes an instruction to registers, and reads status and results from
//! registers, over the link.

use super::SimMedium;
use super::SimState;
use super::access::{expect_access, requests};
use frit_core::{Cause, Count, Nanos, Op, ReadTarget, Sink};
use frit_core::{Completion, Tag};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// An operation that was started.
pub(crate) struct StartedOp<T> {
    /// Result.
    pub(crate) answer: T,
    /// Start time.
    pub(crate) begun: Nanos,
    /// `true` if its end is reported by the engine; `false` if it took no time.
    pub(crate) is_reported: bool,
}

impl SimMedium {
    /// Passes the commands that follow to another sink, which must know the same hardware. Commands of
    /// the former sink must be complete, or be without time.
    pub(crate) fn change_sink(self, sink: Sink) -> SimMedium {
        let state = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        let inner = SimState {
            cpu: sink.start(),
            sink,
            host: state.host,
            pcm: state.pcm,
            link: state.link,
            copies: state.copies,
            calls: state.calls,
            engine: state.engine,
            areas: state.areas,
            traffic: state.traffic,
            posted: VecDeque::new(),
            posted_bytes: 0,
            loads: VecDeque::new(),
            issued: state.issued,
            steps: None,
        };
        SimMedium { bytes: self.bytes, inner: Mutex::new(inner) }
    }

    /// Returns the reads of the memory for in-storage processing so far.
    pub fn processed(&self) -> Count {
        self.inner().pcm.counts().get(Op::PcmRead, Cause::Isp)
    }

    /// Returns the bytes that crossed the link so far, in both directions.
    pub fn link_bytes(&self) -> u64 {
        let inner = self.inner();
        let of = |op| inner.link.as_ref().map_or(0, |link| link.counts().of(op).bytes);
        of(Op::DramRead) + of(Op::DramWrite)
    }

    /// Returns the number of channels of the memory.
    pub(crate) fn channels(&self) -> u32 {
        self.inner().pcm.geometry().channels
    }

    /// Returns the size of the file system in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.bytes
    }

    /// Returns the channel of the memory that holds an address: the unit of the engine for it.
    pub(crate) fn channel_of(&self, at: u64) -> u32 {
        let inner = self.inner();
        let unit = u32::from(inner.pcm.unit_of(at).0 - inner.pcm.unit_id(0).0);
        unit % inner.pcm.geometry().channels
    }

    /// Adds processor time to the current operation.
    pub(crate) fn work(&self, time: Nanos) {
        let mut inner = self.inner();
        let cpu = inner.cpu;
        inner.cpu = inner.sink.delay(cpu, time);
    }

    /// Writes bytes to registers, in the current operation.
    pub(crate) fn write_registers(&self, bytes: u32) {
        self.registers(bytes, false);
    }

    /// Reads bytes from registers, in the current operation.
    pub(crate) fn read_registers(&self, bytes: u32) {
        self.registers(bytes, true);
    }

    fn registers(&self, bytes: u32, is_read: bool) {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let Some(link) = &mut inner.link else { return };
        for (_, n) in requests(0, u64::from(bytes), inner.host.values.burst_bytes.0) {
            let moved = match is_read {
                true => link.receive(&mut inner.sink, n, Cause::Meta, inner.cpu),
                false => link.send(&mut inner.sink, n, Cause::Meta, inner.cpu),
            };
            inner.cpu = expect_access(moved);
            inner.issued += 1;
        }
    }
}

impl SimMedium {
    /// Starts an operation, whose end is reported with a tag.
    pub(crate) fn start<T>(&self, tag: Tag, operation: impl FnOnce() -> T) -> StartedOp<T> {
        let begun = self.inner().begin();
        let answer = operation();
        let mut inner = self.inner();
        let cpu = inner.cpu;
        inner.sink.ack(cpu);
        let done = inner.sink.end();
        let is_reported = inner.sink.time_or_watch(done, tag).is_none();
        StartedOp { answer, begun, is_reported }
    }

    /// Reports a tag after a time.
    pub(crate) fn wake_after(&self, time: Nanos, tag: Tag) {
        let mut inner = self.inner();
        inner.sink.begin();
        let start = inner.sink.start();
        let woken = inner.sink.delay(start, time);
        inner.sink.time_or_watch(woken, tag);
    }

    /// Reads bytes into the engine, for which unit `unit` of the engine then takes its time; without a
    /// unit, they are metadata that the engine decodes at once. The end is reported with a tag.
    pub(crate) fn engine_read(&self, at: u64, into: &mut [u8], unit: Option<u32>, tag: Tag) {
        let mut inner = self.inner();
        let inner = &mut *inner;
        inner.sink.begin();
        let (start, len) = (inner.sink.start(), into.len() as u32);
        let read = inner.pcm.read(&mut inner.sink, at, ReadTarget::Bytes(into), Cause::Isp, start);
        let mut done = expect_access(read);
        if let (Some(unit), Some(engine)) = (unit, &mut inner.engine) {
            done = expect_access(engine.process(&mut inner.sink, unit, len, done));
        }
        inner.sink.time_or_watch(done, tag);
    }

    /// Returns the next report, and advances the time to it.
    pub(crate) fn next_done(&self) -> Option<Completion> {
        self.inner().sink.next_done(Nanos::MAX)
    }
}
