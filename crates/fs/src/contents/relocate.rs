//! Relocation of file blocks: contents are copied first, then one transaction switches the extents.

use super::write::FIXED_WORDS;
use crate::error::{Error, Result};
use crate::extents::{Extent, STEP_WORDS};
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Inode, Node, NodeState};
use crate::journal::{BlockRun, Txn};
use crate::medium::Medium;
use crate::planted::Bug;
use crate::space::AllocRequest;
use crate::types::{DefragResult, InodeType};
use frit_core::planted::is_planted;

/// Maximum number of blocks relocated in one transaction, 32 MiB. The file is locked meanwhile.
const WINDOW: u64 = 8192;
/// Number of bytes copied at once.
const COPY_BYTES: u64 = 256 << 10;

impl<M: Medium> Fs<M> {
    /// Moves blocks `at..at + to.len` of a file to the reserved run `to`, and frees the old blocks,
    /// in one transaction. All of these blocks are written, in few enough extents for one
    /// transaction.
    ///
    /// # Errors
    /// No extent slot is free, or an extent line is damaged. Nothing is moved then, and the caller
    /// still owns `to`.
    pub(crate) fn relocate(&self, node: &Node, state: &mut NodeState, at: u64, to: BlockRun) -> Result<()> {
        let mut txn = Txn::new();
        let end = at + to.len;
        self.clear_checksums(to);
        self.copy_blocks(node, state, at, to)?;
        let mut change = self.change(node.ino, state);
        if let Err(error) = self.ensure_free_slots(&mut change, &mut txn) {
            change.finish(&mut txn);
            self.commit_partial(node, state, txn);
            return Err(error);
        }
        let mut old = Vec::new();
        let moved = change
            .remove(at, end, usize::MAX, |extent| old.push(extent))
            .and_then(|_| change.insert(Extent { at, len: to.len, start: to.start, written: true }));
        change.finish(&mut txn);
        if let Err(error) = moved {
            self.discard_changes(node, state);
            return Err(error);
        }
        if let Some(map) = &mut state.map {
            map.unsummed.add(at, end);
        }
        txn.alloc(to);
        for extent in old {
            txn.free(extent.run());
        }
        // The copied contents must be durable before the extents refer to them.
        txn.data = !is_planted(Bug::MovedUnfenced);
        self.put_inode(&mut txn, node, state);
        self.commit(txn);
        Ok(())
    }

    /// Discards extent changes that were not added to a transaction, by reloading the extents.
    fn discard_changes(&self, node: &Node, state: &mut NodeState) {
        if let Ok(Some(saved)) = Inode::decode(&self.geometry, self.salt, node.ino, &state.saved) {
            state.inode.extents = saved.extents;
            state.inode.blocks = saved.blocks;
            state.inode.inline_area = saved.inline_area;
        }
        let unsummed = state.map.take().map(|map| map.unsummed).unwrap_or_default();
        if self.load_map(node.ino, state).is_ok()
            && let Some(map) = &mut state.map
        {
            map.unsummed = unsummed;
        }
    }

    /// Copies the contents of blocks from `at` to a run.
    fn copy_blocks(&self, node: &Node, state: &NodeState, at: u64, to: BlockRun) -> Result<()> {
        let bytes = to.len * BLOCK;
        let mut buffer = vec![0; bytes.min(COPY_BYTES) as usize];
        let mut done = 0;
        while done < bytes {
            let part = &mut buffer[..(bytes - done).min(COPY_BYTES) as usize];
            self.copy_out(node.ino, state, at * BLOCK + done, part)?;
            if self.has_sums() {
                self.verify(state, at * BLOCK + done, part)?;
            }
            self.medium.write_data(to.at() + done, part);
            done += part.len() as u64;
        }
        Ok(())
    }

    /// Defragments a file, as far as free space permits.
    pub(crate) fn defragment_node(&self, node: &Node) -> Result<DefragResult> {
        self.check_writable()?;
        let mut gathered = DefragResult::default();
        let mut from = 0;
        loop {
            // The lock is released between windows, so that other threads can use the file.
            let mut state = node.state.write();
            state.check_alive()?;
            let elsewhere = self.external(&state.inode).is_some() || self.placed.is_some();
            if state.inode.kind != InodeType::File
                || elsewhere
                || self.check_movable(node, &mut state).is_err()
            {
                return Ok(gathered);
            }
            self.load_map(node.ino, &mut state)?;
            let pieces = state.map.as_ref().map_or(0, |map| map.len() as u64);
            if from == 0 {
                self.space.drop_reservation(node.ino);
                gathered.before = pieces;
            }
            gathered.after = pieces;
            let Some(window) = self.window(&state, from) else { return Ok(gathered) };
            from = self.defragment_window(node, &mut state, &window)?;
        }
    }

    /// Returns the next window from block `from`: written extents that are consecutive in the file
    /// and can be moved in one transaction.
    fn window(&self, state: &NodeState, from: u64) -> Option<Vec<Extent>> {
        let map = state.map.as_ref()?;
        let most = (self.journal.capacity() - FIXED_WORDS) / STEP_WORDS - 2;
        let mut window: Vec<Extent> = Vec::new();
        let mut blocks = 0;
        let mut next = map.from(from);
        while let Some(extent) = next.filter(|_| window.len() < most) {
            let follows = window.last().is_none_or(|last| last.end() == extent.at);
            if !extent.written || !follows || blocks + extent.len > WINDOW {
                if window.is_empty() {
                    // An extent of its own that cannot be merged: skipped.
                    next = map.from(extent.end());
                    continue;
                }
                break;
            }
            blocks += extent.len;
            window.push(extent);
            next = map.from(extent.end());
        }
        (!window.is_empty()).then_some(window)
    }

    /// Relocates a window, or the part of it that fits into one free run, if that reduces the
    /// number of pieces. Returns the block from which to continue.
    fn defragment_window(&self, node: &Node, state: &mut NodeState, window: &[Extent]) -> Result<u64> {
        let (first, last) = (window[0], window[window.len() - 1]);
        if window.len() == 1 {
            return Ok(last.end());
        }
        let blocks = last.end() - first.at;
        let goal = state.map.as_ref().and_then(|map| map.goal(first.at));
        let run = match self.space.reserve(&self.medium, AllocRequest::blocks(blocks).at(goal)) {
            Ok(run) => run,
            // The medium is full: the window stays fragmented.
            Err(Error::NoSpace) => return Ok(last.end()),
            Err(error) => return Err(error),
        };
        // Only whole extents are moved: the rest of a split extent would be an additional piece.
        let fits = window.iter().take_while(|extent| extent.end() - first.at <= run.len).count();
        if fits < 2 {
            self.space.release(run);
            return Ok(window[fits.saturating_sub(1)].end());
        }
        let end = window[fits - 1].end();
        let to = BlockRun { start: run.start, len: end - first.at };
        if to.len < run.len {
            self.space.release(BlockRun { start: to.start + to.len, len: run.len - to.len });
        }
        match self.relocate(node, state, first.at, to) {
            Ok(()) => Ok(end),
            Err(error) => {
                self.space.release(to);
                if matches!(error, Error::NoSpace) { Ok(end) } else { Err(error) }
            }
        }
    }
}
