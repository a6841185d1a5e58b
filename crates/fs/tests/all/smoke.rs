//! A tour of all operations, whose results are verified before and after a reopen.

use crate::{AnyMedium, memory};
use frit_fs::{
    Allocate, AttrChanges, Caller, Error, FileSystem, FormatOptions, Fs, FsOptions, Ino, InodeType, Medium,
    NewInode, OpenFile, RenameMode, Seek, XattrMode,
};

const ROOT: &Caller = &Caller::ROOT;

fn fresh(bytes: u64) -> Fs<AnyMedium> {
    Fs::format(memory(bytes), FormatOptions::default()).unwrap()
}

fn names(fs: &dyn FileSystem, dir: Ino) -> Vec<String> {
    let mut all = Vec::new();
    fs.read_dir(dir, 0, &mut |entry| {
        all.push(String::from_utf8_lossy(entry.name).into_owned());
        true
    })
    .unwrap();
    all.sort();
    all
}

fn contents(fs: &dyn FileSystem, ino: Ino) -> Vec<u8> {
    let mut bytes = vec![0xEE; fs.attr(ino).unwrap().size as usize];
    assert_eq!(fs.read(ino, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

fn assert_clean(medium: &dyn Medium) {
    let report = frit_fs::check(medium).unwrap();
    assert!(report.is_clean(), "{report:#?}");
}

#[test]
fn a_walk_through_everything() {
    let fs = fresh(4 << 20);
    let empty = fs.usage().unwrap();
    let dir = fs.create(ROOT, Ino::ROOT, b"dir", NewInode::directory(0o755)).unwrap().ino;
    let file = fs.create(ROOT, dir, b"file", NewInode::file(0o644)).unwrap().ino;
    let text: Vec<u8> = (0..100_000u32).map(|i| (i * 7) as u8).collect();
    assert_eq!(fs.write(file, 0, &text).unwrap(), text.len());
    assert_eq!(fs.write(file, 300_001, b"far").unwrap(), 3);
    let mut expected = text.clone();
    expected.resize(300_001, 0);
    expected.extend(b"far");
    assert_eq!(contents(&fs, file), expected);
    assert_eq!(fs.seek(file, Seek::Hole, 0).unwrap(), 102_400);
    assert_eq!(fs.seek(file, Seek::Data, 102_400).unwrap(), 299_008);
    let long = [b'n'; 255];
    fs.link(ROOT, file, Ino::ROOT, &long).unwrap();
    let target = [b't'; 3000];
    let link = fs.create(ROOT, dir, b"link", NewInode::symlink(&target)).unwrap().ino;
    fs.set_xattr(ROOT, file, b"user.a", &[9; 5000], XattrMode::Any).unwrap();
    fs.allocate(file, Allocate::Punch, 4096, 8192).unwrap();
    expected[4096..12288].fill(0);
    fs.rename(ROOT, (dir, b"file"), (Ino::ROOT, b"moved"), RenameMode::Replace).unwrap();
    fs.set_attr(ROOT, file, &AttrChanges { size: Some(50_000), ..AttrChanges::default() }).unwrap();
    expected.truncate(50_000);

    let medium = fs.close().unwrap();
    assert_clean(&medium);
    let fs = Fs::open(medium, FsOptions::default()).unwrap();
    assert_eq!(contents(&fs, file), expected);
    assert_eq!(fs.read_link(link).unwrap(), target);
    assert_eq!(fs.xattr(file, b"user.a").unwrap(), [9; 5000]);
    let long = String::from_utf8_lossy(&long).into_owned();
    assert_eq!(names(&fs, Ino::ROOT), [".", "..", "dir", "moved", &long]);
    assert_eq!(fs.lookup(ROOT, Ino::ROOT, b"moved").unwrap().links, 2);

    fs.pin(file).unwrap();
    for name in [b"moved".as_slice(), long.as_bytes()] {
        fs.unlink(ROOT, Ino::ROOT, name).unwrap();
    }
    assert_eq!(contents(&fs, file), expected);
    fs.unpin(file).unwrap();
    assert!(fs.attr(file).is_err());
    fs.unlink(ROOT, dir, b"link").unwrap();
    fs.rmdir(ROOT, Ino::ROOT, b"dir").unwrap();
    // The root directory keeps its first block.
    assert_eq!(fs.usage().unwrap().blocks_free, empty.blocks_free - 1);
    assert_eq!(fs.usage().unwrap().inodes_free, empty.inodes_free);
}

#[test]
fn directories_grow_and_keep_their_positions() {
    let fs = fresh(64 << 20);
    let dir = fs.create(ROOT, Ino::ROOT, b"d", NewInode::directory(0o755)).unwrap().ino;
    for i in 0..3000 {
        let name = format!("{i}-{}", "x".repeat(i % 200));
        fs.create(ROOT, dir, name.as_bytes(), NewInode::file(0o600)).unwrap();
    }
    let mut seen = 0;
    let mut at = 0;
    loop {
        let mut batch = Vec::new();
        fs.read_dir(dir, at, &mut |entry| {
            batch.push((entry.name.to_vec(), entry.next));
            batch.len() < 7
        })
        .unwrap();
        let Some((_, next)) = batch.last() else { break };
        at = *next;
        for (name, _) in batch.iter().filter(|(name, _)| name[0] != b'.') {
            fs.unlink(ROOT, dir, name).unwrap();
            seen += 1;
        }
    }
    assert_eq!(seen, 3000);
    fs.rmdir(ROOT, Ino::ROOT, b"d").unwrap();
    assert_clean(fs.medium());
}

#[test]
fn a_full_medium_says_so_and_goes_on() {
    let fs = fresh(1 << 20);
    let file = fs.create(ROOT, Ino::ROOT, b"f", NewInode::file(0o600)).unwrap().ino;
    let free = fs.usage().unwrap().blocks_free * 4096;
    let written = fs.write(file, 0, &vec![5; 2 << 20]).unwrap() as u64;
    assert_eq!(written, free);
    assert_eq!(fs.write(file, written, b"x").unwrap_err().errno(), 28);
    assert_eq!(fs.attr(file).unwrap().size, written);
    fs.unlink(ROOT, Ino::ROOT, b"f").unwrap();
    assert_eq!(fs.usage().unwrap().blocks_free * 4096, free);
    assert_eq!(fs.attr(Ino::ROOT).unwrap().kind, InodeType::Directory);
    assert_clean(fs.medium());
}

#[test]
fn a_file_that_is_open_for_reading_cannot_be_changed() {
    let fs = fresh(1 << 20);
    let made = fs.open_file(ROOT, "f", OpenFile::CREATE).unwrap();
    assert_eq!(made.write_at(0, b"text").unwrap(), 4);
    made.set_len(3).unwrap();
    made.allocate(Allocate::Extend, 0, 4096).unwrap();
    let read = fs.open_file(ROOT, "f", OpenFile::READ).unwrap();
    assert!(matches!(read.set_len(0), Err(Error::Access)));
    assert!(matches!(read.allocate(Allocate::Punch, 0, 4096), Err(Error::Access)));
    assert!(matches!(read.write_at(0, b"x"), Err(Error::Access)));
    assert_eq!(read.attr().unwrap().size, 4096);
    let truncated = fs.open_file(ROOT, "f", OpenFile { truncate: true, ..OpenFile::READ }).unwrap();
    assert_eq!(truncated.attr().unwrap().size, 0);
}
