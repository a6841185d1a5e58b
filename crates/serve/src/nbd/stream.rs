//! A client's socket, of either kind.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
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
