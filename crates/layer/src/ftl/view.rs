//! Counters, metrics of the layer, and the residence of its pages.

use super::layer::Ftl;
use super::mapping::MappingScheme;
use super::page_map::PageEntry;
use super::place::MergeStats;
use super::translate::TranslationStats;
use frit_core::StackView;
use frit_core::visible::{LayerView, Metric, Residence};

/// Number of slices of the address space in [`LayerView::residence`].
const SLICES: u32 = 256;

/// Counters since the layer was created. Commands are counted by the media.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct FtlStats {
    /// Writes of a page that waited in the merge buffer.
    pub(super) merged_in_buffer: u64,
    /// Writes of part of a page, whose old contents were read.
    pub(super) read_modify_writes: u64,
    /// Pages of padding in program units.
    pub(super) padded: u64,
    /// Reads of pages in the merge buffer.
    pub(super) buffer_reads: u64,
    /// Marks written at flushes and halts.
    pub(super) marks: u64,
    /// Discard maps written.
    pub(super) discard_maps: u64,
    pub(super) merges: MergeStats,
    pub(super) translation: TranslationStats,
}

impl Ftl {
    /// DRAM used by the mapping, its helper tables and the buffers, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        let unit = u64::from(self.unit_pages) * u64::from(self.page_bytes);
        self.map.dram_bytes()
            + self.flash.dram_bytes()
            + self.buffer.dram_bytes() * u64::from(self.config.streams)
            + self.discards_pending.bytes()
            + u64::from(self.config.read_buffer) * unit
    }

    pub(super) fn show(&self, view: &mut StackView) {
        view.layers.push(LayerView {
            name: "ftl".into(),
            metrics: self.metrics(),
            residence: self.residence(),
            ..LayerView::default()
        });
        view.media.extend(self.flash.nand().views());
    }

    fn metrics(&self) -> Vec<Metric> {
        let m = Metric::count;
        let (s, f) = (&self.stats, self.flash.stats());
        let mut all = vec![
            m("pages", u64::from(self.pages), "pages", "logical pages of the volume"),
            m("nand_pages", self.flash.valid_pages(), "pages", "valid pages in NAND"),
            m("nand_free_blocks", self.flash.free_blocks(), "blocks", "erased blocks in the pools"),
            m("buffered_pages", self.buffered_pages(), "pages", "pages that wait in the merge buffer"),
            m(
                "merged_in_buffer",
                s.merged_in_buffer,
                "writes",
                "writes of a page that waited in the merge buffer",
            ),
            m("buffer_reads", s.buffer_reads, "pages", "pages read out of the merge buffer"),
            m(
                "read_modify_writes",
                s.read_modify_writes,
                "writes",
                "writes of part of a page that lay in NAND",
            ),
            m("padded", s.padded, "pages", "pages of padding in NAND pages"),
            m("read_buffer_hits", self.reads.hits, "reads", "reads that the read buffer served"),
            m("read_buffer_misses", self.reads.misses, "reads", "reads that it did not"),
            m("marks", s.marks, "pages", "marks written at flushes and halts"),
            m("discard_maps", s.discard_maps, "pages", "discard maps written"),
            m("gc_victims", f.victims, "blocks", "blocks cleaned"),
            m("gc_victim_valid", f.victim_valid, "pages", "valid pages in blocks when chosen for cleaning"),
            m("gc_forced", f.forced, "blocks", "blocks cleaned while a write waited"),
            m(
                "space_flushes",
                f.space_flushes,
                "flushes",
                "flushes without a client's request, to reuse space",
            ),
            m("wear_relocated", f.relocated, "blocks", "blocks moved by static wear leveling"),
            m("blocks_retired", f.retired, "blocks", "blocks that went bad"),
            m("program_retries", f.program_retries, "pages", "pages programmed again after a failure"),
            m("dram_bytes", self.dram_bytes(), "bytes", "DRAM that mapping and buffers take"),
            m(
                "map_bytes",
                self.scheme.table_bytes(),
                "bytes",
                "DRAM that the tables of the mapping scheme take on a device",
            ),
        ];
        if self.config.slc_cache > 0.0 {
            all.extend(self.cache_metrics());
        }
        if self.config.mapping.maps_blocks() {
            all.extend(self.merge_metrics());
        }
        if self.translation_pages > 0 {
            all.extend(self.translation_metrics());
        }
        all
    }

    fn cache_metrics(&self) -> impl Iterator<Item = Metric> {
        let (f, page) = (self.flash.stats(), u64::from(self.page_bytes));
        [
            ("slc_bytes", self.flash.cache_pages() * page, "bytes", "size of the cache with one bit a cell"),
            ("slc_valid_bytes", self.flash.cached_pages() * page, "bytes", "valid data in this cache"),
            ("slc_written", f.slc_written, "pages", "pages written into this cache"),
            ("slc_bypassed", f.slc_bypassed, "pages", "pages written past it, because it was full"),
            ("slc_folds", f.slc_folds, "blocks", "blocks of this cache that were folded"),
            ("slc_folded", f.slc_folded, "pages", "pages moved out of them"),
            ("slc_forced", f.slc_forced, "blocks", "blocks folded while a write waited"),
            ("slc_mode_changes", f.slc_mode_changes, "blocks", "free blocks whose mode an erase changed"),
            ("slc_erases", self.slc_erases(), "cycles", "erases of blocks after they stored one bit a cell"),
        ]
        .into_iter()
        .map(|(name, value, unit, help)| Metric::count(name, value, unit, help))
    }

    /// Erases of all blocks after they were used with one bit a cell.
    fn slc_erases(&self) -> u64 {
        let cycles = self.flash.nand().views().filter_map(|view| view.wear.one_bit);
        cycles.flat_map(|wear| wear.cycles).map(u64::from).sum()
    }

    fn merge_metrics(&self) -> impl Iterator<Item = Metric> {
        let s = &self.stats.merges;
        [
            ("log_blocks", u64::from(self.scheme.log_blocks()), "blocks", "log blocks in use"),
            ("merges_switch", s.switch, "merges", "log blocks that became data blocks as they were"),
            ("merges_partial", s.partial, "merges", "log blocks that became data blocks after copies"),
            ("merges_full", s.full, "merges", "logical blocks copied into free blocks"),
            ("merges_stray", s.stray, "merges", "logical blocks merged after a start or a failed program"),
            ("merge_copies", s.copied, "pages", "pages copied by merges"),
            ("merge_padding", s.padded, "pages", "positions of data blocks programmed without data"),
        ]
        .into_iter()
        .map(|(name, value, unit, help)| Metric::count(name, value, unit, help))
    }

    fn translation_metrics(&self) -> impl Iterator<Item = Metric> {
        let (s, cmt) = (&self.stats.translation, self.scheme.cache_stats());
        [
            ("cmt_hits", cmt.hits, "accesses", "accesses whose entry was cached"),
            ("cmt_misses", cmt.misses, "accesses", "accesses whose entry was not"),
            ("cmt_evictions", cmt.evictions, "entries", "entries evicted from the cached mapping table"),
            ("cmt_dirty_evictions", cmt.dirty_evictions, "entries", "evicted entries that had changed"),
            ("translation_reads", s.reads, "pages", "translation pages read for requests"),
            ("translation_writes", s.writes, "pages", "translation pages written for requests"),
            (
                "translation_batch_reads",
                s.batch_reads,
                "pages",
                "translation pages read because pages were moved or discarded",
            ),
            (
                "translation_batch_writes",
                s.batch_writes,
                "pages",
                "translation pages written because pages were moved or discarded",
            ),
        ]
        .into_iter()
        .map(|(name, value, unit, help)| Metric::count(name, value, unit, help))
    }

    fn residence(&self) -> Vec<Residence> {
        let slice = self.pages.div_ceil(SLICES).max(1) as usize;
        let entries: Vec<PageEntry> = self.map.entries(self.pages).map(|(_, e)| e).collect();
        let of = |slice: &[PageEntry]| {
            let nand = slice.iter().filter(|e| e.is_written()).count() as u64;
            Residence { nand: nand as _, unmapped: (slice.len() as u64 - nand) as _, ..Residence::default() }
        };
        entries.chunks(slice).map(of).collect()
    }
}
