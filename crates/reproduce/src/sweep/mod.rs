//! Runs of a sweep: workloads × states of the volume × columns. Several metrics are read from the
//! same runs.

mod facts;
mod figures;
mod packed;
mod runner;
mod scale;
mod source;

pub(crate) use facts::share;
pub use facts::{Facts, SizeRow};
pub use figures::Figures;
pub use packed::Chunks;
pub use runner::{Cell, Runner, Watch};
pub use source::{Found, Input, Traces};
