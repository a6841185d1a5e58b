//! The superblock file with its two copies: locking, reading, updating.

use super::encoding::{DecodeError, decode, encode};
use super::{Superblock, VolumeState};
use crate::access::new_private;
use crate::error::{Error, Result, io};
use crate::lock::{self, VolumeLock};
use frit_core::paths::{self, OpenOptions};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Name of the superblock file in a volume.
pub const FILE_NAME: &str = "frit.volume";
/// Name of the superblock file until it is complete.
pub(crate) const TEMP_FILE_NAME: &str = "frit.volume.new";
/// Maximum size of one copy, in bytes.
pub const COPY_BYTES: usize = 64 << 10;

/// Maximum number of repeated reads of a superblock that another process may be writing.
const PEEK_ATTEMPTS: u32 = 5;

/// The superblock file. The volume is locked until this is dropped.
#[derive(Debug)]
pub struct SuperblockFile {
    lock: VolumeLock,
    file: File,
    path: PathBuf,
    /// The current contents of the file.
    pub(crate) current: Superblock,
    /// The defect of the other copy, if any.
    other_copy_defect: Option<String>,
}

impl SuperblockFile {
    /// Opens and locks the superblock of the volume in `dir`: exclusively, or shared for reading
    /// only.
    ///
    /// # Errors
    /// The directory is not a volume; the volume is in use; no copy is valid; the version or
    /// features are unknown to this version of frit.
    pub fn open(dir: &Path, read_only: bool) -> Result<SuperblockFile> {
        let path = dir.join(FILE_NAME);
        drop(open(dir, &path, read_only)?);
        let lock = VolumeLock::acquire(dir, read_only)?;
        // The superblock may have been replaced before it was locked: it is opened again.
        let file = open(dir, &path, read_only)?;
        lock::lock_ignoring_readers(&file, read_only, dir)?;
        let (now, other) = read(&file, &path)?;
        let unknown = now.features.read_only;
        if unknown != 0 && !read_only {
            let why = format!(
                "the volume has features (bits {unknown:#x}) with which this frit can only read it; open it \
                 read-only, or use a newer frit"
            );
            return Err(Error::Superblock { path, why });
        }
        Ok(SuperblockFile { lock, file, path, current: now, other_copy_defect: other })
    }

    /// Returns the lock of the volume and the contents, without the file.
    pub(crate) fn into_lock(self) -> (VolumeLock, Superblock) {
        (self.lock, self.current)
    }

    /// Returns the reason if the file was deleted since it was opened; updates of it would be lost.
    pub(crate) fn unusable_reason(&self) -> Option<String> {
        let is_deleted = self.file.metadata().is_ok_and(|m| m.nlink() == 0);
        is_deleted.then(|| {
            format!(
                "{} was deleted; copy what is still readable before the program ends",
                self.path.display()
            )
        })
    }

    /// Reads the superblock without a lock. Returns its contents, the defect of its other copy, and
    /// the process that has the volume open. A concurrent update invalidates one copy at most; the
    /// other one is read.
    pub(crate) fn peek(dir: &Path) -> Result<(Superblock, Option<String>, Option<String>)> {
        let path = dir.join(FILE_NAME);
        let file = open(dir, &path, true)?;
        let in_use = lock::volume_holder(dir, &file);
        let mut found = read(&file, &path);
        for _ in 0..PEEK_ATTEMPTS {
            if found.is_ok() || in_use.is_none() {
                break;
            }
            // Two updates in a row may have invalidated each copy while it was read.
            found = read(&file, &path);
        }
        let (now, other) = found?;
        Ok((now, other, in_use))
    }

    /// Creates the file, or replaces an existing one, under the lock of the volume. It is written
    /// under another name first, so that the superblock is either complete or missing.
    pub(crate) fn create(dir: &Path, first: Superblock, lock: VolumeLock) -> Result<SuperblockFile> {
        let path = dir.join(FILE_NAME);
        let new = dir.join(TEMP_FILE_NAME);
        let what = |what: &str| io(format!("cannot {what} {}", new.display()));
        remove_stale_copy(&new, dir)?;
        let file = new_private().open(&new).map_err(what("make"))?;
        lock::lock(&file, false, dir)?;
        let zeros = vec![0; 2 * COPY_BYTES];
        file.write_all_at(&zeros, 0).map_err(what("write"))?;
        let mut created = SuperblockFile { lock, file, path, current: first, other_copy_defect: None };
        let first = created.current.clone();
        created.write(first)?;
        created.file.sync_all().map_err(what("sync"))?;
        paths::rename(&new, &created.path).map_err(what("rename"))?;
        sync_dir(dir)?;
        Ok(created)
    }

    /// Returns the contents of the superblock.
    #[must_use]
    pub fn current(&self) -> &Superblock {
        &self.current
    }

    /// Returns the defect of the older copy, if any; the next update repairs it.
    #[must_use]
    pub fn damaged_copy(&self) -> Option<&str> {
        self.other_copy_defect.as_deref()
    }

    /// Changes the superblock; the change is durable when this returns.
    pub(crate) fn update(&mut self, change: impl FnOnce(&mut Superblock)) -> Result<()> {
        let mut next = self.current.clone();
        change(&mut next);
        next.sequence += 1;
        self.write(next)
    }

    /// Sets the state and the boot ID, unless they are current.
    pub(crate) fn set_state(&mut self, state: VolumeState, boot_id: [u8; 16]) -> Result<()> {
        if (self.current.state, self.current.boot_id) == (state, boot_id) {
            return Ok(());
        }
        self.update(|s| (s.state, s.boot_id) = (state, boot_id))
    }

    /// Overwrites the older copy. Even sequence numbers go to the first copy.
    fn write(&mut self, next: Superblock) -> Result<()> {
        let bytes = encode(&next);
        if bytes.len() > COPY_BYTES {
            let why = format!(
                "stack and parameters take {} bytes, and there is room for {COPY_BYTES}; shorten the stack's texts",
                bytes.len()
            );
            return Err(Error::Superblock { path: self.path.clone(), why });
        }
        let at = (next.sequence % 2) * COPY_BYTES as u64;
        let cannot = |source| io(format!("cannot write the superblock {}", self.path.display()))(source);
        self.file.write_all_at(&bytes, at).map_err(cannot)?;
        // `next` replaces `self.current` only when it is durable.
        self.file.sync_data().map_err(cannot)?;
        self.current = next;
        self.other_copy_defect = None;
        Ok(())
    }
}

/// Removes the file of an interrupted creation, unless an older frit holds a lock on it.
fn remove_stale_copy(new: &Path, dir: &Path) -> Result<()> {
    let cannot = |e| io(format!("cannot remove {}", new.display()))(e);
    let Ok(meta) = new.symlink_metadata() else { return Ok(()) };
    if meta.is_file() {
        let mut options = OpenOptions::new();
        options.read(true).any_user(true).flags(OFlags::NOFOLLOW | OFlags::NONBLOCK);
        lock::lock_ignoring_readers(&options.open(new).map_err(cannot)?, false, dir)?;
    }
    paths::remove_file(new).map_err(cannot)
}

/// Syncs the directory that contains `path`.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_dir(Path::new(".")),
        Some(parent) => sync_dir(parent),
        None => Ok(()),
    }
}

fn open(dir: &Path, path: &Path, read_only: bool) -> Result<File> {
    OpenOptions::new().read(true).write(!read_only).any_user(true).open(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Error::NotAVolume {
            dir: dir.into(),
            why: if dir.is_dir() {
                format!("the directory has no {FILE_NAME}; frit create makes one")
            } else if dir.exists() {
                "it is not a directory, and a volume is one".into()
            } else {
                "there is no such directory; frit create makes one".into()
            },
        },
        _ => io(format!("cannot open {}", path.display()))(e),
    })
}

/// Syncs a directory, so that created and renamed files in it survive a power loss.
pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    let cannot = io(format!("cannot sync the directory {}", dir.display()));
    paths::open_dir(dir).and_then(|d| d.sync_all()).map_err(cannot)
}

/// Returns the newest valid copy, and the defect of the other one.
fn read(file: &File, path: &Path) -> Result<(Superblock, Option<String>)> {
    let mut bytes = vec![0; 2 * COPY_BYTES];
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], len as u64) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(io(format!("cannot read {}", path.display()))(e)),
        }
    }
    decode_newest(&bytes[..len]).map_err(|why| Error::Superblock { path: path.into(), why })
}

/// Returns the newest valid copy in the bytes of a superblock file, and the defect of the other
/// one.
///
/// # Errors
/// A message: no copy is valid, or a copy has a version or features that this frit does not know.
pub fn decode_newest(bytes: &[u8]) -> std::result::Result<(Superblock, Option<String>), String> {
    let part =
        |n: usize| bytes.get(n * COPY_BYTES..bytes.len().min((n + 1) * COPY_BYTES)).unwrap_or_default();
    match (decode(part(0)), decode(part(1))) {
        // A copy that a newer frit wrote is never ignored: the other copy is older and obsolete.
        (Err(DecodeError::Refused(why)), _) | (_, Err(DecodeError::Refused(why))) => Err(why),
        (Ok(a), Ok(b)) if a.sequence >= b.sequence => Ok((a, None)),
        (Ok(_), Ok(b)) => Ok((b, None)),
        (Ok(a), Err(DecodeError::Damaged(why))) => Ok((a, copy_defect(why, part(1)))),
        (Err(DecodeError::Damaged(why)), Ok(b)) => Ok((b, copy_defect(why, part(0)))),
        (Err(DecodeError::Damaged(a)), Err(DecodeError::Damaged(b))) => Err(format!(
            "neither copy of the superblock is valid (first: {a}; second: {b}); nothing was changed. Restore the \
             file from a backup; the media files alone do not identify the stack"
        )),
    }
}

/// Returns the defect of a copy; `None` if it was never written.
fn copy_defect(why: String, bytes: &[u8]) -> Option<String> {
    let blank = bytes.len() == COPY_BYTES && bytes.iter().all(|&b| b == 0);
    (!blank).then_some(why)
}
