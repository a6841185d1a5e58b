//! Where the blocks of a file lie.
//!
//! On the medium extents are a set without order: eight in the inode, the others in blocks of 16 lines with a check
//! each. In DRAM they are a sorted map that also knows in which place of the medium each is, so that a change writes
//! one place, and no tree is balanced on the medium. A file with a million extents takes a few milliseconds to open.

mod change;
mod extent;
mod load;
mod places;
mod salvage;

pub(crate) use change::{Change, STEP_WORDS};
pub(crate) use extent::{Extent, LEN_MAX};
pub(crate) use load::{LineReader, load, load_uncounted};
pub(crate) use salvage::Salvage;

use crate::journal::Run;
use crate::sums::Ranges;
use std::collections::BTreeMap;

/// The extents of one file.
#[derive(Clone, Default, Debug)]
pub(crate) struct Map {
    /// By their first block in the file.
    extents: BTreeMap<u64, Placed>,
    /// Places that are free.
    free: Vec<u32>,
    /// The blocks that hold places beyond those in the inode, in their order.
    blocks: Vec<u64>,
    /// Blocks of the file whose contents may have no checksum yet.
    pub(crate) unsummed: Ranges,
}

/// An extent and its place on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Placed {
    extent: Extent,
    place: u32,
}

impl Map {
    /// The extent that a block of the file is in.
    #[inline]
    pub(crate) fn at(&self, block: u64) -> Option<Extent> {
        let (_, placed) = self.extents.range(..=block).next_back()?;
        (block < placed.extent.end()).then_some(placed.extent)
    }

    /// The extent that a block is in, or the first behind it.
    pub(crate) fn from(&self, block: u64) -> Option<Extent> {
        self.at(block).or_else(|| self.extents.range(block..).next().map(|(_, placed)| placed.extent))
    }

    /// All of them, in the order of the file.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Extent> + '_ {
        self.extents.values().map(|placed| placed.extent)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.extents.len()
    }

    /// Whether the file has no blocks.
    pub(crate) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// The block of the medium that best follows what is before `block`.
    pub(crate) fn goal(&self, block: u64) -> Option<u64> {
        let (_, placed) = self.extents.range(..block).next_back()?;
        Some(placed.extent.start + (block - placed.extent.at).min(placed.extent.len))
    }

    /// The blocks that hold places.
    pub(crate) fn holders(&self) -> impl Iterator<Item = Run> + '_ {
        self.blocks.iter().map(|start| Run { start: *start, len: 1 })
    }
}
