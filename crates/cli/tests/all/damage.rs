//! A cache that was closed cleanly and then damaged, through the commands: a loss is reported with
//! its address and an exit code, and no command replaces lost data by the disk's stale data.

use std::path::Path;
use std::process::Command;

const BLOCK: usize = 4096;
const BLOCKS: usize = 200;
/// Number of the damaged block.
const DAMAGED: usize = 7;

/// Runs frit, asserts the exit code, and returns the output.
fn ends(dir: &Path, args: &[&str], code: i32) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_frit")).current_dir(dir).args(args).output().unwrap();
    let shown = [out.stdout, out.stderr].map(|b| String::from_utf8(b).unwrap()).concat();
    assert_eq!(out.status.code(), Some(code), "{args:?}: {shown}");
    // Rejoins words that the terminal width has separated.
    shown.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" ")
}

/// Returns bytes without repeated sequences.
fn noise(len: usize) -> Vec<u8> {
    let mut x = 1u64;
    let next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Creates a cache that holds an image which is not on the disk yet. Returns the image.
fn made(dir: &Path) -> Vec<u8> {
    let image = noise(BLOCKS * BLOCK);
    std::fs::write(dir.join("image"), &image).unwrap();
    ends(dir, &["create", "made", "--stack", "halo-small", "--size", "16M"], 0);
    ends(dir, &["import", "made", "image"], 0);
    image
}

/// Copies the volume and changes its PCM.
fn damaged(dir: &Path, change: &dyn Fn(&mut Vec<u8>)) {
    drop(std::fs::remove_dir_all(dir.join("vol")));
    std::fs::create_dir(dir.join("vol")).unwrap();
    for file in ["frit.volume", "pcm.medium", "disk.medium"] {
        std::fs::copy(dir.join("made").join(file), dir.join("vol").join(file)).unwrap();
    }
    let pcm = dir.join("vol/pcm.medium");
    let mut bytes = std::fs::read(&pcm).unwrap();
    change(&mut bytes);
    std::fs::write(&pcm, bytes).unwrap();
}

/// Exports the volume. With `right`, compares it with the image; otherwise the damaged block has to
/// be named.
fn exported(dir: &Path, image: &[u8], right: bool) {
    drop(std::fs::remove_file(dir.join("out")));
    if right {
        ends(dir, &["export", "vol", "out"], 0);
        assert!(std::fs::read(dir.join("out")).unwrap()[..image.len()] == *image);
        return;
    }
    let told = ends(dir, &["export", "vol", "out"], 1);
    assert!(told.contains("block 7 of the disk") && !dir.join("out").exists(), "{told}");
    let told = ends(dir, &["export", "vol", "out", "--rescue"], 1);
    assert!(told.contains("zeros instead of 4096 bytes at 28672"), "{told}");
    let out = std::fs::read(dir.join("out")).unwrap();
    let same = |b: usize| out[b * BLOCK..][..BLOCK] == image[b * BLOCK..][..BLOCK];
    assert!((0..BLOCKS).all(|b| same(b) != (b == DAMAGED)));
}

#[test]
fn a_flipped_bit_is_told_by_every_command_and_replaced_by_none() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let image = made(d);
    let block = &image[DAMAGED * BLOCK..][..BLOCK];
    let flip = |bytes: &mut Vec<u8>| {
        let at = bytes.windows(BLOCK).position(|w| w == block).unwrap();
        bytes[at + 1000] ^= 4;
    };
    for (command, words) in [
        (&["check", "vol", "--data"][..], "bad-data"),
        (&["scrub", "vol"], "bad-data"),
        (&["recover", "vol"], "lost: 4096 bytes at 28672 (page 7)"),
        (&["check", "vol", "--data", "--repair"], "could not be repaired"),
        (&["grow", "vol", "--size", "20M"], "block 7 of the disk"),
    ] {
        damaged(d, &flip);
        let told = ends(d, command, 1);
        assert!(told.contains(words), "{command:?}: {told}");
        exported(d, &image, false);
        assert!(!d.join("vol.growing").exists());
    }
    // With `--older`, an older version of the data is accepted.
    damaged(d, &flip);
    ends(d, &["check", "vol", "--data", "--repair", "--older"], 0);
    ends(d, &["export", "vol", "older"], 0);
    let out = std::fs::read(d.join("older")).unwrap();
    assert!(out[DAMAGED * BLOCK..][..BLOCK].iter().all(|&b| b == 0), "the disk's version");
}

/// Damages both copies of the records of these blocks.
fn lose(bytes: &mut [u8], blocks: &[u32]) {
    let mut lost = 0;
    for record in bytes.chunks_exact_mut(32).skip(256) {
        let number = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
        let sequence = number(8);
        let plain = record[4..8] == [255, 0, 0, 0] && number(12) == 0 && number(24) == 0;
        if plain && (1..100_000).contains(&sequence) && blocks.contains(&number(0)) {
            record[9] ^= 1;
            lost += 1;
        }
    }
    assert_eq!(lost, 2 * blocks.len());
}

#[test]
fn lost_records_are_restored_or_everything_that_may_be_theirs_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let image = made(d);
    for command in [&["check", "vol", "--data", "--repair"][..], &["recover", "vol"]] {
        damaged(d, &|bytes| lose(bytes, &[7]));
        exported(d, &image, true);
        ends(d, command, 0);
        exported(d, &image, true);
    }
    damaged(d, &|bytes| lose(bytes, &[7, 90]));
    for (command, code) in [
        (&["check", "vol"][..], 1),
        (&["recover", "vol"], 1),
        (&["check", "vol", "--repair"], 1),
        (&["grow", "vol", "--size", "20M"], 1),
        (&["export", "vol", "again"], 1),
    ] {
        let told = ends(d, command, code);
        assert!(told.contains("the records of 2 or more"), "{command:?}: {told}");
        assert!(told.contains("--repair --older"), "{command:?}: {told}");
    }
    ends(d, &["check", "vol", "--repair", "--older"], 1);
    ends(d, &["check", "vol", "--data"], 0);
    ends(d, &["export", "vol", "again"], 0);
}

/// Every command refuses a truncated file, with the file, its size and the remedy.
#[test]
fn a_file_that_was_cut_is_refused_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    made(d);
    for file in ["pcm.medium", "disk.medium"] {
        damaged(d, &|_| {});
        let path = d.join("vol").join(file);
        let whole = std::fs::metadata(&path).unwrap().len();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(whole - 4096).unwrap();
        for (command, code) in [
            (&["check", "vol"][..], 2),
            (&["check", "vol", "--data", "--repair"], 2),
            (&["recover", "vol"], 2),
            (&["export", "vol", "out"], 2),
            (&["grow", "vol", "--size", "20M"], 1),
        ] {
            let told = ends(d, command, code);
            assert!(told.contains(file) && told.contains("put the right file back"), "{command:?}: {told}");
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), whole - 4096, "it is left as it is");
    }
}
