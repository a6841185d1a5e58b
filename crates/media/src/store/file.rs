//! A store in a file, accessed with `pread` and `pwrite`.

use super::{Store, check_range};
use frit_core::paths::OpenOptions;
use frit_core::{BlockingMedium, Error, Result, SyncGate, SyncedFile, size};
use std::fs::{File, TryLockError};
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which a lock is retried. A child that this process has forked holds the lock of a closed
/// store until it starts its program, because it inherits the descriptors.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Locks a file until all its descriptors are closed.
fn lock(file: &File) -> std::result::Result<(), TryLockError> {
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begin.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(LOCK_RETRY_INTERVAL);
            }
            done => return done,
        }
    }
}

/// A backing file. It is sparse where the file system supports that: bytes that were never written
/// take no space.
///
/// The file is locked (advisory) while the store exists, so that two programs cannot write to one
/// medium.
#[derive(Debug)]
pub struct FileStore {
    file: Arc<SyncedFile>,
    len: u64,
    blank: bool,
}

impl FileStore {
    /// Opens the file at `path`, or creates it with `len` bytes.
    ///
    /// # Errors
    /// A file of another size, a file that another program uses, or an error of the host.
    pub fn open(path: impl AsRef<Path>, len: u64) -> Result<FileStore> {
        let path = path.as_ref();
        let io = |what: &str, source| Error::Io { what: format!("{what} {}", path.display()), source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(|e| io("cannot open or create the backing file", e))?;
        lock(&file).map_err(|e| match e {
            TryLockError::WouldBlock => {
                io("another program uses the backing file", std::io::ErrorKind::ResourceBusy.into())
            }
            TryLockError::Error(e) => io("cannot lock the backing file", e),
        })?;
        let meta = file.metadata().map_err(|e| io("cannot read the metadata of the backing file", e))?;
        let has = meta.len();
        if !meta.is_file() {
            let why = "is not a regular file; give the path of a file (a missing file is created)";
            return Err(Error::param("path", path.display(), why));
        }
        if has == 0 {
            file.set_len(len)
                .map_err(|e| io(&format!("cannot grow the backing file to {}", size::format(len)), e))?;
        } else if has != len {
            let why = format!(
                "has {has} bytes, the medium needs {len}: it belongs to another geometry; use that geometry, \
                 or another file"
            );
            return Err(Error::param("path", path.display(), why));
        }
        Ok(FileStore { file: SyncedFile::new(file, path.into()), len, blank: has == 0 })
    }

    /// Creates a store over a file of `len` bytes. The caller must have opened it for reading and
    /// writing, and locked it.
    #[must_use]
    pub fn from_locked_file(file: Arc<SyncedFile>, len: u64, blank: bool) -> FileStore {
        FileStore { file, len, blank }
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    fn io(&self, what: &str, at: u64, len: usize, source: std::io::Error) -> Error {
        Error::Io { what: format!("cannot {what} {len} bytes at {at} of {}", self.path().display()), source }
    }

    pub(super) fn into_parts(self) -> (Arc<SyncedFile>, u64, bool) {
        (self.file, self.len, self.blank)
    }
}

impl Store for FileStore {
    fn len(&self) -> u64 {
        self.len
    }

    fn is_blank(&self) -> bool {
        self.blank
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        check_range(at, into.len(), self.len)?;
        self.file.file().read_exact_at(into, at).map_err(|e| self.io("read", at, into.len(), e))
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        check_range(at, data.len(), self.len)?;
        self.blank = false;
        self.file.file().write_all_at(data, at).map_err(|e| self.io("write", at, data.len(), e))
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    fn sync_gate(&self) -> Option<&SyncGate> {
        Some(self.file.gate())
    }

    fn volatile(&self) -> bool {
        true
    }

    fn zero(&mut self, at: u64, len: u64) -> Result<()> {
        check_range(at, len as usize, self.len)?;
        self.blank = false;
        SharedFile::zero(self.file.file(), self.path(), at, len)
    }

    fn shared(&self) -> Option<Arc<dyn BlockingMedium>> {
        Some(Arc::new(SharedFile(Arc::clone(&self.file))))
    }
}

/// The same file for use from any thread.
#[derive(Debug)]
struct SharedFile(Arc<SyncedFile>);

impl SharedFile {
    fn failed(path: &Path, what: &str, at: u64, source: std::io::Error) -> Error {
        Error::Io { what: format!("cannot {what} at {at} of {}", path.display()), source }
    }

    /// Zeros `len` bytes at `at`: by punching a hole where the file system can, otherwise by
    /// writing zeros.
    fn zero(file: &File, path: &Path, at: u64, len: u64) -> Result<()> {
        let zeros = vec![0; (1 << 20).min(len as usize)];
        let (mut pos, end) = (at, at + len);
        if punch(file, at, len) {
            return Ok(());
        }
        while pos < end {
            let n = zeros.len().min((end - pos) as usize);
            file.write_all_at(&zeros[..n], pos).map_err(|e| SharedFile::failed(path, "write", pos, e))?;
            pos += n as u64;
        }
        Ok(())
    }
}

/// Punches a hole. Returns `true` on success.
fn punch(file: &File, at: u64, len: u64) -> bool {
    use rustix::fs::{FallocateFlags, fallocate};
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, len).is_ok()
}

impl BlockingMedium for SharedFile {
    /// Reads what is in the page cache. Some file systems cannot tell.
    fn read_now(&self, at: u64, into: &mut [u8]) -> bool {
        use rustix::io::{ReadWriteFlags, preadv2};
        let len = into.len();
        let read = preadv2(self.0.file(), &mut [IoSliceMut::new(into)], at, ReadWriteFlags::NOWAIT);
        read == Ok(len)
    }

    /// Writes end in the page cache.
    fn writes_wait(&self) -> bool {
        false
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.0.file().read_exact_at(into, at).map_err(|e| SharedFile::failed(self.0.path(), "read", at, e))
    }

    fn write(&self, at: u64, data: &[u8]) -> Result<()> {
        self.0.file().write_all_at(data, at).map_err(|e| SharedFile::failed(self.0.path(), "write", at, e))
    }

    fn zero(&self, at: u64, len: u64) -> Result<()> {
        SharedFile::zero(self.0.file(), self.0.path(), at, len)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}
