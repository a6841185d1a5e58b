//! The only door to the medium: bytes that are read and written in place, and a fence.

mod image;
mod lines;
mod mapped;
mod memory;
mod overlaid;

pub use image::Image;
pub use mapped::Mapped;
pub use overlaid::{Disk, ImageFile, LockFile, Overlaid, Overlay};

use crate::error::Result;

/// Byte-addressable durable memory, shared by threads.
///
/// Positions and lengths are in bytes. What was written outlives a power cut once a later [`Medium::fence`] has
/// returned; before that any subset of its aligned 8-byte words may have. Those who call see to it that no byte
/// is read or written by one thread while another writes it.
pub trait Medium: Send + Sync {
    /// Size in bytes, a multiple of 4096.
    fn bytes(&self) -> u64;

    /// Reads.
    fn read(&self, at: u64, into: &mut [u8]);

    /// Writes metadata: `at` and the length are multiples of 8.
    fn write(&self, at: u64, data: &[u8]);

    /// Writes the contents of files: any position and length.
    fn write_data(&self, at: u64, data: &[u8]);

    /// Writes zeros: any position and length.
    fn zero(&self, at: u64, len: u64);

    /// What this thread wrote before, and what others had written when it took a lock from them, is durable before
    /// anything that it writes later: a transaction makes the one before it durable, whosever that was.
    fn fence(&self);

    /// What was written before, by any thread, outlives the machine, where a fence is not enough for that.
    ///
    /// # Errors
    /// What the operating system says.
    fn sync(&self) -> Result<()>;
}

/// What holds a medium is one.
impl<M: Medium, P: std::ops::Deref<Target = M> + Send + Sync> Medium for P {
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    #[inline]
    fn read(&self, at: u64, into: &mut [u8]) {
        (**self).read(at, into);
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
    fn fence(&self) {
        (**self).fence();
    }

    fn sync(&self) -> Result<()> {
        (**self).sync()
    }
}
