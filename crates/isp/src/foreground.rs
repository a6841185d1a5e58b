//! Priority of foreground requests over the engine.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time after a foreground request in which another one is expected.
pub(crate) const RECENT: Duration = Duration::from_millis(2);

/// Gate for foreground work: the engine yields while foreground requests are in progress.
///
/// The engine checks the gate between chunks. A wait ends when no request is in progress, and at the
/// latest after `patience`; then the engine processes one chunk, so it is never starved.
#[derive(Debug)]
pub struct Foreground {
    active: AtomicU64,
    /// Time of the end of the last request after `created`, in nanoseconds; 0: there was none.
    last_ns: AtomicU64,
    created: Instant,
    waiters: AtomicU64,
    lock: Mutex<()>,
    idle: Condvar,
    patience: Duration,
    yields: AtomicU64,
    yielded_ns: AtomicU64,
}

impl Default for Foreground {
    fn default() -> Self {
        Self::new(Duration::from_millis(50))
    }
}

impl Foreground {
    /// Creates a gate at which the engine waits for at most `patience` before each chunk.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        Self {
            active: AtomicU64::new(0),
            last_ns: AtomicU64::new(0),
            created: Instant::now(),
            waiters: AtomicU64::new(0),
            lock: Mutex::new(()),
            idle: Condvar::new(),
            patience,
            yields: AtomicU64::new(0),
            yielded_ns: AtomicU64::new(0),
        }
    }

    /// Begins a foreground request, which lasts until the guard is dropped.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> ForegroundGuard {
        self.active.fetch_add(1, Ordering::SeqCst);
        ForegroundGuard(Arc::clone(self))
    }

    /// Returns `true` if a foreground request is in progress.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::SeqCst) != 0
    }

    /// Returns `true` if a foreground request is in progress, or ended less than [`RECENT`] ago.
    pub(crate) fn is_recent(&self) -> bool {
        let last = self.last_ns.load(Ordering::Relaxed);
        let recent = || self.created.elapsed().as_nanos() as u64 <= last + RECENT.as_nanos() as u64;
        self.is_active() || last > 0 && recent()
    }

    /// Number of times that the engine has waited.
    #[must_use]
    pub fn yields(&self) -> u64 {
        self.yields.load(Ordering::Relaxed)
    }

    /// Time that the threads of the engine have waited, in nanoseconds.
    #[must_use]
    pub fn yielded_ns(&self) -> u64 {
        self.yielded_ns.load(Ordering::Relaxed)
    }

    /// Waits while foreground requests are in progress and `stop` returns `false`. Returns the time
    /// of the wait, or `None` if there was nothing to wait for.
    pub(crate) fn pass(&self, stop: &dyn Fn() -> bool) -> Option<Duration> {
        if self.active.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let began = Instant::now();
        let until = began + self.patience;
        let mut lock = self.lock.lock();
        self.waiters.fetch_add(1, Ordering::SeqCst);
        while self.active.load(Ordering::SeqCst) != 0 && !stop() {
            // A cancellation does not notify, so the wait has steps.
            let step = until.min(Instant::now() + Duration::from_millis(20));
            self.idle.wait_until(&mut lock, step);
            if Instant::now() >= until {
                break;
            }
        }
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        drop(lock);
        let waited = began.elapsed();
        self.yields.fetch_add(1, Ordering::Relaxed);
        self.yielded_ns.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
        Some(waited)
    }
}

/// Foreground request in progress.
#[derive(Debug)]
pub struct ForegroundGuard(Arc<Foreground>);

impl Drop for ForegroundGuard {
    fn drop(&mut self) {
        self.0.last_ns.store(self.0.created.elapsed().as_nanos() as u64, Ordering::Relaxed);
        let last = self.0.active.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.0.waiters.load(Ordering::SeqCst) != 0 {
            // A waiter that has seen the request holds the lock until it waits.
            drop(self.0.lock.lock());
            self.0.idle.notify_all();
        }
    }
}
