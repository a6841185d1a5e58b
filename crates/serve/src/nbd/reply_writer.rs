//! Writer for the replies of several threads to one client.

use super::stream::ClientStream;
use parking_lot::Mutex;
use std::io;
use std::net::Shutdown;
use std::sync::Arc;

/// A client's socket, to which whole replies are written one after the other.
#[derive(Debug)]
pub(super) struct ReplyWriter {
    stream: Arc<ClientStream>,
    /// `true` while replies can be sent. The lock is held while one is written.
    open: Mutex<bool>,
}

impl ReplyWriter {
    pub(super) fn new(stream: &Arc<ClientStream>) -> ReplyWriter {
        ReplyWriter { stream: Arc::clone(stream), open: Mutex::new(true) }
    }

    /// Sends whole replies.
    ///
    /// # Errors
    /// The client has disconnected. Its session ends.
    pub(super) fn send(&self, replies: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock();
        if !*open {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let sent = self.stream.write_all(replies);
        if sent.is_err() {
            // A part of a reply may have been sent, and nothing may follow it.
            *open = false;
            self.disconnect();
        }
        sent
    }

    /// Closes the connection. Threads that read from the socket or write to it notice at once.
    pub(super) fn disconnect(&self) {
        self.stream.shutdown(Shutdown::Both);
    }
}
