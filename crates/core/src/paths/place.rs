//! An open directory and a name in it.

use super::existing;
use super::trust::{Judge, Trust};
use super::walk::{Last, walk};
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A name in a directory that is held open: the end of a path, which need not exist. What happens to
/// the directories of the path meanwhile does not matter.
#[derive(Debug)]
pub struct Place {
    dir: OwnedFd,
    /// Path of the directory without links, for messages.
    shown: PathBuf,
    name: OsString,
    trust: Trust,
    judge: Judge,
    is_magic: bool,
}

impl Place {
    pub(super) fn new(
        dir: OwnedFd,
        shown: PathBuf,
        name: OsString,
        trust: Trust,
        judge: Judge,
        is_magic: bool,
    ) -> Place {
        Place { dir, shown, name, trust, judge, is_magic }
    }

    /// Finds the place that a path leads to. A link at its end is followed if nobody else can have
    /// put it there.
    ///
    /// # Errors
    /// A directory of the path does not exist, or a link of another user is in it.
    pub fn of(path: &Path) -> io::Result<Place> {
        walk(path, Last::Target)
    }

    /// Finds the place of a name, which is not followed if it is a link.
    ///
    /// # Errors
    /// As [`Place::of`]; the path does not end in a name.
    pub fn of_name(path: &Path) -> io::Result<Place> {
        walk(path, Last::Name)
    }

    /// Opens the directory that a path leads to. Its name is `.`.
    ///
    /// # Errors
    /// As [`Place::of`]; the directory does not exist.
    pub fn of_dir(path: &Path) -> io::Result<Place> {
        walk(path, Last::Dir)
    }

    /// Returns the place of another name in the same directory.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn beside(&self, name: impl Into<OsString>) -> io::Result<Place> {
        let dir = self.dir.try_clone()?;
        Ok(Place::new(dir, self.shown.clone(), name.into(), self.trust, self.judge, false))
    }

    /// Returns `true` if no other user can change the names of the directory.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.trust == Trust::Full
    }

    /// Returns the path without links that led here, for messages.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        if self.name == "." { self.shown.clone() } else { self.shown.join(&self.name) }
    }

    /// Returns a short path for system calls that take no directory, such as bind(2) and mount(2).
    /// It is valid while this value exists, and leads to the name in the open directory.
    #[must_use]
    pub fn short_path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.dir.as_raw_fd().to_string()).join(&self.name)
    }

    /// Returns the directory.
    #[must_use]
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    pub(super) fn shown_dir(&self) -> &Path {
        &self.shown
    }

    pub(super) fn judge(&self) -> Judge {
        self.judge
    }

    pub(super) fn is_magic(&self) -> bool {
        self.is_magic
    }

    /// Says where the directory is, and who can change its names.
    pub(super) fn why_untrusted(&self) -> String {
        existing::why_untrusted(&self.shown, self.dir())
    }

    /// Returns what has the name, without following it; `None` if nothing has.
    ///
    /// # Errors
    /// The error of the host.
    pub fn stat(&self) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Pins what has the name (`O_PATH`), so that it can be examined before it is used.
    ///
    /// # Errors
    /// The error of the host.
    pub fn pin(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.dir, &self.name, flags, Mode::empty())
    }

    /// Removes the name of a file, socket or link.
    ///
    /// # Errors
    /// The error of the host.
    pub fn remove_file(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.dir, &self.name, AtFlags::empty())?)
    }

    /// Opens the directory itself for reading and syncing.
    ///
    /// # Errors
    /// The error of the host.
    pub fn reopen_dir(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.dir, ".", flags, Mode::empty())?.into())
    }
}
