//! Mapping schemes: from which table the physical page of a logical page is known, and where a page
//! may be programmed.
//!
//! A scheme is one file beside this one that implements [`MappingScheme`], and one line in [`Scheme`]
//! and in [`Mapping`]. Schemes give no commands: they are asked for the next step, and the FTL executes
//! it (`place`, `translate`). Under every scheme, the records in spare areas are the truth from which a
//! recovery starts, and the FTL keeps the place of each page in DRAM, so that a read needs no search.
//! The tables that a device with the scheme would have are counted, not built.

mod bast;
mod block;
mod data_blocks;
mod dftl;
mod fast;
mod page;

use super::config::FtlConfig;
use bast::Bast;
use block::BlockMap;
use dftl::{CacheStats, Dftl};
use enum_dispatch::enum_dispatch;
use fast::Fast;
use frit_core::Lpn;
use page::PageTable;
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Mapping scheme of an FTL.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Mapping {
    /// A table with a row for each page, in DRAM.
    #[default]
    Page,
    /// The table lies in NAND, and a part of it is cached (Gupta et al., *DFTL*, ASPLOS 2009).
    Dftl,
    /// Blocks, with log blocks that all blocks share (Lee et al., TECS 2007).
    Fast,
    /// Blocks, with a log block each for those that are overwritten (Kim et al., IEEE Transactions on
    /// Consumer Electronics 2002).
    Bast,
    /// Blocks, whose pages have fixed positions.
    Block,
}

impl Mapping {
    /// Returns `true` if the scheme maps blocks, and chooses the position of each page in them.
    #[must_use]
    pub fn maps_blocks(self) -> bool {
        matches!(self, Mapping::Fast | Mapping::Bast | Mapping::Block)
    }

    /// Returns `true` if the scheme has log blocks.
    #[must_use]
    pub fn has_log(self) -> bool {
        matches!(self, Mapping::Fast | Mapping::Bast)
    }

    /// Fewest log blocks of the scheme.
    pub(super) fn log_blocks_min(self) -> u32 {
        match self {
            // One for sequential writes, one for others.
            Mapping::Fast => 2,
            Mapping::Bast => 1,
            Mapping::Page | Mapping::Dftl | Mapping::Block => 0,
        }
    }
}

/// Sizes of a volume that its scheme needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct MappingSizes {
    /// Pages of the volume.
    pub(super) pages: u32,
    pub(super) pages_per_block: u32,
    /// Log blocks, at most.
    pub(super) log_blocks: u32,
    /// Entries of the cached mapping table.
    pub(super) cmt_entries: u32,
    /// Entries of a translation page.
    pub(super) entries_per_page: u32,
}

impl MappingSizes {
    /// Logical blocks of the volume.
    pub(super) fn blocks(&self) -> u32 {
        self.pages.div_ceil(self.pages_per_block)
    }
}

/// Page of a logical block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockPage {
    /// Logical block.
    pub(super) lbn: u32,
    /// Position of the page in it.
    pub(super) offset: u32,
}

/// Purpose of a block that a scheme takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Data block of a logical block.
    Data(u32),
    /// Log block of a logical block (BAST), or for its sequential writes (FAST), or its next data
    /// block (block map).
    Log(u32),
    /// Log block of all logical blocks.
    SharedLog,
}

/// Kind of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MergeKind {
    /// A log block that has all pages in order becomes the data block.
    Switch,
    /// The rest of the pages are copied into such a log block first.
    Partial,
    /// The newest versions of all pages are copied into a free block.
    Full,
}

/// Next step of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The page is programmed anywhere.
    Anywhere,
    /// The page is programmed at a position of a block. Pages before it are padded.
    Program { block: u32, at: u32 },
    /// A free block is taken.
    Take(Purpose),
    /// Pages of a logical block are copied to their positions in a block, below `until`.
    Fill { lbn: u32, block: u32, until: u32 },
    /// The pages of a logical block are brought together, in a free block if `into` is `None`.
    Merge { lbn: u32, into: Option<u32>, kind: MergeKind },
    /// All logical blocks with pages in a log block are merged.
    Reclaim { block: u32 },
}

/// Access of DFTL to a translation page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TranslationStep {
    /// The page is read for an entry.
    Load { page: u32 },
    /// The page is read, and written with all changed entries in the cache.
    WriteBack { page: u32 },
}

/// A mapping scheme.
#[enum_dispatch]
pub(super) trait MappingScheme {
    /// Forgets everything.
    fn reset(&mut self);

    /// Size of the tables that a device with the scheme has in DRAM, in bytes.
    fn table_bytes(&self) -> u64;

    /// Next step to write a page. Called again after each step, until the page is programmed.
    fn step(&mut self, _page: BlockPage) -> Step {
        Step::Anywhere
    }

    /// Next step after the last page of a request.
    fn step_after_request(&mut self) -> Option<Step> {
        None
    }

    /// Records that a free block was taken.
    fn took(&mut self, _purpose: Purpose, _block: u32) {}

    /// Records that the pages of a block below `next` are programmed, the last of them with this
    /// page.
    fn programmed(&mut self, _page: BlockPage, _block: u32, _next: u32) {}

    /// Records a merge: the pages of a logical block are in a block that is programmed below a page, or
    /// there are none. Blocks that hold nothing else are added to `released`.
    fn merged(&mut self, _lbn: u32, _into: Option<(u32, u32)>, _released: &mut Vec<u32>) {}

    /// Records that a block was taken away, because a program in it failed, or it has no valid page.
    fn forget(&mut self, _block: u32) {}

    /// Records a data block that exists already, programmed below `next`.
    fn adopt(&mut self, _lbn: u32, _block: u32, _next: u32) {}

    /// Log blocks in use.
    fn log_blocks(&self) -> u32 {
        0
    }
}

/// All mapping schemes.
#[enum_dispatch(MappingScheme)]
#[derive(Clone, Debug)]
pub(super) enum Scheme {
    Page(PageTable),
    Dftl(Dftl),
    Fast(Fast),
    Bast(Bast),
    Block(BlockMap),
}

impl Scheme {
    pub(super) fn new(config: &FtlConfig, sizes: MappingSizes) -> Scheme {
        match config.mapping {
            Mapping::Page => PageTable::new(sizes).into(),
            Mapping::Dftl => Dftl::new(sizes).into(),
            Mapping::Fast => Fast::new(sizes).into(),
            Mapping::Bast => Bast::new(sizes).into(),
            Mapping::Block => BlockMap::new(sizes).into(),
        }
    }

    /// DFTL's cached mapping table, under that scheme.
    pub(super) fn dftl(&mut self) -> Option<&mut Dftl> {
        match self {
            Scheme::Dftl(dftl) => Some(dftl),
            _ => None,
        }
    }

    /// Returns `true` if DFTL's cache has a newer version of an entry than its translation page.
    pub(super) fn is_changed_in_cache(&self, lpn: Lpn) -> bool {
        matches!(self, Scheme::Dftl(dftl) if dftl.is_dirty(lpn))
    }

    /// Counters of DFTL's cached mapping table; zero under other schemes.
    pub(super) fn cache_stats(&self) -> CacheStats {
        match self {
            Scheme::Dftl(dftl) => dftl.stats,
            _ => CacheStats::default(),
        }
    }

    /// The page of a logical block that a page is.
    pub(super) fn page_of(lpn: Lpn, pages_per_block: u32) -> BlockPage {
        BlockPage { lbn: lpn.0 / pages_per_block, offset: lpn.0 % pages_per_block }
    }
}
