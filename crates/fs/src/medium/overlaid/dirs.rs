//! Directories in memory for overlays and locks, each of one user.
//!
//! Any user can make files in /dev/shm, also with names that this program would use. So everything lies in a
//! directory `frit-USER` that is its owner's alone. Where another user has taken that name, the directory is
//! `frit-USER-` and a random number; it is found again by its name and its owner.

use crate::error::{Error, Result};
use crate::format::fresh_uuid;
use rustix::fs::{Mode, OFlags};
use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Numbers that `statfs` gives for file systems in memory (linux/magic.h): tmpfs, ramfs.
pub(super) const TMPFS: u64 = 0x0102_1994;
pub(super) const RAMFS: u64 = 0x8584_58f6;
/// The directory for changes unless another one is named: memory that all Linux systems have.
const SHM: &str = "/dev/shm";
/// The beginning of the name of a user's directory.
const PREFIX: &str = "frit-";
const STICKY: u32 = 0o1000;

/// The directories in memory in which a user's are made: `given`, then those that the system has.
///
/// # Errors
/// `given` is not in memory, or there is none at all.
pub(super) fn bases(given: Option<&Path>) -> Result<Vec<PathBuf>> {
    if let Some(dir) = given.filter(|dir| !is_in_memory(dir)) {
        return Err(Error::Image(format!(
            "{} is no directory in memory (tmpfs): changes that were not synced have to end with the machine",
            dir.display()
        )));
    }
    let others = [Some(SHM.into()), std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)];
    let others = others.into_iter().flatten().filter(|dir| is_in_memory(dir));
    let dirs = given.map(Path::to_owned).into_iter().chain(others);
    // Below them no link is followed.
    let dirs: Vec<PathBuf> = dirs.map(|dir| dir.canonicalize().unwrap_or(dir)).collect();
    if dirs.is_empty() {
        return Err(Error::Image(format!(
            "an image on a disk needs a directory in memory for changes that are not synced, and neither {SHM} nor \
             $XDG_RUNTIME_DIR is one: mount a tmpfs and name it (--overlay DIR)"
        )));
    }
    Ok(dirs)
}

/// Returns `true` for a directory that ends with the machine, and has files that can be written to.
fn is_in_memory(dir: &Path) -> bool {
    let fs = File::open(dir).ok().and_then(|dir| rustix::fs::fstatfs(&dir).ok());
    fs.is_some_and(|fs| [TMPFS, RAMFS].contains(&(fs.f_type as u64)))
}

/// Returns `true` for a directory in which no other user can make or replace files.
pub(super) fn is_private(dir: &Metadata, user: u32) -> bool {
    dir.is_dir() && dir.uid() == user && dir.mode() & 0o022 == 0
}

/// The user's directories in a base, in a fixed order: the base itself if it is one, then those below it.
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
    // Not through links, which anybody can make.
    let own = named.filter(|entry| entry.metadata().is_ok_and(|meta| is_private(&meta, user)));
    let mut below: Vec<PathBuf> = own.map(|entry| entry.path()).collect();
    below.sort();
    found.extend(below);
    found
}

/// The directory for new files of a user: one that is there, or a new one in the first base where that can be done.
///
/// # Errors
/// There is none, and none can be made.
pub(super) fn home(bases: &[PathBuf], user: u32) -> Result<PathBuf> {
    let mut failed = None;
    for base in bases {
        match of_user(base, user).into_iter().next().map_or_else(|| make(base, user), Ok) {
            Ok(dir) => return Ok(dir),
            Err(e) => failed = failed.or(Some((base, e))),
        }
    }
    let (base, error) = failed.unwrap_or((&bases[0], ErrorKind::NotFound.into()));
    let path = base.join(format!("{PREFIX}{user}"));
    Err(Error::Os { what: "cannot make a directory for this user alone, ", path, error })
}

fn make(base: &Path, user: u32) -> io::Result<PathBuf> {
    refuse_open_base(&base.metadata()?, user)?;
    let plain = base.join(format!("{PREFIX}{user}"));
    let made = match make_dir(&plain, user) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            let [number, _] = fresh_uuid();
            make_dir(&base.join(format!("{PREFIX}{user}-{number:016x}")), user)
        }
        made => made,
    };
    // Another process may have made one as well: both take the first.
    let first = of_user(base, user).into_iter().next();
    match (made, first) {
        (_, Some(first)) => Ok(first),
        (Err(e), None) => Err(e),
        (Ok(()), None) => Err(ErrorKind::PermissionDenied.into()),
    }
}

/// In such a directory other users can replace what this one made.
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
    DirBuilder::new().mode(0o700).create(dir)?;
    if rustix::process::geteuid().as_raw() != user {
        std::os::unix::fs::lchown(dir, Some(user), None)?;
    }
    Ok(())
}

/// Opens a file in a user's directory for reading and writing. Neither a link in its place nor one in the place of the
/// directory is followed: root acts here in directories of other users.
///
/// # Errors
/// What the operating system says.
pub(super) fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let of_dir = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(dir, of_dir, Mode::empty())?;
    let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600))?.into())
}

/// Removes a user's directory if it is empty.
pub(super) fn tidy(dir: &Path) {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with(PREFIX) {
        let _ = std::fs::remove_dir(dir);
    }
}

/// The user whose directories have what belongs to an image: its owner, where this process may act for them.
pub(super) fn user_of(image: &Metadata) -> u32 {
    match rustix::process::geteuid().as_raw() {
        0 => image.uid(),
        own => own,
    }
}
