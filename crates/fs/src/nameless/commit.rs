//! Syncs of a file system on a nameless-write device.

use super::address::blocks;
use super::device::VirtualBlock;
use super::placed::{PlacedContents, failed};
use super::virtual_blocks::Durability;
use crate::error::Result;
use crate::extents::Extent;
use crate::format::{Geometry, LINE, LINE_BLOCKS};
use crate::fs::Fs;
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::planted::NamelessBug;
use crate::types::Ino;
use frit_core::planted::is_planted;

impl<M: Medium> Fs<M> {
    /// Places all contents, and makes the file system durable as it is at one moment.
    ///
    /// # Errors
    /// An error of the device. The durable state is that of the last commit, or this one.
    pub(crate) fn commit_contents(&self) -> Result<()> {
        let placed_all = self.place_all();
        self.apply_migrations()?;
        self.commit_changes()?;
        placed_all
    }

    /// Makes the metadata and all placed contents durable as they are at one moment, and then frees the
    /// blocks that were held. Contents in the write buffer are written with the metadata. The caller may
    /// hold locks of nodes.
    ///
    /// # Errors
    /// As [`Fs::commit_contents`].
    pub(super) fn commit_changes(&self) -> Result<()> {
        let Some(placed) = &self.placed else { return Ok(()) };
        let _one = placed.committing.lock();
        let (changed, held) = {
            let _no_transaction = placed.snapshot.write();
            (placed.blocks.take_changed(|block| self.durability(block)), placed.take_held())
        };
        let committed = placed.commit(&changed, &held);
        if committed.is_err() {
            placed.blocks.changed_again(&changed);
            held.into_iter().for_each(|(ino, run)| placed.hold(ino, run));
        }
        committed
    }

    /// Returns the durability that a block of the medium needs. Between transactions the journal plays
    /// no part.
    fn durability(&self, block: u64) -> Durability {
        let geometry = &self.geometry;
        let at = block * crate::format::BLOCK;
        if (geometry.journal_at..geometry.inodes_at).contains(&at)
            && at + crate::format::BLOCK <= geometry.inodes_at
        {
            Durability::Never
        } else if geometry.holds(block, 1) && !is_allocated(&self.medium, geometry, block) {
            match is_planted(NamelessBug::FreeBlocksForgotten) {
                true => Durability::Never,
                false => Durability::Later,
            }
        } else {
            Durability::Needed
        }
    }
}

/// Returns `true` if the bitmap marks a block of the data space as used.
fn is_allocated<M: Medium>(medium: &M, geometry: &Geometry, block: u64) -> bool {
    let (line, bit) =
        ((block - geometry.data_first) / LINE_BLOCKS, (block - geometry.data_first) % LINE_BLOCKS);
    let [word] = crate::format::read_words(medium, geometry.bitmap_at + line * LINE + bit / 64 * 8);
    word >> (bit % 64) & 1 == 1
}

impl PlacedContents {
    fn commit(&self, changed: &[VirtualBlock], held: &[(Ino, BlockRun)]) -> Result<()> {
        let mut device = self.device.lock();
        let free = |device: &mut Box<dyn super::ContentDevice>| -> Result<()> {
            for (ino, run) in held {
                let extent = Extent { at: 0, len: run.len, start: run.start, written: true };
                blocks(*ino, &extent).try_for_each(|block| device.free(block)).map_err(failed)?;
            }
            Ok(())
        };
        if is_planted(NamelessBug::FreedBeforeCommit) {
            free(&mut device)?;
        }
        device.write_virtual(changed).map_err(failed)?;
        if !is_planted(NamelessBug::CommitNotFlushed) {
            device.flush().map_err(failed)?;
        }
        if !is_planted(NamelessBug::FreedBeforeCommit) {
            // The device is read-only if it fails here, and a recovery frees the blocks.
            free(&mut device)?;
        }
        Ok(())
    }
}
