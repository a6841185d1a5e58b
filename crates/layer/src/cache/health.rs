//! Health of the cache: refused writes, and failures of the disk.

use super::layer::Cache;
use super::layout::RECORDS_AT;
use crate::Token;
use crate::planted::CacheBug;
use frit_core::planted::is;
use frit_core::{Error, MediumKind, Result};
use frit_media::Store;

/// Number of steps between two attempts to reach a disk that failed.
const RETRY_STEPS: u32 = 64;

/// State of health.
#[derive(Clone, Default, Debug)]
pub(super) struct Health {
    /// Reason for which writes are refused.
    pub(super) refusal: Option<String>,
    /// Records that are damaged in all copies. Their blocks are unknown, so any block that is not
    /// cached may be one of them.
    pub(super) missing: Option<MissingRecords>,
    /// Error of a disk that fails. Dirty blocks stay in the cache, and writes go on while slots are
    /// free.
    pub(super) disk: Option<String>,
    /// `true` if the error of the current request is an error of the disk.
    disk_error: bool,
    steps: u32,
    /// Number of failures of the disk.
    pub(super) failures: u64,
    /// Number of recoveries of the disk.
    pub(super) recovered: u64,
}

/// Records that the summary of the last shutdown counted and that are missing.
#[derive(Clone, Debug)]
pub(super) struct MissingRecords {
    /// Description for messages.
    pub(super) what: String,
}

impl Health {
    /// Returns `true` if it is time to try a failed disk again.
    pub(super) fn retry(&mut self) -> bool {
        self.steps += 1;
        self.steps % RETRY_STEPS == 1
    }
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    pub(super) fn writable(&self) -> Result<()> {
        match &self.health.refusal {
            Some(why) => Err(Error::ReadOnly { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Returns an error if a block that is not cached may be one whose record is missing. Its
    /// version on the disk is then outdated.
    ///
    /// # Errors
    /// Returns `Corrupt` with a description of the missing records.
    pub(super) fn check_not_missing(&self, lbn: u32) -> Result<()> {
        let Some(missing) = &self.health.missing else { return Ok(()) };
        let what = format!("block {lbn} of the disk is not cached, or its record is lost: {}", missing.what);
        Err(Error::Corrupt { medium: MediumKind::Pcm, at: RECORDS_AT, what })
    }

    /// Handles the result of an access to the disk. After a failure the blocks in flight stay
    /// dirty.
    pub(super) fn check_disk<V>(&mut self, answer: Result<V>) -> Result<V> {
        match answer {
            Ok(v) => Ok(v),
            Err(Error::WouldBlock) => Err(Error::WouldBlock),
            Err(e) => {
                self.disk_failed(&e);
                Err(disk_failure(&e))
            }
        }
    }

    /// Handles a failed read of the disk: only the request gets the error, and no other state
    /// changes.
    pub(super) fn read_failed(&mut self, e: &Error) -> Error {
        self.health.disk_error = true;
        disk_failure(e)
    }

    /// Handles a failed flush of the disk after writes that bypassed the cache. Their data may be
    /// lost even if a later flush succeeds (an operating system drops pages that it could not
    /// write). So the layer refuses writes from then on.
    #[cold]
    pub(super) fn direct_writes_lost(&mut self, e: &Error) {
        if is(CacheBug::LostDirectIgnored) || !self.config.bypasses() {
            return;
        }
        let why = format!("data written directly to the disk may be lost: {e}");
        self.health.refusal.get_or_insert(why);
    }

    /// Notes that the disk works again.
    pub(super) fn disk_recovered(&mut self) {
        if self.health.disk.take().is_some() {
            self.health.recovered += 1;
        }
    }

    #[cold]
    fn disk_failed(&mut self, e: &Error) {
        self.health.failures += 1;
        self.health.disk = Some(e.to_string());
        self.health.disk_error = true;
        self.cancel_writebacks();
    }

    /// Returns `true` if the last error was an error of the disk, which leaves the cache
    /// consistent. Resets the note.
    pub(super) fn take_disk_error(&mut self) -> bool {
        std::mem::take(&mut self.health.disk_error)
    }

    /// Refuses writes after an unexpected error, because directory and media may disagree. Reads go
    /// on.
    #[cold]
    pub(super) fn poisoned(&mut self, e: Error) -> Error {
        let expected = self.take_disk_error()
            || matches!(
                e,
                Error::NoSpace { .. }
                    | Error::ReadOnly { .. }
                    | Error::OutOfRange { .. }
                    | Error::Corrupt { .. }
                    | Error::WouldBlock
            );
        if !expected && !is(CacheBug::NotPoisoned) && self.health.refusal.is_none() {
            self.health.refusal = Some(format!("an earlier write failed: {e}"));
        }
        e
    }
}

/// Wraps an error of the disk for the user. The cache and its contents are intact.
pub(super) fn disk_failure(e: &Error) -> Error {
    Error::Medium { what: format!("the disk behind the cache fails: {e}") }
}
