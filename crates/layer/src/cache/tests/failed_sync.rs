//! A disk whose syncs fail while other accesses are in flight: a failed sync loses what the disk has not synced, and is
//! told once. Accesses are carried out at one moment and settled at a later one, in any order, as by several threads.

use super::*;
use frit_core::{BlockingMedium, Buffer, Deferred, Error, Result, SyncGate, Tok};
use frit_media::CustomStore;
use std::sync::{Arc, Mutex};

struct LossyState {
    now: Vec<u8>,
    synced: Vec<u8>,
    fails_next: bool,
    failures: u32,
}

impl std::fmt::Debug for LossyState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LossyState").field("failures", &self.failures).finish_non_exhaustive()
    }
}

/// A disk in memory behind a page cache.
#[derive(Clone, Debug)]
struct LossyDisk(Arc<(Mutex<LossyState>, SyncGate)>);

impl LossyDisk {
    fn new() -> LossyDisk {
        let bytes = vec![0; disk_config().store_bytes() as usize];
        let state = LossyState { now: bytes.clone(), synced: bytes, fails_next: false, failures: 0 };
        LossyDisk(Arc::new((Mutex::new(state), SyncGate::default())))
    }

    fn fail_next(&self) {
        self.0.0.lock().unwrap().fails_next = true;
    }
}

impl CustomStore for LossyDisk {
    fn len(&self) -> u64 {
        disk_config().store_bytes()
    }
    fn is_blank(&self) -> bool {
        true
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        into.copy_from_slice(&self.0.0.lock().unwrap().now[at as usize..][..into.len()]);
        Ok(())
    }
    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        BlockingMedium::write(self, at, data)
    }
    fn sync(&mut self) -> Result<()> {
        BlockingMedium::sync(self)
    }
    fn sync_gate(&self) -> Option<&SyncGate> {
        Some(&self.0.1)
    }
    fn shared(&self) -> Option<Arc<dyn BlockingMedium>> {
        Some(Arc::new(self.clone()))
    }
}

impl BlockingMedium for LossyDisk {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        CustomStore::read(self, at, into)
    }
    fn write(&self, at: u64, data: &[u8]) -> Result<()> {
        self.0.0.lock().unwrap().now[at as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }
    fn zero(&self, at: u64, len: u64) -> Result<()> {
        BlockingMedium::write(self, at, &vec![0; len as usize])
    }
    fn sync(&self) -> Result<()> {
        let done = self.0.1.sync(|| {
            let mut state = self.0.0.lock().unwrap();
            if std::mem::take(&mut state.fails_next) {
                state.failures += 1;
                state.now = state.synced.clone();
                return Err(std::io::Error::from_raw_os_error(5));
            }
            state.synced = state.now.clone();
            Ok(())
        });
        done.map_err(|source| Error::Io { what: "sync".into(), source })
    }
}

/// An access that was deferred. `outcome` is there once it was carried out.
struct Open {
    left: Deferred,
    data: Vec<u8>,
    outcome: Option<Result<()>>,
}

struct Run {
    layer: Cache<Disk>,
    disk: LossyDisk,
    model: Vec<u8>,
    open: Vec<Open>,
    stamp: u8,
}

impl Run {
    fn new(config: CacheConfig) -> Run {
        let (pcm, _) = memory();
        let disk = LossyDisk::new();
        let mut hw = Hardware::new();
        let pcm = Pcm::new(pcm_config(96), pcm, &mut hw).unwrap();
        let medium = Disk::new(disk_config(), disk.clone(), &mut hw).unwrap();
        BlockingMedium::sync(&disk).unwrap();
        let mut layer = Cache::new(config, pcm, Box::new(medium), None).unwrap();
        assert!(BlockLayer::defer(&mut layer, true));
        Run { layer, disk, model: vec![0; (DISK_BLOCKS * 8) as usize], open: Vec::new(), stamp: 0 }
    }

    fn carry_out(&mut self, pick: usize) {
        let waiting: Vec<usize> = (0..self.open.len()).filter(|&i| self.open[i].outcome.is_none()).collect();
        if let Some(&i) = waiting.get(pick % waiting.len().max(1)) {
            let open = &mut self.open[i];
            open.outcome = Some(open.left.run(&mut Buffer::Out(&open.data)));
        }
    }

    fn settle(&mut self, pick: usize) {
        let done: Vec<usize> = (0..self.open.len()).filter(|&i| self.open[i].outcome.is_some()).collect();
        if let Some(&i) = done.get(pick % done.len().max(1)) {
            let open = self.open.remove(i);
            let outcome = open.outcome.expect("carried out");
            // A flush may fail. Writes of the cache's modes here cannot: the cache has the data.
            drop(self.layer.settle(&mut Sink::untimed(), &open.left, outcome, &mut Buffer::Out(&open.data)));
            self.layer.audit();
        }
    }

    /// Makes progress for a request that has to be repeated.
    fn wait(&mut self, pick: usize) {
        if !self.take_job() {
            self.carry_out(pick);
            self.settle(pick);
            // The oldest access is not left for ever.
            self.carry_out(0);
            self.settle(0);
        }
    }

    fn take_job(&mut self) -> bool {
        let Some(left) = BlockLayer::job(&mut self.layer, &mut Sink::untimed()).unwrap() else {
            return false;
        };
        self.open.push(Open { left, data: Vec::new(), outcome: None });
        true
    }

    fn take_deferred(&mut self, data: Vec<u8>) {
        if let Some(left) = BlockLayer::deferred(&mut self.layer) {
            self.open.push(Open { left, data, outcome: None });
        }
    }

    fn write(&mut self, at: u64, sectors: u64, pick: usize) {
        self.stamp = self.stamp % 250 + 1;
        let data = vec![self.stamp; (sectors * 512) as usize];
        for attempt in 0.. {
            assert!(attempt < 500, "a write waits for ever: {:?}", self.layer.deferred_io);
            match self.layer.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&data), Hints::NONE) {
                Err(Error::WouldBlock) => self.wait(pick),
                // The cache is full while the disk fails.
                Err(Error::NoSpace { .. }) => {
                    self.wait(pick);
                    self.layer.step(&mut Sink::untimed(), 64).unwrap();
                }
                done => {
                    done.unwrap();
                    break;
                }
            }
        }
        self.model[at as usize..(at + sectors) as usize].fill(self.stamp);
        self.take_deferred(data);
    }

    fn flush(&mut self, pick: usize) {
        loop {
            match self.layer.flush(&mut Sink::untimed()) {
                Err(Error::WouldBlock) => self.wait(pick),
                // The disk fails.
                Err(Error::Medium { .. }) => break,
                done => break done.unwrap(),
            }
        }
        self.take_deferred(Vec::new());
    }

    fn quiet(&mut self) {
        for _ in 0..2000 {
            while !self.open.is_empty() {
                self.carry_out(0);
                self.settle(0);
            }
            self.layer.step(&mut Sink::untimed(), 64).unwrap();
            if !self.take_job() {
                break;
            }
        }
    }

    /// Compares all blocks with the model.
    fn compare(&mut self) {
        self.layer.set_deferring(false);
        for at in (0..DISK_BLOCKS * 8).step_by(512) {
            let mut bytes = vec![0; 512 * 512];
            self.layer
                .read(&mut Sink::untimed(), Sector(at), ReadTarget::Bytes(&mut bytes), Hints::NONE)
                .unwrap();
            for (i, sector) in bytes.chunks(512).enumerate() {
                let want = self.model[at as usize + i];
                assert!(
                    sector.iter().all(|&b| b == want),
                    "sector {}: {}, want {want}",
                    at + i as u64,
                    sector[0]
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_is_lost_whoever_is_told(
        policy in prop::sample::select(policies()),
        mode in prop::sample::select(vec!["write-back", "write-through"]),
        steps in prop::collection::vec((0..12_u8, any::<u16>(), any::<usize>()), 50..300),
    ) {
        let mut run = Run::new(named(policy));
        run.layer.set("mode", mode).unwrap();
        for (what, value, pick) in steps {
            let at = u64::from(value) * 3 % (DISK_BLOCKS * 8 - 64);
            match what {
                0..5 => run.write(at, 1 + u64::from(value) % 40, pick),
                5 => run.flush(pick),
                6 => drop(run.take_job()),
                7 | 8 => run.carry_out(pick),
                9 | 10 => run.settle(pick),
                _ => run.disk.fail_next(),
            }
        }
        run.quiet();
        run.compare();
        prop_assert!(Durable::refuses(&run.layer).is_none());
    }
}

/// The order in which data was lost: the disk has blocks of a job; a sync of a flush fails and is settled first, then
/// the job is settled, and a later sync succeeds.
#[test]
fn a_write_before_a_failed_sync_is_repeated_whenever_it_is_settled() {
    let mut run = Run::new(named("lru"));
    let mut next = 0;
    while run.open.is_empty() {
        run.write(next * 8, 8, 0);
        next += 1;
        run.take_job();
    }
    run.carry_out(0);
    run.layer.note_unflushed(&mut Sink::untimed(), Tok::default());
    run.flush(0);
    run.disk.fail_next();
    let (flush, job) = (run.open.len() - 1, 0);
    let carried = run.open[flush].left.run(&mut Buffer::None);
    assert!(carried.is_err() && run.open[job].outcome.as_ref().is_some_and(Result::is_ok));
    run.open[flush].outcome = Some(carried);
    run.open.swap(flush, job);
    run.settle(0);
    run.settle(0);
    run.quiet();
    assert_eq!(run.disk.0.0.lock().unwrap().failures, 1);
    run.compare();
}
