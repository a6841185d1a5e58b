//! The files of an image on a disk: the door through which everything passes that has to outlive the machine.

use crate::error::Result;
use std::ops::Deref;
use std::path::Path;

/// The image, and the file beside it that a sync is written to first (the *log*).
///
/// What was written outlives a power cut of the machine once the file's sync has returned; before that any subset of
/// it may, in sectors of 512 bytes. Positions and lengths are in bytes, those of the image multiples of 4096.
pub trait Disk: Send + Sync {
    /// Size of the image in bytes, a multiple of 4096.
    fn bytes(&self) -> u64;

    /// Returns `true` if the image has no name any more: it ends when it is closed.
    fn is_deleted(&self) -> bool {
        false
    }

    /// Removes the overlay, which is no longer needed.
    fn remove_overlay(&self, overlay: &Path) {
        let _ = std::fs::remove_file(overlay);
    }

    /// Reads the image.
    fn read_image(&self, at: u64, into: &mut [u8]);

    /// Writes the image.
    ///
    /// # Errors
    /// What the operating system says.
    fn write_image(&self, at: u64, data: &[u8]) -> Result<()>;

    /// Makes what was written to the image outlive the machine.
    ///
    /// # Errors
    /// What the operating system says.
    fn sync_image(&self) -> Result<()>;

    /// Reads the log. Returns whether it is there and as long as that.
    ///
    /// # Errors
    /// What the operating system says.
    fn read_log(&self, at: u64, into: &mut [u8]) -> Result<bool>;

    /// Writes the log, which is made when it is missing.
    ///
    /// # Errors
    /// What the operating system says.
    fn write_log(&self, at: u64, data: &[u8]) -> Result<()>;

    /// Makes what was written to the log outlive the machine, but not its name.
    ///
    /// # Errors
    /// What the operating system says.
    fn sync_log(&self) -> Result<()>;

    /// Makes the name of the log outlive the machine.
    ///
    /// # Errors
    /// What the operating system says.
    fn sync_names(&self) -> Result<()>;

    /// Removes the log if it is there.
    ///
    /// # Errors
    /// What the operating system says.
    fn remove_log(&self) -> Result<()>;
}

/// What holds a disk is one.
impl<D: Disk, P: Deref<Target = D> + Send + Sync> Disk for P {
    fn bytes(&self) -> u64 {
        (**self).bytes()
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
