//! Zeros in blocks that were never written, before somebody else than this library writes to them.

use super::block_of;
use crate::error::Result;
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::medium::Medium;
use std::ops::Range;

/// Number of bytes that are filled at a time. A request for a lease costs as much as zeros for some
/// hundred kilobytes.
pub(crate) const FILL_BYTES: u64 = 1 << 20;

impl<M: Medium> Fs<M> {
    /// Writes zeros to the blocks of a range that were never written. The range begins with a block and
    /// is within the size of the file, whose extents are loaded and not placed.
    ///
    /// # Errors
    /// No space is left.
    pub(crate) fn fill_holes(&self, node: &Node, state: &mut NodeState, range: Range<u64>) -> Result<()> {
        static ZEROS: [u8; FILL_BYTES as usize] = [0; FILL_BYTES as usize];
        let Range { start: mut at, end } = range;
        while at < end {
            let next = state.map.as_ref().and_then(|map| map.from(block_of(at)));
            let extent = next.map(|e| (e.at * BLOCK, e.end() * BLOCK, e.written));
            let to = match extent {
                Some((from, to, true)) if from <= at => {
                    at = to;
                    continue;
                }
                Some((from, to, false)) if from <= at => to,
                Some((from, ..)) => from,
                None => end,
            };
            node.note_change();
            let len = (to.min(end) - at).min(FILL_BYTES);
            at += self.write_buffered(node, state, at, &ZEROS[..len as usize])? as u64;
        }
        Ok(())
    }
}
