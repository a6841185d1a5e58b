//! Requests for metrics: the page that one asks for, and the host that it names.
//!
//! A page of the web can make a browser of this machine ask this server, under a name of its own that leads here (DNS
//! rebinding), and read the answer. The request then names that host, so only the names of this server are served.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Maximum number of header fields.
const HEADERS_MAX: usize = 64;

/// Host that a client names: a name or an address, and the port if it has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricsHost {
    /// Name in lower case, or address.
    name: HostName,
    port: Option<u16>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum HostName {
    Ip(IpAddr),
    Name(String),
}

/// A request that is refused: the status and the reason.
pub(super) type RefusedRequest = (&'static str, String);

/// What a client asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PageRequest {
    /// Path without the query.
    pub(super) path: String,
    /// The answer has no body.
    pub(super) is_head: bool,
}

impl FromStr for MetricsHost {
    type Err = String;

    fn from_str(s: &str) -> Result<MetricsHost, String> {
        let bad = || format!("'{}' is not a host; write NAME or NAME:PORT", s.escape_debug());
        let (name, port) = match s.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((ip, port))) => {
                let ip: Ipv6Addr = ip.parse().map_err(|_| bad())?;
                (HostName::Ip(IpAddr::V6(ip).to_canonical()), port)
            }
            Some(None) => return Err(bad()),
            None => {
                let (name, port) = s.split_at(s.find(':').unwrap_or(s.len()));
                let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
                if name.is_empty() || !name.bytes().all(is_name) {
                    return Err(bad());
                }
                (name.parse().map_or_else(|_| HostName::Name(name.to_ascii_lowercase()), HostName::Ip), port)
            }
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            Some("") => None,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                Some(digits.parse().map_err(|_| bad())?)
            }
            _ => return Err(bad()),
        };
        Ok(MetricsHost { name, port })
    }
}

impl fmt::Display for MetricsHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            HostName::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]")?,
            HostName::Ip(ip) => ip.fmt(f)?,
            HostName::Name(name) => f.write_str(name)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl MetricsHost {
    /// Returns `true` if this is a name of the server at the address `local`, or one of `more`.
    fn is_one_of(&self, local: SocketAddr, more: &[MetricsHost]) -> bool {
        let own = local.ip().to_canonical();
        let is_own = match &self.name {
            HostName::Ip(ip) => *ip == own || (ip.is_loopback() && own.is_loopback()),
            HostName::Name(name) => name == "localhost" && own.is_loopback(),
        };
        (is_own && self.port.is_none_or(|port| port == local.port()))
            || more.iter().any(|m| m.name == self.name && (m.port.is_none() || m.port == self.port))
    }
}

/// Reads a request. `local` is the address to which the client has connected; on a Unix socket there is none, and any
/// host is served, because no browser connects there.
///
/// # Errors
/// The request is not valid, or names another host.
pub(super) fn parse(
    head: &[u8],
    local: Option<SocketAddr>,
    hosts: &[MetricsHost],
) -> Result<PageRequest, RefusedRequest> {
    let invalid = |why: &str| ("400 Bad Request", format!("invalid request: {why}"));
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(status) if status.is_complete() => {}
        _ => return Err(invalid("not the header of an HTTP request with at most 64 fields")),
    }
    let is_head = request.method == Some("HEAD");
    if !is_head && request.method != Some("GET") {
        return Err(("405 Method Not Allowed", "only GET and HEAD".into()));
    }
    let target = request.path.unwrap_or("");
    let (authority, path) = split_target(target).ok_or_else(|| invalid("the target is not a path"))?;
    let named: Vec<&[u8]> =
        request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("host")).map(|h| h.value).collect();
    match named.len() {
        // Browsers send one always. HTTP/1.0 does not require it.
        0 if request.version == Some(0) => {}
        1 => {}
        n => return Err(invalid(&format!("{n} Host fields, not one"))),
    }
    // Both must be names of this server, whichever of them a proxy has looked at.
    for host in authority.map(str::as_bytes).into_iter().chain(named) {
        let host = std::str::from_utf8(host).map_err(|_| invalid("the host is not text"))?;
        let host: MetricsHost = host.parse().map_err(|why: String| invalid(&why))?;
        if let Some(local) = local.filter(|local| !host.is_one_of(*local, hosts)) {
            let why = format!(
                "this server is {local}, not {host}; start it with --metrics-host {host} if that is a name of it"
            );
            return Err(("421 Misdirected Request", why));
        }
    }
    Ok(PageRequest { path: path.split('?').next().unwrap_or("").into(), is_head })
}

/// Splits the target of a request into the host, if it has one (`http://HOST/PATH`), and the path.
fn split_target(target: &str) -> Option<(Option<&str>, &str)> {
    if target.starts_with('/') {
        return Some((None, target));
    }
    let scheme = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"))?;
    let rest = &target[scheme.len()..];
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    Some((Some(authority), if path.starts_with('/') { path } else { "/" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(local: &str, request: &str) -> &'static str {
        let hosts = ["box.example", "tunnel:1234"].map(|h| h.parse().unwrap());
        match parse(request.as_bytes(), Some(local.parse().unwrap()), &hosts) {
            Ok(page) => {
                assert_eq!(page.path, "/visible", "{request}");
                "200"
            }
            Err((status, _)) => &status[..3],
        }
    }

    #[test]
    fn only_names_of_the_server_are_served() {
        for (local, host, expected) in [
            ("127.0.0.1:9100", "127.0.0.1:9100", "200"),
            ("127.0.0.1:9100", "127.0.0.1", "200"),
            ("127.0.0.1:9100", "127.0.0.1:", "200"),
            ("127.0.0.1:9100", "LocalHost:9100", "200"),
            ("127.0.0.1:9100", "[::1]:9100", "200"),
            ("[::1]:9100", "[0:0::1]", "200"),
            ("[::ffff:127.0.0.1]:9100", "127.0.0.1:9100", "200"),
            ("10.0.0.1:9100", "10.0.0.1:9100", "200"),
            ("10.0.0.1:9100", "box.example:80", "200"),
            ("10.0.0.1:9100", "tunnel:1234", "200"),
            ("10.0.0.1:9100", "tunnel:1235", "421"),
            ("10.0.0.1:9100", "tunnel", "421"),
            ("10.0.0.1:9100", "localhost:9100", "421"),
            ("10.0.0.1:9100", "127.0.0.1:9100", "421"),
            ("127.0.0.1:9100", "10.0.0.1:9100", "421"),
            ("127.0.0.1:9100", "127.0.0.1:9101", "421"),
            ("127.0.0.1:9100", "evil.example", "421"),
            ("127.0.0.1:9100", "localhost.evil.example:9100", "421"),
            ("127.0.0.1:9100", "localhost.:9100", "421"),
            ("127.0.0.1:9100", "2130706433", "421"),
            ("127.0.0.1:9100", "0x7f.1", "421"),
            ("127.0.0.1:9100", "", "400"),
            ("127.0.0.1:9100", "127.0.0.1:99999", "400"),
            ("127.0.0.1:9100", "127.0.0.1:+80", "400"),
            ("127.0.0.1:9100", "me@127.0.0.1", "400"),
            ("127.0.0.1:9100", "127.0.0.1, evil.example", "400"),
            ("127.0.0.1:9100", "[::1", "400"),
            ("127.0.0.1:9100", "[::1]x", "400"),
            ("127.0.0.1:9100", "::1", "400"),
        ] {
            for version in ["1.0", "1.1"] {
                let request = format!("GET /visible?x HTTP/{version}\r\nA: b\r\nhOST: {host}\r\n\r\n");
                assert_eq!(status(local, &request), expected, "{host} at {local}");
            }
        }
    }

    #[test]
    fn missing_and_double_hosts_and_odd_targets() {
        let own = "Host: localhost\r\n";
        for (line, fields, expected) in [
            ("GET /visible HTTP/1.1", "", "400"),
            ("GET /visible HTTP/1.0", "", "200"),
            ("GET /visible HTTP/1.1", "Host: localhost\r\nHost: localhost\r\n", "400"),
            ("GET /visible HTTP/1.0", "Host: localhost\r\nHost: evil.example\r\n", "400"),
            ("GET http://127.0.0.1:9100/visible HTTP/1.1", own, "200"),
            ("GET HTTP://localhost/visible?http://evil.example HTTP/1.1", own, "200"),
            ("GET http://localhost/visible HTTP/1.1", "", "400"),
            ("GET http://localhost/visible HTTP/1.1", "Host: evil.example\r\n", "421"),
            ("GET http://evil.example/visible HTTP/1.1", own, "421"),
            ("GET http://localhost@evil.example/visible HTTP/1.1", own, "400"),
            ("GET https://localhost/visible HTTP/1.1", own, "400"),
            ("GET visible HTTP/1.1", own, "400"),
            ("GET * HTTP/1.1", own, "400"),
            ("CONNECT localhost:9100 HTTP/1.1", own, "405"),
            ("OPTIONS * HTTP/1.1", own, "405"),
        ] {
            let request = format!("{line}\r\n{fields}\r\n");
            assert_eq!(status("127.0.0.1:9100", &request), expected, "{request}");
        }
        // No browser connects to a Unix socket.
        let page = parse(b"HEAD / HTTP/1.1\r\nHost: any\r\n\r\n", None, &[]).unwrap();
        assert_eq!(page, PageRequest { path: "/".into(), is_head: true });
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHo", None, &[]).unwrap_err().0, "400 Bad Request");
    }
}
