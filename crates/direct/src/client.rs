//! Requests of programs to a mount: for its image, and to begin instructions.

use crate::messages::{BEGIN, INFO, Info, PATH_MAX, POSSIBLE, SHARE};
use std::ffi::{OsStr, c_int};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

unsafe extern "C" {
    fn ioctl(fd: c_int, request: u64, ...) -> c_int;
}

/// Returns the image of the mount that contains a file or directory, or the reason why its files cannot be
/// accessed directly.
///
/// # Errors
/// The mount does not know the request: it is none of frit, or of an older version.
pub fn image_of(inside: &File) -> io::Result<Result<PathBuf, String>> {
    let mut info = Box::new(Info { status: 0, path_len: 0, device: 0, inode: 0, path: [0; PATH_MAX] });
    // SAFETY: the kernel writes an `Info` for this request, for which all bits are valid.
    if unsafe { ioctl(inside.as_raw_fd(), u64::from(INFO), std::ptr::from_mut(&mut *info)) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let text = &info.path[..(info.path_len as usize).min(PATH_MAX)];
    Ok(match info.status {
        POSSIBLE => Ok(PathBuf::from(OsStr::from_bytes(text))),
        _ => Err(String::from_utf8_lossy(text).into_owned()),
    })
}

/// Opens a command file for instructions of the process that opened it, and with `share` of all others that have
/// the descriptor. Each instruction then has the rights that its writer and this process have in common.
///
/// # Errors
/// The file is not a command file of frit (`ENOTTY`, or another error of its file system); the calling process
/// neither opened it nor has the rights of the one that did (`EPERM`).
pub fn begin_instructions(command_file: impl AsFd, share: bool) -> io::Result<()> {
    let argument: u32 = if share { SHARE } else { 0 };
    let file = command_file.as_fd().as_raw_fd();
    // SAFETY: the kernel reads a `u32` for this request.
    match unsafe { ioctl(file, u64::from(BEGIN), std::ptr::from_ref(&argument)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
