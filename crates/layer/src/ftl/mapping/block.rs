//! Block map: each page has its position in the block of its logical block (Ban, US patent 5 404 485,
//! 1995, without replacement blocks).
//!
//! An overwrite copies the logical block into a free block: first the pages before those that the
//! request writes, then the pages that it writes, and after the request the rest. A request that writes
//! the whole logical block copies nothing.

use super::data_blocks::{DataBlock, DataBlocks};
use super::{BlockPage, MappingScheme, MappingSizes, MergeKind, Purpose, Step};

/// Block that takes the place of a data block.
#[derive(Clone, Copy, Debug)]
struct Copying {
    lbn: u32,
    block: u32,
    next: u32,
    /// Pages were copied into it.
    copied: bool,
}

/// The block map.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct BlockMap {
    data: DataBlocks,
    copying: Option<Copying>,
    pages_per_block: u32,
}

impl BlockMap {
    pub(super) fn new(sizes: MappingSizes) -> BlockMap {
        let pages_per_block = sizes.pages_per_block;
        BlockMap { data: DataBlocks::new(sizes.blocks()), copying: None, pages_per_block }
    }

    fn merge(&self, copying: Copying) -> Step {
        let whole = copying.next == self.pages_per_block && !copying.copied;
        let kind = if whole { MergeKind::Switch } else { MergeKind::Full };
        Step::Merge { lbn: copying.lbn, into: Some(copying.block), kind }
    }
}

impl MappingScheme for BlockMap {
    fn reset(&mut self) {
        self.data.reset();
        self.copying = None;
    }

    fn table_bytes(&self) -> u64 {
        self.data.table_bytes()
    }

    fn step(&mut self, page: BlockPage) -> Step {
        let BlockPage { lbn, offset } = page;
        match self.copying {
            Some(ref mut c) if c.lbn == lbn && c.next < offset => {
                c.copied = true;
                return Step::Fill { lbn, block: c.block, until: offset };
            }
            Some(c) if c.lbn != lbn || c.next > offset => {
                return self.merge(c);
            }
            Some(c) => return Step::Program { block: c.block, at: offset },
            None => {}
        }
        match self.data.get(lbn) {
            None => Step::Take(Purpose::Data(lbn)),
            Some(data) if data.next <= offset => Step::Program { block: data.block, at: offset },
            Some(_) => Step::Take(Purpose::Log(lbn)),
        }
    }

    fn step_after_request(&mut self) -> Option<Step> {
        self.copying.map(|c| self.merge(c))
    }

    fn took(&mut self, purpose: Purpose, block: u32) {
        match purpose {
            Purpose::Data(lbn) => drop(self.data.set(lbn, Some(DataBlock { block, next: 0 }))),
            Purpose::Log(lbn) => self.copying = Some(Copying { lbn, block, next: 0, copied: false }),
            Purpose::SharedLog => {}
        }
    }

    fn programmed(&mut self, page: BlockPage, block: u32, next: u32) {
        match &mut self.copying {
            Some(c) if c.block == block => c.next = next,
            _ => self.data.programmed(page.lbn, block, next),
        }
    }

    fn merged(&mut self, lbn: u32, into: Option<(u32, u32)>, released: &mut Vec<u32>) {
        let data = into.map(|(block, next)| DataBlock { block, next });
        released.extend(self.data.set(lbn, data));
        if let Some(c) = self.copying.take_if(|c| c.lbn == lbn)
            && data.is_none_or(|d| d.block != c.block)
        {
            released.push(c.block);
        }
    }

    fn forget(&mut self, block: u32) {
        self.data.forget(block);
        self.copying.take_if(|c| c.block == block);
    }

    fn adopt(&mut self, lbn: u32, block: u32, next: u32) {
        self.data.set(lbn, Some(DataBlock { block, next }));
    }
}
