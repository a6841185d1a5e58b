//! Results of a metric over a sweep.

use frit_trace::identity::WorkloadKind;
use serde::Serialize;

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

impl Verdict {
    /// Returns `true` if a judged direction or band does not agree.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.direction == Some(false) || self.bands.iter().any(|b| !b.holds)
    }
}
