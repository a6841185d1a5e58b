//! Descriptions that experiments share: claims with their rules, sweeps, studies of caches,
//! comparisons, and their workloads.
//!
//! An experiment is measured by itself, or over one [`ParameterSweep`], [`Study`] or
//! [`Comparison`], whose runs it shares with other experiments. [`crate::kinds`] has the table of
//! an experiment file that describes the measurement. `docs/guide/reproduce.md` is the manual.

mod check;
mod claim;
mod comparison;
mod study;
mod sweep;

pub(crate) use check::Bounds;
pub use check::{Check, MetricExpr};
pub use claim::{Band, Claim, Direction, TrendDirection};
pub use comparison::{Comparison, PackedSpace, RunView, Variant};
pub use study::{CacheSize, HostLoop, PolicySpec, Study, StudyQuick, View};
pub use sweep::{Column, DeviceScale, HintHandling, ParameterSweep, QuickPlan, SweepState, WorkloadSpec};
