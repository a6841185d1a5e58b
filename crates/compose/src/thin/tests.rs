//! Tests of thin provisioning over a device that loses unflushed writes.

use super::{Thin, ThinConfig};
use crate::composed::{Composed, Composer};
use crate::devices::Devices;
use crate::testing::{LosesPower, TestDisk, exercise, findings, metric, read, step, write};
use frit_core::{
    BlockLayer, CrashKind, Durable, Error, Extent, Hints, MediumKind, ParamTable, Quiesce, Sector, Sink,
    WriteData,
};
use proptest::prelude::*;

const CHUNK: u64 = 4096;
const SECTORS: u64 = CHUNK / 512;

type Layer = Composed<Thin>;

fn open(disk: &TestDisk, size: u64) -> Layer {
    let config = ThinConfig { size, chunk: CHUNK, ..ThinConfig::default() };
    Composed::new(Thin::new(config, Devices::new(vec![Box::new(disk.clone())])).unwrap())
}

/// A formatted layer of `offered` chunks on a device with room for `stored`.
fn layer(offered: u64, stored: u64) -> (TestDisk, Layer) {
    let table = (2 * (offered.div_ceil(60) + 1) * 512).next_multiple_of(CHUNK);
    let disk = TestDisk::new((table + stored * CHUNK) as usize);
    let mut l = open(&disk, offered * CHUNK);
    l.format(&mut Sink::untimed()).unwrap();
    (disk, l)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn contents_are_those_of_a_plain_array(
        steps in prop::collection::vec(step(100 * SECTORS, SECTORS), 1..120),
        stored in prop_oneof![Just(100u64), Just(101), 20..100u64],
        seed in any::<u64>(),
    ) {
        let (disk, _) = layer(100, stored);
        exercise(&disk, || open(&disk, 100 * CHUNK), &steps, seed);
    }
}

#[test]
fn the_rest_of_a_new_chunk_is_zeros() {
    let (_, mut l) = layer(4, 4);
    write(&mut l, SECTORS + 2, 1, 9).unwrap();
    let all = read(&mut l, 0, 4 * SECTORS).unwrap();
    let written = (CHUNK + 1024) as usize..(CHUNK + 1536) as usize;
    assert!(all.iter().enumerate().all(|(i, &b)| b == if written.contains(&i) { 9 } else { 0 }));
    assert!((metric(&l, "allocated") - 1.0).abs() < f64::EPSILON);
}

/// A layer above asks for the place of each of its blocks: the answer may not take a search in the volume.
#[test]
fn the_place_of_a_byte_is_looked_up_in_its_chunk() {
    let (disk, mut l) = layer(8, 8);
    write(&mut l, 2 * SECTORS, 3 * SECTORS, 1).unwrap();
    l.flush(&mut Sink::untimed()).unwrap();
    let config = ThinConfig { size: 8 * CHUNK, chunk: CHUNK, ..ThinConfig::default() };
    let mut thin = Thin::new(config, Devices::new(vec![Box::new(disk)])).unwrap();
    thin.load(&mut Sink::untimed(), CrashKind::Process).unwrap();
    for chunk in 0..8 {
        let place = (2..5).contains(&chunk).then_some(MediumKind::Disk);
        assert_eq!(thin.place(chunk * CHUNK), ((chunk + 1) * CHUNK, place));
        assert_eq!(thin.place(chunk * CHUNK + 1024), ((chunk + 1) * CHUNK, place));
    }
}

#[test]
fn a_full_device_refuses_new_chunks_and_loses_nothing() {
    let (_, mut l) = layer(8, 3);
    write(&mut l, 0, 3 * SECTORS, 1).unwrap();
    assert!((metric(&l, "low_space") - 1.0).abs() < f64::EPSILON);
    let e = write(&mut l, 3 * SECTORS, SECTORS, 2).unwrap_err();
    assert!(matches!(&e, Error::NoSpace { what } if what.contains("all 3 chunks of 4 KiB")), "{e}");
    assert_eq!(read(&mut l, 0, 3 * SECTORS).unwrap(), vec![1; 3 * CHUNK as usize]);
    // The allocated chunks can be written, and a discarded one is free after the commit that the
    // next write makes.
    write(&mut l, 1, 1, 5).unwrap();
    l.discard(&mut Sink::untimed(), Sector(SECTORS), SECTORS).unwrap();
    assert!((metric(&l, "freed") - 1.0).abs() < f64::EPSILON);
    write(&mut l, 7 * SECTORS, SECTORS, 2).unwrap();
    assert_eq!(read(&mut l, 7 * SECTORS, SECTORS).unwrap(), vec![2; CHUNK as usize]);
    assert_eq!(read(&mut l, SECTORS, SECTORS).unwrap(), vec![0; CHUNK as usize]);
}

#[test]
fn chunks_of_a_sequential_write_are_adjacent_and_holes_are_reported() {
    let (disk, mut l) = layer(8, 8);
    write(&mut l, 2 * SECTORS, 3 * SECTORS, 1).unwrap();
    let before = disk.lock().writes;
    write(&mut l, 2 * SECTORS, 3 * SECTORS, 2).unwrap();
    assert_eq!(disk.lock().writes, before + 1, "one write for adjacent chunks");
    let mut extents = Vec::new();
    l.extents(Sector(0), 8 * SECTORS, &mut |e| extents.push(e)).unwrap();
    let extent = |chunks: u64, place| Extent { sectors: chunks * SECTORS, place };
    assert_eq!(extents, [extent(2, None), extent(3, Some(MediumKind::Disk)), extent(3, None)]);
}

#[test]
fn one_damaged_sector_loses_nothing_and_two_are_reported() {
    // 150 entries: three sectors in each copy, after its superblock.
    let (disk, mut l) = layer(150, 150);
    write(&mut l, 0, 150 * SECTORS, 7).unwrap();
    l.flush(&mut Sink::untimed()).unwrap();
    let copy = 4 * 512;
    for damaged in (0..8).map(|s| s * 512) {
        disk.lock().bytes[damaged + 40] ^= 4;
        if !matches!(damaged / 512, 0 | 4) {
            assert_eq!(findings(&mut l), ["Minor bad-entry"], "sector {damaged}");
        }
        l = open(&disk, 150 * CHUNK);
        let r = l.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
        assert!(!r.lost_any());
        assert_eq!(read(&mut l, 0, 150 * SECTORS).unwrap(), vec![7; 150 * CHUNK as usize]);
        assert_eq!(findings(&mut l), [""; 0], "the start repairs a damaged copy");
    }
    for at in [2 * 512, copy + 2 * 512] {
        disk.lock().bytes[at + 40] ^= 4;
    }
    l = open(&disk, 150 * CHUNK);
    let r = l.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    assert!(r.lost_any() && r.unnamed[0].contains("60 chunks of thin"), "{r:?}");
    assert_eq!(read(&mut l, 0, 60 * SECTORS).unwrap(), vec![7; 60 * CHUNK as usize]);
    assert_eq!(read(&mut l, 120 * SECTORS, 30 * SECTORS).unwrap(), vec![7; 30 * CHUNK as usize]);
    for chunk in [60, 119] {
        let e = read(&mut l, chunk * SECTORS, 1).unwrap_err();
        let range = format!("bytes {} to {}", 60 * CHUNK, 120 * CHUNK);
        assert!(matches!(&e, Error::Corrupt { what, .. } if what.contains(&range)), "{e}");
    }
    assert!(matches!(write(&mut l, 0, 1, 1), Err(Error::ReadOnly { .. })));
    assert_eq!(findings(&mut l).iter().filter(|f| *f == "Major bad-entry").count(), 62);
}

#[test]
fn double_use_is_found_and_stops_writes() {
    let (disk, mut l) = layer(4, 4);
    write(&mut l, 0, 2 * SECTORS, 7).unwrap();
    l.flush(&mut Sink::untimed()).unwrap();
    // A table with valid checksums whose second entry names the first chunk: written by the layer
    // itself.
    let entries = [1u64, 1, 0, 0];
    for copy in 0..2 {
        let mut d = disk.lock();
        let sector = &mut d.bytes[(copy * 2 + 1) * 512..][..512];
        for (i, e) in entries.iter().enumerate() {
            sector[24 + 8 * i..][..8].copy_from_slice(&e.to_le_bytes());
        }
        let crc = frit_media::checksum::crc32c(&sector[..508]);
        sector[508..].copy_from_slice(&crc.to_le_bytes());
    }
    l = open(&disk, 4 * CHUNK);
    l.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    assert_eq!(findings(&mut l), ["Major double-use"]);
    assert!(matches!(write(&mut l, 0, 1, 1), Err(Error::ReadOnly { .. })));
}

#[test]
fn a_failed_flush_stops_writes_and_reads_of_new_chunks() {
    let (disk, mut l) = layer(4, 4);
    write(&mut l, 0, SECTORS, 7).unwrap();
    l.flush(&mut Sink::untimed()).unwrap();
    write(&mut l, SECTORS, SECTORS, 8).unwrap();
    write(&mut l, 2 * SECTORS, SECTORS, 9).unwrap();
    l.discard(&mut Sink::untimed(), Sector(2 * SECTORS), SECTORS).unwrap();
    disk.lock().flushes_fail = true;
    assert!(l.flush(&mut Sink::untimed()).is_err());
    assert_eq!(read(&mut l, 2 * SECTORS, SECTORS).unwrap(), vec![0; CHUNK as usize]);
    assert!(l.refuses().is_some() && write(&mut l, 0, 1, 1).is_err());
    assert_eq!(read(&mut l, 0, SECTORS).unwrap(), vec![7; CHUNK as usize]);
    assert!(matches!(read(&mut l, 0, 2 * SECTORS), Err(Error::Corrupt { .. })));
    disk.lock().flushes_fail = false;
    disk.lose_power(&mut || false);
    l = open(&disk, 4 * CHUNK);
    l.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
    assert_eq!(read(&mut l, SECTORS, SECTORS).unwrap(), vec![0; CHUNK as usize]);
}

#[test]
fn a_failed_write_of_the_table_is_repeated() {
    for left in 0..3 {
        let (disk, mut l) = layer(4, 4);
        write(&mut l, 0, SECTORS, 7).unwrap();
        disk.lock().writes_left = Some(left);
        let flushed = l.flush(&mut Sink::untimed());
        assert_eq!(flushed.is_ok(), left == 2, "both copies of one sector");
        disk.lock().writes_left = None;
        l.discard(&mut Sink::untimed(), Sector(0), SECTORS).unwrap();
        write(&mut l, SECTORS, SECTORS, 8).unwrap();
        l.flush(&mut Sink::untimed()).unwrap();
        disk.lose_power(&mut || false);
        l = open(&disk, 4 * CHUNK);
        l.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
        let all = [vec![0; CHUNK as usize], vec![8; CHUNK as usize]].concat();
        assert_eq!(read(&mut l, 0, 2 * SECTORS).unwrap(), all);
    }
}

#[test]
fn sizes_and_devices_that_do_not_fit_are_refused() {
    let disk = TestDisk::new(1 << 20);
    let with = |config: ThinConfig| {
        Thin::new(config, Devices::new(vec![Box::new(disk.clone())])).err().map(|e| e.to_string())
    };
    let config = |size, chunk| ThinConfig { size, chunk, ..ThinConfig::default() };
    assert!(with(config(0, 12 << 10)).unwrap().contains("power of two"));
    assert!(with(config(5000, 4096)).unwrap().contains("multiple of a chunk"));
    assert!(with(config(1 << 40, 4096)).unwrap().contains("leaves no chunk"));
    assert_eq!(with(config(0, 4096)), None);
    assert!(config(0, 1 << 31).check_ranges().is_err());
    // Blank, and of other sizes.
    let recover = |size| open(&disk, size).recover(&mut Sink::untimed(), CrashKind::Process).map(|_| ());
    assert!(recover(1 << 20).unwrap_err().to_string().contains("never formatted"));
    open(&disk, 1 << 20).format(&mut Sink::untimed()).unwrap();
    recover(1 << 20).unwrap();
    let e = recover(2 << 20);
    assert!(e.is_err(), "{e:?}");
}

#[test]
fn a_size_of_zero_is_that_of_the_chunks_of_the_device() {
    for bytes in (20 << 10..600 << 10).step_by(512) {
        let l = open(&TestDisk::new(bytes), 0);
        assert!(l.info().sectors > 0 && l.info().sectors * 512 < bytes as u64);
        let free = metric(&l, "free");
        assert!(free >= metric(&l, "offered"), "{bytes}");
    }
}

#[test]
fn without_bytes_a_boot_keeps_the_chunks() {
    let (disk, _) = layer(8, 8);
    disk.lock().without_bytes = true;
    let mut l = open(&disk, 8 * CHUNK);
    let sink = &mut Sink::untimed();
    l.write(sink, Sector(1), WriteData::Len(2 * CHUNK as u32), Hints::NONE).unwrap();
    l.discard(sink, Sector(SECTORS), SECTORS).unwrap();
    l.halt(sink).unwrap();
    l.boot(sink).unwrap();
    assert!((metric(&l, "allocated") - 2.0).abs() < f64::EPSILON);
    assert!((metric(&l, "free") - 6.0).abs() < f64::EPSILON);
}
