//! Append space: free blocks behind the end of a file that programs write to, and taking over what they
//! wrote.
//!
//! The blocks are taken from the allocator in DRAM only, so that a power loss forgets them. The size in the
//! shared memory says how many of their bytes belong to the file. The bytes behind it are undefined, as
//! those behind the end of any file: a program that leaves a gap writes zeros to it.

use super::leases::HeldSpace;
use crate::contents::{block_from, block_of};
use crate::error::Result;
use crate::extents::Extent;
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::journal::{BlockRun, Txn};
use crate::medium::Medium;
use crate::planted::DirectBug;
use crate::space::AllocRequest;
use crate::types::FILE_MAX;
use frit_core::planted::is_planted;
use std::sync::atomic::Ordering;

/// Append space in blocks, in addition to what a program is about to write: as much as the file has, within
/// these bounds. A request for a lease takes as long as a write of some hundred kilobytes.
const MORE_MIN: u64 = 16;
const MORE_MAX: u64 = 8192;
/// Largest distance in bytes between the end of a file and that of a write for which append space is given.
const REACH_MAX: u64 = 64 << 20;
/// Part of the free blocks that one file may get.
const SHARE: u64 = 8;

impl<M: Medium> Fs<M> {
    /// Takes over the bytes by which programs have extended a file, in one transaction.
    pub(super) fn take_growth(&self, node: &Node, state: &mut NodeState) {
        let Some((file, leases)) = self.lease_of(node) else { return };
        let Some((size, space)) = leases.growth(file) else { return };
        if size <= state.inode.size {
            return;
        }
        match self.extend(node, state, &space, size) {
            Ok(()) => leases.note_taken(file, size),
            // The extents of the file are damaged, so that it cannot grow. The blocks stay in use until the
            // next open.
            Err(_) => leases.give_up(file),
        }
    }

    /// Adds blocks of append space to a file up to a new size.
    ///
    /// # Errors
    /// The extents are damaged.
    pub(super) fn extend(
        &self,
        node: &Node,
        state: &mut NodeState,
        space: &HeldSpace,
        size: u64,
    ) -> Result<()> {
        self.load_map(node.ino, state)?;
        let (from, end) = (block_from(state.inode.size), block_from(size));
        let mut txn = Txn::new();
        if from < end {
            let run = space.run_of(from, end);
            let extent = Extent { at: from, len: run.len, start: run.start, written: true };
            let mut change = self.change(node.ino, state);
            change.insert(extent)?;
            change.add_blocks(run.len);
            change.finish(&mut txn);
            txn.alloc(run);
        }
        // The bytes come from other processes, and must be durable before the size that exposes them.
        if !is_planted(DirectBug::GrowthNotWrittenBack) {
            self.write_back(state, state.inode.size, size);
            txn.data = true;
        }
        node.note_change();
        node.grown_to.store(size, Ordering::Release);
        state.inode.size = size;
        self.put_inode(&mut txn, node, state);
        self.commit(txn);
        Ok(())
    }

    /// Includes the bytes of a range, which other processes have written, in the next fence.
    fn write_back(&self, state: &NodeState, mut at: u64, end: u64) {
        let Some(map) = &state.map else { return };
        while let Some(extent) = map.at(block_of(at)).filter(|_| at < end) {
            let to = end.min(extent.end() * BLOCK);
            self.medium.write_back(extent.start * BLOCK + (at - extent.at * BLOCK), to - at);
            at = to;
        }
    }

    /// Gives a file append space, up to `to` at least, if there is enough. No access to it is allowed.
    pub(super) fn give_space(&self, node: &Node, state: &mut NodeState, file: u32, to: u64) {
        let Some(leases) = self.leases.get() else { return };
        let (size, at) = (state.inode.size, block_from(state.inode.size));
        let is_only_open = node.pins.load(Ordering::Acquire) == 1;
        let is_near = to <= size.saturating_add(REACH_MAX).min(FILE_MAX);
        if !is_only_open || !is_near || node.grows_no_more.load(Ordering::Acquire) {
            return;
        }
        // Blocks that were allocated behind the end are used first, by the mount.
        let Some(map) = &state.map else { return };
        if map.from(at).is_some() || !(size.is_multiple_of(BLOCK) || map.at(block_of(size)).is_some()) {
            return;
        }
        // Taking over must not fail for want of a slot.
        let mut txn = Txn::new();
        let mut change = self.change(node.ino, state);
        let room = self.ensure_free_slots(&mut change, &mut txn);
        let goal = change.map().goal(at);
        change.finish(&mut txn);
        self.commit_partial(node, state, txn);
        if room.is_err() {
            return;
        }
        self.space.drop_reservation(node.ino);
        let need = (block_from(to) - at).max(1);
        let want = (need + at.clamp(MORE_MIN, MORE_MAX)).min(self.space.free() / SHARE);
        if need > want {
            return;
        }
        let run = self.contiguous(goal, want);
        match run {
            Some(run) if run.len >= need => {
                let space = HeldSpace { at, run, size };
                leases.hold(file, (node.ino, state.inode.generation), space);
            }
            Some(run) => self.space.release(run),
            None => {}
        }
    }

    /// Allocates up to `want` contiguous blocks in DRAM.
    pub(super) fn contiguous(&self, goal: Option<u64>, want: u64) -> Option<BlockRun> {
        let mut run = self.space.reserve(&self.medium, AllocRequest::blocks(want).at(goal)).ok()?;
        while run.len < want {
            let request = AllocRequest::blocks(want - run.len).at(Some(run.end()));
            let Ok(next) = self.space.reserve(&self.medium, request) else { break };
            if next.start != run.end() {
                self.space.release(next);
                break;
            }
            run.len += next.len;
        }
        Some(run)
    }

    /// Returns append space of a file that has no access to the allocator. What was taken over belongs to the
    /// file.
    pub(super) fn return_space(&self, file: u32) {
        if let Some(rest) = self.leases.get().and_then(|leases| leases.drop_space(file)) {
            self.space.release(rest);
        }
    }

    /// Allocates blocks. If there are none, the append space of all files is returned before.
    ///
    /// # Errors
    /// No block is free, or no contiguous run if one is required.
    pub(crate) fn reserve_blocks(&self, want: AllocRequest) -> Result<BlockRun> {
        let reserved = self.space.reserve(&self.medium, want);
        if reserved.is_ok() {
            return reserved;
        }
        let Some(leases) = self.leases.get() else { return reserved };
        let returned = leases.retract();
        if returned.is_empty() {
            return reserved;
        }
        for run in returned {
            self.space.release(run);
        }
        self.space.reserve(&self.medium, want)
    }

    /// Returns the number of free blocks, including append space.
    pub(crate) fn free_blocks(&self) -> u64 {
        self.space.free() + self.leases.get().map_or(0, super::Leases::unused_blocks)
    }

    /// Takes over by how much programs have extended a file, before its size or its blocks are looked at. The
    /// caller holds no lock of the node.
    #[inline]
    pub(crate) fn settle_size(&self, node: &Node) {
        if self.has_growth(node) {
            self.note_accesses(node, &mut node.state.write());
        }
    }

    /// Ends the growth of a file by programs, before another program opens it.
    pub(crate) fn end_growth(&self, node: &Node) {
        if self.lease_of(node).is_some_and(|(file, leases)| leases.has_space(file)) {
            self.settle(node);
        }
    }

    /// Returns `true` if programs have extended a file, and that was not taken over.
    fn has_growth(&self, node: &Node) -> bool {
        self.lease_of(node).is_some_and(|(file, leases)| leases.growth(file).is_some())
    }
}
