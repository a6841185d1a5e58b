//! Where the overlay of an image is, and whether one that is found there is of this image as it is now.

use super::Overlaid;
use super::dirs::{self, RAMFS, TMPFS};
use super::disk::Disk;
use super::files::ImageFile;
use super::leftover::{refuse_moved, sweep};
use super::log::{Stamp, recover};
use super::store::{IMAGE_WORDS, Store};
use crate::error::{Error, Result};
use crate::format::{BLOCK, uuid_in};
use frit_core::planted::{Bug, is};
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

const HUGETLBFS: u64 = 0x9584_58f6;
/// How the name of an overlay begins and ends.
pub(super) const NAME: (&str, &str) = ("frit-", ".overlay");
/// The attribute of an image that names its overlay.
const MARK: &str = "user.frit.overlay";
/// Attempts to make an overlay again whose directory another process removed as empty.
const TRIES: u32 = 100;
/// The time for which a lock is asked for again.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(5);

/// Where changes of an image on a disk are until they are synced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overlay {
    /// A directory in memory (tmpfs). `None`: /dev/shm, else `$XDG_RUNTIME_DIR`. Overlays lie in a directory of the
    /// user's own in it, or in it where it is one.
    pub dir: Option<PathBuf>,
    /// Most bytes of memory that they take; when half of it is used a write makes a sync.
    pub bound: u64,
}

impl Default for Overlay {
    fn default() -> Self {
        Self { dir: None, bound: 256 << 20 }
    }
}

/// Whether a file is on a file system in memory.
pub(in crate::medium) fn in_memory(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|fs| [TMPFS, RAMFS, HUGETLBFS].contains(&(fs.f_type as u64)))
}

/// The image that an overlay is looked for, and where.
pub(super) struct Wanted<'a> {
    pub(super) disk: &'a ImageFile,
    /// Device, inode, time of birth, bytes, UUID.
    pub(super) image: [u64; IMAGE_WORDS],
    /// Directories in memory, and which users' directories in them.
    bases: Vec<PathBuf>,
    user: u32,
    owner: u32,
}

impl<'a> Wanted<'a> {
    fn new(disk: &'a ImageFile, overlay: &Overlay) -> Result<Self> {
        let bases = dirs::bases(overlay.dir.as_deref())?;
        let meta = disk.image().metadata().map_err(os("cannot look at", disk.path()))?;
        let image = identity(disk).map_err(os("cannot look at", disk.path()))?;
        Ok(Self { disk, image, bases, user: dirs::user_of(&meta), owner: meta.uid() })
    }

    /// Users whose files are trusted: they can change the image in any case.
    pub(super) fn trusts(&self, user: u32) -> bool {
        [0, self.owner, rustix::process::geteuid().as_raw()].contains(&user)
    }

    /// All directories that have overlays of these users. Older versions put them into the bases themselves.
    pub(super) fn dirs(&self) -> Vec<PathBuf> {
        let mut users = vec![self.user, self.owner, rustix::process::geteuid().as_raw()];
        users.dedup();
        let own =
            |base: &PathBuf| users.iter().flat_map(|user| dirs::of_user(base, *user)).collect::<Vec<_>>();
        let mut all: Vec<PathBuf> =
            self.bases.iter().flat_map(own).chain(self.bases.iter().cloned()).collect();
        let mut seen = std::collections::HashSet::new();
        all.retain(|dir| seen.insert(dir.clone()));
        all
    }

    /// The name of the overlay: the file that it is of, whatever file system that holds. A number of an inode is used
    /// again at once for another file, which has another time of birth.
    fn name(&self) -> String {
        let [device, inode, birth, ..] = self.image;
        format!("{}{device:x}-{inode:x}-{birth:x}{}", NAME.0, NAME.1)
    }

    /// Places of the overlay: the one that the image names, then all that are searched.
    fn candidates(&self) -> Result<Vec<PathBuf>> {
        let [device, inode, ..] = self.image;
        // As older versions name it.
        let older = format!("{}{device:x}-{inode:x}{}", NAME.0, NAME.1);
        let names = [self.name(), older];
        let dirs = self.dirs();
        let searched = dirs.iter().flat_map(|dir| names.iter().map(|name| dir.join(name)));
        Ok(self.marked()?.into_iter().chain(searched).collect())
    }

    /// The overlay that the image names, if that is there and says that it is of this image.
    fn marked(&self) -> Result<Option<PathBuf>> {
        let Some(path) = read_mark(self.disk.image()) else { return Ok(None) };
        match dirs::open(&path, OFlags::empty()) {
            Ok(file) => {
                let of = Store::image_of(&file).ok().flatten();
                Ok(of.filter(|(of, _)| of[..3] == self.image[..3]).map(|_| path))
            }
            Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(Error::Image(format!(
                "changes that a killed process made to {0} are in {1}, which this user cannot open: open it once as \
                 the user who did before, or as root. If {0} is a copy, setfattr -x {MARK} {0} goes on without them",
                self.disk.path().display(),
                path.display()
            ))),
            Err(_) => Ok(None),
        }
    }

    /// The overlay that is there, locked, and its path.
    fn found(&self) -> Result<Option<(File, PathBuf)>> {
        for path in self.candidates()? {
            if let Some(file) = open_locked(&path, self)? {
                // What an older version named may be of a file that had this number before.
                let of = Store::image_of(&file).map_err(os("cannot use", &path))?;
                if of.is_none_or(|(of, _)| of[..3] == self.image[..3]) {
                    return Ok(Some((file, path)));
                }
            }
        }
        Ok(None)
    }

    /// Makes an overlay, and notes its place in the image.
    fn make(&self, at: Stamp) -> Result<(Store, PathBuf)> {
        for _ in 0..TRIES {
            let dir = dirs::home(&self.bases, self.user)?;
            let path = dir.join(self.name());
            let made = dirs::open(&path, OFlags::CREATE | OFlags::EXCL);
            let file = match made {
                // Another process found the directory empty, and removed it.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                made => made.map_err(os("cannot make", &path))?,
            };
            lock(&file, self.disk)?;
            let store = self.give(&file).and_then(|()| self.store(file, at));
            if store.is_err() {
                let _ = std::fs::remove_file(&path);
            }
            let store = store.map_err(os("cannot make", &path))?;
            write_mark(self.disk.image(), &path);
            return Ok((store, path));
        }
        Err(os("cannot make the overlay of", self.disk.path())(ErrorKind::ResourceBusy.into()))
    }

    /// Gives an overlay to the user whose directory it is in.
    fn give(&self, file: &File) -> io::Result<()> {
        if rustix::process::geteuid().as_raw() == self.user {
            return Ok(());
        }
        std::os::unix::fs::fchown(file, Some(self.user), None)
    }

    fn store(&self, file: File, at: Stamp) -> io::Result<Store> {
        let store =
            Store::make(file, self.disk.bytes(), self.image, self.disk.path().as_os_str().as_bytes(), at)?;
        store.set_file_system(file_system_of(self.disk.image()));
        Ok(store)
    }
}

/// A number of the file system that a file is on, which another one under the same device does not have; 0: unknown.
pub(super) fn file_system_of(file: &File) -> u64 {
    const EXT: u64 = 0xef53;
    const BTRFS: u64 = 0x9123_683e;
    // Elsewhere it is made of the device.
    let known = rustix::fs::fstatfs(file).is_ok_and(|fs| [EXT, BTRFS].contains(&(fs.f_type as u64)));
    if known { rustix::fs::fstatvfs(file).map_or(0, |fs| fs.f_fsid) } else { 0 }
}

fn read_mark(image: &File) -> Option<PathBuf> {
    let mut path = vec![0; 4096];
    let len = rustix::fs::fgetxattr(image, MARK, &mut path).ok().filter(|len| *len > 0)?;
    path.truncate(len);
    Some(OsString::from_vec(path).into())
}

/// Where the file system of the image has no attributes, an overlay is found in the directories that are searched.
fn write_mark(image: &File, overlay: &Path) {
    let path = std::path::absolute(overlay).unwrap_or_else(|_| overlay.into());
    let _ = rustix::fs::fsetxattr(image, MARK, path.as_os_str().as_bytes(), rustix::fs::XattrFlags::empty());
}

/// Removes an overlay that is no longer needed, the note of it, and its directory if nothing else is in it.
pub(super) fn remove(image: &File, overlay: &Path) {
    let _ = std::fs::remove_file(overlay);
    let _ = rustix::fs::fremovexattr(image, MARK);
    overlay.parent().map(dirs::tidy);
}

/// Which image it is: device, inode, time of birth, bytes, UUID.
fn identity(disk: &ImageFile) -> io::Result<[u64; IMAGE_WORDS]> {
    let meta = disk.image().metadata()?;
    let born = meta.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let born = born.map_or(0, |born| born.as_nanos() as u64);
    let mut first = [0; BLOCK as usize];
    disk.read_image(0, &mut first);
    let [low, high] = uuid_in(&first);
    Ok([meta.dev(), meta.ino(), born, disk.bytes(), low, high])
}

/// Whether the identity of an overlay is that of an image. Either may have no file system yet.
fn same(overlay: &[u64; IMAGE_WORDS], image: &[u64; IMAGE_WORDS]) -> bool {
    let unnamed = [overlay, image].iter().any(|one| one[4..] == [0; 2]);
    overlay[..4] == image[..4] && (unnamed || overlay[4..] == image[4..])
}

impl Overlaid {
    /// An image in a file that exists, whole.
    ///
    /// # Errors
    /// As [`super::super::Image::open`].
    pub fn open(path: &Path, overlay: &Overlay) -> Result<Self> {
        let disk = ImageFile::open(path)?;
        dirs::bases(overlay.dir.as_deref())?;
        let at = recover(&disk)?;
        Self::find(disk, at, overlay)
    }

    /// The same, and what a stop left of the file system that was there is given up.
    ///
    /// # Errors
    /// As [`super::super::Image::fresh`].
    pub fn fresh(path: &Path, overlay: &Overlay) -> Result<Self> {
        let disk = ImageFile::open(path)?;
        let wanted = Wanted::new(&disk, overlay)?;
        disk.remove_log()?;
        while let Some((file, path)) = wanted.found()? {
            std::fs::remove_file(&path).map_err(os("cannot remove", &path))?;
            drop(file);
            remove(disk.image(), &path);
        }
        let at = Stamp::read(&disk);
        Self::find(disk, at, overlay)
    }

    /// Takes the overlay that is there, or makes one.
    fn find(disk: ImageFile, at: Stamp, overlay: &Overlay) -> Result<Self> {
        let wanted = Wanted::new(&disk, overlay)?;
        let (store, path) = match wanted.found()? {
            Some((file, path)) => (take(file, &path, &wanted, at)?, path),
            None => {
                refuse_moved(&wanted)?;
                wanted.make(at)?
            }
        };
        let notes = sweep(&wanted);
        let mut opened = Self::with(disk, store, Some(path), overlay.bound);
        opened.notes = notes;
        Ok(opened)
    }
}

pub(super) fn os(what: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::Os { what, path: path.clone(), error }
}

/// Others that look at it hold its lock for a moment.
fn lock(file: &File, disk: &ImageFile) -> Result<()> {
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                let path = disk.path().display();
                return Err(Error::Image(format!("{path} is in use by another program")));
            }
            Err(TryLockError::Error(e)) => return Err(os("cannot lock the overlay of", disk.path())(e)),
        }
    }
}

/// An overlay that is there, for nobody else. Files of users who cannot change the image are passed over.
fn open_locked(path: &Path, wanted: &Wanted<'_>) -> Result<Option<File>> {
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
        let meta = file.metadata().map_err(os("cannot look at", path))?;
        if !is_trusted(path, &meta, wanted) {
            return Ok(None);
        }
        lock(&file, wanted.disk)?;
        // Whoever had it before may just have removed it.
        if file.metadata().map_err(os("cannot look at", path))?.nlink() > 0 {
            return Ok(Some(file));
        }
    }
}

/// An overlay is of a user who can change the image, or in a directory of its owner's that the image itself names.
fn is_trusted(path: &Path, file: &std::fs::Metadata, wanted: &Wanted<'_>) -> bool {
    let dir = path.parent().and_then(|dir| dir.metadata().ok());
    let private = || dir.is_some_and(|dir| dirs::is_private(&dir, file.uid()));
    // A second name of a file may be another user's doing.
    let marked = || private() && read_mark(wanted.disk.image()).is_some_and(|mark| mark == path);
    file.nlink() <= 1 && (wanted.trusts(file.uid()) || marked())
}

/// Goes on with an overlay, if it is of the image and of the sync that this is at, or has no changes.
fn take(file: File, path: &Path, wanted: &Wanted<'_>, at: Stamp) -> Result<Store> {
    let (disk, image) = (wanted.disk, &wanted.image);
    let again = |file| wanted.store(file, at).map_err(os("cannot make", path));
    let Some((of, _)) = Store::image_of(&file).map_err(os("cannot use", path))? else { return again(file) };
    let store = Store::map(file, of[3]).map_err(os("cannot map", path))?;
    if same(&of, image) && (store.expected().contains(&at) || is(Bug::FileNumberIgnored)) {
        store.settle(at);
        store.set_path(disk.path().as_os_str().as_bytes());
        return Ok(store);
    }
    if store.count(0) + store.count(1) == 0 {
        return again(store.into_file());
    }
    let newest = store.expected().into_iter().max_by_key(|stamp| stamp.number).unwrap_or_default();
    Err(Error::Image(format!(
        "{} has changes that a killed process made to {} behind sync {}, and this image is at sync {}: it was replaced, \
         or changed in another way. Put the image back that they belong to, or remove {} to go on without them",
        path.display(),
        disk.path().display(),
        newest.number,
        at.number,
        path.display()
    )))
}
