//! Counters, metrics and residence.

use super::layer::Zns;
use super::read::PagePlace;
use crate::residence;
use frit_core::StackView;
use frit_core::ZoneState;
use frit_core::visible::{LayerView, Metric};

/// Counters of work.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct ZnsStats {
    pub(super) implicit_closes: u64,
    pub(super) resets: u64,
    pub(super) finishes: u64,
    pub(super) saved_pages: u64,
    pub(super) saved_units: u64,
    pub(super) table_pages: u64,
    pub(super) log_cleanings: u64,
    pub(super) program_retries: u64,
    pub(super) replaced: u64,
    pub(super) copied_units: u64,
    pub(super) retired: u64,
}

impl Zns {
    /// DRAM of the tables and of the buffers.
    pub(super) fn dram_bytes(&self) -> u64 {
        let zone = 32 + 5 * u64::from(self.sizes.zone_blocks);
        let buffers = u64::from(self.config.open_limit().min(self.sizes.zones));
        u64::from(self.sizes.zones) * zone
            + u64::from(self.nand.geometry().blocks()) * 8
            + buffers * u64::from(self.buffer_units()) * u64::from(self.sizes.unit_bytes())
    }

    fn list_metrics(&self) -> Vec<Metric> {
        let m = Metric::count;
        let s = &self.stats;
        let count = |state| self.zones.iter().filter(|z| z.state == state).count() as u64;
        vec![
            m("zones", u64::from(self.sizes.zones), "zones", "zones of the device"),
            m("zone_bytes", self.sizes.zone_bytes(), "bytes", "size of a zone"),
            m("zones_open", u64::from(self.open), "zones", "zones that are open"),
            m("zones_active", u64::from(self.active), "zones", "zones that are open or closed"),
            m("zones_full", count(ZoneState::Full), "zones", "zones that are full"),
            m("zones_read_only", count(ZoneState::ReadOnly), "zones", "zones whose data can be read only"),
            m("zones_offline", count(ZoneState::Offline), "zones", "zones out of use"),
            m("implicit_closes", s.implicit_closes, "zones", "open zones that the device closed for others"),
            m("resets", s.resets, "zones", "zones that were reset"),
            m("finishes", s.finishes, "zones", "zones that were finished"),
            m(
                "saved_units",
                s.saved_units,
                "program units",
                "program units that were saved before they were full",
            ),
            m("saved_pages", s.saved_pages, "pages", "pages of these program units"),
            m("table_pages", s.table_pages, "pages", "pages of the table of zones that were written"),
            m("log_cleanings", s.log_cleanings, "blocks", "blocks of saved program units that were cleaned"),
            m("program_retries", s.program_retries, "programs", "programs that failed and were repeated"),
            m("blocks_replaced", s.replaced, "blocks", "blocks of zones that were replaced by others"),
            m(
                "copied_units",
                s.copied_units,
                "program units",
                "program units that were copied to replace blocks",
            ),
            m("blocks_retired", s.retired, "blocks", "erase blocks that went bad"),
            m("dram_bytes", self.dram_bytes(), "bytes", "DRAM of the tables and the write buffers"),
        ]
    }

    /// Adds the layer and its media to a view.
    pub(super) fn show(&self, view: &mut StackView) {
        view.media.extend(self.nand.views());
        let pages = self.sizes.zones * self.sizes.zone_pages;
        let residence = residence::of_cached_blocks(
            pages,
            |row| &mut row.unmapped,
            |present| {
                let written = |&lpn: &u32| self.find(lpn) != PagePlace::Unwritten;
                (0..pages).filter(written).for_each(present);
            },
        );
        let metrics = self.list_metrics();
        view.layers.push(LayerView { name: "zns".into(), metrics, residence, ..LayerView::default() });
    }
}
