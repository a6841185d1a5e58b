//! Files that the kernel reads and writes itself (passthrough), and clones of the connection.

use rustix::io;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Setter, ioctl, opcode};
use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Weak;

/// `FUSE_DEV_IOC_MAGIC`.
const MAGIC: u8 = 229;
const CLONE: Opcode = opcode::read::<u32>(MAGIC, 0);
const BACKING_OPEN: Opcode = opcode::write::<BackingMap>(MAGIC, 1);
const BACKING_CLOSE: Opcode = opcode::write::<u32>(MAGIC, 2);

/// `fuse_backing_map`.
#[repr(C)]
struct BackingMap {
    fd: i32,
    flags: u32,
    padding: u64,
}

/// `FUSE_DEV_IOC_BACKING_OPEN`, which returns the number of the file.
struct BackingOpen(BackingMap);

// SAFETY: the kernel reads a `fuse_backing_map`, and returns a number.
#[expect(unsafe_code)]
unsafe impl Ioctl for BackingOpen {
    type Output = u32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        BACKING_OPEN
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(number: IoctlOutput, _: *mut c_void) -> io::Result<u32> {
        Ok(number as u32)
    }
}

/// A file that is registered with the kernel as the contents of an inode, until it is dropped.
#[derive(Debug)]
pub struct BackingId {
    device: Weak<OwnedFd>,
    number: u32,
}

impl BackingId {
    /// Registers a file.
    #[expect(unsafe_code)]
    pub(crate) fn open(device: &std::sync::Arc<OwnedFd>, file: BorrowedFd<'_>) -> std::io::Result<BackingId> {
        let map = BackingMap { fd: file.as_raw_fd(), flags: 0, padding: 0 };
        // SAFETY: the operation is one of the FUSE device, with its structure.
        let number = unsafe { ioctl(device, BackingOpen(map)) }?;
        Ok(BackingId { device: std::sync::Arc::downgrade(device), number })
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for BackingId {
    #[expect(unsafe_code)]
    fn drop(&mut self) {
        if let Some(device) = self.device.upgrade() {
            // SAFETY: the operation is one of the FUSE device, with its argument. The kernel closes
            // what is left when the connection ends, so an error has no consequence.
            let _ = unsafe { ioctl(&device, Setter::<BACKING_CLOSE, u32>::new(self.number)) };
        }
    }
}

/// Opens the device again for the same connection, so that threads receive requests without waiting
/// for one another.
#[expect(unsafe_code)]
pub(crate) fn clone_connection(device: impl AsFd) -> std::io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    let clone = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    // SAFETY: the operation is one of the FUSE device, which reads a descriptor.
    unsafe { ioctl(&clone, Setter::<CLONE, u32>::new(device.as_fd().as_raw_fd() as u32)) }?;
    Ok(clone)
}
