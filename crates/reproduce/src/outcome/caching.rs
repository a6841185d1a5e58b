//! What came of a study of caches.

use crate::caching::{Found, Metric};
use frit_trace::identity::Kind;
use serde::Serialize;

/// A figure over a study: a table for each view and metric.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CachingOutcome {
    /// The study that it is read from.
    pub study: String,
    /// How the study was run.
    pub readings: Vec<String>,
    /// What is shown.
    pub metrics: Vec<Metric>,
    /// The policies, by column.
    pub policies: Vec<String>,
    /// The policy that the others are relative to, in the first metric.
    pub by: Option<String>,
    /// The workloads that were run.
    pub workloads: Vec<CachedWorkload>,
    /// The runs, by view.
    pub views: Vec<CachingView>,
}

/// A workload of a study.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CachedWorkload {
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
    /// Reads and writes.
    pub requests: u64,
    /// Writes among them.
    pub write_ratio: f64,
    /// Mean size, in bytes.
    pub mean_bytes: f64,
    /// Bytes that are read and written.
    pub asked_bytes: u64,
}

/// The runs of one view.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CachingView {
    /// The view.
    pub view: String,
    /// What it is.
    pub about: String,
    /// One row a workload and size.
    pub rows: Vec<CachingRow>,
    /// The mean over the paper's workloads of what is judged.
    pub mean: Option<MeanChange>,
}

/// A workload with a cache of one size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CachingRow {
    /// The workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: Kind,
    /// The workload of the paper that it stands for.
    pub stands_for: Option<String>,
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// What was found, by policy.
    pub found: Vec<Found>,
    /// The claim beside what was measured.
    pub judged: Option<Change>,
}

/// A change of the first metric against that of `by`, in percent.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Change {
    /// Measured.
    pub measured: f64,
    /// Published; none: the workload is none of the paper's.
    pub published: Option<f64>,
    /// Whether both have the same sign; none without a published value.
    pub direction: Option<bool>,
    /// Whether they are as near as the rule asks for; none without a published value, and for recordings, which are
    /// parts of the paper's workloads or others.
    pub value: Option<bool>,
}

/// The mean of changes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MeanChange {
    /// The workloads.
    pub of: Vec<String>,
    /// Measured, in percent.
    pub measured: f64,
    /// Published for the same workloads, in percent.
    pub published: f64,
}

impl CachingRow {
    /// A metric by column.
    pub fn values(&self, metric: Metric) -> impl Iterator<Item = f64> + '_ {
        self.found.iter().map(move |f| metric.of(f))
    }
}
