//! Directories: reading them, and those that are removed while somebody is in them.

use super::adapter::Adapter;
use super::convert::{file_attr, file_type, generation};
use super::reply;
use frit_fs::{Entry, Files, Ino, Kind, Result};
use fuser::{INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Entries that are taken from the core at a time. A reply of the smallest size, 4 KiB, holds about 20 with their
/// attributes.
const BATCH: usize = 32;

/// Entries of a directory, copied: their attributes are looked up when the core holds nothing any more.
#[derive(Default)]
struct Batch {
    names: Vec<u8>,
    entries: Vec<(Ino, u64, usize)>,
}

impl Batch {
    fn fill<F: Files>(&mut self, files: &F, dir: Ino, from: u64) -> Result<()> {
        self.names.clear();
        self.entries.clear();
        files.read_dir(dir, from, &mut |entry: &Entry<'_>| {
            self.names.extend_from_slice(entry.name);
            self.entries.push((entry.ino, entry.next, self.names.len()));
            self.entries.len() < BATCH
        })
    }
}

impl<F: Files + 'static> Adapter<F> {
    /// Names and what they are.
    pub(super) fn list(&self, dir: Ino, from: u64, reply: &mut ReplyDirectory) -> Result<()> {
        self.files.read_dir(dir, from, &mut |entry| {
            let name = OsStr::from_bytes(entry.name);
            !reply.add(INodeNo(entry.ino.0), entry.next, file_type(entry.kind), name)
        })
    }

    /// Names with all attributes: the lookups that mostly follow are answered with them.
    pub(super) fn list_plus(&self, dir: Ino, mut from: u64, reply: &mut ReplyDirectoryPlus) -> Result<()> {
        let mut batch = Batch::default();
        loop {
            batch.fill(&*self.files, dir, from)?;
            let mut start = 0;
            for &(ino, next, end) in &batch.entries {
                let name = OsStr::from_bytes(&batch.names[start..end]);
                start = end;
                // A name that was removed meanwhile is left out, as it may be.
                let Ok(attr) = self.files.attr(ino) else { continue };
                let ttl = reply::ttl(&self.passthrough, &attr);
                if reply.add(INodeNo(ino.0), next, name, &ttl, &file_attr(&attr), generation(&attr)) {
                    return Ok(());
                }
            }
            match batch.entries.last() {
                Some(&(_, next, _)) if batch.entries.len() == BATCH => from = next,
                _ => return Ok(()),
            }
        }
    }
}

/// Directories that were removed and that the kernel knows still: someone's working directory, an open one. They are
/// pinned until the kernel forgets them, so that opening and closing directories needs no request.
#[derive(Debug, Default)]
pub(super) struct Removed {
    pinned: Mutex<HashSet<Ino>>,
    count: AtomicUsize,
}

impl Removed {
    /// Removes a directory by `remove`, and keeps its inode if it is one.
    pub(super) fn removing<F: Files>(
        &self,
        files: &F,
        victim: Result<frit_fs::Attr>,
        remove: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let victim = victim.ok().filter(|attr| attr.kind == Kind::Directory).map(|attr| attr.ino);
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

    /// The kernel has forgotten an inode.
    pub(super) fn forget<F: Files>(&self, files: &F, ino: Ino) {
        if self.count.load(Ordering::Acquire) > 0 && self.pinned.lock().remove(&ino) {
            self.count.fetch_sub(1, Ordering::Release);
            // Nobody waits for it, and what cannot be freed now is found by the next check.
            let _ = files.unpin(ino);
        }
    }
}
