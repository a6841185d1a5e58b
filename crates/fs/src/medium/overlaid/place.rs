//! Where the overlay of an image is, and whether one that is found there is of this image as it is now.

use super::Overlaid;
use super::disk::Disk;
use super::files::ImageFile;
use super::log::{Stamp, recover};
use super::store::{IMAGE_WORDS, Store};
use crate::error::{Error, Result};
use crate::format::{BLOCK, uuid_in};
use frit_core::planted::{Bug, is};
use rustix::fs::OFlags;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// What `statfs` calls file systems in memory (linux/magic.h): tmpfs, ramfs, hugetlbfs.
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
const HUGETLBFS: u64 = 0x9584_58f6;
/// Where changes are kept unless told otherwise: memory that all Linux systems have.
const SHM: &str = "/dev/shm";
/// How the name of an overlay begins and ends.
const NAME: (&str, &str) = ("frit-", ".overlay");

/// Where changes of an image on a disk are until they are synced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overlay {
    /// A directory in memory (tmpfs). `None`: /dev/shm, else `$XDG_RUNTIME_DIR`.
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

/// A directory that ends with the machine, and has files that can be written to.
fn is_dir_in_memory(dir: &Path) -> bool {
    let fs = File::open(dir).ok().and_then(|dir| rustix::fs::fstatfs(&dir).ok());
    fs.is_some_and(|fs| [TMPFS, RAMFS].contains(&(fs.f_type as u64)))
}

impl Overlay {
    /// Directories to look in; a new overlay is made in the first.
    fn dirs(&self) -> Result<Vec<PathBuf>> {
        if let Some(dir) = self.dir.as_ref().filter(|dir| !is_dir_in_memory(dir)) {
            return Err(Error::Image(format!(
                "{} is no directory in memory (tmpfs): changes that were not synced have to end with the machine",
                dir.display()
            )));
        }
        let mut dirs: Vec<PathBuf> = self.dir.iter().cloned().collect();
        let others = [Some(SHM.into()), std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)];
        dirs.extend(others.into_iter().flatten().filter(|dir| is_dir_in_memory(dir)));
        if dirs.is_empty() {
            return Err(Error::Image(format!(
                "an image on a disk needs a directory in memory for changes that are not synced, and neither {SHM} nor \
                 $XDG_RUNTIME_DIR is one: mount a tmpfs and name it (--overlay DIR)"
            )));
        }
        Ok(dirs)
    }
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
        let dirs = overlay.dirs()?;
        let at = recover(&disk)?;
        Self::find(disk, at, &dirs, overlay.bound)
    }

    /// The same, and what a stop left of the file system that was there is given up.
    ///
    /// # Errors
    /// As [`super::super::Image::fresh`].
    pub fn fresh(path: &Path, overlay: &Overlay) -> Result<Self> {
        let disk = ImageFile::open(path)?;
        let dirs = overlay.dirs()?;
        disk.remove_log()?;
        let name = name_of(&disk)?;
        for path in dirs.iter().map(|dir| dir.join(&name)) {
            if let Some(file) = open_locked(&path, &disk)? {
                std::fs::remove_file(&path).map_err(os("cannot remove", &path))?;
                drop(file);
            }
        }
        let at = Stamp::read(&disk);
        Self::find(disk, at, &dirs, overlay.bound)
    }

    /// Takes the overlay that is there, or makes one.
    fn find(disk: ImageFile, at: Stamp, dirs: &[PathBuf], bound: u64) -> Result<Self> {
        let image = identity(&disk).map_err(os("cannot look at", disk.path()))?;
        let name = name_of(&disk)?;
        for path in dirs.iter().map(|dir| dir.join(&name)) {
            if let Some(file) = open_locked(&path, &disk)? {
                let store = take(file, &path, &disk, &image, at)?;
                return Ok(Self::with(disk, store, Some(path), bound));
            }
        }
        for dir in dirs {
            refuse_moved(dir, &disk, &image)?;
        }
        let path = dirs[0].join(&name);
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(os("cannot make", &path))?;
        lock(&file, &disk)?;
        let made = Store::make(file, disk.bytes(), image, disk.path().as_os_str().as_bytes(), at);
        if made.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        Ok(Self::with(disk, made.map_err(os("cannot make", &path))?, Some(path), bound))
    }
}

/// The name of an image's overlay: the file that it is of, whatever file system that holds.
fn name_of(disk: &ImageFile) -> Result<String> {
    let meta = disk.image().metadata().map_err(os("cannot look at", disk.path()))?;
    Ok(format!("{}{:x}-{:x}{}", NAME.0, meta.dev(), meta.ino(), NAME.1))
}

fn os(what: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::Os { what, path: path.clone(), error }
}

fn lock(file: &File, disk: &ImageFile) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            Err(Error::Image(format!("{} is in use by another program", disk.path().display())))
        }
        Err(TryLockError::Error(e)) => Err(os("cannot lock the overlay of", disk.path())(e)),
    }
}

/// An overlay that is there, for nobody else. Anybody can make a file in /dev/shm: one of somebody who cannot change
/// the image is refused.
fn open_locked(path: &Path, disk: &ImageFile) -> Result<Option<File>> {
    loop {
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let file = match File::options().read(true).write(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(os("cannot open", path)(e)),
        };
        lock(&file, disk)?;
        let meta = file.metadata().map_err(os("cannot look at", path))?;
        let owner = disk.image().metadata().map_err(os("cannot look at", disk.path()))?.uid();
        if ![owner, rustix::process::geteuid().as_raw()].contains(&meta.uid()) {
            return Err(Error::Image(format!(
                "{} belongs to user {}, and {} does not: look what it is, and remove it",
                path.display(),
                meta.uid(),
                disk.path().display()
            )));
        }
        // Whoever had it before may just have removed it.
        if meta.nlink() > 0 {
            return Ok(Some(file));
        }
    }
}

/// Goes on with an overlay, if it is of the image and of the sync that this is at, or has no changes.
fn take(file: File, path: &Path, disk: &ImageFile, image: &[u64; IMAGE_WORDS], at: Stamp) -> Result<Store> {
    let named = disk.path().as_os_str().as_bytes();
    let again = |file| Store::make(file, disk.bytes(), *image, named, at).map_err(os("cannot make", path));
    let Some((of, _)) = Store::image_of(&file).map_err(os("cannot use", path))? else { return again(file) };
    let store = Store::map(file, of[3]).map_err(os("cannot map", path))?;
    if same(&of, image) && (store.expected().contains(&at) || is(Bug::FileNumberIgnored)) {
        store.settle(at);
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

/// Refuses an image that was moved here with changes left behind: an overlay has its UUID, and the image of that is not
/// where it was.
fn refuse_moved(dir: &Path, disk: &ImageFile, image: &[u64; IMAGE_WORDS]) -> Result<()> {
    if image[4..] == [0; 2] {
        return Ok(());
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(()) };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(NAME.0) || !name.ends_with(NAME.1) {
            continue;
        }
        // Those of other users cannot be read.
        let Ok(file) = File::options().read(true).write(true).open(&path) else { continue };
        let Ok(Some((of, was))) = Store::image_of(&file) else { continue };
        let is_there = std::fs::metadata(&was).is_ok_and(|meta| [meta.dev(), meta.ino()] == of[..2]);
        if of[4..] != image[4..] || is_there {
            continue;
        }
        if Store::map(file, of[3]).is_ok_and(|store| store.count(0) + store.count(1) > 0) {
            return Err(Error::Image(format!(
                "{} has changes that a killed process made to this file system when it was {}: move {} back there, or \
                 remove {} to go on without them",
                path.display(),
                was.display(),
                disk.path().display(),
                path.display()
            )));
        }
    }
    Ok(())
}
