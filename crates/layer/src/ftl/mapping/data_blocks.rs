//! Data blocks: the block in which the pages of a logical block have their own positions.

use frit_core::PAGE_NONE;
use frit_core::convert::to_usize;

/// Data block of a logical block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DataBlock {
    pub(super) block: u32,
    /// Next page that can be programmed.
    pub(super) next: u32,
}

const NONE: DataBlock = DataBlock { block: PAGE_NONE, next: 0 };

/// The data blocks by logical block.
#[derive(Clone, Debug)]
pub(super) struct DataBlocks(Vec<DataBlock>);

impl DataBlocks {
    /// Bytes of a row of the block map: a block.
    pub(super) const ROW_BYTES: u64 = 4;

    pub(super) fn new(blocks: u32) -> DataBlocks {
        DataBlocks(vec![NONE; to_usize(blocks)])
    }

    pub(super) fn reset(&mut self) {
        self.0.fill(NONE);
    }

    pub(super) fn get(&self, lbn: u32) -> Option<DataBlock> {
        self.0.get(to_usize(lbn)).copied().filter(|d| *d != NONE)
    }

    /// Sets the data block of a logical block, and returns the one before.
    pub(super) fn set(&mut self, lbn: u32, data: Option<DataBlock>) -> Option<u32> {
        let before = std::mem::replace(&mut self.0[to_usize(lbn)], data.unwrap_or(NONE));
        (before != NONE).then_some(before.block)
    }

    /// Sets the next page of a block, if it is a data block. `near` is the logical block that is written.
    pub(super) fn programmed(&mut self, near: u32, block: u32, next: u32) {
        if let Some(data) = self.0.get_mut(to_usize(near)).filter(|d| d.block == block) {
            data.next = next;
        }
    }

    /// Removes a block.
    pub(super) fn forget(&mut self, block: u32) {
        self.0.iter_mut().filter(|d| d.block == block).for_each(|d| *d = NONE);
    }

    /// Bytes of the block map.
    pub(super) fn table_bytes(&self) -> u64 {
        self.0.len() as u64 * DataBlocks::ROW_BYTES
    }
}
