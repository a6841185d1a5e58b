//! The files and block devices that hold the bytes of the media.

use crate::access::{FILE_MODE, foreign_medium, foreign_volume};
use crate::error::{Error, Result, io};
use crate::lock;
use crate::superblock::{ACCESS_MEDIA_MAX, Backing, MediumRecord};
use frit_core::paths::{self, OpenOptions};
use frit_core::{MediumKind, SyncedFile};
use frit_media::store::MapMode;
use frit_media::{AnyStore, DirectFile, DirectStore, FileAccess, FileStore, MmapStore};
use frit_stack::Stack;
use rustix::fs::{FallocateFlags, OFlags};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Largest block size of common block devices, in bytes.
const DEVICE_BLOCK: u64 = 4096;

/// The open and locked file or block device of a medium.
#[derive(Debug)]
pub(crate) struct MediumFile {
    pub(crate) name: String,
    kind: MediumKind,
    /// The file, which all its stores write and sync.
    file: Arc<SyncedFile>,
    pub(crate) bytes: u64,
    backing: Backing,
    mapping: MapMode,
    /// The file without the page cache, if it is accessed so.
    direct: Option<Arc<DirectFile>>,
}

/// Opens a file for accesses without the page cache, if its record has such an access.
fn open_direct(
    file: &Arc<SyncedFile>,
    record: &MediumRecord,
    writable: bool,
) -> Result<Option<Arc<DirectFile>>> {
    if record.access == FileAccess::PageCache {
        return Ok(None);
    }
    let opened = DirectFile::open(Arc::clone(file), record.bytes, writable, record.access);
    match opened {
        Err(frit_core::Error::Param { why, .. }) => Err(medium_error(record, file.path(), why)),
        opened => Ok(Some(Arc::new(opened?))),
    }
}

/// Returns the path of the file or block device of a medium.
pub(crate) fn path_of(dir: &Path, record: &MediumRecord) -> PathBuf {
    if record.path.is_empty() { dir.join(format!("{}.medium", record.name)) } else { dir.join(&record.path) }
}

/// Returns `true` if the file of a medium lies in the directory of its volume, also if another user
/// wrote the record.
pub(crate) fn is_inside(record: &MediumRecord) -> bool {
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
    record.is_file() && path_of(Path::new(""), record).components().all(is_name)
}

fn medium_error(record: &MediumRecord, path: &Path, why: impl Into<String>) -> Error {
    Error::Medium { name: record.name.clone(), path: path.into(), why: why.into() }
}

/// Returns the media of a stack whose bytes persist, with their sizes. `stack_with_paths`
/// is the stack as its file describes it, which has the paths.
pub(crate) fn persistent_media(stack: &Stack, stack_with_paths: &Stack) -> Result<Vec<MediumRecord>> {
    // Only the builder of a layer knows the sizes of its stores. So the stack is built once in
    // memory, and the sizes that it requests are recorded.
    let requested = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requested);
    let opener = frit_stack::StoreOpener::new(move |name, bytes| {
        if let Ok(mut seen) = seen.lock() {
            seen.push((name.to_owned(), bytes));
        }
        Ok(AnyStore::Memory(frit_media::MemoryStore::new(bytes)))
    });
    stack.build(&frit_stack::Bytes::StoreOpener(opener))?;
    let requested = requested.lock().map(|a| a.clone()).unwrap_or_default();
    let record = |(name, bytes): (String, u64)| {
        let medium = stack_with_paths.media().iter().find(|m| m.name == name);
        let kind = medium.map_or(MediumKind::Nand, |m| m.spec.kind());
        if let Some(url) = medium.and_then(|m| m.url.clone()) {
            let (backing, access) = (Backing::ObjectStore, FileAccess::default());
            return MediumRecord { name, kind, backing, bytes, path: url, access };
        }
        let path = medium.and_then(|m| m.path.as_ref()).map(|p| p.display().to_string()).unwrap_or_default();
        let access = medium.map(|m| m.access).unwrap_or_default();
        MediumRecord { name, kind, backing: Backing::File, bytes, path, access }
    };
    let media: Vec<MediumRecord> = requested.into_iter().map(record).collect();
    match media.iter().skip(ACCESS_MEDIA_MAX).find(|m| m.access != FileAccess::default()) {
        Some(m) => Err(Error::Unsupported {
            requirement: format!(
                "media with a key `access` among its first {ACCESS_MEDIA_MAX}, and '{}' is a later one",
                m.name
            ),
        }),
        None => Ok(media),
    }
}

impl MediumFile {
    /// Creates and allocates the file of a medium, or takes the device that the stack names.
    pub(crate) fn create(dir: &Path, record: &mut MediumRecord, force: bool) -> Result<MediumFile> {
        let path = path_of(dir, record);
        let existing = std::fs::metadata(&path).map(|m| m.file_type()).ok();
        if !record.path.is_empty() && existing.is_some_and(|t| t.is_char_device()) {
            let why = "is a character device; name a file or a block device. For DAX memory, make a DAX file system \
                       on its block device (mount -o dax), and name a file on it";
            return Err(medium_error(record, &path, why));
        }
        let is_device = existing.is_some_and(|t| t.is_block_device());
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        if is_device {
            // `O_EXCL` makes the kernel refuse a device that is mounted or exclusively opened by
            // another program.
            options.flags(OFlags::EXCL);
        } else if record.path.is_empty() || !force {
            options.create_new(true).mode(FILE_MODE);
        } else {
            options.create(true).truncate(false).mode(FILE_MODE);
        }
        if record.path.is_empty() && !is_device {
            remove_stale_file(record, &path)?;
        }
        let file = options.open(&path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                medium_error(record, &path, "cannot be created: its directory does not exist")
            }
            _ => cannot_open(record, &path, &e),
        })?;
        lock::lock_ignoring_readers(&file, false, &path)?;
        if is_device {
            record.backing = Backing::BlockDevice;
            check_device(&file, record, &path)?;
            if !force {
                refuse_nonblank_device(&file, record, &path)?;
            }
        } else {
            // The contents of an earlier volume must not be taken for those of this one.
            file.set_len(0).map_err(io(format!("cannot empty {}", path.display())))?;
        }
        if !is_device && is_dax(&file) {
            record.backing = Backing::DaxFile;
        }
        let file = SyncedFile::new(file, path);
        let direct = open_direct(&file, record, true)?;
        allocate(file.file(), record.bytes, is_device).map_err(io(format!(
            "cannot allocate {} in {}",
            frit_core::size::format(record.bytes),
            file.path().display()
        )))?;
        Ok(MediumFile {
            name: record.name.clone(),
            kind: record.kind,
            file,
            bytes: record.bytes,
            backing: record.backing,
            mapping: MapMode::Shared,
            direct,
        })
    }

    /// Opens the file of a medium, which has to exist with its recorded size.
    pub(crate) fn open(dir: &Path, record: &MediumRecord, read_only: bool) -> Result<MediumFile> {
        let path = path_of(dir, record);
        let mut options = OpenOptions::new();
        options.read(true).write(!read_only).any_user(true);
        if record.backing == Backing::BlockDevice && !read_only {
            options.flags(OFlags::EXCL);
        }
        let file = options.open(&path).map_err(|e| cannot_open(record, &path, &e))?;
        lock::lock_ignoring_readers(&file, read_only, &path)?;
        let meta = file.metadata().map_err(io(format!("cannot examine {}", path.display())))?;
        if let Some(user) = foreign_volume(dir).filter(|user| !is_inside(record) && *user != meta.uid()) {
            return Err(medium_error(record, &path, foreign_medium(user, meta.uid())));
        }
        match record.backing {
            Backing::BlockDevice => check_device(&file, record, &path)?,
            _ if !meta.is_file() => {
                return Err(medium_error(
                    record,
                    &path,
                    "is not a regular file, and was one when the volume was created",
                ));
            }
            _ if meta.len() != record.bytes => {
                let why = format!(
                    "has {} bytes and had {} when the volume was created: it was truncated or replaced; put the right file back",
                    meta.len(),
                    record.bytes
                );
                return Err(medium_error(record, &path, why));
            }
            _ => {}
        }
        let mapping = if read_only { MapMode::Private } else { MapMode::Shared };
        let file = SyncedFile::new(file, path);
        let direct = open_direct(&file, record, !read_only)?;
        Ok(MediumFile {
            name: record.name.clone(),
            kind: record.kind,
            file,
            bytes: record.bytes,
            backing: record.backing,
            mapping,
            direct,
        })
    }

    /// Returns a store over the file: a mapping, or file I/O for a disk or an object store.
    pub(crate) fn store(&self, blank: bool) -> frit_core::Result<AnyStore> {
        if let Some(direct) = &self.direct {
            return Ok(AnyStore::Direct(DirectStore::new(Arc::clone(direct), blank)));
        }
        // A start claims an object store, also of a volume that is opened for reading only.
        let private = self.kind == MediumKind::Object && self.mapping == MapMode::Private;
        if matches!(self.kind, MediumKind::Disk | MediumKind::Object) && !private {
            // Accesses to a disk run on several threads and block; a page fault in a mapping cannot
            // be deferred like that. Objects are written once and in large parts.
            return Ok(AnyStore::File(FileStore::from_locked_file(
                Arc::clone(&self.file),
                self.bytes,
                blank,
            )));
        }
        Ok(AnyStore::Mmap(MmapStore::map(Arc::clone(&self.file), self.bytes, blank, self.mapping)?))
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The file, for syncs beside those of its stores.
    pub(crate) fn synced(&self) -> &Arc<SyncedFile> {
        &self.file
    }

    /// Returns the reason for which the file is not accessed as its record says, if it is not.
    pub(crate) fn access_note(&self) -> Option<String> {
        self.direct.as_ref()?.no_io_uring().map(|why| format!("medium '{}': {why}", self.name))
    }

    /// Returns the reason if the file was deleted or resized since it was opened.
    pub(crate) fn unusable_reason(&self) -> Option<String> {
        let path = self.path().display();
        let name = &self.name;
        match self.file.file().metadata() {
            Err(e) => Some(format!("the file of '{name}', {path}, cannot be examined: {e}")),
            Ok(_) if self.backing == Backing::BlockDevice => None,
            Ok(m) if m.nlink() == 0 => Some(format!(
                "the file of '{name}', {path}, was deleted; copy what is still readable through the server \
                 before it ends"
            )),
            Ok(m) if m.len() != self.bytes => Some(format!(
                "the file of '{name}', {path}, was truncated or extended by another program to {} bytes, expected {}; \
                 stop, put a right file back, and run frit check",
                m.len(),
                self.bytes
            )),
            Ok(_) => None,
        }
    }
}

/// Removes a file that an earlier or unfinished volume left in the directory. It is not reused,
/// because other users may have it open.
fn remove_stale_file(record: &MediumRecord, path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_file() => {
            paths::remove_file(path).map_err(io(format!("cannot remove {}", path.display())))
        }
        Ok(_) => {
            let why = format!(
                "exists and is not a regular file; remove it, or name another path: --set media.{}.path=…",
                record.name
            );
            Err(medium_error(record, path, why))
        }
        Err(_) => Ok(()),
    }
}

fn cannot_open(record: &MediumRecord, path: &Path, e: &std::io::Error) -> Error {
    let why = match e.kind() {
        ErrorKind::NotFound => "is missing; a volume needs all of its media files: put it back".into(),
        ErrorKind::AlreadyExists => "already exists; --force overwrites it".into(),
        ErrorKind::ResourceBusy => "the device is in use: mounted, or opened by another program".into(),
        _ => format!("cannot be opened: {e}"),
    };
    medium_error(record, path, why)
}

/// Checks that a device is large enough.
fn check_device(file: &File, record: &MediumRecord, path: &Path) -> Result<()> {
    let has = rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))
        .map_err(|e| io(format!("cannot determine the size of {}", path.display()))(e.into()))?;
    if has < record.bytes {
        let why = format!("the device has {has} bytes, and the medium needs {}", record.bytes);
        return Err(medium_error(record, path, why));
    }
    Ok(())
}

/// Refuses a device whose first MiB is not all zeros.
fn refuse_nonblank_device(file: &File, record: &MediumRecord, path: &Path) -> Result<()> {
    let mut head = vec![0; (1 << 20).min(record.bytes as usize)];
    file.read_exact_at(&mut head, 0).map_err(io(format!("cannot read {}", path.display())))?;
    if head.iter().any(|&b| b != 0) {
        let why =
            "the device is not blank: it may hold a file system or another volume; --force overwrites it";
        return Err(medium_error(record, path, why));
    }
    Ok(())
}

/// Returns `true` if a mapping of the file accesses the memory directly (statx: `STATX_ATTR_DAX`).
fn is_dax(file: &File) -> bool {
    let flags = rustix::fs::StatxFlags::BASIC_STATS;
    rustix::fs::statx(file, "", rustix::fs::AtFlags::EMPTY_PATH, flags)
        .is_ok_and(|s| s.stx_attributes.contains(rustix::fs::StatxAttributes::DAX))
}

/// Allocates all the space as zeros, so that a full disk is an error here and not a SIGBUS later.
fn allocate(file: &File, bytes: u64, is_device: bool) -> std::io::Result<()> {
    let (flags, whole) = if is_device {
        // Devices zero whole blocks only; the rest is written below.
        (FallocateFlags::ZERO_RANGE, bytes / DEVICE_BLOCK * DEVICE_BLOCK)
    } else {
        (FallocateFlags::empty(), bytes)
    };
    // A signal ends fallocate early. The repeated call skips what was allocated by then.
    match rustix::io::retry_on_intr(|| rustix::fs::fallocate(file, flags, 0, whole)) {
        Ok(()) => write_zeros(file, whole, bytes),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL) => {
            write_zeros(file, 0, bytes)
        }
        Err(e) => Err(e.into()),
    }
}

fn write_zeros(file: &File, mut at: u64, end: u64) -> std::io::Result<()> {
    let zeros = vec![0; if at < end { 1 << 20 } else { 0 }];
    while at < end {
        let n = zeros.len().min((end - at) as usize);
        file.write_all_at(&zeros[..n], at)?;
        at += n as u64;
    }
    Ok(())
}
