//! Paths that are written: opened, created, removed and renamed so that no other user can redirect
//! them.
//!
//! A program of root that opens `/home/bob/report` writes to whatever bob made of that name: a link
//! to `/etc/shadow`, or a directory that he exchanges while the program runs. The functions here are
//! therefore the only way in this project to a file that is written. Each walks the path one
//! directory at a time, holds the last directory open, and works relative to it:
//!
//! - A symbolic link is followed only in a directory in which no other user can change names (see
//!   [`Place::is_trusted`]).
//! - An existing file in another directory is pinned (`O_PATH`) and examined before it is opened,
//!   and truncated only then. It has to be a regular file with one name, of this user or of the user
//!   who owns the directory, so that harm falls on nobody but that owner.
//! - Everything else is created with `O_EXCL`, and replaced, renamed and removed by name within the
//!   open directory.
//!
//! The rule is the same for all users: "this user" is the effective user of the process.
//!
//! It is not: a sandbox. What the user's own links name is followed, and devices, pipes and
//! `/dev/stdout` are outputs as ever. Nor does it protect against the owner of a directory who
//! replaces the files *in* it.

mod existing;
mod open;
mod place;
#[cfg(test)]
mod tests;
mod trust;
mod walk;

pub use open::OpenOptions;
pub use place::Place;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Opens a directory for reading, syncing and for calls relative to it.
///
/// # Errors
/// The error of the host, or a link of another user.
pub fn open_dir(path: &Path) -> io::Result<File> {
    Place::of_dir(path)?.reopen_dir()
}

/// Removes a file, a socket or a symbolic link, which is not followed.
///
/// # Errors
/// The error of the host, or a link of another user in the path.
pub fn remove_file(path: &Path) -> io::Result<()> {
    Place::of_name(path)?.remove_file()
}

/// Removes an empty directory.
///
/// # Errors
/// The error of the host, or a link of another user in the path.
pub fn remove_dir(path: &Path) -> io::Result<()> {
    let place = Place::of_name(path)?;
    Ok(rustix::fs::unlinkat(place.dir(), place.name(), AtFlags::REMOVEDIR)?)
}

/// Renames a file or a directory. Neither name is followed.
///
/// # Errors
/// The error of the host, or a link of another user in a path.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (Place::of_name(from)?, Place::of_name(to)?);
    Ok(rustix::fs::renameat(from.dir(), from.name(), to.dir(), to.name())?)
}

/// Exchanges two names in one step. Neither is followed.
///
/// # Errors
/// The error of the host, or a link of another user in a path.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let (one, other) = (Place::of_name(one)?, Place::of_name(other)?);
    let flags = RenameFlags::EXCHANGE;
    Ok(rustix::fs::renameat_with(one.dir(), one.name(), other.dir(), other.name(), flags)?)
}

/// Creates a directory, which must not exist, with a mode that the umask reduces.
///
/// # Errors
/// The error of the host, or a link of another user in the path.
pub fn create_dir(path: &Path, mode: u32) -> io::Result<()> {
    let place = Place::of_name(path)?;
    Ok(rustix::fs::mkdirat(place.dir(), place.name(), Mode::from_raw_mode(mode))?)
}

/// Creates a directory and those above it that are missing, with a mode that the umask reduces.
///
/// # Errors
/// The error of the host, or a link of another user in the path.
pub fn create_dir_all(path: &Path, mode: u32) -> io::Result<()> {
    match Place::of_dir(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        found => return found.map(drop),
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_dir_all(parent, mode)?;
    }
    match create_dir(path, mode) {
        // Another process made it, or the path ends in `..`. A link is judged as one.
        Err(e) if [ErrorKind::AlreadyExists, ErrorKind::InvalidInput].contains(&e.kind()) => {
            Place::of_dir(path).map(drop)
        }
        created => created,
    }
}

/// Returns the path of an existing file or directory without symbolic links, as
/// [`std::fs::canonicalize`] does, unless a link of another user is in it.
///
/// # Errors
/// The error of the host, or a link of another user in the path.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    walk::canonical(path)
}

/// Returns a number that nobody can guess, for a name in a directory where others could take a known name first.
#[must_use]
pub fn secret_number() -> u64 {
    RandomState::new().hash_one(0)
}

/// Returns the error for a path that another user can redirect.
fn refused(what: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, what)
}

/// Opens a directory relative to another one, for calls relative to it. A link is not followed.
fn open_below(
    dir: impl std::os::fd::AsFd,
    name: impl rustix::path::Arg,
) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}
