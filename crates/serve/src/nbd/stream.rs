//! Client sockets of both kinds: Unix and TCP.

use crate::resource_limits::{Disconnect, Peer, tcp_peer, write_before};
use rustix::io::Errno;
use rustix::net::{RecvFlags, sockopt};
use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Time without traffic after which the peer of a TCP connection is probed.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// Interval between keepalive probes.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);
/// Number of unanswered probes after which the connection is considered dead.
const KEEPALIVE_COUNT: u32 = 4;

#[derive(Debug)]
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// The socket of a client.
#[derive(Debug)]
pub(super) struct ClientStream {
    socket: Socket,
    peer: Peer,
    /// Maximum time in which the client must accept some bytes of its replies.
    send_timeout: Duration,
}

impl ClientStream {
    /// Wraps the socket of a client of this machine. `send_timeout` is the timeout for sending replies.
    pub(super) fn unix(socket: UnixStream, send_timeout: Duration) -> io::Result<ClientStream> {
        socket.set_write_timeout(Some(send_timeout))?;
        let peer = sockopt::socket_peercred(&socket)
            .map_or(Peer::Unknown, |c| Peer::Process(c.uid.as_raw(), c.pid.as_raw_nonzero().get()));
        Ok(ClientStream { socket: Socket::Unix(socket), peer, send_timeout })
    }

    /// Wraps the socket of a TCP client, with keepalive probes that detect a vanished machine.
    pub(super) fn tcp(socket: TcpStream, send_timeout: Duration) -> io::Result<ClientStream> {
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(send_timeout))?;
        sockopt::set_socket_keepalive(&socket, true)?;
        sockopt::set_tcp_keepidle(&socket, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_EVERY)?;
        sockopt::set_tcp_keepcnt(&socket, KEEPALIVE_COUNT)?;
        let peer = tcp_peer(&socket);
        Ok(ClientStream { socket: Socket::Tcp(socket), peer, send_timeout })
    }

    /// Returns the peer of the connection.
    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    /// Reads at least one byte from the socket. Returns 0 if the client has disconnected.
    pub(super) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = match &self.socket {
                Socket::Unix(s) => (&mut &*s).read(into),
                Socket::Tcp(s) => (&mut &*s).read(into),
            };
            match result {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Reads from the socket without waiting. Returns `None` if no bytes are available.
    pub(super) fn try_read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let fd = match &self.socket {
            Socket::Unix(s) => s.as_fd(),
            Socket::Tcp(s) => s.as_fd(),
        };
        match rustix::net::recv(fd, into, RecvFlags::DONTWAIT) {
            Ok((n, _)) => Ok(Some(n)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// `TimedOut` if the client does not accept its replies, or the error of the system.
    pub(super) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match &self.socket {
            Socket::Unix(s) => write_before(s, bytes, self.send_timeout),
            Socket::Tcp(s) => write_before(s, bytes, self.send_timeout),
        }
    }

    pub(super) fn shutdown(&self, how: Shutdown) {
        // This fails if the client has already disconnected, which is harmless.
        let _ = match &self.socket {
            Socket::Unix(s) => s.shutdown(how),
            Socket::Tcp(s) => s.shutdown(how),
        };
    }

    pub(super) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.socket {
            Socket::Unix(s) => s.set_read_timeout(timeout),
            Socket::Tcp(s) => s.set_read_timeout(timeout),
        }
    }
}

impl Disconnect for ClientStream {
    fn disconnect(&self) {
        self.shutdown(Shutdown::Both);
    }
}
