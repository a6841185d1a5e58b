//! Metrics and residence view of NTL.

use super::layer::Ntl;
use super::stats::NtlStats;
use frit_core::StackView;
use frit_core::convert::{bounded_u32, to_f64};
use frit_core::visible::{LayerView, Metric, Residence};

/// Number of slices of the address space in the residence view.
const SLICES: u32 = 512;

impl Ntl {
    pub(super) fn show(&self, view: &mut StackView) {
        view.media.push(self.space.pcm.view());
        let mut metrics = self.metrics();
        metrics.extend(self.space.pcm.metrics());
        view.layers.push(LayerView {
            name: "ntl".into(),
            metrics,
            residence: self.residence(),
            ..LayerView::default()
        });
    }

    /// Returns the sum of the times of all parallel writes and refreshes, as the paper computes it,
    /// in seconds.
    fn parallel_time(&self) -> f64 {
        let timing = &self.space.pcm.config().timing;
        let page = self.page_bytes();
        let dirty = timing.write.at(page).as_secs();
        let clean = timing.write_clean.as_ref().map_or(dirty, |c| c.at(page).as_secs());
        let s = self.stats_so_far();
        to_f64(s.parallel_clean) * clean
            + to_f64(s.parallel_dirty) * dirty
            + to_f64(s.refreshes) * timing.refresh.as_secs()
    }

    /// Returns the time of merges within it: the sum of Equation 1.
    fn merge_time(&self) -> f64 {
        let timing = &self.space.pcm.config().timing;
        to_f64(self.stats.merge_rounds) * timing.write.at(self.page_bytes()).as_secs()
            + to_f64(self.stats.refreshes) * timing.refresh.as_secs()
    }

    /// Returns the counters, with the open round as it is: every page is in a counted round.
    fn stats_so_far(&self) -> NtlStats {
        let mut all = self.stats;
        all.add_rounds(self.rounds.open());
        all
    }

    fn metrics(&self) -> Vec<Metric> {
        let s = self.stats_so_far();
        let count = |name, value: u64, help| Metric { name, value: to_f64(value), unit: "", help };
        let pages = |name, value: u64, help| Metric { name, value: to_f64(value), unit: "pages", help };
        let secs = |name, value: f64, help| Metric { name, value, unit: "s", help };
        let layout = &self.space.layout;
        vec![
            count(
                "parallel_clean_writes",
                s.parallel_clean,
                "rounds that count as clean; in a round each chip wrote at most one page",
            ),
            count(
                "parallel_dirty_writes",
                s.parallel_dirty,
                "rounds that count as dirty (round_flag), and those of merges",
            ),
            count("parallel_writes", s.parallel_clean + s.parallel_dirty, "rounds of both kinds"),
            count("mixed_rounds", s.mixed, "rounds with clean and dirty pages"),
            count("merges", s.merges, "merges of a part of the log"),
            count("merge_rounds", s.merge_rounds, "dirty rounds of merges: the sum of M in Equation 1"),
            count("refreshes", s.refreshes, "sequential refreshes; chips refresh in parallel"),
            secs("parallel_time", self.parallel_time(), "sum of the times of parallel writes and refreshes"),
            secs("merge_time", self.merge_time(), "time of merges in it: the sum of Equation 1"),
            pages("merged_pages", s.merged_pages, "pages that merges copied to their home locations"),
            pages("first_writes", s.first_writes, "pages written for the first time"),
            pages("updates", s.updates, "pages updated"),
            pages("log_writes", s.log_writes, "updates that went to the log"),
            pages("buffer_hits", s.buffer_hits, "updates of a page that was in the buffer"),
            count("buffer_flushes", s.buffer_flushes, "writes of the buffer to the log"),
            pages("log_capacity", u64::from(layout.slots()), "pages that the log can hold"),
            pages(
                "logged_pages",
                u64::from(self.log.as_ref().map_or(0, super::log::LogTables::pages)),
                "pages whose newest version lies in the log",
            ),
            count("chips", u64::from(layout.chips), "chips that work independently"),
        ]
    }

    /// Returns the number of pages for each slice of the address space: at home, and in the log.
    fn residence(&self) -> Vec<Residence> {
        let pages = self.pages();
        let slices = SLICES.min(pages);
        let edge = |i: u32| bounded_u32(u64::from(i) * u64::from(pages) / u64::from(slices));
        (0..slices)
            .map(|i| {
                let range = edge(i)..edge(i + 1);
                let live = self.live.count(range.clone());
                let logged = if self.log.is_some() { self.logged.count(range.clone()).min(live) } else { 0 };
                let unmapped = range.end - range.start - live;
                Residence { unmapped, pcm_level: live - logged, pcm_cache: logged, ..Residence::default() }
            })
            .collect()
    }
}
