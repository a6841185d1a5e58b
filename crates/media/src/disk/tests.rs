//! Tests of a drive against times that were computed by hand.

use super::drive::{CacheResult, Drive, DriveRequest, DriveRequestKind};
use super::spec::{DiskSpec, ReadAhead, WriteBack};
use super::testing::simple;
use frit_core::{Nanos, Sector};
use proptest::prelude::*;

fn read(block: u64, sectors: u32) -> DriveRequest {
    DriveRequest { kind: DriveRequestKind::Read, sector: Sector(block), sectors }
}

fn write(block: u64, sectors: u32) -> DriveRequest {
    DriveRequest { kind: DriveRequestKind::Write, ..read(block, sectors) }
}

fn us(x: u64) -> Nanos {
    Nanos(x * 1000)
}

fn cached(f: impl FnOnce(&mut DiskSpec)) -> Drive {
    let mut spec = simple();
    spec.cache.enabled = true;
    spec.cache.segments = 2;
    spec.cache.segment_sectors = 50;
    f(&mut spec);
    Drive::new(&spec).unwrap()
}

#[test]
fn a_read_waits_for_arm_and_platter() {
    let mut d = Drive::new(&simple()).unwrap();
    // The arm is on the track: sector 10 passes after 1 ms, for 0.1 ms, then the bus takes 1 µs.
    let s = d.service(&read(10, 1), Nanos::ZERO);
    assert_eq!((s.done, s.seek, s.rotation, s.hit), (us(1101), us(0), us(1000), CacheResult::Miss));
    // At 5 ms: a seek over 10 cylinders takes 2 ms, so the platter is at sector 70; sector 60
    // passes 9 ms later.
    let s = d.service(&read(1060, 4), us(5000));
    assert_eq!((s.seek, s.rotation, s.done), (us(2000), us(9000), us(16_000 + 400 + 1)));
}

#[test]
fn the_platter_turns_on_while_nobody_asks() {
    for turns in [0, 1, 7, 123_456_789, 1_000_000_000_000] {
        let mut d = Drive::new(&simple()).unwrap();
        let begin = us(turns * 10_000 + 300);
        assert_eq!(d.service(&read(10, 1), begin).rotation, us(700), "{turns} turns");
    }
}

#[test]
fn writes_settle_longer_and_go_through() {
    let mut d = Drive::new(&simple()).unwrap();
    let s = d.service(&write(1060, 2), Nanos::ZERO);
    // 2 ms and 0.5 ms of settling: sector 25 is under the head; sector 60 passes 3.5 ms later.
    assert_eq!((s.seek, s.rotation, s.done, s.hit), (us(2500), us(3500), us(6200), CacheResult::Miss));
}

#[test]
fn data_that_comes_late_costs_a_turn() {
    let mut spec = simple();
    spec.bus.write_ps = 150_000_000;
    let mut d = Drive::new(&spec).unwrap();
    // The bus takes 0.15 ms per sector, the platter 0.1 ms: sector 10 + k passes at 1 + 0.1 k ms
    // and block k arrives at 0.15 (k + 1) ms. Block 17 is the first that arrives too late, and the
    // rest waits for a revolution.
    let s = d.service(&write(10, 20), Nanos::ZERO);
    assert_eq!(s.done, us(1000 + 2000 + 10_000));
    assert_eq!(d.service(&write(10, 17), us(20_000)).done, us(20_000 + 1000 + 1700));
}

#[test]
fn reading_on_makes_the_next_read_a_hit() {
    let mut d = cached(|s| s.cache.read_ahead = ReadAhead::Segment);
    let first = d.service(&read(0, 10), Nanos::ZERO);
    assert_eq!(first.done, us(1001));
    // Half a millisecond later 5 more blocks are in the cache: a hit for 5; the next 5 are just
    // being read.
    let s = d.service(&read(10, 5), us(1500));
    assert_eq!((s.hit, s.done), (CacheResult::Full, us(1505)));
    let s = d.service(&read(12, 10), us(1600));
    assert_eq!((s.hit, s.seek, s.rotation, s.done), (CacheResult::Partial, us(0), us(0), us(2200 + 1)));
    // The segment holds 50 blocks; the read-ahead stops there, and old blocks were dropped.
    let s = d.service(&read(22, 40), us(9000));
    assert_eq!(s.hit, CacheResult::Full);
    assert_eq!(d.service(&read(0, 1), us(9999)).hit, CacheResult::Miss);
}

#[test]
fn reading_on_goes_on_over_tracks_and_stops_for_others() {
    let mut d = cached(|s| {
        s.cache.read_ahead = ReadAhead::Segment;
        s.cache.stops_in_sector = true;
    });
    d.service(&read(80, 10), Nanos::ZERO);
    // Sector 99 passes at 10 ms; the next cylinder is reached at 11.1 ms, and its first sector at
    // 20 ms.
    let s = d.service(&read(90, 12), us(21_000));
    assert_eq!(s.hit, CacheResult::Full);
    // Back to cylinder 0: another read stops the read-ahead at once.
    let s = d.service(&read(5, 1), us(21_100));
    assert_eq!((s.hit, s.seek), (CacheResult::Miss, us(1100)));
}

#[test]
fn read_ahead_keeps_to_its_bounds() {
    for (kind, in_cache, not) in [
        (ReadAhead::Track, 99, 100),
        (ReadAhead::Cylinder, 99, 100),
        (ReadAhead::NextTrack, 99, 100),
        (ReadAhead::Off, 89, 90),
    ] {
        let mut d = cached(|s| s.cache.read_ahead = kind);
        d.service(&read(80, 10), Nanos::ZERO);
        assert_eq!(d.service(&read(in_cache, 1), us(100_000)).hit, CacheResult::Full, "{kind:?}");
        assert_eq!(d.service(&read(not, 1), us(200_000)).hit, CacheResult::Miss, "{kind:?}");
    }
}

#[test]
fn reading_on_arrival_saves_the_turn() {
    let mut d = cached(|s| s.cache.read_on_arrival = true);
    // The head is at sector 30 of 0 to 99: 30 to 99 are read first, then 0 to 29.
    let s = d.service(&read(0, 100), us(3000));
    assert_eq!(s.done, us(13_000 + 70 + 1));
    let mut d = cached(|_| {});
    assert_eq!(d.service(&read(0, 100), us(3000)).done, us(20_001));
}

#[test]
fn what_passes_first_is_kept() {
    let mut d = cached(|s| s.cache.read_free_blocks = true);
    d.service(&read(40, 5), us(20_500));
    assert_eq!(d.service(&read(5, 40), us(30_000)).hit, CacheResult::Full);
    assert_eq!(d.service(&read(4, 1), us(40_000)).hit, CacheResult::Miss);
}

#[test]
fn what_the_host_has_read_may_go() {
    let mut d = cached(|s| {
        s.cache.read_ahead = ReadAhead::Segment;
        s.cache.discards_read = true;
    });
    d.service(&read(0, 10), Nanos::ZERO);
    assert_eq!(d.service(&read(10, 5), us(9_000)).hit, CacheResult::Full);
    assert_eq!(d.service(&read(12, 1), us(9_500)).hit, CacheResult::Miss);
}

#[test]
fn average_rotation_is_half_a_turn_for_each_access() {
    let mut spec = simple();
    spec.mechanics.positioning = super::Positioning::AverageRotation;
    let mut d = Drive::new(&spec).unwrap();
    assert_eq!(d.service(&read(1000, 1), us(123)).done, us(123 + 2000 + 5000 + 100 + 1));
    spec.mechanics.positioning = super::Positioning::Constant(us(7_000));
    let mut d = Drive::new(&spec).unwrap();
    assert_eq!(d.service(&read(1000, 50), us(100)).done, us(7_100));
    assert_eq!(d.service(&write(1, 1), us(200)).done, us(14_100));
}

#[test]
fn nothing_takes_nothing() {
    let mut d = cached(|s| s.cache.read_ahead = ReadAhead::Track);
    for r in [read(0, 0), write(5, 0)] {
        assert_eq!(d.service(&r, us(5)).done, us(5));
    }
}

#[test]
fn a_write_behind_is_done_with_the_bus_and_busies_the_arm() {
    let mut d = cached(|s| {
        s.cache.write_back = WriteBack::Stream;
        s.cache.combines_writes = true;
        s.cache.hits_on_writes = true;
    });
    let s = d.service(&write(1000, 10), Nanos::ZERO);
    assert_eq!((s.done, s.hit), (us(10), CacheResult::Full));
    // A write that continues it joins; the platter access takes 2.5 ms of seek, 7.5 ms of rotation
    // and 2 ms of transfer.
    let s = d.service(&write(1010, 10), us(100));
    assert_eq!(s.done, us(110));
    // Another write waits for them.
    let s = d.service(&write(5000, 10), us(1000));
    assert_eq!(s.done, us(12_000 + 10));
    assert_eq!(
        d.service(&read(5000, 10), us(60_000)).hit,
        CacheResult::Full,
        "a read finds what was written"
    );
}

#[test]
fn a_full_write_cache_makes_writes_wait() {
    let mut d = cached(|s| {
        s.cache.write_back = WriteBack::Full;
        s.cache.dirty_sectors = 20;
    });
    let mut now = Nanos::ZERO;
    for block in [100, 300] {
        let s = d.service(&write(block, 10), now);
        assert_eq!((s.done.since(now), s.hit), (us(10), CacheResult::Full));
        now = s.done;
    }
    let s = d.service(&write(500, 10), now);
    assert!(s.hit == CacheResult::Partial && s.done.since(now) > us(2000), "{s:?}");
    let clean = d.flush(s.done);
    assert!(clean > s.done);
    assert_eq!(d.flush(clean), clean, "nothing is left");
    assert_eq!(d.service(&write(500, 10), clean).done.since(clean), us(10));
}

#[test]
fn a_write_cache_serves_reads_while_the_arm_is_busy() {
    let mut d = cached(|s| {
        s.cache.write_back = WriteBack::Full;
        s.cache.dirty_sectors = 100;
        s.cache.read_ahead = ReadAhead::Segment;
    });
    d.service(&read(0, 10), Nanos::ZERO);
    d.service(&write(9_000, 10), us(10_000));
    d.service(&write(3_000, 10), us(10_100));
    // The arm is seeking; the cache has these blocks.
    for r in [read(15, 5), read(20, 5), read(3_002, 4)] {
        let s = d.service(&r, us(10_500));
        assert_eq!((s.hit, s.done), (CacheResult::Full, us(10_500 + u64::from(r.sectors))), "{r:?}");
    }
    // A write to blocks that are being read ahead stops the read-ahead.
    let mut d = cached(|s| {
        s.cache.write_back = WriteBack::Full;
        s.cache.dirty_sectors = 100;
        s.cache.read_ahead = ReadAhead::Segment;
    });
    d.service(&read(0, 10), Nanos::ZERO);
    d.service(&write(12, 1), us(1_500));
    assert_eq!(d.service(&read(12, 1), us(1_600)).hit, CacheResult::Full, "dirty");
    assert_eq!(d.service(&read(0, 10), us(90_000)).hit, CacheResult::Miss, "stale");
}

#[test]
fn a_write_makes_cached_blocks_stale() {
    let mut d = cached(|_| {});
    d.service(&read(0, 10), Nanos::ZERO);
    assert_eq!(d.service(&read(0, 10), us(20_000)).hit, CacheResult::Full);
    d.service(&write(5, 1), us(30_000));
    assert_eq!(d.service(&read(0, 10), us(60_000)).hit, CacheResult::Miss);
}

fn drives() -> impl Strategy<Value = DiskSpec> {
    (0..5_u8, any::<[bool; 8]>(), 1_u32..5, 0..3_u8, 0_u64..400_000_000).prop_map(
        |(ahead, b, segments, back, bus)| {
            let mut s = simple();
            s.bus.write_ps = bus;
            s.bus.read_ps = bus;
            s.bus.never_disconnects = b[7];
            let c = &mut s.cache;
            c.enabled = b[0];
            c.segments = segments;
            c.write_segment = b[1];
            c.segment_sectors = 60;
            c.dirty_sectors = 64;
            c.read_free_blocks = b[2];
            c.read_on_arrival = b[3];
            c.write_on_arrival = b[4];
            c.read_ahead_on_hit = b[5];
            c.combines_writes = b[6];
            c.stops_in_sector = b[6];
            c.almost_hits = b[5];
            c.read_ahead_min = if b[4] { 8 } else { 0 };
            c.read_ahead = [
                ReadAhead::Off,
                ReadAhead::Track,
                ReadAhead::Cylinder,
                ReadAhead::Segment,
                ReadAhead::NextTrack,
            ][usize::from(ahead)];
            c.write_back = [WriteBack::Off, WriteBack::Stream, WriteBack::Full][usize::from(back)];
            s
        },
    )
}

proptest! {
    /// For any drive and any requests: no request ends before its data could have been transferred,
    /// none takes longer than the accesses and the destaging that it may wait for, and the same
    /// requests take the same time.
    #[test]
    fn service_is_bounded_and_repeatable(
        spec in drives(),
        requests in prop::collection::vec((any::<bool>(), 0_u64..9_900, 1_u32..100, 0_u64..30_000), 1..60),
    ) {
        let run = || {
            let mut d = Drive::new(&spec).unwrap();
            let mut now = Nanos::ZERO;
            let mut times = Vec::new();
            for &(w, block, n, pause) in &requests {
                let r = if w { write(block, n) } else { read(block, n) };
                let s = d.service(&r, now);
                let bus = Nanos(u64::from(n) * spec.bus.read_ps / 1000);
                // Each part of a transfer is rounded to whole nanoseconds.
                assert!(s.done + Nanos(20) >= now + bus, "{r:?} {s:?} {now:?}");
                assert!(s.done.since(now) < us(2_000_000), "{r:?} {s:?}");
                times.push(s.done.since(now));
                now = s.done + us(pause);
            }
            times
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn a_zone_ends_at_the_last_cylinder_of_the_disk() {
    let mut geometry = simple().geometry;
    geometry.check().unwrap();
    geometry.zones[0].last_cylinder = geometry.cylinders + 1;
    let error = geometry.check().unwrap_err().to_string();
    assert!(error.contains("last cylinder of zone 0"), "{error}");
}
