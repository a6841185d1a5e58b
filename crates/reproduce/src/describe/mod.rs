//! Experiments as data: the files in `experiments/`.
//!
//! A file is one figure or table of a paper. It says what the paper claims, under ids that stay, and has one table that
//! says how it is measured: `[figure]` (a figure over a sweep of runs, see [`Sweep`]), `[caching]` (over a study of
//! caches, see [`Study`]), `[comparison]` (of variants of a stack, see [`Comparison`]), `[wear]`, `[recovery]`, `[theory]`, `[latency]`, `[software]`, or `[missing]` (why it cannot be measured). `docs/reproduce.md` is the manual.

mod claim;
mod comparison;
mod study;
mod sweep;

pub use claim::{Band, Claim, Direction, Goes};
pub use comparison::{
    Axis, Check, Comparison, ComparisonPlan, CrossingPlan, FigureColumn, Mark, PackedSpace, RunView,
    TablePlan, Value, Variant,
};
pub use study::{CacheSize, CachingPlan, HostLoop, Judged, PolicySpec, Study, StudyQuick, View, WearPlan};
pub use sweep::{Column, Hints, Quick, Scale, State, Sweep, WorkloadSpec};

use crate::theory::{Policy, Start};
use crate::{Error, Result};
use frit_core::size;
use serde::Deserialize;

/// One figure or table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its id, such as `hfsl.f15`.
    pub id: String,
    /// What is counted, in a few words.
    pub title: String,
    /// Where it is published.
    pub source: String,
    /// How what the paper leaves open is taken.
    #[serde(default)]
    pub readings: Vec<String>,
    /// What is claimed.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
    /// A figure over a sweep.
    pub figure: Option<Figure>,
    /// A figure over a study of caches.
    pub caching: Option<CachingPlan>,
    /// Tables over a comparison.
    pub comparison: Option<ComparisonPlan>,
    /// Wear of a cache's PCM.
    pub wear: Option<WearPlan>,
    /// Recovery of a cache after a crash.
    pub recovery: Option<RecoveryPlan>,
    /// Cleaning against theory.
    pub theory: Option<TheoryPlan>,
    /// Latencies that are an input.
    pub latency: Option<LatencyPlan>,
    /// Software time, against the kernel's.
    pub software: Option<SoftwarePlan>,
    /// Why it cannot be measured.
    pub missing: Option<Missing>,
}

/// A figure over a sweep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The sweep, by name.
    pub sweep: String,
    /// What is shown: see [`crate::sweep::Figures`].
    pub metric: String,
    /// The column that the others are shown relative to; absent: as counted.
    pub by: Option<String>,
    /// The states of the sweep that are shown; absent: all.
    pub states: Option<Vec<String>>,
}

/// Crashes of a volume with a cache.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryPlan {
    /// The stack: PCM and a disk.
    pub stack: String,
    /// Sizes of the PCM.
    pub caches: Vec<CacheBytes>,
    /// The part of the cache that is dirty when the program ends.
    pub dirty: f64,
}

/// A size.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub struct CacheBytes {
    /// Bytes.
    #[serde(deserialize_with = "size::deserialize")]
    pub bytes: u64,
}

/// Runs of [`crate::theory`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TheoryPlan {
    /// Cleaning.
    pub policy: Policy,
    /// Pages in a block.
    pub pages_per_block: u32,
    /// T/U − 1.
    pub over_provisioning: Vec<f64>,
    /// How runs start.
    pub starts: Vec<Start>,
    /// Blocks in all, and units that they are divided over.
    pub shapes: Vec<Shape>,
    /// The distance that counts as agreement, as a share of theory.
    pub within: f64,
}

/// A device of [`TheoryPlan`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Blocks of all units.
    pub blocks: u32,
    /// Units.
    pub units: u32,
}

/// Published latencies that a profile takes as its input.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyPlan {
    /// The profile.
    pub profile: String,
    /// What is published.
    #[serde(rename = "point")]
    pub points: Vec<LatencyPoint>,
}

/// One published latency.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyPoint {
    /// The command.
    pub op: frit_core::Op,
    /// Bytes that it moves.
    pub bytes: u32,
    /// Microseconds.
    pub us: f64,
    /// Whether the paper says that it takes more than that.
    #[serde(default)]
    pub or_more: bool,
}

/// Software time of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwarePlan {
    /// The stack whose path is measured.
    pub stack: String,
    /// Overrides of it.
    #[serde(default)]
    pub set: Vec<String>,
    /// Bytes of a request.
    #[serde(deserialize_with = "size::deserialize")]
    pub request: u64,
    /// Bytes that requests go to, on both sides.
    #[serde(deserialize_with = "size::deserialize")]
    pub span: u64,
    /// Requests of a round, reads and writes each.
    pub requests: u32,
    /// Rounds; the median counts.
    pub rounds: u32,
}

/// What cannot be measured here.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// Why.
    pub why: String,
}

impl Experiment {
    /// Reads a description; `name` is what errors call it.
    ///
    /// # Errors
    /// What is no description, with the line.
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
