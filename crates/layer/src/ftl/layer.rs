//! The layer [`Ftl`]: its state, and its block interface.

use super::config::FtlConfig;
use super::mapping::{Mapping, MappingSizes, Scheme};
use super::merge_buffer::MergeBuffer;
use super::meta::{InterruptedPage, MetaPages, PageSet};
use super::page_map::{PageEntry, PageMap};
use super::place::{Strays, meta_blocks};
use super::read_buffer::ReadBuffer;
use super::streams::WriteStreams;
use super::translate::{StaleEntries, entries_per_page};
use super::view::FtlStats;
use crate::flash::{DynamicSlc, Flash, FlashConfig, nominal_capacity};
use crate::planted::FtlBug;
use crate::spans::split;
use frit_core::bounds::check_sectors;
use frit_core::{
    BlockLayer, Cause, Error, Hints, Info, PAGE_NONE, Params, Ppn, Progress, ReadTarget, Result,
    SECTOR_BYTES, Sector, Sink, StackView, Tok, WriteData,
};
use frit_media::{NandArray, NandGeometry};

/// Mapping units by which the valid pages of a NAND unit may exceed its share of the volume, as a
/// fraction: pages are not bound to a unit, so the units differ at random.
const SHARE_SLACK: u32 = 32;
/// Pages of one request that are announced to the NAND side.
const PREFETCH_PAGES: u64 = 4;
const PREFETCH_BATCH: usize = 64;

/// A page-mapped flash translation layer.
#[derive(Debug)]
pub struct Ftl {
    pub(super) config: FtlConfig,
    pub(super) flash: Flash,
    pub(super) map: PageMap,
    /// Buffer of the stream that is written.
    pub(super) buffer: MergeBuffer,
    /// The streams of placement handles, with the buffers of the others.
    pub(super) streams: WriteStreams,
    pub(super) reads: ReadBuffer,
    pub(super) meta: MetaPages,
    pub(super) scheme: Scheme,
    /// Logical blocks with stray pages (`place`).
    pub(super) strays: Strays,
    /// Blocks that a merge released; kept to reuse its memory.
    pub(super) released: Vec<u32>,
    /// Token that is done when all copies of merges so far are programmed.
    pub(super) merged: Tok,
    /// Translation pages, behind those of the volume.
    pub(super) translation_pages: u32,
    pub(super) stale: StaleEntries,
    /// Token for which the next read of a page waits: its entry was read.
    pub(super) translated: Tok,
    /// Pages of the volume.
    pub(super) pages: u32,
    pub(super) page_bytes: u32,
    /// Pages of a program unit.
    pub(super) unit_pages: u32,
    /// Bytes of the page that was read last, and of the one that was written last.
    pub(super) read_bytes: u32,
    /// Cause of the commands of the current read.
    pub(super) read_cause: Cause,
    pub(super) written_bytes: u32,
    /// Discard maps that have to be written.
    pub(super) discards_pending: PageSet,
    pub(super) any_discards_pending: bool,
    /// Token that is done when all programs so far are done.
    pub(super) programmed: Tok,
    /// Sequence number up to which all versions are durable since the last flush.
    pub(super) flushed: u64,
    /// Token that is done when the last flush is done. The next mark, which states it, waits for it.
    pub(super) flush_done: Tok,
    /// Token for which the next mark waits, beside the last flush.
    pub(super) mark_after: Tok,
    /// `true` if NAND has changed since the last flush.
    pub(super) changed: bool,
    /// `true` if a write or discard was accepted since the last flush.
    pub(super) unflushed: bool,
    /// `true` if no mark states the last flush.
    pub(super) unmarked: bool,
    /// Sequence number below which a version may be older than one whose record is damaged.
    pub(super) stale_below: u64,
    /// Pages whose programs a crash interrupted, each with the erase count of its block.
    pub(super) interrupted: Vec<(InterruptedPage, u32)>,
    pub(super) stats: FtlStats,
    /// Buffer of a page; empty if the store holds no bytes.
    pub(super) scratch: Vec<u8>,
    /// Pages of a read that one command reads.
    pub(super) run: Vec<Ppn>,
}

impl Ftl {
    /// Returns `true` if the media keep the bytes that are written.
    #[inline]
    pub(super) fn stores_bytes(&self) -> bool {
        self.flash.stores_bytes()
    }

    /// Creates a layer over NAND: one device or an array of them. The page of the NAND is the mapping
    /// unit ([`frit_media::NandGeometry::with_mapping_unit`]).
    ///
    /// # Errors
    /// A parameter that does not fit the media; the error names the permitted values.
    pub fn new(config: FtlConfig, nand: impl Into<NandArray>) -> Result<Ftl> {
        config.validate()?;
        let nand = nand.into();
        let g = *nand.geometry();
        Self::check_geometry(&config, &g)?;
        let (pages, meta) = Self::sizes(&config, &nand)?;
        let translation_pages = Self::translation_pages_for(&config, pages, g.page_bytes);
        if pages == 0
            || u64::from(pages) + u64::from(translation_pages) + u64::from(meta.count())
                >= u64::from(PAGE_NONE)
        {
            return Err(Error::param("capacity", config.capacity, "leaves no page for data"));
        }
        let usable = Flash::nominal_pages_per_unit(&g, config.spare_needs());
        let meta_count = if config.scans() { meta.count() } else { 0 };
        let log_blocks = Self::log_blocks_of(&config, &g, usable, pages, meta_count)?;
        let sizes = Self::mapping_sizes(&config, &g, pages, log_blocks);
        let total = pages + translation_pages + meta_count + log_blocks * g.pages_per_block;
        let fair = total.div_ceil(g.units());
        let most = usable.saturating_sub(g.pages_per_block).max(fair);
        let share = (fair + fair / SHARE_SLACK + 4 * g.program_pages).min(most);
        let mut flash = Flash::new(nand, Self::flash_config(&config)?, share);
        if config.has_dynamic_cache() {
            let most_blocks = g.share_of_blocks(config.slc_cache);
            flash.make_cache_dynamic(DynamicSlc { pages: fair, most_blocks });
        }
        let stores_bytes = flash.stores_bytes();
        let new_buffer =
            || MergeBuffer::new(config.merge_buffer, g.program_pages, g.page_bytes, stores_bytes);
        let held = if stores_bytes { g.page_bytes as usize } else { 0 };
        let mut ftl = Ftl {
            map: PageMap::new(pages + translation_pages, meta.count(), translation_pages > 0),
            scheme: Scheme::new(&config, sizes),
            strays: Strays::new(),
            released: Vec::new(),
            merged: Tok::default(),
            translation_pages,
            translated: Tok::default(),
            stale: StaleEntries::new(pages, translation_pages),
            buffer: new_buffer(),
            streams: WriteStreams::new(config.handles(), new_buffer),
            reads: ReadBuffer::new(config.read_buffer),
            meta,
            pages,
            page_bytes: g.page_bytes,
            unit_pages: g.program_pages,
            read_bytes: 0,
            read_cause: Cause::Host,
            written_bytes: g.page_bytes,
            discards_pending: PageSet::new(meta.maps()),
            any_discards_pending: false,
            programmed: Tok::default(),
            flushed: 0,
            flush_done: Tok::default(),
            mark_after: Tok::default(),
            changed: false,
            unflushed: false,
            unmarked: false,
            stale_below: 0,
            interrupted: Vec::new(),
            stats: FtlStats::default(),
            scratch: vec![0; held],
            run: Vec::new(),
            flash,
            config,
        };
        ftl.apply_config();
        Ok(ftl)
    }

    fn mapping_sizes(config: &FtlConfig, g: &NandGeometry, pages: u32, log_blocks: u32) -> MappingSizes {
        MappingSizes {
            pages,
            pages_per_block: g.pages_per_block,
            log_blocks,
            cmt_entries: config.cmt_entries,
            entries_per_page: entries_per_page(g.page_bytes),
        }
    }

    /// Configuration of the NAND side.
    fn flash_config(config: &FtlConfig) -> Result<FlashConfig> {
        Ok(FlashConfig {
            handles: config.spare_needs().handles,
            isolated: config.isolates(),
            pacing: config.pacing()?,
            ..config.flash_keys().config()?
        })
    }

    /// Applies the rules of the configuration to the NAND side of a new layer.
    fn apply_config(&mut self) {
        self.flash.refuse_if_too_small();
        self.flash.stripe_over(self.config.unit_order);
        let (low, high) = (self.config.gc_low_blocks, self.config.gc_high_blocks);
        self.flash.set_thresholds(low as usize, high as usize);
        self.flash.set_cache_rules(self.config.slc_full, self.config.slc_idle());
        if self.config.scans() {
            self.flash.enforce_erase_order(self.config.erase_after_flush);
            self.flash.begin_after_erases();
        }
    }

    /// Checks that the layer can use NAND of a geometry.
    fn check_geometry(config: &FtlConfig, g: &NandGeometry) -> Result<()> {
        if config.mapping_unit != 0 && config.mapping_unit != u64::from(g.page_bytes) {
            let why = format!("the NAND is divided into pages of {} bytes", g.page_bytes);
            return Err(Error::param("mapping_unit", config.mapping_unit, why));
        }
        if u64::from(g.pages_per_block) > u64::from(u16::MAX) {
            let why = "makes more than 65535 mapping units in a block; use a larger one";
            return Err(Error::param("mapping_unit", config.mapping_unit, why));
        }
        if config.mapping != Mapping::Page && g.program_pages > 1 {
            let why = "maps NAND pages, and the NAND programs several mapping units at once";
            let name: &'static str = config.mapping.into();
            return Err(Error::param("mapping", name, why));
        }
        Ok(())
    }

    /// Numbers of the pages of the volume and of its metadata.
    fn sizes(config: &FtlConfig, nand: &NandArray) -> Result<(u32, MetaPages)> {
        let page = nand.geometry().page_bytes;
        let translation = |pages: u32| Self::translation_pages_for(config, pages, page);
        let metadata = |pages: u32| {
            translation(pages) + if config.scans() { MetaPages::new(pages, 0, page).count() } else { 0 }
        };
        // Bad blocks do not change the sizes: a volume with too many of them refuses writes.
        let fit =
            |bytes| nominal_capacity(nand.geometry(), bytes, config.over_provisioning, config.spare_needs());
        let pages = if config.capacity == 0 {
            let all = fit(0)?;
            all.saturating_sub(metadata(all))
        } else {
            let pages = u32::try_from(config.capacity.div_ceil(u64::from(page))).unwrap_or(PAGE_NONE / 2);
            fit((u64::from(pages) + u64::from(metadata(pages))) * u64::from(page))?;
            pages
        };
        Ok((pages, MetaPages::new(pages, translation(pages), page)))
    }

    /// Log blocks of the volume, on NAND with `usable` pages in a unit.
    fn log_blocks_of(
        config: &FtlConfig,
        g: &NandGeometry,
        usable: u32,
        pages: u32,
        meta: u32,
    ) -> Result<u32> {
        if !config.mapping.maps_blocks() {
            return Ok(0);
        }
        let blocks = usable / g.pages_per_block * g.units();
        let data = pages.div_ceil(g.pages_per_block);
        Self::log_blocks(config, blocks, data, meta_blocks(meta, g.pages_per_block))
    }

    /// Pages in NAND of any kind: those of the volume, translation pages, metadata.
    pub(super) fn all_pages(&self) -> u32 {
        self.pages + self.translation_pages + self.meta.count()
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> &FtlConfig {
        &self.config
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

    pub(super) fn capacity_bytes(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.page_bytes)
    }

    /// Checks that a range lies inside the volume, and returns the address of its first byte.
    pub(super) fn check_range(&self, at: Sector, bytes: u64) -> Result<u64> {
        check_sectors(at, bytes, self.capacity_bytes())
    }

    /// Refuses writes after an unexpected error.
    #[cold]
    pub(super) fn refuse_after(&mut self, e: Error) -> Error {
        self.flash.health.refuse_after(e, false, FtlBug::NotPoisoned)
    }

    /// Returns `true` if writes are acknowledged in the merge buffer.
    pub(super) fn buffers(&self) -> bool {
        self.config.merge_buffer > 0
    }
}

impl BlockLayer for Ftl {
    fn info(&self) -> Info {
        Info {
            name: "ftl",
            sectors: self.capacity_bytes() / SECTOR_BYTES,
            page_bytes: self.page_bytes,
            dram_bytes: self.dram_bytes(),
            durable_map_bytes: 0,
        }
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        // In batches: the loads of a batch do not depend on each other, so they overlap.
        let mut places = [None; PREFETCH_BATCH];
        let mut n = 0;
        for &(at, sectors) in next {
            let page = u64::from(self.page_bytes);
            let (first, _) = split(at.0.saturating_mul(SECTOR_BYTES), page);
            let (pages, _) = split(u64::from(sectors) * SECTOR_BYTES, page);
            for lpn in first..first + pages.clamp(1, PREFETCH_PAGES) {
                places[n] = self.map.find(lpn);
                n += 1;
            }
            if n + PREFETCH_PAGES as usize > PREFETCH_BATCH {
                self.flash.prefetch(places[..n].iter().filter_map(|e| e.and_then(PageEntry::ppn)));
                n = 0;
            }
        }
        self.flash.prefetch(places[..n].iter().filter_map(|e| e.and_then(PageEntry::ppn)));
    }

    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(into.len()))?;
        self.flash.note_request(sink.now());
        self.read_range(sink, at, into, hints.read_cause())
    }

    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, hints: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(data.len()))?;
        self.flash.writable()?;
        self.flash.note_request(sink.now());
        self.unflushed = true;
        self.write_range(sink, at, data, hints).map_err(|e| self.refuse_after(e))
    }

    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        // A halt programs the buffer all the same.
        if self.config.power_loss_protection && self.buffers() {
            return Ok(());
        }
        self.flush_all(sink).map_err(|e| self.refuse_after(e))
    }

    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let at = self.check_range(at, bytes)?;
        self.flash.writable()?;
        self.unflushed = true;
        self.discard_range(sink, at, bytes).map_err(|e| self.refuse_after(e))
    }

    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        if self.flash.health.refusal().is_some() {
            return Ok(Progress::Idle);
        }
        self.write_discards(sink).map_err(|e| self.refuse_after(e))?;
        self.settle(sink, true).map_err(|e| self.refuse_after(e))?;
        let stepped = self.flash.step(sink, &mut self.map, budget);
        self.changed |= matches!(stepped, Ok(Progress::Busy(_)));
        stepped.map_err(|e| self.refuse_after(e))
    }

    fn visible(&self, view: &mut StackView) {
        self.show(view);
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }
}

/// Returns the first page of the program unit of a page.
#[inline]
pub(super) fn unit_start(ppn: Ppn, unit_pages: u32) -> Ppn {
    Ppn(ppn.0 - ppn.0 % unit_pages)
}
