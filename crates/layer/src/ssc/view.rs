//! Counters and metrics of a solid-state cache.

use super::layer::Ssc;
use super::map::BlockMap;
use frit_core::StackView;
use frit_core::convert::{to_f64, to_u64};
use frit_core::visible::Metric;

/// Counters since the device was created. Commands are counted by the media.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct SscStats {
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) written: u64,
    pub(super) merged_in_buffer: u64,
    pub(super) padded: u64,
    pub(super) evicted: u64,
    pub(super) cleaned: u64,
    pub(super) victims: u64,
    pub(super) silent_evictions: u64,
    pub(super) evicted_silently: u64,
    pub(super) copied: u64,
    pub(super) log_pages: u64,
    pub(super) forced_logs: u64,
    pub(super) checkpoints: u64,
    pub(super) checkpoint_pages: u64,
    pub(super) program_retries: u64,
    pub(super) retired: u64,
    pub(super) damaged_clean: u64,
    pub(super) unreadable: u64,
}

impl Ssc {
    pub(super) fn show(&self, view: &mut StackView) {
        view.media.extend(self.nand.views());
    }

    /// DRAM of the maps in bytes for each block that can be present.
    pub(super) fn dram_per_block(&self) -> f64 {
        let maps = self.map.dram_bytes() + to_u64(self.reverse.len()) * 4;
        to_f64(maps) / to_f64(self.capacity().max(1))
    }

    pub(super) fn list_metrics(&self) -> Vec<Metric> {
        let m = Metric::count;
        let s = &self.stats;
        let free = self.units.iter().map(|u| to_u64(u.free.len())).sum();
        vec![
            m("ssc_blocks", u64::from(self.map.len()), "blocks", "blocks that are present"),
            m("ssc_dirty", self.dirty, "blocks", "blocks that are dirty"),
            m("ssc_capacity", self.capacity(), "blocks", "blocks that can be present together"),
            m("ssc_hits", s.hits, "reads", "reads of blocks that were present"),
            m("ssc_misses", s.misses, "reads", "reads of blocks that were not present"),
            m("ssc_written", s.written, "pages", "pages programmed for writes, padding included"),
            m(
                "ssc_merged_in_buffer",
                s.merged_in_buffer,
                "writes",
                "writes of a block that waited in the write buffer",
            ),
            m("ssc_padded", s.padded, "pages", "pages of padding in NAND pages"),
            m("ssc_evicted", s.evicted, "blocks", "blocks evicted by the manager"),
            m("ssc_cleaned", s.cleaned, "blocks", "blocks made clean by the manager"),
            m("ssc_victims", s.victims, "blocks", "erase blocks emptied"),
            m(
                "ssc_silent_evictions",
                s.silent_evictions,
                "blocks",
                "erase blocks of which clean blocks were dropped",
            ),
            m("ssc_evicted_silently", s.evicted_silently, "blocks", "clean blocks dropped"),
            m("ssc_copied", s.copied, "blocks", "dirty blocks copied out of victims"),
            m("ssc_log_pages", s.log_pages, "pages", "log pages written, each a NAND page"),
            m("ssc_forced_logs", s.forced_logs, "flushes", "log pages that an erase had to wait for"),
            m("ssc_checkpoints", s.checkpoints, "checkpoints", "checkpoints written"),
            m("ssc_checkpoint_pages", s.checkpoint_pages, "pages", "NAND pages of checkpoints written"),
            m("ssc_program_retries", s.program_retries, "programs", "programs repeated after a failure"),
            m("ssc_blocks_retired", s.retired, "blocks", "erase blocks that went bad"),
            m("ssc_damaged_clean", s.damaged_clean, "blocks", "clean blocks that were damaged, and dropped"),
            m("ssc_unreadable", s.unreadable, "blocks", "dirty blocks that could not be copied"),
            m("ssc_free_blocks", free, "blocks", "erased blocks in the pools"),
            m("ssc_map_bytes", self.map.dram_bytes(), "bytes", "DRAM of the map, without the reverse map"),
            Metric {
                name: "ssc_dram_per_block",
                value: self.dram_per_block(),
                unit: "bytes",
                help: "DRAM of the maps for each block that can be present",
            },
        ]
    }
}
