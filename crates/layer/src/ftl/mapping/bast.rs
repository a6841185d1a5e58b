//! BAST, block-associative log blocks (Kim et al., "A space-efficient flash translation layer for
//! CompactFlash systems", IEEE Transactions on Consumer Electronics 48(2), 2002).
//!
//! The first version of a page is programmed into its data block, at its own position. A data block
//! whose pages are overwritten gets a log block, in which the newer versions lie in any order. A full
//! log block is merged with its data block, and also the least recently written one if a log block is
//! needed and none is left.

use super::data_blocks::{DataBlock, DataBlocks};
use super::{BlockPage, MappingScheme, MappingSizes, MergeKind, Purpose, Step};
use frit_core::PAGE_NONE;
use frit_core::convert::{count_u32, to_usize};

#[derive(Clone, Copy, Debug)]
struct LogBlock {
    lbn: u32,
    block: u32,
    next: u32,
    /// Its pages are those of the logical block from the first one on.
    in_order: bool,
    /// Number of the last write.
    written: u64,
}

/// Block map with log blocks.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Bast {
    data: DataBlocks,
    logs: Vec<LogBlock>,
    /// Index in `logs` by logical block; `PAGE_NONE` without a log block.
    log_of: Vec<u32>,
    limit: u32,
    pages_per_block: u32,
    writes: u64,
}

impl Bast {
    pub(super) fn new(sizes: MappingSizes) -> Bast {
        Bast {
            data: DataBlocks::new(sizes.blocks()),
            logs: Vec::new(),
            log_of: vec![PAGE_NONE; to_usize(sizes.blocks())],
            limit: sizes.log_blocks,
            pages_per_block: sizes.pages_per_block,
            writes: 0,
        }
    }

    fn log(&mut self, lbn: u32) -> Option<&mut LogBlock> {
        self.logs.get_mut(to_usize(self.log_of[to_usize(lbn)]))
    }

    fn remove(&mut self, lbn: u32) -> Option<LogBlock> {
        let i = to_usize(std::mem::replace(&mut self.log_of[to_usize(lbn)], PAGE_NONE));
        if i >= self.logs.len() {
            return None;
        }
        let log = self.logs.swap_remove(i);
        if let Some(moved) = self.logs.get(i) {
            self.log_of[to_usize(moved.lbn)] = count_u32(i);
        }
        Some(log)
    }

    fn merge(&self, log: LogBlock) -> Step {
        let kind = match log {
            LogBlock { in_order: false, .. } => MergeKind::Full,
            LogBlock { next, .. } if next < self.pages_per_block => MergeKind::Partial,
            LogBlock { .. } => MergeKind::Switch,
        };
        let into = (kind != MergeKind::Full).then_some(log.block);
        Step::Merge { lbn: log.lbn, into, kind }
    }
}

impl MappingScheme for Bast {
    fn reset(&mut self) {
        self.data.reset();
        self.logs.clear();
        self.log_of.fill(PAGE_NONE);
    }

    /// A row for each block, and one for each page of a log block.
    fn table_bytes(&self) -> u64 {
        let rows = u64::from(self.limit) * (u64::from(self.pages_per_block) + 1);
        self.data.table_bytes() + rows * DataBlocks::ROW_BYTES
    }

    fn step(&mut self, page: BlockPage) -> Step {
        let full = self.pages_per_block;
        if let Some(&mut log) = self.log(page.lbn) {
            return match log.next < full {
                true => Step::Program { block: log.block, at: log.next },
                false => self.merge(log),
            };
        }
        match self.data.get(page.lbn) {
            None if page.offset == 0 => return Step::Take(Purpose::Data(page.lbn)),
            Some(data) if data.next == page.offset => {
                return Step::Program { block: data.block, at: page.offset };
            }
            _ => {}
        }
        if count_u32(self.logs.len()) < self.limit {
            return Step::Take(Purpose::Log(page.lbn));
        }
        match self.logs.iter().min_by_key(|log| log.written) {
            Some(&log) => self.merge(log),
            None => Step::Take(Purpose::Log(page.lbn)),
        }
    }

    fn took(&mut self, purpose: Purpose, block: u32) {
        match purpose {
            Purpose::Data(lbn) => drop(self.data.set(lbn, Some(DataBlock { block, next: 0 }))),
            Purpose::Log(lbn) => {
                self.log_of[to_usize(lbn)] = count_u32(self.logs.len());
                self.logs.push(LogBlock { lbn, block, next: 0, in_order: true, written: self.writes });
            }
            Purpose::SharedLog => {}
        }
    }

    fn programmed(&mut self, page: BlockPage, block: u32, next: u32) {
        self.writes += 1;
        let writes = self.writes;
        match self.log(page.lbn) {
            Some(log) if log.block == block => {
                log.in_order &= page.offset + 1 == next;
                (log.next, log.written) = (next, writes);
            }
            _ => self.data.programmed(page.lbn, block, next),
        }
    }

    fn merged(&mut self, lbn: u32, into: Option<(u32, u32)>, released: &mut Vec<u32>) {
        let data = into.map(|(block, next)| DataBlock { block, next });
        released.extend(self.data.set(lbn, data));
        let log = self.remove(lbn).map(|log| log.block);
        released.extend(log.filter(|&log| data.is_none_or(|d| d.block != log)));
    }

    fn forget(&mut self, block: u32) {
        self.data.forget(block);
        if let Some(log) = self.logs.iter().find(|log| log.block == block).copied() {
            self.remove(log.lbn);
        }
    }

    fn adopt(&mut self, lbn: u32, block: u32, next: u32) {
        self.data.set(lbn, Some(DataBlock { block, next }));
    }

    fn log_blocks(&self) -> u32 {
        count_u32(self.logs.len())
    }
}
