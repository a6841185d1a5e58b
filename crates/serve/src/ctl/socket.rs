//! Unix sockets at paths of any length.

use crate::unix::SocketName;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Listens at a path. A stale socket, left by a killed server, is replaced; one in use is not.
pub(crate) fn listen(path: &Path, everybody: bool) -> io::Result<(UnixListener, SocketName)> {
    // Connecting requires write permission. The server then authorizes each request by the user of
    // the client.
    crate::unix::listen(path, if everybody { 0o666 } else { 0o600 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_client::short_path;
    use std::os::unix::net::UnixStream;

    /// Connects to a socket.
    fn connect(path: &Path) -> io::Result<UnixStream> {
        UnixStream::connect(short_path(path)?.path)
    }

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
