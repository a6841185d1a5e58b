//! Truncation and deletion of files.

use super::block_from;
use super::write::FIXED_WORDS;
use crate::error::{Error, Result};
use crate::extents::STEP_WORDS;
use crate::fs::Fs;
use crate::inode::{Node, State};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::types::FILE_MAX;
use frit_core::planted::{Bug, is};

/// Handling of the inode after its blocks are freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// The inode stays.
    Keep,
    /// The inode is freed.
    Free,
}

impl<M: Medium> Fs<M> {
    /// Returns the maximum number of extents that one transaction changes.
    pub(super) fn steps(&self) -> usize {
        (self.journal.room() - FIXED_WORDS) / STEP_WORDS / 2
    }

    /// Performs the steps of a resize that can fail, before [`Fs::resize`].
    ///
    /// # Errors
    /// The size is too large, the last block is damaged, the extents are damaged, or the orphan
    /// list is full.
    pub(crate) fn prepare_resize(
        &self,
        node: &Node,
        state: &mut State,
        txn: &mut Txn,
        to: u64,
    ) -> Result<()> {
        if to > FILE_MAX {
            return Err(Error::TooLarge);
        }
        self.load_map(node.ino, state)?;
        self.open_tail(state, to)?;
        self.prepare_cut(node, state, txn, (After::Keep, false))
    }

    /// Changes the size of a file, and commits the transaction with its other changes and the
    /// inode.
    pub(crate) fn resize(&self, node: &Node, state: &mut State, mut txn: Txn, to: u64) -> Result<()> {
        if to > state.inode.size {
            self.zero_tail(state, &mut txn, to);
        }
        state.inode.size = to;
        self.space.forget_ahead(node.ino);
        // Blocks that were allocated beyond the end are freed as well.
        self.cut(node, state, txn, block_from(to), After::Keep)
    }

    /// Performs the steps that can fail before a file is truncated or loses its last name: loads
    /// its extents, and puts it on the orphan list if the operation takes several transactions or
    /// the file is open. If the list is full, the mark for further orphans is set instead.
    ///
    /// # Errors
    /// The extents are damaged, or the list is full of files that are being truncated.
    pub(crate) fn prepare_cut(
        &self,
        node: &Node,
        state: &mut State,
        txn: &mut Txn,
        (after, open): (After, bool),
    ) -> Result<()> {
        self.load_map(node.ino, state)?;
        self.xattrs_held(node.ino, &state.inode)?;
        let steps = self.steps();
        let large = state.map.as_ref().is_some_and(|map| map.len() + map.holders().count() > steps);
        if (large || open) && state.orphan.is_none() && !is(Bug::FsOrphanNotListed) {
            let mut orphans = self.orphans.lock();
            if after == After::Keep || !orphans.is_full() {
                state.orphan = Some(orphans.add(txn, node.ino)?);
            } else if !orphans.has_more() && !is(Bug::FsMoreOrphansNotNoted) {
                // Durable before any inode relies on the mark, and independent of the caller's
                // transaction.
                let mut note = Txn::new();
                orphans.say_more(&mut note)?;
                self.commit(note);
            }
        }
        Ok(())
    }

    /// Frees the blocks of a file from block `from`, in as many transactions as necessary. The
    /// first one includes the changes in `txn`. The caller has called `prepare_cut`.
    pub(crate) fn cut(
        &self,
        node: &Node,
        state: &mut State,
        mut txn: Txn,
        from: u64,
        after: After,
    ) -> Result<()> {
        self.load_map(node.ino, state)?;
        if after == After::Free {
            self.xattrs_held(node.ino, &state.inode)?;
        }
        let steps = self.steps();
        loop {
            let mut freed = Vec::new();
            let mut change = self.change(node.ino, state);
            let left = change.remove(from, u64::MAX, steps, |extent| freed.push(extent.run()))?;
            change.sub_blocks(freed.iter().map(|run| run.len).sum());
            let done = left <= from && change.drop_holders(&mut txn, steps)?;
            change.finish(&mut txn);
            for run in freed {
                txn.free(run);
            }
            if done {
                self.finish_cut(node, state, txn, after);
                return Ok(());
            }
            self.put_inode(&mut txn, node, state);
            self.commit(txn);
            txn = Txn::new();
        }
    }

    /// Commits the last transaction of a truncation or deletion.
    fn finish_cut(&self, node: &Node, state: &mut State, mut txn: Txn, after: After) {
        let leaves = state.orphan.filter(|_| after == After::Free || state.inode.links > 0);
        if let Some(slot) = leaves.filter(|_| !is(Bug::FsOrphanStays)) {
            self.orphans.lock().remove(&mut txn, slot);
        }
        match after {
            After::Keep => self.put_inode(&mut txn, node, state),
            After::Free => {
                if state.inode.xattrs.len > 0 {
                    txn.free(state.inode.xattrs);
                }
                // An inode with type 0 is free.
                txn.write(self.geometry.inode_at(node.ino.0), &[0, 0]);
                txn.counts.inodes -= 1;
                state.dead = true;
            }
        }
        if after == After::Free && is(Bug::FsBodyBeforeName) {
            self.drop_body(node, state);
        }
        self.commit(txn);
        if after == After::Free {
            // The content file is removed only after the inode is durably freed.
            self.drop_body(node, state);
        }
        // The slot is reusable only after the transaction that cleared it is durable.
        if let Some(slot) = leaves {
            state.orphan = None;
            self.orphans.lock().give(slot);
        }
        if after == After::Free {
            self.space.forget_ahead(node.ino);
            self.cache.remove(node.ino);
            self.numbers.give(node.ino);
        }
    }
}
