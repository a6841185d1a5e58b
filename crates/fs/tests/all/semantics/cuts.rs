//! State after a power loss between two fences. `frit-torture` tests power loss between words.

use super::watched::RecordingMedium;
use super::*;
use frit_fs::Allocate::{Punch, Zero};
use frit_fs::{RenameMode, SetTime, Time, XattrMode};
use std::sync::Arc;

fn watched() -> (Arc<RecordingMedium>, Fs<AnyMedium>) {
    let medium = Arc::new(RecordingMedium::new(1 << 20));
    let fs = on(Arc::clone(&medium));
    (medium, fs)
}

/// Reads `pieces` blocks of a scattered file, every second one from `first`. Returns for each
/// `true` if it contains only `byte`.
fn blocks_of(fs: &dyn FileSystem, ino: Ino, byte: u8, first: u64, pieces: u64) -> Vec<bool> {
    let all = |i| {
        let mut block = [byte ^ 1; BLOCK as usize];
        let _ = fs.read(ino, (first + 2 * i) * BLOCK, &mut block).unwrap();
        block == [byte; BLOCK as usize]
    };
    (0..pieces).map(all).collect()
}

#[test]
fn s60_names_and_attributes_are_durable_when_the_call_returns() {
    let (medium, fs) = watched();
    let f = file(&fs, "f");
    assert_eq!(find(&again(medium.cut()), "f").unwrap(), f);
    fs.link(ROOT, f, TOP, b"g").unwrap();
    assert_eq!(again(medium.cut()).attr(f).unwrap().links, 2);
    fs.rename(ROOT, (TOP, b"g"), (TOP, b"h"), RenameMode::Replace).unwrap();
    assert_eq!(names(&again(medium.cut()), TOP), ["f", "h"]);
    fs.unlink(ROOT, TOP, b"f").unwrap();
    assert_eq!(names(&again(medium.cut()), TOP), ["h"]);
    fs.set_xattr(ROOT, f, b"user.a", b"value", XattrMode::Any).unwrap();
    assert_eq!(again(medium.cut()).xattr(f, b"user.a").unwrap(), b"value");
    let atime = Some(SetTime::To(Time(5)));
    let _ =
        fs.set_attr(ROOT, f, &AttrChanges { mode: Some(0o777), atime, ..AttrChanges::default() }).unwrap();
    let found = again(medium.cut()).attr(f).unwrap();
    assert_eq!((found.mode, found.atime), (0o777, Time(5)));
    directory(&fs, "d");
    fs.rmdir(ROOT, TOP, b"d").unwrap();
    assert_eq!(names(&again(medium.cut()), TOP), ["h"]);
}

#[test]
fn what_was_looked_up_is_freed_after_a_power_loss() {
    let (medium, fs) = watched();
    let inodes = fs.usage().unwrap().inodes_free;
    let f = scattered(&fs, "f", 12, 9);
    fs.set_looked_up(Box::new(move |ino| ino == f));
    fs.unlink(ROOT, TOP, b"f").unwrap();
    assert!(fs.attr(f).is_ok());
    let fs = again(medium.cut());
    refused!(fs.attr(f), Stale);
    assert_eq!(fs.usage().unwrap().inodes_free, inodes);
    assert_clean(&fs.close().unwrap());
}

#[test]
fn s61_bytes_that_a_file_gains_are_durable_when_the_call_returns() {
    let (medium, fs) = watched();
    let f = file(&fs, "f");
    write(&fs, f, 0, &[1; 6000]);
    assert_eq!(contents(&again(medium.cut()), f), [1; 6000]);
    fs.append(f, &[2; 100]).unwrap();
    assert_eq!(contents(&again(medium.cut()), f), [&[1; 6000][..], &[2; 100]].concat());
    write(&fs, f, 20_000, &[3; 10]);
    assert_eq!(contents(&again(medium.cut()), f)[20_000..], [3; 10]);
    // Therefore a file that is rewritten and renamed over the old one needs no sync in between.
    let new = file(&fs, "new");
    write(&fs, new, 0, &[4; 7000]);
    medium.begin();
    fs.rename(ROOT, (TOP, b"new"), (TOP, b"f"), RenameMode::Replace).unwrap();
    for cut in medium.cuts() {
        let found = again(cut);
        let there = contents(&found, find(&found, "f").unwrap());
        assert!(there == [4; 7000] || there.len() == 20_010);
    }
    assert_eq!(find(&again(medium.cut()), "f").unwrap(), new);
}

#[test]
fn s62_overwritten_bytes_are_durable_with_the_next_sync_or_change() {
    if image_only("contents are in the pool") {
        return;
    }
    let (medium, fs) = watched();
    let f = file(&fs, "f");
    write(&fs, f, 0, &[1; 5000]);
    write(&fs, f, 0, &[2; 5000]);
    assert_eq!(contents(&again(medium.cut()), f), [1; 5000], "not yet");
    fs.sync_file(f, true).unwrap();
    assert_eq!(contents(&again(medium.cut()), f), [2; 5000]);
    write(&fs, f, 0, &[3; 5000]);
    file(&fs, "other");
    assert_eq!(contents(&again(medium.cut()), f), [3; 5000], "in the order of the calls");
}

#[test]
fn s63_a_write_into_many_holes_takes_effect_from_its_start() {
    if image_only("contents are in the pool") {
        return;
    }
    const PIECES: u64 = 40;
    let (medium, fs) = watched();
    let f = scattered(&fs, "f", PIECES, 1);
    medium.begin();
    write(&fs, f, 0, &vec![2; 2 * PIECES as usize * BLOCK as usize]);
    let mut between = 0;
    for cut in medium.cuts() {
        assert_clean(&cut);
        let found = again(cut);
        let mut filled = blocks_of(&found, f, 2, 1, PIECES);
        filled.reverse();
        assert!(filled.is_sorted(), "{filled:?}");
        between += u32::from(filled.contains(&true) && filled.contains(&false));
    }
    assert!(between > 0, "it takes several transactions");
}

#[test]
fn s64_punching_takes_effect_from_the_end_and_zeroing_from_the_start() {
    if image_only("contents are in the pool") {
        return;
    }
    const PIECES: u64 = 40;
    for (how, from_start) in [(Punch, false), (Zero, true)] {
        let (medium, fs) = watched();
        let f = scattered(&fs, "f", PIECES, 1);
        medium.begin();
        fs.allocate(f, how, 0, 2 * PIECES * BLOCK).unwrap();
        let mut between = 0;
        for cut in medium.cuts() {
            assert_clean(&cut);
            let found = again(cut);
            let mut gone = blocks_of(&found, f, 0, 0, PIECES);
            if from_start {
                gone.reverse();
            }
            assert!(gone.is_sorted(), "{how:?} {gone:?}");
            between += u32::from(gone.contains(&true) && gone.contains(&false));
        }
        assert!(between > 0, "{how:?} takes several transactions");
        assert!(blocks_of(&fs, f, 0, 0, PIECES).iter().all(|gone| *gone));
    }
}

#[test]
fn s65_a_large_file_is_cut_or_removed_at_once() {
    if image_only("files have no blocks on the medium") {
        return;
    }
    const PIECES: u64 = 60;
    let size = (2 * PIECES - 1) * BLOCK;
    for removed in [false, true] {
        let (medium, fs) = watched();
        file(&fs, "other");
        let all = free(&fs);
        let f = scattered(&fs, "f", PIECES, 1);
        medium.begin();
        if removed {
            fs.unlink(ROOT, TOP, b"f").unwrap();
        } else {
            resize(&fs, f, 0);
        }
        let mut gone = Vec::new();
        for cut in medium.cuts() {
            assert_clean(&cut);
            let found = again(cut);
            let left = find(&found, "f").map_or(0, |ino| contents(&found, ino).len() as u64);
            assert!(left == 0 || left == size && blocks_of(&found, f, 1, 0, PIECES).iter().all(|b| *b));
            assert!(left > 0 || free(&found) == all, "recovery completes the freeing");
            gone.push(left == 0);
        }
        assert!(gone.is_sorted() && gone.iter().filter(|gone| **gone).count() > 2, "{gone:?}");
    }
}

#[test]
fn s66_a_start_frees_open_files_without_names() {
    let (medium, fs) = watched();
    file(&fs, "other");
    let before = fs.usage().unwrap();
    let f = file(&fs, "f");
    write(&fs, f, 0, &[1; 50_000]);
    fs.pin(f).unwrap();
    fs.unlink(ROOT, TOP, b"f").unwrap();
    let cut = medium.cut();
    assert_eq!(frit_fs::check(&cut).unwrap().orphans, 1);
    let found = again(cut);
    assert_eq!(found.usage().unwrap().inodes_free, before.inodes_free);
    assert!(image_only("others use the disk of the pool") || found.usage().unwrap() == before);
    refused!(found.attr(f), Stale);
}
