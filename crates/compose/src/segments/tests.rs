//! Tests of a log of segments over a store and a map device that lose what was not flushed.

use super::{Segments, SegmentsConfig};
use crate::composed::Composed;
use crate::devices::Devices;
use crate::testing::{self, LosesPower, TestDisk, TestObjects, exercise, findings, read, step, write};
use frit_core::{
    BlockLayer, CrashKind, Durable, Error, Extent, Hints, MediumKind, ObjectId, ParamTable, Params, Progress,
    Quiesce, Sector, Sink, WriteData, split_mix,
};
use proptest::prelude::*;

const CHUNK: u64 = 4096;
const SECTORS: u64 = CHUNK / 512;
/// Chunks of an object.
const PER_OBJECT: u64 = 4;
/// Objects reserved at an over-provisioning of 50 %.
const RESERVED: u64 = 5;

type Layer = Composed<Segments>;
type Devs = (TestDisk, TestObjects);

fn config() -> SegmentsConfig {
    SegmentsConfig { over_provisioning: 50, ..SegmentsConfig::default() }
}

fn devices(offered: u64) -> Devs {
    let map = TestDisk::new((2 * (offered.div_ceil(30) + 1) * 512) as usize);
    let objects = 2 * offered.div_ceil(PER_OBJECT) + RESERVED;
    (map, TestObjects::new((PER_OBJECT * CHUNK) as u32, objects))
}

fn open((map, objects): &Devs) -> Layer {
    let map = Devices::new(vec![Box::new(map.clone())]);
    Composed::new(Segments::new(config(), map, Box::new(objects.clone())).unwrap())
}

/// A formatted layer of `offered` chunks.
fn layer(offered: u64) -> (Devs, Layer) {
    let devs = devices(offered);
    let mut l = open(&devs);
    l.format(&mut Sink::untimed()).unwrap();
    (devs, l)
}

fn flush(l: &mut Layer) -> frit_core::Result<()> {
    l.flush(&mut Sink::untimed())
}

fn metric(l: &Layer, name: &str) -> u64 {
    testing::metric(l, name) as u64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn contents_are_those_of_a_plain_array(
        steps in prop::collection::vec(step(48 * SECTORS, SECTORS), 1..160),
        seed in any::<u64>(),
    ) {
        let devs = devices(48);
        exercise(&devs, || open(&devs), &steps, seed);
        let l = open(&devs);
        assert_eq!(l.info().sectors, 48 * SECTORS);
    }
}

#[test]
fn chunks_collect_in_objects_and_a_run_is_one_request() {
    let (devs, mut l) = layer(48);
    write(&mut l, 0, 4 * SECTORS, 1).unwrap();
    assert_eq!(devs.1.lock().puts, 0, "the segment is put when the next chunk needs a place");
    write(&mut l, 4 * SECTORS, 2 * SECTORS, 2).unwrap();
    assert_eq!(devs.1.lock().puts, 1);
    // In an object, across objects, and in DRAM.
    let all = [vec![1; 4 * CHUNK as usize], vec![2; 2 * CHUNK as usize]].concat();
    assert_eq!(read(&mut l, 0, 6 * SECTORS).unwrap(), all);
    assert_eq!(devs.1.lock().gets, 1, "one request for four chunks");
    assert_eq!(read(&mut l, SECTORS + 3, 5).unwrap(), vec![1; 5 * 512]);
    flush(&mut l).unwrap();
    assert_eq!(devs.1.lock().puts, 2);
    flush(&mut l).unwrap();
    assert_eq!(devs.1.lock().puts, 2, "nothing is new");
    let mut extents = Vec::new();
    l.extents(Sector(0), 8 * SECTORS, &mut |e| extents.push(e)).unwrap();
    let extent = |chunks: u64, place| Extent { sectors: chunks * SECTORS, place };
    assert_eq!(extents, [extent(6, Some(MediumKind::Object)), extent(2, None)]);
}

#[test]
fn a_chunk_that_is_overwritten_in_dram_is_put_once() {
    let (devs, mut l) = layer(48);
    for byte in 0..100 {
        write(&mut l, 0, SECTORS, byte).unwrap();
    }
    flush(&mut l).unwrap();
    assert_eq!(devs.1.lock().objects.values().map(Vec::len).collect::<Vec<_>>(), [CHUNK as usize]);
    // What is discarded in DRAM is not put at all.
    write(&mut l, SECTORS, SECTORS, 1).unwrap();
    l.discard(&mut Sink::untimed(), Sector(SECTORS), SECTORS).unwrap();
    flush(&mut l).unwrap();
    assert_eq!(devs.1.lock().puts, 1);
}

#[test]
fn objects_without_live_chunks_are_deleted_and_the_store_never_overflows() {
    let (devs, mut l) = layer(48);
    let (mut state, mut newest) = (1, [0; 48]);
    for n in 0..2000u64 {
        let chunk = split_mix::next(&mut state) % 48;
        newest[chunk as usize] = n as u8;
        write(&mut l, chunk * SECTORS, SECTORS, n as u8).unwrap();
        if n % 5 == 0 {
            flush(&mut l).unwrap();
        }
    }
    flush(&mut l).unwrap();
    assert!(metric(&l, "moved") > 0 && metric(&l, "deleted") > 300);
    assert_eq!(metric(&l, "live"), 48 * CHUNK);
    assert_eq!(metric(&l, "objects"), devs.1.lock().objects.len() as u64);
    for (chunk, byte) in (0..).zip(newest) {
        assert_eq!(read(&mut l, chunk * SECTORS, 1).unwrap(), vec![byte; 512]);
    }
    assert_eq!(findings(&mut l), [""; 0]);
}

#[test]
fn idle_cleaning_joins_objects_with_many_dead_chunks() {
    let (devs, mut l) = layer(48);
    // Eight small objects, which are left alone.
    for i in 24..32 {
        write(&mut l, i * SECTORS, SECTORS, i as u8 + 1).unwrap();
        flush(&mut l).unwrap();
    }
    let sink = &mut Sink::untimed();
    assert!(matches!(l.step(sink, 1).unwrap(), Progress::Idle));
    // Six objects with one live chunk of four.
    for i in 0..24 {
        write(&mut l, i * SECTORS, SECTORS, i as u8 + 1).unwrap();
    }
    for i in (0..24).filter(|i| i % 4 != 0) {
        l.discard(sink, Sector(i * SECTORS), SECTORS).unwrap();
    }
    flush(&mut l).unwrap();
    assert_eq!(metric(&l, "objects"), 14);
    l.set("clean_below", "0").unwrap();
    assert!(matches!(l.step(sink, 1).unwrap(), Progress::Idle));
    l.set("clean_below", "50").unwrap();
    while let Progress::Busy(_) = l.step(sink, 1).unwrap() {}
    assert_eq!((metric(&l, "objects"), devs.1.lock().objects.len()), (10, 10));
    // A new opening finds the same.
    devs.lose_power(&mut || true);
    l = open(&devs);
    let recovery = l.recover(sink, CrashKind::PowerLoss).unwrap();
    assert!(recovery.clean && recovery.pages == 14, "{recovery:?}");
    for i in (0..24).step_by(4).chain(24..32) {
        assert_eq!(read(&mut l, i * SECTORS, SECTORS).unwrap(), vec![i as u8 + 1; CHUNK as usize]);
    }
}

#[test]
fn objects_that_the_map_does_not_name_are_deleted_at_the_start() {
    let (devs, mut l) = layer(48);
    write(&mut l, 0, 9 * SECTORS, 1).unwrap();
    assert_eq!(devs.1.lock().objects.len(), 2, "put, and not in the durable map");
    l = open(&devs);
    let recovery = l.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    assert!(!recovery.clean && !recovery.lost_any());
    assert_eq!(devs.1.lock().objects.len(), 0);
    assert_eq!(read(&mut l, 0, 9 * SECTORS).unwrap(), vec![0; 9 * CHUNK as usize]);
}

#[test]
fn a_former_writer_changes_nothing_in_the_store() {
    let (devs, mut old) = layer(48);
    write(&mut old, 0, 4 * SECTORS, 1).unwrap();
    flush(&mut old).unwrap();
    write(&mut old, 0, 4 * SECTORS, 2).unwrap();
    let mut new = open(&devs);
    new.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    let before: Vec<ObjectId> = devs.1.lock().objects.keys().copied().collect();
    let e = flush(&mut old).unwrap_err();
    assert!(e.to_string().contains("another writer"), "{e}");
    assert_eq!(devs.1.lock().objects.keys().copied().collect::<Vec<_>>(), before);
    assert_eq!(read(&mut new, 0, 4 * SECTORS).unwrap(), vec![1; 4 * CHUNK as usize]);
}

#[test]
fn a_flush_that_failed_is_repeated_by_the_layer_above() {
    type Fail = fn(&Devs, bool);
    let fails: [Fail; 2] =
        [|devs, on| devs.1.lock().puts_fail = on, |devs, on| devs.1.lock().flushes_fail = on];
    for fail in fails {
        let (devs, mut l) = layer(48);
        write(&mut l, 0, 2 * SECTORS, 1).unwrap();
        fail(&devs, true);
        assert!(flush(&mut l).is_err() && flush(&mut l).is_err());
        assert_eq!(read(&mut l, 0, 2 * SECTORS).unwrap(), vec![1; 2 * CHUNK as usize]);
        fail(&devs, false);
        write(&mut l, 0, 1, 2).unwrap();
        flush(&mut l).unwrap();
        devs.lose_power(&mut || false);
        l = open(&devs);
        l.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
        let all = [vec![2; 512], vec![1; 2 * CHUNK as usize - 512]].concat();
        assert_eq!(read(&mut l, 0, 2 * SECTORS).unwrap(), all);
    }
}

#[test]
fn objects_that_are_not_deleted_stop_writes_when_the_store_is_full() {
    let (devs, mut l) = layer(48);
    devs.1.lock().deletes_fail = true;
    let mut results = (0..400).map(|i| write(&mut l, i % 48 * SECTORS, SECTORS, i as u8));
    let e = results.find_map(Result::err).unwrap();
    assert!(matches!(&e, Error::NoSpace { what } if what.contains("does not delete")), "{e}");
    drop(results);
    devs.1.lock().deletes_fail = false;
    for i in 0..400 {
        write(&mut l, i % 48 * SECTORS, SECTORS, 9).unwrap();
    }
    flush(&mut l).unwrap();
    assert_eq!(read(&mut l, 0, 48 * SECTORS).unwrap(), vec![9; 48 * CHUNK as usize]);
}

#[test]
fn damaged_and_missing_objects_are_errors_and_findings() {
    let (devs, mut l) = layer(48);
    write(&mut l, 0, 8 * SECTORS, 7).unwrap();
    flush(&mut l).unwrap();
    let ids: Vec<ObjectId> = devs.1.lock().objects.keys().copied().collect();
    devs.1.lock().objects.get_mut(&ids[0]).unwrap()[CHUNK as usize] ^= 1;
    let e = read(&mut l, SECTORS, 1).unwrap_err();
    assert!(matches!(&e, Error::Corrupt { what, .. } if what.contains("chunk 1 of segments")), "{e}");
    assert_eq!(read(&mut l, 2 * SECTORS, SECTORS).unwrap(), vec![7; CHUNK as usize]);
    assert_eq!(findings(&mut l), ["Major bad-data"]);
    // A chunk is whole again when it is written.
    write(&mut l, SECTORS, SECTORS, 8).unwrap();
    assert_eq!(findings(&mut l), [""; 0]);
    flush(&mut l).unwrap();
    devs.1.lock().objects.remove(&ids[1]);
    assert_eq!(findings(&mut l), ["Major missing-object"; 4]);
    l = open(&devs);
    let recovery = l.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    assert!(recovery.unnamed[0].contains(&format!("4 chunks of segments: object {} is missing", ids[1])));
    assert!(read(&mut l, 4 * SECTORS, 1).is_err());
    write(&mut l, 4 * SECTORS, 4 * SECTORS, 9).unwrap();
    assert_eq!(findings(&mut l), [""; 0]);
}

#[test]
fn a_lost_sector_of_the_map_deletes_no_object() {
    let (devs, mut l) = layer(48);
    write(&mut l, 0, 48 * SECTORS, 7).unwrap();
    flush(&mut l).unwrap();
    let objects = devs.1.lock().objects.len();
    // The first sector of entries in both copies: superblock, two sectors.
    for at in [512, 512 + 3 * 512] {
        devs.0.lock().bytes[at + 40] ^= 4;
    }
    l = open(&devs);
    let recovery = l.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    assert!(recovery.unnamed[0].contains("30 chunks of segments"), "{recovery:?}");
    assert!(matches!(write(&mut l, 0, 1, 1), Err(Error::ReadOnly { .. })));
    assert!(read(&mut l, 29 * SECTORS, 1).is_err());
    assert_eq!(read(&mut l, 30 * SECTORS, 1).unwrap(), vec![7; 512]);
    assert_eq!(devs.1.lock().objects.len(), objects);
}

#[test]
fn sizes_and_stores_that_do_not_fit_are_refused() {
    let with = |config: SegmentsConfig, map: usize, object: u32, objects: u64| {
        let map = Devices::new(vec![Box::new(TestDisk::new(map))]);
        let made = Segments::new(config, map, Box::new(TestObjects::new(object, objects)));
        made.err().map(|e| e.to_string())
    };
    let sized = |size, chunk| SegmentsConfig { size, chunk, ..config() };
    assert_eq!(with(sized(0, 4096), 1 << 20, 16384, 100), None);
    assert!(with(sized(0, 12 << 10), 1 << 20, 16384, 100).unwrap().contains("power of two"));
    assert!(with(sized(5000, 4096), 1 << 20, 16384, 100).unwrap().contains("multiple of a chunk"));
    assert!(with(sized(0, 32768), 1 << 20, 16384, 100).unwrap().contains("has to hold 1 to"));
    let e = with(sized(1 << 30, 4096), 1 << 20, 16384, 100).unwrap();
    assert!(e.contains("5 objects are reserved for cleaning"), "{e}");
    let e = with(sized(400 << 10, 4096), 2048, 16384, 100).unwrap();
    assert!(e.contains("the map needs"), "{e}");
    assert!(SegmentsConfig { over_provisioning: 1, ..config() }.check_ranges().is_err());
    // A store with objects is not formatted.
    let (devs, mut l) = layer(48);
    write(&mut l, 0, SECTORS, 7).unwrap();
    flush(&mut l).unwrap();
    let e = open(&devs).format(&mut Sink::untimed()).unwrap_err();
    assert!(e.to_string().contains("1 objects of another volume"), "{e}");
}

#[test]
fn without_bytes_a_boot_keeps_the_chunks() {
    let (devs, mut l) = layer(48);
    devs.0.lock().without_bytes = true;
    l = {
        drop(l);
        devs.1.lock().objects.clear();
        open(&devs)
    };
    let sink = &mut Sink::untimed();
    // A simulation does not format its layer.
    for i in 0..200 {
        l.write(sink, Sector(i * 11 % 47 * SECTORS + 1), WriteData::Len(CHUNK as u32), Hints::NONE).unwrap();
    }
    l.halt(sink).unwrap();
    l.boot(sink).unwrap();
    assert_eq!(metric(&l, "live"), 48 * CHUNK);
    l.write(sink, Sector(0), WriteData::Len(CHUNK as u32), Hints::NONE).unwrap();
    l.flush(sink).unwrap();
}
