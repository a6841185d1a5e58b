//! Runs of a sweep: workloads × states of the volume × columns. Several metrics are read from the
//! same runs.

mod metrics;
mod packed_workload;
mod runner;
mod scale;
mod source;
mod workload_stats;

pub use metrics::RunMetrics;
pub use packed_workload::Chunks;
pub use runner::{RunNoteFn, SweepCell, SweepRunner};
pub use source::{AvailableWorkload, Traces, WorkloadLookup};
pub(crate) use workload_stats::share;
pub use workload_stats::{WorkloadStats, WriteCounts};
