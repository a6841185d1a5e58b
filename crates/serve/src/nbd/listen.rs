//! Listening sockets, and their names in the file system.

use super::Address;
use super::stream::ClientStream;
use std::fs;
use std::io;
use std::net::{Shutdown, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A listening socket.
#[derive(Debug)]
pub(super) enum Listener {
    Unix {
        socket: UnixListener,
        path: PathBuf,
        /// Inode of the name. Only a name that this server created is removed.
        inode: u64,
    },
    Tcp(TcpListener),
}

impl Listener {
    pub(super) fn bind(address: &Address) -> io::Result<Listener> {
        match address {
            Address::Tcp(a) => Ok(Listener::Tcp(TcpListener::bind(a)?)),
            Address::Unix(path) => {
                remove_stale(path)?;
                // Only the user who runs the server and root may connect, as for the volume's
                // files.
                let socket = crate::unix::listen(path, 0o600)?;
                let inode = fs::symlink_metadata(path)?.ino();
                Ok(Listener::Unix { socket, path: path.clone(), inode })
            }
        }
    }

    /// Returns the address, with the actual port.
    pub(super) fn address(&self) -> io::Result<Address> {
        match self {
            Listener::Unix { path, .. } => Ok(Address::Unix(path.clone())),
            Listener::Tcp(l) => Ok(Address::Tcp(l.local_addr()?)),
        }
    }

    /// Waits for a client. `send_timeout` is the timeout for sending replies to it.
    pub(super) fn accept(&self, send_timeout: Duration) -> io::Result<ClientStream> {
        match self {
            Listener::Unix { socket, .. } => ClientStream::unix(socket.accept()?.0, send_timeout),
            Listener::Tcp(l) => ClientStream::tcp(l.accept()?.0, send_timeout),
        }
    }

    /// Ends the current and all later calls of `accept`, and removes the name from the file system.
    pub(super) fn stop(&self) {
        let fd = match self {
            Listener::Unix { socket, path, inode } => {
                if fs::symlink_metadata(path).is_ok_and(|m| m.ino() == *inode) {
                    // An error means that the name was removed by another process, which is
                    // harmless.
                    let _ = fs::remove_file(path);
                }
                socket.as_fd()
            }
            Listener::Tcp(l) => l.as_fd(),
        };
        // On Linux this makes `accept` on a listening socket return.
        let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Both);
    }
}

/// Removes the name of a socket on which no server listens any more.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(meta) = fs::symlink_metadata(path) else { return Ok(()) };
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, why.to_owned()));
    if !meta.file_type().is_socket() {
        return refused("the path exists and is not a socket");
    }
    match UnixStream::connect(path) {
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Ok(s) => {
            let _ = s.shutdown(Shutdown::Both);
            refused("a server listens there")
        }
        Err(e) => Err(e),
    }
}
