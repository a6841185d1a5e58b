//! fallocate(2): preallocation, hole punching and zeroing.

use super::resize::AfterTruncate;
use super::{block_from, block_of};
use crate::error::{Error, Result};
use crate::extents::{Extent, LEN_MAX, STEP_WORDS};
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::journal::{BlockRun, Txn};
use crate::medium::Medium;
use crate::space::AllocRequest;
use crate::types::{Allocate, FILE_MAX, InodeType};
use std::ops::Range;
use std::sync::atomic::Ordering;

impl<M: Medium> Fs<M> {
    pub(crate) fn allocate_node(&self, node: &Node, mode: Allocate, at: u64, len: u64) -> Result<()> {
        self.check_writable()?;
        if len == 0 {
            return Err(Error::Invalid("an empty range"));
        }
        let mut state = node.state.write();
        let state = &mut *state;
        state.check_file()?;
        self.end_lease(node, state);
        let end = at.checked_add(len).filter(|end| *end <= FILE_MAX).ok_or(Error::TooLarge)?;
        if self.external(&state.inode).is_some() {
            return self.allocate_external(node, state, mode, at..end);
        }
        if matches!(mode, Allocate::Punch | Allocate::Zero | Allocate::ZeroKeep) {
            self.check_movable(node, state)?;
        }
        self.load_map(node.ino, state)?;
        node.note_change();
        let grows = matches!(mode, Allocate::Extend | Allocate::Zero) && end > state.inode.size;
        let mode = self.mode_of_contents(mode)?;
        if grows {
            self.begin_tail_overwrite(node, state, end)?;
        }
        let mut txn = Txn::new();
        match mode {
            Allocate::Extend | Allocate::Keep => {
                self.fill(node, state, block_of(at), block_from(end), false)?;
            }
            Allocate::Punch => self.punch(node, state, &mut txn, at, end)?,
            Allocate::Zero | Allocate::ZeroKeep => {
                // All space is allocated first, so that the following steps cannot fail with
                // `NoSpace`.
                self.fill(node, state, block_of(at), block_from(end), false)?;
                self.begin_edge_overwrite(node, state, at, end)?;
                txn.data = self.zero_edges_of(state, at, end);
                self.fill(node, state, block_from(at), block_of(end), true)?;
            }
        }
        let now = self.clock.now();
        state.inode.ctime = now;
        if !matches!(mode, Allocate::Keep) {
            state.inode.mtime = now;
        }
        if grows {
            self.zero_tail(state, &mut txn, end);
            state.inode.size = end;
        }
        self.put_inode(&mut txn, node, state);
        self.commit(txn);
        Ok(())
    }

    /// Allocates the missing blocks of `from..to`. With `zero`, written blocks become unwritten, so
    /// that they read as zeros.
    fn fill(&self, node: &Node, state: &mut NodeState, from: u64, to: u64, zero: bool) -> Result<()> {
        let missing = self.missing(state, from, to);
        if missing > self.free_blocks() {
            return Err(Error::NoSpace);
        }
        let mut at = from;
        while at < to {
            let mut txn = Txn::new();
            let mut failed = None;
            let room = self.steps() * STEP_WORDS;
            let mut change = self.change(node.ino, state);
            while at < to && change.words() < room {
                let (extent, is_new) = match change.map().from(at) {
                    Some(e) if e.at <= at && (!zero || !e.written) => {
                        at = e.end();
                        continue;
                    }
                    Some(e) if e.at <= at => (e.part(at, to), false),
                    next => {
                        let free_to = next.map_or(to, |e| e.at.min(to));
                        let goal = change.map().goal(at);
                        let want = (free_to - at).min(LEN_MAX);
                        match self.reserve_blocks(AllocRequest::blocks(want).at(goal)) {
                            Ok(run) => (Extent { at, len: run.len, start: run.start, written: false }, true),
                            Err(error) => {
                                failed = Some(error);
                                break;
                            }
                        }
                    }
                };
                if let Err(error) = self.ensure_free_slots(&mut change, &mut txn) {
                    if !is_new {
                        // There is no slot for another extent: the blocks are zeroed in place
                        // instead.
                        self.clear_checksums_durably(extent.run());
                        change.unsummed(extent.at, extent.end());
                        self.medium.zero(extent.run().at(), extent.len * BLOCK);
                        txn.data = true;
                        at = extent.end();
                        continue;
                    }
                    self.space.release(extent.run());
                    failed = Some(error);
                    break;
                }
                if is_new {
                    txn.alloc(extent.run());
                    change.add_blocks(extent.len);
                } else {
                    change.remove(extent.at, extent.end(), usize::MAX, |_| ())?;
                }
                change.insert(Extent { written: false, ..extent })?;
                at = extent.end();
            }
            change.finish(&mut txn);
            self.commit_partial(node, state, txn);
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the number of blocks of `from..to` that the file does not have.
    fn missing(&self, state: &NodeState, from: u64, to: u64) -> u64 {
        let Some(map) = &state.map else { return 0 };
        let mut at = from;
        let mut missing = 0;
        while at < to {
            match map.from(at) {
                Some(e) if e.at <= at => at = e.end(),
                next => {
                    let end = next.map_or(to, |e| e.at.min(to));
                    missing += end - at;
                    at = end;
                }
            }
        }
        missing
    }

    /// Punches a hole into a range of bytes. The caller's transaction `last` follows.
    fn punch(&self, node: &Node, state: &mut NodeState, last: &mut Txn, at: u64, end: u64) -> Result<()> {
        let (from, to) = (block_from(at), block_of(end));
        let split = self.split_by(state, from, to);
        let mut own = None;
        if split.is_some() {
            // Steps that can fail precede the first change of contents.
            let mut txn = Txn::new();
            let mut change = self.change(node.ino, state);
            let room = match change.has_free_slots(1) {
                true => Ok(()),
                false => self.ensure_free_slots(&mut change, &mut txn),
            };
            change.finish(&mut txn);
            self.commit_partial(node, state, txn);
            match room {
                // A placed block cannot become an extent block.
                Err(Error::NoSpace) if self.placed.is_none() => own = split,
                room => room?,
            }
        }
        self.begin_edge_overwrite(node, state, at, end)?;
        // The zeroed bytes become durable before the transaction that frees the blocks, or with the
        // inode's.
        let mut zeroed = self.zero_edges_of(state, at, end);
        if let Some(extent) = own {
            return self.punch_without_space(node, state, extent, from..to);
        }
        let mut left = to;
        while left > from {
            let mut txn = Txn::new();
            txn.data = std::mem::take(&mut zeroed);
            let mut freed = Vec::new();
            let mut change = self.change(node.ino, state);
            left = change.remove(from, left, self.steps(), |extent| freed.push(extent.run()))?;
            change.sub_blocks(freed.iter().map(|run| run.len).sum());
            change.finish(&mut txn);
            for run in freed {
                self.free_contents(&mut txn, node.ino, InodeType::File, run);
            }
            self.commit_partial(node, state, txn);
        }
        last.data = zeroed;
        Ok(())
    }

    /// Returns the extent that the hole `from..to` splits into two. Only such a hole needs one more
    /// extent slot than before.
    fn split_by(&self, state: &NodeState, from: u64, to: u64) -> Option<Extent> {
        let extent = state.map.as_ref()?.at(from)?;
        (from < to && extent.at < from && to < extent.end()).then_some(extent)
    }

    /// Punches a hole inside an extent when neither an extent slot nor a block is free. The first
    /// block of the hole becomes an extent block. It is zeroed first, which equals its contents as
    /// part of the hole.
    fn punch_without_space(
        &self,
        node: &Node,
        state: &mut NodeState,
        extent: Extent,
        range: Range<u64>,
    ) -> Result<()> {
        let Range { start: from, end: to } = range;
        let hole = extent.part(from, to).run();
        let (extent_block, rest) =
            (BlockRun { len: 1, ..hole }, BlockRun { start: hole.start + 1, len: hole.len - 1 });
        self.begin_overwrite(state, from * BLOCK, (from + 1) * BLOCK)?;
        self.medium.zero(extent_block.at(), BLOCK);
        let mut txn = Txn::new();
        txn.data = true;
        let mut change = self.change(node.ino, state);
        change.adopt_extent_block(extent_block)?;
        change.remove(from, to, 1, |_| ())?;
        change.sub_blocks(hole.len);
        change.finish(&mut txn);
        if rest.len > 0 {
            txn.free(rest);
        }
        self.commit_partial(node, state, txn);
        Ok(())
    }

    /// Fetches placed blocks at both ends of a range, and removes the checksums of the blocks there, that `zero_edges_of` changes.
    fn begin_edge_overwrite(&self, node: &Node, state: &mut NodeState, at: u64, end: u64) -> Result<()> {
        for (from, to) in [(at, end.min(block_from(at) * BLOCK)), ((block_of(end) * BLOCK).max(at), end)] {
            self.fetch(node, state, from, to)?;
            self.begin_overwrite(state, from, to)?;
        }
        Ok(())
    }

    /// Zeroes the partial blocks at both ends of a range. Returns `true` if any byte was written.
    fn zero_edges_of(&self, state: &NodeState, at: u64, end: u64) -> bool {
        let first = self.zero_inside(state, at, end.min(block_from(at) * BLOCK));
        self.zero_inside(state, (block_of(end) * BLOCK).max(at), end) || first
    }

    /// Zeroes bytes in written blocks. Returns `true` if there were any.
    fn zero_inside(&self, state: &NodeState, at: u64, end: u64) -> bool {
        let Some(map) = &state.map else { return false };
        let (mut at, mut zeroed) = (at, false);
        while at < end {
            match map.from(block_of(at)) {
                Some(e) if e.at * BLOCK <= at => {
                    let to = end.min(e.end() * BLOCK);
                    if e.written {
                        zeroed = true;
                        self.medium.zero(e.start * BLOCK + (at - e.at * BLOCK), to - at);
                    }
                    at = to;
                }
                Some(e) => at = e.at * BLOCK,
                None => break,
            }
        }
        zeroed
    }

    /// Frees an inode without links and pins, with its blocks.
    pub(crate) fn free_node(&self, node: &Node, state: &mut NodeState, txn: Txn) -> Result<()> {
        debug_assert!(state.inode.links == 0 && node.pins.load(Ordering::Acquire) == 0);
        self.truncate_blocks(node, state, txn, 0, AfterTruncate::Free)
    }
}
