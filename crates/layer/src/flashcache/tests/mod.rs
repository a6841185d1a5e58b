//! Shadow-model tests over two disks: every read is compared with a plain byte array, over halts and
//! crashes.

mod failures;

use super::sets::flag;
use super::{Flashcache, FlashcacheConfig, FlashcacheMode, SetPolicy};
use frit_core::{
    BlockLayer, Cause, CheckScope, CrashKind, Durable, Hints, Quiesce, ReadTarget, Recovery, Sector, Sink,
    StackView, Tok, WriteData,
};
use frit_media::disk::{DiskProfile, DriveModel};
use frit_media::store::LentStore;
use frit_media::{AnyStore, Disk, DiskConfig, Hardware, MemoryStore};
use proptest::prelude::*;

const BLOCK: usize = 1024;
const SECTORS: u64 = 600;
const DISK_BYTES: u64 = SECTORS * 512;
const SSD_BYTES: u64 = 64 << 10;

type Layer = Flashcache<Disk, Disk>;

fn device(name: &str, bytes: u64) -> DiskConfig {
    let spec = DiskProfile::builtin("st3500320as-2008").unwrap().spec().unwrap();
    DiskConfig { name: name.into(), drive: DriveModel::Mechanical(Box::new(spec)), bytes, serial: 0 }
}

fn open(config: &FlashcacheConfig, ssd: impl Into<AnyStore>, disk: impl Into<AnyStore>) -> Layer {
    let mut hw = Hardware::new();
    let ssd = Disk::new(device("ssd", SSD_BYTES), ssd, &mut hw).unwrap();
    let disk = Disk::new(device("disk", DISK_BYTES), disk, &mut hw).unwrap();
    Flashcache::new(config.clone(), Box::new(ssd), Box::new(disk), true).unwrap()
}

fn memory() -> (MemoryStore, MemoryStore) {
    let store = |bytes| MemoryStore::new(device("", bytes).store_bytes());
    (store(SSD_BYTES), store(DISK_BYTES))
}

fn stores() -> (LentStore<MemoryStore>, LentStore<MemoryStore>) {
    let (ssd, disk) = memory();
    (LentStore::new(ssd), LentStore::new(disk))
}

/// Small sets of which several are full soon.
fn small() -> FlashcacheConfig {
    FlashcacheConfig {
        block: BLOCK as u64,
        set_blocks: 8,
        metadata_block: 512,
        clean_batch: 4,
        ..FlashcacheConfig::default()
    }
}

fn configs() -> impl Strategy<Value = FlashcacheConfig> {
    (any::<bool>(), any::<bool>(), any::<bool>(), 0..3u64, 1..9u32).prop_map(
        |(through, lru, read_caching, skip, batch)| FlashcacheConfig {
            mode: if through { FlashcacheMode::WriteThrough } else { FlashcacheMode::WriteBack },
            policy: if lru { SetPolicy::Lru } else { SetPolicy::Fifo },
            read_caching,
            skip_sequential: skip * 8192,
            clean_batch: batch,
            dirty_threshold: f64::from(batch) / 10.0,
            ..small()
        },
    )
}

#[derive(Clone, Debug)]
enum Action {
    Write { at: u64, sectors: u64 },
    Read { at: u64, sectors: u64 },
    Discard { at: u64, sectors: u64 },
    Flush,
    Restart,
    Crash,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    // Half of the requests are whole blocks.
    let range = || {
        prop_oneof![(0..SECTORS / 2, 1..8u64).prop_map(|(at, n)| (at * 2, n * 2)), (0..SECTORS, 1..30u64),]
    };
    let action = prop_oneof![
        20 => range().prop_map(|(at, sectors)| Action::Write { at, sectors }),
        10 => range().prop_map(|(at, sectors)| Action::Read { at, sectors }),
        2 => range().prop_map(|(at, sectors)| Action::Discard { at, sectors }),
        2 => Just(Action::Flush),
        1 => Just(Action::Restart),
        1 => Just(Action::Crash),
    ];
    prop::collection::vec(action, 1..250)
}

fn read(layer: &mut Layer, at: u64, sectors: u64) -> Vec<u8> {
    let mut out = vec![0xEE; sectors as usize * 512];
    layer.read(&mut Sink::untimed(), Sector(at), ReadTarget::Bytes(&mut out), Hints::NONE).unwrap();
    out
}

fn write(layer: &mut Layer, at: u64, data: &[u8]) {
    layer.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(data), Hints::NONE).unwrap();
}

fn recovered(layer: &mut Layer) -> Recovery {
    layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap()
}

fn metric(layer: &Layer, name: &str) -> f64 {
    let mut view = StackView::default();
    layer.visible(&mut view);
    let metrics = view.layers.into_iter().flat_map(|l| l.metrics);
    metrics.into_iter().find(|m| m.name == name).unwrap().value
}

fn run(config: &FlashcacheConfig, actions: &[Action]) {
    let (ssd, disk) = stores();
    let sink = &mut Sink::untimed();
    let mut shadow = vec![0u8; DISK_BYTES as usize];
    let mut layer = open(config, &ssd, &disk);
    layer.format(sink).unwrap();
    for (n, action) in actions.iter().enumerate() {
        match *action {
            Action::Write { at, sectors } => {
                let sectors = sectors.min(SECTORS - at);
                let data: Vec<u8> =
                    (0..sectors * 512).map(|i| (n as u64 * 31 + i / 512 * 7 + i) as u8).collect();
                write(&mut layer, at, &data);
                shadow[at as usize * 512..][..data.len()].copy_from_slice(&data);
            }
            Action::Read { at, sectors } => {
                let out = read(&mut layer, at, sectors.min(SECTORS - at));
                assert!(out == shadow[at as usize * 512..][..out.len()], "action {n}");
            }
            Action::Discard { at, sectors } => {
                let sectors = sectors.min(SECTORS - at);
                layer.discard(sink, Sector(at), sectors).unwrap();
                shadow[at as usize * 512..(at + sectors) as usize * 512].fill(0);
            }
            Action::Flush => layer.flush(sink).unwrap(),
            Action::Restart | Action::Crash => {
                let halts = matches!(action, Action::Restart);
                if halts {
                    layer.halt(sink).unwrap();
                } else {
                    layer.flush(sink).unwrap();
                }
                let before = metric(&layer, "cached_blocks");
                drop(layer);
                layer = open(config, &ssd, &disk);
                let recovery = recovered(&mut layer);
                assert!(recovery.clean >= halts && recovery.losses() == 0, "{recovery:?}");
                if recovery.clean && halts {
                    assert_eq!(metric(&layer, "cached_blocks"), before, "a halt keeps the whole cache");
                } else if !recovery.clean {
                    let dirty = metric(&layer, "dirty_blocks");
                    assert_eq!(metric(&layer, "cached_blocks"), dirty, "a crash keeps the dirty blocks");
                }
            }
        }
        let mut findings = 0;
        let scope = CheckScope { data: true, ..CheckScope::default() };
        layer.check(sink, scope, &mut |_| findings += 1).unwrap();
        assert_eq!(findings, 0, "after action {n}");
        audit(&layer);
    }
    assert!(read(&mut layer, 0, SECTORS) == shadow);
}

/// Asserts that the flags of each slot agree, and that each block is in its set once.
fn audit(layer: &Layer) {
    let mut seen = std::collections::BTreeSet::new();
    for slot in 0..layer.layout.slots() {
        let Some(block) = layer.sets.block(slot) else {
            assert!(!layer.sets.is(slot, u8::MAX));
            continue;
        };
        assert!(seen.insert(block) && layer.sets.find(block) == Some(slot));
        let written = layer.sets.is(slot, flag::WRITTEN | flag::FLUSHED | flag::FRESH);
        assert!(!written || layer.sets.is(slot, flag::DIRTY));
    }
}

proptest! {
    #[test]
    fn reads_return_what_was_written(config in configs(), actions in actions()) {
        run(&config, &actions);
    }
}

/// Writes a block whose bytes are all `value`.
fn put(layer: &mut Layer, block: u64, value: u8) {
    write(layer, block * 2, &[value; BLOCK]);
}

#[test]
fn a_block_becomes_dirty_with_one_metadata_write_and_stays_so_without() {
    let (ssd, disk) = stores();
    let mut layer = open(&small(), &ssd, &disk);
    layer.format(&mut Sink::untimed()).unwrap();
    let before = metric(&layer, "metadata_writes");
    put(&mut layer, 3, 1);
    assert_eq!(metric(&layer, "metadata_writes") - before, 1.0);
    put(&mut layer, 3, 2);
    assert_eq!((metric(&layer, "metadata_writes") - before, metric(&layer, "rewrites")), (1.0, 1.0));
    // Blocks of one request share a metadata write.
    write(&mut layer, 16, &[7; 3 * BLOCK]);
    assert_eq!(metric(&layer, "metadata_writes") - before, 2.0);
    assert_eq!(metric(&layer, "dirty_blocks"), 4.0);
}

#[test]
fn a_set_is_cleaned_above_its_threshold_in_the_order_of_addresses() {
    let (ssd, disk) = stores();
    let config = FlashcacheConfig { dirty_threshold: 0.5, clean_writes: 1, ..small() };
    let mut layer = open(&config, &ssd, &disk);
    layer.format(&mut Sink::untimed()).unwrap();
    // Four of eight blocks may be dirty.
    [5, 1, 2, 7].into_iter().for_each(|b| put(&mut layer, b, b as u8));
    assert_eq!(metric(&layer, "cleaned"), 0.0);
    put(&mut layer, 6, 6);
    // The oldest is 5, and 6 and 7 beside it are written with it.
    assert_eq!((metric(&layer, "cleaned"), metric(&layer, "clean_writes")), (3.0, 1.0));
    drop(layer);
    assert_eq!(disk_block(&disk, 6), [6; BLOCK]);
    assert_eq!(disk_block(&disk, 1), [0; BLOCK]);
}

fn disk_block(disk: &LentStore<MemoryStore>, block: u64) -> Vec<u8> {
    let mut hw = Hardware::new();
    let mut device = Disk::new(device("disk", DISK_BYTES), disk, &mut hw).unwrap();
    let mut out = vec![0; BLOCK];
    let into = ReadTarget::Bytes(&mut out);
    device.read(&mut Sink::untimed(), block * BLOCK as u64, into, Cause::Host, Tok::DONE).unwrap();
    out
}

#[test]
fn fifo_and_lru_replace_different_blocks() {
    for (policy, kept) in [(SetPolicy::Fifo, false), (SetPolicy::Lru, true)] {
        let (ssd, disk) = stores();
        let config = FlashcacheConfig { policy, mode: FlashcacheMode::WriteThrough, ..small() };
        let mut layer = open(&config, &ssd, &disk);
        let sets = u64::from(layer.layout.sets);
        // Eight blocks of one set, of which the first is used again, and a ninth one.
        (0..8).for_each(|b| put(&mut layer, b, b as u8));
        read(&mut layer, 0, 2);
        put(&mut layer, 8 * sets, 9);
        let misses = metric(&layer, "read_misses");
        read(&mut layer, 0, 2);
        assert_eq!(metric(&layer, "read_misses") == misses, kept, "{policy:?}");
    }
}

#[test]
fn sequential_streams_skip_the_cache() {
    let (ssd, disk) = stores();
    let config = FlashcacheConfig { skip_sequential: 4096, ..small() };
    let mut layer = open(&config, &ssd, &disk);
    (0..10).for_each(|b| put(&mut layer, 40 + b, 1));
    assert_eq!((metric(&layer, "cache_writes"), metric(&layer, "direct_writes")), (4.0, 6.0));
    // A random write is cached.
    put(&mut layer, 200, 2);
    assert_eq!(metric(&layer, "cache_writes"), 5.0);
}

#[test]
fn damaged_metadata_makes_unknown_blocks_errors_until_the_disk_is_accepted() {
    let (ssd, disk) = stores();
    let sink = &mut Sink::untimed();
    let mut layer = open(&small(), &ssd, &disk);
    layer.format(sink).unwrap();
    [3, 70].into_iter().for_each(|b| put(&mut layer, b, b as u8));
    layer.flush(sink).unwrap();
    let (set, at) = (layer.sets.set_of(3), layer.layout.metadata_at(layer.sets.set_of(3)));
    assert_ne!(set, layer.sets.set_of(70));
    drop(layer);
    damage(&ssd, at + 100);
    let mut layer = open(&small(), &ssd, &disk);
    assert_eq!(recovered(&mut layer).unnamed.len(), 1);
    let mut out = [0; BLOCK];
    let mut read_block = |layer: &mut Layer, b: u64| {
        layer.read(sink, Sector(b * 2), ReadTarget::Bytes(&mut out), Hints::NONE).map(|()| out[0])
    };
    assert_eq!(read_block(&mut layer, 70).unwrap(), 70);
    let e = read_block(&mut layer, 3).unwrap_err().to_string();
    assert!(e.contains("block 3 is not cached") && e.contains("metadata on the SSD"), "{e}");
    assert!(Durable::refuses(&layer).is_some());
    let scope = CheckScope { repair: true, older: true, ..CheckScope::default() };
    let mut found = Vec::new();
    layer.check(&mut Sink::untimed(), scope, &mut |f| found.push(f)).unwrap();
    assert!(found.len() == 1 && found[0].repaired, "{found:?}");
    assert_eq!((read_block(&mut layer, 3).unwrap(), read_block(&mut layer, 70).unwrap()), (0, 70));
    put(&mut layer, 3, 4);
    drop(layer);
    let mut layer = open(&small(), &ssd, &disk);
    assert!(recovered(&mut layer).unnamed.is_empty());
}

/// A recovery on an SSD that is read-only cannot make the entries void whose epoch was not committed.
#[test]
fn entries_that_do_not_count_are_no_finding_on_a_read_only_volume() {
    let (ssd, disk) = stores();
    let sink = &mut Sink::untimed();
    let mut layer = open(&small(), &ssd, &disk);
    layer.format(sink).unwrap();
    put(&mut layer, 3, 3);
    let at = layer.layout.metadata_at(layer.sets.set_of(3));
    drop(layer);
    let mut stale = [0; 512];
    let mut device_of_ssd = Disk::new(device("ssd", SSD_BYTES), &ssd, &mut Hardware::new()).unwrap();
    device_of_ssd.read(sink, at, ReadTarget::Bytes(&mut stale), Cause::Host, Tok::DONE).unwrap();
    drop(device_of_ssd);
    let mut layer = open(&small(), &ssd, &disk);
    recovered(&mut layer);
    assert_eq!(metric(&layer, "dirty_blocks"), 0.0);
    layer.ssd.write(sink, at, WriteData::Bytes(&stale), Cause::Meta, Tok::DONE).unwrap();
    let mut findings = |layer: &mut Layer| {
        let mut found = 0;
        layer.check(sink, CheckScope::default(), &mut |_| found += 1).unwrap();
        found
    };
    assert_eq!(findings(&mut layer), 1, "a later epoch would make them count");
    layer.health.refuse("the SSD is read-only".into());
    assert_eq!(findings(&mut layer), 0);
}

/// Flips a bit of the SSD.
fn damage(store: &LentStore<MemoryStore>, at: u64) {
    let mut ssd = Disk::new(device("ssd", SSD_BYTES), store, &mut Hardware::new()).unwrap();
    let (mut sector, sink) = ([0; 512], &mut Sink::untimed());
    let start = at / 512 * 512;
    ssd.read(sink, start, ReadTarget::Bytes(&mut sector), Cause::Host, Tok::DONE).unwrap();
    sector[(at - start) as usize] ^= 4;
    ssd.write(sink, start, WriteData::Bytes(&sector), Cause::Host, Tok::DONE).unwrap();
}

#[test]
fn a_cache_of_other_sizes_is_refused() {
    let (ssd, disk) = stores();
    let mut layer = open(&small(), &ssd, &disk);
    let error =
        |layer: &mut Layer| layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap_err().to_string();
    assert!(error(&mut layer).contains("never formatted"));
    layer.format(&mut Sink::untimed()).unwrap();
    drop(layer);
    let mut layer = open(&FlashcacheConfig { set_blocks: 4, ..small() }, &ssd, &disk);
    assert!(error(&mut layer).contains("other sizes"));
    for (config, why) in [
        (FlashcacheConfig { block: 3000, ..small() }, "power of two"),
        (FlashcacheConfig { set_blocks: 512, ..small() }, "0 sets"),
        (FlashcacheConfig { metadata_block: 16384, ..small() }, "power of two"),
    ] {
        let (a, b) = stores();
        let mut hw = Hardware::new();
        let ssd = Disk::new(device("ssd", SSD_BYTES), &a, &mut hw).unwrap();
        let disk = Disk::new(device("disk", DISK_BYTES), &b, &mut hw).unwrap();
        let made = Flashcache::new(config, Box::new(ssd), Box::new(disk), true);
        assert!(made.err().unwrap().to_string().contains(why), "{why}");
    }
}
