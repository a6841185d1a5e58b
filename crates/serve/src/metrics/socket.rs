//! Sockets of the metrics server: TCP and Unix.

use super::MetricsAddress;
use crate::ctl;
use crate::resource_limits::{Disconnect, Peer, ReadTimeout, tcp_peer};
use crate::unix::SocketName;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

/// A listening socket.
#[derive(Debug)]
pub(super) enum MetricsListener {
    Tcp(TcpListener),
    Unix { socket: UnixListener, path: PathBuf, name: SocketName },
}

/// The socket of a client.
#[derive(Debug)]
pub(super) enum MetricsStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl MetricsListener {
    /// Listens at an address. All users can connect to a port; to a path only the owner of the server and root, unless
    /// `everybody` is set.
    pub(super) fn bind(address: &MetricsAddress, everybody: bool) -> io::Result<MetricsListener> {
        match address {
            MetricsAddress::Tcp(a) => Ok(MetricsListener::Tcp(crate::tcp::listen(*a)?)),
            MetricsAddress::Unix(path) => {
                let (socket, name) = ctl::listen(path, everybody)?;
                Ok(MetricsListener::Unix { socket, path: path.clone(), name })
            }
        }
    }

    /// Returns the address, with the actual port.
    pub(super) fn address(&self) -> io::Result<MetricsAddress> {
        match self {
            MetricsListener::Tcp(l) => Ok(MetricsAddress::Tcp(l.local_addr()?)),
            MetricsListener::Unix { path, .. } => Ok(MetricsAddress::Unix(path.clone())),
        }
    }

    pub(super) fn accept(&self) -> io::Result<MetricsStream> {
        match self {
            MetricsListener::Tcp(l) => l.accept().map(|(s, _)| MetricsStream::Tcp(s)),
            MetricsListener::Unix { socket, .. } => socket.accept().map(|(s, _)| MetricsStream::Unix(s)),
        }
    }

    /// Ends the current and all later calls of `accept`, and removes the name from the file system.
    pub(super) fn stop(&self) {
        let fd = match self {
            MetricsListener::Tcp(l) => l.as_fd(),
            MetricsListener::Unix { socket, name, .. } => {
                name.remove();
                socket.as_fd()
            }
        };
        // On Linux this makes `accept` on a listening socket return.
        let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Both);
    }
}

impl MetricsStream {
    /// Returns the peer of the connection.
    pub(super) fn peer(&self) -> Peer {
        match self {
            MetricsStream::Tcp(s) => tcp_peer(s),
            MetricsStream::Unix(s) => {
                ctl::PeerCredentials::of(s).map_or(Peer::Unknown, |c| Peer::User(c.uid))
            }
        }
    }

    /// Returns the address of TCP to which the client has connected.
    pub(super) fn local(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            MetricsStream::Tcp(s) => s.local_addr().map(Some),
            MetricsStream::Unix(_) => Ok(None),
        }
    }

    pub(super) fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            MetricsStream::Tcp(s) => s.set_write_timeout(Some(timeout)),
            MetricsStream::Unix(s) => s.set_write_timeout(Some(timeout)),
        }
    }
}

impl ReadTimeout for MetricsStream {
    fn read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            MetricsStream::Tcp(s) => s.set_read_timeout(timeout),
            MetricsStream::Unix(s) => s.set_read_timeout(timeout),
        }
    }
}

impl Disconnect for MetricsStream {
    fn disconnect(&self) {
        match self {
            MetricsStream::Tcp(s) => s.disconnect(),
            MetricsStream::Unix(s) => s.disconnect(),
        }
    }
}

impl Read for &MetricsStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            MetricsStream::Tcp(s) => (&*s).read(into),
            MetricsStream::Unix(s) => (&*s).read(into),
        }
    }
}

impl Write for &MetricsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            MetricsStream::Tcp(s) => (&*s).write(bytes),
            MetricsStream::Unix(s) => (&*s).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
