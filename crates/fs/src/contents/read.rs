//! Reads of file contents.

use super::block_of;
use crate::error::Result;
use crate::extents::Extent;
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::medium::Medium;
use crate::nameless::is_placed;
use crate::planted::DamageBug;
use crate::sync::RwLockReadGuard;
use crate::types::Ino;
use frit_core::planted::is_planted;

impl<M: Medium> Fs<M> {
    /// Returns the shared lock of a regular file with its extents loaded.
    pub(crate) fn loaded<'a>(&self, node: &'a Node) -> Result<RwLockReadGuard<'a, NodeState>> {
        // The inode may be freed between the shared and the exclusive lock, so the checks are
        // repeated.
        loop {
            let state = node.state.read();
            state.check_file()?;
            if state.map.is_some() {
                return Ok(state);
            }
            drop(state);
            let mut state = node.state.write();
            state.check_file()?;
            self.load_map(node.ino, &mut state)?;
        }
    }

    /// Reads from byte `at` of a file.
    pub(crate) fn read_node(&self, node: &Node, at: u64, into: &mut [u8]) -> Result<usize> {
        self.settle(node);
        let state = self.loaded(node)?;
        if self.external(&state.inode).is_some() {
            return self.read_external(node, &state, at, into);
        }
        let len = state.inode.size.saturating_sub(at).min(into.len() as u64) as usize;
        if len > 0 {
            self.copy_out(node.ino, &state, at, &mut into[..len])?;
            if self.has_sums() && !is_planted(DamageBug::ContentsUnchecked) {
                self.verify(&state, at, &into[..len])?;
            }
        }
        if !self.read_only {
            node.update_atime(&state, self.clock.now());
        }
        Ok(len)
    }

    /// Copies bytes from the medium, or from the device of placed contents. The range is within the size
    /// of the file.
    ///
    /// # Errors
    /// A placed block is unreadable.
    pub(crate) fn copy_out(
        &self,
        ino: Ino,
        state: &NodeState,
        mut at: u64,
        mut into: &mut [u8],
    ) -> Result<()> {
        let Some(map) = &state.map else { return Ok(()) };
        let mut extent: Option<Extent> = map.from(block_of(at));
        while !into.is_empty() {
            let (len, from) = match extent {
                Some(e) if e.at * BLOCK <= at => {
                    (e.end() * BLOCK - at, e.written.then_some((e.start, at - e.at * BLOCK)))
                }
                Some(e) => (e.at * BLOCK - at, None),
                None => (u64::MAX, None),
            };
            let (now, rest) = into.split_at_mut(len.min(into.len() as u64) as usize);
            match (from, &self.placed) {
                (Some((start, offset)), Some(placed)) if is_placed(start) => {
                    placed.read(ino, start, offset, now)?;
                }
                (Some((start, offset)), _) => self.medium.read(start * BLOCK + offset, now),
                (None, _) => now.fill(0),
            }
            at += now.len() as u64;
            into = rest;
            if !into.is_empty() {
                extent = map.from(block_of(at));
            }
        }
        Ok(())
    }
}
