//! The layer [`Hfsl`]: its state, and its block interface, which splits requests into pages.

use super::config::{FusionMethod, HfslConfig};
use super::entry::{MapEntry, PageLocation};
use super::header::{RecordedUse, formatted_sizes};
use super::heat::{Heat, HeatPolicy};
use super::layout::{capacity, check_sizes, subpage};
use super::mapping::MappingTable;
use super::pcm::PcmSpace;
use super::placement::Placement;
use super::read_buffer::ReadBuffer;
use super::redo::RedoRing;
use super::route::HostRequest;
use super::stats::HfslStats;
use crate::flash::Flash;
use crate::payload::zeros_on;
use crate::planted::HfslBug;
use crate::spans::{page_spans, split};
use frit_core::bounds::check_bytes;
use frit_core::params::parse_name;
use frit_core::planted::is_planted;
use frit_core::{
    BlockLayer, ByteAccess, Cause, Error, Hints, Info, Lpn, Params, Ppn, Progress, RawAccess, ReadTarget,
    Result, SECTOR_BYTES, Sector, Sink, StackView, WriteData,
};
use frit_media::{Dram, NandArray, Pcm};
use frit_wear::{Leveled, PcmWearKeys};

/// Number of pages by which a read prefetches the records and the contents of the following pages.
const READ_AHEAD: u32 = 2;

/// Size of a batch of pages in [`BlockLayer::prefetch`], and the number of pages looked at of one
/// request.
const EXPECT: usize = 64;
const EXPECT_PAGES: u64 = 4;

/// NAND page that an entry names, if it names one.
fn nand_page(entry: Option<u64>) -> Option<Ppn> {
    match MapEntry(entry?).place() {
        PageLocation::Nand(ppn) => Some(ppn),
        _ => None,
    }
}

/// The HFSL layer. NAND and PCM both hold bytes, or neither does.
#[derive(Debug)]
pub struct Hfsl {
    pub(crate) config: HfslConfig,
    pub(crate) flash: Flash,
    pub(crate) map: MappingTable,
    pub(crate) placement: Placement,
    pub(crate) heat: Heat,
    pub(crate) heat_on: bool,
    pub(crate) stats: HfslStats,
    pub(crate) page_bytes: u32,
    /// Number of logical pages.
    pub(crate) pages: u32,
    /// Buffer in which a page is assembled; empty when the media hold no bytes.
    pub(crate) scratch: Vec<u8>,
    /// State of use, as recorded in the header in PCM.
    pub(crate) usage: RecordedUse,
    pub(crate) dram: Option<ReadBuffer>,
}

impl Hfsl {
    /// Returns `true` if the media keep the bytes that are written.
    #[inline]
    pub(super) fn stores_bytes(&self) -> bool {
        self.flash.stores_bytes()
    }

    /// Creates a layer over the given media: one NAND device or an array of them. Without PCM it is
    /// a page-mapped FTL on NAND: the baseline.
    ///
    /// # Errors
    /// A parameter that does not fit these media; the error names the permitted values.
    pub fn new(config: HfslConfig, nand: impl Into<NandArray>, pcm: Option<Pcm>) -> Result<Self> {
        config.validate()?;
        let nand = nand.into();
        let g = *nand.geometry();
        check_sizes(&config, &g, pcm.as_ref().map(Pcm::bytes))?;
        let level = |pcm| Leveled::new(pcm, config.wear_of_pcm()?).map_err(PcmWearKeys::in_table);
        let mut pcm = pcm.map(level).transpose()?;
        let formatted = pcm.as_mut().map(formatted_sizes).transpose()?.flatten();
        let (pages, share) = match formatted {
            // The capacity does not change when blocks go bad after the volume was formatted.
            Some(f) if config.capacity == 0 => (f.pages, f.pages.div_ceil(g.units())),
            _ => capacity(&config, &nand)?,
        };
        let flash_config = config.flash_keys().config()?;
        let pcm = match pcm {
            Some(medium) => {
                let sub = subpage(&config, g.page_bytes)?;
                let ring = RedoRing::of(&config, formatted, &medium, g.page_bytes);
                Some(PcmSpace::new(medium, pages, g.page_bytes, sub, &config, ring)?)
            }
            None => None,
        };
        let mut heat: Heat = parse_name("heat", &config.heat)?;
        heat.set_window(config.heat_window);
        let mut hfsl = Hfsl {
            placement: parse_name("placement", &config.placement)?,
            heat_on: config.heat != "off",
            heat,
            stats: HfslStats::default(),
            page_bytes: g.page_bytes,
            pages,
            scratch: if nand.stores_bytes() { vec![0; g.page_bytes as usize] } else { Vec::new() },
            flash: Flash::new(nand, flash_config, share),
            dram: None,
            map: MappingTable::new(pages, pcm, config.map_persist),
            usage: RecordedUse::default(),
            config,
        };
        // With a durable map, an erase must not destroy a page that a durable entry still names.
        if hfsl.map.each() {
            hfsl.flash.enforce_erase_order(hfsl.config.flush_map);
        }
        hfsl.apply_fusion();
        Ok(hfsl)
    }

    /// Adds a DRAM buffer for pages that are read from NAND.
    ///
    /// # Errors
    /// The buffer is smaller than a page.
    pub fn with_dram(mut self, dram: Dram) -> Result<Self> {
        let policy = parse_name("buffer", &self.config.buffer)?;
        self.dram = Some(ReadBuffer::new(dram, self.page_bytes, policy)?);
        Ok(self)
    }

    /// Divides PCM between its regions by the fusion method. Pages above a quota are destaged
    /// later.
    pub(crate) fn apply_fusion(&mut self) {
        let ratio = self.config.cache_ratio;
        let (level, cache) = match self.config.fusion_method {
            FusionMethod::None => (0.0, 0.0),
            FusionMethod::Cache => (0.0, 1.0),
            FusionMethod::SameLevel => (1.0, 0.0),
            FusionMethod::Both => (1.0 - ratio, ratio),
        };
        if let Some(pcm) = &mut self.map.pcm {
            pcm.set_quotas(level, cache);
        }
    }

    /// The NAND side.
    #[must_use]
    pub fn flash(&self) -> &Flash {
        &self.flash
    }

    /// The NAND side, for fault injection.
    pub fn flash_mut(&mut self) -> &mut Flash {
        &mut self.flash
    }

    /// The map entry of a page; `None` past the end of the volume.
    #[must_use]
    pub fn entry(&self, lpn: Lpn) -> Option<MapEntry> {
        self.map.table.get(lpn.idx()).copied().map(MapEntry)
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> &HfslConfig {
        &self.config
    }
}

impl Hfsl {
    pub(crate) fn capacity_bytes(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.page_bytes)
    }

    /// Checks that a range lies inside the volume.
    pub(crate) fn check_range(&self, at: u64, len: u64) -> Result<()> {
        check_bytes(at, len, self.capacity_bytes())
    }

    pub(crate) fn write_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        hints: Hints,
    ) -> Result<()> {
        self.ensure_in_use(sink)?;
        let request = HostRequest { bytes: u64::from(data.len()), hints };
        if self.has_groups() {
            return self.write_groups(sink, at, data, request).map_err(|e| self.refuse_after(e));
        }
        for span in page_spans(at, data.len(), self.page_bytes) {
            if let Err(e) = self.write_page(sink, request, span, data.part(span.from, span.len)) {
                return Err(self.refuse_after(e));
            }
        }
        Ok(())
    }

    /// Refuses writes after an unexpected error.
    #[cold]
    fn refuse_after(&mut self, e: Error) -> Error {
        self.flash.health.refuse_after(e, false, HfslBug::NotPoisoned)
    }

    pub(crate) fn read_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        let (first, last) = self.pages_of(at, into.len());
        if self.stores_bytes() && first < last {
            (first + 1..last.min(first + READ_AHEAD)).for_each(|lpn| self.prefetch_read(lpn));
        }
        for span in page_spans(at, into.len(), self.page_bytes) {
            if self.stores_bytes() && span.lpn.0 + READ_AHEAD <= last {
                self.prefetch_read(span.lpn.0 + READ_AHEAD);
            }
            self.read_page(sink, span, into.part(span.from, span.len), cause)?;
        }
        Ok(())
    }

    /// First and last page of a range.
    #[inline]
    fn pages_of(&self, at: u64, len: u32) -> (u32, u32) {
        let page = u64::from(self.page_bytes);
        let end = (at + u64::from(len)).saturating_sub(1).max(at);
        (split(at, page).0 as u32, split(end, page).0 as u32)
    }

    /// Prefetches what a read of the page needs.
    #[inline]
    fn prefetch_read(&self, lpn: u32) {
        if let PageLocation::Nand(ppn) = self.map.get(Lpn(lpn)).place() {
            self.flash.prefetch_read(ppn);
        }
    }
}

impl BlockLayer for Hfsl {
    fn info(&self) -> Info {
        Info {
            name: "hfsl",
            sectors: self.capacity_bytes() / SECTOR_BYTES,
            page_bytes: self.page_bytes,
            dram_bytes: self.dram_bytes(),
            durable_map_bytes: self.map.pcm.as_ref().map_or(0, |p| p.layout.map_bytes),
        }
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        // In batches: the loads of a batch do not depend on each other, so they overlap.
        let mut places = [None; EXPECT];
        let mut n = 0;
        for &(at, sectors) in next {
            let (first, _) = split(at.0.saturating_mul(SECTOR_BYTES), u64::from(self.page_bytes));
            let (pages, _) = split(u64::from(sectors) * SECTOR_BYTES, u64::from(self.page_bytes));
            for lpn in first..first + pages.clamp(1, EXPECT_PAGES) {
                places[n] = self.map.table.get(lpn as usize).copied();
                n += 1;
            }
            if n + EXPECT_PAGES as usize > EXPECT {
                self.flash.prefetch(places[..n].iter().filter_map(|e| nand_page(*e)));
                n = 0;
            }
        }
        self.flash.prefetch(places[..n].iter().filter_map(|e| nand_page(*e)));
    }

    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()> {
        self.check_range(at.0.saturating_mul(SECTOR_BYTES), u64::from(into.len()))?;
        self.read_range(sink, at.bytes(), into, hints.read_cause())
    }

    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, hints: Hints) -> Result<()> {
        self.check_range(at.0.saturating_mul(SECTOR_BYTES), u64::from(data.len()))?;
        self.write_range(sink, at.bytes(), data, hints)
    }

    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        if is_planted(HfslBug::FlushIgnored) {
            return Ok(());
        }
        if self.config.flush_map {
            return self.flash.make_durable(sink, &mut self.map).map_err(|e| self.refuse_after(e));
        }
        // Acknowledged data is already in durable media; the fence only establishes its order.
        if let Some(pcm) = &mut self.map.pcm {
            let after = sink.start();
            let done = pcm.medium.fence(sink, after);
            sink.ack(done);
        }
        Ok(())
    }

    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        self.check_range(at.0.saturating_mul(SECTOR_BYTES), bytes)?;
        // Before the range is examined: after a failed operation even a discard without effect
        // would report a state that may be incomplete.
        self.flash.writable()?;
        self.ensure_in_use(sink)?;
        let page = u64::from(self.page_bytes);
        let (mut byte, end) = (at.bytes(), at.bytes() + bytes);
        if self.has_groups() {
            return self.discard_groups(sink, byte, end).map_err(|e| self.refuse_after(e));
        }
        while byte < end {
            let (lpn, offset) = split(byte, page);
            let len = (page - offset).min(end - byte);
            let lpn = Lpn(lpn as u32);
            // A part of an unmapped page reads as zeros without being written.
            if len == page || !self.is_mapped(lpn) {
                self.unmap(sink, lpn).map_err(|e| self.refuse_after(e))?;
            } else {
                self.write_range(sink, byte, zeros_on(self.stores_bytes(), len as u32), Hints::NONE)?;
            }
            byte += len;
        }
        Ok(())
    }

    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        self.idle_work(sink, budget).map_err(|e| self.refuse_after(e))
    }

    fn byte_access(&mut self) -> Option<&mut dyn ByteAccess> {
        Some(self)
    }

    fn raw_access(&mut self) -> Option<&mut dyn RawAccess> {
        Some(self)
    }

    fn visible(&self, view: &mut StackView) {
        self.show(view);
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }
}

impl ByteAccess for Hfsl {
    fn read_bytes(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>) -> Result<()> {
        self.check_range(at, u64::from(into.len()))?;
        self.read_range(sink, at, into, Cause::Host)
    }

    fn write_bytes(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, hints: Hints) -> Result<()> {
        self.check_range(at, u64::from(data.len()))?;
        self.write_range(sink, at, data, hints)
    }
}
