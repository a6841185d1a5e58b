//! Changes of names within a transaction.

use super::index::BLOCKS_MAX;
use super::record::{DirRecord, slots_for};
use super::{DirIndex, DirInode, FoundName, SLOT};
use crate::error::{Error, Result};
use crate::extents::Extent;
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::planted::Bug;
use crate::space::AllocRequest;
use crate::types::{Ino, InodeType, NAME_MAX};
use frit_core::planted::is_planted;

/// Maximum number of blocks that a directory grows by at once.
const GROW_MAX: u64 = 64;

/// Fails for invalid names.
pub(crate) fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > NAME_MAX {
        return Err(Error::NameTooLong);
    }
    if name.is_empty() || name.contains(&0) || name.contains(&b'/') {
        return Err(Error::Invalid("a name that is empty or contains a slash or a zero byte"));
    }
    Ok(())
}

impl<M: Medium> Fs<M> {
    /// Loads the index of a directory, if it is not in DRAM yet.
    pub(crate) fn load_index(&self, dir: &Node, state: &mut NodeState) -> Result<()> {
        state.check_directory()?;
        if state.index.is_none() {
            self.load_map(dir.ino, state)?;
            if let Some(map) = &state.map {
                let inode = DirInode {
                    ino: dir.ino,
                    at: self.geometry.inode_at(dir.ino.0),
                    size: state.inode.size,
                    names: state.inode.names,
                };
                let index = DirIndex::load(&self.medium, self.salt, &inode, map);
                state.index = Some(Box::new(index));
            }
        }
        Ok(())
    }

    /// Finds a name in a loaded directory.
    pub(crate) fn find(&self, state: &NodeState, name: &[u8]) -> Result<Option<FoundName>> {
        match &state.index {
            Some(index) => index.find(&self.medium, name),
            None => Ok(None),
        }
    }

    /// Returns the first of enough free slots for a name. The directory grows within the
    /// transaction if necessary. The caller must not fail after this call.
    ///
    /// # Errors
    /// No space is left, or the directory is damaged.
    pub(crate) fn place(&self, dir: &Node, state: &mut NodeState, txn: &mut Txn, name: &[u8]) -> Result<u32> {
        let slots = slots_for(name.len());
        let Some(index) = state.index.as_deref_mut() else { return Err(Error::NotDirectory) };
        if let Some(at) = index.damage() {
            return Err(Error::Damaged { what: "a name in a directory", at });
        }
        if let Some(slot) = index.place(slots) {
            return Ok(slot);
        }
        self.grow(dir, state, txn)?;
        let slot = state.index.as_deref_mut().and_then(|index| index.place(slots));
        slot.ok_or(Error::NoSpace)
    }

    /// Adds empty blocks to a directory, an eighth of its size.
    fn grow(&self, dir: &Node, state: &mut NodeState, txn: &mut Txn) -> Result<()> {
        let blocks = state.index.as_ref().map_or(0, |index| index.blocks());
        if blocks >= BLOCKS_MAX - GROW_MAX {
            return Err(Error::NoSpace);
        }
        let want = (blocks / 8).clamp(1, GROW_MAX);
        let goal = state.map.as_ref().and_then(|map| map.goal(blocks));
        let mut change = self.change(dir.ino, state);
        self.ensure_free_slots(&mut change, txn)?;
        let run = match self.reserve_blocks(AllocRequest::blocks(want).at(goal)) {
            Ok(run) => run,
            Err(error) => {
                // The extent block that was added stays with the directory.
                change.finish(txn);
                self.commit_partial(dir, state, std::mem::replace(txn, Txn::new()));
                return Err(error);
            }
        };
        // New blocks must not contain data that could be taken for names.
        if !is_planted(Bug::DirectoryNotZeroed) {
            self.medium.zero(run.at(), run.len * BLOCK);
        }
        txn.data = true;
        txn.alloc(run);
        change.add_blocks(run.len);
        change.insert(Extent { at: blocks, len: run.len, start: run.start, written: true })?;
        change.finish(txn);
        state.inode.size = (blocks + run.len) * BLOCK;
        if let Some(index) = state.index.as_deref_mut() {
            (0..run.len).for_each(|i| index.grow(run.start + i));
        }
        Ok(())
    }

    /// Writes a name to free slots, or over the record of the same name.
    pub(crate) fn put_name(
        &self,
        dir: &Node,
        state: &NodeState,
        txn: &mut Txn,
        slot: u32,
        name: &[u8],
        of: (Ino, InodeType),
    ) {
        if let Some(index) = &state.index {
            let record = DirRecord::new(self.salt, dir.ino, slot, name, of.0, of.1);
            txn.write(index.at(slot), record.words());
        }
    }

    /// Clears the slots of a name.
    pub(crate) fn clear_name(&self, state: &NodeState, txn: &mut Txn, slot: u32, name: &[u8]) {
        let Some(index) = &state.index else { return };
        let slots = if is_planted(Bug::NameHalfCleared) { 1 } else { slots_for(name.len()) };
        for i in 0..slots {
            txn.write(index.at(slot) + u64::from(i) * SLOT, &[0]);
        }
    }
}
