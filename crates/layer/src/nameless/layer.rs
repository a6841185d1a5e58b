//! The volume [`Nameless`]: its state, and its block interface.

use super::config::NamelessConfig;
use super::host_ftl::{DeviceBlocks, HostFtl};
use super::owner_map::OwnerMap;
use super::view::NamelessStats;
use crate::flash::{Flash, nominal_capacity};
use crate::ftl::merge_buffer::MergeBuffer;
use crate::health::Health;
use crate::planted::NamelessBug;
use crate::spans::split;
use frit_core::bounds::check_sectors;
use frit_core::{
    BlockLayer, Error, Hints, Info, NamelessDevice, OwnedBlock, PAGE_NONE, Params, PhysicalAddress, Ppn,
    Progress, ReadTarget, Result, SECTOR_BYTES, Sector, Sink, StackView, WriteData,
};
use frit_media::NandArray;
use std::collections::HashMap;

/// Blocks that may wait until the saved map no longer refers to them, as a share of the volume. Their
/// pages are a part of the over-provisioned space, and each save writes parts of the map.
const WAITING_SHARE: u32 = 32;
/// Virtual pages of blocks that may wait at least, and also fit into the space beyond.
const WAITING_UNITS: u32 = 2;

/// A block volume over a nameless-write device `D`.
pub struct Nameless<D> {
    pub(super) config: NamelessConfig,
    pub(super) device: D,
    pub(super) map: OwnerMap,
    /// The request queue that is being filled.
    pub(super) queue: MergeBuffer,
    /// Writes at unrelated places in the request queue.
    pub(super) unrelated: u32,
    /// Page behind the last one that was written.
    pub(super) next_page: u32,
    pub(super) pages: u32,
    pub(super) page_bytes: u32,
    /// Addresses of the queue that was programmed last.
    pub(super) placed: Vec<PhysicalAddress>,
    /// Blocks that were just replaced, until they are released.
    pub(super) replaced: Vec<OwnedBlock>,
    /// Blocks that only the saved map refers to, by their pages. They are freed when the map is saved.
    pub(super) waiting: HashMap<u32, OwnedBlock>,
    /// Number of them from which the map is saved.
    pub(super) waiting_limit: u32,
    /// Blocks of a read.
    pub(super) run: Vec<OwnedBlock>,
    pub(super) health: Health,
    /// `true` if a write or discard was accepted since the last flush.
    pub(super) unflushed: bool,
    pub(super) stats: NamelessStats,
    /// Buffer of a virtual page; empty if the medium holds no bytes.
    pub(super) scratch: Vec<u8>,
}

impl Nameless<HostFtl> {
    /// Creates a volume over NAND: one device or an array of them. The page of the NAND is the block
    /// ([`NamelessConfig::divide`]).
    ///
    /// # Errors
    /// A parameter that does not fit the media; the error names the permitted values.
    pub fn over_nand(config: NamelessConfig, nand: impl Into<NandArray>) -> Result<Self> {
        config.validate()?;
        let nand = nand.into();
        let g = *nand.geometry();
        config.check_divided(&g)?;
        let others = |pages: u32| {
            if !config.scans() {
                return (0, 0, 0);
            }
            let (virtual_blocks, metadata) = HostFtl::metadata_pages(pages, g.page_bytes);
            (virtual_blocks, virtual_blocks + metadata, waiting_limit(pages, g.program_pages))
        };
        let total = |pages: u32| {
            let (_, metadata, waiting) = others(pages);
            u64::from(pages) + u64::from(metadata) + u64::from(waiting + g.program_pages)
        };
        let fit = |bytes| nominal_capacity(&g, bytes, config.over_provisioning, config.scans());
        let pages = if config.capacity == 0 {
            let all = fit(0)?;
            let most = Flash::nominal_pages_per_unit(&g, config.scans());
            let most = u64::from(most.saturating_sub(g.pages_per_block)) * u64::from(g.units());
            // The largest volume that fits with its metadata.
            let mut pages = all;
            while pages > 0 && total(pages) > u64::from(all).min(most) {
                let over = total(pages) - u64::from(all).min(most);
                pages = pages.saturating_sub(u32::try_from(over.div_ceil(2)).unwrap_or(pages));
            }
            pages
        } else {
            let pages =
                u32::try_from(config.capacity.div_ceil(u64::from(g.page_bytes))).unwrap_or(PAGE_NONE / 4);
            fit(total(pages) * u64::from(g.page_bytes))?;
            pages
        };
        if pages == 0 {
            return Err(Error::param("capacity", config.capacity, "leaves no page for data"));
        }
        let (virtual_blocks, _, waiting) = others(pages);
        let waiting = waiting + if config.scans() { g.program_pages } else { 0 };
        let blocks = DeviceBlocks { capacity: pages, waiting, virtual_blocks, atomic_flush: false };
        let device = HostFtl::new(&config, nand, blocks)?;
        Ok(Nameless::new(config, device, pages))
    }
}

/// Blocks that may wait until metadata no longer refers to them, of a device for `pages` blocks.
pub(crate) fn waiting_limit(pages: u32, unit_pages: u32) -> u32 {
    (pages / WAITING_SHARE).max(WAITING_UNITS * unit_pages)
}

impl<D: NamelessDevice> Nameless<D> {
    fn new(config: NamelessConfig, device: D, pages: u32) -> Nameless<D> {
        let (page_bytes, unit_pages) = (device.block_bytes(), device.queue_blocks());
        let holds = device.holds_bytes();
        let queues = if config.queue_writes > 1 { config.queues } else { 0 };
        Nameless {
            map: OwnerMap::new(pages, page_bytes, config.scans()),
            queue: MergeBuffer::new(queues, unit_pages, page_bytes, holds),
            unrelated: 0,
            next_page: PAGE_NONE,
            pages,
            page_bytes,
            placed: Vec::new(),
            replaced: Vec::new(),
            waiting: HashMap::new(),
            waiting_limit: if config.scans() { waiting_limit(pages, unit_pages) } else { 0 },
            run: Vec::new(),
            health: Health::default(),
            unflushed: false,
            stats: NamelessStats::default(),
            scratch: vec![0; if holds { (unit_pages * page_bytes) as usize } else { 0 }],
            device,
            config,
        }
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> &NamelessConfig {
        &self.config
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, for fault injection.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    pub(super) fn capacity_bytes(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.page_bytes)
    }

    /// Checks that a range lies inside the volume, and returns the address of its first byte.
    pub(super) fn check_range(&self, at: Sector, bytes: u64) -> Result<u64> {
        check_sectors(at, bytes, self.capacity_bytes())
    }

    /// Checks that writes are accepted.
    pub(super) fn writable(&self) -> Result<()> {
        self.health.writable()?;
        self.device.writable()
    }

    /// Refuses writes after an unexpected error.
    #[cold]
    pub(super) fn refuse_after(&mut self, e: Error) -> Error {
        self.health.refuse_after(e, false, NamelessBug::NotPoisoned)
    }

    /// Returns `true` if writes wait in a request queue, and are acknowledged there.
    pub(super) fn buffers(&self) -> bool {
        self.config.queue_writes > 1
    }

    /// The block of a page, if it has contents in NAND.
    pub(super) fn block_of(&self, lpn: frit_core::Lpn) -> Option<OwnedBlock> {
        self.map.get(lpn).map(|at| OwnedBlock { owner: lpn.0, at })
    }
}

impl<D: NamelessDevice> BlockLayer for Nameless<D> {
    fn info(&self) -> Info {
        Info {
            name: "nameless",
            sectors: self.capacity_bytes() / SECTOR_BYTES,
            page_bytes: self.page_bytes,
            dram_bytes: self.dram_bytes(),
            durable_map_bytes: 0,
        }
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        // Independent loads overlap.
        let first = |&(at, _): &(Sector, u32)| {
            let (lpn, _) = split(at.0.saturating_mul(SECTOR_BYTES), u64::from(self.page_bytes));
            self.map.find(lpn).map_or(0, |at| Ppn(at.page).0)
        };
        std::hint::black_box(next.iter().map(first).fold(0, |a, b| a ^ b));
    }

    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(into.len()))?;
        self.read_range(sink, at, into, hints.read_cause())
    }

    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, _: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(data.len()))?;
        self.writable()?;
        self.unflushed = true;
        self.write_range(sink, at, data).map_err(|e| self.refuse_after(e))
    }

    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        self.flush_all(sink).map_err(|e| self.refuse_after(e))
    }

    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let at = self.check_range(at, bytes)?;
        self.writable()?;
        self.unflushed = true;
        self.discard_range(sink, at, bytes).map_err(|e| self.refuse_after(e))
    }

    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        if self.writable().is_err() {
            return Ok(Progress::Idle);
        }
        let stepped = self.device.step(sink, budget);
        self.take_migrations();
        stepped.map_err(|e| self.refuse_after(e))
    }

    fn visible(&self, view: &mut StackView) {
        self.show(view);
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }
}
