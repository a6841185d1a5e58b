//! Contents for the processing engine: the same bytes as those of reads, with the rights of a caller.

use crate::{AnyMedium, erased, memory};
use frit_fs::{
    Allocate, AttrChanges, Caller, Error, FileContents, FileSystem, FormatOptions, Fs, InStorage, Ino,
    NewInode, Overlaid, OverlayOptions, Overrides,
};
use proptest::prelude::*;
use std::sync::Arc;

const ROOT: &Caller = &Caller::ROOT;

fn file(fs: &dyn FileSystem, mode: u16) -> Ino {
    fs.create(ROOT, Ino::ROOT, b"f", NewInode::file(mode)).unwrap().ino
}

fn scanned(contents: &dyn FileContents, at: u64, len: usize) -> Vec<u8> {
    let mut all = Vec::new();
    contents.scan(at, len, &mut |piece| all.extend_from_slice(piece)).unwrap();
    all
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Write(u64, usize, u8),
    Punch(u64, u64),
    Keep(u64, u64),
    Resize(u64),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = || 0..300_000_u64;
    let change = prop_oneof![
        4 => (at(), 1..40_000_usize, any::<u8>()).prop_map(|(at, len, byte)| Change::Write(at, len, byte)),
        1 => (at(), 1..50_000_u64).prop_map(|(at, len)| Change::Punch(at, len)),
        1 => (at(), 1..50_000_u64).prop_map(|(at, len)| Change::Keep(at, len)),
        1 => at().prop_map(Change::Resize),
    ];
    proptest::collection::vec(change, 1..12)
}

fn apply(fs: &dyn FileSystem, ino: Ino, change: Change) {
    match change {
        Change::Write(at, len, byte) => {
            let data: Vec<u8> = (0..len).map(|i| byte.wrapping_add((i / 100) as u8)).collect();
            assert_eq!(fs.write(ino, at, &data).unwrap(), len);
        }
        Change::Punch(at, len) => fs.allocate(ino, Allocate::Punch, at, len).unwrap(),
        Change::Keep(at, len) => fs.allocate(ino, Allocate::Keep, at, len).unwrap(),
        Change::Resize(size) => {
            let size = Some(size);
            fs.set_attr(ROOT, ino, &AttrChanges { size, ..AttrChanges::default() }).unwrap();
        }
    }
}

/// Compares scans with reads after each change.
fn compare(medium: AnyMedium, sums: bool, changes: &[Change], ranges: &[(u64, usize)]) {
    let fs = Arc::new(Fs::format(medium, FormatOptions { sums, ..FormatOptions::default() }).unwrap());
    let ino = file(&*fs, 0o644);
    let contents = Arc::clone(&fs).open_contents(ROOT, ino, false).unwrap();
    for change in changes {
        let before = contents.version().unwrap();
        apply(&*fs, ino, *change);
        assert_ne!(contents.version().unwrap(), before, "{change:?}");
        assert_eq!(contents.bytes().unwrap(), fs.attr(ino).unwrap().size);
        for (at, len) in ranges {
            // Bytes after the end are zeros.
            let mut read = vec![0; *len];
            let _ = fs.read(ino, *at, &mut read).unwrap();
            assert_eq!(scanned(&*contents, *at, *len), read, "{at}+{len} after {change:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_scan_passes_the_bytes_of_a_read(
        changes in changes(),
        ranges in proptest::collection::vec((0..320_000_u64, 0..300_000_usize), 4),
    ) {
        compare(memory(4 << 20), false, &changes, &ranges);
        compare(memory(4 << 20), true, &changes, &ranges);
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("img");
        std::fs::File::create(&image).unwrap().set_len(4 << 20).unwrap();
        let overlay = OverlayOptions::default();
        compare(erased(Overlaid::open(&image, &overlay).unwrap()), false, &changes, &ranges);
    }
}

#[test]
fn mapped_contents_are_not_copied() {
    let fs = Arc::new(Fs::format(memory(4 << 20), FormatOptions::default()).unwrap());
    let ino = file(&*fs, 0o644);
    fs.write(ino, 0, &[7; 1 << 20]).unwrap();
    let contents = Arc::clone(&fs).open_contents(ROOT, ino, false).unwrap();
    let mut pieces = Vec::new();
    contents.scan(100, 1_000_000, &mut |piece| pieces.push(piece.len())).unwrap();
    assert_eq!(pieces, [1_000_000]);
}

#[test]
fn the_rights_of_the_caller_hold() {
    let fs = Arc::new(Fs::format(memory(1 << 20), FormatOptions::default()).unwrap());
    let ino = file(&*fs, 0o640);
    let caller = |uid, gid, groups: &[u32]| Caller {
        uid,
        gid,
        groups: groups.to_vec(),
        checked: true,
        ..Caller::ROOT
    };
    fs.set_attr(ROOT, ino, &AttrChanges { uid: Some(1), gid: Some(2), ..AttrChanges::default() }).unwrap();
    let open = |caller: &Caller, writes| Arc::clone(&fs).open_contents(caller, ino, writes).map(drop);
    open(&caller(1, 9, &[]), true).unwrap();
    open(&caller(3, 9, &[2]), false).unwrap();
    assert!(matches!(open(&caller(3, 9, &[2]), true), Err(Error::Access)));
    assert!(matches!(open(&caller(3, 9, &[]), false), Err(Error::Access)));
    for (overrides, reads, writes) in
        [(Overrides::All, true, true), (Overrides::ReadSearch, true, false), (Overrides::None, false, false)]
    {
        let root = Caller { overrides, ..Caller::ROOT };
        assert_eq!((open(&root, false).is_ok(), open(&root, true).is_ok()), (reads, writes), "{overrides:?}");
        open(&Caller { gid: 2, ..root }, false).unwrap();
    }
    let directory = Arc::clone(&fs).open_contents(ROOT, Ino::ROOT, false).map(drop);
    assert!(matches!(directory, Err(Error::IsDirectory)));
    let reader = Arc::clone(&fs).open_contents(ROOT, ino, false).unwrap();
    assert!(matches!(reader.write(0, b"x"), Err(Error::Access)));
    let writer = Arc::clone(&fs).open_contents(ROOT, ino, true).unwrap();
    writer.write(5000, b"data").unwrap();
    // The contents exist without a name, until they are dropped.
    fs.unlink(ROOT, Ino::ROOT, b"f").unwrap();
    assert_eq!(scanned(&*reader, 4999, 6), b"\0data\0");
    drop((reader, writer));
    assert!(matches!(fs.attr(ino), Err(Error::Stale)));
}
