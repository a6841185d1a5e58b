//! Results of a study of caches.

use super::split::SplitOutcome;
use crate::caching::{CacheMetric, CacheRunResult};
use crate::kinds::ClaimVerdict;
use frit_trace::identity::WorkloadKind;
use serde::Serialize;

/// Metrics over a study: a table for each view and metric.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CachingOutcome {
    /// Name of the study.
    pub study: String,
    /// Assumptions of the study.
    pub readings: Vec<String>,
    /// Metrics in the output.
    pub metrics: Vec<CacheMetric>,
    /// The policies, by column.
    pub policies: Vec<String>,
    /// Baseline policy, to which the others are relative, in the first metric.
    pub by: Option<String>,
    /// Workloads that were run.
    pub workloads: Vec<CachedWorkload>,
    /// Policy whose evictions are shown by reason.
    pub reasons: Option<String>,
    /// Verdicts on the claims.
    pub claims: Vec<ClaimVerdict>,
    /// Results of the runs, by view.
    pub views: Vec<CachingView>,
}

/// A workload of a study.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CachedWorkload {
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
    /// Number of reads and writes.
    pub requests: u64,
    /// Share of writes among them.
    pub write_ratio: f64,
    /// Mean size of a request, in bytes.
    pub mean_bytes: f64,
    /// Number of bytes read and written.
    pub asked_bytes: u64,
}

/// Results of a view.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CachingView {
    /// The view.
    pub view: String,
    /// Description of the view.
    pub about: String,
    /// Rows, one for each workload and size.
    pub rows: Vec<CachingRow>,
    /// Mean of the judged changes over the paper's workloads.
    pub mean: Option<MeanChange>,
    /// Best policy on some workloads, and its result on the others.
    pub split: Option<SplitOutcome>,
}

/// Results of a workload with a cache of one size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CachingRow {
    /// The workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// The workload of the paper that it stands for.
    pub stands_for: Option<String>,
    /// Size of the cache as a multiple of the workload's.
    pub times: f64,
    /// Size of the cache, in bytes.
    pub cache_bytes: u64,
    /// Results by policy.
    pub found: Vec<CacheRunResult>,
    /// Claimed and measured change.
    pub judged: Option<MetricChange>,
}

/// The change of the first metric relative to that of the baseline `by`, in percent.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct MetricChange {
    /// Measured change.
    pub measured: f64,
    /// Published change; `None` for a workload that the paper does not have.
    pub published: Option<f64>,
    /// `true` if both have the same sign; `None` without a published value.
    pub direction: Option<bool>,
    /// `true` if both agree within the tolerance; `None` without a published value, and for
    /// recordings, which are parts of the paper's workloads or other ones.
    pub value: Option<bool>,
}

/// Mean of changes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MeanChange {
    /// The workloads.
    pub of: Vec<String>,
    /// Measured mean, in percent.
    pub measured: f64,
    /// Published mean for the same workloads, in percent.
    pub published: f64,
}

impl CachingRow {
    /// Returns the values of a metric, by column.
    pub fn values(&self, metric: CacheMetric) -> impl Iterator<Item = f64> + '_ {
        self.found.iter().map(move |f| metric.of(f))
    }
}
