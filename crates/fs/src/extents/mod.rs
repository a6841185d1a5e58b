//! Extents: the positions of a file's blocks on the medium.
//!
//! On the medium, extents are an unordered set of slots: eight in the inode, the others in extent
//! blocks of 16 lines with a checksum each. In DRAM they are a sorted map that also records the
//! slot of each extent. A change therefore writes one slot, and no tree is balanced on the medium.
//! A file with a million extents takes a few milliseconds to open.

mod change;
mod extent;
mod load;
mod salvage;
mod slots;

pub(crate) use change::{ExtentChange, STEP_WORDS};
pub(crate) use extent::{Extent, LEN_MAX};
pub(crate) use load::{LineReader, load, load_uncounted};
pub(crate) use salvage::Salvage;

use crate::checksums::BlockRanges;
use crate::journal::BlockRun;
use std::collections::BTreeMap;

/// Extents of one file.
#[derive(Clone, Default, Debug)]
pub(crate) struct ExtentMap {
    /// Extents by their first block in the file.
    extents: BTreeMap<u64, SlottedExtent>,
    /// Free slots.
    free: Vec<u32>,
    /// The extent blocks, which hold slots beyond those in the inode, in chain order.
    blocks: Vec<u64>,
    /// Blocks of the file that may have no checksum yet.
    pub(crate) unsummed: BlockRanges,
}

/// Extent and its slot on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SlottedExtent {
    extent: Extent,
    slot: u32,
}

impl ExtentMap {
    /// Returns the extent that contains a block of the file.
    #[inline]
    pub(crate) fn at(&self, block: u64) -> Option<Extent> {
        let (_, placed) = self.extents.range(..=block).next_back()?;
        (block < placed.extent.end()).then_some(placed.extent)
    }

    /// Returns the extent that contains a block, or else the first one after it.
    pub(crate) fn from(&self, block: u64) -> Option<Extent> {
        self.at(block).or_else(|| self.extents.range(block..).next().map(|(_, placed)| placed.extent))
    }

    /// Iterates over all extents in file order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Extent> + '_ {
        self.extents.values().map(|placed| placed.extent)
    }

    /// Returns the number of extents.
    pub(crate) fn len(&self) -> usize {
        self.extents.len()
    }

    /// Returns `true` if another extent fits without a new extent block.
    pub(crate) fn has_free_slot(&self) -> bool {
        !self.free.is_empty()
    }

    /// Returns `true` if the file has no blocks.
    pub(crate) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Returns the preferred block on the medium for `block`, contiguous with the preceding extent.
    pub(crate) fn goal(&self, block: u64) -> Option<u64> {
        let (_, placed) = self.extents.range(..block).next_back()?;
        Some(placed.extent.start + (block - placed.extent.at).min(placed.extent.len))
    }

    /// Returns the extent blocks.
    pub(crate) fn extent_blocks(&self) -> impl Iterator<Item = BlockRun> + '_ {
        self.blocks.iter().map(|start| BlockRun { start: *start, len: 1 })
    }
}
