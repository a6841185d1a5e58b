//! Command files: one in each directory, for instructions to the processing engine (ISPFS 3.1).
//!
//! The inode of a directory has the number of its command file, whose inode has that of the directory
//! as its parent. There is no entry in the directory, so nothing that lists or counts names includes it.

use crate::contents::resize::{AfterTruncate, Truncation};
use crate::dir::FoundName;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::inode::{Inode, Node, NodeState};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::permissions::{self, READ};
use crate::planted::Bug;
use crate::types::{COMMAND_NAME, Caller, Ino, InodeType, Time};
use frit_core::planted::is_planted;
use std::sync::Arc;

impl<M: Medium> Fs<M> {
    /// Returns `true` if directories have command files.
    #[must_use]
    pub fn has_command_files(&self) -> bool {
        self.superblock.command_files
    }

    /// Returns `true` if a name is that of the command files of this file system.
    pub(crate) fn is_command(&self, name: &[u8]) -> bool {
        name == COMMAND_NAME && self.has_command_files()
    }

    /// Returns the directory of a command file.
    ///
    /// # Errors
    /// The inode is not a command file, or its directory was removed.
    pub(crate) fn directory_of(&self, command: Ino) -> Result<Ino> {
        let node = self.node(command)?;
        let state = node.state.read();
        state.check_alive()?;
        if state.inode.kind != InodeType::Command {
            return Err(Error::Invalid("not a command file"));
        }
        if state.inode.links == 0 { Err(Error::NotFound) } else { Ok(state.inode.parent) }
    }

    /// Fails unless the caller may list the names of a directory.
    pub(crate) fn check_readable_directory(&self, caller: &Caller, directory: Ino) -> Result<()> {
        let node = self.node(directory)?;
        let state = node.state.read();
        state.check_directory()?;
        permissions::check_access(caller, &state.inode, READ)
    }

    /// Adds the command file of a new directory to a transaction. The caller frees `ino` if the
    /// transaction is not committed.
    pub(super) fn put_command(&self, txn: &mut Txn, dir: (Ino, &mut Inode), ino: Ino, now: Time) {
        let (of, inode) = dir;
        inode.command = ino;
        let command = inode.new_command(of, inode.generation, now);
        txn.write(self.geometry.inode_at(ino.0), &command.encode(self.salt, ino));
        txn.counts.inodes += 1;
        txn.counts.highest = txn.counts.highest.max(ino.0);
    }

    /// Returns the command file of an inode that is about to lose its name, if it is a directory with
    /// one. The caller locks it before [`Fs::detach_command`], and until [`Fs::free_command`].
    ///
    /// # Errors
    /// The command file is damaged.
    pub(super) fn command_of(&self, dir: Ino, state: &NodeState) -> Result<Option<Arc<Node>>> {
        let ino = state.inode.command;
        if ino == Ino(0) {
            return Ok(None);
        }
        // A damaged reference may lead to an inode that the caller has locked, so no lock is taken here.
        // Kind and directory of a command file never change.
        let found = Inode::read(&self.medium, &self.geometry, self.salt, ino)?;
        if !found.is_some_and(|inode| inode.kind == InodeType::Command && inode.parent == dir) {
            let at = self.geometry.inode_at(dir.0);
            return Err(Error::Damaged { what: "the command file of a directory, in the inode", at });
        }
        self.named(ino).map(Some)
    }

    /// Fails for a name in a directory that leads to a command file: it exists only through damage.
    pub(super) fn check_not_command(&self, dir: Ino, found: &FoundName) -> Result<()> {
        if found.kind != InodeType::Command {
            return Ok(());
        }
        let at = self.geometry.inode_at(dir.0);
        Err(Error::Damaged {
            what: "a name that points to a command file, in the directory of the inode",
            at,
        })
    }

    /// Removes the command file of an empty directory in a transaction. Its inode is freed, or stays on
    /// the orphan list while it is open.
    ///
    /// # Errors
    /// The orphan list is full.
    pub(super) fn detach_command(
        &self,
        state: &mut NodeState,
        command: Option<(&Node, &mut NodeState)>,
        txn: &mut Txn,
    ) -> Result<()> {
        let Some((node, command)) = command else { return Ok(()) };
        command.check_alive()?;
        if node.pinned() {
            self.prepare_truncate(node, command, txn, Truncation { after: AfterTruncate::Free, open: true })?;
            command.inode.links = 0;
            self.put_inode(txn, node, command);
        } else if !is_planted(Bug::CommandStays) {
            txn.write(self.geometry.inode_at(node.ino.0), &[0, 0]);
            txn.counts.inodes -= 1;
            command.dead = true;
        }
        state.inode.command = Ino(0);
        Ok(())
    }

    /// Releases the inode number of a command file that a committed transaction has freed.
    pub(super) fn free_command(&self, command: Option<(&Node, &NodeState)>) {
        if let Some((node, _)) = command.filter(|(_, state)| state.dead) {
            self.cache.remove(node.ino);
            self.inode_allocator.free(node.ino);
        }
    }

    /// Creates the command file of a directory that has none.
    ///
    /// # Errors
    /// No inode is free.
    pub(crate) fn add_command(&self, dir: Ino) -> Result<()> {
        let parent = self.node(dir)?;
        let mut state = parent.state.write();
        state.check_directory()?;
        let ino = self.alloc_ino()?;
        let mut txn = Txn::new();
        self.put_command(&mut txn, (dir, &mut state.inode), ino, self.clock.now());
        self.put_inode(&mut txn, &parent, &mut state);
        self.commit(txn);
        Ok(())
    }
}
