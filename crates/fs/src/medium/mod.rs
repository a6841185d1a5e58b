//! Interface to the medium: bytes that are read and written in place, and a fence.

mod cache_lines;
mod image;
mod mapped;
mod memory;
mod overlaid;

pub use image::Image;
pub use mapped::Mapped;
pub use overlaid::{Disk, ImageFile, LockFile, Overlaid, OverlayNote, OverlayOptions};

use crate::error::Result;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Byte-addressable durable memory, shared by threads.
///
/// Positions and lengths are in bytes. A write is durable once a later [`Medium::fence`] has
/// returned; before that, any subset of its aligned 8-byte words may be durable. The callers ensure
/// that no thread reads or writes a byte while another thread writes it.
pub trait Medium: Send + Sync {
    /// Size in bytes, a multiple of 4096.
    fn bytes(&self) -> u64;

    /// Reads bytes.
    fn read(&self, at: u64, into: &mut [u8]);

    /// Passes the bytes themselves to `each`, without a copy. No thread writes them meanwhile. Returns
    /// `false`, and does nothing, if they are not in memory of this process.
    fn scan(&self, _at: u64, _len: usize, _each: &mut dyn FnMut(&[u8])) -> bool {
        false
    }

    /// Passes the bytes themselves to `each`, to change them in place; they are written as by
    /// [`Medium::write_data`]. No other thread accesses them meanwhile. Returns `false`, and does nothing,
    /// if they are not in memory of this process.
    fn update(&self, _at: u64, _len: usize, _each: &mut dyn FnMut(&mut [u8])) -> bool {
        false
    }

    /// Returns the file that other processes can map to access the same memory, if there is one.
    fn file(&self) -> Option<PathBuf> {
        None
    }

    /// Writes metadata; `at` and the length are multiples of 8.
    fn write(&self, at: u64, data: &[u8]);

    /// Writes file contents at any position, with any length.
    fn write_data(&self, at: u64, data: &[u8]);

    /// Writes zeros at any position, with any length.
    fn zero(&self, at: u64, len: u64);

    /// Includes bytes that other processes have written to the memory of [`Medium::file`] in the next fence.
    fn write_back(&self, _at: u64, _len: u64) {}

    /// Orders writes: all earlier writes of this thread, and those of other threads that happened
    /// before it took a lock from them, become durable before any of its later writes. A
    /// transaction therefore makes the previous one durable, whichever thread wrote it.
    fn fence(&self);

    /// Makes all earlier writes of all threads survive a power loss, if a fence does not ensure
    /// that.
    ///
    /// # Errors
    /// A call of the operating system failed.
    fn sync(&self) -> Result<()>;
}

/// A medium of any kind, shared. The file system is compiled once for all that are used so.
pub type AnyMedium = Arc<dyn Medium>;

impl fmt::Debug for dyn Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Medium").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// Forwards to the medium that a pointer refers to.
impl<M: Medium + ?Sized, P: std::ops::Deref<Target = M> + Send + Sync> Medium for P {
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    #[inline]
    fn read(&self, at: u64, into: &mut [u8]) {
        (**self).read(at, into);
    }

    #[inline]
    fn scan(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> bool {
        (**self).scan(at, len, each)
    }

    #[inline]
    fn update(&self, at: u64, len: usize, each: &mut dyn FnMut(&mut [u8])) -> bool {
        (**self).update(at, len, each)
    }

    fn file(&self) -> Option<PathBuf> {
        (**self).file()
    }

    #[inline]
    fn write(&self, at: u64, data: &[u8]) {
        (**self).write(at, data);
    }

    #[inline]
    fn write_data(&self, at: u64, data: &[u8]) {
        (**self).write_data(at, data);
    }

    #[inline]
    fn zero(&self, at: u64, len: u64) {
        (**self).zero(at, len);
    }

    #[inline]
    fn write_back(&self, at: u64, len: u64) {
        (**self).write_back(at, len);
    }

    #[inline]
    fn fence(&self) {
        (**self).fence();
    }

    fn sync(&self) -> Result<()> {
        (**self).sync()
    }
}
