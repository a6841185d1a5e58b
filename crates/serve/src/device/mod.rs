//! A device: one backend that any number of clients share, whatever they speak.
//!
//! The backend is behind one lock; [`Device::lock`] takes it for a few requests, and nobody holds it
//! while waiting for a client. Since every request is applied under the lock before it is answered, a
//! flush covers what any connection wrote before: the promise that NBD calls multi-conn.

mod access;
mod counters;
mod failure;
mod maintain;
#[cfg(test)]
mod tests;

pub use access::Access;
pub use counters::{Clients, Counters, Tally};
pub use failure::{Failure, FailureKind};
pub use maintain::Maintenance;

use crate::Log;
use crate::backend::{Backend, Done};
use crate::pace::Meter;
use crate::record::Recorder;
use frit_core::Error;
use frit_trace::ReqOp;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// The most bytes that one request may move, by any protocol: 32 MiB, what NBD clients assume.
pub const REQUEST_BYTES_MAX: u32 = 32 << 20;

/// The most bytes that a request may hold the lock for: longer ones let others in between.
pub const SLICE_BYTES: u64 = 16 << 20;

/// Bytes written since the last flush from which on files are synced before the lock is taken.
const SYNC_AHEAD_BYTES: u64 = 1 << 20;

/// Requests that met damage and are told of one by one.
const DAMAGE_TOLD: u64 = 20;

/// How a device is served.
#[derive(Debug)]
pub struct DeviceOptions {
    /// Refuse writes.
    pub read_only: bool,
    /// Where requests are recorded.
    pub recorder: Option<Recorder>,
    /// Compares when replies of a paced backend go out with when they should.
    pub meter: Option<Arc<Meter>>,
    /// Where remarks go.
    pub log: Log,
}

impl Default for DeviceOptions {
    fn default() -> DeviceOptions {
        DeviceOptions { read_only: false, recorder: None, meter: None, log: Log::none() }
    }
}

/// A backend that clients share.
pub struct Device {
    state: Mutex<State>,
    bytes: AtomicU64,
    page_bytes: u32,
    paced: bool,
    /// The backend leaves accesses to slow media to the device.
    deferring: bool,
    stopping: AtomicBool,
    /// Flushes that have begun; with `State::flushed`, what a waiting flush need not repeat.
    flushes_begun: AtomicU64,
    /// Bytes that were written since the last flush began.
    unsynced: AtomicU64,
    /// The files under the backend, for syncs without the lock.
    files: Vec<File>,
    clients: Clients,
    /// Accesses to slow media were settled.
    settled: Condvar,
    /// There may be work for the thread that carries out background accesses.
    wanted: Condvar,
    /// Requests that met damage.
    damaged: AtomicU64,
    recorder: Option<Recorder>,
    meter: Option<Arc<Meter>>,
    log: Log,
}

/// What the lock protects.
struct State {
    /// `None` once the device is closed.
    backend: Option<Box<dyn Backend>>,
    /// Why writes are refused: asked for, or after an error that should not have happened.
    refusal: Option<Arc<str>>,
    /// The number of the last flush that succeeded.
    flushed: u64,
    counters: Counters,
    /// Sectors around an unaligned request.
    bounce: Vec<u8>,
}

impl Device {
    /// A device over a backend.
    pub fn new(mut backend: Box<dyn Backend>, options: DeviceOptions) -> Arc<Device> {
        // Without them every flush is done under the lock, which is as right.
        let files = backend.files().unwrap_or_default();
        let deferring = backend.defer(true);
        let refusal = options.read_only.then(|| Arc::from("it is served read-only"));
        Arc::new(Device {
            bytes: AtomicU64::new(backend.bytes()),
            page_bytes: backend.page_bytes(),
            paced: backend.paced(),
            deferring,
            stopping: AtomicBool::new(false),
            flushes_begun: AtomicU64::new(0),
            unsynced: AtomicU64::new(0),
            files,
            clients: Clients::default(),
            settled: Condvar::new(),
            wanted: Condvar::new(),
            damaged: AtomicU64::new(0),
            recorder: options.recorder,
            meter: options.meter,
            log: options.log,
            state: Mutex::new(State {
                backend: Some(backend),
                refusal,
                flushed: 0,
                counters: Counters::default(),
                bounce: Vec::new(),
            }),
        })
    }

    /// Size, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The size at which writes need no read-modify-write, in bytes.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Whether replies may have to wait ([`Done::not_before`]).
    pub fn paced(&self) -> bool {
        self.paced
    }

    /// Whether some requests wait for a slow medium without the lock ([`Access::slow`] tells which).
    pub fn deferring(&self) -> bool {
        self.deferring
    }

    /// Connections, by what became of them.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Where remarks go.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// A reply that was due at `due` has gone out: for transports of paced devices.
    pub fn replied(&self, due: Instant) {
        if let Some(meter) = &self.meter {
            meter.replied(due, Instant::now());
        }
    }

    /// Takes the lock for some requests. Not to be held while waiting for anything else.
    pub fn lock(&self) -> Access<'_> {
        Access::new(self, self.state.lock())
    }

    /// Why writes are refused, when they are.
    pub fn read_only(&self) -> Option<String> {
        let state = self.state.lock();
        match &state.refusal {
            Some(why) => Some(why.to_string()),
            None => state.backend.as_ref().and_then(|b| b.read_only()),
        }
    }

    /// What was asked of the device since it was opened.
    pub fn counters(&self) -> Counters {
        self.state.lock().counters.clone()
    }

    /// Runs a function on the backend, between requests: for what is not a request (parameters, the
    /// visible view).
    ///
    /// # Errors
    /// A device that was closed.
    pub fn with<T>(&self, f: impl FnOnce(&mut dyn Backend) -> T) -> Result<T, Failure> {
        let mut state = self.state.lock();
        match &mut state.backend {
            Some(backend) => Ok(f(&mut **backend)),
            None => Err(Failure::Stopping),
        }
    }

    /// Makes durable what was written, by whomever, before this call. Flushes that wait for one another
    /// are done once. After more than a MiB of writes the files are synced without the lock first, so
    /// that others are kept waiting for little.
    ///
    /// # Errors
    /// A medium that fails; the device refuses writes from then on.
    pub fn flush(&self) -> Result<Done, Failure> {
        self.sync(Some(ReqOp::Flush))
    }

    /// The same for writes with FUA: a recording has their flag already.
    ///
    /// # Errors
    /// As for [`Device::flush`].
    pub fn flush_for_fua(&self) -> Result<Done, Failure> {
        self.sync(None)
    }

    fn sync(&self, recorded: Option<ReqOp>) -> Result<Done, Failure> {
        let asked = Instant::now();
        let begun = self.flushes_begun.load(Ordering::Acquire);
        let ahead = self.sync_ahead();
        let mut access = self.lock();
        if let Err(source) = ahead {
            access.refuse(&format!("a file could not be synced: {source}"));
            return Err(Failure::Backend(Error::Io { what: "cannot sync a medium's file".into(), source }));
        }
        access.asked(asked);
        access.flush(begun, recorded)
    }

    /// Lets the machine write out what is in its memory, while requests go on.
    fn sync_ahead(&self) -> std::io::Result<()> {
        if self.unsynced.load(Ordering::Relaxed) < SYNC_AHEAD_BYTES {
            return Ok(());
        }
        self.files.iter().try_for_each(File::sync_data)
    }

    /// Refuses further requests; those under way end normally.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether [`Device::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Stops the device and closes its backend in order: what was written is durable, the recording
    /// complete. Later calls do nothing.
    ///
    /// # Errors
    /// A medium or a recording that cannot be written.
    pub fn close(&self) -> Result<(), Failure> {
        self.stop();
        let backend = self.lock().take_backend();
        let recorded = self.recorder.as_ref().map_or(Ok(()), Recorder::finish);
        if let Some(backend) = backend {
            backend.close()?;
        }
        recorded
    }

    /// Says that a request met damage, the first few times: most clients show an error number only.
    #[cold]
    fn met_damage(&self, at: u64, len: u64, why: &Error) {
        match self.damaged.fetch_add(1, Ordering::Relaxed) {
            n if n < DAMAGE_TOLD => {
                self.log.say(format_args!("an I/O error for a client, {len} bytes at {at}: {why}"));
            }
            DAMAGE_TOLD => self.log.say(format_args!("more damage was met; frit scrub lists all")),
            _ => {}
        }
    }

    fn refuse(&self, state: &mut MutexGuard<'_, State>, why: &str) {
        if state.refusal.is_none() {
            state.refusal = Some(Arc::from(why));
            self.log.say(format_args!("writes are refused from now on, reads go on: {why}"));
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("bytes", &self.bytes()).field("page_bytes", &self.page_bytes).finish()
    }
}
