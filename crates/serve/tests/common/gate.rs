//! A volume whose disk accesses can be blocked by a test.

use frit_core::{
    BlockingMedium, Buffer, Deferred, Error, Hints, MediumKind, ParamInfo, RequestIntent, Result, StackView,
    SyncedFile,
};
use frit_serve::{Backend, ReplyTime};
use frit_volume::Volume;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Access to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read(u64),
    Write(u64),
    Sync,
}

#[derive(Default, Debug)]
struct GateState {
    /// Selects the accesses that are blocked.
    closed: Option<fn(&Access) -> bool>,
    /// The next sync fails.
    failing: bool,
    /// Reads fail.
    broken: bool,
    /// Number of accesses that have started and not passed the gate.
    waiting: usize,
    /// Completed accesses, in order.
    done: Vec<Access>,
}

/// A gate that blocks or passes accesses to the disk.
#[derive(Default, Debug)]
pub(crate) struct Gate {
    inside: Mutex<GateState>,
    changed: Condvar,
    /// Upper bound of the varying duration of accesses, in µs.
    jitter_us: u64,
}

impl Gate {
    pub(crate) fn with_jitter(jitter_us: u64) -> Gate {
        Gate { jitter_us, ..Gate::default() }
    }

    /// Blocks all accesses.
    pub(crate) fn close(&self) {
        self.inside.lock().unwrap().closed = Some(|_| true);
    }

    /// Blocks all syncs, and lets the next one fail.
    pub(crate) fn close_for_syncs(&self) {
        let mut inside = self.inside.lock().unwrap();
        inside.closed = Some(|a| *a == Access::Sync);
        inside.failing = true;
    }

    /// Switches failure of reads on or off.
    pub(crate) fn break_reads(&self, broken: bool) {
        self.inside.lock().unwrap().broken = broken;
    }

    pub(crate) fn open(&self) {
        self.inside.lock().unwrap().closed = None;
        self.changed.notify_all();
    }

    /// Waits until the given number of accesses are blocked.
    pub(crate) fn wait_for(&self, waiting: usize) {
        let until = Instant::now() + Duration::from_secs(20);
        let mut inside = self.inside.lock().unwrap();
        while inside.waiting != waiting {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} accesses are blocked, expected {waiting}", inside.waiting);
            inside = self.changed.wait_timeout(inside, left).unwrap().0;
        }
    }

    /// Returns the accesses completed so far.
    pub(crate) fn done(&self) -> Vec<Access> {
        self.inside.lock().unwrap().done.clone()
    }

    fn pass(&self, access: Access, what: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut inside = self.inside.lock().unwrap();
        inside.waiting += 1;
        self.changed.notify_all();
        while inside.closed.is_some_and(|stops| stops(&access)) {
            inside = self.changed.wait(inside).unwrap();
        }
        inside.waiting -= 1;
        let failing = match access {
            Access::Read(_) => inside.broken,
            Access::Write(_) => false,
            Access::Sync => std::mem::take(&mut inside.failing),
        };
        if failing {
            let source = std::io::Error::other("injected failure");
            return Err(Error::Io { what: "the disk fails".into(), source });
        }
        let number = inside.done.len() as u64;
        drop(inside);
        if self.jitter_us > 0 {
            let us = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            std::thread::sleep(Duration::from_micros(us % self.jitter_us));
        }
        let result = what();
        self.inside.lock().unwrap().done.push(access);
        result
    }
}

/// A medium behind a gate.
#[derive(Debug)]
struct GatedMedium {
    medium: Arc<dyn BlockingMedium>,
    gate: Arc<Gate>,
}

impl BlockingMedium for GatedMedium {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.gate.pass(Access::Read(at), || self.medium.read(at, into))
    }
    fn write(&self, at: u64, data: &[u8]) -> Result<()> {
        self.gate.pass(Access::Write(at), || self.medium.write(at, data))
    }
    fn zero(&self, at: u64, len: u64) -> Result<()> {
        self.gate.pass(Access::Write(at), || self.medium.zero(at, len))
    }
    fn sync(&self) -> Result<()> {
        self.gate.pass(Access::Sync, || self.medium.sync())
    }
}

/// A volume whose disk is behind a gate.
#[derive(Debug)]
pub(crate) struct GatedVolume(pub(crate) Volume, pub(crate) Arc<Gate>);

impl GatedVolume {
    fn gated(&self, mut left: Deferred) -> Deferred {
        for part in &mut left.parts {
            let medium = Arc::clone(&part.medium);
            part.medium = Arc::new(GatedMedium { medium, gate: Arc::clone(&self.1) });
        }
        left
    }
}

impl Backend for GatedVolume {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    fn page_bytes(&self) -> u32 {
        self.0.page_bytes()
    }
    fn read_only(&self) -> Option<String> {
        self.0.read_only()
    }
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        Backend::read(&mut self.0, at, into)
    }
    fn write(&mut self, at: u64, data: &[u8], hints: Hints) -> Result<ReplyTime> {
        Backend::write(&mut self.0, at, data, hints)
    }
    fn write_zeroes(&mut self, at: u64, len: u64, keep_allocated: bool) -> Result<ReplyTime> {
        Backend::write_zeroes(&mut self.0, at, len, keep_allocated)
    }
    fn discard(&mut self, at: u64, len: u64) -> Result<ReplyTime> {
        Backend::discard(&mut self.0, at, len)
    }
    fn flush(&mut self) -> Result<ReplyTime> {
        Backend::flush(&mut self.0)
    }
    fn extents(&self, at: u64, len: u64, each: &mut dyn FnMut(u64, Option<MediumKind>)) -> Result<()> {
        self.0.extents(at, len, each)
    }
    fn step(&mut self, budget: u32) -> Result<bool> {
        self.0.step(budget)
    }
    fn defer(&mut self, on: bool) -> bool {
        self.0.defer(on)
    }
    fn would_block(&self, what: RequestIntent, at: u64, len: u64) -> bool {
        self.0.would_block(what, at, len)
    }
    fn deferred(&mut self) -> Option<Deferred> {
        self.0.deferred().map(|left| self.gated(left))
    }
    fn job(&mut self) -> Result<Option<Deferred>> {
        Ok(self.0.job()?.map(|left| self.gated(left)))
    }
    fn settle(&mut self, of: &Deferred, outcome: Result<()>, buffer: &mut Buffer<'_>) -> Result<()> {
        self.0.settle(of, outcome, buffer)
    }
    fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        self.0.each_shared(each);
    }
    fn visible(&self) -> StackView {
        self.0.visible()
    }
    fn params(&mut self) -> Vec<ParamInfo> {
        self.0.params()
    }
    fn set_params(&mut self, settings: &[(&str, &str)]) -> Result<()> {
        self.0.set_params(settings)
    }
    fn synced_files(&self) -> Vec<Arc<SyncedFile>> {
        Backend::synced_files(&self.0)
    }
    fn close(self: Box<Self>) -> Result<()> {
        Backend::close(Box::new(self.0))
    }
}
