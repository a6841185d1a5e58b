//! Helpers for all tests of promises, independent of where contents are stored.

pub(crate) use frit_fs::{AttrChanges, Caller, FileSystem, Ino, Medium, NewInode, Seek};

pub(crate) const ROOT: &Caller = &Caller::ROOT;
/// The root directory.
pub(crate) const TOP: Ino = Ino::ROOT;
pub(crate) const BLOCK: u64 = 4096;

pub(crate) fn alice() -> Caller {
    Caller { uid: 1000, gid: 1000, groups: Vec::new(), checked: true, ..Caller::ROOT }
}

pub(crate) fn file(fs: &dyn FileSystem, name: &str) -> Ino {
    fs.create(ROOT, TOP, name.as_bytes(), NewInode::file(0o644)).unwrap().ino
}

pub(crate) fn directory(fs: &dyn FileSystem, name: &str) -> Ino {
    fs.create(ROOT, TOP, name.as_bytes(), NewInode::directory(0o755)).unwrap().ino
}

pub(crate) fn find(fs: &dyn FileSystem, name: &str) -> frit_fs::Result<Ino> {
    fs.lookup(ROOT, TOP, name.as_bytes()).map(|attr| attr.ino)
}

pub(crate) fn write(fs: &dyn FileSystem, ino: Ino, at: u64, data: &[u8]) {
    assert_eq!(fs.write(ino, at, data).unwrap(), data.len());
}

pub(crate) fn contents(fs: &dyn FileSystem, ino: Ino) -> Vec<u8> {
    let mut bytes = vec![0xAA; fs.attr(ino).unwrap().size as usize];
    assert_eq!(fs.read(ino, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

pub(crate) fn resize(fs: &dyn FileSystem, ino: Ino, size: u64) {
    let _ = fs.set_attr(ROOT, ino, &AttrChanges { size: Some(size), ..AttrChanges::default() }).unwrap();
}

/// Returns the names of a directory in order, without `.` and `..`.
pub(crate) fn names(fs: &dyn FileSystem, dir: Ino) -> Vec<String> {
    let mut all = Vec::new();
    fs.read_dir(dir, 2, &mut |entry| {
        all.push(String::from_utf8_lossy(entry.name).into_owned());
        true
    })
    .unwrap();
    all.sort();
    all
}

pub(crate) fn free(fs: &dyn FileSystem) -> u64 {
    fs.usage().unwrap().blocks_free
}

/// Creates a file with data in every second of `2 * pieces` blocks, which takes `pieces` extents.
pub(crate) fn scattered(fs: &dyn FileSystem, name: &str, pieces: u64, byte: u8) -> Ino {
    let ino = file(fs, name);
    for i in 0..pieces {
        write(fs, ino, 2 * i * BLOCK, &[byte; BLOCK as usize]);
    }
    assert_eq!(fs.seek(ino, Seek::Hole, 0).unwrap(), BLOCK);
    ino
}

/// Creates a file that takes all free space.
pub(crate) fn fill(fs: &dyn FileSystem, name: &str) -> Ino {
    let ino = file(fs, name);
    let chunk = vec![0xEE; 1 << 20];
    let mut at = 0;
    while let Ok(len) = fs.write(ino, at, &chunk) {
        at += len as u64;
    }
    assert_eq!(free(fs), 0);
    ino
}

pub(crate) fn assert_clean(medium: &dyn Medium) {
    let report = frit_fs::check(medium).unwrap();
    assert!(report.is_clean(), "{report:#?}");
}
