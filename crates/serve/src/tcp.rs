//! Listening TCP sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};

/// Listens at an address.
///
/// # Errors
/// The address is in use, or not one of this machine.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).map_err(|e| match e.kind() {
        io::ErrorKind::AddrInUse => {
            let what = "another program listens there: end it, or choose another port (0: a free one)";
            io::Error::new(e.kind(), what)
        }
        _ => e,
    })
}
