//! From the write buffer to the device.

use super::is_placed;
use crate::contents::FIXED_WORDS;
use crate::error::{Error, Result};
use crate::extents::{Extent, STEP_WORDS};
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::journal::{BlockRun, Txn};
use crate::medium::Medium;
use crate::planted::NamelessBug;
use crate::types::{Ino, InodeType};
use frit_core::planted::is_planted;
use std::sync::Arc;

/// Maximum number of blocks that are placed at once: 1 MiB.
const WINDOW: u64 = 256;

impl<M: Medium> Fs<M> {
    /// Places the contents of all files that are in the write buffer.
    ///
    /// # Errors
    /// The first error of the device, after the attempt for all files. Contents that were not placed stay
    /// in the buffer.
    pub(super) fn place_all(&self) -> Result<()> {
        let Some(placed) = &self.placed else { return Ok(()) };
        let files = std::mem::take(&mut *placed.buffered.lock());
        let mut result = Ok(());
        for ino in files {
            let done = self.place_file(ino);
            if done.is_err() {
                placed.buffered.lock().insert(ino);
            }
            result = result.and(done);
        }
        result
    }

    fn place_file(&self, ino: Ino) -> Result<()> {
        let node: Arc<Node> = match self.node(ino) {
            Ok(node) => node,
            // The file was removed.
            Err(Error::Stale) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut state = node.state.write();
        if state.dead || state.inode.kind != InodeType::File {
            return Ok(());
        }
        self.place_node(&node, &mut state)
    }

    /// Places all written contents of a file that are in the buffer.
    fn place_node(&self, node: &Node, state: &mut NodeState) -> Result<()> {
        self.load_map(node.ino, state)?;
        let mut from = 0;
        while let Some(extent) = next_buffered(state, from) {
            let part = extent.part(extent.at, extent.at + WINDOW);
            if self.placed.as_ref().is_some_and(|placed| placed.is_held_full()) {
                self.commit_changes()?;
            }
            self.place_part(node, state, part)?;
            from = part.end();
        }
        Ok(())
    }

    /// Places a part of an extent.
    fn place_part(&self, node: &Node, state: &mut NodeState, part: Extent) -> Result<()> {
        let Some(placed) = &self.placed else { return Ok(()) };
        let mut data = vec![0; (part.len * BLOCK) as usize];
        self.medium.read(part.run().at(), &mut data);
        let words = placed.write(node.ino, &data)?;
        let mut new = runs(part.at, &words);
        if is_planted(NamelessBug::AddressesSwapped)
            && let [a, b, ..] = &mut new[..]
            && a.len == b.len
        {
            std::mem::swap(&mut a.start, &mut b.start);
        }
        let replaced =
            self.replace_extents(node, state, &new, |txn, old, _| old.iter().for_each(|run| txn.free(*run)));
        let done = *replaced.as_ref().unwrap_or_else(|(done, _)| done);
        placed.sub_buffered(new[..done].iter().map(|extent| extent.len).sum());
        for extent in &new[done..] {
            placed.hold(node.ino, extent.run());
        }
        replaced.map(drop).map_err(|(_, error)| error)
    }

    /// Changes the extents of whole blocks of a file to others, in as many transactions as necessary.
    /// `account` adds the earlier runs and the new extent of each change to the transaction. Returns the
    /// number of extents of `new` that were changed.
    ///
    /// # Errors
    /// No extent slot is free, or the extents are damaged; with the number that were changed before.
    pub(super) fn replace_extents(
        &self,
        node: &Node,
        state: &mut NodeState,
        new: &[Extent],
        account: impl Fn(&mut Txn, &[BlockRun], &Extent),
    ) -> Result<usize, (usize, Error)> {
        let room = self.journal.capacity() - FIXED_WORDS;
        let mut done = 0;
        while done < new.len() {
            let (mut txn, mut failed) = (Txn::new(), None);
            let mut changed = Vec::new();
            let mut change = self.change(node.ino, state);
            while done < new.len() && change.words() + 4 * STEP_WORDS < room {
                let (extent, mut old) = (new[done], Vec::new());
                let step = self.ensure_free_slots(&mut change, &mut txn).and_then(|()| {
                    change.remove(extent.at, extent.end(), usize::MAX, |part| old.push(part.run()))?;
                    change.insert(extent)
                });
                if let Err(error) = step {
                    failed = Some(error);
                    break;
                }
                changed.push((old, extent));
                done += 1;
            }
            change.finish(&mut txn);
            for (old, extent) in &changed {
                account(&mut txn, old, extent);
            }
            if !changed.is_empty() || !txn.is_empty() {
                self.put_inode(&mut txn, node, state);
                self.commit(txn);
            }
            if let Some(error) = failed {
                return Err((done, error));
            }
        }
        Ok(done)
    }
}

/// Returns the next written extent of the buffer from a block on.
fn next_buffered(state: &NodeState, mut from: u64) -> Option<Extent> {
    let map = state.map.as_ref()?;
    loop {
        let extent = map.from(from)?;
        if extent.written && !is_placed(extent.start) {
            return Some(extent.part(from, u64::MAX));
        }
        from = extent.end();
    }
}

/// Joins the words of consecutive blocks from block `at` on into extents.
pub(super) fn runs(at: u64, words: &[u64]) -> Vec<Extent> {
    let mut all: Vec<Extent> = Vec::new();
    for (at, &start) in (at..).zip(words) {
        push_block(&mut all, at, start);
    }
    all
}

/// Adds a placed block behind all others, to the last extent if it follows there.
pub(super) fn push_block(extents: &mut Vec<Extent>, at: u64, start: u64) {
    let next = Extent { at, len: 1, start, written: true };
    match extents.last_mut() {
        Some(last) if last.joins(&next) => last.len += 1,
        _ => extents.push(next),
    }
}
