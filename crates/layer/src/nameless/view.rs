//! Counters, metrics of the volume, and the residence of its pages.

use super::layer::Nameless;
use frit_core::convert::{to_u64, to_usize};
use frit_core::visible::{LayerView, Metric, Residence};
use frit_core::{Lpn, NamelessDevice, StackView};

/// Number of slices of the address space in [`LayerView::residence`].
const SLICES: u32 = 256;

/// Counters since the layer was created. Commands are counted by the media.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct NamelessStats {
    pub(super) merged_in_queue: u64,
    pub(super) read_modify_writes: u64,
    pub(super) queue_reads: u64,
    pub(super) saves: u64,
    pub(super) migrations: u64,
}

impl<D: NamelessDevice> Nameless<D> {
    /// DRAM of the FTL, of the request queues, and of the map of the owner, which is no part of the FTL, in
    /// bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        self.device.dram_bytes() + self.map.dram_bytes() + self.queue.dram_bytes()
    }

    pub(super) fn show(&self, view: &mut StackView) {
        let mut metrics = self.list_metrics();
        metrics.extend(self.device.metrics());
        view.layers.push(LayerView {
            name: "nameless".into(),
            metrics,
            residence: self.residence(),
            ..LayerView::default()
        });
        self.device.visible(view);
    }

    fn list_metrics(&self) -> Vec<Metric> {
        let m = Metric::count;
        let s = &self.stats;
        vec![
            m("pages", u64::from(self.pages), "pages", "logical pages of the volume"),
            m("queued_pages", to_u64(self.queue.len()), "pages", "pages that wait in the request queue"),
            m(
                "merged_in_queue",
                s.merged_in_queue,
                "writes",
                "writes of a page that waited in the request queue",
            ),
            m("queue_reads", s.queue_reads, "pages", "pages read out of the request queue"),
            m(
                "read_modify_writes",
                s.read_modify_writes,
                "writes",
                "writes of part of a page that lay in NAND",
            ),
            m("map_saves", s.saves, "saves", "saves of the map in virtual blocks"),
            m("waiting_blocks", to_u64(self.waiting.len()), "blocks", "blocks that are freed after a save"),
            m("migrations_taken", s.migrations, "blocks", "new addresses that the owner has taken"),
            m("owner_map_bytes", self.map.dram_bytes(), "bytes", "DRAM of the map of the owner"),
            m(
                "dram_bytes",
                self.device.dram_bytes() + self.queue.dram_bytes(),
                "bytes",
                "DRAM of the FTL (virtual map, valid pages, blocks) and of the request queues",
            ),
        ]
    }

    fn residence(&self) -> Vec<Residence> {
        let slice = self.pages.div_ceil(SLICES).max(1);
        let mut all = vec![Residence::default(); to_usize(self.pages.div_ceil(slice))];
        for (lpn, row) in (0..self.pages).zip((0..self.pages).map(|lpn| lpn / slice)) {
            let row = &mut all[to_usize(row)];
            match self.is_written(Lpn(lpn)) {
                true => row.nand += 1,
                false => row.unmapped += 1,
            }
        }
        all
    }
}
