//! An open file. Data is copied directly between the caller's memory and the medium.

use super::paths::Paths;
use crate::error::{Error, Result};
use crate::files::FileSystem;
use crate::fs::Fs;
use crate::inode::Node;
use crate::medium::Medium;
use crate::names::LOOKUP_RETRIES_MAX;
use crate::permissions::{self, READ, WRITE};
use crate::types::{Allocate, Attr, AttrChanges, Caller, FileExtent, NewInode, Seek};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Options for opening a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenFile {
    /// The file is open for reading.
    pub read: bool,
    /// The file is open for writing.
    pub write: bool,
    /// Every write appends to the file.
    pub append: bool,
    /// Creates the file with these permissions if it does not exist.
    pub create: Option<u16>,
    /// The file must not exist.
    pub exclusive: bool,
    /// Truncates the file to zero bytes.
    pub truncate: bool,
}

impl OpenFile {
    /// Options for reading.
    pub const READ: Self =
        Self { read: true, write: false, append: false, create: None, exclusive: false, truncate: false };
    /// Options for reading and writing.
    pub const WRITE: Self = Self { write: true, ..Self::READ };
    /// Options for reading and writing a file that is created if it does not exist.
    pub const CREATE: Self = Self { create: Some(0o644), ..Self::WRITE };
}

/// An open file. Its contents remain available without a name until it is dropped.
#[derive(Debug)]
pub struct File<'a, M: Medium> {
    pub(super) fs: &'a Fs<M>,
    pub(super) node: Arc<Node>,
    pub(super) options: OpenFile,
    /// Position of the next read or write through `std::io`.
    at: u64,
}

impl<M: Medium> Fs<M> {
    /// Opens a file.
    ///
    /// # Errors
    /// The file does not exist, exists, or is a directory, or the caller lacks permission.
    pub fn open_file(&self, caller: &Caller, path: &str, options: OpenFile) -> Result<File<'_, M>> {
        for _ in 0..LOOKUP_RETRIES_MAX {
            match self.try_open_file(caller, path, options) {
                // The inode was freed after the lookup. Another inode may have the name by now.
                Err(Error::Stale) => {}
                opened => return opened,
            }
        }
        Err(Error::NotFound)
    }

    fn try_open_file(&self, caller: &Caller, path: &str, options: OpenFile) -> Result<File<'_, M>> {
        let (ino, created) = match options.create {
            Some(mode) => match self.make(caller, path, NewInode::file(mode)) {
                Ok(attr) => (attr.ino, true),
                Err(Error::Exists) if !options.exclusive => (self.resolve(caller, path, true)?.ino, false),
                Err(error) => return Err(error),
            },
            None => (self.resolve(caller, path, true)?.ino, false),
        };
        let node = self.node(ino)?;
        self.pin_node(&node, |state| {
            state.check_file()?;
            let writes = options.write || options.append || options.truncate;
            // The creator may use a new file whatever its mode, as with open(2).
            if created {
                return Ok(());
            }
            let want = if options.read { READ } else { 0 } | if writes { WRITE } else { 0 };
            permissions::check_access(caller, &state.inode, want)
        })?;
        let file = File { fs: self, node, options, at: 0 };
        if options.truncate && !created {
            file.set_len(0)?;
        }
        Ok(file)
    }
}

impl<M: Medium> File<'_, M> {
    /// Returns the attributes of the file.
    ///
    /// # Errors
    /// The inode is damaged.
    pub fn attr(&self) -> Result<Attr> {
        let state = self.node.state.read();
        state.check_alive()?;
        self.fs.attr_in(&self.node, &state)
    }

    /// Reads from byte `at`; returns fewer bytes only at the end.
    ///
    /// # Errors
    /// The file is not open for reading, or is damaged.
    #[inline]
    pub fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        if !self.options.read {
            return Err(Error::Access);
        }
        self.fs.read_node(&self.node, at, into)
    }

    /// Writes from byte `at`, or at the end of a file that is open for appending. Returns fewer
    /// bytes only if space ran out.
    ///
    /// # Errors
    /// The file is not open for writing; no space is left; the file would become too large.
    #[inline]
    pub fn write_at(&self, at: u64, data: &[u8]) -> Result<usize> {
        if self.options.append {
            return Ok(self.append(data)?.1);
        }
        if !self.options.write {
            return Err(Error::Access);
        }
        self.fs.write_node(&self.node, at, data)
    }

    /// Appends to the file; returns the new end and the number of bytes written.
    ///
    /// # Errors
    /// As [`File::write_at`].
    pub fn append(&self, data: &[u8]) -> Result<(u64, usize)> {
        self.check_write()?;
        self.fs.append_node(&self.node, data)
    }

    /// Fails if the file is not open for writing. `truncate` opens it for writing as well.
    fn check_write(&self) -> Result<()> {
        let OpenFile { write, append, truncate, .. } = self.options;
        if write || append || truncate { Ok(()) } else { Err(Error::Access) }
    }

    /// Sets the file size.
    ///
    /// # Errors
    /// The file is not open for writing; no space is left for the metadata of the change; the size
    /// is too large.
    pub fn set_len(&self, size: u64) -> Result<()> {
        self.check_write()?;
        let changes = AttrChanges { size: Some(size), ..AttrChanges::default() };
        self.fs.set_attr(&Caller::trusted(0, 0), self.node.ino, &changes)?;
        Ok(())
    }

    /// Allocates, punches or zeroes a range.
    ///
    /// # Errors
    /// The file is not open for writing; otherwise as [`FileSystem::allocate`].
    pub fn allocate(&self, mode: Allocate, at: u64, len: u64) -> Result<()> {
        self.check_write()?;
        self.fs.allocate_node(&self.node, mode, at, len)
    }

    /// Searches for data or a hole.
    ///
    /// # Errors
    /// As [`FileSystem::seek`].
    pub fn seek_for(&self, what: Seek, at: u64) -> Result<u64> {
        self.fs.seek_node(&self.node, what, at)
    }

    /// Reports the contiguous pieces of the file on the medium.
    ///
    /// # Errors
    /// As [`FileSystem::pieces`].
    pub fn pieces(&self, at: u64, each: &mut dyn FnMut(&FileExtent) -> bool) -> Result<()> {
        self.fs.pieces_of(&self.node, at, each)
    }

    /// Returns the content file of a file whose contents are in a pool, for example to map it.
    /// Access through the descriptor bypasses permissions and locks.
    #[must_use]
    pub fn descriptor(&self) -> Option<Arc<OwnedFd>> {
        self.node.state.read().content_file.as_ref().and_then(|content_file| content_file.descriptor())
    }

    /// Makes written data durable, and the timestamps unless `data_only`.
    ///
    /// # Errors
    /// A sync of the medium failed.
    pub fn sync(&self, data_only: bool) -> Result<()> {
        self.fs.sync_node(&self.node, data_only)
    }
}

impl<M: Medium> Drop for File<'_, M> {
    fn drop(&mut self) {
        // An inode that cannot be freed stays an orphan, which the next open frees.
        let _ = self.fs.unpin_node(&self.node);
    }
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::Os { error, .. } => error,
        error => io::Error::from_raw_os_error(error.errno()),
    }
}

impl<M: Medium> io::Read for File<'_, M> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.read_at(self.at, into).map_err(io_error)?;
        self.at += len as u64;
        Ok(len)
    }
}

impl<M: Medium> io::Write for File<'_, M> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.options.append {
            let (end, len) = self.append(data).map_err(io_error)?;
            self.at = end;
            return Ok(len);
        }
        let len = self.write_at(self.at, data).map_err(io_error)?;
        self.at += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<M: Medium> io::Seek for File<'_, M> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let (base, by) = match to {
            io::SeekFrom::Start(at) => (at, 0),
            io::SeekFrom::Current(by) => (self.at, by),
            io::SeekFrom::End(by) => (self.attr().map_err(io_error)?.size, by),
        };
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "a position before the start");
        self.at = base.checked_add_signed(by).ok_or_else(invalid)?;
        Ok(self.at)
    }
}
