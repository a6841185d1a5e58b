//! Failed flushes of the SSD, and failed writes of the disk.

use super::*;
use crate::testing::{FailingAccess, FailingStore};
use frit_core::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn failed_sync() -> Error {
    Error::Medium { what: "the sync failed".into() }
}

type FailingLayer<'a> = Flashcache<UntimedSink, Disk<FailingStore>, Disk<&'a mut MemoryStore>>;

/// Returns a cache that was opened after a clean shutdown, with dirty block 3, and the switch of failures.
fn reopened(disk: &mut MemoryStore) -> (FailingLayer<'_>, Arc<AtomicBool>) {
    let mut hw = Hardware::new();
    let fails = Arc::new(AtomicBool::new(false));
    let (store, access) = (stores().0, FailingAccess::Sync);
    let store = FailingStore { store, fails: fails.clone(), access, error: failed_sync };
    let ssd = Disk::new(device("ssd", SSD_BYTES), store, &mut hw).unwrap();
    let disk = Disk::new(device("disk", DISK_BYTES), disk, &mut hw).unwrap();
    let mut layer = Flashcache::new(small(), Box::new(ssd), Box::new(disk), true).unwrap();
    let sink = &mut UntimedSink::new();
    layer.format(sink).unwrap();
    layer.write(sink, Sector(6), WriteData::Bytes(&[3; BLOCK]), Hints::NONE).unwrap();
    layer.halt(sink).unwrap();
    assert!(layer.recover(sink, CrashKind::Process).unwrap().clean);
    (layer, fails)
}

fn first_byte(layer: &mut FailingLayer<'_>, block: u64) -> Result<u8> {
    let mut bytes = [0; BLOCK];
    let into = ReadTarget::Bytes(&mut bytes);
    layer.read(&mut UntimedSink::new(), Sector(block * 2), into, Hints::NONE).map(|()| bytes[0])
}

/// The header that states the use of the cache is the first write after an opening. On a worn-out SSD, its
/// flush fails after every opening.
#[test]
fn dirty_blocks_are_read_after_a_failed_flush_of_metadata_alone() {
    let (_, mut disk) = stores();
    let (mut layer, fails) = reopened(&mut disk);
    fails.store(true, Ordering::Relaxed);
    assert_eq!(first_byte(&mut layer, 100).unwrap(), 0, "a miss, which is not cached");
    assert!(layer.health.refusal().is_some());
    assert_eq!(first_byte(&mut layer, 3).unwrap(), 3);
}

#[test]
fn dirty_blocks_are_errors_after_a_failed_flush_of_slots() {
    let (_, mut disk) = stores();
    let (mut layer, fails) = reopened(&mut disk);
    let sink = &mut UntimedSink::new();
    layer.write(sink, Sector(8), WriteData::Bytes(&[4; BLOCK]), Hints::NONE).unwrap();
    fails.store(true, Ordering::Relaxed);
    assert!(layer.flush(sink).is_err());
    assert!(matches!(first_byte(&mut layer, 4), Err(Error::Medium { .. })));
    assert_eq!(first_byte(&mut layer, 100).unwrap(), 0, "from the disk");
}

/// A part of the write goes to the disk and fails. The block that became dirty before has metadata then: writes
/// to it are acknowledged in place, and a flush makes them durable.
#[test]
fn a_block_of_a_failed_write_is_durable_after_a_flush() {
    let (mut ssd, disk) = stores();
    let fails = Arc::new(AtomicBool::new(false));
    let store =
        FailingStore { store: disk, fails: fails.clone(), access: FailingAccess::Any, error: failed_sync };
    let mut hw = Hardware::new();
    let ssd = Disk::new(device("ssd", SSD_BYTES), &mut ssd, &mut hw).unwrap();
    let disk = Disk::new(device("disk", DISK_BYTES), store, &mut hw).unwrap();
    let mut layer = Flashcache::new(small(), Box::new(ssd), Box::new(disk), true).unwrap();
    let sink = &mut UntimedSink::new();
    layer.format(sink).unwrap();
    fails.store(true, Ordering::Relaxed);
    // Half of block 2, all of block 3, half of block 4.
    let write = |layer: &mut Flashcache<UntimedSink, _, _>, at, byte, sectors: usize| {
        let data = vec![byte; sectors * 512];
        layer.write(&mut UntimedSink::new(), Sector(at), WriteData::Bytes(&data), Hints::NONE)
    };
    assert!(write(&mut layer, 5, 1, 4).is_err());
    write(&mut layer, 6, 2, 1).unwrap();
    layer.flush(sink).unwrap();
    fails.store(false, Ordering::Relaxed);
    layer.recover(sink, CrashKind::Process).unwrap();
    let mut bytes = [0; BLOCK];
    layer.read(sink, Sector(6), ReadTarget::Bytes(&mut bytes), Hints::NONE).unwrap();
    assert_eq!((bytes[0], bytes[512]), (2, 1));
}

/// The SSD refuses the metadata that states blocks to be clean. They stay dirty, so no newer version goes to the
/// disk that a recovery would hide behind them.
#[test]
fn blocks_whose_metadata_is_refused_stay_dirty() {
    let (ssd, mut disk) = stores();
    let fails = Arc::new(AtomicBool::new(false));
    let error = || Error::ReadOnly { why: "worn out".into() };
    let store = FailingStore { store: ssd, fails: fails.clone(), access: FailingAccess::Write, error };
    let mut hw = Hardware::new();
    let ssd = Disk::new(device("ssd", SSD_BYTES), store, &mut hw).unwrap();
    let disk = Disk::new(device("disk", DISK_BYTES), &mut disk, &mut hw).unwrap();
    let config = FlashcacheConfig { clean_batch: 100, ..small() };
    let mut layer = Flashcache::new(config, Box::new(ssd), Box::new(disk), true).unwrap();
    let sink = &mut UntimedSink::new();
    layer.format(sink).unwrap();
    let write = |layer: &mut Flashcache<UntimedSink, _, _>, block: u64, byte, sectors: usize| {
        let data = vec![byte; sectors * 512];
        layer.write(&mut UntimedSink::new(), Sector(block * 2), WriteData::Bytes(&data), Hints::NONE)
    };
    (0..8).for_each(|block| write(&mut layer, block, 1, 2).unwrap());
    layer.settle(sink).unwrap();
    layer.flush(sink).unwrap();
    assert!(!layer.flushed.is_empty());
    fails.store(true, Ordering::Relaxed);
    assert!(layer.settle(sink).is_err());
    let written: Vec<u64> = (0..8).filter(|&block| write(&mut layer, block, 9, 1).is_ok()).collect();
    fails.store(false, Ordering::Relaxed);
    layer.flush(sink).unwrap();
    layer.recover(sink, CrashKind::Process).unwrap();
    for block in written {
        let mut bytes = [0; BLOCK];
        layer.read(sink, Sector(block * 2), ReadTarget::Bytes(&mut bytes), Hints::NONE).unwrap();
        assert_eq!((bytes[0], bytes[512]), (9, 1), "{block}");
    }
    let mut findings = 0;
    layer.check(sink, CheckScope::default(), &mut |_| findings += 1).unwrap();
    assert_eq!(findings, 0);
}
