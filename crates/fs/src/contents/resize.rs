//! Truncation and deletion of files.

use super::block_from;
use super::write::FIXED_WORDS;
use crate::error::{Error, Result};
use crate::extents::STEP_WORDS;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::planted::Bug;
use crate::types::FILE_MAX;
use frit_core::planted::is_planted;
use std::sync::atomic::Ordering;

/// Handling of the inode after its blocks are freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AfterTruncate {
    /// The inode stays.
    Keep,
    /// The inode is freed.
    Free,
}

/// A truncation that is prepared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Truncation {
    pub(crate) after: AfterTruncate,
    /// `true` if the file is held open.
    pub(crate) open: bool,
}

impl<M: Medium> Fs<M> {
    /// Returns the maximum number of extents that one transaction changes.
    pub(super) fn steps(&self) -> usize {
        (self.journal.capacity() - FIXED_WORDS) / STEP_WORDS / 2
    }

    /// Performs the steps of a resize that can fail, before [`Fs::resize`].
    ///
    /// # Errors
    /// The size is too large, the last block is damaged, the extents are damaged, or the orphan
    /// list is full.
    pub(crate) fn prepare_resize(
        &self,
        node: &Node,
        state: &mut NodeState,
        txn: &mut Txn,
        to: u64,
    ) -> Result<()> {
        if to > FILE_MAX {
            return Err(Error::TooLarge);
        }
        if to < state.inode.size {
            self.check_movable(node, state)?;
        }
        self.load_map(node.ino, state)?;
        node.note_change();
        self.begin_tail_overwrite(node, state, to)?;
        self.prepare_truncate(node, state, txn, Truncation { after: AfterTruncate::Keep, open: false })
    }

    /// Changes the size of a file, and commits the transaction with its other changes and the
    /// inode.
    pub(crate) fn resize(&self, node: &Node, state: &mut NodeState, mut txn: Txn, to: u64) -> Result<()> {
        if to > state.inode.size {
            self.zero_tail(state, &mut txn, to);
        }
        state.inode.size = to;
        node.grown_to.store(0, Ordering::Release);
        self.space.drop_reservation(node.ino);
        // Blocks that were allocated beyond the end are freed as well.
        self.truncate_blocks(node, state, txn, block_from(to), AfterTruncate::Keep)
    }

    /// Performs the steps that can fail before a file is truncated or loses its last name: loads
    /// its extents, and puts it on the orphan list if the operation takes several transactions or
    /// the file is open. If the list is full, the mark for further orphans is set instead.
    ///
    /// # Errors
    /// The extents are damaged, or the list is full of files that are being truncated.
    pub(crate) fn prepare_truncate(
        &self,
        node: &Node,
        state: &mut NodeState,
        txn: &mut Txn,
        truncation: Truncation,
    ) -> Result<()> {
        let Truncation { after, open } = truncation;
        self.load_map(node.ino, state)?;
        self.check_xattr_run(node.ino, &state.inode)?;
        let steps = self.steps();
        let large = state.map.as_ref().is_some_and(|map| map.len() + map.extent_blocks().count() > steps);
        if (large || open) && state.orphan.is_none() && !is_planted(Bug::OrphanNotListed) {
            let mut orphans = self.orphans.lock();
            if after == AfterTruncate::Keep || !orphans.is_full() {
                state.orphan = Some(orphans.add(txn, node.ino)?);
            } else if !orphans.has_overflow() && !is_planted(Bug::MoreOrphansNotNoted) {
                // Durable before any inode relies on the mark, and independent of the caller's
                // transaction.
                let mut note = Txn::new();
                orphans.mark_overflow(&mut note)?;
                self.commit(note);
            }
        }
        Ok(())
    }

    /// Frees the blocks of a file from block `from`, in as many transactions as necessary. The
    /// first one includes the changes in `txn`. The caller has called `prepare_truncate`.
    pub(crate) fn truncate_blocks(
        &self,
        node: &Node,
        state: &mut NodeState,
        mut txn: Txn,
        from: u64,
        after: AfterTruncate,
    ) -> Result<()> {
        if !self.end_lease(node, state) {
            return Err(Error::Busy);
        }
        self.load_map(node.ino, state)?;
        if after == AfterTruncate::Free {
            self.check_xattr_run(node.ino, &state.inode)?;
        }
        let steps = self.steps();
        loop {
            let mut freed = Vec::new();
            let mut change = self.change(node.ino, state);
            let left = change.remove(from, u64::MAX, steps, |extent| freed.push(extent.run()))?;
            change.sub_blocks(freed.iter().map(|run| run.len).sum());
            let done = left <= from && change.free_extent_blocks(&mut txn, steps)?;
            change.finish(&mut txn);
            for run in freed {
                self.free_contents(&mut txn, node.ino, state.inode.kind, run);
            }
            if done {
                self.finish_truncate(node, state, txn, after);
                return Ok(());
            }
            self.put_inode(&mut txn, node, state);
            self.commit(txn);
            txn = Txn::new();
        }
    }

    /// Commits the last transaction of a truncation or deletion.
    fn finish_truncate(&self, node: &Node, state: &mut NodeState, mut txn: Txn, after: AfterTruncate) {
        let leaves = state.orphan.filter(|_| after == AfterTruncate::Free || state.inode.links > 0);
        if let Some(slot) = leaves.filter(|_| !is_planted(Bug::OrphanStays)) {
            self.orphans.lock().remove(&mut txn, slot);
        }
        match after {
            AfterTruncate::Keep => self.put_inode(&mut txn, node, state),
            AfterTruncate::Free => {
                if state.inode.xattrs.len > 0 {
                    txn.free(state.inode.xattrs);
                }
                // An inode with type 0 is free.
                txn.write(self.geometry.inode_at(node.ino.0), &[0, 0]);
                txn.counts.inodes -= 1;
                state.dead = true;
            }
        }
        if after == AfterTruncate::Free && is_planted(Bug::BodyBeforeName) {
            self.drop_body(node, state);
        }
        self.commit(txn);
        if after == AfterTruncate::Free {
            // The content file is removed only after the inode is durably freed.
            self.drop_body(node, state);
        }
        // The slot is reusable only after the transaction that cleared it is durable.
        if let Some(slot) = leaves {
            state.orphan = None;
            self.orphans.lock().release_slot(slot);
        }
        if after == AfterTruncate::Free {
            self.space.drop_reservation(node.ino);
            self.cache.remove(node.ino);
            self.inode_allocator.free(node.ino);
        }
    }
}
