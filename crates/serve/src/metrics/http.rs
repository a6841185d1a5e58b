//! HTTP server for metrics with three pages: only GET and HEAD, one request per connection, on a
//! port of the loopback address.

use super::prometheus;
use crate::ctl::ControlTarget;
use crate::log::Logger;
use crate::resource_limits::{ConnectionSlot, ConnectionSlots, Peer, read_before, write_before};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of connections. A further client evicts the oldest one that has not sent its
/// request.
const CONNECTIONS_MAX: usize = 32;
/// Maximum length of a request header, in bytes.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Maximum number of header fields.
const HEADERS_MAX: usize = 64;
/// Maximum time in which a client must send its request, and accept the response.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Content type of OpenMetrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const PLAIN: &str = "text/plain; charset=utf-8";

/// A running server.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Starts a server on a port of 127.0.0.1; with port 0 the system chooses a free port.
    ///
    /// # Errors
    /// The port is in use.
    pub fn start(
        port: u16,
        control_target: &Arc<dyn ControlTarget>,
        log: &Logger,
    ) -> io::Result<MetricsServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let (address, stop) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let (control_target, log, seen) = (Arc::clone(control_target), log.clone(), Arc::clone(&stop));
        let run = move || accept(&listener, &control_target, &seen, &log);
        let thread = Some(std::thread::Builder::new().name("metrics".into()).spawn(run)?);
        Ok(MetricsServer { address, stop, thread })
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // `accept` has no timeout, so a connection to the own address wakes its thread.
        if TcpStream::connect_timeout(&self.address, CLIENT_TIMEOUT).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, control_target: &Arc<dyn ControlTarget>, stop: &AtomicBool, log: &Logger) {
    let slots = ConnectionSlots::new(CONNECTIONS_MAX, None);
    let mut error_logged = false;
    loop {
        let accepted = listener.accept();
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let spawned = accepted.and_then(|(stream, peer)| {
            let stream = Arc::new(stream);
            // All other connections are being answered, which takes a few seconds at most.
            let Some((slot, _)) = slots.admit(&stream, Peer::Machine(peer.ip())) else { return Ok(()) };
            let control_target = Arc::clone(control_target);
            // An error ends only this connection, and is not reported.
            let run = move || drop(serve(&stream, &slot, &*control_target));
            std::thread::Builder::new().name("metrics-client".into()).spawn(run).map(drop)
        });
        if let Err(e) = spawned {
            if !std::mem::replace(&mut error_logged, true) {
                log.write_line(format_args!("metrics: cannot serve a client: {e}"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn serve(
    stream: &TcpStream,
    slot: &ConnectionSlot<TcpStream>,
    control_target: &dyn ControlTarget,
) -> io::Result<()> {
    stream.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let Some(head) = head(stream)? else {
        let status = "431 Request Header Fields Too Large";
        return respond(stream, status, PLAIN, "the request header is too long\n", false);
    };
    slot.busy();
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    if request.parse(&head).is_err() {
        return respond(stream, "400 Bad Request", PLAIN, "invalid request\n", false);
    }
    let only_head = request.method == Some("HEAD");
    if !only_head && request.method != Some("GET") {
        return respond(stream, "405 Method Not Allowed", PLAIN, "only GET and HEAD\n", false);
    }
    let failed = |e: &dyn std::fmt::Display| ("500 Internal Server Error", PLAIN, format!("{e}\n"));
    let path = request.path.unwrap_or("").split('?').next().unwrap_or("");
    let (status, kind, body) = match path {
        "/metrics" => match prometheus::text(control_target.stat()) {
            Ok(text) => ("200 OK", OPENMETRICS, text),
            Err(e) => failed(&e),
        },
        "/visible" => match serde_json::to_string_pretty(&control_target.stat()) {
            Ok(text) => ("200 OK", JSON, text + "\n"),
            Err(e) => failed(&e),
        },
        "/" => ("200 OK", PLAIN, "/metrics  for Prometheus\n/visible  the same and more as JSON\n".into()),
        _ => ("404 Not Found", PLAIN, "there are /metrics and /visible\n".into()),
    };
    respond(stream, status, kind, &body, only_head)
}

/// Reads the request header up to the empty line. Returns `None` if it is too long.
fn head(stream: &TcpStream) -> io::Result<Option<Vec<u8>>> {
    let end = Instant::now() + CLIENT_TIMEOUT;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        match read_before(stream, &mut part, end)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => head.extend_from_slice(&part[..n]),
        }
    }
    Ok(Some(head))
}

fn respond(mut stream: &TcpStream, status: &str, kind: &str, body: &str, only_head: bool) -> io::Result<()> {
    let len = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
    );
    write_before(stream, head.as_bytes(), CLIENT_TIMEOUT)?;
    if !only_head {
        write_before(stream, body.as_bytes(), CLIENT_TIMEOUT)?;
    }
    stream.flush()
}
