//! Metrics of the layer, and the residence of its pages.

use super::Hfsl;
use super::entry::{MapEntry, PageLocation};
use super::heat::HeatPolicy;
use super::pcm::PcmRegion;
use frit_core::StackView;
use frit_core::visible::{LayerView, Metric, Residence};

/// Number of slices of the address space in [`LayerView::residence`].
const SLICES: usize = 256;

impl Hfsl {
    /// DRAM used by the mapping and its helper tables, in bytes.
    pub(crate) fn dram_bytes(&self) -> u64 {
        let table = self.map.table.len() as u64 * size_of::<MapEntry>() as u64;
        let pcm = self.map.pcm.as_ref().map_or(0, super::pcm::PcmSpace::dram_bytes);
        let buffer = self.dram.as_ref().map_or(0, super::read_buffer::ReadBuffer::dram_bytes);
        table + self.flash.dram_bytes() + pcm + self.heat.dram_bytes() + buffer
    }

    pub(crate) fn show(&self, view: &mut StackView) {
        let mut metrics = self.metrics();
        // Only with a leveler: the evenness of wear takes a pass over all lines of PCM.
        if let Some(pcm) = self.map.pcm.as_ref().filter(|p| p.medium.is_leveled()) {
            metrics.extend(pcm.medium.metrics());
        }
        view.layers.push(LayerView {
            name: "hfsl".into(),
            metrics,
            residence: self.residence(),
            ..LayerView::default()
        });
        view.media.extend(self.flash.nand().views());
        if let Some(pcm) = &self.map.pcm {
            view.media.push(pcm.medium.view());
        }
        if let Some(dram) = &self.dram {
            view.media.push(dram.medium.view());
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        let m = Metric::count;
        let region =
            |r: PcmRegion| self.map.pcm.as_ref().map_or(0, |p| u64::from(p.regions[r as usize].pages));
        let free = self.map.pcm.as_ref().map_or(0, |p| p.free.len() as u64);
        let (hits, misses) = self.dram.as_ref().map_or((0, 0), |d| (d.hits, d.misses));
        let (h, f) = (&self.stats, self.flash.stats());
        vec![
            m("pages", u64::from(self.pages), "pages", "logical pages of the volume"),
            m("nand_pages", self.flash.valid_pages(), "pages", "valid pages in NAND"),
            m("pcm_level_pages", region(PcmRegion::Storage), "pages", "pages in PCM as storage"),
            m("pcm_cache_pages", region(PcmRegion::Cache), "pages", "pages in PCM as a cache"),
            m("pcm_free_slots", free, "sub-pages", "free sub-pages in PCM"),
            m("nand_free_blocks", self.flash.free_blocks(), "blocks", "erased blocks in the pools"),
            m("flash_updates", h.flash_updates, "pages", "writes of part of a page that lay in NAND"),
            m("moved_to_pcm", h.to_pcm, "pages", "pages that a small write moved from NAND to PCM"),
            m("moved_to_nand", h.to_nand, "pages", "pages that a large write moved from PCM to NAND"),
            m("destaged", h.destaged, "pages", "pages that left PCM to make room"),
            m("destage_waits", h.destage_waits, "writes", "writes that waited for a page to leave PCM"),
            m(
                "space_flushes",
                h.space_flushes + f.space_flushes,
                "flushes",
                "flushes without a client's request, to reuse space that was freed since the last flush",
            ),
            m("slots_moved", h.slots_moved, "sub-pages", "sub-pages that left a worn place of PCM"),
            m("overflowed", h.overflowed, "writes", "writes for PCM that went to NAND for want of room"),
            m("gc_victims", f.victims, "blocks", "blocks cleaned"),
            m("gc_victim_valid", f.victim_valid, "pages", "valid pages in blocks when chosen for cleaning"),
            m("gc_forced", f.forced, "blocks", "blocks cleaned while a write waited"),
            m("wear_relocated", f.relocated, "blocks", "blocks moved by static wear leveling"),
            m("blocks_retired", f.retired, "blocks", "blocks that went bad"),
            m("program_retries", f.program_retries, "pages", "pages programmed again after a failure"),
            m("dram_hits", hits, "pages", "reads of pages in NAND that the DRAM buffer served"),
            m("dram_misses", misses, "pages", "reads of pages in NAND that it did not"),
            m("dram_bytes", self.dram_bytes(), "bytes", "DRAM that mapping takes"),
        ]
    }

    fn residence(&self) -> Vec<Residence> {
        let slice = self.map.table.len().div_ceil(SLICES).max(1);
        self.map.table.chunks(slice).map(|chunk| self.residence_of(chunk)).collect()
    }

    fn residence_of(&self, entries: &[u64]) -> Residence {
        let mut r = Residence::default();
        for e in entries {
            match MapEntry(*e).place() {
                PageLocation::Unmapped => r.unmapped += 1,
                PageLocation::Nand(_) => r.nand += 1,
                PageLocation::Pcm(desc) => {
                    match self.map.pcm.as_ref().map(|p| p.desc[desc as usize].region) {
                        Some(PcmRegion::Cache) => r.pcm_cache += 1,
                        _ => r.pcm_level += 1,
                    }
                }
            }
        }
        r
    }
}
