//! Addresses of the metrics server.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// Address of a metrics server: `PORT` of 127.0.0.1, `ADDRESS:PORT`, or `unix:PATH`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetricsAddress {
    /// A TCP address; with port 0 the system chooses the port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl MetricsAddress {
    /// Returns `true` if only this machine can connect.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            MetricsAddress::Tcp(a) => a.ip().to_canonical().is_loopback(),
            MetricsAddress::Unix(_) => true,
        }
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetricsAddress::Tcp(a) => a.fmt(f),
            MetricsAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(s: &str) -> Result<MetricsAddress, String> {
        const HELP: &str = "write PORT, ADDRESS:PORT, [IPV6]:PORT or unix:PATH";
        match s.strip_prefix("unix:") {
            Some("") => return Err(format!("'{s}' has no path; {HELP}")),
            Some(path) => return Ok(MetricsAddress::Unix(path.into())),
            None => {}
        }
        if !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()) {
            let port = s.parse().map_err(|_| format!("'{s}' is not a port: they are 0 to 65535"))?;
            return Ok(MetricsAddress::Tcp((Ipv4Addr::LOCALHOST, port).into()));
        }
        let address = s.strip_prefix("tcp:").unwrap_or(s);
        if address.parse::<IpAddr>().is_ok() || !address.contains(':') {
            return Err(format!("'{s}' has no port; {HELP}"));
        }
        if address.starts_with(':') {
            return Err(format!("'{s}' has no address; 0.0.0.0{address} is all of this machine; {HELP}"));
        }
        let mut found =
            address.to_socket_addrs().map_err(|e| format!("'{s}': {e}; {HELP}"))?.collect::<Vec<_>>();
        // A name may have several addresses. IPv4 is preferred, since every client supports it.
        found.sort_by_key(|a| !a.is_ipv4());
        found.first().copied().map(MetricsAddress::Tcp).ok_or_else(|| format!("'{s}' has no address"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        for (text, shown) in [
            ("9100", "127.0.0.1:9100"),
            ("0", "127.0.0.1:0"),
            ("0.0.0.0:9100", "0.0.0.0:9100"),
            ("tcp:127.0.0.2:1", "127.0.0.2:1"),
            ("[::1]:9100", "[::1]:9100"),
            ("unix:/run/a b", "unix:/run/a b"),
        ] {
            let address: MetricsAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(address.is_local(), !text.contains("0.0.0.0"), "{text}");
        }
        for (bad, why) in [
            ("", "no port"),
            ("65536", "0 to 65535"),
            ("127.0.0.1", "no port"),
            ("::1", "no port"),
            ("localhost", "no port"),
            (":9100", "0.0.0.0:9100 is all"),
            ("127.0.0.1:x", "write PORT, ADDRESS:PORT"),
            ("127.0.0.1:70000", "write PORT, ADDRESS:PORT"),
            ("unix:", "no path"),
        ] {
            let refused = bad.parse::<MetricsAddress>().unwrap_err();
            assert!(refused.contains(why), "{bad}: {refused}");
        }
    }
}
