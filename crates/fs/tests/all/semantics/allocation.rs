//! Preallocation, hole punching, zeroing, and the positions of contents on the medium.

use super::*;
use frit_fs::Allocate::{Extend, Keep, Punch, Zero, ZeroKeep};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn s23_allocated_blocks_read_as_zeros_and_are_there_when_they_are_written() {
    if image_only("allocation depends on the pool") {
        return;
    }
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    write(&fs, f, 0, &[1; 100]);
    fs.allocate(f, Keep, 0, 20 * BLOCK).unwrap();
    assert_eq!((fs.attr(f).unwrap().size, fs.attr(f).unwrap().sectors), (100, 160));
    fs.allocate(f, Extend, 0, 10 * BLOCK).unwrap();
    assert_eq!(contents(&fs, f), [&[1; 100][..], &vec![0; 10 * BLOCK as usize - 100]].concat());
    fill(&fs, "all");
    write(&fs, f, 0, &[2; 20 * BLOCK as usize]);
    refused!(fs.allocate(f, Keep, 0, 0), Invalid);
    refused!(fs.allocate(TOP, Keep, 0, 1), IsDirectory);
}

#[test]
fn s24_no_space_to_allocate_changes_nothing() {
    if image_only("space for contents depends on the pool") {
        return;
    }
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    write(&fs, f, 0, &[1; 5000]);
    let before = (fs.usage().unwrap(), fs.attr(f).unwrap());
    for how in [Extend, Keep, Zero, ZeroKeep] {
        refused!(fs.allocate(f, how, 0, 1 << 20), NoSpace);
        assert_eq!((fs.usage().unwrap(), fs.attr(f).unwrap()), before);
    }
    assert_eq!(contents(&fs, f), [1; 5000]);
}

#[test]
fn s25_a_punched_range_is_a_hole() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    write(&fs, f, 0, &[1; 10 * BLOCK as usize]);
    fs.allocate(f, Punch, BLOCK - 10, 3 * BLOCK + 20).unwrap();
    let mut expected = vec![1; 10 * BLOCK as usize];
    expected[BLOCK as usize - 10..4 * BLOCK as usize + 10].fill(0);
    assert_eq!(contents(&fs, f), expected);
    assert_eq!((fs.attr(f).unwrap().size, fs.attr(f).unwrap().sectors), (10 * BLOCK, 7 * 8));
    fs.allocate(f, Punch, 0, 1 << 40).unwrap();
    assert_eq!((fs.attr(f).unwrap().size, fs.attr(f).unwrap().sectors), (10 * BLOCK, 0));
}

#[test]
fn s26_a_zeroed_range_keeps_its_blocks() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    write(&fs, f, 0, &[1; 10_000]);
    fs.allocate(f, ZeroKeep, 100, 1 << 16).unwrap();
    assert_eq!(contents(&fs, f), [&[1; 100][..], &[0; 9900]].concat());
    assert_eq!(fs.attr(f).unwrap().sectors, 17 * 8);
    fs.allocate(f, Zero, 50, 20_000).unwrap();
    assert_eq!(contents(&fs, f), [&[1; 50][..], &[0; 20_000]].concat());
}

#[test]
fn s27_seeking_finds_blocks_that_were_written() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    write(&fs, f, 2 * BLOCK + 5, &[1; 3]);
    fs.allocate(f, Extend, 0, 8 * BLOCK).unwrap();
    assert_eq!(fs.seek(f, Seek::Data, 0).unwrap(), 2 * BLOCK);
    assert_eq!(fs.seek(f, Seek::Data, 2 * BLOCK + 77).unwrap(), 2 * BLOCK + 77);
    assert_eq!(fs.seek(f, Seek::Hole, 2 * BLOCK).unwrap(), 3 * BLOCK, "allocated is not written");
    refused!(fs.seek(f, Seek::Data, 3 * BLOCK), BeyondEnd);
    write(&fs, f, 7 * BLOCK, &[1; BLOCK as usize]);
    assert_eq!(fs.seek(f, Seek::Hole, 7 * BLOCK).unwrap(), 8 * BLOCK, "the end is a hole");
    refused!(fs.seek(f, Seek::Hole, 8 * BLOCK), BeyondEnd);
}

#[test]
fn s28_pieces_tell_where_the_bytes_lie() {
    if image_only("contents have no place on the medium") {
        return;
    }
    let fs = fresh(1 << 20);
    let f = scattered(&fs, "f", 5, 3);
    fs.allocate(f, Keep, 20 * BLOCK, BLOCK).unwrap();
    let mut told = Vec::new();
    fs.pieces(f, 0, &mut |piece| {
        told.push(*piece);
        true
    })
    .unwrap();
    assert_eq!(told.len(), 6);
    assert!(told.iter().map(|piece| piece.at).eq([0, 2, 4, 6, 8, 20].map(|block| block * BLOCK)));
    for piece in &told {
        let mut there = vec![0; piece.len as usize];
        fs.medium().read(piece.medium, &mut there);
        assert_eq!(piece.written, piece.at < 20 * BLOCK);
        assert!(!piece.written || there == vec![3; BLOCK as usize]);
    }
}

fn pieces(fs: &dyn FileSystem, ino: Ino) -> usize {
    let mut count = 0;
    fs.pieces(ino, 0, &mut |_| {
        count += 1;
        true
    })
    .unwrap();
    count
}

/// Creates a file in which each block is a separate extent.
fn splinters(fs: &dyn FileSystem, name: &str, blocks: u64) -> Ino {
    let ino = scattered(fs, name, blocks / 2, 1);
    for i in 0..blocks / 2 {
        write(fs, ino, (2 * i + 1) * BLOCK, &[2; BLOCK as usize]);
    }
    ino
}

#[test]
fn s89_gathering_changes_nothing_that_can_be_read() {
    if image_only("fragmentation depends on the pool") {
        return;
    }
    let fs = fresh(8 << 20);
    let f = splinters(&fs, "f", 400);
    let (before, attr, free_before) = (contents(&fs, f), fs.attr(f).unwrap(), free(&fs));
    assert!(pieces(&fs, f) > 100, "{} pieces", pieces(&fs, f));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                assert!(contents(&fs, f) == before);
            }
        });
        let gathered = fs.gather(f).unwrap();
        done.store(true, Ordering::Release);
        assert_eq!(gathered.after as usize, pieces(&fs, f));
        assert!(gathered.after <= 4 && gathered.before > 100, "{gathered:?}");
    });
    assert!(contents(&fs, f) == before);
    assert_eq!((fs.attr(f).unwrap().mtime, fs.attr(f).unwrap().ctime), (attr.mtime, attr.ctime));
    // Extent blocks remain allocated to the file.
    assert_eq!(free(&fs), free_before);
    // On a full medium, nothing moves.
    let g = splinters(&fs, "g", 40);
    let (before, many) = (contents(&fs, g), pieces(&fs, g));
    fill(&fs, "all");
    assert_eq!(fs.gather(g).unwrap().after as usize, many);
    assert!(contents(&fs, g) == before);
    assert_clean(fs.medium());
}
