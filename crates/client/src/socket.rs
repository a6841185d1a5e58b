//! Paths of Unix sockets of any length.

use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Maximum length of a path in a socket address, in bytes: `sun_path` has 108 with the final zero.
const PATH_BYTES_MAX: usize = 107;

/// A path that fits into a socket address, and the open directory on which it depends.
#[derive(Debug)]
pub struct ShortPath {
    /// The path. It is valid while this value exists.
    pub path: PathBuf,
    _dir: Option<OwnedFd>,
}

/// Returns a path that fits into a socket address. A path that is too long is shortened by
/// `/proc/self/fd` and an open directory.
///
/// # Errors
/// The directory of a long path cannot be opened.
pub fn short_path(path: &Path) -> io::Result<ShortPath> {
    if path.as_os_str().as_bytes().len() <= PATH_BYTES_MAX {
        return Ok(ShortPath { path: path.into(), _dir: None });
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not the path of a socket"));
    };
    let dir = rustix::fs::open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let path = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name);
    Ok(ShortPath { path, _dir: Some(dir) })
}

/// Connects to a socket.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(short_path(path)?.path)
}
