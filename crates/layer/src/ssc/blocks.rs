//! State of the erase blocks, and their pools.

use frit_core::BlockId;
use frit_core::convert::{count_u32, to_usize};
use frit_media::{NandArray, NandGeometry};

/// Use of an erase block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum BlockUse {
    /// In the pool of its unit.
    #[default]
    Free,
    /// Data is written to it.
    Open,
    /// Full, and a candidate for eviction.
    Sealed,
    /// Without data. It is erased once the log states so.
    Emptied,
    /// It holds parts of checkpoints.
    Checkpoint,
    /// Out of use.
    Bad,
}

/// An erase block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EraseBlock {
    pub(super) state: BlockUse,
    /// A program failed in it, or an erase: it is retired instead of erased.
    pub(super) retiring: bool,
    /// A crash may have interrupted its erase: it is erased again before it is written.
    pub(super) suspect: bool,
    /// Pages with current versions, and those among them that are dirty.
    pub(super) valid: u16,
    pub(super) dirty: u16,
    /// Age: number of blocks that were sealed before it.
    pub(super) sealed_at: u32,
    /// Number of the newest log page in it; 0 for none.
    pub(super) last_log: u64,
}

/// Block that is being written, and its next page.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBlock {
    pub(super) block: u32,
    pub(super) next: u32,
}

/// A unit of the NAND.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    pub(super) free: Vec<u32>,
    pub(super) open: Option<OpenBlock>,
    /// Block to which parts of checkpoints are appended: one of [`super::checkpoint::Checkpoint::blocks`].
    pub(super) checkpoint: Option<u32>,
    /// Blocks without data, each with the sequence number of the change that states so.
    pub(super) emptied: Vec<(u32, u64)>,
}

/// Sizes that follow from the geometry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) page_bytes: u32,
    /// Pages of a program unit.
    pub(super) unit_pages: u32,
    /// Program units of an erase block before those of the log at its end.
    pub(super) data_units: u32,
    /// Copies of each page of metadata.
    copies: u32,
    /// Program units before the end of an erase block that copies of log pages of other units take.
    foreign_units: u32,
    /// Blocks of a unit that hold a checkpoint.
    pub(super) checkpoint_held: u32,
    /// Blocks of a unit that a further checkpoint takes.
    checkpoint_new: u32,
    /// Free blocks of a unit that only evictions and checkpoints may use.
    pub(super) reserve: usize,
    /// Free blocks of a unit from which blocks are evicted.
    pub(super) low: usize,
}

/// Free blocks for the copies of an eviction: one that it fills, one in case a program fails.
const COPY_RESERVE: u32 = 2;

/// Blocks of a unit that must be left for data: one that is written, and three sealed ones.
const DATA_BLOCKS_MIN: u32 = 4;

/// Fewest program units of an erase block, beside a log page in all its copies: an eviction must gain
/// more than they take.
const BLOCK_UNITS_MIN: u32 = 3;

/// Returns `true` if the parts of a checkpoint on a unit may begin in one block and end in another. Parts
/// that take at most half a block are kept in one: the end of a block can stay unused, but no further block
/// has to be reserved, which would be much of a small unit.
pub(super) fn straddles(parts: u32, block_units: u32) -> bool {
    2 * parts > block_units
}

impl Sizes {
    /// Sizes for a geometry; an error text names the first thing that is too small.
    pub(super) fn new(
        g: &NandGeometry,
        reserve: f64,
        copies: u32,
    ) -> Result<Sizes, (&'static str, u32, String)> {
        let block_units = g.pages_per_block / g.program_pages;
        let least = BLOCK_UNITS_MIN + copies;
        if block_units < least {
            let why = format!("gives a block fewer than {least} programs");
            return Err(("pages_per_block", g.pages_per_block, why));
        }
        let unit_bytes = g.page_bytes * g.program_pages;
        // Every page of the NAND could hold a block.
        let parts =
            u64::from(g.pages()).div_ceil(super::records::CheckpointPart::capacity(unit_bytes) as u64);
        let unit_parts = (parts.div_ceil(u64::from(g.units())) * u64::from(copies)) as u32;
        let checkpoint_new = unit_parts.div_ceil(block_units);
        let checkpoint_held = match straddles(unit_parts, block_units) {
            true => (unit_parts - 1).div_ceil(block_units) + 1,
            false => 1,
        };
        let both = checkpoint_held + checkpoint_new;
        let least = both + COPY_RESERVE + DATA_BLOCKS_MIN;
        if g.blocks_per_unit() < least {
            let why =
                format!("a NAND unit needs at least {least} blocks: {both} of them for two checkpoints");
            return Err(("blocks_per_plane", g.blocks_per_plane, why));
        }
        let reserved = to_usize(COPY_RESERVE + checkpoint_new);
        let share = (f64::from(g.blocks_per_unit()) * reserve) as usize;
        let most = to_usize(g.blocks_per_unit() - checkpoint_held - DATA_BLOCKS_MIN);
        // A copy lies in another unit, if there is one.
        let log_units = if g.units() == 1 { copies } else { 1 };
        Ok(Sizes {
            page_bytes: g.page_bytes,
            unit_pages: g.program_pages,
            data_units: block_units - log_units,
            copies,
            foreign_units: copies - log_units,
            checkpoint_held,
            checkpoint_new,
            reserve: reserved,
            low: share.clamp(reserved + 1, most.max(reserved + 1)),
        })
    }

    /// Bytes of a program unit.
    pub(super) fn unit_bytes(&self) -> u32 {
        self.page_bytes * self.unit_pages
    }

    /// Pages of an erase block that hold data.
    pub(super) fn data_pages(&self) -> u32 {
        (self.data_units - self.foreign_units) * self.unit_pages
    }

    /// First page of an erase block that is for the log.
    pub(super) fn log_at(&self) -> u32 {
        self.data_units * self.unit_pages
    }

    /// Program units that the dirty pages of a block take.
    pub(super) fn units_of(&self, dirty: u16) -> u32 {
        u32::from(dirty).div_ceil(self.unit_pages)
    }

    /// Blocks of a unit that hold no data in the steady state: those that are kept erased, the
    /// checkpoint, and the open one.
    pub(super) fn without_data(&self) -> u32 {
        count_u32(self.low) + self.checkpoint_held + 1
    }

    /// Blocks of a unit for two checkpoints and the copies of an eviction.
    fn reserved(&self) -> u32 {
        self.checkpoint_held + self.checkpoint_new + COPY_RESERVE
    }

    /// Returns `true` if the eviction of a block with so many dirty pages gains space. Its copies and a
    /// log page take less than the block.
    pub(super) fn gains(&self, dirty: u16) -> bool {
        self.units_of(dirty) + self.copies < self.data_units
    }

    /// Number of dirty blocks for which a unit with so many usable blocks has space: with more, all
    /// its sealed blocks may be full of them.
    pub(super) fn dirty_limit(&self, usable: u32) -> u64 {
        // The two checkpoints, the reserve of copies, the open block and an emptied one hold no data.
        let sealed = usable.saturating_sub(self.reserved() + 2);
        u64::from(sealed) * u64::from(self.data_units - 1 - self.copies) * u64::from(self.unit_pages)
    }

    /// Returns `true` if a unit with so many usable blocks can still be written.
    pub(super) fn suffices(&self, usable: u32) -> bool {
        usable >= self.reserved() + DATA_BLOCKS_MIN
    }
}

/// All blocks and units of erased NAND.
pub(super) fn pools(nand: &NandArray) -> (Vec<EraseBlock>, Vec<Unit>) {
    let g = nand.geometry();
    let mut blocks = vec![EraseBlock::default(); to_usize(g.blocks())];
    let mut units = vec![Unit::default(); to_usize(g.units())];
    for (b, block) in (0..).zip(&mut blocks) {
        if nand.is_bad(BlockId(b)) {
            block.state = BlockUse::Bad;
        } else {
            units[to_usize(g.unit_of_block(BlockId(b)))].free.push(b);
        }
    }
    (blocks, units)
}
