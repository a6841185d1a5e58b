//! Contents of files: opening, reading, copying, and the search for data and holes.

use super::adapter::FsAdapter;
use super::convert::errno;
use super::killpriv::{DIRECT, KillprivCache, Writer, has_set_id};
use crate::fuse::linux::whence;
use frit_fs::{AttrChanges, Caller, DirectFiles, Error, FileSystem, Ino, Result, Seek};
use frit_fuse::{BackingId, FileHandle, FopenFlags, OpenAccMode, OpenFlags, ReplyRead, Request};
use rustix::fs::OFlags;
use std::cell::RefCell;
use std::sync::Arc;

/// Maximum number of bytes copied by one request. Programs request the rest again.
const COPY_MAX: u64 = 64 << 20;
/// Number of bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

thread_local! {
    /// Copy buffer of a thread.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Calls a function with `len` bytes of this thread's buffer.
fn with_buffer<R>(len: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        work(&mut buffer[..len])
    })
}

/// Converts an offset of lseek(2) to a position in a file.
fn position(at: i64) -> Result<u64> {
    u64::try_from(at).map_err(|_| Error::BeyondEnd)
}

impl<F: FileSystem + DirectFiles + 'static> FsAdapter<F> {
    /// Adds a user to a pinned inode. Returns the kernel's ID of its backing file if the kernel
    /// reads and writes the contents itself.
    pub(super) fn backing(&self, ino: Ino, flags: OpenFlags) -> Option<Arc<BackingId>> {
        let writes = flags.acc_mode() != OpenAccMode::O_RDONLY;
        self.passthrough.open(&*self.files, ino, writes)
    }

    /// Returns the handle of an open file whose contents are transferred by requests, and the flags
    /// for the kernel.
    ///
    /// With O_DIRECT, requests bypass the page cache (FOPEN_DIRECT_IO), and several writes run at a
    /// time, except those that extend the file. A file with set-ID bits is opened without these
    /// flags even for O_DIRECT, because only then the kernel removes the bits before a write
    /// (`killpriv`). The same holds for a file whose attributes cannot be read.
    pub(super) fn open_flags(&self, ino: Ino, flags: OpenFlags) -> (FileHandle, FopenFlags) {
        let direct = flags.0 as u32 & OFlags::DIRECT.bits() != 0;
        if direct && self.files.attr(ino).is_ok_and(|attr| !has_set_id(&attr)) {
            let how = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
            return (DIRECT, FopenFlags::FOPEN_NOFLUSH | how);
        }
        // The page cache stays valid after closing. It is dropped only with passthrough, where
        // files are written past it. close(2) guarantees nothing, so that no request is needed
        // (FOPEN_NOFLUSH).
        let keep = if self.passthrough.is_on() { FopenFlags::empty() } else { FopenFlags::FOPEN_KEEP_CACHE };
        (FileHandle(0), FopenFlags::FOPEN_NOFLUSH | keep)
    }

    /// Pins an inode for an open file, and truncates it if the flags contain O_TRUNC.
    pub(super) fn open_file(&self, request: &Request, ino: Ino, flags: OpenFlags) -> Result<()> {
        self.files.pin(ino)?;
        let truncate = flags.0 as u32 & OFlags::TRUNC.bits() != 0;
        let opened = if truncate { self.truncate(request, ino) } else { Ok(()) };
        if opened.is_err() {
            self.files.unpin(ino)?;
        }
        opened
    }

    /// Fails with [`Error::Stale`], and releases an inode that was just pinned, if programs with direct access
    /// extended the file after the kernel got its attributes. The kernel then looks it up again, and opens it
    /// once more. It would otherwise append at the old size.
    pub(super) fn check_size_known(&self, ino: Ino) -> Result<()> {
        if !self.direct.has_news(&*self.files, ino) {
            return Ok(());
        }
        self.files.unpin(ino)?;
        Err(Error::Stale)
    }

    fn truncate(&self, request: &Request, ino: Ino) -> Result<()> {
        let who = Caller::trusted(request.uid(), request.gid());
        let mut changes = AttrChanges { size: Some(0), ..AttrChanges::default() };
        KillprivCache::extend_changes(&*self.files, Writer::Sender(request), ino, &mut changes)?;
        self.files.set_attr(&who, ino, &changes).map(drop)
    }
}

/// Answers a read.
pub(super) fn read_into<F: FileSystem>(files: &F, ino: Ino, at: u64, reply: ReplyRead) {
    reply.fill(|buffer| files.read(ino, at, buffer).map_err(|e| errno(&e)));
}

/// Returns the next position with data, or in a hole.
pub(super) fn seek<F: FileSystem>(files: &F, ino: Ino, at: i64, direction: i32) -> Result<i64> {
    let what = match direction {
        whence::SEEK_DATA => Seek::Data,
        whence::SEEK_HOLE => Seek::Hole,
        _ => return Err(Error::Invalid("lseek looks for data and holes")),
    };
    files.seek(ino, what, position(at)?).map(|found| found as i64)
}

/// Copies up to `len` bytes between files, or within one.
pub(super) fn copy<F: FileSystem>(files: &F, from: (Ino, u64), to: (Ino, u64), len: u64) -> Result<usize> {
    let len = len.min(COPY_MAX);
    let mut done = 0;
    with_buffer(COPY_BYTES.min(len as usize), |buffer| {
        while done < len {
            let part = buffer.len().min((len - done) as usize);
            match copy_part(files, (from.0, from.1 + done), (to.0, to.1 + done), &mut buffer[..part]) {
                Ok(bytes) => {
                    done += bytes as u64;
                    if bytes < part {
                        break;
                    }
                }
                // Bytes copied so far are kept and reported as success. The program gets the
                // error with its next request.
                Err(e) if done == 0 => return Err(e),
                Err(_) => break,
            }
        }
        Ok(done as usize)
    })
}

fn copy_part<F: FileSystem>(files: &F, from: (Ino, u64), to: (Ino, u64), buffer: &mut [u8]) -> Result<usize> {
    match files.read(from.0, from.1, buffer)? {
        0 => Ok(0),
        bytes => files.write(to.0, to.1, &buffer[..bytes]),
    }
}
