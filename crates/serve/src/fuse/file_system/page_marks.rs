//! The inodes that may have pages in the kernel's cache.

use frit_fs::Ino;
use std::sync::atomic::{AtomicU64, Ordering};

/// Value of [`PageMarks::dropping`] while no inode is being dropped. It is no inode.
const NONE: u64 = 0;

/// Bitmap of the inodes that may have pages in the kernel's cache, and the inode whose pages are being
/// dropped.
///
/// A mark is removed before the pages are dropped. So a page that a request fills meanwhile is either in
/// the cache before they are dropped, or its request marks the inode again. Until they are dropped, the
/// inode counts as one with pages, so that no direct write is answered while there is an old page.
#[derive(Debug)]
pub(super) struct PageMarks {
    filled: Box<[AtomicU64]>,
    dropping: AtomicU64,
}

impl PageMarks {
    /// Creates marks for inodes from 0 to `inodes`.
    pub(super) fn new(inodes: u64) -> PageMarks {
        let filled = (0..=inodes / 64).map(|_| AtomicU64::new(0)).collect();
        PageMarks { filled, dropping: AtomicU64::new(NONE) }
    }

    /// Marks an inode. Must be called before the request is executed that fills a page of it.
    pub(super) fn add(&self, ino: Ino) {
        if let Some((word, bit)) = self.place(ino)
            && word.load(Ordering::SeqCst) & bit == 0
        {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Returns `true` if an inode may have pages in the cache, or is outside the bitmap.
    pub(super) fn may_have_pages(&self, ino: Ino) -> bool {
        let marked = self.place(ino).is_none_or(|(word, bit)| word.load(Ordering::SeqCst) & bit != 0);
        // In this order: a mark is removed after `dropping` is set.
        marked || self.dropping.load(Ordering::SeqCst) == ino.0
    }

    /// Drops all pages of an inode by `drop_pages`, and its mark. One thread at a time may do so.
    pub(super) fn remove(&self, ino: Ino, drop_pages: impl FnOnce()) {
        self.dropping.store(ino.0, Ordering::SeqCst);
        if let Some((word, bit)) = self.place(ino) {
            word.fetch_and(!bit, Ordering::SeqCst);
        }
        drop_pages();
        self.dropping.store(NONE, Ordering::SeqCst);
    }

    fn place(&self, ino: Ino) -> Option<(&AtomicU64, u64)> {
        Some((self.filled.get((ino.0 / 64) as usize)?, 1 << (ino.0 % 64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_has_pages_until_they_are_dropped_or_if_a_request_fills_one_meanwhile() {
        let marks = PageMarks::new(100);
        let seen = |number| marks.may_have_pages(Ino(number));
        assert!(!seen(7) && !seen(100));
        assert!(seen(128), "outside the bitmap");
        marks.add(Ino(7));
        marks.add(Ino(8));
        assert!(seen(7) && seen(8) && !seen(9));
        marks.remove(Ino(7), || assert!(seen(7), "before the pages are dropped"));
        assert!(!seen(7) && seen(8));
        marks.remove(Ino(8), || marks.add(Ino(8)));
        assert!(seen(8), "filled meanwhile");
    }
}
