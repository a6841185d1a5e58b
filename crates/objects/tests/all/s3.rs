//! A real S3 server: versitygw over a directory, on the loopback interface.
//!
//! `FRIT_VERSITYGW` is the path of the program. Without it the tests say that they do nothing;
//! `make test-s3` installs it and runs them.

use crate::buckets::check;
use crate::common::{contents, id};
use frit_media::object::{ObjectUrl, RemoteObjects};
use frit_objects::{OpenMode, open};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A port for one server of this process. It lies below the range from which systems give ports to
/// clients, so that it stays free while the server is down.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 12_000;
    const PORTS: u16 = 16_000;
    let start = (std::process::id() % u32::from(PORTS)) as u16;
    loop {
        let port = FIRST + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A server, which ends with this value.
struct Gateway {
    program: String,
    dir: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Gateway {
    /// Starts a server with one bucket; `None` if the program is not given.
    fn start() -> Option<Gateway> {
        #[allow(clippy::print_stderr)] // for the reader of the test run
        let Ok(program) = std::env::var("FRIT_VERSITYGW") else {
            eprintln!("skipped: FRIT_VERSITYGW does not name versitygw; `make test-s3` installs it");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("data/bucket")).unwrap();
        let port = free_port();
        let mut gateway = Gateway { program, dir, port, child: None };
        gateway.run();
        Some(gateway)
    }

    fn run(&mut self) {
        // The server is killed when its standard input ends: by `kill`, or with the test program.
        let child = Command::new("sh")
            .args(["-c", "\"$0\" \"$@\" < /dev/null & read -r _; kill -9 $!; wait"])
            .arg(&self.program)
            .args(["--access", "frit", "--secret", "frit-secret", "--quiet"])
            .args(["--port", &format!("127.0.0.1:{}", self.port), "posix"])
            .arg(self.dir.path().join("data"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.unwrap());
        let begin = Instant::now();
        while !self.answers() {
            assert!(begin.elapsed() < Duration::from_secs(20), "versitygw does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether something speaks HTTP at the port. A connection alone proves nothing: the system can
    /// connect a client's port to itself.
    fn answers(&self) -> bool {
        let ask = || -> std::io::Result<[u8; 5]> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut head = [0; 5];
            stream.read_exact(&mut head)?;
            Ok(head)
        };
        ask().is_ok_and(|head| &head == b"HTTP/")
    }

    /// Kills the server.
    fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    fn url(&self, prefix: &str, options: &str) -> ObjectUrl {
        let text =
            format!("s3://bucket/{prefix}?endpoint=http://127.0.0.1:{}&region=us-east-1{options}", self.port);
        ObjectUrl::parse(&text).unwrap()
    }

    fn open(&self, prefix: &str, options: &str) -> Box<dyn RemoteObjects> {
        open(&self.url(prefix, options), Path::new("."), 4, 7, OpenMode::ReadWrite).unwrap()
    }

    fn names(&self, prefix: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path().join("data/bucket").join(prefix)).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
    }
}

const LEN: usize = 3 << 20;

fn put(store: &mut dyn RemoteObjects, epoch: u32, number: u32) -> frit_core::Result<()> {
    store.put(id(epoch, number), &contents(id(epoch, number), LEN))
}

fn verify(store: &mut dyn RemoteObjects, epoch: u32, number: u32) {
    let mut found = vec![0; LEN];
    store.get(id(epoch, number), 0, &mut found).unwrap();
    assert!(found == contents(id(epoch, number), LEN), "{epoch}-{number}");
    let mut part = [0; 100];
    store.get(id(epoch, number), LEN as u32 - 100, &mut part).unwrap();
    assert_eq!(part, contents(id(epoch, number), LEN)[LEN - 100..]);
}

#[test]
fn a_server_keeps_the_contract_of_a_bucket() {
    let Some(gateway) = Gateway::start() else { return };
    // Names below a prefix are not those of the prefix above it.
    for prefix in ["contract/deep", "contract", "with space~and%41", ""] {
        let url = gateway.url(prefix, "");
        check(&*frit_objects::bucket_of(&url, Path::new("."), OpenMode::ReadWrite).unwrap());
    }
}

#[test]
fn objects_survive_a_server_that_is_killed_and_started_again_during_uploads() {
    let Some(mut gateway) = Gateway::start() else { return };
    let mut store = gateway.open("volume", "&timeout_s=20&takeover=at-once");
    assert_eq!(store.claim(0).unwrap(), 1);
    for number in 0..4 {
        put(&mut *store, 1, number).unwrap();
    }
    store.flush().unwrap();
    for round in 1..4 {
        for number in 0..4 {
            put(&mut *store, 1, 10 * round + number).unwrap();
        }
        // The uploads have begun, and some of them are torn.
        std::thread::sleep(Duration::from_millis(3 * u64::from(round)));
        gateway.kill();
        // What did not arrive can be read, because it is still queued.
        let last = 10 * round + 3;
        if !gateway.names("volume").contains(&format!("seg-1-{last}")) {
            verify(&mut *store, 1, last);
        }
        std::thread::sleep(Duration::from_millis(300));
        gateway.run();
        store.flush().unwrap();
    }
    let listed = store.list().unwrap();
    assert_eq!(listed.len(), 16);
    assert!(listed.iter().all(|(_, size)| *size == LEN as u32));
    for &(id, _) in &listed {
        verify(&mut *store, id.epoch, id.number);
    }
    store.delete(id(1, 0)).unwrap();
    store.release().unwrap();
    assert!(!gateway.names("volume").contains(&"seg-1-0".to_owned()));
    let mut next = gateway.open("volume", "&takeover=wait");
    assert_eq!((next.claim(0).unwrap(), next.list().unwrap().len()), (2, 15));
}

#[test]
fn a_server_that_stays_away_is_named_and_loses_nothing() {
    let Some(mut gateway) = Gateway::start() else { return };
    let mut store = gateway.open("away", "&timeout_s=1&takeover=at-once");
    store.claim(0).unwrap();
    gateway.kill();
    put(&mut *store, 1, 1).unwrap();
    let e = store.flush().unwrap_err().to_string();
    assert!(e.contains("the object store s3://bucket/away: put of object 1-1 failed"), "{e}");
    assert!(store.list().is_err());
    verify(&mut *store, 1, 1);
    gateway.run();
    store.flush().unwrap();
    verify(&mut *store, 1, 1);
    drop(store);
    let mut reader = open(&gateway.url("away", ""), Path::new("."), 1, 7, OpenMode::ReadOnly).unwrap();
    assert_eq!(reader.list().unwrap(), [(id(1, 1), LEN as u32)]);
    assert_eq!(gateway.names("away"), ["seg-1-1", "writer-1"]);
}

#[test]
fn the_newer_of_two_writers_wins_on_a_server() {
    let Some(gateway) = Gateway::start() else { return };
    let mut first = gateway.open("two", "&takeover=at-once");
    first.claim(0).unwrap();
    put(&mut *first, 1, 1).unwrap();
    first.flush().unwrap();
    let mut second = gateway.open("two", "&takeover=at-once");
    assert_eq!(second.claim(0).unwrap(), 2);
    for e in [first.delete(id(1, 1)), first.flush(), put(&mut *first, 1, 2)] {
        let e = e.unwrap_err().to_string();
        assert!(e.contains("s3://bucket/two: another writer has taken over (epoch 2)"), "{e}");
    }
    verify(&mut *second, 1, 1);
    second.flush().unwrap();
}

#[test]
fn a_missing_bucket_is_reported_at_once() {
    let Some(gateway) = Gateway::start() else { return };
    let begin = Instant::now();
    let url = format!("s3://no-such-bucket/p?endpoint=http://127.0.0.1:{}&region=us-east-1", gateway.port);
    let mut store =
        open(&ObjectUrl::parse(&url).unwrap(), Path::new("."), 1, 7, OpenMode::ReadWrite).unwrap();
    let e = store.claim(0).unwrap_err().to_string();
    assert!(e.contains("s3://no-such-bucket/p") && e.contains("NoSuchBucket"), "{e}");
    assert!(begin.elapsed() < Duration::from_secs(10));
}
