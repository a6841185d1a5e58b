//! Counters, metrics and residence view of the cache manager.

use super::layer::Flashcache;
use super::sets::flag;
use crate::residence;
use frit_core::convert::{to_f64, to_u64};
use frit_core::visible::{LayerView, Metric, Residence};
use frit_core::{BlockDevice, MediumKind, StackView};

/// Counters since the layer was created. Commands are counted by the media.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct FlashcacheStats {
    pub(super) read_hits: u64,
    pub(super) read_misses: u64,
    pub(super) written: u64,
    pub(super) rewritten: u64,
    pub(super) direct_writes: u64,
    pub(super) filled: u64,
    pub(super) evicted: u64,
    pub(super) cleaned: u64,
    pub(super) clean_writes: u64,
    pub(super) waits: u64,
    pub(super) metadata_writes: u64,
    pub(super) commits: u64,
    pub(super) ssd_flushes: u64,
    pub(super) disk_flushes: u64,
    pub(super) disk_failures: u64,
    pub(super) damaged_clean: u64,
    pub(super) damaged_dirty: u64,
}

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Flashcache<C, D> {
    pub(super) fn show(&self, view: &mut StackView) {
        view.layers.push(LayerView {
            name: "flashcache".into(),
            metrics: self.list_metrics(),
            residence: self.residence(),
            ..LayerView::default()
        });
        // The layers below come after their upper one.
        self.ssd.visible(view);
        self.disk.visible(view);
    }

    fn dirty_blocks(&self) -> u64 {
        to_u64((0..self.layout.slots()).filter(|&slot| self.sets.is(slot, flag::DIRTY)).count())
    }

    fn list_metrics(&self) -> Vec<Metric> {
        let m = Metric::count;
        let s = &self.stats;
        let reads = s.read_hits + s.read_misses;
        let dram = to_f64(self.sets.dram_bytes()) / f64::from(self.layout.slots());
        vec![
            m(
                "set_bytes",
                self.sets.dram_bytes(),
                "bytes",
                "DRAM of the sets: blocks, flags, chains, orders",
            ),
            m("read_hits", s.read_hits, "blocks", "blocks read from the SSD"),
            m("read_misses", s.read_misses, "blocks", "blocks read from the disk"),
            Metric {
                name: "hit_ratio",
                value: if reads == 0 { 0.0 } else { to_f64(s.read_hits) / to_f64(reads) },
                unit: "",
                help: "share of block reads that the SSD served",
            },
            m("cache_writes", s.written, "blocks", "blocks of requests that became dirty"),
            m("rewrites", s.rewritten, "blocks", "writes to blocks that were dirty, without metadata"),
            m("direct_writes", s.direct_writes, "writes", "writes to the disk only"),
            m("filled", s.filled, "blocks", "clean blocks written to the SSD"),
            m("evicted", s.evicted, "blocks", "blocks that left the cache"),
            m("cached_blocks", u64::from(self.sets.valid()), "blocks", "blocks in the cache"),
            m("dirty_blocks", self.dirty_blocks(), "blocks", "blocks that the metadata states as dirty"),
            m("cleaned", s.cleaned, "blocks", "dirty blocks written to the disk"),
            m("clean_writes", s.clean_writes, "writes", "writes to the disk of dirty blocks"),
            m("room_waits", s.waits, "writes", "writes that waited until blocks of their set were cleaned"),
            m("metadata_writes", s.metadata_writes, "writes", "writes of metadata blocks"),
            m("commits", s.commits, "commits", "epochs committed by a header"),
            m("ssd_flushes", s.ssd_flushes, "flushes", "flushes of the SSD by the cache"),
            m("disk_flushes", s.disk_flushes, "flushes", "flushes of the disk by the cache"),
            m("disk_failures", s.disk_failures, "failures", "failures of the disk"),
            m("damaged_clean", s.damaged_clean, "blocks", "clean blocks that could not be read from the SSD"),
            m(
                "set_aside",
                s.damaged_dirty,
                "blocks",
                "damaged dirty blocks that could not be written to the disk",
            ),
            Metric {
                name: "dram_per_block",
                value: dram,
                unit: "bytes",
                help: "DRAM of the map for each slot",
            },
        ]
    }

    /// Number of cached blocks for each slice of the disk. All other blocks are on the disk only.
    fn residence(&self) -> Vec<Residence> {
        let on_nand = self.ssd.place(self.layout.slot_at(0)).1 == Some(MediumKind::Nand);
        let slots = (0..self.layout.slots()).filter(|_| on_nand);
        residence::of_cached_blocks(
            self.disk_blocks,
            |row| &mut row.disk,
            |present| slots.filter_map(|slot| self.sets.block(slot)).for_each(present),
        )
    }
}
