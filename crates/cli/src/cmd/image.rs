//! The image file of a file system: creation, locking, opening.

use super::volume::{self, warn};
use crate::output::print_stderr;
use frit_core::paths::{self, OpenOptions};
use frit_fs::{
    ContentStore, Fs, FsOptions, Image, LockFile, OverlayNote, OverlayOptions, PlacedContents, Pool,
};
use frit_serve::fuse::{abort_killed, mountpoints_of};
use frit_volume::access::{exposed, foreign_owner, new_private};
use frit_volume::lock::{lock, lock_ignoring_readers, locked_by_readers_only};
use frit_volume::superblock;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Limit of open files of a process, if the kernel allows it: the default of fs.nr_open.
const FILES_MAX: u64 = 1 << 20;
/// Interval of polling for an image to become free.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Location of the unsynced changes of an image on a disk.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct OverlayArgs {
    /// Directory in memory (tmpfs) for unsynced changes of an image on a disk. [default: /dev/shm,
    /// else $XDG_RUNTIME_DIR]
    #[arg(long, value_name = "DIR")]
    overlay: Option<PathBuf>,
}

impl OverlayArgs {
    /// Returns the options of the library.
    pub(crate) fn overlay(&self) -> OverlayOptions {
        OverlayOptions { dir: self.overlay.clone(), ..OverlayOptions::default() }
    }

    /// Returns the options as words of a command line, with an absolute path.
    pub(crate) fn words(&self) -> Result<Vec<PathBuf>> {
        let Some(dir) = &self.overlay else { return Ok(Vec::new()) };
        let at = paths::canonical(dir).into_diagnostic();
        Ok(vec!["--overlay".into(), at.wrap_err_with(|| format!("cannot open {}", dir.display()))?])
    }
}

/// An image that is locked against other users. The lock ends when this is dropped, and with the
/// process.
#[derive(Debug)]
pub(crate) struct LockedImage {
    file: File,
    own: Option<LockFile>,
}

impl LockedImage {
    /// Opens and locks an existing image. It is opened for writing also by readers, because opening
    /// a file system completes interrupted operations first.
    ///
    /// # Errors
    /// The path is not a regular file, or it is in use.
    pub(crate) fn open(image: &Path) -> Result<LockedImage> {
        let at = || format!("cannot open {}", image.display());
        let file = OpenOptions::new().read(true).write(true).any_user(true).open(image);
        let file = file.into_diagnostic().wrap_err_with(at)?;
        let kind = file.metadata().into_diagnostic().wrap_err_with(at)?.file_type();
        if !kind.is_file() {
            let what = if kind.is_block_device() { "a block device" } else { "no regular file" };
            return Err(miette!(
                help = "frit mkfs IMAGE --size SIZE makes one; on a DAX file system it is persistent memory",
                "{} is {what}: a file system of frit needs a regular file",
                image.display()
            ));
        }
        LockedImage::lock(file, image)
    }

    /// Locks an image by a lock file that only its owner can open, and by the image itself, as
    /// older versions do. Without the lock file, a lock of any user blocks the image.
    fn lock(file: File, image: &Path) -> Result<LockedImage> {
        let again = file.try_clone().into_diagnostic()?;
        let locked = match LockedImage::try_lock(file, image) {
            Err(_) if end_killed_server(image)? => LockedImage::try_lock(again, image),
            other => other,
        };
        locked.map_err(|e| match mounted_at(image) {
            Some(at) => {
                let help = format!("it is mounted at {0}: frit unmount {0}", at.display());
                miette!(help = help, "{e}")
            }
            None => e,
        })
    }

    fn try_lock(file: File, image: &Path) -> Result<LockedImage> {
        let failed = || format!("cannot lock {}", image.display());
        loop {
            let Some(own) = LockFile::open(&file).into_diagnostic().wrap_err_with(failed)? else {
                lock(&file, false, image)?;
                return Ok(LockedImage { file, own: None });
            };
            lock(own.file(), false, image)?;
            // The previous holder may have removed the lock file between opening and locking it;
            // then the attempt is repeated.
            if own.is_current() {
                let locked = LockedImage { file, own: Some(own) };
                lock_ignoring_readers(&locked.file, false, image)?;
                return Ok(locked);
            }
        }
    }

    /// Creates an image of a given size. All of it is allocated, so that a write through the
    /// mapping cannot fail for lack of space. Returns the image, and `true` if there was no file
    /// before.
    ///
    /// # Errors
    /// The file exists and `force` is not set; the file is in use; no space is left.
    pub(crate) fn make(image: &Path, size: Option<u64>, force: bool) -> Result<(LockedImage, bool)> {
        match (new_private().open(image), size) {
            (Ok(_), None) => {
                paths::remove_file(image).into_diagnostic()?;
                Err(miette!("{} does not exist: give its size with --size", image.display()))
            }
            (Ok(file), Some(size)) => {
                let made = LockedImage::lock(file, image).and_then(|locked| locked.resize(image, size));
                if made.is_err() {
                    paths::remove_file(image).into_diagnostic()?;
                }
                made.map(|locked| (locked, true))
            }
            (Err(e), _) if e.kind() == io::ErrorKind::AlreadyExists => {
                if let Some(user) = foreign_owner(image).filter(|_| !force) {
                    return Err(miette!(
                        help = "name another one; --force makes a file system in it anyway",
                        "{} belongs to user {user}, who could read and change what is stored in it",
                        image.display()
                    ));
                }
                let locked = LockedImage::open(image)?;
                if !force && locked.file.metadata().into_diagnostic()?.len() > 0 {
                    return Err(miette!(
                        help = "--force makes a new file system in it; its contents are lost",
                        "{} is there already",
                        image.display()
                    ));
                }
                let locked = if let Some(size) = size { locked.resize(image, size)? } else { locked };
                Ok((locked, false))
            }
            (Err(e), _) => {
                Err(e).into_diagnostic().wrap_err_with(|| format!("cannot make {}", image.display()))
            }
        }
    }

    /// Sets the size of the image, and allocates its space.
    fn resize(self, image: &Path, size: u64) -> Result<LockedImage> {
        let at = || format!("cannot make {} {size} bytes large", image.display());
        self.file.set_len(size).into_diagnostic().wrap_err_with(at)?;
        match rustix::fs::fallocate(&self.file, rustix::fs::FallocateFlags::empty(), 0, size) {
            // Some file systems cannot reserve space; there, a write that finds no space ends the
            // mount.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(self),
            Err(e) => Err(e).into_diagnostic().wrap_err_with(at),
        }
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> Result<u64> {
        Ok(self.file.metadata().into_diagnostic()?.len())
    }
}

impl Drop for LockedImage {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            own.remove();
        }
    }
}

/// Lets the killed server of an image end, if it cannot by itself. Returns `true` if there was one.
///
/// # Errors
/// Its connection cannot be aborted; it does not end.
pub(crate) fn end_killed_server(image: &Path) -> Result<bool> {
    const TIME_TO_END: Duration = Duration::from_secs(10);
    let aborted = abort_killed(image).into_diagnostic();
    let aborted =
        aborted.wrap_err_with(|| format!("the server of {} was killed and cannot end", image.display()))?;
    if aborted {
        wait_closed(image, TIME_TO_END)?;
    }
    Ok(aborted)
}

/// Returns the directory at which an image, or the pool that contains it, is mounted.
fn mounted_at(image: &Path) -> Option<PathBuf> {
    let image = image.canonicalize().ok()?;
    let at = |source: &Path| mountpoints_of(source).ok().and_then(|all| all.into_iter().next());
    at(&image).or_else(|| at(image.parent()?))
}

/// Warns about files of an image, or of a pool, that other users can read or change.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn warn_exposed(image: &Path, pool: Option<&Path>) -> Result<()> {
    let mut log = image.as_os_str().to_owned();
    log.push(".sync");
    let mut files = vec![image.to_owned(), log.into()];
    files.extend(pool.into_iter().flat_map(|pool| [pool.to_owned(), pool.join("bodies")]));
    warn(exposed(files.iter().map(PathBuf::as_path)))
}

/// Prints notes about the overlays of other images. Those that stay are one line, since every command finds
/// them again.
pub(crate) fn print_notes(medium: &Image) {
    let (removed, left): (Vec<_>, Vec<_>) =
        medium.notes().iter().partition(|note| matches!(note, OverlayNote::Removed(_)));
    let mut lines: Vec<String> = removed.into_iter().map(|note| note.message().to_owned()).collect();
    match &left[..] {
        [] => {}
        [note] => lines.push(note.message().to_owned()),
        [first, ..] => lines.push(format!(
            "{} overlays of other images have changes that were not synced, and their images are no longer there. \
             The first: {}",
            left.len(),
            first.message()
        )),
    }
    for line in lines {
        // There is no other place to report a failure.
        let _ = print_stderr(&format!("frit: {line}\n"));
    }
}

/// Returns the image that a path names: the file itself, or the image in the directory of a pool.
pub(crate) fn image_path(place: &Path) -> PathBuf {
    if place.is_dir() { Pool::image(place) } else { place.to_owned() }
}

/// Returns the pool that a path names, if it is a directory.
///
/// # Errors
/// The directory is not a pool.
pub(crate) fn open_pool(place: &Path) -> Result<Option<Arc<Pool>>> {
    if !place.is_dir() {
        return Ok(None);
    }
    let pool = Pool::open(place).into_diagnostic();
    let pool =
        pool.wrap_err_with(|| format!("cannot open {}; frit mkfs --pool makes one", place.display()))?;
    Ok(Some(Arc::new(pool)))
}

/// Returns `true` if a path names a volume.
pub(crate) fn is_volume(place: &Path) -> bool {
    place.is_dir() && place.join(superblock::FILE_NAME).exists()
}

/// Opens a volume whose layer is a nameless-write device, with the metadata of the file system on it.
///
/// # Errors
/// The volume cannot be opened, or it has another layer.
pub(crate) fn open_placed(place: &Path, read_only: bool) -> Result<Arc<PlacedContents>> {
    volume::warn_exposed(place)?;
    let mut opened = volume::open(place, read_only, true)?;
    if opened.nameless_device(false, |_, _| Ok(())).is_err() {
        return Err(miette!(
            help = "frit attach makes it a block device for any file system; frit serve serves it over NBD; \
                    frit create --stack nameless-files makes a volume for a file system of frit",
            "{} is a volume of another layer, and not a file system of frit",
            place.display()
        ));
    }
    let loaded = frit_serve::nameless::load(opened).into_diagnostic();
    loaded.wrap_err_with(|| format!("cannot open {}", place.display()))
}

/// Opens the file system on a volume, and recovers it after a crash.
///
/// # Errors
/// There is no file system, or it is damaged beyond recovery.
pub(crate) fn open_on_volume(place: &Path, read_only: bool) -> Result<Fs<Image>> {
    let placed = open_placed(place, read_only)?;
    let medium = Image::Virtual(placed.medium());
    let options = FsOptions { read_only, placed: Some(placed), ..FsOptions::default() };
    let opened = Fs::open(medium, options).into_diagnostic();
    opened.wrap_err_with(|| format!("cannot open {}; frit mkfs makes a file system", place.display()))
}

/// Opens the file system of an image, with its pool if it has one, and recovers it after a crash.
///
/// # Errors
/// There is no file system, or it is damaged beyond recovery.
pub(crate) fn open(
    image: &Path,
    pool: Option<Arc<Pool>>,
    read_only: bool,
    changes: &OverlayArgs,
) -> Result<Fs<Image>> {
    let content_store = pool.map(|pool| pool as Arc<dyn ContentStore>);
    let options = FsOptions { read_only, content_store, ..FsOptions::default() };
    let opened = Image::open(image, &changes.overlay()).and_then(|medium| {
        print_notes(&medium);
        Fs::open(medium, options)
    });
    opened.into_diagnostic().wrap_err_with(|| format!("cannot open {}", image.display()))
}

/// Raises this process's limit on open files to the maximum: each open file of a pool is one, and each process
/// that has a command file open.
pub(crate) fn raise_open_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let held = getrlimit(Resource::Nofile);
    let most = held.maximum.map_or(FILES_MAX, |most| most.max(FILES_MAX));
    // The superuser may raise the hard limit as well.
    for most in [Some(most), held.maximum] {
        if setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).is_ok() {
            return;
        }
    }
}

/// Closes a file system cleanly. It must not be in use elsewhere.
///
/// # Errors
/// The file below reports an error.
pub(crate) fn close(files: Arc<Fs<Image>>) -> Result<()> {
    let Some(fs) = Arc::into_inner(files) else { return Err(miette!("the file system is still in use")) };
    let overlay = fs.medium().overlay().map(Path::to_owned);
    fs.close().map(drop).into_diagnostic().wrap_err_with(|| match overlay {
        Some(overlay) => format!(
            "the file system could not be closed in order. Its last changes are only in memory, in {}: frit mount and \
             frit fsck recover them, until the machine stops",
            overlay.display()
        ),
        None => "the file system could not be closed in order".into(),
    })
}

/// Returns `true` while a program has an image open. A lock of a user who may only read the image
/// does not count if there is a lock file.
fn is_open(image: &File) -> bool {
    let locked = |file: &File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    match LockFile::open(image) {
        Ok(Some(own)) if locked(own.file()) => true,
        Ok(Some(own)) => {
            let is_open = locked(image) && !locked_by_readers_only(image);
            if own.is_current() {
                own.remove();
            }
            is_open
        }
        _ => matches!(image.try_lock_shared(), Err(TryLockError::WouldBlock)),
    }
}

/// Waits until no program has an image open. Returns at once if the image does not exist.
///
/// # Errors
/// The time limit is reached.
pub(crate) fn wait_closed(image: &Path, timeout: Duration) -> Result<()> {
    let end = Instant::now() + timeout;
    let file = File::open(image);
    let volume = image.parent().filter(|dir| is_volume(dir));
    let in_use = || match (&file, volume) {
        (_, Some(dir)) => frit_volume::inspect(dir).is_ok_and(|found| found.in_use.is_some()),
        (Ok(file), None) => is_open(file),
        (Err(_), None) => false,
    };
    while in_use() {
        if Instant::now() > end {
            return Err(miette!("{} is still open after {} s", image.display(), timeout.as_secs()));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
