//! A store in a file or a block device that bypasses the page cache (`O_DIRECT`).
//!
//! The kernel accepts accesses of whole blocks only, to aligned memory. The other accesses work as
//! well: a partial block is read, changed and written under a lock, and data in memory that is not
//! aligned is copied through a buffer. The bytes after the last whole page of the store, which
//! contain the header of a disk, are accessed through the page cache. No page has bytes of both
//! kinds.
//!
//! A completed write is in the drive, and lasts through a power loss only after [`Store::sync`].

mod bounce;
mod rings;
#[cfg(test)]
mod tests;

use super::{Store, check_range};
use bounce::{BOUNCE_BYTES, Bounce, BouncePool};
use frit_core::{BlockingMedium, Error, Result, SyncGate, SyncedFile};
use rings::Rings;
use rustix::fs::{AtFlags, FallocateFlags, OFlags, StatxFlags, fallocate, statx};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use strum::{EnumIter, EnumString, IntoStaticStr};

/// Alignment that is assumed if the kernel does not state one (before Linux 6.1), in bytes. It is a
/// multiple of the block size of common devices.
const DEFAULT_ALIGN: u32 = 4096;
/// Largest block size that is accepted: the largest page size of Linux.
const BLOCK_MAX: u32 = 64 << 10;
/// Smallest size of a page, in bytes.
const PAGE_MIN: u64 = 4096;
/// Number of locks for partial blocks.
const LOCKS: usize = 64;

/// The way in which the host accesses the file or block device of a medium.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, EnumIter, EnumString, IntoStaticStr, Serialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FileAccess {
    /// Through the page cache of the host.
    #[default]
    PageCache,
    /// Without the page cache (`O_DIRECT`).
    Direct,
    /// Without the page cache, with `io_uring`.
    IoUring,
}

/// Requirements of a file on direct accesses, both powers of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Alignment {
    /// Unit of offsets and lengths, in bytes.
    block: u32,
    /// Alignment of addresses in memory, in bytes.
    memory: u32,
}

/// A file or a block device that is open for direct accesses from any thread.
#[derive(Debug)]
pub struct DirectFile {
    /// The file with `O_DIRECT`.
    file: File,
    /// The file without `O_DIRECT`, for the bytes from `tail` on, and for syncs, which concern both.
    buffered: Arc<SyncedFile>,
    len: u64,
    tail: u64,
    alignment: Alignment,
    /// Locks of blocks of which a part is being written, by the number of the block.
    partial: [Mutex<()>; LOCKS],
    bounce: BouncePool,
    /// `None`: accesses do not use `io_uring`.
    rings: Option<io::Result<Rings>>,
}

/// Size of a page of the page cache, in bytes.
fn page_bytes() -> u64 {
    (rustix::param::page_size() as u64).max(PAGE_MIN)
}

/// Returns what the kernel requires of direct accesses to a file; `None` if it refuses them.
fn alignment_of(file: &File) -> io::Result<Option<Alignment>> {
    let stat = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    let known = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let (memory, block) = match known {
        true => (stat.stx_dio_mem_align, stat.stx_dio_offset_align),
        false => {
            let block = rustix::fs::ioctl_blksszget(file).unwrap_or(DEFAULT_ALIGN);
            (DEFAULT_ALIGN, block)
        }
    };
    let usable = |n: u32| n.is_power_of_two() && n <= BLOCK_MAX;
    Ok((usable(memory) && usable(block)).then_some(Alignment { block, memory }))
}

/// Returns the file of a descriptor, opened with `O_DIRECT`. The path may name another file by now.
fn reopen(file: &File, writable: bool) -> io::Result<File> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().read(true).write(writable).custom_flags(OFlags::DIRECT.bits() as i32).open(own)
}

impl DirectFile {
    /// Opens a file or block device of at least `len` bytes for direct accesses. The caller has
    /// opened `buffered` without `O_DIRECT` and keeps it locked; with `writable` it must be open for
    /// writing. [`FileAccess::IoUring`] uses `io_uring` where the kernel allows it.
    ///
    /// # Errors
    /// The file system refuses `O_DIRECT`, or an error of the host.
    pub fn open(
        buffered: Arc<SyncedFile>,
        len: u64,
        writable: bool,
        access: FileAccess,
    ) -> Result<DirectFile> {
        let path = buffered.path();
        let cannot = |source| Error::Io { what: format!("cannot open {} directly", path.display()), source };
        let refused = || {
            let why = "the file system or the device refuses direct accesses (O_DIRECT); put the medium on \
                       another one, or make the volume with access = \"page-cache\"";
            Error::param("access", path.display(), why)
        };
        let direct = match reopen(buffered.file(), writable) {
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => return Err(refused()),
            opened => opened.map_err(cannot)?,
        };
        let alignment = alignment_of(&direct).map_err(cannot)?.ok_or_else(refused)?;
        let mut opened = DirectFile::with_alignment(direct, buffered, len, alignment);
        opened.rings = (access == FileAccess::IoUring).then(Rings::open);
        Ok(opened)
    }

    fn with_alignment(file: File, buffered: Arc<SyncedFile>, len: u64, alignment: Alignment) -> DirectFile {
        let page = page_bytes().max(alignment.block.into());
        DirectFile {
            file,
            buffered,
            len,
            tail: len / page * page,
            alignment,
            partial: [const { Mutex::new(()) }; LOCKS],
            bounce: BouncePool::new(alignment.block.max(alignment.memory)),
            rings: None,
        }
    }

    /// Returns the reason for which accesses do not use `io_uring`, if they should and do not.
    #[must_use]
    pub fn no_io_uring(&self) -> Option<String> {
        let e = self.rings.as_ref()?.as_ref().err()?;
        let path = self.buffered.path().display();
        Some(format!(
            "the kernel does not allow io_uring ({e}): accesses to {path} use pread and pwrite with O_DIRECT"
        ))
    }

    fn failed(&self, what: &str, at: u64, len: usize, source: io::Error) -> Error {
        Error::Io {
            what: format!("cannot {what} {len} bytes at {at} of {}", self.buffered.path().display()),
            source,
        }
    }

    /// Block size as an index.
    fn block(&self) -> usize {
        self.alignment.block as usize
    }

    fn is_aligned(&self, memory: *const u8) -> bool {
        (memory as usize).is_multiple_of(self.alignment.memory as usize)
    }

    /// Number of the bytes of an access that are before the tail.
    fn before_tail(&self, at: u64, len: usize) -> usize {
        self.tail.saturating_sub(at).min(len as u64) as usize
    }

    fn lock_block(&self, at: u64) -> MutexGuard<'_, ()> {
        let number = at / u64::from(self.alignment.block);
        self.partial[(number % LOCKS as u64) as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads whole blocks into aligned memory.
    fn read_blocks(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        match &self.rings {
            Some(Ok(rings)) => rings.read(&self.file, at, into),
            _ => self.file.read_exact_at(into, at),
        }
    }

    /// Writes whole blocks from aligned memory.
    fn write_blocks(&self, at: u64, data: &[u8]) -> io::Result<()> {
        match &self.rings {
            Some(Ok(rings)) => rings.write(&self.file, at, data),
            _ => self.file.write_all_at(data, at),
        }
    }

    fn read_direct(&self, mut at: u64, mut into: &mut [u8]) -> io::Result<()> {
        if into.is_empty() {
            return Ok(());
        }
        let block = self.block() as u64;
        let whole = at.is_multiple_of(block) && (into.len() as u64).is_multiple_of(block);
        if whole && self.is_aligned(into.as_ptr()) {
            return self.read_blocks(at, into);
        }
        let mut buffer = self.bounce.take();
        while !into.is_empty() {
            let first = at / block * block;
            let end = (at + into.len() as u64).next_multiple_of(block).min(first + BOUNCE_BYTES as u64);
            let bytes = buffer.bytes((end - first) as usize);
            self.read_blocks(first, bytes)?;
            let skipped = (at - first) as usize;
            let n = into.len().min(bytes.len() - skipped);
            into[..n].copy_from_slice(&bytes[skipped..skipped + n]);
            at += n as u64;
            into = &mut into[n..];
        }
        self.bounce.give_back(buffer);
        Ok(())
    }

    fn write_direct(&self, mut at: u64, mut data: &[u8]) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let block = self.block();
        let within = (at % block as u64) as usize;
        if within > 0 {
            let (part, rest) = data.split_at(data.len().min(block - within));
            self.write_part(at, part)?;
            at += part.len() as u64;
            data = rest;
        }
        let (whole, part) = data.split_at(data.len() / block * block);
        if whole.is_empty() || self.is_aligned(whole.as_ptr()) {
            self.write_blocks(at, whole)?;
        } else {
            let mut buffer = self.bounce.take();
            for (chunk, n) in whole.chunks(BOUNCE_BYTES).zip(0..) {
                let bytes = buffer.bytes(chunk.len());
                bytes.copy_from_slice(chunk);
                self.write_blocks(at + n * BOUNCE_BYTES as u64, bytes)?;
            }
            self.bounce.give_back(buffer);
        }
        if part.is_empty() { Ok(()) } else { self.write_part(at + whole.len() as u64, part) }
    }

    /// Writes a part of a block. Another thread may write another part of it.
    fn write_part(&self, at: u64, part: &[u8]) -> io::Result<()> {
        let first = at / self.block() as u64 * self.block() as u64;
        let within = (at - first) as usize;
        let mut buffer: Bounce = self.bounce.take();
        let bytes = buffer.bytes(self.block());
        let locked = self.lock_block(first);
        self.file.read_exact_at(bytes, first)?;
        bytes[within..within + part.len()].copy_from_slice(part);
        self.file.write_all_at(bytes, first)?;
        drop(locked);
        self.bounce.give_back(buffer);
        Ok(())
    }

    /// Zeros whole pages: frees their space where the host guarantees zeros afterwards, otherwise
    /// writes zeros.
    fn zero_pages(&self, at: u64, len: u64) -> io::Result<()> {
        let freed = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let kept = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        let done = |flags| rustix::io::retry_on_intr(|| fallocate(&self.file, flags, at, len)).is_ok();
        if len == 0 || done(freed) || done(kept) {
            return Ok(());
        }
        let mut buffer = self.bounce.take();
        let zeros = buffer.bytes((len as usize).min(BOUNCE_BYTES));
        zeros.fill(0);
        let (mut at, end) = (at, at + len);
        while at < end {
            let n = zeros.len().min((end - at) as usize);
            self.write_blocks(at, &zeros[..n])?;
            at += n as u64;
        }
        self.bounce.give_back(buffer);
        Ok(())
    }
}

impl BlockingMedium for DirectFile {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        check_range(at, into.len(), self.len)?;
        let len = into.len();
        let (direct, tail) = into.split_at_mut(self.before_tail(at, len));
        let read = self
            .read_direct(at, direct)
            .and_then(|()| self.buffered.file().read_exact_at(tail, at + direct.len() as u64));
        read.map_err(|e| self.failed("read", at, len, e))
    }

    fn write(&self, at: u64, data: &[u8]) -> Result<()> {
        check_range(at, data.len(), self.len)?;
        let (direct, tail) = data.split_at(self.before_tail(at, data.len()));
        let written = self
            .write_direct(at, direct)
            .and_then(|()| self.buffered.file().write_all_at(tail, at + direct.len() as u64));
        written.map_err(|e| self.failed("write", at, data.len(), e))
    }

    fn zero(&self, at: u64, len: u64) -> Result<()> {
        check_range(at, len as usize, self.len)?;
        let page = page_bytes().max(self.alignment.block.into());
        let end = at + len;
        let first = at.next_multiple_of(page).min(end);
        let last = (end / page * page).max(first).min(self.tail.max(first));
        self.write(at, &vec![0; (first - at) as usize])?;
        self.zero_pages(first, last - first).map_err(|e| self.failed("zero", at, len as usize, e))?;
        self.write(last, &vec![0; (end - last) as usize])
    }

    fn sync(&self) -> Result<()> {
        self.buffered.sync()
    }
}

/// A store over a [`DirectFile`].
#[derive(Debug)]
pub struct DirectStore {
    file: Arc<DirectFile>,
    blank: bool,
}

impl DirectStore {
    /// Creates a store over an open file; `blank` states whether the file is new.
    #[must_use]
    pub fn new(file: Arc<DirectFile>, blank: bool) -> DirectStore {
        DirectStore { file, blank }
    }
}

impl Store for DirectStore {
    fn len(&self) -> u64 {
        self.file.len
    }

    fn is_blank(&self) -> bool {
        self.blank
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.file.read(at, into)
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.blank = false;
        self.file.write(at, data)
    }

    fn zero(&mut self, at: u64, len: u64) -> Result<()> {
        self.blank = false;
        self.file.zero(at, len)
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    fn sync_gate(&self) -> Option<&SyncGate> {
        Some(self.file.buffered.gate())
    }

    fn volatile(&self) -> bool {
        true
    }

    fn shared(&self) -> Option<Arc<dyn BlockingMedium>> {
        Some(Arc::clone(&self.file) as Arc<dyn BlockingMedium>)
    }
}
