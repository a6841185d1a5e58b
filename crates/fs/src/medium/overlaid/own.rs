//! The lock file of an image, in a directory that no other user can enter: any user who may read the image itself can
//! lock it, and so lock out its owner.

use super::dirs;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Attempts to make the file again when another process has removed it or its directory.
const TRIES: u32 = 100;
/// Beginning and end of the name of a lock file.
const NAME: (&str, &str) = ("frit-", ".lock");

/// Returns `true` if a path names the file that is open.
fn is_at(file: &File, path: &Path) -> bool {
    match (path.symlink_metadata(), file.metadata()) {
        (Ok(now), Ok(own)) => (now.dev(), now.ino()) == (own.dev(), own.ino()),
        _ => false,
    }
}

/// Removes a lock file that no process holds. Another that is about to lock it sees that it is gone.
fn remove_unlocked(path: &Path) {
    let Ok(file) = dirs::open(path, OFlags::empty()) else { return };
    if file.try_lock().is_ok() && is_at(&file, path) {
        let _ = std::fs::remove_file(path);
    }
}

/// The lock file of an image, open. It is for the program to lock, and to ask then whether it is still the one.
#[derive(Debug)]
pub struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    /// Opens the lock file of an image, or makes it. `None` where this user can have none: only the owner of an image
    /// and the superuser can, and only where there is a directory in memory.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn open(image: &File) -> io::Result<Option<LockFile>> {
        let meta = image.metadata()?;
        let user = dirs::user_of(&meta);
        let Some(bases) = dirs::bases(None).ok().filter(|_| user == meta.uid()) else { return Ok(None) };
        for _ in 0..TRIES {
            let Ok(dir) = dirs::home(&bases, user) else { return Ok(None) };
            let path = dir.join(format!("{}{:x}-{:x}{}", NAME.0, meta.dev(), meta.ino(), NAME.1));
            let file = dirs::open(&path, OFlags::empty());
            let made = |e: io::Error| match e.kind() {
                ErrorKind::NotFound => {
                    let file = dirs::open(&path, OFlags::CREATE | OFlags::EXCL)?;
                    if rustix::process::geteuid().as_raw() != user {
                        std::os::unix::fs::fchown(&file, Some(user), None)?;
                    }
                    Ok(file)
                }
                _ => Err(e),
            };
            match file.or_else(made) {
                // Made by another process just now, or gone with the directory.
                Err(e) if [ErrorKind::AlreadyExists, ErrorKind::NotFound].contains(&e.kind()) => {}
                file => return file.map(|file| Some(LockFile { file, path })),
            }
        }
        Err(ErrorKind::ResourceBusy.into())
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns `true` if the file that was locked is still the lock file of the image.
    #[must_use]
    pub fn is_current(&self) -> bool {
        is_at(&self.file, &self.path)
    }

    /// Removes the file, which the caller has locked, and those that killed processes left beside it.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
        let Some(dir) = self.path.parent() else { return };
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(NAME.0) && name.ends_with(NAME.1) {
                remove_unlocked(&entry.path());
            }
        }
        dirs::tidy(dir);
    }
}
