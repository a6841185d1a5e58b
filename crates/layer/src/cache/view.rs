//! Metrics and residence view of the cache.

use super::layer::Cache;
use super::policy::EvictionPolicy;
use crate::numbers::BucketId;
use frit_core::convert::{size_in_memory, to_f64, to_usize};
use frit_core::visible::{LayerView, Metric, Residence};
use frit_core::{BlockDevice, StackView};

/// Number of slices of the address space in the residence view.
const SLICES: u32 = 512;

impl<D: BlockDevice + ?Sized> Cache<D> {
    pub(super) fn show(&self, view: &mut StackView) {
        view.media.push(self.space.pcm.view());
        let mut metrics = self.metrics();
        metrics.extend(self.reasons());
        metrics.extend(self.space.pcm.metrics());
        view.layers.push(LayerView {
            name: "cache".into(),
            metrics,
            residence: self.residence(),
            ..LayerView::default()
        });
        // The layers below come after their upper one.
        self.disk.visible(view);
    }

    fn metrics(&self) -> Vec<Metric> {
        let s = &self.stats;
        let blocks = |name, value: u64, help| Metric { name, value: to_f64(value), unit: "blocks", help };
        let count = |name, value: u64, help| Metric { name, value: to_f64(value), unit: "", help };
        let per = |n: u64, d: u64| if d == 0 { 0.0 } else { to_f64(n) / to_f64(d) };
        let hits = s.read_hits + s.write_hits;
        let all = hits + s.read_partial + s.read_misses + s.write_misses + s.direct;
        vec![
            blocks("cached_blocks", u64::from(self.dir.len()), "blocks in the cache"),
            blocks(
                "dirty_blocks",
                u64::from(self.dir.dirty_len()),
                "blocks that are not yet durable on the disk",
            ),
            blocks("cache_slots", u64::from(self.dir.capacity()), "blocks that the cache can hold"),
            count("active_buckets", u64::from(self.dir.active()), "regions of 1 MiB with cached blocks"),
            blocks("read_hits", s.read_hits, "blocks read from the cache"),
            blocks("read_partial", s.read_partial, "blocks read from cache and disk"),
            blocks("read_misses", s.read_misses, "blocks read from the disk"),
            blocks("write_hits", s.write_hits, "blocks written over cached ones"),
            blocks("write_misses", s.write_misses, "blocks inserted into the cache by a write"),
            blocks("direct_writes", s.direct, "blocks written directly to the disk"),
            Metric {
                name: "hit_ratio",
                value: per(hits, all),
                unit: "",
                help: "share of block accesses that the cache served",
            },
            count("destages", s.destages, "victim selections"),
            blocks("destaged", s.destaged, "dirty blocks evicted"),
            blocks("dropped", s.dropped, "clean blocks evicted"),
            blocks("cleaned", s.cleaned, "dirty blocks written back and kept"),
            Metric {
                name: "destage_blocks",
                value: per(s.destaged + s.cleaned, s.destage_writes),
                unit: "blocks",
                help: "mean number of blocks in a write of destaged blocks",
            },
            count("destage_writes", s.destage_writes, "writes to the disk of destaged blocks"),
            count("room_waits", s.waits, "writes that waited for a slot"),
            count("disk_flushes", s.disk_flushes, "flushes of the disk by the cache"),
            blocks("set_aside", s.set_aside, "damaged blocks that could not be written back"),
            count("disk_failures", self.disk_health.failures, "failures of the disk"),
            Metric {
                name: "degraded",
                value: f64::from(u8::from(self.disk_health.failure.is_some())),
                unit: "",
                help: "1 while the disk fails and dirty blocks are kept",
            },
        ]
    }

    /// Returns the victim selections by reason, for a policy that has such reasons.
    fn reasons(&self) -> Vec<Metric> {
        let Some(r) = self.policy.reasons() else { return Vec::new() };
        let metric = |name, value, help| Metric { name, value: to_f64(value), unit: "", help };
        vec![
            metric("evictions_thresholds", r.thresholds, "buckets evicted above both thresholds"),
            metric(
                "evictions_lowered_thresholds",
                r.lowered_thresholds,
                "buckets evicted above both thresholds after the search had lowered them",
            ),
            metric("evictions_outdated", r.outdated, "buckets evicted because they were outdated"),
            metric("evictions_end_of_scan", r.end_of_scan, "buckets evicted at the end of a search"),
        ]
    }

    /// Returns the number of cached blocks for each slice of the disk. All other blocks are on the
    /// disk only.
    fn residence(&self) -> Vec<Residence> {
        let buckets = self.dir.buckets();
        let slices = SLICES.min(buckets);
        let mut all = vec![Residence::default(); to_usize(slices)];
        let of =
            |bucket: BucketId| size_in_memory(u64::from(bucket) * u64::from(slices) / u64::from(buckets));
        let blocks = self.dir.disk_blocks();
        for i in BucketId::first(buckets) {
            let here = (blocks - i.block(0).0).min(super::directory::BUCKET_BLOCKS);
            let cached = u32::from(self.dir.bucket(i).count);
            let slice = &mut all[of(i)];
            slice.pcm_cache += cached;
            slice.disk += here - cached;
        }
        all
    }
}
