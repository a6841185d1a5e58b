//! Guarantees of a clean shutdown: afterwards all data is durable, and damage is reported as an
//! error.

use super::*;
use crate::numbers::{CacheSlot, Lbn, RecordSlot};
use frit_core::{Error, Result, Sink};

/// A memory store that behaves like files behind a page cache.
#[derive(Debug)]
struct Files(MemoryStore);

impl Store for Files {
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn is_blank(&self) -> bool {
        self.0.is_blank()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.0.read(at, into)
    }
    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.0.write(at, data)
    }
    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
    fn volatile(&self) -> bool {
        true
    }
}

fn files() -> (LentStore<Files>, LentStore<MemoryStore>) {
    let (pcm, disk) = memory();
    (LentStore::new(Files(pcm)), LentStore::new(disk))
}

fn two_copies() -> CacheConfig {
    CacheConfig { record_copies: 2, ..named("halo") }
}

fn flip(layer: &mut Layer, at: u64) {
    let mut byte = [0];
    layer.space.pcm.peek(at, &mut byte).unwrap();
    layer.space.pcm.store_mut().write(at, &[byte[0] ^ 4]).unwrap();
}

/// Returns the addresses of the copies of a block's record.
fn records(layer: &Layer, lbn: Lbn) -> Vec<u64> {
    let slot = layer.dir.get(lbn).unwrap();
    layer.space.layout.places(slot).map(|p| layer.space.layout.record(p)).collect()
}

fn block(layer: &mut Layer, lbn: u64) -> Result<Vec<u8>> {
    let mut back = vec![0xEE; 4096];
    layer
        .read(&mut Sink::untimed(), Sector(lbn * 8), ReadTarget::Bytes(&mut back), Hints::NONE)
        .map(|()| back)
}

/// Blocks 10 to 29, of which the disk has an earlier version, after a clean shutdown.
fn halted(pcm: &LentStore<Files>, disk: &LentStore<MemoryStore>, model: &mut Model) -> Layer {
    let mut layer = open(&two_copies(), pcm, disk);
    layer.format(&mut Sink::untimed()).unwrap();
    model.write(&mut layer, 80, 160);
    layer.set("drain", "true").unwrap();
    while layer.step(&mut Sink::untimed(), 8).unwrap() != frit_core::Progress::Idle {}
    for lbn in 10..30 {
        model.write(&mut layer, lbn * 8, 8);
    }
    layer.flush(&mut Sink::untimed()).unwrap();
    layer.halt(&mut Sink::untimed()).unwrap();
    layer
}

/// Regression test. A volume that was shut down cleanly is recovered as after a power loss, because
/// nothing else is known. A block whose data did not match its record used to be dropped as one
/// that was not synced, and the disk's version was read.
#[test]
fn a_bit_that_flips_behind_a_halt_is_an_error_and_never_the_disks_version() {
    for stop in [CrashKind::PowerLoss, CrashKind::Process] {
        let ((pcm, disk), mut model) = (files(), Model::new());
        let mut layer = halted(&pcm, &disk, &mut model);
        let at = layer.space.layout.data(layer.dir.get(Lbn(12)).unwrap());
        flip(&mut layer, at + 1000);
        let found = layer.recover(&mut Sink::untimed(), stop).unwrap();
        assert!(found.clean && found.pages == 20, "{found:?}");
        let e = block(&mut layer, 12).unwrap_err().to_string();
        assert!(e.contains("block 12 of the disk"), "{e}");
        let mut told = Vec::new();
        for older in [false, true] {
            let scope = CheckScope { data: true, repair: true, older };
            layer
                .check(&mut Sink::untimed(), scope, &mut |f| told.push((f.kind, f.lpn, f.repaired)))
                .unwrap();
        }
        assert_eq!(told, [("bad-data", Some(12), false), ("bad-data", Some(12), true)]);
        layer.audit();
    }
}

/// The same for a cache that was not shut down: data before a completed flush is durable.
#[test]
fn a_bit_that_flips_in_what_was_flushed_is_an_error_behind_a_stop_of_the_machine() {
    let ((pcm, disk), mut model) = (files(), Model::new());
    let mut layer = halted(&pcm, &disk, &mut model);
    model.write(&mut layer, 96, 8);
    layer.flush(&mut Sink::untimed()).unwrap();
    let at = layer.space.layout.data(layer.dir.get(Lbn(12)).unwrap());
    flip(&mut layer, at + 1000);
    let found = layer.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
    assert!(!found.clean);
    assert!(matches!(block(&mut layer, 12), Err(Error::Corrupt { .. })));
}

/// Regression test. The page of the marks had the only copies of the mark. When it was damaged together
/// with a block, the block was taken for a torn write, and its earlier version was read.
#[test]
fn damage_to_the_page_of_marks_does_not_make_a_damaged_block_a_torn_one() {
    for (copies, stop) in [(2, CrashKind::Process), (2, CrashKind::PowerLoss), (1, CrashKind::Process)] {
        let ((pcm, disk), mut model) = (stores(), Model::new());
        let config = CacheConfig { record_copies: copies, ..named("halo") };
        let mut layer = open(&config, &pcm, &disk);
        layer.format(&mut Sink::untimed()).unwrap();
        for _ in 0..2 {
            model.write(&mut layer, 80, 8);
            layer.flush(&mut Sink::untimed()).unwrap();
        }
        let at = layer.space.layout.data(layer.dir.get(Lbn(10)).unwrap());
        flip(&mut layer, at + 1000);
        layer.space.pcm.store_mut().write(4096, &[0; 4096]).unwrap();
        layer.recover(&mut Sink::untimed(), stop).unwrap();
        let read = block(&mut layer, 10);
        // Without second copies, which are for volumes, nothing tells of the damage.
        assert_eq!(read.is_err(), copies == 2, "{stop:?}");
        layer.audit();
    }
}

#[test]
fn a_record_that_is_lost_in_both_copies_is_restored_from_the_others() {
    for lbn in 10..30 {
        let ((pcm, disk), mut model) = (files(), Model::new());
        let mut layer = halted(&pcm, &disk, &mut model);
        for at in records(&layer, Lbn(lbn)) {
            flip(&mut layer, at + u64::from(lbn));
        }
        let found = layer.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
        assert!(found.clean && !found.lost_any() && found.pages == 20, "{found:?}");
        model.all(&mut layer);
        layer.audit();
    }
}

/// With several lost records their blocks are unknown: any block that is not cached may be one of
/// them.
#[test]
fn several_lost_records_make_everything_that_is_not_cached_an_error() {
    let ((pcm, disk), mut model) = (files(), Model::new());
    let mut layer = halted(&pcm, &disk, &mut model);
    let lost: Vec<u64> = [12, 20].into_iter().flat_map(|lbn| records(&layer, Lbn(lbn))).collect();
    lost.into_iter().for_each(|at| flip(&mut layer, at + 9));
    for _ in 0..2 {
        let found = layer.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
        assert!(found.clean && found.lost_any() && found.pages == 18, "{found:?}");
        let what = &found.unnamed[0];
        assert!(
            what.contains("the records of 2 or more cached blocks") && what.contains("(block 12"),
            "{what}"
        );
        for lbn in [12, 20, 300] {
            assert!(matches!(block(&mut layer, lbn), Err(Error::Corrupt { .. })), "{lbn}");
        }
        model.read(&mut layer, 13 * 8, 8);
        let write = layer.write(&mut Sink::untimed(), Sector(0), WriteData::Bytes(&[1; 4096]), Hints::NONE);
        assert!(matches!(write, Err(Error::ReadOnly { .. })), "{write:?}");
        assert!(layer.halt(&mut Sink::untimed()).is_err(), "the summary is kept");
    }
    let mut told = Vec::new();
    for older in [false, true] {
        let scope = CheckScope { repair: true, older, ..CheckScope::default() };
        layer.check(&mut Sink::untimed(), scope, &mut |f| told.push((f.kind, f.repaired))).unwrap();
    }
    assert_eq!(told, [("missing-records", false), ("missing-records", true)]);
    assert!(block(&mut layer, 300).is_ok(), "the disk's versions show");
    layer.halt(&mut Sink::untimed()).unwrap();
    let found = layer.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
    assert!(found.clean && !found.lost_any(), "{found:?}");
}

/// An outdated copy of the records lists blocks that were removed since.
#[test]
fn an_earlier_copy_of_all_records_does_not_count() {
    for copy in 0..2 {
        let ((pcm, disk), mut model) = (files(), Model::new());
        let mut layer = halted(&pcm, &disk, &mut model);
        let layout = layer.space.layout;
        let at = layout.record(crate::record::RecordAddr { slot: RecordSlot(0), copy });
        let mut earlier = vec![0; layout.slots as usize * 32];
        layer.space.pcm.peek(at, &mut earlier).unwrap();
        for lbn in 10..30 {
            model.write(&mut layer, lbn * 8, 8);
        }
        model.discard(&mut layer, 96, 32);
        layer.halt(&mut Sink::untimed()).unwrap();
        layer.space.pcm.store_mut().write(at, &earlier).unwrap();
        let found = layer.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
        assert!(found.clean && !found.lost_any() && found.pages == 16, "copy {copy}: {found:?}");
        model.all(&mut layer);
        layer.audit();
    }
}

/// A block whose record is damaged while the cache is in use stays known as damaged across a clean
/// shutdown.
#[test]
fn a_block_whose_record_was_damaged_before_the_halt_stays_an_error() {
    let ((pcm, disk), mut model) = (files(), Model::new());
    let mut layer = halted(&pcm, &disk, &mut model);
    records(&layer, Lbn(12)).into_iter().for_each(|at| flip(&mut layer, at + 9));
    layer.halt(&mut Sink::untimed()).unwrap();
    let found = layer.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
    assert!(found.clean && found.pages == 20, "{found:?}");
    assert!(matches!(block(&mut layer, 12), Err(Error::Corrupt { .. })));
    model.read(&mut layer, 13 * 8, 8);
}

/// An outdated header refers to a shutdown that is older than the records.
#[test]
fn a_head_that_is_older_than_the_records_says_nothing_of_them() {
    let ((pcm, disk), mut model) = (files(), Model::new());
    let mut layer = halted(&pcm, &disk, &mut model);
    let mut head = vec![0; 1024];
    layer.space.pcm.peek(0, &mut head).unwrap();
    model.write(&mut layer, 96, 64);
    layer.flush(&mut Sink::untimed()).unwrap();
    layer.space.pcm.store_mut().write(0, &head).unwrap();
    let found = layer.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
    assert!(!found.clean && !found.lost_any(), "{found:?}");
    model.all(&mut layer);
}

/// Regression test. A part of a block was written during the writeback of the block, and a crash
/// left both versions. The earlier one used to be dropped if it was damaged, and the disk's version
/// of the rest was read.
#[test]
fn a_damaged_rest_of_a_block_that_was_leaving_is_an_error() {
    for damaged in [false, true] {
        let ((pcm, disk), mut model) = (files(), Model::new());
        let mut layer = halted(&pcm, &disk, &mut model);
        model.write(&mut layer, 96, 8);
        layer.flush(&mut Sink::untimed()).unwrap();
        let (earlier, slot) = (layer.dir.get(Lbn(12)).unwrap(), CacheSlot(layer.space.layout.slots - 1));
        assert!(layer.dir.iter().all(|(_, used)| used != slot));
        // A new version of the first sector, in another slot.
        let (mut data, valid) = (vec![0; 4096], 1);
        data[..512].fill(0x5A);
        let record = crate::record::Record {
            lbn: 12,
            valid,
            seq: layer.space.seq + 1,
            digest: super::super::fragments::digest_of(&data, valid),
        };
        layer.space.pcm.store_mut().write(layer.space.layout.data(slot), &data).unwrap();
        for place in layer.space.layout.places(slot) {
            let at = layer.space.layout.record(place);
            layer.space.pcm.store_mut().write(at, &record.bytes(place)).unwrap();
        }
        if damaged {
            let at = layer.space.layout.data(earlier);
            flip(&mut layer, at + 1000);
        }
        for _ in 0..2 {
            let found = layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
            assert!(!found.clean);
            layer.audit();
            match block(&mut layer, 12) {
                Err(Error::Corrupt { .. }) => assert!(damaged),
                Err(e) => panic!("{e}"),
                Ok(back) => {
                    assert!(
                        !damaged
                            && back[..512] == data[..512]
                            && back[512..] == model.bytes[96 * 512 + 512..104 * 512]
                    );
                }
            }
        }
    }
}
