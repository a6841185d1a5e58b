//! What can be seen of a running stack: one view, from which policies decide, reports count and
//! pages draw.

use crate::{Counts, MediumKind, UnitId};
use serde::Serialize;

/// Everything that the parts of a stack show of themselves.
#[derive(Clone, Default, Debug)]
pub struct Visible {
    /// One entry a medium.
    pub media: Vec<MediumView>,
    /// One entry a layer, top first.
    pub layers: Vec<LayerView>,
}

impl Visible {
    /// The first medium of a kind.
    #[must_use]
    pub fn medium(&self, kind: MediumKind) -> Option<&MediumView> {
        self.media.iter().find(|m| m.kind == kind)
    }

    /// Counts of all media together.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        for m in &self.media {
            all.merge(&m.counts);
        }
        all
    }

    /// A layer's figure by name.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.layers.iter().flat_map(|l| &l.metrics).find(|m| m.name == name).map(|m| m.value)
    }
}

/// What a medium shows: geometry, wear, counts.
#[derive(Clone, Debug)]
pub struct MediumView {
    /// Its name in the stack.
    pub name: String,
    /// What it is.
    pub kind: MediumKind,
    /// Size, in bytes.
    pub bytes: u64,
    /// Channels.
    pub channels: u32,
    /// The first of its units.
    pub first_unit: UnitId,
    /// How many units it has.
    pub units: u32,
    /// Geometry by name, in the medium's own terms.
    pub geometry: Vec<(&'static str, u64)>,
    /// Commands by operation and cause.
    pub counts: Counts,
    /// Wear of its cells.
    pub wear: Wear,
}

/// How worn a medium is.
#[derive(Clone, Default, Debug)]
pub struct Wear {
    /// What one entry of `cycles` stands for ("block", "line of 512 B").
    pub per: String,
    /// Erases or writes, one entry a cell group.
    pub cycles: Vec<u32>,
    /// Cycles that a cell group is specified for.
    pub limit: u64,
    /// Cell groups out of use.
    pub bad: u32,
}

/// Mean, extremes and spread of wear.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct WearSummary {
    /// Mean cycles.
    pub mean: f64,
    /// Fewest cycles.
    pub min: u32,
    /// Most cycles.
    pub max: u32,
    /// Standard deviation.
    pub deviation: f64,
}

impl Wear {
    /// Mean, extremes and spread.
    #[must_use]
    pub fn summary(&self) -> WearSummary {
        if self.cycles.is_empty() {
            return WearSummary::default();
        }
        let n = self.cycles.len() as f64;
        let mean = self.cycles.iter().map(|&c| f64::from(c)).sum::<f64>() / n;
        let var = self.cycles.iter().map(|&c| (f64::from(c) - mean).powi(2)).sum::<f64>() / n;
        WearSummary {
            mean,
            min: self.cycles.iter().copied().min().unwrap_or(0),
            max: self.cycles.iter().copied().max().unwrap_or(0),
            deviation: var.sqrt(),
        }
    }
}

/// What a layer shows: figures, and where data lies.
#[derive(Clone, Default, Debug)]
pub struct LayerView {
    /// Its name.
    pub name: String,
    /// Figures.
    pub metrics: Vec<Metric>,
    /// Where data lies over the address space, in equal slices.
    pub residence: Vec<Residence>,
}

/// One figure, as reports, JSON and metrics name it.
#[derive(Clone, Debug, Serialize)]
pub struct Metric {
    /// Name, in snake case.
    pub name: &'static str,
    /// Value.
    pub value: f64,
    /// Unit.
    pub unit: &'static str,
    /// What it counts.
    pub help: &'static str,
}

/// Pages of one slice of the address space, by where they lie.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Residence {
    /// Never written, or discarded.
    pub unmapped: u32,
    /// In NAND.
    pub nand: u32,
    /// In PCM as storage.
    pub pcm_level: u32,
    /// In PCM as a cache.
    pub pcm_cache: u32,
    /// On a disk alone.
    pub disk: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_summed_up() {
        let w = Wear { cycles: vec![2, 4, 4, 6], ..Wear::default() };
        let s = w.summary();
        assert_eq!((s.mean, s.min, s.max), (4.0, 2, 6));
        assert!((s.deviation - 2f64.sqrt()).abs() < 1e-12);
        assert_eq!(Wear::default().summary(), WearSummary::default());
    }
}
