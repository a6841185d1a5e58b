//! Making a volume larger: a copy beside it, verified, and exchanged for it in one step.

use crate::access::copy_rights;
use crate::backing::path_of;
use crate::create::{CreateOptions, durable_stack};
use crate::error::{Error, Result, io};
use crate::image::{Progress, stretches};
use crate::lock;
use crate::open::OpenOptions;
use crate::superblock::{FILE_NAME, NEW_NAME, Superblock, SuperblockFile, sync_dir, sync_parent};
use crate::volume::Volume;
use frit_core::planted::{Bug, is};
use frit_core::{Hints, Null};
use frit_stack::Stack;
use rustix::fs::RenameFlags;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What is copied at a time, in bytes.
const CHUNK: usize = 1 << 20;

/// What growing did.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Grown {
    /// Size before, in bytes.
    pub before: u64,
    /// Size now, in bytes.
    pub now: u64,
    /// Bytes copied and compared.
    pub data_bytes: u64,
    /// Files and devices outside of the directory that the volume no longer uses.
    pub left: Vec<PathBuf>,
}

/// The stack of a volume with overrides, and with the paths of media that it has inside of its directory.
///
/// # Errors
/// Overrides that cannot be.
pub fn stack_with(superblock: &Superblock, sets: &[String]) -> frit_stack::Result<Stack> {
    let inside = superblock.media.iter().filter(|m| !m.path.is_empty() && Path::new(&m.path).is_relative());
    let paths = inside.map(|m| format!("media.{}.path={:?}", m.name, m.path));
    let all: Vec<String> = paths.chain(sets.iter().cloned()).collect();
    Stack::parse(&superblock.name, &superblock.stack, &all)
}

/// The size of a volume of a stack, in bytes.
///
/// # Errors
/// A stack that cannot carry a volume.
pub fn volume_bytes(stack: &Stack) -> Result<u64> {
    let (durable, _) = durable_stack(stack)?;
    Ok(durable.build::<Null>(&frit_stack::Bytes::None)?.layer.info().sectors * frit_core::SECTOR_BYTES)
}

/// The directory in which the larger volume is put together.
fn beside(dir: &Path) -> Result<PathBuf> {
    let full = dir.canonicalize().map_err(io(format!("cannot find {}", dir.display())))?;
    let device = |p: &Path| p.metadata().map(|m| m.dev()).ok();
    match full.file_name() {
        Some(name) if full.parent().and_then(device) == device(&full) => {
            let mut name = name.to_os_string();
            name.push(".growing");
            Ok(full.with_file_name(name))
        }
        _ => {
            let why = "is a mount point, and cannot be exchanged for a larger volume beside it; export it, and import \
                       the image into a larger one";
            Err(Error::Exists { dir: dir.into(), why: why.into() })
        }
    }
}

/// Makes the volume in `dir` one of `stack`, with all that it holds, its UUID and its parameters.
/// Stopped anywhere, it leaves the old volume or the new one, whole, and at most a `<dir>.growing` that
/// the next call removes. `step` is told what begins, with how many bytes there are, and how far it is.
///
/// # Errors
/// A stack that is too small for what is stored; a disk without room for both; damaged data.
pub fn grow(dir: &Path, stack: &Stack, step: &mut dyn FnMut(&str, u64, u64)) -> Result<Grown> {
    let mut old = Volume::open(dir, &OpenOptions::default())?;
    let kept = old.superblock().clone();
    let made = beside(dir).and_then(|growing| match make_copy(&growing, stack, &mut old, step) {
        Ok(grown) => Ok((growing, grown)),
        Err(e) => {
            // The error says more than what keeps the copy from being removed, which the next call does.
            drop(remove(&growing, dir, &kept, false));
            Err(e)
        }
    });
    let (growing, grown) = match made {
        Ok(made) => made,
        Err(e) => {
            // The old volume is as it was, whatever happened to its copy.
            old.close()?;
            return Err(e);
        }
    };
    // Locked until the other one is in its place.
    let locked = old.finish()?;
    let full = growing_target(dir)?;
    step("exchanging", 0, 0);
    let exchanged =
        rustix::fs::renameat_with(rustix::fs::CWD, &growing, rustix::fs::CWD, &full, RenameFlags::EXCHANGE);
    if let Err(e) = exchanged {
        remove(&growing, dir, &kept, false)?;
        return Err(io(format!("cannot exchange {} and {}", growing.display(), full.display()))(e.into()));
    }
    sync_parent(&full)?;
    step("removing", 0, 0);
    remove(&growing, dir, &kept, true)?;
    drop(locked);
    Ok(grown)
}

fn growing_target(dir: &Path) -> Result<PathBuf> {
    dir.canonicalize().map_err(io(format!("cannot find {}", dir.display())))
}

/// The larger volume, closed and compared.
fn make_copy(
    growing: &Path,
    stack: &Stack,
    old: &mut Volume,
    step: &mut dyn FnMut(&str, u64, u64),
) -> Result<Grown> {
    let was = old.superblock().clone();
    let (durable, _) = durable_stack(stack)?;
    let size =
        durable.build::<Null>(&frit_stack::Bytes::None)?.layer.info().sectors * frit_core::SECTOR_BYTES;
    let held = stretches(old)?;
    check_size(old, &held, size)?;
    let left = check_paths(&was, stack)?;
    if growing.exists() {
        remove(growing, old.dir(), &was, false)?;
    }
    let data: u64 = held.iter().filter(|(_, mapped)| *mapped).map(|(len, _)| len).sum();
    step("making room", 0, 0);
    let options = CreateOptions { stack: stack.clone(), force: false };
    let mut new = Volume::create_as(growing, &options, was.uuid, was.created_unix)?;
    copy(old, &mut new, &held, &mut |done| step("copying", data, done))?;
    let params: Vec<(&str, &str)> = was.params.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    new.set_params(&params)?;
    new.close()?;
    let mut new = Volume::open(growing, &OpenOptions { read_only: true, stop: None })?;
    compare(old, &mut new, &held, &mut |done| step("comparing", data, done))?;
    keep_rights(old.dir(), &was, growing, new.superblock())?;
    Ok(Grown { before: old.bytes(), now: size, data_bytes: data, left })
}

/// Gives the larger volume the owner and the modes of the old one, its directory last.
fn keep_rights(home: &Path, was: &Superblock, growing: &Path, new: &Superblock) -> Result<()> {
    let inside = |m: &&crate::superblock::MediumRecord| Path::new(&m.path).is_relative();
    let media = new.media.iter().filter(inside).filter_map(|m| {
        let old = was.media.iter().filter(inside).find(|old| old.name == m.name)?;
        Some((path_of(home, old), path_of(growing, m)))
    });
    let own = [FILE_NAME, lock::FILE_NAME].map(|name| (home.join(name), growing.join(name)));
    for (from, to) in media.chain(own).filter(|(from, to)| from.is_file() && to.is_file()) {
        copy_rights(&from, &to)?;
    }
    copy_rights(home, growing)
}

/// Nothing that is stored may be cut off.
fn check_size(old: &Volume, held: &[(u64, bool)], size: u64) -> Result<()> {
    let mut at = 0;
    let mut end = 0;
    for &(len, mapped) in held {
        at += len;
        if mapped {
            end = at;
        }
    }
    if size < end {
        let why = format!(
            "the stack makes a volume of {size} bytes, and data is stored up to byte {end} of {}; make it larger, or \
             discard the end first",
            old.bytes()
        );
        return Err(Error::Exists { dir: old.dir().into(), why });
    }
    Ok(())
}

/// Two volumes cannot lie in one file: what has a path outside needs another. Returns what is left behind.
fn check_paths(was: &Superblock, stack: &Stack) -> Result<Vec<PathBuf>> {
    let mut left = Vec::new();
    for m in was.media.iter().filter(|m| !m.path.is_empty()) {
        let new = stack.media().iter().find(|n| n.name == m.name).and_then(|n| n.path.clone());
        let same = new.as_deref() == Some(Path::new(&m.path));
        if Path::new(&m.path).is_relative() && same {
            continue;
        }
        if same || new.is_none() {
            let what = format!(
                "another place for '{0}', since it is copied before the old volume at {1} goes: --set \
                 media.{0}.path=… names one",
                m.name, m.path
            );
            return Err(Error::Stack { what });
        }
        if Path::new(&m.path).is_absolute() {
            left.push((&m.path).into());
        }
    }
    Ok(left)
}

/// Reads a part of the old volume, all of which has to be whole: a page that cannot be read is an error in the old
/// volume, and would be zeros in the new one.
fn read_old(old: &mut Volume, at: u64, into: &mut [u8]) -> Result<()> {
    match old.read(at, into) {
        Err(frit_core::Error::Corrupt { .. }) if is(Bug::GrowCopiesZeros) => into.fill(0),
        read => read?,
    }
    Ok(())
}

fn copy(old: &mut Volume, new: &mut Volume, held: &[(u64, bool)], progress: Progress<'_>) -> Result<()> {
    each_chunk(held, progress, |at, len| {
        let mut bytes = vec![0; len];
        read_old(old, at, &mut bytes)?;
        // A disk has no map, so all of it is held: zeros that the copy has already need not go through its cache.
        if bytes.iter().all(|&b| b == 0) {
            let mut there = vec![0; len];
            new.read(at, &mut there)?;
            if there == bytes {
                return Ok(());
            }
        }
        new.write(at, &bytes, Hints::NONE)?;
        Ok(())
    })
}

fn compare(old: &mut Volume, new: &mut Volume, held: &[(u64, bool)], progress: Progress<'_>) -> Result<()> {
    each_chunk(held, progress, |at, len| {
        let (mut a, mut b) = (vec![0; len], vec![0; len]);
        read_old(old, at, &mut a)?;
        new.read(at, &mut b)?;
        if a == b {
            return Ok(());
        }
        let what = format!("the copy differs within {len} bytes at {at}; the old volume was left as it is");
        Err(frit_core::Error::Io { what, source: std::io::ErrorKind::InvalidData.into() }.into())
    })
}

/// Calls for each chunk of what is held.
fn each_chunk(
    held: &[(u64, bool)],
    progress: Progress<'_>,
    mut chunk: impl FnMut(u64, usize) -> Result<()>,
) -> Result<()> {
    let (mut at, mut done) = (0, 0);
    for &(len, mapped) in held {
        let end = at + len;
        while mapped && at < end {
            let n = CHUNK.min((end - at) as usize);
            chunk(at, n)?;
            at += n as u64;
            done += n as u64;
            progress(done);
        }
        at = end;
    }
    Ok(())
}

/// Removes what an earlier growing left: only a volume of the same UUID, or one that was never finished,
/// and only its files. What else lies there (a log, a mountpoint, the user's own) goes to the volume in `home`.
/// `locked`: the lock on it is ours.
fn remove(growing: &Path, home: &Path, of: &Superblock, locked: bool) -> Result<()> {
    let cannot = |what: &str| io(format!("cannot {what} {}", growing.display()));
    let mut files = vec![growing.join(NEW_NAME), growing.join(lock::FILE_NAME)];
    if growing.join(FILE_NAME).exists() {
        let (left, _, in_use) = SuperblockFile::peek(growing)?;
        let unfinished = left.state == crate::superblock::State::Creating;
        let free = locked || in_use.is_none();
        if !(unfinished || left.uuid == of.uuid) || !free {
            let why = "is in the way: it is another volume, or in use; move it away".into();
            return Err(Error::Exists { dir: growing.into(), why });
        }
        let inside = left.media.iter().filter(|m| Path::new(&m.path).is_relative());
        files.extend(inside.map(|m| path_of(growing, m)));
        // Last: while it is there, it says whose files these are.
        files.push(growing.join(FILE_NAME));
        carry(growing, home, &files)?;
    }
    for file in files {
        match std::fs::remove_file(&file) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(cannot("clear")(e)),
            _ => {}
        }
    }
    std::fs::remove_dir(growing).map_err(cannot("remove"))
}

/// Moves what is none of the volume's `own` files to the volume that takes its place.
fn carry(growing: &Path, home: &Path, own: &[PathBuf]) -> Result<()> {
    let cannot = || io(format!("cannot list {}", growing.display()));
    for entry in std::fs::read_dir(growing).map_err(cannot())? {
        let entry = entry.map_err(cannot())?;
        let (from, to) = (entry.path(), home.join(entry.file_name()));
        if own.contains(&from) {
            continue;
        }
        let failed = |e| io(format!("cannot move {} to {}", from.display(), home.display()))(e);
        if entry.file_type().map_err(cannot())?.is_socket() {
            // A server that was killed left it.
            std::fs::remove_file(&from).map_err(failed)?;
        } else if to.symlink_metadata().is_ok() {
            let why = format!("is in the way: {} is there, too; move one of them away", to.display());
            return Err(Error::Exists { dir: from, why });
        } else {
            std::fs::rename(&from, &to).map_err(failed)?;
        }
    }
    sync_dir(home)
}
