//! Inodes whose contents may have changed without a request: the kernel writes them itself
//! (passthrough), or programs access them directly. Their attributes are not cached.

use frit_fs::{FileSystem, Ino};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bitmap of the inodes with unreported changes since mounting.
#[derive(Debug)]
pub(super) struct UnreportedChanges(Box<[AtomicU64]>);

impl UnreportedChanges {
    pub(super) fn new<F: FileSystem>(files: &F) -> UnreportedChanges {
        let inodes = files.usage().map_or(0, |usage| usage.inodes);
        UnreportedChanges((0..=inodes / 64).map(|_| AtomicU64::new(0)).collect())
    }

    /// Marks an inode. Returns `true` if it was not marked before.
    pub(super) fn mark(&self, ino: Ino) -> bool {
        let bit = 1 << (ino.0 % 64);
        self.0.get((ino.0 / 64) as usize).is_some_and(|word| word.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }

    /// Returns `true` if an inode is marked.
    pub(super) fn contains(&self, ino: Ino) -> bool {
        let word = self.0.get((ino.0 / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (ino.0 % 64) & 1 == 1)
    }
}
