//! Listings of directories.

use super::adapter::FsAdapter;
use super::convert::{attr_from_entry, file_type};
use super::reply;
use frit_fs::{Attr, Caller, DirEntry, Error, FileSystem, Ino, InodeType, Result};
use frit_fuse::{Entry, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use std::time::Duration;

/// Number of entries read from the file system at a time. A reply of the smallest size, 4 KiB,
/// holds about 20 with their attributes.
const BATCH: usize = 32;

/// Entries of a directory, copied. Their attributes are read after the file system has released
/// its locks.
#[derive(Default)]
struct EntryBatch {
    names: Vec<u8>,
    entries: Vec<CopiedEntry>,
}

/// A copied entry. Its name ends at `end` in the names of the batch.
#[derive(Clone, Copy)]
struct CopiedEntry {
    ino: Ino,
    kind: InodeType,
    next: u64,
    end: usize,
}

impl EntryBatch {
    fn fill<F: FileSystem>(&mut self, files: &F, dir: Ino, from: u64) -> Result<()> {
        self.names.clear();
        self.entries.clear();
        files.read_dir(dir, from, &mut |entry: &DirEntry<'_>| {
            self.names.extend_from_slice(entry.name);
            let (end, DirEntry { ino, kind, next, .. }) = (self.names.len(), *entry);
            self.entries.push(CopiedEntry { ino, kind, next, end });
            self.entries.len() < BATCH
        })
    }
}

impl<F: FileSystem + 'static> FsAdapter<F> {
    /// Lists names and types. If damage follows entries that were added already, the error is
    /// returned to the next request.
    pub(super) fn list(&self, dir: Ino, from: u64, reply: &mut ReplyDirectory) -> Result<()> {
        let mut any = false;
        let listed = self.files.read_dir(dir, from, &mut |entry| {
            let full = reply.add(entry.ino.0, entry.next, file_type(entry.kind), entry.name);
            any |= !full;
            !full
        });
        if any { Ok(()) } else { listed }
    }

    /// Lists names with all attributes, so that the lookups that usually follow need no requests.
    pub(super) fn list_plus(&self, dir: Ino, mut from: u64, reply: &mut ReplyDirectoryPlus) -> Result<()> {
        let mut batch = EntryBatch::default();
        let mut any = false;
        loop {
            let filled = batch.fill(&*self.files, dir, from);
            let mut start = 0;
            for &CopiedEntry { ino, kind, next, end } in &batch.entries {
                let name = &batch.names[start..end];
                start = end;
                let Some(entry) = self.entry(dir, name, ino, kind) else { continue };
                // The kernel counts no lookup of these two.
                let is_lookup = !matches!(name, b"." | b"..");
                if is_lookup {
                    self.lookups.add(ino);
                }
                if reply.add(next, name, &entry) {
                    if is_lookup {
                        self.lookups.forget(&*self.files, ino, 1);
                    }
                    return Ok(());
                }
                any = true;
            }
            match (filled, batch.entries.last()) {
                (Ok(()), Some(last)) if batch.entries.len() == BATCH => from = last.next,
                // The error is returned to the next request if entries were added already.
                (filled, _) => return if any { Ok(()) } else { filled },
            }
        }
    }

    /// Returns an entry with the attributes of its inode. Returns `None` if the name was removed
    /// after it was listed; such a name may be left out. An entry whose inode cannot be read is
    /// listed with the type from its directory entry and a lifetime of zero, so that the kernel
    /// requests the inode when it is used.
    fn entry(&self, dir: Ino, name: &[u8], ino: Ino, kind: InodeType) -> Option<Entry> {
        let known = |attr: Attr| {
            let ttl = reply::ttl(&self.passthrough, &attr);
            reply::entry_with(&attr, ttl, ttl)
        };
        match self.files.attr(ino) {
            Ok(attr) => Some(known(attr)),
            Err(_) => match self.files.lookup(&Caller::ROOT, dir, name) {
                Ok(attr) if attr.ino == ino => Some(known(attr)),
                Ok(_) | Err(Error::NotFound) => None,
                Err(_) => {
                    let (attr_ttl, name_ttl) = (Duration::ZERO, Duration::ZERO);
                    let (node, attr) = (INodeNo(ino.0), attr_from_entry(ino, kind));
                    Some(Entry { node, attr, generation: 0, attr_ttl, name_ttl })
                }
            },
        }
    }
}
