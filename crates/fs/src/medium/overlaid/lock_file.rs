//! The lock file of an image, in a directory that only its owner can write to. Every user who may
//! read the image could lock the image itself, and thereby lock out its owner.

use super::dirs;
use frit_core::paths;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of attempts to create the file when other processes remove it or its directory.
const TRIES: u32 = 100;
/// Prefix and suffix of the name of a lock file.
const NAME: (&str, &str) = ("frit-", ".lock");

/// Returns `true` if a path refers to the open file.
fn is_at(file: &File, path: &Path) -> bool {
    match (path.symlink_metadata(), file.metadata()) {
        (Ok(now), Ok(opened)) => (now.dev(), now.ino()) == (opened.dev(), opened.ino()),
        _ => false,
    }
}

/// Removes a lock file that no process holds. A process that is about to lock it will notice.
fn remove_unlocked(path: &Path) {
    let Ok(file) = dirs::open(path, OFlags::empty()) else { return };
    if file.try_lock().is_ok() && is_at(&file, path) {
        let _ = paths::remove_file(path);
    }
}

/// The open lock file of an image. The program locks it and then checks [`LockFile::is_current`].
#[derive(Debug)]
pub struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    /// Opens the lock file of an image, or creates it. Returns `None` if this user cannot have one:
    /// only the owner of an image and the superuser can, and only if a directory in memory exists.
    ///
    /// # Errors
    /// A call of the operating system failed.
    pub fn open(image: &File) -> io::Result<Option<LockFile>> {
        let meta = image.metadata()?;
        let user = dirs::user_of(&meta);
        let Some(bases) = dirs::bases(None).ok().filter(|_| user == meta.uid()) else { return Ok(None) };
        for _ in 0..TRIES {
            let Ok(dir) = dirs::private_dir(&bases, user) else { return Ok(None) };
            let path = dir.join(format!("{}{:x}-{:x}{}", NAME.0, meta.dev(), meta.ino(), NAME.1));
            let file = dirs::open(&path, OFlags::empty());
            let create_missing = |e: io::Error| match e.kind() {
                ErrorKind::NotFound => {
                    let file = dirs::open(&path, OFlags::CREATE | OFlags::EXCL)?;
                    // Root creates the file on behalf of the image's owner.
                    if rustix::process::geteuid().as_raw() != user {
                        std::os::unix::fs::fchown(&file, Some(user), None)?;
                    }
                    Ok(file)
                }
                _ => Err(e),
            };
            match file.or_else(create_missing) {
                // Created by another process just now, or removed with its directory: try again.
                Err(e) if [ErrorKind::AlreadyExists, ErrorKind::NotFound].contains(&e.kind()) => {}
                file => return file.map(|file| Some(LockFile { file, path })),
            }
        }
        Err(ErrorKind::ResourceBusy.into())
    }

    /// Returns the file, for locking.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns `true` if the file is still the lock file of the image.
    #[must_use]
    pub fn is_current(&self) -> bool {
        is_at(&self.file, &self.path)
    }

    /// Removes the file, which the caller has locked, and lock files that killed processes left
    /// beside it.
    pub fn remove(&self) {
        let _ = paths::remove_file(&self.path);
        let Some(dir) = self.path.parent() else { return };
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(NAME.0) && name.ends_with(NAME.1) {
                remove_unlocked(&entry.path());
            }
        }
        dirs::remove_if_empty(dir);
    }
}
