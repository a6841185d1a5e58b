//! Creation of files, directories, symbolic links and device files.

use super::target;
use crate::dir::{DirIndex, valid};
use crate::error::{Error, Result};
use crate::extents::{self, Extent};
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{INLINE_TARGET, Inode, Node, NodeState};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::permissions::{self, EXECUTE, WRITE};
use crate::planted::Bug;
use crate::space::AllocRequest;
use crate::types::{Attr, Caller, Ino, InodeType, LINK_MAX, NewInode, TARGET_MAX, Time};
use frit_core::planted::is;
use std::sync::Arc;

impl<M: Medium> Fs<M> {
    pub(crate) fn create_in(&self, who: &Caller, dir: Ino, name: &[u8], new: NewInode<'_>) -> Result<Attr> {
        self.writable()?;
        if new.kind == InodeType::Symlink {
            match new.target.len() {
                0 => return Err(Error::NotFound),
                n if n > TARGET_MAX => return Err(Error::NameTooLong),
                _ => {}
            }
        }
        let _names = self.names.read();
        let parent = self.node(dir)?;
        let mut state = parent.state.write();
        self.load_index(&parent, &mut state)?;
        self.check_vacant(who, &state, name)?;
        // A character device with number 0 is a whiteout, which every user may create.
        let device = new.kind == InodeType::Block || (new.kind == InodeType::Char && new.rdev != 0);
        if device && who.checked && who.uid != 0 {
            return Err(Error::NotPermitted);
        }
        if new.kind == InodeType::Directory && state.inode.links >= LINK_MAX {
            return Err(Error::LinksFull);
        }
        let ino = self.inode_allocator.take(&self.medium)?;
        let made = self.make(who, &parent, &mut state, name, ino, new);
        if made.is_err() {
            self.inode_allocator.give(ino);
        }
        made
    }

    /// Fails if a name exists in a loaded directory, or the caller may not create it.
    pub(crate) fn check_vacant(&self, who: &Caller, dir: &NodeState, name: &[u8]) -> Result<()> {
        permissions::check_access(who, &dir.inode, EXECUTE)?;
        if matches!(name, b"." | b"..") {
            return Err(Error::Exists);
        }
        valid(name)?;
        if self.find(dir, name)?.is_some() {
            return Err(Error::Exists);
        }
        permissions::check_access(who, &dir.inode, WRITE)
    }

    fn make(
        &self,
        who: &Caller,
        parent: &Node,
        dir: &mut NodeState,
        name: &[u8],
        ino: Ino,
        new: NewInode<'_>,
    ) -> Result<Attr> {
        let mut txn = Txn::new();
        let slot = self.place(parent, dir, &mut txn, name)?;
        let now = self.clock.now();
        let (mode, gid) = permissions::inherited(who, &dir.inode, new.kind, new.mode);
        // Unique as long as the ledger counts created inodes. Two concurrent creations may get the
        // same generation, but for different inode numbers.
        let generation = self.journal.counters().made as u32;
        let mut inode = Inode::new(new.kind, mode, (who.uid, gid), generation, now);
        inode.rdev = new.rdev;
        match new.kind {
            InodeType::Directory => inode.parent = parent.ino,
            InodeType::Symlink => {
                if let Err(error) = self.put_target(ino, &mut inode, &mut txn, new.target) {
                    // A directory that grew for the name keeps its size.
                    self.commit_partial(parent, dir, txn);
                    return Err(error);
                }
            }
            _ => {}
        }
        let words = inode.encode(self.salt, ino);
        txn.write(self.geometry.inode_at(ino.0), &words);
        txn.counts.inodes += 1;
        txn.counts.highest = ino.0;
        self.put_name(parent, dir, &mut txn, slot, name, (ino, new.kind));
        if new.kind == InodeType::Directory && !is(Bug::ParentNotCounted) {
            dir.inode.links += 1;
        }
        touch(dir, now, 1);
        self.put_inode(&mut txn, parent, dir);
        self.commit(txn);
        if let Some(index) = dir.index.as_deref_mut() {
            index.insert(name, slot);
        }
        let node = Arc::new(Node::new(ino, inode, words));
        let attr = self.remember_new(&node, new.kind);
        self.cache.insert(node);
        Ok(attr)
    }

    /// Initializes the state of a new inode without reading it.
    fn remember_new(&self, node: &Node, kind: InodeType) -> Attr {
        let mut state = node.state.write();
        if kind == InodeType::Directory {
            state.index = Some(Box::new(DirIndex::new(self.salt, node.ino)));
        }
        if matches!(kind, InodeType::Directory | InodeType::File) {
            state.map = Some(extents::ExtentMap::empty());
        }
        node.attr(&state)
    }

    /// Stores the target of a symbolic link, in the inode or in a block.
    fn put_target(&self, ino: Ino, inode: &mut Inode, txn: &mut Txn, target: &[u8]) -> Result<()> {
        inode.size = target.len() as u64;
        if target.len() <= INLINE_TARGET {
            bytemuck::cast_slice_mut(&mut inode.area)[..target.len()].copy_from_slice(target);
            return Ok(());
        }
        let run = self.space.reserve(&self.medium, AllocRequest::blocks(1))?;
        let mut block = [0; BLOCK as usize];
        block[..target.len()].copy_from_slice(target);
        self.medium.write_data(run.at(), &block);
        txn.data = true;
        txn.take(run);
        inode.blocks = 1;
        let extent = Extent { at: 0, len: 1, start: run.start, written: true };
        inode.area[..2].copy_from_slice(&extent.encode());
        inode.area[target::CHECK_WORD] = target::check(self.salt, ino, inode, target);
        Ok(())
    }
}

/// Updates timestamps and name count of a directory for `more` names. The directory is loaded, and
/// its index does not include the change yet.
pub(crate) fn touch(dir: &mut NodeState, now: Time, more: i64) {
    dir.inode.mtime = now;
    dir.inode.ctime = now;
    let there = dir.index.as_ref().map(|index| index.len() as u64);
    if !is(Bug::NamesNotCounted) {
        dir.inode.names = dir.inode.names.or(there).map(|names| names.saturating_add_signed(more));
    }
}
