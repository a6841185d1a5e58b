//! HTTP server for metrics with three pages: only GET and HEAD, one request per connection, on a TCP port or a Unix
//! socket.
//!
//! `/metrics` has counters, for everybody who can connect. `/visible` also has the placement of data and the addresses
//! of exports, so it is for the user who runs the server and for root. Each user has slots of its own, so that
//! nobody keeps others out by connections that send nothing.

use super::request::{self, MetricsHost, RefusedRequest};
use super::socket::{MetricsListener, MetricsStream};
use super::{MetricsAddress, prometheus};
use crate::ctl::ControlTarget;
use crate::log::Logger;
use crate::resource_limits::{ConnectionSlot, ConnectionSlots, Peer, SlotLimits, read_before, write_before};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Limits on connections. A further client evicts the oldest one of the same user that has not sent its request.
const CONNECTIONS_MAX: usize = 32;
const CONNECTIONS_OF_USER_MAX: usize = 8;
/// Further connections of the user who runs the server and of root.
const CONNECTIONS_RESERVED: usize = 8;
/// Maximum length of a request header, in bytes.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Maximum time in which a client must send its request, and accept the response.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Content type of OpenMetrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Options of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricsOptions {
    /// Address to listen on.
    pub address: MetricsAddress,
    /// Names of the server, beside its address and `localhost`.
    pub hosts: Vec<MetricsHost>,
    /// Everybody who can connect may read `/visible`, and all users of this machine can connect to a Unix socket.
    pub read_all: bool,
}

impl MetricsOptions {
    /// Returns the options of a server without other names, and with `/visible` for its user and root only.
    #[must_use]
    pub fn at(address: MetricsAddress) -> MetricsOptions {
        MetricsOptions { address, hosts: Vec::new(), read_all: false }
    }
}

/// A running server.
#[derive(Debug)]
pub struct MetricsServer {
    address: MetricsAddress,
    listener: Arc<MetricsListener>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct MetricsState {
    control_target: Arc<dyn ControlTarget>,
    options: MetricsOptions,
    owner: u32,
    slots: Arc<ConnectionSlots<MetricsStream>>,
    /// Held while a snapshot is made for a client other than the owners: they get one after the other, and the
    /// device is free for the owners.
    others: Mutex<()>,
}

impl MetricsServer {
    /// Starts a server.
    ///
    /// # Errors
    /// The address is in use, or not one of this machine.
    pub fn start(
        options: MetricsOptions,
        control_target: &Arc<dyn ControlTarget>,
        log: &Logger,
    ) -> io::Result<MetricsServer> {
        let listener = Arc::new(MetricsListener::bind(&options.address, options.read_all)?);
        let (address, stop) = (listener.address()?, Arc::new(AtomicBool::new(false)));
        if !address.is_local() {
            log.write_line(format_args!(
                "metrics: other machines can read /metrics at {address}; there is no password"
            ));
        }
        let owner = rustix::process::geteuid().as_raw();
        let state = Arc::new(MetricsState {
            control_target: Arc::clone(control_target),
            options,
            owner,
            slots: ConnectionSlots::new(SlotLimits {
                owner,
                most: CONNECTIONS_MAX,
                reserved: CONNECTIONS_RESERVED,
                of_peer: CONNECTIONS_OF_USER_MAX,
                idle_min: None,
            }),
            others: Mutex::new(()),
        });
        let (log, seen, accepting) = (log.clone(), Arc::clone(&stop), Arc::clone(&listener));
        let run = move || accept(&accepting, &state, &seen, &log);
        let thread = Some(std::thread::Builder::new().name("metrics".into()).spawn(run)?);
        Ok(MetricsServer { address, listener, stop, thread })
    }

    /// Returns the address, with the actual port.
    #[must_use]
    pub fn address(&self) -> &MetricsAddress {
        &self.address
    }

    /// Returns the location of the metrics for users: a URL, or the path of the socket.
    #[must_use]
    pub fn location(&self) -> String {
        match &self.address {
            MetricsAddress::Tcp(a) => format!("http://{a}/metrics"),
            MetricsAddress::Unix(_) => format!("metrics at {}", self.address),
        }
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.listener.stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn accept(listener: &MetricsListener, state: &Arc<MetricsState>, stop: &AtomicBool, log: &Logger) {
    let mut error_logged = false;
    loop {
        let accepted = listener.accept();
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let spawned = accepted.and_then(|stream| {
            let (peer, stream) = (stream.peer(), Arc::new(stream));
            // All other connections of this peer are being answered, which takes a few seconds at most.
            let Some((slot, _)) = state.slots.admit(&stream, peer) else { return Ok(()) };
            let state = Arc::clone(state);
            // An error ends only this connection, and is not reported.
            let run = move || drop(state.serve(&stream, &slot, peer));
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

impl MetricsState {
    fn serve(
        &self,
        stream: &MetricsStream,
        slot: &ConnectionSlot<MetricsStream>,
        peer: Peer,
    ) -> io::Result<()> {
        stream.set_write_timeout(CLIENT_TIMEOUT)?;
        let Some(head) = head(stream)? else {
            let status = "431 Request Header Fields Too Large";
            return respond(stream, status, PLAIN, "the request header is too long\n", false);
        };
        slot.busy();
        let refuse = |(status, why): RefusedRequest, is_head: bool| {
            respond(stream, status, PLAIN, &format!("{why}\n"), is_head)
        };
        let request = match request::parse(&head, stream.local()?, &self.options.hosts) {
            Ok(request) => request,
            Err(refused) => return refuse(refused, head.starts_with(b"HEAD ")),
        };
        match self.page(&request.path, peer) {
            Ok((kind, body)) => respond(stream, "200 OK", kind, &body, request.is_head),
            Err(refused) => refuse(refused, request.is_head),
        }
    }

    /// Returns the content type and the text of a page.
    fn page(&self, path: &str, peer: Peer) -> Result<(&'static str, String), RefusedRequest> {
        let failed = |e: &dyn std::fmt::Display| ("500 Internal Server Error", e.to_string());
        let stat = || {
            let _turn = (!self.slots.is_owner(peer)).then(|| self.others.lock());
            self.control_target.stat()
        };
        match path {
            "/metrics" => prometheus::text(stat()).map(|text| (OPENMETRICS, text)).map_err(|e| failed(&e)),
            "/visible" => {
                self.check_visible(peer)?;
                serde_json::to_string_pretty(&stat()).map(|text| (JSON, text + "\n")).map_err(|e| failed(&e))
            }
            "/" => Ok((PLAIN, "/metrics  for Prometheus\n/visible  the same and more as JSON\n".into())),
            _ => Err(("404 Not Found", "there are /metrics and /visible".into())),
        }
    }

    /// Fails if a peer may not read `/visible`.
    fn check_visible(&self, peer: Peer) -> Result<(), RefusedRequest> {
        if self.options.read_all || self.slots.is_owner(peer) {
            return Ok(());
        }
        let who = match peer.user() {
            Some(user) => format!("user {user} may not read /visible"),
            None => "this system does not know the user who asks for /visible".into(),
        };
        let owner = self.owner;
        let why = format!(
            "{who}; only user {owner}, who serves it, and root may, or everybody with --metrics-read-all"
        );
        Err(("403 Forbidden", why))
    }
}

/// Reads the request header up to the empty line. Lines may end with LF alone (RFC 9112, section 2.2). Returns
/// `None` if it is too long.
fn head(stream: &MetricsStream) -> io::Result<Option<Vec<u8>>> {
    let end = Instant::now() + CLIENT_TIMEOUT;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(2).any(|w| w == b"\n\n") && !head.windows(3).any(|w| w == b"\n\r\n") {
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

fn respond(stream: &MetricsStream, status: &str, kind: &str, body: &str, only_head: bool) -> io::Result<()> {
    let len = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    write_before(stream, head.as_bytes(), CLIENT_TIMEOUT)?;
    if !only_head {
        write_before(stream, body.as_bytes(), CLIENT_TIMEOUT)?;
    }
    Ok(())
}
