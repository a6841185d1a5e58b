//! Interface to the files of an image on a disk, through which all durable writes pass.

use crate::error::Result;
use frit_core::paths;
use std::ops::Deref;
use std::path::Path;

/// The image, and the *log*: the file beside it that each sync writes first.
///
/// A write survives a power loss once the sync of its file has returned; before that, any subset of
/// its sectors of 512 bytes may. Positions and lengths are in bytes; those of the image are
/// multiples of 4096.
pub trait Disk: Send + Sync {
    /// Size of the image in bytes, a multiple of 4096.
    fn bytes(&self) -> u64;

    /// Returns `true` if the image file was deleted: it ends when it is closed.
    fn is_deleted(&self) -> bool {
        false
    }

    /// Returns the name of the log for messages.
    fn log_name(&self) -> String {
        "IMAGE.sync".into()
    }

    /// Removes the overlay, which is no longer needed.
    fn remove_overlay(&self, overlay: &Path) {
        let _ = paths::remove_file(overlay);
    }

    /// Reads the image.
    fn read_image(&self, at: u64, into: &mut [u8]);

    /// Writes the image.
    ///
    /// # Errors
    /// A call of the operating system failed.
    fn write_image(&self, at: u64, data: &[u8]) -> Result<()>;

    /// Makes the writes to the image durable.
    ///
    /// # Errors
    /// A call of the operating system failed.
    fn sync_image(&self) -> Result<()>;

    /// Reads the log. Returns `false` if it does not exist or is too short.
    ///
    /// # Errors
    /// A call of the operating system failed.
    fn read_log(&self, at: u64, into: &mut [u8]) -> Result<bool>;

    /// Writes the log, which is created if it does not exist.
    ///
    /// # Errors
    /// A call of the operating system failed.
    fn write_log(&self, at: u64, data: &[u8]) -> Result<()>;

    /// Makes the writes to the log durable, but not its directory entry.
    ///
    /// # Errors
    /// A call of the operating system failed.
    fn sync_log(&self) -> Result<()>;

    /// Makes the directory entry of the log durable.
    ///
    /// # Errors
    /// A call of the operating system failed.
    fn sync_names(&self) -> Result<()>;

    /// Removes the log, if it exists.
    ///
    /// # Errors
    /// A call of the operating system failed.
    fn remove_log(&self) -> Result<()>;
}

/// Forwards to the disk that a pointer refers to.
impl<D: Disk, P: Deref<Target = D> + Send + Sync> Disk for P {
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    fn log_name(&self) -> String {
        (**self).log_name()
    }

    fn remove_overlay(&self, overlay: &Path) {
        (**self).remove_overlay(overlay);
    }

    fn is_deleted(&self) -> bool {
        (**self).is_deleted()
    }

    fn read_image(&self, at: u64, into: &mut [u8]) {
        (**self).read_image(at, into);
    }

    fn write_image(&self, at: u64, data: &[u8]) -> Result<()> {
        (**self).write_image(at, data)
    }

    fn sync_image(&self) -> Result<()> {
        (**self).sync_image()
    }

    fn read_log(&self, at: u64, into: &mut [u8]) -> Result<bool> {
        (**self).read_log(at, into)
    }

    fn write_log(&self, at: u64, data: &[u8]) -> Result<()> {
        (**self).write_log(at, data)
    }

    fn sync_log(&self) -> Result<()> {
        (**self).sync_log()
    }

    fn sync_names(&self) -> Result<()> {
        (**self).sync_names()
    }

    fn remove_log(&self) -> Result<()> {
        (**self).remove_log()
    }
}
