//! Sockets and threads around the protocol: one blocking thread a client, and more for what waits for a disk.

use super::connection::{Connection, Next};
use super::input::Input;
use super::listen::Listener;
use super::outlet::Outlet;
use super::paced::Waiting;
use super::patience::Patience;
use super::stream::Stream;
use super::{Address, Export};
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a server listens.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where.
    pub addresses: Vec<Address>,
    /// Whether other machines may connect: there is neither TLS nor a password.
    pub allow_remote: bool,
    /// Clients at a time. Each may hold two buffers for its largest request, 64 MiB; of a volume with a disk also
    /// what its requests at the disk move, 32 MiB, and as many threads.
    pub connections_max: usize,
    /// How long a client may take to choose an export.
    pub handshake_max: Duration,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            addresses: Vec::new(),
            allow_remote: false,
            connections_max: 64,
            handshake_max: Duration::from_secs(30),
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

#[derive(Debug)]
struct Shared {
    export: Arc<Export>,
    options: ServerOptions,
    listeners: Vec<Listener>,
    clients: Mutex<Sessions>,
    /// A client has left.
    left: Condvar,
    stopping: AtomicBool,
}

#[derive(Default, Debug)]
struct Sessions {
    number: u64,
    open: HashMap<u64, Arc<Stream>>,
    /// It was said that clients are turned away.
    told: bool,
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
            options,
            listeners,
            clients: Mutex::default(),
            left: Condvar::new(),
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
        let until = Instant::now() + grace;
        let mut clients = self.shared.clients.lock();
        // What a socket holds can still be read after this, but nothing follows.
        clients.open.values().for_each(|s| s.shutdown(Shutdown::Read));
        while !clients.open.is_empty() {
            if self.shared.left.wait_until(&mut clients, until).timed_out() {
                break;
            }
        }
        let cut_off = clients.open.len();
        clients.open.values().for_each(|s| s.shutdown(Shutdown::Both));
        while !clients.open.is_empty() {
            self.shared.left.wait(&mut clients);
        }
        cut_off
    }
}

fn accept(shared: &Arc<Shared>, i: usize) {
    let log = shared.export.device().log();
    while !shared.stopping.load(Ordering::Acquire) {
        match shared.listeners[i].accept() {
            Ok(stream) => admit(shared, stream),
            Err(_) if shared.stopping.load(Ordering::Acquire) => {}
            // A client that has left before it was taken, or no descriptor is free: others may leave.
            Err(e) => {
                if e.kind() != io::ErrorKind::ConnectionAborted {
                    log.say(format_args!("a client could not be accepted: {e}"));
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }
}

/// Starts a thread for a client, if there is room.
fn admit(shared: &Arc<Shared>, stream: Stream) {
    let device = shared.export.device();
    let stream = Arc::new(stream);
    let mut clients = shared.clients.lock();
    if clients.open.len() >= shared.options.connections_max {
        device.clients().turned_away();
        if !std::mem::replace(&mut clients.told, true) {
            let most = shared.options.connections_max;
            device.log().say(format_args!("{most} clients are connected; more are turned away"));
        }
        return;
    }
    clients.number += 1;
    let number = clients.number;
    clients.open.insert(number, Arc::clone(&stream));
    drop(clients);
    device.clients().came();
    let leave = Leave { shared: Arc::clone(shared), number };
    let run = move || {
        // An error is a client that has hung up: nothing to be said.
        let _ = serve(&leave.shared, &stream);
        stream.shutdown(Shutdown::Both);
    };
    if let Err(e) = std::thread::Builder::new().name(format!("nbd-{number}")).spawn(run) {
        device.log().say(format_args!("a client could not be served: {e}"));
    }
}

/// Takes a client off the list when its thread ends, however it does.
struct Leave {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Leave {
    fn drop(&mut self) {
        let mut clients = self.shared.clients.lock();
        clients.open.remove(&self.number);
        clients.told = false;
        self.shared.export.device().clients().left();
        self.shared.left.notify_all();
    }
}

/// Serves a client until either side ends it.
fn serve(shared: &Shared, stream: &Arc<Stream>) -> io::Result<()> {
    if shared.export.device().deferring() {
        let outlet = Arc::new(Outlet::new(stream));
        let mut connection = Connection::with_outlet(Arc::clone(&shared.export), Arc::clone(&outlet));
        return exchange(shared, stream, &mut connection, &mut |out| outlet.send(out.bytes()));
    }
    let mut connection = Connection::new(Arc::clone(&shared.export));
    if !shared.export.device().paced() {
        return exchange(shared, stream, &mut connection, &mut |out| stream.write_all(out.bytes()));
    }
    let (device, waiting) = (shared.export.device(), Waiting::default());
    std::thread::scope(|scope| {
        let sender = std::thread::Builder::new().name("nbd-paced".into());
        sender.spawn_scoped(scope, || waiting.send(stream, &|due| device.replied(due)))?;
        let result = exchange(shared, stream, &mut connection, &mut |out| {
            if out.timed().next().is_none() {
                return stream.write_all(out.bytes());
            }
            if waiting.put(out) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        });
        waiting.end();
        result
    })
}

/// Reads, does, sends.
fn exchange(
    shared: &Shared,
    stream: &Stream,
    connection: &mut Connection,
    send: &mut dyn FnMut(&super::Output) -> io::Result<()>,
) -> io::Result<()> {
    let mut input = Input::new();
    let start = Instant::now();
    let mut chosen = false;
    let mut patience = Patience::default();
    loop {
        let step = connection.advance(input.bytes());
        input.used(step.used);
        let out = connection.output();
        if !out.is_empty() {
            send(out)?;
            out.clear();
        }
        let whole = match step.next {
            Next::Again => continue,
            Next::Close => return Ok(()),
            Next::More(whole) => whole,
        };
        if !chosen {
            chosen = connection.is_transmitting();
            let left = shared.options.handshake_max.saturating_sub(start.elapsed());
            if left.is_zero() && !chosen {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(if chosen { None } else { Some(left) })?;
        }
        let room = input.room(whole);
        let n = match if chosen { patience.read(stream, room)? } else { None } {
            Some(n) => n,
            None => stream.read(room)?,
        };
        if n == 0 {
            return Ok(());
        }
        input.came(n);
    }
}
