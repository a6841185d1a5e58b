//! Limits and errors of a file system on a nameless-write device.

use super::device::{BLOCK, FakeDevice};
use super::{CAPACITY, ROOT, VIRTUAL, contents, format, open};
use crate::memory;
use frit_fs::{
    Allocate, Error, FileExtent, FileSystem, FormatOptions, Fs, FsOptions, Ino, NewInode, PlacedContents,
    Seek,
};
use std::sync::Arc;

fn file(fs: &dyn FileSystem, name: &str) -> Ino {
    fs.create(ROOT, Ino::ROOT, name.as_bytes(), NewInode::file(0o644)).unwrap().ino
}

fn pieces(fs: &dyn FileSystem, ino: Ino) -> Vec<FileExtent> {
    let mut all = Vec::new();
    fs.pieces(ino, 0, &mut |piece| {
        all.push(*piece);
        true
    })
    .unwrap();
    all
}

#[test]
fn a_full_device_takes_its_capacity_and_is_freed_by_deletions() {
    let device = FakeDevice::new(CAPACITY, VIRTUAL, 1);
    let fs = format(&device);
    for round in 0..6u8 {
        let ino = file(&fs, "large");
        let mut size = 0;
        loop {
            match fs.write(ino, size, &[round + 1; 3 * BLOCK]) {
                Ok(n) => size += n as u64,
                Err(Error::NoSpace) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(size, CAPACITY * BLOCK as u64, "round {round}");
        let usage = fs.usage().unwrap();
        assert_eq!((usage.blocks, usage.blocks_free), (CAPACITY, 0));
        device.migrate(10);
        // Every block can be overwritten while the device is full.
        for at in (0..size).step_by(5 * BLOCK) {
            assert_eq!(fs.write(ino, at + 100, &[0x77; 7]).unwrap(), 7);
        }
        fs.sync().unwrap();
        let bytes = contents(&fs, ino).unwrap();
        assert_eq!(bytes.iter().filter(|&&byte| byte == 0x77).count(), 7 * CAPACITY.div_ceil(5) as usize);
        assert!(matches!(fs.write(file(&fs, "other"), 0, b"x"), Err(Error::NoSpace)));
        fs.unlink(ROOT, Ino::ROOT, b"other").unwrap();
        fs.unlink(ROOT, Ino::ROOT, b"large").unwrap();
        assert_eq!(fs.usage().unwrap().blocks_free, CAPACITY);
    }
    assert_eq!(device.strays(), 0);
}

/// Without syncs, a writer applies moves when 4096 are pending (docs/reference/nameless-fs.md, migrations).
#[test]
fn a_writer_applies_moves_when_many_are_pending() {
    let device = FakeDevice::new(CAPACITY, VIRTUAL, 4);
    let fs = format(&device);
    let ino = file(&fs, "file");
    fs.write(ino, 0, &[1; 8 * BLOCK]).unwrap();
    fs.sync().unwrap();
    device.migrate(4096);
    fs.write(ino, 0, &[2]).unwrap();
    assert_eq!(device.pending(), 4096);
    device.migrate(1);
    fs.write(ino, 1, &[2]).unwrap();
    assert_eq!(device.pending(), 0);
    let bytes = contents(&fs, ino).unwrap();
    assert!(bytes[..2] == [2, 2] && bytes[2..].iter().all(|&byte| byte == 1));
    assert_eq!(device.strays(), 0);
}

#[test]
fn contents_lie_on_the_device_and_metadata_does_not() {
    let device = FakeDevice::new(CAPACITY, VIRTUAL, 2);
    let fs = format(&device);
    let ino = file(&fs, "file");
    fs.write(ino, 0, &[1; 10 * BLOCK]).unwrap();
    fs.write(ino, 20 * BLOCK as u64, &[2; 100]).unwrap();
    assert_eq!(device.stored(), 0);
    fs.sync_file(ino, true).unwrap();
    assert_eq!(device.stored(), 11);
    let lengths: u64 = pieces(&fs, ino).iter().map(|piece| piece.len).sum();
    assert_eq!(lengths, 11 * BLOCK as u64);
    assert!(pieces(&fs, ino).iter().all(|piece| piece.medium < (device.pages_in_all() * BLOCK) as u64));
    assert_eq!(fs.seek(ino, Seek::Hole, 0).unwrap(), 10 * BLOCK as u64);
    assert_eq!(fs.seek(ino, Seek::Data, 11 * BLOCK as u64).unwrap(), 20 * BLOCK as u64);
    assert_eq!(fs.attr(ino).unwrap().sectors, 11 * 8);
}

#[test]
fn space_cannot_be_allocated_before_it_is_written() {
    let device = FakeDevice::new(CAPACITY, VIRTUAL, 3);
    let fs = format(&device);
    let ino = file(&fs, "file");
    for mode in [Allocate::Extend, Allocate::Keep] {
        assert!(matches!(fs.allocate(ino, mode, 0, 8192), Err(Error::Unsupported(_))));
    }
    fs.allocate(ino, Allocate::Zero, 0, 8192).unwrap();
    assert_eq!(contents(&fs, ino).unwrap(), [0; 8192]);
}

#[test]
fn damage_of_a_block_is_an_error_of_its_file_alone() {
    let device = FakeDevice::new(CAPACITY, VIRTUAL, 4);
    let fs = format(&device);
    let (one, other) = (file(&fs, "one"), file(&fs, "other"));
    fs.write(one, 0, &[0x11; 3 * BLOCK]).unwrap();
    fs.write(other, 0, &[0x22; 3 * BLOCK]).unwrap();
    fs.sync().unwrap();
    assert!(device.damage(&[0x11; 16]));
    assert_eq!(contents(&fs, one).unwrap_err().errno(), 5);
    assert_eq!(contents(&fs, other).unwrap(), [0x22; 3 * BLOCK]);
    drop(fs);
    device.crash();
    let fs = open(&device);
    assert_eq!(contents(&fs, one).unwrap_err().errno(), 5);
    assert_eq!(contents(&fs, other).unwrap(), [0x22; 3 * BLOCK]);
    // A whole block that is lost can be written again.
    fs.write(one, 0, &[0x33; 3 * BLOCK]).unwrap();
    fs.sync().unwrap();
    assert_eq!(contents(&fs, one).unwrap(), [0x33; 3 * BLOCK]);
}

#[test]
fn a_device_that_fails_keeps_contents_in_the_buffer() {
    let device = FakeDevice::new(CAPACITY, VIRTUAL, 5);
    let fs = format(&device);
    let ino = file(&fs, "file");
    fs.write(ino, 0, &[7; 5 * BLOCK]).unwrap();
    device.fail_next_flush();
    assert_eq!(fs.sync_file(ino, false).unwrap_err().errno(), 5);
    assert_eq!(contents(&fs, ino).unwrap(), [7; 5 * BLOCK]);
    fs.sync_file(ino, false).unwrap();
    drop(fs);
    device.crash();
    assert_eq!(contents(&open(&device), ino).unwrap(), [7; 5 * BLOCK]);
}

#[test]
fn file_systems_and_devices_that_do_not_belong_together_are_refused() {
    let device = FakeDevice::new(CAPACITY, VIRTUAL, 6);
    format(&device).close().unwrap();
    device.crash();
    let placed = PlacedContents::load(Box::new(device.clone())).unwrap();
    let message = |error: Error| error.to_string();
    let without = Fs::open(placed.medium(), FsOptions::default()).map(drop).map_err(message);
    assert!(without.unwrap_err().contains("nameless-write device"));
    let plain = memory(1 << 20);
    Fs::format(Arc::clone(&plain), FormatOptions::default()).unwrap().close().unwrap();
    let options = || FsOptions { placed: Some(Arc::clone(&placed)), ..FsOptions::default() };
    let with = Fs::open(plain, options()).map(drop).map_err(message);
    assert!(with.unwrap_err().contains("not the file system of a nameless-write device"));
    let larger = FakeDevice::new(CAPACITY + 100, VIRTUAL, 6);
    let larger = PlacedContents::load(Box::new(larger)).unwrap();
    let options = FsOptions { placed: Some(larger), ..FsOptions::default() };
    let other = Fs::open(placed.medium(), options).map(drop).map_err(message);
    assert!(other.unwrap_err().contains("formatted for a device of"));
}

#[test]
fn a_read_only_file_system_changes_nothing_on_the_device() {
    let device = FakeDevice::new(CAPACITY, VIRTUAL, 7);
    let fs = format(&device);
    let ino = file(&fs, "file");
    fs.write(ino, 0, &[9; 3 * BLOCK]).unwrap();
    fs.sync().unwrap();
    device.migrate(5);
    drop(fs);
    device.crash();
    let placed = PlacedContents::load(Box::new(device.clone())).unwrap();
    let options = FsOptions { read_only: true, placed: Some(Arc::clone(&placed)), ..FsOptions::default() };
    let fs = Fs::open(placed.medium(), options).unwrap();
    assert_eq!(contents(&fs, ino).unwrap(), [9; 3 * BLOCK]);
    assert!(matches!(fs.write(ino, 0, b"x"), Err(Error::ReadOnly)));
    fs.close().unwrap();
    device.crash();
    assert_eq!(contents(&open(&device), ino).unwrap(), [9; 3 * BLOCK]);
}

#[test]
fn an_idle_device_works_in_the_background() {
    let device = FakeDevice::new(CAPACITY, VIRTUAL, 8);
    let fs = format(&device);
    let ino = file(&fs, "file");
    fs.write(ino, 0, &[4; 9 * BLOCK]).unwrap();
    let placed = Arc::clone(fs.placed_contents().unwrap());
    let before = placed.accesses();
    fs.sync().unwrap();
    assert!(placed.accesses() > before, "a sync places contents");
    assert!(placed.step(6).unwrap() && !placed.step(0).unwrap());
    assert_eq!(device.pending(), 6);
    assert_eq!(contents(&fs, ino).unwrap(), [4; 9 * BLOCK]);
    fs.sync().unwrap();
    assert_eq!(device.pending(), 0);
    assert_eq!(contents(&fs, ino).unwrap(), [4; 9 * BLOCK]);
}
