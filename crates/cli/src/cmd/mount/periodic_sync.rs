//! Periodic syncs of an image on a disk or of a volume, which limit the loss at a power failure, and
//! background work of a nameless-write device.

use crate::output::print_stderr;
use frit_fs::{FileSystem, Fs, Image, OverlayOptions};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval of polling for the amount of changes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Number of commands of background work before the next check for other users.
const STEP_COMMANDS: u32 = 16;

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
            let mut accesses = 0;
            while ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                work_while_idle(&files, &mut accesses);
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

/// Lets a nameless-write device collect garbage if no program has used it since the last call.
fn work_while_idle(files: &Fs<Image>, accesses: &mut u64) {
    let Some(placed) = files.placed_contents().filter(|_| !files.is_read_only()) else { return };
    let before = std::mem::replace(accesses, placed.accesses());
    while before == placed.accesses() {
        // A device that fails returns the error to the next program that writes.
        if !placed.step(STEP_COMMANDS).unwrap_or(false) {
            break;
        }
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
