//! Sockets and threads of an NBD server: one blocking thread per client, and worker threads for
//! requests that wait for a disk.

mod session;

use super::listen::Listener;
use super::stream::ClientStream;
use super::{Address, Exports};
use crate::resource_limits::{Budget, ConnectionSlot, ConnectionSlots, SlotLimits};
use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Addresses of a server, and limits on its clients.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Addresses to listen on.
    pub addresses: Vec<Address>,
    /// Other machines may connect. There is neither TLS nor a password.
    pub allow_remote: bool,
    /// Maximum number of connections. The user who runs the server and root can have 8 more while other users
    /// are connected. Each has a thread, and buffers of about 330 KiB while it is
    /// used. With a volume on a disk, it has more threads while requests wait for the disk.
    pub connections_max: usize,
    /// Memory that large requests and busy clients may use in total beyond that, in bytes. When it
    /// is exhausted, requests are executed in pieces.
    pub buffers_max: usize,
    /// Maximum time in which a client must select an export.
    pub handshake_max: Duration,
    /// Maximum time in which a client must send the rest of a request, or accept replies, plus one
    /// second per 64 KiB. The time between requests is not limited.
    pub request_max: Duration,
    /// Idle time after which a connection may be evicted for a new one when all are occupied.
    /// `None`: connections are never evicted for being idle.
    pub idle_evict: Option<Duration>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            addresses: Vec::new(),
            allow_remote: false,
            connections_max: 256,
            buffers_max: 128 << 20,
            handshake_max: Duration::from_secs(10),
            request_max: Duration::from_secs(60),
            idle_evict: Some(Duration::from_secs(600)),
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct NbdServer {
    shared: Arc<NbdServerState>,
    addresses: Vec<Address>,
    acceptors: Vec<JoinHandle<()>>,
}

struct NbdServerState {
    exports: Exports,
    options: ServerOptions,
    listeners: Vec<Listener>,
    slots: Arc<ConnectionSlots<ClientStream>>,
    budget: Arc<Budget>,
    /// The log already says that clients are refused.
    logged: AtomicBool,
    stopping: AtomicBool,
}

impl NbdServer {
    /// Starts a server that listens on the addresses of its options.
    ///
    /// # Errors
    /// An address cannot be listened on, or is reachable from other machines and `allow_remote` is
    /// not set.
    pub fn start(exports: impl Into<Exports>, options: ServerOptions) -> io::Result<NbdServer> {
        let named =
            |a: &Address, e: io::Error| io::Error::new(e.kind(), format!("cannot listen on {a}: {e}"));
        let mut listeners = Vec::new();
        for a in &options.addresses {
            if !a.is_local() && !options.allow_remote {
                let why = "the address is reachable from other machines, without authentication; \
                           --allow-remote allows it";
                return Err(named(a, io::Error::new(io::ErrorKind::PermissionDenied, why)));
            }
            match Listener::bind(a) {
                Ok(listener) => listeners.push(listener),
                Err(e) => {
                    listeners.iter().for_each(Listener::stop);
                    return Err(named(a, e));
                }
            }
        }
        let addresses = listeners.iter().map(Listener::address).collect::<io::Result<_>>()?;
        let shared = Arc::new(NbdServerState {
            exports: exports.into(),
            slots: ConnectionSlots::new(slot_limits(&options)),
            budget: Budget::new(options.buffers_max, rustix::process::geteuid().as_raw()),
            options,
            listeners,
            logged: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        });
        let acceptors = (0..shared.listeners.len())
            .map(|i| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new().name("nbd-accept".into()).spawn(move || accept(&shared, i))
            })
            .collect::<io::Result<_>>()?;
        Ok(NbdServer { shared, addresses, acceptors })
    }

    /// Returns the addresses, with their actual ports.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Stops the server: accepts no more clients, answers the received requests, and closes the
    /// connections. Connections of clients that do not accept their replies within `grace` are
    /// aborted; returns their number.
    pub fn stop(mut self, grace: Duration) -> usize {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.listeners.iter().for_each(Listener::stop);
        for acceptor in self.acceptors.drain(..) {
            let _ = acceptor.join();
        }
        let slots = &self.shared.slots;
        // Bytes that the socket holds can still be read after this, but no more arrive.
        slots.each(|s| s.shutdown(Shutdown::Read));
        let cut_off = slots.wait(Some(grace));
        slots.each(|s| s.shutdown(Shutdown::Both));
        slots.wait(None);
        cut_off
    }
}

/// Number of connections that the user who runs the server and root may have, beyond the maximum, while other users
/// occupy slots.
const RESERVED: usize = 8;

fn slot_limits(options: &ServerOptions) -> SlotLimits {
    let most = options.connections_max;
    SlotLimits {
        owner: rustix::process::geteuid().as_raw(),
        most,
        reserved: RESERVED.min(most),
        // Another user or machine may have three quarters.
        of_peer: most - most / 4,
        idle_min: options.idle_evict,
    }
}

fn accept(shared: &Arc<NbdServerState>, i: usize) {
    let log = shared.exports.device().log();
    let mut logged = false;
    while !shared.stopping.load(Ordering::Acquire) {
        match shared.listeners[i].accept(shared.options.request_max) {
            Ok(stream) => {
                logged = false;
                admit(shared, stream);
            }
            Err(_) if shared.stopping.load(Ordering::Acquire) => {}
            // A client disconnected before it was accepted, or no descriptor is free. Descriptors
            // may become free when other clients disconnect, so the loop continues.
            Err(e) => {
                if e.kind() != io::ErrorKind::ConnectionAborted {
                    if !std::mem::replace(&mut logged, true) {
                        log.write_line(format_args!("a client could not be accepted: {e}"));
                    }
                    // Avoids a busy loop as long as no descriptor is free.
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }
}

/// Starts the thread of a client, if a slot is free.
fn admit(shared: &Arc<NbdServerState>, stream: ClientStream) {
    let device = shared.exports.device();
    let stream = Arc::new(stream);
    let Some((slot, evicted)) = shared.slots.admit(&stream, stream.peer()) else {
        device.clients().count_refused();
        if !shared.logged.swap(true, Ordering::Relaxed) {
            let most = shared.options.connections_max;
            device
                .log()
                .write_line(format_args!("{most} clients are connected; further clients are refused"));
        }
        return;
    };
    if evicted {
        device.clients().count_dropped();
    }
    device.clients().count_accepted();
    let connection_guard = ConnectionGuard { shared: Arc::clone(shared), slot };
    let run = move || {
        match session::serve(&connection_guard.shared, &stream, &connection_guard.slot) {
            Err(e) if e.kind() == io::ErrorKind::TimedOut => {
                connection_guard.shared.exports.device().clients().count_dropped();
            }
            // Any other error means that the client has disconnected, which is normal.
            _ => {}
        }
        stream.shutdown(Shutdown::Both);
    };
    if let Err(e) = std::thread::Builder::new().name("nbd-client".into()).spawn(run) {
        device.log().write_line(format_args!("a client could not be served: {e}"));
    }
}

/// Counts the end of a client when its thread ends, even by a panic.
struct ConnectionGuard {
    shared: Arc<NbdServerState>,
    slot: ConnectionSlot<ClientStream>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.shared.logged.store(false, Ordering::Relaxed);
        self.shared.exports.device().clients().count_closed();
    }
}

impl std::fmt::Debug for NbdServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NbdServerState").field("options", &self.options).finish_non_exhaustive()
    }
}
