//! Deadlines on sockets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Minimum transfer rate of a client, in bytes per second. Deadlines are extended at this rate, so
/// that large requests over slow links have the time they need.
pub(crate) const BYTES_PER_SECOND_MIN: u64 = 64 << 10;

/// A socket with a timeout for reads.
pub(crate) trait ReadTimeout {
    /// Sets the timeout of reads.
    ///
    /// # Errors
    /// The error of the system.
    fn read_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
}

impl ReadTimeout for UnixStream {
    fn read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

impl ReadTimeout for TcpStream {
    fn read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

/// Returns `true` if an error is a timeout of a socket.
pub(crate) fn is_timeout(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Reads available bytes from a socket, before a deadline.
///
/// # Errors
/// `TimedOut` if nothing arrives before the deadline, or the error of the system.
pub(crate) fn read_before<S: ReadTimeout>(stream: &S, into: &mut [u8], end: Instant) -> io::Result<usize>
where
    for<'a> &'a S: Read,
{
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.read_timeout(Some(left))?;
        match (&mut &*stream).read(into) {
            Err(e) if e.kind() == ErrorKind::Interrupted || is_timeout(&e) => {}
            other => return other,
        }
    }
}

/// Writes all bytes before a deadline, which is later for more bytes ([`BYTES_PER_SECOND_MIN`]).
/// `write_timeout` is the write timeout of the socket.
///
/// # Errors
/// `TimedOut` if the peer does not take the bytes, or the error of the system.
pub(crate) fn write_before<W: Write>(mut to: W, mut bytes: &[u8], write_timeout: Duration) -> io::Result<()> {
    // The clock is read only if one call did not write everything, which is rare.
    let mut begun: Option<Instant> = None;
    let mut taken = 0u64;
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) if n == bytes.len() => return Ok(()),
            Ok(n) => {
                bytes = &bytes[n..];
                taken += n as u64;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if is_timeout(&e) => return Err(ErrorKind::TimedOut.into()),
            Err(e) => return Err(e),
        }
        let begun = *begun.get_or_insert_with(Instant::now);
        if begun.elapsed() > write_timeout + Duration::from_secs(taken / BYTES_PER_SECOND_MIN) {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}
