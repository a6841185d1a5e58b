//! From the device to the write buffer: contents that are about to be overwritten.

use super::is_placed;
use crate::contents::{block_from, block_of};
use crate::error::Result;
use crate::extents::Extent;
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::nameless::PlacedContents;
use crate::planted::NamelessBug;
use crate::space::AllocRequest;
use crate::types::Ino;
use frit_core::planted::is_planted;
use std::ops::Range;

impl<M: Medium> Fs<M> {
    /// Moves the placed blocks in bytes `at..end` of a file to the write buffer with their contents, where
    /// they can be overwritten in part.
    ///
    /// # Errors
    /// The medium has no free block, or a block is unreadable. All blocks have their contents.
    pub(crate) fn fetch(&self, node: &Node, state: &mut NodeState, at: u64, end: u64) -> Result<()> {
        if self.placed.is_none() || at >= end {
            return Ok(());
        }
        self.load_map(node.ino, state)?;
        let (mut from, last) = (block_of(at), block_from(end));
        while let Some(part) = next_placed(state, from, last) {
            from = self.fetch_part(node, state, part, part.at * BLOCK..part.at * BLOCK)?;
        }
        Ok(())
    }

    /// Writes to a file block range by block range, so that each range that is fetched is overwritten at
    /// once. Whole blocks that are overwritten are not read.
    ///
    /// # Errors
    /// Nothing was written, because of the first error.
    pub(crate) fn write_segments(
        &self,
        node: &Node,
        state: &mut NodeState,
        at: u64,
        data: &[u8],
    ) -> Result<usize> {
        let end = at + data.len() as u64;
        let mut from = at;
        while from < end {
            let written = self.segment(node, state, from, end).and_then(|to| {
                self.write_buffered(node, state, from, &data[(from - at) as usize..(to - at) as usize])
            });
            match written {
                Ok(0) => break,
                Ok(n) => from += n as u64,
                Err(error) if from == at => return Err(error),
                // A partial write succeeds; the next call returns the error.
                Err(_) => break,
            }
        }
        Ok((from - at) as usize)
    }

    /// Returns the end of the bytes from `from` on that have no placed block, after a fetch if the first
    /// one is placed.
    fn segment(&self, node: &Node, state: &mut NodeState, from: u64, end: u64) -> Result<u64> {
        let Some(part) = next_placed(state, block_of(from), block_from(end)) else { return Ok(end) };
        if part.at > block_of(from) {
            return Ok(end.min(part.at * BLOCK));
        }
        self.fetch_part(node, state, part, from..end).map(|block| end.min(block * BLOCK))
    }

    /// Moves the first blocks of a part of an extent, as many as one free run of the medium holds.
    /// Blocks that lie in the bytes of `overwritten` as a whole are not read. Returns the block after
    /// them.
    fn fetch_part(
        &self,
        node: &Node,
        state: &mut NodeState,
        part: Extent,
        overwritten: Range<u64>,
    ) -> Result<u64> {
        let Some(placed) = &self.placed else { return Ok(part.end()) };
        let run = self.space.reserve(&self.medium, AllocRequest::blocks(part.len))?;
        let part = part.part(part.at, part.at + run.len);
        if let Err(error) = self.copy_to_buffer(placed, node.ino, part, run, &overwritten) {
            self.space.release(run);
            return Err(error);
        }
        let new = Extent { start: run.start, ..part };
        let moved = self.replace_extents(node, state, &[new], |txn, old, new| {
            txn.alloc(new.run());
            txn.unplaced.extend(old.iter().map(|run| (node.ino, *run)));
        });
        if let Err((_, error)) = moved {
            self.space.release(run);
            return Err(error);
        }
        placed.note_buffered(node.ino, run.len);
        Ok(part.end())
    }

    /// Copies the blocks of `part` that are not overwritten as a whole.
    fn copy_to_buffer(
        &self,
        placed: &PlacedContents,
        ino: Ino,
        part: Extent,
        run: BlockRun,
        overwritten: &Range<u64>,
    ) -> Result<()> {
        let mut bytes = vec![0; BLOCK as usize];
        for i in 0..part.len {
            let at = (part.at + i) * BLOCK;
            let whole = overwritten.start <= at && at + BLOCK <= overwritten.end;
            if !whole && !is_planted(NamelessBug::EdgesNotFetched) {
                placed.read(ino, part.start + i, 0, &mut bytes)?;
                self.medium.write_data((run.start + i) * BLOCK, &bytes);
            }
        }
        Ok(())
    }
}

/// Returns the next part of a placed extent in blocks `from..to`.
fn next_placed(state: &NodeState, mut from: u64, to: u64) -> Option<Extent> {
    let map = state.map.as_ref()?;
    loop {
        let extent = map.from(from).filter(|extent| extent.at < to)?;
        if is_placed(extent.start) {
            return Some(extent.part(from, to));
        }
        from = extent.end();
    }
}
