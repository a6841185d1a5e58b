//! The observable state of a running stack: one view that policies, reports and report pages read.

use crate::{Counts, MediumKind, Traffic, UnitId};
use serde::Serialize;
use std::ops::Range;

/// Metrics and state of all parts of a stack.
#[derive(Clone, Default, Debug)]
pub struct StackView {
    /// The media, one entry for each.
    pub media: Vec<MediumView>,
    /// The layers, one entry for each, top first.
    pub layers: Vec<LayerView>,
}

impl StackView {
    /// Returns the first medium of a kind.
    #[must_use]
    pub fn medium(&self, kind: MediumKind) -> Option<&MediumView> {
        self.media.iter().find(|m| m.kind == kind)
    }

    /// Returns the sum of the counts of all media.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        for m in &self.media {
            all.merge(&m.counts);
        }
        all
    }

    /// Names a layer whose view, with those of all that is below it, begins at these numbers of
    /// media and layers.
    pub fn name_layer(&mut self, name: &str, media: usize, layer: usize) {
        for m in self.media[media..].iter_mut().filter(|m| m.layer.is_empty()) {
            name.clone_into(&mut m.layer);
        }
        let Some((own, below)) = self.layers[layer..].split_first_mut() else { return };
        name.clone_into(&mut own.name);
        for l in below.iter_mut().filter(|l| l.upper.is_empty()) {
            name.clone_into(&mut l.upper);
        }
    }

    /// Returns a metric of a layer by name.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.layers.iter().flat_map(|l| &l.metrics).find(|m| m.name == name).map(|m| m.value)
    }
}

/// View of a medium: geometry, wear, counts.
#[derive(Clone, Debug)]
pub struct MediumView {
    /// Name in the stack.
    pub name: String,
    /// Name of the layer that uses it, in a stack of several layers.
    pub layer: String,
    /// Kind of the medium.
    pub kind: MediumKind,
    /// Capacity, in bytes.
    pub bytes: u64,
    /// Number of channels.
    pub channels: u32,
    /// Number of its first unit.
    pub first_unit: UnitId,
    /// Number of its units.
    pub units: u32,
    /// Geometry by name, in the medium's own terms.
    pub geometry: Vec<(&'static str, u64)>,
    /// Commands by operation and cause.
    pub counts: Counts,
    /// Wear of its cells.
    pub wear: Wear,
}

/// Wear of a medium.
#[derive(Clone, Default, Debug)]
pub struct Wear {
    /// Cell group that one entry of `cycles` stands for ("block", "line of 512 B").
    pub per: String,
    /// Erases or writes, one entry for each cell group.
    pub cycles: Vec<u32>,
    /// Number of cycles that a cell group is specified for.
    pub limit: u64,
    /// Number of blocks of NAND out of use. Of other media, number of lines with more than `limit`
    /// cycles: failures of worn lines are not modelled, so they stay in use.
    pub bad: u32,
    /// Areas of the layer on the medium, if each stays in its place.
    pub areas: Vec<WearArea>,
    /// Wear of blocks of NAND while they were used with one bit a cell, which is a part of `cycles`.
    pub one_bit: Option<OneBitWear>,
}

/// Wear of blocks of NAND while they were used with one bit a cell.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OneBitWear {
    /// Erases after such a use, one entry for each block.
    pub cycles: Vec<u32>,
    /// Number of such cycles that a block is specified for.
    pub limit: u64,
}

/// Area of a medium that a layer uses for one purpose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WearArea {
    /// Name of the partition.
    pub name: &'static str,
    /// Address of its first byte.
    pub at: u64,
    /// Size, in bytes.
    pub bytes: u64,
    /// Entries of [`Wear::cycles`] that lie in it, completely or in part.
    pub groups: Range<usize>,
}

/// Mean, extremes and standard deviation of wear.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct WearSummary {
    /// Mean number of cycles.
    pub mean: f64,
    /// Lowest number of cycles.
    pub min: u32,
    /// Highest number of cycles.
    pub max: u32,
    /// Standard deviation.
    pub deviation: f64,
}

impl Wear {
    /// Returns mean, extremes and standard deviation.
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

/// View of a layer: metrics, and the residence of data.
#[derive(Clone, Default, Debug)]
pub struct LayerView {
    /// Name of the layer.
    pub name: String,
    /// Name of the layer above it; empty for the top layer.
    pub upper: String,
    /// Number of the layer in its stack: 0 for the top layer, as in [`LinkRequest`](crate::LinkRequest).
    pub number: u16,
    /// Metrics.
    pub metrics: Vec<Metric>,
    /// Number of pages on each medium, for equal slices of the address space.
    pub residence: Vec<Residence>,
    /// Requests of the layer above; none for the top layer, which serves the client.
    pub traffic: Option<Box<Traffic>>,
}

/// One metric, with the name that reports, JSON and exported metrics use.
#[derive(Clone, Debug, Serialize)]
pub struct Metric {
    /// Name, in snake case.
    pub name: &'static str,
    /// Value.
    pub value: f64,
    /// Unit.
    pub unit: &'static str,
    /// Description of the counted quantity.
    pub help: &'static str,
}

impl Metric {
    /// Creates a metric of a number of things.
    #[must_use]
    pub fn count(name: &'static str, value: u64, unit: &'static str, help: &'static str) -> Metric {
        Metric { name, value: crate::convert::to_f64(value), unit, help }
    }
}

/// Number of pages of one slice of the address space, by medium.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Residence {
    /// Pages never written, or discarded.
    pub unmapped: u32,
    /// Pages in NAND.
    pub nand: u32,
    /// Pages in PCM as storage.
    pub pcm_level: u32,
    /// Pages in PCM as a cache.
    pub pcm_cache: u32,
    /// Pages on a disk only.
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
