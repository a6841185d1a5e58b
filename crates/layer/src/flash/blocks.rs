//! The state of every block, as cleaning and wear leveling see it.

/// What a block is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BlockState {
    /// Erased (or erasable) and in a pool.
    #[default]
    Free,
    /// A stream writes into it.
    Open,
    /// Full, and a candidate for cleaning.
    Sealed,
    /// Being cleaned.
    Victim,
    /// Emptied, and not erased before the next flush: the map as of the last one names its pages.
    Emptied,
    /// A program failed in it: to be emptied and retired.
    Doomed,
    /// Out of use.
    Bad,
}

/// What is known of a block: 8 bytes, so that a page that becomes invalid touches one cache line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    pub(super) touched: u32,
    pub(super) valid: u16,
    pub(super) state: BlockState,
    /// An erase may have been cut off: erase it before it is written.
    pub(super) suspect: bool,
}

/// All blocks: state, valid pages, age. Blocks of unit `u` are `u × blocks_per_unit ..`.
#[derive(Clone, Debug)]
pub struct Blocks {
    pub(super) block: Vec<Block>,
    pub(super) clock: u32,
    blocks_per_unit: u32,
    pages_per_block: u32,
}

impl Blocks {
    pub(super) fn new(units: u32, blocks_per_unit: u32, pages_per_block: u32) -> Blocks {
        let n = units as usize * blocks_per_unit as usize;
        Blocks { block: vec![Block::default(); n], clock: 0, blocks_per_unit, pages_per_block }
    }

    /// How many blocks there are in all units.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.block.len() as u32
    }

    /// Pages in a block.
    #[must_use]
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Blocks in a unit.
    #[must_use]
    pub fn blocks_per_unit(&self) -> u32 {
        self.blocks_per_unit
    }

    /// The blocks of a unit.
    #[must_use]
    pub fn of_unit(&self, unit: u32) -> std::ops::Range<u32> {
        unit * self.blocks_per_unit..(unit + 1) * self.blocks_per_unit
    }

    /// The unit of a block.
    #[inline]
    #[must_use]
    pub fn unit_of(&self, block: u32) -> u32 {
        let n = self.blocks_per_unit;
        // A division costs more than all the rest of taking note of an invalid page.
        if n.is_power_of_two() { block >> n.trailing_zeros() } else { block / n }
    }

    /// What a block is used for.
    #[inline]
    #[must_use]
    pub fn state(&self, block: u32) -> BlockState {
        self.block[block as usize].state
    }

    /// Whether a block is erased again before it is written.
    #[must_use]
    pub fn is_suspect(&self, block: u32) -> bool {
        self.block[block as usize].suspect
    }

    /// Valid pages of a block.
    #[inline]
    #[must_use]
    pub fn valid(&self, block: u32) -> u16 {
        self.block[block as usize].valid
    }

    /// How long ago a page of the block was last written or invalidated, in blocks sealed since.
    #[inline]
    #[must_use]
    pub fn age(&self, block: u32) -> u32 {
        self.clock.wrapping_sub(self.block[block as usize].touched)
    }
}
