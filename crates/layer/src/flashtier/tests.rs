//! Shadow-model tests of the manager over a device and a disk: every read is compared with a plain byte
//! array, over halts and crashes.

use super::{CleanOrder, Flashtier, FlashtierConfig, FlashtierMode};
use crate::hfsl::tests::nand_config;
use crate::ssc::{Ssc, SscConfig, SscDurability, SscFlush};
use crate::testing::TWO_UNITS;
use crate::testing::shadow::{Action, act, actions, read};
use frit_core::{
    BlockLayer, BlockState, CacheDevice, CheckScope, CrashKind, DurabilityPoint, Durable, Hints, Quiesce,
    Recovery, Sector, Sink, StackView, WriteData,
};
use frit_media::disk::{DiskProfile, DriveModel};
use frit_media::store::LentStore;
use frit_media::{Disk, DiskConfig, Hardware, MemoryStore, Nand, NandFaults, NandGeometry};
use proptest::prelude::*;

const PAGE: usize = 2048;

/// A fifth of the disk.
const GEOMETRY: NandGeometry = NandGeometry { page_bytes: PAGE as u32, ..TWO_UNITS };

const DISK_BYTES: u64 = 500 * PAGE as u64;

type Layer = Flashtier<Ssc, Disk>;

fn disk_config() -> DiskConfig {
    let spec = DiskProfile::builtin("st3500320as-2008").unwrap().spec().unwrap();
    DiskConfig {
        name: "disk".into(),
        drive: DriveModel::Mechanical(Box::new(spec)),
        bytes: DISK_BYTES,
        serial: 0,
    }
}

fn open(config: &FlashtierConfig, nand: &LentStore<MemoryStore>, disk: &LentStore<MemoryStore>) -> Layer {
    let mut hw = Hardware::new();
    let g = match config.ssc.mapping_unit {
        0 => GEOMETRY,
        unit => GEOMETRY.with_mapping_unit(unit as u32).unwrap(),
    };
    let nand = Nand::new(nand_config(g, NandFaults::default()), nand, &mut hw).unwrap();
    let disk = Disk::new(disk_config(), disk, &mut hw).unwrap();
    let ssc = Ssc::new(config.ssc.clone(), nand).unwrap();
    Flashtier::new(config.clone(), ssc, Box::new(disk)).unwrap()
}

fn stores() -> (LentStore<MemoryStore>, LentStore<MemoryStore>) {
    let store = |bytes| LentStore::new(MemoryStore::new(bytes));
    (store(1 << 20), store(disk_config().store_bytes()))
}

impl Layer {
    /// Asserts that the manager knows the dirty blocks, and audits the device.
    fn audit(&self) {
        self.ssc.audit();
        let mut dirty = Vec::new();
        CacheDevice::exists(&self.ssc, 0..self.blocks, &mut |block, state| {
            if state == BlockState::Dirty {
                dirty.push(block);
            }
        });
        assert_eq!(dirty, self.dirty.range(..).collect::<Vec<_>>());
    }
}

fn recovered(layer: &mut Layer) -> Recovery {
    layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap()
}

fn run(config: &FlashtierConfig, actions: &[Action]) {
    let (nand, disk) = stores();
    let sink = &mut Sink::untimed();
    let mut shadow = vec![0u8; DISK_BYTES as usize];
    let mut layer = open(config, &nand, &disk);
    layer.format(sink).unwrap();
    for (n, action) in actions.iter().enumerate() {
        if act(&mut layer, &mut shadow, n, action).unwrap() {
            drop(layer);
            layer = open(config, &nand, &disk);
            let recovery = recovered(&mut layer);
            let halts = matches!(action, Action::Restart);
            assert_eq!((recovery.clean, recovery.losses()), (halts, 0), "{recovery:?}");
        }
        layer.audit();
    }
    assert!(read(&mut layer, 0, 2000).unwrap() == shadow, "the contents differ at the end");
    let scope = CheckScope { data: true, ..CheckScope::default() };
    layer.check(sink, scope, &mut |f| panic!("{f:?}")).unwrap();
}

fn config(mode: FlashtierMode, durability: SscDurability) -> FlashtierConfig {
    let ssc = SscConfig { durability, flush: SscFlush::Checkpoint, ..SscConfig::default() };
    FlashtierConfig { mode, clean_batch: 16, ssc, ..FlashtierConfig::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn write_back_keeps_every_byte(actions in actions(2000, 60, 200)) {
        let mut config = config(FlashtierMode::WriteBack, SscDurability::Deferred);
        run(&config, &actions);
        config.bypass_bytes = 8 << 10;
        config.ssc.mapping_unit = 512;
        config.ssc.flush = SscFlush::Log;
        config.tunnel = true;
        run(&config, &actions);
        config.clean_order = CleanOrder::Halo;
        run(&config, &actions);
    }

    #[test]
    fn synchronous_write_back_needs_no_flush(actions in actions(2000, 60, 200)) {
        let mut config = config(FlashtierMode::WriteBack, SscDurability::Synchronous);
        run(&config, &actions);
        config.dirty_threshold = 1.0;
        config.ssc.mapping_unit = 1024;
        run(&config, &actions);
    }

    #[test]
    fn write_through_keeps_every_byte(actions in actions(2000, 60, 200)) {
        let mut config = config(FlashtierMode::WriteThrough, SscDurability::Deferred);
        run(&config, &actions);
        config.bypass_bytes = 8 << 10;
        config.ssc.durability = SscDurability::Synchronous;
        run(&config, &actions);
    }
}

fn state(layer: &Layer, block: u32) -> Option<BlockState> {
    CacheDevice::state(&layer.ssc, block)
}

fn write(layer: &mut Layer, at: u64, byte: u8, pages: usize) {
    let data = vec![byte; pages * PAGE];
    layer.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&data), Hints::NONE).unwrap();
}

fn metric(layer: &Layer, name: &str) -> f64 {
    let mut view = StackView::default();
    layer.visible(&mut view);
    view.metric(name).unwrap()
}

#[test]
fn dirty_blocks_are_cleaned_above_the_threshold_in_the_order_of_addresses() {
    let (nand, disk) = stores();
    let mut layer = open(&config(FlashtierMode::WriteBack, SscDurability::Deferred), &nand, &disk);
    let max = layer.dirty_max();
    // In descending order, each a block.
    for n in 0..max {
        write(&mut layer, (max - n) * 4, 1, 1);
    }
    assert_eq!((metric(&layer, "dirty_blocks"), metric(&layer, "cleaned")), (max as f64, 0.0));
    write(&mut layer, 0, 1, 1);
    // The batch is one run of the disk.
    let batch = (max + 1).min(16) as f64;
    assert_eq!((metric(&layer, "cleaned"), metric(&layer, "clean_writes")), (batch, 1.0));
    layer.params().set("dirty_threshold", "0.01").unwrap();
    while metric(&layer, "dirty_blocks") > layer.dirty_max() as f64 {
        layer.step(&mut Sink::untimed(), 1).unwrap();
    }
    assert_eq!(metric(&layer, "disk_flushes"), metric(&layer, "clean_writes"));
}

#[test]
fn streams_bypass_the_cache_and_random_writes_do_not() {
    let (nand, disk) = stores();
    let config = FlashtierConfig {
        bypass_bytes: 4 * PAGE as u64,
        ..config(FlashtierMode::WriteBack, SscDurability::Deferred)
    };
    let mut layer = open(&config, &nand, &disk);
    for n in 0..8 {
        write(&mut layer, n * 4, 1, 1);
    }
    // The first three blocks are no stream yet.
    assert_eq!((metric(&layer, "cache_writes"), metric(&layer, "direct_writes")), (3.0, 5.0));
    write(&mut layer, 1000, 2, 1);
    assert_eq!(metric(&layer, "cache_writes"), 4.0);
    assert_eq!(layer.write_guarantee().durable_at, DurabilityPoint::OnFlush);
}

#[test]
fn clean_blocks_survive_a_crash_only_where_the_disk_cannot_be_newer() {
    for (mode, durability, kept) in [
        (FlashtierMode::WriteBack, SscDurability::Synchronous, true),
        (FlashtierMode::WriteBack, SscDurability::Deferred, false),
        (FlashtierMode::WriteThrough, SscDurability::Synchronous, false),
    ] {
        let (nand, disk) = stores();
        let config = config(mode, durability);
        let mut layer = open(&config, &nand, &disk);
        // Reads are cached as clean.
        read(&mut layer, 0, 40).unwrap();
        assert_eq!(state(&layer, 3), Some(BlockState::Clean));
        layer.flush(&mut Sink::untimed()).unwrap();
        drop(layer);
        let mut layer = open(&config, &nand, &disk);
        assert!(!recovered(&mut layer).clean);
        assert_eq!(state(&layer, 3).is_some(), kept, "{mode:?} {durability:?}");
        // After a halt they are there in each configuration.
        read(&mut layer, 0, 40).unwrap();
        layer.halt(&mut Sink::untimed()).unwrap();
        drop(layer);
        let mut layer = open(&config, &nand, &disk);
        assert!(recovered(&mut layer).clean);
        assert_eq!(state(&layer, 3), Some(BlockState::Clean));
        // The disk has changed since the halt, so a crash is one.
        write(&mut layer, 0, 9, 1);
        drop(layer);
        assert!(!recovered(&mut open(&config, &nand, &disk)).clean);
    }
}

/// A power loss can take a write out of the volatile cache of the disk. A clean block that survives it would
/// be newer than the disk, and a read would return the older version once the device has dropped it.
#[test]
fn a_block_that_the_disk_can_still_lose_is_not_cached() {
    let (nand, disk) = stores();
    let config = FlashtierConfig {
        bypass_bytes: 2 * PAGE as u64,
        ..config(FlashtierMode::WriteBack, SscDurability::Synchronous)
    };
    let mut layer = open(&config, &nand, &disk);
    for n in 0..6 {
        write(&mut layer, n * 4, 1, 1);
    }
    assert!(metric(&layer, "direct_writes") >= 4.0);
    for flushed in [false, true] {
        read(&mut layer, 16, 4).unwrap();
        assert_eq!(state(&layer, 4).is_some(), flushed);
        layer.flush(&mut Sink::untimed()).unwrap();
    }
}

#[test]
fn clean_blocks_are_dropped_although_the_device_refuses_to_evict_them() {
    let (nand, disk) = stores();
    let mut layer = open(&config(FlashtierMode::WriteBack, SscDurability::Deferred), &nand, &disk);
    write(&mut layer, 0, 7, 1);
    read(&mut layer, 40, 4).unwrap();
    assert_eq!((state(&layer, 0), state(&layer, 10)), (Some(BlockState::Dirty), Some(BlockState::Clean)));
    CacheDevice::refuse(&mut layer.ssc, "worn out".into());
    layer.drop_clean(&mut Sink::untimed()).unwrap();
    assert_eq!((state(&layer, 0), state(&layer, 10)), (Some(BlockState::Dirty), None));
}

#[test]
fn a_request_larger_than_the_cache_is_served() {
    for mode in [FlashtierMode::WriteBack, FlashtierMode::WriteThrough] {
        for durability in [SscDurability::Deferred, SscDurability::Synchronous] {
            let (nand, disk) = stores();
            let config = FlashtierConfig { dirty_threshold: 1.0, ..config(mode, durability) };
            let mut layer = open(&config, &nand, &disk);
            write(&mut layer, 0, 7, 500);
            assert!(read(&mut layer, 0, 2000).unwrap().iter().all(|&b| b == 7));
            layer.audit();
        }
    }
}

/// A block that has the pattern of a miss is read with its own data: from the cache while it is dirty, and
/// from the disk when it is clean.
#[test]
fn a_block_with_the_pattern_of_a_miss_keeps_its_data() {
    let (nand, disk) = stores();
    let config =
        FlashtierConfig { tunnel: true, ..config(FlashtierMode::WriteBack, SscDurability::Deferred) };
    let mut layer = open(&config, &nand, &disk);
    let pattern = super::tunnel::PATTERN.repeat(PAGE / 16);
    layer.write(&mut Sink::untimed(), Sector(8), WriteData::Bytes(&pattern), Hints::NONE).unwrap();
    let counts = |layer: &Layer| {
        ["read_hits", "read_misses", "false_misses", "useless_bytes"].map(|name| metric(layer, name))
    };
    assert!(read(&mut layer, 8, 4).unwrap() == pattern);
    assert_eq!(counts(&layer), [1.0, 0.0, 0.0, 0.0]);
    while layer.clean_batch(&mut Sink::untimed()).unwrap().is_some() {}
    assert_eq!(state(&layer, 2), Some(BlockState::Clean));
    assert!(read(&mut layer, 8, 4).unwrap() == pattern);
    assert!(read(&mut layer, 9, 2).unwrap() == pattern[..1024]);
    assert_eq!(counts(&layer), [1.0, 2.0, 2.0, 0.0]);
    // A true miss transfers what was asked for.
    read(&mut layer, 100, 3).unwrap();
    assert_eq!(counts(&layer), [1.0, 3.0, 2.0, 1536.0]);
    // Without the tunnel, the block is a hit.
    let (nand, disk) = stores();
    let mut layer = open(&FlashtierConfig { tunnel: false, ..config }, &nand, &disk);
    layer.write(&mut Sink::untimed(), Sector(8), WriteData::Bytes(&pattern), Hints::NONE).unwrap();
    while layer.clean_batch(&mut Sink::untimed()).unwrap().is_some() {}
    assert!(read(&mut layer, 8, 4).unwrap() == pattern);
    assert_eq!(counts(&layer), [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn extents_and_impossible_disks() {
    let (nand, disk) = stores();
    let config = config(FlashtierMode::WriteBack, SscDurability::Deferred);
    let mut layer = open(&config, &nand, &disk);
    write(&mut layer, 8, 7, 2);
    let mut cached = 0;
    layer
        .extents(Sector(0), 2000, &mut |e| {
            cached += if e.place == Some(frit_core::MediumKind::Nand) { e.sectors } else { 0 };
        })
        .unwrap();
    assert_eq!(cached, 8);
    assert_eq!(layer.bytes(), DISK_BYTES);
    assert!(FlashtierConfig { clean_batch: 0, ..config.clone() }.validate().is_err());
    assert!(FlashtierConfig { dirty_threshold: 0.0, ..config }.validate().is_err());
}
