//! Directories in memory for overlays and locks, one for each user.
//!
//! Any user can create files in /dev/shm, including files with names that this program uses. All
//! files are therefore in a directory `frit-USER` that only its owner can write to. If another user
//! has taken that name, the directory is called `frit-USER-` with a random number, and is found by
//! its name and owner.

use crate::error::{Error, Result};
use crate::format::fresh_uuid;
use frit_core::paths::{self, Place};
use rustix::fs::{Gid, Mode, OFlags, Uid, fchown, openat};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Magic numbers of file systems in memory in `statfs` (linux/magic.h): tmpfs, ramfs.
pub(super) const TMPFS: u64 = 0x0102_1994;
pub(super) const RAMFS: u64 = 0x8584_58f6;
/// Default directory for overlays, in a tmpfs that every Linux system has.
const SHM: &str = "/dev/shm";
/// Prefix of the name of a user's directory.
const PREFIX: &str = "frit-";
const STICKY: u32 = 0o1000;

/// Returns the directories in memory that can contain users' directories: `given`, then those of
/// the system.
///
/// # Errors
/// `given` is not in memory, or no such directory exists.
pub(super) fn bases(given: Option<&Path>) -> Result<Vec<PathBuf>> {
    if let Some(dir) = given.filter(|dir| !is_in_memory(dir)) {
        return Err(Error::Image(format!(
            "{} is not a directory in memory (tmpfs): unsynced changes must not survive a power loss",
            dir.display()
        )));
    }
    let given = given.map(paths::canonical).transpose().map_err(|error| {
        let path = given.map(Path::to_owned).unwrap_or_default();
        Error::Os { what: "cannot use", path, error }
    })?;
    let others = [Some(SHM.into()), std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)];
    let others = others.into_iter().flatten().filter(|dir| is_in_memory(dir));
    // Canonical paths, because links below them are not followed.
    let others = others.filter_map(|dir| paths::canonical(&dir).ok());
    let dirs: Vec<PathBuf> = given.into_iter().chain(others).collect();
    if dirs.is_empty() {
        return Err(Error::Image(format!(
            "an image on a disk needs a directory in memory for unsynced changes, but neither {SHM} nor \
             $XDG_RUNTIME_DIR is one: mount a tmpfs and name it (--overlay DIR)"
        )));
    }
    Ok(dirs)
}

/// Returns `true` if a directory is in memory, so that its contents do not survive a power loss,
/// and supports writable files.
fn is_in_memory(dir: &Path) -> bool {
    let fs = File::open(dir).ok().and_then(|dir| rustix::fs::fstatfs(&dir).ok());
    fs.is_some_and(|fs| [TMPFS, RAMFS].contains(&(fs.f_type as u64)))
}

/// Returns `true` if no other user can create or replace files in a directory.
pub(super) fn is_private(dir: &Metadata, user: u32) -> bool {
    dir.is_dir() && dir.uid() == user && dir.mode() & 0o022 == 0
}

/// Returns the user's directories in a base, in a fixed order: the base itself if it is private,
/// then those in it.
pub(super) fn of_user(base: &Path, user: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if base.metadata().is_ok_and(|meta| is_private(&meta, user)) {
        found.push(base.to_owned());
    }
    let plain = format!("{PREFIX}{user}");
    let numbered = format!("{plain}-");
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    let named = entries.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name == plain || name.starts_with(&numbered)
    });
    // Symbolic links are not followed, because any user can create them.
    let own = named.filter(|entry| entry.metadata().is_ok_and(|meta| is_private(&meta, user)));
    let mut below: Vec<PathBuf> = own.map(|entry| entry.path()).collect();
    below.sort();
    found.extend(below);
    found
}

/// Returns the directory for new files of a user: an existing one, or a new one in the first base
/// that permits it.
///
/// # Errors
/// No directory exists, and none can be created.
pub(super) fn private_dir(bases: &[PathBuf], user: u32) -> Result<PathBuf> {
    let mut failed = None;
    for base in bases {
        match of_user(base, user).into_iter().next().map_or_else(|| make(base, user), Ok) {
            Ok(dir) => return Ok(dir),
            Err(e) => failed = failed.or(Some((base, e))),
        }
    }
    let (base, error) = failed.unwrap_or((&bases[0], ErrorKind::NotFound.into()));
    let path = base.join(format!("{PREFIX}{user}"));
    Err(Error::Os { what: "cannot create a private directory for this user, ", path, error })
}

fn make(base: &Path, user: u32) -> io::Result<PathBuf> {
    refuse_open_base(&base.metadata()?, user)?;
    let plain = base.join(format!("{PREFIX}{user}"));
    let created = match make_dir(&plain, user) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            let [number, _] = fresh_uuid();
            make_dir(&base.join(format!("{PREFIX}{user}-{number:016x}")), user)
        }
        created => created,
    };
    // Another process may have created a directory at the same time: both use the first one.
    let first = of_user(base, user).into_iter().next();
    match (created, first) {
        (_, Some(first)) => Ok(first),
        (Err(e), None) => Err(e),
        (Ok(()), None) => Err(ErrorKind::PermissionDenied.into()),
    }
}

/// Fails if other users can replace files in a base directory.
fn refuse_open_base(base: &Metadata, user: u32) -> io::Result<()> {
    let open = base.mode() & 0o022 != 0 && base.mode() & STICKY == 0;
    let own = rustix::process::geteuid().as_raw();
    if open || ![0, user, own].contains(&base.uid()) {
        let why = "other users can replace files in the directory that it would be in; name another one (--overlay)";
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

fn make_dir(dir: &Path, user: u32) -> io::Result<()> {
    paths::create_dir(dir, 0o700)?;
    let own = rustix::process::geteuid().as_raw();
    if own != user {
        // It is given away by its descriptor: the owner of the base could exchange it for a file.
        let place = Place::of_name(dir)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = File::from(openat(place.dir(), place.name(), flags, Mode::empty())?);
        if made.metadata()?.uid() != own {
            return Err(ErrorKind::PermissionDenied.into());
        }
        fchown(&made, Some(Uid::from_raw(user)), None::<Gid>)?;
    }
    Ok(())
}

/// Opens a file in a user's directory for reading and writing. Symbolic links are followed neither
/// for the file nor for the directory, because root uses this function in directories of other
/// users.
///
/// # Errors
/// A call of the operating system failed.
pub(super) fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let of_dir = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = Place::of_name(dir)?;
    let dir = openat(place.dir(), place.name(), of_dir, Mode::empty())?;
    let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(dir, name, flags, Mode::from_raw_mode(0o600))?.into())
}

/// Removes a user's directory if it is empty.
pub(super) fn remove_if_empty(dir: &Path) {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with(PREFIX) {
        let _ = paths::remove_dir(dir);
    }
}

/// Returns the user whose directories hold the files of an image: its owner if this process is
/// root, else the current user.
pub(super) fn user_of(image: &Metadata) -> u32 {
    match rustix::process::geteuid().as_raw() {
        0 => image.uid(),
        own => own,
    }
}
