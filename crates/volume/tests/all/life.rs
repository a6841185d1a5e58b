//! Life cycle of a volume: created, written, closed, opened, dropped, opened again.

use crate::common::{self, create, files, open, open_read_only, pattern, place, read};
use frit_core::{CrashKind, Hints};
use frit_volume::superblock::VolumeState;
use frit_volume::{OpenOptions, Volume, inspect};
use std::time::{Duration, Instant};

#[test]
fn what_was_written_is_there_after_close_and_after_drop() {
    let (_dir, dir) = place();
    let mut v = create(&dir);
    let data = pattern(0, 1, 8192);
    v.write(4096, &data, Hints::NONE).unwrap();
    v.close().unwrap();
    let mut v = open(&dir);
    assert!(v.recovery().recovery.clean);
    assert!(read(&mut v, 4096, 8192) == data);
    v.write(1 << 20, &data, Hints::FUA).unwrap();
    v.set_param("SSW", "1024").unwrap();
    v.discard(4096, 4096).unwrap();
    drop(v);
    let mut v = open(&dir);
    assert!(!v.recovery().recovery.clean && !v.recovery().power_loss);
    assert!(read(&mut v, 1 << 20, 8192) == data);
    let back = read(&mut v, 4096, 8192);
    assert!(back[..4096].iter().all(|&b| b == 0) && back[4096..] == data[4096..]);
    let ssw = v.params().into_iter().find(|p| p.key == "SSW").unwrap();
    assert_eq!(ssw.value, "1024");
    v.close().unwrap();
    assert_eq!(inspect(&dir).unwrap().superblock.params, [("SSW".to_owned(), "1024".to_owned())]);
}

#[test]
fn the_state_is_dirty_while_open_and_clean_after_close() {
    let (_dir, dir) = place();
    let state = || inspect(&dir).unwrap().superblock.state;
    let v = create(&dir);
    assert_eq!(state(), VolumeState::Dirty);
    assert!(inspect(&dir).unwrap().in_use.unwrap().contains(&std::process::id().to_string()));
    v.close().unwrap();
    // A process that another test starts holds a copy of the lock until it executes its program.
    let until = Instant::now() + Duration::from_secs(20);
    while inspect(&dir).unwrap().in_use.is_some() {
        assert!(Instant::now() < until, "the lock is held after a close");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(state(), VolumeState::Clean);
    drop(open(&dir));
    assert_eq!(state(), VolumeState::Dirty);
    open(&dir).close().unwrap();
    let s = inspect(&dir).unwrap().superblock;
    assert_eq!(s.state, VolumeState::Clean);
    assert_eq!(s.recovery.map(|r| (r.power_loss, r.lost)), Some((false, 0)));
}

#[test]
fn reading_only_changes_nothing_not_even_of_a_dirty_volume() {
    let (_dir, dir) = place();
    let mut v = create(&dir);
    let data = pattern(0, 3, 64 << 10);
    v.write(0, &data, Hints::NONE).unwrap();
    v.write(300 << 10, &data[..512], Hints::NONE).unwrap();
    drop(v);
    let before = files(&dir);
    let mut a = open_read_only(&dir).unwrap();
    let mut b = open_read_only(&dir).unwrap();
    assert!(!a.recovery().recovery.clean);
    assert!(read(&mut a, 0, 64 << 10) == data && read(&mut b, 0, 64 << 10) == data);
    assert!(read(&mut a, 300 << 10, 512) == data[..512]);
    for e in [
        a.write(0, &data, Hints::NONE),
        a.discard(0, 512),
        a.write_zeroes(0, 512, true),
        a.set_param("SSW", "512"),
    ] {
        assert!(e.unwrap_err().to_string().contains("opened read-only"));
    }
    assert!(!a.step(100).unwrap());
    a.flush().unwrap();
    let e = common::try_open(&dir).unwrap_err().to_string();
    assert!(e.contains("in use"), "{e}");
    a.close().unwrap();
    b.close().unwrap();
    assert!(files(&dir) == before);
    let mut v = open(&dir);
    assert!(open_read_only(&dir).unwrap_err().to_string().contains("in use"));
    assert!(read(&mut v, 0, 64 << 10) == data);
}

#[test]
fn what_was_flushed_survives_a_stop_of_the_machine() {
    let (_dir, dir) = place();
    let mut v = create(&dir);
    let data = pattern(0, 1, 32 << 10);
    v.write(0, &data, Hints::NONE).unwrap();
    v.flush().unwrap();
    drop(v);
    let mut v =
        Volume::open(&dir, &OpenOptions { read_only: false, crash: Some(CrashKind::PowerLoss) }).unwrap();
    assert!(v.recovery().power_loss);
    assert!(read(&mut v, 0, 32 << 10) == data);
    v.close().unwrap();
    assert!(inspect(&dir).unwrap().superblock.recovery.unwrap().power_loss);
}

#[test]
fn zeros_are_forgotten_or_written() {
    let (_dir, dir) = place();
    let mut v = create(&dir);
    v.write(0, &[7; 64 << 10], Hints::NONE).unwrap();
    v.write_zeroes(0, 16 << 10, false).unwrap();
    v.write_zeroes(32 << 10, 16 << 10, true).unwrap();
    let mut all = Vec::new();
    v.extents(0, 64 << 10, &mut |len, place| all.push((len, place.is_some()))).unwrap();
    let held: u64 = all.iter().filter(|(_, m)| *m).map(|(l, _)| l).sum();
    assert_eq!((all[0], held), ((16 << 10, false), 48 << 10));
    let back = read(&mut v, 0, 64 << 10);
    let zeros = |r: std::ops::Range<usize>| back[r].iter().all(|&b| b == 0);
    assert!(zeros(0..16 << 10) && zeros(32 << 10..48 << 10));
    assert!(back[16 << 10..32 << 10].iter().chain(&back[48 << 10..]).all(|&b| b == 7));
    v.close().unwrap();
}

#[test]
fn ranges_have_to_be_sectors_of_the_volume() {
    let (_dir, dir) = place();
    let mut v = create(&dir);
    let end = v.bytes();
    let mut b = [0; 1024];
    for (at, len) in [(1, 512), (0, 511), (end - 512, 1024), (end, 512), (u64::MAX - 511, 512)] {
        assert!(v.read(at, &mut b[..len]).is_err(), "{at} {len}");
        assert!(v.write(at, &b[..len], Hints::NONE).is_err(), "{at} {len}");
        assert!(v.discard(at, len as u64).is_err(), "{at} {len}");
        assert!(v.extents(at, len as u64, &mut |_, _| {}).is_err(), "{at} {len}");
    }
    assert!(v.discard(0, u64::MAX / 512 * 512).is_err());
    assert!(v.write_zeroes(0, end + 512, true).is_err());
    assert!(v.read_only().is_none(), "a request that cannot be poisons nothing");
    v.close().unwrap();
}

#[test]
fn parameters_that_cannot_be_change_nothing() {
    let (_dir, dir) = place();
    let mut v = create(&dir);
    assert!(v.set_param("SSw", "1").is_err());
    assert!(v.set_param("SSW", "many").is_err());
    assert!(v.set_param("SSW", "1\n2").is_err());
    assert!(v.set_param("map_persist", "halt").is_err());
    assert!(v.superblock().params.is_empty());
    v.set_param("SSW", "512").unwrap();
    v.set_param("gc", "fifo").unwrap();
    v.set_param("SSW", "4K").unwrap();
    drop(v);
    let mut v = open(&dir);
    let value = |v: &mut Volume, key: &str| v.params().into_iter().find(|p| p.key == key).unwrap().value;
    assert_eq!((value(&mut v, "SSW"), value(&mut v, "gc")), ("4096".to_owned(), "fifo".to_owned()));
    assert_eq!(v.superblock().params.len(), 2);
}

#[test]
fn a_drain_that_is_done_is_not_begun_again_by_the_next_opening() {
    let (_dir, dir) = place();
    let sets = ["chip_bytes=128K".to_owned(), "disk.bytes=8M".to_owned()];
    let stack = frit_stack::Stack::builtin("halo-small", &sets).unwrap();
    let mut v = Volume::create(&dir, &frit_volume::CreateOptions { stack, force: false }).unwrap();
    let drain = |v: &mut Volume| v.params().into_iter().find(|p| p.key == "drain").unwrap().value;
    v.write(0, &pattern(0, 1, 64 << 10), Hints::NONE).unwrap();
    v.set_param("drain", "true").unwrap();
    v.set_param("threshold", "0.9").unwrap();
    v.close().unwrap();
    // Nothing has been written back yet, so the drain is still requested.
    let mut v = open(&dir);
    assert_eq!(drain(&mut v), "true");
    while v.step(32).unwrap() {}
    assert_eq!(drain(&mut v), "false");
    v.close().unwrap();
    let mut v = open(&dir);
    assert_eq!(drain(&mut v), "false");
    assert!(
        v.params().iter().any(|p| p.key == "threshold" && p.value == "0.9"),
        "others stay as they were set"
    );
    v.close().unwrap();
}
