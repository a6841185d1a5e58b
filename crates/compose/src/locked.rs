//! A layer below another one with a lock of its own, so that the requests of the upper layer need
//! not wait for its slow media.

use frit_core::{
    BlockingMedium, Buffer, Deferred, Error, Hints, Nanos, ReadTarget, RequestIntent, Result, SECTOR_BYTES,
    Sector, Sink, StackDevice, WriteData,
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::fmt;
use std::time::Duration;

/// Maximum time to wait for the end of another request before a conflict is looked at again.
const WAIT_MAX: Duration = Duration::from_millis(20);

/// A layer behind a lock. The lock is released while the accesses that the layer defers are made.
pub(crate) struct LockedLayer {
    name: String,
    /// The layer defers: a request that it answers at once did not wait.
    defers: bool,
    state: Mutex<LayerState>,
    /// Signalled when deferred accesses are completed.
    settled: Condvar,
}

/// The layer, with the sink of its commands.
pub(crate) struct LayerState {
    pub(crate) layer: Box<dyn StackDevice>,
    pub(crate) sink: Sink,
}

impl LockedLayer {
    pub(crate) fn new(name: &str, layer: Box<dyn StackDevice>, defers: bool, sink: Sink) -> LockedLayer {
        let state = Mutex::new(LayerState { layer, sink });
        LockedLayer { name: name.into(), defers, state, settled: Condvar::new() }
    }

    /// Takes the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, LayerState> {
        self.state.lock()
    }

    /// Makes a request, and waits for its deferred accesses and its delay.
    fn request(
        &self,
        buffer: &mut Buffer<'_>,
        ask: impl Fn(&mut dyn StackDevice, &mut Sink, &mut Buffer<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.lock();
        let answer = self.request_locked(&mut state, buffer, ask);
        let delay = state.sink.take_delay();
        drop(state);
        if delay > Nanos::ZERO {
            std::thread::sleep(Duration::from_nanos(delay.0));
        }
        answer.map_err(|e| e.in_layer(&self.name))
    }

    fn request_locked(
        &self,
        state: &mut MutexGuard<'_, LayerState>,
        buffer: &mut Buffer<'_>,
        ask: impl Fn(&mut dyn StackDevice, &mut Sink, &mut Buffer<'_>) -> Result<()>,
    ) -> Result<()> {
        state.sink.take_delay();
        loop {
            let LayerState { layer, sink } = &mut **state;
            match ask(&mut **layer, sink, buffer) {
                Err(Error::WouldBlock) => {
                    if !self.run_job_locked(state)? {
                        self.settled.wait_for(state, WAIT_MAX);
                    }
                }
                Err(e) => return Err(e),
                Ok(()) => break,
            }
        }
        while let Some(deferred) = state.layer.deferred() {
            self.complete(state, &deferred, buffer)?;
        }
        Ok(())
    }

    /// Makes deferred accesses with the lock released, and passes their result to the layer.
    fn complete(
        &self,
        state: &mut MutexGuard<'_, LayerState>,
        deferred: &Deferred,
        buffer: &mut Buffer<'_>,
    ) -> Result<()> {
        let outcome = MutexGuard::unlocked(state, || deferred.run(buffer));
        let LayerState { layer, sink } = &mut **state;
        let settled = layer.settle(sink, deferred, outcome, buffer);
        self.settled.notify_all();
        settled
    }

    /// Writes with hints.
    pub(crate) fn write_hinted(&self, at: u64, data: &[u8], hints: Hints) -> Result<()> {
        self.request(&mut Buffer::Out(data), |layer, sink, _| {
            layer.write(sink, Sector(at / SECTOR_BYTES), WriteData::Bytes(data), hints)
        })
    }

    fn run_job_locked(&self, state: &mut MutexGuard<'_, LayerState>) -> Result<bool> {
        let LayerState { layer, sink } = &mut **state;
        match layer.job(sink)? {
            Some(job) => self.complete(state, &job, &mut Buffer::None).map(|()| true),
            None => Ok(false),
        }
    }
}

impl fmt::Debug for LockedLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedLayer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl BlockingMedium for LockedLayer {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.request(&mut Buffer::In(into), |layer, sink, buffer| match buffer {
            Buffer::In(b) => layer.read(sink, Sector(at / SECTOR_BYTES), ReadTarget::Bytes(b), Hints::NONE),
            _ => Ok(()),
        })
    }

    fn write(&self, at: u64, data: &[u8]) -> Result<()> {
        self.write_hinted(at, data, Hints::NONE)
    }

    /// Reads if nobody has the lock, and the layer need not wait.
    fn read_now(&self, at: u64, into: &mut [u8]) -> bool {
        if !self.defers {
            return false;
        }
        let Some(mut state) = self.state.try_lock() else { return false };
        let LayerState { layer, sink } = &mut *state;
        let (from, sectors) = (Sector(at / SECTOR_BYTES), into.len() as u64 / SECTOR_BYTES);
        if layer.would_block(RequestIntent::Read, from, sectors) {
            return false;
        }
        let read = layer.read(sink, from, ReadTarget::Bytes(into), Hints::NONE);
        if let Some(deferred) = layer.deferred() {
            let cancelled = layer.settle(sink, &deferred, Err(Error::WouldBlock), &mut Buffer::In(into));
            return cancelled.is_ok();
        }
        read.is_ok()
    }

    fn zero(&self, at: u64, len: u64) -> Result<()> {
        if !self.lock().layer.keeps_discards() {
            return crate::nested::zero_parts(at, len, |at, zeros| self.write(at, zeros));
        }
        self.request(&mut Buffer::None, |layer, sink, _| {
            layer.discard(sink, Sector(at / SECTOR_BYTES), len / SECTOR_BYTES)
        })
    }

    fn sync(&self) -> Result<()> {
        self.request(&mut Buffer::None, |layer, sink, _| layer.flush(sink))
    }

    fn run_job(&self) -> Result<bool> {
        self.run_job_locked(&mut self.lock()).map_err(|e| e.in_layer(&self.name))
    }

    fn step(&self, budget: u32) -> Result<bool> {
        let mut state = self.lock();
        let LayerState { layer, sink } = &mut *state;
        match layer.step(sink, budget) {
            Ok(progress) => Ok(matches!(progress, frit_core::Progress::Busy(_))),
            // Requests in flight are in the way.
            Err(Error::WouldBlock) => Ok(false),
            Err(e) => Err(e.in_layer(&self.name)),
        }
    }
}
