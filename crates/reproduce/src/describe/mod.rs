//! Descriptions of experiments: the format of the files in `experiments/`.
//!
//! A file is one figure or table of a paper. It contains the paper's claims, under stable IDs, and
//! one table that describes the measurement: `[figure]` (a metric over a sweep of runs, see
//! [`ParameterSweep`]), `[caching]` (over a study of caches, see [`Study`]), `[comparison]` (of
//! variants of a stack, see [`Comparison`]), `[wear]`, `[recovery]`, `[theory]`, `[latency]`,
//! `[software]`, or `[missing]` (the reason why it cannot be measured). `docs/guide/reproduce.md` is
//! the manual.

mod claim;
mod comparison;
mod study;
mod sweep;

pub use claim::{Band, Claim, Direction, TrendDirection};
pub use comparison::{
    Axis, Check, Comparison, ComparisonPlan, CrossingPlan, MetricColumn, MetricExpr, PackedSpace,
    ReferencePrice, RunView, TablePlan, Variant,
};
pub use study::{
    CacheSize, CachingPlan, HostLoop, JudgedChange, PolicySpec, Study, StudyQuick, View, WearPlan,
};
pub use sweep::{Column, DeviceScale, HintHandling, ParameterSweep, QuickPlan, SweepState, WorkloadSpec};

use crate::theory::{InitialState, Policy};
use crate::{Error, Result};
use frit_core::size;
use serde::Deserialize;

/// An experiment: one figure or table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// ID, such as `hfsl.f15`.
    pub id: String,
    /// Short description of the measured quantity.
    pub title: String,
    /// Publication.
    pub source: String,
    /// Assumptions where the paper leaves details open.
    #[serde(default)]
    pub readings: Vec<String>,
    /// Claims of the paper.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
    /// Metric over a sweep.
    pub figure: Option<Figure>,
    /// Metrics over a study of caches.
    pub caching: Option<CachingPlan>,
    /// Tables over a comparison.
    pub comparison: Option<ComparisonPlan>,
    /// Wear of a cache's PCM.
    pub wear: Option<WearPlan>,
    /// Recovery of a cache after a crash.
    pub recovery: Option<RecoveryPlan>,
    /// Garbage collection compared with theory.
    pub theory: Option<TheoryPlan>,
    /// Latencies that are an input.
    pub latency: Option<LatencyPlan>,
    /// Software time compared with the kernel's.
    pub software: Option<SoftwarePlan>,
    /// Reason why it cannot be measured.
    pub missing: Option<NotMeasurable>,
}

/// A metric over a sweep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name of the sweep.
    pub sweep: String,
    /// Name of the metric: see [`crate::sweep::RunMetrics`].
    pub metric: String,
    /// Baseline column, to which the others are relative; absent: absolute values.
    pub by: Option<String>,
    /// States of the sweep in the output; absent: all.
    pub states: Option<Vec<String>>,
}

/// Crashes of a volume with a cache.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryPlan {
    /// Stack of PCM and a disk.
    pub stack: String,
    /// Sizes of the PCM.
    pub caches: Vec<CacheBytes>,
    /// Share of the cache that is dirty at the crash.
    pub dirty: f64,
}

/// A cache size.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub struct CacheBytes {
    /// Size in bytes.
    #[serde(deserialize_with = "size::deserialize")]
    pub bytes: u64,
}

/// Runs of [`crate::theory`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TheoryPlan {
    /// Garbage collection policy.
    pub policy: Policy,
    /// Number of pages in a block.
    pub pages_per_block: u32,
    /// Values of the over-provisioning T/U − 1.
    pub over_provisioning: Vec<f64>,
    /// Initial states of runs.
    pub starts: Vec<InitialState>,
    /// Numbers of blocks and units.
    pub shapes: Vec<DeviceShape>,
    /// Maximum relative difference from theory that counts as agreement.
    pub within: f64,
}

/// Dimensions of a device of [`TheoryPlan`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceShape {
    /// Number of blocks of all units.
    pub blocks: u32,
    /// Number of units.
    pub units: u32,
}

/// Published latencies that a profile takes as its input.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyPlan {
    /// Name of the profile.
    pub profile: String,
    /// Published latencies.
    #[serde(rename = "point")]
    pub points: Vec<LatencyPoint>,
}

/// One published latency.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyPoint {
    /// The command.
    pub op: frit_core::Op,
    /// Size in bytes.
    pub bytes: u32,
    /// Latency in microseconds.
    pub us: f64,
    /// `true` if the published value is a lower bound.
    #[serde(default)]
    pub or_more: bool,
}

/// Measurement of the software time of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwarePlan {
    /// Stack whose path is measured.
    pub stack: String,
    /// Overrides of the stack.
    #[serde(default)]
    pub set: Vec<String>,
    /// Size of a request, in bytes.
    #[serde(deserialize_with = "size::deserialize")]
    pub request: u64,
    /// Size of the address range of requests, in bytes, on both paths.
    #[serde(deserialize_with = "size::deserialize")]
    pub span: u64,
    /// Number of reads, and of writes, in a round.
    pub requests: u32,
    /// Number of rounds; the median is reported.
    pub rounds: u32,
}

/// A result that cannot be measured here.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotMeasurable {
    /// The reason.
    pub why: String,
}

impl Experiment {
    /// Parses a description. Errors name it `name`.
    ///
    /// # Errors
    /// The description is invalid; the error contains the line.
    pub fn parse(name: &str, text: &str) -> Result<Experiment> {
        let bad = |why: String| Error::Description { name: name.into(), why };
        let e: Experiment = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        let ways = [
            e.figure.is_some(),
            e.caching.is_some(),
            e.comparison.is_some(),
            e.wear.is_some(),
            e.recovery.is_some(),
            e.theory.is_some(),
            e.latency.is_some(),
            e.software.is_some(),
            e.missing.is_some(),
        ];
        if ways.iter().filter(|w| **w).count() != 1 {
            let why = "needs exactly one of the tables [figure], [caching], [comparison], [wear], [recovery], [theory], [latency], [software], [missing]";
            return Err(bad(why.into()));
        }
        if e.claims.is_empty() {
            return Err(bad("claims nothing: it needs at least one [[claim]]".into()));
        }
        let under = |c: &&Claim| c.id != e.id && !c.id.starts_with(&format!("{}.", e.id));
        if let Some(c) = e.claims.iter().find(under) {
            return Err(bad(format!("the claim '{}' is not under its id '{}'", c.id, e.id)));
        }
        Ok(e)
    }
}
