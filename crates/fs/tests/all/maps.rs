//! Maps of file ranges.

use crate::{AnyMedium, memory};
use frit_fs::{
    Allocate, Caller, Error, FileSystem, FormatOptions, Fs, Ino, NewInode, OpenFile, Paths, check,
};
use proptest::prelude::*;

const ROOT: &Caller = &Caller::ROOT;

fn fresh(sums: bool) -> Fs<AnyMedium> {
    Fs::format(memory(4 << 20), FormatOptions { sums, ..FormatOptions::default() }).unwrap()
}

/// Creates a file with data in every second block.
fn scattered(fs: &Fs<AnyMedium>, blocks: u64) -> Vec<u8> {
    let ino = fs.create(ROOT, Ino::ROOT, b"f", NewInode::file(0o644)).unwrap().ino;
    let mut all = vec![0; blocks as usize * 4096];
    for block in (0..blocks).step_by(2) {
        let at = block as usize * 4096;
        all[at..at + 4096].fill(block as u8 + 1);
        fs.write(ino, at as u64, &all[at..at + 4096]).unwrap();
    }
    fs.allocate(ino, Allocate::Extend, (blocks - 1) * 4096, 4096).unwrap();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_map_has_the_bytes_of_the_file(at in 0..60_000_u64, len in 0..60_000_u64, byte in any::<u8>()) {
        let fs = fresh(false);
        let mut all = scattered(&fs, 20);
        let file = fs.open_file(ROOT, "f", OpenFile::WRITE).unwrap();
        let range = at..(at + len).min(all.len() as u64);
        let map = file.map(range.clone()).unwrap();
        prop_assert_eq!(map.len(), range.end - range.start);
        let mut viewed = vec![0xEE; map.len() as usize];
        map.view(|at, piece| viewed[at as usize..][..piece.len()].copy_from_slice(piece));
        let bytes = range.start as usize..range.end as usize;
        prop_assert_eq!(&viewed, &all[bytes.clone()]);
        map.update(|at, piece| {
            for (i, b) in piece.iter_mut().enumerate() {
                *b = byte.wrapping_add((at as usize + i) as u8);
            }
        }).unwrap();
        for (i, b) in all[bytes].iter_mut().enumerate() {
            *b = byte.wrapping_add(i as u8);
        }
        // Writes go on beside the map, which sees them.
        file.write_at(range.start, b"write").unwrap();
        all.resize(all.len().max(range.start as usize + 5), 0);
        all[range.start as usize..][..5].copy_from_slice(b"write");
        if map.len() >= 5 {
            let mut first = Vec::new();
            map.view(|_, piece| first.extend_from_slice(piece));
            prop_assert_eq!(&first[..5], b"write");
        }
        drop(map);
        drop(file);
        prop_assert_eq!(fs.contents(ROOT, "f").unwrap(), all);
        prop_assert!(check(&fs.close().unwrap()).unwrap().is_clean());
    }
}

#[test]
fn mapped_blocks_stay_in_their_places() {
    let fs = fresh(false);
    let all = scattered(&fs, 20);
    let ino = fs.lookup(ROOT, Ino::ROOT, b"f").unwrap().ino;
    let file = fs.open_file(ROOT, "f", OpenFile::WRITE).unwrap();
    let (first, second) = (file.map(0..8192).unwrap(), file.map(4096..40_000).unwrap());
    for left in [2, 1] {
        assert!(matches!(file.set_len(30_000), Err(Error::Busy)), "{left}");
        for mode in [Allocate::Punch, Allocate::Zero, Allocate::ZeroKeep] {
            assert!(matches!(file.allocate(mode, 0, 4096), Err(Error::Busy)), "{mode:?}");
        }
        let gathered = fs.gather(ino).unwrap();
        assert_eq!(gathered.before, gathered.after);
        if left == 2 {
            first.view(|_, _| ());
        }
    }
    // A file grows beside its maps, and an unlinked one stays.
    file.set_len(100_000).unwrap();
    fs.unlink(ROOT, Ino::ROOT, b"f").unwrap();
    let mut seen = Vec::new();
    second.view(|_, piece| seen.extend_from_slice(piece));
    assert_eq!(seen, all[4096..40_000]);
    drop(first);
    assert!(matches!(file.set_len(0), Err(Error::Busy)));
    drop(second);
    file.set_len(0).unwrap();
}

#[test]
fn maps_are_refused_with_their_reason() {
    let fs = fresh(false);
    scattered(&fs, 4);
    let reader = fs.open_file(ROOT, "f", OpenFile::READ).unwrap();
    assert!(matches!(reader.map(0..4 * 4096 + 1), Err(Error::BeyondEnd)));
    assert!(matches!(reader.map(0..8192), Err(Error::Unsupported(_))), "a hole");
    let map = reader.map(100..4096).unwrap();
    assert!(matches!(map.update(|_, _| ()), Err(Error::Access)));
    let writer = fs.open_file(ROOT, "f", OpenFile { read: false, ..OpenFile::WRITE }).unwrap();
    assert!(matches!(writer.map(0..100), Err(Error::Access)));
    drop(map);
    drop((reader, writer));
    // A refused map does not keep blocks in their places.
    let file = fs.open_file(ROOT, "f", OpenFile::WRITE).unwrap();
    file.set_len(0).unwrap();
    let fs = fresh(true);
    scattered(&fs, 4);
    let file = fs.open_file(ROOT, "f", OpenFile::WRITE).unwrap();
    assert!(matches!(file.map(0..4096), Err(Error::Unsupported(_))));
}
