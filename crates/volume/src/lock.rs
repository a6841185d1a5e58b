//! Locks of volumes and images.
//!
//! Any user who may read a file can take a lock of it (flock), and so lock out its owner. A volume is therefore locked
//! by a file of its own, [`FILE_NAME`], which its owner alone can open. Superblock and media are locked as well, as
//! older versions of frit do it and against two volumes over one medium; there a lock of a user who cannot write to
//! the file is passed over.

mod holders;

use crate::error::{Error, Result, io};
pub use holders::are_readers;
use holders::writer;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The name of the file in a volume that is locked while the volume is open.
pub const FILE_NAME: &str = "frit.lock";

/// How long a lock is asked for again: others hold it for a moment to look at the volume, or while a child
/// that they fork has not yet closed what it inherits.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(5);
/// Attempts to open the lock file again when another program has replaced it.
const TRIES: u32 = 10;

/// Locks a file until it is closed (flock); `dir` is what errors name. Others that hold it are waited for, half a
/// second.
///
/// # Errors
/// Another program holds it, or the file cannot be locked.
pub fn lock(file: &File, shared: bool, dir: &Path) -> Result<()> {
    try_lock(file, shared, dir, &|| false).map(drop)
}

/// The same for a file that another lock protects as well: where users who cannot write to the file keep it from being
/// locked, it is not. Returns `true` if it is locked.
///
/// # Errors
/// As for [`lock`].
pub fn lock_beside(file: &File, shared: bool, dir: &Path) -> Result<bool> {
    try_lock(file, shared, dir, &|| are_readers(file))
}

fn try_lock(file: &File, shared: bool, dir: &Path, pass: &dyn Fn() -> bool) -> Result<bool> {
    let begin = Instant::now();
    loop {
        match if shared { file.try_lock_shared() } else { file.try_lock() } {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if pass() => return Ok(false),
            Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::InUse { dir: dir.into(), by: holder(file) });
            }
            Err(TryLockError::Error(e)) => return Err(io(format!("cannot lock {}", dir.display()))(e)),
        }
    }
}

/// Who holds a lock on the file, for an error message.
fn holder(file: &File) -> String {
    let all = file.metadata().map(|meta| holders::holders(&meta)).unwrap_or_default();
    all.iter().find(|holder| holder.is_known()).map(|holder| format!(" by {holder}")).unwrap_or_default()
}

/// The holder of a volume's lock, as far as it can be told; empty: somebody. `superblock`: what older versions lock.
pub(crate) fn held(dir: &Path, superblock: &File) -> Option<String> {
    let lock = dir.join(FILE_NAME).metadata().ok();
    let held = lock.and_then(|meta| holders::holders(&meta).into_iter().next());
    let held = held.or_else(|| writer(&superblock.metadata().ok()?));
    held.map(|holder| if holder.is_known() { holder.to_string() } else { String::new() })
}

/// The lock of a volume, held until this is dropped.
#[derive(Debug)]
pub(crate) struct VolumeLock {
    /// `None` on a file system that nobody can write to.
    _file: Option<File>,
}

impl VolumeLock {
    /// Locks the volume in `dir`, which exists: for itself alone, or shared with others that only read.
    ///
    /// # Errors
    /// Another program has it open; a lock file that this user may not open.
    pub(crate) fn take(dir: &Path, shared: bool) -> Result<VolumeLock> {
        let path = dir.join(FILE_NAME);
        for _ in 0..TRIES {
            let Some(file) = open(&path, shared)? else { return Ok(VolumeLock { _file: None }) };
            lock(&file, shared, dir).map_err(|e| widened(e, &file, &path))?;
            let same = |now: std::fs::Metadata, locked: std::fs::Metadata| {
                (now.dev(), now.ino()) == (locked.dev(), locked.ino())
            };
            if let (Ok(now), Ok(locked)) = (path.symlink_metadata(), file.metadata())
                && same(now, locked)
            {
                return Ok(VolumeLock { _file: Some(file) });
            }
        }
        let e = ErrorKind::ResourceBusy.into();
        Err(io(format!("cannot lock {}: it is replaced again and again", path.display()))(e))
    }
}

/// Opens the lock file, or makes it. `None` where there is none, and nobody can write.
fn open(path: &Path, shared: bool) -> Result<Option<File>> {
    // A file that somebody else put there may be anything: a pipe is not waited for, a link not followed.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let cannot = |e| io(format!("cannot open the lock file {}", path.display()))(e);
    for _ in 0..TRIES {
        match OpenOptions::new().read(true).write(!shared).custom_flags(flags).open(path) {
            Ok(file) if file.metadata().is_ok_and(|meta| meta.is_file()) => return Ok(Some(file)),
            Ok(_) => return Err(cannot(std::io::Error::other("it is no regular file"))),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) if e.kind() == ErrorKind::PermissionDenied && shared => return Err(no_right(path)),
            Err(e) => return Err(cannot(e)),
        }
        match crate::access::new_private().open(path) {
            Ok(file) => give(&file, path).map_err(cannot)?,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem && shared => return Ok(None),
            Err(e) if e.kind() == ErrorKind::PermissionDenied && shared => return Err(no_right(path)),
            Err(e) => return Err(cannot(e)),
        }
    }
    Err(cannot(ErrorKind::ResourceBusy.into()))
}

/// Says so where the mode of the lock file lets others lock it.
fn widened(e: Error, file: &File, path: &Path) -> Error {
    match (e, file.metadata().map_or(0, |meta| meta.mode() & 0o7777)) {
        (Error::InUse { dir, by }, mode) if mode & 0o066 != 0 => {
            let path = path.display();
            let by =
                format!("{by} (mode {mode:04o} lets other users lock {path}; chmod 600 {path} ends that)");
            Error::InUse { dir, by }
        }
        (e, _) => e,
    }
}

/// Gives the lock file to the owner of the directory, when the superuser made it.
fn give(file: &File, path: &Path) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/")).metadata()?;
    if rustix::process::geteuid().is_root() && dir.uid() != 0 {
        std::os::unix::fs::fchown(file, Some(dir.uid()), Some(dir.gid()))?;
    }
    Ok(())
}

/// A reader keeps the owner from writing, which the owner has to allow.
fn no_right(path: &Path) -> Error {
    let what = format!(
        "cannot lock the volume for reading: this user may not open {0}. Who reads keeps its owner from writing \
         meanwhile: as the owner, open it once, then chmod g+r {0} allows that to the group",
        path.display()
    );
    io(what)(ErrorKind::PermissionDenied.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let first = File::create(&path).unwrap();
        lock(&first, false, dir.path()).unwrap();
        let second = File::open(&path).unwrap();
        let e = lock(&second, true, dir.path()).unwrap_err().to_string();
        assert!(e.contains("in use") && e.contains(&format!("by process {}", std::process::id())), "{e}");
        // Somebody who is about to go is waited for.
        std::thread::spawn(move || {
            std::thread::sleep(PAUSE * 4);
            drop(first);
        });
        lock(&second, true, dir.path()).unwrap();
        lock(&File::open(&path).unwrap(), true, dir.path()).unwrap();
    }

    #[test]
    fn a_lock_file_that_is_replaced_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let reader = VolumeLock::take(dir.path(), true).unwrap();
        let another = VolumeLock::take(dir.path(), true).unwrap();
        assert!(VolumeLock::take(dir.path(), false).unwrap_err().to_string().contains("in use"));
        drop((reader, another));
        let writer = VolumeLock::take(dir.path(), false).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(VolumeLock::take(dir.path(), true).is_err());
        drop(writer);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        let e = VolumeLock::take(dir.path(), false).unwrap_err().to_string();
        assert!(e.contains("cannot open the lock file"), "{e}");
        assert!(!dir.path().join("elsewhere").exists());
    }
}
