//! Allocator of inode numbers. It scans the inode table on demand, not when the file system is
//! opened.

use crate::error::{Error, Result};
use crate::format::{Geometry, read_words};
use crate::medium::Medium;
use crate::sync::Mutex;
use crate::types::Ino;

/// Maximum number of inodes scanned at once, to bound the latency of a create.
const SCAN_INODES_MAX: u64 = 4096;

/// Free inode numbers.
#[derive(Debug)]
pub(crate) struct InodeAllocator {
    geometry: Geometry,
    inner: Mutex<InodeAllocatorState>,
}

#[derive(Debug)]
struct InodeAllocatorState {
    /// Free numbers found so far.
    free: Vec<u64>,
    /// Next inode of the table to scan, up to `highest_read`.
    next: u64,
    /// Highest number in use when the file system was opened.
    highest_read: u64,
    /// Highest number allocated.
    highest: u64,
}

impl InodeAllocator {
    /// Creates the allocator; `highest` is the highest number ever used.
    pub(crate) fn new(geometry: Geometry, highest: u64) -> Self {
        let inner = InodeAllocatorState { free: Vec::new(), next: 1, highest_read: highest, highest };
        Self { geometry, inner: Mutex::new(inner) }
    }

    /// Allocates a number: a free one if known, else the next unused one.
    ///
    /// # Errors
    /// All numbers are in use.
    pub(crate) fn alloc<M: Medium>(&self, medium: &M) -> Result<Ino> {
        let mut inner = self.inner.lock();
        if inner.free.is_empty() {
            inner.scan(&self.geometry, medium, SCAN_INODES_MAX);
        }
        if let Some(ino) = inner.free.pop() {
            return Ok(Ino(ino));
        }
        if inner.highest < self.geometry.inodes {
            inner.highest += 1;
            return Ok(Ino(inner.highest));
        }
        inner.scan(&self.geometry, medium, u64::MAX);
        inner.free.pop().map(Ino).ok_or(Error::NoInode)
    }

    /// Returns the highest number allocated.
    pub(crate) fn highest(&self) -> u64 {
        self.inner.lock().highest
    }

    /// Frees a number. Its inode is durably free, or was never written.
    pub(crate) fn free(&self, ino: Ino) {
        let mut inner = self.inner.lock();
        // A number that was not scanned yet is found free by the scan.
        if ino.0 < inner.next || ino.0 > inner.highest_read {
            inner.free.push(ino.0);
        }
    }
}

impl InodeAllocatorState {
    fn scan<M: Medium>(&mut self, geometry: &Geometry, medium: &M, most: u64) {
        let end = self.next.saturating_add(most).min(self.highest_read + 1);
        while self.next < end {
            // The second word of an inode contains its type; 0 is free.
            let [kind] = read_words(medium, geometry.inode_at(self.next) + 8);
            if kind == 0 {
                self.free.push(self.next);
            }
            self.next += 1;
        }
    }
}
