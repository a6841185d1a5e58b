//! The way out to a client that several threads answer.

use super::stream::Stream;
use parking_lot::Mutex;
use std::io;
use std::net::Shutdown;
use std::sync::Arc;

/// A client's socket, to which whole replies go one after the other.
#[derive(Debug)]
pub(super) struct Outlet {
    stream: Arc<Stream>,
    /// Whether the client still takes replies; held while one is sent.
    open: Mutex<bool>,
}

impl Outlet {
    pub(super) fn new(stream: &Arc<Stream>) -> Outlet {
        Outlet { stream: Arc::clone(stream), open: Mutex::new(true) }
    }

    /// Sends whole replies.
    ///
    /// # Errors
    /// A client that is gone; its session ends then.
    pub(super) fn send(&self, replies: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock();
        if !*open {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let sent = self.stream.write_all(replies);
        if sent.is_err() {
            // Half a reply may be out: nothing may follow it.
            *open = false;
            self.hang_up();
        }
        sent
    }

    /// Ends the session: whoever reads from the socket or writes to it hears of it at once.
    pub(super) fn hang_up(&self) {
        self.stream.shutdown(Shutdown::Both);
    }
}
