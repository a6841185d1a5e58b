//! Bytes in a file, by `pread` and `pwrite`.

use super::{Store, check_range};
use frit_core::{Error, Result, size};
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A backing file. Sparse where the file system can: what was never written takes no room.
///
/// The file is locked (advisory) for as long as the store lives, so that two programs cannot
/// write to one medium.
#[derive(Debug)]
pub struct FileStore {
    file: File,
    path: PathBuf,
    len: u64,
    blank: bool,
}

impl FileStore {
    /// Opens the file at `path`, or creates it with `len` bytes.
    ///
    /// # Errors
    /// A file of another size, one that another program uses, or what the host says.
    pub fn open(path: impl AsRef<Path>, len: u64) -> Result<FileStore> {
        let path = path.as_ref();
        let io = |what: &str, source| Error::Io { what: format!("{what} {}", path.display()), source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|e| io("cannot open or create the backing file", e))?;
        file.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => {
                io("another program uses the backing file", std::io::ErrorKind::ResourceBusy.into())
            }
            TryLockError::Error(e) => io("cannot lock the backing file", e),
        })?;
        let meta = file.metadata().map_err(|e| io("cannot look at the backing file", e))?;
        let has = meta.len();
        if !meta.is_file() {
            let why = "is not a plain file; name a file, which is created when it is missing";
            return Err(Error::param("path", path.display(), why));
        }
        if has == 0 {
            file.set_len(len).map_err(|e| {
                io(&format!("cannot make room for {} in the backing file", size::show(len)), e)
            })?;
        } else if has != len {
            let why = format!(
                "has {has} bytes, the medium needs {len}: it belongs to another geometry; use that one, \
                 or another file"
            );
            return Err(Error::param("path", path.display(), why));
        }
        Ok(FileStore { file, path: path.into(), len, blank: has == 0 })
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn io(&self, what: &str, at: u64, len: usize, source: std::io::Error) -> Error {
        Error::Io { what: format!("cannot {what} {len} bytes at {at} of {}", self.path.display()), source }
    }

    pub(super) fn into_parts(self) -> (File, PathBuf, u64, bool) {
        (self.file, self.path, self.len, self.blank)
    }
}

impl Store for FileStore {
    const HOLDS: bool = true;

    fn len(&self) -> u64 {
        self.len
    }

    fn is_blank(&self) -> bool {
        self.blank
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        check_range(at, into.len(), self.len)?;
        self.file.read_exact_at(into, at).map_err(|e| self.io("read", at, into.len(), e))
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        check_range(at, data.len(), self.len)?;
        self.blank = false;
        self.file.write_all_at(data, at).map_err(|e| self.io("write", at, data.len(), e))
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|e| self.io("sync the", 0, self.len as usize, e))
    }

    fn volatile(&self) -> bool {
        true
    }
}
