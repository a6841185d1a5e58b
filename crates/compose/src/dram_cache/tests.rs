//! Tests of the cache over a device that loses unflushed writes.

use super::{CachingMode, DramCache, DramCacheConfig};
use crate::composed::Composed;
use crate::devices::Devices;
use crate::testing::{Step, TestDisk, exercise, metric, read, step, write};
use frit_core::{BlockLayer, CrashKind, Durable, ParamTable, Sector, Sink};
use proptest::prelude::*;

const PAGE: u64 = 4096;
const SECTORS: u64 = PAGE / 512;

type Layer = Composed<DramCache>;

/// A cache of four pages. Without time, a page that was written before stays dirty with `hot`.
fn config(mode: CachingMode, hot: bool) -> DramCacheConfig {
    let hot_ms = if hot { 1000 } else { 0 };
    DramCacheConfig { mode, hot_ms, capacity: 4 * PAGE, page: PAGE, write_back: PAGE, ..Default::default() }
}

fn open(disk: &TestDisk, config: DramCacheConfig) -> Layer {
    Composed::new(DramCache::new(config, Devices::new(vec![Box::new(disk.clone())])).unwrap())
}

fn hot(pages: u64) -> (TestDisk, Layer) {
    hot_as(config(CachingMode::Write, true), pages)
}

fn hot_as(config: DramCacheConfig, pages: u64) -> (TestDisk, Layer) {
    let disk = TestDisk::zeroed((pages * PAGE) as usize);
    let mut layer = open(&disk, config);
    // The first writes are cold, and end the first interval.
    write(&mut layer, 0, pages * SECTORS, 1).unwrap();
    write(&mut layer, 0, pages * SECTORS, 1).unwrap();
    layer.flush(&mut Sink::untimed()).unwrap();
    (disk, layer)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn contents_are_those_of_a_plain_array(
        steps in prop::collection::vec(step(20 * SECTORS, SECTORS), 1..120),
        mode in prop_oneof![
            Just(CachingMode::Off), Just(CachingMode::Read), Just(CachingMode::Write), Just(CachingMode::ReadWrite)
        ],
        hot in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let disk = TestDisk::zeroed((20 * PAGE) as usize);
        // As with other layers without metadata, a recovery makes nothing durable that the device has not.
        let steps: Vec<Step> =
            steps.into_iter().map(|s| if matches!(s, Step::Restart) { Step::HaltAndBoot } else { s }).collect();
        exercise(&disk, || open(&disk, config(mode, hot)), &steps, seed);
    }
}

#[test]
fn a_dirty_page_is_in_the_device_after_its_eviction_or_a_flush() {
    let (disk, mut l) = hot(8);
    write(&mut l, 1, 1, 7).unwrap();
    assert_eq!(disk.lock().bytes[512], 1);
    assert!((metric(&l, "dram_dirty_bytes") - 512.0).abs() < f64::EPSILON);
    // Four other pages evict it.
    for page in 1..5 {
        write(&mut l, page * SECTORS, 2, 8).unwrap();
    }
    assert_eq!(disk.lock().bytes[512], 7);
    assert_eq!(disk.lock().bytes[PAGE as usize], 1);
    l.flush(&mut Sink::untimed()).unwrap();
    assert_eq!(disk.lock().bytes[PAGE as usize], 8);
}

#[test]
fn a_write_that_fails_below_loses_no_acknowledged_data() {
    let (disk, mut l) = hot(8);
    for page in 0..4 {
        write(&mut l, page * SECTORS, 2, 7).unwrap();
    }
    // The eviction fails.
    disk.lock().writes_left = Some(0);
    assert!(write(&mut l, 4 * SECTORS, 1, 9).is_err());
    disk.lock().writes_left = None;
    for page in 0..4 {
        assert_eq!(read(&mut l, page * SECTORS, 2).unwrap(), vec![7; 1024]);
    }
    l.flush(&mut Sink::untimed()).unwrap();
    assert_eq!(disk.lock().bytes[..1024], [7; 1024]);
}

/// A write evicts a page and then writes a part of it. The device refuses the evicted data.
#[test]
fn a_page_that_is_evicted_and_cached_again_keeps_its_data_if_the_device_fails() {
    // All parts of the write enter together.
    let (disk, mut l) =
        hot_as(DramCacheConfig { write_back: 16 * PAGE, ..config(CachingMode::Write, true) }, 10);
    // The last one is evicted first.
    for page in [9, 8, 7, 6] {
        write(&mut l, page * SECTORS + 3, 1, 7).unwrap();
    }
    disk.lock().writes_left = Some(0);
    assert!(write(&mut l, 5 * SECTORS, 4 * SECTORS + 1, 9).is_err());
    disk.lock().writes_left = None;
    assert_eq!(read(&mut l, 9 * SECTORS + 3, 1).unwrap(), [7; 512]);
    l.flush(&mut Sink::untimed()).unwrap();
    let at = (9 * PAGE + 3 * 512) as usize;
    assert_eq!(disk.lock().bytes[at..at + 512], [7; 512]);
}

/// Data of a read need a place, and the device refuses the page that is evicted for them.
#[test]
fn a_read_that_finds_no_place_for_its_data_evicts_nothing() {
    let (disk, mut l) = hot_as(config(CachingMode::ReadWrite, true), 8);
    for page in 0..4 {
        write(&mut l, page * SECTORS, 1, 7).unwrap();
    }
    disk.lock().writes_left = Some(0);
    // The data of the first read enter with the second one.
    for page in [5, 6] {
        assert_eq!(read(&mut l, page * SECTORS, 1).unwrap(), [1; 512]);
    }
    disk.lock().writes_left = None;
    l.flush(&mut Sink::untimed()).unwrap();
    for page in 0..4 {
        assert_eq!(disk.lock().bytes[(page * PAGE) as usize..][..512], [7; 512], "{page}");
    }
}

/// A write that fails leaves old or new data, and a later read returns the same.
#[test]
fn a_page_of_a_failed_write_does_not_change_when_it_is_evicted() {
    let disk = TestDisk::zeroed((8 * PAGE) as usize);
    let mut l = open(&disk, config(CachingMode::Write, true));
    // All pages but the first one stay in the cache when they are written again.
    for _ in 0..2 {
        write(&mut l, SECTORS, 7 * SECTORS, 1).unwrap();
    }
    disk.lock().writes_left = Some(0);
    assert!(write(&mut l, 0, 1, 7).is_err());
    disk.lock().writes_left = None;
    let found = read(&mut l, 0, 1).unwrap();
    for page in 1..6 {
        write(&mut l, page * SECTORS, 1, 8).unwrap();
    }
    assert_eq!(read(&mut l, 0, 1).unwrap(), found);
}

#[test]
fn sectors_between_cached_ones_are_those_of_the_device() {
    let (disk, mut l) = hot(8);
    for sector in [1, 5] {
        write(&mut l, sector, 1, 7).unwrap();
    }
    let all = read(&mut l, 0, SECTORS).unwrap();
    let expected: Vec<u8> = (0..SECTORS).flat_map(|s| [if s == 1 || s == 5 { 7 } else { 1 }; 512]).collect();
    assert_eq!(all, expected);
    l.flush(&mut Sink::untimed()).unwrap();
    assert_eq!(disk.lock().bytes[..PAGE as usize], expected);
}

#[test]
fn a_discard_of_a_part_keeps_the_rest_of_a_dirty_page() {
    let (_, mut l) = hot(8);
    write(&mut l, 0, SECTORS, 7).unwrap();
    l.discard(&mut Sink::untimed(), Sector(2), 2).unwrap();
    let all = read(&mut l, 0, SECTORS).unwrap();
    assert!(all.iter().enumerate().all(|(i, &b)| b == if (1024..2048).contains(&i) { 0 } else { 7 }));
}

#[test]
fn a_read_cache_serves_what_was_written_past_it() {
    let disk = TestDisk::zeroed((8 * PAGE) as usize);
    let mut l = open(&disk, config(CachingMode::Read, false));
    write(&mut l, 0, SECTORS, 1).unwrap();
    read(&mut l, 0, SECTORS).unwrap();
    write(&mut l, 2, 1, 2).unwrap();
    let all = read(&mut l, 0, SECTORS).unwrap();
    assert!((metric(&l, "dram_read_hits") - 1.0).abs() < f64::EPSILON);
    assert!(all.iter().enumerate().all(|(i, &b)| b == if (1024..1536).contains(&i) { 2 } else { 1 }));
}

#[test]
fn protection_against_power_loss_makes_a_flush_free() {
    let disk = TestDisk::zeroed((8 * PAGE) as usize);
    let protected = DramCacheConfig { power_loss_protection: true, ..config(CachingMode::Write, true) };
    let mut l = open(&disk, protected);
    // The first interval ends with the first write.
    for byte in [0, 1, 2] {
        write(&mut l, 0, SECTORS, byte).unwrap();
    }
    l.flush(&mut Sink::untimed()).unwrap();
    assert_eq!(disk.lock().bytes[0], 1);
    l.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
    assert!((metric(&l, "dram_dirty_bytes")).abs() < f64::EPSILON);
}

#[test]
fn a_page_is_a_number_of_sectors() {
    let disk = TestDisk::zeroed(8 * PAGE as usize);
    let odd = DramCacheConfig { page: 1000, ..DramCacheConfig::default() };
    assert!(DramCache::new(odd, Devices::new(vec![Box::new(disk)])).is_err());
    assert!(DramCacheConfig { rate: 0, ..DramCacheConfig::default() }.check_ranges().is_err());
}
