//! Concurrent operations under a scheduler that explores interleavings of their locks: no deadlock
//! occurs, and the metadata stays consistent.
//!
//! The sources of the file system are compiled with the feature `shuttle` for this program: with it, locks work under
//! the scheduler only.

#![allow(clippy::unwrap_used)]

use frit_fs_schedules::{
    AnyMedium, AttrChanges, Caller, Clock, Disk, Error, FileSystem, FormatOptions, Fs, FsOptions, Ino,
    Mapped, Medium, NewInode, OpenFile, Overlaid, RenameMode, XattrMode, check,
};
use std::sync::{Arc, Mutex};

const ROOT: &Caller = &Caller::ROOT;
/// Number of interleavings for each combination of operations.
const TRIED: usize = 400;

type Shared = Arc<Fs<AnyMedium>>;
type ConcurrentOp = fn(&dyn FileSystem);

/// Creates a file system with directories a and b, a file a/f with a second name b/h, and an empty
/// directory a/d.
fn fresh() -> Shared {
    let format = FormatOptions {
        inodes: Some(64),
        uuid: Some(3),
        clock: Clock::counted(1_000_000),
        ..FormatOptions::default()
    };
    let medium: AnyMedium = Arc::new(Mapped::anonymous(512 << 10).unwrap());
    let fs = Fs::format(medium, format).unwrap();
    let a = fs.create(ROOT, Ino::ROOT, b"a", NewInode::directory(0o755)).unwrap().ino;
    let b = fs.create(ROOT, Ino::ROOT, b"b", NewInode::directory(0o755)).unwrap().ino;
    let file = fs.create(ROOT, a, b"f", NewInode::file(0o644)).unwrap().ino;
    fs.write(file, 0, &[1; 5000]).unwrap();
    fs.link(ROOT, file, b, b"h").unwrap();
    fs.create(ROOT, a, b"d", NewInode::directory(0o755)).unwrap();
    // A tiny cache, so that nodes are evicted and loaded during the test.
    let medium = fs.close().unwrap();
    let open = FsOptions { nodes: 1, clock: Clock::counted(2_000_000), ..FsOptions::default() };
    Arc::new(Fs::open(medium, open).unwrap())
}

fn dir(fs: &dyn FileSystem, name: &[u8]) -> Option<Ino> {
    fs.lookup(ROOT, Ino::ROOT, name).ok().map(|attr| attr.ino)
}

/// Accepts errors that a concurrent thread may have caused, but no damage.
fn met<T>(done: Result<T, Error>) {
    if let Err(error) = done {
        assert!(!matches!(error, Error::Damaged { .. } | Error::Image(_)), "{error}");
    }
}

fn rename(fs: &dyn FileSystem, from: (&[u8], &[u8]), to: (&[u8], &[u8]), mode: RenameMode) {
    if let (Some(a), Some(b)) = (dir(fs, from.0), dir(fs, to.0)) {
        met(fs.rename(ROOT, (a, from.1), (b, to.1), mode));
    }
}

const STEPS: [ConcurrentOp; 12] = [
    |fs| rename(fs, (b"a", b"f"), (b"b", b"h"), RenameMode::Replace),
    |fs| rename(fs, (b"a", b"f"), (b"b", b"g"), RenameMode::Replace),
    |fs| rename(fs, (b"b", b"h"), (b"a", b"d"), RenameMode::Exchange),
    |fs| rename(fs, (b"a", b"d"), (b"b", b"d"), RenameMode::Replace),
    |fs| met(fs.rename(ROOT, (Ino::ROOT, b"a"), (Ino::ROOT, b"c"), RenameMode::Replace)),
    |fs| met(dir(fs, b"a").map_or(Ok(()), |a| fs.unlink(ROOT, a, b"f"))),
    |fs| met(dir(fs, b"b").map_or(Ok(()), |b| fs.unlink(ROOT, b, b"h"))),
    |fs| met(dir(fs, b"a").map_or(Ok(()), |a| fs.rmdir(ROOT, a, b"d"))),
    |fs| met(dir(fs, b"a").map(|a| fs.create(ROOT, a, b"g", NewInode::file(0o600))).transpose()),
    |fs| {
        if let Some(file) = dir(fs, b"b").and_then(|b| fs.lookup(ROOT, b, b"h").ok())
            && fs.pin(file.ino).is_ok()
        {
            met(fs.append(file.ino, &[2; 3000]));
            met(fs.set_attr(ROOT, file.ino, &AttrChanges { size: Some(100), ..AttrChanges::default() }));
            fs.unpin(file.ino).unwrap();
        }
    },
    |fs| {
        let file = dir(fs, b"a").and_then(|a| fs.lookup(ROOT, a, b"f").ok());
        met(file.map(|file| fs.read(file.ino, 0, &mut [0; 6000])).transpose());
        met(file.map(|file| fs.set_xattr(ROOT, file.ino, b"user.x", &[3; 50], XattrMode::Any)).transpose());
        met(fs.sync());
    },
    |fs| met(dir(fs, b"a").map(|a| fs.read_dir(a, 0, &mut |_| true)).transpose()),
];

fn meet(steps: Vec<ConcurrentOp>) {
    let tried = TRIED / steps.len();
    shuttle::check_random(
        move || {
            let fs = fresh();
            let threads: Vec<_> = steps
                .iter()
                .map(|step| {
                    let (fs, step) = (Arc::clone(&fs), *step);
                    shuttle::thread::spawn(move || step(&*fs))
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let report = check(fs.medium()).unwrap();
            assert!(report.is_clean() && report.orphans == 0, "{report:#?}");
        },
        tried,
    );
}

#[test]
fn two_operations_meet() {
    for (i, one) in STEPS.iter().enumerate() {
        for other in &STEPS[i..] {
            meet(vec![*one, *other]);
        }
    }
}

#[test]
fn three_operations_meet() {
    for i in 0..STEPS.len() {
        for (by, and) in [(1, 5), (2, 7), (3, 4)] {
            meet(vec![STEPS[i], STEPS[(i + by) % STEPS.len()], STEPS[(i + and) % STEPS.len()]]);
        }
    }
}

/// A file is removed while its last lookup is forgotten, others open it, and the usage is read.
#[test]
fn a_removed_file_is_freed_when_it_is_forgotten() {
    use shuttle::sync::atomic::{AtomicBool, Ordering::SeqCst};
    // Few changes of threads, at any place: the unlink is long, and the others would be done before its end.
    shuttle::check_pct(
        || {
            let fs = fresh();
            let file = fs.create(ROOT, Ino::ROOT, b"x", NewInode::file(0o644)).unwrap().ino;
            fs.write(file, 0, &[1; 5000]).unwrap();
            let looked_up = Arc::new(AtomicBool::new(true));
            let is_looked_up = Arc::clone(&looked_up);
            fs.set_looked_up(Box::new(move |ino| ino == file && is_looked_up.load(SeqCst)));
            let free = fs.usage().unwrap().blocks_free;
            let unlink = {
                let fs = Arc::clone(&fs);
                shuttle::thread::spawn(move || fs.unlink(ROOT, Ino::ROOT, b"x").unwrap())
            };
            let forget = {
                let fs = Arc::clone(&fs);
                shuttle::thread::spawn(move || {
                    looked_up.store(false, SeqCst);
                    fs.forgotten(file).unwrap();
                })
            };
            let open = {
                let fs = Arc::clone(&fs);
                shuttle::thread::spawn(move || {
                    if fs.pin(file).is_ok() {
                        fs.read(file, 0, &mut [0; 100]).unwrap();
                        fs.unpin(file).unwrap();
                    }
                })
            };
            let before = fs.usage().unwrap().blocks_free;
            assert!(before == free || before == free + 2, "{before} and {free}");
            [unlink, forget, open].into_iter().for_each(|thread| thread.join().unwrap());
            assert!(matches!(fs.attr(file), Err(Error::Stale)));
            assert_eq!(fs.usage().unwrap().blocks_free, free + 2);
            let report = check(fs.medium()).unwrap();
            assert!(report.is_clean() && report.orphans == 0, "{report:#?}");
        },
        4 * TRIED,
        3,
    );
}

/// An image on a disk that never fails. Its log is never read.
struct InfallibleDisk(Mutex<Vec<u8>>);

impl Disk for InfallibleDisk {
    fn bytes(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }

    fn read_image(&self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0.lock().unwrap()[at as usize..][..into.len()]);
    }

    fn write_image(&self, at: u64, data: &[u8]) -> frit_fs_schedules::Result<()> {
        shuttle::thread::yield_now();
        self.0.lock().unwrap()[at as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn sync_image(&self) -> frit_fs_schedules::Result<()> {
        Ok(())
    }

    fn read_log(&self, _: u64, _: &mut [u8]) -> frit_fs_schedules::Result<bool> {
        Ok(false)
    }

    fn write_log(&self, _: u64, _: &[u8]) -> frit_fs_schedules::Result<()> {
        shuttle::thread::yield_now();
        Ok(())
    }

    fn sync_log(&self) -> frit_fs_schedules::Result<()> {
        Ok(())
    }

    fn sync_names(&self) -> frit_fs_schedules::Result<()> {
        Ok(())
    }

    fn remove_log(&self) -> frit_fs_schedules::Result<()> {
        Ok(())
    }
}

/// Concurrent operations with syncs of an image on a disk. The bound is so small that writes
/// perform syncs as well.
#[test]
fn operations_meet_syncs_of_an_image_on_a_disk() {
    for (i, step) in STEPS.into_iter().enumerate() {
        let mut config = shuttle::Config::new();
        // Pages are allocated on the stack.
        config.stack_size = 256 << 10;
        let runner = shuttle::Runner::new(shuttle::scheduler::RandomScheduler::new(TRIED / 8), config);
        runner.run(move || {
            let disk = Arc::new(InfallibleDisk(Mutex::new(vec![0; 512 << 10])));
            let medium: AnyMedium = Arc::new(Overlaid::on(Arc::clone(&disk), 24 * 4096).unwrap());
            let format = FormatOptions {
                inodes: Some(64),
                clock: Clock::counted(1_000_000),
                ..FormatOptions::default()
            };
            let fs = Arc::new(Fs::format(medium, format).unwrap());
            let dir = |name| fs.create(ROOT, Ino::ROOT, name, NewInode::directory(0o755)).unwrap().ino;
            let (a, b) = (dir(b"a"), dir(b"b"));
            let file = fs.create(ROOT, a, b"f", NewInode::file(0o644)).unwrap().ino;
            fs.write(file, 0, &[1; 5000]).unwrap();
            fs.link(ROOT, file, b, b"h").unwrap();
            let syncs = (0..2).map(|_| {
                let fs = Arc::clone(&fs);
                shuttle::thread::spawn(move || fs.sync().unwrap())
            });
            let mut threads: Vec<_> = syncs.collect();
            for step in [step, STEPS[(i + 1) % STEPS.len()]] {
                let fs = Arc::clone(&fs);
                threads.push(shuttle::thread::spawn(move || step(&*fs)));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(check(fs.medium()).unwrap().is_clean());
            // The image after the last sync is consistent.
            fs.sync().unwrap();
            let medium = Mapped::anonymous(512 << 10).unwrap();
            medium.write_data(0, &disk.0.lock().unwrap());
            assert!(check(&medium).unwrap().is_clean());
        });
    }
}

/// Promise S52 of `docs/reference/semantics.md` in its hardest case: the old inode is freed between
/// the lookup of its name and the access to it.
#[test]
fn a_name_that_is_replaced_stays() {
    shuttle::check_random(
        || {
            let fs = fresh();
            let a = dir(&*fs, b"a").unwrap();
            fs.unlink(ROOT, dir(&*fs, b"b").unwrap(), b"h").unwrap();
            let replaces = Arc::clone(&fs);
            let replacer = shuttle::thread::spawn(move || {
                for _ in 0..3 {
                    replaces.create(ROOT, a, b"n", NewInode::file(0o644)).unwrap();
                    replaces.rename(ROOT, (a, b"n"), (a, b"f"), RenameMode::Replace).unwrap();
                }
            });
            for _ in 0..3 {
                assert!(fs.lookup(ROOT, a, b"f").is_ok());
                assert!(fs.open_file(ROOT, "a/f", OpenFile::READ).is_ok());
            }
            replacer.join().unwrap();
        },
        2000,
    );
}
