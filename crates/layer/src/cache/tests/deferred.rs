//! Deferred accesses, carried out late and in any order: a read returns data that was current at
//! some moment between request and completion, and a hit never waits.

use super::*;
use frit_core::{BlockingMedium, Buffer, Deferred, Error, RequestIntent, Result, Sink};
use frit_media::CustomStore;
use std::sync::{Arc, Mutex};

/// A disk in memory that can be accessed from any thread.
#[derive(Clone, Debug)]
struct SharedDisk(Arc<Mutex<MemoryStore>>);

impl CustomStore for SharedDisk {
    fn len(&self) -> u64 {
        self.0.lock().unwrap().len()
    }
    fn is_blank(&self) -> bool {
        self.0.lock().unwrap().is_blank()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.0.lock().unwrap().read(at, into)
    }
    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.0.lock().unwrap().write(at, data)
    }
    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
    fn shared(&self) -> Option<Arc<dyn BlockingMedium>> {
        Some(Arc::new(self.clone()))
    }
}

impl BlockingMedium for SharedDisk {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        CustomStore::read(self, at, into)
    }
    fn write(&self, at: u64, data: &[u8]) -> Result<()> {
        self.0.lock().unwrap().write(at, data)
    }
    fn zero(&self, at: u64, len: u64) -> Result<()> {
        self.0.lock().unwrap().zero(at, len)
    }
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

type Late = Cache<Disk>;

/// A request or job that is not complete.
struct Open {
    /// `None` for a background job.
    request: Option<Request>,
    left: Deferred,
}

struct Request {
    at: u64,
    /// A read: the buffer, and the valid values of each sector.
    read: Option<(Vec<u8>, Vec<Vec<u8>>)>,
    /// A write: its data.
    write: Vec<u8>,
}

struct Run {
    layer: Late,
    /// For each sector, the byte that fills it.
    model: Vec<u8>,
    /// Requests and jobs in flight.
    open: Vec<Open>,
    stamp: u8,
}

impl Run {
    /// Carries out one of the accesses in flight and settles it.
    fn finish(&mut self, i: usize) {
        let n = i % self.open.len();
        let mut open = self.open.swap_remove(n);
        let mut none = Request { at: 0, read: None, write: Vec::new() };
        let r = open.request.as_mut().unwrap_or(&mut none);
        let mut buffer = match &mut r.read {
            Some((bytes, _)) => Buffer::In(bytes),
            None => Buffer::Out(&r.write),
        };
        let outcome = open.left.run(&mut buffer);
        self.layer.settle(&mut Sink::untimed(), &open.left, outcome, &mut buffer).unwrap();
        if let Some((bytes, may)) = &r.read {
            check(r.at, bytes, may);
        }
        self.layer.audit();
    }

    /// Completes one access or takes one job, so that a refused request can be repeated.
    fn wait(&mut self, pick: usize) {
        match BlockLayer::job(&mut self.layer, &mut Sink::untimed()).unwrap() {
            Some(left) => self.open.push(Open { request: None, left }),
            None => {
                assert!(!self.open.is_empty(), "a request waits, but nothing is in flight");
                self.finish(pick);
            }
        }
    }

    /// Returns the layer's prediction for a request before it is made.
    fn would_block(&self, what: RequestIntent, at: u64, sectors: u64) -> bool {
        BlockLayer::would_block(&self.layer, what, Sector(at), sectors)
    }

    fn changes(&mut self, at: u64, sectors: u64, to: u8) {
        for s in at..at + sectors {
            self.model[s as usize] = to;
            for open in &mut self.open {
                let Some(Request { at: first, read: Some((_, may)), .. }) = &mut open.request else {
                    continue;
                };
                if s >= *first && s < *first + may.len() as u64 {
                    may[(s - *first) as usize].push(to);
                }
            }
        }
    }

    fn write(&mut self, at: u64, sectors: u64, pick: usize) {
        self.stamp = self.stamp % 250 + 1;
        let write = vec![self.stamp; (sectors * 512) as usize];
        // From now on a concurrent read may return the new data.
        self.changes(at, sectors, self.stamp);
        let slow = loop {
            let slow = self.would_block(RequestIntent::Write, at, sectors);
            match self.layer.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&write), Hints::NONE) {
                Err(Error::WouldBlock) => {
                    assert!(slow, "`slow` did not predict that a write waits");
                    self.wait(pick);
                }
                done => {
                    done.unwrap();
                    break slow;
                }
            }
        };
        // A write to the disk is completed before the next request: concurrent reads of its range
        // are undefined until then.
        if let Some(left) = BlockLayer::deferred(&mut self.layer) {
            assert!(slow, "`slow` did not predict a write to the disk");
            self.open.push(Open { request: Some(Request { at, read: None, write }), left });
            self.finish(self.open.len() - 1);
        }
    }

    fn read(&mut self, at: u64, sectors: u64, pick: usize) {
        let mut bytes = vec![0xEE; (sectors * 512) as usize];
        let slow = loop {
            let slow = self.would_block(RequestIntent::Read, at, sectors);
            match self.layer.read(
                &mut Sink::untimed(),
                Sector(at),
                ReadTarget::Bytes(&mut bytes),
                Hints::NONE,
            ) {
                Err(Error::WouldBlock) => {
                    assert!(slow, "`slow` did not predict that a read waits");
                    self.wait(pick);
                }
                done => {
                    done.unwrap();
                    break slow;
                }
            }
        };
        let may: Vec<Vec<u8>> = (at..at + sectors).map(|s| vec![self.model[s as usize]]).collect();
        let left = BlockLayer::deferred(&mut self.layer);
        assert_eq!(slow, left.is_some(), "a read of {sectors} sectors at {at}");
        match left {
            Some(left) => {
                let request = Request { at, read: Some((bytes, may)), write: Vec::new() };
                self.open.push(Open { request: Some(request), left });
            }
            None => check(at, &bytes, &may),
        }
    }

    fn discard(&mut self, at: u64, sectors: u64, pick: usize) {
        self.changes(at, sectors, 0);
        loop {
            match self.layer.discard(&mut Sink::untimed(), Sector(at), sectors) {
                Err(Error::WouldBlock) => self.wait(pick),
                done => break done.unwrap(),
            }
        }
        if let Some(left) = BlockLayer::deferred(&mut self.layer) {
            let request = Request { at, read: None, write: Vec::new() };
            self.open.push(Open { request: Some(request), left });
            self.finish(self.open.len() - 1);
        }
    }
}

fn check(at: u64, bytes: &[u8], may: &[Vec<u8>]) {
    for (i, sector) in bytes.chunks(512).enumerate() {
        let is = sector[0];
        assert!(sector.iter().all(|&b| b == is), "sector {} is torn", at + i as u64);
        assert!(may[i].contains(&is), "sector {}: {is}, and may be {:?}", at + i as u64, may[i]);
    }
}

fn late(config: CacheConfig) -> (Late, SharedDisk) {
    let (pcm, disk) = memory();
    let disk = SharedDisk(Arc::new(Mutex::new(disk)));
    let mut hw = Hardware::new();
    let pcm = Pcm::new(pcm_config(96), pcm, &mut hw).unwrap();
    let medium = Disk::new(disk_config(), disk.clone(), &mut hw).unwrap();
    let mut layer = Cache::new(config, pcm, Box::new(medium), None).unwrap();
    assert!(BlockLayer::defer(&mut layer, true));
    (layer, disk)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_read_was_there(
        policy in prop::sample::select(policies()),
        mode in prop::sample::select(vec!["write-back", "write-through", "write-around"]),
        read_caching in any::<bool>(),
        steps in prop::collection::vec((step(), any::<usize>()), 1..160),
    ) {
        let (layer, _) = late(CacheConfig { read_caching, ..named(policy) });
        let model = vec![0; (DISK_BLOCKS * 8) as usize];
        let mut run = Run { layer, model, open: Vec::new(), stamp: 0 };
        run.layer.set("mode", mode).unwrap();
        for (s, pick) in steps {
            match s {
                Step::Write(at, n) => run.write(at, n.min(200), pick),
                Step::Read(at, n) => run.read(at, n, pick),
                Step::Discard(at, n) => run.discard(at, n, pick),
                Step::Idle(n) => drop(run.layer.step(&mut Sink::untimed(), n).unwrap()),
                Step::Set(key, value) => run.layer.set(key, value).unwrap(),
                _ if run.open.is_empty() => {}
                _ => run.finish(pick),
            }
            run.layer.audit();
            if pick % 3 == 0 && let Some(left) = BlockLayer::job(&mut run.layer, &mut Sink::untimed()).unwrap() {
                run.open.push(Open { request: None, left });
            }
        }
        while !run.open.is_empty() {
            run.finish(0);
        }
        for at in (0..DISK_BLOCKS * 8).step_by(2048) {
            run.read(at, 2048, 0);
            while !run.open.is_empty() {
                run.finish(0);
            }
        }
    }
}

#[test]
fn a_hit_waits_for_nobodys_miss_or_destage() {
    let (mut layer, _) = late(named("halo"));
    let block = |n: u8| vec![n; 4096];
    for i in 0..90_u64 {
        layer
            .write(&mut Sink::untimed(), Sector(i * 8), WriteData::Bytes(&block(i as u8)), Hints::NONE)
            .unwrap();
    }
    let mut miss = vec![0; 4096];
    layer.read(&mut Sink::untimed(), Sector(12_000), ReadTarget::Bytes(&mut miss), Hints::NONE).unwrap();
    let missed = BlockLayer::deferred(&mut layer).expect("the miss is left to others");
    layer.write(&mut Sink::untimed(), Sector(8000), WriteData::Bytes(&block(200)), Hints::NONE).unwrap();
    layer.write(&mut Sink::untimed(), Sector(8008), WriteData::Bytes(&block(201)), Hints::NONE).unwrap();
    let job =
        BlockLayer::job(&mut layer, &mut Sink::untimed()).unwrap().expect("the destage is left to others");
    // Both are in flight: reads and writes of cached blocks go on, also of blocks that are being
    // destaged.
    for i in 0..90_u64 {
        let mut back = vec![0; 4096];
        layer.read(&mut Sink::untimed(), Sector(i * 8), ReadTarget::Bytes(&mut back), Hints::NONE).unwrap();
        assert!(BlockLayer::deferred(&mut layer).is_none(), "block {i} is a hit");
        assert_eq!(back, block(i as u8));
    }
    layer.write(&mut Sink::untimed(), Sector(0), WriteData::Bytes(&block(99)), Hints::NONE).unwrap();
    assert!(BlockLayer::deferred(&mut layer).is_none());
    for left in [job, missed] {
        let mut buffer = Buffer::In(&mut miss);
        let outcome = left.run(&mut buffer);
        layer.settle(&mut Sink::untimed(), &left, outcome, &mut buffer).unwrap();
    }
    assert_eq!(miss, block(0));
    let mut back = vec![0; 4096];
    layer.read(&mut Sink::untimed(), Sector(0), ReadTarget::Bytes(&mut back), Hints::NONE).unwrap();
    assert_eq!(back, block(99), "written while it was on its way");
}

#[test]
fn where_all_blocks_are_being_read_writes_wait_and_nothing_spins() {
    for policy in ["halo", "lru", "sweep"] {
        let (mut layer, _) = late(named(policy));
        let write = |layer: &mut Cache<_>, i: u64| {
            layer.write(&mut Sink::untimed(), Sector(i * 8), WriteData::Bytes(&[7; 512]), Hints::NONE)
        };
        // A sector of each block is cached: the rest has to come from the disk.
        for i in 0..60 {
            write(&mut layer, i).unwrap();
        }
        let mut miss = vec![0; 200 * 4096];
        layer.read(&mut Sink::untimed(), Sector(0), ReadTarget::Bytes(&mut miss), Hints::NONE).unwrap();
        let missed = BlockLayer::deferred(&mut layer).expect("the miss is left to others");
        // The cache fills up with blocks that cannot be evicted.
        let mut next = 60;
        while next < 200 && write(&mut layer, next).is_ok() {
            next += 1;
        }
        assert!((90..200).contains(&next), "{policy}: {next} blocks in a cache of some 96");
        assert!(matches!(write(&mut layer, next), Err(Error::WouldBlock)), "{policy}");
        let mut buffer = Buffer::In(&mut miss);
        let outcome = missed.run(&mut buffer);
        layer.settle(&mut Sink::untimed(), &missed, outcome, &mut buffer).unwrap();
        // After the read is settled they can be evicted.
        while let Err(e) = write(&mut layer, next) {
            assert!(matches!(e, Error::WouldBlock), "{policy}: {e}");
            let job = BlockLayer::job(&mut layer, &mut Sink::untimed()).unwrap().expect("a destage");
            let outcome = job.run(&mut Buffer::None);
            layer.settle(&mut Sink::untimed(), &job, outcome, &mut Buffer::None).unwrap();
        }
        layer.audit();
    }
}

#[test]
fn a_discarded_block_does_not_come_back_from_a_version_in_flight() {
    let (mut layer, _) = late(named("lru"));
    let finish = |layer: &mut Late, left: &Deferred| {
        let outcome = left.run(&mut Buffer::None);
        layer.settle(&mut Sink::untimed(), left, outcome, &mut Buffer::None).unwrap();
    };
    let write = |layer: &mut Late, at: u64, byte: u8| {
        let data = [byte; 4096];
        layer.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&data), Hints::NONE).unwrap();
    };
    // The disk has some blocks, but has not flushed them.
    let mut next = 0;
    while layer.in_flight.len() == 0 {
        write(&mut layer, next * 8, 1);
        next += 1;
        let job = BlockLayer::job(&mut layer, &mut Sink::untimed()).unwrap();
        job.iter().for_each(|job| finish(&mut layer, job));
    }
    let (lbn, earlier) = (layer.in_flight.blocks[0].lbn, layer.in_flight.blocks[0].slot);
    let at = u64::from(lbn) * 8;
    write(&mut layer, at, 2);
    let last = layer.dir.get(lbn).unwrap();
    assert!(last != earlier && layer.in_flight.len() > 0, "the earlier version is still in flight");
    layer.discard(&mut Sink::untimed(), Sector(at), 8).unwrap();
    let left = BlockLayer::deferred(&mut layer).expect("zeros for the disk");
    finish(&mut layer, &left);
    assert!(layer.in_flight.len() > 0);
    // From now on the slot of the last version may hold another block. A recovery must not find the
    // earlier one alone.
    assert!(layer.space.record(last).unwrap().is_none(), "the last version");
    assert!(layer.space.record(earlier).unwrap().is_none(), "the earlier version");
    layer.audit();
}
