//! Contents of files for in-storage processing: scans of the memory itself, without a copy where the
//! medium is mapped.

use super::block_of;
use crate::error::{Error, Result};
use crate::extents::Extent;
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::medium::Medium;
use crate::nameless::is_placed;
use crate::permissions::{self, READ, WRITE};
use crate::types::{Caller, Ino};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Number of zeros that stand for a hole at a time.
const ZEROS: usize = 64 << 10;
/// Number of bytes copied at a time, from a medium without memory of its own.
const COPY_BYTES: usize = 256 << 10;

thread_local! {
    /// Copy buffer of a thread.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Contents of a file that the processing engine reads, or writes. The file exists until the value is
/// dropped, also without a name.
pub trait FileContents: Send + Sync + fmt::Debug {
    /// Returns the inode number.
    fn ino(&self) -> Ino;

    /// Returns the size in bytes.
    ///
    /// # Errors
    /// The size of contents in a pool cannot be read.
    fn bytes(&self) -> Result<u64>;

    /// Returns a number that is another one after each change of the contents or the size.
    ///
    /// # Errors
    /// As for [`FileContents::bytes`].
    fn version(&self) -> Result<u64>;

    /// Passes the bytes from `at` on to `each`, in consecutive pieces. No write changes them during the
    /// call. Holes and bytes after the end are zeros.
    ///
    /// # Errors
    /// The extents are damaged, contents do not match their checksums, or a device cannot read them.
    fn scan(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// Writes bytes from `at` on; all of them, or an error.
    ///
    /// # Errors
    /// The contents were opened without write permission; otherwise as [`crate::FileSystem::write`].
    fn write(&self, at: u64, data: &[u8]) -> Result<()>;
}

/// Contents of a file of an open file system.
struct OpenContents<M: Medium> {
    fs: Arc<Fs<M>>,
    node: Arc<Node>,
    writes: bool,
}

impl<M: Medium> fmt::Debug for OpenContents<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenContents").field("ino", &self.node.ino).finish_non_exhaustive()
    }
}

impl<M: Medium> Drop for OpenContents<M> {
    fn drop(&mut self) {
        // An inode that cannot be freed stays an orphan, which the next open frees.
        let _ = self.fs.unpin_node(&self.node);
    }
}

impl<M: Medium> Fs<M> {
    /// Opens the contents of a regular file for the processing engine, with the rights of `caller`.
    pub(crate) fn contents_for(
        self: Arc<Self>,
        caller: &Caller,
        ino: Ino,
        writes: bool,
    ) -> Result<Arc<dyn FileContents>>
    where
        M: 'static,
    {
        if writes {
            self.check_writable()?;
        }
        let node = self.node(ino)?;
        self.pin_node(&node, |state| {
            state.check_file()?;
            permissions::check_access(caller, &state.inode, if writes { WRITE } else { READ })
        })?;
        let opened = OpenContents { fs: self, node, writes };
        // A size that cannot be read would look like an empty file.
        opened.bytes()?;
        Ok(Arc::new(opened))
    }

    /// Passes bytes of the medium, or of the device of placed contents, to `each`. The range is within
    /// the size of the file, whose extents are loaded.
    fn scan_extents(
        &self,
        node: &Node,
        state: &NodeState,
        mut at: u64,
        len: usize,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        let Some(map) = &state.map else { return Ok(()) };
        let end = at + len as u64;
        while at < end {
            let extent: Option<Extent> = map.from(block_of(at));
            let (until, from) = match extent {
                Some(e) if e.at * BLOCK <= at => (e.end() * BLOCK, e.written.then_some(e)),
                Some(e) => (e.at * BLOCK, None),
                None => (u64::MAX, None),
            };
            let until = until.min(end);
            match from {
                None => zeros((until - at) as usize, each),
                Some(e) => self.scan_extent(node, state, e, (at, until), each)?,
            }
            at = until;
        }
        Ok(())
    }

    fn scan_extent(
        &self,
        node: &Node,
        state: &NodeState,
        e: Extent,
        (at, until): (u64, u64),
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        let offset = at - e.at * BLOCK;
        let placed = self.placed.as_ref().filter(|_| is_placed(e.start));
        // A program that is stopped in a direct write may change the bytes themselves.
        let is_steady = node.lease.load(Ordering::Acquire) == 0;
        if placed.is_none()
            && is_steady
            && !self.has_sums()
            && self.medium.scan(e.start * BLOCK + offset, (until - at) as usize, each)
        {
            return Ok(());
        }
        copied(until - at, |done, part| {
            match placed {
                Some(placed) => placed.read(node.ino, e.start, offset + done, part)?,
                None => self.medium.read(e.start * BLOCK + offset + done, part),
            }
            if self.has_sums() {
                self.verify(state, at + done, part)?;
            }
            each(part);
            Ok(())
        })
    }
}

impl<M: Medium> FileContents for OpenContents<M> {
    fn ino(&self) -> Ino {
        self.node.ino
    }

    fn bytes(&self) -> Result<u64> {
        self.fs.settle_size(&self.node);
        self.fs.end_of(&self.node, &self.node.state.read())
    }

    fn version(&self) -> Result<u64> {
        self.fs.settle(&self.node);
        let state = self.node.state.read();
        if self.fs.external(&state.inode).is_none() {
            return Ok(self.node.changes.load(Ordering::Acquire));
        }
        // Other processes change contents in a pool, too.
        let attr = self.fs.attr_in(&self.node, &state)?;
        Ok((attr.mtime.0 as u64).rotate_left(17) ^ attr.size)
    }

    fn scan(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        let (fs, node) = (&*self.fs, &*self.node);
        fs.settle(node);
        let state = fs.loaded(node)?;
        let mut done = 0;
        if fs.external(&state.inode).is_some() {
            copied(len as u64, |from, part| {
                let read = fs.read_external(node, &state, at + from, part)?;
                each(&part[..read]);
                done += read;
                Ok(())
            })?;
        } else {
            done = state.inode.size.saturating_sub(at).min(len as u64) as usize;
            fs.scan_extents(node, &state, at, done, each)?;
        }
        zeros(len - done, each);
        if !fs.read_only {
            node.update_atime(&state, fs.clock.now());
        }
        Ok(())
    }

    fn write(&self, mut at: u64, mut data: &[u8]) -> Result<()> {
        if !self.writes {
            return Err(Error::Access);
        }
        while !data.is_empty() {
            let len = self.fs.write_with_space(&self.node, at, data)?;
            at += len as u64;
            data = &data[len..];
        }
        Ok(())
    }
}

/// Passes `len` zeros to `each`.
fn zeros(mut len: usize, each: &mut dyn FnMut(&[u8])) {
    static ZERO: [u8; ZEROS] = [0; ZEROS];
    while len > 0 {
        let part = len.min(ZEROS);
        each(&ZERO[..part]);
        len -= part;
    }
}

/// Calls `copy` for consecutive parts of `len` bytes, with their positions and a buffer.
fn copied(len: u64, mut copy: impl FnMut(u64, &mut [u8]) -> Result<()>) -> Result<()> {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(COPY_BYTES.min(buffer.len().max(len.min(COPY_BYTES as u64) as usize)), 0);
        let mut done = 0;
        while done < len {
            let part = (len - done).min(buffer.len() as u64) as usize;
            copy(done, &mut buffer[..part])?;
            done += part as u64;
        }
        Ok(())
    })
}
