//! A device: one backend shared by any number of clients of all protocols.
//!
//! The backend is protected by one lock; [`Device::lock`] takes it for a few requests, and no
//! thread holds it while it waits for a client. Since every request is applied under the lock
//! before the reply, a flush covers the earlier writes of all connections. NBD calls this guarantee
//! multi-conn.

mod access;
mod changes;
mod counters;
mod failure;
mod in_storage;
mod maintain;
mod marked;
#[cfg(test)]
mod tests;

pub use access::DeviceGuard;
pub use counters::{ConnectionCounters, OpCounters, RequestCounters};
pub use failure::{Failure, FailureKind};
pub use in_storage::DeviceExtents;
pub use maintain::Maintenance;
pub use marked::DeviceHints;

use crate::Logger;
use crate::backend::{Backend, ReplyTime};
use crate::hints::{HintOptions, HintRules, MarkedPart, ProcessHints};
use crate::pace::PaceMeter;
use crate::record::TraceRecorder;
use changes::Changes;
use frit_core::{Error, SECTOR_BYTES, SyncedFile};
use frit_trace::ReqOp;
use in_storage::QueryGate;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Maximum number of bytes that one request may move in any protocol: 32 MiB, the limit that NBD
/// clients assume.
pub const REQUEST_BYTES_MAX: u32 = 32 << 20;

/// Maximum number of bytes that a request processes under one hold of the lock. Longer requests
/// offer the lock to other threads in between.
pub const SLICE_BYTES: u64 = 16 << 20;

/// Number of unsynced bytes from which a flush syncs the files before it takes the lock.
const SYNC_AHEAD_BYTES: u64 = 1 << 20;

/// Maximum number of requests with damage that are logged one by one.
const DAMAGE_LOGGED_MAX: u64 = 20;

/// Options of a device.
#[derive(Debug)]
pub struct DeviceOptions {
    /// The device refuses writes.
    pub read_only: bool,
    /// Recording of requests.
    pub recorder: Option<TraceRecorder>,
    /// Recordings of layers of the stack, which the backend has. The device writes their files.
    pub layer_recorders: Vec<Arc<TraceRecorder>>,
    /// Measures the delay of replies of a paced backend against their due times.
    pub meter: Option<Arc<PaceMeter>>,
    /// Rules that give hints to writes.
    pub hints: HintOptions,
    /// Destination of log lines.
    pub log: Logger,
}

impl Default for DeviceOptions {
    fn default() -> DeviceOptions {
        DeviceOptions {
            read_only: false,
            recorder: None,
            layer_recorders: Vec::new(),
            meter: None,
            hints: HintOptions::default(),
            log: Logger::none(),
        }
    }
}

/// A backend that clients share.
pub struct Device {
    state: Mutex<DeviceState>,
    bytes: AtomicU64,
    page_bytes: u32,
    write_unit_bytes: u32,
    paced: bool,
    /// `true` if the backend defers accesses to slow media to the device.
    deferring: bool,
    /// `true` if the backend serves ranges that begin or end inside a sector.
    serves_bytes: bool,
    /// Discards are divided at multiples of this number of bytes.
    discard_slice: u64,
    stopping: AtomicBool,
    /// Number of flushes that have begun. Together with `DeviceState::flushed`, it tells a waiting
    /// flush that another one has covered it.
    flushes_begun: AtomicU64,
    /// Bytes written since the last flush began.
    unsynced: AtomicU64,
    /// The files below the backend, for syncs without the lock; none once the device is closed.
    files: Mutex<Vec<Arc<SyncedFile>>>,
    clients: ConnectionCounters,
    /// Signalled after a deferred access was completed.
    settled: Condvar,
    /// Signalled when there may be work for the thread of background accesses.
    work_available: Condvar,
    /// Number of requests that met damage.
    damaged: AtomicU64,
    recorder: Option<TraceRecorder>,
    layer_recorders: Vec<Arc<TraceRecorder>>,
    meter: Option<Arc<PaceMeter>>,
    /// Hints by process; `None` without rules.
    processes: Option<ProcessHints>,
    /// Queries of the processing engine, and the gate at which it waits for requests.
    queries: QueryGate,
    log: Logger,
}

/// State protected by the lock.
struct DeviceState {
    /// `None` once the device is closed.
    backend: Option<Box<dyn Backend>>,
    /// Reason of read-only mode: the configuration, or an unexpected error.
    read_only_reason: Option<Arc<str>>,
    /// Number of the last flush that succeeded.
    flushed: u64,
    counters: RequestCounters,
    /// Bounce buffer for the sectors of an unaligned request.
    bounce: Vec<u8>,
    /// Rules that give hints to writes; `None` without rules.
    hints: Option<Box<HintRules>>,
    /// Parts of the marked write in progress.
    parts: Vec<MarkedPart>,
    /// Changes in progress, and the queries that they concern.
    changes: Changes,
}

impl Device {
    /// Creates a device over a backend.
    pub fn new(mut backend: Box<dyn Backend>, options: DeviceOptions) -> Arc<Device> {
        let files = Mutex::new(backend.synced_files());
        let deferring = backend.defer(true);
        let serves_bytes = backend.serves_bytes();
        let unit = backend.discard_unit_bytes().max(SECTOR_BYTES);
        let read_only_reason = options.read_only.then(|| Arc::from("the volume is served read-only"));
        let HintOptions { ranges, detect_metadata, processes } = options.hints;
        let device = Arc::new(Device {
            bytes: AtomicU64::new(backend.bytes()),
            page_bytes: backend.page_bytes(),
            write_unit_bytes: backend.write_unit_bytes(),
            paced: backend.paced(),
            deferring,
            serves_bytes,
            discard_slice: unit * (SLICE_BYTES / unit).max(1),
            stopping: AtomicBool::new(false),
            flushes_begun: AtomicU64::new(0),
            unsynced: AtomicU64::new(0),
            files,
            clients: ConnectionCounters::default(),
            settled: Condvar::new(),
            work_available: Condvar::new(),
            damaged: AtomicU64::new(0),
            recorder: options.recorder,
            layer_recorders: options.layer_recorders,
            meter: options.meter,
            processes: ProcessHints::new(processes),
            queries: QueryGate::default(),
            log: options.log,
            state: Mutex::new(DeviceState {
                backend: Some(backend),
                read_only_reason,
                flushed: 0,
                counters: RequestCounters::default(),
                bounce: Vec::new(),
                hints: None,
                parts: Vec::new(),
                changes: Changes::default(),
            }),
        });
        for range in ranges {
            if let Err(why) = device.add_hint(range) {
                device.log.write_line(format_args!("a hint is ignored: {why}"));
            }
        }
        if detect_metadata {
            device.detect_metadata(true);
        }
        device
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the size in bytes at which writes need no read-modify-write.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Returns the size in bytes of which writes have to be multiples, or 1.
    pub fn write_unit_bytes(&self) -> u32 {
        self.write_unit_bytes
    }

    /// Returns `true` if replies may be delayed ([`ReplyTime::not_before`]).
    pub fn paced(&self) -> bool {
        self.paced
    }

    /// Returns `true` if some requests wait for a slow medium with the lock released
    /// ([`DeviceGuard::would_block`] predicts which).
    pub fn deferring(&self) -> bool {
        self.deferring
    }

    /// Returns the connection counters.
    pub fn clients(&self) -> &ConnectionCounters {
        &self.clients
    }

    /// Returns the log.
    pub fn log(&self) -> &Logger {
        &self.log
    }

    /// Reports that a reply due at `due` has been sent. Transports of paced devices call it.
    pub fn replied(&self, due: Instant) {
        if let Some(meter) = &self.meter {
            meter.replied(due, Instant::now());
        }
    }

    /// Takes the lock for some requests. The lock must not be held while waiting for anything else.
    pub fn lock(&self) -> DeviceGuard<'_> {
        // The engine has to know of a request that waits for the lock.
        let foreground = self.queries.enter();
        DeviceGuard::new(self, self.state.lock(), foreground)
    }

    /// Takes the lock for work for which the processing engine does not wait.
    pub(crate) fn lock_in_background(&self) -> DeviceGuard<'_> {
        DeviceGuard::new(self, self.state.lock(), None)
    }

    /// Returns the reason of read-only mode, or `None` if writes are accepted.
    pub fn read_only(&self) -> Option<String> {
        let state = self.state.lock();
        match &state.read_only_reason {
            Some(why) => Some(why.to_string()),
            None => state.backend.as_ref().and_then(|b| b.read_only()),
        }
    }

    /// Returns the request counters since the device was opened.
    pub fn counters(&self) -> RequestCounters {
        self.state.lock().counters.clone()
    }

    /// Runs a function on the backend, between requests. It serves accesses that are not requests:
    /// parameters, the visible view.
    ///
    /// # Errors
    /// The device is closed.
    pub fn with<T>(&self, f: impl FnOnce(&mut dyn Backend) -> T) -> Result<T, Failure> {
        let mut state = self.state.lock();
        match &mut state.backend {
            Some(backend) => Ok(f(&mut **backend)),
            None => Err(Failure::Stopping),
        }
    }

    /// Runs a command on the backend as [`Device::with`] does. It returns the bytes that it may have changed.
    ///
    /// # Errors
    /// The device is closed.
    pub(crate) fn with_change<T>(
        &self,
        command: impl FnOnce(&mut dyn Backend) -> (T, Range<u64>),
    ) -> Result<T, Failure> {
        let _foreground = self.queries.enter();
        let mut state = self.state.lock();
        let Some(backend) = &mut state.backend else { return Err(Failure::Stopping) };
        let (done, changed) = command(&mut **backend);
        // The lock is held since before the change, so no query has read the bytes meanwhile.
        state.changes.note(&changed);
        Ok(done)
    }

    /// Makes all writes of all clients that were completed before this call durable. Concurrent
    /// flushes are merged into one. After more than 1 MiB of writes the files are synced without
    /// the lock first, so that other requests wait only shortly.
    ///
    /// # Errors
    /// A medium fails. The device is in read-only mode from then on.
    pub fn flush(&self) -> Result<ReplyTime, Failure> {
        self.sync(Some(ReqOp::Flush))
    }

    /// Flushes for writes with FUA. The recording does not contain this flush, since the write
    /// carries the flag.
    ///
    /// # Errors
    /// As for [`Device::flush`].
    pub fn flush_for_fua(&self) -> Result<ReplyTime, Failure> {
        self.sync(None)
    }

    fn sync(&self, recorded: Option<ReqOp>) -> Result<ReplyTime, Failure> {
        let arrived = Instant::now();
        // The number is read before the sync: only a flush that begins later covers all earlier
        // writes.
        let begun = self.flushes_begun.load(Ordering::Acquire);
        self.sync_ahead();
        let mut access = self.lock();
        access.arrived(arrived);
        access.flush(begun, recorded)
    }

    /// Lets the host write its dirty pages back while requests continue. A failure stays at the file: the layer
    /// meets it in the flush, if the flush needs the file, and knows what it can write once more.
    fn sync_ahead(&self) {
        if self.unsynced.load(Ordering::Relaxed) < SYNC_AHEAD_BYTES {
            return;
        }
        let files = self.files.lock().clone();
        for file in files {
            drop(file.sync());
        }
    }

    /// Refuses further requests. Requests in flight end normally.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Returns `true` if [`Device::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Stops the device and closes its backend in order: all completed writes are durable, and the
    /// recording is complete. Later calls do nothing.
    ///
    /// # Errors
    /// A medium or a recording cannot be written.
    pub fn close(&self) -> Result<(), Failure> {
        self.stop();
        let backend = self.lock().take_backend();
        // They keep the files locked.
        self.files.lock().clear();
        let recorded = self.recorder.as_ref().map_or(Ok(()), TraceRecorder::finish);
        let closed = backend.map_or(Ok(()), Backend::close);
        // The backend's last requests are in the recordings of its layers.
        for recorder in &self.layer_recorders {
            if let Err(e) = recorder.finish() {
                self.log_recording(recorder, &e);
            }
        }
        closed?;
        recorded
    }

    /// Logs that a recording has ended because its file cannot be written.
    fn log_recording(&self, recorder: &TraceRecorder, why: &Failure) {
        self.log.write_line(format_args!("recording to {} was stopped: {why}", recorder.path()));
    }

    /// Logs the first requests that meet damage, since most clients report only an error number.
    #[cold]
    fn log_damage(&self, at: u64, len: u64, why: &Error) {
        match self.damaged.fetch_add(1, Ordering::Relaxed) {
            n if n < DAMAGE_LOGGED_MAX => {
                self.log.write_line(format_args!("I/O error for a client, {len} bytes at {at}: {why}"));
            }
            DAMAGE_LOGGED_MAX => {
                self.log.write_line(format_args!("more damage was found; frit scrub lists all of it"));
            }
            _ => {}
        }
    }

    /// Enters read-only mode, and logs the first reason.
    fn enter_read_only(&self, state: &mut MutexGuard<'_, DeviceState>, why: &str) {
        if state.read_only_reason.is_none() {
            state.read_only_reason = Some(Arc::from(why));
            self.log.write_line(format_args!("writes are refused from now on; reads continue: {why}"));
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("bytes", &self.bytes()).field("page_bytes", &self.page_bytes).finish()
    }
}
