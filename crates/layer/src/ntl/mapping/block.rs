//! Block-level mapping: a block of pages lies on one chip, in order (section II.B.2). The table has
//! four bytes for each block.

use super::{FreePlaces, MappingPolicy, MappingSetup, PLACE_NONE};

/// Table from logical to physical blocks.
#[derive(Clone, Debug)]
pub struct BlockMapping {
    chips: u32,
    pages: u32,
    /// For each block, `index * chips + chip` of the physical block.
    table: Vec<u32>,
    free: FreePlaces,
    /// For each physical block, the logical block that was restored to it, until
    /// [`MappingPolicy::end_restore`].
    taken: Vec<u32>,
}

impl BlockMapping {
    pub(super) fn new(setup: &MappingSetup) -> BlockMapping {
        let per_chip = setup.chip_pages / setup.block_pages;
        BlockMapping {
            chips: setup.chips,
            pages: setup.block_pages,
            table: vec![PLACE_NONE; (per_chip * setup.chips) as usize],
            free: FreePlaces::new(setup.chips, per_chip),
            taken: Vec::new(),
        }
    }

    /// Returns the place of a page in a physical block.
    #[inline]
    fn place(&self, block: u32, lpn: u32) -> u32 {
        let (index, chip) = (block / self.chips, block % self.chips);
        (index * self.pages + lpn % self.pages) * self.chips + chip
    }
}

impl MappingPolicy for BlockMapping {
    #[inline]
    fn home(&self, lpn: u32) -> Option<u32> {
        match self.table[(lpn / self.pages) as usize] {
            PLACE_NONE => None,
            block => Some(self.place(block, lpn)),
        }
    }

    fn assign(&mut self, lpn: u32, costs: &[u64]) -> Option<u32> {
        let (index, chip) = self.free.take(costs)?;
        let block = index * self.chips + chip;
        self.table[(lpn / self.pages) as usize] = block;
        Some(self.place(block, lpn))
    }

    fn restore(&mut self, lpn: u32, place: u32) -> bool {
        self.taken.resize(self.table.len(), PLACE_NONE);
        let (index, chip) = (place / self.chips, place % self.chips);
        let block = index / self.pages * self.chips + chip;
        let lbn = lpn / self.pages;
        if index % self.pages != lpn % self.pages || lbn as usize >= self.table.len() {
            return false;
        }
        let Some(&owner) = self.taken.get(block as usize) else { return false };
        let mapped = self.table[lbn as usize];
        if (owner, mapped) == (PLACE_NONE, PLACE_NONE) {
            self.taken[block as usize] = lbn;
            self.table[lbn as usize] = block;
        }
        self.table[lbn as usize] == block
    }

    fn end_restore(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        let chips = self.chips;
        self.free.rebuild(|index, chip| {
            taken.get((index * chips + chip) as usize).is_some_and(|&lbn| lbn != PLACE_NONE)
        });
    }

    fn fill(&mut self) {
        for (lbn, block) in self.table.iter_mut().enumerate() {
            *block = lbn as u32;
        }
        self.free.fill();
    }

    fn forget(&mut self) {
        self.table.fill(PLACE_NONE);
        self.free.clear();
        self.taken.clear();
    }

    fn table_bytes(&self) -> u64 {
        self.table.len() as u64 * 4
    }
}
