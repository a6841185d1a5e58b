//! Tests with real sockets: slow clients, many clients at once, restarts, and shutdown.

use crate::common::{self, Client, Served, device, options, reopen, request, stamped, start, version};
use frit_serve::nbd::{Address, Export, NbdServer, ServerOptions};
use frit_serve::testing::MemoryBackend;
use frit_serve::{Device, DeviceOptions, TraceRecorder};
use frit_trace::{Options, ReqOp, Workload};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn wait_until(what: &str, mut f: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !f() {
        assert!(Instant::now() < until, "timeout while waiting for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_client_that_does_not_read_disturbs_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let device = device(MemoryBackend::new(8 << 20));
    let server = start(&device, &path);
    let mut slow = Client::connect(&path).unwrap();
    slow.write(0, &[7; 1 << 20], 0).unwrap();
    // The requested 64 MiB of replies are far more than a socket holds.
    for i in 0..64 {
        slow.socket.write_all(&request(0, 0, i, 0, 1 << 20)).unwrap();
    }
    thread::sleep(Duration::from_millis(100));
    let mut other = Client::connect(&path).unwrap();
    for block in 0..300 {
        other.write((1 << 20) + block * 4096, &stamped(block, 1), 0).unwrap();
        assert_eq!(version(block, &other.read((1 << 20) + block * 4096, 4096).unwrap()), 1);
    }
    // The slow client also receives all its replies.
    let mut data = vec![0; 1 << 20];
    for _ in 0..64 {
        assert_eq!(slow.reply().unwrap().1, 0);
        slow.socket.read_exact(&mut data).unwrap();
        assert!(data.iter().all(|&b| b == 7));
    }
    slow.bye();
    other.bye();
    assert_eq!(server.stop(Duration::from_secs(5)), 0);
}

#[test]
fn storms_of_clients_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let device = device(MemoryBackend::new(1 << 20));
    let export = Arc::new(Export::new(Arc::clone(&device), "", ""));
    let server = NbdServer::start(export, ServerOptions { connections_max: 8, ..options(&path) }).unwrap();
    thread::scope(|s| {
        for t in 0..8usize {
            let path = &path;
            s.spawn(move || {
                for i in 0..60usize {
                    let Ok(mut socket) = UnixStream::connect(path) else { continue };
                    // The clients disconnect in different states.
                    let bytes =
                        [&3u32.to_be_bytes()[..], b"IHAVEOPT\0\0\0\x01\0\0\0\0", &request(1, 0, 1, 0, 4096)];
                    let bytes = bytes.concat();
                    let n = (i * 7 + t * 13) % (bytes.len() + 1);
                    let _ = socket.write_all(&bytes[..n]);
                    if i.is_multiple_of(3) {
                        let _ = socket.shutdown(Shutdown::Write);
                        let _ = socket.read_to_end(&mut Vec::new());
                    }
                }
            });
        }
    });
    wait_until("the end of all clients", || device.clients().open() == 0);
    assert!(device.clients().accepted() > 8);
    let mut c = Client::connect(&path).unwrap();
    assert_eq!(c.read(0, 4096).unwrap(), [0; 4096], "incomplete requests have no effect");
    c.bye();
    server.stop(Duration::from_secs(1));
}

#[test]
fn clients_beyond_the_limit_are_turned_away() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let device = device(MemoryBackend::new(1 << 20));
    let export = Arc::new(Export::new(Arc::clone(&device), "", ""));
    let server = NbdServer::start(export, ServerOptions { connections_max: 2, ..options(&path) }).unwrap();
    let two = [Client::connect(&path).unwrap(), Client::connect(&path).unwrap()];
    assert!(Client::connect(&path).is_err());
    assert_eq!(device.clients().refused(), 1);
    two.into_iter().for_each(Client::bye);
    wait_until("a free slot", || device.clients().open() < 2);
    Client::connect(&path).unwrap().bye();
    server.stop(Duration::from_secs(1));
}

#[test]
fn a_client_that_never_chooses_is_hung_up_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let device = device(MemoryBackend::new(1 << 20));
    let export = Arc::new(Export::new(Arc::clone(&device), "", ""));
    let handshake_max = Duration::from_millis(150);
    let server = NbdServer::start(export, ServerOptions { handshake_max, ..options(&path) }).unwrap();
    let mut idle = UnixStream::connect(&path).unwrap();
    let mut chosen = Client::connect(&path).unwrap();
    assert_eq!(idle.read_to_end(&mut Vec::new()).unwrap(), 18, "the greeting, then the connection is closed");
    thread::sleep(Duration::from_millis(100));
    assert_eq!(chosen.read(0, 512).unwrap().len(), 512, "a client with an export may be idle");
    server.stop(Duration::from_secs(1));
}

#[test]
fn stopping_answers_what_was_received_and_cuts_off_who_does_not_listen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let memory = MemoryBackend::new(8 << 20);
    let knobs = memory.knobs();
    let device = device(memory);
    let server = start(&device, &path);
    let mut c = Client::connect(&path).unwrap();
    let mut deaf = Client::connect(&path).unwrap();
    for i in 0..16 {
        deaf.socket.write_all(&request(0, 0, i, 0, 1 << 20)).unwrap();
    }
    // The server is stopped during a slow flush, behind which more requests wait.
    knobs.flush_us.store(100_000, Ordering::Relaxed);
    let mut bytes = request(3, 0, 1, 0, 0);
    for i in 0..10u64 {
        bytes.extend(request(1, 0, 10 + i, i * 512, 512));
        bytes.extend([i as u8 + 1; 512]);
    }
    c.socket.write_all(&bytes).unwrap();
    thread::sleep(Duration::from_millis(30));
    let stopper = thread::spawn(move || server.stop(Duration::from_millis(500)));
    for _ in 0..11 {
        assert_eq!(c.reply().unwrap().1, 0);
    }
    assert_eq!(c.socket.read(&mut [0]).unwrap(), 0, "then the server closes the connection");
    assert_eq!(stopper.join().unwrap(), 1, "the client that does not read was aborted");
    assert!(!path.exists(), "the socket's name is removed");
    assert!(UnixStream::connect(&path).is_err());
    let mut byte = [0; 512];
    device.lock().read(9 * 512, &mut byte).map(drop).unwrap();
    assert_eq!(byte, [10; 512]);
    device.close().unwrap();
    assert!(knobs.closed.load(Ordering::Relaxed));
}

#[test]
fn names_of_sockets_are_replaced_only_when_nobody_listens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let served = || {
        let export = Arc::new(Export::new(device(MemoryBackend::new(1 << 20)), "", ""));
        NbdServer::start(export, options(&path))
    };
    // A killed server leaves the name of its socket.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let first = served().unwrap();
    let e = served().unwrap_err().to_string();
    assert!(e.contains("a server listens there"), "{e}");
    Client::connect(&path).unwrap().bye();
    first.stop(Duration::from_secs(1));
    std::fs::write(&path, "a file").unwrap();
    let e = served().unwrap_err().to_string();
    assert!(e.contains("is not a socket"), "{e}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
}

#[test]
fn tcp_is_for_this_machine_unless_told() {
    let started = |address: &str, allow_remote| {
        let export = Arc::new(Export::new(device(MemoryBackend::new(1 << 20)), "", ""));
        let addresses = vec![address.parse::<Address>().unwrap()];
        NbdServer::start(export, ServerOptions { addresses, allow_remote, ..ServerOptions::default() })
    };
    let e = started("tcp:0.0.0.0:0", false).unwrap_err().to_string();
    assert!(e.contains("--allow-remote"), "{e}");
    started("tcp:0.0.0.0:0", true).unwrap().stop(Duration::from_secs(1));
    let server = started("tcp:127.0.0.1:0", false).unwrap();
    let Address::Tcp(address) = server.addresses()[0].clone() else { panic!("no port") };
    let mut socket = TcpStream::connect(address).unwrap();
    let mut greeting = [0; 18];
    socket.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting[..8], b"NBDMAGIC");
    server.stop(Duration::from_secs(1));
    assert!(TcpStream::connect(address).is_err());
}

/// Pace of a reply that others overtake, in µs.
const LATE_US: u64 = 3_000_000;

#[test]
fn a_paced_device_answers_when_the_model_says() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let memory = MemoryBackend::new(1 << 20);
    let knobs = memory.knobs();
    knobs.pace_us.store(3_000, Ordering::Relaxed);
    let device = device(memory);
    let server = start(&device, &path);
    let mut c = Client::connect(&path).unwrap();
    let begin = Instant::now();
    for _ in 0..5 {
        c.write(0, &[1; 4096], 0).unwrap();
    }
    assert!(begin.elapsed() >= Duration::from_millis(15));
    // Outstanding requests wait concurrently: replies are sent in the order of their due times, not in that
    // of their requests. The first reply is due so late that it comes last also on a machine under load.
    knobs.pace_us.store(LATE_US, Ordering::Relaxed);
    let asked = Instant::now();
    c.socket.write_all(&request(0, 0, 1, 0, 512)).unwrap();
    let reads = || device.counters().by_kind().iter().any(|(name, c)| *name == "read" && c.requests == 1);
    wait_until("the execution of the read", reads);
    knobs.pace_us.store(3_000, Ordering::Relaxed);
    let begin = Instant::now();
    (2..22).for_each(|i| c.socket.write_all(&request(0, 0, i, 0, 512)).unwrap());
    for i in 2..22 {
        assert_eq!(c.reply().unwrap(), (i, 0));
        c.socket.read_exact(&mut [0; 512]).unwrap();
    }
    assert!(begin.elapsed() >= Duration::from_millis(3));
    // An error is not delayed.
    c.socket.write_all(&request(99, 0, 99, 0, 512)).unwrap();
    assert_eq!(c.reply().unwrap(), (99, 22));
    assert_eq!(c.reply().unwrap(), (1, 0));
    c.socket.read_exact(&mut [0; 512]).unwrap();
    assert!(asked.elapsed() >= Duration::from_micros(LATE_US));
    c.bye();
    assert_eq!(server.stop(Duration::from_secs(5)), 0);
}

#[test]
fn background_work_is_done_while_nobody_asks() {
    let memory = MemoryBackend::new(1 << 20);
    let knobs = memory.knobs();
    knobs.work.store(50, Ordering::Relaxed);
    let device = device(memory);
    let maintenance = device.maintain().unwrap();
    wait_until("the end of the work", || knobs.work.load(Ordering::Relaxed) == 0);
    drop(maintenance);
    assert!(device.counters().steps >= 50);
}

#[test]
fn what_clients_do_is_recorded_as_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    for file in ["clients.csv", "clients.csv.zst"] {
        let file = dir.path().join(file).display().to_string();
        let recorder = Some(TraceRecorder::create(&file).unwrap());
        let options = DeviceOptions { recorder, ..DeviceOptions::default() };
        let device = Device::new(Box::new(MemoryBackend::new(8 << 20)), options);
        let server = start(&device, &path);
        let mut c = Client::connect(&path).unwrap();
        c.write(4096, &[1; 8192], 0).unwrap();
        c.write(100, &[1; 4096], 1).unwrap();
        c.read(8192, 512).unwrap();
        c.trim(0, 4096).unwrap();
        c.flush().unwrap();
        c.bye();
        server.stop(Duration::from_secs(1));
        device.close().unwrap();
        let mut workload = Workload::open(&file, &Options::default()).unwrap();
        let (mut got, mut batch) = (Vec::new(), Vec::new());
        while workload.fill(&mut batch).unwrap() {
            got.extend_from_slice(&batch);
        }
        let all: Vec<(ReqOp, u64, u32)> = got.iter().map(|r| (r.op, r.sector.0, r.sectors)).collect();
        let expected = [
            (ReqOp::Write, 8, 16),
            (ReqOp::Write, 0, 9),
            // The flush for FUA is not recorded, since the write carries the flag.
            (ReqOp::Read, 16, 1),
            (ReqOp::Discard, 0, 8),
            (ReqOp::Flush, 0, 0),
        ];
        assert_eq!(all, expected);
        assert!(got[1].hints.has(frit_core::Hints::FUA));
        assert!(got.windows(2).all(|w| w[0].at <= w[1].at));
    }
}

/// A tmpfs of one page per file, or `None` without root. It is unmounted at the end.
struct TinyDisk(PathBuf);

impl TinyDisk {
    fn new(at: &Path) -> Option<TinyDisk> {
        std::fs::create_dir(at).unwrap();
        let mut mount = Command::new("mount");
        let done =
            mount.args(["-t", "tmpfs", "-o", "size=4k", "none"]).arg(at).stderr(Stdio::null()).status();
        done.is_ok_and(|status| status.success()).then(|| TinyDisk(at.to_owned()))
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Clients go on, and the end of the server reports that the trace is incomplete.
#[test]
fn a_recording_that_its_disk_cannot_hold_is_an_error_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = TinyDisk::new(&dir.path().join("disk")) else {
        return;
    };
    let recorder = Some(TraceRecorder::create(disk.0.join("clients.csv").to_str().unwrap()).unwrap());
    let options = DeviceOptions { recorder, ..DeviceOptions::default() };
    let device = Device::new(Box::new(MemoryBackend::new(8 << 20)), options);
    let server = start(&device, &dir.path().join("s"));
    let maintenance = device.maintain().unwrap();
    let mut c = Client::connect(&dir.path().join("s")).unwrap();
    for n in 0..1000 {
        c.write(n * 4096, &[1; 4096], 0).unwrap();
    }
    // The maintenance thread writes the requests, and fails.
    thread::sleep(Duration::from_millis(700));
    c.write(0, &[2; 4096], 0).unwrap();
    c.flush().unwrap();
    c.bye();
    drop(maintenance);
    server.stop(Duration::from_secs(1));
    let error = device.close().unwrap_err().to_string();
    assert!(error.contains("the recording cannot be written") && error.contains("clients.csv"), "{error}");
    device.close().unwrap();
}

/// Waits until each client has written something, also on a busy machine.
fn wait_for_each(counts: &[AtomicU64; 3], over: &AtomicBool) {
    let (before, begun) = (counts.each_ref().map(|count| count.load(Ordering::Relaxed)), Instant::now());
    thread::sleep(Duration::from_millis(250));
    let goes_on = |(count, before): (&AtomicU64, &u64)| count.load(Ordering::Relaxed) >= before + 30;
    while !counts.iter().zip(&before).all(goes_on) {
        // The clients end, or the panic would wait for them.
        over.store(begun.elapsed() > Duration::from_secs(60), Ordering::Relaxed);
        assert!(!over.load(Ordering::Relaxed), "a client does not go on");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Restarts the server while clients reconnect and retry, with a volume of PCM and NAND. All
/// acknowledged writes are complete after each restart.
#[test]
fn restarts_under_clients_that_try_again_lose_nothing() {
    let served = Served::new();
    let (dir, path) = (served.dir.path().join("volume"), served.socket.clone());
    let Served { dir: keep, mut device, mut server, .. } = served;
    let over = AtomicBool::new(false);
    // Acknowledged writes of each client.
    let counts = [const { AtomicU64::new(0) }; 3];
    thread::scope(|s| {
        let writers: Vec<_> = (0..3u64)
            .map(|t| {
                let (path, over, count) = (&path, &over, &counts[t as usize]);
                s.spawn(move || {
                    let mut acknowledged = [0u64; 64];
                    let mut tried = [0u64; 64];
                    let mut client = None;
                    let mut i = 0u64;
                    while !over.load(Ordering::Relaxed) {
                        let Some(c) = client.as_mut() else {
                            client = Client::connect(path).ok();
                            thread::sleep(Duration::from_millis(2));
                            continue;
                        };
                        i += 1;
                        let block = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
                        let at = (block * 3 + t) * 4096;
                        let n = block as usize;
                        tried[n] += 1;
                        let flags = u16::from(i.is_multiple_of(50));
                        let result = c.write(at, &stamped(block, tried[n]), flags).and_then(|()| {
                            acknowledged[n] = tried[n];
                            count.fetch_add(1, Ordering::Relaxed);
                            c.read(at, 4096)
                        });
                        match result {
                            Ok(bytes) => assert_eq!(version(block, &bytes), tried[n]),
                            Err(_) => client = None,
                        }
                    }
                    (t, acknowledged, tried)
                })
            })
            .collect();
        for _ in 0..3 {
            wait_for_each(&counts, &over);
            server.take().unwrap().stop(Duration::from_secs(5));
            device.close().unwrap();
            device = common::device(reopen(&dir));
            server = Some(start(&device, &path));
        }
        wait_for_each(&counts, &over);
        over.store(true, Ordering::Relaxed);
        let mut reader = Client::connect(&path).unwrap();
        for writer in writers {
            let (t, acknowledged, tried) = writer.join().unwrap();
            for block in 0..64u64 {
                let seen = version(block, &reader.read((block * 3 + t) * 4096, 4096).unwrap());
                let n = block as usize;
                assert!((acknowledged[n]..=tried[n]).contains(&seen), "block {block}: {seen}");
            }
        }
        reader.bye();
    });
    server.take().unwrap().stop(Duration::from_secs(5));
    device.close().unwrap();
    drop(keep);
}
