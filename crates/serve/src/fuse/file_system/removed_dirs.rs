//! Removed directories that are still in use.

use frit_fs::{Attr, FileSystem, Ino, InodeType, Result};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Directories that were removed and that the kernel still references: working directories and open
/// directories. They are pinned until the kernel forgets them, so that opening and closing
/// directories needs no request.
///
/// The kernel may forget an earlier user of the same inode late, so lookups are counted: an inode is
/// forgotten when as many were forgotten as replies have named it.
#[derive(Debug)]
pub(super) struct RemovedDirs {
    pinned: Mutex<HashSet<Ino>>,
    count: AtomicUsize,
    /// Lookups of each inode that the kernel has not forgotten.
    lookups: Arc<[AtomicU64]>,
}

impl RemovedDirs {
    pub(super) fn new<F: FileSystem>(files: &F) -> RemovedDirs {
        let inodes = files.usage().map_or(0, |usage| usage.inodes);
        let lookups: Arc<[AtomicU64]> = (0..=inodes).map(|_| AtomicU64::new(0)).collect();
        // The kernel would take another inode with this number for the one that it has looked up, with its permissions.
        let held = Arc::clone(&lookups);
        let is_held = move |ino: Ino| held.get(ino.0 as usize).is_some_and(|n| n.load(Ordering::Acquire) > 0);
        files.set_number_guard(Box::new(is_held));
        RemovedDirs { pinned: Mutex::default(), count: AtomicUsize::new(0), lookups }
    }

    /// Counts a lookup of an inode, before the reply that names it.
    pub(super) fn looked_up(&self, ino: Ino) {
        if let Some(lookups) = self.lookups.get(ino.0 as usize) {
            lookups.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Calls `remove`, and keeps the inode of the removed file pinned if it is a directory.
    pub(super) fn removing<F: FileSystem>(
        &self,
        files: &F,
        victim: Result<Attr>,
        remove: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let victim = victim.ok().filter(|attr| attr.kind == InodeType::Directory).map(|attr| attr.ino);
        let Some(ino) = victim.filter(|&ino| files.pin(ino).is_ok()) else { return remove() };
        let removed = remove();
        if removed.is_err() {
            files.unpin(ino)?;
            return removed;
        }
        let new = self.pinned.lock().insert(ino);
        self.count.fetch_add(usize::from(new), Ordering::Release);
        removed
    }

    /// Counts lookups that the kernel has forgotten, and unpins the inode after the last one.
    pub(super) fn forget<F: FileSystem>(&self, files: &F, ino: Ino, forgotten: u64) {
        let less = |lookups: u64| Some(lookups.saturating_sub(forgotten));
        let update = |lookups: &AtomicU64| lookups.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        let before = self.lookups.get(ino.0 as usize).map_or(0, |lookups| update(lookups).unwrap_or(0));
        if before <= forgotten && self.count.load(Ordering::Acquire) > 0 && self.pinned.lock().remove(&ino) {
            self.count.fetch_sub(1, Ordering::Release);
            // FORGET has no reply. Space that cannot be freed now is found by the next check.
            let _ = files.unpin(ino);
        }
    }
}
