//! Tests that all stores return the same contents for the same calls.

#![allow(clippy::print_stderr)]

use super::cache::NONTEMPORAL_STORE_MIN;
use super::*;
use frit_core::SyncedFile;
use proptest::prelude::*;

const LEN: u64 = 300_000;

fn all(dir: &std::path::Path) -> Vec<AnyStore> {
    vec![
        AnyStore::Memory(MemoryStore::new(LEN)),
        AnyStore::File(FileStore::open(dir.join("f"), LEN).unwrap()),
        AnyStore::Mmap(MmapStore::open(dir.join("m"), LEN).unwrap()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn stores_agree_with_a_plain_array(
        ops in prop::collection::vec((0..LEN + 100, 0usize..70_000, any::<u8>(), 0u8..8), 1..30)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut stores = all(dir.path());
        let mut plain = vec![0u8; LEN as usize];
        for (at, len, byte, kind) in ops {
            let fits = at + len as u64 <= LEN;
            let data: Vec<u8> = (0..len).map(|i| byte.wrapping_add(i as u8)).collect();
            let range = || at as usize..at as usize + len;
            if fits && kind < 4 {
                plain[range()].copy_from_slice(&data);
            }
            for s in &mut stores {
                match kind {
                    0..4 => prop_assert_eq!(s.write(at, &data).is_ok(), fits),
                    4 => s.sync().unwrap(),
                    _ => {
                        let mut out = vec![0xAA; len];
                        prop_assert_eq!(s.read(at, &mut out).is_ok(), fits);
                        if fits {
                            prop_assert_eq!(&out[..], &plain[range()]);
                            if let Some(b) = s.slice(at, len) {
                                prop_assert_eq!(b, &plain[range()]);
                            }
                        }
                    }
                }
            }
        }
        drop(stores);
        // Files that are opened again contain what was written.
        for s in all(dir.path()).iter().skip(1) {
            let mut out = vec![0; LEN as usize];
            s.read(0, &mut out).unwrap();
            prop_assert!(out == plain);
            prop_assert!(!s.is_blank());
        }
    }
}

#[test]
fn a_file_of_another_size_is_refused_with_both_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nand.img");
    drop(FileStore::open(&path, 4096).unwrap());
    let e = FileStore::open(&path, 8192).unwrap_err().to_string();
    assert!(e.contains("has 4096 bytes, the medium needs 8192") && e.contains("nand.img"), "{e}");
}

#[test]
fn a_file_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nand.img");
    let _first = FileStore::open(&path, 4096).unwrap();
    let e = MmapStore::open(&path, 4096).unwrap_err().to_string();
    assert!(e.contains("another program uses"), "{e}");
}

#[test]
fn a_lock_that_outlives_its_store_in_a_child_is_awaited() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nand.img");
    // A child that is forked at this moment has a descriptor of the same open file.
    let (file, ..) = FileStore::open(&path, 4096).unwrap().into_parts();
    let inherited = file.file().try_clone().unwrap();
    drop(file);
    let child = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(inherited);
    });
    MmapStore::open(&path, 4096).unwrap();
    child.join().unwrap();
}

#[test]
fn what_cannot_be_opened_says_which_file() {
    let dir = tempfile::tempdir().unwrap();
    let e = FileStore::open(dir.path().join("no/such/dir"), 4096).unwrap_err().to_string();
    assert!(e.contains("cannot open or create") && e.contains("no/such/dir"), "{e}");
    assert!(FileStore::open(dir.path(), 4096).is_err());
}

#[test]
fn no_store_reads_as_zeros() {
    let mut s = NoStore;
    s.write(5, &[1]).unwrap();
    let mut b = [7; 3];
    s.read(4, &mut b).unwrap();
    assert_eq!(b, [0; 3]);
    assert_eq!(size_of::<NoStore>(), 0);
}

#[test]
fn a_file_that_is_cut_while_it_is_mapped_is_an_error_and_no_signal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nand.img");
    let mut s = MmapStore::open(&path, 16 << 12).unwrap();
    s.write(0, &[7; 16 << 12]).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4 << 12).unwrap();
    let mut b = vec![0; 4 << 12];
    s.read(0, &mut b).unwrap();
    assert!(b.iter().all(|&b| b == 7));
    // A slice that is borrowed reads as zeros and does not end the process.
    assert_eq!(s.slice(8 << 12, 2).unwrap(), [0, 0]);
    let e = s.read(8 << 12, &mut b[..8]).unwrap_err().to_string();
    assert!(e.contains("nand.img are lost"), "{e}");
    assert!(s.write(12 << 12, &[1]).is_err());
    assert!(s.slice(8 << 12, 2).is_none());
    s.read(0, &mut b).unwrap();
    s.write(0, &[8]).unwrap();
    // Another mapping is not affected.
    let t = MmapStore::open(dir.path().join("other"), 1 << 12).unwrap();
    t.read(0, &mut b[..1 << 12]).unwrap();
}

#[test]
fn a_private_mapping_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nand.img");
    std::fs::write(&path, [7; 8192]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let mut s = MmapStore::map(SyncedFile::new(file, path.clone()), 8192, false, MapMode::Private).unwrap();
    s.write(4096, &[1; 4]).unwrap();
    s.sync().unwrap();
    assert_eq!(s.slice(4094, 4).unwrap(), [7, 7, 1, 1]);
    assert!(std::fs::read(&path).unwrap().iter().all(|&b| b == 7));
}

/// Returns how much of a mapped file is dirty, in KiB, as the kernel counts it.
fn dirty(path: &std::path::Path) -> Option<u64> {
    let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let path = path.canonicalize().ok()?.display().to_string();
    let mapping = smaps.lines().skip_while(|l| !l.ends_with(&path));
    let counts =
        mapping.filter(|l| l.starts_with("Shared_Dirty:") || l.starts_with("Private_Dirty:")).take(2);
    counts.map(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}

#[test]
fn a_sync_of_the_file_cleans_the_pages_that_were_written_through_the_mapping() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nand.img");
    let mut s = MmapStore::open(&path, 64 << 12).unwrap();
    s.write(5 << 12, &[7; 3 << 12]).unwrap();
    let before = dirty(&path);
    s.sync().unwrap();
    match (before, dirty(&path)) {
        (Some(12), Some(0)) => {}
        // A file system in memory has no disk to write to, so its pages stay dirty.
        (Some(n), Some(m)) if n == m && n > 0 => eprintln!("skipped: {} is in memory", path.display()),
        other => panic!("{other:?} KiB were dirty before and after the sync"),
    }
}

#[test]
fn a_large_file_takes_writes_past_the_cache_as_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.img");
    let len = NONTEMPORAL_STORE_MIN as u64;
    let mut s = MmapStore::open(&path, len).unwrap();
    let data: Vec<u8> = (0..9000u32).map(|i| (i % 251) as u8).collect();
    let mut back = vec![0; data.len()];
    for (at, n) in [(0, 4096), (4096, 1024), (len - 4096, 4096), (12_345, 9000), (77, 1500)] {
        s.write(at, &data[..n]).unwrap();
        s.read(at, &mut back[..n]).unwrap();
        assert!(back[..n] == data[..n], "{n} bytes at {at}");
    }
    s.read(12_345 + 8999, &mut back[..2]).unwrap();
    assert_eq!(back[..2], [data[8999], 0], "written beside");
    assert!(s.write(len - 4096, &data[..4097]).is_err(), "past the end");
    s.prefetch(len - 10, 4096);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let e = s.write(len / 2, &data[..4096]).unwrap_err().to_string();
    assert!(e.contains("large.img are lost"), "{e}");
}

#[test]
fn a_file_is_not_zeroed_beyond_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = FileStore::open(dir.path().join("f"), 8192).unwrap();
    store.zero(4096, 4096).unwrap();
    assert!(store.zero(4096, 8192).is_err() && store.zero(u64::MAX - 8, 16).is_err());
}

#[test]
fn a_file_in_memory_keeps_its_bytes_while_its_pages_become_huge() {
    let dir = std::path::Path::new("/dev/shm");
    if !rustix::fs::statfs(dir).is_ok_and(|fs| fs.f_type as u64 == 0x0102_1994) {
        println!("skipped: /dev/shm is no tmpfs");
        return;
    }
    // A part of a huge page is left over at the end.
    let (file, len) = (tempfile::NamedTempFile::new_in(dir).unwrap(), (24 << 20) + 12_288_u64);
    rustix::fs::fallocate(file.as_file(), rustix::fs::FallocateFlags::empty(), 0, len).unwrap();
    let block = |at: u64, round: u64| [(at / 4096 * 7 + round) as u8; 4096];
    let mut store = MmapStore::open(file.path(), len).unwrap();
    // The thread moves the pages meanwhile.
    for round in 0..8 {
        for at in (0..len).step_by(4096) {
            store.write(at, &block(at, round)).unwrap();
        }
        for at in (0..len).step_by(4096) {
            assert_eq!(store.slice(at, 4096).unwrap(), block(at, round), "round {round}, at {at}");
        }
    }
    store.sync().unwrap();
    drop(store);
    let bytes = std::fs::read(file.path()).unwrap();
    assert!(bytes.chunks(4096).zip((0..len).step_by(4096)).all(|(b, at)| b == block(at, 7)));
    // The bytes beyond the end of the file are not part of the store.
    let mut again = MmapStore::open(file.path(), len).unwrap();
    assert!(again.write(len - 1, &[0; 2]).is_err());
}
