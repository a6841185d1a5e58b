//! FAST, fully associative log blocks (Lee et al., "A log buffer-based flash translation layer using
//! fully-associative sector translation", ACM TECS 6(3), 2007, section 4).
//!
//! The first version of a page is programmed into its data block, at its own position. Newer versions
//! go to log blocks: one log block is for sequential writes (SW), which begin at the first page of a
//! logical block, the others for random writes (RW). The pages of an RW log block belong to any
//! logical blocks. RW log blocks are filled one after the other. If none is left, all logical blocks
//! with valid pages in the oldest one are merged (round robin).
//!
//! The paper leaves open what follows a write into the logical block of the SW log block that does not
//! continue it: here the SW log block is merged, and the page goes to an RW log block. A full merge of
//! the logical block of the SW log block takes its pages, too.

use super::data_blocks::{DataBlock, DataBlocks};
use super::{BlockPage, MappingScheme, MappingSizes, MergeKind, Purpose, Step};
use frit_core::convert::count_u32;
use std::collections::VecDeque;

/// Log block for sequential writes.
#[derive(Clone, Copy, Debug)]
struct Sequential {
    lbn: u32,
    block: u32,
    next: u32,
}

/// Block map with log blocks that all logical blocks share.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Fast {
    data: DataBlocks,
    sequential: Option<Sequential>,
    /// RW log blocks, the oldest first. The last one is being filled.
    random: VecDeque<u32>,
    /// Next page of the last RW log block.
    next: u32,
    limit: u32,
    pages_per_block: u32,
}

impl Fast {
    pub(super) fn new(sizes: MappingSizes) -> Fast {
        Fast {
            data: DataBlocks::new(sizes.blocks()),
            sequential: None,
            random: VecDeque::new(),
            next: 0,
            limit: sizes.log_blocks,
            pages_per_block: sizes.pages_per_block,
        }
    }

    fn merge_sequential(&self, log: Sequential) -> Step {
        let kind = if log.next < self.pages_per_block { MergeKind::Partial } else { MergeKind::Switch };
        Step::Merge { lbn: log.lbn, into: Some(log.block), kind }
    }

    fn step_random(&self) -> Step {
        match self.random.back() {
            Some(&block) if self.next < self.pages_per_block => Step::Program { block, at: self.next },
            _ if count_u32(self.random.len()) + 1 < self.limit => Step::Take(Purpose::SharedLog),
            _ => match self.random.front() {
                Some(&block) => Step::Reclaim { block },
                None => Step::Take(Purpose::SharedLog),
            },
        }
    }
}

impl MappingScheme for Fast {
    fn reset(&mut self) {
        self.data.reset();
        self.sequential = None;
        self.random.clear();
        self.next = 0;
    }

    /// A row for each block, and one for each page of a log block.
    fn table_bytes(&self) -> u64 {
        let rows = u64::from(self.limit) * (u64::from(self.pages_per_block) + 1);
        self.data.table_bytes() + rows * DataBlocks::ROW_BYTES
    }

    fn step(&mut self, page: BlockPage) -> Step {
        let own = self.sequential.filter(|log| log.lbn == page.lbn);
        if own.is_none() {
            match self.data.get(page.lbn) {
                None if page.offset == 0 => return Step::Take(Purpose::Data(page.lbn)),
                Some(data) if data.next == page.offset => {
                    return Step::Program { block: data.block, at: page.offset };
                }
                _ => {}
            }
        }
        match (own, self.sequential) {
            (Some(log), _) if log.next == page.offset => Step::Program { block: log.block, at: log.next },
            (Some(log), _) => self.merge_sequential(log),
            (None, Some(log)) if page.offset == 0 => self.merge_sequential(log),
            (None, None) if page.offset == 0 => Step::Take(Purpose::Log(page.lbn)),
            (None, _) => self.step_random(),
        }
    }

    fn took(&mut self, purpose: Purpose, block: u32) {
        match purpose {
            Purpose::Data(lbn) => drop(self.data.set(lbn, Some(DataBlock { block, next: 0 }))),
            Purpose::Log(lbn) => self.sequential = Some(Sequential { lbn, block, next: 0 }),
            Purpose::SharedLog => {
                self.random.push_back(block);
                self.next = 0;
            }
        }
    }

    fn programmed(&mut self, page: BlockPage, block: u32, next: u32) {
        match &mut self.sequential {
            Some(log) if log.block == block => log.next = next,
            _ if self.random.back() == Some(&block) => self.next = next,
            _ => self.data.programmed(page.lbn, block, next),
        }
    }

    fn merged(&mut self, lbn: u32, into: Option<(u32, u32)>, released: &mut Vec<u32>) {
        let data = into.map(|(block, next)| DataBlock { block, next });
        released.extend(self.data.set(lbn, data));
        let log = self.sequential.take_if(|log| log.lbn == lbn).map(|log| log.block);
        released.extend(log.filter(|&log| data.is_none_or(|d| d.block != log)));
    }

    fn forget(&mut self, block: u32) {
        self.data.forget(block);
        self.sequential.take_if(|log| log.block == block);
        if self.random.back() == Some(&block) {
            // The one before it is full.
            self.next = self.pages_per_block;
        }
        self.random.retain(|&log| log != block);
    }

    fn adopt(&mut self, lbn: u32, block: u32, next: u32) {
        self.data.set(lbn, Some(DataBlock { block, next }));
    }

    fn log_blocks(&self) -> u32 {
        count_u32(self.random.len()) + u32::from(self.sequential.is_some())
    }
}
