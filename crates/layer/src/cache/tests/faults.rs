//! Tests of a disk that fails and recovers, and of damage in PCM.

use super::*;
use crate::numbers::Lbn;
use crate::testing::{FailingAccess, FailingStore};
use frit_core::Error;
use std::sync::atomic::Ordering;

fn gone() -> Error {
    Error::Io { what: "disk".into(), source: std::io::Error::other("the disk is gone") }
}

#[test]
fn a_disk_that_fails_loses_nothing_and_is_taken_up_again() {
    for policy in policies() {
        let (pcm, store) = memory();
        let mut hw = Hardware::new();
        let pcm = Pcm::new(pcm_config(96), pcm, &mut hw).unwrap();
        let (store, fails) = FailingStore::new(store, FailingAccess::Any, gone);
        let disk = Disk::new(disk_config(), store, &mut hw).unwrap();
        let mut layer = Cache::new(named(policy), pcm, Box::new(disk), None).unwrap();
        let block = |n: u8| vec![n; 4096];
        let write = |layer: &mut Cache<Disk>, lbn: u64, n: u8| {
            layer.write(&mut Sink::untimed(), Sector(lbn * 8), WriteData::Bytes(&block(n)), Hints::NONE)
        };
        let read = |layer: &mut Cache<Disk>, lbn: u64| {
            let mut back = vec![0; 4096];
            layer
                .read(&mut Sink::untimed(), Sector(lbn * 8), ReadTarget::Bytes(&mut back), Hints::NONE)
                .map(|()| back)
        };
        for i in 0..60_u8 {
            write(&mut layer, u64::from(i) * 20, i + 1).unwrap();
        }
        fails.store(true, Ordering::Relaxed);
        // Writes succeed while slots are free, and then return the error of the disk.
        let full = (60..200_u8).find_map(|i| write(&mut layer, 1200 + u64::from(i), i).err().map(|e| (i, e)));
        let (accepted, why) = full.unwrap();
        assert!(accepted > 85, "{policy}: {accepted}");
        assert!(
            matches!(why, Error::NoSpace { .. }) && why.to_string().contains("the disk is gone"),
            "{why}"
        );
        layer.audit();
        assert_eq!(read(&mut layer, 0).unwrap(), block(1), "hits go on");
        assert!(read(&mut layer, 2000).is_err());
        assert!(Durable::refuses(&layer).is_none());
        for _ in 0..200 {
            layer.step(&mut Sink::untimed(), 16).unwrap();
        }
        layer.audit();
        fails.store(false, Ordering::Relaxed);
        for _ in 0..200 {
            layer.step(&mut Sink::untimed(), 16).unwrap();
        }
        layer.audit();
        for i in 60..120_u8 {
            write(&mut layer, 1500 + u64::from(i), i).unwrap();
        }
        for i in 0..60_u8 {
            assert_eq!(read(&mut layer, u64::from(i) * 20).unwrap()[..], block(i + 1)[..], "{policy} {i}");
        }
        layer.audit();
    }
}

#[test]
fn damage_is_told_never_written_back_and_mended_by_a_whole_write() {
    let (pcm, disk) = stores();
    let mut layer = open(&named("halo"), &pcm, &disk);
    let mut model = Model::new();
    model.write(&mut layer, 80, 8);
    model.write(&mut layer, 160, 8);
    let at = layer.space.layout.data(layer.dir.get(Lbn(10)).unwrap());
    let mut byte = [0];
    layer.space.pcm.peek(at + 1000, &mut byte).unwrap();
    layer.space.pcm.store_mut().write(at + 1000, &[byte[0] ^ 4]).unwrap();
    let mut back = vec![0; 512];
    let e =
        layer.read(&mut Sink::untimed(), Sector(83), ReadTarget::Bytes(&mut back), Hints::NONE).unwrap_err();
    assert!(e.to_string().contains("block 10 of the disk"), "{e}");
    layer.set("dirty_low", "0").unwrap();
    while layer.step(&mut Sink::untimed(), 8).unwrap() != frit_core::Progress::Idle {}
    assert_eq!(disk_commands(&layer, Op::DiskWrite), 1, "the whole block only");
    let mut kinds = Vec::new();
    let scope = CheckScope { data: true, ..CheckScope::default() };
    layer.check(&mut Sink::untimed(), scope, &mut |f| kinds.push((f.kind, f.lpn))).unwrap();
    assert_eq!(kinds, [("bad-data", Some(10))]);
    let part = layer.write(&mut Sink::untimed(), Sector(80), WriteData::Bytes(&[1; 512]), Hints::NONE);
    assert!(matches!(part, Err(Error::Corrupt { .. })), "{part:?}");
    model.write(&mut layer, 80, 8);
    model.all(&mut layer);
    layer.audit();
}

#[test]
fn a_damaged_block_is_given_up_only_when_told() {
    let (pcm, disk) = stores();
    let mut layer = open(&named("lru"), &pcm, &disk);
    let mut model = Model::new();
    model.write(&mut layer, 80, 8);
    let at = layer.space.layout.data(layer.dir.get(Lbn(10)).unwrap());
    layer.space.pcm.store_mut().write(at, &[0; 8]).unwrap();
    let mut repaired = Vec::new();
    for older in [false, true] {
        let scope = CheckScope { data: true, repair: true, older };
        layer.check(&mut Sink::untimed(), scope, &mut |f| repaired.push(f.repaired)).unwrap();
    }
    assert_eq!(repaired, [false, true]);
    let mut back = vec![1; 4096];
    layer.read(&mut Sink::untimed(), Sector(80), ReadTarget::Bytes(&mut back), Hints::NONE).unwrap();
    assert!(back.iter().all(|&b| b == 0), "the disk's version");
    layer.audit();
}

#[test]
fn media_of_another_shape_are_refused() {
    let (pcm, disk) = stores();
    open(&named("halo"), &pcm, &disk).format(&mut Sink::untimed()).unwrap();
    let small = CacheConfig { cache_bytes: 70 * 4096, ..named("halo") };
    let e = open(&small, &pcm, &disk).recover(&mut Sink::untimed(), CrashKind::Process).unwrap_err();
    assert!(e.to_string().contains("cache of"), "{e}");
    let (blank, _) = stores();
    let e =
        open(&named("halo"), &blank, &disk).recover(&mut Sink::untimed(), CrashKind::Process).unwrap_err();
    assert!(e.to_string().contains("holds no cache"), "{e}");
}

/// A record that lost a word in a power loss is invalid. Together with the same word of the next
/// record of the block it would be valid again, although its block is not.
#[test]
fn what_a_stop_left_of_a_record_goes() {
    let (pcm, disk) = stores();
    let mut layer = open(&CacheConfig { record_copies: 2, ..named("halo") }, &pcm, &disk);
    layer.format(&mut Sink::untimed()).unwrap();
    layer.write(&mut Sink::untimed(), Sector(40), WriteData::Bytes(&[7; 4096]), Hints::NONE).unwrap();
    let slot = layer.dir.get(Lbn(5)).unwrap();
    let records: Vec<u64> = layer.space.layout.places(slot).map(|p| layer.space.layout.record(p)).collect();
    let last_word = |layer: &Layer, at: u64| {
        let mut word = [0; 8];
        layer.space.pcm.peek(at + 24, &mut word).unwrap();
        u64::from_le_bytes(word)
    };
    for &at in &records {
        layer.space.pcm.store_mut().write(at, &[0; 8]).unwrap();
        assert_ne!(last_word(&layer, at), 0);
    }
    layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    assert!(layer.dir.get(Lbn(5)).is_none());
    for at in records {
        assert_eq!(last_word(&layer, at), 0);
    }
}
