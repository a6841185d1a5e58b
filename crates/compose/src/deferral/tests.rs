//! Deferred requests, whose accesses are made late, in any order, and fail: contents are those of a
//! plain array.

use crate::compress::{Compress, CompressConfig};
use crate::concat::{Concat, ConcatConfig};
use crate::mirror::{Mirror, MirrorConfig};
use crate::segments::{Segments, SegmentsConfig};
use crate::stripe::{Stripe, StripeConfig};
use crate::testing::{TestDisk, TestObjects};
use crate::thin::{Thin, ThinConfig};
use crate::{Composed, Devices, NestedLayer};
use frit_core::{
    BlockDevice, Buffer, Deferred, Error, Hints, ReadTarget, RequestIntent, Sector, Sink, StackDevice,
    WriteData,
};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

const SECTORS: u64 = 1024;
const KIB: usize = 1 << 10;

type Layer = Box<dyn StackDevice>;
type Disks = Vec<TestDisk>;

fn sink() -> Sink {
    Sink::untimed()
}

fn boxed(disks: &[TestDisk]) -> Vec<Box<dyn BlockDevice>> {
    disks.iter().map(|d| Box::new(d.clone()) as Box<dyn BlockDevice>).collect()
}

fn stripe(devices: Vec<Box<dyn BlockDevice>>) -> Layer {
    let config = StripeConfig { chunk: 4096 };
    Box::new(Composed::new(Stripe::new(config, Devices::new(devices)).unwrap()))
}

fn mirror(devices: Vec<Box<dyn BlockDevice>>, identity: u64) -> Layer {
    let config = MirrorConfig { region: 64 << 10, ..MirrorConfig::default() };
    Box::new(Composed::new(Mirror::new(config, devices, identity).unwrap()))
}

/// A formatted layer of a kind over disks in memory.
fn layer(kind: &str) -> (Disks, TestObjects, Layer) {
    let disks: Disks = (0..4).map(|_| TestDisk::new(1024 * KIB)).collect();
    let objects = TestObjects::new(16 << 10, 256);
    let mut layer: Layer = match kind {
        "stripe" => stripe(boxed(&disks)),
        "concat" => Box::new(Composed::new(Concat::new(ConcatConfig {}, Devices::new(boxed(&disks))))),
        "mirror" => mirror(boxed(&disks[..2]), 1),
        "thin" => {
            let config = ThinConfig { size: 512 << 10, chunk: 4096, ..ThinConfig::default() };
            Box::new(Composed::new(Thin::new(config, Devices::new(boxed(&disks[..1]))).unwrap()))
        }
        "segments" => {
            let config = SegmentsConfig { over_provisioning: 50, ..SegmentsConfig::default() };
            let map = Devices::new(boxed(&disks[..1]));
            Box::new(Composed::new(Segments::new(config, map, Box::new(objects.clone())).unwrap()))
        }
        // Layers with locks of their own below a layer that defers.
        "stripe-mirrors" => {
            let sides = (0..2).map(|i| {
                let side = mirror(boxed(&disks[2 * i..2 * i + 2]), i as u64 + 1);
                Box::new(NestedLayer::new("side", i as u16 + 1, side)) as Box<dyn BlockDevice>
            });
            stripe(sides.collect())
        }
        _ => unreachable!("{kind}"),
    };
    layer.format(&mut sink()).unwrap();
    assert!(layer.info().sectors >= SECTORS, "{kind}");
    // Disks begin with other contents than zeros.
    let zeros = vec![0; SECTORS as usize * 512];
    layer.write(&mut sink(), Sector(0), WriteData::Bytes(&zeros), Hints::NONE).unwrap();
    layer.flush(&mut sink()).unwrap();
    assert!(layer.defer(true), "{kind}");
    (disks, objects, layer)
}

const KINDS: [&str; 6] = ["stripe", "concat", "mirror", "thin", "segments", "stripe-mirrors"];

/// A request whose accesses are not made yet.
struct Open {
    at: u64,
    left: Deferred,
    request: Request,
}

enum Request {
    /// The buffer, and the expected value of each sector.
    Read(Vec<u8>, Vec<u8>),
    Write(Vec<u8>),
    Discard(u64),
}

struct Run {
    layer: Layer,
    disks: Disks,
    objects: TestObjects,
    /// For each sector, the byte that fills it.
    model: Vec<u8>,
    open: Vec<Open>,
    stamp: u8,
}

#[derive(Clone, Debug)]
enum Step {
    Read(u64, u64),
    Write(u64, u64),
    Discard(u64, u64),
    Flush,
    Idle,
    /// Makes the accesses of one request.
    Finish(usize),
    /// What a disk reads is in memory from now on, or no longer.
    InMemory(usize, bool),
    /// A deferred access fails, after this many others.
    Fail(usize, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let range = || (0..SECTORS, prop_oneof![1..4u64, Just(8), 1..100u64]);
    let clipped = |(at, n): (u64, u64)| (at, n.min(SECTORS - at));
    prop_oneof![
        6 => range().prop_map(move |r| { let (at, n) = clipped(r); Step::Read(at, n) }),
        6 => range().prop_map(move |r| { let (at, n) = clipped(r); Step::Write(at, n) }),
        1 => range().prop_map(move |r| { let (at, n) = clipped(r); Step::Discard(at, n) }),
        1 => Just(Step::Flush),
        1 => Just(Step::Idle),
        6 => any::<usize>().prop_map(Step::Finish),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(disk, is)| Step::InMemory(disk, is)),
        1 => (any::<usize>(), 0..3u32).prop_map(|(disk, n)| Step::Fail(disk, n)),
    ]
}

impl Run {
    fn new(kind: &str) -> Run {
        let (disks, objects, layer) = layer(kind);
        Run { layer, disks, objects, model: vec![0; SECTORS as usize], open: Vec::new(), stamp: 0 }
    }

    /// Returns `true` if a request in flight is in the way of another one.
    fn conflicts(&self, at: u64, sectors: u64, writes: bool) -> bool {
        self.open.iter().any(|open| {
            let (len, changes) = match &open.request {
                Request::Read(_, expected) => (expected.len() as u64, false),
                Request::Write(data) => (data.len() as u64 / 512, true),
                Request::Discard(n) => (*n, true),
            };
            (writes || changes) && at < open.at + len && open.at < at + sectors
        })
    }

    /// Makes the accesses of a request in flight.
    fn finish(&mut self, i: usize) {
        let n = i % self.open.len();
        let Open { at, left, mut request } = self.open.swap_remove(n);
        let mut buffer = match &mut request {
            Request::Read(bytes, _) => Buffer::In(bytes),
            Request::Write(data) => Buffer::Out(data),
            Request::Discard(_) => Buffer::None,
        };
        let outcome = left.run(&mut buffer);
        self.layer.settle(&mut sink(), &left, outcome, &mut buffer).unwrap();
        if let Request::Read(bytes, expected) = &request {
            check(at, bytes, expected);
        }
    }

    /// Makes a request until no other one is in its way, and keeps what it defers.
    fn request(&mut self, at: u64, sectors: u64, mut request: Request) {
        let writes = !matches!(request, Request::Read(..));
        loop {
            let conflict = self.conflicts(at, sectors, writes);
            let made = match &mut request {
                Request::Read(bytes, _) => {
                    self.layer.read(&mut sink(), Sector(at), ReadTarget::Bytes(bytes), Hints::NONE)
                }
                Request::Write(data) => {
                    self.layer.write(&mut sink(), Sector(at), WriteData::Bytes(data), Hints::NONE)
                }
                Request::Discard(n) => self.layer.discard(&mut sink(), Sector(at), *n),
            };
            match made {
                Err(Error::WouldBlock) => {
                    assert!(conflict, "nothing is in the way of {sectors} sectors at {at}");
                    self.finish(0);
                }
                made => {
                    made.unwrap();
                    assert!(!conflict, "{sectors} sectors at {at} change under a request in flight");
                    break;
                }
            }
        }
        if let Some(left) = self.layer.deferred() {
            self.open.push(Open { at, left, request });
        } else if let Request::Read(bytes, expected) = &request {
            check(at, bytes, expected);
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Read(at, n) => {
                // The contents of the buffer are never those of a sector.
                let bytes = vec![0xee; n as usize * 512];
                let expected = self.model[at as usize..(at + n) as usize].to_vec();
                self.request(at, n, Request::Read(bytes, expected));
            }
            Step::Write(at, n) => {
                self.stamp = self.stamp % 200 + 1;
                self.model[at as usize..(at + n) as usize].fill(self.stamp);
                self.request(at, n, Request::Write(vec![self.stamp; n as usize * 512]));
            }
            Step::Discard(at, n) => {
                self.model[at as usize..(at + n) as usize].fill(0);
                self.request(at, n, Request::Discard(n));
            }
            Step::Flush => self.layer.flush(&mut sink()).unwrap(),
            Step::Idle => drop(self.layer.step(&mut sink(), 32).unwrap()),
            Step::Finish(_) if self.open.is_empty() => {}
            Step::Finish(i) => self.finish(i),
            Step::InMemory(disk, is) => self.disks[disk % 4].lock().in_memory = is,
            Step::Fail(disk, n) => {
                self.disks[disk % 4].lock().deferred_left = Some(n);
                self.objects.lock().next_get_fails = true;
            }
        }
    }

    /// Completes all requests, and compares everything.
    fn end(mut self) {
        while !self.open.is_empty() {
            self.finish(0);
        }
        self.layer.defer(false);
        let mut all = vec![0; SECTORS as usize * 512];
        self.layer.read(&mut sink(), Sector(0), ReadTarget::Bytes(&mut all), Hints::NONE).unwrap();
        check(0, &all, &self.model);
        self.layer.halt(&mut sink()).unwrap();
    }
}

fn check(at: u64, bytes: &[u8], expected: &[u8]) {
    for (i, (sector, byte)) in bytes.chunks(512).zip(expected).enumerate() {
        assert!(sector.iter().all(|b| b == byte), "sector {}: {}, expected {byte}", at + i as u64, sector[0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn contents_are_those_of_a_plain_array(
        kind in prop::sample::select(KINDS.to_vec()),
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut run = Run::new(kind);
        steps.iter().for_each(|s| run.step(s));
        run.end();
    }
}

#[test]
fn reads_of_all_kinds_are_deferred() {
    for kind in KINDS {
        let mut run = Run::new(kind);
        run.step(&Step::Write(0, 8 * 16));
        while !run.open.is_empty() {
            run.finish(0);
        }
        run.step(&Step::Flush);
        assert!(run.layer.would_block(RequestIntent::Read, Sector(0), 8));
        run.step(&Step::Read(0, 8));
        run.step(&Step::Read(8, 8));
        assert_eq!(run.open.len(), 2, "{kind}: two reads in flight");
        run.end();
    }
}

#[test]
fn reads_from_memory_are_not_deferred() {
    for kind in ["stripe", "concat", "mirror", "thin", "stripe-mirrors"] {
        let mut run = Run::new(kind);
        run.step(&Step::Write(0, 64));
        while !run.open.is_empty() {
            run.finish(0);
        }
        for disk in 0..4 {
            run.step(&Step::InMemory(disk, true));
        }
        // The layers below learn it first.
        let most = 4 * u64::from(super::IMMEDIATE);
        let waits = |run: &Run| run.layer.would_block(RequestIntent::Read, Sector(0), 8);
        for i in 0..most {
            assert!(waits(&run) || i >= super::IMMEDIATE.into(), "{kind}");
            run.step(&Step::Read(i % 64, 1));
            while !run.open.is_empty() {
                run.finish(0);
            }
        }
        assert!(run.open.is_empty() && !run.layer.would_block(RequestIntent::Read, Sector(0), 8), "{kind}");
        for disk in 0..4 {
            run.step(&Step::InMemory(disk, false));
        }
        run.step(&Step::Read(0, 1));
        assert!(run.open.len() == 1 && run.layer.would_block(RequestIntent::Read, Sector(0), 8), "{kind}");
        run.end();
    }
}

#[test]
fn a_read_that_fails_is_made_again_in_place() {
    let mut run = Run::new("segments");
    run.step(&Step::Write(0, 8 * 16));
    run.step(&Step::Flush);
    let before = run.objects.lock().gets;
    run.step(&Step::Fail(0, 0));
    run.step(&Step::Read(0, 8));
    assert_eq!(run.objects.lock().gets, before + 1, "the emission of the deferred get");
    run.finish(0);
    let (gets, deferred) = {
        let o = run.objects.lock();
        (o.gets, o.deferred_gets)
    };
    assert_eq!((gets, deferred), (before + 2, 1));
    run.end();
}

#[test]
fn a_deferred_read_that_finds_other_bytes_is_made_again() {
    let mut run = Run::new("segments");
    run.step(&Step::Write(0, 8));
    run.step(&Step::Flush);
    run.step(&Step::Read(0, 8));
    let Some(Open { left, request: Request::Read(mut bytes, expected), .. }) = run.open.pop() else {
        unreachable!("a read")
    };
    let outcome = left.run(&mut Buffer::In(&mut bytes));
    // Bytes that are damaged on the way.
    bytes[100] ^= 1;
    run.layer.settle(&mut sink(), &left, outcome, &mut Buffer::In(&mut bytes)).unwrap();
    check(0, &bytes, &expected);
    run.end();
}

#[test]
fn layers_that_look_at_bytes_do_not_defer() {
    let disk = TestDisk::new(1024 * KIB);
    let config = CompressConfig { size: 512 << 10, ..CompressConfig::default() };
    let devices = Devices::new(boxed(&[disk]));
    let mut l: Layer = Box::new(Composed::new(Compress::new(config, devices).unwrap()));
    l.format(&mut sink()).unwrap();
    assert!(!l.defer(true) && !l.would_block(RequestIntent::Read, Sector(0), 8));
}

#[test]
fn threads_share_a_layer_with_its_own_lock() {
    let (_, _, layer) = layer("stripe-mirrors");
    let mut nested = NestedLayer::new("lower", 1, layer);
    let shared = nested.shared().expect("a layer that defers");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for t in 0..3u64 {
            let (shared, stop) = (&shared, &stop);
            scope.spawn(move || {
                // Each thread has every third block of 4 KiB.
                let mut data = vec![0; 4096];
                for round in 0..200u64 {
                    let at = (round * 7 % 40 * 3 + t) * 4096;
                    let byte = (round % 250 + 1) as u8;
                    shared.write(at, &vec![byte; 4096]).unwrap();
                    if round % 16 == 0 {
                        shared.sync().unwrap();
                    }
                    shared.read(at, &mut data).unwrap();
                    assert!(data.iter().all(|&b| b == byte), "thread {t}, round {round}");
                }
                stop.store(true, Ordering::Release);
            });
        }
        // Background work goes on beside the requests.
        while !stop.load(Ordering::Acquire) {
            shared.step(8).unwrap();
        }
    });
    assert!(nested.shared().is_some(), "a layer can be shared again");
    nested.halt(&mut sink()).unwrap();
}
