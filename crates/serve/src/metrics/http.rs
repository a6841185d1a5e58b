//! A server of three pages, for what scrapes metrics: GET only, one request a connection, on a loopback
//! port.

use super::prometheus;
use crate::ctl::Panel;
use crate::log::Log;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections at a time; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 4;
/// The longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Headers in it, at most.
const HEADERS_MAX: usize = 64;
/// A request has to be here, and its answer taken, within this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// The content type of OpenMetrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const PLAIN: &str = "text/plain; charset=utf-8";

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Listens on a port of 127.0.0.1; 0 takes any that is free.
    ///
    /// # Errors
    /// A port that is in use.
    pub fn start(port: u16, panel: &Arc<dyn Panel>, log: &Log) -> io::Result<Server> {
        let listener = Arc::new(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?);
        let mut server = Server {
            address: listener.local_addr()?,
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        };
        let failures = Arc::new(AtomicUsize::new(0));
        for _ in 0..CONNECTIONS_MAX {
            let (listener, panel) = (listener.clone(), panel.clone());
            let (stop, log, failures) = (server.stop.clone(), log.clone(), failures.clone());
            let run = move || accept(&listener, &*panel, &stop, &log, &failures);
            server.threads.push(std::thread::Builder::new().name("metrics".into()).spawn(run)?);
        }
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Each thread accepts one connection of ours, and sees that it is to end.
        let woken = self.threads.iter().all(|_| TcpStream::connect_timeout(&self.address, PATIENCE).is_ok());
        for thread in self.threads.drain(..).filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, panel: &dyn Panel, stop: &AtomicBool, log: &Log, failures: &AtomicUsize) {
    loop {
        match listener.accept() {
            _ if stop.load(Ordering::SeqCst) => return,
            // What ends a connection concerns its client alone.
            Ok((stream, _)) => drop(serve(stream, panel)),
            Err(e) => {
                if failures.fetch_add(1, Ordering::Relaxed) == 0 {
                    log.say(format_args!("metrics: cannot accept a client: {e}"));
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

fn serve(mut stream: TcpStream, panel: &dyn Panel) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(head) = head(&mut stream)? else {
        return answer(
            &mut stream,
            "431 Request Header Fields Too Large",
            PLAIN,
            "the head is too long\n",
            false,
        );
    };
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    if request.parse(&head).is_err() {
        return answer(&mut stream, "400 Bad Request", PLAIN, "this is no request\n", false);
    }
    let only_head = request.method == Some("HEAD");
    if !only_head && request.method != Some("GET") {
        return answer(&mut stream, "405 Method Not Allowed", PLAIN, "only GET and HEAD\n", false);
    }
    let failed = |e: &dyn std::fmt::Display| ("500 Internal Server Error", PLAIN, format!("{e}\n"));
    let path = request.path.unwrap_or("").split('?').next().unwrap_or("");
    let (status, kind, body) = match path {
        "/metrics" => match prometheus::text(panel.stat()) {
            Ok(text) => ("200 OK", OPENMETRICS, text),
            Err(e) => failed(&e),
        },
        "/visible" => match serde_json::to_string_pretty(&panel.stat()) {
            Ok(text) => ("200 OK", JSON, text + "\n"),
            Err(e) => failed(&e),
        },
        "/" => ("200 OK", PLAIN, "/metrics  for Prometheus\n/visible  the same and more as JSON\n".into()),
        _ => ("404 Not Found", PLAIN, "there are /metrics and /visible\n".into()),
    };
    answer(&mut stream, status, kind, &body, only_head)
}

/// The bytes up to the empty line; none when there are too many.
fn head(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let end = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => head.extend_from_slice(&part[..n]),
        }
    }
    Ok(Some(head))
}

fn answer(stream: &mut TcpStream, status: &str, kind: &str, body: &str, only_head: bool) -> io::Result<()> {
    let len = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if !only_head {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}
