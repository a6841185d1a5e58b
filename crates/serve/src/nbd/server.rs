//! Sockets and threads around the protocol: one blocking thread a client, and more for what waits for a disk.

mod session;

use super::listen::Listener;
use super::stream::Stream;
use super::{Address, Export};
use crate::guard::{Budget, Place, Places};
use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Addresses of a server, and limits on its clients.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where.
    pub addresses: Vec<Address>,
    /// Whether other machines may connect: there is neither TLS nor a password.
    pub allow_remote: bool,
    /// Connections at a time. Each has buffers of about 330 KiB while it is used, and a thread; of a volume
    /// with a disk more threads, while requests wait for the disk.
    pub connections_max: usize,
    /// Memory that large requests and busy clients may take beyond that, all together, in bytes. Where it
    /// is used up, requests are carried out in pieces.
    pub buffers_max: usize,
    /// How long a client may take to choose an export.
    pub handshake_max: Duration,
    /// Time that a client has to send the rest of a request, or to take replies; a second more for each
    /// 64 KiB. One that says nothing between requests may do so for ever.
    pub request_max: Duration,
    /// When all connections are taken, one that has been idle for so long makes room for a new one; without
    /// it none does.
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

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<Address>,
    acceptors: Vec<JoinHandle<()>>,
}

struct Shared {
    export: Arc<Export>,
    options: ServerOptions,
    listeners: Vec<Listener>,
    places: Arc<Places<Stream>>,
    budget: Arc<Budget>,
    /// It was said that clients are turned away.
    told: AtomicBool,
    stopping: AtomicBool,
}

impl Server {
    /// Listens and serves.
    ///
    /// # Errors
    /// An address that cannot be listened on, or that other machines reach without leave.
    pub fn start(export: Arc<Export>, options: ServerOptions) -> io::Result<Server> {
        let named =
            |a: &Address, e: io::Error| io::Error::new(e.kind(), format!("cannot listen on {a}: {e}"));
        let mut listeners = Vec::new();
        for a in &options.addresses {
            if !a.is_local() && !options.allow_remote {
                let why = "other machines reach it, and anybody there may read and write; --allow-remote permits it";
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
        let shared = Arc::new(Shared {
            export,
            places: Places::new(options.connections_max, options.idle_evict),
            budget: Budget::new(options.buffers_max),
            options,
            listeners,
            told: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        });
        let acceptors = (0..shared.listeners.len())
            .map(|i| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new().name("nbd-accept".into()).spawn(move || accept(&shared, i))
            })
            .collect::<io::Result<_>>()?;
        Ok(Server { shared, addresses, acceptors })
    }

    /// Where it listens; ports are the real ones.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Takes no more clients, answers what was received, and hangs up. Clients that do not take their
    /// replies within `grace` are cut off: their number is returned.
    pub fn stop(mut self, grace: Duration) -> usize {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.listeners.iter().for_each(Listener::stop);
        for acceptor in self.acceptors.drain(..) {
            let _ = acceptor.join();
        }
        let places = &self.shared.places;
        // What a socket holds can still be read after this, but nothing follows.
        places.each(|s| s.shutdown(Shutdown::Read));
        let cut_off = places.wait(Some(grace));
        places.each(|s| s.shutdown(Shutdown::Both));
        places.wait(None);
        cut_off
    }
}

fn accept(shared: &Arc<Shared>, i: usize) {
    let log = shared.export.device().log();
    let mut told = false;
    while !shared.stopping.load(Ordering::Acquire) {
        match shared.listeners[i].accept(shared.options.request_max) {
            Ok(stream) => {
                told = false;
                admit(shared, stream);
            }
            Err(_) if shared.stopping.load(Ordering::Acquire) => {}
            // A client that has left before it was taken, or no descriptor is free: others may leave.
            Err(e) => {
                if e.kind() != io::ErrorKind::ConnectionAborted {
                    if !std::mem::replace(&mut told, true) {
                        log.say(format_args!("a client could not be accepted: {e}"));
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }
}

/// Starts a thread for a client, if there is a place for it.
fn admit(shared: &Arc<Shared>, stream: Stream) {
    let device = shared.export.device();
    let stream = Arc::new(stream);
    let Some((place, evicted)) = shared.places.admit(&stream, stream.peer()) else {
        device.clients().turned_away();
        if !shared.told.swap(true, Ordering::Relaxed) {
            let most = shared.options.connections_max;
            device.log().say(format_args!("{most} clients are connected; more are turned away"));
        }
        return;
    };
    if evicted {
        device.clients().was_dropped();
    }
    device.clients().came();
    let leave = Leave { shared: Arc::clone(shared), place };
    let run = move || {
        match session::serve(&leave.shared, &stream, &leave.place) {
            Err(e) if e.kind() == io::ErrorKind::TimedOut => {
                leave.shared.export.device().clients().was_dropped();
            }
            // Any other error is a client that has hung up: nothing to be said.
            _ => {}
        }
        stream.shutdown(Shutdown::Both);
    };
    if let Err(e) = std::thread::Builder::new().name("nbd-client".into()).spawn(run) {
        device.log().say(format_args!("a client could not be served: {e}"));
    }
}

/// Takes a client off the list when its thread ends, however it does.
struct Leave {
    shared: Arc<Shared>,
    place: Place<Stream>,
}

impl Drop for Leave {
    fn drop(&mut self) {
        self.shared.told.store(false, Ordering::Relaxed);
        self.shared.export.device().clients().left();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}
