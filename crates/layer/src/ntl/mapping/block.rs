//! Block-level mapping: a block of pages lies on one chip, in order (section II.B.2). The table has
//! four bytes for each block.

use super::{FreePlaces, MappingPolicy, MappingSetup};
use crate::numbers::{LogicalBlock, Place};
use frit_core::Lpn;
use frit_core::convert::{to_u64, to_usize};
use frit_core::number_types;

/// A block of places on one chip: `index * chips + chip`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PhysicalBlock(u32);

number_types!(PhysicalBlock);

/// Reserved numbers that mean "no block".
const LOGICAL_NONE: LogicalBlock = LogicalBlock(u32::MAX);
const PHYSICAL_NONE: PhysicalBlock = PhysicalBlock(u32::MAX);

/// Table from logical to physical blocks.
#[derive(Clone, Debug)]
pub struct BlockMapping {
    chips: u32,
    pages: u32,
    table: Vec<PhysicalBlock>,
    free: FreePlaces,
    /// For each physical block, the logical block that was restored to it, until
    /// [`MappingPolicy::end_restore`].
    taken: Vec<LogicalBlock>,
}

impl BlockMapping {
    pub(super) fn new(setup: &MappingSetup) -> BlockMapping {
        let per_chip = setup.chip_pages / setup.block_pages;
        BlockMapping {
            chips: setup.chips,
            pages: setup.block_pages,
            table: vec![PHYSICAL_NONE; to_usize(per_chip * setup.chips)],
            free: FreePlaces::new(setup.chips, per_chip),
            taken: Vec::new(),
        }
    }

    #[inline]
    fn block_of(&self, lpn: Lpn) -> LogicalBlock {
        LogicalBlock::of(lpn, self.pages)
    }

    /// Returns the place of a page in a physical block.
    #[inline]
    fn place(&self, block: PhysicalBlock, lpn: Lpn) -> Place {
        let (index, chip) = (block.0 / self.chips, block.0 % self.chips);
        Place((index * self.pages + lpn.0 % self.pages) * self.chips + chip)
    }
}

impl MappingPolicy for BlockMapping {
    #[inline]
    fn home(&self, lpn: Lpn) -> Option<Place> {
        match self.table[self.block_of(lpn).idx()] {
            PHYSICAL_NONE => None,
            block => Some(self.place(block, lpn)),
        }
    }

    fn assign(&mut self, lpn: Lpn, costs: &[u64]) -> Option<Place> {
        let block = PhysicalBlock(self.free.take(costs)?);
        let logical = self.block_of(lpn);
        self.table[logical.idx()] = block;
        Some(self.place(block, lpn))
    }

    fn restore(&mut self, lpn: Lpn, place: Place) -> bool {
        self.taken.resize(self.table.len(), LOGICAL_NONE);
        let (index, chip) = (place.0 / self.chips, place.0 % self.chips);
        let block = PhysicalBlock(index / self.pages * self.chips + chip);
        let logical = self.block_of(lpn);
        if index % self.pages != lpn.0 % self.pages || logical.idx() >= self.table.len() {
            return false;
        }
        let Some(&owner) = self.taken.get(block.idx()) else { return false };
        let mapped = self.table[logical.idx()];
        if (owner, mapped) == (LOGICAL_NONE, PHYSICAL_NONE) {
            self.taken[block.idx()] = logical;
            self.table[logical.idx()] = block;
        }
        self.table[logical.idx()] == block
    }

    fn end_restore(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.free.rebuild(|block| {
            taken.get(PhysicalBlock(block).idx()).is_some_and(|&logical| logical != LOGICAL_NONE)
        });
    }

    fn fill(&mut self) {
        for (logical, block) in self.table.iter_mut().enumerate() {
            *block = PhysicalBlock::of_idx(logical);
        }
        self.free.fill();
    }

    fn forget(&mut self) {
        self.table.fill(PHYSICAL_NONE);
        self.free.clear();
        self.taken.clear();
    }

    fn table_bytes(&self) -> u64 {
        to_u64(self.table.len()) * 4
    }
}
