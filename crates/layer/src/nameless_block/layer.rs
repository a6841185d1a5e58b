//! The layer [`NamelessBlock`]: its state, and its block interface.

use super::config::NamelessBlockConfig;
use crate::residence;
use frit_core::bounds::check_sectors;
use frit_core::convert::{to_f64, to_usize};
use frit_core::visible::{LayerView, Metric};
use frit_core::{
    BlockLayer, Error, Hints, Info, NamelessDevice, Params, Precondition, Preconditioning, Progress,
    ReadTarget, Result, SECTOR_BYTES, Sector, Sink, StackView, WriteData,
};
use std::marker::PhantomData;

/// A nameless-write device `D` without a volume.
pub struct NamelessBlock<D> {
    pub(super) config: NamelessBlockConfig,
    pub(super) device: D,
    pub(super) block_bytes: u32,
    /// Numbers of the virtual blocks of a request queue.
    pub(super) numbers: Vec<u32>,
    sink: PhantomData<fn() -> Sink>,
    /// Buffer in which a block is assembled. It is empty if the media hold no bytes.
    pub(super) block: Vec<u8>,
}

impl<D: NamelessDevice> NamelessBlock<D> {
    pub(super) fn new(config: NamelessBlockConfig, device: D) -> NamelessBlock<D> {
        let block_bytes = device.block_bytes();
        NamelessBlock {
            block_bytes,
            numbers: Vec::new(),
            sink: PhantomData,
            block: vec![0; if device.holds_bytes() { to_usize(block_bytes) } else { 0 }],
            device,
            config,
        }
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> &NamelessBlockConfig {
        &self.config
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, for its owner and for fault injection.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Returns the size of the virtual address space, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.device.virtual_blocks()) * u64::from(self.block_bytes)
    }

    /// Checks that a range lies inside the virtual address space, and returns the address of its first
    /// byte.
    pub(super) fn check_range(&self, at: Sector, bytes: u64) -> Result<u64> {
        check_sectors(at, bytes, self.bytes())
    }

    fn list_metrics(&self) -> Vec<Metric> {
        let m = |name, value: f64, unit, help| Metric { name, value, unit, help };
        let space = self.device.space();
        vec![
            m(
                "capacity_blocks",
                f64::from(space.capacity),
                "blocks",
                "blocks of contents that an owner can store",
            ),
            m("stored_blocks", f64::from(space.stored), "blocks", "blocks of contents that are stored"),
            m(
                "virtual_space",
                f64::from(self.device.virtual_blocks()),
                "blocks",
                "blocks of the virtual address space",
            ),
            m(
                "pending_migrations",
                to_f64(frit_core::convert::to_u64(self.device.pending_migrations())),
                "blocks",
                "moves that the owner has not acknowledged",
            ),
            m(
                "dram_bytes",
                to_f64(self.device.dram_bytes()),
                "bytes",
                "DRAM of the FTL (virtual map, valid pages, blocks, migrations)",
            ),
        ]
    }
}

impl<D: NamelessDevice> BlockLayer for NamelessBlock<D> {
    fn info(&self) -> Info {
        Info {
            name: "nameless-device",
            sectors: self.bytes() / SECTOR_BYTES,
            page_bytes: self.block_bytes,
            dram_bytes: self.device.dram_bytes(),
            durable_map_bytes: 0,
        }
    }

    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(into.len()))?;
        self.read_range(sink, at, into, hints.read_cause())
    }

    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, _: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(data.len()))?;
        self.device.writable()?;
        self.write_range(sink, at, data)
    }

    /// Without claims of the owner there is nothing to make durable.
    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        self.device.writable()?;
        if self.device.awaits_claims() {
            return Ok(());
        }
        let flushed = self.device.flush(sink)?;
        sink.ack(flushed);
        Ok(())
    }

    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let at = self.check_range(at, bytes)?;
        self.device.writable()?;
        self.discard_range(sink, at, bytes)
    }

    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        if self.device.refuses().is_some() {
            return Ok(Progress::Idle);
        }
        self.device.step(sink, budget)
    }

    fn nameless_device(&mut self) -> Option<&mut dyn NamelessDevice> {
        Some(&mut self.device)
    }

    fn visible(&self, view: &mut StackView) {
        let mut metrics = self.list_metrics();
        metrics.extend(self.device.metrics());
        let blocks = self.device.virtual_blocks();
        let residence = residence::of_cached_blocks(
            blocks,
            |row| &mut row.unmapped,
            |present| (0..blocks).filter(|&b| self.device.virtual_written(b)).for_each(present),
        );
        view.layers.push(LayerView {
            name: "nameless-device".into(),
            metrics,
            residence,
            ..LayerView::default()
        });
        self.device.visible(view);
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }
}

impl<D: NamelessDevice> Preconditioning for NamelessBlock<D> {
    /// The contents of the device belong to its owner.
    fn precondition(&mut self, _: Precondition) -> Result<()> {
        let why =
            "is not possible for a device whose owner keeps the addresses; use requests, such as --warm 10%";
        Err(Error::param("precondition", "", why))
    }
}
