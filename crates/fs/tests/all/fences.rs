//! Number of fences of each operation, compared with the table in `docs/design/fs.md`.

use crate::erased;
use frit_fs::{
    Allocate, AttrChanges, Caller, Clock, FileSystem, FormatOptions, Fs, FsOptions, Ino, Mapped, Medium,
    NewInode, RenameMode, XattrMode,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Memory that counts fences.
struct FenceCounter(Mapped, AtomicU32);

impl Medium for FenceCounter {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        self.0.read(at, into);
    }

    fn write(&self, at: u64, data: &[u8]) {
        self.0.write(at, data);
    }

    fn write_data(&self, at: u64, data: &[u8]) {
        self.0.write_data(at, data);
    }

    fn zero(&self, at: u64, len: u64) {
        self.0.zero(at, len);
    }

    fn fence(&self) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.fence();
    }

    fn sync(&self) -> frit_fs::Result<()> {
        self.0.sync()
    }
}

/// Returns the rows of the table of fences in the page.
fn said() -> BTreeMap<String, u32> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/design/fs.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = page.lines().skip_while(|line| !line.starts_with("| operation | fences |")).skip(2);
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        (cells.next().unwrap().to_string(), cells.next().unwrap().parse().unwrap())
    };
    table.take_while(|line| line.starts_with('|')).map(row).collect()
}

#[test]
fn each_operation_takes_as_many_fences_as_the_page_says() {
    let root = &Caller::ROOT;
    let medium = Arc::new(FenceCounter(Mapped::anonymous(4 << 20).unwrap(), AtomicU32::new(0)));
    drop(Fs::format(erased(Arc::clone(&medium)), FormatOptions::default()).unwrap());
    let mut found = BTreeMap::new();
    let mut before = medium.1.load(Ordering::Relaxed);
    let fs = Fs::open(
        erased(Arc::clone(&medium)),
        FsOptions { clock: Clock::counted(2 << 40), ..FsOptions::default() },
    )
    .unwrap();
    let mut cost = |what: &str| {
        let now = medium.1.load(Ordering::Relaxed);
        found.insert(what.to_string(), now - before);
        before = now;
    };
    cost("open a file system");
    let make = |name: &str, new| fs.create(root, Ino::ROOT, name.as_bytes(), new).unwrap().ino;
    let f = make("f", NewInode::file(0o644));
    cost("create, and the directory grows");
    make("d", NewInode::directory(0o755));
    cost("create, mkdir, symlink of up to 128 bytes");
    make("l", NewInode::symlink(&[b't'; 200]));
    cost("symlink of more");
    fs.link(root, f, Ino::ROOT, b"g").unwrap();
    cost("link");
    fs.rename(root, (Ino::ROOT, b"g"), (Ino::ROOT, b"h"), RenameMode::Replace).unwrap();
    cost("rename");
    fs.unlink(root, Ino::ROOT, b"h").unwrap();
    cost("unlink, rmdir");
    let mode = AttrChanges { mode: Some(0o600), ..AttrChanges::default() };
    let _ = fs.set_attr(root, f, &mode).unwrap();
    cost("chmod, chown, utimens");
    fs.write(f, 0, &[1; 5000]).unwrap();
    cost("write that gains bytes or blocks");
    fs.write(f, 100, &[1; 3000]).unwrap();
    cost("write over what was written");
    fs.read(f, 0, &mut [0; 5000]).unwrap();
    cost("read, list, stat");
    fs.sync_file(f, true).unwrap();
    cost("fdatasync");
    let _ = fs.set_attr(root, f, &AttrChanges { size: Some(50), ..AttrChanges::default() }).unwrap();
    cost("truncate, to less");
    let _ = fs.set_attr(root, f, &AttrChanges { size: Some(4000), ..AttrChanges::default() }).unwrap();
    cost("truncate, to more");
    fs.allocate(f, Allocate::Keep, 0, 1 << 16).unwrap();
    cost("fallocate, punch");
    fs.write(f, 0, &[1; 1 << 15]).unwrap();
    cost("write that gains bytes or blocks");
    fs.allocate(f, Allocate::Punch, 100, 10_000).unwrap();
    cost("punch, and the parts of blocks at its ends are zeroed");
    fs.set_xattr(root, f, b"user.a", b"value", XattrMode::Any).unwrap();
    cost("setxattr");
    assert_eq!(found, said());
}
