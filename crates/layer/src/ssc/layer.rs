//! The device [`Ssc`]: its state.

use super::blocks::{self, BlockUse, EraseBlock, Sizes, Unit};
use super::checkpoint::Checkpoint;
use super::config::SscConfig;
use super::log::MapLog;
use super::map::{AnyMap, BlockMap, Entry};
use super::view::SscStats;
use crate::ftl::merge_buffer::MergeBuffer;
use crate::health::Health;
use crate::planted::SscBug;
use frit_core::convert::{count_u32, to_u64, to_usize};
use frit_core::{BlockId, Error, Ppn, Result, Sink, Tok};
use frit_media::memory::table32;
use frit_media::{ExpectedPage, NandArray};

/// A solid-state cache over NAND.
#[derive(Debug)]
pub struct Ssc {
    pub(super) config: SscConfig,
    pub(super) nand: NandArray,
    pub(super) sizes: Sizes,
    pub(super) map: AnyMap,
    /// Page → block + 1 for current versions, 0 for all others.
    pub(super) reverse: Vec<u32>,
    pub(super) blocks: Vec<EraseBlock>,
    pub(super) units: Vec<Unit>,
    /// Good blocks of each unit.
    usable: Vec<u32>,
    /// Number of dirty blocks for which these have space.
    dirty_space: u64,
    pub(super) buffer: MergeBuffer,
    pub(super) log: MapLog,
    pub(super) checkpoint: Checkpoint,
    /// Last sequence number that was assigned.
    pub(super) seq: u64,
    /// Sequence number up to which all programs are synced, with media in files.
    pub(super) synced: u64,
    /// Sequence number after the last flush.
    pub(super) flushed: u64,
    /// Blocks that were sealed so far.
    pub(super) clock: u32,
    /// Unit that is written next.
    pub(super) turn: u32,
    /// Token that is done when all programs of data so far are done.
    pub(super) programmed: Tok,
    /// Token that is done when the device durably states that it is in use.
    pub(super) in_use: Tok,
    /// Blocks whose newest version is dirty.
    pub(super) dirty: u64,
    pub(super) health: Health,
    pub(super) stats: SscStats,
    /// Buffer of a program unit; empty if the store holds no bytes.
    pub(super) scratch: Vec<u8>,
}

impl Ssc {
    /// Returns `true` if the media keep the bytes that are written.
    #[inline]
    pub(super) fn stores_bytes(&self) -> bool {
        self.nand.stores_bytes()
    }

    /// Creates a device over NAND: one device or an array of them. The page of the NAND is the cached
    /// block ([`frit_media::NandGeometry::with_mapping_unit`]).
    ///
    /// # Errors
    /// A parameter that does not fit the media; the error names the permitted values.
    pub fn new(config: SscConfig, nand: impl Into<NandArray>) -> Result<Ssc> {
        config.validate()?;
        let nand = nand.into();
        let g = *nand.geometry();
        if config.mapping_unit != 0 && config.mapping_unit != u64::from(g.page_bytes) {
            let why = format!("the NAND is divided into pages of {} bytes", g.page_bytes);
            return Err(Error::param("mapping_unit", config.mapping_unit, why));
        }
        if g.pages_per_block > u32::from(u16::MAX) {
            let why = "makes more than 65535 blocks in an erase block; use a larger one";
            return Err(Error::param("mapping_unit", config.mapping_unit, why));
        }
        let sizes = Sizes::new(&g, config.reserve, config.metadata_copies)
            .map_err(|(key, value, why)| Error::param(key, value, why))?;
        let buffers = if config.is_synchronous() { 1 } else { config.merge_buffer };
        let stores_bytes = nand.stores_bytes();
        let held = if stores_bytes { to_usize(sizes.unit_bytes()) } else { 0 };
        let (blocks, units) = blocks::pools(&nand);
        let mut ssc = Ssc {
            // Versions in the buffer have no page yet.
            map: AnyMap::new(config.map, g.pages() + g.program_pages),
            reverse: table32(to_usize(g.pages())),
            blocks,
            units,
            usable: Vec::new(),
            dirty_space: 0,
            buffer: MergeBuffer::new(buffers, g.program_pages, g.page_bytes, stores_bytes),
            log: MapLog::new(),
            checkpoint: Checkpoint::default(),
            seq: 0,
            synced: 0,
            flushed: 0,
            clock: 0,
            turn: 0,
            programmed: Tok::default(),
            in_use: Tok::default(),
            dirty: 0,
            health: Health::default(),
            stats: SscStats::default(),
            scratch: vec![0; held],
            sizes,
            nand,
            config,
        };
        ssc.refuse_if_too_small();
        Ok(ssc)
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> &SscConfig {
        &self.config
    }

    /// The NAND devices.
    #[must_use]
    pub fn nand(&self) -> &NandArray {
        &self.nand
    }

    /// The NAND devices, for fault injection.
    pub fn nand_mut(&mut self) -> &mut NandArray {
        &mut self.nand
    }

    /// Forgets all volatile state.
    pub(super) fn reset(&mut self) {
        (self.blocks, self.units) = blocks::pools(&self.nand);
        self.map.clear();
        self.reverse.fill(0);
        self.buffer.reset();
        self.log = MapLog::new();
        self.checkpoint = Checkpoint::default();
        (self.seq, self.clock, self.dirty) = (0, 0, 0);
        (self.synced, self.flushed) = (0, 0);
        (self.programmed, self.in_use) = (Tok::default(), Tok::default());
        self.health = Health::default();
    }

    /// Counts the good blocks of a unit.
    fn count_usable(&self, unit: u32) -> u32 {
        let g = self.nand.geometry();
        let first = to_usize(g.first_block(unit).0);
        let blocks = &self.blocks[first..first + to_usize(g.blocks_per_unit())];
        count_u32(blocks.iter().filter(|b| b.state != BlockUse::Bad && !b.retiring).count())
    }

    /// Counts the good blocks, and refuses writes if a unit has too few of them. Called when a block
    /// went bad.
    pub(super) fn refuse_if_too_small(&mut self) {
        let units = self.nand.geometry().units();
        self.usable = (0..units).map(|unit| self.count_usable(unit)).collect();
        self.dirty_space = self.usable.iter().map(|&usable| self.sizes.dirty_limit(usable)).sum();
        for (unit, &usable) in (0..units).zip(&self.usable) {
            if !self.sizes.suffices(usable) {
                let name = self.nand.unit_name(unit);
                self.health.refuse(format!("{name} has {usable} usable blocks: too many went bad"));
            }
        }
    }

    /// Number of dirty blocks for which there is space.
    pub(super) fn space_for_dirty(&self) -> u64 {
        self.dirty_space
    }

    /// Number of dirty blocks for which there is space with as many bad blocks as data sheets permit: 20
    /// of 1024 in each unit (K9F1G08U0M, "valid block": at least 1004 of 1024).
    pub(super) fn space_for_dirty_in_life(&self) -> u64 {
        let g = self.nand.geometry();
        let good = g.blocks_per_unit() - (g.blocks_per_unit() * 20).div_ceil(1024);
        u64::from(g.units()) * self.sizes.dirty_limit(good)
    }

    /// Largest number of blocks that are present together.
    pub(super) fn capacity(&self) -> u64 {
        let held = self.sizes.without_data();
        let all: u64 = self.usable.iter().map(|&usable| u64::from(usable.saturating_sub(held))).sum();
        all * u64::from(self.sizes.data_pages())
    }

    /// Returns the next sequence number.
    pub(super) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    /// Sets the entry of a block, and counts dirty blocks. A page of NAND that the old entry names and
    /// the new one does not is no longer valid.
    #[inline]
    pub(super) fn set_entry(&mut self, block: u32, entry: Entry) {
        let old = self.map.replace(block, entry);
        self.dirty -= u64::from(old.is_dirty());
        self.dirty += u64::from(entry.is_dirty());
        if old.ppn() != entry.ppn() {
            if let Some(ppn) = old.ppn() {
                self.reverse[ppn.idx()] = 0;
                self.block_of_mut(ppn).valid -= 1;
            }
            if let Some(ppn) = entry.ppn() {
                self.reverse[ppn.idx()] = block + 1;
                self.block_of_mut(ppn).valid += 1;
            }
        }
        if old.is_dirty_in_nand()
            && let Some(ppn) = old.ppn()
        {
            self.block_of_mut(ppn).dirty -= 1;
        }
        if entry.is_dirty_in_nand()
            && let Some(ppn) = entry.ppn()
        {
            self.block_of_mut(ppn).dirty += 1;
        }
    }

    /// Prefetches what writes of these blocks access.
    pub(super) fn prefetch_blocks(&self, blocks: &[u32]) {
        // Each loop loads what the next one follows, so the loads of all blocks overlap.
        blocks.iter().for_each(|&b| self.map.prefetch(b));
        blocks.iter().for_each(|&b| self.map.prefetch_entry(b));
        for ppn in blocks.iter().filter_map(|&b| self.map.get(b).ppn()) {
            frit_media::memory::prefetch(self.reverse.get(ppn.idx()));
        }
    }

    fn block_of_mut(&mut self, ppn: Ppn) -> &mut EraseBlock {
        let block = self.nand.geometry().block_of(ppn);
        &mut self.blocks[block.idx()]
    }

    /// Block of the disk whose current version is in a page.
    pub(super) fn block_at(&self, ppn: Ppn) -> Option<u32> {
        self.reverse[ppn.idx()].checked_sub(1)
    }

    /// Identity that the page of an entry must have, if the store holds bytes.
    pub(super) fn expected(&self, block: u32, entry: Entry) -> Option<ExpectedPage> {
        self.stores_bytes().then(|| ExpectedPage { lpn: block, tag: entry.tag() })
    }

    /// First page of an erase block.
    pub(super) fn first_page(&self, block: u32) -> Ppn {
        self.nand.geometry().ppn(BlockId(block), 0)
    }

    /// Unit of an erase block.
    pub(super) fn unit_of(&self, block: u32) -> u32 {
        self.nand.geometry().unit_of_block(BlockId(block))
    }

    /// Syncs the NAND: what was programmed so far is durable, also with media in files.
    pub(super) fn sync(&mut self) -> Result<()> {
        if self.synced < self.seq {
            self.nand.sync()?;
            self.synced = self.seq;
        }
        Ok(())
    }

    /// Syncs media in files.
    pub(super) fn sync_files(&mut self) -> Result<()> {
        if self.config.over_files { self.sync() } else { Ok(()) }
    }

    /// Returns `true` if pages of metadata have a second copy, so that damage is told from an
    /// interrupted program.
    pub(super) fn has_copies(&self) -> bool {
        self.config.metadata_copies > 1
    }

    /// Refuses writes after an unexpected error.
    #[cold]
    pub(super) fn refuse_after(&mut self, e: Error) -> Error {
        self.health.refuse_after(e, false, SscBug::NotPoisoned)
    }

    /// DRAM of the maps, the block table and the buffers, in bytes.
    pub(super) fn dram(&self) -> u64 {
        self.map.dram_bytes()
            + to_u64(self.reverse.len()) * 4
            + to_u64(self.blocks.len() * size_of::<EraseBlock>())
            + self.buffer.dram_bytes()
    }

    /// Joins a token into the one that is done when all programs of data are done.
    pub(super) fn note_programmed(&mut self, sink: &mut Sink, done: Tok) {
        self.programmed = sink.join(self.programmed, done);
    }
}
