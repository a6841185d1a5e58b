//! A store in a file that is mapped into memory.

use super::aligned::AlignedMap;
use super::cache;
use super::populate::Populate;
use super::sigbus::SigbusGuard;
use super::{FileStore, Store, check_range};
use crate::checksum::digest;
use frit_core::{Error, Result, SyncGate, SyncedFile};
use memmap2::MmapOptions;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// The kind of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapMode {
    /// Writes reach the file.
    Shared,
    /// Copy on write: writes stay in this process and are lost with it. The file may be open for
    /// reading only.
    Private,
}

/// Size in bytes up to which files in memory (tmpfs) are populated in the background when they are
/// opened, so that no request pays for the first touch of a page (3 to 12 µs). Populating takes 0.1
/// to 0.3 s per GiB, and huge pages 2 to 7 s per GiB the first time. Files on disks are not populated:
/// every page would become dirty.
const POPULATE_BYTES_MAX: u64 = 8 << 30;
/// Type of tmpfs and ramfs in the results of `statfs` (linux/magic.h).
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// A backing file that is mapped into the address space: accesses need no system call, and slices
/// can be borrowed.
///
/// A page that the host cannot provide (because another program truncated the file, or the disk
/// fails) is reported as an error, as with [`FileStore`]: SIGBUS is caught. Accesses to pages
/// between two such pages fail too.
#[derive(Debug)]
pub struct MmapStore {
    // Fields are dropped in order: these two must be dropped before the map.
    populate: Option<Populate>,
    guard: SigbusGuard,
    map: AlignedMap,
    // Holds the lock.
    file: Arc<SyncedFile>,
    mapping: MapMode,
    blank: bool,
    /// `true` if the mapping is too large for the processor's cache, so that writes bypass the
    /// cache.
    nontemporal_writes: bool,
}

impl MmapStore {
    /// Opens the file at `path`, or creates it with `len` bytes, and maps it.
    ///
    /// # Errors
    /// The errors of [`FileStore::open`], and a host that cannot map the file.
    pub fn open(path: impl AsRef<Path>, len: u64) -> Result<MmapStore> {
        let (file, len, blank) = FileStore::open(path, len)?.into_parts();
        MmapStore::map(file, len, blank, MapMode::Shared)
    }

    /// Maps the first `len` bytes of a file or device that the caller has opened and locked; the
    /// file must be at least that long. `blank` states that these bytes are zeros.
    ///
    /// # Errors
    /// A host that cannot map the file.
    #[allow(unsafe_code)]
    pub fn map(synced: Arc<SyncedFile>, len: u64, blank: bool, mapping: MapMode) -> Result<MmapStore> {
        let (file, path) = (synced.file(), synced.path());
        let cannot =
            |source| Error::Io { what: format!("cannot map {len} bytes of {}", path.display()), source };
        let size = usize::try_from(len).map_err(|_| cannot(std::io::ErrorKind::FileTooLarge.into()))?;
        let in_memory = mapping == MapMode::Shared && in_memory(file);
        let mut options = MmapOptions::new();
        options.len(size);
        // SAFETY: a mapped file must not be changed or truncated by others while it is borrowed.
        // The file is at least `len` bytes long and locked by us until the map is dropped; the lock
        // is advisory, so a program that ignores it can still do harm, as with any mapped file.
        let map = match mapping {
            MapMode::Shared if in_memory => AlignedMap::shared(file, size),
            MapMode::Shared => unsafe { options.map_mut(file) }.map(AlignedMap::unaligned),
            // No swap is reserved for a private mapping: only pages that are written need memory.
            MapMode::Private => {
                unsafe { options.no_reserve_swap().map_copy(file) }.map(AlignedMap::unaligned)
            }
        };
        let map = map.map_err(cannot)?;
        let guard = SigbusGuard::new(map.as_ptr(), map.len());
        let nontemporal_writes = map.len() >= cache::NONTEMPORAL_STORE_MIN;
        let mut store =
            MmapStore { populate: None, guard, map, file: synced, mapping, blank, nontemporal_writes };
        if in_memory && len <= POPULATE_BYTES_MAX {
            // Huge pages would give memory to the holes of a sparse file.
            let allocated = store.file.file().metadata().is_ok_and(|m| m.blocks() * 512 >= len);
            store.populate = Some(Populate::new(store.map.as_ptr(), store.map.len(), allocated));
        }
        Ok(store)
    }

    /// Writes `data` at `at`, and returns the result of `meanwhile`, which is called while the data
    /// is on its way to memory.
    #[inline]
    fn write_while<T>(&mut self, at: u64, data: &[u8], meanwhile: impl FnOnce() -> T) -> Result<T> {
        check_range(at, data.len(), self.len())?;
        self.blank = false;
        let at = at as usize;
        let into = &mut self.map[at..at + data.len()];
        let result = if self.nontemporal_writes && data.len() >= cache::NONTEMPORAL_COPY_MIN {
            cache::copy_nontemporal(into, data, meanwhile)
        } else {
            into.copy_from_slice(data);
            meanwhile()
        };
        if self.guard.is_lost(at, data.len()) {
            return Err(self.lost_pages_error(at, data.len()));
        }
        Ok(result)
    }

    /// Returns the error for pages that the host could not provide.
    #[cold]
    fn lost_pages_error(&self, at: usize, len: usize) -> Error {
        let why = "the file was truncated, or its disk fails";
        Error::Io {
            what: format!("{len} bytes at {at} of {} are lost", self.file.path().display()),
            source: std::io::Error::other(why),
        }
    }
}

/// Returns `true` if the pages of a file are memory.
fn in_memory(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|fs| [TMPFS_MAGIC, RAMFS_MAGIC].contains(&(fs.f_type as u64)))
}

impl Store for MmapStore {
    fn len(&self) -> u64 {
        self.map.len() as u64
    }

    fn is_blank(&self) -> bool {
        self.blank
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        check_range(at, into.len(), self.len())?;
        let at = at as usize;
        into.copy_from_slice(&self.map[at..at + into.len()]);
        // Checked after the copy: the signal handler marks a page during the access to it.
        if self.guard.is_lost(at, into.len()) { Err(self.lost_pages_error(at, into.len())) } else { Ok(()) }
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.write_while(at, data, || ())
    }

    fn write_digested(&mut self, at: u64, data: &[u8]) -> Result<u64> {
        self.write_while(at, data, || digest(data))
    }

    /// Syncs with `fdatasync` of the file: Linux tracks the pages that are dirtied through a shared
    /// mapping (clean pages are write-protected), and writes only those.
    fn sync(&mut self) -> Result<()> {
        if self.mapping == MapMode::Private {
            return Ok(());
        }
        self.file.sync()
    }

    fn sync_gate(&self) -> Option<&SyncGate> {
        Some(self.file.gate())
    }

    fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        check_range(at, len, self.len()).ok()?;
        // A page that fails only after this check reads as zeros here. No checksum accepts zeros as
        // its data.
        if self.guard.is_lost(at as usize, len) {
            return None;
        }
        self.map.get(at as usize..at as usize + len)
    }

    fn copy(&mut self, from: u64, to: u64, len: usize) -> Option<Result<()>> {
        let inside = check_range(from, len, self.len()).and(check_range(to, len, self.len()));
        Some(inside.and_then(|()| {
            let (from, to) = (from as usize, to as usize);
            self.map.copy_within(from..from + len, to);
            match [from, to].into_iter().find(|&at| self.guard.is_lost(at, len)) {
                Some(at) => Err(self.lost_pages_error(at, len)),
                None => Ok(()),
            }
        }))
    }

    fn copies(&self) -> bool {
        true
    }

    fn prefetch(&self, at: u64, len: usize) {
        let at = at as usize;
        if let Some(bytes) = self.map.get(at..at.saturating_add(len)) {
            cache::prefetch(bytes);
        }
    }

    fn volatile(&self) -> bool {
        self.mapping == MapMode::Shared
    }
}
