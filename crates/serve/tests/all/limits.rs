//! Tests of the limits on clients that are silent, send incomplete requests, or do not read
//! replies.

use crate::common::{Client, device, options, request, stamped, version};
use frit_serve::Device;
use frit_serve::nbd::{Export, NbdServer, ServerOptions};
use frit_serve::testing::MemoryBackend;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// A timeout that no test reaches.
const LONG: Duration = Duration::from_secs(3600);

struct Served {
    device: Arc<Device>,
    server: NbdServer,
    socket: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

fn serve(more: impl FnOnce(ServerOptions) -> ServerOptions) -> Served {
    serve_backend(MemoryBackend::new(8 << 20), more)
}

fn serve_backend(backend: MemoryBackend, more: impl FnOnce(ServerOptions) -> ServerOptions) -> Served {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let device = device(backend);
    let export = Arc::new(Export::new(Arc::clone(&device), "", ""));
    let server = NbdServer::start(export, more(options(&socket))).unwrap();
    Served { device, server, socket, _dir: dir }
}

/// Calls a function in a thread of another user.
fn as_user<T: Send>(user: u32, f: impl FnOnce() -> T + Send) -> T {
    let user = rustix::thread::Uid::from_raw(user);
    let act = || {
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        f()
    };
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

fn wait_until(what: &str, mut f: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !f() {
        assert!(Instant::now() < until, "timeout while waiting for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn connect(path: &Path) -> Client {
    let client = Client::connect(path).unwrap();
    client.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client
}

/// Reads until the server closes the connection.
fn hung_up(socket: &mut UnixStream) {
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // Bytes that the server has not read cause a reset.
    if let Err(e) = socket.read_to_end(&mut Vec::new()) {
        assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset, "the server closes the connection");
    }
}

#[test]
fn silent_clients_keep_nobody_out() {
    let s = serve(|o| ServerOptions { connections_max: 4, handshake_max: LONG, ..o });
    let mut served = connect(&s.socket);
    let mut silent: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(&s.socket).unwrap()).collect();
    wait_until("the last client", || s.device.clients().accepted() == 21);
    let mut other = connect(&s.socket);
    assert_eq!(other.read(0, 512).unwrap(), [0; 512]);
    assert_eq!(served.read(0, 512).unwrap(), [0; 512], "a client with an export keeps its slot");
    assert_eq!(s.device.clients().refused(), 0);
    hung_up(&mut silent[0]);
    assert!(s.device.clients().dropped() >= 17);
    s.server.stop(Duration::from_secs(1));
}

/// Another user of this machine, who reaches the port, closes no connection of the owner by many of their own.
#[test]
fn silent_clients_of_another_user_replace_only_their_own() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: acting as another user needs root");
        return;
    }
    let s = serve(|mut o| {
        o.addresses.push("tcp:127.0.0.1:0".parse().unwrap());
        ServerOptions { connections_max: 4, handshake_max: LONG, ..o }
    });
    let Some(frit_serve::nbd::Address::Tcp(port)) = s.server.addresses().get(1).cloned() else {
        panic!("no port")
    };
    let mut silent = UnixStream::connect(&s.socket).unwrap();
    silent.read_exact(&mut [0; 18]).unwrap();
    let held = as_user(65534, || (0..30).map(|_| TcpStream::connect(port).unwrap()).collect::<Vec<_>>());
    let clients = s.device.clients();
    wait_until("the last client", || clients.accepted() + clients.refused() == 31);
    silent.set_nonblocking(true).unwrap();
    let still_open = silent.read(&mut [0; 1]).unwrap_err();
    assert_eq!(still_open.kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(connect(&s.socket).read(0, 512).unwrap(), [0; 512]);
    wait_until("no more than three of the other user", || clients.open() <= 5);
    drop(held);
    s.server.stop(Duration::from_secs(1));
}

#[test]
fn idle_clients_make_room_only_when_all_places_are_taken() {
    let s = serve(|o| ServerOptions { connections_max: 3, idle_evict: Some(Duration::ZERO), ..o });
    let mut idle: Vec<Client> = (0..2).map(|_| connect(&s.socket)).collect();
    // Longer than the time after which a silent client counts as idle.
    thread::sleep(Duration::from_millis(1200));
    assert_eq!(idle[0].read(0, 512).unwrap(), [0; 512], "a slot is free, so idle clients keep theirs");
    idle.push(connect(&s.socket));
    let mut newer = None;
    wait_until("a free slot", || {
        newer = Client::connect(&s.socket).ok();
        newer.is_some()
    });
    assert_eq!(newer.unwrap().read(0, 512).unwrap(), [0; 512]);
    let left = idle.iter_mut().filter_map(|c| c.read(0, 512).ok()).count();
    assert!(left >= 1, "only one client was evicted");
    s.server.stop(Duration::from_secs(1));
}

#[test]
fn half_a_request_is_waited_for_only_so_long() {
    let s = serve(|o| ServerOptions { request_max: Duration::from_millis(300), ..o });
    let mut quiet = connect(&s.socket);
    let mut half = connect(&s.socket);
    half.socket.write_all(&request(1, 0, 1, 0, 4096)).unwrap();
    half.socket.write_all(&[1; 100]).unwrap();
    hung_up(&mut half.socket);
    let mut head = connect(&s.socket);
    head.socket.write_all(&request(0, 0, 1, 0, 4096)[..5]).unwrap();
    hung_up(&mut head.socket);
    // A refused write, whose payload is discarded.
    let mut refused = connect(&s.socket);
    refused.socket.write_all(&request(1, 0, 1, 1 << 40, 1 << 30)).unwrap();
    hung_up(&mut refused.socket);
    assert_eq!(s.device.clients().dropped(), 3);
    assert_eq!(quiet.read(0, 512).unwrap(), [0; 512], "clients may be silent between requests");
    s.server.stop(Duration::from_secs(1));
}

#[test]
fn replies_that_are_not_taken_end_the_session() {
    let s = serve(|o| ServerOptions { request_max: Duration::from_millis(300), ..o });
    let mut deaf = connect(&s.socket);
    for i in 0..16 {
        deaf.socket.write_all(&request(0, 0, i, 0, 4 << 20)).unwrap();
    }
    wait_until("the end of the session", || s.device.clients().dropped() == 1);
    wait_until("its slot to become free", || s.device.clients().open() == 0);
    s.server.stop(Duration::from_secs(1));
}

/// Incomplete writes occupy all memory for large requests. The other clients continue, and the
/// incomplete writes can be completed.
#[test]
fn half_sent_writes_disturb_nobody() {
    let s = serve(|o| ServerOptions { buffers_max: 1 << 20, request_max: LONG, ..o });
    let large = 2 << 20;
    let data: Vec<u8> = (0..large / 4096).flat_map(|b| stamped(b as u64, 7)).collect();
    let mut halves: Vec<Client> = (0..10).map(|_| connect(&s.socket)).collect();
    for half in &mut halves {
        half.socket.write_all(&request(1, 0, 1, 4 << 20, large as u32)).unwrap();
        half.socket.write_all(&data[..large / 2]).unwrap();
    }
    let mut other = connect(&s.socket);
    other.write(0, &data, 1).unwrap();
    assert!(other.read(0, large).unwrap() == data);
    other.write(0, &stamped(0, 9), 0).unwrap();
    assert_eq!(version(0, &other.read(0, 4096).unwrap()), 9);
    for half in &mut halves {
        half.socket.write_all(&data[large / 2..]).unwrap();
        assert_eq!(half.reply().unwrap(), (1, 0));
    }
    assert!(other.read(4 << 20, large).unwrap() == data);
    assert_eq!(s.server.stop(Duration::from_secs(5)), 0);
}

/// Two users fill the memory for large requests with writes that they send by half. The owner, and a third
/// user, still get memory for a read that cannot be executed in pieces.
#[test]
fn half_sent_writes_of_other_users_leave_memory() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: acting as other users needs root");
        return;
    }
    const READ: usize = 1 << 20;
    let backend = MemoryBackend::new(8 << 20);
    // With delayed replies, a simple read is one reply.
    backend.knobs().pace_us.store(1, Ordering::Relaxed);
    let s = serve_backend(backend, |mut o| {
        o.addresses.push("tcp:127.0.0.1:0".parse().unwrap());
        ServerOptions { buffers_max: 8 << 20, request_max: LONG, ..o }
    });
    let Some(frit_serve::nbd::Address::Tcp(port)) = s.server.addresses().get(1).cloned() else {
        panic!("no port")
    };
    let connect_tcp = || {
        let client = Client::over(TcpStream::connect(port).unwrap()).unwrap();
        client.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        client
    };
    let half = [request(1, 0, 1, 0, 7 << 20), vec![7; 6 << 20]].concat();
    let attack = || {
        let send = |mut client: Client<TcpStream>| {
            client.socket.write_all(&half).unwrap();
            client
        };
        (0..12).map(|_| send(connect_tcp())).collect::<Vec<_>>()
    };
    let held = [65533, 65534].map(|user| as_user(user, attack));
    assert_eq!(connect(&s.socket).read(0, READ).unwrap().len(), READ, "the owner");
    assert_eq!(as_user(65532, || connect_tcp().read(0, READ)).unwrap().len(), READ, "a third user");
    drop(held);
    s.server.stop(Duration::from_secs(1));
}
