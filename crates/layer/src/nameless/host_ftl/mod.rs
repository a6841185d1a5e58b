//! The host FTL of the split design (Saxena et al., FAST 2013, section 3.4): it builds the interface of
//! a nameless-write device from the three operations of a small device.
//!
//! The small device is the NAND itself ([`frit_media::NandArray`]): page read, page program, block
//! erase. The host FTL has everything else: valid pages, pools of free blocks, garbage collection, wear
//! leveling, bad blocks, the map of virtual blocks, and the queue of migrations. It has **no map of
//! nameless blocks**: their addresses are in the metadata of their owner.
//!
//! | file | subject |
//! |---|---|
//! | `mod` | state |
//! | `device` | the interface, [`frit_core::NamelessDevice`] |
//! | `program` | request queues, each in a virtual page of its own |
//! | `maps` | the map of virtual blocks, and the queue of migrations |
//! | `checkpoint` | saved metadata |
//! | `map_parts` | parts of the map of virtual blocks, for atomic flushes |
//! | `recover` | recovery by a scan, claims |

mod checkpoint;
mod device;
mod map_parts;
mod maps;
mod program;
mod recover;

use super::config::NamelessConfig;
use crate::flash::{Flash, nominal_capacity};
use checkpoint::{Checkpoint, MetadataLayout};
use frit_core::convert::to_usize;
use frit_core::{Error, OWNERS, PAGE_NONE, Result, Sink, Tok};
use frit_media::NandArray;
use maps::DeviceMaps;
use recover::FoundBlocks;

/// Mapping units by which the valid pages of a NAND unit may exceed its share, as a fraction: pages are
/// not bound to a unit, so the units differ at random.
const SHARE_SLACK: u32 = 32;
/// First page number of virtual blocks in spare areas. Smaller ones are those of owners.
const VIRTUAL: u32 = OWNERS;

/// Counters since the device was created. Commands are counted by the medium.
#[derive(Clone, Copy, Default, Debug)]
struct DeviceStats {
    nameless_queues: u64,
    virtual_queues: u64,
    nameless_blocks: u64,
    virtual_blocks: u64,
    padded: u64,
    checkpoints: u64,
    map_parts: u64,
}

/// Blocks that a device is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceBlocks {
    /// Nameless blocks that the owner stores.
    pub capacity: u32,
    /// Further ones that wait to be freed.
    pub waiting: u32,
    /// Virtual blocks.
    pub virtual_blocks: u32,
    /// Virtual writes become durable together, at a flush. The device then has space for two versions of
    /// each virtual block, and refuses nameless writes beyond `capacity` and `waiting`.
    pub atomic_flush: bool,
}

impl DeviceBlocks {
    /// Returns the number of pages that can be valid, without those of checkpoints.
    #[must_use]
    pub fn pages(&self) -> u64 {
        let versions = if self.atomic_flush { 2 } else { 1 };
        let contents = u64::from(self.capacity) + u64::from(self.waiting);
        contents + versions * u64::from(self.virtual_blocks)
    }
}

/// A nameless-write device: NAND, and the FTL of the host.
#[derive(Debug)]
pub struct HostFtl {
    flash: Flash,
    maps: DeviceMaps,
    checkpoint: Checkpoint,
    blocks: DeviceBlocks,
    page_bytes: u32,
    /// Blocks of a virtual page.
    unit_pages: u32,
    /// Metadata is saved, and recovered from.
    scans: bool,
    /// A read transfers a whole virtual page.
    page_reads: bool,
    /// Media in files are synced before anything relies on them.
    over_files: bool,
    /// NAND unit that is written next.
    turn: u32,
    /// Token that is done when all programs of nameless blocks so far are done.
    programmed: Tok,
    /// Records that a recovery has found, until it ends.
    found: FoundBlocks,
    /// A recovery waits for the claims of the owner.
    recovering: bool,
    /// Owners of the queue that is being programmed, with padding.
    lpns: Vec<u32>,
    /// Contents of a virtual page; empty if the store holds no bytes.
    unit: Vec<u8>,
    stats: DeviceStats,
}

impl HostFtl {
    /// Returns `true` if the media keep the bytes that are written.
    #[inline]
    fn stores_bytes(&self) -> bool {
        self.flash.stores_bytes()
    }

    /// Creates a device over NAND, whose page is the block ([`frit_media::NandGeometry::divided`]).
    ///
    /// # Errors
    /// A parameter that does not fit the media; the error names the permitted values.
    pub fn new(config: &NamelessConfig, nand: NandArray, blocks: DeviceBlocks) -> Result<HostFtl> {
        let g = *nand.geometry();
        if g.pages_per_block > u32::from(u16::MAX) {
            let why = "makes more than 65535 blocks in an erase block; use a larger one";
            return Err(Error::param("mapping_unit", config.mapping_unit, why));
        }
        let layout = match config.scans() {
            true => MetadataLayout::new(&blocks, g.page_bytes),
            false => MetadataLayout::default(),
        };
        let numbers = blocks.virtual_blocks + layout.map_parts + layout.checkpoint_pages();
        let total = blocks.pages() + u64::from(layout.pages());
        let fits = u32::try_from(total).ok().filter(|&total| total < OWNERS);
        let (Some(total), true) = (fits, VIRTUAL < PAGE_NONE - numbers) else {
            return Err(Error::param("capacity", config.capacity, "is too large for blocks of this size"));
        };
        // Bad blocks do not change the sizes: a volume with too many of them refuses writes.
        nominal_capacity(&g, u64::from(total) * u64::from(g.page_bytes), 0.0, config.scans())?;
        let usable = Flash::nominal_pages_per_unit(&g, config.scans());
        let fair = total.div_ceil(g.units());
        let most = usable.saturating_sub(g.pages_per_block).max(fair);
        let share = (fair + fair / SHARE_SLACK + 4 * g.program_pages).min(most);
        let mut flash = Flash::new(nand, config.flash_keys().config()?, share);
        flash.refuse_if_too_small();
        if config.scans() {
            flash.enforce_erase_order(config.erase_after_flush);
        }
        let held = if flash.stores_bytes() { to_usize(g.page_bytes * g.program_pages) } else { 0 };
        Ok(HostFtl {
            flash,
            maps: DeviceMaps::new(blocks.virtual_blocks, layout.map_parts, numbers, blocks.atomic_flush),
            checkpoint: Checkpoint::new(&blocks, layout),
            blocks,
            page_bytes: g.page_bytes,
            unit_pages: g.program_pages,
            scans: config.scans(),
            page_reads: config.page_reads,
            over_files: config.erase_after_flush,
            turn: 0,
            programmed: Tok::default(),
            found: FoundBlocks::default(),
            recovering: false,
            lpns: Vec::new(),
            unit: vec![0; held],
            stats: DeviceStats::default(),
        })
    }

    /// Returns the number of pages of saved metadata that can be valid.
    #[must_use]
    pub fn saved_pages(blocks: &DeviceBlocks, page_bytes: u32) -> u32 {
        MetadataLayout::new(blocks, page_bytes).pages()
    }

    /// Returns the number of virtual blocks and of pages of metadata for a map of `blocks` blocks that
    /// the owner keeps in virtual blocks.
    #[must_use]
    pub fn metadata_pages(blocks: u32, page_bytes: u32) -> (u32, u32) {
        let virtual_blocks = blocks.div_ceil(page_bytes / 8);
        let blocks = DeviceBlocks { capacity: 0, waiting: 0, virtual_blocks, atomic_flush: false };
        (virtual_blocks, Self::saved_pages(&blocks, page_bytes))
    }

    /// The NAND side.
    #[must_use]
    pub fn flash(&self) -> &Flash {
        &self.flash
    }

    /// The NAND side, for fault injection, and for parameters that change.
    pub fn flash_mut(&mut self) -> &mut Flash {
        &mut self.flash
    }

    /// Calls `each` with the page of each virtual block and of each page of metadata.
    #[cfg(test)]
    pub(super) fn each_metadata_page(&self, each: &mut impl FnMut(u32)) {
        (0..self.maps.numbers()).filter_map(|n| self.maps.get(n)).for_each(|at| each(at.page));
    }

    /// Number of valid pages of virtual blocks, with those that only the last checkpoint names, and of
    /// checkpoints.
    #[cfg(test)]
    pub(crate) fn metadata_pages_in_use(&self) -> u64 {
        self.maps.valid_pages()
    }

    /// Token that is done when everything so far is durable.
    fn all_written(&self, sink: &mut Sink) -> Tok {
        sink.join(self.programmed, self.maps.written)
    }

    /// DRAM of the FTL, in bytes: the map of virtual blocks; for each page of NAND a bit that states
    /// whether it is valid, since its owner is in its spare area; and the table of blocks.
    ///
    /// The model keeps owners in a table as well, because NAND without bytes has no spare areas
    /// ([`Flash::dram_bytes`]).
    fn ftl_bytes(&self) -> u64 {
        let pages = u64::from(self.flash.nand().geometry().pages());
        self.flash.dram_bytes() - pages * 4 + pages.div_ceil(8) + self.maps.dram_bytes()
    }
}
