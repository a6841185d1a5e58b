//! What can be served: the narrow door between clients and whatever holds the bytes.

use frit_core::{Buffer, Deferred, Error, Hints, Intent, MediumKind, ParamInfo, Result, Visible};
use std::fs::File;
use std::time::Instant;

/// When the reply to a request may go out. The request itself has taken effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Done {
    /// Not before this moment: a modelled device is still at work. `None`: at once.
    pub not_before: Option<Instant>,
}

impl Done {
    /// The reply may go out at once.
    pub const NOW: Done = Done { not_before: None };

    /// The later of both.
    pub fn and(self, other: Done) -> Done {
        Done { not_before: self.not_before.max(other.not_before) }
    }
}

/// Bytes that clients read and write. Addresses and lengths are bytes, multiples of 512, and inside
/// [`Backend::bytes`]; the device in front sees to that.
///
/// Each call has taken effect when it returns. What was never written, or was discarded, reads as
/// zeros.
pub trait Backend: Send {
    /// Size, in bytes: a multiple of 512.
    fn bytes(&self) -> u64;

    /// The size at which writes need no read-modify-write, in bytes.
    fn page_bytes(&self) -> u32;

    /// Why writes are refused, when they are.
    fn read_only(&self) -> Option<String>;

    /// Whether replies may have to wait ([`Done::not_before`]).
    fn paced(&self) -> bool {
        false
    }

    /// Fills `into` from `at` on.
    ///
    /// # Errors
    /// Bytes that a medium cannot give back.
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<Done>;

    /// Writes `data` at `at`; `data` is not empty.
    ///
    /// # Errors
    /// No space, a medium that fails; what was acknowledged before is not lost.
    fn write(&mut self, at: u64, data: &[u8], hints: Hints) -> Result<Done>;

    /// Makes a range read as zeros; it stays allocated when asked for.
    ///
    /// # Errors
    /// As for [`Backend::write`].
    fn write_zeroes(&mut self, at: u64, len: u64, keep_allocated: bool) -> Result<Done>;

    /// Forgets a range: it reads as zeros.
    ///
    /// # Errors
    /// As for [`Backend::write`].
    fn discard(&mut self, at: u64, len: u64) -> Result<Done>;

    /// Makes all that was written durable.
    ///
    /// # Errors
    /// A medium that fails: nothing is known of what was written since the last flush.
    fn flush(&mut self) -> Result<Done>;

    /// Where a range lies, in order: lengths in bytes, and the medium (`None`: nowhere, zeros).
    ///
    /// # Errors
    /// A map that cannot be read.
    fn extents(&self, at: u64, len: u64, each: &mut dyn FnMut(u64, Option<MediumKind>)) -> Result<()>;

    /// Background work of about `budget` media commands; whether there is more.
    ///
    /// # Errors
    /// A medium that fails in a way that cannot be mended.
    fn step(&mut self, budget: u32) -> Result<bool>;

    /// Leaves accesses to slow media to the device from now on, or no longer ([`frit_core::deferred`]); whether it
    /// does.
    fn defer(&mut self, _on: bool) -> bool {
        false
    }

    /// Whether a request would have to wait for a slow medium now: a hint, by which clients' requests are shared out
    /// among threads.
    fn slow(&self, _what: Intent, _at: u64, _len: u64) -> bool {
        false
    }

    /// What the last call left to be carried out before its request is done.
    fn deferred(&mut self) -> Option<Deferred> {
        None
    }

    /// Background work to be carried out.
    ///
    /// # Errors
    /// A medium that fails.
    fn job(&mut self) -> Result<Option<Deferred>> {
        Ok(None)
    }

    /// Accesses were carried out, or failed.
    ///
    /// # Errors
    /// What the request of the accesses ends with.
    fn settle(&mut self, _of: &Deferred, outcome: Result<()>, _buffer: &Buffer<'_>) -> Result<()> {
        outcome
    }

    /// What can be seen of it.
    fn visible(&self) -> Visible;

    /// Its parameters.
    fn params(&mut self) -> Vec<ParamInfo>;

    /// Changes parameters: all of them or none; the change outlives a restart.
    ///
    /// # Errors
    /// An unknown key, or a value that cannot be.
    fn set_params(&mut self, settings: &[(&str, &str)]) -> Result<()>;

    /// The files under it, each opened anew. When much was written since the last flush, they are synced
    /// without the lock before [`Backend::flush`], which then has little left to do. A failure is seen
    /// by both: Linux tells it to each descriptor.
    ///
    /// # Errors
    /// A file that is gone.
    fn files(&self) -> Result<Vec<File>> {
        Ok(Vec::new())
    }

    /// Stops it in order; all that was written is durable.
    ///
    /// # Errors
    /// A medium that fails.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A short name of where an extent lies, as the context `frit:medium` and tables number it.
///
/// 0 nowhere, 1 NAND, 2 PCM, 3 DRAM, 4 disk.
#[must_use]
pub fn medium_number(place: Option<MediumKind>) -> u32 {
    match place {
        None => 0,
        Some(MediumKind::Nand) => 1,
        Some(MediumKind::Pcm) => 2,
        Some(MediumKind::Dram) => 3,
        Some(MediumKind::Disk) => 4,
    }
}

/// Whether an error leaves it unclear what the media hold: then no further write may build on it.
pub(crate) fn is_unexpected(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => !is_full(source),
        Error::Rule { .. } | Error::ProgramFailed { .. } | Error::EraseFailed { .. } => true,
        _ => false,
    }
}

/// Whether the host has no room: a state that ends when somebody makes room.
pub(crate) fn is_full(source: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(source.kind(), StorageFull | QuotaExceeded)
}
