//! Clients that are silent, stop within a request, or do not read: what they take is bounded, and ends.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Client, device, options, request, stamped, version};
use frit_serve::Device;
use frit_serve::nbd::{Export, Server, ServerOptions};
use frit_serve::testing::Memory;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// So long that no test waits for it.
const LONG: Duration = Duration::from_secs(3600);

struct Served {
    device: Arc<Device>,
    server: Server,
    socket: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

fn serve(more: impl FnOnce(ServerOptions) -> ServerOptions) -> Served {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let device = device(Memory::new(8 << 20));
    let export = Arc::new(Export::new(Arc::clone(&device), "", ""));
    let server = Server::start(export, more(options(&socket))).unwrap();
    Served { device, server, socket, _dir: dir }
}

fn wait_until(what: &str, mut f: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !f() {
        assert!(Instant::now() < until, "{what} did not come");
        thread::sleep(Duration::from_millis(5));
    }
}

fn connect(path: &Path) -> Client {
    let client = Client::connect(path).unwrap();
    client.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client
}

/// Reads until the server hangs up.
fn hung_up(socket: &mut UnixStream) {
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // What the server had not read is answered by a reset.
    if let Err(e) = socket.read_to_end(&mut Vec::new()) {
        assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset, "the server hangs up");
    }
}

#[test]
fn silent_clients_keep_nobody_out() {
    let s = serve(|o| ServerOptions { connections_max: 4, handshake_max: LONG, ..o });
    let mut served = connect(&s.socket);
    let mut silent: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(&s.socket).unwrap()).collect();
    wait_until("the last", || s.device.clients().accepted() == 21);
    let mut other = connect(&s.socket);
    assert_eq!(other.read(0, 512).unwrap(), [0; 512]);
    assert_eq!(served.read(0, 512).unwrap(), [0; 512], "who chose an export keeps the place");
    assert_eq!(s.device.clients().refused(), 0);
    hung_up(&mut silent[0]);
    assert!(s.device.clients().dropped() >= 17);
    s.server.stop(Duration::from_secs(1));
}

#[test]
fn idle_clients_make_room_only_when_all_places_are_taken() {
    let s = serve(|o| ServerOptions { connections_max: 3, idle_evict: Some(Duration::ZERO), ..o });
    let mut idle: Vec<Client> = (0..2).map(|_| connect(&s.socket)).collect();
    // Longer than it takes until a silent client counts as idle.
    thread::sleep(Duration::from_millis(1200));
    assert_eq!(idle[0].read(0, 512).unwrap(), [0; 512], "there is a place left: it may be idle");
    idle.push(connect(&s.socket));
    let mut newer = None;
    wait_until("a place", || {
        newer = Client::connect(&s.socket).ok();
        newer.is_some()
    });
    assert_eq!(newer.unwrap().read(0, 512).unwrap(), [0; 512]);
    let left = idle.iter_mut().filter_map(|c| c.read(0, 512).ok()).count();
    assert!(left >= 1, "one made room, and no more");
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
    // A refused write, whose payload is passed over.
    let mut refused = connect(&s.socket);
    refused.socket.write_all(&request(1, 0, 1, 1 << 40, 1 << 30)).unwrap();
    hung_up(&mut refused.socket);
    assert_eq!(s.device.clients().dropped(), 3);
    assert_eq!(quiet.read(0, 512).unwrap(), [0; 512], "between requests a client may be silent");
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
    wait_until("its place", || s.device.clients().open() == 0);
    s.server.stop(Duration::from_secs(1));
}

/// Half-sent writes take all the memory that there is for large requests: the others go on, and so do they.
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
