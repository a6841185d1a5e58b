//! Measurement of the described experiments.

mod caching;
mod comparison;
mod comparison_runs;
mod crossing;
mod explain;
mod figure;
mod latency;
mod recovery;
mod theory;
mod wear;

use crate::caching::CacheRunResults;
use crate::describe::{Experiment, WorkloadSpec};
use crate::outcome::{
    ClaimText, ExperimentOutcome, Measured, MissingWorkload, Reproduction, SCHEMA, WorkloadOutcome,
};
use crate::pool::JobPool;
use crate::sweep::{AvailableWorkload, RunMetrics, SweepRunner, Traces, WorkloadLookup, WorkloadStats};
use crate::{Result, software};
use frit_replay::report::Program;

/// Parameters of a reproduction.
#[derive(Clone, Default, Debug)]
pub struct ReproduceOptions {
    /// Locations of recordings.
    pub traces: Traces,
    /// `true`: reduced requests, workloads, rounds and cases.
    pub quick: bool,
    /// Seed of the volumes' initial states, instead of the sweeps' own.
    pub seed: Option<u64>,
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
    plan: &ReproduceOptions,
    watch: ProgressFn<'_>,
) -> Result<Reproduction> {
    let mut runner = SweepRunner::new(plan.traces.clone(), plan.quick, plan.seed);
    let (mut cells, mut compared) = (CacheRunResults::default(), JobPool::default());
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
        let measured = measure(e, plan, (&mut runner, &mut cells, &mut compared), &mut out, &mut note)?;
        out.experiments.push(ExperimentOutcome {
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
    plan: &ReproduceOptions,
    (runner, cells, compared): (&mut SweepRunner, &mut CacheRunResults, &mut JobPool<RunMetrics>),
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
    if let Some(c) = &e.comparison {
        return Ok(Measured::Comparison(comparison::comparison(e, c, plan, compared, out, note)?));
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

fn claimed(c: &crate::describe::Claim) -> ClaimText {
    let rule = c.direction.as_ref().map(crate::describe::Direction::words);
    ClaimText { id: c.id.clone(), published: c.published.clone(), rule }
}

/// Returns the available ones of these workloads, with their input; missing ones are recorded. A
/// workload is omitted if an available one contains it.
fn find<'a>(
    specs: impl Iterator<Item = &'a WorkloadSpec>,
    traces: &Traces,
    limit: Option<u64>,
    out: &mut Reproduction,
) -> Result<Vec<(&'a WorkloadSpec, Box<AvailableWorkload>)>> {
    let mut here: Vec<(&WorkloadSpec, Box<AvailableWorkload>)> = Vec::new();
    for spec in specs {
        if spec.unless.as_ref().is_some_and(|whole| here.iter().any(|h| h.0.name == *whole)) {
            continue;
        }
        match traces.find(spec, limit)? {
            WorkloadLookup::Missing(why) => {
                note_missing(out, MissingWorkload { name: spec.name.clone(), why });
            }
            WorkloadLookup::Available(input) => here.push((spec, input)),
        }
    }
    Ok(here)
}

/// Returns the description and the characteristics of a workload.
fn workload_outcome(
    sizes: &[u32],
    w: &WorkloadSpec,
    input: &AvailableWorkload,
    f: &WorkloadStats,
) -> WorkloadOutcome {
    let all = f.all();
    WorkloadOutcome {
        name: w.name.clone(),
        about: w.about.clone(),
        kind: input.kind,
        stands_for: w.stands_for.clone(),
        identity: input.identity.clone(),
        requests: f.requests,
        write_ratio: f.write_ratio(),
        mean_write_bytes: f.mean_write(),
        mean_read_bytes: f.mean_read(),
        smallest_write_bytes: f.smallest(),
        write_shares: sizes.iter().map(|s| (*s, f.share_up_to(u64::from(*s)))).collect(),
        writes: all,
        page_bytes: f.page_bytes,
        written_pages: f.written_pages,
        partial: crate::sweep::share(all.partial, all.parts),
    }
}

/// Records a workload, once.
fn note_workload(out: &mut Reproduction, w: WorkloadOutcome) {
    if !out.workloads.iter().any(|o| o.name == w.name) {
        out.workloads.push(w);
    }
}

/// Records a missing workload, once.
fn note_missing(out: &mut Reproduction, m: MissingWorkload) {
    if !out.missing.contains(&m) {
        out.missing.push(m);
    }
}
