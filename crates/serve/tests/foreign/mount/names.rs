//! Tests of names, directories and attributes.

use super::{Mounted, code, error, inodes, sh_as, soon};
use rustix::fs::{CWD, Mode, RenameFlags, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn files_directories_and_links() {
    let Some(m) = Mounted::new("") else { return };
    assert_eq!(error(fs::metadata(m.path("none"))), code(Errno::NOENT));
    fs::write(m.path("none"), "it is there now").unwrap();
    assert_eq!(
        fs::read(m.path("none")).unwrap(),
        b"it is there now",
        "a name that did not exist is looked up again"
    );
    fs::create_dir(m.path("d")).unwrap();
    fs::create_dir(m.path("d/e")).unwrap();
    assert_eq!(fs::metadata(m.path("d")).unwrap().nlink(), 3);
    symlink("none", m.path("soft")).unwrap();
    fs::hard_link(m.path("none"), m.path("d/hard")).unwrap();
    assert_eq!(fs::read_link(m.path("soft")).unwrap().to_str(), Some("none"));
    let (a, b) = (fs::metadata(m.path("soft")).unwrap(), fs::metadata(m.path("d/hard")).unwrap());
    assert_eq!((a.ino(), a.nlink(), b.nlink()), (b.ino(), 2, 2));
    fs::remove_file(m.path("none")).unwrap();
    assert_eq!(fs::metadata(m.path("d/hard")).unwrap().nlink(), 1);
    assert_eq!(error(fs::remove_dir(m.path("d"))), code(Errno::NOTEMPTY));
    assert_eq!(error(fs::metadata(m.path(&"x".repeat(256)))), code(Errno::NAMETOOLONG));
    rustix::fs::mknodat(CWD, m.path("fifo"), rustix::fs::FileType::Fifo, Mode::from(0o640), 0).unwrap();
    let device = rustix::fs::makedev(259, 70_000);
    let null = m.path("device");
    rustix::fs::mknodat(CWD, &null, rustix::fs::FileType::CharacterDevice, Mode::from(0o600), device)
        .unwrap();
    assert!(fs::metadata(m.path("fifo")).unwrap().file_type().is_fifo());
    assert_eq!(fs::metadata(&null).unwrap().rdev(), device);
    assert_eq!(error(File::open(&null)), code(Errno::ACCESS), "device files of an image are disabled");
    m.stop();
}

#[test]
fn s80_renaming_in_all_its_ways() {
    let Some(m) = Mounted::new("") else { return };
    for name in ["a", "b"] {
        fs::write(m.path(name), name).unwrap();
    }
    let rename = |from, to, flags| rustix::fs::renameat_with(CWD, m.path(from), CWD, m.path(to), flags);
    assert_eq!(rename("a", "b", RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename("a", "b", RenameFlags::EXCHANGE).unwrap();
    assert_eq!((fs::read(m.path("a")).unwrap(), fs::read(m.path("b")).unwrap()), (b"b".into(), b"a".into()));
    assert_eq!(rename("a", "c", RenameFlags::EXCHANGE), Err(Errno::NOENT));
    assert_eq!(rename("a", "c", RenameFlags::WHITEOUT), Err(Errno::INVAL));
    fs::rename(m.path("a"), m.path("b")).unwrap();
    assert_eq!(error(fs::metadata(m.path("a"))), code(Errno::NOENT));
    assert_eq!(fs::read(m.path("b")).unwrap(), b"b");
    // A directory replaces an empty one that is open.
    for name in ["old", "new"] {
        fs::create_dir(m.path(name)).unwrap();
    }
    let inside = File::open(m.path("old")).unwrap();
    fs::rename(m.path("new"), m.path("old")).unwrap();
    assert_eq!(inside.metadata().unwrap().nlink(), 0);
    drop(inside);
    soon("the replaced directory is freed", || inodes(&m.files) == 5);
    m.stop();
}

/// A program opens a file by the number that it has looked up, and another one replaces the file in between.
#[test]
fn a_file_that_is_replaced_can_be_opened_at_every_moment() {
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("f"), [7; 5000]).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for replacer in 0..2 {
            let (m, done) = (&m, &done);
            let _ = threads.spawn(move || {
                let new = m.path(&format!("new{replacer}"));
                while !done.load(Ordering::Relaxed) {
                    fs::write(&new, [7; 5000]).unwrap();
                    fs::rename(&new, m.path("f")).unwrap();
                }
            });
        }
        let read =
            (0..4000).try_for_each(|_| fs::read(m.path("f")).map(|bytes| assert_eq!(bytes, [7; 5000])));
        done.store(true, Ordering::Relaxed);
        read.unwrap();
    });
    m.stop();
}

#[test]
fn s81_a_removed_directory_can_be_left() {
    let Some(m) = Mounted::new("") else { return };
    fs::create_dir(m.path("d")).unwrap();
    let said = sh_as(0, &m.path("d"), "rmdir ../d && stat -c %h . && touch x; echo $(ls).");
    assert!(said.starts_with("0\n.\n") && said.contains("No such file"), "{said}");
    soon("the directory is freed when it is no longer in use", || inodes(&m.files) == 2);
    m.stop();
}

#[test]
fn attributes_are_set_and_kept() {
    let Some(m) = Mounted::new("") else { return };
    let path = m.path("f");
    let file = File::create(&path).unwrap();
    chown(&path, Some(7), Some(8)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let seen = fs::metadata(&path).unwrap();
    assert_eq!((seen.mode() & 0o7777, seen.uid(), seen.gid()), (0o751, 7, 8));
    let before_1970 = Timespec { tv_sec: -3, tv_nsec: 250_000_000 };
    let times =
        Timestamps { last_access: Timespec { tv_sec: 77, tv_nsec: 5 }, last_modification: before_1970 };
    rustix::fs::futimens(&file, &times).unwrap();
    let seen = fs::metadata(&path).unwrap();
    assert_eq!((seen.atime(), seen.atime_nsec(), seen.mtime(), seen.mtime_nsec()), (77, 5, -3, 250_000_000));
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    rustix::fs::futimens(&file, &Timestamps { last_access: now, last_modification: now }).unwrap();
    let seen = fs::metadata(&path).unwrap();
    assert!(seen.mtime() > 1_700_000_000 && seen.atime() > 1_700_000_000);
    // Through its handle, after its name was removed.
    fs::remove_file(&path).unwrap();
    file.set_len(12_345).unwrap();
    assert_eq!((file.metadata().unwrap().len(), file.metadata().unwrap().nlink()), (12_345, 0));
    let alone = crate::UMASK.lock().unwrap_or_else(PoisonError::into_inner);
    let old = rustix::process::umask(Mode::from(0o027));
    fs::create_dir(m.path("masked")).unwrap();
    rustix::process::umask(old);
    drop(alone);
    assert_eq!(fs::metadata(m.path("masked")).unwrap().mode() & 0o777, 0o750);
    drop(file);
    m.stop();
}

#[test]
fn s82_ten_thousand_names_are_listed_once() {
    let Some(m) = Mounted::new("") else { return };
    let name = |i: u32| format!("a name that is not very short {i}");
    let all: BTreeSet<String> = (0..10_000).map(name).collect();
    for name in &all {
        File::create(m.path(name)).unwrap();
    }
    let list = || -> Vec<String> {
        fs::read_dir(&m.at).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    };
    // With attributes, without them, and from the kernel's cache.
    for _ in 0..3 {
        let listed = list();
        assert_eq!(listed.len(), all.len(), "each once");
        assert!(listed.into_iter().collect::<BTreeSet<_>>() == all);
    }
    // Names are removed and added during a listing.
    let listing = fs::read_dir(&m.at).unwrap();
    let mut seen = BTreeSet::new();
    for (i, entry) in listing.enumerate() {
        if i % 2 == 0 && i < 2000 {
            fs::remove_file(m.path(&name(9999 - i as u32))).unwrap();
        }
        assert!(seen.insert(entry.unwrap().file_name()), "each once");
    }
    assert_eq!(list().len(), 9_000, "cached listings are invalidated");
    assert!((0..8_000).all(|i| seen.contains(std::ffi::OsStr::new(&name(i)))), "remaining names are listed");
    m.stop();
}
