//! Operations on a full file system: those that need no free block, and those that free some.

use crate::{AnyMedium, memory};
use frit_fs::Allocate::{Keep, Punch};
use frit_fs::{Caller, FileSystem, FormatOptions, Fs, FsOptions, Ino, NewInode, check, check_contents};

const ROOT: &Caller = &Caller::ROOT;
const BLOCK: u64 = 4096;

type TestFs = Fs<AnyMedium>;

fn fresh(sums: bool) -> TestFs {
    let medium = memory(4 << 20);
    Fs::format(medium, FormatOptions { inodes: Some(1024), sums, ..FormatOptions::default() }).unwrap()
}

fn file(fs: &TestFs, name: &str) -> Ino {
    fs.create(ROOT, Ino::ROOT, name.as_bytes(), NewInode::file(0o644)).unwrap().ino
}

fn free(fs: &TestFs) -> u64 {
    fs.usage().unwrap().blocks_free
}

/// Allocates all free blocks.
fn fill(fs: &TestFs) {
    let ino = file(fs, "all");
    let mut at = 0;
    while let Ok(len) = fs.write(ino, at, &vec![0xEE; 1 << 20]) {
        at += len as u64;
    }
    assert_eq!(free(fs), 0);
}

fn contents(fs: &TestFs, ino: Ino) -> Vec<u8> {
    let mut bytes = vec![0xAA; fs.attr(ino).unwrap().size as usize];
    assert_eq!(fs.read(ino, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// Closes the file system, checks it with its contents, and opens it again.
fn again(fs: TestFs) -> TestFs {
    let sums = fs.geometry().has_sums();
    let medium = fs.close().unwrap();
    let report = if sums { check_contents(&medium).unwrap() } else { check(&medium).unwrap() };
    assert!(report.is_clean() && report.unsummed == 0, "{report:#?}");
    Fs::open(medium, FsOptions::default()).unwrap()
}

/// Writes to every second block of an allocated file, in mixed order.
fn write_every_second(fs: &TestFs, ino: Ino, blocks: u64) -> Vec<u8> {
    let mut expected = vec![0; (blocks * BLOCK) as usize];
    for i in 0..blocks / 2 {
        let block = (i * 37 % (blocks / 2)) * 2 + 1;
        let at = block * BLOCK + i % 4000;
        let bytes = [block as u8 | 1; 90];
        let written = fs.write(ino, at, &bytes);
        assert!(matches!(written, Ok(90)), "block {block}, the {i}-th: {written:?}");
        expected[at as usize..at as usize + 90].copy_from_slice(&bytes);
    }
    expected
}

#[test]
fn allocated_blocks_are_written_in_any_order_on_a_full_file_system() {
    for (sums, blocks, kept) in [(false, 300, 0), (true, 300, 0), (false, 40, 3)] {
        let fs = fresh(sums);
        let ino = file(&fs, "f");
        // Enough other extents to leave `kept` free slots in the inode.
        for i in 0..if kept > 0 { 8 - kept } else { 0 } {
            fs.write(ino, (1000 + 2 * i) * BLOCK, &[9; 4096]).unwrap();
        }
        fs.allocate(ino, Keep, 0, blocks * BLOCK).unwrap();
        fill(&fs);
        let expected = write_every_second(&fs, ino, blocks);
        assert!(contents(&fs, ino).starts_with(&expected[..(blocks - 1) as usize * 4096]));
        let fs = again(fs);
        assert!(contents(&fs, ino).starts_with(&expected[..(blocks - 1) as usize * 4096]));
        assert_eq!(free(&fs), 0);
    }
}

#[test]
fn many_files_with_allocated_blocks_are_written_on_a_full_file_system() {
    let fs = fresh(false);
    let all: Vec<Ino> = (0..20).map(|i| file(&fs, &format!("{i}"))).collect();
    all.iter().for_each(|ino| fs.allocate(*ino, Keep, 0, 20 * BLOCK).unwrap());
    fill(&fs);
    let expected: Vec<_> = all.iter().map(|ino| write_every_second(&fs, *ino, 20)).collect();
    let fs = again(fs);
    for (ino, expected) in all.iter().zip(&expected) {
        let found = contents(&fs, *ino);
        assert!(found.len() > 19 * 4096 && expected.starts_with(&found));
    }
}

#[test]
fn holes_are_punched_on_a_full_file_system() {
    for (sums, holes) in [(false, 1), (true, 1), (false, 3)] {
        let fs = fresh(sums);
        let ino = file(&fs, "f");
        fs.write(ino, 0, &vec![7; 600 * 4096]).unwrap();
        let more: Vec<Ino> = (0..290 / holes).map(|i| file(&fs, &format!("more{i}"))).collect();
        fill(&fs);
        let mut expected = vec![7; 600 * 4096];
        let mut gained = 0;
        for i in 0..290 / holes {
            let block = (i * 41 % (290 / holes)) * (holes + 1);
            let punched = fs.allocate(ino, Punch, block * BLOCK, holes * BLOCK);
            assert!(punched.is_ok(), "the {i}-th, at block {block}: {punched:?}");
            let at = (block * BLOCK) as usize;
            let end = expected.len().min(at + (holes * BLOCK) as usize);
            expected[at.min(end)..end].fill(0);
            // Freed blocks are available at once.
            let mut at = 0;
            while let Ok(len) = fs.write(more[i as usize], at, &[0xDD; 4096]) {
                at += len as u64;
                gained += 1;
            }
            assert!(contents(&fs, ino) == expected, "the {i}-th");
        }
        // The blocks for extent slots were taken from the holes.
        assert!(gained >= 290 / holes - 8, "{gained} blocks");
        let fs = again(fs);
        assert!(contents(&fs, ino) == expected);
    }
}
