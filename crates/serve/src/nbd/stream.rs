//! A client's socket, of either kind.

use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A client's socket.
#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Reads what the socket holds, at least a byte; 0 when the client has hung up.
    pub(super) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = match self {
                Stream::Unix(s) => (&*s).read(into),
                Stream::Tcp(s) => (&*s).read(into),
            };
            match result {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Reads what the socket holds without waiting; `None` when it holds nothing.
    pub(super) fn try_read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let fd = match self {
            Stream::Unix(s) => s.as_fd(),
            Stream::Tcp(s) => s.as_fd(),
        };
        match rustix::net::recv(fd, into, RecvFlags::DONTWAIT) {
            Ok((n, _)) => Ok(Some(n)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Writes all; waits for as long as the client does not read.
    pub(super) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Unix(s) => (&*s).write_all(bytes),
            Stream::Tcp(s) => (&*s).write_all(bytes),
        }
    }

    pub(super) fn shutdown(&self, how: Shutdown) {
        // It fails when the client has hung up: just as well.
        let _ = match self {
            Stream::Unix(s) => s.shutdown(how),
            Stream::Tcp(s) => s.shutdown(how),
        };
    }

    pub(super) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(s) => s.set_read_timeout(timeout),
            Stream::Tcp(s) => s.set_read_timeout(timeout),
        }
    }
}
