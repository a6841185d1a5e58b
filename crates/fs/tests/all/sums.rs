//! Checksums of contents: damaged contents are never returned as valid.

use crate::{AnyMedium, memory};
use frit_fs::{
    AttrChanges, Caller, Error, FileSystem, FormatOptions, Fs, FsOptions, Ino, Medium, NewInode, check,
    check_contents,
};
use std::sync::Arc;

const ROOT: &Caller = &Caller::ROOT;
const BLOCK: usize = 4096;

type TestFs = Fs<AnyMedium>;

fn fresh() -> TestFs {
    let medium = memory(4 << 20);
    Fs::format(medium, FormatOptions { sums: true, ..FormatOptions::default() }).unwrap()
}

fn file(fs: &TestFs, name: &str, bytes: &[u8]) -> Ino {
    let ino = fs.create(ROOT, Ino::ROOT, name.as_bytes(), NewInode::file(0o644)).unwrap().ino;
    assert_eq!(fs.write(ino, 0, bytes).unwrap(), bytes.len());
    ino
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 7) as u8 ^ (i % 251) as u8).collect()
}

/// Returns the position of a byte of a file on the medium.
fn place(fs: &TestFs, ino: Ino, at: u64) -> u64 {
    let mut place = None;
    fs.pieces(ino, at, &mut |piece| {
        place = (piece.at <= at).then(|| piece.medium + at - piece.at);
        false
    })
    .unwrap();
    place.unwrap()
}

/// Flips one bit of a file.
fn flip(fs: &TestFs, ino: Ino, at: u64, bit: u8) {
    let at = place(fs, ino, at);
    let mut byte = [0];
    fs.medium().read(at, &mut byte);
    fs.medium().write_data(at, &[byte[0] ^ 1 << bit]);
}

fn reads(fs: &TestFs, ino: Ino, at: u64, len: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; len];
    let n = fs.read(ino, at, &mut bytes)?;
    bytes.truncate(n);
    Ok(bytes)
}

fn is_damaged<T: std::fmt::Debug>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Damaged { what: "contents of a file", .. }))
}

#[test]
fn every_bit_that_turns_over_is_noticed_where_it_is_read() {
    let fs = fresh();
    let bytes = pattern(3 * BLOCK + 100);
    let ino = file(&fs, "f", &bytes);
    fs.sync_file(ino, true).unwrap();
    for at in (0..bytes.len() as u64).step_by(97).chain([bytes.len() as u64 - 1]) {
        flip(&fs, ino, at, (at % 8) as u8);
        let block = at as usize / BLOCK;
        for from in [0, 1, 50] {
            assert!(is_damaged(&reads(&fs, ino, (block * BLOCK + from) as u64, 10)), "byte {at}");
        }
        assert!(is_damaged(&reads(&fs, ino, 0, bytes.len())), "byte {at}");
        let other = (block + 1) % 4;
        assert_eq!(reads(&fs, ino, (other * BLOCK) as u64, 50).unwrap(), bytes[other * BLOCK..][..50]);
        flip(&fs, ino, at, (at % 8) as u8);
    }
    assert_eq!(reads(&fs, ino, 0, bytes.len() + 1).unwrap(), bytes);
}

#[test]
fn damage_is_not_hidden_by_what_is_written_beside_it() {
    let fs = fresh();
    let ino = file(&fs, "f", &pattern(2 * BLOCK + 10));
    fs.sync().unwrap();
    flip(&fs, ino, 5000, 3);
    flip(&fs, ino, 2 * BLOCK as u64 + 5, 3);
    // A partial write of the block, growth of a file with a damaged tail, and an append.
    assert!(is_damaged(&fs.write(ino, 8000, &[1; 100])));
    assert!(is_damaged(&fs.set_attr(
        ROOT,
        ino,
        &AttrChanges { size: Some(1 << 20), ..AttrChanges::default() }
    )));
    assert!(is_damaged(&fs.append(ino, &[1])));
    assert!(is_damaged(&reads(&fs, ino, 5000, 1)) && is_damaged(&reads(&fs, ino, 2 * BLOCK as u64, 1)));
    // A block that is overwritten as a whole is valid again.
    fs.write(ino, BLOCK as u64, &[7; BLOCK]).unwrap();
    fs.sync_file(ino, true).unwrap();
    assert_eq!(reads(&fs, ino, 5000, 2).unwrap(), [7, 7]);
    // Truncated blocks are no longer checked.
    fs.set_attr(ROOT, ino, &AttrChanges { size: Some(100), ..AttrChanges::default() }).unwrap();
    let medium = fs.close().unwrap();
    let report = check_contents(&medium).unwrap();
    assert!(report.is_clean() && report.verified == 1 && report.unsummed == 0, "{report:#?}");
}

#[test]
fn pieces_that_are_damaged_stay_where_they_are() {
    let fs = fresh();
    let ino = file(&fs, "f", &pattern(BLOCK));
    fs.write(ino, 2 * BLOCK as u64, &pattern(BLOCK)).unwrap();
    fs.write(ino, BLOCK as u64, &pattern(BLOCK)).unwrap();
    fs.sync().unwrap();
    flip(&fs, ino, 4097, 0);
    assert!(is_damaged(&fs.gather(ino)));
    assert_eq!(reads(&fs, ino, 0, BLOCK).unwrap(), pattern(BLOCK), "the others can be read");
    flip(&fs, ino, 4097, 0);
    let gathered = fs.gather(ino).unwrap();
    assert!(gathered.before == 3 && gathered.after == 1, "{gathered:?}");
    assert_eq!(reads(&fs, ino, 0, 3 * BLOCK).unwrap(), pattern(BLOCK).repeat(3));
    let medium = fs.close().unwrap();
    assert_eq!(check_contents(&medium).unwrap().verified, 3);
}

#[test]
fn a_check_tells_what_is_damaged_and_what_has_no_checksum() {
    let fs = fresh();
    let ino = file(&fs, "f", &pattern(5 * BLOCK));
    fs.sync_file(ino, true).unwrap();
    fs.write(ino, 10, &[1]).unwrap();
    flip(&fs, ino, 3 * BLOCK as u64, 7);
    let medium = Arc::clone(fs.medium());
    let report = check_contents(&medium).unwrap();
    assert_eq!((report.verified, report.unsummed, report.found), (3, 1, 1), "{report:#?}");
    assert!(report.problems[0].contains("from byte 12288 on"), "{report:#?}");
    assert!(check(&medium).unwrap().is_clean(), "metadata are");
    let plain = Fs::format(memory(1 << 20), FormatOptions::default()).unwrap();
    let refused = check_contents(plain.medium()).unwrap_err().to_string();
    assert!(refused.contains("--data-checksums"), "{refused}");
}

#[test]
fn what_a_stop_left_without_checksums_gets_them_with_the_next_sync() {
    let fs = fresh();
    let ino = file(&fs, "f", &pattern(4 * BLOCK));
    let medium = Arc::clone(fs.medium());
    drop(fs);
    assert_eq!(check_contents(&medium).unwrap().unsummed, 4);
    let fs = Fs::open(Arc::clone(&medium), FsOptions::default()).unwrap();
    assert_eq!(reads(&fs, ino, 0, 4 * BLOCK).unwrap(), pattern(4 * BLOCK));
    fs.close().unwrap();
    let report = check_contents(&medium).unwrap();
    assert_eq!((report.verified, report.unsummed), (4, 0), "{report:#?}");
}

#[test]
fn the_last_close_of_a_file_gives_checksums() {
    let fs = fresh();
    let ino = fs.create(ROOT, Ino::ROOT, b"f", NewInode::file(0o644)).unwrap().ino;
    fs.pin(ino).unwrap();
    fs.pin(ino).unwrap();
    fs.write(ino, 0, &pattern(2 * BLOCK)).unwrap();
    let sums = || {
        let report = check_contents(fs.medium()).unwrap();
        (report.verified, report.unsummed)
    };
    fs.unpin(ino).unwrap();
    assert_eq!(sums(), (0, 2), "the file is still open");
    fs.unpin(ino).unwrap();
    assert_eq!(sums(), (2, 0));
}
