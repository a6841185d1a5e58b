//! Listening sockets, and their names in the file system.

use super::Address;
use super::stream::ClientStream;
use crate::unix::SocketName;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;

/// A listening socket.
#[derive(Debug)]
pub(super) enum Listener {
    Unix { socket: UnixListener, path: PathBuf, name: SocketName },
    Tcp(TcpListener),
}

impl Listener {
    pub(super) fn bind(address: &Address) -> io::Result<Listener> {
        match address {
            Address::Tcp(a) => Ok(Listener::Tcp(crate::tcp::listen(*a)?)),
            Address::Unix(path) => {
                // Only the user who runs the server and root may connect, as for the volume's
                // files.
                let (socket, name) = crate::unix::listen(path, 0o600)?;
                Ok(Listener::Unix { socket, path: path.clone(), name })
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
            Listener::Unix { socket, name, .. } => {
                name.remove();
                socket.as_fd()
            }
            Listener::Tcp(l) => l.as_fd(),
        };
        // On Linux this makes `accept` on a listening socket return.
        let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Both);
    }
}
