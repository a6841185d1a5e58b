//! The layer [`Ntl`]: its state, and its block interface.

use super::buffer::UpdateBuffer;
use super::config::{LogKind, NtlConfig};
use super::log::LogTables;
use super::mapping::{MappingPolicy, MappingSetup, Mappings};
use super::page_bitmap::PageBitmap;
use super::rounds::WriteRounds;
use super::space::NtlMemory;
use super::stats::NtlStats;
use crate::header::HeaderNote;
use crate::health::Health;
use crate::planted::NtlBug;
use frit_core::Lpn;
use frit_core::bounds::check_sectors;
use frit_core::convert::to_usize;
use frit_core::{
    BlockLayer, Error, Hints, Info, Params, Progress, ReadTarget, Result, SECTOR_BYTES, Sector, Sink,
    StackView, Tok, WriteData,
};
use frit_media::Pcm;

/// An SSD of byte-addressable memory with address mapping.
#[derive(Debug)]
pub struct Ntl {
    pub(super) config: NtlConfig,
    pub(super) space: NtlMemory,
    pub(super) mapping: Mappings,
    /// Pages whose home location was written. The next write there is an update.
    pub(super) used: PageBitmap,
    /// Pages that hold data. All others read as zeros.
    pub(super) live: PageBitmap,
    /// Pages whose newest version, or whose note of a discard, lies in the log.
    pub(super) logged: PageBitmap,
    /// Two-bit update counters of pages in the current window, see [`super::write`]. Empty without
    /// a remap table.
    pub(super) warm: [PageBitmap; 2],
    /// `true` if updates by this request go to the full log.
    pub(super) logs: bool,
    /// Number of updates until the counters are reset.
    pub(super) warm_left: u32,
    pub(super) log: Option<LogTables>,
    pub(super) buffer: UpdateBuffer,
    /// Completion after which the free slots of the log may be written.
    pub(super) reuse_barrier: Tok,
    pub(super) rounds: WriteRounds,
    pub(super) stats: NtlStats,
    /// The chip after that of the last first write.
    pub(super) turn: u32,
    pub(super) costs: Vec<u64>,
    /// Number of pages that a merge writes to each chip.
    pub(super) pages_by_chip: Vec<u32>,
    pub(super) usage: HeaderNote,
    pub(super) health: Health,
    /// Buffers: a page that is assembled, and a page that is copied. Empty if the store holds no
    /// bytes.
    pub(super) page: Vec<u8>,
    pub(super) copy: Vec<u8>,
}

impl Ntl {
    /// Returns `true` if the media keep the bytes that are written.
    #[inline]
    pub(super) fn stores_bytes(&self) -> bool {
        self.space.stores_bytes()
    }

    /// Creates the layer over new memory.
    ///
    /// # Errors
    /// Returns an error that names a parameter that is invalid with this memory, and its valid
    /// values.
    pub fn new(config: NtlConfig, pcm: Pcm) -> Result<Ntl> {
        config.validate()?;
        let space = NtlMemory::new(&config, pcm)?;
        let layout = &space.layout;
        let setup =
            MappingSetup { chips: layout.chips, chip_pages: layout.homes, block_pages: config.block_pages };
        let pages = layout.home_places();
        let log = (config.log_kind() != LogKind::None).then(|| LogTables::new(&config, layout));
        let warm = if config.log_kind() == LogKind::Remap { pages } else { 0 };
        let stores_bytes = space.stores_bytes();
        let held = if stores_bytes { to_usize(layout.page_bytes) } else { 0 };
        let buffered = if config.buffers() { layout.chips } else { 0 };
        Ok(Ntl {
            mapping: Mappings::new(config.mapping_kind()?, &setup),
            used: PageBitmap::new(pages),
            live: PageBitmap::new(pages),
            logged: PageBitmap::new(if log.is_some() { pages } else { 0 }),
            warm: [PageBitmap::new(warm), PageBitmap::new(warm)],
            logs: true,
            warm_left: 0,
            log,
            buffer: UpdateBuffer::new(buffered, layout.page_bytes, stores_bytes),
            reuse_barrier: Tok::default(),
            rounds: WriteRounds::new(layout.chips, config.rounds, config.round_flag),
            stats: NtlStats::default(),
            turn: 0,
            costs: Vec::new(),
            pages_by_chip: vec![0; to_usize(layout.chips)],
            usage: HeaderNote::default(),
            health: Health::default(),
            page: vec![0; held],
            copy: vec![0; held],
            config,
            space,
        })
    }

    /// Returns the current configuration.
    #[must_use]
    pub fn config(&self) -> &NtlConfig {
        &self.config
    }

    /// Returns the number of pages of the volume.
    pub(super) fn pages(&self) -> u32 {
        self.space.layout.home_places()
    }

    pub(super) fn page_bytes(&self) -> u32 {
        self.space.layout.page_bytes
    }

    /// Returns the capacity in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let all = u64::from(self.pages()) * u64::from(self.page_bytes());
        if self.config.capacity == 0 { all } else { self.config.capacity.min(all) }
    }

    /// Checks that a range lies inside the volume, and returns the address of its first byte.
    pub(super) fn check_range(&self, at: Sector, bytes: u64) -> Result<u64> {
        check_sectors(at, bytes, self.bytes())
    }

    /// Returns `true` if the newest version of a page lies in the log.
    #[inline]
    pub(super) fn is_logged(&self, lpn: Lpn) -> bool {
        self.log.is_some() && self.logged.has(lpn)
    }

    /// Refuses writes after an unexpected error.
    #[cold]
    pub(super) fn refuse_after(&mut self, e: Error) -> Error {
        self.health.refuse_after(e, false, NtlBug::NotPoisoned)
    }

    /// Returns the DRAM of the layer, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        let bits = [&self.used, &self.live, &self.logged, &self.warm[0], &self.warm[1]];
        bits.iter().map(|b| b.bytes()).sum::<u64>()
            + self.mapping.table_bytes()
            + self.log.as_ref().map_or(0, LogTables::bytes)
            + self.buffer.dram_bytes()
    }
}

impl BlockLayer for Ntl {
    fn info(&self) -> Info {
        Info {
            name: "ntl",
            sectors: self.bytes() / SECTOR_BYTES,
            page_bytes: self.page_bytes(),
            dram_bytes: self.dram_bytes(),
            durable_map_bytes: self.space.layout.meta_bytes(),
        }
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        let page = u64::from(self.page_bytes());
        for (at, _) in next {
            let lpn =
                Lpn::of_u64((at.0.saturating_mul(SECTOR_BYTES) / page).min(u64::from(self.pages()) - 1));
            if let Some(place) = self.mapping.home(lpn) {
                self.space.prefetch(place);
            }
        }
    }

    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(into.len()))?;
        self.read_range(sink, at, into, hints.read_cause())
    }

    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, _: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(data.len()))?;
        self.begin_use(sink).map_err(|e| self.refuse_after(e))?;
        self.write_range(sink, at, data).map_err(|e| self.refuse_after(e))
    }

    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        self.flush_all(sink).map_err(|e| self.refuse_after(e))
    }

    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let at = self.check_range(at, bytes)?;
        self.begin_use(sink).map_err(|e| self.refuse_after(e))?;
        self.discard_range(sink, at, bytes).map_err(|e| self.refuse_after(e))
    }

    fn step(&mut self, _: &mut Sink, _: u32) -> Result<Progress> {
        Ok(Progress::Idle)
    }

    fn visible(&self, view: &mut StackView) {
        self.show(view);
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }
}
