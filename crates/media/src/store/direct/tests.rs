//! Tests that direct accesses have the results of accesses through the page cache, and that their
//! errors reach the caller.

#![allow(clippy::print_stderr)]

use super::rings::{DEPTH, PIECE_BYTES};
use super::*;
use crate::FileStore;
use frit_core::SyncedFile;
use proptest::prelude::*;
use std::path::Path;
use std::process::Command;

/// Several times the memory of all pieces in flight, and a last block that is not whole.
const LEN: u64 = (2 * DEPTH * PIECE_BYTES) as u64 + 3 * 4096 + 512 + 64;

fn created(path: &Path, len: u64) -> File {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path).unwrap();
    file.set_len(len).unwrap();
    file
}

/// Opens a file for direct accesses; `None` if the file system of the tests refuses them.
fn direct(path: &Path, len: u64) -> Option<DirectFile> {
    match DirectFile::open(SyncedFile::new(created(path, len), path.into()), len, true, FileAccess::IoUring) {
        Ok(file) => Some(file),
        Err(Error::Param { .. }) => {
            eprintln!("skipped: {} is on a file system without O_DIRECT", path.display());
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// Returns the file as if the kernel required this alignment. It must be stricter than the real one.
fn strict(file: DirectFile, alignment: Alignment) -> DirectFile {
    let DirectFile { file, buffered, len, rings, .. } = file;
    DirectFile { rings, ..DirectFile::with_alignment(file, buffered, len, alignment) }
}

fn without_rings(mut file: DirectFile) -> DirectFile {
    file.rings = Some(Err(io::ErrorKind::PermissionDenied.into()));
    file
}

/// The same file in all forms of access.
fn forms(dir: &Path) -> Vec<DirectFile> {
    let strictest = Alignment { block: 4096, memory: 4096 };
    let open = |name: &str| direct(&dir.join(name), LEN);
    let plain = open("plain");
    let others = [
        open("pread").map(without_rings),
        open("strict").map(|f| strict(f, strictest)),
        open("strict-pread").map(|f| without_rings(strict(f, strictest))),
        open("large-blocks").map(|f| strict(f, Alignment { block: 16384, memory: 512 })),
    ];
    plain.into_iter().chain(others.into_iter().flatten()).collect()
}

/// Lengths of all sizes up to beyond the longest access that one ring holds.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        3 => 0..9_000usize,
        2 => (0..16usize).prop_map(|n| n * 512),
        1 => 0..(DEPTH + 2) * PIECE_BYTES,
    ]
}

/// Offsets: any, and those of sectors, of blocks, and of the end.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => 0..LEN + 100,
        2 => (0..LEN / 512).prop_map(|n| n * 512),
        1 => (0..LEN / 4096).prop_map(|n| n * 4096),
        1 => LEN - 9_000..LEN,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn direct_accesses_agree_with_the_page_cache(
        ops in prop::collection::vec((offset(), length(), 0usize..600, any::<u8>(), 0u8..10), 1..24)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut plain = FileStore::open(dir.path().join("page-cache"), LEN).unwrap();
        let files = forms(dir.path());
        for (at, len, shift, byte, kind) in ops {
            let fits = at + len as u64 <= LEN;
            // The start of the data in memory has any alignment.
            let memory: Vec<u8> = (0..shift + len).map(|i| byte.wrapping_add((i / 7) as u8)).collect();
            let data = &memory[shift..];
            let mut expected = vec![0; len];
            let ok = match kind {
                0..5 => plain.write(at, data),
                5 => plain.zero(at, len as u64),
                _ => plain.read(at, &mut expected),
            };
            prop_assert_eq!(ok.is_ok(), fits);
            for file in &files {
                match kind {
                    0..5 => prop_assert_eq!(file.write(at, data).is_ok(), fits),
                    5 => prop_assert_eq!(file.zero(at, len as u64).is_ok(), fits),
                    6 => file.sync().unwrap(),
                    _ => {
                        let mut back = vec![0xAA; shift + len];
                        prop_assert_eq!(file.read(at, &mut back[shift..]).is_ok(), fits);
                        prop_assert!(!fits || back[shift..] == expected);
                        prop_assert!(back[..shift].iter().all(|&b| b == 0xAA));
                    }
                }
            }
        }
        let expected = std::fs::read(dir.path().join("page-cache")).unwrap();
        for file in files {
            prop_assert!(std::fs::read(file.buffered.path()).unwrap() == expected, "{}", file.buffered.path().display());
        }
    }
}

/// Eight threads write one sector each of the same blocks of 4 KiB, and read it back.
fn write_sectors_of_shared_blocks(file: &DirectFile) {
    std::thread::scope(|scope| {
        for sector in 0..8u64 {
            scope.spawn(move || {
                let mut back = [0; 512];
                for round in 0..28u8 {
                    let at = u64::from(round % 4) * 4096 + sector * 512;
                    let data = [round * 8 + sector as u8; 512];
                    file.write(at, &data).unwrap();
                    file.read(at, &mut back).unwrap();
                    assert!(back == data, "sector {sector}, round {round}");
                }
            });
        }
    });
    let mut all = vec![0; 4 * 4096];
    file.read(0, &mut all).unwrap();
    for (n, sector) in all.chunks(512).enumerate() {
        let last = 24 + (n / 8) as u8;
        assert!(sector.iter().all(|&b| b == last * 8 + (n % 8) as u8), "sector {n}");
    }
}

#[test]
fn writes_to_parts_of_one_block_do_not_undo_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = direct(&dir.path().join("f"), 64 << 10) else { return };
    write_sectors_of_shared_blocks(&strict(file, Alignment { block: 4096, memory: 4096 }));
}

#[test]
fn zeroed_space_is_freed() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = direct(&dir.path().join("f"), 1 << 20) else { return };
    file.write(0, &vec![7; 1 << 20]).unwrap();
    file.sync().unwrap();
    let before = file.file.metadata().unwrap().blocks();
    file.zero(512, (1 << 20) - 1024).unwrap();
    let mut back = vec![1; 1 << 20];
    file.read(0, &mut back).unwrap();
    let (head, tail) = ([7; 512], [7; 512]);
    assert!(back[..512] == head && back[(1 << 20) - 512..] == tail);
    assert!(back[512..(1 << 20) - 512].iter().all(|&b| b == 0));
    let after = file.file.metadata().unwrap().blocks();
    assert!(after < before / 4, "{after} of {before} blocks");
}

#[test]
fn a_file_system_without_direct_accesses_is_refused_with_the_remedy() {
    let file = SyncedFile::new(File::open("/proc/version").unwrap(), "/proc/version".into());
    let e = DirectFile::open(file, 0, false, FileAccess::Direct).unwrap_err().to_string();
    assert!(e.contains("O_DIRECT") && e.contains("page-cache"), "{e}");
}

#[test]
fn errors_of_the_host_reach_the_caller() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    if direct(&path, LEN).is_none() {
        return;
    }
    let read_only = DirectFile::open(
        SyncedFile::new(File::open(&path).unwrap(), path.clone()),
        LEN,
        false,
        FileAccess::IoUring,
    )
    .unwrap();
    // One system call, several requests in flight, and a part of a block.
    for (at, len) in [(0, 4096), (0, DEPTH * PIECE_BYTES), (4096, 100)] {
        let e = read_only.write(at, &vec![0; len]).unwrap_err().to_string();
        assert!(e.contains(&format!("cannot write {len} bytes at {at} of ")), "{e}");
        assert!(read_only.read(at, &mut vec![0; len]).is_ok());
    }
    created(&path, 256 << 10);
    let mut long = vec![0; DEPTH * PIECE_BYTES];
    read_only.read(0, &mut long[..256 << 10]).unwrap();
    assert!(read_only.read(0, &mut long).is_err(), "the file was truncated");
    assert!(read_only.read(512 << 10, &mut long[..4096]).is_err());
}

#[test]
fn a_failed_sync_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut file) = direct(&dir.path().join("f"), 4096) else { return };
    file.sync().unwrap();
    // A file that cannot be synced.
    file.buffered = SyncedFile::new(File::open("/proc/version").unwrap(), "/proc/version".into());
    let e = file.sync().unwrap_err().to_string();
    assert!(e.contains("cannot sync"), "{e}");
}

#[test]
fn a_kernel_without_io_uring_is_reported_and_used_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = direct(&dir.path().join("f"), LEN) else { return };
    match file.rings.as_ref().unwrap() {
        Ok(_) => assert_eq!(file.no_io_uring(), None),
        Err(e) => eprintln!("skipped: no io_uring here: {e}"),
    }
    let said = without_rings(file).no_io_uring().unwrap();
    assert!(said.contains("pread") && said.contains("permission denied"), "{said}");
}

#[test]
#[allow(unsafe_code)]
fn a_ring_that_fails_is_replaced_by_single_accesses() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = direct(&dir.path().join("f"), LEN) else { return };
    let Some(Ok(rings)) = &file.rings else { return eprintln!("skipped: no io_uring here") };
    let null = File::open("/dev/null").unwrap();
    // SAFETY: both descriptors are open, and the ring's is only used by the ring.
    unsafe { libc::dup2(null.as_raw_fd(), rings.descriptor().unwrap()) };
    let data: Vec<u8> = (0..BOUNCE_BYTES).map(|i| (i / 4096) as u8).collect();
    file.write(0, &data).unwrap();
    assert!(rings.descriptor().is_none(), "the ring was kept");
    assert!(std::fs::read(file.buffered.path()).unwrap()[..data.len()] == data);
}

/// Runs a program that only the superuser may run. Returns its output, or says why not.
fn as_root(program: &str, args: &[&str]) -> Option<String> {
    let done = Command::new(program).args(args).output();
    match done {
        Ok(done) if done.status.success() => Some(String::from_utf8_lossy(&done.stdout).trim().into()),
        Ok(done) => {
            eprintln!("skipped: {program}: {}", String::from_utf8_lossy(&done.stderr).trim());
            None
        }
        Err(e) => {
            eprintln!("skipped: {program}: {e}");
            None
        }
    }
}

/// Undoes a mount or a loop device.
struct Undo<'a>(&'a str, Vec<String>);

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        drop(Command::new(self.0).args(&self.1).status());
    }
}

#[test]
fn a_full_file_system_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display().to_string();
    if as_root("mount", &["-t", "tmpfs", "-o", "size=1M", "frit-test", &at]).is_none() {
        return;
    }
    let _mounted = Undo("umount", vec![at]);
    let Some(file) = direct(&dir.path().join("f"), LEN) else { return };
    for (at, len) in [(0, DEPTH * PIECE_BYTES + 4096), (1 << 20, PIECE_BYTES)] {
        let e = file.write(at, &vec![1; len]).unwrap_err();
        let Error::Io { what, source } = e else { panic!("{e}") };
        assert!(source.kind() == io::ErrorKind::StorageFull && what.contains("cannot write"), "{what}");
    }
    file.zero(0, 1 << 20).unwrap();
    file.write(0, &[1; 4096]).unwrap();
}

#[test]
fn a_block_device_with_large_blocks_takes_sectors() {
    let dir = tempfile::tempdir().unwrap();
    let backing = dir.path().join("backing").display().to_string();
    created(Path::new(&backing), 8 << 20);
    let args = ["--find", "--show", "--sector-size", "4096", &backing];
    let Some(device) = as_root("losetup", &args) else { return };
    let _attached = Undo("losetup", vec!["--detach".into(), device.clone()]);
    let mut options = OpenOptions::new();
    // The volume has opened it exclusively.
    options.read(true).write(true).custom_flags(OFlags::EXCL.bits() as i32);
    let held = options.open(&device).unwrap();
    let len = (4 << 20) + 64;
    let file =
        DirectFile::open(SyncedFile::new(held, device.into()), len, true, FileAccess::IoUring).unwrap();
    assert_eq!(file.alignment.block, 4096);
    write_sectors_of_shared_blocks(&file);
    let data: Vec<u8> = (0..3u32 << 20).map(|i| (i / 512) as u8).collect();
    file.write(len - 512 - data.len() as u64, &data).unwrap();
    file.zero(1 << 20, (1 << 20) + 512).unwrap();
    file.sync().unwrap();
    let mut back = vec![1; data.len()];
    file.read(len - 512 - data.len() as u64, &mut back).unwrap();
    let zeroed = ((2 << 20) + 512 - (len - 512 - data.len() as u64)) as usize;
    assert!(back[..zeroed].iter().all(|&b| b == 0) && back[zeroed..] == data[zeroed..]);
}
