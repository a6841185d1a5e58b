//! Unix sockets at paths of any length.

use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Maximum length of a path in a socket address, in bytes: `sun_path` has 108 with the final zero.
const PATH_BYTES_MAX: usize = 107;

/// A path that fits into a socket address, and the open directory on which it depends.
struct ShortPath {
    path: PathBuf,
    _dir: Option<OwnedFd>,
}

/// Returns a path that fits into a socket address. A path that is too long is shortened by
/// `/proc/self/fd` and an open directory.
fn short(path: &Path) -> io::Result<ShortPath> {
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
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(short(path)?.path)
}

/// Listens at a path. A stale socket, left by a killed server, is replaced; one in use is not.
pub(super) fn listen(path: &Path, everybody: bool) -> io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    if let Ok(meta) = std::fs::symlink_metadata(path) {
        if !meta.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it exists and is not a socket"));
        }
        if connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens there"));
        }
        std::fs::remove_file(path)?;
    }
    // Connecting requires write permission. The server then authorizes each request by the user of
    // the client.
    let mode = if everybody { 0o666 } else { 0o600 };
    crate::unix::listen(&short(path)?.path, mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_be_longer_than_an_address() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("d".repeat(120)).join("e".repeat(120));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("ctl.sock");
        let first = listen(&path, false).unwrap();
        connect(&path).unwrap();
        assert_eq!(listen(&path, false).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(first);
        listen(&path, true).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        assert_eq!(listen(&path, true).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}
