//! Results: published values and measured ones, for people and for programs.

mod caching;
mod caching_text;
mod comparison;
mod comparison_text;
mod format;
mod plot;
mod recovery;
mod text;
mod wear;

pub use caching::{CachedWorkload, CachingOutcome, CachingRow, CachingView, MeanChange, MetricChange};
pub use comparison::{
    BreakEven, CheckVerdict, ComparedRow, ComparedTable, ComparisonOutcome, Crossing, CrossingLine,
    CrossingPoint,
};
pub(crate) use format::count;
pub use plot::plots;
pub use recovery::{RecoveryOutcome, RecoveryRow};
pub use text::text;
pub use wear::{WearOutcome, WearRow};

use crate::sweep::WriteCounts;
use crate::theory::CaseResult;
use frit_trace::identity::WorkloadKind;
use serde::Serialize;

/// Version of the structure that `--json` writes.
pub const SCHEMA: u32 = 1;

/// Results of all requested experiments.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Reproduction {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program and its version.
    pub frit: frit_replay::report::Program,
    /// `true` for a quick run with reduced workloads.
    pub quick: bool,
    /// Seed given by the user; `None`: the sweeps' own seeds.
    pub seed: Option<u64>,
    /// Missing workloads, with the reasons.
    pub missing: Vec<MissingWorkload>,
    /// Workloads that were run.
    pub workloads: Vec<WorkloadOutcome>,
    /// The experiments.
    pub experiments: Vec<ExperimentOutcome>,
}

/// A missing workload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MissingWorkload {
    /// Its name.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// A workload that was run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WorkloadOutcome {
    /// Its name.
    pub name: String,
    /// Description.
    pub about: String,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// The workload of the paper that it stands for.
    pub stands_for: Option<String>,
    /// The file's hash, or the generator's whole specification.
    pub identity: String,
    /// Number of requests.
    pub requests: u64,
    /// Share of writes among reads and writes.
    pub write_ratio: f64,
    /// Mean size of a write, in bytes.
    pub mean_write_bytes: f64,
    /// Mean size of a read, in bytes.
    pub mean_read_bytes: f64,
    /// The smallest write, in bytes.
    pub smallest_write_bytes: Option<u64>,
    /// Cumulative shares of writes of at most this many bytes.
    pub write_shares: Vec<(u32, f64)>,
    /// Counts of all writes; pages have `page_bytes`.
    pub writes: WriteCounts,
    /// Page size in bytes.
    pub page_bytes: u64,
    /// Number of pages written at least once.
    pub written_pages: u64,
    /// Share of page writes that cover only a part of the page.
    pub partial: f64,
}

/// Result of an experiment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ExperimentOutcome {
    /// ID of the experiment.
    pub id: String,
    /// Description of the measured quantity.
    pub title: String,
    /// Publication.
    pub source: String,
    /// Assumptions where the paper leaves details open.
    pub readings: Vec<String>,
    /// Claims of the paper.
    pub claims: Vec<ClaimText>,
    /// Measured results.
    pub measured: Measured,
}

/// A claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClaimText {
    /// ID of the claim.
    pub id: String,
    /// Text of the paper.
    pub published: String,
    /// Rule by which the direction is judged.
    pub rule: Option<String>,
}

/// Measured results, by kind of experiment.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// Metric over a sweep.
    Figure(FigureOutcome),
    /// Metrics over a study of caches.
    Caching(CachingOutcome),
    /// Tables over a comparison.
    Comparison(ComparisonOutcome),
    /// Wear of a cache's PCM.
    Wear(WearOutcome),
    /// Recovery of a cache.
    Recovery(RecoveryOutcome),
    /// Garbage collection compared with theory.
    Theory(TheoryOutcome),
    /// Latencies: an input, not a result.
    Input(Vec<LatencyRow>),
    /// Software time.
    Software(SoftwareOutcome),
    /// No result, with the reason.
    Nothing(String),
}

/// A metric over a sweep.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FigureOutcome {
    /// Name of the sweep.
    pub sweep: String,
    /// Name of the metric.
    pub metric: String,
    /// Baseline column, to which the others are relative.
    pub by: Option<String>,
    /// Assumptions of the sweep.
    pub readings: Vec<String>,
    /// Tables, one for each state of the volume.
    pub tables: Vec<FigureTable>,
}

/// Table of a state.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FigureTable {
    /// The state.
    pub state: String,
    /// Description of the state.
    pub about: String,
    /// The columns.
    pub columns: Vec<String>,
    /// Rows, one for each workload.
    pub rows: Vec<FigureRow>,
    /// Verdicts on means over workloads.
    pub means: Vec<MeanRow>,
}

/// Row of a workload.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FigureRow {
    /// The workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// The workload of the paper that it stands for.
    pub stands_for: Option<String>,
    /// `true` if the host's hints were kept.
    pub hints: bool,
    /// Absolute values, by column.
    pub values: Vec<f64>,
    /// Values relative to the baseline column; `None` if that is zero.
    pub relative: Option<Vec<f64>>,
    /// Size of the volume, in bytes.
    pub volume_bytes: u64,
    /// Size of PCM, in bytes.
    pub pcm_bytes: u64,
    /// Verdicts on the claims.
    pub verdicts: Vec<Verdict>,
    /// Explanations of differences, from the workload and the counts of the runs.
    pub why: Vec<String>,
}

/// Mean over workloads.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MeanRow {
    /// WorkloadKind of the workloads: recorded or generated.
    pub kind: WorkloadKind,
    /// The workloads.
    pub of: Vec<String>,
    /// The column.
    pub column: String,
    /// Mean of the relative values.
    pub value: f64,
    /// Verdict on the claim.
    pub verdict: Verdict,
}

/// Verdict on a claim.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// ID of the claim.
    pub claim: String,
    /// `true` if the metric changes as claimed; `None` if there is nothing to judge, or the claim
    /// is not about a direction.
    pub direction: Option<bool>,
    /// `true` if the claim is about a direction.
    pub judged: bool,
    /// Values, and the bands in which they should be.
    pub bands: Vec<BandVerdict>,
}

/// A value and its band.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BandVerdict {
    /// The column.
    pub column: String,
    /// The value.
    pub value: f64,
    /// Lower bound.
    pub least: f64,
    /// Upper bound; `None`: no limit.
    pub most: Option<f64>,
    /// `true` if the value is inside the band.
    pub holds: bool,
}

/// Garbage collection compared with theory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TheoryOutcome {
    /// Maximum relative difference that counts as agreement.
    pub within: f64,
    /// Results of the runs.
    pub cases: Vec<CaseResult>,
}

/// A latency of a profile and the published one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LatencyRow {
    /// The profile.
    pub profile: String,
    /// The command.
    pub op: &'static str,
    /// Size of the command, in bytes.
    pub bytes: u32,
    /// Published latency, in microseconds.
    pub published_us: f64,
    /// `true` if the published value is a lower bound.
    pub or_more: bool,
    /// Latency of the profile, in microseconds.
    pub profile_us: f64,
    /// `true` if both are equal to half of the last published digit.
    pub agrees: bool,
}

/// Software time of requests.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SoftwareOutcome {
    /// Size of a request, in bytes.
    pub request_bytes: u64,
    /// Number of reads, and of writes, in a round.
    pub requests: u32,
    /// Number of rounds; the paths take turns.
    pub rounds: u32,
    /// Paths, frit's first.
    pub paths: Vec<PathTime>,
    /// Reason why the kernel's path was not measured.
    pub skipped: Option<String>,
}

/// Time on one path, in nanoseconds a request: the median over rounds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathTime {
    /// Name of the path.
    pub name: &'static str,
    /// Components of the path.
    pub contains: &'static str,
    /// Time of a read.
    pub read_ns: f64,
    /// Time of a write.
    pub write_ns: f64,
    /// Times of the fastest and the slowest round of reads.
    pub read_range_ns: (f64, f64),
    /// Times of the fastest and the slowest round of writes.
    pub write_range_ns: (f64, f64),
    /// `true` for the kernel's path.
    pub kernel: bool,
}

impl Verdict {
    /// Returns `true` if a judged direction or band does not agree.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.direction == Some(false) || self.bands.iter().any(|b| !b.holds)
    }
}
