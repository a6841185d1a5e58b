//! Bytes in a file, mapped into memory.

use super::{FileStore, Store, check_range};
use frit_core::{Error, Result};
use memmap2::{MmapMut, MmapOptions};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A backing file in the address space: no system call an access, and whole slices to borrow.
/// A file system that runs full, or an I/O error, kills the program here (SIGBUS), where
/// [`FileStore`] returns an error.
#[derive(Debug)]
pub struct MmapStore {
    map: MmapMut,
    // Holds the lock.
    _file: File,
    path: PathBuf,
    blank: bool,
}

impl MmapStore {
    /// Opens the file at `path`, or creates it with `len` bytes, and maps it.
    ///
    /// # Errors
    /// As for [`FileStore::open`], and a host that cannot map it.
    #[allow(unsafe_code)]
    pub fn open(path: impl AsRef<Path>, len: u64) -> Result<MmapStore> {
        let (file, path, len, blank) = FileStore::open(path, len)?.into_parts();
        let cannot =
            |source| Error::Io { what: format!("cannot map {len} bytes of {}", path.display()), source };
        let size = usize::try_from(len).map_err(|_| cannot(std::io::ErrorKind::FileTooLarge.into()))?;
        // SAFETY: a mapped file must not be changed or cut short by others while it is borrowed. The
        // file is exactly `len` long and locked exclusively by us until the map is gone; the lock is
        // advisory, so a program that ignores it can still do harm, as with any mapped file.
        let map = unsafe { MmapOptions::new().len(size).map_mut(&file) }.map_err(cannot)?;
        Ok(MmapStore { map, _file: file, path, blank })
    }
}

impl Store for MmapStore {
    const HOLDS: bool = true;

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
        Ok(())
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        check_range(at, data.len(), self.len())?;
        self.blank = false;
        let at = at as usize;
        self.map[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.map
            .flush()
            .map_err(|source| Error::Io { what: format!("cannot sync {}", self.path.display()), source })
    }

    fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        check_range(at, len, self.len()).ok()?;
        self.map.get(at as usize..at as usize + len)
    }

    fn volatile(&self) -> bool {
        true
    }
}
