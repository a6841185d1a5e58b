//! The results of all requested experiments: published values and measured ones, for people and for
//! programs.

mod text;

use crate::Result;
use crate::describe::{Claim, Direction};
use crate::experiment::{Experiment, Measured};
use crate::outcome::Outcome;
use crate::workbench::{ReproduceOptions, Workbench};
use crate::workloads::{MissingWorkload, WorkloadOutcome};
use frit_replay::findings::Finding;
use frit_replay::report::Program;
use serde::Serialize;

/// Version of the structure that `--json` writes.
pub const SCHEMA: u32 = 2;

/// Results of all requested experiments.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Reproduction {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program and its version.
    pub frit: Program,
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
    /// What the results say.
    pub findings: Vec<Finding>,
    /// Measured results.
    pub measured: Measured,
    /// The results in generic parts, which the text and the plots present.
    #[serde(skip)]
    outcome: Outcome,
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

/// Progress callback: number of completed steps, number of all steps, and name of the current one.
pub type ProgressFn<'a> = &'a mut dyn FnMut(usize, usize, &str);

/// Measures experiments.
///
/// # Errors
/// A stack, a workload or a description fails. Missing recordings are no error: the result lists
/// them.
pub fn reproduce(
    experiments: &[Experiment],
    options: &ReproduceOptions,
    watch: ProgressFn<'_>,
) -> Result<Reproduction> {
    let mut bench = Workbench::new(options.clone());
    let mut outcomes = Vec::new();
    for (i, e) in experiments.iter().enumerate() {
        let mut note = |what: &str| watch(i, experiments.len(), &format!("{}: {what}", e.id));
        let measured = e.measure(&mut bench, &mut note)?;
        let outcome = measured.outcome();
        let findings = e.findings(&outcome, &bench.take_runs());
        outcomes.push(ExperimentOutcome {
            id: e.id.clone(),
            title: e.title.clone(),
            source: e.source.clone(),
            readings: e.readings.clone(),
            claims: e.claims.iter().map(ClaimText::of).collect(),
            findings,
            measured,
            outcome,
        });
    }
    watch(experiments.len(), experiments.len(), "done");
    Ok(Reproduction {
        schema: SCHEMA,
        frit: Program::this(),
        quick: options.quick,
        seed: options.seed,
        missing: bench.log.missing,
        workloads: bench.log.workloads,
        experiments: outcomes,
    })
}

impl ClaimText {
    fn of(c: &Claim) -> ClaimText {
        let rule = c.direction.as_ref().map(Direction::words);
        ClaimText { id: c.id.clone(), published: c.published.clone(), rule }
    }
}

impl Reproduction {
    /// Returns all results as text, with tables in Markdown.
    #[must_use]
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// Returns the plots, each with a file name.
    #[must_use]
    pub fn plots(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        for e in &self.experiments {
            for (i, plot) in e.outcome.plots.iter().enumerate() {
                let number = if i == 0 { String::new() } else { format!("-{}", i + 1) };
                out.push((format!("{}{number}.svg", e.id), plot.svg()));
            }
        }
        out
    }
}
