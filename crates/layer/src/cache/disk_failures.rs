//! Effects of a failure of the disk on requests and on the layer. Refused writes and missing records
//! are in `crate::health`.

use super::layer::Cache;
use crate::planted::CacheBug;
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, Error, Result};

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Handles the result of an access to the disk. After a failure the blocks in flight stay
    /// dirty.
    pub(super) fn check_disk<V>(&mut self, answer: Result<V>) -> Result<V> {
        match answer {
            Ok(v) => Ok(v),
            Err(Error::WouldBlock) => Err(Error::WouldBlock),
            Err(e) => {
                self.disk_failed(&e);
                // A layer below that refuses writes does not work again while the volume is open.
                self.health.writable()?;
                Err(disk_failure(&e))
            }
        }
    }

    /// Handles a failed read of the disk: only the request gets the error, and no other state
    /// changes.
    pub(super) fn read_failed(&mut self, e: &Error) -> Error {
        self.disk_health.of_request = true;
        disk_failure(e)
    }

    /// Handles a failed flush of the disk after writes that bypassed the cache. Their data may be
    /// lost even if a later flush succeeds (an operating system drops pages that it could not
    /// write). So the layer refuses writes from then on.
    #[cold]
    pub(super) fn direct_writes_lost(&mut self, e: &Error) {
        if is_planted(CacheBug::LostDirectIgnored) || !self.config.bypasses() {
            return;
        }
        let why = format!("data written directly to the disk may be lost: {e}");
        self.health.refuse(why);
    }

    /// Notes that the disk works again.
    pub(super) fn disk_recovered(&mut self) {
        if self.disk_health.failure.take().is_some() {
            self.disk_health.recovered += 1;
        }
    }

    #[cold]
    fn disk_failed(&mut self, e: &Error) {
        self.disk_health.failures += 1;
        self.disk_health.failure = Some(e.to_string());
        self.disk_health.of_request = true;
        if self.disk.failed_sync() {
            self.sync_failed(e);
        }
        self.cancel_writebacks();
        // A layer in the role of the disk may accept no write until it is opened again.
        if let Some(why) = self.disk.refuses() {
            self.health.refuse(why);
        }
    }

    /// Handles a failed sync of a file below: all that was written to the disk since the last good one may be lost, by
    /// this thread or others. Cached blocks are written again. The disk can be flushed from then on.
    fn sync_failed(&mut self, e: &Error) {
        if self.unflushed.is_some() {
            self.direct_writes_lost(e);
        }
        self.deferred_io.fail_all(&e.to_string());
        self.disk.forgive_failed_sync();
    }

    /// Returns `true` if the last error was an error of the disk, which leaves the cache
    /// consistent. Resets the note.
    pub(super) fn take_disk_error(&mut self) -> bool {
        std::mem::take(&mut self.disk_health.of_request)
    }

    /// Refuses writes after an unexpected error. An error of the disk, and a conflict with accesses
    /// in flight, leave the cache consistent.
    #[cold]
    pub(super) fn refuse_after(&mut self, e: Error) -> Error {
        let intact = self.take_disk_error() || matches!(e, Error::WouldBlock);
        self.health.refuse_after(e, intact, CacheBug::NotPoisoned)
    }
}

/// Wraps an error of the disk for the user. The cache and its contents are intact.
pub(super) fn disk_failure(e: &Error) -> Error {
    Error::Medium { what: format!("the disk behind the cache fails: {e}") }
}
