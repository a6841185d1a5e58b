//! Periodic syncs of an image on a disk, which limit the loss at a power failure.

use crate::output::print_stderr;
use frit_fs::{FileSystem, Fs, Image, OverlayOptions};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval of polling for the amount of changes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A thread that syncs periodically until this is dropped.
#[derive(Debug)]
pub(super) struct PeriodicSync {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PeriodicSync {
    /// Syncs changes at intervals of `every` (zero: never), and at once when a quarter of the limit
    /// on unsynced changes is used: at half of it, writes have to wait for a sync.
    pub(super) fn start(files: &Arc<Fs<Image>>, every: Duration) -> Self {
        if matches!(files.medium(), Image::Mapped(_)) {
            return Self { end: None, thread: None };
        }
        let (end, ended) = channel();
        let files = Arc::clone(files);
        let much = OverlayOptions::default().bound / 4;
        let thread = std::thread::spawn(move || {
            let (mut last, mut failed) = (Instant::now(), false);
            while ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let due = !every.is_zero() && last.elapsed() >= every;
                // After a failure, the next attempt waits, however much has changed.
                let full = files.medium().unsynced() >= much
                    && (!failed || last.elapsed() >= Duration::from_secs(1));
                if !due && !full {
                    continue;
                }
                let synced = files.sync();
                if let (Err(error), false) = (&synced, failed) {
                    let _ =
                        print_stderr(&format!("frit mount: {error}; what is not synced stays in memory\n"));
                }
                failed = synced.is_err();
                last = Instant::now();
            }
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for PeriodicSync {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
