//! What clients do, written down as a trace that `frit run --trace` replays.
//!
//! Requests are noted under the device's lock, a few nanoseconds each, and written by the maintenance
//! thread. The format is frit's recorded CSV; the file's name may ask for compression (`.zst`, `.gz`).

use crate::device::Failure;
use frit_core::{Hints, Nanos, Sector};
use frit_trace::write::{WriteFormat, Writer};
use frit_trace::{ReqOp, Request};
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Requests that may wait to be written, before the clients wait for the file (24 bytes each).
const WAITING_MAX: usize = 1 << 20;

/// Writes requests to a file.
pub struct Recorder {
    path: String,
    start: Instant,
    waiting: Mutex<Vec<Request>>,
    /// When the request noted last came, in nanoseconds.
    last: AtomicU64,
    /// `None` once the file is complete, or cannot be written.
    writer: Mutex<Option<Writer>>,
}

impl Recorder {
    /// Creates the file, for its owner alone; times count from now.
    ///
    /// # Errors
    /// A file that cannot be created, or is there already.
    pub fn create(path: &str) -> Result<Recorder, frit_trace::Error> {
        // Addresses and times of requests are for the user who serves: the file is its owner's alone.
        let writer = Writer::create_growing(path, WriteFormat::Recorded, false)?;
        Ok(Recorder {
            path: path.into(),
            start: Instant::now(),
            waiting: Mutex::new(Vec::with_capacity(1 << 12)),
            last: AtomicU64::new(0),
            writer: Mutex::new(Some(writer)),
        })
    }

    /// The file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Notes a request that succeeded.
    pub(crate) fn note(&self, when: Instant, op: ReqOp, sector: Sector, sectors: u64, hints: Hints) {
        let came = when.saturating_duration_since(self.start).as_nanos() as u64;
        let mut waiting = self.waiting.lock();
        // In the order in which they were done: one that had to wait may have come before the last one.
        let at = Nanos(came.max(self.last.fetch_max(came, Ordering::Relaxed)));
        let mut push = |sector, sectors| {
            waiting.push(Request { at, sector: Sector(sector), sectors, device: 0, op, hints });
        };
        let (mut at, mut left) = (sector.0, sectors);
        loop {
            let part = left.min(u64::from(u32::MAX));
            push(at, part as u32);
            at += part;
            left -= part;
            if left == 0 {
                break;
            }
        }
        if waiting.len() >= WAITING_MAX {
            drop(waiting);
            // An error is told by the next `drain` of the maintenance thread, or by `finish`.
            let _ = self.write();
        }
    }

    /// Writes what was noted to the file, so that it can be read up to here.
    ///
    /// # Errors
    /// A file that cannot be written: nothing more is recorded.
    pub(crate) fn drain(&self) -> Result<(), Failure> {
        self.write()
    }

    /// Writes all and completes the file. Later calls do nothing.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        self.write()?;
        match self.writer.lock().take() {
            Some(writer) => Ok(writer.finish().map(|_| ())?),
            None => Ok(()),
        }
    }

    fn write(&self) -> Result<(), Failure> {
        let mut writer = self.writer.lock();
        let waiting = {
            let mut waiting = self.waiting.lock();
            let room = waiting.len().clamp(1 << 12, 1 << 16);
            std::mem::replace(&mut *waiting, Vec::with_capacity(room))
        };
        let Some(open) = writer.as_mut() else { return Ok(()) };
        let result = open.write(&waiting, &[]).and_then(|()| open.flush());
        if result.is_err() {
            *writer = None;
        }
        Ok(result?)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("path", &self.path).finish()
    }
}
