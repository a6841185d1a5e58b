//! Tests of damaged metadata: damaged entries are listed, and their use is an error.

use super::{BYTES, FileSystem, FormatOptions, Fs, Mapped, Memory, Mounted};
use frit_fs::{Caller, FsOptions, Ino, Medium, NewInode};
use std::path::Path;
use std::process::Command;

const ROOT: &Caller = &Caller::ROOT;
/// Number of names in the directory, which occupy several blocks.
const NAMES: usize = 300;

/// Returns a file system with a directory `d` of files and one directory. One bit is flipped at
/// each address that `damage` returns.
fn damaged(damage: impl FnOnce(&Memory) -> Vec<u64>) -> Memory {
    let fs = Fs::format(Mapped::anonymous(BYTES).unwrap(), FormatOptions::default()).unwrap();
    let dir = fs.create(ROOT, Ino::ROOT, b"d", NewInode::directory(0o755)).unwrap().ino;
    for i in 0..NAMES {
        let ino = fs.create(ROOT, dir, format!("file-{i:03}").as_bytes(), NewInode::file(0o644)).unwrap().ino;
        fs.write(ino, 0, format!("contents of {i}").as_bytes()).unwrap();
    }
    fs.create(ROOT, dir, b"sub", NewInode::directory(0o755)).unwrap();
    // Opening executes the last two transactions again, which must not repair the damage.
    let _ = ["x", "y"].map(|name| fs.create(ROOT, Ino::ROOT, name.as_bytes(), NewInode::file(0)).unwrap());
    let places = damage(&fs);
    let medium = fs.close().unwrap();
    for at in places {
        let mut byte = [0];
        medium.read(at, &mut byte);
        medium.write_data(at, &[byte[0] ^ 4]);
    }
    Fs::open(medium, FsOptions::default()).unwrap()
}

/// Returns the address of a byte in the inode of `d/name`.
fn inode(fs: &Memory, name: &str) -> u64 {
    let dir = fs.lookup(ROOT, Ino::ROOT, b"d").unwrap().ino;
    fs.geometry().inode_at(fs.lookup(ROOT, dir, name.as_bytes()).unwrap().ino.0) + 40
}

/// Returns the address of a byte in the `nth` name created in `d`.
fn name(fs: &Memory, nth: u64) -> u64 {
    let dir = fs.lookup(ROOT, Ino::ROOT, b"d").unwrap().ino;
    let mut extents = Vec::new();
    let word = |at: u64| {
        let mut bytes = [0; 8];
        fs.medium().read(at, &mut bytes);
        u64::from_le_bytes(bytes)
    };
    for place in 0..8 {
        let at = fs.geometry().inode_at(dir.0) + 128 + place * 16;
        let (first, start) = (word(at), word(at + 8));
        let blocks = first << 1 >> 41;
        extents.extend((0..blocks).map(|i| ((first & ((1 << 40) - 1)) + i, start + i)));
    }
    extents.sort_unstable();
    extents[(nth / 128) as usize].1 * 4096 + nth % 128 * 32 + 17
}

/// Returns the exit status of a command, and its output.
fn run(dir: &Path, command: &str) -> (i32, String, String) {
    let out = Command::new("sh").args(["-c", command]).current_dir(dir).env("LC_ALL", "C").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn an_entry_whose_inode_is_damaged_is_listed_and_is_an_error_to_use() {
    let make = || damaged(|fs| ["file-007", "file-150", "sub"].map(|name| inode(fs, name)).to_vec());
    let Some(m) = Mounted::of("", make) else { return };
    let dir = m.path("d");
    // The kernel lists names with attributes, without them, and from its cache.
    for command in ["ls -l", "ls -U1", "ls -l", "ls -1"] {
        let (status, out, err) = run(&dir, command);
        let listed = format!("{out}{err}");
        for i in 0..NAMES {
            assert!(listed.contains(&format!("file-{i:03}")), "{command}: file-{i:03} is missing\n{err}");
        }
        assert!(listed.contains("sub"), "{command}: {listed}");
        if command == "ls -l" {
            assert_eq!(status, 1, "{err}");
            for name in ["file-007", "file-150", "sub"] {
                assert!(err.contains(&format!("cannot access '{name}': Input/output error")), "{err}");
            }
        }
    }
    for command in [
        "stat file-007",
        "cat file-007",
        "rm -f file-007",
        "mv file-007 x",
        "mv file-008 file-007",
        "rm -rf sub",
        "rmdir sub",
        "ls sub",
        "ln file-150 y",
        "chmod 600 file-150",
        "rmdir ../d",
    ] {
        let (status, _, err) = run(&dir, command);
        let expected = if command == "rmdir ../d" { "not empty" } else { "Input/output error" };
        assert!(status != 0 && err.contains(expected), "{command}: {status}, {err}");
    }
    // Programs that copy everything report the errors, and copy the rest.
    for command in ["tar cf ../all.tar .", "cp -a . ../copy", "find . -type f -exec cat {} + >/dev/null"] {
        let (status, _, err) = run(&dir, command);
        assert!(status != 0 && err.contains("Input/output error"), "{command}: {status}, {err}");
    }
    assert_eq!(std::fs::read(m.path("copy/file-299")).unwrap(), b"contents of 299");
    assert_eq!(std::fs::read_dir(m.path("copy")).unwrap().count(), NAMES - 2);
    assert_eq!(std::fs::read(m.path("d/file-008")).unwrap(), b"contents of 8");
    m.stop();
}

#[test]
fn a_listing_of_damaged_names_tells_the_others_and_ends_with_an_error() {
    for nth in [0, 100, 299] {
        let Some(m) = Mounted::of("", || damaged(|fs| vec![name(fs, nth)])) else { return };
        for command in ["ls -U1 d", "ls -l d", "ls -l d", "find d -ls", "tar cf all.tar d", "cp -a d copy"] {
            let (status, out, err) = run(&m.at, command);
            assert!(status != 0 && err.contains("Input/output error"), "{command}: {status}, {err}");
            if command.contains("ls") {
                let missing: Vec<_> = (0..NAMES).filter(|i| !out.contains(&format!("file-{i:03}"))).collect();
                assert_eq!(missing, [nth as usize], "{command}");
            }
        }
        m.stop();
    }
}
