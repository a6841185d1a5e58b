//! Failed flushes of the SSD.

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
