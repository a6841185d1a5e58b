//! Counters, metrics and residence view of the cache manager.

use super::layer::Flashtier;
use crate::residence;
use frit_core::convert::to_f64;
use frit_core::visible::{LayerView, Metric, Residence};
use frit_core::{BlockDevice, CacheDevice, StackView};

/// Counters since the layer was created. Commands are counted by the media.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct FlashtierStats {
    pub(super) read_hits: u64,
    pub(super) read_misses: u64,
    pub(super) false_misses: u64,
    pub(super) useless_bytes: u64,
    pub(super) written_to_cache: u64,
    pub(super) direct_writes: u64,
    pub(super) cleaned: u64,
    pub(super) clean_writes: u64,
    pub(super) waits: u64,
    pub(super) disk_flushes: u64,
    pub(super) disk_failures: u64,
    pub(super) set_aside: u64,
}

impl<C: CacheDevice, D: BlockDevice + ?Sized> Flashtier<C, D> {
    pub(super) fn show(&self, view: &mut StackView) {
        self.ssc.visible(view);
        let mut metrics = self.list_metrics();
        metrics.extend(self.ssc.metrics());
        view.layers.push(LayerView {
            name: "flashtier".into(),
            metrics,
            residence: self.residence(),
            ..LayerView::default()
        });
        // The layers below come after their upper one.
        self.disk.visible(view);
    }

    fn list_metrics(&self) -> Vec<Metric> {
        let m = Metric::count;
        let s = &self.stats;
        let reads = s.read_hits + s.read_misses;
        vec![
            m("read_hits", s.read_hits, "blocks", "blocks read from the cache"),
            m("read_misses", s.read_misses, "blocks", "blocks read from the disk"),
            Metric {
                name: "hit_ratio",
                value: if reads == 0 { 0.0 } else { to_f64(s.read_hits) / to_f64(reads) },
                unit: "",
                help: "share of block reads that the cache served",
            },
            m("false_misses", s.false_misses, "blocks", "cached blocks that the tunnel took for misses"),
            m("useless_bytes", s.useless_bytes, "bytes", "data that misses transferred through the tunnel"),
            m("cache_writes", s.written_to_cache, "blocks", "blocks of requests written to the cache"),
            m("direct_writes", s.direct_writes, "writes", "writes past the cache"),
            m("dirty_blocks", self.dirty.len(), "blocks", "blocks that the disk does not have"),
            m("cleaned", s.cleaned, "blocks", "dirty blocks written to the disk"),
            m("clean_writes", s.clean_writes, "writes", "writes to the disk of dirty blocks"),
            m("room_waits", s.waits, "writes", "writes that waited until dirty blocks were cleaned"),
            m("disk_flushes", s.disk_flushes, "flushes", "flushes of the disk by the cache"),
            m("disk_failures", s.disk_failures, "failures", "failures of the disk while blocks were cleaned"),
            m(
                "set_aside",
                s.set_aside,
                "blocks",
                "damaged dirty blocks that could not be written to the disk",
            ),
        ]
    }

    /// Number of cached blocks for each slice of the disk. All other blocks are on the disk only.
    fn residence(&self) -> Vec<Residence> {
        residence::of_cached_blocks(
            self.blocks,
            |row| &mut row.disk,
            |present| self.ssc.exists(0..self.blocks, &mut |block, _| present(block)),
        )
    }
}
