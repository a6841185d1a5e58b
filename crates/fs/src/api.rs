//! Implementation of the [`FileSystem`] interface for [`Fs`].

use crate::error::{Error, Result};
use crate::files::FileSystem;
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::Node;
use crate::journal::Txn;
use crate::medium::Medium;
use crate::types::{
    Allocate, Attr, AttrChanges, Caller, DefragResult, DirEntry, FileExtent, Ino, LookedUp, NAME_MAX,
    NewInode, RenameMode, Seek, Usage, XattrMode,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<M: Medium> Fs<M> {
    /// Releases one pin of an inode. The last unpin of an inode without links frees the inode.
    pub(crate) fn unpin_node(&self, node: &Node) -> Result<()> {
        let mut state = node.state.write();
        state.check_alive()?;
        let left = node.pins.load(Ordering::Acquire).checked_sub(1);
        let left = left.ok_or(Error::Invalid("not pinned"))?;
        node.pins.store(left, Ordering::Release);
        if left > 0 {
            return Ok(());
        }
        self.end_lease(node, &mut state);
        node.grows_no_more.store(false, Ordering::Release);
        state.content_file = None;
        self.space.drop_reservation(node.ino);
        if state.inode.links > 0 {
            // Contents that were written while the file was open get their checksums when it is
            // closed.
            self.write_missing_checksums(&mut state);
            return Ok(());
        }
        if self.removed.is_kept(node.ino) {
            return Ok(());
        }
        self.free_node(node, &mut state, Txn::new())
    }

    /// Makes the data of a file durable, and its attributes unless `data_only`.
    pub(crate) fn sync_node(&self, node: &Node, data_only: bool) -> Result<()> {
        if !data_only || self.has_sums() {
            let mut state = node.state.write();
            self.write_missing_checksums(&mut state);
            if !data_only {
                self.save_times(node, &mut state);
            }
        } else {
            self.settle_size(node);
        }
        // The lock of the inode is released before the sync, which may wait for a disk.
        let content_file = self.content_file(node, &node.state.read())?;
        if let Some(content_file) = content_file {
            content_file.sync(data_only)?;
        }
        self.make_durable()
    }

    /// Returns the usage, with contents on the medium or placed.
    fn usage_on_medium(&self) -> Usage {
        let counters = self.journal.counters();
        let (blocks, blocks_free) = match &self.placed {
            Some(placed) => (placed.capacity(), placed.free_blocks()),
            None => (self.geometry.data_blocks, self.free_blocks()),
        };
        Usage {
            block_bytes: BLOCK as u32,
            blocks,
            blocks_free,
            inodes: self.geometry.inodes,
            inodes_free: self.geometry.inodes - counters.inodes,
            name_max: NAME_MAX as u32,
        }
    }

    /// Makes all changes durable that are in the medium and in placed contents.
    pub(crate) fn make_durable(&self) -> Result<()> {
        if self.placed.is_some() {
            return if self.read_only { Ok(()) } else { self.commit_contents() };
        }
        self.medium.fence();
        self.medium.sync()
    }
}

impl<M: Medium> FileSystem for Fs<M> {
    fn set_looked_up(&self, looked_up: LookedUp) {
        self.removed.set_looked_up(looked_up);
    }

    fn forgotten(&self, ino: Ino) -> Result<()> {
        self.free_forgotten(ino)
    }

    fn usage(&self) -> Result<Usage> {
        self.usage_external(self.usage_with_reclaimable(|| self.usage_on_medium()))
    }

    fn lookup(&self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.lookup_attr(caller, dir, name)
    }

    fn attr(&self, ino: Ino) -> Result<Attr> {
        self.attr_of(ino)
    }

    fn set_attr(&self, caller: &Caller, ino: Ino, changes: &AttrChanges) -> Result<Attr> {
        self.with_space(|| self.change_attr(caller, ino, changes))
    }

    fn create(&self, caller: &Caller, dir: Ino, name: &[u8], new: NewInode<'_>) -> Result<Attr> {
        self.with_space(|| self.create_in(caller, dir, name, new))
    }

    fn link(&self, caller: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.with_space(|| self.link_to(caller, ino, dir, name))
    }

    fn unlink(&self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.remove(caller, dir, name, false)
    }

    fn rmdir(&self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.remove(caller, dir, name, true)
    }

    fn rename(&self, caller: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), mode: RenameMode) -> Result<()> {
        self.with_space(|| self.rename_from(caller, from, to, mode))
    }

    fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        self.target_of(ino)
    }

    fn pin(&self, ino: Ino) -> Result<()> {
        let node = self.node(ino)?;
        self.pin_node(&node, |_| Ok(()))?;
        self.end_growth(&node);
        Ok(())
    }

    fn unpin(&self, ino: Ino) -> Result<()> {
        self.unpin_node(&*self.node(ino)?)
    }

    fn read(&self, ino: Ino, at: u64, into: &mut [u8]) -> Result<usize> {
        self.read_node(&*self.node(ino)?, at, into)
    }

    fn write(&self, ino: Ino, at: u64, data: &[u8]) -> Result<usize> {
        self.write_with_space(&*self.node(ino)?, at, data)
    }

    fn append(&self, ino: Ino, data: &[u8]) -> Result<(u64, usize)> {
        self.with_space(|| self.append_node(&*self.node(ino)?, data))
    }

    fn allocate(&self, ino: Ino, mode: Allocate, at: u64, len: u64) -> Result<()> {
        self.with_space(|| self.allocate_node(&*self.node(ino)?, mode, at, len))
    }

    fn seek(&self, ino: Ino, what: Seek, at: u64) -> Result<u64> {
        self.seek_node(&*self.node(ino)?, what, at)
    }

    fn sync_file(&self, ino: Ino, data_only: bool) -> Result<()> {
        self.sync_node(&*self.node(ino)?, data_only)
    }

    fn sync(&self) -> Result<()> {
        self.sync_all()
    }

    fn read_dir(&self, ino: Ino, from: u64, each: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        self.list(&*self.node(ino)?, from, each)
    }

    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.value_of(ino, name)
    }

    fn xattrs(&self, ino: Ino) -> Result<Vec<u8>> {
        let mut names = Vec::new();
        for (name, _) in self.pairs_of(ino)? {
            names.extend(name);
            names.push(0);
        }
        Ok(names)
    }

    fn set_xattr(&self, caller: &Caller, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        self.with_space(|| self.change_xattr(caller, ino, name, Some(value), mode))
    }

    fn remove_xattr(&self, caller: &Caller, ino: Ino, name: &[u8]) -> Result<()> {
        self.change_xattr(caller, ino, name, None, XattrMode::Replace)
    }

    fn content_file(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        let node = self.node(ino).ok()?;
        let state = node.state.read();
        state.content_file.as_ref().and_then(|content_file| content_file.descriptor())
    }

    fn pieces(&self, ino: Ino, at: u64, each: &mut dyn FnMut(&FileExtent) -> bool) -> Result<()> {
        self.pieces_of(&*self.node(ino)?, at, each)
    }

    fn gather(&self, ino: Ino) -> Result<DefragResult> {
        self.defragment_node(&*self.node(ino)?)
    }
}
