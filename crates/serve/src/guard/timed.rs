//! Deadlines on sockets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The rate below which a client is too slow to finish what it has begun, in bytes a second. Time is
/// added to a deadline at this rate, so that large requests over slow links have the time they need.
pub(crate) const BYTES_PER_SECOND_MIN: u64 = 64 << 10;

/// A socket whose reads end after a time.
pub(crate) trait Timed {
    /// Limits the time of reads.
    ///
    /// # Errors
    /// As the system says.
    fn read_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
}

impl Timed for UnixStream {
    fn read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

impl Timed for TcpStream {
    fn read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

/// Returns `true` if an error says that a socket's time is over.
pub(crate) fn is_timeout(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Reads what a socket has, before a deadline.
///
/// # Errors
/// `TimedOut` when nothing came, or as the system says.
pub(crate) fn read_before<S: Timed>(stream: &S, into: &mut [u8], end: Instant) -> io::Result<usize>
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

/// Writes all, before a deadline that is later for more bytes ([`BYTES_PER_SECOND_MIN`]). The socket's
/// own write timeout is `patience`.
///
/// # Errors
/// `TimedOut` when the other side does not take the bytes, or as the system says.
pub(crate) fn write_before<W: Write>(mut to: W, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    // The clock is read only when one call did not take all, which is rare.
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
        if begun.elapsed() > patience + Duration::from_secs(taken / BYTES_PER_SECOND_MIN) {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}
