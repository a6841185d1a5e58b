//! Locks of volumes and images.
//!
//! Any user who may read a file can take a lock on it (flock), and so lock out its owner. A volume
//! is therefore locked by a separate file, [`FILE_NAME`], which only its owner can open. Superblock
//! and media are locked as well, because older versions of frit lock only those, and to keep two
//! volumes from using one medium. On these files, a lock held by a user who cannot write to the
//! file is ignored.

mod holders;

use crate::error::{Error, Result, io};
use frit_core::paths::{OpenOptions, Place};
use holders::first_writer;
pub use holders::locked_by_readers_only;
use rustix::fs::OFlags;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Name of the file in a volume that is locked while the volume is open.
pub const FILE_NAME: &str = "frit.lock";

/// Time for which a lock is retried. Others hold it briefly to inspect the volume, or while a
/// forked child has not yet closed the descriptors that it inherits.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum number of attempts to open the lock file when another program replaces it.
const OPEN_ATTEMPTS: u32 = 10;

/// Locks a file until it is closed (flock). Errors name `dir`. Waits up to half a second for other
/// holders.
///
/// # Errors
/// Another program holds it, or the file cannot be locked.
pub fn lock(file: &File, shared: bool, dir: &Path) -> Result<()> {
    try_lock(file, shared, dir, &|| false).map(drop)
}

/// Locks a file that another lock protects as well. If users who cannot write to the file hold a
/// lock on it, the file stays unlocked. Returns `true` if it is locked.
///
/// # Errors
/// As for [`lock`].
pub fn lock_ignoring_readers(file: &File, shared: bool, dir: &Path) -> Result<bool> {
    try_lock(file, shared, dir, &|| locked_by_readers_only(file))
}

fn try_lock(file: &File, shared: bool, dir: &Path, pass: &dyn Fn() -> bool) -> Result<bool> {
    let begin = Instant::now();
    loop {
        match if shared { file.try_lock_shared() } else { file.try_lock() } {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if pass() => return Ok(false),
            Err(TryLockError::WouldBlock) if begin.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(LOCK_RETRY_INTERVAL);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::InUse { dir: dir.into(), by: holder(file) });
            }
            Err(TryLockError::Error(e)) => return Err(io(format!("cannot lock {}", dir.display()))(e)),
        }
    }
}

/// Returns the holder of a lock on the file, for an error message.
fn holder(file: &File) -> String {
    let all = file.metadata().map(|meta| holders::holders(&meta)).unwrap_or_default();
    all.iter().find(|holder| holder.is_known()).map(|holder| format!(" by {holder}")).unwrap_or_default()
}

/// Returns the holder of a volume's lock; an empty text if its process is unknown. Older versions
/// lock `superblock`.
pub(crate) fn volume_holder(dir: &Path, superblock: &File) -> Option<String> {
    let lock = dir.join(FILE_NAME).metadata().ok();
    let held = lock.and_then(|meta| holders::holders(&meta).into_iter().next());
    let held = held.or_else(|| first_writer(&superblock.metadata().ok()?));
    held.map(|holder| if holder.is_known() { holder.to_string() } else { String::new() })
}

/// The lock of a volume, held until this is dropped.
#[derive(Debug)]
pub(crate) struct VolumeLock {
    /// `None` on a read-only file system without a lock file, where no writer can exist.
    _file: Option<File>,
}

impl VolumeLock {
    /// Locks the volume in `dir`, which exists: exclusively, or shared with other readers.
    ///
    /// # Errors
    /// Another program has the volume open; the lock file may not be opened by this user.
    pub(crate) fn acquire(dir: &Path, shared: bool) -> Result<VolumeLock> {
        let path = dir.join(FILE_NAME);
        for _ in 0..OPEN_ATTEMPTS {
            let Some(file) = open(&path, shared)? else { return Ok(VolumeLock { _file: None }) };
            lock(&file, shared, dir).map_err(|e| with_mode_hint(e, &file, &path))?;
            // The file may have been replaced between opening and locking it; a lock on a replaced
            // file protects nothing, so the attempt is repeated.
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

/// Opens the lock file, or creates it. Returns `None` if there is none and the file system is
/// read-only.
fn open(path: &Path, shared: bool) -> Result<Option<File>> {
    // Another user may have put any kind of file here: do not block on a FIFO, do not follow a
    // symbolic link.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let cannot = |e| io(format!("cannot open the lock file {}", path.display()))(e);
    let place = Place::of_name(path).map_err(cannot)?;
    // The refusal of a link or of a foreign file has a message of its own.
    let is_denied =
        |e: &std::io::Error| e.kind() == ErrorKind::PermissionDenied && e.raw_os_error().is_some();
    for _ in 0..OPEN_ATTEMPTS {
        let mut existing = OpenOptions::new();
        existing.read(true).write(!shared).flags(flags).any_user(true);
        match existing.open_at(&place) {
            Ok(file) if file.metadata().is_ok_and(|meta| meta.is_file()) => return Ok(Some(file)),
            Ok(_) => return Err(cannot(std::io::Error::other("it is not a regular file"))),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) if is_denied(&e) && shared => {
                return Err(permission_error(path));
            }
            Err(e) => return Err(cannot(e)),
        }
        match crate::access::new_private().open_at(&place) {
            Ok(file) => chown_to_dir_owner(&file, &place).map_err(cannot)?,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem && shared => return Ok(None),
            Err(e) if is_denied(&e) && shared => {
                return Err(permission_error(path));
            }
            Err(e) => return Err(cannot(e)),
        }
    }
    Err(cannot(ErrorKind::ResourceBusy.into()))
}

/// Adds a hint to the error if the mode of the lock file lets other users lock it.
fn with_mode_hint(e: Error, file: &File, path: &Path) -> Error {
    match (e, file.metadata().map_or(0, |meta| meta.mode() & 0o7777)) {
        (Error::InUse { dir, by }, mode) if mode & 0o066 != 0 => {
            let path = path.display();
            let by =
                format!("{by} (mode {mode:04o} lets other users lock {path}; chmod 600 {path} prevents it)");
            Error::InUse { dir, by }
        }
        (e, _) => e,
    }
}

/// Gives the lock file to the owner of the directory, when the superuser created it.
fn chown_to_dir_owner(file: &File, place: &Place) -> std::io::Result<()> {
    let dir = rustix::fs::fstat(place.dir())?;
    if rustix::process::geteuid().is_root() && dir.st_uid != 0 {
        std::os::unix::fs::fchown(file, Some(dir.st_uid), Some(dir.st_gid))?;
    }
    Ok(())
}

/// Returns the error of a reader without access to the lock file. A reader blocks the owner's
/// writes, so the owner has to allow it.
fn permission_error(path: &Path) -> Error {
    let what = format!(
        "cannot lock the volume for reading: this user may not open {0}. A reader keeps the owner \
         from writing. To allow the group to read, open the volume once as its owner, then run chmod g+r {0}",
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
        // A holder that releases the lock within the waiting time is no error.
        std::thread::spawn(move || {
            std::thread::sleep(LOCK_RETRY_INTERVAL * 4);
            drop(first);
        });
        lock(&second, true, dir.path()).unwrap();
        lock(&File::open(&path).unwrap(), true, dir.path()).unwrap();
    }

    #[test]
    fn a_lock_file_that_is_replaced_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let reader = VolumeLock::acquire(dir.path(), true).unwrap();
        let another = VolumeLock::acquire(dir.path(), true).unwrap();
        assert!(VolumeLock::acquire(dir.path(), false).unwrap_err().to_string().contains("in use"));
        drop((reader, another));
        let writer = VolumeLock::acquire(dir.path(), false).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(VolumeLock::acquire(dir.path(), true).is_err());
        drop(writer);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        let e = VolumeLock::acquire(dir.path(), false).unwrap_err().to_string();
        assert!(e.contains("cannot open the lock file"), "{e}");
        assert!(!dir.path().join("elsewhere").exists());
    }
}
