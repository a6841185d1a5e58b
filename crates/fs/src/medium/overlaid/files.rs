//! [`ImageFile`]: an existing image on the host's file system, read through a mapping and written by
//! system calls, and its double-write log `IMAGE.sync`, which a sync writes before the image. A log
//! is used only if root, the owner of the image or the user of the process owns it.

use super::disk::Disk;
use super::overlay_mark;
use crate::error::{Error, Result};
use crate::format::{BLOCK, fresh_uuid};
use crate::medium::cache_lines::CacheLineFlush;
use crate::medium::memory::MappedMemory;
use frit_core::paths::{self, OpenOptions};
use memmap2::MmapOptions;
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Error as IoError, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// An image that is read through a mapping and written by system calls, with its log `IMAGE.sync`.
#[derive(Debug)]
pub struct ImageFile {
    image: File,
    memory: MappedMemory,
    path: PathBuf,
    log: Mutex<Option<(File, PathBuf)>>,
    /// Path for a new log.
    log_path: PathBuf,
}

fn os(what: &'static str, path: &Path) -> impl FnOnce(IoError) -> Error {
    let path = path.to_owned();
    move |error| Error::Os { what, path, error }
}

impl ImageFile {
    /// Opens an existing image, and its log if there is one. A part of a block at the end is left out.
    ///
    /// # Errors
    /// The image cannot be opened or mapped.
    pub(super) fn open(path: &Path) -> Result<Self> {
        // The log is beside the file itself, even if `path` is a symbolic link.
        let path = paths::canonical(path).map_err(os("cannot open", path))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).any_user(true);
        let image = options.open(&path).map_err(os("cannot open", &path))?;
        let bytes = image.metadata().map_err(os("cannot stat", &path))?.len() / BLOCK * BLOCK;
        if bytes == 0 {
            return Err(Error::Image(format!("{}: too small for a file system", path.display())));
        }
        let map = MmapOptions::new().len(bytes as usize).map_raw_read_only(&image);
        let memory = MappedMemory::new(map.map_err(os("cannot map", &path))?, CacheLineFlush::NoFlush);
        let mut log_path = OsString::from(&path);
        log_path.push(".sync");
        let log_path = PathBuf::from(log_path);
        let owner = image.metadata().map_err(os("cannot stat", &path))?.uid();
        let log = find_log(&log_path, owner)?;
        Ok(Self { image, memory, path, log: Mutex::new(log), log_path })
    }

    pub(super) fn image(&self) -> &File {
        &self.image
    }

    /// Returns the path of the image, without symbolic links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reserves disk space for a log of `bytes`, so that a sync does not fail for lack of space.
    /// The contents of an existing log are kept; a new one is empty.
    ///
    /// # Errors
    /// Not enough space is available. A file system without support for reservations is not an
    /// error.
    pub(super) fn reserve_log(&self, bytes: u64) -> Result<()> {
        let exists = self.with_log(|log| Ok(log.is_some()))?;
        // An empty write creates the log if it does not exist.
        self.write_log(0, &[])?;
        let reserved = self.with_log(|log| {
            let Some((file, _)) = log.as_ref() else { return Ok(()) };
            match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
                Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
                Err(e) => Err(os("cannot reserve space for", &self.log_path)(e.into())),
            }
        });
        if reserved.is_err() && !exists {
            self.remove_log()?;
        }
        reserved
    }

    /// Runs `act` with exclusive access to the log, which is `None` if there is none.
    fn with_log<T>(&self, act: impl FnOnce(&mut Option<(File, PathBuf)>) -> Result<T>) -> Result<T> {
        act(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Finds the log of an image: `plain`, or `plain-` with a number if another user had taken that
/// name.
fn find_log(plain: &Path, owner: u32) -> Result<Option<(File, PathBuf)>> {
    let dir = plain.parent().unwrap_or(Path::new("/"));
    // The plain name can be taken only in a directory that other users can write to.
    let shared = dir.metadata().is_ok_and(|meta| meta.mode() & 0o022 != 0);
    let numbered = format!("{}-", plain.file_name().unwrap_or_default().to_string_lossy());
    let entries = shared.then(|| std::fs::read_dir(dir).ok()).flatten().into_iter().flatten().flatten();
    let others = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&numbered));
    for path in std::iter::once(plain.to_owned()).chain(others.map(|entry| entry.path())) {
        match path.symlink_metadata() {
            Ok(meta) if meta.is_file() && is_trusted(&meta, owner) => {}
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(os("cannot stat", &path)(e)),
            _ => continue,
        }
        // NONBLOCK, so that a FIFO instead of the log does not block the open.
        let mut options = OpenOptions::new();
        options.read(true).write(true).any_user(true).flags(OFlags::NOFOLLOW | OFlags::NONBLOCK);
        let file = options.open(&path);
        let file = file.map_err(os("cannot open", &path))?;
        // The file may have been replaced between the check and the open, so it is checked again.
        if file.metadata().is_ok_and(|meta| meta.is_file() && is_trusted(&meta, owner)) {
            return Ok(Some((file, path)));
        }
    }
    Ok(None)
}

/// Returns `true` if a log belongs to a user who can change the image anyway. The log determines
/// the contents of the image.
fn is_trusted(log: &std::fs::Metadata, owner: u32) -> bool {
    // A hard link may lead to a file of a trusted user that is no log.
    log.nlink() <= 1 && [0, owner, rustix::process::geteuid().as_raw()].contains(&log.uid())
}

fn make_log(plain: &Path) -> Result<(File, PathBuf)> {
    let make =
        |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
    let path = match make(plain) {
        Ok(file) => return Ok((file, plain.to_owned())),
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(os("cannot create", plain)(e)),
        Err(_) => {
            let [number, _] = fresh_uuid();
            let mut path = OsString::from(plain);
            path.push(format!("-{number:016x}"));
            PathBuf::from(path)
        }
    };
    make(&path).map(|file| (file, path.clone())).map_err(os("cannot create", &path))
}

impl Disk for ImageFile {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    fn is_deleted(&self) -> bool {
        self.image.metadata().is_ok_and(|meta| meta.nlink() == 0)
    }

    fn log_name(&self) -> String {
        let used = self.with_log(|log| Ok(log.as_ref().map(|(_, path)| path.clone())));
        used.ok().flatten().as_ref().unwrap_or(&self.log_path).display().to_string()
    }

    fn remove_overlay(&self, overlay: &Path) {
        overlay_mark::remove(&self.image, overlay);
    }

    #[inline]
    fn read_image(&self, at: u64, into: &mut [u8]) {
        self.memory.read(at, into);
    }

    fn write_image(&self, at: u64, data: &[u8]) -> Result<()> {
        self.image.write_all_at(data, at).map_err(os("cannot write", &self.path))
    }

    fn sync_image(&self) -> Result<()> {
        self.image.sync_data().map_err(os("cannot sync", &self.path))
    }

    fn read_log(&self, at: u64, into: &mut [u8]) -> Result<bool> {
        self.with_log(|log| match log.as_ref().map(|(file, path)| (file.read_exact_at(into, at), path)) {
            Some((Err(e), path)) if e.kind() != ErrorKind::UnexpectedEof => Err(os("cannot read", path)(e)),
            Some((Ok(()), _)) => Ok(true),
            _ => Ok(false),
        })
    }

    fn write_log(&self, at: u64, data: &[u8]) -> Result<()> {
        self.with_log(|log| {
            if log.is_none() {
                *log = Some(make_log(&self.log_path)?);
            }
            let Some((file, path)) = log.as_ref() else { return Ok(()) };
            file.write_all_at(data, at).map_err(os("cannot write", path))
        })
    }

    fn sync_log(&self) -> Result<()> {
        self.with_log(|log| {
            let Some((file, path)) = log.as_ref() else { return Ok(()) };
            file.sync_data().map_err(os("cannot sync", path))
        })
    }

    fn sync_names(&self) -> Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(os("cannot sync", dir))
    }

    fn remove_log(&self) -> Result<()> {
        self.with_log(|log| {
            let Some((_, path)) = log.take() else { return Ok(()) };
            paths::remove_file(&path).map_err(os("cannot remove", &path))
        })
    }
}
