//! Client of the control socket.

use super::wire::{Answer, ControlOperation, ControlRequest, ControlResult, Success, VERSION};
pub use frit_client::ClientError;
use frit_client::Connection;
use std::io;
use std::path::Path;

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
}

impl Client {
    /// Connects to a control socket.
    ///
    /// # Errors
    /// `NotFound` or `ConnectionRefused` if no server listens there.
    pub fn connect(path: &Path) -> io::Result<Client> {
        Connection::open(path).map(|connection| Client { connection })
    }

    /// Returns the process ID of the server, as reported by the kernel.
    #[must_use]
    pub fn server(&self) -> i32 {
        self.connection.server()
    }

    /// Waits for answers until the server sends them or ends. An instruction of the processing engine
    /// takes its time.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn wait_without_limit(&mut self) -> io::Result<()> {
        self.connection.limit_wait(None)
    }

    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    /// The server refused the request, or did not answer.
    pub fn request(&mut self, what: ControlOperation) -> Result<Success, ClientError> {
        match self.connection.exchange::<Answer>(&ControlRequest { v: VERSION, what })?.result {
            ControlResult::Ok(done) => Ok(done),
            ControlResult::Error(refused) => Err(refused.into()),
        }
    }
}
