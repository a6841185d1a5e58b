//! Tests of one client of a disk with a cache: requests that wait for the disk do not delay others
//! of the same connection.

use crate::common::gate::{Access, Gate, GatedVolume};
use crate::common::{Client, device, reopen, request, start};
use frit_serve::Device;
use frit_serve::nbd::{NbdServer, fuzz};
use frit_stack::Stack;
use frit_volume::{CreateOptions, Volume};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const CACHE: u16 = 5;
const FUA: u16 = 1;

/// Address from which blocks are not cached in the tests with a gate.
const FAR: u64 = 8 << 20;

/// Creates a volume with a cache of about 2 MiB and a disk of 64 MiB.
fn small(dir: &Path, sets: &[&str]) -> Volume {
    let all = [&["media.pcm.chip_bytes=256K", "media.disk.bytes=64M"], sets].concat();
    let sets: Vec<String> = all.iter().map(|s| (*s).to_owned()).collect();
    created(dir, Stack::builtin("halo-small", &sets).unwrap())
}

fn created(dir: &Path, stack: Stack) -> Volume {
    Volume::create(dir, &CreateOptions { stack, force: false }).unwrap().close().unwrap();
    reopen(dir)
}

/// A served volume whose disk is behind a gate.
struct Gated {
    gate: Arc<Gate>,
    device: Arc<Device>,
    server: Option<NbdServer>,
    socket: PathBuf,
    dir: tempfile::TempDir,
}

impl Gated {
    fn new(sets: &[&str]) -> Gated {
        Gated::with(Gate::default(), sets)
    }

    fn with(gate: Gate, sets: &[&str]) -> Gated {
        let dir = tempfile::tempdir().unwrap();
        let volume = small(&dir.path().join("volume"), sets);
        Gated::serve(gate, volume, dir)
    }

    /// Serves a volume of several layers. What the top layer defers passes the gate.
    fn over(stack: &str) -> Gated {
        let dir = tempfile::tempdir().unwrap();
        let stack = Stack::parse("tree", stack, &[]).unwrap();
        let volume = created(&dir.path().join("volume"), stack);
        Gated::serve(Gate::default(), volume, dir)
    }

    fn serve(gate: Gate, volume: Volume, dir: tempfile::TempDir) -> Gated {
        let gate = Arc::new(gate);
        let device = device(GatedVolume(volume, Arc::clone(&gate)));
        let socket = dir.path().join("nbd.sock");
        let server = Some(start(&device, &socket));
        Gated { gate, device, server, socket, dir }
    }

    /// Connects a client with a timeout for replies.
    fn client(&self) -> Client {
        let client = Client::connect(&self.socket).unwrap();
        client.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        client
    }

    /// Shuts down in order, and reopens the volume.
    fn end(mut self) -> (Volume, tempfile::TempDir) {
        assert_eq!(self.server.take().unwrap().stop(Duration::from_secs(5)), 0);
        self.device.close().unwrap();
        let volume = reopen(&self.dir.path().join("volume"));
        assert!(volume.recovery().recovery.clean, "the volume was closed in order");
        (volume, self.dir)
    }
}

trait More {
    fn send(&mut self, number: u16, flags: u16, cookie: u64, at: u64, len: u32);
    fn data(&mut self, len: usize) -> Vec<u8>;
}

impl More for Client {
    /// Sends a request. The bytes of a write are equal to its cookie.
    fn send(&mut self, number: u16, flags: u16, cookie: u64, at: u64, len: u32) {
        let mut bytes = request(number, flags, cookie, at, len);
        if number == WRITE {
            bytes.resize(bytes.len() + len as usize, cookie as u8);
        }
        self.socket.write_all(&bytes).unwrap();
    }

    fn data(&mut self, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        self.socket.read_exact(&mut data).unwrap();
        data
    }
}

#[test]
fn hits_and_cached_writes_overtake_a_miss() {
    let served = Gated::new(&[]);
    let mut c = served.client();
    c.write(0, &[7; 8192], 0).unwrap();
    // The first flush after opening always accesses the disk.
    c.flush().unwrap();
    let before = served.gate.done();
    served.gate.close();
    c.send(READ, 0, 1, FAR, 4096);
    served.gate.wait_for(1);
    c.send(READ, 0, 2, 0, 8192);
    c.send(WRITE, 0, 3, 16384, 4096);
    c.send(READ, 0, 4, 16384, 4096);
    c.send(CACHE, 0, 5, 0, 4096);
    c.send(WRITE, FUA, 6, 4096, 512);
    c.send(FLUSH, 0, 7, 0, 0);
    c.send(READ, 0, 8, 4000, 200);
    // Half of this range is cached; the next one is a part of a sector.
    c.send(READ, 0, 9, 4096, 8192);
    c.send(READ, 0, 10, FAR - 100, 50);
    assert_eq!(c.reply().unwrap(), (2, 0));
    assert_eq!(c.data(8192), [7; 8192]);
    assert_eq!(c.reply().unwrap(), (3, 0));
    assert_eq!(c.reply().unwrap(), (4, 0));
    assert_eq!(c.data(4096), [3; 4096]);
    let mut quick = Vec::new();
    for _ in 0..4 {
        let (cookie, error) = c.reply().unwrap();
        assert_eq!(error, 0);
        if cookie == 8 {
            assert_eq!(c.data(200), [&[7; 96][..], &[6; 104]].concat());
        }
        quick.push(cookie);
    }
    quick.sort_unstable();
    assert_eq!(quick, [5, 6, 7, 8], "the flush does not wait for the disk");
    // The disk has executed nothing in the meantime.
    served.gate.wait_for(3);
    assert_eq!(served.gate.done(), before);
    served.gate.open();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (cookie, error) = c.reply().unwrap();
        assert_eq!(error, 0);
        match cookie {
            1 => assert_eq!(c.data(4096), [0; 4096]),
            9 => assert_eq!(c.data(8192), [&[6; 512][..], &[7; 3584], &[0; 4096]].concat()),
            _ => assert_eq!(c.data(50), [0; 50]),
        }
        seen.push(cookie);
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 9, 10]);
    c.bye();
    served.end();
}

const DISKS: &str = "[media.a]\nprofile = \"st3500320as-2008\"\nbytes = \"64M\"\n\
                     [media.b]\nprofile = \"st3500320as-2008\"\nbytes = \"64M\"\n";

#[test]
fn disks_below_a_composer_serve_their_requests_together() {
    for kind in ["mirror", "stripe", "concat"] {
        // The reads of disks in files end in the page cache; layers that do not defer always have to be
        // waited for.
        let side = |i| format!("[{i}{i}]\nkind = \"compress\"\ndevice = \"{i}\"\nsize = \"32M\"\n");
        let top = format!("[top]\nkind = \"{kind}\"\ndevices = [\"aa\", \"bb\"]\n{}{}", side('a'), side('b'));
        let served = Gated::over(&format!("{DISKS}{top}"));
        let mut c = served.client();
        for i in 0..8 {
            c.write(i << 20, &[i as u8 + 1; 4096], 0).unwrap();
        }
        served.gate.close();
        for i in 0..8 {
            c.send(READ, 0, i, i << 20, 4096);
        }
        served.gate.wait_for(8);
        served.gate.open();
        for _ in 0..8 {
            let (cookie, error) = c.reply().unwrap();
            assert_eq!(error, 0);
            assert_eq!(c.data(4096), [cookie as u8 + 1; 4096], "{kind}");
        }
        // A deferred read that fails is made again in place.
        served.gate.break_reads(true);
        assert_eq!(c.read(3 << 20, 4096).unwrap(), [4; 4096]);
        c.bye();
        served.end();
    }
}

#[test]
fn hits_of_a_cache_overtake_a_miss_in_the_layers_below() {
    let cache = "[media.pcm]\nprofile = \"pcm-halo-2012\"\nchip_bytes = \"256K\"\n";
    let below = [
        "[lower]\nkind = \"mirror\"\ndevices = [\"a\", \"b\"]\n",
        // A layer that does not defer has a lock of its own too.
        "[lower]\nkind = \"compress\"\ndevice = \"pair\"\nsize = \"64M\"\n[pair]\nkind = \"concat\"\ndevices = [\"a\", \"b\"]\n",
        "[lower]\nkind = \"delay\"\ndevice = \"pair\"\nread_us = 100\n[pair]\nkind = \"concat\"\ndevices = [\"a\", \"b\"]\n",
    ];
    for lower in below {
        let served = Gated::over(&format!("{cache}{DISKS}[cache]\ndisk = \"lower\"\n{lower}"));
        let mut c = served.client();
        c.write(0, &[7; 8192], 0).unwrap();
        c.flush().unwrap();
        served.gate.close();
        for i in 0..4 {
            c.send(READ, 0, 1 + i, FAR + (i << 20), 4096);
        }
        served.gate.wait_for(4);
        // Twice, so that the second reply shows that the server did not wait for anything.
        for cookie in [10, 11] {
            c.send(READ, 0, cookie, 0, 8192);
            assert_eq!(c.reply().unwrap(), (cookie, 0), "{lower}");
            assert_eq!(c.data(8192), [7; 8192]);
        }
        served.gate.open();
        for _ in 0..4 {
            assert_eq!(c.reply().unwrap().1, 0);
            assert_eq!(c.data(4096), [0; 4096]);
        }
        // More than the cache holds: its writebacks go through the lower layer.
        for i in 0..1024 {
            c.write(i * 8192, &[i as u8; 8192], 0).unwrap();
        }
        for i in (0..1024).step_by(37) {
            assert_eq!(c.read(i * 8192, 8192).unwrap(), [i as u8; 8192], "{lower}");
        }
        c.flush().unwrap();
        c.bye();
        let (mut volume, _dir) = served.end();
        let mut back = [0; 8192];
        volume.read(100 * 8192, &mut back).unwrap();
        assert_eq!(back, [100; 8192]);
    }
}

#[test]
fn misses_of_one_client_are_at_the_disk_together() {
    let served = Gated::new(&[]);
    let mut c = served.client();
    for round in 0..3 {
        served.gate.close();
        for i in 0..40 {
            c.send(READ, 0, i, FAR + i * 8192, 4096);
        }
        // The server hands this many requests to the disk at a time.
        served.gate.wait_for(32);
        served.gate.open();
        let mut seen: Vec<u64> = (0..40)
            .map(|_| {
                let (cookie, error) = c.reply().unwrap();
                assert_eq!((error, c.data(4096)), (0, vec![0; 4096]), "round {round}");
                cookie
            })
            .collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..40));
    }
    // The limit in bytes allows two reads of 12 MiB at a time. CACHE counts as no bytes.
    served.gate.close();
    for i in 0..3 {
        c.send(CACHE, 0, 100 + i, FAR, 12 << 20);
    }
    served.gate.wait_for(3);
    served.gate.open();
    (0..3).for_each(|_| assert_eq!(c.reply().unwrap().1, 0));
    served.gate.close();
    for i in 0..3 {
        c.send(READ, 0, i, FAR, 12 << 20);
    }
    served.gate.wait_for(2);
    served.gate.open();
    for _ in 0..3 {
        assert_eq!(c.reply().unwrap().1, 0);
        assert!(c.data(12 << 20).iter().all(|&b| b == 0));
    }
    c.bye();
    served.end();
}

#[test]
fn a_flush_is_answered_when_what_was_answered_before_is_synced() {
    let served = Gated::new(&["cache.mode=write-around"]);
    let mut c = served.client();
    // A write of a part of a block that is not cached bypasses the cache.
    c.write(FAR, &[5; 4096], 0).unwrap();
    let after = |done: &[Access], access: Access| done.iter().rposition(|a| *a == access);
    assert_eq!(served.gate.done(), [Access::Write(FAR)]);
    served.gate.close();
    c.send(FLUSH, 0, 1, 0, 0);
    served.gate.wait_for(1);
    c.send(WRITE, 0, 2, FAR + 8192, 4096);
    c.send(WRITE, FUA, 3, FAR + 16384, 4096);
    served.gate.wait_for(3);
    // A request out of range is answered at once.
    c.send(READ, 0, 4, 64 << 20, 512);
    assert_eq!(c.reply().unwrap(), (4, 22), "no other request was answered before");
    served.gate.open();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let (cookie, error) = c.reply().unwrap();
        assert_eq!(error, 0);
        let done = served.gate.done();
        let sync = after(&done, Access::Sync);
        match cookie {
            1 => assert!(sync > after(&done, Access::Write(FAR))),
            2 => assert!(done.contains(&Access::Write(FAR + 8192))),
            _ => assert!(sync > after(&done, Access::Write(FAR + 16384)), "{done:?}"),
        }
        seen.push(cookie);
    }
    c.flush().unwrap();
    let done = served.gate.done();
    assert!(after(&done, Access::Sync) > after(&done, Access::Write(FAR + 8192)), "{done:?}");
    for (at, is) in [(FAR, 5), (FAR + 8192, 2), (FAR + 16384, 3)] {
        assert_eq!(c.read(at, 4096).unwrap(), vec![is; 4096]);
    }
    c.bye();
    served.end();
}

/// A flush of one client fails while it is in flight. The flush of another client, which began in
/// the meantime, covers the same writes. It must fail as well, although the disk reports the error
/// only once.
#[test]
fn a_flush_does_not_overtake_one_that_fails() {
    let mut served = Gated::new(&["cache.mode=write-around"]);
    let (mut a, mut b) = (served.client(), served.client());
    a.write(FAR, &[1; 4096], 0).unwrap();
    served.gate.close_for_syncs();
    a.send(FLUSH, 0, 1, 0, 0);
    served.gate.wait_for(1);
    b.write(FAR + 8192, &[2; 4096], 0).unwrap();
    b.send(FLUSH, 0, 2, 0, 0);
    b.send(READ, 0, 3, 64 << 20, 512);
    assert_eq!(b.reply().unwrap(), (3, 22));
    // Gives the second flush time to proceed as far as it can.
    thread::sleep(Duration::from_millis(30));
    served.gate.open();
    assert_eq!(a.reply().unwrap(), (1, 5));
    assert_eq!(b.reply().unwrap(), (2, 5));
    assert_eq!(b.read(FAR + 8192, 4096).unwrap(), [2; 4096]);
    a.bye();
    b.bye();
    assert_eq!(served.server.take().unwrap().stop(Duration::from_secs(5)), 0);
    served.device.close().unwrap_err();
}

fn wait_until(what: &str, mut f: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !f() {
        assert!(Instant::now() < until, "timeout while waiting for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn what_is_under_way_is_finished_when_a_client_leaves() {
    let served = Gated::new(&["cache.mode=write-around"]);
    // A client that shuts down only its sending side receives all its replies.
    for goodbye in [false, true] {
        let mut c = served.client();
        served.gate.close();
        for i in 0..6 {
            c.send(READ, 0, i, FAR + i * 8192, 4096);
            c.send(WRITE, 0, 10 + i, FAR + (1 << 20) + i * 8192, 4096);
        }
        c.send(TRIM, 0, 20, FAR + (2 << 20), 65536);
        served.gate.wait_for(13);
        if goodbye {
            c.send(2, 0, 0, 0, 0);
        } else {
            c.socket.shutdown(Shutdown::Write).unwrap();
        }
        served.gate.open();
        for _ in 0..13 {
            let (cookie, error) = c.reply().unwrap();
            assert_eq!(error, 0);
            if cookie < 10 {
                c.data(4096);
            }
        }
        assert_eq!(c.socket.read(&mut [0]).unwrap(), 0, "then the connection is closed");
    }
    // The writes of a client that has disconnected are completed.
    let mut c = served.client();
    served.gate.close();
    for i in 0..6 {
        c.send(READ, 0, i, FAR + i * 8192, 4096);
        c.send(WRITE, 0, 30 + i, FAR + (3 << 20) + i * 8192, 4096);
    }
    served.gate.wait_for(12);
    drop(c);
    served.gate.open();
    wait_until("the end of the client", || served.device.clients().open() == 0);
    let mut c = served.client();
    for i in 0..6 {
        assert_eq!(c.read(FAR + (1 << 20) + i * 8192, 4096).unwrap(), vec![10 + i as u8; 4096]);
        assert_eq!(c.read(FAR + (3 << 20) + i * 8192, 4096).unwrap(), vec![30 + i as u8; 4096]);
    }
    c.bye();
    served.end();
}

#[test]
fn stopping_answers_what_is_at_the_disk_and_cuts_off_who_does_not_listen() {
    let mut served = Gated::new(&[]);
    let (mut c, mut deaf) = (served.client(), served.client());
    for i in 0..16 {
        deaf.send(READ, 0, i, FAR, 1 << 20);
    }
    // All reads are executed, but the client accepts no reply; the first one fills the socket.
    wait_until("the reads", || served.device.counters().read.requests == 16);
    served.gate.close();
    for i in 0..5 {
        c.send(READ, 0, i, FAR + i * 8192, 4096);
    }
    served.gate.wait_for(5);
    let server = served.server.take().unwrap();
    let stopper = thread::spawn(move || server.stop(Duration::from_millis(300)));
    wait_until("the end of listening", || UnixStream::connect(&served.socket).is_err());
    served.gate.open();
    for _ in 0..5 {
        assert_eq!(c.reply().unwrap().1, 0);
        c.data(4096);
    }
    assert_eq!(c.socket.read(&mut [0]).unwrap(), 0, "then the server closes the connection");
    assert_eq!(stopper.join().unwrap(), 1, "the client that does not read was aborted");
    served.device.close().unwrap();
}

#[test]
fn a_disk_that_fails_is_told_to_who_needs_it_only() {
    let served = Gated::new(&[]);
    let mut c = served.client();
    c.write(0, &[1; 4096], 0).unwrap();
    served.gate.break_reads(true);
    for i in 0..8 {
        c.send(READ, 0, i, FAR + i * 8192, 4096);
        c.send(READ, 0, 100 + i, 0, 4096);
    }
    let mut errors = 0;
    for _ in 0..16 {
        match c.reply().unwrap() {
            (100.., 0) => assert_eq!(c.data(4096), [1; 4096]),
            (0..8, 5) => errors += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(errors, 8);
    // The error has no other consequences.
    c.write(4096, &[2; 4096], FUA).unwrap();
    served.gate.break_reads(false);
    assert_eq!(c.read(FAR, 4096).unwrap(), [0; 4096]);
    c.bye();
    served.end();
}

/// SplitMix64 (Steele et al., OOPSLA 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[test]
fn wrong_bytes_do_no_harm_where_threads_answer() {
    let mut served = Gated::with(Gate::with_jitter(50), &[]);
    let seeds = fuzz::seeds();
    let mut state = 77;
    let mut transmitting = 0;
    for i in 0..400 {
        let mut bytes = seeds[i % seeds.len()].clone();
        fuzz::mutate(&mut bytes, &mut |below| next(&mut state) % below);
        let socket = UnixStream::connect(&served.socket).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let requests = || served.device.counters().by_kind().iter().map(|(_, t)| t.requests).sum::<u64>();
        let before = requests();
        let mut replies = Vec::new();
        thread::scope(|s| {
            s.spawn(|| {
                // The server may close the connection in the middle.
                let _ = (&socket).write_all(&bytes[1..]);
                let _ = socket.shutdown(Shutdown::Write);
            });
            match (&socket).read_to_end(&mut replies) {
                Err(e) if e.kind() != std::io::ErrorKind::ConnectionReset => panic!("{e}"),
                _ => {}
            }
        });
        transmitting += usize::from(requests() > before);
        // A session may have completed the handshake without a complete reply.
        fuzz::check_replies(&replies, true);
    }
    assert!(transmitting > 100);
    assert_eq!(served.server.take().unwrap().stop(Duration::from_secs(5)), 0);
    served.device.close().unwrap();
}
