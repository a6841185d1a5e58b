//! Lookups of inodes that the kernel has not forgotten.

use frit_fs::{FileSystem, Ino};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of times each inode was named in a reply and not forgotten since. The file system does not free
/// inodes that the kernel has looked up: programs work in removed directories, and open files that
/// others have just removed.
///
/// The kernel may forget an earlier user of the same inode late, so lookups are counted.
#[derive(Debug)]
pub(super) struct Lookups {
    of_inodes: Arc<[AtomicU64]>,
}

impl Lookups {
    pub(super) fn new<F: FileSystem>(files: &F) -> Lookups {
        let inodes = files.usage().map_or(0, |usage| usage.inodes);
        let of_inodes: Arc<[AtomicU64]> = (0..=inodes).map(|_| AtomicU64::new(0)).collect();
        let lookups = Arc::clone(&of_inodes);
        let is_looked_up = move |ino: Ino| {
            lookups.get(ino.0 as usize).is_some_and(|number| number.load(Ordering::Acquire) > 0)
        };
        files.set_looked_up(Box::new(is_looked_up));
        Lookups { of_inodes }
    }

    /// Counts a lookup of an inode, before the reply that names it.
    pub(super) fn add(&self, ino: Ino) {
        if let Some(lookups) = self.of_inodes.get(ino.0 as usize) {
            lookups.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Counts lookups that the kernel has forgotten.
    pub(super) fn forget<F: FileSystem>(&self, files: &F, ino: Ino, forgotten: u64) {
        let Some(lookups) = self.of_inodes.get(ino.0 as usize) else { return };
        let less = |lookups: u64| Some(lookups.saturating_sub(forgotten));
        let before = lookups.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        if before.is_ok_and(|before| before <= forgotten) {
            // FORGET has no reply. An inode that cannot be freed now is an orphan for the next open.
            let _ = files.forgotten(ino);
        }
    }
}
