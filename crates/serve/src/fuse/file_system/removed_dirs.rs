//! Removed directories that are still in use.

use frit_fs::{Attr, FileSystem, Ino, InodeType, Result};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Directories that were removed and that the kernel still references: working directories and open
/// directories. They are pinned until the kernel forgets them, so that opening and closing
/// directories needs no request.
#[derive(Debug, Default)]
pub(super) struct RemovedDirs {
    pinned: Mutex<HashSet<Ino>>,
    count: AtomicUsize,
}

impl RemovedDirs {
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

    /// Unpins an inode that the kernel has forgotten.
    pub(super) fn forget<F: FileSystem>(&self, files: &F, ino: Ino) {
        if self.count.load(Ordering::Acquire) > 0 && self.pinned.lock().remove(&ino) {
            self.count.fetch_sub(1, Ordering::Release);
            // FORGET has no reply. Space that cannot be freed now is found by the next check.
            let _ = files.unpin(ino);
        }
    }
}
