//! Recording of requests as a trace, which `frit run --trace` can replay: those of clients, or those
//! that a layer `record` of the stack receives.
//!
//! Requests are appended to a buffer under the device's lock, a few nanoseconds each, and written
//! by the maintenance thread. The format is frit's recorded CSV; the suffix of the file selects
//! compression (`.zst`, `.gz`).

use crate::device::Failure;
use frit_core::{Hints, Nanos};
use frit_stack::record::{ReceivedRequest, RecordPort, RequestSink};
use frit_trace::write::{WriteFormat, Writer};
use frit_trace::{ReqOp, Request, requests_for};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Maximum number of buffered requests (32 bytes each). Beyond it, the client's own thread writes
/// them to the file.
const WAITING_MAX: usize = 1 << 20;

/// Writes requests to a trace file.
pub struct TraceRecorder {
    path: String,
    start: Instant,
    waiting: Mutex<Vec<Request>>,
    /// Arrival time of the request recorded last, in nanoseconds since `start`.
    last: AtomicU64,
    file: Mutex<RecordFile>,
    /// `true` once the file takes no more requests.
    ended: AtomicBool,
}

/// State of the trace file.
enum RecordFile {
    Open(Box<Writer>),
    /// A write failed. Recording has ended, and the file holds the requests before it.
    Failed {
        error: Arc<frit_trace::Error>,
        /// `drain` has returned the error.
        reported: bool,
    },
    Complete,
}

impl TraceRecorder {
    /// Creates the file, accessible only to its owner. Timestamps are relative to this call.
    ///
    /// # Errors
    /// The file cannot be created, or it exists already.
    pub fn create(path: &str) -> Result<TraceRecorder, frit_trace::Error> {
        // Addresses and times of requests are private to the user who runs the server.
        let writer = Writer::create_growing(path, WriteFormat::Recorded, false)?;
        Ok(TraceRecorder {
            path: path.into(),
            start: Instant::now(),
            waiting: Mutex::new(Vec::with_capacity(1 << 12)),
            last: AtomicU64::new(0),
            file: Mutex::new(RecordFile::Open(Box::new(writer))),
            ended: AtomicBool::new(false),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Records a request for `len` bytes from `offset` on that succeeded. If it is not of whole
    /// sectors, it has at most 32 MiB.
    pub(crate) fn note(&self, when: Instant, op: ReqOp, offset: u64, len: u64, hints: Hints) {
        let came = when.saturating_duration_since(self.start).as_nanos() as u64;
        let mut waiting = self.waiting.lock();
        // Requests are recorded in order of completion. One that was delayed may have arrived
        // before the last one, so timestamps are kept from decreasing.
        let at = Nanos(came.max(self.last.fetch_max(came, Ordering::Relaxed)));
        waiting.extend(requests_for(at, op, offset, len, hints));
        if waiting.len() >= WAITING_MAX {
            drop(waiting);
            // The client's request has succeeded. `drain` and `finish` return the error.
            self.write();
        }
    }

    /// Returns a recorder of the requests that a layer receives, which writes to the file of the
    /// layer.
    ///
    /// # Errors
    /// As for [`TraceRecorder::create`].
    pub fn of_layer(port: &RecordPort) -> Result<Arc<TraceRecorder>, frit_trace::Error> {
        let recorder = Arc::new(TraceRecorder::create(port.file())?);
        port.attach(Arc::<TraceRecorder>::clone(&recorder));
        Ok(recorder)
    }

    /// Writes the buffered requests to the file, so that the file is readable up to this point.
    ///
    /// # Errors
    /// The file cannot be written. Recording ends; later calls return no error.
    pub(crate) fn drain(&self) -> Result<(), Failure> {
        self.write();
        match &mut *self.file.lock() {
            RecordFile::Failed { error, reported } if !*reported => {
                *reported = true;
                Err(Failure::Record(Arc::clone(error)))
            }
            _ => Ok(()),
        }
    }

    /// Writes all buffered requests and completes the file. Later calls do nothing.
    ///
    /// # Errors
    /// The file cannot be written, or could not be written earlier.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        self.write();
        self.ended.store(true, Ordering::Relaxed);
        match std::mem::replace(&mut *self.file.lock(), RecordFile::Complete) {
            RecordFile::Open(writer) => writer.finish().map(|_| ()).map_err(|e| Failure::Record(Arc::new(e))),
            RecordFile::Failed { error, .. } => Err(Failure::Record(error)),
            RecordFile::Complete => Ok(()),
        }
    }

    fn write(&self) {
        // The file is locked first, so that batches reach the file in the order in which they are
        // taken.
        let mut file = self.file.lock();
        let waiting = {
            let mut waiting = self.waiting.lock();
            let room = waiting.len().clamp(1 << 12, 1 << 16);
            std::mem::replace(&mut *waiting, Vec::with_capacity(room))
        };
        let RecordFile::Open(writer) = &mut *file else { return };
        if let Err(error) = writer.write(&waiting, &[]).and_then(|()| writer.flush()) {
            *file = RecordFile::Failed { error: Arc::new(error), reported: false };
            self.ended.store(true, Ordering::Relaxed);
        }
    }
}

impl RequestSink for TraceRecorder {
    fn record(&self, request: &ReceivedRequest) -> bool {
        if self.ended.load(Ordering::Relaxed) {
            return false;
        }
        self.note(Instant::now(), request.kind.into(), request.at, request.len, Hints::NONE);
        true
    }
}

impl fmt::Debug for TraceRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceRecorder").field("path", &self.path).finish()
    }
}
