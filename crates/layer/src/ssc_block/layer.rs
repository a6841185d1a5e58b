//! The layer [`SscBlock`]: its state, and its block interface.

use super::config::SscBlockConfig;
use crate::health::Health;
use crate::planted::SscBug;
use crate::residence;
use frit_core::bounds::check_sectors;
use frit_core::convert::{to_f64, to_usize};
use frit_core::visible::{LayerView, Metric, Residence};
use frit_core::{
    BlockLayer, CacheAccess, CacheDevice, Error, Hints, Info, Params, Precondition, Preconditioning,
    Progress, ReadTarget, Result, SECTOR_BYTES, Sector, Sink, StackView, Tok, WriteData,
};

/// A solid-state cache `C` without a manager.
pub struct SscBlock<C> {
    pub(super) config: SscBlockConfig,
    pub(super) ssc: C,
    pub(super) page: u32,
    /// Number of addresses.
    pub(super) blocks: u32,
    /// Token before which no request may change the device.
    pub(super) ready: Tok,
    pub(super) health: Health,
    /// Buffer in which a block is assembled. It is empty if the media hold no bytes.
    pub(super) block: Vec<u8>,
}

impl<C: CacheDevice> SscBlock<C> {
    /// Creates the layer over a device.
    ///
    /// # Errors
    /// An error that names a parameter that is invalid with these media, and its valid values.
    pub fn new(config: SscBlockConfig, ssc: C) -> Result<SscBlock<C>> {
        config.validate()?;
        let page = ssc.block_bytes();
        let blocks = match config.address_bytes {
            0 => ssc.lifetime_dirty_limit(),
            bytes => bytes / u64::from(page),
        };
        // The last numbers are those of the pages of metadata.
        let blocks = u32::try_from(blocks).ok().filter(|&b| b > 0 && b < u32::MAX - 2).ok_or_else(|| {
            let why = format!("has to be {page} to less than {}", u64::from(page) << 32);
            Error::param("address_bytes", config.address_bytes, why)
        })?;
        Ok(SscBlock {
            block: vec![0; if ssc.holds_bytes() { to_usize(page) } else { 0 }],
            page,
            blocks,
            ready: Tok::default(),
            health: Health::default(),
            ssc,
            config,
        })
    }

    /// Returns the size of the address space, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.page)
    }

    /// Checks that a range lies inside the address space, and returns the address of its first byte.
    pub(super) fn check_range(&self, at: Sector, bytes: u64) -> Result<u64> {
        check_sectors(at, bytes, self.bytes())
    }

    /// Begins an access that changes the device.
    pub(super) fn begin_use(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.writable()?;
        self.ready = self.ssc.begin_use(sink).map_err(|e| self.refuse_after(e))?;
        Ok(())
    }

    /// Refuses writes after an unexpected error.
    #[cold]
    pub(super) fn refuse_after(&mut self, e: Error) -> Error {
        self.health.refuse_after(e, false, SscBug::NotPoisoned)
    }

    /// Blocks that are present are in NAND, and all others nowhere.
    fn residence(&self) -> Vec<Residence> {
        residence::of_cached_blocks(
            self.blocks,
            |row| &mut row.unmapped,
            |present| self.ssc.exists(0..self.blocks, &mut |block, _| present(block)),
        )
    }
}

impl<C: CacheDevice> BlockLayer for SscBlock<C> {
    fn info(&self) -> Info {
        Info {
            name: "ssc",
            sectors: self.bytes() / SECTOR_BYTES,
            page_bytes: self.page,
            dram_bytes: self.ssc.dram_bytes(),
            durable_map_bytes: 0,
        }
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
        self.health.writable()?;
        let start = sink.start();
        let flushed = self.ssc.flush(sink, start).map_err(|e| self.refuse_after(e))?;
        sink.ack(flushed);
        Ok(())
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
        self.ssc.step(sink, budget).map_err(|e| self.refuse_after(e))
    }

    fn cache_access(&mut self) -> Option<&mut dyn CacheAccess> {
        Some(self)
    }

    fn visible(&self, view: &mut StackView) {
        self.ssc.visible(view);
        let mut metrics = vec![Metric {
            name: "dirty_blocks",
            value: to_f64(self.ssc.dirty_blocks()),
            unit: "blocks",
            help: "blocks that only the device has",
        }];
        metrics.extend(self.ssc.metrics());
        let residence = self.residence();
        view.layers.push(LayerView { name: "ssc".into(), metrics, residence, ..LayerView::default() });
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }
}

impl<C: CacheDevice> Preconditioning for SscBlock<C> {
    /// A new cache is empty, and so is a preconditioned one.
    fn precondition(&mut self, _: Precondition) -> Result<()> {
        let why =
            "is not possible for a cache: it is empty when it is installed; use requests, such as --warm 10%";
        Err(Error::param("precondition", "", why))
    }
}
