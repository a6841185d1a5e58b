//! Removal of names.

use super::create::update_dir;
use crate::contents::resize::{AfterTruncate, Truncation};
use crate::dir::check_name;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::permissions;
use crate::planted::Bug;
use crate::types::{Caller, Ino, InodeType};
use frit_core::planted::is_planted;
use std::sync::Arc;

impl<M: Medium> Fs<M> {
    pub(crate) fn remove(&self, caller: &Caller, dir: Ino, name: &[u8], directory: bool) -> Result<()> {
        self.check_writable()?;
        if matches!(name, b"." | b"..") {
            self.check_search(caller, dir)?;
        }
        match (name, directory) {
            (b".", true) => return Err(Error::Invalid("`.` cannot be removed")),
            (b"..", true) => return Err(Error::NotEmpty),
            (b"." | b"..", false) => return Err(Error::IsDirectory),
            _ => {}
        }
        let _names = self.names.read();
        let parent = self.node(dir)?;
        let mut dir = parent.state.write();
        self.load_index(&parent, &mut dir)?;
        permissions::check_access(caller, &dir.inode, permissions::EXECUTE)?;
        check_name(name)?;
        if self.is_command(name) {
            return Err(if directory { Error::NotDirectory } else { Error::NotPermitted });
        }
        let found = self.find(&dir, name)?.ok_or(Error::NotFound)?;
        // Such a name exists only through damage; its inode is the parent, which is locked already.
        if found.ino == parent.ino {
            let at = self.geometry.inode_at(parent.ino.0);
            return Err(Error::Damaged { what: "a name that points to its own directory, in the inode", at });
        }
        self.check_not_command(parent.ino, &found)?;
        let node = self.named(found.ino)?;
        let mut state = node.state.write();
        state.check_alive()?;
        permissions::check_remove(caller, &dir.inode, &state.inode)?;
        match (directory, state.inode.kind == InodeType::Directory) {
            (true, false) => return Err(Error::NotDirectory),
            (false, true) => return Err(Error::IsDirectory),
            (true, true) => self.empty(&node, &mut state)?,
            (false, false) => {}
        }
        let command = self.command_of(node.ino, &state)?;
        let mut txn = Txn::new();
        self.prepare_unlink(&node, &mut state, &mut txn)?;
        let mut command = command.as_deref().map(|node| (node, node.state.write()));
        let locked = command.as_mut().map(|(node, state)| (*node, &mut **state));
        self.detach_command(&mut state, locked, &mut txn)?;
        if !is_planted(Bug::NameStays) {
            self.clear_name(&dir, &mut txn, found.slot, name);
        }
        let now = self.clock.now();
        update_dir(&mut dir, now, -1);
        if directory {
            dir.inode.links = dir.inode.links.saturating_sub(1);
        }
        state.inode.ctime = now;
        self.drop_link(&mut state);
        self.put_inode(&mut txn, &parent, &mut dir);
        let done = self.commit_unlink(&node, &mut state, txn);
        self.free_command(command.as_ref().map(|(node, state)| (*node, &**state)));
        if let Some(index) = dir.index.as_deref_mut() {
            index.remove(name, found.slot);
        }
        done
    }

    /// Fails if a directory is not empty.
    pub(crate) fn empty(&self, node: &Node, state: &mut NodeState) -> Result<()> {
        self.load_index(node, state)?;
        let Some(index) = state.index.as_deref() else { return Ok(()) };
        if let Some(at) = index.damage() {
            return Err(Error::Damaged { what: "a name in a directory", at });
        }
        if index.len() == 0 { Ok(()) } else { Err(Error::NotEmpty) }
    }

    /// Decrements the link count; that of a directory becomes 0.
    pub(crate) fn drop_link(&self, state: &mut NodeState) {
        state.inode.links =
            if state.inode.kind == InodeType::Directory { 0 } else { state.inode.links.saturating_sub(1) };
    }

    /// Performs the steps that can fail before an inode loses a name.
    pub(crate) fn prepare_unlink(&self, node: &Node, state: &mut NodeState, txn: &mut Txn) -> Result<()> {
        let last = state.inode.links <= 1 || state.inode.kind == InodeType::Directory;
        if last {
            self.prepare_truncate(
                node,
                state,
                txn,
                Truncation {
                    after: AfterTruncate::Free,
                    open: node.pinned() || self.removed.is_looked_up(node.ino),
                },
            )
        } else {
            Ok(())
        }
    }

    /// Commits the transaction in which an inode loses a name, after [`Fs::prepare_unlink`]. An
    /// inode without names is freed, unless it is held open or looked up.
    pub(crate) fn commit_unlink(&self, node: &Arc<Node>, state: &mut NodeState, mut txn: Txn) -> Result<()> {
        if state.inode.links == 0 {
            let is_kept = self.may_keep(node, state) && self.removed.keep(node);
            if !is_kept && !node.pinned() {
                return self.truncate_blocks(node, state, txn, 0, AfterTruncate::Free);
            }
        }
        self.put_inode(&mut txn, node, state);
        self.commit(txn);
        Ok(())
    }
}
