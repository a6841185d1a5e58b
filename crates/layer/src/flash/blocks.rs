//! State of every block, for garbage collection and wear leveling.

use frit_core::convert::{count_u32, to_usize};
use frit_media::{NandGeometry, SlcArea};

/// Use of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BlockUse {
    /// Erased (or erasable), and in a free pool.
    #[default]
    Free,
    /// A stream writes to it.
    Open,
    /// Full, and a candidate for garbage collection.
    Sealed,
    /// Full block of the cache with one bit a cell: its pages are folded into other blocks.
    Cached,
    /// The layer above chooses the position of each page in it, and gives it up when it is empty.
    Placed,
    /// Its valid pages are being moved by garbage collection.
    Victim,
    /// It has no valid pages, but is not erased before the next flush: the map as of the last flush
    /// names its pages.
    Emptied,
    /// A program failed in it: its valid pages are moved, then it is retired.
    Retiring,
    /// Bad: out of use.
    Bad,
}

/// State of a block: 8 bytes, so that invalidating a page touches one cache line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockInfo {
    pub(super) touched: u32,
    pub(super) valid: u16,
    pub(super) state: BlockUse,
    /// [`SUSPECT`] and [`ONE_BIT`].
    marks: u8,
}

/// Mark: a crash may have interrupted an erase, so the block is erased again before it is written.
const SUSPECT: u8 = 1;
/// Mark: the block is used with one bit a cell, in a dynamic cache.
const ONE_BIT: u8 = 2;

/// State, valid pages and age of all blocks. Unit `u` has the blocks from `u × blocks_per_unit` on.
#[derive(Clone, Debug)]
pub struct BlockTable {
    pub(super) block: Vec<BlockInfo>,
    pub(super) clock: u32,
    blocks_per_unit: u32,
    pages_per_block: u32,
    slc: SlcArea,
}

impl BlockTable {
    pub(super) fn new(g: &NandGeometry) -> BlockTable {
        BlockTable {
            block: vec![BlockInfo::default(); to_usize(g.units()) * to_usize(g.blocks_per_unit())],
            clock: 0,
            blocks_per_unit: g.blocks_per_unit(),
            pages_per_block: g.pages_per_block,
            slc: g.slc,
        }
    }

    /// Returns `true` if a block is one of the cache with one bit a cell.
    #[inline]
    #[must_use]
    pub fn is_slc(&self, block: u32) -> bool {
        if self.slc.dynamic {
            return self.block[to_usize(block)].marks & ONE_BIT != 0;
        }
        self.slc.blocks > 0 && block % self.blocks_per_unit < self.slc.blocks
    }

    /// Sets the mode of a block of a dynamic cache.
    pub(super) fn set_one_bit(&mut self, block: u32, one_bit: bool) {
        self.set_mark(block, ONE_BIT, one_bit);
    }

    fn set_mark(&mut self, block: u32, mark: u8, set: bool) {
        let marks = &mut self.block[to_usize(block)].marks;
        *marks = if set { *marks | mark } else { *marks & !mark };
    }

    /// Number of pages of a block, which are fewer in the cache with one bit a cell.
    #[inline]
    #[must_use]
    pub fn pages_in(&self, block: u32) -> u32 {
        if self.is_slc(block) { self.slc.pages } else { self.pages_per_block }
    }

    /// Blocks of a unit in the cache with one bit a cell.
    pub(super) fn slc_of_unit(&self, unit: u32) -> impl Iterator<Item = u32> + '_ {
        let first = unit * self.blocks_per_unit;
        let blocks = if self.slc.dynamic { self.blocks_per_unit } else { self.slc.blocks };
        (first..first + blocks).filter(|&b| !self.slc.dynamic || self.is_slc(b))
    }

    /// Size of the cache of a unit.
    pub(super) fn slc(&self) -> SlcArea {
        self.slc
    }

    /// Number of blocks in all units.
    #[must_use]
    pub fn count(&self) -> u32 {
        count_u32(self.block.len())
    }

    /// Number of pages in a block that is used with all bits of its cells.
    #[must_use]
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Number of blocks in a unit.
    #[must_use]
    pub fn blocks_per_unit(&self) -> u32 {
        self.blocks_per_unit
    }

    /// Range of the blocks of a unit.
    #[must_use]
    pub fn of_unit(&self, unit: u32) -> std::ops::Range<u32> {
        unit * self.blocks_per_unit..(unit + 1) * self.blocks_per_unit
    }

    /// Unit of a block.
    #[inline]
    #[must_use]
    pub fn unit_of(&self, block: u32) -> u32 {
        let n = self.blocks_per_unit;
        // A division costs more than the rest of invalidating a page.
        if n.is_power_of_two() { block >> n.trailing_zeros() } else { block / n }
    }

    /// Use of a block.
    #[inline]
    #[must_use]
    pub fn state(&self, block: u32) -> BlockUse {
        self.block[to_usize(block)].state
    }

    /// Sets the use of a block.
    #[inline]
    pub(super) fn set_state(&mut self, block: u32, state: BlockUse) {
        self.block[to_usize(block)].state = state;
    }

    /// Sets whether a block is erased again before it is written.
    #[inline]
    pub(super) fn set_suspect(&mut self, block: u32, suspect: bool) {
        self.set_mark(block, SUSPECT, suspect);
    }

    /// Returns `true` if a block is erased again before it is written.
    #[must_use]
    pub fn is_suspect(&self, block: u32) -> bool {
        self.block[to_usize(block)].marks & SUSPECT != 0
    }

    /// Number of valid pages in a block.
    #[inline]
    #[must_use]
    pub fn valid(&self, block: u32) -> u16 {
        self.block[to_usize(block)].valid
    }

    /// Age of a block: number of blocks sealed since one of its pages was last written or
    /// invalidated.
    #[inline]
    #[must_use]
    pub fn age(&self, block: u32) -> u32 {
        self.clock.wrapping_sub(self.block[to_usize(block)].touched)
    }
}
