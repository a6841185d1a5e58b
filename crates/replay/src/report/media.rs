//! The media of a report: what was done to them, and how they wear.

use super::DiskReport;
use frit_core::visible::{MediumView, Wear, WearSummary};
use frit_core::{Count, Counts, MediumKind, Op};
use serde::Serialize;
use std::collections::BTreeMap;
use strum::IntoEnumIterator;

/// Cells of a wear map at most.
const MAP: usize = 1024;
/// Buckets of a wear histogram at most.
const BUCKETS: u32 = 32;

/// One medium.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MediumReport {
    /// Its name in the stack.
    pub name: String,
    /// What it is.
    pub kind: MediumKind,
    /// Size, in bytes.
    pub bytes: u64,
    /// Geometry by name, in the medium's own terms.
    pub geometry: BTreeMap<&'static str, u64>,
    /// Reads.
    pub reads: Count,
    /// Writes: NAND programs and copybacks, PCM writes of every kind.
    pub writes: Count,
    /// Erases of NAND blocks, refreshes of PCM blocks.
    pub erases: u64,
    /// How cells wore; without groups where nothing does (DRAM, disks).
    pub wear: WearReport,
    /// For each channel the part of the measured time in which it carried something, 0 to 1.
    pub channel_busy: Vec<f64>,
    /// For each unit the part of the measured time in which it worked, 0 to 1.
    pub unit_busy: Vec<f64>,
    /// What its arm did, if it is a disk.
    pub disk: Option<DiskReport>,
}

impl MediumReport {
    /// Whether it has cells that wear.
    #[must_use]
    pub fn wears(&self) -> bool {
        !self.wear.map.mean.is_empty()
    }
}

/// How the cells of a medium wore.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WearReport {
    /// What a cell group is ("block", "line of 512 B").
    pub per: String,
    /// Cycles that a group is specified for.
    pub limit: u64,
    /// Groups out of use.
    pub bad: u32,
    /// Cycles in the measured part.
    pub run: WearSummary,
    /// Cycles since the medium was new, warm-up included.
    pub total: WearSummary,
    /// How many groups took how many cycles in the measured part.
    pub histogram: Vec<WearBucket>,
    /// Where, in order of address.
    pub map: WearMap,
}

/// Groups by cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct WearBucket {
    /// The fewest cycles.
    pub from: u32,
    /// The most cycles.
    pub to: u32,
    /// How many groups.
    pub groups: u64,
}

/// Wear by address, at most 1024 places.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct WearMap {
    /// Groups of one place (the last may have fewer).
    pub groups: u32,
    /// Mean cycles of each place in the measured part.
    pub mean: Vec<f32>,
    /// Most cycles of a group of each place in the measured part.
    pub max: Vec<u32>,
}

/// What a medium did between two views. What the engine knows (busy shares, the arm) is put in by the caller.
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

fn wear(before: &Wear, after: &Wear) -> WearReport {
    let old = before.cycles.iter().copied().chain(std::iter::repeat(0));
    let cycles: Vec<u32> = after.cycles.iter().zip(old).map(|(&a, b)| a.saturating_sub(b)).collect();
    let run = Wear { cycles, ..Wear::default() };
    WearReport {
        per: after.per.clone(),
        limit: after.limit,
        bad: after.bad,
        run: run.summary(),
        total: after.summary(),
        histogram: histogram(&run.cycles),
        map: map(&run.cycles),
    }
}

fn histogram(cycles: &[u32]) -> Vec<WearBucket> {
    let (Some(&min), Some(&max)) = (cycles.iter().min(), cycles.iter().max()) else { return Vec::new() };
    let width = (max - min) / BUCKETS + 1;
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
    let groups = cycles.len().div_ceil(MAP).max(1);
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
            assert!(m.mean.len() <= MAP && m.mean.len() == m.max.len());
            assert_eq!(m.max.iter().max(), cycles.iter().max());
        }
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
