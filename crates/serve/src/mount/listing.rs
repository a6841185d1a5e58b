//! Directories: reading them, and those that are removed while somebody is in them.

use super::adapter::Adapter;
use super::convert::{file_attr, file_type, generation};
use super::reply;
use frit_core::planted::{Bug, is};
use frit_fs::{Attr, Caller, Entry, Error, Files, Ino, Kind, Result};
use fuser::{FileAttr, Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Entries that are taken from the core at a time. A reply of the smallest size, 4 KiB, holds about 20 with their
/// attributes.
const BATCH: usize = 32;

/// Entries of a directory, copied: their attributes are looked up when the core holds nothing any more.
#[derive(Default)]
struct Batch {
    names: Vec<u8>,
    entries: Vec<Copied>,
}

/// An entry: its name ends at `end` among the names of the batch.
#[derive(Clone, Copy)]
struct Copied {
    ino: Ino,
    kind: Kind,
    next: u64,
    end: usize,
}

impl Batch {
    fn fill<F: Files>(&mut self, files: &F, dir: Ino, from: u64) -> Result<()> {
        self.names.clear();
        self.entries.clear();
        files.read_dir(dir, from, &mut |entry: &Entry<'_>| {
            self.names.extend_from_slice(entry.name);
            let (end, Entry { ino, kind, next, .. }) = (self.names.len(), *entry);
            self.entries.push(Copied { ino, kind, next, end });
            self.entries.len() < BATCH
        })
    }
}

impl<F: Files + 'static> Adapter<F> {
    /// Names and what they are. What is damaged behind names that were added fails the next request.
    pub(super) fn list(&self, dir: Ino, from: u64, reply: &mut ReplyDirectory) -> Result<()> {
        let mut any = false;
        let listed = self.files.read_dir(dir, from, &mut |entry| {
            let name = OsStr::from_bytes(entry.name);
            let full = reply.add(INodeNo(entry.ino.0), entry.next, file_type(entry.kind), name);
            any |= !full;
            !full
        });
        if any { Ok(()) } else { listed }
    }

    /// Names with all attributes: the lookups that mostly follow are answered with them.
    pub(super) fn list_plus(&self, dir: Ino, mut from: u64, reply: &mut ReplyDirectoryPlus) -> Result<()> {
        let mut batch = Batch::default();
        let mut any = false;
        loop {
            let filled = batch.fill(&*self.files, dir, from);
            let mut start = 0;
            for &Copied { ino, kind, next, end } in &batch.entries {
                let name = &batch.names[start..end];
                start = end;
                let Some((attr, ttl, generation)) = self.attributes(dir, name, ino, kind) else { continue };
                if reply.add(INodeNo(ino.0), next, OsStr::from_bytes(name), &ttl, &attr, generation) {
                    return Ok(());
                }
                any = true;
            }
            match (filled, batch.entries.last()) {
                (Ok(()), Some(last)) if batch.entries.len() == BATCH => from = last.next,
                // What is damaged behind names that were added fails the next request.
                (filled, _) => return if any { Ok(()) } else { filled },
            }
        }
    }

    /// The attributes of an entry, and how long the kernel may believe them; nothing where the name was removed since
    /// it was listed, which may be left out. An entry whose inode cannot be read is listed: the kernel is told what its
    /// name says, to be believed for no time at all, and asks for the inode when somebody does.
    fn attributes(
        &self,
        dir: Ino,
        name: &[u8],
        ino: Ino,
        kind: Kind,
    ) -> Option<(FileAttr, Duration, Generation)> {
        let known = |attr: Attr| (file_attr(&attr), self.passthrough.ttl(&attr), generation(&attr));
        match self.files.attr(ino) {
            Ok(attr) => Some(known(attr)),
            Err(_) if is(Bug::FsUnreadableUnlisted) => None,
            Err(_) => match self.files.lookup(&Caller::ROOT, dir, name) {
                Ok(attr) if attr.ino == ino => Some(known(attr)),
                Ok(_) | Err(Error::NotFound) => None,
                Err(_) => Some((reply::unread(ino, kind), Duration::ZERO, Generation(0))),
            },
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
        victim: Result<Attr>,
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
