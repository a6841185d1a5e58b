//! Which inode numbers are free. The table is read as far as numbers are asked for, not at the start.

use crate::error::{Error, Result};
use crate::format::{Geometry, read_words};
use crate::medium::Medium;
use crate::sync::Mutex;
use crate::types::Ino;

/// Inodes that one look at the table reads at most, so that no single create waits for all of it.
const LOOK: u64 = 4096;

/// The free numbers.
#[derive(Debug)]
pub(crate) struct Numbers {
    geometry: Geometry,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Known to be free.
    free: Vec<u64>,
    /// The next inode of the table to be looked at, below `highest_read`.
    next: u64,
    /// How far the table had been used at the start.
    highest_read: u64,
    /// The highest number given out.
    highest: u64,
}

impl Numbers {
    /// `highest`: the highest number that was ever used.
    pub(crate) fn new(geometry: Geometry, highest: u64) -> Self {
        let inner = Inner { free: Vec::new(), next: 1, highest_read: highest, highest };
        Self { geometry, inner: Mutex::new(inner) }
    }

    /// A free number, and the highest given out so far.
    ///
    /// # Errors
    /// All are used.
    pub(crate) fn take<M: Medium>(&self, medium: &M) -> Result<Ino> {
        let mut inner = self.inner.lock();
        if inner.free.is_empty() {
            inner.look(&self.geometry, medium, LOOK);
        }
        if let Some(ino) = inner.free.pop() {
            return Ok(Ino(ino));
        }
        if inner.highest < self.geometry.inodes {
            inner.highest += 1;
            return Ok(Ino(inner.highest));
        }
        inner.look(&self.geometry, medium, u64::MAX);
        inner.free.pop().map(Ino).ok_or(Error::NoInode)
    }

    /// The highest number given out.
    pub(crate) fn highest(&self) -> u64 {
        self.inner.lock().highest
    }

    /// Gives a number back: its inode is durably free, or was never written.
    pub(crate) fn give(&self, ino: Ino) {
        let mut inner = self.inner.lock();
        // One that was not looked at yet is found free then.
        if ino.0 < inner.next || ino.0 > inner.highest_read {
            inner.free.push(ino.0);
        }
    }
}

impl Inner {
    fn look<M: Medium>(&mut self, geometry: &Geometry, medium: &M, most: u64) {
        let end = self.next.saturating_add(most).min(self.highest_read + 1);
        while self.next < end {
            let [kind] = read_words(medium, geometry.inode_at(self.next) + 8);
            if kind == 0 {
                self.free.push(self.next);
            }
            self.next += 1;
        }
    }
}
