//! Several threads on one file system. Each has its own files with a shadow copy, and all of them
//! compete for common names.

use crate::{AnyMedium, memory};
use frit_fs::{
    Allocate, AttrChanges, Caller, Error, FileSystem, FormatOptions, Fs, FsOptions, Ino, NewInode, OpenFile,
    Paths, RenameMode, check,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

const ROOT: &Caller = &Caller::ROOT;
const THREADS: u64 = 4;
const STEPS: usize = 4000;

/// Returns `true` for errors that concurrent changes of a name can cause.
fn expected_of_common(error: &Error) -> bool {
    matches!(
        error,
        Error::NotFound
            | Error::Exists
            | Error::NotEmpty
            | Error::NotDirectory
            | Error::IsDirectory
            | Error::Stale
            | Error::Invalid(_)
            | Error::NotPermitted
    )
}

/// Performs one operation on files of this thread.
fn own(fs: &Fs<AnyMedium>, dir: Ino, rng: &mut SmallRng, shadow: &mut BTreeMap<String, Vec<u8>>) {
    let name = format!("own-{}", rng.random_range(0..12));
    match (rng.random_range(0..6), shadow.get_mut(&name)) {
        (0..=2, Some(bytes)) => {
            let ino = fs.lookup(ROOT, dir, name.as_bytes()).unwrap().ino;
            let at = rng.random_range(0..=bytes.len() + 5000);
            let data = vec![rng.random::<u8>(); rng.random_range(1..9000)];
            assert_eq!(fs.write(ino, at as u64, &data).unwrap(), data.len());
            bytes.resize(bytes.len().max(at + data.len()), 0);
            bytes[at..at + data.len()].copy_from_slice(&data);
        }
        (3, Some(bytes)) => {
            let ino = fs.lookup(ROOT, dir, name.as_bytes()).unwrap().ino;
            let size = rng.random_range(0..20_000);
            fs.set_attr(ROOT, ino, &AttrChanges { size: Some(size as u64), ..AttrChanges::default() })
                .unwrap();
            bytes.resize(size, 0);
            let (at, len) = (rng.random_range(0..20_000), rng.random_range(1..9000));
            fs.allocate(ino, Allocate::Punch, at as u64, len as u64).unwrap();
            let end = bytes.len().min(at + len);
            bytes[at.min(end)..end].fill(0);
        }
        (4, Some(_)) => {
            fs.unlink(ROOT, dir, name.as_bytes()).unwrap();
            shadow.remove(&name);
        }
        (_, Some(bytes)) => {
            let ino = fs.lookup(ROOT, dir, name.as_bytes()).unwrap().ino;
            let mut back = vec![1; bytes.len() + 1];
            assert_eq!(fs.read(ino, 0, &mut back).unwrap(), bytes.len());
            assert_eq!(back[..bytes.len()], bytes[..]);
        }
        (_, None) => {
            fs.create(ROOT, dir, name.as_bytes(), NewInode::file(0o600)).unwrap();
            shadow.insert(name, Vec::new());
        }
    }
}

/// Calls `operate` with the inode of a name, if the name is still there when its number can no longer be reused.
fn with_named(
    fs: &Fs<AnyMedium>,
    dir: Ino,
    name: &[u8],
    operate: impl FnOnce(Ino) -> frit_fs::Result<()>,
) -> frit_fs::Result<()> {
    let ino = fs.lookup(ROOT, dir, name)?.ino;
    fs.pin(ino)?;
    let is_same = fs.lookup(ROOT, dir, name).is_ok_and(|now| now.ino == ino);
    let done = if is_same { operate(ino) } else { Ok(()) };
    fs.unpin(ino)?;
    done
}

/// Performs one operation on names that all threads change.
fn common(fs: &Fs<AnyMedium>, dirs: &[Ino], rng: &mut SmallRng) {
    let mut dir = || dirs[rng.random_range(0..dirs.len())];
    let (from, to) = (dir(), dir());
    let mut name = || format!("n{}", rng.random_range(0..6)).into_bytes();
    let (a, b) = (name(), name());
    let done = match rng.random_range(0..10) {
        0 | 1 => fs.create(ROOT, from, &a, NewInode::file(0o600)).map(drop),
        2 => fs.create(ROOT, from, &a, NewInode::directory(0o700)).map(drop),
        3 => fs.unlink(ROOT, from, &a),
        4 => fs.rmdir(ROOT, from, &a),
        5 => with_named(fs, from, &a, |ino| fs.link(ROOT, ino, to, &b).map(drop)),
        6 => fs.rename(ROOT, (from, &a), (to, &b), RenameMode::Exchange),
        7 => fs.rename(ROOT, (from, &a), (from, &b), RenameMode::Replace),
        8 => with_named(fs, from, &a, |ino| fs.append(ino, &[7; 600]).map(drop)),
        _ => fs.rename(ROOT, (from, &a), (to, &b), RenameMode::Replace),
    };
    if let Err(error) = done {
        assert!(expected_of_common(&error), "{error}");
    }
    let mut last = None;
    let listed = fs.read_dir(from, 0, &mut |entry| {
        assert!(last.is_none_or(|last| last < entry.next), "positions go up");
        last = Some(entry.next);
        true
    });
    assert!(listed.is_ok() || matches!(listed, Err(Error::NotFound | Error::Stale)));
}

fn run(seed: u64, bytes: u64, nodes: usize) {
    let fs = Fs::format(memory(bytes), FormatOptions::default()).unwrap();
    let medium = fs.close().unwrap();
    let fs = Fs::open(medium, FsOptions { nodes, ..FsOptions::default() }).unwrap();
    let mut dirs = vec![Ino::ROOT];
    for name in ["x", "x/y", "z"] {
        dirs.push(fs.make(ROOT, name, NewInode::directory(0o777)).unwrap().ino);
    }
    let shadows: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|i| {
                let (fs, dirs) = (&fs, &dirs);
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(seed * THREADS + i);
                    let path = format!("thread-{i}");
                    let dir = fs.make(ROOT, &path, NewInode::directory(0o700)).unwrap().ino;
                    let mut shadow = BTreeMap::new();
                    for _ in 0..STEPS {
                        own(fs, dir, &mut rng, &mut shadow);
                        common(fs, dirs, &mut rng);
                    }
                    (path, shadow)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let report = check(fs.medium()).unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
    let fs = Fs::open(fs.close().unwrap(), FsOptions::default()).unwrap();
    for (path, shadow) in &shadows {
        let mut names: Vec<_> = fs.names_of(ROOT, path).unwrap().into_iter().map(|(name, _)| name).collect();
        names.sort();
        assert!(names.iter().eq(shadow.keys().map(String::as_bytes)));
        for (name, bytes) in shadow {
            assert_eq!(fs.contents(ROOT, &format!("{path}/{name}")).unwrap(), *bytes);
        }
    }
}

#[test]
fn what_is_ones_own_stays_and_what_is_common_agrees() {
    for seed in 0..3 {
        run(seed, 32 << 20, 64 << 10);
    }
}

#[test]
fn the_same_with_hardly_any_inodes_in_memory() {
    run(9, 32 << 20, 4);
}

#[test]
fn appends_of_several_threads_are_all_there() {
    let fs = Fs::format(memory(32 << 20), FormatOptions::default()).unwrap();
    let file = Arc::new(fs.open_file(ROOT, "log", OpenFile { append: true, ..OpenFile::CREATE }).unwrap());
    std::thread::scope(|scope| {
        for i in 0..THREADS as u8 {
            let file = Arc::clone(&file);
            scope.spawn(move || (0..1000).for_each(|_| assert_eq!(file.append(&[i; 777]).unwrap().1, 777)));
        }
    });
    let bytes = fs.contents(ROOT, "log").unwrap();
    assert_eq!(bytes.len(), THREADS as usize * 777_000);
    for record in bytes.chunks(777) {
        assert!(record.iter().all(|byte| *byte == record[0]));
    }
}
