//! Tests of many overlapping requests of one connection, on a disk with a cache: each read returns
//! an allowed version of each sector, and no sector is a mixture of versions.

use crate::common::gate::{Gate, GatedVolume};
use crate::common::{Client, device, reopen, request, start};
use frit_stack::Stack;
use frit_volume::{CreateOptions, Volume};
use proptest::prelude::*;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const CACHE: u16 = 5;
const ZEROES: u16 = 6;

/// Number of sectors that are written, more than the cache holds. Some are hot.
const SECTORS: u64 = 12_000;
const SECTOR: usize = 512;
/// Maximum number of outstanding requests, more than the server hands to the disk at a time.
const WINDOW: usize = 48;
/// Time of the reply of an unanswered request.
const OPEN: u64 = u64::MAX;

/// A version of a sector: the number with which it is filled, and the times of its request and
/// reply.
#[derive(Clone, Copy, Debug)]
struct Version {
    number: u64,
    asked: u64,
    answered: u64,
}

#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    number: u16,
    at: u64,
    sectors: u64,
    asked: u64,
}

/// Model of the contents from the client's view. Each request and each reply advances its logical
/// clock.
struct ContentModel {
    clock: u64,
    versions: Vec<Vec<Version>>,
    under_way: HashMap<u64, PendingRequest>,
}

impl ContentModel {
    fn new() -> ContentModel {
        let zeros = Version { number: 0, asked: 0, answered: 0 };
        ContentModel { clock: 0, versions: vec![vec![zeros]; SECTORS as usize], under_way: HashMap::new() }
    }

    fn ask(&mut self, cookie: u64, number: u16, at: u64, sectors: u64) {
        self.clock += 1;
        let version = if number == WRITE { cookie } else { 0 };
        let asked = PendingRequest { number, at, sectors, asked: self.clock };
        if matches!(number, WRITE | TRIM | ZEROES) {
            for versions in &mut self.versions[at as usize..(at + sectors) as usize] {
                versions.push(Version { number: version, asked: self.clock, answered: OPEN });
            }
        }
        assert!(self.under_way.insert(cookie, asked).is_none());
    }

    fn answer(&mut self, cookie: u64) -> PendingRequest {
        self.clock += 1;
        let asked = self.under_way.remove(&cookie).unwrap();
        if matches!(asked.number, WRITE | TRIM | ZEROES) {
            for versions in &mut self.versions[asked.at as usize..(asked.at + asked.sectors) as usize] {
                let own = versions.iter_mut().find(|v| v.asked == asked.asked).unwrap();
                own.answered = self.clock;
            }
        }
        asked
    }

    /// Checks a sector of a read that was requested at time `asked` and is answered now. A version
    /// is allowed unless another version was written completely between it and the read.
    fn check(&self, sector: u64, asked: u64, bytes: &[u8]) {
        let word = |b: &[u8]| u64::from_be_bytes(b.try_into().unwrap());
        let number = word(&bytes[..8]);
        assert!(bytes.chunks(8).all(|b| word(b) == number), "sector {sector} is mixed");
        let versions = &self.versions[sector as usize];
        let may = |v: &&Version| {
            !versions.iter().any(|w| v.answered < w.asked && w.answered < asked) && v.asked <= self.clock
        };
        let allowed: Vec<u64> = versions.iter().filter(may).map(|v| v.number).collect();
        assert!(
            allowed.contains(&number),
            "sector {sector} has version {number}, allowed: {allowed:?} of {versions:?}"
        );
    }
}

#[derive(Clone, Debug)]
struct Step {
    kind: u8,
    at: u64,
    sectors: u64,
    flags: u16,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = prop_oneof![2 => 0..60_u64, 3 => 0..SECTORS - 64];
    let sectors = prop_oneof![3 => 1..9_u64, 1 => 9..64_u64];
    let step = (any::<u8>(), place, sectors, any::<u8>());
    let step = step.prop_map(|(kind, at, sectors, fua)| {
        // Whole blocks as well as parts of blocks.
        let (at, sectors) =
            if kind % 2 == 0 { (at / 8 * 8, sectors.next_multiple_of(8)) } else { (at, sectors) };
        Step { kind, at, sectors: sectors.min(SECTORS - at), flags: u16::from(fua < 12) }
    });
    prop::collection::vec(step, 600..900)
}

fn volume(dir: &Path, sets: &[&str]) -> Volume {
    let all = [&["media.pcm.chip_bytes=256K", "media.disk.bytes=64M"], sets].concat();
    let sets: Vec<String> = all.iter().map(|s| (*s).to_owned()).collect();
    let stack = Stack::builtin("halo-small", &sets).unwrap();
    Volume::create(dir, &CreateOptions { stack, force: false }).unwrap().close().unwrap();
    reopen(dir)
}

struct SharedState {
    shadow: Mutex<ContentModel>,
    answered: Condvar,
    /// The receiving thread has failed.
    over: AtomicBool,
}

/// Stops the sending thread when the receiving thread panics.
struct StopOnPanic<'a>(&'a SharedState, &'a UnixStream);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.over.store(true, Ordering::SeqCst);
            let _ = self.1.shutdown(Shutdown::Both);
            self.0.answered.notify_all();
        }
    }
}

impl SharedState {
    /// Receives the given number of replies and checks their data.
    fn receive(&self, client: &mut Client, replies: usize) {
        let socket = client.socket.try_clone().unwrap();
        let _over = StopOnPanic(self, &socket);
        for _ in 0..replies {
            let (cookie, error) = client.reply().unwrap();
            assert_eq!(error, 0, "request {cookie}");
            let len = match self.shadow.lock().unwrap().under_way.get(&cookie) {
                Some(a) if a.number == READ => a.sectors as usize * SECTOR,
                Some(_) => 0,
                None => panic!("reply without a request: {cookie}"),
            };
            let mut data = vec![0; len];
            client.socket.read_exact(&mut data).unwrap();
            let mut shadow = self.shadow.lock().unwrap();
            let asked = shadow.answer(cookie);
            for (i, sector) in data.chunks(SECTOR).enumerate() {
                shadow.check(asked.at + i as u64, asked.asked, sector);
            }
            self.answered.notify_all();
        }
    }

    /// Sends all requests, with at most `WINDOW` outstanding at a time.
    fn send(&self, mut socket: impl Write, steps: &[Step]) {
        for (i, step) in steps.iter().enumerate() {
            let cookie = i as u64 + 1;
            let number = match step.kind {
                0..=99 => READ,
                100..=219 => WRITE,
                220..=229 => ZEROES,
                230..=238 => TRIM,
                239..=247 => CACHE,
                _ => FLUSH,
            };
            let (at, sectors) = if number == FLUSH { (0, 0) } else { (step.at, step.sectors) };
            let mut shadow = self.shadow.lock().unwrap();
            while shadow.under_way.len() >= WINDOW {
                let poll = Duration::from_millis(50);
                shadow = self.answered.wait_timeout(shadow, poll).unwrap().0;
                if self.over.load(Ordering::SeqCst) {
                    return;
                }
            }
            shadow.ask(cookie, number, at, sectors);
            drop(shadow);
            // With NO_HOLE the zeros are written, otherwise the range is discarded.
            let keep = if number == ZEROES && step.kind % 4 < 2 { 2 } else { 0 };
            let len = (sectors as usize * SECTOR) as u32;
            let mut bytes = request(number, step.flags | keep, cookie, at * SECTOR as u64, len);
            if number == WRITE {
                (0..len / 8).for_each(|_| bytes.extend(cookie.to_be_bytes()));
            }
            if socket.write_all(&bytes).is_err() {
                return;
            }
        }
    }
}

/// Executes all steps over one connection, and checks the contents of the volume after it was
/// closed.
fn run(sets: &[&str], jitter_us: u64, steps: &[Step]) {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("volume");
    let device = device(GatedVolume(volume(&at, sets), Arc::new(Gate::with_jitter(jitter_us))));
    let keeper = device.maintain().unwrap();
    let socket = dir.path().join("nbd.sock");
    let server = start(&device, &socket);
    let mut client = Client::connect(&socket).unwrap();
    client.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let link = SharedState {
        shadow: Mutex::new(ContentModel::new()),
        answered: Condvar::new(),
        over: AtomicBool::new(false),
    };
    let sending = client.socket.try_clone().unwrap();
    thread::scope(|s| {
        s.spawn(|| link.send(&sending, steps));
        link.receive(&mut client, steps.len());
    });
    client.bye();
    assert_eq!(server.stop(Duration::from_secs(5)), 0);
    drop(keeper);
    device.close().unwrap();
    let mut volume = reopen(&at);
    assert!(volume.recovery().recovery.clean);
    let mut all = vec![0; SECTORS as usize * SECTOR];
    volume.read(0, &mut all).unwrap();
    let shadow = link.shadow.into_inner().unwrap();
    for (i, sector) in all.chunks(SECTOR).enumerate() {
        shadow.check(i as u64, shadow.clock, sector);
    }
    volume.close().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_read_sees_a_version_that_it_may(
        sets in prop::sample::select(vec![
            &["cache.policy=halo"][..],
            &["cache.policy=lru", "cache.read_caching=true", "cache.dirty_low=0"],
            &["cache.mode=write-through", "cache.read_caching=true"],
            &["cache.mode=write-around"],
            &["cache.mode=write-around", "cache.read_caching=true"],
            &["cache.bypass_bytes=4K", "cache.read_caching=true", "cache.policy=sweep"],
        ]),
        jitter_us in prop::sample::select(vec![1_u64, 100, 400]),
        steps in steps(),
    ) {
        run(sets, jitter_us, &steps);
    }
}
