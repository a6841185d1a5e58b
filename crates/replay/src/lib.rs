//! Replays a workload over a stack in virtual time and reports the results. This is the
//! implementation of `frit run`.
//!
//! [`Job`] opens a workload once and runs it over several stacks. [`run`] is the short form for an
//! open workload; [`Session`] gives access to the single steps. A [`Report`] contains all metrics
//! and the inputs they belong to; [`report::text`] and [`report::compare`] format reports,
//! [`report::write_json`] writes them.
//!
//! The crate is not an engine and does not collect statistics of its own: time comes from
//! `frit-engine`, counts come from the media.

mod byte_requests;
mod device_commands;
mod error;
pub mod findings;
mod hinted;
mod host;
pub mod html;
mod layer_trace;
pub mod options;
pub mod report;
mod request_log;
mod request_stats;
mod runner;
mod session;
pub mod steady;
pub mod verify;

#[cfg(test)]
mod tests;

pub use error::{Error, Result};
pub use hinted::{HintReport, MarkedWrites};
pub use host::WorkloadCounts;
pub use layer_trace::RecordReport;
pub use options::{InitialState, Percentiles, RunOptions, WarmUp, WarmUpRequests};
pub use report::Report;
pub use request_log::RequestLog;
pub use request_stats::WriteSize;
pub use runner::ProgressFn;
pub use session::{Job, JobProgress, Session, run, sectors};
