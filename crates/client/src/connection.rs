//! A connection to a server: one line of JSON for each request and each answer.

use crate::socket;
use crate::wire::{ANSWER_BYTES_MAX, Refused};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Maximum time to wait for an answer. A busy device answers between two requests.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Error of a request to the server.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The connection failed.
    #[error("the connection to the server failed: {0}")]
    Io(#[from] io::Error),
    /// The answer does not follow the protocol.
    #[error("the server's answer is invalid ({0}); is it another version of frit?")]
    Answer(String),
}

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<UnixStream>,
    server: i32,
}

impl Connection {
    /// Connects to a control socket.
    ///
    /// # Errors
    /// `NotFound` or `ConnectionRefused` if no server listens there.
    pub fn open(socket: &Path) -> io::Result<Connection> {
        let stream = socket::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        let server = rustix::net::sockopt::socket_peercred(&stream)?.pid.as_raw_nonzero().get();
        Ok(Connection { stream: BufReader::new(stream), server })
    }

    /// Returns the process ID of the server, as reported by the kernel.
    #[must_use]
    pub fn server(&self) -> i32 {
        self.server
    }

    /// Sets the longest wait for an answer; `None`: until the server answers or ends.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn limit_wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(limit)
    }

    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    /// The server did not answer, or its answer is not an `Answer`.
    pub fn exchange<Answer: DeserializeOwned>(
        &mut self,
        request: &impl Serialize,
    ) -> Result<Answer, ClientError> {
        let mut request = serde_json::to_vec(request).map_err(io::Error::from)?;
        request.push(b'\n');
        // A server that refuses the connection sends its answer before it reads. So a failed write
        // is reported only if there is no answer.
        let sent = self.stream.get_mut().write_all(&request);
        let mut line = Vec::new();
        (&mut self.stream).take(ANSWER_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            sent?;
            if line.is_empty() {
                let what = "it was closed before the answer; the server has ended";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what).into());
            }
            return Err(ClientError::Answer(format!("it ends after {} bytes", line.len())));
        }
        serde_json::from_slice(&line).map_err(|e| ClientError::Answer(e.to_string()))
    }
}
