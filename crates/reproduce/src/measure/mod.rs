//! Measures what experiments describe.

mod caching;
mod explain;
mod figure;
mod latency;
mod recovery;
mod theory;
mod wear;

use crate::caching::Cells;
use crate::describe::Experiment;
use crate::outcome::{Claimed, Measured, MissingWorkload, Outcome, Reproduction, SCHEMA, WorkloadOutcome};
use crate::sweep::{Runner, Traces};
use crate::{Result, software};
use frit_replay::report::Program;

/// How to go about it.
#[derive(Clone, Default, Debug)]
pub struct Plan {
    /// Where recordings are.
    pub traces: Traces,
    /// Only a little: fewer requests, workloads, rounds and cases.
    pub quick: bool,
    /// Seed of the volumes' starts, instead of the sweeps' own.
    pub seed: Option<u64>,
}

/// How far it is: steps that are done, of how many, and what is done now.
pub type Watch<'a> = &'a mut dyn FnMut(usize, usize, &str);

/// Measures experiments.
///
/// # Errors
/// A stack, a workload or a description that fails. What is missing on this machine is no error: the outcome says so.
pub fn reproduce(experiments: &[Experiment], plan: &Plan, watch: Watch<'_>) -> Result<Reproduction> {
    let mut runner = Runner::new(plan.traces.clone(), plan.quick, plan.seed);
    let mut cells = Cells::default();
    let mut out = Reproduction {
        schema: SCHEMA,
        frit: Program::this(),
        quick: plan.quick,
        seed: plan.seed,
        missing: Vec::new(),
        workloads: Vec::new(),
        experiments: Vec::new(),
    };
    for (i, e) in experiments.iter().enumerate() {
        let mut note = |what: &str| watch(i, experiments.len(), &format!("{}: {what}", e.id));
        let measured = measure(e, plan, (&mut runner, &mut cells), &mut out, &mut note)?;
        out.experiments.push(Outcome {
            id: e.id.clone(),
            title: e.title.clone(),
            source: e.source.clone(),
            readings: e.readings.clone(),
            claims: e.claims.iter().map(claimed).collect(),
            measured,
        });
    }
    watch(experiments.len(), experiments.len(), "done");
    Ok(out)
}

fn measure(
    e: &Experiment,
    plan: &Plan,
    (runner, cells): (&mut Runner, &mut Cells),
    out: &mut Reproduction,
    note: &mut dyn FnMut(&str),
) -> Result<Measured> {
    if let Some(plan) = &e.figure {
        return Ok(Measured::Figure(figure::figure(e, plan, runner, out, note)?));
    }
    if let Some(c) = &e.caching {
        let source = (&plan.traces, plan.quick);
        return Ok(Measured::Caching(caching::caching(e, c, source, cells, out, note)?));
    }
    if let Some(w) = &e.wear {
        let source = (&plan.traces, plan.quick);
        return Ok(Measured::Wear(wear::wear(e, w, source, out, note)?));
    }
    if let Some(plan) = &e.recovery {
        return Ok(Measured::Recovery(recovery::recovery(plan, runner.quick(), note)?));
    }
    if let Some(plan) = &e.theory {
        return Ok(Measured::Theory(theory::theory(plan, runner.quick(), note)?));
    }
    if let Some(plan) = &e.latency {
        return Ok(Measured::Input(latency::latency(&e.id, plan)?));
    }
    if let Some(plan) = &e.software {
        return Ok(Measured::Software(software::software(plan, runner.quick(), note)?));
    }
    Ok(Measured::Nothing(e.missing.as_ref().map(|m| m.why.clone()).unwrap_or_default()))
}

fn claimed(c: &crate::describe::Claim) -> Claimed {
    let rule = c.direction.as_ref().map(crate::describe::Direction::words);
    Claimed { id: c.id.clone(), published: c.published.clone(), rule }
}

/// Takes note of a workload, once.
fn note_workload(out: &mut Reproduction, w: WorkloadOutcome) {
    if !out.workloads.iter().any(|o| o.name == w.name) {
        out.workloads.push(w);
    }
}

/// Takes note of one that is not there, once.
fn note_missing(out: &mut Reproduction, m: MissingWorkload) {
    if !out.missing.contains(&m) {
        out.missing.push(m);
    }
}
