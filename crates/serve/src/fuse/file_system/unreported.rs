//! Inodes whose contents may have changed without a request: the kernel writes them itself
//! (passthrough), or programs access them directly. Their attributes are not cached.

use frit_fs::{Attr, FileSystem, Ino};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The inodes with unreported changes since mounting.
#[derive(Debug)]
pub(super) struct UnreportedChanges {
    /// Bitmap of the inodes.
    marks: Box<[AtomicU64]>,
    /// Sizes of these that the kernel got last.
    reported: Mutex<HashMap<Ino, u64>>,
}

impl UnreportedChanges {
    pub(super) fn new<F: FileSystem>(files: &F) -> UnreportedChanges {
        let inodes = files.usage().map_or(0, |usage| usage.inodes);
        let marks = (0..=inodes / 64).map(|_| AtomicU64::new(0)).collect();
        UnreportedChanges { marks, reported: Mutex::default() }
    }

    /// Marks an inode. Returns `true` if it was not marked before.
    pub(super) fn mark(&self, ino: Ino) -> bool {
        let bit = 1 << (ino.0 % 64);
        self.marks
            .get((ino.0 / 64) as usize)
            .is_some_and(|word| word.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }

    /// Returns `true` if an inode is marked.
    pub(super) fn contains(&self, ino: Ino) -> bool {
        let word = self.marks.get((ino.0 / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (ino.0 % 64) & 1 == 1)
    }

    /// Notes that attributes of a marked inode are sent to the kernel.
    pub(super) fn report(&self, attr: &Attr) {
        self.reported.lock().insert(attr.ino, attr.size);
    }

    /// Returns `true` if the kernel got no attributes of an inode since it grew to a size. Another call
    /// returns `false`.
    pub(super) fn is_news(&self, ino: Ino, size: u64) -> bool {
        let mut reported = self.reported.lock();
        let before = reported.get(&ino).copied().unwrap_or(0);
        if before < size {
            reported.insert(ino, size);
        }
        before < size
    }
}
