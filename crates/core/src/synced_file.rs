//! Syncs of a file, by all that write to it.
//!
//! Linux tells a failure to write dirty pages back once to each open description, and takes the pages for clean: the
//! next `fdatasync` succeeds, and what it should have written is lost. If two threads sync one description, either may
//! get the failure. So everything that writes to a file syncs it through one [`SyncGate`], which keeps the failure for
//! all of them. (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020.)

use crate::planted::{SyncBug, is_planted};
use crate::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lets one sync at a time through, and keeps a failure until it is [forgiven](SyncGate::forgive).
#[derive(Debug, Default)]
pub struct SyncGate {
    state: Mutex<SyncState>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct SyncState {
    running: bool,
    /// Number of syncs that have begun.
    begun: u64,
    /// Number of the last sync that succeeded.
    good: u64,
    /// Number of syncs that failed.
    failures: u64,
    /// The last failure.
    last_failure: String,
    /// `true` until the last failure is forgiven.
    has_failed: bool,
    /// Number of calls that wait.
    #[cfg(test)]
    waiting: usize,
}

impl SyncState {
    fn earlier_failure(&self) -> io::Error {
        io::Error::other(format!(
            "an earlier sync failed ({}); what it should have written may be lost",
            self.last_failure
        ))
    }
}

impl SyncGate {
    /// Runs a sync, or waits for one that began after this call: it covers the same writes.
    ///
    /// # Errors
    /// The sync fails, or one has failed since this call or before and was not forgiven: the writes that this call has
    /// to cover may be among those that were lost.
    pub fn sync(&self, run: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state.lock();
        let (begun, failures) = (state.begun, state.failures);
        loop {
            let failed = state.has_failed || state.failures != failures;
            if failed && !is_planted(SyncBug::FailureToldOnce) {
                return Err(state.earlier_failure());
            }
            if state.good > begun {
                return Ok(());
            }
            if !state.running {
                break;
            }
            #[cfg(test)]
            {
                state.waiting += 1;
            }
            self.ended.wait(&mut state);
        }
        state.running = true;
        state.begun += 1;
        let number = state.begun;
        drop(state);
        let done = run();
        let mut state = self.state.lock();
        state.running = false;
        match &done {
            Ok(()) => state.good = number,
            Err(e) => {
                state.failures += 1;
                state.has_failed = true;
                state.last_failure = e.to_string();
            }
        }
        self.ended.notify_all();
        done
    }

    /// Returns the failure after which syncs fail.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let state = self.state.lock();
        state.has_failed.then(|| state.last_failure.clone())
    }

    /// Lets syncs through again after a failure. The caller will write everything once more that it has written since
    /// the last good sync, and takes no access for successful that was in flight.
    pub fn forgive(&self) {
        self.state.lock().has_failed = false;
    }
}

/// A file with its [`SyncGate`].
#[derive(Debug)]
pub struct SyncedFile {
    file: File,
    path: PathBuf,
    gate: SyncGate,
}

impl SyncedFile {
    /// Creates a handle that all share which write to the file. `path` is used in messages.
    #[must_use]
    pub fn new(file: File, path: PathBuf) -> Arc<SyncedFile> {
        Arc::new(SyncedFile { file, path, gate: SyncGate::default() })
    }

    /// The file. Its syncs belong to [`SyncedFile::sync`].
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes all earlier writes to the file survive a power loss of the machine.
    ///
    /// # Errors
    /// As for [`SyncGate::sync`].
    pub fn sync(&self) -> Result<()> {
        let synced = self.gate.sync(|| self.file.sync_data());
        synced.map_err(|source| Error::Io { what: format!("cannot sync {}", self.path.display()), source })
    }

    /// The gate of its syncs.
    #[must_use]
    pub fn gate(&self) -> &SyncGate {
        &self.gate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    fn failed() -> io::Result<()> {
        Err(io::Error::from_raw_os_error(5))
    }

    #[test]
    fn a_failure_stays_until_it_is_forgiven() {
        let gate = SyncGate::default();
        gate.sync(|| Ok(())).unwrap();
        assert_eq!(gate.failure(), None);
        assert_eq!(gate.sync(failed).unwrap_err().raw_os_error(), Some(5));
        let later = gate.sync(|| panic!("runs after a failure")).unwrap_err().to_string();
        assert!(later.contains("an earlier sync failed (Input/output error"), "{later}");
        assert!(gate.failure().is_some());
        gate.forgive();
        assert_eq!(gate.failure(), None);
        gate.sync(|| Ok(())).unwrap();
    }

    /// One call is in its sync, which fails, and others wait: all fail, also if the failure is forgiven before they
    /// run.
    #[test]
    fn a_failure_concerns_all_that_wait() {
        let gate = SyncGate::default();
        let until = |condition: &dyn Fn() -> bool| {
            while !condition() {
                thread::yield_now();
            }
        };
        let all_wait = || gate.state.lock().waiting == 4;
        thread::scope(|s| {
            let first = s.spawn(|| {
                gate.sync(|| {
                    until(&all_wait);
                    failed()
                })
            });
            until(&|| gate.state.lock().running);
            let others: Vec<_> = (0..4).map(|_| s.spawn(|| gate.sync(|| Ok(())))).collect();
            until(&|| gate.failure().is_some());
            gate.forgive();
            assert!(first.join().unwrap().is_err());
            for other in others {
                assert!(other.join().unwrap().is_err());
            }
        });
    }

    #[test]
    fn a_sync_that_began_later_covers_those_that_wait() {
        let gate = SyncGate::default();
        let (ran, inside) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|s| {
            for _ in 0..8 {
                s.spawn(|| {
                    for _ in 0..50 {
                        gate.sync(|| {
                            assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "one at a time");
                            ran.fetch_add(1, Ordering::Relaxed);
                            thread::yield_now();
                            inside.fetch_sub(1, Ordering::AcqRel);
                            Ok(())
                        })
                        .unwrap();
                    }
                });
            }
        });
        let state = gate.state.lock();
        assert_eq!((state.begun, state.good), (ran.load(Ordering::Relaxed), ran.load(Ordering::Relaxed)));
        assert!(state.begun <= 400);
    }
}
