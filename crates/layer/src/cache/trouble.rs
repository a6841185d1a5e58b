//! What the layer refuses, and a disk that fails.

use super::layer::Cache;
use super::layout::RECORDS_AT;
use crate::Token;
use frit_core::planted::{Bug, is};
use frit_core::{Error, MediumKind, Result};
use frit_media::Store;

/// Steps between two attempts to reach a disk that failed.
const RETRY_STEPS: u32 = 64;

/// What is wrong.
#[derive(Clone, Default, Debug)]
pub(super) struct Trouble {
    /// Why writes are refused.
    pub(super) refusal: Option<String>,
    /// Records that are damaged in all copies, of blocks that nothing names: what is not cached may be one of them.
    pub(super) missing: Option<Missing>,
    /// What the disk said when it failed: dirty blocks stay, and writes go on while there is room.
    pub(super) disk: Option<String>,
    /// The error of the request under way is the disk's.
    of_disk: bool,
    steps: u32,
    /// Times that it failed.
    pub(super) failures: u64,
    /// Times that it came back.
    pub(super) recovered: u64,
}

/// Records that the last halt counted and that are not there.
#[derive(Clone, Debug)]
pub(super) struct Missing {
    /// Description of them, for messages.
    pub(super) what: String,
}

impl Trouble {
    /// Whether a disk that failed is to be tried again now.
    pub(super) fn retry(&mut self) -> bool {
        self.steps += 1;
        self.steps % RETRY_STEPS == 1
    }
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    pub(super) fn writable(&self) -> Result<()> {
        match &self.trouble.refusal {
            Some(why) => Err(Error::ReadOnly { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// An error when a block that is not cached may be one whose record is missing: the disk has an older version.
    ///
    /// # Errors
    /// `Corrupt` with what is known of the missing records.
    pub(super) fn on_disk(&self, lbn: u32) -> Result<()> {
        let Some(missing) = &self.trouble.missing else { return Ok(()) };
        let what = format!("block {lbn} of the disk is not cached, or its record is lost: {}", missing.what);
        Err(Error::Corrupt { medium: MediumKind::Pcm, at: RECORDS_AT, what })
    }

    /// What the disk answered. When it failed, what was on its way stays dirty.
    pub(super) fn of_disk<V>(&mut self, answer: Result<V>) -> Result<V> {
        match answer {
            Ok(v) => Ok(v),
            Err(Error::Later) => Err(Error::Later),
            Err(e) => {
                self.disk_failed(&e);
                Err(not_reached(&e))
            }
        }
    }

    /// The disk failed to read: whoever asked hears of it, and nothing else is changed by it.
    pub(super) fn read_failed(&mut self, e: &Error) -> Error {
        self.trouble.of_disk = true;
        not_reached(e)
    }

    /// The disk failed to flush what it had taken past the cache: that may be gone, whatever a later flush says
    /// (an operating system forgets pages that it could not write). Writes are refused, so that nobody goes on
    /// as if it were there.
    #[cold]
    pub(super) fn direct_lost(&mut self, e: &Error) {
        if is(Bug::LostDirectIgnored) || !self.config.passes() {
            return;
        }
        let why = format!("what was written past the cache may be lost: {e}");
        self.trouble.refusal.get_or_insert(why);
    }

    /// The disk works again.
    pub(super) fn came_back(&mut self) {
        if self.trouble.disk.take().is_some() {
            self.trouble.recovered += 1;
        }
    }

    #[cold]
    fn disk_failed(&mut self, e: &Error) {
        self.trouble.failures += 1;
        self.trouble.disk = Some(e.to_string());
        self.trouble.of_disk = true;
        self.call_back();
    }

    /// Whether the last error was the disk's: the cache is as it was.
    pub(super) fn was_disk(&mut self) -> bool {
        std::mem::take(&mut self.trouble.of_disk)
    }

    /// After an error that the layer has no answer to, directory and media may disagree: it refuses writes
    /// from then on, and reads go on.
    #[cold]
    pub(super) fn poisoned(&mut self, e: Error) -> Error {
        let expected = self.was_disk()
            || matches!(
                e,
                Error::NoSpace { .. }
                    | Error::ReadOnly { .. }
                    | Error::OutOfRange { .. }
                    | Error::Corrupt { .. }
                    | Error::Later
            );
        if !expected && !is(Bug::NotPoisoned) && self.trouble.refusal.is_none() {
            self.trouble.refusal = Some(format!("an earlier write failed: {e}"));
        }
        e
    }
}

/// An error of the disk as its user meets it: the cache and what it holds are well.
pub(super) fn not_reached(e: &Error) -> Error {
    Error::Medium { what: format!("the disk behind the cache fails: {e}") }
}
