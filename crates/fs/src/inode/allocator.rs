//! Allocator of inode numbers. It scans the inode table on demand, not when the file system is
//! opened.

use crate::error::{Error, Result};
use crate::format::{Geometry, read_words};
use crate::medium::Medium;
use crate::sync::Mutex;
use crate::types::Ino;
use std::collections::VecDeque;

/// Maximum number of inodes scanned at once, to bound the latency of a create.
const SCAN_INODES_MAX: u64 = 4096;
/// A number is reused after as many others were freed, at most. Whoever has looked it up finds out meanwhile, or
/// holds it.
const OTHERS_BEFORE_REUSE: u64 = 64;
/// Number of free numbers that are looked at while there are unused ones.
const TRIES_MAX: usize = 64;
/// Part of the inodes whose numbers wait: small tables have none to spare.
const WAITING_PART: u64 = 256;

/// Free inode numbers.
#[derive(Debug)]
pub(crate) struct InodeAllocator {
    geometry: Geometry,
    inner: Mutex<InodeAllocatorState>,
}

#[derive(Debug)]
struct InodeAllocatorState {
    /// Free numbers found so far, those that were freed last at the end.
    free: VecDeque<u64>,
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
        let inner = InodeAllocatorState { free: VecDeque::new(), next: 1, highest_read: highest, highest };
        Self { geometry, inner: Mutex::new(inner) }
    }

    /// Allocates a number: a free one that was not freed lately and for which `is_held` returns `false`,
    /// or the next unused one, or else any free one.
    ///
    /// # Errors
    /// All numbers are in use.
    pub(crate) fn alloc<M: Medium>(&self, medium: &M, is_held: impl Fn(Ino) -> bool) -> Result<Ino> {
        let is_held = |number: u64| is_held(Ino(number));
        let waiting = OTHERS_BEFORE_REUSE.min(self.geometry.inodes / WAITING_PART) as usize;
        let mut inner = self.inner.lock();
        if inner.free.len() <= waiting {
            inner.scan(&self.geometry, medium, SCAN_INODES_MAX);
        }
        let old = inner.free.len().saturating_sub(waiting).min(TRIES_MAX);
        if let Some(number) = inner.take(old, is_held) {
            return Ok(Ino(number));
        }
        if inner.highest < self.geometry.inodes {
            inner.highest += 1;
            return Ok(Ino(inner.highest));
        }
        inner.scan(&self.geometry, medium, u64::MAX);
        let all = inner.free.len();
        let number = inner.take(all, is_held).or_else(|| inner.free.pop_front());
        number.map(Ino).ok_or(Error::NoInode)
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
            inner.free.push_back(ino.0);
        }
    }
}

impl InodeAllocatorState {
    /// Takes the first number that is not held, of the first ones.
    fn take(&mut self, first: usize, is_held: impl Fn(u64) -> bool) -> Option<u64> {
        let at = self.free.iter().take(first).position(|number| !is_held(*number))?;
        self.free.remove(at)
    }

    fn scan<M: Medium>(&mut self, geometry: &Geometry, medium: &M, most: u64) {
        let end = self.next.saturating_add(most).min(self.highest_read + 1);
        while self.next < end {
            // The second word of an inode contains its type; 0 is free.
            let [kind] = read_words(medium, geometry.inode_at(self.next) + 8);
            if kind == 0 {
                // Nobody has looked up a number that was free before.
                self.free.push_front(self.next);
            }
            self.next += 1;
        }
    }
}
