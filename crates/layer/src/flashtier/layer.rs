//! The layer [`Flashtier`]: its state, and its block interface.

use super::config::FlashtierConfig;
use super::dirty::DirtyBlocks;
use super::view::FlashtierStats;
use crate::cache::streams::Streams;
use crate::health::Health;
use crate::planted::FlashtierBug;
use frit_core::bounds::check_sectors;
use frit_core::convert::{bounded_u32, to_usize};
use frit_core::transfer::SerialLink;
use frit_core::{
    BlockDevice, BlockLayer, BlockingMedium, CacheDevice, Error, Hints, Info, PREFETCH_REQUESTS, Params,
    Progress, ReadTarget, Result, SECTOR_BYTES, Sector, Sink, StackView, Tok, WriteData,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A disk behind a solid-state cache. `C` is the device, and `D` the disk: a medium, or a layer.
pub struct Flashtier<C, D: ?Sized> {
    pub(super) config: FlashtierConfig,
    pub(super) ssc: C,
    pub(super) disk: Box<D>,
    pub(super) page: u32,
    /// Whole blocks of the disk.
    pub(super) blocks: u32,
    /// Blocks that are dirty in the cache.
    pub(super) dirty: DirtyBlocks,
    /// Dirty blocks that are damaged. They are not written to the disk.
    pub(super) set_aside: BTreeSet<u32>,
    pub(super) streams: Streams,
    /// Completion of the writes that the disk has acknowledged but not flushed.
    pub(super) unflushed: Option<Tok>,
    /// Completion of all flushes of the disk so far.
    pub(super) flushed: Tok,
    /// Link through which patterns of misses are transferred.
    pub(super) tunnel: SerialLink,
    /// Token before which the disk must not change.
    pub(super) ready: Tok,
    pub(super) health: Health,
    pub(super) stats: FlashtierStats,
    /// Buffer in which a block is assembled. It is empty if the media hold no bytes.
    pub(super) block: Vec<u8>,
}

impl<C: CacheDevice, D: BlockDevice + ?Sized> Flashtier<C, D> {
    /// Creates a cache over a device and a disk.
    ///
    /// # Errors
    /// An error that names a parameter that is invalid with these media, and its valid values.
    pub fn new(config: FlashtierConfig, ssc: C, disk: Box<D>) -> Result<Flashtier<C, D>> {
        config.validate()?;
        let page = ssc.block_bytes();
        let blocks = disk.bytes() / u64::from(page);
        // The last numbers are those of the pages of metadata.
        let blocks =
            u32::try_from(blocks).ok().filter(|&b| b > 0 && b < crate::ssc::BLOCKS_MAX).ok_or_else(|| {
                let why = format!(
                    "of the disk have to be {page} to less than {}",
                    u64::from(page) * u64::from(crate::ssc::BLOCKS_MAX)
                );
                Error::param("bytes", disk.bytes(), why)
            })?;
        Ok(Flashtier {
            streams: Streams::new(config.bypass_streams),
            block: vec![0; if ssc.holds_bytes() { to_usize(page) } else { 0 }],
            page,
            blocks,
            dirty: DirtyBlocks::new(config.clean_order, blocks, ssc.blocks())?,
            set_aside: BTreeSet::new(),
            unflushed: None,
            flushed: Tok::default(),
            tunnel: SerialLink::default(),
            ready: Tok::default(),
            health: Health::default(),
            stats: FlashtierStats::default(),
            ssc,
            disk,
            config,
        })
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> &FlashtierConfig {
        &self.config
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &C {
        &self.ssc
    }

    /// Returns the capacity in bytes: all whole blocks of the disk.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.page)
    }

    /// Checks that a range lies inside the volume, and returns the address of its first byte.
    pub(super) fn check_range(&self, at: Sector, bytes: u64) -> Result<u64> {
        check_sectors(at, bytes, self.bytes())
    }

    /// Address of a block on the disk.
    pub(super) fn byte_of(&self, block: u32) -> u64 {
        u64::from(block) * u64::from(self.page)
    }

    /// Block of an address.
    pub(super) fn block_of(&self, byte: u64) -> u32 {
        bounded_u32(byte / u64::from(self.page))
    }

    /// Begins an access that may change the disk.
    pub(super) fn begin_use(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.writable()?;
        self.ready = self.ssc.begin_use(sink).map_err(|e| self.refuse_after(e))?;
        Ok(())
    }

    /// Refuses writes after an unexpected error.
    #[cold]
    pub(super) fn refuse_after(&mut self, e: Error) -> Error {
        self.health.refuse_after(e, false, FlashtierBug::NotPoisoned)
    }
}

impl<C: CacheDevice, D: BlockDevice + ?Sized> BlockLayer for Flashtier<C, D> {
    fn info(&self) -> Info {
        Info {
            name: "flashtier",
            sectors: self.bytes() / SECTOR_BYTES,
            page_bytes: self.page,
            dram_bytes: self.ssc.dram_bytes() + self.dirty.dram_bytes(),
            durable_map_bytes: 0,
        }
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        for next in next.chunks(PREFETCH_REQUESTS) {
            let mut blocks = [0; PREFETCH_REQUESTS];
            for (block, (at, _)) in blocks.iter_mut().zip(next) {
                *block = self.block_of(at.0.saturating_mul(SECTOR_BYTES));
            }
            self.ssc.prefetch(&blocks[..next.len()]);
        }
        self.disk.prefetch(next);
    }

    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(into.len()))?;
        self.read_range(sink, at, into, hints.read_cause())
    }

    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, _: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(data.len()))?;
        self.begin_use(sink)?;
        self.write_range(sink, at, data).map_err(|e| self.refuse_after(e))
    }

    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        self.flush_all(sink).map_err(|e| self.refuse_after(e))
    }

    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let at = self.check_range(at, bytes)?;
        self.begin_use(sink)?;
        self.discard_range(sink, at, bytes).map_err(|e| self.refuse_after(e))
    }

    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        if self.health.refusal().is_some() {
            return Ok(Progress::Idle);
        }
        match self.background(sink, budget).map_err(|e| self.refuse_after(e))? {
            Progress::Busy(tok) => Ok(Progress::Busy(tok)),
            waiting => Ok(waiting.or(self.disk.step(sink, budget)?)),
        }
    }

    fn waits(&self) -> bool {
        self.disk.waits()
    }

    fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        self.disk.each_shared(each);
    }

    fn visible(&self, view: &mut StackView) {
        self.show(view);
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }

    fn each_layer_below(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        self.disk.each_layer(each);
    }
}
