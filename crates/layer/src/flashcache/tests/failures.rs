//! Failed flushes of the SSD, and failed writes of the disk.

use super::super::sector::UsageState;
use super::*;
use crate::testing::{FailingAccess, FailingStore};
use frit_core::{Error, Result, Sink, Tok};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

fn failed_sync() -> Error {
    Error::Medium { what: "the sync failed".into() }
}

fn worn_out() -> Error {
    Error::ReadOnly { why: "worn out".into() }
}

/// Returns a formatted cache on an SSD whose accesses can fail, and the switch of failures.
fn on_failing_ssd(
    config: &FlashcacheConfig,
    disk: &LentStore<MemoryStore>,
    access: FailingAccess,
    error: fn() -> Error,
) -> (Layer, Arc<AtomicBool>) {
    let (ssd, fails) = FailingStore::new(memory().0, access, error);
    let mut layer = open(config, ssd, disk);
    layer.format(&mut Sink::untimed()).unwrap();
    (layer, fails)
}

fn put(layer: &mut impl BlockLayer, sector: u64, byte: u8, sectors: usize) -> Result<()> {
    let data = vec![byte; sectors * 512];
    layer.write(&mut Sink::untimed(), Sector(sector), WriteData::Bytes(&data), Hints::NONE)
}

/// First bytes of both sectors of a block.
fn first_bytes(layer: &mut impl BlockLayer, block: u64) -> Result<(u8, u8)> {
    let mut bytes = [0; BLOCK];
    let into = ReadTarget::Bytes(&mut bytes);
    layer.read(&mut Sink::untimed(), Sector(block * 2), into, Hints::NONE).map(|()| (bytes[0], bytes[512]))
}

fn findings(layer: &mut impl Durable) -> u32 {
    let mut findings = 0;
    layer.check(&mut Sink::untimed(), CheckScope::default(), &mut |_| findings += 1).unwrap();
    findings
}

/// Returns a cache that was opened after a clean shutdown, with dirty block 3, and the switch of failures.
fn reopened(disk: &LentStore<MemoryStore>) -> (Layer, Arc<AtomicBool>) {
    let (mut layer, fails) = on_failing_ssd(&small(), disk, FailingAccess::Sync, failed_sync);
    let sink = &mut Sink::untimed();
    put(&mut layer, 6, 3, 2).unwrap();
    layer.halt(sink).unwrap();
    assert!(layer.recover(sink, CrashKind::Process).unwrap().clean);
    (layer, fails)
}

/// The header that states the use of the cache is the first write after an opening. On a worn-out SSD, its
/// flush fails after every opening.
#[test]
fn dirty_blocks_are_read_after_a_failed_flush_of_metadata_alone() {
    let (_, disk) = stores();
    let (mut layer, fails) = reopened(&disk);
    fails.store(true, Ordering::Relaxed);
    assert_eq!(first_bytes(&mut layer, 100).unwrap().0, 0, "a miss, which is not cached");
    assert!(layer.health.refusal().is_some());
    assert_eq!(first_bytes(&mut layer, 3).unwrap().0, 3);
}

#[test]
fn dirty_blocks_are_errors_after_a_failed_flush_of_slots() {
    let (_, disk) = stores();
    let (mut layer, fails) = reopened(&disk);
    let sink = &mut Sink::untimed();
    put(&mut layer, 8, 4, 2).unwrap();
    fails.store(true, Ordering::Relaxed);
    assert!(layer.flush(sink).is_err());
    assert!(matches!(first_bytes(&mut layer, 4), Err(Error::Medium { .. })));
    assert_eq!(first_bytes(&mut layer, 100).unwrap().0, 0, "from the disk");
}

/// A part of the write goes to the disk and fails. The block that became dirty before has metadata then: writes
/// to it are acknowledged in place, and a flush makes them durable.
#[test]
fn a_block_of_a_failed_write_is_durable_after_a_flush() {
    let (ssd, disk) = memory();
    let (disk, fails) = FailingStore::new(disk, FailingAccess::Any, failed_sync);
    let mut layer = open(&small(), ssd, disk);
    let sink = &mut Sink::untimed();
    layer.format(sink).unwrap();
    fails.store(true, Ordering::Relaxed);
    // Half of block 2, all of block 3, half of block 4.
    assert!(put(&mut layer, 5, 1, 4).is_err());
    put(&mut layer, 6, 2, 1).unwrap();
    layer.flush(sink).unwrap();
    fails.store(false, Ordering::Relaxed);
    layer.recover(sink, CrashKind::Process).unwrap();
    assert_eq!(first_bytes(&mut layer, 3).unwrap(), (2, 1));
}

/// The SSD refuses the metadata that states blocks to be clean. They stay dirty, so no newer version goes to the
/// disk that a recovery would hide behind them.
#[test]
fn blocks_whose_metadata_is_refused_stay_dirty() {
    let (_, disk) = stores();
    let config = FlashcacheConfig { clean_batch: 100, ..small() };
    let (mut layer, fails) = on_failing_ssd(&config, &disk, FailingAccess::Write, worn_out);
    let sink = &mut Sink::untimed();
    (0..8).for_each(|block| put(&mut layer, block * 2, 1, 2).unwrap());
    layer.settle(sink).unwrap();
    layer.flush(sink).unwrap();
    assert!(!layer.flushed.is_empty());
    fails.store(true, Ordering::Relaxed);
    assert!(layer.settle(sink).is_err());
    let written: Vec<u64> = (0..8).filter(|&block| put(&mut layer, block * 2, 9, 1).is_ok()).collect();
    fails.store(false, Ordering::Relaxed);
    layer.flush(sink).unwrap();
    layer.recover(sink, CrashKind::Process).unwrap();
    for block in written {
        assert_eq!(first_bytes(&mut layer, block).unwrap(), (9, 1), "{block}");
    }
    assert_eq!(findings(&mut layer), 0);
}

/// The SSD takes the metadata that states a block to be clean, and fails its flush. The block stays dirty, so a
/// flush writes its metadata again before it makes a later change of the block durable.
#[test]
fn a_change_of_a_block_whose_metadata_was_not_flushed_is_durable_after_a_flush() {
    let (_, disk) = stores();
    let config = FlashcacheConfig { clean_batch: 100, ..small() };
    let (mut layer, fails) = on_failing_ssd(&config, &disk, FailingAccess::Sync, worn_out);
    let sink = &mut Sink::untimed();
    (0..8).for_each(|block| put(&mut layer, block * 2, 1, 2).unwrap());
    layer.settle(sink).unwrap();
    fails.store(true, Ordering::Relaxed);
    assert!(layer.settle(sink).is_err());
    fails.store(false, Ordering::Relaxed);
    // A discard writes no metadata, like a write to a part of a dirty block.
    for block in 0..8 {
        layer.discard(sink, Sector(block * 2), 1).unwrap();
    }
    layer.flush(sink).unwrap();
    layer.recover(sink, CrashKind::Process).unwrap();
    for block in 0..8 {
        assert_eq!(first_bytes(&mut layer, block).unwrap(), (0, 1), "{block}");
    }
}

/// The SSD takes the data and the metadata of a block, and refuses the header that commits their epoch. No flush
/// succeeds until a header is written: a recovery takes the block for one that no flush covered.
#[test]
fn a_flush_after_a_refused_commit_commits() {
    let (_, disk) = stores();
    // Nothing is cleaned.
    let config = FlashcacheConfig { dirty_threshold: 1.0, ..small() };
    let (mut layer, fails) = on_failing_ssd(&config, &disk, FailingAccess::Write, worn_out);
    let sink = &mut Sink::untimed();
    put(&mut layer, 6, 3, 2).unwrap();
    fails.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        assert!(matches!(layer.flush(sink), Err(Error::ReadOnly { .. })));
    }
    assert!(layer.halt(sink).is_err() && layer.flush(sink).is_err());
    fails.store(false, Ordering::Relaxed);
    layer.flush(sink).unwrap();
    layer.recover(sink, CrashKind::Process).unwrap();
    assert_eq!(first_bytes(&mut layer, 3).unwrap(), (3, 3));
}

/// The SSD takes a header and fails its flush. After a crash it may have the header: blocks that became dirty
/// since then are of a later epoch, and no cache that is in use changes under the header of a shutdown.
#[test]
fn a_header_whose_flush_failed_commits_nothing_later() {
    for state in [UsageState::InUse, UsageState::Halted] {
        let (_, disk) = stores();
        let config = FlashcacheConfig { dirty_threshold: 1.0, ..small() };
        let (mut layer, fails) = on_failing_ssd(&config, &disk, FailingAccess::Sync, worn_out);
        let sink = &mut Sink::untimed();
        put(&mut layer, 6, 3, 2).unwrap();
        layer.flush(sink).unwrap();
        fails.store(true, Ordering::Relaxed);
        assert!(layer.write_header(sink, state, Tok::DONE).is_err());
        fails.store(false, Ordering::Relaxed);
        assert_eq!(put(&mut layer, 8, 4, 2).is_err(), state == UsageState::Halted);
        layer.recover(sink, CrashKind::Process).unwrap();
        assert_eq!(first_bytes(&mut layer, 3).unwrap(), (3, 3));
        assert_eq!(first_bytes(&mut layer, 4).unwrap(), (0, 0), "no flush made it durable");
    }
}

/// The disk fails in the middle of a write, which leaves the cache consistent. If the SSD then fails to take the
/// metadata of what became dirty, it does not.
#[test]
fn a_failure_of_the_ssd_after_one_of_the_disk_refuses_writes() {
    static SSD_FAILS: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let fail_both = || {
        SSD_FAILS.get().unwrap().store(true, Ordering::Relaxed);
        failed_sync()
    };
    let (ssd, disk) = memory();
    let (ssd, ssd_fails) = FailingStore::new(ssd, FailingAccess::Write, failed_sync);
    SSD_FAILS.set(ssd_fails).unwrap();
    let (disk, disk_fails) = FailingStore::new(disk, FailingAccess::Any, fail_both);
    let mut layer = open(&small(), ssd, disk);
    layer.format(&mut Sink::untimed()).unwrap();
    disk_fails.store(true, Ordering::Relaxed);
    assert!(put(&mut layer, 5, 1, 4).is_err());
    assert!(Durable::refuses(&layer).is_some());
}

/// After a crash, a recovery makes entries void that no flush committed. If the SSD refuses that, the volume is
/// read-only, and its committed blocks can be read.
#[test]
fn a_recovery_on_an_ssd_that_refuses_writes_succeeds() {
    let (_, disk) = stores();
    // Nothing is cleaned.
    let config = FlashcacheConfig { dirty_threshold: 1.0, ..small() };
    let (mut layer, fails) = on_failing_ssd(&config, &disk, FailingAccess::Write, worn_out);
    let sink = &mut Sink::untimed();
    put(&mut layer, 6, 3, 2).unwrap();
    layer.flush(sink).unwrap();
    put(&mut layer, 8, 4, 2).unwrap();
    fails.store(true, Ordering::Relaxed);
    layer.recover(sink, CrashKind::Process).unwrap();
    assert!(Durable::refuses(&layer).is_some());
    assert_eq!(first_bytes(&mut layer, 3).unwrap(), (3, 3));
    assert_eq!(first_bytes(&mut layer, 4).unwrap(), (0, 0), "no flush made it durable");
    assert_eq!(findings(&mut layer), 0);
}

/// On a volume that has become read-only, the entry of a block can have been refused. The check reports only
/// those that a recovery would take for something else.
#[test]
fn a_check_of_a_read_only_cache_reports_entries_that_matter() {
    let (_, disk) = stores();
    let (mut layer, _) = on_failing_ssd(&small(), &disk, FailingAccess::Write, worn_out);
    let slot = layer.sets.victim(0).unwrap();
    layer.sets.put(slot, 5);
    layer.sets.change(slot, flag::DIRTY | flag::FRESH, 0);
    assert_eq!(findings(&mut layer), 1);
    layer.health.refuse("worn out".into());
    assert_eq!(findings(&mut layer), 0, "no flush has committed it");
    layer.sets.change(slot, flag::FLUSHED, flag::FRESH);
    assert_eq!(findings(&mut layer), 0, "the disk has it durably");
    layer.sets.change(slot, 0, flag::FLUSHED);
    assert_eq!(findings(&mut layer), 1, "only the SSD has it");
}
