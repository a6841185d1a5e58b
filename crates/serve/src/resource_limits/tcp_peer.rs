//! The user at the other end of a TCP connection, if it is a user of this machine.
//!
//! TCP has no `SO_PEERCRED`, but the kernel knows the user of each socket. It is asked for the socket whose addresses
//! are those of the connection, in the other direction: by `sock_diag(7)`, which answers for one socket, or where a
//! kernel lacks that, by `/proc/net/tcp`. A peer of another machine, or of another network namespace, has no socket
//! here.

use super::Peer;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// `SOCK_DIAG_BY_FAMILY` (`linux/sock_diag.h`).
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` (`linux/netlink.h`).
const REQUEST: u16 = 1;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// State of an established connection (`TCP_ESTABLISHED`). A socket in another state may have been closed by its
/// process, and the kernel then reports user 0 for it.
const ESTABLISHED: u8 = 1;
/// Time in which the kernel answers; it does so at once.
const ANSWER_MAX: Duration = Duration::from_millis(200);
/// Length of the header of a message, in bytes (`struct nlmsghdr`).
const HEAD_BYTES: usize = 16;
/// Position of the user in `struct inet_diag_msg`, in bytes.
const USER_AT: usize = 64;

/// Returns the peer of a connection: its user if it is one of this machine, else its machine.
pub(crate) fn tcp_peer(stream: &TcpStream) -> Peer {
    let (Ok(peer), Ok(own)) = (stream.peer_addr(), stream.local_addr()) else { return Peer::Unknown };
    let (peer, own) = (canonical(peer), canonical(own));
    user_of(peer, own).map_or(Peer::Machine(peer.ip()), Peer::User)
}

/// Returns an address of IPv4 as such, also if a socket of IPv6 has it.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns the user of the socket of this machine that is connected from `from` to `to`.
fn user_of(from: SocketAddr, to: SocketAddr) -> Option<u32> {
    match ask_kernel(from, to) {
        Ok(user) => user,
        Err(_) => ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .find_map(|table| user_in(&fs::read_to_string(table).ok()?, from, to)),
    }
}

/// Asks for one socket by `sock_diag(7)`. Returns `None` if there is none.
///
/// # Errors
/// The kernel does not answer such questions.
fn ask_kernel(from: SocketAddr, to: SocketAddr) -> std::io::Result<Option<u32>> {
    let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, Some(netlink::SOCK_DIAG))?;
    rustix::net::sockopt::set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, Some(ANSWER_MAX))?;
    rustix::net::send(&socket, &question(from, to), SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (len, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let answer = &answer[..len.min(answer.len())];
    let word16 = |at: usize| answer.get(at..at + 2).map(|b| u16::from_ne_bytes([b[0], b[1]]));
    let word32 = |at: usize| answer.get(at..at + 4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    match word16(4) {
        Some(BY_FAMILY) => {
            let is_established = answer.get(HEAD_BYTES + 1) == Some(&ESTABLISHED);
            Ok(word32(HEAD_BYTES + USER_AT).filter(|_| is_established))
        }
        // NLMSG_ERROR with a negative errno.
        _ => match word32(HEAD_BYTES).map(u32::cast_signed) {
            Some(error) if error == -rustix::io::Errno::NOENT.raw_os_error() => Ok(None),
            _ => Err(std::io::ErrorKind::Unsupported.into()),
        },
    }
}

/// Returns the message that asks for a socket (`struct nlmsghdr`, `struct inet_diag_req_v2`).
fn question(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let family = if from.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut body = vec![family.as_raw() as u8, TCP, 0, 0];
    // All states.
    body.extend(u32::MAX.to_ne_bytes());
    body.extend(from.port().to_be_bytes());
    body.extend(to.port().to_be_bytes());
    for address in [from, to] {
        let mut bytes = [0; 16];
        match address.ip() {
            IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes = ip.octets(),
        }
        body.extend(bytes);
    }
    // Any interface, and no cookie.
    body.extend(0u32.to_ne_bytes());
    body.extend([0xff; 8]);
    let mut message = Vec::with_capacity(HEAD_BYTES + body.len());
    message.extend(((HEAD_BYTES + body.len()) as u32).to_ne_bytes());
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// Finds a connection in the text of `/proc/net/tcp` or `/proc/net/tcp6`, and returns its user.
fn user_in(table: &str, from: SocketAddr, to: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, state, _, _, _, user, ..] = fields[..] else { return None };
        let is_it = address(local)? == from
            && address(remote)? == to
            && u8::from_str_radix(state, 16) == Ok(ESTABLISHED);
        user.parse().ok().filter(|_| is_it)
    })
}

/// Reads an address of these tables: words of 32 bits in the byte order of the machine, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    if !ip.is_ascii() || !ip.len().is_multiple_of(8) {
        return None;
    }
    let words = ip.as_bytes().chunks(8).map(|w| u32::from_str_radix(std::str::from_utf8(w).ok()?, 16).ok());
    let bytes: Vec<u8> = words.collect::<Option<Vec<u32>>>()?.iter().flat_map(|w| w.to_ne_bytes()).collect();
    let ip = match (<[u8; 4]>::try_from(&bytes[..]), <[u8; 16]>::try_from(&bytes[..])) {
        (Ok(v4), _) => IpAddr::from(v4),
        (_, Ok(v6)) => IpAddr::from(v6).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn both_ways_find_the_user_of_a_connection_until_it_is_closed() {
        let me = rustix::process::geteuid().as_raw();
        for (listening, host) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
            let Ok(listener) = TcpListener::bind(listening) else { continue };
            let port = listener.local_addr().unwrap().port();
            let Ok(client) = TcpStream::connect((host, port)) else { continue };
            let (accepted, _) = listener.accept().unwrap();
            assert_eq!(tcp_peer(&accepted), Peer::User(me), "{listening}");
            let from = canonical(client.local_addr().unwrap());
            let to = canonical(client.peer_addr().unwrap());
            let tables =
                ["/proc/net/tcp", "/proc/net/tcp6"].map(|t| fs::read_to_string(t).unwrap_or_default());
            assert_eq!(tables.iter().find_map(|t| user_in(t, from, to)), Some(me), "{listening}");
            drop(client);
            // The kernel says user 0 for a socket that its process has closed.
            assert!(matches!(tcp_peer(&accepted), Peer::Machine(_) | Peer::Unknown), "{listening}");
        }
    }

    #[test]
    fn tables_of_the_kernel_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
            0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000 0 1 1 0 1\n\
            1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001 0 1 1 0 1\n\
            2: 0100007F:C351 0100007F:1F90 06 00000000:00000000 00:00000000 00000000     0 0 0 3 0\n\
            3: 0000000000000000FFFF00000100007F:C352 0000000000000000FFFF00000100007F:1F90 01 0:0 0:0 0 7 0\n\
            broken\n";
        let server = "127.0.0.1:8080".parse().unwrap();
        let user = |port: u16| user_in(table, SocketAddr::new([127, 0, 0, 1].into(), port), server);
        if cfg!(target_endian = "little") {
            assert_eq!([0xc350, 0xc351, 0xc352, 0xc353].map(user), [Some(1001), None, Some(7), None]);
        }
    }
}
