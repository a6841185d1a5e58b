//! Creation of files, directories, symbolic links and device files.

use super::target;
use crate::dir::{DirIndex, check_name};
use crate::error::{Error, Result};
use crate::extents::{self, Extent};
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{FAST_SYMLINK_MAX, Inode, Node, NodeState};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::permissions::{self, EXECUTE, WRITE};
use crate::planted::Bug;
use crate::space::AllocRequest;
use crate::types::{Attr, Caller, Ino, InodeType, LINK_MAX, NewInode, TARGET_MAX, Time};
use frit_core::planted::is_planted;
use std::sync::Arc;

impl<M: Medium> Fs<M> {
    pub(crate) fn create_in(
        &self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        new: NewInode<'_>,
    ) -> Result<Attr> {
        self.check_writable()?;
        if new.kind == InodeType::Command {
            return Err(Error::Invalid("a command file is created with its directory"));
        }
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
        self.check_may_create(caller, &state, name)?;
        // A character device with number 0 is a whiteout, which every user may create.
        let device = new.kind == InodeType::Block || (new.kind == InodeType::Char && new.rdev != 0);
        if device && caller.checked && caller.uid != 0 {
            return Err(Error::NotPermitted);
        }
        if new.kind == InodeType::Directory && state.inode.links >= LINK_MAX {
            return Err(Error::LinksFull);
        }
        let ino = self.alloc_ino()?;
        let command =
            (self.has_command_files() && new.kind == InodeType::Directory).then(|| self.alloc_ino());
        let created = match command.transpose() {
            Ok(command) => {
                let created = self.make(caller, &parent, &mut state, name, (ino, command), new);
                if let Some(command) = command.filter(|_| created.is_err()) {
                    self.inode_allocator.free(command);
                }
                created
            }
            Err(error) => Err(error),
        };
        if created.is_err() {
            self.inode_allocator.free(ino);
        }
        created
    }

    /// Fails if a name exists in a loaded directory, or the caller may not create it.
    pub(crate) fn check_may_create(&self, caller: &Caller, dir: &NodeState, name: &[u8]) -> Result<()> {
        permissions::check_access(caller, &dir.inode, EXECUTE)?;
        if matches!(name, b"." | b"..") {
            return Err(Error::Exists);
        }
        check_name(name)?;
        if self.is_command(name) || self.find(dir, name)?.is_some() {
            return Err(Error::Exists);
        }
        permissions::check_access(caller, &dir.inode, WRITE)
    }

    fn make(
        &self,
        caller: &Caller,
        parent: &Node,
        dir: &mut NodeState,
        name: &[u8],
        (ino, command): (Ino, Option<Ino>),
        new: NewInode<'_>,
    ) -> Result<Attr> {
        let mut txn = Txn::new();
        let slot = self.place(parent, dir, &mut txn, name)?;
        let now = self.clock.now();
        let (mode, gid) = permissions::inherited(caller, &dir.inode, new.kind, new.mode);
        // The journal's counter of created inodes makes the generation unique. Two concurrent
        // creations may get the same one, but for different inode numbers.
        let generation = self.journal.counters().created as u32;
        let mut inode = Inode::new(new.kind, mode, (caller.uid, gid), generation, now);
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
        let mut later = Txn::new();
        if let Some(command) = command {
            let of = if is_planted(Bug::CommandLater) { &mut later } else { &mut txn };
            self.put_command(of, (ino, &mut inode), command, now);
        }
        let words = inode.encode(self.salt, ino);
        txn.write(self.geometry.inode_at(ino.0), &words);
        txn.counts.inodes += 1;
        txn.counts.highest = txn.counts.highest.max(ino.0);
        self.put_name(parent, dir, &mut txn, slot, name, (ino, new.kind));
        if new.kind == InodeType::Directory && !is_planted(Bug::ParentNotCounted) {
            dir.inode.links += 1;
        }
        update_dir(dir, now, 1);
        self.put_inode(&mut txn, parent, dir);
        self.commit(txn);
        self.commit(later);
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
        if target.len() <= FAST_SYMLINK_MAX {
            bytemuck::cast_slice_mut(&mut inode.inline_area)[..target.len()].copy_from_slice(target);
            return Ok(());
        }
        let run = self.reserve_blocks(AllocRequest::blocks(1))?;
        let mut block = [0; BLOCK as usize];
        block[..target.len()].copy_from_slice(target);
        self.medium.write_data(run.at(), &block);
        txn.data = true;
        txn.alloc(run);
        inode.blocks = 1;
        let extent = Extent { at: 0, len: 1, start: run.start, written: true };
        inode.inline_area[..2].copy_from_slice(&extent.encode());
        inode.inline_area[target::CHECK_WORD] = target::check(self.salt, ino, inode, target);
        Ok(())
    }
}

/// Updates timestamps and name count of a directory. `delta` is the change of the number of names.
/// The directory is loaded, and its index does not include the change yet.
pub(crate) fn update_dir(dir: &mut NodeState, now: Time, delta: i64) {
    dir.inode.mtime = now;
    dir.inode.ctime = now;
    let indexed = dir.index.as_ref().map(|index| index.len() as u64);
    if !is_planted(Bug::NamesNotCounted) {
        dir.inode.names = dir.inode.names.or(indexed).map(|names| names.saturating_add_signed(delta));
    }
}
