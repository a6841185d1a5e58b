//! The layer [`Zns`]: its state, and its block interface.

use super::blocks::FreeBlock;
use super::buffer::WriteBuffer;
use super::config::ZnsConfig;
use super::log::{Log, PartPlace};
use super::sizes::Sizes;
use super::table::Record;
use super::view::ZnsStats;
use super::zone::Zone;
use crate::health::Health;
use crate::planted::ZnsBug;
use frit_core::bounds::check_sectors;
use frit_core::convert::to_usize;
use frit_core::{
    BlockId, BlockLayer, Error, Hints, Info, Params, Precondition, Preconditioning, Progress, ReadTarget,
    Result, SECTOR_BYTES, Sector, Sink, StackView, Tok, WriteData, ZoneAccess,
};
use frit_media::{NandArray, Spare};
use std::collections::{BTreeSet, VecDeque};

/// A zoned device.
#[derive(Debug)]
pub struct Zns {
    pub(super) config: ZnsConfig,
    pub(super) sizes: Sizes,
    pub(super) nand: NandArray,
    pub(super) zones: Vec<Zone>,
    /// Zones that are open, and zones that are active.
    pub(super) open: u32,
    pub(super) active: u32,
    /// Counter of writes, which orders the last writes to zones.
    pub(super) clock: u64,
    /// Program units of buffers of zones that are not open any more, the oldest first.
    pub(super) drained: VecDeque<VecDeque<Tok>>,
    /// Blocks without data, by unit.
    pub(super) free: Vec<Vec<FreeBlock>>,
    /// Blocks that are not bad.
    pub(super) good_blocks: u32,
    /// A block was freed since the last sync of the media.
    pub(super) freed_unsynced: bool,
    pub(super) logs: Vec<Log>,
    /// Blocks of the log in which a program failed. They are taken out of use once they are cleaned.
    pub(super) failed: BTreeSet<u32>,
    /// Log that the next program unit goes to.
    pub(super) turn: usize,
    /// Places of both copies of each part of the table.
    pub(super) parts: Vec<PartPlace>,
    /// The table as it was written last.
    pub(super) records: Vec<Record>,
    /// Zones that have changed since the last flush.
    pub(super) changed: BTreeSet<u32>,
    /// Last epoch of a zone, and last version of a part of the table.
    pub(super) epoch: u64,
    pub(super) version: u64,
    /// Token that is done when all programs so far are done.
    pub(super) programmed: Tok,
    /// Token that is done when everything that `records` state is programmed.
    pub(super) recorded: Tok,
    /// Token before which no program may begin after a start.
    pub(super) in_use: Tok,
    /// Nothing was written since the last halt.
    pub(super) halted: bool,
    /// The table states so.
    pub(super) noted_halt: bool,
    pub(super) health: Health,
    pub(super) stats: ZnsStats,
    /// Buffer of a program unit to be saved, and of one that is moved. Empty if the store holds no bytes.
    pub(super) unit: Vec<u8>,
    pub(super) moved: Vec<u8>,
    /// Spare areas of a program unit.
    pub(super) spares: Vec<Spare>,
}

impl Zns {
    /// Returns `true` if the media keep the bytes that are written.
    #[inline]
    pub(super) fn stores_bytes(&self) -> bool {
        self.nand.stores_bytes()
    }

    /// Creates a layer over NAND: one device or an array of them. The page of the NAND is the logical
    /// block ([`frit_media::NandGeometry::with_mapping_unit`]).
    ///
    /// # Errors
    /// A parameter that does not fit the media; the error names the permitted values.
    pub fn new(config: ZnsConfig, nand: impl Into<NandArray>) -> Result<Zns> {
        config.validate()?;
        let nand = nand.into();
        let sizes = Sizes::new(&config, nand.geometry())?;
        let held = if nand.stores_bytes() { to_usize(sizes.unit_bytes()) } else { 0 };
        let units = to_usize(sizes.units);
        let mut zns = Zns {
            zones: (0..sizes.zones).map(|_| Zone::new(&sizes)).collect(),
            open: 0,
            active: 0,
            clock: 0,
            drained: VecDeque::new(),
            free: vec![Vec::new(); units],
            good_blocks: 0,
            freed_unsynced: false,
            logs: vec![Log::default(); units],
            failed: BTreeSet::new(),
            turn: 0,
            parts: vec![PartPlace::default(); to_usize(sizes.parts)],
            records: vec![Record::default(); to_usize(sizes.zones)],
            changed: BTreeSet::new(),
            epoch: 0,
            version: 0,
            programmed: Tok::default(),
            recorded: Tok::default(),
            in_use: Tok::default(),
            halted: false,
            noted_halt: false,
            health: Health::default(),
            stats: ZnsStats::default(),
            unit: vec![0; held],
            moved: vec![0; held],
            spares: Vec::new(),
            config,
            sizes,
            nand,
        };
        zns.fill_pool();
        zns.retire_zones();
        Ok(zns)
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> &ZnsConfig {
        &self.config
    }

    /// The NAND, for fault injection.
    pub fn nand_mut(&mut self) -> &mut NandArray {
        &mut self.nand
    }

    /// Program units of the buffer of an open zone.
    pub(super) fn buffer_units(&self) -> u32 {
        if self.config.buffer_units == 0 { self.sizes.zone_blocks } else { self.config.buffer_units }
    }

    /// Returns a buffer for a zone. Program units of a former one can still take its space.
    pub(super) fn new_buffer(&mut self) -> Box<WriteBuffer> {
        let former = self.drained.pop_front().unwrap_or_default();
        Box::new(WriteBuffer::new(self.buffer_units(), self.unit.len(), former))
    }

    /// Checks that a range lies inside the volume, and returns the address of its first byte.
    pub(super) fn check_range(&self, at: Sector, bytes: u64) -> Result<u64> {
        check_sectors(at, bytes, self.sizes.bytes())
    }

    /// Refuses writes after an unexpected error.
    #[cold]
    pub(super) fn refuse_after(&mut self, e: Error) -> Error {
        self.health.refuse_after(e, false, ZnsBug::NotPoisoned)
    }

    /// Forgets all volatile state.
    pub(super) fn reset_state(&mut self) {
        for zone in &mut self.zones {
            *zone = Zone::new(&self.sizes);
        }
        (self.open, self.active, self.clock) = (0, 0, 0);
        self.drained.clear();
        self.free.iter_mut().for_each(Vec::clear);
        self.logs.iter_mut().for_each(|log| *log = Log::default());
        self.failed.clear();
        self.parts.fill(PartPlace::default());
        self.records.fill(Record::default());
        self.changed.clear();
        (self.epoch, self.version) = (0, 0);
        (self.programmed, self.recorded, self.in_use) = (Tok::default(), Tok::default(), Tok::default());
        (self.freed_unsynced, self.halted, self.noted_halt) = (false, false, false);
        self.health = Health::default();
    }

    /// Unit of the NAND of a block.
    pub(super) fn unit_of_block(&self, block: u32) -> u32 {
        self.nand.geometry().unit_of_block(BlockId(block))
    }
}

impl BlockLayer for Zns {
    fn info(&self) -> Info {
        Info {
            name: "zns",
            sectors: self.sizes.bytes() / SECTOR_BYTES,
            page_bytes: self.sizes.page_bytes,
            dram_bytes: self.dram_bytes(),
            durable_map_bytes: 0,
        }
    }

    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(into.len()))?;
        self.read_range(sink, at, into, hints.read_cause())
    }

    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, _: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(data.len()))?;
        self.health.writable()?;
        self.write_range(sink, at, data).map_err(|e| self.refuse_after(e))
    }

    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.writable()?;
        // A halt programs the buffers all the same.
        if self.config.power_loss_protection {
            return Ok(());
        }
        self.flush_all(sink, false).map_err(|e| self.refuse_after(e))
    }

    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let at = self.check_range(at, bytes)?;
        self.health.writable()?;
        self.discard_range(sink, at, bytes).map_err(|e| self.refuse_after(e))
    }

    fn step(&mut self, sink: &mut Sink, _: u32) -> Result<Progress> {
        if self.health.refusal().is_some() {
            return Ok(Progress::Idle);
        }
        self.erase_one(sink).map_err(|e| self.refuse_after(e))
    }

    fn zone_access(&mut self) -> Option<&mut dyn ZoneAccess> {
        Some(self)
    }

    fn visible(&self, view: &mut StackView) {
        self.show(view);
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }
}

impl Preconditioning for Zns {
    /// A full zone needs a reset before a write, so a preconditioned volume would take no request.
    fn precondition(&mut self, _: Precondition) -> Result<()> {
        let why = "is not possible for zones, which are written in order; use requests, such as --warm 10%";
        Err(Error::param("precondition", "", why))
    }
}
