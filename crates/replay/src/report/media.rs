//! Media in a report: commands and wear.

use super::DiskReport;
use frit_core::visible::{MediumView, Wear, WearArea, WearSummary};
use frit_core::{Count, Counts, MediumKind, Op};
use serde::Serialize;
use std::collections::BTreeMap;
use strum::IntoEnumIterator;

/// Maximum number of cells of a wear map.
const WEAR_CELLS_MAX: usize = 1024;
/// Maximum number of buckets of a wear histogram.
const WEAR_BUCKETS_MAX: u32 = 32;

/// Report of a medium.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MediumReport {
    /// Name of the medium in the stack.
    pub name: String,
    /// Kind of the medium.
    pub kind: MediumKind,
    /// Size, in bytes.
    pub bytes: u64,
    /// Geometry by name, in the medium's own terms.
    pub geometry: BTreeMap<&'static str, u64>,
    /// Count of reads.
    pub reads: Count,
    /// Count of writes: NAND programs and copybacks, PCM writes of every kind.
    pub writes: Count,
    /// Number of erases of NAND blocks, or refreshes of PCM blocks.
    pub erases: u64,
    /// Wear of the cells; without groups for media that do not wear (DRAM, disks).
    pub wear: WearReport,
    /// Share of the measured time in which each channel was busy, 0 to 1.
    pub channel_busy: Vec<f64>,
    /// Share of the measured time in which each unit was busy, 0 to 1.
    pub unit_busy: Vec<f64>,
    /// Metrics of the disk, if the medium is one.
    pub disk: Option<DiskReport>,
}

impl MediumReport {
    /// Returns `true` if the medium has cells that wear.
    #[must_use]
    pub fn wears(&self) -> bool {
        !self.wear.map.mean.is_empty()
    }
}

/// Wear of the cells of a medium.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WearReport {
    /// Unit of wear: the kind of cell group ("block", "line of 512 B").
    pub per: String,
    /// Number of cycles that a group is specified for.
    pub limit: u64,
    /// Number of blocks of NAND that are out of use, or of lines written beyond their endurance,
    /// which stay in use.
    pub bad: u32,
    /// Cycles in the measured part.
    pub run: WearSummary,
    /// Cycles since the medium was new, warm-up included.
    pub total: WearSummary,
    /// Histogram of the groups by cycles in the measured part.
    pub histogram: Vec<WearBucket>,
    /// Cycles in order of address.
    pub map: WearMap,
    /// Cycles of the areas of the layer, in order of address. Empty if the layer has none, or if
    /// wear leveling moves them.
    pub areas: Vec<WearAreaReport>,
    /// Cycles with one bit a cell, of NAND that has such blocks. They are a part of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_bit: Option<OneBitWearReport>,
}

/// Wear of blocks of NAND while they were used with one bit a cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OneBitWearReport {
    /// Number of such cycles that a block is specified for.
    pub limit: u64,
    /// Cycles in the measured part.
    pub run: WearSummary,
    /// Cycles since the medium was new, warm-up included.
    pub total: WearSummary,
}

/// Wear of an area that the layer uses for one purpose, such as its map.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WearAreaReport {
    /// Name of the area.
    pub name: &'static str,
    /// Address of its first byte.
    pub at: u64,
    /// Size, in bytes.
    pub bytes: u64,
    /// Mean cycles of its groups in the measured part.
    pub mean: f64,
    /// Maximum cycles of a group in the measured part.
    pub max: u32,
}

/// A bucket of the wear histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct WearBucket {
    /// Minimum number of cycles.
    pub from: u32,
    /// Maximum number of cycles.
    pub to: u32,
    /// Number of groups.
    pub groups: u64,
}

/// Wear by address, in at most 1024 cells.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct WearMap {
    /// Number of groups per cell (the last cell may have fewer).
    pub groups: u32,
    /// Mean cycles of each cell in the measured part.
    pub mean: Vec<f32>,
    /// Maximum cycles of a group in each cell in the measured part.
    pub max: Vec<u32>,
}

/// Returns the report of a medium for the time between two views. The caller adds what the engine
/// knows (busy shares, metrics of the disk).
pub(crate) fn medium(before: &MediumView, after: &MediumView) -> (MediumReport, Counts) {
    let counts = after.counts.since(&before.counts);
    let sum = |which: fn(Op) -> bool| {
        Op::iter().filter(|op| which(*op)).map(|op| counts.of(op)).fold(Count::default(), |a, c| Count {
            commands: a.commands + c.commands,
            bytes: a.bytes + c.bytes,
        })
    };
    let report = MediumReport {
        name: after.name.clone(),
        kind: after.kind,
        bytes: after.bytes,
        geometry: after.geometry.iter().copied().collect(),
        reads: sum(Op::is_read),
        writes: sum(Op::is_write),
        erases: sum(|op| matches!(op, Op::NandErase | Op::PcmRefresh)).commands,
        wear: wear(&before.wear, &after.wear),
        channel_busy: Vec::new(),
        unit_busy: Vec::new(),
        disk: None,
    };
    (report, counts)
}

/// Returns the cycles of each group between two views.
fn cycles_since(before: &[u32], after: &[u32]) -> Vec<u32> {
    let old = before.iter().copied().chain(std::iter::repeat(0));
    after.iter().zip(old).map(|(&a, b)| a.saturating_sub(b)).collect()
}

fn one_bit(before: &Wear, after: &Wear) -> Option<OneBitWearReport> {
    let after = after.one_bit.as_ref()?;
    let before = before.one_bit.as_ref().map_or(&[][..], |wear| &wear.cycles);
    let summary = |cycles: Vec<u32>| Wear { cycles, ..Wear::default() }.summary();
    let (run, total) = (summary(cycles_since(before, &after.cycles)), summary(after.cycles.clone()));
    Some(OneBitWearReport { limit: after.limit, run, total })
}

fn wear(before: &Wear, after: &Wear) -> WearReport {
    let cycles = cycles_since(&before.cycles, &after.cycles);
    let run = Wear { cycles, ..Wear::default() };
    WearReport {
        per: after.per.clone(),
        limit: after.limit,
        bad: after.bad,
        run: run.summary(),
        total: after.summary(),
        histogram: histogram(&run.cycles),
        map: map(&run.cycles),
        areas: after.areas.iter().map(|a| area(a, &run.cycles)).collect(),
        one_bit: one_bit(before, after),
    }
}

fn area(area: &WearArea, cycles: &[u32]) -> WearAreaReport {
    let of_area = cycles.get(area.groups.clone()).unwrap_or_default();
    let sum: u64 = of_area.iter().map(|&c| u64::from(c)).sum();
    WearAreaReport {
        name: area.name,
        at: area.at,
        bytes: area.bytes,
        mean: sum as f64 / of_area.len().max(1) as f64,
        max: of_area.iter().copied().max().unwrap_or(0),
    }
}

fn histogram(cycles: &[u32]) -> Vec<WearBucket> {
    let (Some(&min), Some(&max)) = (cycles.iter().min(), cycles.iter().max()) else { return Vec::new() };
    let width = (max - min) / WEAR_BUCKETS_MAX + 1;
    let n = ((max - min) / width + 1) as usize;
    let mut groups = vec![0u64; n];
    for c in cycles {
        groups[((c - min) / width) as usize] += 1;
    }
    let bucket = |(i, groups): (usize, u64)| {
        let from = min + i as u32 * width;
        WearBucket { from, to: from.saturating_add(width - 1), groups }
    };
    groups.into_iter().enumerate().map(bucket).collect()
}

fn map(cycles: &[u32]) -> WearMap {
    let groups = cycles.len().div_ceil(WEAR_CELLS_MAX).max(1);
    let mean =
        |c: &[u32]| (c.iter().map(|&x| f64::from(x)).sum::<f64>() / c.len() as f64 * 1e3).round() / 1e3;
    WearMap {
        groups: groups as u32,
        mean: cycles.chunks(groups).map(|c| mean(c) as f32).collect(),
        max: cycles.chunks(groups).map(|c| c.iter().copied().max().unwrap_or(0)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_and_maps_lose_no_group() {
        for n in [0, 1, 5, 1024, 1025, 100_000u32] {
            let cycles: Vec<u32> = (0..n).map(|i| i % 977).collect();
            let h = histogram(&cycles);
            assert_eq!(h.iter().map(|b| b.groups).sum::<u64>(), u64::from(n));
            assert!(h.len() <= 33 && h.windows(2).all(|w| w[0].to + 1 == w[1].from));
            let m = map(&cycles);
            assert!(m.mean.len() <= WEAR_CELLS_MAX && m.mean.len() == m.max.len());
            assert_eq!(m.max.iter().max(), cycles.iter().max());
        }
    }

    #[test]
    fn areas_have_the_cycles_of_their_groups() {
        let a = |name, at, groups| WearArea { name, at, bytes: 100, groups };
        let areas = vec![a("map", 0, 0..2), a("data", 128, 2..4)];
        let after = Wear { cycles: vec![2, 4, 6, 9], areas, ..Wear::default() };
        let before = Wear { cycles: vec![1; 4], ..Wear::default() };
        let found: Vec<_> = wear(&before, &after).areas.iter().map(|a| (a.name, a.mean, a.max)).collect();
        assert_eq!(found, [("map", 2.0, 3), ("data", 6.5, 8)]);
    }

    #[test]
    fn wear_of_the_run_is_the_difference() {
        let before = Wear { cycles: vec![1, 2, 3], ..Wear::default() };
        let after = Wear { cycles: vec![2, 2, 6], ..Wear::default() };
        let w = wear(&before, &after);
        assert_eq!((w.run.mean, w.run.max, w.total.max), (4.0 / 3.0, 3, 6));
        assert_eq!(w.map.max, [1, 0, 3]);
    }
}
