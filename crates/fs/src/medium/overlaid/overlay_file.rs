//! Search for the overlay of an image, and creation of one.

use super::dirs::{self, RAMFS, TMPFS};
use super::disk::Disk;
use super::files::ImageFile;
use super::log::SyncStamp;
use super::overlay_mark::{MARK, read_mark, write_mark};
use super::store::{IMAGE_WORDS, OverlayStore};
use crate::error::{Error, Result};
use crate::format::{BLOCK, uuid_in};
use frit_core::paths;
use rustix::fs::OFlags;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

const HUGETLBFS: u64 = 0x9584_58f6;
/// Prefix and suffix of the name of an overlay.
pub(super) const NAME: (&str, &str) = ("frit-", ".overlay");
/// Maximum number of attempts to create an overlay when other processes remove its empty directory.
const TRIES: u32 = 100;
/// Time limit for acquiring a lock.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(5);

/// Options for unsynced changes of an image on a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OverlayOptions {
    /// Directory in memory (tmpfs). `None`: /dev/shm, else `$XDG_RUNTIME_DIR`. Overlays are in a
    /// private directory of the user in it, or directly in it if it is private.
    pub dir: Option<PathBuf>,
    /// Maximum memory in bytes. A write performs a sync when half of it is used.
    pub bound: u64,
}

impl Default for OverlayOptions {
    fn default() -> Self {
        Self { dir: None, bound: 256 << 20 }
    }
}

/// Returns `true` if a file is on a file system in memory.
pub(in crate::medium) fn in_memory(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|fs| [TMPFS, RAMFS, HUGETLBFS].contains(&(fs.f_type as u64)))
}

/// The image whose overlay is searched, and where to search.
pub(super) struct OverlaySearch<'a> {
    pub(super) disk: &'a ImageFile,
    /// Device, inode, time of birth, bytes, UUID.
    pub(super) image: [u64; IMAGE_WORDS],
    /// Base directories in memory, and the users whose directories in them are searched.
    bases: Vec<PathBuf>,
    user: u32,
    owner: u32,
}

impl<'a> OverlaySearch<'a> {
    pub(super) fn new(disk: &'a ImageFile, overlay: &OverlayOptions) -> Result<Self> {
        let bases = dirs::bases(overlay.dir.as_deref())?;
        let meta = disk.image().metadata().map_err(os("cannot stat", disk.path()))?;
        let image = identity(disk).map_err(os("cannot stat", disk.path()))?;
        Ok(Self { disk, image, bases, user: dirs::user_of(&meta), owner: meta.uid() })
    }

    /// Returns `true` if files of a user are trusted, because the user can change the image anyway.
    pub(super) fn trusts(&self, user: u32) -> bool {
        [0, self.owner, rustix::process::geteuid().as_raw()].contains(&user)
    }

    /// Returns all directories that may contain overlays of these users. Older versions of the
    /// program used the base directories themselves.
    pub(super) fn dirs(&self) -> Vec<PathBuf> {
        let mut users = vec![self.user, self.owner, rustix::process::geteuid().as_raw()];
        users.dedup();
        let user_dirs =
            |base: &PathBuf| users.iter().flat_map(|user| dirs::of_user(base, *user)).collect::<Vec<_>>();
        let mut all: Vec<PathBuf> =
            self.bases.iter().flat_map(user_dirs).chain(self.bases.iter().cloned()).collect();
        let mut seen = std::collections::HashSet::new();
        all.retain(|dir| seen.insert(dir.clone()));
        all
    }

    /// Returns the name of the overlay, which identifies the image file independently of its path.
    /// The time of birth is included because an inode number may be reused for another file at
    /// once.
    fn name(&self) -> String {
        let [device, inode, birth, ..] = self.image;
        format!("{}{device:x}-{inode:x}-{birth:x}{}", NAME.0, NAME.1)
    }

    /// Returns possible paths of the overlay: the one named by the image, then those in all
    /// directories.
    fn candidates(&self) -> Result<Vec<PathBuf>> {
        let [device, inode, ..] = self.image;
        // The name in older versions of the program.
        let older = format!("{}{device:x}-{inode:x}{}", NAME.0, NAME.1);
        let names = [self.name(), older];
        let dirs = self.dirs();
        let searched = dirs.iter().flat_map(|dir| names.iter().map(|name| dir.join(name)));
        Ok(self.marked()?.into_iter().chain(searched).collect())
    }

    /// Returns the overlay that the image names, if it exists and belongs to this image.
    fn marked(&self) -> Result<Option<PathBuf>> {
        let Some(path) = read_mark(self.disk.image()) else { return Ok(None) };
        match dirs::open(&path, OFlags::empty()) {
            Ok(file) => {
                let of = OverlayStore::image_of(&file).ok().flatten();
                Ok(of.filter(|(of, _)| of[..3] == self.image[..3]).map(|_| path))
            }
            Err(e) if e.raw_os_error().is_some() && e.kind() == ErrorKind::PermissionDenied => {
                Err(Error::Image(format!(
                    "changes that a killed process made to {0} are in {1}, which this user cannot open: open it once as \
                 the user who did before, or as root. If {0} is a copy, setfattr -x {MARK} {0} continues without them",
                    self.disk.path().display(),
                    path.display()
                )))
            }
            Err(_) => Ok(None),
        }
    }

    /// Finds the existing overlay; returns it locked, with its path.
    pub(super) fn find_existing(&self) -> Result<Option<(File, PathBuf)>> {
        for path in self.candidates()? {
            if let Some(file) = open_locked(&path, self)? {
                // A name of an older version may refer to a file that had this inode number before.
                let of = OverlayStore::image_of(&file).map_err(os("cannot use", &path))?;
                if of.is_none_or(|(of, _)| of[..3] == self.image[..3]) {
                    return Ok(Some((file, path)));
                }
            }
        }
        Ok(None)
    }

    /// Creates an overlay and records its path in the image.
    pub(super) fn create(&self, at: SyncStamp) -> Result<(OverlayStore, PathBuf)> {
        for _ in 0..TRIES {
            let dir = dirs::private_dir(&self.bases, self.user)?;
            let path = dir.join(self.name());
            let made = dirs::open(&path, OFlags::CREATE | OFlags::EXCL);
            let file = match made {
                // Another process removed the directory as empty: try again.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                made => made.map_err(os("cannot create", &path))?,
            };
            lock(&file, self.disk)?;
            let store = self.chown_to_dir_owner(&file).and_then(|()| self.store(file, at));
            if store.is_err() {
                let _ = paths::remove_file(&path);
            }
            let store = store.map_err(os("cannot create", &path))?;
            write_mark(self.disk.image(), &path);
            return Ok((store, path));
        }
        Err(os("cannot create the overlay of", self.disk.path())(ErrorKind::ResourceBusy.into()))
    }

    /// Changes the owner of an overlay to the owner of its directory.
    fn chown_to_dir_owner(&self, file: &File) -> io::Result<()> {
        if rustix::process::geteuid().as_raw() == self.user {
            return Ok(());
        }
        std::os::unix::fs::fchown(file, Some(self.user), None)
    }

    pub(super) fn store(&self, file: File, at: SyncStamp) -> io::Result<OverlayStore> {
        let store = OverlayStore::make(
            file,
            self.disk.bytes(),
            self.image,
            self.disk.path().as_os_str().as_bytes(),
            at,
        )?;
        store.set_file_system(file_system_of(self.disk.image()));
        Ok(store)
    }
}

/// Returns an ID of the file system that contains a file, which differs from others on the same
/// device; 0 if unknown.
pub(super) fn file_system_of(file: &File) -> u64 {
    const EXT: u64 = 0xef53;
    const BTRFS: u64 = 0x9123_683e;
    // Other file systems derive `f_fsid` from the device number.
    let known = rustix::fs::fstatfs(file).is_ok_and(|fs| [EXT, BTRFS].contains(&(fs.f_type as u64)));
    if known { rustix::fs::fstatvfs(file).map_or(0, |fs| fs.f_fsid) } else { 0 }
}

/// Returns the identity of an image: device, inode, time of birth, bytes, UUID.
fn identity(disk: &ImageFile) -> io::Result<[u64; IMAGE_WORDS]> {
    let meta = disk.image().metadata()?;
    let born = meta.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let born = born.map_or(0, |born| born.as_nanos() as u64);
    let mut first = [0; BLOCK as usize];
    disk.read_image(0, &mut first);
    let [low, high] = uuid_in(&first);
    Ok([meta.dev(), meta.ino(), born, disk.bytes(), low, high])
}

/// Returns `true` if an overlay belongs to an image. A UUID of zeros, before a format, matches any.
pub(super) fn same(overlay: &[u64; IMAGE_WORDS], image: &[u64; IMAGE_WORDS]) -> bool {
    let unnamed = [overlay, image].iter().any(|one| one[4..] == [0; 2]);
    overlay[..4] == image[..4] && (unnamed || overlay[4..] == image[4..])
}

pub(super) fn os(what: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::Os { what, path: path.clone(), error }
}

/// Locks an overlay. Other processes that inspect it hold its lock for a moment, hence the retries.
fn lock(file: &File, disk: &ImageFile) -> Result<()> {
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begin.elapsed() < LOCK_TIMEOUT => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                let path = disk.path().display();
                return Err(Error::Image(format!("{path} is in use by another program")));
            }
            Err(TryLockError::Error(e)) => return Err(os("cannot lock the overlay of", disk.path())(e)),
        }
    }
}

/// Opens an existing overlay with an exclusive lock. Files of users who cannot change the image are
/// skipped.
fn open_locked(path: &Path, wanted: &OverlaySearch<'_>) -> Result<Option<File>> {
    loop {
        let trusted =
            path.symlink_metadata().is_ok_and(|meta| meta.is_file() && is_trusted(path, &meta, wanted));
        if !trusted {
            return Ok(None);
        }
        let file = match dirs::open(path, OFlags::empty()) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            Err(e) => return Err(os("cannot open", path)(e)),
        };
        let meta = file.metadata().map_err(os("cannot stat", path))?;
        if !is_trusted(path, &meta, wanted) {
            return Ok(None);
        }
        lock(&file, wanted.disk)?;
        // The previous owner may have removed the file before it released the lock.
        if file.metadata().map_err(os("cannot stat", path))?.nlink() > 0 {
            return Ok(Some(file));
        }
    }
}

/// Returns `true` if an overlay belongs to a user who can change the image, or is in a private
/// directory of its owner and named by the image itself.
fn is_trusted(path: &Path, file: &std::fs::Metadata, wanted: &OverlaySearch<'_>) -> bool {
    let dir = path.parent().and_then(|dir| dir.metadata().ok());
    let private = || dir.is_some_and(|dir| dirs::is_private(&dir, file.uid()));
    // A hard link may have been created by another user.
    let marked = || private() && read_mark(wanted.disk.image()).is_some_and(|mark| mark == path);
    file.nlink() <= 1 && (wanted.trusts(file.uid()) || marked())
}
