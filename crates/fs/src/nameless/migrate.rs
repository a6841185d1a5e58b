//! Blocks that the device has moved, in garbage collection or wear leveling: the extents of their files
//! change to the new addresses.

use super::address::{decode, encode, page_of};
use super::is_placed;
use super::place::push_block;
use super::placed::{HeldBlocks, PlacedContents, failed};
use crate::error::{Error, Result};
use crate::extents::Extent;
use crate::fs::Fs;
use crate::inode::NodeState;
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::planted::NamelessBug;
use crate::types::Ino;
use frit_core::planted::is_planted;
use frit_core::{Migration, PhysicalAddress};
use std::collections::BTreeMap;

/// Maximum number of moves that are applied together. One search of the extents of a file serves all moves
/// of its blocks.
const BATCH: usize = 16 << 10;
/// Number of moves from which a writer applies them.
const PENDING_MAX: usize = 4 << 10;

/// New addresses of blocks of one file, by their former page and their version.
type Moves = BTreeMap<(u32, u32), PhysicalAddress>;

impl<M: Medium> Fs<M> {
    /// Applies migrations if many are pending. The caller holds no lock of a node.
    pub(crate) fn relieve_migrations(&self) -> Result<()> {
        let Some(placed) = &self.placed else { return Ok(()) };
        let pending = placed.device.lock().pending_migrations().map_err(failed)?;
        if pending > PENDING_MAX { self.apply_migrations() } else { Ok(()) }
    }

    /// Changes the extents of all blocks that the device has moved, and acknowledges the moves. The caller
    /// holds no lock of a node.
    ///
    /// # Errors
    /// Extents are damaged. Moves that were not acknowledged stay valid: the device finds their blocks by
    /// the old addresses.
    pub(crate) fn apply_migrations(&self) -> Result<()> {
        let Some(placed) = &self.placed else { return Ok(()) };
        let _one = placed.migrating.lock();
        loop {
            let mut batch = Vec::new();
            placed.device.lock().migrations(BATCH, &mut batch).map_err(failed)?;
            if batch.is_empty() {
                return Ok(());
            }
            for (ino, moves) in by_owner(&batch) {
                match self.move_blocks(ino, &moves) {
                    // Without a free extent slot the moves stay pending.
                    Err(Error::NoSpace) => return Ok(()),
                    // Its blocks are held, or were freed.
                    Err(Error::Stale) => {}
                    moved => moved?,
                }
            }
            placed.acknowledge(&batch)?;
        }
    }

    fn move_blocks(&self, ino: Ino, moves: &Moves) -> Result<()> {
        let node = self.node(ino)?;
        let mut state = node.state.write();
        state.check_alive()?;
        self.load_map(ino, &mut state)?;
        let new = moved_extents(&state, moves);
        if is_planted(NamelessBug::MigrationIgnored) {
            return Ok(());
        }
        self.replace_extents(&node, &mut state, &new, |_, _, _| ()).map(drop).map_err(|(_, error)| error)
    }
}

/// Groups moves by file. A block that has moved twice has its last address.
fn by_owner(batch: &[Migration]) -> BTreeMap<Ino, Moves> {
    let mut files: BTreeMap<Ino, Moves> = BTreeMap::new();
    let mut first: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for moved in batch {
        // The address of a block that is lost stays in its extent, and reads of it fail.
        let Some(to) = moved.to else { continue };
        let from = first.remove(&(moved.from, to.version)).unwrap_or(moved.from);
        first.insert((to.page, to.version), from);
        files.entry(Ino(u64::from(moved.owner))).or_default().insert((from, to.version), to);
    }
    files
}

/// Returns the extents of the blocks of a file that have moved.
fn moved_extents(state: &NodeState, moves: &Moves) -> Vec<Extent> {
    let Some(map) = &state.map else { return Vec::new() };
    let mut new: Vec<Extent> = Vec::new();
    for extent in map.iter().filter(|extent| is_placed(extent.start)) {
        let first = page_of(extent.start);
        for (&(page, _), &to) in moves.range((first, 0)..(first + extent.len as u32, 0)) {
            let index = u64::from(page - first);
            // Another version at this page is a block that came later.
            if decode(extent.start + index).version == to.version {
                push_block(&mut new, extent.at + index, encode(to));
            }
        }
    }
    new
}

impl PlacedContents {
    /// Acknowledges moves after the extents were changed. Blocks that are held get their new addresses.
    fn acknowledge(&self, batch: &[Migration]) -> Result<()> {
        // A commit frees blocks by the addresses that it has taken.
        let _no_commit = self.committing.lock();
        let mut held = self.held.lock();
        let moves = by_owner(batch);
        if !is_planted(NamelessBug::HeldNotMoved) {
            held.apply(&moves);
        }
        self.device.lock().acknowledge(batch.len()).map_err(failed)
    }
}

impl HeldBlocks {
    /// Changes the addresses of blocks that have moved.
    fn apply(&mut self, files: &BTreeMap<Ino, Moves>) {
        let mut new = Vec::new();
        self.runs.retain(|(ino, run)| {
            let pages = (page_of(run.start), 0)..(page_of(run.start) + run.len as u32, 0);
            let has_moved = files.get(ino).is_some_and(|moves| moves.range(pages).next().is_some());
            if has_moved {
                new.push((*ino, *run));
            }
            !has_moved
        });
        for (ino, run) in new {
            let Some(moves) = files.get(&ino) else { continue };
            for start in run.start..run.start + run.len {
                let old = decode(start);
                let moved = moves.get(&(old.page, old.version));
                let start = moved.map_or(start, |to| encode(*to));
                self.runs.push((ino, BlockRun { start, len: 1 }));
            }
        }
    }
}
