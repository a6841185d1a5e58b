//! Writes of file contents.
//!
//! Existing blocks are overwritten in place: after a power loss before the next `sync_file`, each
//! aligned word of 8 bytes is old or new. New blocks and a new size become visible in one
//! transaction after their data, so a file never exposes the earlier contents of a block.

use super::{block_from, block_of};
use crate::error::{Error, Result};
use crate::extents::{Extent, ExtentChange, LEN_MAX, STEP_WORDS};
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::planted::Bug;
use crate::space::AllocRequest;
use crate::types::{FILE_MAX, Ino};
use frit_core::planted::is_planted;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Words of a transaction that a write needs in addition to its extent changes: inode and counters.
pub(crate) const FIXED_WORDS: usize = 96;
/// Maximum number of blocks reserved ahead for a growing file: 8 MiB.
const AHEAD_MAX: u64 = 2048;

/// Data to be written, with its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteRequest<'a> {
    pub(super) at: u64,
    pub(super) data: &'a [u8],
}

impl<M: Medium> Fs<M> {
    /// Writes at byte `at` of a file.
    pub(crate) fn write_node(&self, node: &Node, at: u64, data: &[u8]) -> Result<usize> {
        self.check_writable()?;
        let written = self.write_state(node, &mut node.state.write(), at, data);
        self.after_write(written, || self.write_state(node, &mut node.state.write(), at, data))
    }

    /// Appends to a file; returns the new end and the number of bytes written.
    pub(crate) fn append_node(&self, node: &Node, data: &[u8]) -> Result<(u64, usize)> {
        self.check_writable()?;
        let append = || {
            let mut state = node.state.write();
            state.check_file()?;
            self.end_lease(node, &mut state);
            let at = self.end_of(node, &state)?;
            let len = self.write_state(node, &mut state, at, data)?;
            Ok((at + len as u64, len))
        };
        self.after_write(append(), append)
    }

    pub(crate) fn write_state(
        &self,
        node: &Node,
        state: &mut NodeState,
        at: u64,
        data: &[u8],
    ) -> Result<usize> {
        state.check_file()?;
        if data.is_empty() {
            return Ok(0);
        }
        self.end_lease(node, state);
        if at >= FILE_MAX {
            return Err(Error::TooLarge);
        }
        // A write across the maximum file size is short, as write(2) permits.
        let data = &data[..data.len().min((FILE_MAX - at) as usize)];
        if self.external(&state.inode).is_some() {
            return self.write_external(node, state, at, data);
        }
        self.load_map(node.ino, state)?;
        node.note_change();
        if self.placed.is_some() {
            return self.write_segments(node, state, at, data);
        }
        self.write_buffered(node, state, at, data)
    }

    /// Writes to blocks of the medium and to holes.
    pub(crate) fn write_buffered(
        &self,
        node: &Node,
        state: &mut NodeState,
        at: u64,
        data: &[u8],
    ) -> Result<usize> {
        // Checksums of written blocks are cleared first, as these blocks may be overwritten in
        // place.
        self.begin_overwrite(state, at, at + data.len() as u64)?;
        if self.overwrite(state, at, data) {
            let now = self.clock.now();
            // New timestamps alone need no transaction: the next one or a sync writes them.
            if state.inode.mtime != now {
                state.inode.mtime = now;
                state.inode.ctime = now;
                node.newer_times.store(true, Ordering::Relaxed);
            }
            return Ok(data.len());
        }
        let mut written = 0;
        while written < data.len() {
            let request = WriteRequest { at: at + written as u64, data: &data[written..] };
            match self.write_some(node, state, request) {
                Ok(n) => written += n,
                Err(error) if written == 0 => return Err(error),
                // A partial write succeeds; the next call returns the error.
                Err(_) => break,
            }
        }
        Ok(written)
    }

    /// Overwrites data if the whole range is within the size and in written blocks, so that no
    /// metadata changes. Returns `true` if the data was written.
    fn overwrite(&self, state: &NodeState, at: u64, data: &[u8]) -> bool {
        let end = at + data.len() as u64;
        let Some(map) = state.map.as_ref().filter(|_| end <= state.inode.size) else { return false };
        let covers = |e: &Extent, from: u64| e.written && e.at * BLOCK <= from;
        let mut from = at;
        let Some(first) = map.at(block_of(from)).filter(|e| covers(e, from)) else { return false };
        // All extents are checked before the first write. Usually there is only one.
        let mut extent = first;
        while extent.end() * BLOCK < end {
            from = extent.end() * BLOCK;
            match map.at(block_of(from)).filter(|e| covers(e, from)) {
                Some(next) => extent = next,
                None => return false,
            }
        }
        let (mut at, mut data, mut extent) = (at, data, first);
        loop {
            let piece_len = data.len().min((extent.end() * BLOCK - at) as usize);
            self.medium.write_data(extent.start * BLOCK + (at - extent.at * BLOCK), &data[..piece_len]);
            at += piece_len as u64;
            data = &data[piece_len..];
            if data.is_empty() {
                return true;
            }
            let Some(next) = map.at(block_of(at)) else { return true };
            extent = next;
        }
    }

    /// Writes as much as fits into one transaction.
    fn write_some(&self, node: &Node, state: &mut NodeState, request: WriteRequest<'_>) -> Result<usize> {
        let mut txn = Txn::new();
        let size = state.inode.size;
        if request.at > size {
            self.begin_tail_overwrite(node, state, request.at)?;
            self.zero_tail(state, &mut txn, request.at);
        }
        let room = self.journal.capacity() - FIXED_WORDS;
        let mut change = self.change(node.ino, state);
        let mut done = 0;
        let mut failed = None;
        // The loop ends while another piece still fits into the transaction.
        while done < request.data.len() && change.words() + 2 * STEP_WORDS < room {
            let rest = WriteRequest { at: request.at + done as u64, data: &request.data[done..] };
            match self.write_piece(node.ino, &mut change, &mut txn, rest, size) {
                Ok(n) => done += n,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        change.finish(&mut txn);
        if let Some(error) = failed.filter(|_| done == 0) {
            self.commit_partial(node, state, txn);
            return Err(error);
        }
        let end = request.at + done as u64;
        if end > size {
            // The data must be durable before the size that exposes it.
            state.inode.size = end;
            txn.data = true;
        }
        let now = self.clock.now();
        state.inode.mtime = now;
        state.inode.ctime = now;
        self.put_inode(&mut txn, node, state);
        self.commit(txn);
        Ok(done)
    }

    /// Commits the extent block that a failed write has already added to the file.
    pub(crate) fn commit_partial(&self, node: &Node, state: &mut NodeState, mut txn: Txn) {
        if !txn.is_empty() {
            self.put_inode(&mut txn, node, state);
            self.commit(txn);
        }
    }

    /// Writes within one extent or one hole.
    fn write_piece(
        &self,
        ino: Ino,
        change: &mut ExtentChange<'_, M>,
        txn: &mut Txn,
        request: WriteRequest<'_>,
        size: u64,
    ) -> Result<usize> {
        let block = block_of(request.at);
        let end = request.at + request.data.len() as u64;
        let (extent, is_new) = match change.map().from(block) {
            Some(e) if e.at <= block => (e, false),
            next => {
                self.ensure_free_slots(change, txn)?;
                let free_to = next.map_or(u64::MAX, |e| e.at);
                let want = (block_from(end).min(free_to) - block).min(LEN_MAX);
                let grows = next.is_none() && end > size;
                // A file that grows at its end gets a reservation in proportion to its size.
                let more = if grows { (block / 4 + want / 2).clamp(8, AHEAD_MAX) } else { 0 };
                let goal = self.goal_in_medium(change.map().goal(block));
                let want = self.reserve_contents(ino, want)?;
                let blocks = AllocRequest::blocks(want).at(goal);
                let blocks = if more > 0 { blocks.reserve_ahead(ino, more) } else { blocks };
                let run = self.reserve_blocks(blocks);
                self.unreserve_contents(want - run.as_ref().map_or(0, |run| run.len));
                let run = run?;
                (Extent { at: block, len: run.len, start: run.start, written: true }, true)
            }
        };
        let len = (end.min(extent.end() * BLOCK) - request.at) as usize;
        let (mut from, mut to) = (block, block_from(request.at + len as u64));
        if !is_new && !extent.written {
            match self.ensure_free_slots(change, txn) {
                Err(Error::NoSpace) => {
                    Range { start: from, end: to } = self.write_around(change, &extent, from..to);
                    txn.data = true;
                }
                room => room?,
            }
        }
        if is_new || !extent.written {
            let fresh = extent.part(block, block_from(request.at + len as u64));
            self.clear_checksums(fresh.run());
            change.unsummed(fresh.at, fresh.end());
            // The rest of a block that is written first must not expose the block's earlier
            // contents.
            self.zero_edges(&extent, request.at, len as u64);
            txn.data = true;
        }
        self.medium.write_data(extent.start * BLOCK + (request.at - extent.at * BLOCK), &request.data[..len]);
        if is_new {
            txn.alloc(extent.run());
            change.add_blocks(extent.len);
            change.insert(extent)?;
        } else if !extent.written {
            change.remove(from, to, usize::MAX, |_| ())?;
            change.insert(Extent { written: true, ..extent.part(from, to) })?;
        }
        Ok(len)
    }

    /// Prepares the write of a range of blocks of an unwritten extent when no block is free for the
    /// slots of its unwritten parts. Zeroes the shorter of these parts, or both if no slot is free,
    /// so that they count as written. Returns the range that becomes written, which reaches one end
    /// of the extent.
    fn write_around(
        &self,
        change: &mut ExtentChange<'_, M>,
        extent: &Extent,
        range: Range<u64>,
    ) -> Range<u64> {
        let Range { start: from, end: to } = range;
        let (before, behind) = (from - extent.at, extent.end() - to);
        let (from_then, to_then) = match (before, behind) {
            _ if !change.has_free_slots(1) => (extent.at, extent.end()),
            (1.., 1..) if before <= behind => (extent.at, to),
            (1.., 1..) => (from, extent.end()),
            _ => (from, to),
        };
        for (at, end) in [(from_then, from), (to, to_then)].into_iter().filter(|(at, end)| at < end) {
            let part = extent.part(at, end);
            self.clear_checksums(part.run());
            change.unsummed(at, end);
            if !is_planted(Bug::AroundNotZeroed) {
                self.medium.zero(part.run().at(), part.len * BLOCK);
            }
        }
        from_then..to_then
    }

    /// Zeroes the parts of the first and last block that a first write does not cover.
    fn zero_edges(&self, extent: &Extent, at: u64, len: u64) {
        if is_planted(Bug::EdgesNotZeroed) {
            return;
        }
        let base = extent.start * BLOCK;
        let (from, to) = (at - extent.at * BLOCK, at + len - extent.at * BLOCK);
        let first = from / BLOCK * BLOCK;
        if first < from {
            self.medium.zero(base + first, from - first);
        }
        let last = to.next_multiple_of(BLOCK);
        if to < last {
            self.medium.zero(base + to, last - to);
        }
    }

    /// Brings the last block into the write buffer if it is placed, and removes its checksum, before [`Fs::zero_tail`] zeroes it behind the end.
    ///
    /// # Errors
    /// The block does not match its checksum, or is placed and cannot be fetched.
    pub(crate) fn begin_tail_overwrite(&self, node: &Node, state: &mut NodeState, to: u64) -> Result<()> {
        let size = state.inode.size;
        let end = to.min(size.next_multiple_of(BLOCK));
        self.fetch(node, state, size, end)?;
        self.begin_overwrite(state, size, end)
    }

    /// Zeroes the last block behind the end of the file, up to `to`, before the size grows. These
    /// bytes are undefined until then.
    pub(crate) fn zero_tail(&self, state: &NodeState, txn: &mut Txn, to: u64) {
        let size = state.inode.size;
        if size.is_multiple_of(BLOCK) || is_planted(Bug::TailNotZeroed) {
            return;
        }
        let extent = state.map.as_ref().and_then(|map| map.at(block_of(size))).filter(|e| e.written);
        if let Some(extent) = extent {
            let end = to.min(size.next_multiple_of(BLOCK));
            self.medium.zero(extent.start * BLOCK + (size - extent.at * BLOCK), end - size);
            txn.data = true;
        }
    }
}
