//! What `docs/semantics.md` promises of the library, each promise by a test with its number. Power cuts between words
//! are in `frit-torture`, what goes through a kernel in `frit-serve`; `page.rs` looks whether none is left out.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic)]

/// Asserts that a call fails with a kind of error.
macro_rules! refused {
    ($call:expr, $kind:ident) => {
        match $call {
            Err(frit_fs::Error::$kind { .. }) => {}
            other => panic!("{} in place of {}: {other:?}", stringify!($call), stringify!($kind)),
        }
    };
}

mod allocation;
mod attributes;
mod contents;
mod cuts;
mod directories;
mod limits;
mod names;
mod page;
mod renames;
mod starts;
mod threads;
mod watched;
mod xattrs;

use frit_fs::{Caller, Changes, Clock, Files, Format, Fs, Ino, Mapped, Medium, New, Open, Seek};

const ROOT: &Caller = &Caller::ROOT;
/// The root directory.
const TOP: Ino = Ino::ROOT;
const BLOCK: u64 = 4096;
/// The first time of counted clocks, in nanoseconds.
const EPOCH: i64 = 1_000_000_000_000;

fn alice() -> Caller {
    Caller { uid: 1000, gid: 1000, groups: Vec::new(), checked: true }
}

fn fresh(bytes: u64) -> Fs<Mapped> {
    on(Mapped::anonymous(bytes).unwrap())
}

/// A new file system whose root directory is for everybody.
fn on<M: Medium>(medium: M) -> Fs<M> {
    let format = Format { root: (0, 0, 0o777), clock: Clock::counted(EPOCH), ..Format::default() };
    Fs::format(medium, format).unwrap()
}

/// Opens it again, a while later.
fn again<M: Medium>(medium: M) -> Fs<M> {
    Fs::open(medium, Open { clock: Clock::counted(2 * EPOCH), ..Open::default() }).unwrap()
}

fn file(fs: &dyn Files, name: &str) -> Ino {
    fs.create(ROOT, TOP, name.as_bytes(), New::file(0o644)).unwrap().ino
}

fn directory(fs: &dyn Files, name: &str) -> Ino {
    fs.create(ROOT, TOP, name.as_bytes(), New::directory(0o755)).unwrap().ino
}

fn find(fs: &dyn Files, name: &str) -> frit_fs::Result<Ino> {
    fs.lookup(ROOT, TOP, name.as_bytes()).map(|attr| attr.ino)
}

fn write(fs: &dyn Files, ino: Ino, at: u64, data: &[u8]) {
    assert_eq!(fs.write(ino, at, data).unwrap(), data.len());
}

fn contents(fs: &dyn Files, ino: Ino) -> Vec<u8> {
    let mut bytes = vec![0xAA; fs.attr(ino).unwrap().size as usize];
    assert_eq!(fs.read(ino, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

fn resize(fs: &dyn Files, ino: Ino, size: u64) {
    let _ = fs.set_attr(ROOT, ino, &Changes { size: Some(size), ..Changes::default() }).unwrap();
}

/// The names of a directory but for `.` and `..`, in order.
fn names(fs: &dyn Files, dir: Ino) -> Vec<String> {
    let mut all = Vec::new();
    fs.read_dir(dir, 2, &mut |entry| {
        all.push(String::from_utf8_lossy(entry.name).into_owned());
        true
    })
    .unwrap();
    all.sort();
    all
}

fn free(fs: &dyn Files) -> u64 {
    fs.usage().unwrap().blocks_free
}

/// A file with data in every second of `2 * pieces` blocks: as many extents.
fn scattered(fs: &dyn Files, name: &str, pieces: u64, byte: u8) -> Ino {
    let ino = file(fs, name);
    for i in 0..pieces {
        write(fs, ino, 2 * i * BLOCK, &[byte; BLOCK as usize]);
    }
    assert_eq!(fs.seek(ino, Seek::Hole, 0).unwrap(), BLOCK);
    ino
}

/// A file that takes all that is free.
fn fill(fs: &dyn Files, name: &str) -> Ino {
    let ino = file(fs, name);
    let chunk = vec![0xEE; 1 << 20];
    let mut at = 0;
    while let Ok(len) = fs.write(ino, at, &chunk) {
        at += len as u64;
    }
    assert_eq!(free(fs), 0);
    ino
}

fn assert_clean<M: Medium>(medium: &M) {
    let report = frit_fs::check(medium).unwrap();
    assert!(report.is_clean(), "{report:#?}");
}
