//! What came out: published beside measured, for people and for programs.

mod caching;
mod caching_text;
mod comparison;
mod comparison_text;
mod plot;
mod recovery;
mod show;
mod text;
mod wear;

pub use caching::{CachedWorkload, CachingOutcome, CachingRow, CachingView, Change, MeanChange};
pub use comparison::{
    Checked, ComparedRow, ComparedTable, ComparisonOutcome, Crossing, CrossingLine, CrossingPoint, Even,
};
pub use plot::plots;
pub use recovery::{RecoveryOutcome, RecoveryRow};
pub(crate) use show::count;
pub use text::text;
pub use wear::{WearOutcome, WearRow};

use crate::sweep::SizeRow;
use crate::theory::CaseResult;
use frit_trace::identity::Kind;
use serde::Serialize;

/// The version of the structure that `--json` writes.
pub const SCHEMA: u32 = 1;

/// All that was asked for.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Reproduction {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program.
    pub frit: frit_replay::report::Program,
    /// Whether only a little was run.
    pub quick: bool,
    /// The seed that was given; none: the sweeps' own.
    pub seed: Option<u64>,
    /// Workloads that were not there, each with the reason.
    pub missing: Vec<MissingWorkload>,
    /// Workloads that were run.
    pub workloads: Vec<WorkloadOutcome>,
    /// The experiments.
    pub experiments: Vec<Outcome>,
}

/// A workload that was not there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MissingWorkload {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// A workload that was run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WorkloadOutcome {
    /// Its name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Recorded or generated.
    pub kind: Kind,
    /// The workload of the paper that it stands for.
    pub stands_for: Option<String>,
    /// The file's hash, or the generator's whole specification.
    pub identity: String,
    /// Requests.
    pub requests: u64,
    /// Writes among reads and writes.
    pub write_ratio: f64,
    /// Mean size of a write, in bytes.
    pub mean_write_bytes: f64,
    /// Mean size of a read, in bytes.
    pub mean_read_bytes: f64,
    /// The smallest write, in bytes.
    pub smallest_write_bytes: Option<u64>,
    /// The share of writes of at most so many bytes.
    pub write_shares: Vec<(u32, f64)>,
    /// All writes; pages are of `page_bytes`.
    pub writes: SizeRow,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages written at least once.
    pub written_pages: u64,
    /// The share of page writes that cover only a part of the page.
    pub partial: f64,
}

/// One experiment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// Its id.
    pub id: String,
    /// What is counted.
    pub title: String,
    /// Where it is published.
    pub source: String,
    /// How what the paper leaves open is taken.
    pub readings: Vec<String>,
    /// What is claimed.
    pub claims: Vec<Claimed>,
    /// What was measured.
    pub measured: Measured,
}

/// One claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Claimed {
    /// Its id.
    pub id: String,
    /// What the paper's text says.
    pub published: String,
    /// The rule by which the direction is judged.
    pub rule: Option<String>,
}

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// A figure over a sweep.
    Figure(FigureOutcome),
    /// A figure over a study of caches.
    Caching(CachingOutcome),
    /// Tables over a comparison.
    Comparison(ComparisonOutcome),
    /// Wear of a cache's PCM.
    Wear(WearOutcome),
    /// Recovery of a cache.
    Recovery(RecoveryOutcome),
    /// Cleaning against theory.
    Theory(TheoryOutcome),
    /// Latencies: an input, not a result.
    Input(Vec<LatencyRow>),
    /// Software time.
    Software(SoftwareOutcome),
    /// Nothing: why.
    Nothing(String),
}

/// A figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FigureOutcome {
    /// The sweep that it is read from.
    pub sweep: String,
    /// What is counted, by its name.
    pub metric: String,
    /// The column that others are relative to.
    pub by: Option<String>,
    /// How the sweep was run.
    pub readings: Vec<String>,
    /// One table a state of the volume.
    pub tables: Vec<FigureTable>,
}

/// The table of one state.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FigureTable {
    /// The state.
    pub state: String,
    /// What it is.
    pub about: String,
    /// The columns.
    pub columns: Vec<String>,
    /// One row a workload.
    pub rows: Vec<FigureRow>,
    /// Verdicts about the mean over workloads.
    pub means: Vec<MeanRow>,
}

/// A workload's row.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FigureRow {
    /// The workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: Kind,
    /// The workload of the paper that it stands for.
    pub stands_for: Option<String>,
    /// Whether the host's hints were seen.
    pub hints: bool,
    /// As counted, by column.
    pub values: Vec<f64>,
    /// By the column that others are relative to; none where that is zero.
    pub relative: Option<Vec<f64>>,
    /// Bytes of the volume and of PCM.
    pub volume_bytes: u64,
    /// Bytes of PCM.
    pub pcm_bytes: u64,
    /// What became of the claims.
    pub verdicts: Vec<Verdict>,
    /// Why it differs, from what the workload asked for and the runs counted.
    pub why: Vec<String>,
}

/// A mean over workloads.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MeanRow {
    /// Of recorded or of generated workloads.
    pub kind: Kind,
    /// The workloads.
    pub of: Vec<String>,
    /// The column.
    pub column: String,
    /// The mean of the relative values.
    pub value: f64,
    /// What became of the claim.
    pub verdict: Verdict,
}

/// What became of a claim.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// The claim.
    pub claim: String,
    /// Whether the figure moves as it says; none when there is nothing to count, or the claim says nothing of it.
    pub direction: Option<bool>,
    /// Whether the claim says how the figure moves.
    pub judged: bool,
    /// The value, and the band that it should lie in.
    pub bands: Vec<BandVerdict>,
}

/// A value beside its band.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BandVerdict {
    /// The column.
    pub column: String,
    /// The value.
    pub value: f64,
    /// The least that agrees.
    pub least: f64,
    /// The most that agrees; none: no limit.
    pub most: Option<f64>,
    /// Whether it lies inside.
    pub holds: bool,
}

/// Cleaning against theory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TheoryOutcome {
    /// The distance that counts as agreement.
    pub within: f64,
    /// The runs.
    pub cases: Vec<CaseResult>,
}

/// A latency of a profile beside the published one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LatencyRow {
    /// The profile.
    pub profile: String,
    /// The command.
    pub op: &'static str,
    /// Its bytes.
    pub bytes: u32,
    /// Published, in microseconds.
    pub published_us: f64,
    /// Whether the paper says that it is more than that.
    pub or_more: bool,
    /// What the profile gives.
    pub profile_us: f64,
    /// Whether they are the same, to half of the last digit published.
    pub agrees: bool,
}

/// Software time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SoftwareOutcome {
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Requests of a round, of each kind.
    pub requests: u32,
    /// Rounds; paths take turns.
    pub rounds: u32,
    /// The paths, frit's first.
    pub paths: Vec<PathTime>,
    /// Why the kernel's path was not measured.
    pub skipped: Option<String>,
}

/// Time on one path: nanoseconds a request, the median over rounds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathTime {
    /// The path.
    pub name: &'static str,
    /// What it contains.
    pub contains: &'static str,
    /// A read.
    pub read_ns: f64,
    /// A write.
    pub write_ns: f64,
    /// The fastest and the slowest round, reads.
    pub read_range_ns: (f64, f64),
    /// The fastest and the slowest round, writes.
    pub write_range_ns: (f64, f64),
    /// Whether it is the kernel's.
    pub kernel: bool,
}

impl Verdict {
    /// Whether something that was judged does not agree.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.direction == Some(false) || self.bands.iter().any(|b| !b.holds)
    }
}
