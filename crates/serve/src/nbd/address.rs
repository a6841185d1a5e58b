//! Where to listen.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// Where to listen: `unix:PATH` or `tcp:HOST:PORT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port; port 0 lets the system choose one.
    Tcp(SocketAddr),
}

/// The port that NBD has by convention (IANA).
const PORT: u16 = 10809;

impl Address {
    /// Whether only this machine reaches it.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp(a) => a.ip().is_loopback(),
        }
    }

    /// As clients name it, with an export.
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

/// A byte as a URI may hold it.
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
                // Names may have several addresses; one that all clients here know comes first.
                found
                    .min_by_key(|a| !a.is_ipv4())
                    .map(Address::Tcp)
                    .ok_or_else(|| format!("'{rest}' has no address"))
            }
            _ => Err(format!("'{s}' is no address; {HELP}")),
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
