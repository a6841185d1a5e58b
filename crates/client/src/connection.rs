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
        let received = (&mut self.stream).take(ANSWER_BYTES_MAX as u64).read_until(b'\n', &mut line);
        if line.last() != Some(&b'\n') {
            received.and(sent).map_err(|e| if is_end_of_server(&e) { server_has_ended() } else { e })?;
            if line.is_empty() {
                return Err(server_has_ended().into());
            }
            return Err(ClientError::Answer(format!("it ends after {} bytes", line.len())));
        }
        serde_json::from_slice(&line).map_err(|e| ClientError::Answer(e.to_string()))
    }
}

/// Returns whether the kernel reports by this error that the other end was closed. A reset means
/// that it had not read everything, as a killed server that has not taken the request.
fn is_end_of_server(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

fn server_has_ended() -> io::Error {
    let what = "it was closed before the answer; the server has ended";
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// Returns what a client gets from a server that does `answer` with the connection and closes it.
    fn exchange_with(answer: impl FnOnce(UnixStream) + Send + 'static) -> Result<u64, ClientError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || answer(listener.accept().unwrap().0));
        let answered = Connection::open(&path).unwrap().exchange(&"a request");
        server.join().unwrap();
        answered
    }

    /// Waits until the request has arrived, and leaves it in the socket.
    fn wait_for_request(stream: &UnixStream) {
        rustix::net::recv(stream, &mut [0; 1], rustix::net::RecvFlags::PEEK).unwrap();
    }

    fn read_request(stream: &UnixStream) {
        BufReader::new(stream).read_until(b'\n', &mut Vec::new()).unwrap();
    }

    #[test]
    fn a_server_that_ends_before_its_answer_is_named() {
        let unread = exchange_with(|stream| wait_for_request(&stream)).unwrap_err();
        let read = exchange_with(|stream| read_request(&stream)).unwrap_err();
        let closed = exchange_with(drop).unwrap_err();
        for error in [unread, read, closed] {
            assert!(error.to_string().ends_with("the server has ended"), "{error}");
        }
    }

    #[test]
    fn an_answer_is_read_from_a_server_that_refuses_before_it_reads() {
        let answered = exchange_with(|mut stream| {
            wait_for_request(&stream);
            stream.write_all(b"7\n").unwrap();
        });
        assert_eq!(answered.unwrap(), 7);
    }

    #[test]
    fn a_part_of_an_answer_is_an_error() {
        let error = exchange_with(|mut stream| {
            read_request(&stream);
            stream.write_all(b"12").unwrap();
        })
        .unwrap_err();
        assert!(error.to_string().contains("it ends after 2 bytes"), "{error}");
    }
}
