//! Growing a volume: a larger copy is created beside it, verified, and exchanged for it in one
//! step.

mod raw_area;

pub use raw_area::RawAreaMove;

use crate::access::copy_permissions;
use crate::backing::{is_inside, path_of};
use crate::create::{CreateOptions, durable_stack};
use crate::error::{Error, Result, io};
use crate::image::{ProgressFn, mapped_ranges};
use crate::lock;
use crate::open::OpenOptions;
use crate::planted::Bug;
use crate::superblock::{FILE_NAME, Superblock, SuperblockFile, TEMP_FILE_NAME, sync_dir, sync_parent};
use crate::volume::Volume;
use frit_core::Hints;
use frit_core::paths;
use frit_core::planted::is_planted;
use frit_media::FileAccess;
use frit_stack::Stack;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Size of a copied chunk, in bytes.
const CHUNK: usize = 1 << 20;

/// Result of growing a volume.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct GrowReport {
    /// Size before, in bytes.
    pub before: u64,
    /// Size now, in bytes.
    pub now: u64,
    /// Bytes copied and compared.
    pub data_bytes: u64,
    /// Files and devices outside the directory that the volume no longer uses.
    pub left: Vec<PathBuf>,
    /// Addresses of the area for direct writes by physical address, if a volume has one.
    pub raw_area: Option<RawAreaMove>,
}

/// Returns the stack of a volume with overrides, and with the paths of media inside its directory.
///
/// # Errors
/// Invalid overrides.
pub fn stack_with_overrides(superblock: &Superblock, sets: &[String]) -> frit_stack::Result<Stack> {
    let stores = superblock.media.iter().filter(|m| !m.is_file());
    let urls = stores.map(|m| format!("media.{}.url={:?}", m.name, m.path));
    let files = superblock.media.iter().filter(|m| m.is_file());
    let inside = files.filter(|m| !m.path.is_empty() && Path::new(&m.path).is_relative());
    let paths = inside.map(|m| format!("media.{}.path={:?}", m.name, m.path));
    let other = superblock.media.iter().filter(|m| m.access != FileAccess::default());
    let accesses = other.map(|m| format!("media.{}.access={}", m.name, <&str>::from(m.access)));
    let all: Vec<String> = urls.chain(paths).chain(accesses).chain(sets.iter().cloned()).collect();
    Stack::parse(&superblock.name, &superblock.stack, &all)
}

/// Returns the size of a volume of a stack, in bytes.
///
/// # Errors
/// The stack does not meet a requirement of volumes.
pub fn volume_bytes(stack: &Stack) -> Result<u64> {
    let (durable, _) = durable_stack(stack)?;
    Ok(durable.build(&frit_stack::Bytes::None)?.layer.info().sectors * frit_core::SECTOR_BYTES)
}

/// Returns the directory in which the larger volume is created.
fn growing_path(dir: &Path) -> Result<PathBuf> {
    let full = paths::canonical(dir).map_err(io(format!("cannot find {}", dir.display())))?;
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

/// Replaces the volume in `dir` by one of `stack` with the same contents, UUID and parameters.
/// After a crash or power loss at any moment, the old or the new volume is complete, and a
/// directory `<dir>.growing` may exist, which the next call removes. `step` receives the name of
/// each phase, its total in bytes, and the progress in bytes.
///
/// # Errors
/// The stack is too small for the stored data; the disk has no space for both volumes; data is
/// damaged.
pub fn grow(dir: &Path, stack: &Stack, step: &mut dyn FnMut(&str, u64, u64)) -> Result<GrowReport> {
    let mut old = Volume::open(dir, &OpenOptions::default())?;
    let old_superblock = old.superblock().clone();
    let copied = growing_path(dir).and_then(|growing| match make_copy(&growing, stack, &mut old, step) {
        Ok(grown) => Ok((growing, grown)),
        Err(e) => {
            // The first error is reported. A failed removal is not: the next call removes the copy.
            drop(remove(&growing, dir, &old_superblock, false));
            Err(e)
        }
    });
    let (growing, grown) = match copied {
        Ok(copied) => copied,
        Err(e) => {
            // The old volume is unchanged, also if its copy failed.
            old.close()?;
            return Err(e);
        }
    };
    // The old volume stays locked until the new one has taken its place.
    let locked = old.finish()?;
    let full = canonical_dir(dir)?;
    step("exchanging", 0, 0);
    let exchanged = paths::exchange(&growing, &full);
    if let Err(e) = exchanged {
        remove(&growing, dir, &old_superblock, false)?;
        return Err(io(format!("cannot exchange {} and {}", growing.display(), full.display()))(e));
    }
    // The exchange has to be durable before the old volume is removed.
    sync_parent(&full)?;
    step("removing", 0, 0);
    remove(&growing, dir, &old_superblock, true)?;
    drop(locked);
    Ok(grown)
}

fn canonical_dir(dir: &Path) -> Result<PathBuf> {
    paths::canonical(dir).map_err(io(format!("cannot find {}", dir.display())))
}

/// Creates the larger volume, copies the data, closes it and compares it.
fn make_copy(
    growing: &Path,
    stack: &Stack,
    old: &mut Volume,
    step: &mut dyn FnMut(&str, u64, u64),
) -> Result<GrowReport> {
    let old_superblock = old.superblock().clone();
    let (durable, _) = durable_stack(stack)?;
    let mut layer = durable.build(&frit_stack::Bytes::None)?.layer;
    let size = layer.info().sectors * frit_core::SECTOR_BYTES;
    let raw_area = layer.raw_access().map_or(0..0, |access| access.raw_area());
    drop(layer);
    let ranges = mapped_ranges(old)?;
    check_size(old, &ranges, size)?;
    raw_area::check_size(old, raw_area.end - raw_area.start)?;
    let left = check_paths(&old_superblock, stack)?;
    if growing.exists() {
        remove(growing, old.dir(), &old_superblock, false)?;
    }
    let data: u64 = ranges.iter().filter(|(_, mapped)| *mapped).map(|(len, _)| len).sum();
    step("making room", 0, 0);
    let options = CreateOptions { stack: stack.clone(), force: false };
    let mut new = Volume::create_in_place_of(Some(&old_superblock), growing, &options)?;
    copy(old, &mut new, &ranges, &mut |done| step("copying", data, done))?;
    raw_area::copy(old, &mut new)?;
    let params: Vec<(&str, &str)> =
        old_superblock.params.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    new.set_params(&params)?;
    new.close()?;
    let mut new = Volume::open(growing, &OpenOptions { read_only: true, crash: None })?;
    compare(old, &mut new, &ranges, &mut |done| step("comparing", data, done))?;
    let raw_area = raw_area::compare(old, &mut new)?;
    copy_volume_permissions(old.dir(), &old_superblock, growing, new.superblock())?;
    Ok(GrowReport { before: old.bytes(), now: size, data_bytes: data, left, raw_area })
}

/// Gives the larger volume the owner and the modes of the old one. The directory is last, since its
/// mode may deny access to the files.
fn copy_volume_permissions(
    volume_dir: &Path,
    old_superblock: &Superblock,
    growing: &Path,
    new: &Superblock,
) -> Result<()> {
    let inside = |m: &&crate::superblock::MediumRecord| is_inside(m);
    let media = new.media.iter().filter(inside).filter_map(|m| {
        let old = old_superblock.media.iter().filter(inside).find(|old| old.name == m.name)?;
        Some((path_of(volume_dir, old), path_of(growing, m)))
    });
    let own = [FILE_NAME, lock::FILE_NAME].map(|name| (volume_dir.join(name), growing.join(name)));
    for (from, to) in media.chain(own).filter(|(from, to)| from.is_file() && to.is_file()) {
        copy_permissions(&from, &to)?;
    }
    copy_permissions(volume_dir, growing)
}

/// Refuses a size that would cut off stored data.
fn check_size(old: &Volume, ranges: &[(u64, bool)], size: u64) -> Result<()> {
    let mut at = 0;
    let mut end = 0;
    for &(len, mapped) in ranges {
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

/// Returns the external media that the volume no longer uses. Two volumes cannot share a file, so a
/// medium with an external path needs a new one.
fn check_paths(old_superblock: &Superblock, stack: &Stack) -> Result<Vec<PathBuf>> {
    if let Some(m) = old_superblock.media.iter().find(|m| !m.is_file()) {
        let requirement = format!(
            "media in files, and '{}' is a store of objects; `frit export` and `frit import` copy the volume into a \
             larger one",
            m.name
        );
        return Err(Error::Unsupported { requirement });
    }
    let mut left = Vec::new();
    for m in old_superblock.media.iter().filter(|m| !m.path.is_empty()) {
        let new = stack.media().iter().find(|n| n.name == m.name).and_then(|n| n.path.clone());
        let same = new.as_deref() == Some(Path::new(&m.path));
        if Path::new(&m.path).is_relative() && same {
            continue;
        }
        if same || new.is_none() {
            let requirement = format!(
                "another path for '{0}', since it is copied before the old one at {1} is removed: --set \
                 media.{0}.path=… names one",
                m.name, m.path
            );
            return Err(Error::Unsupported { requirement });
        }
        if Path::new(&m.path).is_absolute() {
            left.push((&m.path).into());
        }
    }
    Ok(left)
}

/// Reads a range of the old volume. All of it has to be readable: a page that cannot be read is an
/// error in the old volume, and would become zeros in the new one.
fn read_old(old: &mut Volume, at: u64, into: &mut [u8]) -> Result<()> {
    match old.read(at, into) {
        Err(frit_core::Error::Corrupt { .. }) if is_planted(Bug::GrowCopiesZeros) => into.fill(0),
        read => read?,
    }
    Ok(())
}

fn copy(old: &mut Volume, new: &mut Volume, ranges: &[(u64, bool)], progress: ProgressFn<'_>) -> Result<()> {
    each_chunk(ranges, progress, |at, len| {
        let mut bytes = vec![0; len];
        read_old(old, at, &mut bytes)?;
        // A disk has no map, so all of it counts as mapped: zeros that the copy already has are not
        // written through its cache.
        if bytes.iter().all(|&b| b == 0) {
            let mut existing = vec![0; len];
            new.read(at, &mut existing)?;
            if existing == bytes {
                return Ok(());
            }
        }
        new.write(at, &bytes, Hints::NONE)?;
        Ok(())
    })
}

fn compare(
    old: &mut Volume,
    new: &mut Volume,
    ranges: &[(u64, bool)],
    progress: ProgressFn<'_>,
) -> Result<()> {
    each_chunk(ranges, progress, |at, len| {
        let (mut a, mut b) = (vec![0; len], vec![0; len]);
        read_old(old, at, &mut a)?;
        new.read(at, &mut b)?;
        if a == b {
            return Ok(());
        }
        Err(differs("the copy", len, at))
    })
}

/// Returns the error of a copy that is not equal to the original.
fn differs(what: &str, len: usize, at: u64) -> Error {
    let what = format!("{what} differs within {len} bytes at {at}; the old volume was not changed");
    frit_core::Error::Io { what, source: std::io::ErrorKind::InvalidData.into() }.into()
}

/// Calls `chunk` for each chunk of the mapped ranges. `ranges` has the length of each range, with
/// `true` if it is mapped.
fn each_chunk(
    ranges: &[(u64, bool)],
    progress: ProgressFn<'_>,
    mut chunk: impl FnMut(u64, usize) -> Result<()>,
) -> Result<()> {
    let (mut at, mut done) = (0, 0);
    for &(len, mapped) in ranges {
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

/// Removes an unfinished copy: only a volume with the same UUID, or one whose creation was not
/// finished, and only its own files. Other files there (a log, a mount point, files of the user)
/// are moved to the volume in `volume_dir`. `locked`: the caller holds the lock on the directory.
fn remove(growing: &Path, volume_dir: &Path, of: &Superblock, locked: bool) -> Result<()> {
    let cannot = |what: &str| io(format!("cannot {what} {}", growing.display()));
    let mut files = vec![growing.join(TEMP_FILE_NAME), growing.join(lock::FILE_NAME)];
    if growing.join(FILE_NAME).exists() {
        let (found, _, in_use) = SuperblockFile::peek(growing)?;
        let unfinished = found.state == crate::superblock::VolumeState::Creating;
        let free = locked || in_use.is_none();
        if !(unfinished || found.uuid == of.uuid) || !free {
            let why = "is in the way: it is another volume, or in use; move it away".into();
            return Err(Error::Exists { dir: growing.into(), why });
        }
        let inside = found.media.iter().filter(|m| is_inside(m));
        files.extend(inside.map(|m| path_of(growing, m)));
        // The superblock is removed last, because it identifies the owner of the files until then.
        files.push(growing.join(FILE_NAME));
        move_foreign_files(growing, volume_dir, &files)?;
    }
    for file in files {
        match paths::remove_file(&file) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(cannot("clear")(e)),
            _ => {}
        }
    }
    paths::remove_dir(growing).map_err(cannot("remove"))
}

/// Moves files other than the volume's `own` files to the volume that replaces it.
fn move_foreign_files(growing: &Path, volume_dir: &Path, own: &[PathBuf]) -> Result<()> {
    let cannot = || io(format!("cannot list {}", growing.display()));
    for entry in std::fs::read_dir(growing).map_err(cannot())? {
        let entry = entry.map_err(cannot())?;
        let (from, to) = (entry.path(), volume_dir.join(entry.file_name()));
        if own.contains(&from) {
            continue;
        }
        let failed = |e| io(format!("cannot move {} to {}", from.display(), volume_dir.display()))(e);
        if entry.file_type().map_err(cannot())?.is_socket() {
            // A socket left by a killed server.
            paths::remove_file(&from).map_err(failed)?;
        } else if to.symlink_metadata().is_ok() {
            let why = format!("is in the way: {} exists as well; move one of them away", to.display());
            return Err(Error::Exists { dir: from, why });
        } else {
            paths::rename(&from, &to).map_err(failed)?;
        }
    }
    sync_dir(volume_dir)
}
