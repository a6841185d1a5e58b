//! Shared helpers of the volume tests.

// Helpers of tests are tests, which clippy does not know; not every test uses all of them.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, unreachable_pub)]

use frit_stack::Stack;
use frit_volume::{CreateOptions, OpenOptions, Volume};
use std::path::{Path, PathBuf};

pub const SMALL: &str = r#"
media.nand = { profile = "slc-k9-2016", channels = 2, chips_per_channel = 1, dies_per_chip = 1, planes_per_die = 1, blocks_per_plane = 32 }
media.pcm = { profile = "pcm-p8p-2016", chip_bytes = "128K" }
hfsl = {}
"#;

pub fn stack(sets: &[&str]) -> Stack {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    Stack::parse("small", SMALL, &sets).unwrap()
}

pub fn create_with(dir: &Path, sets: &[&str], force: bool) -> frit_volume::Result<Volume> {
    Volume::create(dir, &CreateOptions { stack: stack(sets), force })
}

pub fn create(dir: &Path) -> Volume {
    create_with(dir, &[], false).unwrap()
}

pub fn open(dir: &Path) -> Volume {
    Volume::open(dir, &OpenOptions::default()).unwrap()
}

pub fn try_open(dir: &Path) -> frit_volume::Result<Volume> {
    Volume::open(dir, &OpenOptions::default())
}

pub fn open_read_only(dir: &Path) -> frit_volume::Result<Volume> {
    Volume::open(dir, &OpenOptions { read_only: true, crash: None })
}

/// Returns a temporary directory, and the path of a volume in it.
pub fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let volume = dir.path().join("vol");
    (dir, volume)
}

/// Returns the same in memory if there is a tmpfs, for tests that sync often.
pub fn place_in_memory() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let volume = dir.path().join("vol");
    (dir, volume)
}

/// Returns bytes that identify their address and version.
pub fn pattern(at: u64, version: u32, len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 16);
    let mut n = at;
    while out.len() < len {
        out.extend(n.to_le_bytes());
        out.extend(version.to_le_bytes());
        out.extend((n as u32 ^ version).wrapping_mul(0x9E37_79B9).to_le_bytes());
        n += 16;
    }
    out.truncate(len);
    out
}

pub fn read(v: &mut Volume, at: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0xEE; len];
    v.read(at, &mut out).unwrap();
    out
}

/// Returns all files of a directory, sorted by name.
pub fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap()))
        .collect();
    all.sort();
    all
}
