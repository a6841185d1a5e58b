//! Syncs of an image on a disk that no program asks for, so that a power cut of the machine loses little.

use crate::output::complain;
use frit_fs::{Files, Fs, Image, Overlay};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it is looked how much has changed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A thread that syncs from time to time, until this value is gone.
#[derive(Debug)]
pub(super) struct Syncing {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncing {
    /// Syncs whatever has changed `every` so often (zero: never), and at once when a quarter of the bound is used: a
    /// write that finds half of it used has to wait for a sync.
    pub(super) fn start(files: &Arc<Fs<Image>>, every: Duration) -> Self {
        if matches!(files.medium(), Image::Mapped(_)) {
            return Self { end: None, thread: None };
        }
        let (end, ended) = channel();
        let files = Arc::clone(files);
        let much = Overlay::default().bound / 4;
        let thread = std::thread::spawn(move || {
            let (mut last, mut failed) = (Instant::now(), false);
            while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                let due = !every.is_zero() && last.elapsed() >= every;
                // After a failure not at once again, however much there is.
                let full = files.medium().unsynced() >= much
                    && (!failed || last.elapsed() >= Duration::from_secs(1));
                if !due && !full {
                    continue;
                }
                let synced = files.sync();
                if let (Err(error), false) = (&synced, failed) {
                    let _ = complain(&format!("frit mount: {error}; what is not synced stays in memory\n"));
                }
                failed = synced.is_err();
                last = Instant::now();
            }
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
