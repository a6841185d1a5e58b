//! Status of open files.

use super::sys::{self, Fd};

/// Parts of `struct stat`.
pub(super) struct FileStatus {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) mode: u32,
    pub(super) size: u64,
}

/// `struct stat` of x86-64 (`bits/struct_stat.h`).
#[repr(C)]
struct Stat {
    device: u64,
    inode: u64,
    links: u64,
    mode: u32,
    owner: [u32; 3],
    special: u64,
    size: u64,
    rest: [u64; 11],
}

/// Returns the status of an open file.
pub(super) fn file_status(fd: Fd) -> Option<FileStatus> {
    const SYS_FSTAT: i64 = 5;
    let mut stat = std::mem::MaybeUninit::<Stat>::zeroed();
    // SAFETY: the kernel fills a `struct stat`, for which all bits are valid.
    let stat = unsafe {
        if sys::raw_call(SYS_FSTAT, fd as usize, stat.as_mut_ptr() as usize, 0) != 0 {
            return None;
        }
        stat.assume_init()
    };
    Some(FileStatus { device: stat.device, inode: stat.inode, mode: stat.mode, size: stat.size })
}
