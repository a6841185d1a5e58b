//! Addresses on which a server listens.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// Address on which a server listens: `unix:PATH` or `tcp:HOST:PORT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A TCP address; with port 0 the system chooses the port.
    Tcp(SocketAddr),
}

/// Default port of NBD (IANA).
const PORT: u16 = 10809;

impl Address {
    /// Returns `true` if only this machine can connect.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp(a) => a.ip().is_loopback(),
        }
    }

    /// Returns the NBD URI of an export at this address.
    pub fn uri(&self, export: &str) -> String {
        let export: String = export.bytes().map(escaped).collect();
        match self {
            Address::Unix(path) => {
                let path: String = path.display().to_string().bytes().map(escaped).collect();
                format!("nbd+unix:///{export}?socket={path}")
            }
            Address::Tcp(a) => format!("nbd://{a}/{export}"),
        }
    }
}

/// Returns a byte as part of a URI, percent-encoded if necessary.
fn escaped(b: u8) -> String {
    match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(b).into(),
        _ => format!("%{b:02X}"),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(a) => write!(f, "tcp:{a}"),
        }
    }
}

impl FromStr for Address {
    type Err = String;
    fn from_str(s: &str) -> Result<Address, String> {
        const HELP: &str = "write unix:PATH or tcp:HOST:PORT";
        match s.split_once(':') {
            Some(("unix", "")) => Err(format!("'{s}' has no path; {HELP}")),
            Some(("unix", path)) => Ok(Address::Unix(path.into())),
            Some(("tcp", rest)) => {
                if let Ok(ip) = rest.parse::<IpAddr>() {
                    return Ok(Address::Tcp(SocketAddr::new(ip, PORT)));
                }
                let with_port = if rest.contains(':') { rest.into() } else { format!("{rest}:{PORT}") };
                let found = with_port.to_socket_addrs().map_err(|e| format!("'{rest}': {e}; {HELP}"))?;
                // A name may have several addresses. IPv4 is preferred, since every client supports
                // it.
                found
                    .min_by_key(|a| !a.is_ipv4())
                    .map(Address::Tcp)
                    .ok_or_else(|| format!("'{rest}' has no address"))
            }
            _ => Err(format!("'{s}' is not an address; {HELP}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        for (text, shown) in [
            ("unix:/tmp/a b.sock", "unix:/tmp/a b.sock"),
            ("tcp:127.0.0.1:1234", "tcp:127.0.0.1:1234"),
            ("tcp:127.0.0.1", "tcp:127.0.0.1:10809"),
            ("tcp:[::1]:9", "tcp:[::1]:9"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), shown);
        }
        for bad in ["", "unix:", "tcp:", "tcp:127.0.0.1:x", "/tmp/x", "udp:1.2.3.4:5"] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }

    #[test]
    fn uris_escape_what_they_must() {
        let a: Address = "unix:/tmp/a b.sock".parse().unwrap();
        assert_eq!(a.uri("x?y"), "nbd+unix:///x%3Fy?socket=/tmp/a%20b.sock");
        let a: Address = "tcp:127.0.0.1:7".parse().unwrap();
        assert_eq!(a.uri(""), "nbd://127.0.0.1:7/");
        assert!(a.is_local() && !"tcp:10.0.0.1:7".parse::<Address>().unwrap().is_local());
    }
}
