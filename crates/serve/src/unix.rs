//! Unix sockets with restricted permissions.

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Length of the queue of connections to be accepted, the same as in `std`.
const BACKLOG: i32 = 128;

/// Listens at a path that does not exist yet. The socket has its mode from the first moment, so
/// that no other user can connect in between: Linux creates the name with the mode of the socket,
/// reduced by the umask; a mode reduced in this way is corrected afterwards.
///
/// # Errors
/// The error of the host.
pub(crate) fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    let meta = std::fs::symlink_metadata(path)?;
    if std::os::unix::fs::MetadataExt::mode(&meta) & 0o777 != mode {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    }
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_has_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [("own", 0o600), ("all", 0o666)] {
            let path = dir.path().join(name);
            let listener = listen(&path, mode).unwrap();
            assert_eq!(std::fs::symlink_metadata(&path).unwrap().mode() & 0o777, mode);
            UnixStream::connect(&path).unwrap();
            listener.accept().unwrap();
            assert_eq!(listen(&path, mode).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        }
    }
}
