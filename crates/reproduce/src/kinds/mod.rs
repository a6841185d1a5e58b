//! The kinds of experiment: a file each, or a folder.
//!
//! A kind has a plan, which is the table of that kind in an experiment file, the measurement of the
//! plan (`Measure`), its results as `--json` writes them, and their presentation in generic parts
//! (`Present`). A new kind needs a module here, and a line in `experiment.rs`.

mod caching;
mod claim_verdict;
mod comparison;
mod figure;
mod latency;
mod machine_rules;
mod missing;
mod patterns;
mod query;
mod recovery;
mod software;
mod theory;
mod this_machine;
mod wear;

pub use caching::{
    CachedWorkload, CachingOutcome, CachingPlan, CachingRow, CachingView, ConstantsSplit, JudgedChange,
    MeanChange, MetricChange, SplitOutcome, SplitRow,
};
pub use claim_verdict::ClaimVerdict;
pub use comparison::{
    Axis, BreakEven, CheckVerdict, ComparedRow, ComparedTable, ComparisonOutcome, ComparisonPlan, Crossing,
    CrossingLine, CrossingPlan, CrossingPoint, MetricColumn, ReferencePrice, TablePlan,
};
pub use figure::{BandVerdict, FigureOutcome, FigurePlan, FigureRow, FigureTable, MeanRow, Verdict};
pub use latency::{LatencyOutcome, LatencyPlan, LatencyPoint, LatencyRow};
pub use machine_rules::{MachineRule, MachineVerdict, ModelledMachine};
pub use missing::{NotMeasurable, NotMeasured};
pub use patterns::{
    LivePatternRow, LivePatternsOutcome, LivePatternsPlan, PatternRow, PatternsOutcome, PatternsPlan,
};
pub use query::{
    EngineRun, LiveFile, LiveQueryOutcome, LiveQueryPlan, LiveRound, MachineRow, QueryOutcome, QueryPlan,
    SoftwareRun,
};
pub use recovery::{CacheBytes, RecoveryOutcome, RecoveryPlan, RecoveryRow};
pub use software::{PathTime, SoftwareOutcome, SoftwarePlan};
pub use theory::{DeviceShape, TheoryOutcome, TheoryPlan};
pub use this_machine::{Spread, ThisMachine};
pub use wear::{WearOutcome, WearPlan, WearRow};

use crate::Result;
use crate::describe::Claim;
use crate::outcome::Outcome;
use crate::workbench::Workbench;

/// The experiment that a plan belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// ID of the experiment, for errors.
    pub(crate) id: &'a str,
    /// Claims that the measurement judges.
    pub(crate) claims: &'a [Claim],
}

/// A plan that can be measured.
pub(crate) trait Measure {
    /// Results, as `--json` writes them.
    type Data: Present;

    /// Returns `true` if a metric of the plan, or of a claim, is a time of runs, or depends on one.
    fn is_about_time(&self, _claims: &[Claim]) -> bool {
        false
    }

    /// Measures the plan. `note` is called with the name of each step that starts.
    ///
    /// # Errors
    /// A stack, a workload or the plan fails. Missing recordings are no error: the workbench
    /// records them.
    fn measure(
        &self,
        subject: Subject<'_>,
        bench: &mut Workbench,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self::Data>;
}

/// Results of a kind of experiment.
pub(crate) trait Present {
    /// Returns the results in generic parts.
    fn present(&self) -> Outcome;
}
