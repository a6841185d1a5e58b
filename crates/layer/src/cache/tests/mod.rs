//! Shadow-model property tests of the whole layer: random requests, changes of parameters, crashes,
//! and a failing disk. Every read is compared with a plain byte array.

mod deferred;
mod failed_sync;
mod faults;
mod halt;
mod merge;
mod modes;
mod order;

use super::in_flight::EVICT;
use super::policy::{Policy, PolicyConfig};
use super::{BLOCK_BYTES, Cache, CacheConfig};
use frit_core::convert::count_u32;
use frit_core::{
    BlockDevice, BlockLayer, CheckScope, CrashKind, Durable, Hints, Nanos, Op, Params, Quiesce, ReadTarget,
    Sector, Sink, StackView, WriteData,
};
use frit_media::disk::{DiskProfile, DriveModel};
use frit_media::store::LentStore;
use frit_media::{
    AnyStore, Disk, DiskConfig, Hardware, LatencyCurve, MemoryStore, Pcm, PcmConfig, PcmGeometry, PcmTiming,
    Store,
};
use proptest::prelude::*;
use strum::VariantNames;

/// Blocks of the disk: eight buckets.
const DISK_BLOCKS: u64 = 2048;

fn pcm_config(slots: u64) -> PcmConfig {
    let curve = || LatencyCurve::new(vec![(512, Nanos(1_000))], 16).unwrap();
    PcmConfig {
        name: "pcm".into(),
        geometry: PcmGeometry {
            channels: 2,
            chips_per_channel: 1,
            groups: 1,
            chip_bytes: ((slots + 8) * 4160).next_multiple_of(16384) / 2,
            write_unit: 16,
            line_bytes: 512,
            interleave_bytes: 4096,
        },
        timing: PcmTiming {
            read: curve(),
            write: curve(),
            write_clean: None,
            refresh: Nanos::ZERO,
            bus_ps_per_byte: 0,
            fence: Nanos::ZERO,
        },
        endurance: 1_000_000_000,
        refresh_bytes: None,
        serial: 0,
    }
}

fn disk_config() -> DiskConfig {
    let spec = DiskProfile::builtin("st3500320as-2008").unwrap().spec().unwrap();
    DiskConfig {
        name: "disk".into(),
        drive: DriveModel::Mechanical(Box::new(spec)),
        bytes: DISK_BLOCKS * BLOCK_BYTES,
        serial: 0,
    }
}

type Layer = Cache<Disk>;

fn open(config: &CacheConfig, pcm: impl Into<AnyStore>, disk: impl Into<AnyStore>) -> Layer {
    let mut hw = Hardware::new();
    let pcm = Pcm::new(pcm_config(96), pcm, &mut hw).unwrap();
    let disk = Disk::new(disk_config(), disk, &mut hw).unwrap();
    Cache::new(config.clone(), pcm, Box::new(disk), None).unwrap()
}

fn memory() -> (MemoryStore, MemoryStore) {
    (MemoryStore::new(4 << 20), MemoryStore::new(disk_config().store_bytes()))
}

fn stores() -> (LentStore<MemoryStore>, LentStore<MemoryStore>) {
    let (pcm, disk) = memory();
    (LentStore::new(pcm), LentStore::new(disk))
}

fn named(policy: &str) -> CacheConfig {
    CacheConfig { policy: PolicyConfig::named(policy), cache_bytes: 96 * 4096, ..CacheConfig::default() }
}

/// Returns the policies that do not need future accesses.
fn policies() -> Vec<&'static str> {
    Policy::VARIANTS.iter().copied().filter(|p| *p != "belady").collect()
}

impl<D: BlockDevice> Cache<D> {
    /// Checks the invariants between derived state and the state that it is derived from.
    fn audit(&self) {
        let mut slots = std::collections::HashSet::new();
        let mut dirty = 0;
        for (lbn, slot) in self.dir.iter() {
            assert!(slots.insert(slot), "slot {slot} twice");
            assert_ne!(self.dir.valid(slot), 0, "block {lbn} has nothing");
            let r = self.space.record(slot).unwrap();
            if self.stores_bytes() {
                assert_eq!(r.map(|r| (r.lbn(), r.valid)), Some((lbn, self.dir.valid(slot))), "slot {slot}");
            }
            dirty += u32::from(self.dir.dirty(slot));
        }
        assert_eq!(dirty, self.dir.dirty_len());
        let leaving = self.dir.iter().filter(|(_, slot)| self.dir.flags(*slot) & EVICT != 0).count();
        assert_eq!(count_u32(leaving), self.in_flight.evicting);
        let orphans = self.in_flight.blocks.iter().filter(|v| self.dir.get(v.lbn) != Some(v.slot)).count();
        let all = self.dir.len()
            + self.dir.free_len()
            + count_u32(orphans + self.space.unsynced() + self.deferred_io.orphans(&self.dir));
        assert_eq!(all, self.dir.capacity(), "slots are lost or used twice");
    }
}

/// A shadow copy of the disk.
struct Model {
    bytes: Vec<u8>,
    stamp: u8,
}

impl Model {
    fn new() -> Model {
        Model { bytes: vec![0; (DISK_BLOCKS * BLOCK_BYTES) as usize], stamp: 0 }
    }

    fn write(&mut self, layer: &mut Layer, at: u64, sectors: u64) {
        self.stamp = self.stamp.wrapping_add(1);
        let range = (at * 512) as usize..((at + sectors) * 512) as usize;
        for (i, b) in self.bytes[range.clone()].iter_mut().enumerate() {
            *b = self.stamp.wrapping_add(((i / 512) as u8).wrapping_mul(31)) | 1;
        }
        layer
            .write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&self.bytes[range]), Hints::NONE)
            .unwrap();
    }

    fn read(&self, layer: &mut Layer, at: u64, sectors: u64) {
        let mut back = vec![0xEE; (sectors * 512) as usize];
        layer.read(&mut Sink::untimed(), Sector(at), ReadTarget::Bytes(&mut back), Hints::NONE).unwrap();
        let own = &self.bytes[(at * 512) as usize..((at + sectors) * 512) as usize];
        if let Some(i) = back.iter().zip(own).position(|(a, b)| a != b) {
            panic!("sector {}: {} instead of {}", at + i as u64 / 512, back[i], own[i]);
        }
    }

    fn discard(&mut self, layer: &mut Layer, at: u64, sectors: u64) {
        self.bytes[(at * 512) as usize..((at + sectors) * 512) as usize].fill(0);
        layer.discard(&mut Sink::untimed(), Sector(at), sectors).unwrap();
    }

    fn all(&self, layer: &mut Layer) {
        for at in (0..DISK_BLOCKS * 8).step_by(2048) {
            self.read(layer, at, 2048);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64),
    Read(u64, u64),
    Discard(u64, u64),
    Flush,
    Idle(u32),
    Set(&'static str, &'static str),
    Crash { halt: bool },
    Check,
}

fn place() -> impl Strategy<Value = (u64, u64)> {
    let last = DISK_BLOCKS * 8;
    let at = prop_oneof![3 => 0..last, 3 => 0..256_u64, 1 => (last - 64)..last];
    let sectors = prop_oneof![4 => 1..20_u64, 3 => Just(8_u64), 1 => 1..400_u64];
    (at, sectors, any::<bool>()).prop_map(move |(at, n, whole)| {
        let (at, n) = if whole { (at / 8 * 8, n.next_multiple_of(8)) } else { (at, n) };
        (at, n.min(last - at))
    })
}

fn step() -> impl Strategy<Value = Step> {
    let sets = prop::sample::select(vec![
        ("mode", "write-back"),
        ("mode", "write-through"),
        ("mode", "write-around"),
        ("read_caching", "true"),
        ("read_caching", "false"),
        ("dirty_low", "0"),
        ("dirty_low", "1"),
        ("drain", "true"),
        ("bypass_bytes", "16K"),
        ("bypass_bytes", "0"),
        ("threshold", "0.5"),
        ("flying", "0.3"),
        ("flying", "0"),
    ]);
    prop_oneof![
        12 => place().prop_map(|(a, n)| Step::Write(a, n)),
        6 => place().prop_map(|(a, n)| Step::Read(a, n)),
        1 => place().prop_map(|(a, n)| Step::Discard(a, n)),
        1 => Just(Step::Flush),
        2 => (1..40_u32).prop_map(Step::Idle),
        2 => sets.prop_map(|(k, v)| Step::Set(k, v)),
        1 => any::<bool>().prop_map(|halt| Step::Crash { halt }),
        1 => Just(Step::Check),
    ]
}

fn run(config: &CacheConfig, steps: &[Step]) {
    let (pcm, disk) = stores();
    let mut model = Model::new();
    let mut layer = open(config, &pcm, &disk);
    layer.format(&mut Sink::untimed()).unwrap();
    for s in steps {
        match *s {
            Step::Write(at, n) => model.write(&mut layer, at, n),
            Step::Read(at, n) => model.read(&mut layer, at, n),
            Step::Discard(at, n) => model.discard(&mut layer, at, n),
            Step::Flush => BlockLayer::flush(&mut layer, &mut Sink::untimed()).unwrap(),
            Step::Idle(n) => drop(layer.step(&mut Sink::untimed(), n).unwrap()),
            Step::Set(key, value) => layer.set(key, value).unwrap(),
            Step::Crash { halt } => {
                if halt {
                    Quiesce::halt(&mut layer, &mut Sink::untimed()).unwrap();
                }
                let config = layer.config().clone();
                drop(layer);
                layer = open(&config, &pcm, &disk);
                let found = layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
                assert!(found.clean || !halt);
            }
            Step::Check => {
                let scope = CheckScope { data: true, ..CheckScope::default() };
                layer.check(&mut Sink::untimed(), scope, &mut |f| panic!("{f:?}")).unwrap();
            }
        }
        layer.audit();
    }
    model.all(&mut layer);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read(
        policy in prop::sample::select(policies()),
        steps in prop::collection::vec(step(), 1..160),
    ) {
        run(&named(policy), &steps);
    }
}

/// Returns the number of commands of a kind that the disk received.
fn disk_commands(layer: &Layer, op: Op) -> u64 {
    layer.disk.counts().of(op).commands
}

fn metric(layer: &Layer, name: &str) -> f64 {
    let mut view = StackView::default();
    BlockLayer::visible(layer, &mut view);
    view.metric(name).unwrap()
}
